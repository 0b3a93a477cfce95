//! The command `status`: how each source of a store stands, for people and for monitoring.
//!
//! One look at one moment of the store, also while a harvest writes to it. Nothing is written, asked or locked: whether a run without an
//! end is still under way cannot be told without the lock, which a harvest could miss then.

mod age;
mod json;
mod table;

use time::OffsetDateTime;

use crate::cli::StatusSettings;
use crate::error::Error;
use crate::exit::ExitStatus;
use crate::findings::Paint;
use crate::http::escape_outside_text;
use crate::store::{Overview, Store};
use crate::watermark::FIRST;
use age::Now;

/// How far a success may be ahead of our clock.
const AHEAD_SECONDS_MAX: i64 = 86_400;
/// Characters of a source that are shown, and of a list of them.
const SOURCE_CHARS_MAX: usize = 1_000;

/// What was found.
#[derive(Debug)]
pub struct Report {
    db: String,
    now: Now,
    /// Whole seconds that a success may be old.
    max_age_s: Option<u64>,
    sources: Vec<Overview>,
    /// What the command ends with.
    pub error: Option<Error>,
}

/// Looks at the store. `now` is what ages are told from.
#[must_use]
pub fn run(settings: &StatusSettings, now: OffsetDateTime) -> Report {
    let mut report = Report {
        db: settings.db.display().to_string(),
        now: Now::of(now),
        max_age_s: settings.max_age.map(|limit| limit.as_secs()),
        sources: Vec::new(),
        error: None,
    };
    match look(settings) {
        Ok(sources) => {
            report.sources = sources;
            report.error = report.stale_sources();
        }
        Err(error) => report.error = Some(error),
    }
    report
}

/// The end of a command that did not come to run.
#[must_use]
pub fn not_run(error: Error, now: OffsetDateTime) -> Report {
    Report { db: String::new(), now: Now::of(now), max_age_s: None, sources: Vec::new(), error: Some(error) }
}

/// The refusal of a `--source` that names nothing.
pub(crate) fn unknown_source(source: &str, db: &std::path::Path) -> Error {
    let source = escape_outside_text(source, SOURCE_CHARS_MAX);
    Error::Usage(format!("--source {source}: the store {} has no such source; status without --source lists them", db.display()))
}

fn look(settings: &StatusSettings) -> Result<Vec<Overview>, Error> {
    let store = Store::open_existing(&settings.db)?;
    let sources = store.snapshot()?.overviews(settings.source.as_deref())?;
    match &settings.source {
        Some(source) if sources.is_empty() => Err(unknown_source(source, &settings.db)),
        _ => Ok(sources),
    }
}

impl Report {
    /// The exit status.
    #[must_use]
    pub fn status(&self) -> ExitStatus {
        self.error.as_ref().map_or(ExitStatus::Ok, Error::exit_status)
    }

    /// The table for people, with the line end; empty when the store could not be read.
    #[must_use]
    pub fn text(&self, paint: Paint) -> String {
        match self.error {
            None | Some(Error::Stale(_)) => table::text(self, paint),
            Some(_) => String::new(),
        }
    }

    /// One JSON object on one line, without the line end.
    #[must_use]
    pub fn json(&self) -> String {
        json::object(self)
    }

    /// Seconds since the watermark; `None` while it is none, or where it is no time.
    fn watermark_age_s(&self, overview: &Overview) -> Option<i64> {
        if overview.watermark == FIRST {
            return None;
        }
        overview.watermark_at.map(|at| self.now.age_of(at)).or_else(|| self.now.age_s(&overview.watermark))
    }

    /// Whether a source breaks `--max-age`; `None` without it.
    fn is_stale(&self, overview: &Overview) -> Option<bool> {
        let limit = i64::try_from(self.max_age_s?).unwrap_or(i64::MAX);
        let age = overview.last_success_at.as_deref().and_then(|at| self.now.age_s(at));
        // A success that is yet to come was written by a clock that was wrong, and says nothing.
        Some(age.is_none_or(|age| age > limit || age < -AHEAD_SECONDS_MAX))
    }

    /// A store in which no source ever began has had no success either.
    fn stale_sources(&self) -> Option<Error> {
        let limit = self.max_age_s?;
        let stale: Vec<&str> =
            self.sources.iter().filter(|one| self.is_stale(one) == Some(true)).map(|one| one.source.as_str()).collect();
        if self.sources.is_empty() {
            return Some(Error::Stale(format!("no source was ever harvested into {}", self.db)));
        }
        let named = escape_outside_text(&stale.join(", "), SOURCE_CHARS_MAX);
        let told = format!("no success within {limit} s, as --max-age wants, of {} of {} sources", stale.len(), self.sources.len());
        (!stale.is_empty()).then(|| Error::Stale(format!("{told}: {named}")))
    }
}
