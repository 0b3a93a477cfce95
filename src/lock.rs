//! One run at a time: a lock file, held by flock(2) for as long as the process lives.
//!
//! The kernel lets go when the process ends, however it ends. The file stays: after an unlink two runs could each hold "the" lock,
//! one on the old inode and one on the new. Its text, the holder's pid, is for people and decides nothing. A file that is not a
//! lock file is never written to. Who waits how long is the caller's choice; nothing here blocks.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fs4::TryLockError;

use crate::clock::Clock;
use crate::signal::{Stop, Stopped};

const POLL: Duration = Duration::from_millis(100);
const PID_LINE_BYTES_MAX: usize = 16;
const REPLACED_MAX: u32 = 10;
const SYMLINKS_MAX: u32 = 40;
const SLUG_CHARS_MAX: usize = 40;

/// The lock, held until this value is dropped.
#[derive(Debug)]
pub struct Lock {
    // Closing it is what lets go. std opens it with O_CLOEXEC, so that no child keeps it.
    _file: File,
}

/// Why the lock was not had.
#[derive(Debug)]
pub enum LockError {
    /// Another process holds it, and did so until the wait was over.
    Held {
        /// Who, as far as the file tells.
        pid: Option<u32>,
        /// The lock file.
        path: PathBuf,
    },
    /// The lock file cannot be made or opened, or is something else than a lock file.
    Create {
        /// The path as given.
        path: PathBuf,
        /// What is wrong.
        detail: String,
    },
    /// The file is there, but locking, reading or writing it fails.
    Io {
        /// The lock file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Told to stop while waiting.
    Stopped(Stopped),
}

impl fmt::Display for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LockError::Held { pid: Some(pid), path } => write!(f, "another run (pid {pid}) holds the lock {path:?}"),
            LockError::Held { pid: None, path } => write!(f, "another run holds the lock {path:?}"),
            LockError::Create { path, detail } => write!(f, "the lock {path:?} cannot be made: {detail}"),
            LockError::Io { path, source } => write!(f, "the lock {path:?} cannot be used: {source}"),
            LockError::Stopped(stopped) => write!(f, "while waiting for the lock: {stopped}"),
        }
    }
}

impl std::error::Error for LockError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            LockError::Io { source, .. } => Some(source),
            LockError::Stopped(stopped) => Some(stopped),
            LockError::Held { .. } | LockError::Create { .. } => None,
        }
    }
}

impl Lock {
    /// Takes the lock, or asks again every tenth of a second until `wait` is over.
    ///
    /// # Errors
    /// See [`LockError`].
    pub fn acquire(path: &Path, wait: Duration, clock: &mut dyn Clock, stop: &Stop) -> Result<Self, LockError> {
        let mut rest = wait;
        loop {
            let pid = match attempt(path)? {
                Attempt::Got(lock) => return Ok(lock),
                Attempt::Held(pid) => pid,
            };
            if rest.is_zero() {
                return Err(LockError::Held { pid, path: path.to_owned() });
            }
            let pause = rest.min(POLL);
            clock.pause(pause, stop).map_err(LockError::Stopped)?;
            rest = rest.saturating_sub(pause);
        }
    }
}

enum Attempt {
    Got(Lock),
    Held(Option<u32>),
}

/// One try. Repeats at once only when somebody replaced the file between our opening and our locking it.
fn attempt(path: &Path) -> Result<Attempt, LockError> {
    let failed = |source| LockError::Io { path: path.to_owned(), source };
    for _ in 0..REPLACED_MAX {
        let mut file = open(path)?;
        let pid = pid_line(&mut file, path)?;
        // By the trait's name: the inherent method of std has the same one.
        match fs4::FileExt::try_lock(&file) {
            Ok(()) => (),
            Err(TryLockError::WouldBlock) => return Ok(Attempt::Held(pid)),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        if !still_named(&file, path).map_err(failed)? {
            continue;
        }
        pid_line(&mut file, path)?;
        write_pid(&mut file).map_err(failed)?;
        return Ok(Attempt::Got(Lock { _file: file }));
    }
    Err(create_error(path, "the file is replaced again and again"))
}

fn create_error(path: &Path, detail: impl fmt::Display) -> LockError {
    LockError::Create { path: path.to_owned(), detail: detail.to_string() }
}

fn open(path: &Path) -> Result<File, LockError> {
    // Looked at first, because opening a pipe or a device can block or do something.
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(create_error(path, "it is not a regular file"));
    }
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map_err(|error| create_error(path, error))
}

