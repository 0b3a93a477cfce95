//! The status of sources as a table for people, 80 columns wide: a block a source, a finding a line.
//!
//! Whatever comes from the store is escaped and shortened here; all of it is in the JSON.

use super::age::ago;
use super::{Report, SOURCE_CHARS_MAX};
use crate::exit::ExitStatus;
use crate::findings::{Finding, Mark, Paint, table};
use crate::http::escape_outside_text;
use crate::store::{Inventory, LastRun, Overview};
use crate::watermark::FIRST;

/// Characters of a message that are shown: four lines or so.
const MESSAGE_CHARS_MAX: usize = 240;
/// Characters of a stamp or a time.
const STAMP_CHARS_MAX: usize = 60;

/// All sources, and a line that counts them where there are several.
pub(super) fn text(report: &Report, paint: Paint) -> String {
    if report.sources.is_empty() {
        return format!("No source was harvested into {} yet.\n", escape_outside_text(&report.db, SOURCE_CHARS_MAX));
    }
    let mut out = String::new();
    let mut worst = Vec::new();
    for overview in &report.sources {
        let findings = findings(report, overview);
        worst.extend(findings.iter().map(|finding| finding.mark).max());
        out.push_str(&paint.heading(&escape_outside_text(&overview.source, SOURCE_CHARS_MAX)));
        out.push('\n');
        out.push_str(&table(&findings, paint));
        out.push('\n');
    }
    match worst.len() {
        1 => out.truncate(out.trim_end_matches('\n').len() + 1),
        all => {
            let count = |mark| (worst.iter().filter(|one| **one == mark).count(), mark);
            let counts = [Mark::Ok, Mark::Odd, Mark::Bad].map(count);
            let told = counts.iter().filter(|(count, _)| *count > 0);
            let told: Vec<String> = told.map(|(count, mark)| paint.marked(&format!("{count} {}", mark.as_str()), *mark)).collect();
            out.push_str(&format!("{all} sources: {}\n", told.join(", ")));
        }
    }
    out
}

fn findings(report: &Report, overview: &Overview) -> Vec<Finding> {
    let found = |finding, (mark, text)| Finding { finding, mark, text };
    vec![
        found("watermark", watermark(report, overview)),
        found("records", records(overview)),
        found("last run", last_run(report, overview.last_run.as_ref())),
        found("last success", last_success(report, overview)),
        found("last reconcile", last_reconcile(report, overview.inventory.as_ref())),
        found("problems", problems(report, overview)),
    ]
}

fn watermark(report: &Report, overview: &Overview) -> (Mark, String) {
    let shown = escape_outside_text(&overview.watermark, STAMP_CHARS_MAX);
    if overview.watermark == FIRST {
        return match overview.last_success_at {
            None => (Mark::Odd, "none yet: the first harvest is not complete".to_owned()),
            Some(_) => (Mark::Odd, "none yet: no stamp was settled".to_owned()),
        };
    }
    match report.watermark_age_s(overview) {
        Some(age) => (Mark::Ok, format!("{shown}, {}", ago(age))),
        None => (Mark::Ok, shown),
    }
}

fn records(overview: &Overview) -> (Mark, String) {
    let tombstones = match overview.tombstones {
        0 => "no tombstones".to_owned(),
        count => counted(count, "tombstone"),
    };
    (Mark::Ok, format!("{}, {tombstones}", counted(overview.records, "record")))
}

fn last_run(report: &Report, run: Option<&LastRun>) -> (Mark, String) {
    let Some(run) = run else { return (Mark::Odd, "none is remembered".to_owned()) };
    let (Some(outcome), Some(ended_at)) = (&run.outcome, &run.ended_at) else {
        let began = since(report, &run.started_at);
        return (Mark::Odd, format!("began {began} and has not ended: under way, or killed"));
    };
    let code = run.exit_code.unwrap_or_default();
    let mark = match (run.exit_code, outcome.as_str()) {
        (Some(0), "complete") => Mark::Ok,
        (Some(code), _) if code == i64::from(ExitStatus::TempFail.code()) => Mark::Odd,
        _ => Mark::Bad,
    };
    let name = ExitStatus::ALL.iter().find(|status| i64::from(status.code()) == code).map(|status| format!(" {}", status.name()));
    let ended = since(report, ended_at);
    let outcome = escape_outside_text(outcome, STAMP_CHARS_MAX);
    let error = run.error.as_deref().map(|error| escape_outside_text(error, MESSAGE_CHARS_MAX));
    let told: Vec<String> = changes(run).into_iter().chain(error).collect();
    let told = if told.is_empty() { "nothing was new".to_owned() } else { told.join("; ") };
    (mark, format!("{outcome}, exit {code}{}, {ended}: {told}", name.unwrap_or_default()))
}

