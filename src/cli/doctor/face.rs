//! The checks at the running gateway, over its control socket.
//!
//! Promises: the views are looked at as a mail client sees them. Doesn't know:
//! how they are made.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::super::exit::Exit;
use super::oracle::{self, Oracle};
use super::provider::{Upstream, imap_fault, judged};
use super::report::{Check, Done, Fault};
use super::{CHECK_TIME, DoctorArgs, call_fault};
use crate::account::demo;
use crate::config::{AccountConfig, Endpoint, Network, Provider, SecretSource, TlsMode};
use crate::demo::client::imap::ImapClient;
use crate::gateway::control::{self, Request};
use crate::upstream::imap::{Connection, ImapError, UntaggedData, expand_set};

/// How long an answer of the gateway may take: it may wait for the provider.
const ANSWER: Duration = Duration::from_secs(60);
/// Most mailboxes that are looked at; ours come first.
const MOST_MAILBOXES: usize = 40;
const NOT_RUNNING: &str = "the gateway does not run or does not answer";
const PROVIDER_UNKNOWN: &str = "the embedded provider runs inside the gateway, which does not answer";

/// The gateway's side of one account.
pub(super) struct Faced<'a> {
    state_dir: &'a Path,
    account: &'a AccountConfig,
    args: &'a DoctorArgs,
    running: bool,
}

/// What the mirror says.
struct Mirrored {
    health: String,
    synced: bool,
    uidvalidity: Option<u64>,
    uids: BTreeSet<u32>,
}

