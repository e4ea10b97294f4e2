//! Whose words a person's client submits: what an agent drafted, and what it
//! was about, for [`KEPT_SECONDS`].
//!
//! Promises: a draft is on disk before the agent hears that it was taken; a
//! submission that holds a passage or a file of it, or its subject to its
//! recipients, is found. Quoted history counts on neither side, nor do words
//! that are the person's own ([`own`]). It is a net for honest mistakes: who
//! rewords a draft, or types it off, is not found, and the floor doesn't rest
//! on it. Doesn't know: what is done about it.
//!
//! A passage is a run of [`PASSAGE_UNITS`] words, case and punctuation apart;
//! in scripts without blanks a character counts as a word. A recipient alone
//! is no lineage: people write to those whom their agent wrote to.

mod own;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::forward::{self, Sketch, passages};
use super::hold::HoldError;
use super::{Outbox, record};
use crate::account::{AccountId, KeyId, Role};
use crate::floor::action::Action;
use crate::perceive::{Written, written};
use crate::store::{self, Reader, StoreError, Table, Writer};
use own::{Ending, Own};

/// How long a draft is remembered, in seconds: 30 days.
pub const KEPT_SECONDS: i64 = 30 * 24 * 3600;
/// Words of a passage.
pub const PASSAGE_UNITS: usize = 12;
/// Passages of one draft that are kept: the ones with the smallest hashes, so
/// that the same are kept of the same text.
const MAX_PASSAGES: usize = 2048;
/// Octets of a draft's own words that are kept to be shown beside the message.
pub const MAX_SHOWN_TEXT: usize = 16 * 1024;
/// Arrived messages of one account whose sketches are kept; the oldest go
/// first.
pub const MAX_ARRIVED: usize = 10_000;
/// Rows that a new one may displace at once.
const PRUNED_AT_ONCE: usize = 64;
/// Octets of a submission that are compared.
pub const MAX_COMPARED: u64 = 16 * 1024 * 1024;
/// Drafts of one account that are kept; the oldest go first.
pub const MAX_DRAFTS: usize = 500;

/// What is kept of a draft.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draft {
    /// The agent's key.
    pub key: KeyId,
    /// When, seconds since 1970 (UTC).
    pub time: i64,
    /// None where it is empty.
    subject: Option<u64>,
    recipients: BTreeSet<u64>,
    files: BTreeSet<u64>,
    passages: BTreeSet<u64>,
    /// The whole text, where it is shorter than a passage.
    whole: Option<u64>,
    /// Its words, to be shown.
    text: String,
}

/// What a submission has of an agent's draft.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lineage {
    /// What was found.
    pub found: Found,
    /// The key that drafted it.
    pub key: KeyId,
    /// When, seconds since 1970 (UTC).
    pub drafted_at: i64,
    /// The draft's own words, up to [`MAX_SHOWN_TEXT`] octets.
    pub text: String,
}

/// What of a draft was found in a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Found {
    /// Words.
    Passage,
    /// A file.
    File,
    /// Subject and recipients.
    Subject,
}

impl Draft {
    /// Takes a draft's measure.
    pub fn of(octets: &[u8], key: KeyId, time: i64) -> Draft {
        Draft::from(&written(octets), key, time)
    }

    fn from(written: &Written, key: KeyId, time: i64) -> Draft {
        let (text, subject) = (units(&written.own), units(&written.subject));
        let passages = text.windows(PASSAGE_UNITS).map(hash_all).collect::<BTreeSet<u64>>();
        let whole = (!text.is_empty() && passages.is_empty()).then(|| hash_all(&text));
        Draft {
            key,
            time,
            subject: (!subject.is_empty()).then(|| hash_all(&subject)),
            recipients: written.recipients.iter().map(|r| hash(r.as_bytes())).collect(),
            files: written.files.iter().map(|f| hash(f)).collect(),
            passages: passages.into_iter().take(MAX_PASSAGES).collect(),
            whole,
            text: cut(&written.own, MAX_SHOWN_TEXT).to_owned(),
        }
    }

    /// What of this draft is in a submission, the strongest first.
    fn found_in(&self, other: &Draft, whole_text: &BTreeSet<u64>, own: &Own) -> Option<Found> {
        let meets = |a: &BTreeSet<u64>, b: &BTreeSet<u64>| a.iter().any(|x| b.contains(x));
        let agents = |passage: &u64| !own.explains(*passage, self.time);
        let spoken = self.passages.intersection(whole_text).any(agents)
            || (self.whole == other.whole && self.whole.as_ref().is_some_and(agents));
        if spoken {
            Some(Found::Passage)
        } else if meets(&self.files, &other.files) {
            Some(Found::File)
        } else if self.subject.is_some() && self.subject == other.subject && meets(&self.recipients, &other.recipients)
        {
            Some(Found::Subject)
        } else {
            None
        }
    }
}