fn changes(run: &LastRun) -> Option<String> {
    let LastRun { new, updated, deleted, unchanged, skipped, .. } = *run;
    let counts = [(new, "new"), (updated, "updated"), (deleted, "deleted"), (unchanged, "unchanged"), (skipped, "skipped")];
    let told = counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{} {what}", grouped(*count)));
    let told: Vec<String> = told.collect();
    (!told.is_empty()).then(|| told.join(", "))
}

fn last_success(report: &Report, overview: &Overview) -> (Mark, String) {
    let Some(at) = &overview.last_success_at else { return (Mark::Bad, "never".to_owned()) };
    let told = format!("{}, at {}", since(report, at), escape_outside_text(at, STAMP_CHARS_MAX));
    match (report.is_stale(overview), report.max_age_s) {
        (Some(true), Some(limit)) => (Mark::Bad, format!("{told}; --max-age allows {limit} s")),
        _ => (Mark::Ok, told),
    }
}

fn last_reconcile(report: &Report, inventory: Option<&Inventory>) -> (Mark, String) {
    let Some(inventory) = inventory else { return (Mark::Odd, "never: what the catalogue dropped is not known".to_owned()) };
    let ago = since(report, &inventory.at);
    let Inventory { new, updated, deleted, .. } = inventory;
    let found = match new + updated + deleted {
        0 => "it found nothing amiss".to_owned(),
        _ => format!("it found {} new, {} updated, {} deleted", grouped(*new), grouped(*updated), grouped(*deleted)),
    };
    (Mark::Ok, format!("{ago}: {found}"))
}

fn problems(report: &Report, overview: &Overview) -> (Mark, String) {
    if overview.problems == 0 {
        return (Mark::Ok, "none".to_owned());
    }
    let mut text = format!("{} open", grouped(overview.problems));
    if let Some(problem) = &overview.latest_problem {
        let seen = since(report, &problem.last_seen);
        let place = escape_outside_text(&problem.place, MESSAGE_CHARS_MAX / 2);
        let why = escape_outside_text(&problem.why, MESSAGE_CHARS_MAX);
        text.push_str(&format!(", the last one met {seen}: {place}: {why}"));
    }
    (Mark::Odd, text)
}

/// How long ago, or the time as it stands where it cannot be read.
fn since(report: &Report, at: &str) -> String {
    escape_outside_text(&report.now.ago(at), STAMP_CHARS_MAX)
}

