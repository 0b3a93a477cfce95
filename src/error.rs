//! What can end a command early, one variant a layer, and the exit status of each.
//!
//! Every message says what was attempted, on what, and what came back. Text from outside is escaped and shortened where it enters
//! (`http.rs`, `csw/exception.rs`), and holds no credentials.

use std::fmt;

use crate::catalogue::{Failure, FailureKind};
use crate::exit::ExitStatus;
use crate::lock::LockError;
use crate::signal::Stopped;
use crate::store::StoreError;

/// Why a command ended before its work was done.
#[derive(Debug)]
pub enum Error {
    /// What was typed makes no sense; nothing was touched.
    Usage(String),
    /// A file named by an option cannot be used.
    Config(String),
    /// The lock.
    Lock(LockError),
    /// The store.
    Store(StoreError),
    /// The catalogue, or the way to it.
    Catalogue(Failure),
    /// The catalogue answers, and its answers never come to an end.
    Endless(String),
    /// `--strict`, and this many records or positions could not be had.
    Strict {
        /// How many.
        problems: u64,
    },
    /// So many records are gone at once that somebody has to say whether that is right.
    MassDeletion {
        /// How many.
        gone: u64,
        /// How many the store holds.
        held: u64,
        /// Whether the catalogue shows nothing at all.
        empty: bool,
    },
    /// Told to stop.
    Stopped(Stopped),
    /// An export was told to stop; its cursor is where it was.
    ExportStopped(Stopped),
    /// Sources had no success for too long, or never.
    Stale(String),
    /// What was to be printed could not be written.
    Output(String),
    /// A file that was to be written could not be.
    Write(String),
    /// A bug of ours.
    Internal(String),
}

impl Error {
    /// The exit status, as published.
    #[must_use]
    pub fn exit_status(&self) -> ExitStatus {
        match self {
            Error::Usage(_) => ExitStatus::Usage,
            Error::Config(_) => ExitStatus::Config,
            Error::Lock(LockError::Held { .. } | LockError::Stopped(_)) => ExitStatus::TempFail,
            Error::Lock(LockError::Create { .. }) => ExitStatus::CantCreate,
            Error::Lock(LockError::Io { .. }) => ExitStatus::IoErr,
            Error::Store(StoreError::Create { .. }) => ExitStatus::CantCreate,
            Error::Store(
                StoreError::NotADatabase { .. }
                | StoreError::Foreign { .. }
                | StoreError::Newer { .. }
                | StoreError::Older { .. }
                | StoreError::Missing { .. },
            ) => ExitStatus::Config,
            Error::Store(
                StoreError::ReadOnly { .. }
                | StoreError::Full { .. }
                | StoreError::Damaged { .. }
                | StoreError::Busy { .. }
                | StoreError::Other { .. },
            ) => ExitStatus::IoErr,
            Error::Catalogue(failure) => match failure.kind {
                FailureKind::Access => ExitStatus::NoPerm,
                FailureKind::Unreachable | FailureKind::Unavailable | FailureKind::TooLarge => ExitStatus::Unavailable,
                FailureKind::NotCsw
                | FailureKind::PastTheEnd
                | FailureKind::Ceiling
                | FailureKind::Dialect
                | FailureKind::BadPage
                | FailureKind::Report => ExitStatus::Protocol,
                FailureKind::Fault => ExitStatus::Software,
                FailureKind::Stopped(_) => ExitStatus::TempFail,
            },
            Error::Endless(_) => ExitStatus::Protocol,
            Error::Strict { .. } | Error::MassDeletion { .. } => ExitStatus::DataErr,
            Error::Stopped(_) => ExitStatus::TempFail,
            Error::ExportStopped(_) => ExitStatus::TempFail,
            Error::Stale(_) => ExitStatus::Stale,
            Error::Output(_) | Error::Write(_) => ExitStatus::IoErr,
            Error::Internal(_) => ExitStatus::Software,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Usage(text) | Error::Config(text) | Error::Endless(text) | Error::Stale(text) | Error::Write(text) => {
                out.write_str(text)
            }
            Error::Lock(error) => error.fmt(out),
            Error::Store(error) => error.fmt(out),
            Error::Catalogue(failure) => out.write_str(&failure.message),
            Error::Strict { problems } => {
                write!(out, "{problems} records or positions could not be had, and --strict was asked for; the watermark is held")
            }
            Error::MassDeletion { gone, held, empty } => {
                let what = if *empty { "the catalogue shows no record at all" } else { "an inventory did not meet them" };
                write!(
                    out,
                    "{gone} of {held} records would be deleted, since {what}; nothing was deleted and the watermark is held: if that is \
                     right, run once with --allow-mass-deletion"
                )
            }
            Error::Stopped(stopped) => write!(out, "{stopped}; what was read is kept, run it again to go on"),
            Error::ExportStopped(stopped) => {
                write!(out, "{stopped}; the export is not complete and no cursor was moved, run it again")
            }
            Error::Output(text) => write!(out, "stdout cannot be written: {text}"),
            Error::Internal(text) => write!(out, "this is a bug of csw-harvester: {text}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Error::Store(error)
    }
}

impl From<LockError> for Error {
    fn from(error: LockError) -> Self {
        Error::Lock(error)
    }
}

impl From<Stopped> for Error {
    fn from(stopped: Stopped) -> Self {
        Error::Stopped(stopped)
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure.kind {
            FailureKind::Stopped(stopped) => Error::Stopped(stopped),
            _ => Error::Catalogue(failure),
        }
    }
}
