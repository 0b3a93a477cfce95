//! What monitoring is told of a run, as text of Prometheus' exposition format (version 0.0.4).
//!
//! Text only; where it goes is for `publish.rs`. The names, labels and help texts are published: the README's table is compared with
//! [`METRICS`] by a test. A help text never depends on the run, since node_exporter wants it the same in the files of all sources.
//! What is not known is left out: a 0 would be a claim.

use std::fmt::{Display, Write};

use crate::report::Summary;
use crate::timestamp;
use crate::watermark::FIRST;

/// Microseconds a second.
const MICROS: f64 = 1_000_000.0;

/// One metric. All are gauges: what is told of one run may be less in the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Its full name.
    pub name: &'static str,
    /// Its labels, in the order in which they are written.
    pub labels: &'static [&'static str],
    /// What it means, in one line without backslashes.
    pub help: &'static str,
}

const fn metric(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, labels, help }
}

const SOURCE: &[&str] = &["source"];
// With `source`, or the files of two sources would hold one series twice.
const BUILD_INFO: Metric =
    metric("csw_harvester_build_info", &["source", "version"], "1, with the version of csw-harvester as a label.");
const ENDED: Metric =
    metric("csw_harvester_last_run_timestamp_seconds", SOURCE, "When the last run ended, whatever its end, in seconds since 1970.");
const DURATION: Metric = metric("csw_harvester_last_run_duration_seconds", SOURCE, "How long the last run took.");
const EXIT_CODE: Metric = metric("csw_harvester_last_run_exit_code", SOURCE, "The exit code of the last run.");
const SUCCESS: Metric = metric("csw_harvester_last_run_success", SOURCE, "1 if the last run was complete (exit code 0), else 0.");
const RESULTS: Metric = metric(
    "csw_harvester_last_run_records",
    &["source", "result"],
    "Records of the last run: new, updated, unchanged, deleted, or skipped because they could not be had.",
);
const MATCHED: Metric =
    metric("csw_harvester_last_run_matched_records", SOURCE, "How many records the catalogue said would match in the last run.");
const REQUESTS: Metric =
    metric("csw_harvester_last_run_requests", SOURCE, "HTTP requests of the last run, repeated ones included.");
const RETRIES: Metric = metric("csw_harvester_last_run_retries", SOURCE, "Requests of the last run that were repeated ones.");
const BYTES: Metric =
    metric("csw_harvester_last_run_response_bytes", SOURCE, "Bytes of answers in the last run, after decompression.");
const LAST_SUCCESS: Metric = metric(
    "csw_harvester_last_success_timestamp_seconds",
    SOURCE,
    "When the last complete run ended, in seconds since 1970; kept when later runs fail.",
);
const WATERMARK: Metric = metric("csw_harvester_watermark_timestamp_seconds", SOURCE, "The watermark, in seconds since 1970.");
const RECORDS: Metric = metric("csw_harvester_records", SOURCE, "Records that the store holds.");
const PROBLEMS: Metric = metric("csw_harvester_problems", SOURCE, "Open problems: records and positions that could not be had.");
const INVENTORY: Metric = metric(
    "csw_harvester_last_inventory_timestamp_seconds",
    SOURCE,
    "When the last complete inventory ended, in seconds since 1970.",
);

/// All metrics, in the order in which they are written.
pub const METRICS: [Metric; 15] = [
    BUILD_INFO,
    ENDED,
    DURATION,
    EXIT_CODE,
    SUCCESS,
    RESULTS,
    MATCHED,
    REQUESTS,
    RETRIES,
    BYTES,
    LAST_SUCCESS,
    WATERMARK,
    RECORDS,
    PROBLEMS,
    INVENTORY,
];

/// What the store holds of the source. Times are texts that [`timestamp::parse`] may be able to read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    /// The watermark.
    pub watermark: Option<String>,
    /// When the last complete inventory ended.
    pub inventory_at: Option<String>,
    /// Records.
    pub records: u64,
    /// Open problems.
    pub problems: u64,
}

