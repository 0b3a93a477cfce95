//! What a run may cost: pages in proportion to what changed, and a quiet tick two requests.

use crate::cases::{catalogue, play};
use crate::invariants::the_store_is_the_catalogue;
use crate::moving::Bench;
use crate::support::model::Catalogue;
use crate::support::profiles;
use crate::support::quirks::{Clock, EditedStamp, Quirks};
use crate::support::stamps::{DAY, HOUR, MINUTE, Micros, SECOND, StampShape, day};

const KNOWN: usize = 300;

fn hidden() -> Quirks {
    Quirks { clock: Clock::Hidden(StampShape::Seconds), edited_stamp: EditedStamp::Kept, ..Quirks::default() }
}

/// Changes `count` records, `ties` of them in each second: every third an edit of a known one, as long as there are any.
fn change(catalogue: &mut Catalogue, batch: &str, count: usize, ties: usize) {
    for number in 0..count {
        if number % ties == 0 {
            catalogue.advance(SECOND);
        }
        match number / 3 {
            known if number % 3 == 0 && known < KNOWN => assert!(catalogue.edit(&format!("r-{:06}", known + 1))),
            _ => catalogue.insert(&format!("{batch}-{number:06}")),
        }
    }
}

/// A catalogue that was harvested, with its clock known to be the one or the other; for clock server the margin is over.
fn harvested(quirks: Quirks, page_size: u32) -> Bench {
    let mut catalogue = Catalogue::new(day(2026, 3, 1), quirks);
    catalogue.fill("r", KNOWN, |number| day(2026, 1, 1) + number as Micros * MINUTE);
    let mut bench = Bench::new(catalogue, page_size);
    bench.moving.catalogue.advance(DAY);
    bench.complete();
    for batch in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        change(&mut bench.moving.catalogue, batch, 15, 1);
        bench.moving.catalogue.advance(5 * DAY);
        bench.complete();
    }
    bench
}

/// The waits for answers of a first run, in pages of ten, in milliseconds.
fn waits(haste: u64) -> Vec<u128> {
    let mut catalogue = Catalogue::new(day(2026, 3, 1), Quirks::default());
    catalogue.fill("r", KNOWN, |number| day(2026, 1, 1) + number as Micros * MINUTE);
    let mut bench = Bench::new(catalogue, 10);
    bench.moving.haste = haste;
    bench.moving.catalogue.advance(DAY);
    bench.complete();
    bench.moving.waits.iter().map(std::time::Duration::as_millis).collect()
}

#[test]
fn a_slow_catalogue_never_finds_a_page_waiting_and_a_quick_one_seldom_a_commit() {
    let slow = waits(0);
    let (first, rest) = slow.split_at(2);
    assert_eq!(first, [4, 4], "before anything is known, and with nothing uncommitted");
    assert!(rest.len() > 50 && rest.chunks(2).all(|page| page == [0, 4]), "{slow:?}");
    // All but one in a hundred are here.
    let quick = waits(100);
    assert!(quick.len() < 40 && quick.iter().all(|within| *within == 4), "{quick:?}");
}

/// 10 % more than the changed records fill, and two.
fn pages_max(changed: usize, page_size: u32) -> u64 {
    (changed as f64 / f64::from(page_size) * 1.1 + 2.0).floor() as u64
}

#[track_caller]
fn expect_cheap(what: &str, quirks: &Quirks, ties: usize) {
    let mut dear = Vec::new();
    for page_size in [100, 20] {
        for changed in [1, 99, 100, 101, 250, 1_000, 5_000] {
            let mut bench = harvested(quirks.clone(), page_size);
            change(&mut bench.moving.catalogue, "n", changed, ties);
            bench.moving.catalogue.advance(5 * DAY);
            let (ending, cost) = bench.complete();
            the_store_is_the_catalogue(&bench.store, &bench.moving.catalogue).unwrap();
            assert_eq!(ending.counters.new + ending.counters.updated, changed as u64, "{what}: {ending:?}");
            if cost.pages > pages_max(changed, page_size) {
                dear.push(format!("{changed} by {page_size}: {} for {}", cost.pages, pages_max(changed, page_size)));
            }
        }
    }
    assert!(dear.is_empty(), "{what}: more pages than allowed: {dear:#?}");
}

#[test]
fn pages_are_in_proportion_to_what_changed_where_stamps_differ() {
    expect_cheap("distinct stamps", &Quirks::default(), 1);
}

#[test]
fn pages_are_in_proportion_to_what_changed_where_stamps_are_shared() {
    expect_cheap("seven of each stamp", &Quirks::default(), 7);
}

#[test]
fn pages_are_in_proportion_to_what_changed_where_no_record_shows_it() {
    expect_cheap("clock server", &hidden(), 1);
}

#[test]
fn a_quiet_tick_takes_two_requests_on_every_server_whose_filter_works() {
    let mut tried = 0;
    for (name, quirks) in profiles::all() {
        let filtered = !quirks.properties.accepted.is_empty();
        let (server, harness) = play(catalogue(quirks, 60));
        harness.harvest_quickly(&server, &[]).expect_code(0);
        for round in 1..=2 {
            server.catalogue().advance(DAY);
            for number in 1..=5 {
                server.catalogue().edit(&format!("r-{number:06}"));
            }
            server.catalogue().advance(HOUR);
            harness.harvest_quickly(&server, &[]).expect_code(0);
            server.catalogue().advance(5 * DAY);
            // What the days before could not tell apart is settled once.
            harness.harvest_quickly(&server, &[]).expect_code(0);
            server.forget_journal();
            let quiet = harness.harvest_quickly(&server, &["--json"]).expect_code(0);
            let quiet = quiet.expect_json("new", "0").expect_json("updated", "0");
            if filtered {
                quiet.expect(&format!("{name}, round {round}: two requests at most"), |_| server.asked() <= 2);
                tried += 1;
            }
        }
    }
    assert_eq!(tried, 18, "all but GeoServer filter");
}
