//! Pages that are written and not yet committed.
//!
//! Each commit writes most of the index by identifiers anew, so pages that come quickly one after the other share one. Nothing else is
//! waited for while pages wait: before a question whose answer is not here, and however a reading ends, they are committed. What a kill
//! takes with them is their cursor too, so that they are read again. A catalogue that was slow has each page committed while it thinks
//! about the next, until it is quick again.

use std::time::Duration;

use super::Harvest;
use crate::catalogue::{Answer, Failure};
use crate::csw::Query;
use crate::error::Error;
use crate::store::{PageCounts, RecordWrite};

/// How long an answer may let itself be waited for that is to find pages uncommitted.
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
    /// The answer to a page, before which all that waits is committed, unless the answer is here soon.
    pub(super) fn answer_to(&mut self, query: &Query) -> Result<Result<Answer, Failure>, Error> {
        if !self.waiting.is_enough() {
            let within = if self.prompt { PROMPT } else { Duration::ZERO };
            if let Some(answer) = self.answered(query, within) {
                return Ok(Ok(answer));
            }
        }
        self.commit_pages()?;
        let answer = self.answered(query, PROMPT);
        self.prompt = answer.is_some();
        Ok(answer.map_or_else(|| self.get_records(query, self.patience), Ok))
    }

    fn answered(&mut self, query: &Query, within: Duration) -> Option<Answer> {
        self.catalogue.answered(self.dialect.as_ref()?, query, within)
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
