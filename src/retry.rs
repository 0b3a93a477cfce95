//! Trying again: how often, how long to wait in between, and when not to.
//!
//! This is a loop around one whole exchange and not a wrapper of the transport: whether an answer is whole (a body that ends with
//! the connection proves nothing), or is an exception report that says "later", is known only after it was parsed. The loop knows
//! two things of a failure, [`Attempted`], and never looks at its text.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use crate::clock::Clock;
use crate::signal::{Stop, Stopped};

/// How often to try again, and how long to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Attempts after the first.
    pub retries: u32,
    /// The upper bound of the first wait; it doubles with each attempt.
    pub wait_first: Duration,
    /// The upper bound of every wait, Retry-After included.
    pub wait_max: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { retries: 5, wait_first: Duration::from_secs(1), wait_max: Duration::from_secs(60) }
    }
}

impl RetryPolicy {
    /// The wait after the failed attempt number `attempt`, counted from 1.
    ///
    /// Capped exponential backoff with full jitter: evenly between nothing and the bound, so that many clients of one catalogue
    /// spread out. `random` is in 0..1. What the server asks for by `Retry-After` (RFC 9110, 10.2.3) is the least, up to
    /// `wait_max`.
    #[must_use]
    pub fn wait(&self, attempt: u32, retry_after_s: Option<u64>, random: f64) -> Duration {
        let doublings = attempt.saturating_sub(1).min(31);
        let bound = self.wait_first.saturating_mul(1 << doublings).min(self.wait_max);
        let share = if random.is_finite() { random.clamp(0.0, 1.0) } else { 1.0 };
        let jittered = Duration::try_from_secs_f64(bound.as_secs_f64() * share).unwrap_or(bound);
        let asked = Duration::from_secs(retry_after_s.unwrap_or(0));
        jittered.max(asked).min(self.wait_max)
    }
}

/// What the loop must know of a failure.
pub trait Attempted {
    /// Whether trying again may help.
    fn transient(&self) -> bool;

    /// What the server asked for, in seconds from now.
    fn retry_after_s(&self) -> Option<u64>;

    /// Set when the attempt did not fail but was told to stop.
    fn stopped(&self) -> Option<Stopped> {
        None
    }
}

/// Why there is no success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RetryEnd<E> {
    /// The last failure was final, or the attempts are used up.
    GaveUp {
        /// The last failure.
        last: E,
        /// All attempts, the first included.
        attempts: u32,
    },
    /// Told to stop, during an attempt or between two.
    Stopped(Stopped),
}

