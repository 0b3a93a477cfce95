//! The command `status`: what it tells for people and as JSON, its exit codes, and that it touches nothing.

use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::Duration;

use rusqlite::Connection;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::Value;

use super::export::sql;
use super::inputs::{expect_refusal, files};
use crate::cases::{FIRST, stage};
use crate::support::faults::Fault;
use crate::support::harness::{Harness, Outcome};
use crate::support::quirks::Quirks;
use crate::support::stamps::HOUR;

const LONG: Duration = Duration::from_secs(60);

/// The JSON of `status`, which is one line and all of stdout.
#[track_caller]
fn json(outcome: &Outcome) -> Value {
    let line = outcome.stdout.strip_suffix('\n').filter(|line| !line.contains('\n'));
    let Some(line) = line else { outcome.fail("expected one line on stdout") };
    serde_json::from_str(line).unwrap_or_else(|error| outcome.fail(&format!("no JSON: {error}")))
}

/// `status --json` with more arguments.
#[track_caller]
fn told(harness: &Harness, more: &[&str], code: i32) -> Value {
    json(&harness.run(&[&["status", "--json"], more].concat()).expect_code(code))
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

const RUN_KEYS: [&str; 11] =
    ["deleted", "ended_at", "error", "exit_code", "new", "outcome", "reconciled", "skipped", "started_at", "unchanged", "updated"];
const SOURCE_KEYS: [&str; 13] = [
    "clock",
    "last_reconcile",
    "last_run",
    "last_success_age_s",
    "last_success_at",
    "latest_problem",
    "problems",
    "records",
    "source",
    "stale",
    "tombstones",
    "watermark",
    "watermark_age_s",
];

#[test]
fn a_source_that_was_harvested_is_told_of_in_all_its_parts() {
    let (server, harness) = stage(Quirks::default(), 5);
    harness.harvest_quickly(&server, &[]).expect_code(0);
    sql(
        &harness,
        "INSERT INTO tombstones SELECT source, 'gone', '2026-01-01T00:00:00Z', 6 FROM harvest_state;
         INSERT INTO problems SELECT source, 'position 9', 'HTTP \"500\"', '2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z', 4, 1
         FROM harvest_state;
         UPDATE harvest_state SET inventory_at = '2026-01-03T00:00:00Z', inventory_gap = 1,
             inventory_new = 2, inventory_updated = 3, inventory_deleted = 4",
    );
    let all = told(&harness, &[], 0);
    assert_eq!(keys(&all), ["at", "db", "error", "exit_code", "max_age_s", "sources"]);
    assert_eq!((&all["db"], &all["exit_code"], &all["error"]), (&"harvest_state.db".into(), &0.into(), &Value::Null));
    let source = &all["sources"][0];
    assert_eq!(keys(source), SOURCE_KEYS);
    assert_eq!(source["source"], server.url());
    assert_eq!((&source["watermark"], &source["clock"]), (&"2025-01-01T04:00:00Z".into(), &"record".into()));
    assert_eq!((&source["records"], &source["tombstones"], &source["problems"]), (&5.into(), &1.into(), &1.into()));
    assert!(
        source["watermark_age_s"].as_i64().unwrap() > 86_400 && source["last_success_age_s"].as_i64().unwrap() < 3_600,
        "{source}"
    );
    assert_eq!(source["stale"], Value::Null);
    let run = &source["last_run"];
    assert_eq!(keys(run), RUN_KEYS);
    assert_eq!(
        (&run["outcome"], &run["exit_code"], &run["new"], &run["error"]),
        (&"complete".into(), &0.into(), &5.into(), &Value::Null)
    );
    let problem = concat!(
        r#"{"place":"position 9","why":"HTTP \"500\"","first_seen":"2026-01-01T00:00:00Z","#,
        r#""last_seen":"2026-01-02T00:00:00Z","attempts":4}"#
    );
    assert_eq!(source["latest_problem"], serde_json::from_str::<Value>(problem).unwrap());
    let reconcile = &source["last_reconcile"];
    assert_eq!(keys(reconcile), ["age_s", "at", "deleted", "gap", "new", "updated"]);
    let found = ["new", "updated", "deleted", "gap"].map(|key| reconcile[key].as_i64().unwrap());
    assert_eq!((found, &reconcile["at"]), ([2, 3, 4, 1], &"2026-01-03T00:00:00Z".into()));
    let text = harness.run(&["status"]).expect_code(0).expect("no log", |outcome| outcome.stderr.is_empty());
    let words = text.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        &server.url(),
        "5 records, 1 tombstone ",
        "complete, exit 0 OK",
        "5 new",
        "position 9: HTTP \"500\"",
        "2 new, 3 updated, 4 deleted",
    ] {
        assert!(words.contains(part), "{part} is not in\n{}", text.stdout);
    }
}

