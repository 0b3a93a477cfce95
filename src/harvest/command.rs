//! The command `harvest`: opens what a harvest needs, in the order that the invariants want, and sums up how it ended.
//!
//! The lock comes before the store (I4), the store before the first request. Nothing is decided here about the harvest itself.

use std::time::{Duration, Instant};

use super::finish::unless_stopped;
use super::{Ending, Job, harvest};
use crate::catalogue::HttpCatalogue;
use crate::cli::{HarvestSettings, Keep, Outlets, SourceGuess};
use crate::clock::SystemClock;
use crate::csw::OutputSchema;
use crate::csw::user_filter::UserFilter;
use crate::dialect::Clock;
use crate::error::Error;
use crate::exit::ExitStatus;
use crate::http::{Courier, Credentials, HttpSettings, Proxies, UreqTransport, without_credentials};
use crate::lock::{Lock, LockError};
use crate::negotiate::Pinned;
use crate::progress;
use crate::publish::{publish, publish_not_run};
use crate::report::{Counters, Outcome, Summary};
use crate::retry::RetryPolicy;
use crate::signal::Stop;
use crate::store::{Mode, Store};

/// The first wait between two attempts, before jitter.
const WAIT_FIRST: Duration = Duration::from_secs(1);
/// Redirects followed in a row.
const REDIRECTS_MAX: u8 = 5;

/// Runs the command from the lock to the summary.
#[must_use]
pub fn run(settings: &HarvestSettings, stop: &Stop) -> (Summary, Option<Error>) {
    let began = Instant::now();
    let stop = match settings.max_runtime {
        Some(limit) => stop.clone().with_deadline(began + limit),
        None => stop.clone(),
    };
    let ending = attempt(settings, &stop);
    summarise(&settings.source, began, ending)
}

/// The end of a command that did not come to run.
#[must_use]
pub fn not_run(source: &str, error: Error) -> (Summary, Option<Error>) {
    summarise(source, Instant::now(), Err(error))
}

/// Tells of the run where metrics go. A dry run is none: it would stand in the place of the last real one.
pub fn tell_metrics(settings: &HarvestSettings, summary: &Summary) {
    if settings.outlets == Outlets::default() || settings.keep == Keep::DryRun {
        return;
    }
    // Opened anew, and to be read only: the run may have ended before it was open, or because it could not be.
    let overview = Store::open_existing(&settings.db).and_then(|store| {
        let mut overviews = store.snapshot()?.overviews(Some(&settings.source))?;
        Ok(overviews.pop())
    });
    publish(&settings.outlets, proxies(), summary, overview.ok().flatten());
}

/// The same for a command that could not be read.
pub fn tell_metrics_not_run(outlets: &Outlets, source: SourceGuess, summary: &Summary) {
    publish_not_run(outlets, proxies(), summary, source);
}

fn proxies() -> Proxies {
    Proxies::from_lookup(|name| std::env::var(name).ok())
}

fn attempt(settings: &HarvestSettings, stop: &Stop) -> Result<Ending, Error> {
    // The proxies of the environment are looked at here, before anything is touched.
    let transport = transport(settings)?;
    let mut time = SystemClock;
    let _lock = Lock::acquire(&settings.lock, settings.lock_wait, &mut time, stop)?;
    let mode = match settings.keep {
        Keep::Commit => Mode::ReadWrite,
        Keep::DryRun => Mode::DryRun,
    };
    let store = Store::open_heeding(&settings.db, mode, stop);
    let mut store = store.map_err(|error| unless_stopped(error.into(), stop))?;
    let mut catalogue = connect(transport, settings, stop)?;
    let mut progress = progress::of_a_run();
    let ending = harvest(&mut store, &mut catalogue, &job(settings), &mut time, stop, progress.as_mut());
    let ending = ending.map_err(|error| unless_stopped(error.into(), stop))?;
    drop(progress);
    if ending.outcome != Outcome::Failed {
        log::info!("{}", ending.counters.answer_line());
    }
    Ok(ending)
}

/// The way to the catalogue. Nothing is touched or sent yet.
///
/// # Errors
/// What was given for the connection, or stands in the environment for it, cannot be used.
pub(crate) fn transport(settings: &HarvestSettings) -> Result<UreqTransport, Error> {
    UreqTransport::new(http_settings(settings)).map_err(|error| Error::Config(error.to_string()))
}

