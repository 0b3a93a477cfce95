//! Arguments -> logger -> run -> exit code. Everything else is in the library.

use std::ffi::OsString;
use std::io::Write;
use std::panic::catch_unwind;
use std::process::ExitCode;

use csw_harvester::check::{self, Verdict};
use csw_harvester::cli::{self, Command, ExportSettings, HarvestSettings, Keep, Output, StatusSettings};
use csw_harvester::clock::{Clock, SystemClock};
use csw_harvester::error::Error;
use csw_harvester::exit::ExitStatus;
use csw_harvester::export::{self, Export};
use csw_harvester::harvest::command;
use csw_harvester::http::escape_outside_text;
use csw_harvester::journal;
use csw_harvester::report::{Outcome, Summary};
use csw_harvester::signal::Stop;
use csw_harvester::status::{self, Report};
use csw_harvester::terminal::paint_of_stdout;

/// The longest last line: a message holds a url and what came back, each shortened already.
const ERROR_CHARS_MAX: usize = 8_000;

/// Visible in the crate for the tour, which runs this very program as its child.
pub(crate) fn main() -> ExitCode {
    journal::init();
    catch_unwind(run).unwrap_or(ExitStatus::Software).into()
}

fn run() -> ExitStatus {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    match cli::parse(arguments.iter().cloned()) {
        Ok(Command::Print(text)) => print(&text),
        Ok(Command::Harvest(settings)) => harvest(&settings),
        Ok(Command::Check(settings)) => check(&settings),
        Ok(Command::Status(settings)) => status(&settings),
        Ok(Command::Export(settings)) => export(&settings),
        Err(error) => {
            let output = if arguments.iter().any(|argument| argument == "--json") { Output::Json } else { Output::Quiet };
            match arguments.first().and_then(|word| word.to_str()) {
                Some("check") => end_check(&check::not_run(error), output),
                Some("status") => end_status(&status::not_run(error, SystemClock.now()), output),
                Some("harvest") => not_harvested(&arguments, error, output),
                Some("export") => tell(&error),
                _ => end(command::not_run("", error), output),
            }
        }
    }
}

fn harvest(settings: &HarvestSettings) -> ExitStatus {
    let ending = catch_unwind(|| match Stop::on_signals() {
        Ok(stop) => command::run(settings, &stop),
        Err(error) => command::not_run(&settings.source, Error::Internal(format!("signals cannot be caught: {error}"))),
    });
    let panicked = || command::not_run(&settings.source, Error::Internal("it panicked, as told above".to_owned()));
    let ending = ending.unwrap_or_else(|_| panicked());
    let _ = catch_unwind(|| command::tell_metrics(settings, &ending.0));
    if settings.keep == Keep::DryRun && ending.1.is_none() {
        log::info!("dry run: nothing of this is kept; what follows tells what would have been");
    }
    end(ending, settings.output)
}

/// Options that make no sense are an end of a run too, for those who watch.
fn not_harvested(arguments: &[OsString], error: Error, output: Output) -> ExitStatus {
    let ending = command::not_run("", error);
    let (outlets, source) = cli::outlets_of(arguments);
    command::tell_metrics_not_run(&outlets, source, &ending.0);
    end(ending, output)
}

fn check(settings: &HarvestSettings) -> ExitStatus {
    let verdict = catch_unwind(|| match Stop::on_signals() {
        Ok(stop) => check::run(settings, &stop),
        Err(error) => check::not_run(Error::Internal(format!("signals cannot be caught: {error}"))),
    });
    let panicked = || check::not_run(Error::Internal("it panicked, as told above".to_owned()));
    end_check(&verdict.unwrap_or_else(|_| panicked()), settings.output)
}

/// The verdict as it is wanted; of a usage error only the log tells, unless JSON is wanted.
fn end_check(verdict: &Verdict, output: Output) -> ExitStatus {
    if let Some(error) = &verdict.error {
        tell(error);
    }
    let printed = match output {
        Output::Json => print(&format!("{}\n", verdict.json())),
        Output::Quiet if verdict.status() == ExitStatus::Usage => ExitStatus::Ok,
        Output::Quiet => print(&verdict.text(paint_of_stdout())),
    };
    if printed == ExitStatus::Ok { verdict.status() } else { printed }
}

fn status(settings: &StatusSettings) -> ExitStatus {
    end_status(&status::run(settings, SystemClock.now()), settings.output)
}

/// The table or the JSON; what is wrong is told by the log as well.
fn end_status(report: &Report, output: Output) -> ExitStatus {
    if let Some(error) = &report.error {
        tell(error);
    }
    let printed = match output {
        Output::Json => print(&format!("{}\n", report.json())),
        Output::Quiet => print(&report.text(paint_of_stdout())),
    };
    if printed == ExitStatus::Ok { report.status() } else { printed }
}

fn export(settings: &ExportSettings) -> ExitStatus {
    let ended = match Stop::on_signals() {
        Ok(stop) => export::run(settings, &stop),
        Err(error) => Err(Error::Internal(format!("signals cannot be caught: {error}"))),
    };
    match ended {
        Ok(Export::Complete(tally)) => log::info!("{}", tally.complete_line()),
        Ok(Export::Closed) => log::debug!("the reader of stdout went away"),
        Err(error) => return tell(&error),
    }
    ExitStatus::Ok
}

/// The last log line, and the summary if it is wanted, whatever the end.
fn end((summary, error): (Summary, Option<Error>), output: Output) -> ExitStatus {
    match &error {
        Some(error) => {
            tell(error);
        }
        None if summary.outcome == Outcome::Complete => log::info!("{}", summary.complete_line()),
        None => {}
    }
    match output {
        Output::Json => match print(&format!("{}\n", summary.json())) {
            ExitStatus::Ok => summary.status,
            failed => failed,
        },
        Output::Quiet => summary.status,
    }
}

fn tell(error: &Error) -> ExitStatus {
    log::error!("{}", escape_outside_text(&error.to_string(), ERROR_CHARS_MAX));
    error.exit_status()
}

/// To stdout; a reader that went away is a quiet end.
fn print(text: &str) -> ExitStatus {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => tell(&Error::Output(error.to_string())),
        _ => ExitStatus::Ok,
    }
}
