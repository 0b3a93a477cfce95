//! Bad inputs, help, and who may see what.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rusqlite::Connection;

use crate::cases::stage;
use crate::support::harness::{Harness, Outcome};
use crate::support::quirks::Quirks;
use crate::support::stamps::HOUR;

/// Every file of a folder, but for locks, with what is in it.
pub(super) fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).expect("the folder of the test").map(|entry| entry.expect("an entry").path());
    let named = entries.filter(|path| path.is_file() && path.extension().is_none_or(|extension| extension != "lock"));
    named.map(|path| (path.file_name().expect("a name").to_string_lossy().into_owned(), fs::read(&path).expect("a file"))).collect()
}

/// One line on stderr that holds `part`, nothing on stdout.
#[track_caller]
pub(super) fn expect_refusal(outcome: Outcome, code: i32, part: &str) {
    let outcome = outcome.expect_code(code).expect_stderr(part);
    let outcome = outcome.expect("nothing on stdout", |outcome| outcome.stdout.is_empty());
    outcome.expect("one line on stderr", |outcome| outcome.stderr.lines().count() == 1);
}

#[test]
fn what_was_typed_wrong_is_64_in_one_line_and_touches_nothing() {
    let (server, harness) = stage(Quirks::default(), 3);
    let url = server.url();
    let bad: &[(&[&str], &str)] = &[
        (&[], "csw-harvester"),
        (&["harvest"], "url"),
        (&["sow", &url], "sow"),
        (&["harvest", "nonsense"], "url"),
        (&["harvest", "ftp://127.0.0.1/csw"], "ftp"),
        (&["harvest", "http://"], "url"),
        (&["harvest", &url, &url], "harvest"),
        (&["harvest", &url, "--page-size", "0"], "--page-size"),
        (&["harvest", &url, "--page-size", "-3"], "--page-size"),
        (&["harvest", &url, "--page-size", "many"], "--page-size"),
        (&["harvest", &url, "--page-size"], "--page-size"),
        (&["harvest", &url, "--page-size=0"], "--page-size"),
        (&["harvest", &url, "--since", "yesterday"], "--since"),
        (&["harvest", &url, "--since", "2025-02-30"], "--since"),
        (&["harvest", &url, "--since", "2025-01-01", "--full"], "--full"),
        (&["harvest", &url, "--schema", "marc"], "--schema"),
        (&["harvest", &url, "--timeout", "0"], "--timeout"),
        (&["harvest", &url, "--timeout", "1e9"], "--timeout"),
        (&["harvest", &url, "--retries", "-1"], "--retries"),
        (&["harvest", &url, "--max-runtime", "0"], "--max-runtime"),
        (&["harvest", &url, "--max-body", "0"], "--max-body"),
        (&["harvest", &url, "--settle", "1.5"], "--settle"),
        (&["harvest", &url, "--delay", "99999999999999999999"], "--delay"),
        (&["harvest", &url, "--db", ""], "--db"),
        (&["harvest", &url, "--source", ""], "--source"),
        (&["harvest", &url, "--no-such-option"], "--no-such-option"),
        (&["harvest", &url, "--no-such-option=3"], "--no-such-option"),
    ];
    for (words, part) in bad {
        expect_refusal(harness.run(words), 64, part);
    }
    assert_eq!(server.asked(), 0, "{}", server.journal().told());
    assert_eq!(fs::read_dir(harness.folder()).expect("a folder").count(), 0, "something was made");
}

#[test]
fn a_store_that_cannot_be_made_is_73() {
    let (server, harness) = stage(Quirks::default(), 3);
    fs::create_dir(harness.path("folder")).expect("a folder");
    let missing = harness.path("missing").join("state.db");
    for (db, part) in [("folder", "folder"), (missing.to_str().expect("UTF-8"), "missing"), ("/dev/null", "/dev/null")] {
        expect_refusal(harness.harvest(&server.url(), &["--db", db]), 73, part);
    }
    assert_eq!(server.asked(), 0, "{}", server.journal().told());
    assert!(!harness.path("missing").exists());
}

