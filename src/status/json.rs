//! The status of sources as one JSON object on one line, whole and unshortened. Its keys are published.

use super::Report;
use crate::error::Error;
use crate::report::{push_raw, push_text};
use crate::store::{Inventory, LastRun, Overview, Problem};

/// The object, without a line end.
pub(super) fn object(report: &Report) -> String {
    let sources: Vec<String> = report.sources.iter().map(|overview| source(report, overview)).collect();
    let mut out = String::from("{");
    push_text(&mut out, "db", Some(&report.db));
    push_text(&mut out, "at", Some(&report.now.text()));
    push_or_null(&mut out, "max_age_s", report.max_age_s);
    push_raw(&mut out, "sources", format!("[{}]", sources.join(",")));
    push_raw(&mut out, "exit_code", report.status().code());
    push_text(&mut out, "error", report.error.as_ref().map(Error::to_string).as_deref());
    out.push('}');
    out
}

fn source(report: &Report, overview: &Overview) -> String {
    let mut out = String::from("{");
    push_text(&mut out, "source", Some(&overview.source));
    push_text(&mut out, "watermark", Some(&overview.watermark));
    push_or_null(&mut out, "watermark_age_s", report.watermark_age_s(overview));
    push_text(&mut out, "clock", overview.clock.as_deref());
    push_raw(&mut out, "records", overview.records);
    push_raw(&mut out, "tombstones", overview.tombstones);
    push_raw(&mut out, "problems", overview.problems);
    push_or_null(&mut out, "latest_problem", overview.latest_problem.as_ref().map(problem));
    push_or_null(&mut out, "last_run", overview.last_run.as_ref().map(run));
    push_text(&mut out, "last_success_at", overview.last_success_at.as_deref());
    push_or_null(&mut out, "last_success_age_s", overview.last_success_at.as_deref().and_then(|at| report.now.age_s(at)));
    push_or_null(&mut out, "stale", report.is_stale(overview));
    push_or_null(&mut out, "last_reconcile", overview.inventory.as_ref().map(|inventory| reconcile(report, inventory)));
    out.push('}');
    out
}

fn problem(problem: &Problem) -> String {
    let mut out = String::from("{");
    push_text(&mut out, "place", Some(&problem.place));
    push_text(&mut out, "why", Some(&problem.why));
    push_text(&mut out, "first_seen", Some(&problem.first_seen));
    push_text(&mut out, "last_seen", Some(&problem.last_seen));
    push_raw(&mut out, "attempts", problem.attempts);
    out.push('}');
    out
}

fn run(run: &LastRun) -> String {
    let mut out = String::from("{");
    push_text(&mut out, "started_at", Some(&run.started_at));
    push_text(&mut out, "ended_at", run.ended_at.as_deref());
    push_text(&mut out, "outcome", run.outcome.as_deref());
    push_or_null(&mut out, "exit_code", run.exit_code);
    push_raw(&mut out, "new", run.new);
    push_raw(&mut out, "updated", run.updated);
    push_raw(&mut out, "unchanged", run.unchanged);
    push_raw(&mut out, "deleted", run.deleted);
    push_raw(&mut out, "skipped", run.skipped);
    push_raw(&mut out, "reconciled", run.reconciled);
    push_text(&mut out, "error", run.error.as_deref());
    out.push('}');
    out
}

fn reconcile(report: &Report, inventory: &Inventory) -> String {
    let mut out = String::from("{");
    push_text(&mut out, "at", Some(&inventory.at));
    push_or_null(&mut out, "age_s", report.now.age_s(&inventory.at));
    push_raw(&mut out, "new", inventory.new);
    push_raw(&mut out, "updated", inventory.updated);
    push_raw(&mut out, "deleted", inventory.deleted);
    push_or_null(&mut out, "gap", inventory.gap);
    out.push('}');
    out
}

fn push_or_null(out: &mut String, name: &str, value: Option<impl std::fmt::Display>) {
    match value {
        Some(value) => push_raw(out, name, value),
        None => push_raw(out, name, "null"),
    }
}
