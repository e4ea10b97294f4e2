//! What one agent key may use up: commands a minute, octets a day, a share of
//! the provider's quota.
//!
//! Promises: the limits hold over all sessions of a key, the daily one over a
//! restart too; each refusal says which limit and when it ends. Doesn't know:
//! holds, which `outbox` counts.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::account::KeyId;
use crate::imap::encode::quote;
use crate::imap::mirror::Mirror;
use crate::imap::perceiving::now;
use crate::imap::session::{Fail, Session};
use crate::store::{self, StoreError, Table};

/// Of a mailbox's quota, in percent, what agents may fill.
pub const MAX_QUOTA_PERCENT: u64 = 90;
/// Octets of one unit of the resource STORAGE (RFC 9208 §5.1).
const STORAGE_UNIT: u64 = 1024;
const SECONDS_OF_DAY: i64 = 24 * 3600;
const MINUTE: Duration = Duration::from_secs(60);

/// Commands that keys have left.
#[derive(Debug, Default)]
pub struct Rates(Mutex<HashMap<KeyId, Bucket>>);

#[derive(Debug, Clone, Copy)]
struct Bucket {
    /// When the commands that were taken are all given back.
    full: Instant,
}

impl Rates {
    /// Takes one command; how long to wait where there is none. A key that
    /// was still for a minute has all of `per_minute` at once.
    fn take(&self, key: &KeyId, per_minute: u64, now: Instant) -> Result<(), Duration> {
        let one = MINUTE / u32::try_from(per_minute.max(1)).unwrap_or(u32::MAX);
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket = buckets.entry(key.clone()).or_insert(Bucket { full: now });
        let after = bucket.full.max(now) + one;
        let ahead = after.duration_since(now);
        if ahead > MINUTE {
            return Err(ahead - MINUTE);
        }
        bucket.full = after;
        Ok(())
    }
}

/// What a key added on one day.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Spent {
    day: i64,
    octets: u64,
}

fn spent_key(key: &KeyId) -> Vec<u8> {
    format!("agent-octets\0{key}").into_bytes()
}

/// One resource of a quota: what is used, and of how much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Resource {
    used: u64,
    limit: u64,
}

impl Resource {
    fn holds(self, more: u64) -> bool {
        let most = u128::from(self.limit) * u128::from(MAX_QUOTA_PERCENT) / 100;
        self.limit == 0 || u128::from(self.used) + u128::from(more) <= most
    }
}

/// The resources of `* QUOTA root (STORAGE 10 512 MESSAGE 1 9)` (RFC 9208
/// §4.2.1), with STORAGE in octets.
fn resources(text: &[u8]) -> Vec<(String, Resource)> {
    let text = String::from_utf8_lossy(text);
    if !text.get(..8).is_some_and(|start| start.eq_ignore_ascii_case("* QUOTA ")) {
        return Vec::new();
    }
    // The root may hold parentheses; the list is the last one.
    let list = text.rsplit_once('(').map_or("", |(_, list)| list.trim_end().trim_end_matches(')'));
    let words: Vec<&str> = list.split_whitespace().collect();
    let read = |triple: &[&str]| {
        let (name, used, limit) = (triple[0].to_ascii_uppercase(), triple[1].parse().ok()?, triple[2].parse().ok()?);
        let unit: u64 = if name == "STORAGE" { STORAGE_UNIT } else { 1 };
        Some((name, Resource { used: unit.saturating_mul(used), limit: unit.saturating_mul(limit) }))
    };
    words.chunks_exact(3).filter_map(read).collect()
}

impl Session {
    /// Counts a command of an agent.
    pub(in crate::imap) fn take_command(&self) -> Result<(), Fail> {
        let signed = self.signed()?;
        let per_minute = signed.mirror.agent_limits.commands_per_minute;
        signed.mirror.rates.take(&signed.principal.key, per_minute, Instant::now()).map_err(|wait| {
            let seconds = wait.as_secs() + 1;
            let text = format!("this key may give {per_minute} commands a minute; wait {seconds} seconds");
            Fail::No("LIMIT", text)
        })
    }

