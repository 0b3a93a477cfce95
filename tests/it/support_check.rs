//! Tests of the tests' own catalogue: what the model, its XML and its server promise to the tests that build on them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "all of this is test code, where a panic is a failed test"
)]

mod model;
mod requests;
mod server;
