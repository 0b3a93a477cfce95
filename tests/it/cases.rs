//! Cases that somebody met while harvesting CSW, each by its id: an input rebuilt small, and the right value at the end.
//!
//! All go through the real binary. Where a case is a manner of a catalogue, the model with that quirk plays it; where it is told as
//! raw answers, a list of records does, served by start position, since pages overlap. What is here only sets the stage.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "all of this is test code, where a panic is a failed test"
)]

mod answers;
mod bad;
mod bytes;
mod paging;
mod stamps;

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::canned::{Canned, Reply, env};
use crate::support::harness::Harness;
use crate::support::model::Catalogue;
use crate::support::quirks::Quirks;
use crate::support::requests::Operation;
use crate::support::server::Server;
use crate::support::stamps::{HOUR, Micros, day};

/// What the watermark is while no harvest was complete.
pub(crate) const FIRST: &str = "1970-01-01T00:00:00Z";

/// A catalogue of 2025-06-01 whose records `r-000001` and so on are an hour apart, from 2025-01-01 on.
pub(crate) fn catalogue(quirks: Quirks, count: usize) -> Catalogue {
    let mut catalogue = Catalogue::new(day(2025, 6, 1), quirks);
    catalogue.fill("r", count, |number| day(2025, 1, 1) + number as Micros * HOUR);
    catalogue
}

/// The same behind a server, and a folder to run in.
pub(crate) fn stage(quirks: Quirks, count: usize) -> (Server, Harness) {
    play(catalogue(quirks, count))
}

pub(crate) fn play(catalogue: Catalogue) -> (Server, Harness) {
    let server = Server::start(catalogue);
    let harness = Harness::against(&server);
    (server, harness)
}

pub(crate) fn play_script(script: Canned) -> (Server, Harness) {
    let server = Server::canned(script);
    let harness = Harness::against(&server);
    (server, harness)
}

/// Runs the cases on a few threads: most of their time is waiting.
pub(crate) fn in_parallel(cases: usize, case: impl Fn(usize) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..cases.min(12) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::SeqCst);
                    if number >= cases {
                        return;
                    }
                    case(number);
                }
            });
        }
    });
}

/// The place of one page, for those who tell the counters of the envelope around it.
#[derive(Clone, Copy)]
struct Place {
    /// 1-based.
    start: i64,
    returned: i64,
    total: i64,
}

impl Place {
    /// The position after the page.
    fn next(self) -> i64 {
        self.start + self.returned
    }
}

/// A catalogue without a filter that serves fixed records; `counters` tells matched and nextRecord of each page.
fn list(records: Vec<String>, counters: impl Fn(Place) -> (Option<i64>, Option<i64>) + Send + 'static) -> Canned {
    Canned::in_order([]).rule(move |operation| {
        let Operation::GetRecords(request) = operation else { return None };
        if request.lower.is_some() || request.upper.is_some() {
            return None;
        }
        let start = usize::try_from(request.start_position - 1).expect("a position from 1");
        let size = if request.hits { 0 } else { request.max_records as usize };
        let page: Vec<String> = records.iter().skip(start).take(size).cloned().collect();
        let place = Place { start: request.start_position, returned: page.len() as i64, total: records.len() as i64 };
        let (matched, next) = counters(place);
        Some(Reply::xml(env(matched, Some(page.len() as u64), next, &page)))
    })
}

/// Counters as OGC 07-006r1 has them.
fn right(place: Place) -> (Option<i64>, Option<i64>) {
    let next = if place.next() > place.total { 0 } else { place.next() };
    (Some(place.total), Some(next))
}

/// How many pages of that size were asked for.
fn pages(server: &Server, size: u32) -> usize {
    server.get_records().iter().filter(|request| !request.hits && request.max_records == size).count()
}
