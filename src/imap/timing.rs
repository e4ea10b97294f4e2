//! How long things with the provider may take, and whether this machine slept.
//!
//! Promises: every wait for the provider is one of these. Doesn't know: what
//! is waited for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// How long things may take. The defaults are for use; tests shorten them.
#[derive(Debug, Clone)]
pub struct Timing {
    /// A client that hasn't signed in gets this long for each command.
    pub before_login: Duration,
    /// The same client gets this long in all.
    pub until_login: Duration,
    /// Connecting, TLS and login at the provider, together.
    pub open: Duration,
    /// Silence of the provider after which a command is given up, and the
    /// wait for an answer of the watching connection.
    pub answer: Duration,
    /// The wait for the answer to a question that costs a provider nothing:
    /// whether a connection is alive.
    pub alive: Duration,
    /// A client that takes nothing of what is written to it for so long is
    /// given up.
    pub write: Duration,
    /// The same while it keeps a connection to the provider that others wait for.
    pub write_contested: Duration,
    /// How long SELECT, STATUS, NOOP and CHECK wait for a sync.
    pub fresh: Duration,
    /// How long a session waits for a connection before NO \[LIMIT\].
    pub queue: Duration,
    /// An unused connection is closed after this.
    pub unused: Duration,
    /// First pause before a new watching connection after a failure; each
    /// further one is twice as long.
    pub retry_first: Duration,
    /// Longest such pause.
    pub retry_most: Duration,
    /// A watching connection that lived so long is replaced without a pause.
    pub steady: Duration,
    /// IDLE is renewed this often. RFC 2177 §3 asks for less than 29 minutes;
    /// together with `alive` this is how long a dead connection goes unseen.
    pub idle_renew: Duration,
    /// A provider that ends IDLE sooner than this is polled instead.
    pub idle_least: Duration,
    /// How often the clocks are compared.
    pub tick: Duration,
    /// The wall clock.
    pub clock: Clock,
}

impl Default for Timing {
    fn default() -> Timing {
        let seconds = Duration::from_secs;
        Timing {
            before_login: seconds(30),
            until_login: seconds(180),
            open: seconds(40),
            answer: seconds(60),
            alive: seconds(10),
            write: seconds(120),
            write_contested: seconds(5),
            fresh: seconds(10),
            queue: seconds(10),
            unused: seconds(60),
            retry_first: Duration::from_millis(500),
            retry_most: seconds(60),
            steady: seconds(5),
            idle_renew: seconds(45),
            idle_least: seconds(1),
            tick: seconds(5),
            clock: Clock::default(),
        }
    }
}

/// The wall clock, which a test can move.
#[derive(Debug, Clone, Default)]
pub struct Clock(Arc<AtomicU64>);

impl Clock {
    /// Moves it on, as a suspend does.
    pub fn advance(&self, by: Duration) {
        self.0.fetch_add(u64::try_from(by.as_millis()).unwrap_or(u64::MAX), Ordering::SeqCst);
    }

    fn now(&self) -> SystemTime {
        SystemTime::now() + Duration::from_millis(self.0.load(Ordering::SeqCst))
    }
}

/// A jump of the wall clock that is taken for a suspend. What the other side
/// closed meanwhile doesn't tell us so.
const JUMP: Duration = Duration::from_secs(15);

/// Notices that this machine slept: the wall clock then runs ahead of the
/// monotonic one, which stands still during a suspend.
#[derive(Debug)]
pub struct Sleepless {
    clock: Clock,
    wall: SystemTime,
    steady: Instant,
}

impl Sleepless {
    /// Starts to compare.
    pub fn new(clock: &Clock) -> Sleepless {
        Sleepless { clock: clock.clone(), wall: clock.now(), steady: Instant::now() }
    }

    /// Whether it slept since the last look.
    pub fn slept(&mut self) -> bool {
        let (wall, steady) = (self.clock.now(), Instant::now());
        // A wall clock that was set back is no suspend.
        let by_wall = wall.duration_since(self.wall).unwrap_or_default();
        let slept = jumped(by_wall, steady.duration_since(self.steady));
        (self.wall, self.steady) = (wall, steady);
        slept
    }
}

fn jumped(by_wall: Duration, by_steady: Duration) -> bool {
    by_wall.saturating_sub(by_steady) >= JUMP
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_wall_clock_that_runs_ahead_is_a_suspend() {
        let s = Duration::from_secs;
        assert!(!jumped(s(5), s(5)));
        assert!(!jumped(s(0), s(60)), "set back");
        assert!(!jumped(s(19), s(5)));
        assert!(jumped(s(20), s(5)));
        assert!(jumped(s(3600), s(5)));
    }

    #[test]
    fn one_suspend_is_noticed_once() {
        let clock = Clock::default();
        let mut sleepless = Sleepless::new(&clock);
        assert!(!sleepless.slept());
        clock.advance(Duration::from_secs(600));
        assert!(sleepless.slept());
        assert!(!sleepless.slept());
    }

    #[test]
    fn idle_is_renewed_in_time_and_a_dead_connection_is_seen_within_a_minute() {
        let t = Timing::default();
        assert!(t.idle_renew + t.alive < Duration::from_secs(60));
    }
}
