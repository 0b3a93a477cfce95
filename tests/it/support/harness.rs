//! Runs the real binary in a folder of its own and looks at what it leaves.
//!
//! The environment is cleared but for PATH, a run is bounded, and a failed expectation prints command, exit code, stdout, stderr and the
//! server's journal. What stands in the store is read by `store`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::journal::Journal;
use super::model::Catalogue;
use super::server::Server;
use super::store::{Store, StoredRecord};

const RUN_TIME_MAX: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(5);

/// A folder in which the binary runs; it goes with this value.
pub(crate) struct Harness {
    folder: TempDir,
    binary: PathBuf,
    journal: Option<Arc<Journal>>,
    environment: Vec<(String, String)>,
}

impl Harness {
    pub(crate) fn new() -> Self {
        // Only integration tests and benchmarks are told where the binary is; others set it.
        let binary = option_env!("CARGO_BIN_EXE_csw-harvester").unwrap_or("csw-harvester");
        Harness {
            folder: TempDir::with_prefix("csw-harvester-").expect("a temporary folder"),
            binary: PathBuf::from(binary),
            journal: None,
            environment: Vec::new(),
        }
    }

    /// One whose failures print what this server was asked.
    pub(crate) fn against(server: &Server) -> Self {
        Harness { journal: Some(server.journal()), ..Self::new() }
    }

    pub(crate) fn with_binary(mut self, binary: &Path) -> Self {
        self.binary = binary.to_owned();
        self
    }

    /// A variable for all runs from now on.
    pub(crate) fn set_env(&mut self, name: &str, value: &str) {
        self.environment.push((name.to_owned(), value.to_owned()));
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file into the folder and says where it is.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, content).expect("a file in the temporary folder");
        path
    }

    /// Runs to the end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Outcome {
        self.spawn(arguments).wait()
    }

    /// `harvest URL` with more arguments.
    pub(crate) fn harvest(&self, url: &str, more: &[&str]) -> Outcome {
        self.run(&[&["harvest", url], more].concat())
    }

    /// `harvest` of the server's url, with waits so short that faults do not make a test slow.
    pub(crate) fn harvest_quickly(&self, server: &Server, more: &[&str]) -> Outcome {
        self.harvest(&server.url(), &[&["--retry-max-wait", "0"], more].concat())
    }

    /// Starts a run that the test goes on beside.
    pub(crate) fn spawn(&self, arguments: &[&str]) -> Running {
        self.spawn_onto(arguments, Stdio::piped())
    }

    /// The same with a stderr of its own, which then is not in the outcome.
    pub(crate) fn spawn_onto(&self, arguments: &[&str], stderr: Stdio) -> Running {
        let mut command = Command::new(&self.binary);
        command.args(arguments).current_dir(self.folder.path()).env_clear();
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        // Coverage of the child is written where its parent's is.
        if let Some(profile) = std::env::var_os("LLVM_PROFILE_FILE") {
            command.env("LLVM_PROFILE_FILE", profile);
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr);
        let told = format!("{} {}", self.binary.display(), arguments.join(" "));
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{told}: {error}"));
        let stdout = child.stdout.take().map(drain);
        let stderr = child.stderr.take().map(drain);
        Running { child, told, stdout, stderr, journal: self.journal.clone() }
    }

    /// The store of the default name.
    pub(crate) fn store(&self) -> Store {
        Store::open(&self.path("harvest_state.db"))
    }

    /// Compares the store of one source with the truth, as csw:Record shows it.
    #[track_caller]
    pub(crate) fn expect_mirror(&self, catalogue: &Catalogue) {
        let difference = difference(&catalogue.visible(), &self.store().records());
        if !difference.is_empty() {
            panic!("the store is not the catalogue:\n{difference}\n{}", journal_told(self.journal.as_deref()));
        }
    }
}

