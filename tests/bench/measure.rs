//! What a program costs: it is run by a small process of its own, since only of all children together can a process ask what they cost.
//!
//! CPU is user and system time of the program and of all that it started, wall time is from its start to its end, memory is its peak
//! of resident pages. The small process is this program, called with `measure`.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Instant;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

/// Of the environment, what would send requests elsewhere.
const PROXIES: [&str; 6] = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];

/// What a run cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    pub(crate) cpu_s: f64,
    pub(crate) wall_s: f64,
    pub(crate) rss_mib: f64,
}

impl Cost {
    /// The least of several runs, each figure by itself; of memory the most.
    pub(crate) fn least(self, other: Cost) -> Cost {
        Cost { cpu_s: self.cpu_s.min(other.cpu_s), wall_s: self.wall_s.min(other.wall_s), rss_mib: self.rss_mib.max(other.rss_mib) }
    }
}

/// Runs a program to its end. Returns what it cost and what it wrote to stdout.
///
/// # Panics
/// It failed.
pub(crate) fn run(program: &OsStr, arguments: &[&OsStr]) -> (Cost, String) {
    let this = std::env::current_exe().expect("a path to this program");
    let mut command = Command::new(this);
    command.arg("measure").arg(program).args(arguments).stdin(Stdio::null()).stderr(Stdio::inherit());
    for name in PROXIES {
        command.env_remove(name);
    }
    let output = command.output().expect("this program again");
    assert!(output.status.success(), "{} {arguments:?} failed", program.display());
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let (first, rest) = text.split_once('\n').expect("a line of figures");
    let figures: Vec<f64> = first.split(' ').map(|figure| figure.parse().expect("a figure")).collect();
    (Cost { cpu_s: figures[0], wall_s: figures[1], rss_mib: figures[2] }, rest.to_owned())
}

/// The small process: a line of figures, then what the program wrote. Its log is thrown away.
pub(crate) fn measure(mut arguments: impl Iterator<Item = OsString>) {
    let mut command = Command::new(arguments.next().expect("a program"));
    command.args(arguments).stdin(Stdio::null()).stderr(Stdio::piped());
    let began = Instant::now();
    let output = command.output().expect("a program that can be run");
    let wall = began.elapsed().as_secs_f64();
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("the usage of a child");
    let cpu_us = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    let mut stdout = std::io::stdout();
    writeln!(stdout, "{:.6} {wall:.6} {:.3}", cpu_us as f64 / 1e6, usage.max_rss() as f64 / 1024.0).expect("a parent that reads");
    stdout.write_all(&output.stdout).expect("a parent that reads");
    if !output.status.success() {
        let _ = std::io::stderr().write_all(&output.stderr);
        std::process::exit(1);
    }
}

/// CPU seconds of this process so far.
pub(crate) fn cpu_of_self() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("the usage of this process");
    (usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as f64 / 1e6
}
