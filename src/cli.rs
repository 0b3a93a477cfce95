//! What was typed, and what it means.
//!
//! argh's structs hold what was typed; [`HarvestSettings`] holds what it means, after every value was checked. Nothing is touched
//! here but the files that options name, which are read. argh's own exit code is never used.

mod access;
mod export;
mod outlets;
mod status;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use argh::FromArgs;

use crate::csw::request::clean_url;
use crate::csw::user_filter::UserFilter;
use crate::csw::{Binding, OutputSchema, Version};
use crate::error::Error;
use crate::http::without_credentials;
use crate::lock;
use crate::reconcile::{MassDeletion, Reconcile};
use crate::timestamp::{self, Micros, SECOND};

pub use access::Access;
use access::TypedAccess;
use export::TypedExport;
pub use export::{Beginning, ExportSettings};
use outlets::TypedOutlets;
pub use outlets::{Gateway, Outlets, SourceGuess, outlets_of};
pub use status::StatusSettings;
use status::TypedStatus;

/// The name of the program.
pub const PROGRAM: &str = "csw-harvester";
/// Seconds that any option in seconds may name at most: a year.
const SECONDS_MAX: u64 = 366 * 86_400;
/// `maxRecords` at most.
const PAGE_SIZE_MAX: u32 = 100_000;
/// MiB that a body may be allowed at most.
const BODY_MIB_MAX: u64 = 4_096;
/// Bytes of a namespace.
const SCHEMA_BYTES_MAX: usize = 1_024;

/// Harvests OGC CSW catalogues into SQLite, one crash-safe incremental run at a time.
#[derive(FromArgs, Debug)]
struct Typed {
    #[argh(subcommand)]
    command: TypedCommand,
}

#[derive(FromArgs, Debug)]
#[argh(subcommand)]
#[expect(clippy::large_enum_variant, reason = "there is one of it in a process, and argh takes no boxes")]
enum TypedCommand {
    Harvest(TypedHarvest),
    Check(TypedCheck),
    Status(TypedStatus),
    Export(TypedExport),
}

