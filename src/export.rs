//! The command `export`: the records of a store, or what changed in it, for those who go on from there.
//!
//! One snapshot is walked by a thread of its own and leaves row by row, so that memory does not grow and a reader that takes nothing cannot
//! keep the command from ending when it is told to. The cursor is moved last, here, when all that it stands for was written: a death
//! before that (I7) makes the next export tell the same again. The store is only read.

mod cursor;
mod file_name;
mod folder;
mod line;
mod stream;

use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use crate::cli::{Beginning, ExportSettings};
use crate::clock::SystemClock;
use crate::error::Error;
use crate::lock::Lock;
use crate::signal::{Stop, Stopped};
use crate::status::unknown_source;
use crate::store::{Change, Store, StoreError};
use folder::Folder;
use stream::Stream;

const POLL: Duration = Duration::from_millis(100);
/// How long a walk that was told to stop may take to notice, before it is left behind.
const GRACE: Duration = Duration::from_secs(1);

/// How an export came to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Export {
    /// All was written, and the cursor moved.
    Complete(Tally),
    /// The reader of stdout went away; no cursor was moved.
    Closed,
}

/// What was told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Records.
    pub records: u64,
    /// Deletions.
    pub deletions: u64,
    /// Files that were there already, with the same content; `None` for a stream.
    pub unchanged_files: Option<u64>,
    /// The highest `changed_seq` of the store at the moment that was exported.
    pub last_seq: i64,
}

impl Tally {
    /// The last log line of a complete export.
    #[must_use]
    pub fn complete_line(&self) -> String {
        let Tally { records, deletions, unchanged_files, last_seq } = self;
        let unchanged = unchanged_files.map(|count| format!(" ({count} files unchanged)")).unwrap_or_default();
        format!("Export complete: {records} records{unchanged}, {deletions} deletions, highest seq {last_seq}")
    }
}

/// Why a walk ended early.
enum Cut {
    Error(Error),
    Closed,
}

impl From<Error> for Cut {
    fn from(error: Error) -> Self {
        Cut::Error(error)
    }
}

impl From<StoreError> for Cut {
    fn from(error: StoreError) -> Self {
        Cut::Error(error.into())
    }
}

/// Where changes go.
enum Sink {
    Stream(Stream),
    Folder(Folder),
}

impl Sink {
    fn put(&mut self, change: &Change<'_>) -> Result<(), Cut> {
        match self {
            Sink::Stream(stream) => stream.put(change),
            Sink::Folder(folder) => Ok(folder.put(change)?),
        }
    }

    /// Waits until all of it has left. How many files were as they were.
    fn end(self) -> Result<Option<u64>, Cut> {
        match self {
            Sink::Stream(stream) => stream.end().map(|()| None),
            Sink::Folder(folder) => Ok(Some(folder.end()?)),
        }
    }
}

/// Runs the command.
///
/// # Errors
/// The store cannot be read, the source or the cursor names nothing in it, a file or stdout cannot be written, or a stop was asked for.
pub fn run(settings: &ExportSettings, stop: &Stop) -> Result<Export, Error> {
    let store = Store::open_existing(&settings.db)?;
    if let Some(source) = &settings.source
        && !store.snapshot()?.knows(source)?
    {
        return Err(unknown_source(source, &settings.db));
    }
    let lock = |path: &Path| Lock::acquire(path, Duration::ZERO, &mut SystemClock, stop);
    let (_cursor_lock, after) = match &settings.beginning {
        Beginning::Live => (None, None),
        Beginning::After(seq) => (None, Some(*seq)),
        Beginning::Cursor(path) => {
            cursor::expect_folder(path)?;
            let lock = lock(&cursor::lock_path(path))?;
            // From nothing on deletions are told as well: an export that was cut off may have told of what has gone since.
            (Some(lock), Some(cursor::read(path)?.unwrap_or(0)))
        }
    };
    let (_folder_lock, sink) = match &settings.xml_dir {
        None => (None, Sink::Stream(Stream::to_stdout()?)),
        Some(root) => {
            let folder = Folder::open(root)?;
            (Some(lock(&folder.lock_path())?), Sink::Folder(folder))
        }
    };
    let walk = Walk { store, source: settings.source.clone(), after, beginning: settings.beginning.clone(), stop: stop.clone() };
    let export = beside(move || walk.walk(sink), stop)?;
    if let (Export::Complete(tally), Beginning::Cursor(path)) = (&export, &settings.beginning) {
        cursor::write(path, tally.last_seq)?;
    }
    Ok(export)
}

