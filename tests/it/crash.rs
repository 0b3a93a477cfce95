//! Death at every moment (I7): killed at every page, told to stop, every request failing once and for good, the disk full at every size.
//!
//! After each end the store is whole, the watermark is not ahead of what is stored (I1, I2), and one ordinary run makes it equal to the
//! catalogue, without reading again what was committed.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "all of this is test code, where a panic is a failed test"
)]

mod disk;
mod kill;
mod requests;

use crate::cases::FIRST;
use crate::support::harness::Harness;
use crate::support::server::Server;
use crate::support::stamps;

/// After a run that did not end well: the store is whole and its watermark not ahead of what is in it. Returns how many records it holds.
#[track_caller]
fn expect_sound(server: &Server, harness: &Harness) -> usize {
    if !harness.path("harvest_state.db").exists() {
        return 0;
    }
    let store = harness.store();
    assert_eq!(store.integrity(), "ok");
    if store.rows("SELECT name FROM sqlite_schema WHERE name = 'harvest_state'").is_empty() {
        return 0;
    }
    let held = store.records();
    for row in store.rows("SELECT watermark FROM harvest_state") {
        let watermark = stamps::read(&row[0]).expect("a watermark that can be read");
        if row[0] == FIRST {
            continue;
        }
        for record in server.catalogue().records() {
            let (Some(identifier), Some(at)) = (&record.identifier, record.filter_stamp) else { continue };
            let fresh = held.get(identifier).is_some_and(|row| row.xml.contains(&record.marker()));
            assert!(fresh || at > watermark, "{identifier} is at or below the watermark {} and not held", row[0]);
        }
    }
    held.len()
}
