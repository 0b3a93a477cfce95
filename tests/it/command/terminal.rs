//! What is seen on a terminal of 80 columns: the bar, whole log lines above it, colours; and who wants none of that.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::num::NonZero;
use std::process::Stdio;
use std::thread::JoinHandle;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::cases::{catalogue, play};
use crate::support::harness::{Harness, Outcome};
use crate::support::quirks::Quirks;
use crate::support::server::Server;

const ROWS: NonZero<u16> = NonZero::new(24).unwrap();
const COLUMNS: NonZero<u16> = NonZero::new(80).unwrap();
/// Pages and waits enough for a run of more than a second.
const SLOWLY: [&str; 4] = ["--page-size", "10", "--delay", "400"];

/// What a terminal was sent, piece by piece.
struct Terminal {
    pieces: JoinHandle<Vec<Vec<u8>>>,
}

impl Terminal {
    /// Opens one, and its other end for a process to write to.
    fn open() -> (Self, Stdio) {
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&controller).expect("a terminal of ours");
        unlockpt(&controller).expect("a terminal of ours");
        let size = Winsize { ws_row: ROWS.get(), ws_col: COLUMNS.get(), ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&controller, size).expect("a size");
        let name = ptsname(&controller, Vec::new()).expect("a name").into_string().expect("ASCII");
        let user = OpenOptions::new().read(true).write(true).open(name).expect("the other end");
        let mut controller = File::from(controller);
        let pieces = std::thread::spawn(move || {
            let (mut pieces, mut buffer) = (Vec::new(), [0; 4096]);
            // Ends with EIO when nobody holds the other end any more.
            while let Ok(count @ 1..) = controller.read(&mut buffer) {
                pieces.push(buffer[..count].to_vec());
            }
            pieces
        });
        (Terminal { pieces }, Stdio::from(user))
    }

    /// All that was sent, and what stood on the screen after each piece.
    fn seen(self) -> (String, Vec<String>) {
        let pieces = self.pieces.join().expect("a reader");
        let mut parser = vt100::Parser::new(ROWS, COLUMNS, 0);
        let shown = |piece: &Vec<u8>| {
            parser.process(piece);
            parser.screen().contents()
        };
        let screens = pieces.iter().map(shown).collect();
        (String::from_utf8(pieces.concat()).expect("UTF-8"), screens)
    }
}

/// A catalogue of 40, one of them without an identifier, so that there is a warning amid the run.
fn staged() -> (Server, Harness) {
    let mut catalogue = catalogue(Quirks::default(), 40);
    catalogue.change("r-000035", |record| record.identifier = None);
    play(catalogue)
}

/// A run on a terminal: how it ended, all that was sent, and the screens.
fn watched(server: &Server, harness: &Harness, more: &[&str]) -> (Outcome, String, Vec<String>) {
    let (terminal, stderr) = Terminal::open();
    let url = server.url();
    let outcome = harness.spawn_onto(&[&["harvest", &url, "--json"], more].concat(), stderr).wait().expect_code(0);
    let (sent, screens) = terminal.seen();
    (outcome, sent, screens)
}

fn is_bar(line: &str) -> bool {
    line.contains(" a second")
}

#[test]
fn a_bar_is_seen_above_it_whole_lines_and_it_goes() {
    let (server, mut harness) = staged();
    harness.set_env("TERM", "xterm-256color");
    let (outcome, sent, screens) = watched(&server, &harness, &SLOWLY);
    outcome.expect_json("new", "39");
    let bars: Vec<&str> = screens.iter().filter_map(|screen| screen.lines().last()).filter(|line| is_bar(line)).collect();
    let whole = |line: &&&str| line.contains("of 40 records, ") && line.contains(" left") && line.starts_with(['#', '-']);
    assert!(bars.iter().any(|line| whole(&line)), "no bar:\n{}", screens.join("\n===\n"));
    assert!(bars.iter().all(|line| line.chars().count() <= usize::from(COLUMNS.get())), "{bars:?}");
    let above = screens.iter().find(|screen| screen.contains("WARN") && screen.lines().last().is_some_and(is_bar));
    assert!(above.is_some(), "no warning above a bar:\n{}", screens.join("\n===\n"));

    let last = screens.last().expect("a screen");
    let torn: Vec<&str> = last.lines().filter(|line| !line.starts_with("20") || is_bar(line)).collect();
    assert!(torn.is_empty(), "{torn:?} in\n{last}");
    assert!(last.lines().last().is_some_and(|line| line.contains("Harvest complete: 39 records")), "{last}");
    assert!(sent.contains("\x1b[1;35mWARN \x1b[0m skipped: "), "{sent:?}");
}

#[test]
fn no_color_takes_the_colours_and_leaves_the_bar() {
    let (server, mut harness) = staged();
    harness.set_env("TERM", "xterm");
    harness.set_env("NO_COLOR", "1");
    let (_, sent, screens) = watched(&server, &harness, &SLOWLY);
    assert!(screens.iter().any(|screen| screen.lines().last().is_some_and(is_bar)), "{}", screens.join("\n===\n"));
    assert!(sent.contains(" WARN  skipped: ") && !sent.contains("\x1b[1;"), "{sent:?}");
    let (server, mut harness) = staged();
    harness.set_env("NO_COLOR", "");
    let (_, sent, _) = watched(&server, &harness, &[]);
    assert!(sent.contains("\x1b[1;35mWARN "), "an empty value is none: {sent:?}");
}

#[test]
fn a_terminal_that_can_do_nothing_gets_plain_lines() {
    let (server, mut harness) = staged();
    harness.set_env("TERM", "dumb");
    let (_, sent, _) = watched(&server, &harness, &SLOWLY);
    assert!(!sent.contains('\x1b'), "{sent:?}");
    assert!(sent.lines().all(|line| line.starts_with("20") && !is_bar(line)), "{sent}");
}

#[test]
fn a_quiet_log_has_no_bar() {
    let (server, mut harness) = staged();
    harness.set_env("RUST_LOG", "warn");
    let (_, sent, _) = watched(&server, &harness, &SLOWLY);
    assert!(!sent.contains(" a second") && sent.contains("WARN"), "{sent:?}");
}