/// Run one incremental harvest of the catalogue at <url> into the store, then exit.
#[derive(FromArgs, Debug)]
#[argh(subcommand, name = "harvest")]
struct TypedHarvest {
    /// the catalogue's CSW address
    #[argh(positional)]
    url: String,
    /// the store, one SQLite file; many sources may share it (default: harvest_state.db)
    #[argh(option, default = "PathBuf::from(\"harvest_state.db\")")]
    db: PathBuf,
    /// the key of this source in the store (default: the cleaned url)
    #[argh(option)]
    source: Option<String>,
    /// output schema: csw, iso (gmd), iso3 (mdb), or a namespace given in full (default: csw)
    #[argh(option, default = "String::from(\"csw\")")]
    schema: String,
    /// queryable to filter and sort on (default: found out)
    #[argh(option)]
    property: Option<String>,
    /// records a page, made smaller when the catalogue cannot serve it (default: 100)
    #[argh(option, default = "String::from(\"100\")")]
    page_size: String,
    /// CSW version: auto, 2.0.2 or 3.0.0 (default: auto)
    #[argh(option, default = "String::from(\"auto\")")]
    csw_version: String,
    /// how GetRecords is sent: auto, post or get (default: auto)
    #[argh(option, default = "String::from(\"auto\")")]
    method: String,
    /// start after this time in this run; the stored watermark never moves back because of it (default: the watermark)
    #[argh(option)]
    since: Option<String>,
    /// read everything again; unchanged records stay untouched
    #[argh(switch)]
    full: bool,
    /// compare everything that the catalogue holds: auto (when its count differs, and once a week), always or never (default: auto)
    #[argh(option, default = "String::from(\"auto\")")]
    reconcile: String,
    /// let more than 30 % and more than 10 records, or all of them, be taken for deleted in this run
    #[argh(switch)]
    allow_mass_deletion: bool,
    /// seconds that a stamp must be old, by the catalogue's clock, before it may become the watermark (default: 60)
    #[argh(option, default = "String::from(\"60\")")]
    settle: String,
    /// fail with 65 and hold the watermark when any record or page could not be had
    #[argh(switch)]
    strict: bool,
    /// stop in good order after that many seconds, progress kept, exit 75 (default: none)
    #[argh(option)]
    max_runtime: Option<String>,
    /// seconds for connecting, waiting for the first byte and silence within a body; ten times that for a whole response (default: 30)
    #[argh(option, default = "String::from(\"30\")")]
    timeout: String,
    /// attempts after the first, per request (default: 5)
    #[argh(option, default = "String::from(\"5\")")]
    retries: String,
    /// cap on one wait between attempts in seconds, Retry-After included (default: 60)
    #[argh(option, default = "String::from(\"60\")")]
    retry_max_wait: String,
    /// least time between two requests in milliseconds (default: 0)
    #[argh(option, default = "String::from(\"0\")")]
    delay: String,
    /// largest response in MiB after decompression; a larger page is asked for again smaller (default: 64)
    #[argh(option, default = "String::from(\"64\")")]
    max_body: String,
    /// an ogc:Filter 1.1 or fes:Filter 2.0 document; only what it selects is harvested (default: none)
    #[argh(option)]
    filter_file: Option<PathBuf>,
    /// the same as a CQL expression (default: none)
    #[argh(option)]
    cql: Option<String>,
    /// user name for HTTP Basic, sent at once; with --password-file (default: what stands in the url)
    #[argh(option)]
    user: Option<String>,
    /// file whose one line is the password (default: none)
    #[argh(option)]
    password_file: Option<PathBuf>,
    /// file whose one line is a bearer token (default: none)
    #[argh(option)]
    token_file: Option<PathBuf>,
    /// a further header, 'Name: value'; may be given more than once (default: none)
    #[argh(option)]
    header: Vec<String>,
    /// PEM file with further trusted roots (default: the system's alone)
    #[argh(option)]
    ca_file: Option<PathBuf>,
    /// seconds to wait for the lock (default: 0)
    #[argh(option, default = "String::from(\"0\")")]
    wait: String,
    /// the lock file (default: beside the store, one per source)
    #[argh(option)]
    lock: Option<PathBuf>,
    /// file for metrics in Prometheus' text format, replaced at every end of a run (default: none)
    #[argh(option)]
    metrics_file: Option<PathBuf>,
    /// url of a Pushgateway that gets the same metrics; a failure is a warning (default: none)
    #[argh(option)]
    metrics_push: Option<String>,
    /// print one JSON object on one line on stdout at the end, whatever the end
    #[argh(switch)]
    json: bool,
    /// do everything but commit
    #[argh(switch)]
    dry_run: bool,
}