#[test]
fn a_file_that_is_no_store_of_ours_is_78_and_stays_as_it_is() {
    let (server, harness) = stage(Quirks::default(), 3);
    harness.write("notes.txt", "Buy milk.\n");
    harness.write("long.txt", "Buy milk, bread and butter. ".repeat(1_000));
    let foreign = Connection::open(harness.path("foreign.db")).expect("a database");
    foreign
        .execute_batch("CREATE TABLE harvest_state (source TEXT); INSERT INTO harvest_state VALUES ('theirs')")
        .expect("a table");
    drop(foreign);
    harness.harvest(&server.url(), &["--db", "newer.db"]).expect_code(0);
    let newer = Connection::open(harness.path("newer.db")).expect("a store");
    newer.pragma_update(None, "user_version", 1_000).expect("a version");
    drop(newer);
    let before = files(harness.folder());
    server.forget_journal();
    for db in ["notes.txt", "long.txt", "foreign.db", "newer.db"] {
        expect_refusal(harness.harvest(&server.url(), &["--db", db]), 78, db);
        expect_refusal(harness.harvest(&server.url(), &["--db", db, "--dry-run"]), 78, db);
    }
    assert_eq!(files(harness.folder()), before);
    assert_eq!(server.asked(), 0, "{}", server.journal().told());
}

#[test]
fn a_store_that_may_not_be_written_is_74() {
    let (server, harness) = stage(Quirks::default(), 3);
    harness.harvest(&server.url(), &[]).expect_code(0);
    let path = harness.path("harvest_state.db");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).expect("a file of ours");
    let before = files(harness.folder());
    server.forget_journal();
    expect_refusal(harness.harvest(&server.url(), &[]), 74, "harvest_state.db");
    assert_eq!(files(harness.folder()), before);
    assert_eq!(server.asked(), 0);
}

#[test]
fn a_damaged_store_is_74() {
    let (server, harness) = stage(Quirks::default(), 200);
    harness.harvest(&server.url(), &[]).expect_code(0);
    let path = harness.path("harvest_state.db");
    let mut bytes = fs::read(&path).expect("the store");
    let from = 16 * 1024;
    bytes[from..].fill(0xa5);
    fs::write(&path, &bytes).expect("a file of ours");
    harness.harvest(&server.url(), &["--json"]).expect_code(74).expect_json("outcome", "\"failed\"");
}

#[test]
fn help_names_every_option_and_goes_to_stdout() {
    let harness = Harness::new();
    for words in [&["harvest", "-h"][..], &["harvest", "--help"]] {
        let mut outcome = harness.run(words).expect_code(0).expect("nothing on stderr", |outcome| outcome.stderr.is_empty());
        let options = [
            "--db",
            "--source",
            "--schema",
            "--property",
            "--page-size",
            "--since",
            "--full",
            "--settle",
            "--strict",
            "--max-runtime",
            "--timeout",
            "--retries",
            "--retry-max-wait",
            "--delay",
            "--max-body",
            "--wait",
            "--lock",
            "--json",
            "--dry-run",
        ];
        for option in options {
            outcome = outcome.expect_stdout(option);
        }
        for default in ["harvest_state.db", "(default: 100)", "(default: 60)", "(default: 30)", "(default: 5)", "(default: 64)"] {
            outcome = outcome.expect_stdout(default);
        }
    }
    for words in [&["-h"][..], &["--help"]] {
        harness.run(words).expect_code(0).expect_stdout("harvest").expect("nothing on stderr", |outcome| outcome.stderr.is_empty());
    }
}

#[test]
fn the_version_needs_no_subcommand() {
    let harness = Harness::new();
    let version = format!("csw-harvester {}\n", env!("CARGO_PKG_VERSION"));
    for words in [&["--version"][..], &["harvest", "--version"]] {
        harness
            .run(words)
            .expect_code(0)
            .expect("the version alone", |outcome| outcome.stdout == version && outcome.stderr.is_empty());
    }
    assert_eq!(fs::read_dir(harness.folder()).expect("a folder").count(), 0);
}

#[test]
fn values_may_follow_an_equals_sign() {
    let (server, harness) = stage(Quirks::default(), 5);
    harness.harvest(&server.url(), &["--page-size=2", "--db=other.db", "--source=a=b"]).expect_code(0);
    assert!(harness.path("other.db").exists() && !harness.path("harvest_state.db").exists());
    assert!(server.get_records().iter().any(|request| request.max_records == 2));
    let store = crate::support::store::Store::open(&harness.path("other.db"));
    assert_eq!(store.records_of("a=b").len(), 5);
}