/// All that is told at the end of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot<'a> {
    /// The run. Its source is the label.
    pub summary: &'a Summary,
    /// When it ended, in seconds since 1970.
    pub ended_s: f64,
    /// When the last complete run ended, in seconds since 1970; `None` when there was none, or it is not known.
    pub last_success_s: Option<f64>,
    /// What the store holds; `None` when it could not be read.
    pub stored: Option<Stored>,
}

impl Snapshot<'_> {
    /// The text, every line of it ended.
    #[must_use]
    pub fn text(&self) -> String {
        let counters = &self.summary.counters;
        let mut page = Page { out: String::new(), source: escaped(&self.summary.source) };
        page.series(&BUILD_INFO, &[(Some(env!("CARGO_PKG_VERSION")), 1)]);
        page.value(&ENDED, Some(self.ended_s));
        page.value(&DURATION, Some(self.summary.duration_s));
        page.value(&EXIT_CODE, Some(self.summary.status.code()));
        page.value(&SUCCESS, Some(u8::from(self.summary.status.code() == 0)));
        page.series(
            &RESULTS,
            &[
                (Some("new"), counters.new),
                (Some("updated"), counters.updated),
                (Some("unchanged"), counters.unchanged),
                (Some("deleted"), counters.deleted),
                (Some("skipped"), counters.skipped),
            ],
        );
        page.value(&MATCHED, counters.matched);
        page.value(&REQUESTS, Some(counters.requests));
        page.value(&RETRIES, Some(counters.retries));
        page.value(&BYTES, Some(counters.bytes));
        page.value(&LAST_SUCCESS, self.last_success_s);
        if let Some(stored) = &self.stored {
            // Before the first harvest is complete there is no watermark yet, only the year 1970.
            page.value(&WATERMARK, stored.watermark.as_deref().filter(|text| *text != FIRST).and_then(seconds_of));
            page.value(&RECORDS, Some(stored.records));
            page.value(&PROBLEMS, Some(stored.problems));
            page.value(&INVENTORY, stored.inventory_at.as_deref().and_then(seconds_of));
        }
        page.out
    }
}

/// Seconds since 1970 of a stamp, if it can be read.
#[must_use]
pub fn seconds_of(stamp: &str) -> Option<f64> {
    // Exact to the microsecond for thousands of years to come.
    timestamp::parse(stamp).map(|interval| interval.nominal as f64 / MICROS)
}

/// The last success that an earlier text tells of this source, in seconds since 1970.
#[must_use]
pub fn last_success_in(text: &str, source: &str) -> Option<f64> {
    let series = format!("{}{{source=\"{}\"}} ", LAST_SUCCESS.name, escaped(source));
    let value = text.lines().find_map(|line| line.strip_prefix(&series))?;
    value.trim().parse::<f64>().ok().filter(|seconds| seconds.is_finite())
}

/// The source that an earlier text is about.
#[must_use]
pub fn source_in(text: &str) -> Option<String> {
    let start = format!("{}{{source=\"", ENDED.name);
    let value = text.lines().find_map(|line| line.strip_prefix(&start))?;
    let mut source = String::new();
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => return (!source.is_empty()).then_some(source),
            '\\' => source.push(match chars.next()? {
                'n' => '\n',
                other => other,
            }),
            c => source.push(c),
        }
    }
    None
}

/// The text as it grows, and the escaped label that every series has.
struct Page {
    out: String,
    source: String,
}

impl Page {
    fn value(&mut self, metric: &Metric, value: Option<impl Display>) {
        if let Some(value) = value {
            self.series(metric, &[(None, value)]);
        }
    }