/// Ask the catalogue at <url> what it can do and print the verdict; nothing is written.
#[derive(FromArgs, Debug)]
#[argh(subcommand, name = "check")]
struct TypedCheck {
    /// the catalogue's CSW address
    #[argh(positional)]
    url: String,
    /// output schema: csw, iso (gmd), iso3 (mdb), or a namespace given in full (default: csw)
    #[argh(option, default = "String::from(\"csw\")")]
    schema: String,
    /// queryable to filter and sort on (default: found out)
    #[argh(option)]
    property: Option<String>,
    /// CSW version: auto, 2.0.2 or 3.0.0 (default: auto)
    #[argh(option, default = "String::from(\"auto\")")]
    csw_version: String,
    /// how GetRecords is sent: auto, post or get (default: auto)
    #[argh(option, default = "String::from(\"auto\")")]
    method: String,
    /// seconds for connecting, waiting for the first byte and silence within a body; ten times that for a whole response (default: 30)
    #[argh(option, default = "String::from(\"30\")")]
    timeout: String,
    /// attempts after the first, per request (default: 5)
    #[argh(option, default = "String::from(\"5\")")]
    retries: String,
    /// cap on one wait between attempts in seconds, Retry-After included (default: 60)
    #[argh(option, default = "String::from(\"60\")")]
    retry_max_wait: String,
    /// least time between two requests in milliseconds (default: 0)
    #[argh(option, default = "String::from(\"0\")")]
    delay: String,
    /// largest response in MiB after decompression (default: 64)
    #[argh(option, default = "String::from(\"64\")")]
    max_body: String,
    /// user name for HTTP Basic, sent at once; with --password-file (default: what stands in the url)
    #[argh(option)]
    user: Option<String>,
    /// file whose one line is the password (default: none)
    #[argh(option)]
    password_file: Option<PathBuf>,
    /// file whose one line is a bearer token (default: none)
    #[argh(option)]
    token_file: Option<PathBuf>,
    /// a further header, 'Name: value'; may be given more than once (default: none)
    #[argh(option)]
    header: Vec<String>,
    /// PEM file with further trusted roots (default: the system's alone)
    #[argh(option)]
    ca_file: Option<PathBuf>,
    /// print the verdict as one JSON object on one line on stdout, whatever the end
    #[argh(switch)]
    json: bool,
}

impl TypedCheck {
    /// The harvest that is asked about: what stands here means the same there, and the rest is as if it had not been typed.
    fn into_harvest(self) -> Result<TypedHarvest, Error> {
        let plain = TypedHarvest::from_args(&[PROGRAM, "harvest"], &["--", &self.url])
            .map_err(|exit| usage(one_line(&exit.output, Some("check"))))?;
        Ok(TypedHarvest {
            schema: self.schema,
            property: self.property,
            csw_version: self.csw_version,
            method: self.method,
            timeout: self.timeout,
            retries: self.retries,
            retry_max_wait: self.retry_max_wait,
            delay: self.delay,
            max_body: self.max_body,
            user: self.user,
            password_file: self.password_file,
            token_file: self.token_file,
            header: self.header,
            ca_file: self.ca_file,
            json: self.json,
            ..plain
        })
    }
}

/// Whether everything is read or what changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// What changed since the watermark.
    Incremental,
    /// Everything.
    Full,
}

/// What a record that could not be had means for the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strictness {
    /// It is kept as a problem and told.
    Lenient,
    /// It fails the run.
    Strict,
}

/// Whether anything is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Yes.
    Commit,
    /// Nothing is written.
    DryRun,
}

/// What stdout gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Nothing.
    Quiet,
    /// The JSON summary.
    Json,
}

/// A harvest, all values checked.
#[derive(Clone, Debug)]
pub struct HarvestSettings {
    /// The cleaned url, without credentials.
    pub url: String,
    /// Credentials, headers and trust.
    pub access: Access,
    /// What the user filters by.
    pub user_filter: Option<UserFilter>,
    /// The store.
    pub db: PathBuf,
    /// The key of the source.
    pub source: String,
    /// The output schema.
    pub schema: OutputSchema,
    /// The queryable, when pinned.
    pub property: Option<String>,
    /// The version, when pinned.
    pub version: Option<Version>,
    /// The method of GetRecords, when pinned.
    pub binding: Option<Binding>,
    /// `maxRecords`.
    pub page_size: u32,
    /// Where to start in this run, as typed.
    pub since: Option<String>,
    /// What is read.
    pub reading: Reading,
    /// `--reconcile`.
    pub reconcile: Reconcile,
    /// `--allow-mass-deletion`.
    pub mass_deletion: MassDeletion,
    /// How old a stamp must be.
    pub settle: Micros,
    /// `--strict`.
    pub strictness: Strictness,
    /// `--max-runtime`.
    pub max_runtime: Option<Duration>,
    /// `--timeout`.
    pub timeout: Duration,
    /// `--retries`.
    pub retries: u32,
    /// `--retry-max-wait`.
    pub retry_wait_max: Duration,
    /// `--delay`.
    pub delay: Duration,
    /// `--max-body`.
    pub body_bytes_max: u64,
    /// `--wait`.
    pub lock_wait: Duration,
    /// The lock file.
    pub lock: PathBuf,
    /// Where metrics go.
    pub outlets: Outlets,
    /// `--json`.
    pub output: Output,
    /// `--dry-run`.
    pub keep: Keep,
}