/// Words in lower case; each character of a script without blanks by itself.
pub(super) fn units(text: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut open = false;
    for c in text.chars().flat_map(char::to_lowercase) {
        if !c.is_alphanumeric() {
            // An apostrophe or soft hyphen doesn't end a word.
            open &= matches!(c, '\'' | '\u{2019}' | '\u{ad}');
            continue;
        }
        match out.last_mut() {
            Some(last) if open && !is_ideograph(c) => last.push(c),
            _ => out.push(c.to_string()),
        }
        open = !is_ideograph(c);
    }
    out
}

/// Scripts that are written without blanks.
fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{0e00}'..='\u{0e7f}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

pub(super) fn hash(octets: &[u8]) -> u64 {
    let digest: [u8; 32] = Sha256::digest(octets).into();
    u64::from_be_bytes(std::array::from_fn(|n| digest[n]))
}

pub(super) fn hash_all(units: &[String]) -> u64 {
    hash(units.join(" ").as_bytes())
}

/// The start of a text, at a character's border.
fn cut(text: &str, octets: usize) -> &str {
    &text[..text.floor_char_boundary(octets)]
}

fn prefix(kind: &[u8], account: &AccountId) -> Vec<u8> {
    [kind, account.as_str().as_bytes(), b"\0"].concat()
}

const DRAFTS: &[u8] = b"d/";
const WRITTEN: &[u8] = b"p/";
const ARRIVED: &[u8] = b"m/";

/// A new row's key: by time, then by chance.
fn row_key(kind: &[u8], account: &AccountId, now: i64) -> Result<Vec<u8>, HoldError> {
    let mut salt = [0u8; 8];
    getrandom::fill(&mut salt).map_err(|e| HoldError::Random(e.to_string()))?;
    Ok([prefix(kind, account), now.max(0).to_be_bytes().to_vec(), salt.to_vec()].concat())
}

/// When a row was written.
fn row_time(key: &[u8], prefix: usize) -> i64 {
    key.get(prefix..prefix + 8).and_then(|t| t.try_into().ok()).map_or(0, i64::from_be_bytes)
}

/// Removes what is too old, and the oldest of too many.
fn prune(w: &mut dyn Writer, kind: &[u8], account: &AccountId, now: i64, most: usize) -> Result<(), StoreError> {
    let prefix = prefix(kind, account);
    let rows = w.scan(Table::Lineage, &prefix, b"", most + PRUNED_AT_ONCE)?;
    let spare = (rows.len() + 1).saturating_sub(most);
    for (n, (key, _)) in rows.iter().enumerate() {
        if n >= spare && now.saturating_sub(row_time(key, prefix.len())) < KEPT_SECONDS {
            break;
        }
        w.delete(Table::Lineage, key)?;
    }
    Ok(())
}

impl Outbox {
    /// Remembers what an agent drafts; durable when it returns.
    pub async fn drafted(&self, account: &AccountId, key: &KeyId, octets: &[u8]) -> Result<(), HoldError> {
        let draft = Draft::of(octets, key.clone(), 0);
        let (account, clock) = (account.clone(), (self.tuning.clock)());
        self.commit("draft", move |w| -> Result<(), HoldError> {
            let now = record::now(w, clock)?;
            prune(w, DRAFTS, &account, now, MAX_DRAFTS)?;
            let row = row_key(DRAFTS, &account, now)?;
            Ok(store::put_json(w, Table::Lineage, &row, &Draft { time: now, ..draft.clone() })?)
        })
        .await
    }

    /// Remembers a sample of the words of mail that arrived, so that a copy
    /// of it is known for what it is.
    pub async fn arrived(&self, account: &AccountId, octets: &[u8]) -> Result<(), HoldError> {
        let Some(sketch) = Sketch::of(&written(octets)) else { return Ok(()) };
        let (account, clock) = (account.clone(), (self.tuning.clock)());
        self.commit("arrival", move |w| -> Result<(), HoldError> {
            let now = record::now(w, clock)?;
            prune(w, ARRIVED, &account, now, MAX_ARRIVED)?;
            let row = row_key(ARRIVED, &account, now)?;
            Ok(w.put(Table::Lineage, &row, &sketch.to_row())?)
        })
        .await
    }

