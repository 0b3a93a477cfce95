//! Pages that are written and not yet committed.
//!
//! Each commit writes most of the index by identifiers anew, so pages that come quickly one after the other share one. Nothing else is
//! waited for while pages wait: before a question whose answer is not here, and however a reading ends, they are committed. What a kill
//! takes with them is their cursor too, so that they are read again. A catalogue that was slow has each page committed while it thinks
//! about the next, until it is quick again.

use std::time::Duration;

use time::OffsetDateTime;

use super::Harvest;
use crate::catalogue::{Answer, Failure};
use crate::csw::Query;
use crate::error::Error;
use crate::store::{BUSY_PAUSE, PageCounts, RecordWrite};

/// How long an answer may let itself be waited for that is to find pages uncommitted.
const PROMPT: Duration = Duration::from_millis(4);
/// At the most so many pages and bytes of records wait, and for so long, looked at between two pages: what a killed run has to read again
/// is that much work, and others who write to the store wait not much longer.
const WAITING_PAGES_MAX: u64 = 50;
const WAITING_BYTES_MAX: usize = 8 << 20;
const WAITING_TIME_MAX: Duration = Duration::from_millis(50);
/// After that the store is left to others for longer than the pause between two of their attempts.
const BREATH: Duration = BUSY_PAUSE.saturating_add(Duration::from_millis(1));

/// Pages that are written and not committed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Waiting {
    pages: u64,
    bytes: usize,
    since: Option<OffsetDateTime>,
    counts: PageCounts,
    skipped: u64,
}

impl Waiting {
    pub(super) fn add(&mut self, counts: PageCounts, skipped: u64, records: &[RecordWrite<'_>], now: OffsetDateTime) {
        self.pages += 1;
        self.bytes += records.iter().map(|record| record.xml.len()).sum::<usize>();
        self.since.get_or_insert(now);
        self.counts.join(counts);
        self.skipped += skipped;
    }

    pub(super) fn skipped(self) -> u64 {
        self.skipped
    }

    fn is_enough(self, now: OffsetDateTime) -> bool {
        let long = self.since.is_some_and(|since| now - since >= WAITING_TIME_MAX);
        long || self.pages >= WAITING_PAGES_MAX || self.bytes >= WAITING_BYTES_MAX
    }
}

impl Harvest<'_> {
    /// The answer to a page, before which all that waits is committed, unless the answer is here soon.
    pub(super) fn answer_to(&mut self, query: &Query) -> Result<Result<Answer, Failure>, Error> {
        if self.waiting.is_enough(self.time.now()) {
            self.commit_pages()?;
            self.time.pause(BREATH, self.stop)?;
        } else {
            let within = if self.prompt { PROMPT } else { Duration::ZERO };
            if let Some(answer) = self.answered(query, within) {
                return Ok(Ok(answer));
            }
            self.commit_pages()?;
        }
        let answer = self.answered(query, PROMPT);
        self.prompt = answer.is_some();
        Ok(answer.map_or_else(|| self.get_records(query, self.patience), Ok))
    }

    fn answered(&mut self, query: &Query, within: Duration) -> Option<Answer> {
        self.catalogue.answered(self.dialect.as_ref()?, query, within)
    }

    /// Commits the pages that were written; only then do they count.
    pub(super) fn commit_pages(&mut self) -> Result<(), Error> {
        let Waiting { pages, counts, skipped, .. } = std::mem::take(&mut self.waiting);
        self.store.commit_pages()?;
        self.pages += pages;
        self.counters.skipped += skipped;
        self.count(counts);
        Ok(())
    }
}
