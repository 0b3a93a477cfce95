//! The command `export`: lines, changes, the cursor, files, and every way in which it can be cut off.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use rusqlite::Connection;
use serde_json::Value;

use super::inputs::expect_refusal;
use crate::cases::stage;
use crate::support::harness::{Harness, Outcome};
use crate::support::quirks::Quirks;

/// A store of one small harvest of `a`, with 3 records, `a` changed_seq 1 to 3.
fn small() -> Harness {
    let (server, harness) = stage(Quirks::default(), 3);
    harness.harvest_quickly(&server, &["--source", "a"]).expect_code(0);
    harness
}

pub(super) fn sql(harness: &Harness, statements: &str) {
    let connection = Connection::open(harness.path("harvest_state.db")).expect("the store");
    connection.execute_batch(statements).unwrap_or_else(|error| panic!("{statements}: {error}"));
}

/// Puts so many records of about `bytes` each behind those of `a`.
fn fatten(harness: &Harness, count: usize, bytes: usize) {
    sql(
        harness,
        &format!(
            "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < {count})
             INSERT INTO records (source, identifier, harvested_at, changed_seq, xml)
             SELECT 'a', 'fat-' || x, '2026-01-01T00:00:00Z', (SELECT last FROM sequence) + x,
                    '<r>' || x || ' ' || hex(zeroblob({bytes} / 2)) || '</r>' FROM n;
             UPDATE sequence SET last = last + {count}"
        ),
    );
}

/// Makes a tombstone of a record.
fn bury(harness: &Harness, identifier: &str) {
    sql(
        harness,
        &format!(
            "UPDATE sequence SET last = last + 1;
             INSERT INTO tombstones SELECT source, identifier, '2026-02-02T00:00:00Z', (SELECT last FROM sequence)
             FROM records WHERE identifier = '{identifier}';
             DELETE FROM records WHERE identifier = '{identifier}'"
        ),
    );
}

pub(super) fn parsed(lines: &str) -> Vec<Value> {
    lines.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

/// `export` with more arguments, as (seq, identifier, deleted).
#[track_caller]
fn told(harness: &Harness, more: &[&str]) -> Vec<(i64, String, bool)> {
    let outcome = harness.run(&[&["export"], more].concat()).expect_code(0);
    let row = |line: &Value| {
        (line["seq"].as_i64().unwrap(), line["identifier"].as_str().unwrap().to_owned(), line["deleted"].as_bool().unwrap())
    };
    parsed(&outcome.stdout).iter().map(row).collect()
}

fn row(seq: i64, identifier: &str) -> (i64, String, bool) {
    (seq, identifier.to_owned(), false)
}

fn gone(seq: i64, identifier: &str) -> (i64, String, bool) {
    (seq, identifier.to_owned(), true)
}

fn cursor(harness: &Harness) -> Option<String> {
    fs::read_to_string(harness.path("cursor")).ok()
}

#[test]
fn a_line_has_exactly_the_published_keys_and_what_the_store_holds() {
    let harness = small();
    sql(&harness, "UPDATE records SET title = 'a \"b\"' || char(10) || char(8232), modified = NULL WHERE identifier = 'r-000002'");
    bury(&harness, "r-000003");
    let outcome = harness
        .run(&["export", "--since-seq", "0"])
        .expect_code(0)
        .expect_stderr("Export complete: 2 records, 1 deletions, highest seq 4");
    let lines = parsed(&outcome.stdout);
    let held = harness.store().records();
    assert_eq!(lines.len(), 3);
    for line in &lines {
        let keys: Vec<&str> = line.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, ["deleted", "harvested_at", "identifier", "modified", "seq", "source", "title", "xml"]);
        assert_eq!(line["source"], "a");
        let Some(record) = held.get(line["identifier"].as_str().unwrap()) else { continue };
        let texts = ["title", "modified", "xml", "harvested_at"].map(|key| line[key].as_str());
        assert_eq!(texts, [record.title.as_deref(), record.modified.as_deref(), Some(&record.xml), Some(&record.harvested_at)]);
        assert_eq!((&line["seq"], &line["deleted"]), (&record.changed_seq.into(), &false.into()));
    }
    let expected = concat!(
        r#"{"source":"a","identifier":"r-000003","title":null,"modified":null,"harvested_at":"2026-02-02T00:00:00Z","#,
        r#""seq":4,"deleted":true,"xml":null}"#
    );
    assert_eq!(outcome.stdout.lines().last(), Some(expected));
}

