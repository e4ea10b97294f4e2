//! What models may cost, what they did cost, and how often they failed us.
//!
//! Promises: what was spent on a day (UTC) and what is under way never exceed
//! the budget of that day, per account and overall, as far as a call's most
//! was known before it; a call that never came back stays spent. Everything
//! here can be stored and read back. Doesn't know: the clock, the store,
//! models.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Millionths of the budget's currency.
pub type Micros = u64;

/// Price of a model that no row names, in millionths for a million tokens:
/// dearer than what anybody should use to sort mail.
pub const UNKNOWN_PRICE: Price = Price { input: 100_000_000, output: 400_000_000 };
/// Tokens in a million octets of prompt, as they usually come out.
const USUAL_TOKENS: u64 = 280_000;
/// The same, as they come out at most.
const MOST_TOKENS: u64 = 500_000;
/// Tokens of an answer, as they usually come out.
const USUAL_ANSWER: u64 = 70;
const MILLION: u64 = 1_000_000;

/// What a model costs, in millionths for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Price {
    /// Of what it is asked.
    pub input: Micros,
    /// Of what it answers.
    pub output: Micros,
}

/// Tokens of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Of what was asked.
    pub input: u64,
    /// Of what was answered.
    pub output: u64,
}

impl Price {
    /// What so many tokens cost, rounded up to a millionth: many small calls
    /// are no free calls, and none costs more than it does.
    pub fn cost(self, usage: Usage) -> Micros {
        let part = |tokens: u64, price: u64| u128::from(tokens) * u128::from(price);
        let sum = part(usage.input, self.input) + part(usage.output, self.output);
        u64::try_from(sum.div_ceil(u128::from(MILLION))).unwrap_or(u64::MAX)
    }
}

impl Usage {
    /// What a prompt of so many octets usually takes.
    pub fn estimated(octets: u64) -> Usage {
        Usage { input: octets.saturating_mul(USUAL_TOKENS).div_ceil(MILLION), output: USUAL_ANSWER }
    }

    /// What it takes at most, with an answer of at most `answer` tokens.
    pub fn most(octets: u64, answer: u64) -> Usage {
        Usage { input: octets.saturating_mul(MOST_TOKENS).div_ceil(MILLION), output: answer }
    }
}

/// Prices by model, specific rows before general ones.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Prices(Vec<(String, Price)>);

impl Prices {
    /// A table of rows: a model's id, or the beginning of ids and `*`.
    pub fn new(rows: impl IntoIterator<Item = (String, Price)>) -> Prices {
        let mut rows: Vec<(String, Price)> = rows.into_iter().collect();
        // An id before beginnings, a longer beginning before a shorter one;
        // how the rows were written down doesn't matter.
        rows.sort_by_key(|(pattern, _)| (pattern.ends_with('*'), std::cmp::Reverse(pattern.len())));
        Prices(rows)
    }

    /// The row of a model.
    pub fn of(&self, model: &str) -> Option<Price> {
        let covers = |pattern: &str| match pattern.strip_suffix('*') {
            Some(start) => model.starts_with(start),
            None => pattern == model,
        };
        self.0.iter().find(|(pattern, _)| covers(pattern)).map(|(_, price)| *price)
    }

    /// The price of an answer to a call of `asked` that says it is of
    /// `answered`: a server may pass a call on to another model, or name a
    /// dated version of the same.
    pub fn of_answer(&self, asked: &str, answered: Option<&str>) -> Price {
        let asked_for = || self.of(asked).unwrap_or(UNKNOWN_PRICE);
        match answered {
            None => asked_for(),
            Some(other) => match self.of(other) {
                Some(price) => price,
                None if is_version(asked, other) => asked_for(),
                None => UNKNOWN_PRICE,
            },
        }
    }
}

/// Whether `other` is `asked`, or `asked` with a version behind it.
fn is_version(asked: &str, other: &str) -> bool {
    other.strip_prefix(asked).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', ':', '@']))
}