#[test]
fn logs_go_to_stderr_and_results_to_stdout() {
    let (server, harness) = stage(Quirks::default(), 5);
    let quiet = harness.harvest(&server.url(), &[]).expect_code(0);
    let quiet = quiet.expect("nothing on stdout", |outcome| outcome.stdout.is_empty());
    quiet.expect("a log", |outcome| !outcome.stderr.is_empty());
    let told = harness.harvest(&server.url(), &["--json", "--full"]).expect_code(0);
    told.expect("one line on stdout", |outcome| outcome.stdout.lines().count() == 1 && outcome.stdout.ends_with("}\n"));
}

#[test]
fn the_level_of_the_log_can_be_set() {
    let (server, mut harness) = stage(Quirks::default(), 5);
    harness.set_env("RUST_LOG", "error");
    harness.harvest(&server.url(), &[]).expect_code(0).expect("no log", |outcome| outcome.stderr.is_empty());
}

#[test]
fn a_journal_that_stderr_is_not_gets_no_priorities() {
    let (server, mut harness) = stage(Quirks::default(), 5);
    harness.set_env("JOURNAL_STREAM", "8:12345");
    let outcome = harness.harvest(&server.url(), &[]).expect_code(0);
    outcome.expect("no priority, no colour", |outcome| !outcome.stderr.contains(['<', '\x1b']));
}

#[test]
fn a_quiet_run_has_three_lines() {
    let (server, harness) = stage(Quirks::default(), 5);
    harness.harvest_quickly(&server, &[]).expect_code(0);
    server.catalogue().advance(HOUR);
    let outcome = harness.harvest_quickly(&server, &[]).expect_code(0);
    let lines: Vec<&str> = outcome.stderr.lines().filter_map(|line| Some(line.split_once("INFO  ")?.1)).collect();
    let begin = format!("{}: reading what is newer than 2025-01-01T04:00:00Z", server.url());
    let expected = [
        begin.as_str(),
        "0 records came, 0 matched; 2 requests, ",
        "Harvest complete: 0 records (0 new, 0 updated, 0 deleted, 0 unchanged), watermark now 2025-01-01T04:00:00Z",
    ];
    assert_eq!(outcome.stderr.lines().count(), 3, "{}", outcome.stderr);
    assert!(lines.iter().zip(expected).all(|(line, expected)| line.starts_with(expected)), "{}", outcome.stderr);
}

#[test]
fn no_password_is_shown_or_stored_whatever_the_level() {
    for fails in [false, true] {
        let (server, mut harness) = stage(Quirks::default(), 30);
        server.set(|settings| settings.basic = Some(("reader".to_owned(), "s3cret/word".to_owned())));
        harness.set_env("RUST_LOG", "trace");
        let password = if fails { "s3cret%2Fwrong" } else { "s3cret%2Fword" };
        let url = server.url().replacen("http://", &format!("http://reader:{password}@"), 1);
        let outcome =
            harness.harvest(&url, &["--json", "--page-size", "10", "--retries", "0"]).expect_code(if fails { 77 } else { 0 });
        let mut places = files(harness.folder());
        places.insert("stdout".to_owned(), outcome.stdout.clone().into_bytes());
        places.insert("stderr".to_owned(), outcome.stderr.clone().into_bytes());
        // As typed, decoded, and in base64 as it goes over the wire.
        for secret in ["s3cret", "czNjcmV0", "cmVhZGVyOnMzY3JldC"] {
            for (place, bytes) in &places {
                let shown = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
                assert!(!shown, "{secret} stands in {place}:\n{}", String::from_utf8_lossy(bytes));
            }
        }
        let names: Vec<String> = fs::read_dir(harness.folder())
            .expect("a folder")
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        assert!(names.iter().all(|name| !name.contains("s3cret")), "{names:?}");
    }
}

#[test]
fn no_password_is_shown_when_the_url_is_refused_or_nobody_is_there() {
    let harness = Harness::new();
    for url in
        ["ftp://reader:s3cret@127.0.0.1/csw", "http://reader:s3cret@127.0.0.1:1/csw", "http://reader:s3cret@127.0.0.1:99999/csw"]
    {
        let outcome = harness.harvest(url, &["--retries", "0"]);
        outcome.expect("no password", |outcome| !outcome.stderr.contains("s3cret") && outcome.code() != Some(0));
    }
}
