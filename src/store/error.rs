//! What can go wrong with the store, in words for the operator.
//!
//! One flat enum. Every variant names the file and says what to do about it. Which exit code a variant means is decided where the
//! codes live, not here; this file never prints and never retries.

use std::fmt;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

/// `SQLITE_IOERR_SHMSIZE`: what a full disk gives when the WAL index cannot grow, where every other write gives `SQLITE_FULL`.
const IOERR_SHMSIZE: i32 = 4874;

/// A failure of the store. Each variant carries the path that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreError {
    /// The file cannot be made or opened: it is a directory, its directory is missing, or the system refuses.
    Create {
        /// The store.
        path: PathBuf,
        /// What the system said.
        why: String,
    },
    /// The file is not empty and is no SQLite database. It was not touched.
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// The file is an SQLite database, but not a store of this program. It was not touched.
    Foreign {
        /// The file.
        path: PathBuf,
        /// By what it was told.
        why: String,
    },
    /// The store was written by a newer version of this program. It was not touched.
    Newer {
        /// The store.
        path: PathBuf,
        /// `user_version` of the file.
        found: u32,
        /// The newest `user_version` known here.
        known: u32,
    },
    /// The store wants a migration, and was opened only to be read.
    Older {
        /// The store.
        path: PathBuf,
        /// `user_version` of the file.
        found: u32,
        /// The `user_version` that is read here.
        known: u32,
    },
    /// The file or its directory may not be written to.
    ReadOnly {
        /// The store.
        path: PathBuf,
    },
    /// The disk is full. What was committed before is intact.
    Full {
        /// The store.
        path: PathBuf,
    },
    /// The file is an SQLite database whose pages contradict each other.
    Damaged {
        /// The store.
        path: PathBuf,
        /// What SQLite said.
        why: String,
    },
    /// Another process held the store's write lock for longer than [`BUSY_SECONDS`](super::BUSY_SECONDS).
    Busy {
        /// The store.
        path: PathBuf,
    },
    /// There is no store, and none was to be made.
    Missing {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// Anything else.
    Other {
        /// The store.
        path: PathBuf,
        /// What was said.
        why: String,
    },
}

impl StoreError {
    /// Sorts an SQLite failure by its result code.
    pub(super) fn of(path: &Path, error: &rusqlite::Error) -> Self {
        let path = path.to_path_buf();
        let why = error.to_string();
        if error.sqlite_extended_error_code() == Some(IOERR_SHMSIZE) {
            return Self::Full { path };
        }
        if let rusqlite::Error::IntegralValueOutOfRange(..) = error {
            return Self::Damaged { path, why };
        }
        match error.sqlite_error_code() {
            Some(ErrorCode::CannotOpen) => Self::Create { path, why },
            Some(ErrorCode::NotADatabase) => Self::NotADatabase { path },
            Some(ErrorCode::DatabaseCorrupt) => Self::Damaged { path, why },
            Some(ErrorCode::DiskFull) => Self::Full { path },
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => Self::ReadOnly { path },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed) => Self::Busy { path },
            _ => Self::Other { path, why },
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create { path, why } => {
                write!(
                    f,
                    "the store {} cannot be opened or made: {why}; name a file in a directory that exists and can be written to",
                    path.display()
                )
            }
            Self::NotADatabase { path } => {
                write!(f, "{} is not an SQLite database and was left as it is; name another file", path.display())
            }
            Self::Foreign { path, why } => {
                write!(f, "{} is not a store of csw-harvester ({why}) and was left as it is; name another file", path.display())
            }
            Self::Newer { path, found, known } => write!(
                f,
                "the store {} has schema version {found}, this program knows {known}; \
                 it was left as it is: use a newer csw-harvester",
                path.display()
            ),
            Self::Older { path, found, known } => write!(
                f,
                "the store {} has schema version {found}, this program reads {known}; \
                 run a harvest into it, which brings it up to date",
                path.display()
            ),
            Self::ReadOnly { path } => {
                write!(
                    f,
                    "the store {} cannot be written to; give this user write access to the file and its directory",
                    path.display()
                )
            }
            Self::Full { path } => write!(
                f,
                "no room is left for the store {} or its temporary files; free some and run again, what was committed is intact",
                path.display()
            ),
            Self::Damaged { path, why } => {
                write!(f, "the store {} is damaged ({why}); restore a backup, or move it away and harvest anew", path.display())
            }
            Self::Busy { path } => {
                write!(f, "another process kept the store {} locked for too long; run again when it has ended", path.display())
            }
            Self::Missing { path } => {
                write!(f, "there is no store at {}; run a harvest first, or name the right file", path.display())
            }
            Self::Other { path, why } => write!(f, "the store {} failed: {why}", path.display()),
        }
    }
}

impl std::error::Error for StoreError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(extended_code: i32) -> rusqlite::Error {
        rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(extended_code), None)
    }

    #[test]
    fn result_codes_that_a_test_cannot_bring_about_are_sorted_too() {
        let path = Path::new("/s.db");
        // SQLITE_IOERR_SHMSIZE, SQLITE_READONLY_DIRECTORY, SQLITE_BUSY_SNAPSHOT, SQLITE_IOERR_READ.
        assert_eq!(StoreError::of(path, &failure(4874)), StoreError::Full { path: path.into() });
        assert_eq!(StoreError::of(path, &failure(1544)), StoreError::ReadOnly { path: path.into() });
        assert_eq!(StoreError::of(path, &failure(517)), StoreError::Busy { path: path.into() });
        assert!(matches!(StoreError::of(path, &failure(266)), StoreError::Other { .. }));
    }

    #[test]
    fn every_message_names_the_file_and_fits_a_line() {
        let path = PathBuf::from("/var/lib/x.db");
        let why = "why".to_string();
        let all = [
            StoreError::Create { path: path.clone(), why: why.clone() },
            StoreError::NotADatabase { path: path.clone() },
            StoreError::Foreign { path: path.clone(), why: why.clone() },
            StoreError::Newer { path: path.clone(), found: 9, known: 1 },
            StoreError::Older { path: path.clone(), found: 1, known: 2 },
            StoreError::ReadOnly { path: path.clone() },
            StoreError::Full { path: path.clone() },
            StoreError::Damaged { path: path.clone(), why: why.clone() },
            StoreError::Busy { path: path.clone() },
            StoreError::Missing { path: path.clone() },
            StoreError::Other { path, why },
        ];
        for error in all {
            let line = error.to_string();
            assert!(line.contains("/var/lib/x.db") && !line.contains('\n'), "{line}");
        }
    }
}
