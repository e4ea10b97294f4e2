//! From a new message of the provider's INBOX to a decision and view entries.
//!
//! Promises: a message always gets a place; what can't be read is shown.
//! Doesn't know: how its octets were fetched.

use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::lane::trace::Trace;
use crate::lane::{Context, stamp};
use crate::perceive::{self, CorrespondentRecord, PerceiveInput};
use crate::store::{StoreError, Table, get_json, read};

use super::lanes::{LaneMap, Place};
use super::measured;
use super::mirror::{Flags, Message, Mirror, OpError, State};
use super::plan::{Bump, Plan};
use super::rows::{self, MessageRow};
use super::uid::UpstreamUid;
use super::view::{Audience, Source};

/// What the provider said of one new message.
#[derive(Debug, Clone)]
pub struct Arrived {
    /// UID in INBOX.
    pub uid: UpstreamUid,
    /// Flags, `\Recent` included.
    pub flags: Vec<String>,
    /// RFC822.SIZE.
    pub size: u64,
    /// INTERNALDATE without quotes.
    pub date: String,
    /// The first octets of the message; `None` means that it isn't perceived.
    pub prefix: Option<Vec<u8>>,
}

/// Unix seconds now.
pub fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| i64::try_from(d.as_secs()).unwrap_or(i64::MAX))
}

/// A new random id of a decision: 16 hexadecimal digits.
pub fn decision_id() -> Result<String, OpError> {
    let mut bytes = [0u8; 8];
    getrandom::fill(&mut bytes).map_err(|e| OpError::Store(e.to_string()))?;
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}

/// Perceives one message with what is known of its sender.
pub fn trace(mirror: &Mirror, arrived: &Arrived, octets: &[u8]) -> Result<Trace, OpError> {
    let context = match perceive::sender(octets) {
        None => Context::default(),
        Some(sender) => {
            let key = rows::correspondent_key(&mirror.account, &sender.address.canonical());
            let (record, scanned) = read::<_, StoreError>(&*mirror.store, |r| {
                let record: Option<CorrespondentRecord> = get_json(r, Table::Correspondent, &key)?;
                Ok((record, rows::sent_was_read(r, &mirror.account)?))
            })?;
            Context::of_sender(record.as_ref(), scanned, &mirror.names(), &sender)
        }
    };
    let input = PerceiveInput {
        octets,
        size: arrived.size,
        account: &mirror.facts,
        now: now(),
        internaldate: perceive_date(&arrived.date).unwrap_or_else(now),
        context,
    };
    let decision = decision_id()?;
    let start = Instant::now();
    let mut trace = perceive::perceive(&input, &mirror.thresholds, decision);
    // Perception has no clock; the offline scorer is nearly all of what it does.
    if let Some(offline) = trace.scorers.first_mut() {
        offline.took_us = Some(u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX));
    }
    Ok(trace)
}

/// Plans a new message: its row, its decision and its entries in both
/// audiences' views. Where it was perceived already, `decided` is what came
/// of that.
pub fn plan_arrival(
    mirror: &Mirror,
    state: &mut State,
    plan: &mut Plan,
    arrived: Arrived,
    known: Option<MessageRow>,
    decided: Option<&Trace>,
) -> Result<(), OpError> {
    let placed = state.placements.remove(&arrived.uid);
    let mut row = MessageRow {
        size: arrived.size,
        date: arrived.date.clone(),
        place: placed.unwrap_or(Place::Inbox),
        by_person: placed.is_some(),
        lane: None,
        stamp: None,
        decision: None,
        message_id: None,
        measured: None,
    };
    if let Some(old) = known {
        row = MessageRow { size: arrived.size, measured: None, date: arrived.date.clone(), ..old };
    } else if placed.is_none()
        && let Some(octets) = &arrived.prefix
    {
        let perceived;
        let trace = match decided {
            Some(trace) => trace,
            None => {
                perceived = trace(mirror, &arrived, octets)?;
                &perceived
            }
        };
        decide(mirror, &lanes_of(state)?, plan, arrived.uid, &mut row, trace)?;
        if let Some(from) = &trace.from {
            let display = perceive::sender(octets).map(|s| s.display).unwrap_or_default();
            let time = trace.time;
            plan.bump(Bump { address: from.clone(), change: Box::new(move |r| r.saw_arrival(&display, time)) });
        }
    }
    if let Some(octets) = &arrived.prefix {
        measured::correct_new(mirror, plan, arrived.uid, &mut row, octets)?;
    }
    let flags: Flags = state.intern(arrived.flags);
    let place = row.place;
    plan.message(arrived.uid, Message { row: Arc::new(row), flags, flags_at: state.clock })?;
    show(state, plan, arrived.uid, place)
}

