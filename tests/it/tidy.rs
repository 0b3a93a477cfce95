//! Reads the tree and fails where it is not kept as agreed: layers, headers, sizes, tables of the README, what lies at the top.
//!
//! Every rule is a function of a path and a text, and is tried on a bad example below. What clippy and rustfmt see is left to them.

mod code;
mod layers;
#[path = "../manual/page.rs"]
mod manual;
mod tables;

use std::path::Path;

use csw_harvester::exit::ExitStatus;
use csw_harvester::metrics::{METRICS, Metric};

use crate::support::harness::Harness;
use code::{bare, before_tests};

const COLUMNS_MAX: usize = 140;
const CODE_LINES_MAX: usize = 450;

/// Files of `src` that may be longer, and why.
const LONG: [(&str, usize, &str); 2] = [
    ("src/plan.rs", 860, "the state machine stands whole in one file"),
    ("src/harvest.rs", 620, "the one loop stands whole, with the effects that it performs"),
];

/// What may lie at the top besides files whose name begins with a dot.
const TOP: [&str; 7] = ["Cargo.toml", "Cargo.lock", "LICENSE", "README.md", "src", "deploy", "tests"];

/// Folders that hold nothing of ours.
const FOREIGN: [&str; 6] = ["target", ".git", ".work", "__pycache__", "corpus", "artifacts"];

/// A file of the tree, its path from the top.
struct Source {
    path: String,
    text: String,
}

fn top() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    std::fs::read_to_string(top().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Everything below a folder that is written by hand: Rust, Python, shell.
fn sources(folder: &str) -> Vec<Source> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for name in names_in(&top().join(&folder)) {
            let path = format!("{folder}/{name}");
            if top().join(&path).is_dir() {
                folders.extend((!FOREIGN.contains(&name.as_str())).then_some(path));
            } else if name.ends_with(".rs") || name.ends_with(".py") || name.ends_with(".sh") || !name.contains('.') {
                found.push(Source { text: read(&path), path });
            }
        }
    }
    assert!(!found.is_empty(), "{folder} has no files");
    found
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut names: Vec<String> = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[track_caller]
fn expect_none(breaches: &[String]) {
    assert!(breaches.is_empty(), "\n{}\n", breaches.join("\n"));
}

/// Runs a rule over all files of some folders.
#[track_caller]
fn expect_kept(folders: &[&str], rule: impl Fn(&str, &str) -> Vec<String>) {
    let files = folders.iter().flat_map(|folder| sources(folder));
    expect_none(&files.flat_map(|file| rule(&file.path, &file.text)).collect::<Vec<_>>());
}

// The rules.

fn headless(path: &str, text: &str) -> Vec<String> {
    if !path.ends_with(".rs") || text.starts_with("//! ") {
        return Vec::new();
    }
    vec![format!("{path}: does not begin with a //! header")]
}

fn wide_lines(path: &str, text: &str) -> Vec<String> {
    let wide = text.lines().enumerate().filter(|(_, line)| line.chars().count() > COLUMNS_MAX);
    wide.map(|(number, line)| format!("{path}:{}: {} columns", number + 1, line.chars().count())).collect()
}

fn beyond_ascii(path: &str, text: &str) -> Vec<String> {
    let beyond = text.lines().enumerate().filter(|(_, line)| !line.is_ascii());
    beyond.map(|(number, _)| format!("{path}:{}: not ASCII", number + 1)).collect()
}

fn code_lines(text: &str) -> usize {
    bare(before_tests(text)).lines().filter(|line| !line.trim().is_empty()).count()
}

fn too_long(path: &str, text: &str) -> Vec<String> {
    let lines = code_lines(text);
    let allowed = LONG.iter().find(|(long, ..)| *long == path).map_or(CODE_LINES_MAX, |(_, most, _)| *most);
    if lines <= allowed {
        Vec::new()
    } else {
        vec![format!("{path}: {lines} lines of code before its tests, {allowed} are allowed")]
    }
}