#[test]
fn a_source_that_failed_and_one_that_never_succeeded_are_told_of_and_one_can_be_chosen() {
    let (server, harness) = stage(Quirks::default(), 5);
    harness.harvest_quickly(&server, &[]).expect_code(0);
    server.fault_when(|_| true, Fault::status(503));
    for more in [&[][..], &["--source", "never"]] {
        harness.harvest_quickly(&server, &[&["--retries", "0"], more].concat()).expect_code(69);
    }
    let all = told(&harness, &[], 0);
    let [failed, never] = all["sources"].as_array().unwrap().as_slice() else { panic!("{all}") };
    assert_eq!((&failed["last_run"]["outcome"], &failed["last_run"]["exit_code"]), (&"failed".into(), &69.into()));
    assert!(failed["last_run"]["error"].as_str().unwrap().contains("503") && failed["last_success_at"].is_string());
    assert_eq!((&never["source"], &never["watermark"]), (&"never".into(), &FIRST.into()));
    for key in ["watermark_age_s", "last_success_at", "last_success_age_s", "last_reconcile", "latest_problem"] {
        assert_eq!(never[key], Value::Null, "{key}");
    }
    let one = told(&harness, &["--source", "never"], 0);
    assert_eq!(one["sources"].as_array().unwrap().as_slice(), std::slice::from_ref(never));
    let text = harness.run(&["status"]).expect_code(0).expect_stdout("exit 69 UNAVAILABLE").expect_stdout("2 sources: 2 bad");
    text.expect("80 columns", |outcome| outcome.stdout.lines().all(|line| line.chars().count() <= 80));
}

