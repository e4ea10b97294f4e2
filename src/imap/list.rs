//! LIST, LSUB, STATUS, NAMESPACE, subscriptions, and CREATE, DELETE, RENAME
//! (RFC 9051 §6.3).
//!
//! Promises: the provider's mailboxes as it lists them, with ours added;
//! nothing beneath ours can be made, renamed or deleted. Subscriptions of ours
//! are kept here. Doesn't know: messages.

use bytes::Bytes;
use imap_codec::imap_types::mailbox::{ListMailbox, Mailbox};
use imap_codec::imap_types::status::StatusDataItemName;

use crate::store::{StoreError, Table, read, write};
use crate::upstream::imap::UntaggedData;

use super::encode::quote;
use super::lanes::{DEFAULT_DELIMITER, LaneMap, Place, matches};
use super::mirror::Mirror;
use super::ops::has_flag;
use super::select::{name_of, ready};
use super::session::{Fail, Session};

/// Names by which bins are known where the provider has no SPECIAL-USE.
const BINS: [&str; 6] = ["trash", "junk", "spam", "deleted items", "deleted messages", "bin"];

/// Courier's capability for a mailbox from which it sends.
const OUTBOX_CAPABILITY: &str = "XCOURIEROUTBOX";

impl Session {
    /// NAMESPACE: the provider's, or one without prefix.
    pub(super) async fn namespace(&mut self) -> Result<String, Fail> {
        let mirror = self.mirror()?;
        self.reachable(&mirror).await?;
        let mut errand = self.errand(&mirror).await?;
        let has = errand.lease(self)?.capabilities().has("NAMESPACE");
        errand.end();
        let mut found = None;
        if has {
            let outcome = self.ask_provider(&mirror, b"NAMESPACE").await?.ok()?;
            found = outcome
                .untagged
                .into_iter()
                .map(|u| u.text)
                .find(|t| t.to_ascii_uppercase().starts_with(b"* NAMESPACE"));
        }
        let delimiter = mirror.state().lanes.as_ref().map_or(DEFAULT_DELIMITER, LaneMap::delimiter);
        match found {
            Some(text) => {
                self.write(&text).await?;
                self.write(b"\r\n").await?;
            }
            None => self.line(&format!("* NAMESPACE ((\"\" \"{delimiter}\")) NIL NIL")).await?,
        }
        Ok("done".into())
    }

    /// LIST or LSUB.
    pub(super) async fn list(
        &mut self,
        reference: &Mailbox<'_>,
        pattern: &ListMailbox<'_>,
        subscribed: bool,
    ) -> Result<String, Fail> {
        let mirror = self.mirror()?;
        self.reachable(&mirror).await?;
        let reference = name_of(reference);
        let pattern = match pattern {
            ListMailbox::Token(t) => t.as_ref().to_vec(),
            ListMailbox::String(s) => s.as_ref().to_vec(),
        };
        let verb: &[u8] = if subscribed { b"LSUB " } else { b"LIST " };
        let command = [verb, &quote(&reference), b" ", &quote(&pattern)].concat();
        let outcome = self.ask_provider(&mirror, &command).await?.ok()?;
        let lanes = mirror.state().lanes.clone();
        let mut root_told = false;
        for u in &outcome.untagged {
            let (UntaggedData::List { name, flags, .. } | UntaggedData::Lsub { name, flags, .. }) = u.parse() else {
                continue;
            };
            if lanes.as_ref().is_some_and(|l| l.owns(&name)) {
                continue;
            }
            if let Some(lanes) = lanes.as_ref().filter(|l| l.is_root(&name)) {
                root_told = true;
                if let Some(flags) = with_children(&flags) {
                    self.line(&entry(subscribed, &flags, lanes.delimiter(), &name)).await?;
                    continue;
                }
            }
            self.write(&super::encode::fit_response(u)).await?;
            self.write(b"\r\n").await?;
        }
        if let Some(lanes) = lanes
            && !pattern.is_empty()
        {
            let full = [reference, pattern].concat();
            let ours = our_entries(&mirror, &lanes, subscribed)?;
            for (flags, name) in &ours {
                if matches(&full, name.as_bytes(), lanes.delimiter() as u8) {
                    self.line(&entry(subscribed, flags, lanes.delimiter(), name.as_bytes())).await?;
                }
            }
            // RFC 3501 §6.3.9: a client that asks for one level with `%` is
            // told the level above a name that is listed, though it itself
            // isn't.
            if let Some(root) = lanes.root()
                && !root_told
                && !ours.is_empty()
                && full.contains(&b'%')
                && matches(&full, root.as_bytes(), lanes.delimiter() as u8)
            {
                let flags = "\\Noselect \\HasChildren";
                self.line(&entry(subscribed, flags, lanes.delimiter(), root.as_bytes())).await?;
            }
        }
        Ok("done".into())
    }