/// What is to be done.
#[derive(Clone, Debug)]
pub enum Command {
    /// `harvest`.
    Harvest(Box<HarvestSettings>),
    /// `check`, of what that harvest would meet.
    Check(Box<HarvestSettings>),
    /// `status`.
    Status(StatusSettings),
    /// `export`.
    Export(ExportSettings),
    /// `--help` or `--version`: text for stdout.
    Print(String),
}

/// Reads the arguments, without the program's name.
///
/// # Errors
/// [`Error::Usage`] with one clear line.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Command, Error> {
    let mut words = Vec::new();
    for argument in arguments {
        let argument = argument.into_string().map_err(|odd| usage(format!("argument {odd:?} is not UTF-8")))?;
        words.extend(take_apart(argument));
    }
    if words.iter().take_while(|word| *word != "--").any(|word| word == "--version" || word == "-V") {
        return Ok(Command::Print(format!("{PROGRAM} {}\n", env!("CARGO_PKG_VERSION"))));
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match Typed::from_args(&[PROGRAM], &words) {
        Ok(Typed { command: TypedCommand::Harvest(typed) }) => Ok(Command::Harvest(Box::new(check_harvest(typed)?))),
        Ok(Typed { command: TypedCommand::Check(typed) }) => Ok(Command::Check(Box::new(check_harvest(typed.into_harvest()?)?))),
        Ok(Typed { command: TypedCommand::Status(typed) }) => Ok(Command::Status(typed.check()?)),
        Ok(Typed { command: TypedCommand::Export(typed) }) => Ok(Command::Export(typed.check()?)),
        Err(exit) if exit.status.is_ok() => Ok(Command::Print(exit.output)),
        Err(exit) => Err(usage(one_line(&exit.output, words.first().copied()))),
    }
}

/// `--name=value` as two words, `-h` as `--help`: argh knows neither, and people type both.
fn take_apart(argument: String) -> Vec<String> {
    match argument.split_once('=') {
        Some((name, value)) if name.starts_with("--") && name.len() > 2 => vec![name.to_owned(), value.to_owned()],
        _ if argument == "-h" => vec!["--help".to_owned()],
        _ => vec![argument],
    }
}

/// What argh says, which repeats what it did not understand: a url with a password, perhaps.
fn one_line(text: &str, command: Option<&str>) -> String {
    let line = text.split_whitespace().map(without_credentials).collect::<Vec<_>>().join(" ");
    match command.filter(|command| ["harvest", "check", "status", "export"].contains(command)) {
        _ if line.is_empty() => format!("what is to be done? See {PROGRAM} --help"),
        Some(command) => format!("{line} (see {PROGRAM} {command} --help)"),
        None => format!("{line} (see {PROGRAM} --help)"),
    }
}

fn usage(text: impl Into<String>) -> Error {
    Error::Usage(text.into())
}