fn unfinished(path: &str, text: &str) -> Vec<String> {
    let code = bare(text);
    let mut found = Vec::new();
    for (number, (code, line)) in code.lines().zip(text.lines()).enumerate() {
        let macros = ["todo!", "dbg!", "unimplemented!"].into_iter().filter(|word| code.contains(word));
        let notes = ["TODO", "FIXME", "XXX"].into_iter().filter(|word| line.contains(word));
        found.extend(macros.chain(notes).map(|word| format!("{path}:{}: {word}", number + 1)));
    }
    found
}

/// Names at the top that do not belong there. What `.gitignore` leaves out of the repository by a name or an ending may lie there: it is
/// what builds and runs leave.
fn strangers(names: &[String], gitignore: &str) -> Vec<String> {
    let ignored = |name: &str| {
        gitignore.lines().any(|pattern| match (pattern.strip_prefix('/'), pattern.strip_prefix('*')) {
            (Some(exact), _) => exact == name,
            (_, Some(ending)) => name.ends_with(ending),
            _ => false,
        })
    };
    let stranger = |name: &&String| !name.starts_with('.') && !TOP.contains(&name.as_str()) && !ignored(name);
    names.iter().filter(stranger).map(|name| format!("{name}: does not belong at the top")).collect()
}

fn exit_codes(markdown: &str) -> Vec<(String, String)> {
    let rows = tables::rows_below(markdown, "## Exit codes");
    rows.iter().map(|row| (row.first().cloned().unwrap_or_default(), row.get(1).cloned().unwrap_or_default())).collect()
}

/// Metrics that a text names and the program has not; a text that names none at all was not understood.
fn strange_metrics(path: &str, text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let named: Vec<&str> = words.filter(|word| word.starts_with("csw_harvester_")).collect();
    if named.is_empty() {
        return vec![format!("{path}: names no metric")];
    }
    let strange = named.into_iter().filter(|name| METRICS.iter().all(|metric| metric.name != *name));
    strange.map(|name| format!("{path}: {name} is no metric of ours")).collect()
}

// The tree as it is.

#[test]
fn the_exit_codes_of_the_readme_are_those_of_the_program() {
    let told = exit_codes(&read("README.md"));
    let real: Vec<_> = ExitStatus::ALL.iter().map(|status| (status.code().to_string(), status.name().to_owned())).collect();
    assert_eq!(told, real);
}

#[test]
fn the_options_of_the_readme_are_those_of_the_help() {
    let commands = [
        ("harvest", "## Options", 10),
        ("check", "## Options of check", 5),
        ("status", "## Options of status", 3),
        ("export", "## Options of export", 4),
    ];
    for (command, heading, least) in commands {
        let help = Harness::new().run(&[command, "--help"]).expect_code(0);
        let told = tables::options_of_table(&tables::rows_below(&read("README.md"), heading));
        let real = tables::options_of_help(&help.stdout);
        assert!(real.len() > least, "the help was not understood:\n{}", help.stdout);
        assert_eq!(told, real, "{command}");
    }
}

#[test]
fn the_metrics_of_the_readme_are_those_of_the_program() {
    let told = tables::rows_below(&read("README.md"), "## Metrics");
    let row = |metric: &Metric| vec![metric.name.to_owned(), metric.labels.join(", "), metric.help.to_owned()];
    assert_eq!(told, METRICS.iter().map(row).collect::<Vec<_>>());
}

#[test]
fn the_manual_page_says_what_the_help_says() {
    let made = manual::page(&tables::rows_below(&read("README.md"), "## Exit codes"));
    for part in [".SS harvest", "\\fB\\-\\-db\\fR \\fIdb\\fR", "\\fB78\\fR CONFIG"] {
        assert!(made.contains(part), "{part} is not in it:\n{made}");
    }
    assert!(
        read("deploy/debian/csw-harvester.1") == made,
        "it is another: cargo run --example manual > deploy/debian/csw-harvester.1"
    );
}

#[test]
fn alerts_and_dashboard_name_metrics_of_the_program() {
    let files = ["deploy/prometheus/csw-harvester.rules.yml", "deploy/prometheus/csw-harvester.dashboard.json"];
    expect_none(&files.iter().flat_map(|path| strange_metrics(path, &read(path))).collect::<Vec<_>>());
}

#[test]
fn layers_are_kept() {
    expect_kept(&["src"], layers::breaches);
}

#[test]
fn every_rust_file_says_what_it_is_for() {
    expect_kept(&["src", "tests"], headless);
}

