//! Each server of the field as the model plays it, through the real binary: a first harvest, a quiet tick, changes under way.
//!
//! What a profile is like stands in `support/profiles.rs`. One catalogue a case, so that the cases run side by side; a failure names the
//! profile. Single quirks and reported cases are left to `cases`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use crate::cases::{in_parallel, play};
use crate::support::harness::{Harness, difference};
use crate::support::model::Catalogue;
use crate::support::profiles;
use crate::support::quirks::{CSW, GMD, Quirks};
use crate::support::server::Server;
use crate::support::stamps::{DAY, HOUR, Micros, SECOND, day};

const RECORDS: usize = 90;
const PAGE_SIZE: &str = "20";
/// How long a catalogue rests before a tick must find everything settled, and must be cheap.
const REST: Micros = 5 * DAY;
const QUIET_REQUESTS_MAX: usize = 2;
/// Pages after which changes are tried one at a time; the first harvest has at least so many.
const PAGES: usize = 4;
/// Changes in one run: a catalogue that grows for ever is never read to its end.
const ROUNDS_MAX: usize = 12;

/// Far enough apart that a page holds all of the two days before the watermark, which are asked for where stamps have offsets.
const APART: Micros = 6 * HOUR;

type Profile = (&'static str, Quirks);

fn all() -> Vec<Profile> {
    let mut all = profiles::all();
    all.push(("deegree with MaxMatches", profiles::deegree_with_max_matches(10)));
    all
}

/// The profiles with each schema that they offer, as the option and as the namespace.
fn all_in_each_schema() -> Vec<(Profile, &'static str, &'static str)> {
    let schemas = [("csw", CSW), ("iso", GMD)];
    let offered = |profile: Profile| {
        let schemas = schemas.into_iter().filter(|(_, schema)| profile.1.schemas.contains(schema)).collect::<Vec<_>>();
        schemas.into_iter().map(move |(option, schema)| (profile.clone(), option, schema))
    };
    all().into_iter().flat_map(offered).collect()
}

fn catalogue(quirks: Quirks) -> Catalogue {
    let mut catalogue = Catalogue::new(day(2025, 6, 1), quirks);
    catalogue.fill("r", RECORDS, |number| day(2025, 1, 1) + number as Micros * APART);
    catalogue
}

/// Runs each case and tells all that fail, each by its name.
#[track_caller]
fn each<T: Sync>(cases: &[T], name: impl Fn(&T) -> String + Sync, case: impl Fn(&T) + Sync) {
    let failed = Mutex::new(Vec::new());
    in_parallel(cases.len(), |number| {
        if catch_unwind(AssertUnwindSafe(|| case(&cases[number]))).is_err() {
            failed.lock().unwrap_or_else(PoisonError::into_inner).push(name(&cases[number]));
        }
    });
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    assert!(failed.is_empty(), "failed: {}", failed.join(", "));
}

fn tick(server: &Server, harness: &Harness, schema: &str) {
    harness.harvest_quickly(server, &["--page-size", PAGE_SIZE, "--schema", schema]).expect_code(0);
}

#[track_caller]
fn expect_mirror(server: &Server, harness: &Harness, schema: &str) {
    let difference = difference(&server.catalogue().visible_in(schema), &harness.store().records());
    assert!(difference.is_empty(), "the store is not the catalogue:\n{difference}\n{}", server.journal().told());
}

/// The first harvest, and whether it brought everything.
fn harvested(quirks: &Quirks, option: &str, schema: &str) -> (Server, Harness) {
    let (server, harness) = play(catalogue(quirks.clone()));
    tick(&server, &harness, option);
    expect_mirror(&server, &harness, schema);
    (server, harness)
}

#[test]
fn a_first_harvest_is_complete_in_each_schema_and_the_next_leaves_every_row() {
    let name = |((name, _), option, _): &(Profile, &'static str, &'static str)| format!("{name} in {option}");
    each(&all_in_each_schema(), name, |((_, quirks), option, schema)| {
        let (server, harness) = harvested(quirks, option, schema);
        let rows = harness.store().records();
        assert_eq!(rows.len(), RECORDS);
        server.catalogue().advance(REST);
        tick(&server, &harness, option);
        assert_eq!(harness.store().records(), rows);
    });
}

#[test]
fn a_quiet_tick_is_cheap_where_the_filter_works_and_reads_everything_elsewhere() {
    each(
        &all(),
        |(name, _)| (*name).to_owned(),
        |(name, quirks)| {
            let (server, harness) = harvested(quirks, "csw", CSW);
            server.catalogue().advance(REST);
            tick(&server, &harness, "csw");
            server.catalogue().advance(REST);
            server.forget_journal();
            let rows = harness.store().records();
            let outcome = harness.harvest_quickly(&server, &["--page-size", PAGE_SIZE, "--json"]).expect_code(0);
            assert_eq!(harness.store().records(), rows);
            if *name == "geoserver" {
                outcome.expect_json("clock", "\"none\"").expect_json("unchanged", &RECORDS.to_string());
                return;
            }
            let asked = server.asked();
            assert!(asked <= QUIET_REQUESTS_MAX, "{asked} requests:\n{}", server.journal().told());
        },
    );
}

/// When changes come.
#[derive(Clone, Copy, Debug)]
enum Change {
    AfterPage(usize),
    AfterEachPage,
}

/// From now on inserts a record and edits four, old and new, after pages.
fn change_between_pages(server: &Server, change: Change) {
    let (mut page, mut rounds) = (0, 0);
    server.after_request(move |catalogue, entry| {
        page += usize::from(entry.page().is_some());
        let due = match change {
            Change::AfterPage(at) => page == at && rounds == 0,
            Change::AfterEachPage => rounds < ROUNDS_MAX,
        };
        if entry.page().is_none() || !due {
            return;
        }
        rounds += 1;
        catalogue.advance(7 * SECOND);
        catalogue.insert(&format!("n-{rounds:06}"));
        for number in [1, 10 + rounds, 45, RECORDS - rounds] {
            catalogue.edit(&format!("r-{number:06}"));
        }
        catalogue.advance(SECOND);
    });
}

#[test]
fn changes_between_any_two_pages_have_arrived_after_one_more_tick_at_rest() {
    let changes: Vec<Change> = (1..=PAGES).map(Change::AfterPage).chain([Change::AfterEachPage]).collect();
    let cases: Vec<(Profile, Change)> =
        all().into_iter().flat_map(|profile| changes.clone().into_iter().map(move |change| (profile.clone(), change))).collect();
    let name = |((name, _), change): &(Profile, Change)| format!("{name} with changes {change:?}");
    each(&cases, name, |((_, quirks), change)| {
        let (server, harness) = play(catalogue(quirks.clone()));
        change_between_pages(&server, *change);
        tick(&server, &harness, "csw");
        assert!(server.catalogue().records().len() > RECORDS, "nothing was changed:\n{}", server.journal().told());
        server.after_request(|_, _| {});
        server.catalogue().advance(REST);
        tick(&server, &harness, "csw");
        expect_mirror(&server, &harness, CSW);
    });
}

#[test]
fn changes_while_a_later_tick_reads_have_arrived_after_one_more_at_rest() {
    let name = |((name, _), option, _): &(Profile, &'static str, &'static str)| format!("{name} in {option}");
    each(&all_in_each_schema(), name, |((_, quirks), option, schema)| {
        let (server, harness) = harvested(quirks, option, schema);
        server.catalogue().advance(REST);
        for number in 1..=60 {
            server.catalogue().edit(&format!("r-{number:06}"));
            server.catalogue().advance(SECOND);
        }
        change_between_pages(&server, Change::AfterEachPage);
        tick(&server, &harness, option);
        server.after_request(|_, _| {});
        server.catalogue().advance(REST);
        tick(&server, &harness, option);
        expect_mirror(&server, &harness, schema);
    });
}
