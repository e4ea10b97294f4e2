//! One labelled message.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use crate::lane::{Context, Correspondence, History, Lane};
use crate::mail::address::Address;
use crate::mail::header;
use crate::perceive::AccountFacts;

/// An item as it stands on its line.
#[derive(Debug, Clone, Deserialize)]
pub(in crate::cli) struct Item {
    pub(in crate::cli) id: String,
    pub(in crate::cli) lane: String,
    #[serde(default)]
    raw: Option<String>,
    #[serde(default)]
    from: Option<String>,
    #[serde(default)]
    to: Option<OneOrMany>,
    #[serde(default)]
    cc: Option<OneOrMany>,
    #[serde(default)]
    subject: Option<String>,
    #[serde(default)]
    date: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, OneOrMany>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    html: Option<String>,
    #[serde(default)]
    context: Option<ItemContext>,
    #[serde(default)]
    authserv: Option<OneOrMany>,
    /// The account's address where it isn't the first of `to`.
    #[serde(default)]
    account: Option<OneOrMany>,
    /// The account's time zone where it isn't the one of `date`.
    #[serde(default)]
    timezone: Option<String>,
    /// The item that this one is a twin of.
    #[serde(default)]
    pub(in crate::cli) twin: Option<String>,
    /// What was changed in a twin.
    #[serde(default)]
    pub(in crate::cli) change: Option<String>,
    /// What must hold for a twin's lane.
    #[serde(default)]
    pub(in crate::cli) expect: Option<String>,
    /// The kind of attack, or of honest mail beside attacks.
    #[serde(default)]
    pub(in crate::cli) stratum: Option<String>,
    #[serde(default)]
    pub(in crate::cli) lang: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    fn all(&self) -> Vec<String> {
        match self {
            OneOrMany::One(s) => vec![s.clone()],
            OneOrMany::Many(v) => v.clone(),
        }
    }
}

/// What is known of the sender; a history is available where a count stands.
#[derive(Debug, Clone, Default, Deserialize)]
struct ItemContext {
    sent_to: Option<u32>,
    replied: Option<u32>,
    received: Option<u32>,
    pinned: Option<Lane>,
    #[serde(default)]
    organisation: Option<bool>,
}

/// What perception is given.
pub(in crate::cli) struct Mail {
    pub(in crate::cli) octets: Vec<u8>,
    pub(in crate::cli) account: AccountFacts,
    pub(in crate::cli) now: i64,
    pub(in crate::cli) context: Context,
}

impl Item {
    /// Reads a line.
    pub(in crate::cli) fn parse(line: &str) -> Result<Item, String> {
        let item: Item = serde_json::from_str(line).map_err(|e| e.to_string())?;
        super::truth(&item.lane)?;
        if item.raw.is_none() && item.from.is_none() {
            return Err("an item needs raw, or from and the rest".to_owned());
        }
        Ok(item)
    }

    /// The message, the account and the clock.
    pub(in crate::cli) fn mail(&self) -> Result<Mail, String> {
        let octets = match &self.raw {
            Some(raw) => raw.clone().into_bytes(),
            None => self.compose(),
        };
        let first = |name: &str| header::values(&octets, name).first().map(|v| String::from_utf8_lossy(v).into_owned());
        let date = self.date.clone().or_else(|| first("Date"));
        let (now, offset) = match &date {
            Some(text) => clock(text).ok_or_else(|| format!("{text:?} is no date"))?,
            None => (0, "+00:00".to_owned()),
        };
        let account = match &self.account {
            Some(a) => a.all(),
            None => self
                .to
                .as_ref()
                .map_or_else(|| first("To").into_iter().collect(), |t| t.all().into_iter().take(1).collect()),
        };
        Ok(Mail {
            account: AccountFacts {
                addresses: account.iter().flat_map(|a| addresses(a)).collect(),
                timezone: self.timezone.clone().unwrap_or(offset),
                authserv: self.authserv.as_ref().map_or_else(Vec::new, OneOrMany::all),
            },
            context: self.context.as_ref().map_or_else(Context::default, ItemContext::context),
            octets,
            now,
        })
    }

    /// A message from the item's fields.
    fn compose(&self) -> Vec<u8> {
        let mut m = String::new();
        let mut put = |name: &str, value: &str| {
            let value: String = value.chars().map(|c| if c == '\r' || c == '\n' { ' ' } else { c }).collect();
            m.push_str(&format!("{name}: {value}\r\n"));
        };
        for (name, values) in &self.headers {
            for value in values.all() {
                put(name, &value);
            }
        }
        let own = |name: &str| !self.headers.keys().any(|k| k.eq_ignore_ascii_case(name));
        put("From", self.from.as_deref().unwrap_or_default());
        if let Some(to) = &self.to {
            put("To", &to.all().join(", "));
        }
        if let Some(cc) = &self.cc {
            put("Cc", &cc.all().join(", "));
        }
        put("Subject", self.subject.as_deref().unwrap_or_default());
        if let Some((now, _)) = self.date.as_deref().and_then(clock)
            && own("Date")
        {
            put("Date", &mail_parser::DateTime::from_timestamp(now).to_rfc822());
        }
        put("MIME-Version", "1.0");
        if own("Content-Type") {
            self.bodies(&mut m);
        } else {
            m.push_str("\r\n");
            m.push_str(self.text.as_deref().or(self.html.as_deref()).unwrap_or_default());
        }
        m.into_bytes()
    }

