//! The life of a run in the store: its row, its beginning, and the one transaction that ends it.
//!
//! I2 lives here: only [`RunOutcome::Complete`] can carry a watermark, and it moves in the transaction that ends the run. When a
//! run is complete, and what its watermark is, is decided elsewhere.

use rusqlite::{Connection, OptionalExtension, params};

use super::seen::{self, Phase};
use super::{Store, StoreError, inventory, overlay};

/// How long rows of runs are kept.
const RUNS_KEPT_DAYS: u32 = 90;

/// A run's row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunId(i64);

/// The counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunCounts {
    /// Records that the store did not hold.
    pub new: u64,
    /// Records whose content changed.
    pub updated: u64,
    /// Records that were delivered as the store holds them.
    pub unchanged: u64,
    /// Records moved to `tombstones`.
    pub deleted: u64,
    /// Records and positions that could not be had.
    pub skipped: u64,
    /// What the catalogue said matches.
    pub matched: Option<u64>,
    /// Requests sent.
    pub requests: u64,
    /// Of them, again.
    pub retries: u64,
    /// Bytes received.
    pub bytes: u64,
}

/// A watermark to store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watermark<'a> {
    /// As the catalogue wrote it.
    pub text: &'a str,
    /// Its instant in microseconds since 1970.
    pub at: Option<i64>,
}

/// How a run ended. Only a complete one can move the watermark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunOutcome<'a> {
    /// All that was asked for is in the store.
    Complete {
        /// The new watermark; `None` leaves the old one.
        watermark: Option<Watermark<'a>>,
    },
    /// Stopped in good order with its pages kept.
    Partial,
    /// Nothing was tried.
    Skipped,
    /// Ended by an error.
    Failed,
}

impl RunOutcome<'_> {
    fn word(self) -> &'static str {
        match self {
            Self::Complete { .. } => "complete",
            Self::Partial => "partial",
            Self::Skipped => "skipped",
            Self::Failed => "failed",
        }
    }
}

/// What becomes of the wish to read everything again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FullDue {
    /// As before.
    Keep,
    /// The next run reads everything.
    Set,
    /// This run did.
    Clear,
}

/// What becomes of the problems of earlier runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemsEnd {
    /// They stay: this run did not look at everything.
    Keep,
    /// Those that this run did not meet are over: it read everything itself.
    DropUnmet,
    /// The same, apart from elements without identifier: their names are made of their content, and this run saw a part of that.
    DropUnmetNamed,
}

/// What is known of the inventory when a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InventoryEnd {
    /// There was none, or it was cut off and may be resumed.
    None,
    /// It came to its end, and nothing may be made of it.
    Refused,
    /// The store holds what the catalogue holds.
    Complete {
        /// What the catalogue counts, less what the store holds; `None` where it does not count.
        gap: Option<i64>,
        /// Records that were missing.
        new: u64,
        /// Records that differed.
        updated: u64,
        /// Records that were gone.
        deleted: u64,
    },
    /// It could not be told whether everything was seen; nothing was made of it.
    Tried {
        /// The same as above.
        gap: Option<i64>,
    },
}

/// What becomes of the cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CursorEnd {
    /// The next run may resume.
    Keep,
    /// There is nothing to resume.
    Drop,
}

/// All that is written when a run ends.
#[derive(Clone, Copy, Debug)]
pub struct RunEnd<'a> {
    /// From [`Store::begin_run`].
    pub run: RunId,
    /// The source.
    pub source: &'a str,
    /// Now, RFC 3339 in UTC.
    pub ended_at: &'a str,
    /// How it ended.
    pub outcome: RunOutcome<'a>,
    /// The process's exit code.
    pub exit_code: u8,
    /// What it counted.
    pub counts: RunCounts,
    /// The shapes of stamps met; `None` leaves them.
    pub shapes: Option<&'a str>,
    /// Whether the next run reads everything.
    pub full_due: FullDue,
    /// Whether the next run may resume.
    pub cursor: CursorEnd,
    /// What becomes of the problems of earlier runs.
    pub problems: ProblemsEnd,
    /// What the inventory came to.
    pub inventory: InventoryEnd,
    /// What went wrong.
    pub error: Option<&'a str>,
}

