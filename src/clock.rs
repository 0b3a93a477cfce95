//! The time of day and waiting, behind a trait so that tests need neither.
//!
//! What to wait for and how long is decided elsewhere (`retry.rs`, `lock.rs`). A pause never outlasts a request to stop by more
//! than a moment. The local zone is never read: all times are UTC.

use std::time::{Duration, Instant};

use time::{OffsetDateTime, UtcOffset};

use crate::signal::{Stop, Stopped};

const SLICE: Duration = Duration::from_millis(100);

/// A clock that can also wait.
pub trait Clock {
    /// The time of day, UTC.
    fn now(&self) -> OffsetDateTime;

    /// Waits, unless or until a stop is requested.
    ///
    /// # Errors
    /// [`Stopped`] when a stop is requested before the wait is over, also when the wait is zero.
    fn pause(&mut self, wait: Duration, stop: &Stop) -> Result<(), Stopped>;

    /// [`Clock::now`] as [`utc_text`].
    fn now_text(&self) -> String {
        utc_text(self.now())
    }
}

/// RFC 3339 in UTC, whole seconds (cut, not rounded), with `Z`: always 20 characters, so that such texts sort as times do.
#[must_use]
pub fn utc_text(at: OffsetDateTime) -> String {
    let at = at.to_offset(UtcOffset::UTC);
    format!("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", at.year(), u8::from(at.month()), at.day(), at.hour(), at.minute(), at.second())
}

/// The clock of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> OffsetDateTime {
        OffsetDateTime::now_utc()
    }

    fn pause(&mut self, wait: Duration, stop: &Stop) -> Result<(), Stopped> {
        let started = Instant::now();
        loop {
            stop.check()?;
            let rest = wait.saturating_sub(started.elapsed());
            if rest.is_zero() {
                return Ok(());
            }
            std::thread::sleep(rest.min(SLICE));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signal::Reason;
    use time::macros::datetime;

    #[test]
    fn text_is_utc_in_whole_seconds() {
        assert_eq!(utc_text(datetime!(2026-07-09 23:14:07.999 +01:00)), "2026-07-09T22:14:07Z");
        assert_eq!(utc_text(datetime!(0987-01-02 03:04:05 UTC)), "0987-01-02T03:04:05Z");
    }

    #[test]
    fn the_system_clock_tells_a_time_that_its_text_has_too() {
        let text = SystemClock.now_text();
        assert_eq!(text.len(), 20);
        assert!(text.as_str() > "2024-01-01T00:00:00Z");
    }

    #[test]
    fn a_pause_runs_to_its_end_when_nobody_asks() {
        assert_eq!(SystemClock.pause(Duration::from_millis(1), &Stop::new()), Ok(()));
    }

    #[test]
    fn a_pause_ends_when_asked_however_long_it_is() {
        let stop = Stop::new();
        stop.ask();
        let ended = SystemClock.pause(Duration::MAX, &stop);
        assert_eq!(ended, Err(Stopped(Reason::Signal("SIGTERM"))));
    }

    #[test]
    fn a_request_from_another_thread_ends_a_pause_under_way() {
        let stop = Stop::new();
        let asker = stop.clone();
        let thread = std::thread::spawn(move || asker.ask());
        let ended = SystemClock.pause(Duration::MAX, &stop);
        thread.join().unwrap();
        assert!(ended.is_err());
    }

    #[test]
    fn a_deadline_ends_a_pause() {
        let stop = Stop::new().with_deadline(Instant::now() + Duration::from_millis(5));
        assert_eq!(SystemClock.pause(Duration::MAX, &stop), Err(Stopped(Reason::MaxRuntime)));
    }
}
