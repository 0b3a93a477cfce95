//! The tests of csw-harvester that need more than one module: through the real binary for what a user sees, in process for logic.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "all of this is test code, where a panic is a failed test"
)]

mod access;
mod cases;
mod check;
mod command;
mod crash;
mod invariants;
mod moving;
mod profiles;
mod proof;
mod properties;
mod reconcile;
mod regression;
mod simulation;
mod support;
mod support_check;
mod tidy;
mod versions;