/// What the pages of the present run are judged by.
#[derive(Clone, Debug)]
pub(super) struct RunMarks {
    pub(super) source: String,
    pub(super) run: i64,
    /// `changed_seq` when this process's run began: what lies above was written, and counted, by it.
    pub(super) run_seq: i64,
    /// The same of the first run in a chain of runs that were cut off and resumed.
    pub(super) chain_seq: i64,
    /// Whether an earlier run's cursor was there when this one began.
    pub(super) resumed: bool,
    /// Whether `deferred` may hold rows of this source; false spares the look-ups.
    pub(super) deferrals: bool,
    /// The same of `problems` of earlier runs.
    pub(super) problems: bool,
    /// Whether the source had no record when the run began, which continues no other one.
    pub(super) began_empty: bool,
    /// Whether something may have been met that is not held: it was faulty, or an earlier run met it.
    pub(super) met_unheld: bool,
}

const ADD_SOURCE: &str = "INSERT INTO harvest_state (source) VALUES (?1) ON CONFLICT (source) DO NOTHING";
const MARK_KILLED: &str = "UPDATE runs SET outcome = 'killed' WHERE source = ?1 AND outcome IS NULL";
const ADD_RUN: &str = "INSERT INTO runs (source, started_at, watermark_before) VALUES (?1, ?2, ?3)";
const SEQUENCE: &str = "SELECT last FROM sequence";
const CHAIN: &str = "SELECT begin_seq FROM cursors WHERE source = ?1";
const ANY_DEFERRED: &str = "SELECT EXISTS (SELECT 1 FROM deferred WHERE source = ?1)";

const ANY_RECORD: &str = "SELECT EXISTS (SELECT 1 FROM stored WHERE source = ?1)";
const ANY_PROBLEM: &str = "SELECT EXISTS (SELECT 1 FROM problems WHERE source = ?1)";

const DROP_CURSOR: &str = "DELETE FROM cursors WHERE source = ?1";
const DROP_DEFERRED: &str = "DELETE FROM deferred WHERE source = ?1";

const END_STATE: &str = "
UPDATE harvest_state SET
    watermark = coalesce(?2, watermark),
    watermark_at = CASE WHEN ?2 IS NULL THEN watermark_at ELSE ?3 END,
    shapes = coalesce(?4, shapes),
    full_due = coalesce(?5, full_due),
    last_success_at = coalesce(?6, last_success_at)
WHERE source = ?1";
const INVENTORY_COMPLETE: &str = "
UPDATE harvest_state SET
    inventory_at = ?2, inventory_gap = ?3, inventory_new = ?4, inventory_updated = ?5, inventory_deleted = ?6,
    inventory_tried_at = NULL, inventory_tried_gap = NULL
WHERE source = ?1";
const INVENTORY_TRIED: &str = "UPDATE harvest_state SET inventory_tried_at = ?2, inventory_tried_gap = ?3 WHERE source = ?1";
const END_RUN: &str = "
UPDATE runs SET
    ended_at = ?3, outcome = ?4, exit_code = ?5, new = ?6, updated = ?7, unchanged = ?8, deleted = ?9, skipped = ?10, matched = ?11,
    requests = ?12, retries = ?13, bytes = ?14, error = ?15, reconciled = ?16,
    watermark = (SELECT watermark FROM harvest_state WHERE source = ?2)
WHERE id = ?1 AND source = ?2";
const END_PROBLEMS: &str = "DELETE FROM problems WHERE source = ?1 AND run <> ?2 AND place NOT LIKE ?3";
const PRUNE_RUNS: &str = "DELETE FROM runs WHERE julianday(started_at) < julianday(?1) - ?2 AND id <> ?3";

impl Store {
    /// Writes the row of a run that begins, and the source's own row if there is none. A run of this source that never ended is
    /// marked as killed. If a cursor is there, this run is taken for the continuation of the one that left it; whoever begins
    /// anew calls [`Store::forget_cursor`].
    ///
    /// `started_at` is RFC 3339 in UTC; `watermark_before` is told in the row and moves nothing.
    pub fn begin_run(&mut self, source: &str, started_at: &str, watermark_before: &str) -> Result<RunId, StoreError> {
        let (run, marks) = begin_run(&mut self.connection, self.face, source, started_at, watermark_before)
            .map_err(|error| self.failed(&error))?;
        self.run = Some(marks);
        Ok(run)
    }

