//! The command line as published: options, exit codes, what goes to stdout and to stderr, what stands in the store.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "all of this is test code, where a panic is a failed test"
)]

mod consumer;
mod export;
mod inputs;
mod metrics;
mod options;
mod runs;
mod status;
mod terminal;
