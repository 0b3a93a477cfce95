//! What a server was asked and what it said, for asserts and for the report of a failed test.

use std::fmt;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::model::{ModelRequest, Report};
use super::requests::Operation;

/// One request, as it came and as it was answered.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// From 1, since the start or the last `forget_journal`.
    pub(crate) number: usize,
    /// Which connection it came on, from 1.
    pub(crate) connection: u64,
    pub(crate) method: String,
    pub(crate) target: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
    /// What it was understood as.
    pub(crate) operation: Result<Operation, Report>,
    /// What was answered, shortened.
    pub(crate) answered: String,
}

impl Entry {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(held, _)| held == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    pub(crate) fn get_records(&self) -> Option<&ModelRequest> {
        match &self.operation {
            Ok(Operation::GetRecords(request)) => Some(request),
            _ => None,
        }
    }

    /// A GetRecords that asks for records, not for their number.
    pub(crate) fn page(&self) -> Option<&ModelRequest> {
        self.get_records().filter(|request| !request.hits)
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:>4} {} {}", self.number, self.method, self.target)?;
        match &self.operation {
            Ok(Operation::GetRecords(request)) => write!(out, " {}", told(request))?,
            Ok(other) => write!(out, " {other:?}")?,
            Err(report) => write!(out, " refused: {}: {}", report.code, report.text)?,
        }
        write!(out, " -> {}", self.answered)
    }
}

fn told(request: &ModelRequest) -> String {
    let mut out = format!("GetRecords {}+{}", request.start_position, request.max_records);
    if request.hits {
        out.push_str(" hits");
    }
    let property = request.property.as_deref().unwrap_or_default();
    if let Some((operator, literal)) = &request.lower {
        out.push_str(&format!(" {property} {operator:?} {literal}"));
    }
    if let Some(upper) = &request.upper {
        out.push_str(&format!(" {property} until {upper}"));
    }
    if let Some(also) = &request.also {
        out.push_str(&format!(" and {also:?}"));
    }
    if let Some(sort) = &request.sort {
        out.push_str(&format!(" by {sort}"));
    }
    out
}

/// The requests so far; outlives the server for the report of a failed test.
#[derive(Default)]
pub(crate) struct Journal {
    pub(super) entries: Mutex<Vec<Entry>>,
    pub(super) grown: Condvar,
}

impl Journal {
    /// One line a request.
    pub(crate) fn told(&self) -> String {
        let lines: Vec<String> = lock(&self.entries).iter().map(|entry| format!("{entry}\n")).collect();
        lines.concat()
    }
}

// A test that failed with a lock in hand must not hide its message behind another panic.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
