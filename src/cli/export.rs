//! The options of `export`, typed and checked.

use std::path::PathBuf;

use argh::FromArgs;

use super::{fit_for_a_name, is_part_of_store, number, store_path, usage};
use crate::error::Error;

/// Print the records of the store as NDJSON, or what changed, or keep one XML file of each in a folder.
#[derive(FromArgs, Debug)]
#[argh(subcommand, name = "export")]
pub(super) struct TypedExport {
    /// the store (default: harvest_state.db)
    #[argh(option, default = "PathBuf::from(\"harvest_state.db\")")]
    db: PathBuf,
    /// the one source to export, by its key (default: all)
    #[argh(option)]
    source: Option<String>,
    /// what changed after that sequence number, deletions included (default: all live records)
    #[argh(option)]
    since_seq: Option<String>,
    /// file that holds the sequence number between calls; moved when all was written (default: none)
    #[argh(option)]
    cursor_file: Option<PathBuf>,
    /// keep one XML file of each record below this folder, print nothing (default: none)
    #[argh(option)]
    xml_dir: Option<PathBuf>,
}

/// Where an export begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Beginning {
    /// All live records, no deletions.
    Live,
    /// What changed after this sequence number.
    After(i64),
    /// What changed after the number in this file; from the first change on when there is no such file yet.
    Cursor(PathBuf),
}

/// What `export` is asked, all values checked.
#[derive(Clone, Debug)]
pub struct ExportSettings {
    /// The store.
    pub db: PathBuf,
    /// The source, when one is named.
    pub source: Option<String>,
    /// What is exported.
    pub beginning: Beginning,
    /// The folder of files, instead of stdout.
    pub xml_dir: Option<PathBuf>,
}

impl TypedExport {
    pub(super) fn check(self) -> Result<ExportSettings, Error> {
        fit_for_a_name("source", self.source.as_ref())?;
        let db = store_path(self.db)?;
        let beginning = match (self.since_seq, self.cursor_file) {
            (Some(_), Some(_)) => return Err(usage("--since-seq and --cursor-file exclude each other")),
            (Some(seq), None) => {
                let seq = number("since-seq", &seq, 0, i64::MAX.unsigned_abs())?;
                Beginning::After(i64::try_from(seq).unwrap_or(i64::MAX))
            }
            (None, Some(path)) if path.file_name().is_none() => return Err(usage("--cursor-file: must name a file")),
            (None, Some(path)) if is_part_of_store(&path, &db) => {
                return Err(usage("--cursor-file: may not be the store or one of its side files"));
            }
            (None, Some(path)) => Beginning::Cursor(path),
            (None, None) => Beginning::Live,
        };
        if self.xml_dir.as_ref().is_some_and(|folder| folder.as_os_str().is_empty()) {
            return Err(usage("--xml-dir: may not be empty"));
        }
        Ok(ExportSettings { db, source: self.source, beginning, xml_dir: self.xml_dir })
    }
}