fn check_harvest(typed: TypedHarvest) -> Result<HarvestSettings, Error> {
    let clean = clean_url(&typed.url).map_err(usage)?;
    let schema = output_schema(&typed.schema)?;
    let version = unless_auto("csw-version", &typed.csw_version, "auto, 2.0.2 or 3.0.0", Version::named)?;
    let binding = unless_auto("method", &typed.method, "auto, post or get", Binding::named)?;
    if typed.since.as_deref().is_some_and(|since| timestamp::parse(since).is_none()) {
        return Err(usage("--since: a date or date-time such as 2026-07-09 or 2026-07-09T22:14:07Z"));
    }
    if typed.full && typed.since.is_some() {
        return Err(usage("--full and --since exclude each other"));
    }
    let reconcile = Reconcile::named(&typed.reconcile).ok_or_else(|| {
        usage(format!("--reconcile {}: auto, always or never", crate::http::escape_outside_text(&typed.reconcile, 40)))
    })?;
    if typed.allow_mass_deletion && reconcile == Reconcile::Never {
        return Err(usage("--allow-mass-deletion and --reconcile never exclude each other"));
    }
    fit_for_a_name("source", typed.source.as_ref())?;
    fit_for_a_name("property", typed.property.as_ref())?;
    let db = store_path(typed.db)?;
    let typed_access = TypedAccess {
        user: typed.user,
        password_file: typed.password_file,
        token_file: typed.token_file,
        header: typed.header,
        ca_file: typed.ca_file,
    };
    if typed.lock.as_ref().is_some_and(|lock| is_part_of_store(lock, &db)) {
        return Err(usage("--lock: may not be the store or one of its side files"));
    }
    let source = typed.source.unwrap_or_else(|| clean.url.clone());
    let lock = typed.lock.unwrap_or_else(|| lock::default_path(&db, &source));
    let access = typed_access.check(clean.user)?;
    let typed_outlets = TypedOutlets { file: typed.metrics_file, push: typed.metrics_push };
    Ok(HarvestSettings {
        outlets: typed_outlets.check(&db, &lock, &access.roots)?,
        lock,
        url: clean.url,
        access,
        user_filter: access::user_filter(typed.filter_file.as_deref(), typed.cql.as_deref())?,
        db,
        source,
        schema,
        property: typed.property,
        version,
        binding,
        page_size: u32::try_from(number("page-size", &typed.page_size, 1, u64::from(PAGE_SIZE_MAX))?).unwrap_or(PAGE_SIZE_MAX),
        since: typed.since.map(|since| since.trim().to_owned()),
        reading: if typed.full { Reading::Full } else { Reading::Incremental },
        reconcile,
        mass_deletion: if typed.allow_mass_deletion { MassDeletion::Allowed } else { MassDeletion::Refused },
        settle: i64::try_from(number("settle", &typed.settle, 0, SECONDS_MAX)?).unwrap_or(0) * SECOND,
        strictness: if typed.strict { Strictness::Strict } else { Strictness::Lenient },
        max_runtime: typed.max_runtime.map(|text| seconds("max-runtime", &text, 1)).transpose()?,
        timeout: seconds("timeout", &typed.timeout, 1)?,
        retries: u32::try_from(number("retries", &typed.retries, 0, 1_000)?).unwrap_or(0),
        retry_wait_max: seconds("retry-max-wait", &typed.retry_max_wait, 0)?,
        delay: Duration::from_millis(number("delay", &typed.delay, 0, 3_600_000)?),
        body_bytes_max: number("max-body", &typed.max_body, 1, BODY_MIB_MAX)? << 20,
        lock_wait: seconds("wait", &typed.wait, 0)?,
        output: if typed.json { Output::Json } else { Output::Quiet },
        keep: if typed.dry_run { Keep::DryRun } else { Keep::Commit },
    })
}

/// Whether a text can be a key or a name of a catalogue's: something that is seen, on one line.
fn fit_for_a_name(name: &str, text: Option<&String>) -> Result<(), Error> {
    match text {
        Some(text) if text.trim().is_empty() || text.chars().any(char::is_control) => {
            Err(usage(format!("--{name}: may not be empty or hold control characters")))
        }
        _ => Ok(()),
    }
}

fn store_path(db: PathBuf) -> Result<PathBuf, Error> {
    if db.as_os_str().is_empty() { Err(usage("--db: may not be empty")) } else { Ok(db) }
}

