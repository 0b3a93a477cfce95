//! The options of `status`, typed and checked.

use std::path::PathBuf;
use std::time::Duration;

use argh::FromArgs;

use super::{Output, fit_for_a_name, seconds, store_path};
use crate::error::Error;

/// Tell how each source of the store stands: watermark, records, last run, last success, problems.
#[derive(FromArgs, Debug)]
#[argh(subcommand, name = "status")]
pub(super) struct TypedStatus {
    /// the store (default: harvest_state.db)
    #[argh(option, default = "PathBuf::from(\"harvest_state.db\")")]
    db: PathBuf,
    /// the one source to tell of, by its key (default: all)
    #[argh(option)]
    source: Option<String>,
    /// exit with 1 when the last success of a source is older than that many seconds, or there is none (default: none)
    #[argh(option)]
    max_age: Option<String>,
    /// print one JSON object on one line, whatever the end
    #[argh(switch)]
    json: bool,
}

/// What `status` is asked, all values checked.
#[derive(Clone, Debug)]
pub struct StatusSettings {
    /// The store.
    pub db: PathBuf,
    /// The source, when one is named.
    pub source: Option<String>,
    /// `--max-age`.
    pub max_age: Option<Duration>,
    /// `--json`.
    pub output: Output,
}

impl TypedStatus {
    pub(super) fn check(self) -> Result<StatusSettings, Error> {
        fit_for_a_name("source", self.source.as_ref())?;
        Ok(StatusSettings {
            db: store_path(self.db)?,
            source: self.source,
            max_age: self.max_age.map(|text| seconds("max-age", &text, 1)).transpose()?,
            output: if self.json { Output::Json } else { Output::Quiet },
        })
    }
}