    /// The series of one metric: the value of its second label, if it has one, and its own value.
    fn series(&mut self, metric: &Metric, series: &[(Option<&str>, impl Display)]) {
        let Metric { name, labels, help } = metric;
        let _ = writeln!(self.out, "# HELP {name} {help}\n# TYPE {name} gauge");
        for (second, value) in series {
            let _ = write!(self.out, "{name}{{source=\"{}\"", self.source);
            for (label, value) in labels.iter().skip(1).zip(second.iter()) {
                let _ = write!(self.out, ",{label}=\"{}\"", escaped(value));
            }
            let _ = writeln!(self.out, "}} {value}");
        }
    }
}

/// A label's value as it stands between its quotes.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::dialect::Clock;
    use crate::exit::ExitStatus;
    use crate::report::{Counters, Outcome};

    const NASTY: &str = "http://a/csw?x=\"1\"&y=\\2\n\\n";

    fn summary(source: &str) -> Summary {
        Summary {
            source: source.to_owned(),
            outcome: Outcome::Partial,
            status: ExitStatus::TempFail,
            error: Some("stopped".to_owned()),
            counters: Counters {
                new: 10,
                updated: 2,
                unchanged: 3,
                deleted: 4,
                skipped: 5,
                matched: Some(24),
                requests: 7,
                retries: 1,
                bytes: 99,
            },
            duration_s: 1.25,
            watermark_before: None,
            watermark: None,
            clock: Clock::Record,
            reconciled: false,
        }
    }

    fn full(summary: &Summary) -> Snapshot<'_> {
        let text = |text: &str| Some(text.to_owned());
        Snapshot {
            summary,
            ended_s: 1_783_635_250.5,
            last_success_s: Some(1_783_635_247.0),
            stored: Some(Stored {
                watermark: text("2026-07-09T22:14:07.25Z"),
                inventory_at: text("2026-07-09T22:14:07Z"),
                records: 34_000,
                problems: 6,
            }),
        }
    }

    fn parsed(text: &str) -> prometheus_parse::Scrape {
        prometheus_parse::Scrape::parse(text.lines().map(|line| Ok(line.to_owned()))).unwrap()
    }

    fn names(text: &str) -> BTreeSet<String> {
        parsed(text).samples.into_iter().map(|sample| sample.metric).collect()
    }

    #[test]
    fn a_parser_of_the_format_reads_back_every_value() {
        let summary = summary("http://a/csw");
        let scrape = parsed(&full(&summary).text());
        let read = |name: &str, result: Option<&str>| {
            let mut found = scrape.samples.iter().filter(|sample| sample.metric == name && sample.labels.get("result") == result);
            let sample = found.next().unwrap_or_else(|| panic!("{name} {result:?}"));
            assert!(found.next().is_none(), "{name} {result:?} stands twice");
            assert_eq!(sample.labels.get("source"), Some("http://a/csw"), "{name}");
            match sample.value {
                prometheus_parse::Value::Gauge(value) => value,
                ref other => panic!("{name} is no gauge: {other:?}"),
            }
        };
        for (name, value) in [
            ("csw_harvester_build_info", 1.0),
            ("csw_harvester_last_run_timestamp_seconds", 1_783_635_250.5),
            ("csw_harvester_last_run_duration_seconds", 1.25),
            ("csw_harvester_last_run_exit_code", 75.0),
            ("csw_harvester_last_run_success", 0.0),
            ("csw_harvester_last_run_matched_records", 24.0),
            ("csw_harvester_last_run_requests", 7.0),
            ("csw_harvester_last_run_retries", 1.0),
            ("csw_harvester_last_run_response_bytes", 99.0),
            ("csw_harvester_last_success_timestamp_seconds", 1_783_635_247.0),
            ("csw_harvester_watermark_timestamp_seconds", 1_783_635_247.25),
            ("csw_harvester_records", 34_000.0),
            ("csw_harvester_problems", 6.0),
            ("csw_harvester_last_inventory_timestamp_seconds", 1_783_635_247.0),
        ] {
            assert_eq!(read(name, None), value, "{name}");
        }
        for (result, value) in [("new", 10.0), ("updated", 2.0), ("unchanged", 3.0), ("deleted", 4.0), ("skipped", 5.0)] {
            assert_eq!(read("csw_harvester_last_run_records", Some(result)), value, "{result}");
        }
        assert_eq!(scrape.samples.len(), 14 + 5);
    }

    #[test]
    fn what_is_written_is_the_list_and_each_name_is_explained_once_and_first() {
        let summary = summary("s");
        let text = full(&summary).text();
        let listed: BTreeSet<String> = METRICS.iter().map(|metric| metric.name.to_owned()).collect();
        assert_eq!(names(&text), listed);
        for Metric { name, labels, help } in METRICS {
            let of_it: Vec<&str> = text.lines().filter(|line| line.split([' ', '{']).any(|word| word == name)).collect();
            assert_eq!(of_it[..2], [format!("# HELP {name} {help}"), format!("# TYPE {name} gauge")]);
            assert!(of_it.len() > 2 && of_it[2..].iter().all(|line| line.starts_with(name)), "{of_it:?}");
            let written = parsed(&text).samples.into_iter().filter(|sample| sample.metric == name);
            let expected: BTreeSet<String> = labels.iter().map(|label| (*label).to_owned()).collect();
            for sample in written {
                assert_eq!(sample.labels.keys().cloned().collect::<BTreeSet<String>>(), expected, "{name}");
            }
        }
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        let mut summary = summary("s");
        summary.counters.matched = None;
        let nothing = Snapshot { last_success_s: None, stored: None, ..full(&summary) };
        let left: BTreeSet<String> = names(&full(&summary).text()).difference(&names(&nothing.text())).cloned().collect();
        let of_store = [LAST_SUCCESS, WATERMARK, RECORDS, PROBLEMS, INVENTORY].map(|metric| metric.name.to_owned());
        assert_eq!(left, BTreeSet::from(of_store));
        assert!(!nothing.text().contains(MATCHED.name));
        for unreadable in [None, Some("soon"), Some(FIRST)] {
            let stored = Stored { watermark: unreadable.map(str::to_owned), records: 1, ..Stored::default() };
            let text = Snapshot { stored: Some(stored), ..full(&summary) }.text();
            assert!(!text.contains(WATERMARK.name) && text.contains("csw_harvester_records{source=\"s\"} 1\n"), "{text}");
        }
    }

    #[test]
    fn the_help_does_not_depend_on_the_run() {
        let (one, other) = (summary("one"), summary("two"));
        let explained = |text: &str| text.lines().filter(|line| line.starts_with('#')).map(str::to_owned).collect::<Vec<_>>();
        let changed = Snapshot { ended_s: 1.0, ..full(&other) };
        assert_eq!(explained(&full(&one).text()), explained(&changed.text()));
    }

    #[test]
    fn success_is_exit_code_0_alone() {
        for status in ExitStatus::ALL {
            let summary = Summary { status, ..summary("s") };
            let line = format!("csw_harvester_last_run_success{{source=\"s\"}} {}\n", u8::from(status == ExitStatus::Ok));
            assert!(full(&summary).text().contains(&line), "{status:?}");
        }
    }

    #[test]
    fn source_and_last_success_are_found_again_whatever_the_source_is_called() {
        for source in ["s", "http://a/csw", NASTY] {
            let summary = summary(source);
            let text = full(&summary).text();
            assert_eq!(source_in(&text).as_deref(), Some(source));
            assert_eq!(last_success_in(&text, source), Some(1_783_635_247.0));
            assert_eq!(last_success_in(&text, "another"), None);
            assert!(parsed(&text).samples.len() == 19, "{text}");
        }
        for other in [
            "",
            "x 1\n",
            "csw_harvester_last_run_timestamp_seconds{source=\"a\\",
            "csw_harvester_last_run_timestamp_seconds{source=\"\"} 1",
        ] {
            assert_eq!((source_in(other), last_success_in(other, "a")), (None, None), "{other}");
        }
        let text = "csw_harvester_last_success_timestamp_seconds{source=\"a\"} NaN\n";
        assert_eq!(last_success_in(text, "a"), None);
    }
}