#[test]
fn max_age_is_1_when_a_success_is_older_or_there_is_none() {
    let (server, harness) = stage(Quirks::default(), 5);
    harness.harvest_quickly(&server, &["--source", "well"]).expect_code(0);
    assert_eq!(told(&harness, &["--max-age", "3600"], 0)["sources"][0]["stale"], false);
    sql(
        &harness,
        "INSERT INTO harvest_state (source, last_success_at) VALUES ('old', '2020-01-01T00:00:00Z'), ('none', NULL), ('odd', 'x')",
    );
    let all = told(&harness, &["--max-age", "3600"], 1);
    let stale: Vec<(&str, bool)> = all["sources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["source"].as_str().unwrap(), one["stale"].as_bool().unwrap()))
        .collect();
    assert_eq!(stale, [("none", true), ("odd", true), ("old", true), ("well", false)]);
    assert_eq!((&all["exit_code"], &all["max_age_s"]), (&1.into(), &3600.into()));
    let text = harness.run(&["status", "--max-age", "3600"]).expect_code(1).expect_stderr("3 of 4 sources: none, odd, old");
    text.expect_stdout("--max-age allows").expect("a line on stderr", |outcome| outcome.stderr.lines().count() == 1);
    harness.run(&["status", "--max-age", "3600", "--source", "well"]).expect_code(0);
    harness.run(&["status", "--max-age", "3600", "--source", "old"]).expect_code(1);
    harness.run(&["status", "--max-age", "31536000"]).expect_code(1);
    harness.run(&["status"]).expect_code(0);
    sql(&harness, "UPDATE harvest_state SET last_success_at = '2099-01-01T00:00:00Z' WHERE source = 'well'");
    harness.run(&["status", "--max-age", "3600", "--source", "well"]).expect_code(1);
    sql(&harness, "DELETE FROM harvest_state");
    harness.run(&["status", "--max-age", "3600"]).expect_code(1).expect_stderr("no source was ever harvested");
    harness.run(&["status"]).expect_code(0).expect_stdout("No source was harvested");
}

#[test]
fn it_looks_while_a_run_is_under_way_and_after_it_was_killed() {
    let (server, harness) = stage(Quirks::default(), 30);
    server.fault_times(1, |entry| entry.page().is_some_and(|page| page.max_records == 10 && page.start_position > 5), Fault::Stall);
    let url = server.url();
    let mut running = harness.spawn(&["harvest", &url, "--page-size", "10"]);
    assert!(server.wait_for_stall(LONG), "{}", server.journal().told());
    let run = &told(&harness, &[], 0)["sources"][0]["last_run"];
    assert_eq!((&run["outcome"], &run["ended_at"], &run["exit_code"]), (&Value::Null, &Value::Null, &Value::Null));
    harness.run(&["status"]).expect_code(0).expect_stdout("has not ended: under way, or killed");
    assert!(!running.has_ended());
    running.kill();
    running.wait();
    server.release();
    harness.run(&["status"]).expect_code(0).expect_stdout("has not ended: under way, or killed");
    harness.harvest_quickly(&server, &["--page-size", "10"]).expect_code(0);
    harness.expect_mirror(&server.catalogue());
    harness.run(&["status"]).expect_code(0).expect_stdout("complete, exit 0 OK");
}

#[test]
fn looking_changes_no_byte_and_leaves_no_file() {
    let (server, harness) = stage(Quirks::default(), 30);
    harness.harvest_quickly(&server, &[]).expect_code(0);
    server.catalogue().advance(HOUR);
    let before = files(harness.folder());
    assert_eq!(before.len(), 1);
    for words in [&["status"][..], &["status", "--json", "--max-age", "60"], &["export"], &["export", "--since-seq", "3"]] {
        harness.run(words).expect_code(0);
        assert_eq!(files(harness.folder()), before, "{words:?}");
    }
}

#[test]
fn a_store_that_cannot_be_read_is_told_by_both_commands_and_stays_as_it_is() {
    let (server, harness) = stage(Quirks::default(), 200);
    harness.write("notes.txt", "Buy milk.\n");
    let foreign = Connection::open(harness.path("foreign.db")).expect("a database");
    foreign.execute_batch("CREATE TABLE harvest_state (source TEXT)").expect("a table");
    drop(foreign);
    for db in ["newer.db", "older.db", "damaged.db"] {
        harness.harvest(&server.url(), &["--db", db]).expect_code(0);
    }
    for (db, version) in [("newer.db", 1_000), ("older.db", 1)] {
        let store = Connection::open(harness.path(db)).expect("a store");
        store.pragma_update(None, "user_version", version).expect("a version");
    }
    let mut bytes = fs::read(harness.path("damaged.db")).expect("the store");
    bytes[16 * 1024..].fill(0xa5);
    harness.write("damaged.db", bytes);
    fs::create_dir(harness.path("folder")).expect("a folder");
    let before = files(harness.folder());
    let cases = [
        ("missing.db", 78),
        ("no/such.db", 78),
        ("notes.txt", 78),
        ("foreign.db", 78),
        ("newer.db", 78),
        ("older.db", 78),
        ("damaged.db", 74),
        ("folder", 74),
    ];
    for (db, code) in cases {
        for command in ["status", "export"] {
            expect_refusal(harness.run(&[command, "--db", db]), code, db);
        }
        let value = told(&harness, &["--db", db], code);
        assert_eq!((&value["exit_code"], &value["sources"]), (&code.into(), &Value::Array(Vec::new())));
        assert!(value["error"].as_str().unwrap().contains(db), "{value}");
    }
    assert_eq!(files(harness.folder()), before);
}

#[test]
fn what_was_typed_wrong_is_64_in_one_line() {
    let (server, harness) = stage(Quirks::default(), 3);
    harness.harvest_quickly(&server, &[]).expect_code(0);
    let before = files(harness.folder());
    let bad: &[(&[&str], &str)] = &[
        (&["status", "x"], "status --help"),
        (&["status", "--db", ""], "--db"),
        (&["status", "--source", ""], "--source"),
        (&["status", "--source", "nobody"], "nobody"),
        (&["status", "--max-age", "0"], "--max-age"),
        (&["status", "--max-age", "-1"], "--max-age"),
        (&["status", "--max-age", "1h"], "--max-age"),
        (&["status", "--page-size", "1"], "--page-size"),
        (&["export", "x"], "export --help"),
        (&["export", "--json"], "--json"),
        (&["export", "--db="], "--db"),
        (&["export", "--source", "nobody"], "nobody"),
        (&["export", "--source", "a\nb"], "--source"),
        (&["export", "--since-seq", "-1"], "--since-seq"),
        (&["export", "--since-seq", "1.5"], "--since-seq"),
        (&["export", "--since-seq", "9223372036854775808"], "--since-seq"),
        (&["export", "--since-seq", "4"], "--since-seq 4"),
        (&["export", "--since-seq", "1", "--cursor-file", "c"], "exclude"),
        (&["export", "--cursor-file", ""], "--cursor-file"),
        (&["export", "--cursor-file", ".."], "--cursor-file"),
        (&["export", "--cursor-file", "harvest_state.db"], "--cursor-file"),
        (&["export", "--cursor-file", "./harvest_state.db-wal"], "--cursor-file"),
        (&["export", "--xml-dir", ""], "--xml-dir"),
    ];
    for (words, part) in bad {
        expect_refusal(harness.run(words), 64, part);
    }
    let value = json(&harness.run(&["status", "--json", "--max-age", "0"]).expect_code(64));
    assert_eq!((&value["exit_code"], &value["sources"]), (&64.into(), &Value::Array(Vec::new())));
    assert_eq!(files(harness.folder()), before);
}

/// What a terminal on stdout would be sent.
fn on_a_terminal(harness: &Harness, variables: &[(&str, &str)], words: &[&str]) -> String {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&terminal).and_then(|()| unlockpt(&terminal)).expect("its other end");
    let name = ptsname(&terminal, Vec::new()).expect("its name").into_string().expect("UTF-8");
    let other_end = fs::OpenOptions::new().read(true).write(true).open(name).expect("the other end");
    let mut command = Command::new(env!("CARGO_BIN_EXE_csw-harvester"));
    command.args(words).current_dir(harness.folder()).env_clear().envs(variables.iter().copied());
    let mut child = command.stdin(Stdio::null()).stdout(other_end).stderr(Stdio::null()).spawn().expect("the binary");
    drop(command);
    let mut text = Vec::new();
    // Ends with EIO when the other end is closed.
    let _ = fs::File::from(terminal).read_to_end(&mut text);
    child.wait().expect("a child of ours");
    String::from_utf8(text).expect("UTF-8")
}