/// The catalogue, ready to be asked.
///
/// # Errors
/// No thread to fetch with.
pub(crate) fn connect(transport: UreqTransport, settings: &HarvestSettings, stop: &Stop) -> Result<HttpCatalogue, Error> {
    let courier =
        Courier::new(Box::new(transport)).map_err(|error| Error::Internal(format!("no thread to fetch with: {error}")))?;
    let policy = RetryPolicy { retries: settings.retries, wait_first: WAIT_FIRST, wait_max: settings.retry_wait_max };
    let catalogue = HttpCatalogue::new(courier, policy, settings.delay, settings.schema.clone(), stop.clone());
    Ok(catalogue.filtered_by(settings.user_filter.clone()).hiding(secrets(settings)))
}

fn secrets(settings: &HarvestSettings) -> Vec<String> {
    let credentials = settings.access.credentials.as_ref().map(Credentials::secrets).unwrap_or_default();
    let headers = settings.access.headers.iter().map(|(_, value)| value.clone());
    credentials.into_iter().chain(headers).collect()
}

fn http_settings(settings: &HarvestSettings) -> HttpSettings {
    HttpSettings {
        timeout: settings.timeout,
        body_bytes_max: settings.body_bytes_max,
        redirects_max: REDIRECTS_MAX,
        user_agent: concat!("csw-harvester/", env!("CARGO_PKG_VERSION")).to_owned(),
        credentials: settings.access.credentials.clone(),
        headers: settings.access.headers.clone(),
        roots: settings.access.roots.clone(),
        proxies: proxies(),
    }
}

/// What is to be harvested.
pub(crate) fn job(settings: &HarvestSettings) -> Job {
    Job {
        source: settings.source.clone(),
        base: settings.url.clone(),
        pinned: Pinned {
            property: settings.property.clone(),
            version: settings.version,
            binding: settings.binding,
            schema: Some(settings.schema.clone()).filter(|schema| *schema != OutputSchema::csw()),
        },
        fingerprint: fingerprint(settings),
        page_size: settings.page_size,
        settle: settings.settle,
        since: settings.since.clone(),
        reading: settings.reading,
        strictness: settings.strictness,
        reconcile: settings.reconcile,
        mass_deletion: settings.mass_deletion,
        is_selective: settings.user_filter.is_some(),
    }
}

/// Of what the records are read with. What is not pinned leaves no line, so that an option that is never used changes no fingerprint.
/// Credentials are no part of it.
fn fingerprint(settings: &HarvestSettings) -> String {
    let url = without_credentials(&settings.url);
    let mut lines = vec![url.as_str(), &settings.schema.0, settings.property.as_deref().unwrap_or_default()];
    if let Some(version) = settings.version {
        lines.extend(["version", version.as_str()]);
    }
    if let Some(binding) = settings.binding {
        lines.extend(["method", binding.as_str()]);
    }
    let filter = settings.user_filter.as_ref().map(UserFilter::fingerprint);
    lines.extend(filter.as_deref());
    lines.join("\n")
}

fn summarise(source: &str, began: Instant, ending: Result<Ending, Error>) -> (Summary, Option<Error>) {
    let mut summary = Summary {
        source: source.to_owned(),
        outcome: Outcome::Failed,
        status: ExitStatus::Ok,
        error: None,
        counters: Counters::default(),
        duration_s: began.elapsed().as_secs_f64(),
        watermark_before: None,
        watermark: None,
        clock: Clock::None,
        reconciled: false,
    };
    let error = match ending {
        Ok(ending) => {
            summary.outcome = ending.outcome;
            summary.counters = ending.counters;
            summary.watermark_before = Some(ending.watermark_before);
            summary.watermark = Some(ending.watermark);
            summary.clock = ending.clock;
            summary.reconciled = ending.reconciled;
            ending.error
        }
        Err(error) => {
            if matches!(error, Error::Lock(LockError::Held { .. })) {
                summary.outcome = Outcome::Skipped;
            }
            Some(error)
        }
    };
    if let Some(error) = &error {
        summary.status = error.exit_status();
        summary.error = Some(error.to_string());
    }
    (summary, error)
}
