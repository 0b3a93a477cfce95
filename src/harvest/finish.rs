//! The end of a run: what it came to, whether the watermark moves, and the one transaction that writes all of it (I2).
//!
//! Nothing is asked of the catalogue any more.

use super::remembered::stored;
use super::{Ending, Harvest, Read};
use crate::catalogue::Traffic;
use crate::dialect::Clock;
use crate::error::Error;
use crate::exit::ExitStatus;
use crate::report::{Counters, Outcome};
use crate::signal::{Stop, Stopped};
use crate::store::{
    CursorEnd, FullDue, InventoryEnd, ProblemsEnd, RunCounts, RunEnd, RunId, RunOutcome, SourceState, StoreError, Watermark,
};
use crate::timestamp;
use crate::watermark::{self, Newest};

impl Harvest<'_> {
    /// The one transaction that ends the run.
    pub(super) fn finish(mut self, run: RunId, state: &SourceState, result: Result<Read, Error>) -> Result<Ending, StoreError> {
        let result = result.and_then(|read| {
            self.settle()?;
            Ok(read)
        });
        let result = result.map_err(|error| unless_stopped(error, self.stop));
        let traffic = self.catalogue.traffic();
        let Traffic { requests, retries, bytes } = traffic;
        self.counters = Counters { requests, retries, bytes, ..self.counters };
        let moved = if result.is_ok() { self.moved_watermark(state) } else { None };
        let error = result.as_ref().err().map(ToString::to_string);
        let outcome = match &result {
            Ok(_) => Outcome::Complete,
            Err(Error::Stopped(_)) => Outcome::Partial,
            Err(_) if self.pages > 0 => Outcome::Partial,
            Err(_) => Outcome::Failed,
        };
        let exit = result.as_ref().err().map_or(ExitStatus::Ok, Error::exit_status);
        let full = result.as_ref().is_ok_and(|read| read.full) && self.held.is_none();
        let mut dialect = self.dialect.clone();
        if let (Ok(_), Some(dialect)) = (&result, &mut dialect) {
            dialect.gzip &= self.catalogue.gzip();
            if !dialect.is_provisional() && stored(dialect, &self.job.base) != state.dialect {
                self.store.save_dialect(&self.job.source, &stored(dialect, &self.job.base))?;
            }
        }
        let shapes = result.as_ref().ok().map(|read| read.shapes.to_text());
        let ended = self.store.finish_run(&RunEnd {
            run,
            source: &self.job.source,
            ended_at: &self.time.now_text(),
            outcome: match outcome {
                Outcome::Complete => RunOutcome::Complete { watermark: moved.as_deref().map(watermark_write) },
                Outcome::Partial => RunOutcome::Partial,
                Outcome::Skipped => RunOutcome::Skipped,
                Outcome::Failed => RunOutcome::Failed,
            },
            exit_code: exit.code(),
            counts: run_counts(&self.counters),
            shapes: shapes.as_deref(),
            full_due: if full { FullDue::Clear } else { FullDue::Keep },
            cursor: match &result {
                Ok(_) | Err(Error::Strict { .. } | Error::MassDeletion { .. }) => CursorEnd::Drop,
                Err(_) => CursorEnd::Keep,
            },
            problems: match self.inventory {
                _ if result.is_err() || self.resumed => ProblemsEnd::Keep,
                _ if full => ProblemsEnd::DropUnmet,
                InventoryEnd::Complete { .. } if self.listing.is_some() => ProblemsEnd::DropUnmetNamed,
                InventoryEnd::Complete { .. } => ProblemsEnd::DropUnmet,
                _ => ProblemsEnd::Keep,
            },
            inventory: match &result {
                Ok(_) => self.inventory,
                Err(Error::Strict { .. } | Error::MassDeletion { .. }) => InventoryEnd::Refused,
                Err(_) => InventoryEnd::None,
            },
            error: error.as_deref(),
        });
        match ended {
            // What was read is kept, only that it ended is not told: the next run takes this one for killed.
            Err(locked @ StoreError::Busy { .. }) if matches!(result, Err(Error::Stopped(_))) => log::warn!("{locked}"),
            ended => ended?,
        }
        Ok(Ending {
            outcome,
            error: result.err(),
            counters: self.counters,
            watermark_before: state.watermark.clone(),
            watermark: moved.unwrap_or_else(|| state.watermark.clone()),
            clock: dialect.and_then(|dialect| dialect.clock).unwrap_or(Clock::None),
            passes: self.passes,
            reconciled: matches!(self.inventory, InventoryEnd::Complete { .. }),
        })
    }

    fn moved_watermark(&self, state: &SourceState) -> Option<String> {
        if let Some(why) = &self.held {
            log::info!("the watermark stays at {}: {why}", state.watermark);
            return None;
        }
        match self.dialect.as_ref()?.clock? {
            Clock::Record | Clock::None => self.newest.moved_from(&state.watermark),
            Clock::Server => {
                let mut server = Newest::default();
                server.observe_earlier(&watermark::of_server(self.started?, self.job.settle));
                server.moved_from(&state.watermark)
            }
        }
    }
}

/// Who is told to stop no longer waits for those who write to the store; that is no failure of the store.
pub(super) fn unless_stopped(error: Error, stop: &Stop) -> Error {
    match (error, stop.requested()) {
        (Error::Store(StoreError::Busy { .. }), Some(reason)) => Error::Stopped(Stopped(reason)),
        (error, _) => error,
    }
}

fn watermark_write(text: &str) -> Watermark<'_> {
    Watermark { text, at: timestamp::parse(text).map(|interval| interval.nominal) }
}

fn run_counts(counters: &Counters) -> RunCounts {
    let Counters { new, updated, unchanged, deleted, skipped, matched, requests, retries, bytes } = *counters;
    RunCounts { new, updated, unchanged, deleted, skipped, matched, requests, retries, bytes }
}
