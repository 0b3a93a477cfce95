//! How the benchmark looks: two tables in Markdown on stdout, what each run cost and what that comes to.

use std::io::Write;

use crate::measure::Cost;

/// A figure and what it may be at most; `None` for one that explains another.
pub(crate) struct Figure {
    pub(crate) name: String,
    pub(crate) value: f64,
    pub(crate) most: Option<f64>,
    pub(crate) unit: Unit,
}

/// How a figure is written.
#[derive(Clone, Copy)]
pub(crate) enum Unit {
    /// A ratio as it is.
    Times,
    /// A ratio as one part of so many.
    Part,
    Count,
    Milliseconds,
    Mebibytes,
    Megabytes,
}

impl Unit {
    fn written(self, value: f64) -> String {
        match self {
            Unit::Times => format!("{value:.2}"),
            Unit::Part => format!("1/{:.1}", 1.0 / value),
            Unit::Count => format!("{value:.0}"),
            Unit::Milliseconds => format!("{value:.1} ms"),
            Unit::Mebibytes => format!("{value:.1} MiB"),
            Unit::Megabytes => format!("{value:.1} MB"),
        }
    }
}

/// Whether figures are held against their bounds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Judging {
    Yes,
    /// The catalogue is too small, or the build not the one that is released.
    No,
}

pub(crate) fn say(line: &str) {
    // A reader that went away is no reason to stop half-way.
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// On stderr, so that the tables can be kept without it.
pub(crate) fn progress(name: &str, cost: Cost) {
    let _ = writeln!(std::io::stderr(), "{:.3} s of CPU, {:.3} s: {name}", cost.cpu_s, cost.wall_s);
}

pub(crate) fn head_of_costs() {
    say("");
    say("| run | CPU s | wall s | peak MiB | requests |");
    say("| --- | --: | --: | --: | --: |");
}

pub(crate) fn cost(name: &str, cost: Cost, requests: Option<u64>) {
    let requests = requests.map_or_else(String::new, |requests| requests.to_string());
    say(&format!("| {name} | {:.3} | {:.3} | {:.1} | {requests} |", cost.cpu_s, cost.wall_s, cost.rss_mib));
}

/// Says of each figure whether it is within its bound, and of all together.
pub(crate) fn figures(figures: &[Figure], judging: Judging) {
    say("");
    say("| figure | value | at most | |");
    say("| --- | --: | --: | --- |");
    let (mut met, mut missed) = (0, 0);
    for Figure { name, value, most, unit } in figures {
        let holds = most.map(|most| *value <= most);
        met += usize::from(holds == Some(true));
        missed += usize::from(holds == Some(false));
        let verdict = match (judging, holds) {
            (Judging::No, _) | (_, None) => "",
            (Judging::Yes, Some(true)) => "met",
            (Judging::Yes, Some(false)) => "MISSED",
        };
        let most = most.map_or_else(String::new, |most| unit.written(most));
        say(&format!("| {name} | {} | {most} | {verdict} |", unit.written(*value)));
    }
    say("");
    match judging {
        Judging::Yes => say(&format!("{met} of {} bounds met, {missed} missed", met + missed)),
        Judging::No => say("a smaller scale, or not an optimised build: the bounds are not for this"),
    }
}