/// What may be spent on a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// For all accounts together.
    pub overall: Micros,
    /// For each account.
    pub account: Micros,
}

/// Why a call may not be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Spent {
    /// The overall budget would not suffice.
    #[error("the budget of the day is used up")]
    Overall,
    /// The account's budget would not suffice.
    #[error("the account's budget of the day is used up")]
    Account,
}

/// What was spent on one day, calls under way included at their most.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spending {
    /// Days since 1970, UTC.
    pub day: i64,
    /// By all accounts together.
    pub overall: Micros,
    /// By each account.
    pub accounts: BTreeMap<String, Micros>,
}

/// Money set aside for a call under way. One that is dropped stays spent.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct Reserved {
    day: i64,
    account: String,
    most: Micros,
}

impl Spending {
    /// Sets the most that a call can cost aside.
    pub fn reserve(&mut self, limits: Limits, account: &str, most: Micros, now: i64) -> Result<Reserved, Spent> {
        self.turn(now);
        let own = self.accounts.get(account).copied().unwrap_or(0).saturating_add(most);
        let overall = self.overall.saturating_add(most);
        if overall > limits.overall {
            return Err(Spent::Overall);
        }
        if own > limits.account {
            return Err(Spent::Account);
        }
        self.overall = overall;
        self.accounts.insert(account.to_owned(), own);
        Ok(Reserved { day: self.day, account: account.to_owned(), most })
    }

    /// Puts what a call did cost in the place of its most. What it cost more
    /// than that counts too.
    pub fn settle(&mut self, reserved: Reserved, cost: Micros) {
        // On another day nothing is set aside for it any more.
        if reserved.day != self.day {
            return;
        }
        let settled = |sum: Micros| sum.saturating_sub(reserved.most).saturating_add(cost);
        self.overall = settled(self.overall);
        if let Some(own) = self.accounts.get_mut(&reserved.account) {
            *own = settled(*own);
        }
    }

    /// A new day begins with nothing spent. A clock that goes back doesn't
    /// bring a day's money back.
    fn turn(&mut self, now: i64) {
        let day = now.div_euclid(24 * 3600);
        if day > self.day {
            *self = Spending { day, ..Spending::default() };
        }
    }

    /// What was spent on the day of `now`.
    pub fn spent(&self, now: i64) -> Micros {
        if now.div_euclid(24 * 3600) > self.day { 0 } else { self.overall }
    }
}

/// Scorings that the alarm looks back on.
pub const WINDOW: usize = 200;
/// Fewer scorings than this are no rate.
pub const LEAST: usize = 20;
/// More than one in this many is an alarm (20 %).
const ONE_IN: usize = 5;

/// Which of the last scorings fell back to the offline scorer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Fallbacks {
    /// Newest last; at most [`WINDOW`].
    last: std::collections::VecDeque<bool>,
    alarm: bool,
}

/// A change of the alarm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alarm {
    /// Too many fell back.
    Raised,
    /// No longer.
    Ended,
}

impl Fallbacks {
    /// Takes in one scoring; what that does to the alarm.
    pub fn note(&mut self, fell_back: bool) -> Option<Alarm> {
        self.last.push_back(fell_back);
        while self.last.len() > WINDOW {
            self.last.pop_front();
        }
        let high = self.last.len() >= LEAST && self.count() * ONE_IN > self.last.len();
        let was = std::mem::replace(&mut self.alarm, high);
        match (was, high) {
            (false, true) => Some(Alarm::Raised),
            (true, false) => Some(Alarm::Ended),
            _ => None,
        }
    }

    fn count(&self) -> usize {
        self.last.iter().filter(|f| **f).count()
    }

    /// How many of how many fell back.
    pub fn rate(&self) -> (usize, usize) {
        (self.count(), self.last.len())
    }

    /// Whether the alarm is on.
    pub fn alarm(&self) -> bool {
        self.alarm
    }
}