    /// Whether an agent could draft for the account, so that it is worth
    /// remembering what its person writes.
    pub fn has_agents(&self, account: &AccountId) -> bool {
        self.accounts.list_keys(Some(account)).iter().any(|k| k.role == Role::Agent && k.revoked_at.is_none())
    }

    /// Remembers the end of a mail that a person sent, of which these are the
    /// first octets.
    pub async fn wrote(&self, account: &AccountId, octets: &[u8]) -> Result<(), HoldError> {
        let Some(ending) = Ending::of(&written(octets)) else { return Ok(()) };
        let (account, clock) = (account.clone(), (self.tuning.clock)());
        self.commit("wrote", move |w| -> Result<(), HoldError> {
            let now = record::now(w, clock)?;
            prune(w, WRITTEN, &account, now, own::MAX_MAILS)?;
            let row = row_key(WRITTEN, &account, now)?;
            Ok(w.put(Table::Lineage, &row, &ending.to_row())?)
        })
        .await
    }

    fn own(r: &dyn Reader, account: &AccountId) -> Result<Own, StoreError> {
        let prefix = prefix(WRITTEN, account);
        let rows = r.scan(Table::Lineage, &prefix, b"", own::MAX_MAILS)?;
        Ok(Own(rows.iter().map(|(key, row)| (row_time(key, prefix.len()), Ending::from_row(row))).collect()))
    }

    /// Whether an agent drafted for the account in the last 30 days, so that
    /// what a person submits has to be compared.
    pub fn has_drafts(&self, account: &AccountId) -> Result<bool, HoldError> {
        store::read(self.store.as_ref(), |r| {
            let now = self.now(r)?;
            let prefix = prefix(DRAFTS, account);
            let newest = r.last(Table::Lineage, &prefix)?;
            Ok(newest.is_some_and(|(key, _)| now.saturating_sub(row_time(&key, prefix.len())) < KEPT_SECONDS))
        })
    }

    /// Whether anything that arrived for the account is kept to compare with.
    pub fn has_arrived(&self, account: &AccountId) -> Result<bool, HoldError> {
        store::read(self.store.as_ref(), |r| Ok(r.last(Table::Lineage, &prefix(ARRIVED, account))?.is_some()))
    }

    /// What of an agent's drafts is in a submission.
    pub fn lineage(&self, account: &AccountId, octets: &[u8]) -> Result<Option<Lineage>, HoldError> {
        let written = written(octets);
        let all = passages(&written.own);
        let submitted = Draft::from(&written, KeyId("".into()), 0);
        store::read(self.store.as_ref(), |r| {
            let now = self.now(r)?;
            let own = Outbox::own(r, account)?;
            // The newest first: a draft that was written again is that draft.
            for (_, value) in r.scan(Table::Lineage, &prefix(DRAFTS, account), b"", MAX_DRAFTS)?.iter().rev() {
                let draft: Draft = store::from_json(Table::Lineage, value)?;
                if now.saturating_sub(draft.time) >= KEPT_SECONDS {
                    break;
                }
                if let Some(found) = draft.found_in(&submitted, &all, &own) {
                    return Ok(Some(Lineage { found, key: draft.key, drafted_at: draft.time, text: draft.text }));
                }
            }
            Ok(None)
        })
    }