fn drain(mut stream: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What cannot be read any more is what a killed process has not written.
        let _ = stream.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn journal_told(journal: Option<&Journal>) -> String {
    journal.map_or_else(String::new, |journal| format!("--- requests\n{}", journal.told()))
}

/// What differs between the truth and the records of a store, a line each; empty when they agree.
pub(crate) fn difference(truth: &BTreeMap<String, (Option<String>, u64)>, held: &BTreeMap<String, StoredRecord>) -> String {
    let mut out = String::new();
    for (identifier, (stamp, version)) in truth {
        let Some(record) = held.get(identifier) else {
            let _ = writeln!(out, "{identifier} is missing");
            continue;
        };
        if record.modified != *stamp {
            let _ = writeln!(out, "{identifier} is stamped {:?}, should be {stamp:?}", record.modified);
        }
        if !record.xml.contains(&format!("[version {version}]")) {
            let _ = writeln!(out, "{identifier} is not version {version}");
        }
    }
    for identifier in held.keys().filter(|identifier| !truth.contains_key(*identifier)) {
        let _ = writeln!(out, "{identifier} is too many");
    }
    out
}

/// A run that has not ended; killed by its own id when this is dropped.
pub(crate) struct Running {
    child: Child,
    told: String,
    stdout: Option<JoinHandle<String>>,
    stderr: Option<JoinHandle<String>>,
    journal: Option<Arc<Journal>>,
}

impl Running {
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("a process of ours");
    }

    /// Any other signal, `TERM` or `INT`.
    pub(crate) fn signal(&self, name: &str) {
        let command = format!("kill -{name} {}", self.child.id());
        let status = Command::new("sh").args(["-c", &command]).status().expect("a shell");
        assert!(status.success(), "{command}: {status}");
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("a child of ours").is_some()
    }

    /// Waits for the end; after 120 seconds the run is killed and the test fails.
    pub(crate) fn wait(mut self) -> Outcome {
        let start = Instant::now();
        while start.elapsed() < RUN_TIME_MAX {
            if let Some(status) = self.child.try_wait().expect("a child of ours") {
                return self.outcome(Some(status));
            }
            std::thread::sleep(POLL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        let outcome = self.outcome(None);
        outcome.fail(&format!("the run did not end within {} s", RUN_TIME_MAX.as_secs()))
    }

    fn outcome(&mut self, status: Option<ExitStatus>) -> Outcome {
        let text = |reader: &mut Option<JoinHandle<String>>| {
            reader.take().map_or_else(String::new, |reader| reader.join().expect("a reader"))
        };
        Outcome {
            told: self.told.clone(),
            status,
            stdout: text(&mut self.stdout),
            stderr: text(&mut self.stderr),
            journal: self.journal.clone(),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail on a child that was waited for, which is as well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How a run ended.
pub(crate) struct Outcome {
    told: String,
    status: Option<ExitStatus>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    journal: Option<Arc<Journal>>,
}

impl Outcome {
    /// The exit code; None for a run that a signal ended.
    pub(crate) fn code(&self) -> Option<i32> {
        self.status.and_then(|status| status.code())
    }

    #[track_caller]
    pub(crate) fn expect_code(self, code: i32) -> Self {
        if self.code() != Some(code) {
            self.fail(&format!("expected exit code {code}"));
        }
        self
    }

    #[track_caller]
    pub(crate) fn expect_stderr(self, part: &str) -> Self {
        if !self.stderr.contains(part) {
            self.fail(&format!("expected {part:?} on stderr"));
        }
        self
    }

    #[track_caller]
    pub(crate) fn expect_stdout(self, part: &str) -> Self {
        if !self.stdout.contains(part) {
            self.fail(&format!("expected {part:?} on stdout"));
        }
        self
    }

    #[track_caller]
    pub(crate) fn expect(self, what: &str, holds: impl FnOnce(&Self) -> bool) -> Self {
        if !holds(&self) {
            self.fail(&format!("expected {what}"));
        }
        self
    }

    /// A field of the JSON object on the last line of stdout, as it is written there (texts with their quotes).
    #[track_caller]
    pub(crate) fn json(&self, key: &str) -> String {
        let line = self.stdout.lines().last().unwrap_or_default();
        match json_field(line, key) {
            Some(value) => value.to_owned(),
            None => self.fail(&format!("expected {key:?} in a JSON object on stdout")),
        }
    }

    #[track_caller]
    pub(crate) fn expect_json(self, key: &str, value: &str) -> Self {
        let held = self.json(key);
        if held != value {
            self.fail(&format!("expected {key} to be {value}, it is {held}"));
        }
        self
    }

    /// Fails the test with all that is known of the run.
    #[track_caller]
    pub(crate) fn fail(&self, why: &str) -> ! {
        panic!(
            "{why}\n--- command\n{}\n--- exit\n{}\n--- stdout\n{}\n--- stderr\n{}\n{}",
            self.told,
            self.status.map_or_else(|| "still running".to_owned(), |status| status.to_string()),
            self.stdout,
            self.stderr,
            journal_told(self.journal.as_deref())
        )
    }
}

/// The value of a top-level key in a flat JSON object on one line.
pub(crate) fn json_field<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let mut rest = line.trim().strip_prefix('{')?;
    loop {
        let (name, after) = json_value(rest.trim_start())?;
        let after = after.trim_start().strip_prefix(':')?;
        let (value, after) = json_value(after.trim_start())?;
        if name.trim_matches('"') == key {
            return Some(value);
        }
        rest = after.trim_start().strip_prefix(',')?;
    }
}

// One text, number, true, false or null, and what follows it.
fn json_value(text: &str) -> Option<(&str, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        return Some(text.split_at(text.find([',', ':', '}', ' '])?));
    };
    let mut escaped = false;
    let end = quoted.find(|character| {
        let ends = character == '"' && !escaped;
        escaped = character == '\\' && !escaped;
        ends
    })?;
    Some(text.split_at(end + 2))
}