/// The pid that the file names, none when it is empty; a refusal when its text is anything else.
fn pid_line(file: &mut File, path: &Path) -> Result<Option<u32>, LockError> {
    let mut text = Vec::new();
    file.seek(SeekFrom::Start(0))
        .and_then(|_| file.take(PID_LINE_BYTES_MAX as u64 + 1).read_to_end(&mut text))
        .map_err(|source| LockError::Io { path: path.to_owned(), source })?;
    // A power failure can leave zeros where the line was.
    if text.len() <= PID_LINE_BYTES_MAX && text.iter().all(|byte| *byte == 0) {
        return Ok(None);
    }
    std::str::from_utf8(&text)
        .ok()
        .and_then(|text| text.strip_suffix('\n'))
        .and_then(|digits| digits.parse().ok())
        .map(Some)
        .ok_or_else(|| create_error(path, "the file is not a lock file, and stays as it is"))
}

fn still_named(file: &File, path: &Path) -> io::Result<bool> {
    let ours = file.metadata()?;
    match fs::metadata(path) {
        Ok(named) => Ok((named.dev(), named.ino()) == (ours.dev(), ours.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn write_pid(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(format!("{}\n", std::process::id()).as_bytes())
}

/// The lock file of one source of one store: `<db file name>.<slug>-<hash>.lock` in the store's real folder.
///
/// The slug makes it readable, the hash (FNV-1a, 64 bit, of the source's name) makes it distinct and is the same in every version.
/// Relative paths and symbolic links to one store give one lock; hard links do not. Where the folder does not exist, the path is
/// made from the text alone.
#[must_use]
pub fn default_path(db: &Path, source: &str) -> PathBuf {
    let real = real_path(db);
    let mut name = real.file_name().map_or_else(|| OsString::from("store"), OsString::from);
    name.push(format!(".{}-{:016x}.lock", slug(source), fnv1a_64(source.as_bytes())));
    real.with_file_name(name)
}

/// Absolute and without symbolic links, also when the file itself does not exist yet or is a link to one that does not.
fn real_path(db: &Path) -> PathBuf {
    let mut path = db.to_owned();
    for _ in 0..SYMLINKS_MAX {
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let (Ok(folder), Some(name)) = (fs::canonicalize(folder), path.file_name()) else {
            break;
        };
        path = folder.join(name);
        match fs::read_link(&path) {
            Ok(target) => path = folder.join(target),
            Err(_) => return path,
        }
    }
    std::path::absolute(&path).unwrap_or(path)
}

fn slug(source: &str) -> String {
    let lower = source.to_ascii_lowercase();
    let bare = lower.split_once("://").map_or(lower.as_str(), |(_, rest)| rest);
    let mut slug = String::new();
    for c in bare.chars() {
        if slug.len() >= SLUG_CHARS_MAX {
            break;
        }
        match c {
            'a'..='z' | '0'..='9' | '.' => slug.push(c),
            _ if slug.ends_with('-') || slug.is_empty() => (),
            _ => slug.push('-'),
        }
    }
    let trimmed = slug.trim_end_matches('-');
    if trimmed.is_empty() { "source".to_owned() } else { trimmed.to_owned() }
}

fn fnv1a_64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufRead;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::process::{Command, Stdio};
    use time::OffsetDateTime;

    const CHILD: &str = "CSW_HARVESTER_TEST_LOCK";

    /// Never sleeps; counts, and runs something in the n-th pause.
    struct FakeClock<'a> {
        pauses: u32,
        at: u32,
        act: Box<dyn FnMut(&Stop) + 'a>,
    }

    impl FakeClock<'_> {
        fn idle() -> Self {
            FakeClock { pauses: 0, at: 0, act: Box::new(|_| ()) }
        }
    }

    impl Clock for FakeClock<'_> {
        fn now(&self) -> OffsetDateTime {
            OffsetDateTime::UNIX_EPOCH
        }

        fn pause(&mut self, _wait: Duration, stop: &Stop) -> Result<(), Stopped> {
            self.pauses += 1;
            if self.pauses == self.at {
                (self.act)(stop);
            }
            stop.check()
        }
    }

    fn take(path: &Path) -> Result<Lock, LockError> {
        Lock::acquire(path, Duration::ZERO, &mut FakeClock::idle(), &Stop::new())
    }

    fn refused(path: &Path) -> String {
        match take(path) {
            Err(LockError::Create { detail, .. }) => detail,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_second_handle_is_told_who_holds_it_and_gets_it_afterwards() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.lock");
        let first = take(&path).unwrap();
        match take(&path) {
            Err(LockError::Held { pid, path: named }) => {
                assert_eq!(pid, Some(std::process::id()));
                assert_eq!(named, path);
            }
            other => panic!("{other:?}"),
        }
        drop(first);
        assert!(path.exists());
        take(&path).unwrap();
    }

    #[test]
    fn another_process_holds_it_until_it_is_killed() {
        if let Some(path) = std::env::var_os(CHILD) {
            let _lock = take(Path::new(&path)).unwrap();
            println!("\nlocked");
            std::thread::sleep(Duration::from_secs(600));
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.lock");
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "lock::tests::another_process_holds_it_until_it_is_killed", "--nocapture"])
            .env(CHILD, &path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.map_while(Result::ok).any(|line| line == "locked"));

        let while_it_lives = take(&path);
        child.kill().unwrap();
        child.wait().unwrap();

        match while_it_lives {
            Err(LockError::Held { pid, .. }) => assert_eq!(pid, Some(child.id())),
            other => panic!("{other:?}"),
        }
        take(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{}\n", std::process::id()));
    }

    #[test]
    fn waiting_gets_it_when_the_holder_lets_go() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.lock");
        let mut held = Some(take(&path).unwrap());
        let mut clock = FakeClock { pauses: 0, at: 3, act: Box::new(|_| drop(held.take())) };
        Lock::acquire(&path, Duration::from_secs(1), &mut clock, &Stop::new()).unwrap();
        assert_eq!(clock.pauses, 3);
    }

    #[test]
    fn waiting_ends_after_the_wait() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.lock");
        let _held = take(&path).unwrap();
        let mut clock = FakeClock::idle();
        let end = Lock::acquire(&path, Duration::from_millis(450), &mut clock, &Stop::new());
        assert!(matches!(end, Err(LockError::Held { .. })));
        assert_eq!(clock.pauses, 5);
    }

    #[test]
    fn waiting_ends_when_told_to_stop() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.lock");
        let _held = take(&path).unwrap();
        let mut clock = FakeClock { pauses: 0, at: 2, act: Box::new(Stop::ask) };
        let end = Lock::acquire(&path, Duration::MAX, &mut clock, &Stop::new());
        assert!(matches!(end, Err(LockError::Stopped(_))));
    }

    #[test]
    fn a_file_that_is_not_a_lock_file_is_refused_and_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        for text in
            ["root:x:0:0:root:/root:/bin/sh\n", "12345", "\n", "12 34\n", "-1\n", "99999999999999999999999\n", "4294967296\n"]
        {
            let path = folder.path().join("precious");
            fs::write(&path, text).unwrap();
            assert!(refused(&path).contains("not a lock file"), "{text:?}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn a_stale_pid_and_an_empty_file_are_taken_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.lock");
        for text in ["", "4294967295\n", "\0\0\0\0\0"] {
            fs::write(&path, text).unwrap();
            drop(take(&path).unwrap());
            assert_eq!(fs::read_to_string(&path).unwrap(), format!("{}\n", std::process::id()));
        }
    }

    #[test]
    fn what_cannot_be_a_lock_file_is_refused_without_a_panic() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(refused(folder.path()), "it is not a regular file");
        assert_eq!(refused(Path::new("/dev/null")), "it is not a regular file");
        refused(&folder.path().join("missing/a.lock"));
        refused(Path::new(""));
        refused(&folder.path().join("x".repeat(300)));
        refused(&folder.path().join("y/".repeat(5000)));
    }

    #[test]
    fn a_folder_without_write_permission_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o555)).unwrap();
        // root may write anywhere: /proc is what even root cannot write to.
        let root = File::create(folder.path().join("probe")).is_ok();
        let path = if root { PathBuf::from("/proc/a.lock") } else { folder.path().join("a.lock") };
        refused(&path);
    }

    #[test]
    fn a_lock_on_a_file_that_was_unlinked_meanwhile_is_no_lock() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.lock");
        let file = open(&path).unwrap();
        fs::remove_file(&path).unwrap();
        assert!(!still_named(&file, &path).unwrap());
        open(&path).unwrap();
        assert!(!still_named(&file, &path).unwrap());
    }

    #[test]
    fn messages_name_the_path_and_the_holder() {
        let path = PathBuf::from("/var/a\n.lock");
        let held = LockError::Held { pid: Some(7), path: path.clone() }.to_string();
        assert_eq!(held, r#"another run (pid 7) holds the lock "/var/a\n.lock""#);
        let io = LockError::Io { path, source: io::ErrorKind::StorageFull.into() };
        assert!(io.to_string().contains("cannot be used"));
        assert!(std::error::Error::source(&io).is_some());
    }

    #[test]
    fn the_default_path_is_readable_and_distinct_by_source() {
        let folder = tempfile::tempdir().unwrap();
        let db = folder.path().join("state.db");
        let name = |source: &str| default_path(&db, source).file_name().unwrap().to_str().unwrap().to_owned();
        assert_eq!(
            name("https://Example.org/geonetwork/srv/eng/csw?x=1"),
            format!(
                "state.db.example.org-geonetwork-srv-eng-csw-x-1-{:016x}.lock",
                fnv1a_64(b"https://Example.org/geonetwork/srv/eng/csw?x=1")
            )
        );
        assert_ne!(name("http://a/csw"), name("https://a/csw"));
        assert!(name("../../../etc/passwd").starts_with("state.db...-..-..-etc-passwd-"));
        assert!(name("\u{e4}\u{f6}").starts_with("state.db.source-"));
        assert!(name(&"a".repeat(10_000)).len() < 80);
    }

    #[test]
    fn the_hash_is_fnv_1a() {
        assert_eq!(fnv1a_64(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a_64(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a_64(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn all_spellings_of_one_store_give_one_lock() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().join("real");
        fs::create_dir(&real).unwrap();
        symlink(&real, folder.path().join("linked")).unwrap();
        symlink("real/state.db", folder.path().join("alias.db")).unwrap();
        let spellings = [
            real.join("state.db"),
            folder.path().join("linked/state.db"),
            folder.path().join("real/../linked/./state.db"),
            folder.path().join("alias.db"),
        ];
        // The store does not exist at first, then it does.
        for _ in 0..2 {
            let locks: Vec<PathBuf> = spellings.iter().map(|db| default_path(db, "s")).collect();
            assert!(locks.iter().all(|lock| *lock == locks[0]), "{locks:?}");
            assert_eq!(locks[0].parent(), Some(fs::canonicalize(&real).unwrap().as_path()));
            fs::write(real.join("state.db"), "").unwrap();
        }
    }

    #[test]
    fn a_relative_store_gets_an_absolute_lock_and_odd_paths_get_some() {
        let here = fs::canonicalize(".").unwrap();
        assert_eq!(default_path(Path::new("state.db"), "s").parent(), Some(here.as_path()));
        assert!(default_path(Path::new("/nowhere/at/all/state.db"), "s").starts_with("/nowhere/at/all"));
        let folder = tempfile::tempdir().unwrap();
        symlink("loop", folder.path().join("loop")).unwrap();
        for odd in [PathBuf::new(), PathBuf::from("/"), PathBuf::from(".."), folder.path().join("loop")] {
            assert!(default_path(&odd, "s").extension().is_some());
        }
    }
}
