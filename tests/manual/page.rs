//! The manual page csw-harvester(1), made from what `--help` and README.md say.
//!
//! Commands, options and exit codes are never written down here: whatever the help of each command lists comes into the page. What no
//! command tells (environment, files, examples) stands below. No date, so that the same texts always give the same page.

use std::fmt::Write as _;

use csw_harvester::cli::{self, Command, PROGRAM};

use crate::support::help;

const ENVIRONMENT: [(&str, &str); 4] = [
    ("RUST_LOG", "The log level: error, warn, info (the default), debug or trace."),
    ("JOURNAL_STREAM", "Where systemd sets it, log lines begin with a priority such as <6> and carry no time."),
    ("HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY", "The proxy that catalogues are asked through, and what is asked without one."),
    ("SSL_CERT_FILE, SSL_CERT_DIR", "Where the trusted roots are, when they are not where the system keeps them."),
];
const FILES: [(&str, &str); 3] = [
    (
        "harvest_state.db",
        "The store, unless --db names another: SQLite in WAL mode, with -wal and -shm beside it while it is open.",
    ),
    ("/etc/csw-harvester/NAME.env, NAME.password, NAME.token", "What csw-harvester@NAME.service reads."),
    ("/var/lib/csw-harvester/harvest_state.db", "The store of all instances of csw-harvester@.service."),
];
const EXAMPLES: [(&str, &str); 3] = [
    (
        "Ask a catalogue what it can do, and harvest it:",
        "csw-harvester check https://demo.pycsw.org/gisdata/csw\n\
        csw-harvester harvest https://demo.pycsw.org/gisdata/csw",
    ),
    (
        "From cron, every ten minutes:",
        "*/10 * * * * csw-harvester harvest https://catalogue.example/csw --db $HOME/harvest_state.db \
        --max-runtime 540",
    ),
    ("By a timer of systemd:", "systemctl enable --now csw-harvester@NAME.timer"),
];

/// The page; `exit_codes` are the rows of the table in README.md.
pub(crate) fn page(exit_codes: &[Vec<String>]) -> String {
    let all = help_of(&["--help"]);
    let commands = help::entries(&all, "Commands:");
    let mut out = format!(
        ".\\\" Made by `cargo run --example manual`; not to be edited.\n.TH {} 1 \"\" \"{PROGRAM} {}\"\n",
        PROGRAM.to_uppercase(),
        env!("CARGO_PKG_VERSION")
    );
    section(&mut out, "NAME");
    let _ = writeln!(out, "{} \\- {}", escaped(PROGRAM), escaped(&lower_first(help::purpose(&all).trim_end_matches('.'))));
    section(&mut out, "SYNOPSIS");
    for command in &commands {
        let _ = writeln!(out, ".B {} {}\n[options]{}\n.br", escaped(PROGRAM), escaped(&command.name), arguments(&command.name));
    }
    let _ = writeln!(out, ".B {} \\-\\-version", escaped(PROGRAM));
    section(&mut out, "COMMANDS");
    for command in &commands {
        one_command(&mut out, &command.name);
    }
    section(&mut out, "EXIT STATUS");
    for row in exit_codes {
        if let [code, name, when, ..] = row.as_slice() {
            item(&mut out, &format!("{} {}", bold(code), escaped(name)), &sentence(when));
        }
    }
    for (title, entries) in [("ENVIRONMENT", &ENVIRONMENT[..]), ("FILES", &FILES[..])] {
        section(&mut out, title);
        entries.iter().for_each(|(name, text)| item(&mut out, &bold(name), text));
    }
    section(&mut out, "EXAMPLES");
    for (text, lines) in EXAMPLES {
        let lines: Vec<String> = lines.lines().map(|line| plain(line.trim())).collect();
        let _ = writeln!(out, "{}\n.PP\n.nf\n.RS\n{}\n.RE\n.fi\n.PP", plain(text), lines.join("\n"));
    }
    section(&mut out, "SEE ALSO");
    out.push_str(".BR sqlite3 (1),\n.BR systemd.timer (5),\n.BR sysexits (3)\n");
    out
}

fn help_of(words: &[&str]) -> String {
    match cli::parse(words.iter().map(Into::into)) {
        Ok(Command::Print(text)) => text,
        other => panic!("{words:?} is no call for help: {other:?}"),
    }
}

fn arguments(command: &str) -> String {
    let positional = help::entries(&help_of(&[command, "--help"]), "Positional Arguments:");
    positional.iter().map(|argument| format!(" {}", italic(&argument.name))).collect()
}

fn one_command(out: &mut String, command: &str) {
    let help = help_of(&[command, "--help"]);
    let _ = writeln!(out, ".SS {}\n{}", escaped(command), plain(&help::purpose(&help)));
    for argument in help::entries(&help, "Positional Arguments:") {
        item(out, &italic(&argument.name), &sentence(&argument.text));
    }
    for option in help::entries(&help, "Options:").iter().filter(|option| !option.name.starts_with("--help")) {
        let value = help::value_of(&help, &option.name);
        let repeated = value.is_some_and(|value| value.ends_with("..."));
        let value = value.map_or(String::new(), |value| format!(" {}", italic(value.trim_end_matches("..."))));
        let again = if repeated { " ..." } else { "" };
        item(out, &format!("{}{value}{again}", bold(&option.name)), &sentence(&option.text));
    }
}

fn section(out: &mut String, title: &str) {
    let _ = writeln!(out, ".SH {title}");
}

fn item(out: &mut String, tag: &str, text: &str) {
    let _ = writeln!(out, ".TP\n{tag}\n{}", plain(text));
}

fn bold(text: &str) -> String {
    format!("\\fB{}\\fR", escaped(text))
}

fn italic(text: &str) -> String {
    format!("\\fI{}\\fR", escaped(text))
}

/// A line of text; a point or an apostrophe at its start is none of roff's.
fn plain(text: &str) -> String {
    let text = escaped(text);
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq")
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_lowercase().chain(chars).collect())
}

fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    let upper = chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect::<String>());
    if upper.ends_with(['.', '!', '?']) { upper } else { format!("{upper}.") }
}
