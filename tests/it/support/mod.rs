//! The model catalogue and what is needed to play it to the harvester.
//!
//! `model` and what it uses are pure: no socket, no real clock, no XML. `requests` and `xml` are the wire format, `server` speaks HTTP on
//! the loopback, `harness` runs the binary. Nothing in here knows the library under test, so that a mistake there is not repeated here.
//! The tour and the benchmarks include this module by path; only `harness` needs to know where the binary is, and says so when run.

#![allow(dead_code, reason = "each crate that includes this module uses a part of it")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "all of this is test code, where a panic is a failed test"
)]

pub(crate) mod canned;
pub(crate) mod faults;
pub(crate) mod harness;
pub(crate) mod help;
pub(crate) mod journal;
pub(crate) mod model;
pub(crate) mod profiles;
pub(crate) mod quirks;
pub(crate) mod requests;
pub(crate) mod server;
pub(crate) mod stamps;
pub(crate) mod store;
pub(crate) mod tree;
pub(crate) mod xml;
