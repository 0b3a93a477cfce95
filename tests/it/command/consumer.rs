//! A consumer of `export` beside a living catalogue: it applies each line as it comes, dies at any line, and holds the store at the end.

use std::collections::BTreeMap;

use serde_json::Value;

use super::export::{Reading, parsed, sql};
use crate::cases::stage;
use crate::support::harness::Harness;
use crate::support::quirks::Quirks;
use crate::support::server::Server;
use crate::support::stamps::HOUR;

const RECORDS: usize = 120;

/// What a consumer knows: xml by identifier.
#[derive(Default)]
struct Consumer {
    held: BTreeMap<String, String>,
    /// The highest `seq` that it applied, which one that keeps no cursor file goes on from.
    seq: i64,
}

impl Consumer {
    fn apply(&mut self, line: &Value) {
        let identifier = line["identifier"].as_str().expect("an identifier").to_owned();
        match line["xml"].as_str() {
            Some(xml) => self.held.insert(identifier, xml.to_owned()),
            None => self.held.remove(&identifier),
        };
        assert_eq!(line["deleted"], line["xml"].is_null());
        self.seq = line["seq"].as_i64().expect("a number");
    }

    #[track_caller]
    fn expect_store(&self, harness: &Harness) {
        let store: BTreeMap<String, String> = harness.store().records().into_iter().map(|(key, row)| (key, row.xml)).collect();
        let keys = |map: &BTreeMap<String, String>| map.keys().cloned().collect::<Vec<_>>();
        assert_eq!(keys(&self.held), keys(&store));
        assert!(self.held == store, "a record is not as the store has it");
    }
}

/// Numbers that are as good as random, the same in each run of the test.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % most
    }
}

/// Edits, inserts and deletes in the catalogue, and a harvest; what is deleted gets its tombstone, also where no run has noticed yet.
fn live_on(server: &Server, harness: &Harness, dice: &mut Dice, turn: usize) {
    let mut gone = Vec::new();
    {
        let mut catalogue = server.catalogue();
        catalogue.advance(HOUR);
        for _ in 0..dice.below(6) {
            catalogue.edit(&format!("r-{:06}", 1 + dice.below(RECORDS)));
        }
        for _ in 0..dice.below(6) {
            let identifier = format!("r-{:06}", 1 + dice.below(RECORDS));
            if catalogue.delete(&identifier) {
                gone.push(identifier);
            }
        }
        catalogue.insert(&format!("late-{turn}"));
        // One that was deleted comes back.
        let back = format!("r-{:06}", 1 + dice.below(RECORDS));
        if !catalogue.records().iter().any(|record| record.identifier.as_deref() == Some(back.as_str())) && !gone.contains(&back) {
            catalogue.insert(&back);
        }
        catalogue.advance(HOUR);
    }
    harness.harvest_quickly(server, &[]).expect_code(0);
    for identifier in gone {
        sql(
            harness,
            &format!(
                "UPDATE sequence SET last = last + 1;
                 INSERT OR IGNORE INTO tombstones SELECT source, identifier, '2026-02-02T00:00:00Z', (SELECT last FROM sequence)
                 FROM records WHERE identifier = '{identifier}';
                 DELETE FROM records WHERE identifier = '{identifier}'"
            ),
        );
    }
}

#[test]
fn a_consumer_that_is_cut_off_again_and_again_holds_the_store_at_the_end() {
    let (server, harness) = stage(Quirks::default(), RECORDS);
    for number in 1..=RECORDS {
        server.catalogue().change(&format!("r-{number:06}"), |record| record.size = 4 * 1024);
    }
    harness.harvest_quickly(&server, &[]).expect_code(0);
    let (mut consumer, mut dice, mut cut) = (Consumer::default(), Dice(7), 0);
    for turn in 0..30 {
        if turn % 3 == 0 {
            // It begins anew, with what it holds: deletions are told from the first change on.
            let _ = std::fs::remove_file(harness.path("cursor"));
        }
        let mut reading = Reading::of(&harness, &["--cursor-file", "cursor"]);
        let lines = dice.below(RECORDS * 3 / 2);
        let mut before = 0;
        for number in 0.. {
            if number == lines {
                reading.kill();
            }
            // What it wrote before it died is still in the pipe; half a line is none.
            let Some(line) = reading.line() else { break };
            consumer.apply(&serde_json::from_str(&line).expect("JSON"));
            assert!(consumer.seq > before, "{} after {before}", consumer.seq);
            before = consumer.seq;
        }
        match reading.end() {
            Some(0) => consumer.expect_store(&harness),
            code => {
                assert_eq!(code, None);
                cut += 1;
            }
        }
        live_on(&server, &harness, &mut dice, turn);
    }
    assert!(cut >= 5, "{cut} exports were cut off");
}

#[test]
fn a_consumer_that_keeps_the_number_itself_needs_no_cursor_file() {
    let (server, harness) = stage(Quirks::default(), RECORDS);
    harness.harvest_quickly(&server, &[]).expect_code(0);
    let (mut consumer, mut dice) = (Consumer::default(), Dice(11));
    for turn in 0..12 {
        let since = consumer.seq.to_string();
        let outcome = harness.run(&["export", "--since-seq", &since]).expect_code(0);
        // It dies somewhere within, and has applied what it has, with the number, in one transaction of its own.
        let lines = parsed(&outcome.stdout);
        let applied = if turn % 3 == 2 { lines.len() } else { dice.below(lines.len() + 1) };
        lines.iter().take(applied).for_each(|line| consumer.apply(line));
        if applied == lines.len() {
            consumer.expect_store(&harness);
        }
        live_on(&server, &harness, &mut dice, turn);
    }
}