    /// STATUS.
    pub(super) async fn status(&mut self, mailbox: &Mailbox<'_>, items: &[StatusDataItemName]) -> Result<String, Fail> {
        let mirror = self.mirror()?;
        self.reachable(&mirror).await?;
        let name = name_of(mailbox);
        let mut words = Vec::new();
        for item in items {
            words.push(match item {
                StatusDataItemName::Messages => "MESSAGES",
                StatusDataItemName::Recent => "RECENT",
                StatusDataItemName::UidNext => "UIDNEXT",
                StatusDataItemName::UidValidity => "UIDVALIDITY",
                StatusDataItemName::Unseen => "UNSEEN",
                _ => return Err(Fail::Bad("this STATUS item is not offered".into())),
            });
        }
        let (place, owned) = {
            let state = mirror.state();
            let lanes = state.lanes.as_ref();
            (lanes.and_then(|l| l.find(&name)), lanes.is_some_and(|l| l.owns(&name)))
        };
        match place {
            Some(place) => {
                ready(&mirror).await?;
                let _ = mirror.freshen().await;
                let line = self.view_status(&mirror, place, &name, &words)?;
                self.line(&line).await?;
            }
            None if owned => return Err(Fail::No("NONEXISTENT", "there is no such mailbox".into())),
            None => {
                let items = format!(" ({})", words.join(" "));
                let command = [b"STATUS ", quote(&name).as_slice(), items.as_bytes()].concat();
                let outcome = self.ask_provider(&mirror, &command).await?.ok()?;
                for u in &outcome.untagged {
                    if matches!(u.parse(), UntaggedData::Status { .. }) {
                        self.write(&super::encode::fit_response(u)).await?;
                        self.write(b"\r\n").await?;
                    }
                }
            }
        }
        Ok("done".into())
    }

    fn view_status(&self, mirror: &Mirror, place: Place, name: &[u8], words: &[&str]) -> Result<String, Fail> {
        let id = (self.signed()?.audience, place);
        let state = mirror.state();
        let view = state.view(id).ok_or_else(|| Fail::No("UNAVAILABLE", "the mailbox is not ready".into()))?;
        let values: Vec<String> = words
            .iter()
            .map(|w| {
                let value = match *w {
                    "MESSAGES" => view.len() as u64,
                    "RECENT" => view.count_recent() as u64,
                    "UIDNEXT" => u64::from(view.next_uid().get()),
                    "UIDVALIDITY" => u64::from(view.uidvalidity),
                    "UNSEEN" => {
                        view.iter().filter(|(_, e)| !has_flag(&state.shown_flags(id, e), "\\Seen")).count() as u64
                    }
                    _ => 0,
                };
                format!("{w} {value}")
            })
            .collect();
        Ok(format!("* STATUS {} ({})", String::from_utf8_lossy(&quote(name)), values.join(" ")))
    }

