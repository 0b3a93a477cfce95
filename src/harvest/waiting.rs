//! Pages that are written and not yet committed.
//!
//! Each commit writes most of the index by identifiers anew, so pages that come quickly one after the other share one. Nothing else is
//! waited for while pages wait: before a question whose answer is not here, and however a reading ends, they are committed. What a kill
//! takes with them is their cursor too, so that they are read again.

use std::time::Duration;

use super::Harvest;
use crate::catalogue::Answer;
use crate::csw::Query;
use crate::error::Error;
use crate::store::{PageCounts, RecordWrite};

/// How long an answer may take that finds pages uncommitted. A catalogue that takes longer has each page committed while it thinks.
const PROMPT: Duration = Duration::from_millis(20);
/// At the most so many pages and bytes of records wait: what a killed run has to read again is a second's work.
const WAITING_PAGES_MAX: u64 = 50;
const WAITING_BYTES_MAX: usize = 8 << 20;

/// Pages that are written and not committed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Waiting {
    pages: u64,
    bytes: usize,
    counts: PageCounts,
}

impl Waiting {
    pub(super) fn add(&mut self, counts: PageCounts, records: &[RecordWrite<'_>]) {
        self.pages += 1;
        self.bytes += records.iter().map(|record| record.xml.len()).sum::<usize>();
        self.counts.join(counts);
    }

    fn is_enough(self) -> bool {
        self.pages >= WAITING_PAGES_MAX || self.bytes >= WAITING_BYTES_MAX
    }
}

impl Harvest<'_> {
    /// The answer to a page that was asked for ahead, if it is prompt and there is room for it beside what is not committed.
    pub(super) fn answered(&mut self, query: &Query) -> Option<Answer> {
        let dialect = self.dialect.as_ref().filter(|_| !self.waiting.is_enough())?;
        self.catalogue.answered(dialect, query, PROMPT)
    }

    /// Commits the pages that were written; only then do they count.
    pub(super) fn commit_pages(&mut self) -> Result<(), Error> {
        let Waiting { pages, counts, .. } = std::mem::take(&mut self.waiting);
        self.store.commit_pages()?;
        self.pages += pages;
        self.count(counts);
        Ok(())
    }
}
