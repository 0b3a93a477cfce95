//! What a run has to say at its end: counters, the last log line, the JSON summary.
//!
//! Text only; where it goes is for `main.rs`. The wording of the last line and the keys of the summary are published.

use std::fmt::Write;

use crate::dialect::Clock;
use crate::exit::ExitStatus;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Everything in the window was read.
    Complete,
    /// It was cut off, and what was read is kept.
    Partial,
    /// Another run holds the lock.
    Skipped,
    /// It failed.
    Failed,
}

impl Outcome {
    /// As it stands in the summary and in `runs`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Outcome::Complete => "complete",
            Outcome::Partial => "partial",
            Outcome::Skipped => "skipped",
            Outcome::Failed => "failed",
        }
    }
}

/// What was counted in a run. A record that was read twice counts once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Records that the store did not have.
    pub new: u64,
    /// Records whose content differed.
    pub updated: u64,
    /// Records that were as the store had them.
    pub unchanged: u64,
    /// Records that became tombstones.
    pub deleted: u64,
    /// Elements and positions that could not be had: without identifier, not well formed, refused by the catalogue.
    pub skipped: u64,
    /// `numberOfRecordsMatched` of the window, when it was told.
    pub matched: Option<u64>,
    /// HTTP requests, attempts included.
    pub requests: u64,
    /// Attempts after the first.
    pub retries: u64,
    /// Bytes of bodies, decompressed.
    pub bytes: u64,
}

impl Counters {
    /// Records that came and could be had.
    #[must_use]
    pub const fn came(&self) -> u64 {
        self.new.saturating_add(self.updated).saturating_add(self.unchanged)
    }

    /// What the catalogue answered, in one log line: `12 records came, 12 matched; 2 requests, 34567 bytes`.
    #[must_use]
    pub fn answer_line(&self) -> String {
        let matched = self.matched.map_or("how many match was not told".to_owned(), |matched| format!("{matched} matched"));
        let counted = |count: u64, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        let (came, requests) = (counted(self.came(), "record"), counted(self.requests, "request"));
        format!("{came} came, {matched}; {requests}, {} bytes", self.bytes)
    }
}

/// The end of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The source.
    pub source: String,
    /// How it ended.
    pub outcome: Outcome,
    /// The exit status.
    pub status: ExitStatus,
    /// What went wrong.
    pub error: Option<String>,
    /// The counters.
    pub counters: Counters,
    /// Seconds from start to end.
    pub duration_s: f64,
    /// The watermark before.
    pub watermark_before: Option<String>,
    /// The watermark now.
    pub watermark: Option<String>,
    /// The clock of the source.
    pub clock: Clock,
    /// Whether everything that the catalogue holds was compared with the store.
    pub reconciled: bool,
}

impl Summary {
    /// The last log line of a complete run.
    #[must_use]
    pub fn complete_line(&self) -> String {
        let Counters { new, updated, deleted, unchanged, .. } = self.counters;
        format!(
            "Harvest complete: {} records ({new} new, {updated} updated, {deleted} deleted, {unchanged} unchanged), watermark now {}",
            new + updated,
            self.watermark.as_deref().unwrap_or(crate::watermark::FIRST)
        )
    }

    /// The summary as one JSON object on one line, without the line end.
    #[must_use]
    pub fn json(&self) -> String {
        let c = &self.counters;
        let mut out = String::from("{");
        push_text(&mut out, "source", Some(&self.source));
        push_text(&mut out, "outcome", Some(self.outcome.as_str()));
        push_raw(&mut out, "exit_code", self.status.code());
        push_text(&mut out, "error", self.error.as_deref());
        push_raw(&mut out, "new", c.new);
        push_raw(&mut out, "updated", c.updated);
        push_raw(&mut out, "unchanged", c.unchanged);
        push_raw(&mut out, "deleted", c.deleted);
        push_raw(&mut out, "skipped", c.skipped);
        push_raw(&mut out, "matched", c.matched.map_or("null".to_owned(), |matched| matched.to_string()));
        push_raw(&mut out, "requests", c.requests);
        push_raw(&mut out, "retries", c.retries);
        push_raw(&mut out, "bytes", c.bytes);
        push_raw(&mut out, "duration_s", format!("{:.3}", self.duration_s));
        push_text(&mut out, "watermark_before", self.watermark_before.as_deref());
        push_text(&mut out, "watermark", self.watermark.as_deref());
        push_text(&mut out, "clock", Some(self.clock.as_str()));
        push_raw(&mut out, "reconciled", self.reconciled);
        out.push('}');
        out
    }
}

fn push_name(out: &mut String, name: &str) {
    if !out.ends_with('{') {
        out.push(',');
    }
    push_json_text(out, name);
    out.push(':');
}

/// A member of a JSON object that is under way, its value as it is.
pub fn push_raw(out: &mut String, name: &str, value: impl std::fmt::Display) {
    push_name(out, name);
    let _ = write!(out, "{value}");
}

/// A member of a JSON object that is under way: a text, or null.
pub fn push_text(out: &mut String, name: &str, value: Option<&str>) {
    push_name(out, name);
    match value {
        Some(text) => push_json_text(out, text),
        None => out.push_str("null"),
    }
}

/// A JSON string (RFC 8259, section 7), quotes included.
pub fn push_json_text(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if u32::from(c) < 0x20 || c == '\u{7f}' || c == '\u{2028}' || c == '\u{2029}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary() -> Summary {
        Summary {
            source: "http://a/csw".to_owned(),
            outcome: Outcome::Complete,
            status: ExitStatus::Ok,
            error: None,
            counters: Counters { new: 10, updated: 2, unchanged: 3, matched: Some(15), requests: 2, ..Counters::default() },
            duration_s: 1.25,
            watermark_before: Some("2026-07-08T00:00:00Z".to_owned()),
            watermark: Some("2026-07-09T22:14:07Z".to_owned()),
            clock: Clock::Record,
            reconciled: false,
        }
    }

    #[test]
    fn the_last_line_reads_as_published() {
        assert_eq!(
            summary().complete_line(),
            "Harvest complete: 12 records (10 new, 2 updated, 0 deleted, 3 unchanged), watermark now 2026-07-09T22:14:07Z"
        );
    }

    #[test]
    fn the_answer_is_told_with_what_it_cost() {
        let counters = summary().counters;
        assert_eq!(counters.answer_line(), "15 records came, 15 matched; 2 requests, 0 bytes");
        let untold = Counters { new: 1, requests: 1, bytes: 7, ..Counters::default() };
        assert_eq!(untold.answer_line(), "1 record came, how many match was not told; 1 request, 7 bytes");
    }

    #[test]
    fn the_json_has_all_keys_in_one_line() {
        let json = summary().json();
        assert_eq!(
            json,
            concat!(
                r#"{"source":"http://a/csw","outcome":"complete","exit_code":0,"error":null,"new":10,"updated":2,"unchanged":3,"#,
                r#""deleted":0,"skipped":0,"matched":15,"requests":2,"retries":0,"bytes":0,"duration_s":1.250,"#,
                r#""watermark_before":"2026-07-08T00:00:00Z","watermark":"2026-07-09T22:14:07Z","clock":"record","reconciled":false}"#
            )
        );
    }

    #[test]
    fn text_from_outside_cannot_break_out_of_the_json() {
        let mut out = String::new();
        push_json_text(&mut out, "a\"b\\c\n\u{1}\u{2028}\u{e9}");
        assert_eq!(out, "\"a\\\"b\\\\c\\n\\u0001\\u2028\u{e9}\"");
    }
}
