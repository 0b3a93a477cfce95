//! The options about metrics: the file and the Pushgateway.
//!
//! They are wanted also of a run whose other options make no sense, so they can be found in what was typed without argh's help. Nothing
//! is written here. What is told, and how it gets there, is for `metrics.rs` and `publish.rs`.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use super::{is_part_of_store, take_apart, usage};
use crate::csw::request::clean_url;
use crate::error::Error;
use crate::http::{
    Credentials, HttpSettings, Proxies, Roots, check_settings, check_url, escape_outside_text, split_credentials,
    without_credentials,
};

/// Characters of a path or url shown in a message, or taken for a source.
const TEXT_CHARS_MAX: usize = 200;
/// Options of `harvest` that take no value: the word after one may be the url.
const SWITCHES: [&str; 5] = ["--full", "--allow-mass-deletion", "--strict", "--json", "--dry-run"];

/// Where metrics go, all values checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outlets {
    /// `--metrics-file`.
    pub file: Option<PathBuf>,
    /// `--metrics-push`.
    pub push: Option<Gateway>,
}

/// A Pushgateway.
#[derive(Clone, PartialEq, Eq)]
pub struct Gateway {
    /// Without credentials.
    pub url: String,
    /// From the url, for the gateway only.
    pub credentials: Option<Credentials>,
    /// Which certificates are trusted.
    pub roots: Roots,
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = without_credentials(&self.url);
        f.debug_struct("Gateway").field("url", &url).field("credentials", &self.credentials).finish_non_exhaustive()
    }
}

/// The source of a run whose settings could not be read to the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceGuess {
    /// By an option, or by a url that can be read.
    pub known: Option<String>,
    /// What stood where the url should; empty when nothing did.
    pub typed: String,
}

/// The options as they were typed.
pub(super) struct TypedOutlets {
    pub(super) file: Option<PathBuf>,
    pub(super) push: Option<String>,
}

impl TypedOutlets {
    /// # Errors
    /// [`Error::Usage`] for what makes no sense, [`Error::Config`] for a file that cannot be there.
    pub(super) fn check(self, db: &Path, lock: &Path, roots: &Roots) -> Result<Outlets, Error> {
        if self.file.as_ref().is_some_and(|file| is_part_of_store(file, db) || is_part_of_store(file, lock)) {
            return Err(usage("--metrics-file: may not be the lock, the store or one of its side files"));
        }
        Ok(Outlets { file: self.file.map(checked_file).transpose()?, push: self.push.map(|url| gateway(&url, roots)).transpose()? })
    }
}

/// What can be found in the arguments of a harvest that could not be read: where metrics go (nowhere for a dry run), and of which source
/// they are.
#[must_use]
pub fn outlets_of(arguments: &[OsString]) -> (Outlets, SourceGuess) {
    let words: Vec<String> = arguments.iter().flat_map(|argument| take_apart(argument.to_string_lossy().into_owned())).collect();
    let value_of = |name: &str| {
        let at = words.iter().position(|word| word == name)?;
        words.get(at + 1).cloned()
    };
    let typed = url_in(&words).unwrap_or_default();
    let outlets = match words.iter().any(|word| word == "--dry-run") {
        true => Outlets::default(),
        false => Outlets {
            file: value_of("--metrics-file").map(PathBuf::from).and_then(|file| checked_file(file).ok()),
            push: value_of("--metrics-push").and_then(|url| gateway(&url, &Roots::System).ok()),
        },
    };
    let guess = SourceGuess {
        known: value_of("--source").or_else(|| Some(clean_url(typed).ok()?.url)),
        typed: escape_outside_text(&without_credentials(typed), TEXT_CHARS_MAX),
    };
    (outlets, guess)
}

/// The first word after the command that is neither an option nor the value of one.
fn url_in(words: &[String]) -> Option<&str> {
    let is_option = |word: &str| word.starts_with('-') && !SWITCHES.contains(&word);
    let pair = words.windows(2).find(|pair| match pair {
        [before, word] => !word.starts_with('-') && !is_option(before),
        _ => false,
    })?;
    pair.last().map(String::as_str)
}

/// A file that is there, or can be made in a folder that is there. Renaming would take the place of a device or a pipe.
fn checked_file(path: PathBuf) -> Result<PathBuf, Error> {
    let unusable = |why: &str| {
        let path = escape_outside_text(&path.display().to_string(), TEXT_CHARS_MAX);
        Error::Config(format!("--metrics-file {path}: {why}"))
    };
    if path.file_name().is_none() {
        return Err(usage("--metrics-file: the name of a file is expected"));
    }
    if path.metadata().is_ok_and(|data| !data.is_file()) {
        return Err(unusable("it is no regular file"));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        return Err(unusable("its folder is not there"));
    }
    Ok(path)
}

