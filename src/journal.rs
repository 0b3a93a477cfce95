//! The log: to stderr, one line an event.
//!
//! `RUST_LOG` sets the level (default info). Where stderr is the journal, lines carry its priorities and no time of their own; on a
//! terminal the level of what wants attention is coloured. Whatever `RUST_LOG` says, the crates that see credentials never log below info.
//! A panic is an event like others.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;

use env_logger::Target;
use log::{Level, LevelFilter};

use crate::clock::{Clock, SystemClock};
use crate::http::escape_outside_text;
use crate::progress::{above_the_bar, on_terminal};

/// Crates that would show requests with their headers at debug or trace.
const CAPPED: [&str; 4] = ["ureq", "ureq_proto", "rustls", "rustls_platform_verifier"];
/// The longest line: journald cuts at 48 KiB.
const LINE_CHARS_MAX: usize = 16_000;

/// How a line begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Face {
    /// With its priority, as sd-daemon(3) reads it.
    Journal,
    /// With time and level, in colours.
    Coloured,
    /// With time and level.
    Plain,
}

/// Sets the logger up; the first call wins.
pub fn init() {
    let face = face();
    let mut builder = env_logger::Builder::new();
    builder.filter_level(LevelFilter::Info);
    if let Ok(filters) = std::env::var("RUST_LOG") {
        builder.parse_filters(&filters);
    }
    builder.target(Target::Pipe(Box::new(Stderr)));
    builder.format(move |out, record| {
        // Not by a filter of the crate's name, which `RUST_LOG=ureq::unversioned=trace` would overrule.
        if record.level() > Level::Warn && is_capped(record.target()) {
            return Ok(());
        }
        // A line break would begin a line that is no event, or looks like another one.
        let text = escape_outside_text(&record.args().to_string(), LINE_CHARS_MAX);
        writeln!(out, "{}{text}", beginning(face, record.level(), &SystemClock.now_text()))
    });
    if builder.try_init().is_ok() {
        std::panic::set_hook(Box::new(|panic| tell_panic(&panic.to_string())));
    }
}

/// As std tells of it, in lines of the log; the trace where `RUST_BACKTRACE` wants it.
fn tell_panic(panic: &str) {
    log::error!("{}", panic.replace('\n', " "));
    let trace = Backtrace::capture();
    if trace.status() == BacktraceStatus::Captured {
        trace.to_string().lines().for_each(|line| log::error!("{line}"));
    }
}

fn face() -> Face {
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    match std::env::var("JOURNAL_STREAM") {
        Ok(stream) if stderr_identity().is_ok_and(|identity| identity == stream) => Face::Journal,
        _ if on_terminal() && !no_color => Face::Coloured,
        _ => Face::Plain,
    }
}

/// Device and inode of stderr, as systemd.exec(5) writes them into `JOURNAL_STREAM`: a stderr that was redirected is not the journal.
fn stderr_identity() -> io::Result<String> {
    let stderr = File::from(io::stderr().as_fd().try_clone_to_owned()?).metadata()?;
    Ok(format!("{}:{}", stderr.dev(), stderr.ino()))
}

fn beginning(face: Face, level: Level, now: &str) -> String {
    match face {
        Face::Journal => format!("<{}>", priority(level)),
        Face::Coloured => match colour(level) {
            "" => format!("{now} {level:5} "),
            colour => format!("{now} \x1b[{colour}m{level:5}\x1b[0m "),
        },
        Face::Plain => format!("{now} {level:5} "),
    }
}

/// Bold, and readable on white as on black, which yellow is not. What wants no attention has none.
const fn colour(level: Level) -> &'static str {
    match level {
        Level::Error => "1;31",
        Level::Warn => "1;35",
        Level::Info | Level::Debug | Level::Trace => "",
    }
}

fn is_capped(target: &str) -> bool {
    CAPPED.contains(&target.split("::").next().unwrap_or_default())
}

/// The syslog priority of a level, as sd-daemon(3) reads it.
const fn priority(level: Level) -> u8 {
    match level {
        Level::Error => 3,
        Level::Warn => 4,
        Level::Info => 6,
        Level::Debug | Level::Trace => 7,
    }
}

/// stderr, with the progress bar out of the way.
struct Stderr;

impl Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        above_the_bar(|| io::stderr().write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::process::{Command, Stdio};

    const CHILD: &str = "CSW_HARVESTER_TEST_JOURNAL";
    const NOW: &str = "2026-07-09T22:14:07Z";

    /// What this file's test of that name writes to stderr in a process of its own, with `JOURNAL_STREAM` naming stderr or another stream.
    fn in_a_child(folder: &Path, off_by: u64) -> String {
        let path = folder.join("stderr");
        let stderr = File::create(&path).unwrap();
        let data = stderr.metadata().unwrap();
        let name = "journal::tests::where_stderr_is_the_journal_each_event_is_one_line_with_its_priority";
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--test-threads=1", "-q", "--nocapture"])
            .env(CHILD, "1")
            .env("RUST_LOG", "trace")
            .env_remove("RUST_BACKTRACE")
            .env("JOURNAL_STREAM", format!("{}:{}", data.dev(), data.ino() + off_by))
            .stdout(Stdio::null())
            .stderr(stderr)
            .status()
            .unwrap();
        assert!(status.success());
        std::fs::read_to_string(path).unwrap()
    }

    #[test]
    fn where_stderr_is_the_journal_each_event_is_one_line_with_its_priority() {
        if std::env::var(CHILD).is_ok() {
            init();
            log::error!("one");
            log::warn!("two\n<0>not an event of its own\r\n");
            log::info!("three");
            log::debug!("four");
            log::trace!("five");
            log::debug!(target: "ureq::unversioned", "never");
            let _ = std::thread::spawn(|| panic!("six\nseven")).join();
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let written = in_a_child(folder.path(), 0);
        let lines: Vec<&str> = written.lines().collect();
        let expected = ["<3>one", "<4>two\\n<0>not an event of its own\\r\\n", "<6>three", "<7>four", "<7>five"];
        assert_eq!(lines[..5], expected, "{written}");
        assert!(lines.len() == 6 && lines[5].starts_with("<3>") && lines[5].ends_with(": six seven"), "{written}");
        assert!(lines[5].contains("src/journal.rs"), "{written}");

        let elsewhere = in_a_child(folder.path(), 1);
        assert!(elsewhere.lines().all(|line| line.starts_with("20") && !line.contains("\x1b")), "{elsewhere}");
        assert_eq!(elsewhere.lines().count(), 6, "{elsewhere}");
    }

    #[test]
    fn only_what_wants_attention_is_coloured() {
        let line = |face, level| beginning(face, level, NOW);
        assert_eq!(line(Face::Coloured, Level::Error), format!("{NOW} \x1b[1;31mERROR\x1b[0m "));
        assert_eq!(line(Face::Coloured, Level::Warn), format!("{NOW} \x1b[1;35mWARN \x1b[0m "));
        for level in [Level::Info, Level::Debug, Level::Trace] {
            assert_eq!(line(Face::Coloured, level), line(Face::Plain, level));
        }
        assert_eq!(line(Face::Plain, Level::Error), format!("{NOW} ERROR "));
    }
}
