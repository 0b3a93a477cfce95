//! Reads answers of catalogues for `tests/real/steps/corpus.py`: names of files on stdin, one JSON object a line on stdout.
//!
//! `{"path", "error"}` for a file that is no GetRecordsResponse, else `{"path", "error": null, "matched", "next", "records"}`, each record
//! with `identifier`, `title`, `modified`, `flaw` (null where there is none) and `xml`. What the right values are is left to the step.

#![allow(clippy::print_stdout, reason = "stdout is what this is for")]

use std::fmt::Write as _;
use std::process::ExitCode;

use csw_harvester::csw::response::{Record, SearchResults, parse};

/// An answer that is larger is none.
const BODY_BYTES_MAX: u64 = 64 << 20;

fn main() -> ExitCode {
    for line in std::io::stdin().lines() {
        match line {
            Ok(path) => println!("{}", told(&path)),
            Err(_) => return ExitCode::FAILURE,
        }
    }
    ExitCode::SUCCESS
}

fn told(path: &str) -> String {
    let mut out = format!("{{\"path\": {}", text(Some(path)));
    match read(path) {
        Ok(results) => {
            let number = |number: Option<String>| number.unwrap_or("null".to_owned());
            let matched = number(results.matched.map(|matched| matched.to_string()));
            let next = number(results.next_record.map(|next| next.to_string()));
            let records: Vec<String> = results.records.iter().map(record).collect();
            let records = records.join(", ");
            let _ = write!(out, ", \"error\": null, \"matched\": {matched}, \"next\": {next}, \"records\": [{records}]}}");
        }
        Err(why) => {
            let _ = write!(out, ", \"error\": {}}}", text(Some(&why)));
        }
    }
    out
}

fn read(path: &str) -> Result<SearchResults, String> {
    let size = std::fs::metadata(path).map_err(|error| error.to_string())?.len();
    if size > BODY_BYTES_MAX {
        return Err(format!("{size} bytes"));
    }
    let body = std::fs::read(path).map_err(|error| error.to_string())?;
    parse(&body, None).map_err(|error| error.to_string())
}

fn record(record: Record<'_>) -> String {
    format!(
        "{{\"identifier\": {}, \"title\": {}, \"modified\": {}, \"flaw\": {}, \"xml\": {}}}",
        text(record.identifier),
        text(record.title),
        text(record.modified),
        text(record.flaw),
        text(Some(record.xml))
    )
}

/// RFC 8259, 7.
fn text(value: Option<&str>) -> String {
    let Some(value) = value else { return "null".to_owned() };
    let mut out = String::from("\"");
    for c in value.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c < ' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