/// `csw`, `iso`, `iso3`, or a namespace: anything with a colon in it and no blanks (RFC 3986, 3).
fn output_schema(typed: &str) -> Result<OutputSchema, Error> {
    let is_uri = |text: &str| {
        let has_scheme = text
            .split_once(':')
            .is_some_and(|(scheme, rest)| scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && !rest.is_empty());
        has_scheme && text.len() <= SCHEMA_BYTES_MAX && text.chars().all(|c| c.is_ascii_graphic())
    };
    match typed.trim() {
        "csw" => Ok(OutputSchema::csw()),
        "iso" => Ok(OutputSchema::iso()),
        "iso3" => Ok(OutputSchema::iso3()),
        uri if is_uri(uri) => Ok(OutputSchema(uri.to_owned())),
        other => {
            let other = crate::http::escape_outside_text(other, 40);
            Err(usage(format!("--schema {other}: csw, iso, iso3 or a namespace such as http://www.isotc211.org/2005/gmd")))
        }
    }
}

/// `None` for `auto`.
fn unless_auto<T>(name: &str, typed: &str, choices: &str, named: impl Fn(&str) -> Option<T>) -> Result<Option<T>, Error> {
    if typed == "auto" {
        return Ok(None);
    }
    let wrong = || usage(format!("--{name} {}: {choices}", crate::http::escape_outside_text(typed, 40)));
    named(typed).map(Some).ok_or_else(wrong)
}

/// Whether a path is the store, or one of the files that SQLite keeps beside it and removes.
fn is_part_of_store(lock: &Path, db: &Path) -> bool {
    let whole = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    ["", "-wal", "-shm", "-journal"].iter().any(|ending| {
        let mut file = db.as_os_str().to_owned();
        file.push(ending);
        whole(lock) == whole(Path::new(&file))
    })
}

fn number(name: &str, text: &str, least: u64, most: u64) -> Result<u64, Error> {
    match text.parse::<u64>() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(usage(format!("--{name} {}: a whole number from {least} to {most}", crate::http::escape_outside_text(text, 40)))),
    }
}

