//! One mail transaction: the envelope, and which way it goes.

use std::collections::BTreeSet;

use super::Services;
use crate::account::{Grant, Principal, Role, Verb};
use crate::config::{AccountConfig, HoldMode};
use crate::floor::envelope::{BodyType, Envelope, EnvelopeError, ForwardPath, ForwardPathError};
use crate::floor::hold::{Decision, Mode, Reason, decide};
use crate::mail::address::Address;
use crate::outbox::RouteError;
use crate::upstream::smtp::{MailParameters, Submission, SubmissionError};
use crate::wire::smtp::{Parameter, Path, Reply};

/// The embedded and the network provider both answer to this.
const DOWN: &str = "the provider can't be reached; try again later";

/// A recipient that was accepted.
#[derive(Debug)]
pub(super) struct Recipient {
    /// As the client wrote it.
    pub(super) written: String,
    /// As it is held.
    pub(super) path: Result<ForwardPath, ForwardPathError>,
}

/// Which way the message goes.
#[derive(Debug)]
pub(super) enum Way {
    /// Through the provider's own transaction.
    Relay(Box<Submission>),
    /// It is held.
    Held(Reason),
}

/// A transaction that MAIL opened.
#[derive(Debug)]
pub(super) struct Transaction {
    pub(super) from: String,
    pub(super) parameters: MailParameters,
    pub(super) to: Vec<Recipient>,
    pub(super) way: Way,
    pub(super) addresses: BTreeSet<String>,
    pub(super) external: bool,
    /// The account stores a secret, so that held mail could be sent later.
    pub(super) holds: bool,
}

/// The floor's word for the configured mode.
pub(super) fn mode(mode: HoldMode) -> Mode {
    match mode {
        HoldMode::Ai => Mode::Ai,
        HoldMode::External => Mode::External,
        HoldMode::All => Mode::All,
    }
}

/// The canonical forms of the account's own addresses.
fn own_addresses(account: &AccountConfig) -> BTreeSet<String> {
    std::iter::once(&account.address).chain(&account.aliases).map(Address::canonical).collect()
}

/// Whether `domain` is of none of the account's own addresses.
fn is_external(own: &BTreeSet<String>, written: &str) -> bool {
    let Ok(address) = Address::parse(written) else { return true };
    !own.iter().filter_map(|own| own.rsplit_once('@')).any(|(_, domain)| domain == address.domain)
}

impl Transaction {
    /// MAIL. For a person whose mail is not held anyway, the provider is
    /// asked; its reply is the client's.
    pub(super) async fn open(
        services: &Services,
        principal: &Principal,
        from: &Path,
        parameters: &[Parameter],
    ) -> Result<(Transaction, Reply), Reply> {
        let account = services.accounts.account(&principal.account);
        let account = account.ok_or_else(|| Reply::new(550, "5.7.1", "the account is not configured"))?;
        let is_agent = principal.role == Role::Agent;
        if is_agent && principal.grants.of(Verb::Send) == Grant::Off {
            return Err(Reply::new(550, "5.7.1", "this key may not send"));
        }
        let parameters = mail_parameters(services, principal, parameters)?;
        let addresses = own_addresses(account);
        check_sender(from, is_agent, &parameters, &addresses)?;
        let way = match decide(is_agent, mode(services.config.hold), false, false, false) {
            Decision::Hold(reason) if !account.stores_secret() => return Err(cannot_hold(reason)),
            Decision::Hold(reason) => Way::Held(reason),
            Decision::NoHold(_) => Way::Relay(Box::new(connect(services, principal).await?)),
        };
        let mut this = Transaction {
            from: from.as_str().to_owned(),
            parameters,
            to: Vec::new(),
            way,
            addresses,
            external: false,
            holds: account.stores_secret(),
        };
        let reply = match &mut this.way {
            Way::Held(_) => Reply::new(250, "2.1.0", "sender ok"),
            Way::Relay(submission) => match submission.mail(&this.from, &parameters).await {
                Ok(reply) => passed_on(reply),
                Err(error) => return Err(provider_fault(&error)),
            },
        };
        if reply.is_positive() { Ok((this, reply)) } else { Err(this.refuse(reply)) }
    }