/// Runs `op` until it succeeds, fails for good, has failed `retries + 1` times, or a stop is requested.
///
/// `op` is given the number of the attempt, from 1. `on_retry` is told of each failure that will be tried again: the failure, the
/// wait ahead and the number of the attempt that failed. A failure that is final is told as such even when a stop is requested at
/// the same time.
///
/// # Errors
/// See [`RetryEnd`].
pub fn run<T, E: Attempted>(
    policy: &RetryPolicy,
    clock: &mut dyn Clock,
    stop: &Stop,
    random: &mut Random,
    on_retry: &mut dyn FnMut(&E, Duration, u32),
    mut op: impl FnMut(u32) -> Result<T, E>,
) -> Result<T, RetryEnd<E>> {
    let mut attempt = 1;
    loop {
        stop.check().map_err(RetryEnd::Stopped)?;
        let last = match op(attempt) {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        if let Some(stopped) = last.stopped() {
            return Err(RetryEnd::Stopped(stopped));
        }
        if !last.transient() || attempt > policy.retries {
            return Err(RetryEnd::GaveUp { last, attempts: attempt });
        }
        stop.check().map_err(RetryEnd::Stopped)?;
        let wait = policy.wait(attempt, last.retry_after_s(), random.fraction());
        on_retry(&last, wait, attempt);
        clock.pause(wait, stop).map_err(RetryEnd::Stopped)?;
        attempt = attempt.saturating_add(1);
    }
}

/// Randomness good enough to spread waits: xorshift64*. Not for secrets.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The same sequence for the same seed.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        // xorshift stays at zero for ever once it is there.
        Self { state: if seed == 0 { 0x9E37_79B9_7F4A_7C15 } else { seed } }
    }

    /// Another sequence in every process: the seed is what std draws for its hash maps.
    #[must_use]
    pub fn from_process() -> Self {
        Self::seeded(RandomState::new().build_hasher().finish())
    }

    /// Evenly in 0..1, 1 excluded.
    pub fn fraction(&mut self) -> f64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        let high = (self.state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32) as u32;
        f64::from(high) / (f64::from(u32::MAX) + 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signal::Reason;
    use time::OffsetDateTime;

    /// Never sleeps; notes the waits, and asks to stop in the n-th.
    #[derive(Default)]
    struct FakeClock {
        waits: Vec<Duration>,
        stop_in_wait: Option<usize>,
    }

    impl Clock for FakeClock {
        fn now(&self) -> OffsetDateTime {
            OffsetDateTime::UNIX_EPOCH
        }

        fn pause(&mut self, wait: Duration, stop: &Stop) -> Result<(), Stopped> {
            self.waits.push(wait);
            if self.stop_in_wait == Some(self.waits.len()) {
                stop.ask();
            }
            stop.check()
        }
    }

    #[derive(Clone, Debug, PartialEq)]
    enum Failure {
        Passing(Option<u64>),
        Final,
        Told,
    }

    impl Attempted for Failure {
        fn transient(&self) -> bool {
            matches!(self, Failure::Passing(_))
        }

        fn retry_after_s(&self) -> Option<u64> {
            match self {
                Failure::Passing(seconds) => *seconds,
                _ => None,
            }
        }

        fn stopped(&self) -> Option<Stopped> {
            (*self == Failure::Told).then_some(Stopped(Reason::MaxRuntime))
        }
    }

    const POLICY: RetryPolicy = RetryPolicy { retries: 3, wait_first: Duration::from_secs(1), wait_max: Duration::from_secs(60) };

    fn attempt_all(clock: &mut FakeClock, answers: Vec<Result<u8, Failure>>) -> (Result<u8, RetryEnd<Failure>>, Vec<u32>) {
        let mut answers = answers.into_iter();
        let mut told = Vec::new();
        let end =
            run(&POLICY, clock, &Stop::new(), &mut Random::seeded(7), &mut |_: &Failure, _, attempt| told.push(attempt), |_| {
                answers.next().expect("one attempt too many")
            });
        (end, told)
    }

    #[test]
    fn the_bound_of_the_wait_doubles_up_to_the_cap() {
        let seconds: Vec<u64> = (1..=9).map(|attempt| POLICY.wait(attempt, None, 1.0).as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    }

    #[test]
    fn jitter_is_full() {
        assert_eq!(POLICY.wait(3, None, 0.0), Duration::ZERO);
        assert_eq!(POLICY.wait(3, None, 0.5), Duration::from_secs(2));
    }

    #[test]
    fn retry_after_is_the_least_and_is_capped() {
        assert_eq!(POLICY.wait(1, Some(30), 1.0), Duration::from_secs(30));
        assert_eq!(POLICY.wait(1, Some(30), 0.0), Duration::from_secs(30));
        assert_eq!(POLICY.wait(6, Some(3), 1.0), Duration::from_secs(32));
        assert_eq!(POLICY.wait(1, Some(u64::MAX), 0.0), Duration::from_secs(60));
    }

    #[test]
    fn no_input_makes_the_wait_panic_or_pass_the_cap() {
        let endless = RetryPolicy { retries: u32::MAX, wait_first: Duration::MAX, wait_max: Duration::MAX };
        for policy in [POLICY, endless] {
            for attempt in [0, 1, 32, u32::MAX] {
                for random in [-1.0, 0.0, 0.999, 2.0, f64::NAN, f64::INFINITY] {
                    assert!(policy.wait(attempt, Some(1), random) <= policy.wait_max);
                }
            }
        }
    }

    #[test]
    fn a_passing_failure_is_tried_again() {
        let mut clock = FakeClock::default();
        let (end, told) = attempt_all(&mut clock, vec![Err(Failure::Passing(None)), Err(Failure::Passing(Some(9))), Ok(1)]);
        assert_eq!(end, Ok(1));
        assert_eq!(told, [1, 2]);
        assert!(clock.waits[0] < Duration::from_secs(1));
        assert_eq!(clock.waits[1], Duration::from_secs(9));
    }

    #[test]
    fn it_gives_up_after_the_retries_with_the_last_failure() {
        let mut clock = FakeClock::default();
        let answers = (1..=4).map(|n| Err(Failure::Passing(Some(n)))).collect();
        let (end, told) = attempt_all(&mut clock, answers);
        assert_eq!(end, Err(RetryEnd::GaveUp { last: Failure::Passing(Some(4)), attempts: 4 }));
        assert_eq!(told, [1, 2, 3]);
        assert_eq!(clock.waits.len(), 3);
    }

    #[test]
    fn a_final_failure_is_not_tried_again() {
        let mut clock = FakeClock::default();
        let (end, told) = attempt_all(&mut clock, vec![Err(Failure::Final)]);
        assert_eq!(end, Err(RetryEnd::GaveUp { last: Failure::Final, attempts: 1 }));
        assert!(told.is_empty() && clock.waits.is_empty());
    }

    #[test]
    fn a_stop_within_an_attempt_ends_the_loop() {
        let (end, _) = attempt_all(&mut FakeClock::default(), vec![Err(Failure::Told)]);
        assert_eq!(end, Err(RetryEnd::Stopped(Stopped(Reason::MaxRuntime))));
    }

    #[test]
    fn a_stop_within_a_wait_ends_the_loop() {
        let mut clock = FakeClock { stop_in_wait: Some(2), ..FakeClock::default() };
        let answers = vec![Err(Failure::Passing(None)), Err(Failure::Passing(None))];
        let (end, told) = attempt_all(&mut clock, answers);
        assert_eq!(end, Err(RetryEnd::Stopped(Stopped(Reason::Signal("SIGTERM")))));
        assert_eq!(told, [1, 2]);
    }

    #[test]
    fn nothing_is_attempted_once_a_stop_is_requested() {
        let stop = Stop::new();
        stop.ask();
        let mut attempts = 0;
        let end: Result<(), RetryEnd<Failure>> =
            run(&POLICY, &mut FakeClock::default(), &stop, &mut Random::seeded(7), &mut |_, _, _| (), |_| {
                attempts += 1;
                Ok(())
            });
        assert!(matches!(end, Err(RetryEnd::Stopped(_))));
        assert_eq!(attempts, 0);
    }

    #[test]
    fn a_stop_that_comes_with_a_passing_failure_is_not_announced_as_a_retry() {
        let stop = Stop::new();
        let end: Result<(), RetryEnd<Failure>> =
            run(&POLICY, &mut FakeClock::default(), &stop, &mut Random::seeded(7), &mut |_, _, _| panic!("announced"), |_| {
                stop.ask();
                Err(Failure::Passing(None))
            });
        assert!(matches!(end, Err(RetryEnd::Stopped(_))));
    }

    #[test]
    fn fractions_stay_within_bounds_differ_and_follow_the_seed() {
        let draw = |seed| {
            let mut random = Random::seeded(seed);
            (0..1000).map(|_| random.fraction()).collect::<Vec<f64>>()
        };
        let drawn = draw(0);
        assert!(drawn.iter().all(|fraction| (0.0..1.0).contains(fraction)));
        let mean = drawn.iter().sum::<f64>() / 1000.0;
        assert!((0.4..0.6).contains(&mean), "mean {mean}");
        assert_eq!(draw(42), draw(42));
        assert_ne!(draw(42), draw(43));
        assert!((0.0..1.0).contains(&Random::from_process().fraction()));
    }
}