/// Runs the walk on a thread of its own. A walk that does not end when it is told to hangs in a write: it is left behind.
fn beside(walk: impl FnOnce() -> Result<Export, Error> + Send + 'static, stop: &Stop) -> Result<Export, Error> {
    let (sender, receiver) = mpsc::sync_channel(1);
    std::thread::Builder::new()
        .name("export".to_owned())
        .spawn(move || sender.send(walk()))
        .map_err(|error| Error::Internal(format!("no thread to export with: {error}")))?;
    let mut told: Option<(Stopped, Instant)> = None;
    loop {
        match receiver.recv_timeout(POLL) {
            Ok(end) => return end,
            Err(RecvTimeoutError::Disconnected) => return Err(Error::Internal("the export panicked, as told above".to_owned())),
            Err(RecvTimeoutError::Timeout) => {}
        }
        match told {
            None => told = stop.requested().map(|reason| (Stopped(reason), Instant::now())),
            Some((stopped, at)) if at.elapsed() >= GRACE => return Err(Error::ExportStopped(stopped)),
            Some(_) => {}
        }
    }
}

/// All that the thread needs.
struct Walk {
    store: Store,
    source: Option<String>,
    /// `None` for live records.
    after: Option<i64>,
    beginning: Beginning,
    stop: Stop,
}

impl Walk {
    fn walk(self, sink: Sink) -> Result<Export, Error> {
        match self.told_to(sink) {
            Ok(tally) => Ok(Export::Complete(tally)),
            Err(Cut::Closed) => Ok(Export::Closed),
            Err(Cut::Error(error)) => Err(error),
        }
    }

    fn told_to(&self, mut sink: Sink) -> Result<Tally, Cut> {
        let snapshot = self.store.snapshot()?;
        let mut tally = Tally { last_seq: snapshot.last_seq(), ..Tally::default() };
        self.expect_reached(tally.last_seq)?;
        let show = |change: &Change<'_>| {
            self.stop.check().map_err(Error::ExportStopped)?;
            sink.put(change)?;
            match change.content {
                Some(_) => tally.records += 1,
                None => tally.deletions += 1,
            }
            Ok::<(), Cut>(())
        };
        match self.after {
            None => snapshot.each_record(self.source.as_deref(), show)?,
            Some(seq) => snapshot.each_change(seq, self.source.as_deref(), show)?,
        }
        tally.unchanged_files = sink.end()?;
        Ok(tally)
    }

    /// A number that the store has not reached is one of another store, or of this one before it was restored or made anew: what changed
    /// since cannot be told, and nothing would be until the number is reached again.
    fn expect_reached(&self, last_seq: i64) -> Result<(), Error> {
        let Some(seq) = self.after.filter(|seq| *seq > last_seq) else { return Ok(()) };
        match &self.beginning {
            Beginning::Cursor(path) => Err(Error::Config(format!(
                "the cursor file {} holds {seq}, and the store has only come to {last_seq}: it is another store, or was restored or made \
                 anew; remove the file to begin anew",
                path.display()
            ))),
            _ => Err(Error::Usage(format!("--since-seq {seq}: the store has only come to {last_seq}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_reads_as_published() {
        let tally = Tally { records: 12, deletions: 3, unchanged_files: None, last_seq: 345 };
        assert_eq!(tally.complete_line(), "Export complete: 12 records, 3 deletions, highest seq 345");
        let files = Tally { unchanged_files: Some(2), ..tally };
        assert_eq!(files.complete_line(), "Export complete: 12 records (2 files unchanged), 3 deletions, highest seq 345");
    }

    #[test]
    fn a_walk_that_panics_or_hangs_does_not_hang_the_command() {
        let end = beside(|| panic!("on purpose"), &Stop::new());
        assert!(matches!(end, Err(Error::Internal(_))), "{end:?}");
        let stop = Stop::new();
        stop.ask();
        let (_kept, never) = mpsc::channel::<()>();
        let end = beside(
            move || {
                let _ = never.recv();
                Ok(Export::Closed)
            },
            &stop,
        );
        assert!(matches!(end, Err(Error::ExportStopped(_))), "{end:?}");
    }

    #[test]
    fn a_walk_that_came_to_its_end_is_complete_although_a_stop_was_asked_for() {
        let stop = Stop::new();
        stop.ask();
        let tally = Tally { last_seq: 7, ..Tally::default() };
        let done = Export::Complete(tally);
        let told = done.clone();
        assert_eq!(beside(move || Ok(told), &stop).unwrap(), done);
    }
}