    /// Gives up the cursor of an unfinished run, and what that run had put off; the run that has begun reads its window from the
    /// start.
    pub fn forget_cursor(&mut self, source: &str) -> Result<(), StoreError> {
        forget_cursor(&mut self.connection, self.face, source).map_err(|error| self.failed(&error))?;
        if let Some(marks) = self.run.as_mut().filter(|marks| marks.source == source) {
            marks.chain_seq = marks.run_seq;
            marks.resumed = false;
            marks.deferrals = false;
        }
        Ok(())
    }

    /// Ends a run, in one transaction. A complete run calls [`Store::settle_deferred`] before: dropping the cursor also drops
    /// what is still put off.
    pub fn finish_run(&mut self, end: &RunEnd<'_>) -> Result<(), StoreError> {
        finish_run(&mut self.connection, self.face, end).map_err(|error| self.failed(&error))?;
        self.run = None;
        Ok(())
    }
}

fn begin_run(
    connection: &mut Connection,
    face: overlay::Face,
    source: &str,
    started_at: &str,
    watermark_before: &str,
) -> rusqlite::Result<(RunId, RunMarks)> {
    let transaction = overlay::begin(connection, face)?;
    transaction.execute(ADD_SOURCE, [source])?;
    transaction.execute(MARK_KILLED, [source])?;
    transaction.execute(ADD_RUN, [source, started_at, watermark_before])?;
    let run = RunId(transaction.last_insert_rowid());
    let run_seq: i64 = transaction.query_row(SEQUENCE, [], |row| row.get(0))?;
    let chain_seq: Option<i64> = transaction.query_row(CHAIN, [source], |row| row.get(0)).optional()?;
    let deferrals: bool = transaction.query_row(ANY_DEFERRED, [source], |row| row.get(0))?;
    let problems: bool = transaction.query_row(ANY_PROBLEM, [source], |row| row.get(0))?;
    let records: bool = transaction.query_row(ANY_RECORD, [source], |row| row.get(0))?;
    transaction.commit()?;
    let marks = RunMarks {
        source: source.to_string(),
        run: run.0,
        run_seq,
        chain_seq: chain_seq.unwrap_or(run_seq),
        resumed: chain_seq.is_some(),
        deferrals,
        problems,
        began_empty: !records && chain_seq.is_none(),
        met_unheld: false,
    };
    Ok((run, marks))
}

fn forget_cursor(connection: &mut Connection, face: overlay::Face, source: &str) -> rusqlite::Result<()> {
    let transaction = overlay::begin(connection, face)?;
    drop_cursor(&transaction, source)?;
    transaction.commit()
}

/// Drops all that an unfinished window left: where it was, what it had put off, what it had met.
pub(super) fn drop_cursor(connection: &Connection, source: &str) -> rusqlite::Result<()> {
    connection.execute(DROP_CURSOR, [source])?;
    connection.execute(DROP_DEFERRED, [source])?;
    seen::drop_kept(connection, source, Phase::Window)
}

fn end_inventory(connection: &Connection, end: &RunEnd<'_>) -> rusqlite::Result<()> {
    match end.inventory {
        InventoryEnd::None => return Ok(()),
        InventoryEnd::Refused => {}
        InventoryEnd::Complete { gap, new, updated, deleted } => {
            let row = params![end.source, end.ended_at, gap, column(new), column(updated), column(deleted)];
            connection.execute(INVENTORY_COMPLETE, row)?;
        }
        InventoryEnd::Tried { gap } => {
            connection.execute(INVENTORY_TRIED, params![end.source, end.ended_at, gap])?;
        }
    }
    inventory::drop_inventory(connection, end.source)
}

fn finish_run(connection: &mut Connection, face: overlay::Face, end: &RunEnd<'_>) -> rusqlite::Result<()> {
    let transaction = overlay::begin(connection, face)?;
    end_state(&transaction, end)?;
    end_row(&transaction, end)?;
    let nameless = match end.problems {
        ProblemsEnd::Keep => None,
        ProblemsEnd::DropUnmet => Some(""),
        ProblemsEnd::DropUnmetNamed => Some("element %"),
    };
    if let Some(kept) = nameless {
        transaction.execute(END_PROBLEMS, params![end.source, end.run.0, kept])?;
    }
    if end.cursor == CursorEnd::Drop {
        drop_cursor(&transaction, end.source)?;
    }
    end_inventory(&transaction, end)?;
    transaction.execute(PRUNE_RUNS, params![end.ended_at, RUNS_KEPT_DAYS, end.run.0])?;
    transaction.commit()
}