#[test]
fn colours_are_for_a_terminal_that_wants_them() {
    let (server, harness) = stage(Quirks::default(), 3);
    harness.harvest_quickly(&server, &[]).expect_code(0);
    sql(&harness, "UPDATE harvest_state SET inventory_at = NULL");
    let plain = harness.run(&["status"]).expect_code(0).stdout;
    assert!(!plain.contains('\u{1b}'), "{plain}");
    let coloured = on_a_terminal(&harness, &[("TERM", "xterm")], &["status"]);
    assert!(coloured.contains("\u{1b}[32mok\u{1b}[0m") && coloured.contains("\u{1b}[33modd\u{1b}[0m"), "{coloured}");
    let url = server.url();
    assert!(on_a_terminal(&harness, &[("TERM", "xterm")], &["check", &url]).contains("\u{1b}[32mok\u{1b}[0m"));
    assert!(on_a_terminal(&harness, &[("TERM", "xterm"), ("NO_COLOR", "")], &["status"]).contains('\u{1b}'));
    for variables in [&[("TERM", "xterm"), ("NO_COLOR", "1")][..], &[("TERM", "dumb")], &[]] {
        let shown = on_a_terminal(&harness, variables, &["status"]);
        assert!(shown.contains("watermark        ok ") && !shown.contains('\u{1b}'), "{shown}");
    }
    assert!(!on_a_terminal(&harness, &[("TERM", "xterm")], &["status", "--json"]).contains('\u{1b}'));
}
