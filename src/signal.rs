//! Whether the run was told to stop: by a signal, or by its own limit on time.
//!
//! Everything that waits or loops holds a [`Stop`] and looks at it. What stopping means (which work is kept, which exit code) is
//! left to the caller. Nothing here interrupts anything, and a handler only stores a number: the store is safe against sudden death
//! anyway.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;

const NONE: usize = 0;
const TERM: usize = 1;
const INT: usize = 2;

/// Why a run should end before its work is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A signal came; its name, such as `SIGTERM`.
    Signal(&'static str),
    /// `--max-runtime` is over.
    MaxRuntime,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Signal(name) => write!(f, "{name} was received"),
            Reason::MaxRuntime => f.write_str("the limit of --max-runtime is reached"),
        }
    }
}

/// A wait or a piece of work ended because the run was told to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped(pub Reason);

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stopped: {}", self.0)
    }
}

impl std::error::Error for Stopped {}

/// The request to stop. Clones share the signal; each has its own deadline.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    signal: Arc<AtomicUsize>,
    // Set when the signal was seen by the run, not when it came: a terminal and a wrapper that both pass on one ^C must not count
    // as two.
    seen: Arc<AtomicBool>,
    deadline: Option<Instant>,
}

impl Stop {
    /// One that no signal reaches.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// One that SIGTERM and SIGINT set, also in a process with the number 1, where the kernel drops signals without a handler.
    ///
    /// A second signal, after the first was noticed by [`Stop::requested`], has its default action: the process dies at once. A file
    /// that grows beyond what `ulimit -f` allows kills the process no more: the write fails, and that is told.
    ///
    /// # Errors
    /// The handlers could not be installed.
    pub fn on_signals() -> io::Result<Self> {
        let stop = Self::new();
        for (signal, number) in [(SIGTERM, TERM), (SIGINT, INT)] {
            flag::register_conditional_default(signal, Arc::clone(&stop.seen))?;
            flag::register_usize(signal, Arc::clone(&stop.signal), number)?;
        }
        // Any handler takes the place of death.
        flag::register(SIGXFSZ, Arc::default())?;
        Ok(stop)
    }

    /// The same with a limit on time.
    #[must_use]
    pub fn with_deadline(self, deadline: Instant) -> Self {
        Self { deadline: Some(deadline), ..self }
    }

    /// Asks as SIGTERM would; reaches all clones.
    pub fn ask(&self) {
        self.signal.store(TERM, Ordering::SeqCst);
    }

    /// Whether to stop, and why. A signal goes before the deadline.
    #[must_use]
    pub fn requested(&self) -> Option<Reason> {
        let name = match self.signal.load(Ordering::SeqCst) {
            NONE => None,
            INT => Some("SIGINT"),
            _ => Some("SIGTERM"),
        };
        if let Some(name) = name {
            self.seen.store(true, Ordering::SeqCst);
            return Some(Reason::Signal(name));
        }
        self.deadline.filter(|deadline| Instant::now() >= *deadline).map(|_| Reason::MaxRuntime)
    }

    /// The same as a result, for `?`.
    ///
    /// # Errors
    /// [`Stopped`] when a stop was requested.
    pub fn check(&self) -> Result<(), Stopped> {
        self.requested().map_or(Ok(()), |reason| Err(Stopped(reason)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, ExitStatus};
    use std::time::Duration;

    const CHILD: &str = "CSW_HARVESTER_TEST_SIGNALS";

    /// Runs the named test of this file again in a process of its own, which knows itself by the variable.
    fn in_a_child(test: &str, signals: &str) -> ExitStatus {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &format!("signal::tests::{test}"), "--test-threads=1", "-q"])
            .env(CHILD, signals)
            .output()
            .unwrap()
            .status
    }

    #[test]
    fn a_new_one_asks_for_nothing() {
        assert_eq!(Stop::new().requested(), None);
        assert_eq!(Stop::new().check(), Ok(()));
    }

    #[test]
    fn asking_reaches_clones_and_goes_before_the_deadline() {
        let stop = Stop::new();
        let clone = stop.clone().with_deadline(Instant::now());
        assert_eq!(clone.requested(), Some(Reason::MaxRuntime));
        stop.ask();
        assert_eq!(clone.check(), Err(Stopped(Reason::Signal("SIGTERM"))));
    }

    #[test]
    fn a_deadline_to_come_asks_for_nothing_yet() {
        let stop = Stop::new().with_deadline(Instant::now() + Duration::from_secs(3600));
        assert_eq!(stop.requested(), None);
    }

    #[test]
    fn a_signal_is_told_by_name_even_when_it_comes_twice_before_it_is_seen() {
        let Ok(wanted) = std::env::var(CHILD) else {
            assert!(in_a_child("a_signal_is_told_by_name_even_when_it_comes_twice_before_it_is_seen", "SIGTERM").success());
            assert!(in_a_child("a_signal_is_told_by_name_even_when_it_comes_twice_before_it_is_seen", "SIGINT").success());
            return;
        };
        let stop = Stop::on_signals().unwrap();
        let number = if wanted == "SIGINT" { SIGINT } else { SIGTERM };
        signal_hook::low_level::raise(number).unwrap();
        signal_hook::low_level::raise(number).unwrap();
        let name = if wanted == "SIGINT" { "SIGINT" } else { "SIGTERM" };
        assert_eq!(stop.requested(), Some(Reason::Signal(name)));
    }

    #[test]
    fn a_signal_after_one_that_was_seen_kills() {
        if std::env::var(CHILD).is_err() {
            let status = in_a_child("a_signal_after_one_that_was_seen_kills", "both");
            assert_eq!(status.signal(), Some(SIGINT));
            return;
        }
        let stop = Stop::on_signals().unwrap();
        signal_hook::low_level::raise(SIGTERM).unwrap();
        assert!(stop.requested().is_some());
        signal_hook::low_level::raise(SIGINT).unwrap();
    }
}
