//! The exit codes: number, name and meaning, in one place.
//!
//! Schedulers act on these numbers, so they are a published interface: the README's table is compared with [`ExitStatus::ALL`] by a
//! test. Which error ends in which code is said beside the errors (`error.rs`), not here. Codes that are not listed mean failure.

use std::process::ExitCode;

/// How a command ended: sysexits(3) numbers, and 1 for what a probe has to report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    /// The run is complete, also when nothing had changed.
    Ok,
    /// `status --max-age`: the last success of a source is older, or there is none.
    Stale,
    /// Bad option, value or url; nothing was touched.
    Usage,
    /// `--strict` was broken, or the guard against mass deletion spoke.
    DataErr,
    /// No usable answer after all attempts.
    Unavailable,
    /// A bug of ours, a panic included.
    Software,
    /// The store or the lock cannot be created.
    CantCreate,
    /// The store cannot be read or written.
    IoErr,
    /// Another run holds the lock, or this one was told to stop.
    TempFail,
    /// The catalogue answers and what it says is no use.
    Protocol,
    /// 401, 403 or 407.
    NoPerm,
    /// A file named by an option cannot be used; the store is not ours or from a newer version.
    Config,
}

impl ExitStatus {
    /// Every status, by rising number.
    pub const ALL: [ExitStatus; 12] = [
        ExitStatus::Ok,
        ExitStatus::Stale,
        ExitStatus::Usage,
        ExitStatus::DataErr,
        ExitStatus::Unavailable,
        ExitStatus::Software,
        ExitStatus::CantCreate,
        ExitStatus::IoErr,
        ExitStatus::TempFail,
        ExitStatus::Protocol,
        ExitStatus::NoPerm,
        ExitStatus::Config,
    ];

    /// The process exit code.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            ExitStatus::Ok => 0,
            ExitStatus::Stale => 1,
            ExitStatus::Usage => 64,
            ExitStatus::DataErr => 65,
            ExitStatus::Unavailable => 69,
            ExitStatus::Software => 70,
            ExitStatus::CantCreate => 73,
            ExitStatus::IoErr => 74,
            ExitStatus::TempFail => 75,
            ExitStatus::Protocol => 76,
            ExitStatus::NoPerm => 77,
            ExitStatus::Config => 78,
        }
    }

    /// The name from sysexits(3), without its prefix; 1 has none there.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            ExitStatus::Ok => "OK",
            ExitStatus::Stale => "STALE",
            ExitStatus::Usage => "USAGE",
            ExitStatus::DataErr => "DATAERR",
            ExitStatus::Unavailable => "UNAVAILABLE",
            ExitStatus::Software => "SOFTWARE",
            ExitStatus::CantCreate => "CANTCREAT",
            ExitStatus::IoErr => "IOERR",
            ExitStatus::TempFail => "TEMPFAIL",
            ExitStatus::Protocol => "PROTOCOL",
            ExitStatus::NoPerm => "NOPERM",
            ExitStatus::Config => "CONFIG",
        }
    }
}

impl From<ExitStatus> for ExitCode {
    fn from(status: ExitStatus) -> Self {
        ExitCode::from(status.code())
    }
}

#[cfg(test)]
mod tests {
    use super::ExitStatus;

    #[test]
    fn numbers_rise_and_names_are_distinct() {
        let all = ExitStatus::ALL;
        for pair in all.windows(2) {
            assert!(pair[0].code() < pair[1].code());
            assert_ne!(pair[0].name(), pair[1].name());
        }
    }
}