#[test]
fn no_line_is_wider_than_a_screen() {
    expect_kept(&["src", "tests", "deploy"], wide_lines);
}

#[test]
fn the_source_is_ascii() {
    expect_kept(&["src"], beyond_ascii);
}

#[test]
fn files_can_be_read_at_a_sitting() {
    expect_kept(&["src"], too_long);
}

#[test]
fn the_files_that_may_be_long_are_long() {
    let needless = LONG.iter().filter(|(path, ..)| code_lines(&read(path)) <= CODE_LINES_MAX);
    expect_none(&needless.map(|(path, ..)| format!("{path}: is no longer long, take it off the list")).collect::<Vec<_>>());
}

#[test]
fn nothing_is_left_unfinished() {
    expect_kept(&["src"], unfinished);
}

#[test]
fn the_top_holds_what_belongs_there() {
    expect_none(&strangers(&names_in(top()), &read(".gitignore")));
}

// The rules on bad examples.

#[test]
fn a_file_without_a_header_is_found() {
    assert_eq!(headless("src/a.rs", "use std::fs;\n").len(), 1);
    assert_eq!(headless("src/a.rs", "").len(), 1);
    assert!(headless("src/a.rs", "//! What it is for.\n").is_empty());
}

#[test]
fn a_wide_line_is_found_in_characters() {
    assert_eq!(wide_lines("src/a.rs", &format!("x\n{}\n", "y".repeat(141))), ["src/a.rs:2: 141 columns"]);
    assert!(wide_lines("src/a.rs", &"\u{e9}".repeat(140)).is_empty());
}

#[test]
fn a_letter_beyond_ascii_is_found() {
    assert_eq!(beyond_ascii("src/a.rs", "x\n// na\u{ef}ve\n"), ["src/a.rs:2: not ASCII"]);
}

#[test]
fn a_long_file_is_found_by_its_code_alone() {
    let code = "fn f() {}\n".repeat(CODE_LINES_MAX);
    assert!(too_long("src/a.rs", &format!("//! Header.\n\n{code}// Comment.\n#[cfg(test)]\nmod tests {{\n{code}}}\n")).is_empty());
    assert_eq!(too_long("src/a.rs", &format!("{code}fn g() {{}}\n")).len(), 1);
}

#[test]
fn what_is_unfinished_is_found_and_what_is_only_mentioned_is_not() {
    assert_eq!(unfinished("src/a.rs", "fn f() { todo!() }\n"), ["src/a.rs:1: todo!"]);
    assert_eq!(unfinished("src/a.rs", "x\ndbg!(y); unimplemented!(\"z\");\n").len(), 2);
    assert_eq!(unfinished("src/a.rs", "// TODO later\n"), ["src/a.rs:1: TODO"]);
    assert!(unfinished("src/a.rs", "const A: &str = \"todo!\"; // never dbg!\n").is_empty());
}

#[test]
fn a_stranger_at_the_top_is_found() {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let lying = names(&[".ci", "Cargo.toml", "NOTES.md", "benches", "harvest_state.db", "src", "target"]);
    let found = strangers(&lying, "/target\n*.db\n");
    assert_eq!(found, ["NOTES.md: does not belong at the top", "benches: does not belong at the top"]);
}

#[test]
fn an_exit_code_that_is_told_otherwise_is_seen() {
    let table = "## Exit codes\n\n| code | name | when |\n| --- | --- | --- |\n| 0 | OK | x |\n| 65 | DATAERR | y |\n";
    assert_eq!(exit_codes(table), [("0".to_owned(), "OK".to_owned()), ("65".to_owned(), "DATAERR".to_owned())]);
    assert_ne!(exit_codes(&table.replace("65", "66")), exit_codes(table));
}

#[test]
fn a_metric_that_there_is_not_is_found() {
    assert!(strange_metrics("a.yml", "expr: csw_harvester_records{source=\"a\"} > 0\n").is_empty());
    assert_eq!(strange_metrics("a.yml", "max(csw_harvester_record) > 0"), ["a.yml: csw_harvester_record is no metric of ours"]);
    assert_eq!(strange_metrics("a.yml", "expr: up\n"), ["a.yml: names no metric"]);
}
