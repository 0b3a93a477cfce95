//! The log: to stderr, one line an event.
//!
//! `RUST_LOG` sets the level (default info). Under journald (`JOURNAL_STREAM`) lines carry its priorities and no time of their own.
//! Whatever `RUST_LOG` says, the crates that see credentials never log below info.

use std::io::Write;

use log::{Level, LevelFilter};

use crate::clock::{Clock, SystemClock};

/// Crates that would show requests with their headers at debug or trace.
const CAPPED: [&str; 4] = ["ureq", "ureq_proto", "rustls", "rustls_platform_verifier"];

/// Sets the logger up; the first call wins.
pub fn init() {
    let under_journald = std::env::var_os("JOURNAL_STREAM").is_some();
    let mut builder = env_logger::Builder::new();
    builder.filter_level(LevelFilter::Info);
    if let Ok(filters) = std::env::var("RUST_LOG") {
        builder.parse_filters(&filters);
    }
    builder.format(move |out, record| {
        // Not by a filter of the crate's name, which `RUST_LOG=ureq::unversioned=trace` would overrule.
        if record.level() > Level::Warn && is_capped(record.target()) {
            return Ok(());
        }
        if under_journald {
            return writeln!(out, "<{}>{}", priority(record.level()), record.args());
        }
        writeln!(out, "{} {:5} {}", SystemClock.now_text(), record.level(), record.args())
    });
    let _ = builder.try_init();
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