/// Puts a decision into a message's row and its trace into the plan.
pub fn decide(
    mirror: &Mirror,
    lanes: &LaneMap,
    plan: &mut Plan,
    uid: UpstreamUid,
    row: &mut MessageRow,
    trace: &Trace,
) -> Result<(), OpError> {
    let lane = trace.verdict.lane;
    row.place = lanes.place(lane);
    row.lane = Some(lane);
    row.stamp = Some(String::from_utf8_lossy(&stamp::render(trace)).into_owned());
    row.decision = Some(trace.decision.clone());
    row.message_id = trace.message_id.clone();
    let key = rows::decision_key(&mirror.account, &trace.decision);
    plan.json(Table::Decision, key, trace)?;
    plan.row(
        Table::DecisionIndex,
        rows::by_upstream_uid(&mirror.account, uid),
        Some(trace.decision.clone().into_bytes()),
    );
    if let Some(id) = &trace.message_id {
        plan.row(
            Table::DecisionIndex,
            rows::by_message_id(&mirror.account, id),
            Some(trace.decision.clone().into_bytes()),
        );
    }
    Ok(())
}

/// The names of our mailboxes, once they are known.
pub fn lanes_of(state: &State) -> Result<LaneMap, OpError> {
    state.lanes.clone().ok_or_else(|| OpError::Unavailable("the account is starting".into()))
}

/// Plans the entries of a message in its place and in `Lanes/All`.
pub fn show(state: &State, plan: &mut Plan, uid: UpstreamUid, place: Place) -> Result<(), OpError> {
    for audience in Audience::BOTH {
        plan.push(state, (audience, place), Source::Upstream(uid))?;
        plan.push(state, (audience, Place::All), Source::Upstream(uid))?;
    }
    Ok(())
}

/// Unix seconds of an INTERNALDATE such as ` 1-Jan-2026 12:00:00 +0000`.
pub fn perceive_date(text: &str) -> Option<i64> {
    let text = text.trim();
    let (date, rest) = text.split_once(' ')?;
    let (time, zone) = rest.split_once(' ')?;
    let mut parts = date.split('-');
    let day: i8 = parts.next()?.trim().parse().ok()?;
    let month = month(parts.next()?)?;
    let year: i16 = parts.next()?.parse().ok()?;
    let mut clock = time.split(':').map(|n| n.parse::<i8>().ok());
    let (h, m, s) = (clock.next()??, clock.next()??, clock.next()??);
    let sign: i32 = if zone.starts_with('-') { -1 } else { 1 };
    let hours: i32 = zone.get(1..3)?.parse().ok()?;
    let minutes: i32 = zone.get(3..5)?.parse().ok()?;
    let civil = jiff::civil::DateTime::new(year, month, day, h, m, s.min(59), 0).ok()?;
    let utc = civil.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_second();
    Some(utc - i64::from(sign * (hours * 3600 + minutes * 60)))
}

/// The number of an English month name of three letters.
pub fn month(name: &str) -> Option<i8> {
    const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let at = MONTHS.iter().position(|m| name.eq_ignore_ascii_case(m))?;
    i8::try_from(at + 1).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn internaldates_are_read_with_their_zone() {
        assert_eq!(perceive_date(" 1-Jan-1970 01:00:00 +0100"), Some(0));
        assert_eq!(perceive_date("01-Jan-2026 00:00:00 -0130"), Some(1_767_225_600 + 5400));
        assert_eq!(perceive_date("nonsense"), None);
    }
}
