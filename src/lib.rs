//! One crash-safe incremental harvest of an OGC CSW catalogue into SQLite.
//!
//! The modules in reading order; data flows down this list. Pure modules know no file, socket, clock, environment or log.
//!
//! # Invariants
//!
//! - **I1** After any end of any run, also kill -9, no record whose settled stamp is at or below the stored watermark is missing or stale,
//!   as far as the catalogue ever showed it.
//! - **I2** The watermark moves once a run, in the transaction that completes it, after the records are in.
//! - **I3** Reading the same window again leaves every row as it was, `harvested_at` included.
//! - **I4** One run a source; the lock is taken before the store is opened for writing.
//! - **I5** Every loop has a bound and every body, string and wait a limit.
//! - **I6** What cannot be read is counted, kept in `problems` and told; it is never dropped in silence and never ends the run by itself.
//! - **I7** Death at any moment is a normal end; correctness needs no clean-up.

pub mod exit;

pub mod error;

pub mod cli;

pub mod harvest;

pub mod check;

pub mod status;

pub mod export;

pub mod negotiate;

pub mod catalogue;

// Pure.

pub mod timestamp;

pub mod plan;

pub mod watermark;

pub mod dialect;

pub mod report;

pub mod metrics;

pub mod findings;

pub mod csw;

pub mod reconcile;

pub mod stable_hash;

// Effects.

pub mod http;

pub mod retry;

pub mod clock;

pub mod lock;

pub mod signal;

pub mod progress;

pub mod journal;

pub mod publish;

pub mod terminal;

pub mod replace;

pub mod store;