/// Numbers of one model since the start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelFigures {
    /// Calls that were made.
    pub calls: u64,
    /// Answers that were valid.
    pub answers: u64,
    /// Answers that were known already.
    pub cached: u64,
    /// Calls that failed, by kind of failure.
    pub errors: BTreeMap<&'static str, u64>,
    /// Tokens that were metered, or estimated where nothing was.
    pub usage: Usage,
    /// What the answered calls cost.
    pub metered: Micros,
    /// What they were expected to cost.
    pub estimated: Micros,
    /// Whether it rests after a failure.
    pub resting: bool,
}

/// What is told of models: names of the configuration and numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Figures {
    /// By name in the configuration.
    pub models: BTreeMap<String, ModelFigures>,
    /// Scorings since the start.
    pub scorings: u64,
    /// How many of them fell back.
    pub fell_back: u64,
    /// How many of the last [`WINDOW`] fell back, and how many those are.
    pub rate: (usize, usize),
    /// Whether the alarm is on.
    pub alarm: bool,
    /// Spent today, calls under way included.
    pub spent: Micros,
    /// What may be spent on a day.
    pub budget: Micros,
}

impl Figures {
    /// Metered over estimated cost; should be near 1.
    pub fn metered_over_estimated(&self) -> Option<f64> {
        let sum = |of: fn(&ModelFigures) -> Micros| self.models.values().map(of).sum::<Micros>();
        let estimated = sum(|m| m.estimated);
        (estimated > 0).then(|| sum(|m| m.metered) as f64 / estimated as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 24 * 3600;

    fn price(input: u64) -> Price {
        Price { input, output: 4 * input }
    }

    #[test]
    fn specific_rows_stand_before_general_ones_however_they_are_written() {
        let rows = [("*", 9), ("gpt-4o*", 5), ("gpt-4o-mini*", 1), ("gpt-4o-mini-audio", 7), ("gpt*", 8)];
        for turn in 0..rows.len() {
            let mut rows = rows.map(|(p, n)| (p.to_owned(), price(n)));
            rows.rotate_left(turn);
            let prices = Prices::new(rows);
            for (model, n) in [
                ("gpt-4o-mini", 1),
                ("gpt-4o-mini-2024-07-18", 1),
                ("gpt-4o-mini-audio", 7),
                ("gpt-4o", 5),
                ("gpt-5", 8),
                ("qwen", 9),
            ] {
                assert_eq!(prices.of(model), Some(price(n)), "{model}");
            }
        }
    }

    #[test]
    fn an_unknown_model_is_dear() {
        let prices = Prices::new([("small".to_owned(), price(1))]);
        assert_eq!(prices.of("smaller"), None);
        assert_eq!(prices.of_answer("small", None), price(1));
        assert_eq!(prices.of_answer("small", Some("small")), price(1));
        assert_eq!(prices.of_answer("small", Some("small-2026-01-01")), price(1));
        assert_eq!(prices.of_answer("small", Some("smaller")), UNKNOWN_PRICE);
        assert_eq!(prices.of_answer("small", Some("large")), UNKNOWN_PRICE);
    }

    #[test]
    fn small_calls_cost_something_and_no_more_than_they_do() {
        let p = Price { input: 150_000, output: 600_000 };
        assert_eq!(p.cost(Usage { input: 1_000_000, output: 0 }), 150_000);
        assert_eq!(p.cost(Usage { input: 1000, output: 70 }), 192);
        assert_eq!(p.cost(Usage { input: 1, output: 0 }), 1);
        assert_eq!(p.cost(Usage::default()), 0);
        assert_eq!(UNKNOWN_PRICE.cost(Usage { input: u64::MAX, output: u64::MAX }), u64::MAX);
    }

    #[test]
    fn a_budget_is_kept_by_what_is_under_way_too() {
        let limits = Limits { overall: 100, account: 60 };
        let mut l = Spending::default();
        let first = l.reserve(limits, "a", 40, DAY).unwrap();
        assert_eq!(l.reserve(limits, "a", 40, DAY), Err(Spent::Account));
        let second = l.reserve(limits, "b", 50, DAY).unwrap();
        assert_eq!(l.reserve(limits, "c", 20, DAY), Err(Spent::Overall));
        l.settle(first, 10);
        let third = l.reserve(limits, "a", 40, DAY).unwrap();
        l.settle(second, 60);
        assert_eq!(l.spent(DAY), 110, "what a call cost more than its most counts");
        // Never settled: it stays spent.
        drop(third);
        assert_eq!(l.reserve(limits, "a", 1, DAY), Err(Spent::Overall));
    }

    #[test]
    fn a_day_begins_anew_and_never_again() {
        let limits = Limits { overall: 100, account: 100 };
        let mut l = Spending::default();
        let late = l.reserve(limits, "a", 100, 2 * DAY - 1).unwrap();
        assert_eq!(l.spent(2 * DAY), 0);
        let next = l.reserve(limits, "a", 70, 2 * DAY).unwrap();
        l.settle(late, 5);
        assert_eq!(l.spent(2 * DAY), 70, "yesterday's call is yesterday's");
        assert_eq!(l.reserve(limits, "a", 40, DAY), Err(Spent::Overall), "the clock went back");
        l.settle(next, 7);
        assert_eq!(l.spent(2 * DAY), 7);
    }

    #[test]
    fn what_was_spent_reads_back_as_it_was_stored() {
        let limits = Limits { overall: 100, account: 60 };
        let mut l = Spending::default();
        let _under_way = l.reserve(limits, "a", 40, DAY).unwrap();
        let mut back: Spending = serde_json::from_str(&serde_json::to_string(&l).unwrap()).unwrap();
        assert_eq!(back, l);
        assert_eq!(back.reserve(limits, "a", 40, DAY), Err(Spent::Account), "no restart brings money back");
    }

    proptest::proptest! {
        #[test]
        fn no_order_of_calls_exceeds_a_budget(calls in proptest::collection::vec((0u8..3, 0u64..50, 0u64..=100), 0..200)) {
            let limits = Limits { overall: 300, account: 150 };
            let mut l = Spending::default();
            let mut open = Vec::new();
            for (account, most, share) in calls {
                if let Ok(r) = l.reserve(limits, &account.to_string(), most, DAY) {
                    open.push((r, most * share / 100));
                }
                if open.len() > 3 {
                    let (r, cost) = open.remove(0);
                    l.settle(r, cost);
                }
                proptest::prop_assert!(l.overall <= limits.overall);
                proptest::prop_assert!(l.accounts.values().all(|a| *a <= limits.account));
                proptest::prop_assert_eq!(l.accounts.values().sum::<u64>(), l.overall);
            }
        }
    }

    #[test]
    fn more_than_a_fifth_of_the_last_two_hundred_is_an_alarm() {
        let mut f = Fallbacks::default();
        for _ in 0..WINDOW - 40 {
            assert_eq!(f.note(false), None);
        }
        for _ in 0..40 {
            assert_eq!(f.note(true), None, "a fifth is none yet");
        }
        assert_eq!(f.note(true), Some(Alarm::Raised));
        assert_eq!(f.rate(), (41, WINDOW));
        assert_eq!(f.note(true), None, "told once");
        let ended = (0..WINDOW).filter_map(|_| f.note(false)).collect::<Vec<_>>();
        assert_eq!(ended, [Alarm::Ended]);
    }

    #[test]
    fn a_few_scorings_are_no_rate() {
        let mut f = Fallbacks::default();
        assert!((0..LEAST - 1).all(|_| f.note(true).is_none()));
        assert_eq!(f.note(true), Some(Alarm::Raised));
        let back: Fallbacks = serde_json::from_str(&serde_json::to_string(&f).unwrap()).unwrap();
        assert!(back.alarm() && back == f);
    }
}