    /// RCPT.
    pub(super) async fn add(&mut self, services: &Services, to: Path, parameters: &[Parameter]) -> Reply {
        if let Some(parameter) = parameters.first() {
            return Reply::new(555, "5.5.4", format!("the parameter {} is not known", parameter.keyword));
        }
        if self.to.len() >= services.config.max_recipients {
            return Reply::new(452, "4.5.3", format!("at most {} recipients", services.config.max_recipients));
        }
        if !to.is_ascii() && !self.parameters.smtputf8 {
            return Reply::new(553, "5.6.7", "an address outside ASCII needs SMTPUTF8");
        }
        let recipient = Recipient { path: ForwardPath::parse(to.as_str()), written: to.into_string() };
        self.external |= is_external(&self.addresses, &recipient.written);
        // Deciding to hold by the recipients, before the provider hears of
        // this one; the ones before it are dropped there.
        if let Way::Relay(_) = self.way
            && let Decision::Hold(reason) = decide(false, mode(services.config.hold), self.external, false, false)
            && let Err(reply) = self.turn_to_hold(reason).await
        {
            return reply;
        }
        let reply = match &mut self.way {
            Way::Held(_) => match &recipient.path {
                Ok(_) => Reply::new(250, "2.1.5", "recipient ok"),
                Err(error) => Reply::new(553, "5.1.3", error.to_string()),
            },
            Way::Relay(submission) => match submission.rcpt(&recipient.written).await {
                Ok(reply) => passed_on(reply),
                Err(error) => provider_fault(&error),
            },
        };
        if reply.is_positive() {
            self.to.push(recipient);
        }
        reply
    }

    /// Gives the provider's transaction up; from now on the message is held.
    pub(super) async fn turn_to_hold(&mut self, reason: Reason) -> Result<(), Reply> {
        if !self.holds {
            return Err(cannot_hold(reason));
        }
        let unfit = self.to.iter().find_map(|r| r.path.as_ref().err().map(|e| (&r.written, *e)));
        if let Some((written, error)) = unfit {
            return Err(Reply::new(553, "5.1.3", format!("<{written}> can't be held: {error}")));
        }
        if let Way::Relay(submission) = std::mem::replace(&mut self.way, Way::Held(reason)) {
            abandon(*submission);
        }
        Ok(())
    }

    /// The envelope as it is held.
    pub(super) fn envelope(&self) -> Result<Envelope, Reply> {
        let paths: Result<Vec<ForwardPath>, ForwardPathError> = self.to.iter().map(|r| r.path.clone()).collect();
        let paths = paths.map_err(|e| Reply::new(553, "5.1.3", e.to_string()))?;
        let body = if self.parameters.eight_bit { BodyType::EightBitMime } else { BodyType::SevenBit };
        Envelope::new(&self.from, paths, body, self.parameters.smtputf8).map_err(|e| match e {
            EnvelopeError::ReversePath(_) => Reply::new(553, "5.1.7", e.to_string()),
            EnvelopeError::NoRecipient => Reply::new(554, "5.5.1", "no recipient was accepted"),
            EnvelopeError::NeedsSmtpUtf8 => Reply::new(553, "5.6.7", e.to_string()),
            EnvelopeError::NotCanonical => Reply::new(553, "5.1.3", e.to_string()),
        })
    }

    /// The recipients outside the account's own domains, as written.
    pub(super) fn outside(&self) -> Vec<String> {
        let written = self.to.iter().map(|r| r.written.clone());
        written.filter(|to| is_external(&self.addresses, to)).collect()
    }

    /// Leaves the provider, where it was called.
    pub(super) fn abandon(self) {
        if let Way::Relay(submission) = self.way {
            abandon(*submission);
        }
    }

    fn refuse(self, reply: Reply) -> Reply {
        self.abandon();
        reply
    }
}

/// QUIT without waiting for it; an open transaction ends with the connection
/// (RFC 5321 §4.1.1.10).
fn abandon(submission: Submission) {
    tokio::spawn(submission.quit());
}

/// Where no secret is stored nothing can be sent later, so what has to be held
/// is refused; it is never sent instead.
fn cannot_hold(reason: Reason) -> Reply {
    let why = match reason {
        Reason::AgentKey => "an agent's mail",
        Reason::Lineage => "mail with an agent's draft in it",
        Reason::Marks => "mail that says it was drafted by a machine (X-AI-Drafted, Auto-Submitted)",
        Reason::External => "mail to outside",
        Reason::All => "all mail",
    };
    let text = format!("{why} waits for approval, and this account can't hold mail: its password is not stored here");
    Reply::new(550, "5.7.1", text)
}

async fn connect(services: &Services, principal: &Principal) -> Result<Submission, Reply> {
    let account = &principal.account;
    let connected = match &principal.own {
        Some(own) => services.outbox.connect_with(account, own.password()).await,
        None => services.outbox.connect(account).await,
    };
    match connected {
        Ok(submission) => {
            services.offers.learn(account, submission.ehlo());
            Ok(submission)
        }
        Err(error) => {
            tracing::warn!(%account, %error, "no connection to the provider");
            Err(match error {
                // The session can't sign in anew (RFC 4954 §4), so it ends.
                RouteError::Submission(SubmissionError::Auth(reply))
                    if principal.own.is_some() && reply.is_permanent() =>
                {
                    Reply::new(421, "4.7.0", format!("{}; sign in again", principal.why_revoked()))
                }
                RouteError::Submission(inner) => provider_fault(&inner),
                // RFC 4954 §6: 454 4.7.0; it is our secret, not the client's.
                RouteError::Secret(_) => Reply::new(454, "4.7.0", "the stored password can't be had"),
                RouteError::NoAccount | RouteError::NoProvider => Reply::new(451, "4.4.1", DOWN),
            })
        }
    }
}

