//! Prints the manual page: `cargo run --example manual > deploy/debian/csw-harvester.1`. A test compares what lies there with what comes.

#![allow(
    clippy::print_stdout,
    clippy::panic,
    clippy::expect_used,
    reason = "stdout is what this is for, and it runs at a developer's"
)]

mod page;
#[path = "../it/support/mod.rs"]
mod support;
#[allow(dead_code, reason = "the tests use the rest")]
#[path = "../it/tidy/tables.rs"]
mod tables;

fn main() {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).expect("README.md");
    print!("{}", page::page(&tables::rows_below(&readme, "## Exit codes")));
}