#[test]
fn live_records_come_without_a_number_and_what_changed_after_one_with_it() {
    let harness = small();
    bury(&harness, "r-000001");
    sql(
        &harness,
        "INSERT INTO harvest_state (source) VALUES ('b');
         INSERT INTO records (source, identifier, harvested_at, changed_seq, xml) VALUES ('b', 'r-000001', 'h', 5, '<x/>');
         UPDATE sequence SET last = 5",
    );
    let live = [row(2, "r-000002"), row(3, "r-000003"), row(5, "r-000001")];
    assert_eq!(told(&harness, &[]), live);
    assert_eq!(told(&harness, &["--source", "b"]), live[2..]);
    assert_eq!(told(&harness, &["--since-seq", "0"]), [live[0].clone(), live[1].clone(), gone(4, "r-000001"), live[2].clone()]);
    assert_eq!(told(&harness, &["--since-seq", "3"]), [gone(4, "r-000001"), live[2].clone()]);
    assert_eq!(told(&harness, &["--since-seq", "3", "--source", "a"]), [gone(4, "r-000001")]);
    assert_eq!(told(&harness, &["--since-seq", "5"]), []);
    // The number is the store's, whichever source is asked for.
    harness.run(&["export", "--source", "a"]).expect_code(0).expect_stderr("highest seq 5");
}

#[test]
fn the_cursor_file_holds_the_number_between_calls() {
    let harness = small();
    bury(&harness, "r-000001");
    let with = ["--cursor-file", "cursor"];
    // Deletions from the first call on: one that was cut off may have told of what is gone by now.
    assert_eq!(told(&harness, &with), [row(2, "r-000002"), row(3, "r-000003"), gone(4, "r-000001")]);
    assert_eq!(cursor(&harness).as_deref(), Some("4\n"));
    assert_eq!(told(&harness, &with), []);
    bury(&harness, "r-000002");
    assert_eq!(told(&harness, &[&with[..], &["--source", "a"]].concat()), [gone(5, "r-000002")]);
    assert_eq!(cursor(&harness).as_deref(), Some("5\n"));
}

#[test]
fn a_cursor_that_says_nothing_or_too_much_is_78_and_stays_as_it_is() {
    let harness = small();
    for text in ["", "x", "-1\n", "3\n4\n", "4\n", "99999999999999999999\n"] {
        harness.write("cursor", text);
        expect_refusal(harness.run(&["export", "--cursor-file", "cursor"]), 78, "cursor");
        assert_eq!(cursor(&harness).as_deref(), Some(text));
    }
    expect_refusal(harness.run(&["export", "--cursor-file", "no/cursor"]), 78, "no/cursor");
    fs::create_dir(harness.path("folder")).expect("a folder");
    expect_refusal(harness.run(&["export", "--cursor-file", "folder"]), 78, "folder");
    harness.write("cursor", "3\n");
    assert_eq!(told(&harness, &["--cursor-file", "cursor"]), []);
}

/// An export whose stdout the test reads itself; killed by its own id when this is dropped.
pub(super) struct Reading {
    child: Child,
    lines: Option<BufReader<ChildStdout>>,
}

impl Reading {
    pub(super) fn of(harness: &Harness, words: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_csw-harvester"));
        command.arg("export").args(words).current_dir(harness.folder()).env_clear();
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the binary");
        let lines = child.stdout.take().map(BufReader::new);
        Reading { child, lines }
    }