    /// CREATE, DELETE and RENAME of the provider's mailboxes.
    pub(super) async fn manage(&mut self, verb: &[u8], mailboxes: &[&Mailbox<'_>]) -> Result<String, Fail> {
        let mirror = self.mirror()?;
        self.reachable(&mirror).await?;
        let names: Vec<Vec<u8>> = mailboxes.iter().map(|m| name_of(m)).collect();
        let lanes = mirror.state().lanes.clone();
        for name in &names {
            let inbox = name.eq_ignore_ascii_case(b"INBOX");
            if inbox || lanes.as_ref().is_some_and(|l| l.owns(name)) {
                return Err(Fail::No("CANNOT", "this mailbox is the gateway's".into()));
            }
        }
        let refs: Vec<Vec<u8>> = names.iter().map(|n| [b" ".as_slice(), &quote(n)].concat()).collect();
        self.ask_provider(&mirror, &[verb, &refs.concat()].concat()).await?.ok()?;
        if verb == b"DELETE" {
            self.deleted(&names);
        }
        Ok("done".into())
    }

    /// SUBSCRIBE and UNSUBSCRIBE.
    pub(super) async fn subscribe(&mut self, mailbox: &Mailbox<'_>, subscribe: bool) -> Result<String, Fail> {
        let mirror = self.mirror()?;
        self.reachable(&mirror).await?;
        let name = name_of(mailbox);
        let lanes = mirror.state().lanes.clone();
        let ours = lanes.as_ref().filter(|l| l.owns(&name));
        if let Some(lanes) = ours {
            let place = lanes.find(&name).ok_or_else(|| Fail::No("NONEXISTENT", "there is no such mailbox".into()))?;
            let key = subscription_key(&mirror, place);
            let value: &[u8] = if subscribe { b"1" } else { b"0" };
            write(&*mirror.store, move |w| w.put(Table::Subscription, &key, value))
                .await
                .map_err(|e| Fail::No("UNAVAILABLE", e.to_string()))?;
            return Ok("done".into());
        }
        let verb: &[u8] = if subscribe { b"SUBSCRIBE " } else { b"UNSUBSCRIBE " };
        self.ask_provider(&mirror, &[verb, &quote(&name)].concat()).await?.ok()?;
        Ok("done".into())
    }
}

fn subscription_key(mirror: &Mirror, place: Place) -> Vec<u8> {
    let mut key = super::rows::account_prefix(&mirror.account);
    key.push(place.code());
    key
}

/// Our mailboxes, attributes first; INBOX is the provider's to list.
fn our_entries(mirror: &Mirror, lanes: &LaneMap, subscribed: bool) -> Result<Vec<(&'static str, String)>, Fail> {
    let mut out = vec![("\\Noselect \\HasChildren", lanes.parent())];
    for place in lanes.places().into_iter().filter(|p| *p != Place::Inbox) {
        let stored =
            read::<_, StoreError>(&*mirror.store, |r| r.get(Table::Subscription, &subscription_key(mirror, place)))
                .map_err(|e| Fail::No("UNAVAILABLE", e.to_string()))?;
        // Lanes/All repeats the others: listed, but subscribed only on wish.
        let is = stored.map_or(place != Place::All, |v| v == b"1");
        if !subscribed || is {
            out.push(("\\HasNoChildren", lanes.name(place)));
        }
    }
    Ok(out)
}

/// A line of LIST or LSUB.
fn entry(subscribed: bool, flags: &str, delimiter: char, name: &[u8]) -> String {
    let verb = if subscribed { "LSUB" } else { "LIST" };
    format!("* {verb} ({flags}) \"{delimiter}\" {}", String::from_utf8_lossy(&quote(name)))
}

/// The attributes of the mailbox above ours, where they say that there is
/// nothing beneath it.
fn with_children(flags: &[Bytes]) -> Option<String> {
    let denies = |f: &Bytes| f.eq_ignore_ascii_case(b"\\HasNoChildren") || f.eq_ignore_ascii_case(b"\\Noinferiors");
    if !flags.iter().any(denies) {
        return None;
    }
    let kept = flags.iter().filter(|f| !denies(f)).map(|f| String::from_utf8_lossy(f).into_owned());
    Some(kept.chain(["\\HasChildren".to_owned()]).collect::<Vec<_>>().join(" "))
}

impl Session {
    /// Whether a mailbox is the trash or the junk of the provider.
    pub(super) async fn is_bin(&mut self, mirror: &Mirror, name: &[u8]) -> Result<bool, Fail> {
        let roles = self.roles(mirror, name).await?;
        let leaf = leaf(mirror, name);
        Ok(roles.iter().any(|r| r == "\\trash" || r == "\\junk") || BINS.contains(&leaf.as_str()))
    }

    /// Whether a mailbox is the one for drafts: by SPECIAL-USE where the
    /// provider has it, else by its name. Never one from which the provider
    /// sends.
    pub(super) async fn is_drafts(&mut self, mirror: &Mirror, name: &[u8]) -> Result<bool, Fail> {
        if self.sends(mirror, name).await? {
            return Ok(false);
        }
        let roles = self.roles(mirror, name).await?;
        let special = ["\\all", "\\archive", "\\flagged", "\\junk", "\\sent", "\\trash"];
        let other = roles.iter().any(|r| special.contains(&r.as_str()));
        Ok(roles.iter().any(|r| r == "\\drafts") || (!other && leaf(mirror, name) == "drafts"))
    }

    async fn roles(&mut self, mirror: &Mirror, name: &[u8]) -> Result<Vec<String>, Fail> {
        let command = [b"LIST \"\" ".as_slice(), &quote(name)].concat();
        let outcome = self.ask_provider(mirror, &command).await?.ok()?;
        let mut out = Vec::new();
        for u in &outcome.untagged {
            if let UntaggedData::List { flags, name: listed, .. } = u.parse()
                && listed == name
            {
                out.extend(flags.iter().map(|f| String::from_utf8_lossy(f).to_ascii_lowercase()));
            }
        }
        Ok(out)
    }

    /// Whether the provider sends what is put into a mailbox, as Courier does
    /// with the one that this capability names. Compared without case: doubt
    /// holds.
    async fn sends(&mut self, mirror: &Mirror, name: &[u8]) -> Result<bool, Fail> {
        let mut errand = self.errand(mirror).await?;
        let capabilities = errand.lease(self)?.capabilities();
        let sends = capabilities.iter().filter_map(|c| c.split_once('=')).any(|(word, outbox)| {
            word.eq_ignore_ascii_case(OUTBOX_CAPABILITY) && outbox.as_bytes().eq_ignore_ascii_case(name)
        });
        errand.end();
        Ok(sends)
    }
}

fn leaf(mirror: &Mirror, name: &[u8]) -> String {
    let delimiter = mirror.state().lanes.as_ref().map_or(DEFAULT_DELIMITER, LaneMap::delimiter);
    let text = String::from_utf8_lossy(name).to_ascii_lowercase();
    text.rsplit(delimiter).next().unwrap_or_default().to_owned()
}