impl<'a> Faced<'a> {
    pub(super) fn new(
        state_dir: &'a Path,
        account: &'a AccountConfig,
        args: &'a DoctorArgs,
        running: bool,
    ) -> Faced<'a> {
        Faced { state_dir, account, args, running }
    }

    fn address(&self) -> String {
        self.account.address.to_string()
    }

    async fn mirror(&self) -> Result<Value, Fault> {
        control::call(self.state_dir, &Request::Mirror { account: self.address() }).await.map_err(|e| call_fault(&e))
    }

    /// Where the provider is; the embedded one is where the gateway says.
    pub(super) async fn network(&self) -> Result<Network, &'static str> {
        match &self.account.provider {
            Provider::Network(network) => Ok((**network).clone()),
            Provider::Embedded if !self.running => Err(PROVIDER_UNKNOWN),
            Provider::Embedded => {
                let told = self.mirror().await.map_err(|_| PROVIDER_UNKNOWN)?;
                let endpoint = |name: &str| {
                    let address: SocketAddr = told["provider"][name].as_str()?.parse().ok()?;
                    Some(Endpoint {
                        host: address.ip().to_string(),
                        port: address.port(),
                        tls: TlsMode::None,
                        ca: None,
                    })
                };
                let (imap, smtp) = endpoint("imap").zip(endpoint("smtp")).ok_or(PROVIDER_UNKNOWN)?;
                Ok(Network {
                    imap,
                    imap_user: self.address(),
                    smtp,
                    smtp_user: self.address(),
                    secret: SecretSource::Inline(demo::PROVIDER_PASSWORD.to_owned()),
                })
            }
        }
    }

    pub(super) async fn checks(&mut self, upstream: &mut Upstream) -> Vec<Check> {
        let mirror = ("gateway.mirror", "has the gateway sync, then compares its UIDs of INBOX with the provider's");
        let views = (
            "gateway.views",
            "reads the newest messages of every mailbox in every way, as a mail client, and compares",
        );
        if !self.running {
            let known = |(name, does)| Check::known(name, does, Ok(Done::not_tried(NOT_RUNNING)));
            return vec![known(mirror), known(views)];
        }
        let retries = self.args.retry;
        let first = Check::run(mirror.0, mirror.1, retries, CHECK_TIME, async || self.agrees(upstream).await).await;
        let limit = CHECK_TIME + oracle::DEFAULT_TIME;
        let second = Check::run(views.0, views.1, retries, limit, async || self.views().await).await;
        vec![first, second]
    }

    /// Mail that comes or goes while this runs is in one of the provider's two
    /// answers only, and then decides nothing.
    async fn agrees(&self, upstream: &mut Upstream) -> Result<Done, Fault> {
        let before = match upstream.signs_in() {
            true => {
                Some(uids(upstream.connection().await.map_err(|e| imap_fault(&e))?).await.map_err(|e| imap_fault(&e))?)
            }
            false => None,
        };
        let told = read(&self.mirror().await?)?;
        if !told.synced {
            let facts = json!({ "health": told.health });
            let text = format!("the gateway can't sync with the provider; it is {}", told.health);
            return Err(Fault { facts, ..Fault::new("not_synced", Exit::Unavailable, text) });
        }
        let Some((validity, before)) = before else {
            return Ok(Done::not_tried(
                "the gateway synced; without a sign-in of our own there is nothing to compare with",
            ));
        };
        let (_, after) =
            uids(upstream.connection().await.map_err(|e| imap_fault(&e))?).await.map_err(|e| imap_fault(&e))?;
        let missing = before.intersection(&after).filter(|u| !told.uids.contains(u)).count();
        let extra = told.uids.iter().filter(|u| !before.contains(u) && !after.contains(u)).count();
        let same_validity = told.uidvalidity == Some(u64::from(validity));
        let facts = json!({
            "provider": after.len(), "mirror": told.uids.len(), "missing": missing, "extra": extra,
            "same_uidvalidity": same_validity,
        });
        if missing + extra > 0 || !same_validity {
            let text = format!(
                "the provider has {} messages, the mirror {}: {missing} missing, {extra} too many{}",
                after.len(),
                told.uids.len(),
                if same_validity { "" } else { "; another UIDVALIDITY" }
            );
            return Err(Fault { facts, ..Fault::new("mirror_differs", Exit::Software, text) });
        }
        Ok(Done::ok(format!("{} messages in both", told.uids.len()), facts))
    }

    async fn session(&self) -> Result<ImapClient, Fault> {
        let stream = control::face(self.state_dir, &self.address()).await.map_err(|e| call_fault(&e))?;
        let lost = |e: std::io::Error| Fault::new("closed", Exit::Unavailable, e);
        ImapClient::signed_in(stream, ANSWER).await.map_err(lost)
    }

    async fn views(&self) -> Result<Done, Fault> {
        let lost = |e: std::io::Error| Fault::new("closed", Exit::Unavailable, e);
        let mut client = self.session().await?;
        let list = client.command("LIST \"\" \"*\"").await.map_err(lost)?;
        if !list.is_ok() {
            return Err(Fault::new("refused", Exit::Unavailable, list.status));
        }
        let mut names = list.mailboxes();
        names.sort_by_key(|name| (!name.eq_ignore_ascii_case("INBOX"), !name.contains("Lanes"), name.clone()));
        names.truncate(MOST_MAILBOXES);
        let mut oracle = Oracle::new(self.args.limits());
        let (mut ended, mut closed) = (None, 0usize);
        for name in &names {
            match oracle.mailbox(&mut client, name).await {
                Ok(true) => {}
                Ok(false) => closed += 1,
                Err(e) => {
                    // What is wrong with one mailbox must not hide the others.
                    ended.get_or_insert(e.to_string());
                    client = self.session().await?;
                }
            }
        }
        let mut client = self.session().await?;
        for name in &names {
            if let Err(e) = oracle.compare(&mut client, name).await {
                ended.get_or_insert(e.to_string());
                client = self.session().await?;
            }
        }
        let mut done = judged(&oracle, ended, Exit::Software)?;
        if closed > 0 {
            done.facts["not_opened"] = json!(closed);
            done.text.push_str(&format!("; {closed} mailboxes can't be opened"));
        }
        Ok(done)
    }
}

/// UIDVALIDITY and UIDs of the provider's INBOX.
async fn uids(connection: &mut Connection) -> Result<(u32, BTreeSet<u32>), ImapError> {
    let opened = connection.select(b"INBOX", true).await?;
    let outcome = connection.run(b"UID SEARCH ALL").await?.ok()?;
    let mut uids = BTreeSet::new();
    for data in &outcome.untagged {
        if let UntaggedData::Search(found) = data.parse() {
            uids.extend(found);
        }
    }
    Ok((opened.uidvalidity, uids))
}

fn read(told: &Value) -> Result<Mirrored, Fault> {
    let unread = || Fault::new("protocol", Exit::Software, "the gateway's answer can't be read");
    let uids = match told["uids"].as_str().ok_or_else(unread)? {
        "" => BTreeSet::new(),
        set => expand_set(set.as_bytes()).ok_or_else(unread)?.into_iter().collect(),
    };
    Ok(Mirrored {
        health: told["health"].as_str().ok_or_else(unread)?.to_owned(),
        synced: told["synced"].as_bool().ok_or_else(unread)?,
        uidvalidity: told["uidvalidity"].as_u64(),
        uids,
    })
}