    /// The next whole line, None at the end.
    pub(super) fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        self.lines.as_mut()?.read_line(&mut line).expect("UTF-8");
        line.ends_with('\n').then_some(line)
    }

    /// SIGKILL.
    pub(super) fn kill(&mut self) {
        self.child.kill().expect("a process of ours");
    }

    /// Goes away without reading the rest.
    fn close(&mut self) {
        self.lines = None;
    }

    fn signal(&self, name: &str) {
        let status = Command::new("kill").args([format!("-{name}"), self.child.id().to_string()]).status().expect("kill");
        assert!(status.success());
    }

    /// The exit code; None for one that a signal ended.
    pub(super) fn end(mut self) -> Option<i32> {
        self.child.wait().expect("a child of ours").code()
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        // Both fail on a child that was waited for, which is as well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_reader_that_goes_away_is_a_quiet_end_and_moves_no_cursor() {
    let harness = small();
    fatten(&harness, 2_000, 1_000);
    let mut reading = Reading::of(&harness, &["--cursor-file", "cursor"]);
    assert!(reading.line().is_some());
    reading.close();
    assert_eq!((reading.end(), cursor(&harness)), (Some(0), None));
    let piped = format!("{} export --cursor-file cursor | head -n 1", env!("CARGO_BIN_EXE_csw-harvester"));
    let shell = Command::new("sh").args(["-c", &piped]).current_dir(harness.folder()).output().expect("a shell");
    assert!(shell.stderr.is_empty() && shell.stdout.ends_with(b"}\n"), "{}", String::from_utf8_lossy(&shell.stderr));
    assert_eq!(cursor(&harness), None);
}

#[test]
fn told_to_stop_it_leaves_with_75_also_when_nobody_reads_and_moves_no_cursor() {
    for signal in ["TERM", "INT"] {
        let harness = small();
        fatten(&harness, 2_000, 1_000);
        let mut reading = Reading::of(&harness, &["--cursor-file", "cursor"]);
        // It has begun, and hangs when the pipe is full.
        assert!(reading.line().is_some());
        reading.signal(signal);
        assert_eq!((reading.end(), cursor(&harness)), (Some(75), None));
        assert_eq!(told(&harness, &["--cursor-file", "cursor"]).len(), 2_003);
        assert_eq!(cursor(&harness).as_deref(), Some("2003\n"));
    }
}

#[test]
fn a_second_export_with_the_same_cursor_or_folder_leaves_with_75() {
    let harness = small();
    fatten(&harness, 2_000, 1_000);
    let mut first = Reading::of(&harness, &["--cursor-file", "cursor"]);
    assert!(first.line().is_some());
    expect_refusal(harness.run(&["export", "--cursor-file", "cursor"]), 75, "cursor.lock");
    assert_eq!(cursor(&harness), None);
    // Without the cursor it is nobody's business.
    assert_eq!(told(&harness, &[]).len(), 2_003);
    while first.line().is_some() {}
    assert_eq!((first.end(), cursor(&harness).as_deref()), (Some(0), Some("2003\n")));
    fs::create_dir(harness.path("out")).expect("a folder");
    let lock = fs::File::create(harness.path("out/.lock")).expect("a lock");
    lock.lock().expect("nobody else has it");
    expect_refusal(harness.run(&["export", "--xml-dir", "out"]), 75, "out/.lock");
}

