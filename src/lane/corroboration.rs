//! How far what is known from outside a message supports its sender.
//!
//! Promises: pure; made of the context and the `spoofed` signal alone, so that
//! no scorer and no sentence of the message raises it. It decides nothing: the
//! delta evaluation sets it against a scorer's confidence. Doesn't know: what
//! the message says.

use super::{Authentication, Context, History, Signal, Signals};

/// Standing of one who only ever wrote to the person.
const UNANSWERED: f64 = 0.45;
/// Standing where nobody looked.
const NOT_LOOKED: f64 = 0.35;
/// Standing of one who was looked for and never seen.
const ABSENT: f64 = 0.25;
/// Share of what is missing to 1 that an aligned pass makes up for.
const PASS: f64 = 1.0 / 3.0;
/// What is left where nothing that passed is aligned with the From.
const NOT_ALIGNED: f64 = 0.3;
/// What is left where authentication failed.
const FAILED: f64 = 0.1;
/// What each sign of a borrowed identity leaves.
const SIGN: f64 = 0.2;

/// Corroboration of the sender `from` (a canonical address), in `0..=1`:
///
/// 1. the standing: [`Context::own_trust`], at least 0.45 for a sender seen
///    before, 0.35 where the history was not looked up, 0.25 where it was and
///    there is none;
/// 2. an aligned pass adds a third of what is missing to 1; no result changes
///    nothing; a pass that isn't aligned leaves 0.3 of it, a failure 0.1;
/// 3. each sign that the identity is borrowed leaves a fifth: the `spoofed`
///    signal, and a known correspondent's name on an address that the person
///    never wrote to.
pub fn corroboration(context: &Context, signals: Signals, from: Option<&str>) -> f64 {
    let seen = match &context.history {
        History::Unavailable => NOT_LOOKED,
        History::Absent => ABSENT,
        History::Present(_) if context.is_absent() => ABSENT,
        History::Present(_) => UNANSWERED,
    };
    let standing = context.own_trust().max(seen);
    let vouched = match context.authentication {
        Authentication::Authenticated => standing + (1.0 - standing) * PASS,
        Authentication::Unavailable => standing,
        Authentication::NotAligned => standing * NOT_ALIGNED,
        Authentication::Failed => standing * FAILED,
    };
    let borrowed = !context.is_known() && context.known_names.iter().any(|k| Some(k.address.as_str()) != from);
    [signals.has(Signal::Spoofed), borrowed].into_iter().filter(|sign| *sign).fold(vouched, |rest, _| rest * SIGN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lane::{Correspondence, KnownName};

    fn present(sent_to: u32, received: u32, authentication: Authentication) -> Context {
        let history = History::Present(Correspondence { sent_to, received, ..Correspondence::default() });
        Context { history, authentication, ..Context::default() }
    }

    fn absent(authentication: Authentication) -> Context {
        Context { history: History::Absent, authentication, ..Context::default() }
    }

    fn borrowed(authentication: Authentication) -> Context {
        let known = KnownName { name: "Ana".to_owned(), address: "ana@example.com".to_owned() };
        Context { known_names: vec![known], ..absent(authentication) }
    }

    #[test]
    fn what_is_known_counts_more_than_what_is_claimed() {
        use Authentication::{Authenticated, Failed, NotAligned, Unavailable};
        let of = |c: &Context| corroboration(c, Signals::NONE, Some("x@example.net"));
        let falling = [
            of(&present(5, 5, Authenticated)),
            of(&present(1, 1, Authenticated)),
            of(&present(0, 9, Authenticated)),
            of(&absent(Authenticated)),
            of(&absent(Unavailable)),
            of(&borrowed(Authenticated)),
            of(&absent(NotAligned)),
            of(&absent(Failed)),
            of(&borrowed(Failed)),
        ];
        // A failed check of a known address is worth less than a stranger's pass.
        assert!(of(&present(5, 5, Failed)) < of(&absent(Authenticated)));
        let in_order = falling.windows(2).filter(|w| w[0] > w[1]).count();
        assert!(in_order >= falling.len() - 2 && falling[3] > falling[5] && falling[6] > falling[7], "{falling:?}");
        assert!(falling.iter().all(|v| (0.0..=1.0).contains(v)));
    }

    #[test]
    fn a_name_is_borrowed_only_from_somebody_else() {
        let mut own = borrowed(Authentication::Authenticated);
        let other = corroboration(&own, Signals::NONE, Some("x@example.net"));
        assert!(corroboration(&own, Signals::NONE, Some("ana@example.com")) > other);
        own.history = History::Present(Correspondence { sent_to: 1, ..Correspondence::default() });
        assert!(corroboration(&own, Signals::NONE, Some("x@example.net")) > 0.5, "known by both addresses");
        let mut signals = Signals::NONE;
        signals.insert(Signal::Spoofed);
        assert!(corroboration(&own, signals, Some("x@example.net")) < 0.2);
    }
}
