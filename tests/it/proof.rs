//! What the harvester promises of its cost and of large catalogues, and that the checks of the invariants notice when one is broken.
//!
//! In process against the model, but where the lock or the command line has a part in it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "all of this is test code, where a panic is a failed test"
)]

mod breaks;
mod ceilings;
mod costs;
mod ties;