    fn bodies(&self, m: &mut String) {
        let part = |kind: &str, body: &str| {
            format!(
                "Content-Type: text/{kind}; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n{}\r\n",
                STANDARD.encode(body)
            )
        };
        match (&self.text, &self.html) {
            (Some(text), Some(html)) => {
                m.push_str("Content-Type: multipart/alternative; boundary=\"=_alternatives\"\r\n\r\n");
                for (kind, body) in [("plain", text), ("html", html)] {
                    m.push_str("--=_alternatives\r\n");
                    m.push_str(&part(kind, body));
                }
                m.push_str("--=_alternatives--\r\n");
            }
            (None, Some(html)) => m.push_str(&part("html", html)),
            (text, None) => m.push_str(&part("plain", text.as_deref().unwrap_or_default())),
        }
    }
}

impl Item {
    /// The authserv-ids that the item names.
    pub(super) fn authserv(&self) -> Vec<String> {
        self.authserv.as_ref().map_or_else(Vec::new, OneOrMany::all)
    }
}

impl ItemContext {
    fn context(&self) -> Context {
        let counted = self.sent_to.is_some() || self.replied.is_some() || self.received.is_some();
        let history = if counted {
            let c = Correspondence {
                sent_to: self.sent_to.unwrap_or(0),
                replied: self.replied.unwrap_or(0),
                received: self.received.unwrap_or(0),
                ..Correspondence::default()
            };
            if c == Correspondence::default() { History::Absent } else { History::Present(c) }
        } else {
            History::Unavailable
        };
        Context { history, pinned: self.pinned, organisation: self.organisation.unwrap_or(false), ..Context::default() }
    }
}

/// The addresses in a list such as `Mina <mina@example.org>, b@example.org`.
fn addresses(list: &str) -> Vec<Address> {
    let one = |text: &str| {
        let inner = text.rsplit_once('<').map_or(text, |(_, a)| a.trim_end().trim_end_matches('>'));
        Address::parse(inner.trim()).ok()
    };
    list.split(',').filter_map(one).collect()
}

/// A date by RFC 5322 or RFC 3339: Unix seconds and its offset.
fn clock(text: &str) -> Option<(i64, String)> {
    let text = text.trim();
    if let Ok(at) = text.parse::<jiff::Timestamp>() {
        let tail = text.len().checked_sub(6).and_then(|n| text.get(n..)).unwrap_or_default();
        let offset =
            if tail.starts_with(['+', '-']) && tail.as_bytes().get(3) == Some(&b':') { tail } else { "+00:00" };
        return Some((at.as_second(), offset.to_owned()));
    }
    let date = mail_parser::DateTime::parse_rfc822(text).filter(mail_parser::DateTime::is_valid)?;
    let sign = if date.tz_before_gmt { '-' } else { '+' };
    Some((date.to_timestamp(), format!("{sign}{:02}:{:02}", date.tz_hour, date.tz_minute)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_both_forms_are_the_clock() {
        assert_eq!(clock("Thu, 01 Jan 1970 09:00:00 +0900"), Some((0, "+09:00".to_owned())));
        assert_eq!(clock("1970-01-01T09:00:00+09:00"), Some((0, "+09:00".to_owned())));
        assert_eq!(clock("1970-01-01T00:00:00Z"), Some((0, "+00:00".to_owned())));
        assert_eq!(clock("yesterday"), None);
    }

    #[test]
    fn an_item_becomes_a_message() {
        let item = Item::parse(r#"{"id":"a","lane":"any","from":"A <a@example.com>","to":"mina@example.org","subject":"é\r\nX: y","date":"1970-01-01T09:00:00+09:00","headers":{"List-Id":"<x>"},"text":"hällo","context":{"sent_to":0}}"#).unwrap();
        let mail = item.mail().unwrap();
        let text = String::from_utf8(mail.octets.clone()).unwrap();
        assert!(text.contains("Subject: é  X: y\r\n") && text.contains("List-Id: <x>\r\n"), "{text}");
        assert_eq!(mail.account.addresses[0].canonical(), "mina@example.org");
        assert_eq!(mail.account.timezone, "+09:00");
        assert_eq!(mail.context.history, History::Absent);
    }
}
