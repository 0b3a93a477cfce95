//! The store: one SQLite file that holds what was harvested, from which sources, and how far each of them got.
//!
//! All SQL of the program is in this folder, and no SQL type leaves it: another kind of store is to fit behind the same methods.
//! The order of a run is [`Store::begin_run`], then for every page [`Store::mark_seen`] and [`Store::write_page`], now and then
//! [`Store::commit_pages`], then, if all was read, [`Store::settle_deferred`], then [`Store::finish_run`]. A process may die between any
//! two of them, or within one (I7).
//!
//! | file | holds |
//! | --- | --- |
//! | `schema.rs` | tables, migrations |
//! | `open.rs` | what a path must be to become a connection |
//! | `overlay.rs` | the dry run |
//! | `page.rs` | a page, and the transaction of one or some |
//! | `deferred.rs` | what is put off to the end of a run |
//! | `twins.rs` | which of two records of one identifier stays |
//! | `source.rs` | what is known of a source |
//! | `run.rs` | a run's beginning and end |
//! | `seen.rs` | identifiers met in this run |
//! | `ledger.rs` | where those are kept |
//! | `inventory.rs` | an inventory under way, and what is gone |
//! | `census.rs` | counts for calibration |
//! | `snapshot.rs` | the store of one moment, for those who read it |
//! | `changes.rs` | records and deletions in the order of their change |
//! | `overview.rs` | what is told of a source |
//! | `error.rs` | what can go wrong |
//!
//! The store takes no lock for a source (I4 is the caller's), knows no clock and asks no catalogue.

mod census;
mod changes;
mod deferred;
mod error;
#[cfg(test)]
mod fixture;
mod inventory;
mod ledger;
mod open;
mod overlay;
mod overview;
mod page;
mod run;
mod schema;
mod seen;
mod snapshot;
mod source;
mod twins;

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;

pub use census::RecordRow;
pub use changes::{Change, Content};
pub use error::StoreError;
pub use inventory::{Gone, HeldStamp, StoredInventory};
pub use overview::{Inventory, LastRun, Overview, Problem};
pub use page::{CursorWrite, PageCounts, PageWrite, ProblemWrite, RecordWrite};
pub use run::{CursorEnd, FullDue, InventoryEnd, ProblemsEnd, RunCounts, RunEnd, RunId, RunOutcome, Watermark};
pub use seen::{Meeting, Pass, Phase};
pub use snapshot::Snapshot;
pub use source::{LastInventory, SourceState, StoredCursor, StoredDialect};

use ledger::Ledger;
use open::Found;
use overlay::Face;
use run::RunMarks;
use seen::Diary;

use crate::signal::Stop;

/// How long a writer waits for another one before it gives up with [`StoreError::Busy`].
pub const BUSY_SECONDS: u64 = 30;
/// Between two of its attempts.
pub const BUSY_PAUSE: Duration = Duration::from_millis(3);

/// Whether a store is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It is.
    ReadWrite,
    /// All is done and counted as if it were, and vanishes with the [`Store`]. The file is not locked, changed or made.
    DryRun,
}

/// An open store.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    path: PathBuf,
    face: Face,
    run: Option<RunMarks>,
    diary: Diary,
    ledger: Ledger,
}

impl Store {
    /// Opens the store for a harvest. In [`Mode::ReadWrite`] a file that is missing or empty becomes a new store, and an older
    /// store is brought up to date; in [`Mode::DryRun`] the first is a store in memory, the second is [`StoreError::Older`].
    ///
    /// The file is looked at first: one that is no store of ours, or a newer one, is left byte for byte as it was.
    pub fn open(path: &Path, mode: Mode) -> Result<Self, StoreError> {
        Self::open_heeding(path, mode, &Stop::new())
    }

    /// The same for a run that can be told to stop: whatever then waits for another writer, now and later, fails with
    /// [`StoreError::Busy`] before long.
    pub fn open_heeding(path: &Path, mode: Mode, stop: &Stop) -> Result<Self, StoreError> {
        Self::open_with(path, mode, schema::STEPS, stop)
    }

    /// Opens a store to be looked at. Never makes a file: [`StoreError::Missing`] when there is none. Methods that write fail.
    pub fn open_existing(path: &Path) -> Result<Self, StoreError> {
        let connection = open::reader(path, schema::STEPS, &Stop::new()).map_err(|error| match error {
            // Nothing was to be made.
            StoreError::Create { path, why } => StoreError::Other { path, why },
            other => other,
        })?;
        let store = Self::over(path, connection, Face::Direct)?;
        store.connection.pragma_update(None, "query_only", true).map_err(|error| store.failed(&error))?;
        Ok(store)
    }

    /// A store without a file, for tests and for dry runs where there is no store yet.
    pub fn in_memory() -> Result<Self, StoreError> {
        Self::in_place_of(Path::new(":memory:"))
    }

    /// Bounds the size of the store, in pages of 16 KiB: a write beyond fails with [`StoreError::Full`], as on a full disk. It
    /// holds for this opening of the store only, and cannot be less than what the store has already. Meant for trying out the
    /// full disk.
    pub fn limit_pages(&self, pages: u32) -> Result<(), StoreError> {
        self.connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(())).map_err(|error| self.failed(&error))
    }

    fn open_with(path: &Path, mode: Mode, steps: &[&str], stop: &Stop) -> Result<Self, StoreError> {
        match mode {
            Mode::ReadWrite => Self::over(path, open::writer(path, steps, stop)?, Face::Direct),
            Mode::DryRun if open::inspect(path, steps)? == Found::Nothing => Self::in_place_of(path),
            Mode::DryRun => match open::reader(path, steps, stop) {
                Err(StoreError::Missing { .. }) => Self::in_place_of(path),
                reader => Self::over(path, reader?, Face::Overlay),
            },
        }
    }

    fn in_place_of(path: &Path) -> Result<Self, StoreError> {
        let connection = open::memory().map_err(|error| StoreError::of(path, &error))?;
        Self::over(path, connection, Face::Direct)
    }

    fn over(path: &Path, connection: Connection, face: Face) -> Result<Self, StoreError> {
        let store =
            Self { connection, path: path.to_path_buf(), face, run: None, diary: Diary::default(), ledger: Ledger::default() };
        overlay::install(&store.connection, face)
            .and_then(|()| ledger::install(&store.connection))
            .and_then(|()| inventory::install(&store.connection))
            .map_err(|error| store.failed(&error))?;
        Ok(store)
    }

    fn failed(&self, error: &rusqlite::Error) -> StoreError {
        StoreError::of(&self.path, error)
    }
}