/// What the client hears when the provider can't be used.
pub(super) fn provider_fault(error: &SubmissionError) -> Reply {
    match error {
        SubmissionError::Auth(_) | SubmissionError::NoMechanism => {
            Reply::new(454, "4.7.0", "the provider refused the credentials")
        }
        SubmissionError::NotOffered(what) => {
            Reply::new(555, "5.6.3", format!("the provider doesn't offer {what}, and nothing is converted here"))
        }
        SubmissionError::TooLarge { limit } => {
            Reply::new(552, "5.3.4", format!("the provider takes at most {limit} octets"))
        }
        SubmissionError::Connect(_)
        | SubmissionError::NoStartTls
        | SubmissionError::PlaintextInjected
        | SubmissionError::Refused { .. }
        | SubmissionError::Reply(_)
        | SubmissionError::OutOfStep
        | SubmissionError::Timeout(_)
        | SubmissionError::Io(_)
        | SubmissionError::Closed => Reply::new(451, "4.4.1", DOWN),
    }
}

/// The provider's reply as the client's, but for what would be said about
/// the wrong connection: 421 closes the provider's, not ours, and a demand
/// for credentials is for our secret.
pub(super) fn passed_on(reply: Reply) -> Reply {
    match reply.code() {
        421 => Reply::new(451, "4.4.2", format!("the provider closes: {}", reply.lines().join(" "))),
        530 | 534 | 535 | 538 => Reply::new(454, "4.7.0", "the provider refused the credentials"),
        300..=399 => Reply::new(451, "4.4.1", "the provider said something out of place"),
        _ => reply,
    }
}

/// The parameters of MAIL that are taken: SIZE, BODY, SMTPUTF8, and AUTH
/// from people, which names a submitter that nobody here believes
/// (RFC 4954 §5) and is dropped.
fn mail_parameters(
    services: &Services,
    principal: &Principal,
    parameters: &[Parameter],
) -> Result<MailParameters, Reply> {
    let offer = services.offers.common(std::slice::from_ref(&principal.account), services.config.max_message_bytes);
    // A person's provider is asked itself, a moment later.
    let asked_later = principal.role == Role::Person && services.config.hold != HoldMode::All;
    let not_offered = |what: &str| Reply::new(555, "5.5.4", format!("{what} is not offered"));
    let mut out = MailParameters::default();
    for parameter in parameters {
        match (parameter.keyword.as_str(), parameter.value.as_deref()) {
            ("SIZE", Some(value)) if !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()) => {
                let size = value.parse().unwrap_or(u64::MAX);
                if size > offer.size {
                    return Err(Reply::new(552, "5.3.4", format!("at most {} octets", offer.size)));
                }
                out.size = Some(size);
            }
            ("BODY", Some(value)) if value.eq_ignore_ascii_case("7BIT") => {}
            ("BODY", Some(value)) if value.eq_ignore_ascii_case("8BITMIME") => {
                if !offer.eight_bit_mime && !asked_later {
                    return Err(not_offered("8BITMIME"));
                }
                out.eight_bit = true;
            }
            ("SMTPUTF8", None) => {
                if !offer.smtputf8 && !asked_later {
                    return Err(not_offered("SMTPUTF8"));
                }
                out.smtputf8 = true;
            }
            ("AUTH", Some(_)) if principal.role == Role::Person => {}
            ("SIZE" | "BODY" | "SMTPUTF8", _) => {
                return Err(Reply::new(501, "5.5.4", format!("the value of {} is not valid", parameter.keyword)));
            }
            (keyword, _) => return Err(Reply::new(555, "5.5.4", format!("the parameter {keyword} is not known"))),
        }
    }
    Ok(out)
}

fn check_sender(
    from: &Path,
    is_agent: bool,
    parameters: &MailParameters,
    addresses: &BTreeSet<String>,
) -> Result<(), Reply> {
    if from.is_null() {
        // A person's client sends read receipts from `<>` (RFC 8098 §3).
        return if is_agent { Err(Reply::new(553, "5.7.1", "an agent's mail needs a sender")) } else { Ok(()) };
    }
    if !from.is_ascii() && !parameters.smtputf8 {
        return Err(Reply::new(553, "5.6.7", "an address outside ASCII needs SMTPUTF8"));
    }
    match Address::parse(from.as_str()) {
        Ok(address) if addresses.contains(&address.canonical()) => Ok(()),
        _ => Err(Reply::new(553, "5.7.1", "the sender is not an address of this account")),
    }
}
