//! How far a run is, for those who wait: a bar on a terminal, elsewhere a log line now and then.
//!
//! The harvest tells what it begins and what came; what is shown of it and when is decided here, by a clock that is handed in. The log
//! goes through [`above_the_bar`], so that a line does not tear the bar. No thread: the bar moves when a page came.

use std::fmt::Write;
use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::csw::{Lower, Window};
use crate::http::without_credentials;

/// A run that is over sooner shows no bar.
const BAR_AFTER: Duration = Duration::from_secs(1);
/// Between two log lines, and before the first.
const LINE_EVERY: Duration = Duration::from_secs(10);
const BAR: &str = "{bar:24} {wide_msg}";
const LIST: &str = "{wide_msg}";

/// The bar that is on the terminal: whoever writes there has to know of it.
static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// What a harvest tells on its way.
pub trait Progress {
    /// A window is going to be read.
    fn begin(&mut self, source: &str, window: &Window);

    /// A page was committed: how many records of the list came so far, and how many there are, when that was told.
    fn page(&mut self, records: u64, matched: Option<u64>);
}

/// Tells nobody.
#[derive(Clone, Copy, Debug, Default)]
pub struct Untold;

impl Progress for Untold {
    fn begin(&mut self, _: &str, _: &Window) {}

    fn page(&mut self, _: u64, _: Option<u64>) {}
}

/// What suits stderr: a bar on a terminal, unless the log is to be quiet; else log lines.
#[must_use]
pub fn of_a_run() -> Box<dyn Progress> {
    let began = Instant::now();
    let elapsed = move || began.elapsed();
    if on_terminal() && log::log_enabled!(log::Level::Info) {
        Box::new(Bar { elapsed, pace: Pace::default(), bar: None })
    } else {
        Box::new(Lines { elapsed, pace: Pace::default(), told: Duration::ZERO, tell: |line: &str| log::info!("{line}") })
    }
}

/// Whether stderr is a terminal whose cursor can be moved.
#[must_use]
pub fn on_terminal() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|kind| kind != "dumb")
}

/// Writes to the terminal with the bar out of the way.
pub fn above_the_bar<T>(write: impl FnOnce() -> T) -> T {
    let bar = shown().clone();
    match bar {
        Some(bar) => bar.suspend(write),
        None => write(),
    }
}

fn shown() -> std::sync::MutexGuard<'static, Option<ProgressBar>> {
    SHOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn tell_window(source: &str, window: &Window) {
    let source = without_credentials(source);
    match &window.lower {
        None => log::info!("{source}: reading everything"),
        Some(Lower::After(literal)) => log::info!("{source}: reading what is newer than {literal}"),
        Some(Lower::From(literal)) => log::info!("{source}: reading what is not older than {literal}"),
    }
}

/// How fast a list is read. It may be taken up where an earlier run was cut off, and a second list may follow, of an inventory.
#[derive(Clone, Copy, Debug, Default)]
struct Pace {
    /// What had come of this list with its first page in this run, and when.
    first: Option<(u64, Duration)>,
    last: u64,
}

impl Pace {
    /// Records a second since the first page; none with the first page itself.
    fn rate(&mut self, records: u64, elapsed: Duration) -> Option<f64> {
        let (from, began) = match self.first {
            Some(first) if records >= self.last => first,
            _ => *self.first.insert((records, elapsed)),
        };
        self.last = records;
        let seconds = elapsed.saturating_sub(began).as_secs_f64();
        (seconds > 0.0).then(|| records.saturating_sub(from) as f64 / seconds)
    }
}

/// A bar, or where nothing is known of the end, a line.
struct Bar<N: Fn() -> Duration> {
    elapsed: N,
    pace: Pace,
    bar: Option<ProgressBar>,
}

impl<N: Fn() -> Duration> Progress for Bar<N> {
    fn begin(&mut self, source: &str, window: &Window) {
        tell_window(source, window);
    }

    fn page(&mut self, records: u64, matched: Option<u64>) {
        let elapsed = (self.elapsed)();
        let rate = self.pace.rate(records, elapsed);
        if elapsed < BAR_AFTER {
            return;
        }
        let matched = matched.filter(|matched| *matched >= records);
        let bar = self.bar.get_or_insert_with(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            *shown() = Some(bar.clone());
            bar
        });
        if let Ok(style) = ProgressStyle::with_template(if matched.is_some() { BAR } else { LIST }) {
            bar.set_style(style.progress_chars("#-"));
        }
        match matched {
            Some(matched) => bar.set_length(matched),
            None => bar.unset_length(),
        }
        bar.set_message(told(records, matched, rate));
        bar.set_position(records);
    }
}

impl<N: Fn() -> Duration> Drop for Bar<N> {
    fn drop(&mut self) {
        if let Some(bar) = self.bar.take() {
            *shown() = None;
            bar.finish_and_clear();
        }
    }
}

/// Log lines, `LINE_EVERY` at the most.
struct Lines<N: Fn() -> Duration, T: FnMut(&str)> {
    elapsed: N,
    pace: Pace,
    /// When there was one last.
    told: Duration,
    tell: T,
}