#[test]
fn what_cannot_be_written_is_74_and_moves_no_cursor() {
    let harness = small();
    let full = format!("{} export --cursor-file cursor >/dev/full", env!("CARGO_BIN_EXE_csw-harvester"));
    let shell = Command::new("sh").args(["-c", &full]).current_dir(harness.folder()).output().expect("a shell");
    let told = String::from_utf8_lossy(&shell.stderr);
    assert_eq!((shell.status.code(), told.lines().count(), cursor(&harness)), (Some(74), 1, None), "{told}");
    assert!(told.contains("stdout cannot be written"), "{told}");
    fs::create_dir(harness.path("out")).expect("a folder");
    fs::write(harness.path("out/a"), "in the way").expect("a file");
    expect_refusal(harness.run(&["export", "--cursor-file", "cursor", "--xml-dir", "out"]), 74, "out/a");
    assert_eq!(cursor(&harness), None);
    for path in ["no/out", "out/a"] {
        expect_refusal(harness.run(&["export", "--xml-dir", path]), 78, path);
    }
    // The number is out, but the cursor cannot be moved: the next export tells the same again.
    let long = "c".repeat(250);
    let outcome = harness.run(&["export", "--cursor-file", &long]).expect_code(74).expect_stderr("cursor file ccc");
    outcome.expect("the lines", |outcome| outcome.stdout.lines().count() == 3);
}

/// Every file below a folder but locks, by its path in there.
fn tree(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(inner) = folders.pop() {
        for entry in fs::read_dir(inner).expect("a folder").map(|entry| entry.expect("an entry").path()) {
            if entry.is_dir() {
                folders.push(entry);
            } else if !entry.ends_with(".lock") {
                let name = entry.strip_prefix(folder).expect("below").to_string_lossy().into_owned();
                found.insert(name, fs::read_to_string(entry).expect("UTF-8"));
            }
        }
    }
    found
}

#[track_caller]
fn export_files(harness: &Harness, more: &[&str]) -> Outcome {
    let outcome = harness.run(&[&["export", "--xml-dir", "out"], more].concat()).expect_code(0);
    outcome.expect("nothing on stdout", |outcome| outcome.stdout.is_empty())
}

#[test]
fn a_folder_is_kept_file_by_file() {
    let harness = small();
    let xml = |identifier: &str| harness.store().records_of("a")[identifier].xml.clone();
    let first: Vec<(String, String)> =
        ["r-000001", "r-000002", "r-000003"].map(|identifier| (format!("a/{identifier}.xml"), xml(identifier))).to_vec();
    export_files(&harness, &["--cursor-file", "cursor"]).expect_stderr("3 records (0 files unchanged)");
    assert_eq!(tree(&harness.path("out")).into_iter().collect::<Vec<_>>(), first);
    bury(&harness, "r-000001");
    sql(
        &harness,
        "UPDATE sequence SET last = last + 1;
         UPDATE records SET xml = '<new/>', changed_seq = (SELECT last FROM sequence) WHERE identifier = 'r-000002'",
    );
    export_files(&harness, &["--cursor-file", "cursor"]).expect_stderr("1 records (0 files unchanged), 1 deletions");
    let second = [("a/r-000002.xml".to_owned(), "<new/>".to_owned()), first[2].clone()];
    assert_eq!(tree(&harness.path("out")).into_iter().collect::<Vec<_>>(), second);
    // A full export knows of no deletions, and leaves what is as it should be.
    fs::write(harness.path("out/a/left.xml"), "over").expect("a file");
    export_files(&harness, &[]).expect_stderr("2 records (2 files unchanged), 0 deletions");
    assert_eq!(tree(&harness.path("out")).len(), 3);
}

