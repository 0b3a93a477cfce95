//! A tour for people: five runs against a catalogue on the loopback, and what a scheduler sees after each.
//!
//! `cargo run --release --example tour`. Needs nothing but what builds the project, leaves nothing behind, and ends with 0 only when
//! everything came out as it says. Called with arguments it is csw-harvester itself, built from the same `src/main.rs`: an example cannot
//! rely on the binary being there, and a scheduler sees processes. The catalogue is the model of the tests; what it holds is in
//! `waters.rs`, how the page looks in `page.rs`.

#![allow(
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a tour that cannot go on ends with 101, as a failed test does; `program` is held to the rules as the binary"
)]

mod page;
#[path = "../../src/main.rs"]
mod program;
#[path = "../it/support/mod.rs"]
mod support;
mod waters;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Instant;

use csw_harvester::exit::ExitStatus;
use page::Page;
use support::faults::Fault;
use support::harness::{Harness, Outcome, difference};
use support::journal::Entry;
use support::model::Catalogue;
use support::server::Server;
use support::stamps::{HOUR, MINUTE, Micros, SECOND, seconds_z};
use support::store::{Store, StoredRecord};

/// The check that README.md gives, a statement a line.
const CHECK: &str = "SELECT source, watermark FROM harvest_state;\nSELECT count(*) AS records FROM records;";
const NEWEST_ROWS: &str = "SELECT identifier, modified, title FROM records\nORDER BY changed_seq DESC LIMIT 3;";

fn main() -> ExitCode {
    if std::env::args_os().len() > 1 {
        return program::main();
    }
    let mut tour = Tour::begin();
    tour.first_harvest();
    tour.quiet_run();
    tour.run_after_changes();
    tour.run_against_a_failing_catalogue();
    tour.run_that_recovers();
    tour.end()
}

struct Tour {
    server: Server,
    harness: Harness,
    page: Page,
    /// How the last run ended.
    code: Option<i32>,
    /// The newest stamp in the catalogue, that of 9999 aside.
    newest: String,
}

/// What a run did, by its row in `runs`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Counts {
    outcome: String,
    new: i64,
    updated: i64,
    unchanged: i64,
}

impl Tour {
    fn begin() -> Self {
        let server = Server::start(waters::catalogue());
        let binary = std::env::current_exe().unwrap_or_else(|error| panic!("the tour cannot find itself: {error}"));
        let harness = Harness::against(&server).with_binary(&binary);
        let mut page = Page::new();
        page.heading("csw-harvester: five runs, as a scheduler sees them");
        page.text(
            "A catalogue of hydrography with 1,284 records answers on the loopback for as long as this takes. Its clock is set by hand \
             and stands at 2026-07-09T22:00:00Z. Each run is a process of its own, all in one temporary folder; what it wrote to stderr \
             is shown as it came. What is claimed after a run was checked: against the catalogue, and in the store.",
        );
        Tour { server, harness, page, code: None, newest: waters::NEWEST.to_owned() }
    }

    fn first_harvest(&mut self) {
        self.page.chapter("1  The first harvest");
        self.page.text(
            "Everything is read, without a filter on dates, so that records without a stamp come too. 160 records share one stamp, \
             more than a page holds; two have none, two have one that nobody can read, one is stamped 9999.",
        );
        self.run(&[]);
        self.expect_exit(ExitStatus::Ok);
        self.expect_complete(1_284, 0, 0);
        self.expect_mirror();
        self.expect_watermark("the watermark is the newest settled stamp, not that of 9999");
    }

    fn quiet_run(&mut self) {
        self.page.chapter("2  An hour later, nothing has changed");
        self.page
            .text("What is stamped after the watermark is asked for: the record of 9999, as in every run. And how many there are.");
        self.server.catalogue().advance(HOUR);
        self.server.forget_journal();
        let before = self.records();
        self.run(&[]);
        self.expect_exit(ExitStatus::Ok);
        self.expect_complete(0, 0, 1);
        let asked = self.server.asked();
        self.page.claim("two requests were enough", asked == 2, &format!("{asked} requests"));
        let changed = changed_rows(&before, &self.records());
        self.page.claim("no row of any record was touched", changed.is_empty(), &changed.join(", "));
        self.expect_watermark("the watermark stayed");
    }

    fn run_after_changes(&mut self) {
        self.page.chapter("3  In the next hour, 9 records are inserted and 14 edited");
        self.page.text("They come in one page, and the record of 9999 with them. Nothing else is written.");
        self.newest = change(&mut self.server.catalogue(), "lagoon", 9, 14);
        self.run(&[]);
        self.expect_exit(ExitStatus::Ok);
        self.expect_complete(9, 14, 1);
        self.expect_mirror();
        self.expect_watermark("the watermark is the stamp of the last change");
        self.query(NEWEST_ROWS);
    }

    fn run_against_a_failing_catalogue(&mut self) {
        self.page.chapter("4  In the next hour there are 260 more changes, and the catalogue fails while it is read");
        self.page.text(
            "After one page of records every answer is HTTP 503. The run asks for less and less, to see whether it is one record that \
             cannot be had, and gives up after about ten seconds. The page that came is kept, the watermark is not moved, and the exit \
             code says that it is worth calling again.",
        );
        let before = self.records();
        let newest = change(&mut self.server.catalogue(), "delta", 120, 140);
        let mut pages = 0;
        let after_one_page = move |entry: &Entry| {
            pages += usize::from(entry.page().is_some());
            pages > 1
        };
        self.server.fault_when(after_one_page, Fault::status(503));
        self.run(&["--retries", "1", "--retry-max-wait", "1"]);
        self.expect_exit(ExitStatus::Unavailable);
        let outcome = self.counts().outcome;
        self.page.claim("the run is recorded as partial", outcome == "partial", &outcome);
        let changed = changed_rows(&before, &self.records());
        self.page.claim("100 records of the page that came are kept", changed.len() == 100, &format!("{}", changed.len()));
        self.expect_watermark("the watermark stayed where it was");
        self.newest = newest;
    }