fn seconds(name: &str, text: &str, least: u64) -> Result<Duration, Error> {
    number(name, text, least, SECONDS_MAX).map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn harvest(words: &[&str]) -> Result<HarvestSettings, Error> {
        match parse(words.iter().map(OsString::from))? {
            Command::Harvest(settings) | Command::Check(settings) => Ok(*settings),
            other => Err(Error::Internal(format!("{other:?}"))),
        }
    }

    #[test]
    fn defaults_are_those_of_the_contract() {
        let settings = harvest(&["harvest", "http://a.example/csw?Request=GetCapabilities&SERVICE=CSW&map=/x.map&"]).unwrap();
        assert_eq!(settings.url, "http://a.example/csw?map=/x.map");
        assert_eq!(settings.source, settings.url);
        assert_eq!((settings.page_size, settings.retries, settings.body_bytes_max), (100, 5, 64 << 20));
        assert_eq!((settings.timeout, settings.retry_wait_max), (Duration::from_secs(30), Duration::from_secs(60)));
        assert_eq!(settings.settle, 60 * SECOND);
        assert_eq!(settings.db, PathBuf::from("harvest_state.db"));
    }

    #[test]
    fn check_takes_the_options_of_the_connection_and_has_the_defaults_of_harvest() {
        let url = "http://a/csw";
        assert_eq!(format!("{:?}", harvest(&["check", url]).unwrap()), format!("{:?}", harvest(&["harvest", url]).unwrap()));
        let options = ["--schema", "iso", "--property", "x:M", "--timeout", "3", "--retries", "1", "--retry-max-wait", "2"];
        let more = ["--delay", "7", "--max-body", "9", "--json", "--csw-version", "3.0.0", "--method", "get", "--header", "X-A: b"];
        let [check, harvested] = ["check", "harvest"].map(|command| [&[command, url][..], &options, &more].concat());
        assert_eq!(format!("{:?}", harvest(&check).unwrap()), format!("{:?}", harvest(&harvested).unwrap()));
    }

    #[test]
    fn values_may_follow_an_equals_sign() {
        assert_eq!(harvest(&["harvest", "--page-size=7", "http://a/csw"]).unwrap().page_size, 7);
    }

    #[test]
    fn version_method_and_schema_may_be_pinned() {
        let plain = harvest(&["harvest", "http://a/csw"]).unwrap();
        assert_eq!((plain.version, plain.binding, plain.schema), (None, None, OutputSchema::csw()));
        let pinned = harvest(&["harvest", "http://a/csw", "--csw-version", "3.0.0", "--method=get", "--schema", "iso3"]).unwrap();
        assert_eq!(
            (pinned.version, pinned.binding, pinned.schema),
            (Some(Version::V300), Some(Binding::Get), OutputSchema::iso3())
        );
        let named = harvest(&["harvest", "http://a/csw", "--schema", "urn:x:dif"]).unwrap();
        assert_eq!(named.schema, OutputSchema("urn:x:dif".to_owned()));
    }

    #[test]
    fn bad_values_are_usage_errors_of_one_line() {
        let bad: &[&[&str]] = &[
            &[],
            &["harvest"],
            &["harvest", "nonsense"],
            &["harvest", "ftp://a/csw"],
            &["harvest", "http://a/csw", "--page-size", "0"],
            &["harvest", "http://a/csw", "--page-size", "-1"],
            &["harvest", "http://a/csw", "--since", "yesterday"],
            &["harvest", "http://a/csw", "--schema", "dif"],
            &["harvest", "http://a/csw", "--schema", "http://a b"],
            &["harvest", "http://a/csw", "--csw-version", "2.0"],
            &["harvest", "http://a/csw", "--method", "soap"],
            &["harvest", "http://a/csw", "--timeout", "0"],
            &["harvest", "http://a/csw", "--max-body", "99999999999999999999"],
            &["harvest", "http://a/csw", "--source", ""],
            &["harvest", "http://a/csw", "--full", "--since", "2025-01-01"],
            &["harvest", "http://a/csw", "--reconcile", "sometimes"],
            &["harvest", "http://a/csw", "--reconcile", "never", "--allow-mass-deletion"],
            &["harvest", "http://a/csw", "--no-such-option"],
            &["harvest", "http://a/csw", "--db", "n.db", "--lock", "./n.db"],
            &["harvest", "http://a/csw", "--db", "n.db", "--lock", "n.db-wal"],
            &["harvest", "http://a/csw", "http://me:hunter2@b/csw"],
            &["harvest", "http://me:hunter2@a/csw", "--user", "me", "--password-file", "/no/such"],
            &["harvest", "http://a/csw", "--header", "hunter2"],
            &["harvest", "http://a/csw", "--cql", "a = 1)"],
            &["check"],
            &["check", "nonsense"],
            &["check", "http://a/csw", "--timeout", "0"],
            &["check", "http://a/csw", "--db", "x.db"],
            &["sow", "http://a/csw"],
        ];
        for words in bad {
            let error = harvest(words).unwrap_err();
            assert!(
                matches!(&error, Error::Usage(text) if !text.contains('\n') && !text.contains("hunter2")),
                "{words:?}: {error:?}"
            );
        }
    }

    #[test]
    fn secrets_are_not_shown_by_debug() {
        let settings = harvest(&["harvest", "http://me:hunter2@a/csw", "--header", "X-Key: hunter2"]).unwrap();
        assert_eq!(settings.access.headers, [("X-Key".to_owned(), "hunter2".to_owned())]);
        assert!(!format!("{settings:?}").contains("hunter2"), "{settings:?}");
    }

    #[test]
    fn help_and_version_are_for_stdout() {
        for (words, expected) in [(vec!["--version"], PROGRAM), (vec!["--help"], "harvest"), (vec!["harvest", "-h"], "--page-size")]
        {
            match parse(words.iter().map(OsString::from)) {
                Ok(Command::Print(text)) => assert!(text.contains(expected), "{text}"),
                other => panic!("{other:?}"),
            }
        }
    }
}