fn end_state(connection: &Connection, end: &RunEnd<'_>) -> rusqlite::Result<()> {
    let (watermark, succeeded_at) = match end.outcome {
        RunOutcome::Complete { watermark } => (watermark, Some(end.ended_at)),
        RunOutcome::Partial | RunOutcome::Skipped | RunOutcome::Failed => (None, None),
    };
    let full_due = match end.full_due {
        FullDue::Keep => None,
        FullDue::Set => Some(true),
        FullDue::Clear => Some(false),
    };
    connection.execute(
        END_STATE,
        params![
            end.source,
            watermark.map(|watermark| watermark.text),
            watermark.and_then(|watermark| watermark.at),
            end.shapes,
            full_due,
            succeeded_at,
        ],
    )?;
    Ok(())
}

fn end_row(connection: &Connection, end: &RunEnd<'_>) -> rusqlite::Result<()> {
    let counts = &end.counts;
    let ended = connection.execute(
        END_RUN,
        params![
            end.run.0,
            end.source,
            end.ended_at,
            end.outcome.word(),
            end.exit_code,
            column(counts.new),
            column(counts.updated),
            column(counts.unchanged),
            column(counts.deleted),
            column(counts.skipped),
            counts.matched.map(column),
            column(counts.requests),
            column(counts.retries),
            column(counts.bytes),
            end.error,
            matches!(end.inventory, InventoryEnd::Complete { .. }),
        ],
    )?;
    match ended {
        1 => Ok(()),
        other => Err(rusqlite::Error::StatementChangedRows(other)),
    }
}