/// `1,284 records`.
fn counted(count: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// Digits in groups of three.
fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::new();
    for (number, digit) in digits.chars().enumerate() {
        if number > 0 && (digits.len() - number).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::age::Now;
    use crate::store::Problem;
    use time::macros::datetime;

    fn report(sources: Vec<Overview>, max_age_s: Option<u64>) -> Report {
        let now = Now::of(datetime!(2026-07-10 01:00:00 UTC));
        Report { db: "harvest_state.db".to_owned(), now, max_age_s, sources, error: None }
    }

    fn well(source: &str) -> Overview {
        let at = |text: &str| Some(text.to_owned());
        Overview {
            source: source.to_owned(),
            watermark: "2026-07-09T22:14:07Z".to_owned(),
            watermark_at: None,
            clock: at("record"),
            last_success_at: at("2026-07-10T00:56:00Z"),
            records: 1_284,
            tombstones: 12,
            problems: 0,
            latest_problem: None,
            last_run: Some(LastRun {
                started_at: "2026-07-10T00:55:58Z".to_owned(),
                ended_at: at("2026-07-10T00:56:00Z"),
                outcome: at("complete"),
                exit_code: Some(0),
                new: 2,
                updated: 1,
                ..LastRun::default()
            }),
            inventory: Some(Inventory { at: "2026-07-08T00:00:00Z".to_owned(), gap: Some(0), deleted: 3, ..Inventory::default() }),
        }
    }

    #[test]
    fn a_source_that_is_well_reads_as_published() {
        let expected = "\
https://demo.pycsw.org/gisdata/csw
watermark        ok  2026-07-09T22:14:07Z, 2 hours ago
records          ok  1,284 records, 12 tombstones
last run         ok  complete, exit 0 OK, 4 minutes ago: 2 new, 1 updated
last success     ok  4 minutes ago, at 2026-07-10T00:56:00Z
last reconcile   ok  2 days ago: it found 0 new, 0 updated, 3 deleted
problems         ok  none
";
        assert_eq!(text(&report(vec![well("https://demo.pycsw.org/gisdata/csw")], Some(240)), Paint::Plain), expected);
    }

    #[test]
    fn what_is_not_well_is_marked_and_said() {
        let mut failed = well("a");
        failed.problems = 1_002;
        let (place, why) = ("position 17\u{1b}[2J".to_owned(), "HTTP 500".to_owned());
        let (first_seen, last_seen) = ("2026-07-01T00:00:00Z".to_owned(), "2026-07-10T00:59:30Z".to_owned());
        failed.latest_problem = Some(Problem { place, why, first_seen, last_seen, attempts: 3 });
        failed.last_run = Some(LastRun {
            outcome: Some("failed".to_owned()),
            exit_code: Some(69),
            error: Some("no connection to a.example:\nrefused".to_owned()),
            new: 0,
            updated: 0,
            ..failed.last_run.unwrap()
        });
        let mut begun = Overview { source: "b".to_owned(), watermark: FIRST.to_owned(), ..Overview::default() };
        begun.last_run = Some(LastRun { started_at: "2026-07-10T00:57:00Z".to_owned(), ..LastRun::default() });
        let expected = "\
a
watermark        ok  2026-07-09T22:14:07Z, 2 hours ago
records          ok  1,284 records, 12 tombstones
last run         bad failed, exit 69 UNAVAILABLE, 4 minutes ago: no connection
                     to a.example:\\nrefused
last success     bad 4 minutes ago, at 2026-07-10T00:56:00Z; --max-age allows
                     239 s
last reconcile   ok  2 days ago: it found 0 new, 0 updated, 3 deleted
problems         odd 1,002 open, the last one met 30 seconds ago: position
                     17\\u{1b}[2J: HTTP 500

b
watermark        odd none yet: the first harvest is not complete
records          ok  0 records, no tombstones
last run         odd began 3 minutes ago and has not ended: under way, or killed
last success     bad never
last reconcile   odd never: what the catalogue dropped is not known
problems         ok  none

2 sources: 2 bad
";
        assert_eq!(text(&report(vec![failed, begun], Some(239)), Paint::Plain), expected);
    }

    #[test]
    fn a_run_that_was_cut_off_is_odd_and_any_other_end_is_bad() {
        let mark = |outcome: &str, exit_code| {
            let run = LastRun {
                outcome: Some(outcome.to_owned()),
                exit_code: Some(exit_code),
                ended_at: Some(String::new()),
                ..LastRun::default()
            };
            last_run(&report(Vec::new(), None), Some(&run)).0
        };
        assert_eq!(
            (mark("complete", 0), mark("partial", 75), mark("partial", 69), mark("failed", 99)),
            (Mark::Ok, Mark::Odd, Mark::Bad, Mark::Bad)
        );
    }

    #[test]
    fn no_text_of_the_store_reaches_the_terminal_as_it_is_or_at_any_length() {
        let wild = format!("\u{1b}]0;x\u{7}\n{}", "y".repeat(100_000));
        let some = || Some(wild.clone());
        let run = LastRun { started_at: wild.clone(), ended_at: some(), outcome: some(), error: some(), ..LastRun::default() };
        let problem =
            Problem { place: wild.clone(), why: wild.clone(), first_seen: wild.clone(), last_seen: wild.clone(), attempts: 1 };
        let all = Overview {
            source: wild.clone(),
            watermark: wild.clone(),
            last_success_at: some(),
            problems: 1,
            latest_problem: Some(problem),
            last_run: Some(run),
            inventory: Some(Inventory { at: wild.clone(), ..Inventory::default() }),
            ..Overview::default()
        };
        let begun = Overview { last_run: Some(LastRun { started_at: wild.clone(), ..LastRun::default() }), ..all.clone() };
        let told = text(&report(vec![all, begun], Some(1)), Paint::Plain);
        assert!(told.len() < 10_000 && told.chars().all(|c| c == '\n' || !c.is_control()), "{} bytes", told.len());
    }

    #[test]
    fn an_empty_store_says_so() {
        assert_eq!(text(&report(Vec::new(), None), Paint::Plain), "No source was harvested into harvest_state.db yet.\n");
    }

    #[test]
    fn digits_are_grouped() {
        assert_eq!([0, 12, 123, 1_234, 123_456, 1_234_567].map(grouped), ["0", "12", "123", "1,234", "123,456", "1,234,567"]);
    }
}