#[test]
fn no_identifier_leaves_the_folder_or_takes_the_file_of_another() {
    let harness = small();
    let long = "x".repeat(4_000);
    let names = [
        "../../up",
        "/etc/passwd",
        ".",
        "..",
        "a/b",
        "a%2fb",
        "A",
        "a",
        "\u{e9}",
        "e\u{301}",
        "\n",
        " ",
        ".lock",
        ".tmp",
        "CON",
        &long,
        &long[1..],
    ];
    let connection = Connection::open(harness.path("harvest_state.db")).expect("the store");
    for (number, name) in names.iter().enumerate() {
        let sql = "INSERT INTO records (source, identifier, harvested_at, changed_seq, xml) VALUES (?1, ?2, '', ?3, ?4)";
        for (source, seq) in [("../b", 100), ("../B", 200)] {
            connection.execute(sql, (source, name, seq + number as i64, format!("<r n=\"{seq}-{number}\"/>"))).expect("a row");
        }
    }
    drop(connection);
    let before = fs::read_dir(harness.folder()).expect("the folder").count();
    export_files(&harness, &[]);
    let files = tree(&harness.path("out"));
    assert_eq!(files.len(), 3 + 2 * names.len());
    let folded: BTreeMap<String, &String> = files.iter().map(|(name, xml)| (name.to_lowercase(), xml)).collect();
    assert_eq!(folded.len(), files.len(), "a file system without capitals would mix them up");
    assert_eq!(files["%2e.%2f%42/a%2fb.xml"], "<r n=\"200-4\"/>");
    assert_eq!(fs::read_dir(harness.folder()).expect("the folder").count(), before + 1, "something was made outside");
    assert_eq!(export_files(&harness, &[]).stderr.matches("(37 files unchanged)").count(), 1);
    assert_eq!(tree(&harness.path("out")), files);
}

#[test]
fn killed_at_any_moment_it_leaves_whole_files_and_the_cursor() {
    let harness = small();
    fatten(&harness, 300, 20_000);
    let held = harness.store().records_of("a");
    let whole = |tree: &BTreeMap<String, String>| {
        for (name, xml) in tree.iter().filter(|(name, _)| name.ends_with(".xml")) {
            let identifier = name.strip_prefix("a/").and_then(|name| name.strip_suffix(".xml")).expect("a record's name");
            assert_eq!(*xml, held[identifier].xml, "{name} is not whole");
        }
        tree.keys().filter(|name| name.ends_with(".xml")).count()
    };
    let mut killed = 0;
    for turn in 0..20 {
        let mut reading = Reading::of(&harness, &["--xml-dir", "out", "--cursor-file", "cursor"]);
        // So many files are there when it is killed, give or take what it does meanwhile.
        let wanted = turn * 7;
        let there = || fs::read_dir(harness.path("out/a")).map_or(0, Iterator::count);
        while there() < wanted && reading.child.try_wait().expect("a child of ours").is_none() {
            std::thread::yield_now();
        }
        reading.kill();
        if reading.end().is_none() {
            killed += 1;
            assert_eq!(cursor(&harness), None);
        }
        if harness.path("out").exists() {
            whole(&tree(&harness.path("out")));
        }
        if cursor(&harness).is_some() {
            break;
        }
    }
    assert!(killed >= 5, "{killed} were killed");
    export_files(&harness, &["--cursor-file", "cursor"]);
    let files = tree(&harness.path("out"));
    assert_eq!((whole(&files), files.len()), (303, 303));
}

#[test]
fn an_export_is_of_one_moment_whatever_is_written_meanwhile() {
    let harness = small();
    fatten(&harness, 2_000, 1_000);
    let mut reading = Reading::of(&harness, &["--cursor-file", "cursor"]);
    let mut seen = vec![reading.line().expect("a line")];
    bury(&harness, "fat-2000");
    sql(
        &harness,
        "UPDATE sequence SET last = last + 1;
         UPDATE records SET xml = '<late/>', changed_seq = (SELECT last FROM sequence) WHERE identifier = 'fat-1999'",
    );
    seen.extend(std::iter::from_fn(|| reading.line()));
    assert_eq!(reading.end(), Some(0));
    assert_eq!(seen.len(), 2_003);
    assert!(seen.iter().all(|line| !line.contains("<late/>")));
    assert_eq!(cursor(&harness).as_deref(), Some("2003\n"));
    assert_eq!(told(&harness, &["--cursor-file", "cursor"]), [gone(2004, "fat-2000"), row(2005, "fat-1999")]);
}