impl<N: Fn() -> Duration, T: FnMut(&str)> Progress for Lines<N, T> {
    fn begin(&mut self, source: &str, window: &Window) {
        tell_window(source, window);
    }

    fn page(&mut self, records: u64, matched: Option<u64>) {
        let elapsed = (self.elapsed)();
        let rate = self.pace.rate(records, elapsed);
        if elapsed < self.told + LINE_EVERY {
            return;
        }
        self.told = elapsed;
        (self.tell)(&told(records, matched.filter(|matched| *matched >= records), rate));
    }
}

/// `1,200 of 34,000 records, 310 a second, 106 s left`; `matched` is no less than `records`.
fn told(records: u64, matched: Option<u64>, rate: Option<f64>) -> String {
    let mut out = grouped(records);
    if let Some(matched) = matched {
        let _ = write!(out, " of {}", grouped(matched));
    }
    out.push_str(" records");
    let Some(rate) = rate else { return out };
    let _ = if rate < 10.0 { write!(out, ", {rate:.1} a second") } else { write!(out, ", {} a second", grouped(rate as u64)) };
    if let Some(left) = matched.map(|matched| matched - records).filter(|_| rate > 0.0) {
        let _ = write!(out, ", {} left", in_words((left as f64 / rate).ceil() as u64));
    }
    out
}

/// A length of time, in the unit that leaves a number one can take in.
fn in_words(seconds: u64) -> String {
    match seconds {
        ..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{} h", seconds.div_ceil(3_600)),
    }
}

/// Digits in groups of three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn what_is_told_has_count_rate_and_time_left_where_the_end_is_known() {
        for (records, matched, rate, expected) in [
            (1_200, Some(34_000), Some(310.9), "1,200 of 34,000 records, 310 a second, 106 s left"),
            (1_200, Some(340_000), Some(300.0), "1,200 of 340,000 records, 300 a second, 19 min left"),
            (7, Some(50_000), Some(1.0), "7 of 50,000 records, 1.0 a second, 14 h left"),
            (1_234_567, None, Some(1_234.0), "1,234,567 records, 1,234 a second"),
            (5, Some(5), Some(5.0), "5 of 5 records, 5.0 a second, 0 s left"),
            (7, Some(8), Some(0.0), "7 of 8 records, 0.0 a second"),
            (7, Some(8), None, "7 of 8 records"),
            (0, None, None, "0 records"),
        ] {
            assert_eq!(told(records, matched, rate), expected);
        }
    }

    #[test]
    fn the_rate_is_that_of_this_run_and_list() {
        let mut pace = Pace::default();
        let mut rate = |records, second| pace.rate(records, seconds(second));
        // Taken up at 20,000.
        assert_eq!(rate(20_100, 5), None);
        assert_eq!(rate(20_200, 5), None);
        assert_eq!(rate(20_300, 7), Some(100.0));
        assert_eq!(rate(20_500, 9), Some(100.0));
        // The list of an inventory.
        assert_eq!(rate(50, 20), None);
        assert_eq!(rate(90, 40), Some(2.0));
    }

    #[test]
    fn a_line_comes_after_ten_seconds_and_then_every_ten_at_most() {
        let (now, lines) = (Cell::new(Duration::ZERO), RefCell::new(Vec::new()));
        let tell = |line: &str| lines.borrow_mut().push((now.get().as_secs(), line.to_owned()));
        let mut progress = Lines { elapsed: || now.get(), pace: Pace::default(), told: Duration::ZERO, tell };
        for second in 0..45 {
            now.set(seconds(second));
            progress.page(second * 100, Some(10_000));
        }
        let told: Vec<u64> = lines.borrow().iter().map(|(second, _)| *second).collect();
        assert_eq!(told, [10, 20, 30, 40]);
        assert_eq!(lines.borrow()[0].1, "1,000 of 10,000 records, 100 a second, 90 s left");
        // After a long silence one, and not those that were missed.
        for second in [100, 101, 109, 110] {
            now.set(seconds(second));
            progress.page(12_000, Some(10_000));
        }
        let told: Vec<(u64, String)> = lines.borrow()[4..].to_vec();
        assert_eq!(told, [(100, "12,000 records, 120 a second".to_owned()), (110, "12,000 records, 109 a second".to_owned())]);
    }

    #[test]
    fn a_bar_comes_after_a_second_follows_what_is_known_and_goes() {
        let now = Cell::new(Duration::ZERO);
        let mut progress = Bar { elapsed: || now.get(), pace: Pace::default(), bar: None };
        progress.page(10, Some(40));
        assert!(progress.bar.is_none() && shown().is_none());
        now.set(BAR_AFTER);
        progress.page(20, Some(40));
        let bar = progress.bar.clone().unwrap();
        assert_eq!((bar.position(), bar.length()), (20, Some(40)));
        assert_eq!(bar.message(), "20 of 40 records, 10 a second, 2 s left");
        assert!(above_the_bar(|| shown().is_some()));
        // What matched was less than what came: it says nothing of the end.
        progress.page(50, Some(40));
        assert_eq!((bar.length(), bar.message()), (None, "50 records, 40 a second".to_owned()));
        drop(progress);
        assert!(bar.is_finished() && shown().is_none());
    }
}