fn column(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{NOW, Place, SOURCE, begin, complete, page, try_page};
    use super::*;
    use crate::store::StoredCursor;

    const WATERMARK: Watermark<'_> = Watermark { text: "2026-07-09T22:14:07Z", at: Some(7) };

    fn outcomes(place: &Place) -> Vec<Option<String>> {
        let connection = place.sql();
        let mut statement = connection.prepare("SELECT outcome FROM runs ORDER BY id").unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn a_complete_run_moves_the_watermark_and_writes_all_it_was_given() {
        let place = Place::new();
        let (mut store, run) = place.begun();
        try_page(&mut store, &[("a", None, "a")], NOW, Some("2")).unwrap();
        let counts = RunCounts {
            new: 1,
            updated: 2,
            unchanged: 3,
            deleted: 4,
            skipped: 5,
            matched: Some(6),
            requests: 7,
            retries: 8,
            bytes: u64::MAX,
        };
        let end = RunEnd {
            outcome: RunOutcome::Complete { watermark: Some(WATERMARK) },
            counts,
            shapes: Some("s"),
            full_due: FullDue::Set,
            ..complete(run)
        };

        store.finish_run(&end).unwrap();

        let state = store.source_state(SOURCE).unwrap().unwrap();
        assert_eq!((state.watermark.as_str(), state.watermark_at), (WATERMARK.text, WATERMARK.at));
        assert_eq!((state.shapes.as_deref(), state.full_due), (Some("s"), true));
        assert_eq!(state.last_success_at.as_deref(), Some(NOW));
        assert_eq!(state.cursor, None);
        let row: String = place
            .sql()
            .query_row(
                "SELECT concat_ws(' ', outcome, exit_code, new, updated, unchanged, deleted, skipped, matched, requests,
                 retries, bytes,
                 watermark_before, watermark, ended_at, ifnull(error, '-')) FROM runs",
                [],
                |row| row.get(0),
            )
            .unwrap();
        assert_eq!(
            row,
            "complete 0 1 2 3 4 5 6 7 8 9223372036854775807 1970-01-01T00:00:00Z 2026-07-09T22:14:07Z 2026-07-10T00:00:00Z -"
        );
    }

    #[test]
    fn a_run_without_a_new_watermark_leaves_what_was_known() {
        let place = Place::new();
        let (mut store, run) = place.begun();
        let first = RunEnd { outcome: RunOutcome::Complete { watermark: Some(WATERMARK) }, shapes: Some("s"), ..complete(run) };
        store.finish_run(&first).unwrap();
        let before = store.source_state(SOURCE).unwrap();
        for outcome in [RunOutcome::Complete { watermark: None }, RunOutcome::Partial, RunOutcome::Skipped, RunOutcome::Failed] {
            let run = begin(&mut store);
            store.finish_run(&RunEnd { outcome, error: Some("e"), ..complete(run) }).unwrap();
            assert_eq!(store.source_state(SOURCE).unwrap(), before, "I2");
        }
        let words = ["complete", "complete", "partial", "skipped", "failed"].map(|word| Some(word.to_string()));
        assert_eq!(outcomes(&place), words);
    }

    #[test]
    fn only_a_complete_run_is_a_success() {
        let place = Place::new();
        let (mut store, run) = place.begun();
        store.finish_run(&RunEnd { outcome: RunOutcome::Failed, ..complete(run) }).unwrap();
        assert_eq!(store.source_state(SOURCE).unwrap().unwrap().last_success_at, None);
    }

    #[test]
    fn the_watermark_and_the_run_row_move_together_or_not_at_all() {
        let place = Place::new();
        let (mut store, run) = place.begun();
        let trigger = "CREATE TEMP TRIGGER boom BEFORE UPDATE ON main.runs BEGIN SELECT RAISE(ABORT, 'boom'); END";
        store.connection.execute_batch(trigger).unwrap();
        let end = RunEnd { outcome: RunOutcome::Complete { watermark: Some(WATERMARK) }, ..complete(run) };
        store.finish_run(&end).unwrap_err();
        assert_eq!(store.source_state(SOURCE).unwrap().unwrap().watermark, "1970-01-01T00:00:00Z", "I2");
        assert_eq!(outcomes(&place), [None]);
    }

    #[test]
    fn a_run_that_was_killed_is_marked_by_the_next_one_of_its_source() {
        let place = Place::new();
        let (mut store, _) = place.begun();
        store.begin_run("another", NOW, "").unwrap();
        drop(store);
        assert_eq!(outcomes(&place), [None, None]);
        place.begun();
        assert_eq!(outcomes(&place), [Some("killed".to_string()), None, None]);
    }

    #[test]
    fn a_run_that_is_not_there_cannot_be_finished() {
        let place = Place::new();
        let (mut store, run) = place.begun();
        place.sql().execute_batch("DELETE FROM runs").unwrap();
        let error = store.finish_run(&RunEnd { cursor: CursorEnd::Keep, ..complete(run) }).unwrap_err();
        assert!(matches!(error, StoreError::Other { .. }));
    }

    #[test]
    fn rows_of_runs_are_kept_for_ninety_days() {
        let place = Place::new();
        let mut store = place.open();
        for started_at in ["2026-04-10T23:59:59Z", "2026-04-11T00:00:01Z", "no date"] {
            let run = store.begin_run(SOURCE, started_at, "").unwrap();
            store.finish_run(&RunEnd { ended_at: started_at, ..complete(run) }).unwrap();
        }
        let run = begin(&mut store);
        store.finish_run(&complete(run)).unwrap();
        let connection = place.sql();
        let mut statement = connection.prepare("SELECT started_at FROM runs ORDER BY id").unwrap();
        let kept: Vec<String> = statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap();
        assert_eq!(kept, ["2026-04-11T00:00:01Z", "no date", NOW]);
    }

    #[test]
    fn a_cursor_stays_until_it_is_dropped() {
        let place = Place::new();
        let (mut store, run) = place.begun();
        try_page(&mut store, &[("a", None, "a")], NOW, Some("2")).unwrap();
        page(&mut store, &[("b", None, "b")], NOW);
        let cursor = Some(StoredCursor { plan: "2".to_string(), newest: Some(NOW.to_string()), skipped: 0 });
        store.finish_run(&RunEnd { outcome: RunOutcome::Partial, cursor: CursorEnd::Keep, ..complete(run) }).unwrap();
        assert_eq!(store.source_state(SOURCE).unwrap().unwrap().cursor, cursor);
        let run = begin(&mut store);
        store.finish_run(&complete(run)).unwrap();
        assert_eq!(store.source_state(SOURCE).unwrap().unwrap().cursor, None);
    }
}