    fn run_that_recovers(&mut self) {
        self.page.chapter("5  The catalogue is well again");
        self.page.text("The run goes on where the last one was cut off; at its end the watermark moves, once for both.");
        self.server.clear_faults();
        let cut_off = self.counts();
        self.run(&[]);
        self.expect_exit(ExitStatus::Ok);
        let counts = self.counts();
        let sum = (cut_off.new + counts.new, cut_off.updated + counts.updated);
        self.page.claim("both runs together: 120 new, 140 updated", sum == (120, 140), &format!("{cut_off:?}, {counts:?}"));
        self.expect_mirror();
        let problems = self.store().problems();
        self.page.claim("no record is blamed for what the catalogue did", problems == 0, &format!("{problems} problems"));
        self.expect_watermark("the watermark is the stamp of the last change");
    }

    fn end(mut self) -> ExitCode {
        self.page.chapter("");
        let (claims, failed) = self.page.score();
        if failed > 0 {
            self.page.text(&format!("Of {claims} claims, {failed} did not hold."));
            return ExitCode::FAILURE;
        }
        self.page.text(&format!("Five runs, {claims} claims, all of them held. Nothing is left behind."));
        ExitCode::SUCCESS
    }

    /// Runs the harvester and shows what a scheduler sees of it, and the check after it.
    fn run(&mut self, options: &[&str]) {
        let url = self.server.url();
        self.page.command(&[&["csw-harvester", "harvest", &url], options].concat().join(" "));
        let began = Instant::now();
        let outcome = self.harness.harvest(&url, options);
        let seconds = began.elapsed().as_secs_f64();
        self.page.log(&outcome.stderr);
        self.page.output(&outcome.stdout);
        self.page.ending(&format!("exit code {}, {seconds:.2} s", told_code(&outcome)));
        self.code = outcome.code();
        self.query(CHECK);
        self.page.gap();
    }

    /// What the sqlite3 program prints for these statements.
    fn query(&mut self, statements: &str) {
        self.page.command(&format!("sqlite3 harvest_state.db \"{statements}\""));
        let store = self.store();
        for statement in statements.split_inclusive(';') {
            let rows = store.rows(statement);
            self.page.output(&rows.iter().map(|row| row.join("|")).collect::<Vec<_>>().join("\n"));
        }
    }

    fn store(&self) -> Store {
        self.harness.store()
    }

    fn records(&self) -> BTreeMap<String, StoredRecord> {
        self.store().records()
    }

    fn counts(&self) -> Counts {
        let rows = self.store().rows("SELECT outcome, new, updated, unchanged FROM runs ORDER BY id DESC LIMIT 1");
        let number = |at: usize| rows[0][at].parse().unwrap_or(-1);
        Counts { outcome: rows[0][0].clone(), new: number(1), updated: number(2), unchanged: number(3) }
    }

    fn expect_exit(&mut self, status: ExitStatus) {
        let holds = self.code == Some(i32::from(status.code()));
        self.page.claim(&format!("the exit code says {}", status.name()), holds, &format!("{:?}", self.code));
    }

    fn expect_complete(&mut self, new: i64, updated: i64, unchanged: i64) {
        let expected = Counts { outcome: "complete".to_owned(), new, updated, unchanged };
        let counts = self.counts();
        let claim = format!("{new} new, {updated} updated, {unchanged} unchanged");
        self.page.claim(&claim, counts == expected, &format!("{counts:?}"));
    }

    fn expect_mirror(&mut self) {
        let difference = difference(&self.server.catalogue().visible(), &self.records());
        self.page.claim("the store holds what the catalogue holds, in its latest version", difference.is_empty(), &difference);
    }

    fn expect_watermark(&mut self, claim: &str) {
        let watermark = self.store().watermark();
        self.page.claim(claim, watermark == self.newest, &format!("it is {watermark}, not {}", self.newest));
    }
}

/// So many inserts and edits in turn within an hour, and three quiet minutes after them; says the last stamp.
fn change(catalogue: &mut Catalogue, prefix: &str, inserts: usize, edits: usize) -> String {
    let changes = inserts + edits;
    let step = (HOUR - 3 * MINUTE) / SECOND / changes as Micros * SECOND;
    for number in 0..changes {
        catalogue.advance(step);
        let (inserted, due) = (number * inserts / changes, (number + 1) * inserts / changes);
        if due > inserted {
            waters::insert(catalogue, &format!("{prefix}-{due:04}"), number * 5);
        } else {
            assert!(catalogue.edit(&waters::identifier((number - inserted) * 7 + 11)), "a record to edit");
        }
    }
    let last = seconds_z(catalogue.now());
    catalogue.advance(3 * MINUTE);
    last
}

fn told_code(outcome: &Outcome) -> String {
    let Some(code) = outcome.code() else { return "none, ended by a signal".to_owned() };
    let name = ExitStatus::ALL.iter().find(|status| i32::from(status.code()) == code).map_or("unknown", |status| status.name());
    format!("{code} ({name})")
}

/// The identifiers of the records that are not as they were.
fn changed_rows(before: &BTreeMap<String, StoredRecord>, after: &BTreeMap<String, StoredRecord>) -> Vec<String> {
    let gone = before.keys().filter(|identifier| !after.contains_key(*identifier));
    let changed = after.iter().filter(|(identifier, record)| before.get(*identifier) != Some(*record));
    changed.map(|(identifier, _)| identifier).chain(gone).cloned().collect()
}