    /// Counts octets that an agent is about to add to a mailbox, and looks
    /// whether there is room for them.
    pub(in crate::imap) async fn take_octets(
        &mut self,
        mirror: &Mirror,
        mailbox: &[u8],
        octets: u64,
        messages: u64,
    ) -> Result<(), Fail> {
        self.has_room(mirror, mailbox, octets, messages).await?;
        let (key, limit) = (self.signed()?.principal.key.clone(), mirror.agent_limits.bytes_per_day);
        let time = now();
        let day = time.div_euclid(SECONDS_OF_DAY);
        let left = store::write(&*mirror.store, move |w| -> Result<Option<u64>, StoreError> {
            let row = spent_key(&key);
            let known: Spent = store::get_json(w, Table::Meta, &row)?.unwrap_or_default();
            // A clock that was set back gives nothing back.
            let known = if known.day >= day { known } else { Spent { day, octets: 0 } };
            let after = known.octets.saturating_add(octets);
            if after > limit {
                return Ok(Some(limit.saturating_sub(known.octets)));
            }
            store::put_json(w, Table::Meta, &row, &Spent { octets: after, ..known })?;
            Ok(None)
        });
        match left.await {
            Ok(None) => Ok(()),
            Ok(Some(left)) => {
                let hours = (SECONDS_OF_DAY - time.rem_euclid(SECONDS_OF_DAY)) / 3600 + 1;
                let text = format!(
                    "this key may add {limit} octets a day and has {left} left; in {hours} hours all of them again"
                );
                Err(Fail::No("LIMIT", text))
            }
            Err(e) => Err(Fail::No("UNAVAILABLE", e.to_string())),
        }
    }

    /// Whether a mailbox stays below [`MAX_QUOTA_PERCENT`] of its quota, where
    /// the provider tells of one.
    async fn has_room(&mut self, mirror: &Mirror, mailbox: &[u8], octets: u64, messages: u64) -> Result<(), Fail> {
        let mut errand = self.errand(mirror).await?;
        let tells = errand.lease(self)?.capabilities().has("QUOTA");
        errand.end();
        if !tells {
            return Ok(());
        }
        let outcome = self.ask_provider(mirror, &[b"GETQUOTAROOT ".as_slice(), &quote(mailbox)].concat()).await?;
        for (name, resource) in outcome.untagged.iter().flat_map(|u| resources(&u.text)) {
            let more = match name.as_str() {
                "STORAGE" => octets,
                "MESSAGE" => messages,
                _ => continue,
            };
            if !resource.holds(more) {
                let text = format!("an agent may fill a mailbox to {MAX_QUOTA_PERCENT} % of its quota");
                return Err(Fail::No("OVERQUOTA", text));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_its_commands_of_a_minute_and_then_one_after_the_other() {
        let (rates, key, start) = (Rates::default(), KeyId("k".into()), Instant::now());
        for n in 0..60 {
            assert_eq!(rates.take(&key, 60, start), Ok(()), "{n}");
        }
        assert_eq!(rates.take(&key, 60, start), Err(Duration::from_secs(1)));
        assert_eq!(rates.take(&KeyId("other".into()), 60, start), Ok(()));
        let later = start + Duration::from_secs(2);
        assert_eq!([1, 2].map(|_| rates.take(&key, 60, later)), [Ok(()), Ok(())]);
        assert!(rates.take(&key, 60, later).is_err());
    }

    #[test]
    fn quotas_are_read_and_filled_to_nine_tenths() {
        let read = resources(b"* QUOTA \"User (1)\" (STORAGE 10 512 MESSAGE 20 100)");
        assert_eq!(
            read,
            [
                ("STORAGE".to_owned(), Resource { used: 10 * 1024, limit: 512 * 1024 }),
                ("MESSAGE".to_owned(), Resource { used: 20, limit: 100 }),
            ]
        );
        assert!(resources(b"* QUOTAROOT INBOX \"\"").is_empty() && resources(b"* QUOTA \"\" ()").is_empty());
        assert!(read[1].1.holds(70) && !read[1].1.holds(71));
        assert!(Resource { used: 9, limit: 0 }.holds(1), "no limit");
    }
}