fn gateway(typed: &str, roots: &Roots) -> Result<Gateway, Error> {
    let unusable = |why: &dyn fmt::Display| {
        usage(format!("--metrics-push {}: {why}", escape_outside_text(&without_credentials(typed), TEXT_CHARS_MAX)))
    };
    let (url, credentials) = split_credentials(typed.trim());
    check_url(&url).map_err(|why| unusable(&why))?;
    if url.contains(['?', '#']) {
        return Err(unusable(&"a Pushgateway's url has no query and no fragment"));
    }
    let wanted = HttpSettings { credentials: credentials.clone(), proxies: Proxies::none(), ..HttpSettings::default() };
    check_settings(&wanted).map_err(|error| unusable(&error))?;
    Ok(Gateway { url, credentials, roots: roots.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(file: Option<&Path>, push: Option<&str>) -> Result<Outlets, Error> {
        let typed = TypedOutlets { file: file.map(Path::to_owned), push: push.map(str::to_owned) };
        typed.check(Path::new("a.db"), Path::new("a.lock"), &Roots::SystemAnd(vec![b"pem".to_vec()]))
    }

    fn found(words: &[&str]) -> (Outlets, SourceGuess) {
        outlets_of(&words.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn a_file_may_be_missing_but_not_its_folder_and_must_be_regular() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("csw.prom");
        for _ in 0..2 {
            assert_eq!(check(Some(&file), None).unwrap().file.as_ref(), Some(&file));
            std::fs::write(&file, "old").unwrap();
        }
        assert!(check(Some(Path::new("csw.prom")), None).is_ok());
        for unusable in [folder.path().join("missing/csw.prom"), folder.path().to_owned(), PathBuf::from("/dev/null")] {
            assert!(matches!(check(Some(&unusable), None), Err(Error::Config(_))), "{unusable:?}");
        }
        for senseless in ["", "..", "/", "a.db", "./a.db-wal", "a.lock"] {
            assert!(matches!(check(Some(Path::new(senseless)), None), Err(Error::Usage(_))), "{senseless:?}");
        }
    }

    #[test]
    fn a_gateway_is_an_http_url_whose_credentials_are_taken_out() {
        let gateway = check(None, Some("https://me:hunter2@g.example:9091/push")).unwrap().push.unwrap();
        assert_eq!(gateway.url, "https://g.example:9091/push");
        let expected = Credentials::Basic { user: "me".to_owned(), password: "hunter2".to_owned() };
        assert_eq!(gateway.credentials, Some(expected));
        assert_eq!(gateway.roots, Roots::SystemAnd(vec![b"pem".to_vec()]));
        assert!(!format!("{gateway:?}").contains("hunter2"));
        for senseless in ["", "g:9091", "ftp://g", "http://", "http://g/?a=b", "http://g/#a", "http://m%3Ae:hunter2@g"] {
            let error = check(None, Some(senseless)).unwrap_err();
            assert!(matches!(&error, Error::Usage(text) if !text.contains("hunter2")), "{senseless}: {error}");
        }
    }

    #[test]
    fn outlets_are_found_in_arguments_that_make_no_sense() {
        let (outlets, guess) = found(&[
            "harvest",
            "--json",
            "http://a/csw?map=x",
            "--page-size",
            "0",
            "--metrics-file=a.prom",
            "--metrics-push",
            "http://g",
        ]);
        assert_eq!(outlets.file, Some(PathBuf::from("a.prom")));
        assert_eq!(outlets.push.unwrap().url, "http://g");
        assert_eq!(guess.known.as_deref(), Some("http://a/csw?map=x"));
        let (outlets, guess) =
            found(&["harvest", "--metrics-push", "g", "--schema", "http://s", "http:/me:hunter2@a", "--metrics-file"]);
        assert_eq!(outlets, Outlets::default());
        assert_eq!(guess, SourceGuess { known: None, typed: "a".to_owned() });
        assert_eq!(found(&["harvest", "a", "--metrics-file", "a.prom", "--dry-run"]).0, Outlets::default());
        assert_eq!(found(&["harvest", "nonsense", "--source", "s"]).1.known.as_deref(), Some("s"));
        assert_eq!(found(&[]), (Outlets::default(), SourceGuess::default()));
    }

    #[test]
    fn the_switches_are_those_of_the_help() {
        let Ok(super::super::Command::Print(help)) = super::super::parse(["harvest", "--help"].map(OsString::from)) else {
            panic!("no help");
        };
        // An option without a default in its text is a switch, see the README.
        let mut entries: Vec<String> = Vec::new();
        for line in help.lines().skip_while(|line| *line != "Options:").skip(1) {
            match entries.last_mut() {
                Some(entry) if !line.starts_with("  --") => *entry = format!("{entry} {}", line.trim()),
                _ => entries.push(line.trim().to_owned()),
            }
        }
        let switches: Vec<&str> = entries
            .iter()
            .filter(|entry| entry.starts_with("--") && !entry.starts_with("--help") && !entry.contains("(default:"))
            .filter_map(|entry| entry.split_whitespace().next())
            .collect();
        assert_eq!(switches, SWITCHES);
    }
}