    /// The action that a submission is: whether it carries mail of the
    /// mailbox to one of `outside`.
    pub fn action_of(&self, account: &AccountId, octets: &[u8], outside: &[String]) -> Result<Action, HoldError> {
        let written = written(octets);
        if forward::carries(&written, outside) {
            return Ok(Action::ForwardExternal);
        }
        if outside.is_empty() {
            return Ok(Action::SendEmail);
        }
        store::read(self.store.as_ref(), |r| {
            let rows = r.scan(Table::Lineage, &prefix(ARRIVED, account), b"", MAX_ARRIVED)?;
            if rows.is_empty() {
                return Ok(Action::SendEmail);
            }
            let all: BTreeSet<u64> = &passages(&written.own) | &passages(&written.quoted);
            let mut arrived = rows.iter().map(|(_, row)| Sketch::from_row(row));
            let copied =
                !all.is_empty() && arrived.any(|sketch| sketch.is_mostly_in(&all) && sketch.is_new_to(outside));
            Ok(if copied { Action::ForwardExternal } else { Action::SendEmail })
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    use super::*;
    use crate::outbox::Tuning;
    use crate::outbox::testing::{Bench, tuning};
    use crate::upstream::smtp::scripted::{Provider, Script};

    const DRAFT: &str = "To: priya@example.com\r\nSubject: The oak table\r\n\r\nDear Priya,\r\n\r\nThe oak table that you \
        ordered in spring is ready; we can bring it on Friday between nine and noon, if that suits you.\r\n";

    fn found(draft: &str, submission: &str) -> Option<Found> {
        let draft = Draft::of(draft.as_bytes(), KeyId("k".into()), 0);
        let w = written(submission.as_bytes());
        let all = units(&w.own).windows(PASSAGE_UNITS).map(hash_all).collect();
        draft.found_in(&Draft::from(&w, KeyId("".into()), 0), &all, &Own::default())
    }

    #[test]
    fn a_passage_is_found_under_another_layout_and_other_words_around_it() {
        let edited = "To: someone@example.net\r\nSubject: Hi\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<p>Hello \
            P.!</p><div>the <b>Oak</b> table, that you ordered\r\n in spring, is ready - we can bring it<br> tomorrow</div>";
        assert_eq!(found(DRAFT, edited), Some(Found::Passage));
    }

    #[test]
    fn quoted_history_counts_on_neither_side() {
        let quoting = DRAFT.replace("\r\n\r\nDear", "\r\n\r\nOn 2 Nov 2026, Bo <bo@example.com> wrote:\r\n> Dear");
        let body = "The oak table that you ordered in spring is ready; we can bring it on Friday between nine and noon, if \
            that suits you.";
        let reply = format!(
            "To: bo@example.com\r\nSubject: x\r\n\r\nFine.\r\n\r\nOn 2 Nov 2026, Me <me@example.org> wrote:\r\n> {body}\r\n"
        );
        assert_eq!(found(DRAFT, &reply), None);
        let own = format!("To: bo@example.com\r\nSubject: x\r\n\r\n{body}\r\n");
        assert_eq!(found(&quoting.replace("\r\n\r\nThe oak", "\r\n> The oak"), &own), None);
    }

    #[test]
    fn a_file_or_the_subject_to_its_recipient_is_found_and_a_recipient_alone_is_not() {
        let file = "--b\r\nContent-Type: application/pdf; name=a.pdf\r\nContent-Transfer-Encoding: base64\r\n\r\nJVBERg==\r\n--b--\r\n";
        let with = |to: &str, subject: &str, text: &str| {
            format!(
                "To: {to}\r\nSubject: {subject}\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\n{text}\r\n{file}"
            )
        };
        let draft = with("a@example.com", "One", "short words of an agent");
        assert_eq!(found(&draft, &with("b@example.com", "Two", "mine")), Some(Found::File));
        assert_eq!(
            found(DRAFT, "To: Priya <PRIYA@example.com>\r\nSubject: Re: the Oak table!\r\n\r\nCall me.\r\n"),
            Some(Found::Subject)
        );
        assert_eq!(found(DRAFT, "To: priya@example.com\r\nSubject: Lunch\r\n\r\nCall me.\r\n"), None);
        assert_eq!(
            found(
                "To: a@example.com\r\nSubject: \r\n\r\nYes please\r\n",
                "To: b@example.com\r\nSubject: X\r\n\r\nyes, please!\r\n"
            ),
            Some(Found::Passage)
        );
    }

    #[test]
    fn scripts_without_blanks_have_passages_too() {
        let draft = "To: a@example.com\r\nSubject: 納期\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nご注文の机が完成しました。金曜日の午前中にお届けできます。\r\n";
        let sent = "To: b@example.com\r\nSubject: x\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n拝啓。ご注文の机が完成しました。金曜日にどうぞ。\r\n";
        assert_eq!(found(draft, sent), Some(Found::Passage));
    }

    #[test]
    fn words_hang_together_and_ideographs_stand_alone() {
        assert_eq!(units("Don't, STOP-here 机が2台"), ["dont", "stop", "here", "机", "が", "2", "台"]);
    }

    static FOOTERS: AtomicI64 = AtomicI64::new(1_800_000_000);

    /// Seen at: every mail of a person was held for 30 days after one draft
    /// under the same footer.
    #[tokio::test]
    async fn a_footer_that_the_person_uses_too_holds_nothing_and_the_agents_words_under_it_do() {
        const FOOTER: &str = "Robin Demo, Oak and Ash Joinery, 12 Mill Lane, Springfield, registered in England number \
            1234567, open from Monday to Friday";
        let mail = |to: &str, words: &str| format!("To: {to}\r\nSubject: {to}\r\n\r\n{words}\r\n\r\n{FOOTER}\r\n");
        let provider = Provider::start(Script::default()).await;
        let clock = || FOOTERS.fetch_add(1, Ordering::SeqCst);
        let bench = Bench::new(&provider, Tuning { clock, ..tuning() }, |_| {}).await;
        let (outbox, account) = (&bench.outbox, &bench.account);
        assert!(outbox.has_agents(account));
        let draft =
            "The oak table that you ordered in spring is ready; we can bring it on Friday between nine and noon.";
        outbox.drafted(account, &bench.agent(), mail("priya@example.com", draft).as_bytes()).await.unwrap();
        let found =
            |to: &str, words: &str| outbox.lineage(account, mail(to, words).as_bytes()).unwrap().map(|l| l.found);
        // Without a mail of before nobody knows whose footer it is: two mails
        // wait, and are sent with an approval.
        let mine = [
            "Could you send me the plan of the kitchen again, with all of the measures that we talked about on Monday?",
            "The delivery is on its way and should be with you before the end of this week, at the latest on Sunday.",
            "Thank you, that is what I meant; we will bring our own tools and two more people in the afternoon.",
        ];
        for words in &mine[..2] {
            assert_eq!(found("ben@example.net", words), Some(Found::Passage));
            outbox.wrote(account, mail("ben@example.net", words).as_bytes()).await.unwrap();
        }
        assert_eq!(found("cleo@example.net", mine[2]), None, "the footer is the person's");
        assert_eq!(found("cleo@example.net", "Thanks!"), None);
        assert_eq!(found("cleo@example.net", draft), Some(Found::Passage), "the agent's words are not");
        // However often they are sent on.
        for to in ["a@example.net", "b@example.net", "c@example.net"] {
            let sent = mail(to, &format!("Dear {to}, {draft}"));
            outbox.wrote(account, sent.as_bytes()).await.unwrap();
        }
        assert_eq!(found("cleo@example.net", draft), Some(Found::Passage));
        // The next draft comes after what the person wrote.
        outbox.drafted(account, &bench.agent(), mail("bo@example.com", "Short words.").as_bytes()).await.unwrap();
        assert_eq!(found("cleo@example.net", mine[2]), None);
    }

    static CLOCK: AtomicI64 = AtomicI64::new(1_800_000_000);

    #[tokio::test]
    async fn a_draft_is_forgotten_after_thirty_days_and_of_too_many_the_oldest() {
        let provider = Provider::start(Script::default()).await;
        let clock = || CLOCK.load(Ordering::SeqCst);
        let bench = Bench::new(&provider, Tuning { clock, ..tuning() }, |_| {}).await;
        let (outbox, account) = (&bench.outbox, &bench.account);
        assert!(!outbox.has_drafts(account).unwrap());
        outbox.drafted(account, &KeyId("k".into()), DRAFT.as_bytes()).await.unwrap();
        assert!(outbox.has_drafts(account).unwrap());
        let other = AccountId("other@example.org".into());
        assert!(!outbox.has_drafts(&other).unwrap() && outbox.lineage(&other, DRAFT.as_bytes()).unwrap().is_none());
        CLOCK.fetch_add(KEPT_SECONDS - 1, Ordering::SeqCst);
        let found = outbox.lineage(account, DRAFT.as_bytes()).unwrap().unwrap();
        assert_eq!((found.found, found.key.as_str(), found.drafted_at), (Found::Passage, "k", 1_800_000_000));
        CLOCK.fetch_add(1, Ordering::SeqCst);
        assert!(!outbox.has_drafts(account).unwrap());
        assert!(outbox.lineage(account, DRAFT.as_bytes()).unwrap().is_none());
        // The next draft takes the old one's row away.
        outbox.drafted(account, &KeyId("k".into()), b"Subject: x\r\n\r\ny\r\n").await.unwrap();
        let rows = store::read(bench.store.as_ref(), |r| r.scan(Table::Lineage, &prefix(DRAFTS, account), b"", 10));
        assert_eq!(rows.unwrap().len(), 1);
        for n in 0..3 {
            store::write(bench.store.as_ref(), {
                let account = account.clone();
                move |w| -> Result<(), HoldError> {
                    prune(w, DRAFTS, &account, clock(), 2)?;
                    let key = row_key(DRAFTS, &account, clock() + n)?;
                    Ok(w.put(Table::Lineage, &key, b"{}")?)
                }
            })
            .await
            .unwrap();
        }
        let rows = store::read(bench.store.as_ref(), |r| r.scan(Table::Lineage, &prefix(DRAFTS, account), b"", 10));
        assert_eq!(rows.unwrap().len(), 2);
    }
}
