//! Looking records up by their identifiers: GetRecordById where it works, a filter on the identifier where it does not.
//!
//! A catalogue that does not give a record may not hold it, or may not answer such questions at all. A way counts as working once it has
//! given a record that was asked for. Nothing is stored or concluded here.

use std::collections::HashSet;

use super::Harvest;
use crate::catalogue::{Failure, FailureKind, Patience};
use crate::csw::response::Records;
use crate::csw::{Binding, Query, Version};
use crate::dialect::Dialect;
use crate::error::Error;

/// Records asked for in one GetRecordById of 2.0.2; 3.0.0 takes one.
const BATCH_RECORDS: usize = 20;
/// Questions in a row that fail before no more is asked.
const FAILURES_MAX: usize = 3;

/// How single records are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    ById,
    ByFilter,
    /// No way is left.
    Nowise,
}

/// What is known of asking for single records.
#[derive(Debug)]
pub(super) struct Lookup {
    way: Way,
    /// It has given a record.
    proven: bool,
}

impl Lookup {
    /// Where only a part of the catalogue is wanted, a record that is given by its identifier need not be in it.
    pub(super) const fn new(is_selective: bool) -> Self {
        Lookup { way: if is_selective { Way::ByFilter } else { Way::ById }, proven: false }
    }

    /// Whether single records cannot be had.
    pub(super) const fn is_of_no_use(&self) -> bool {
        matches!(self.way, Way::Nowise)
    }
}

/// What came of one question.
enum Told {
    /// What was asked for, as far as it is there.
    Given(Records),
    /// Other records too; these are of what was asked for.
    Strangers(Records),
    /// It cannot be told.
    Failed(Failure),
}

/// What became of a question for some records.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// What was given, answer by answer.
    pub(super) answers: Vec<Records>,
    /// Of which it could not be told whether they are there, and why.
    pub(super) failed: Vec<(String, Failure)>,
    /// Failures in a row.
    in_a_row: usize,
    /// Records came that were not asked for: the question is not understood, whatever it gave before.
    strangers: bool,
}

impl Found {
    /// Whether so many questions failed that the rest was not asked.
    pub(super) const fn gave_up(&self) -> bool {
        self.strangers || self.in_a_row >= FAILURES_MAX
    }

    fn add_strangers(&mut self, given: Records) {
        self.strangers = true;
        if !given.is_empty() {
            self.answers.push(given);
        }
    }

    /// The identifiers that were given.
    pub(super) fn identifiers(&self) -> HashSet<&str> {
        self.answers.iter().flat_map(Records::iter).filter_map(|record| record.identifier).collect()
    }
}

impl Harvest<'_> {
    /// Asks for whole records.
    ///
    /// # Errors
    /// What no other way of asking would mend: no way to the server, being told to stop.
    pub(super) fn look_up(&mut self, identifiers: &[&str]) -> Result<Found, Error> {
        if !identifiers.is_empty() {
            self.commit_pages()?;
        }
        let mut earlier = Vec::new();
        // Each turn but the last gives up a way, and there are two.
        loop {
            let mut found = self.ask_for_all(identifiers)?;
            found.answers.append(&mut earlier);
            self.lookup.proven &= !found.strangers;
            if self.lookup.proven || identifiers.is_empty() || self.lookup.is_of_no_use() {
                return Ok(found);
            }
            earlier = found.answers;
            self.lookup.way = match self.lookup.way {
                Way::ById => Way::ByFilter,
                Way::ByFilter | Way::Nowise => Way::Nowise,
            };
        }
    }

    fn ask_for_all(&mut self, identifiers: &[&str]) -> Result<Found, Error> {
        let mut found = Found::default();
        let Some(dialect) = self.dialect.clone().filter(|_| !self.lookup.is_of_no_use()) else { return Ok(found) };
        for batch in identifiers.chunks(self.batch_records(&dialect)) {
            self.ask_for_batch(&dialect, batch, &mut found)?;
            if found.gave_up() {
                break;
            }
        }
        Ok(found)
    }

    fn batch_records(&self, dialect: &Dialect) -> usize {
        match (self.lookup.way, dialect.version) {
            (Way::ById, Version::V202) => BATCH_RECORDS,
            _ => 1,
        }
    }

    /// All at once, and one by one those that do not come: some catalogues give the first alone, or none when one of them fails.
    fn ask_for_batch(&mut self, dialect: &Dialect, batch: &[&str], found: &mut Found) -> Result<(), Error> {
        let mut left: Vec<&str> = batch.to_vec();
        if batch.len() > 1 {
            match self.ask_for(dialect, batch, Patience::Full)? {
                Told::Given(given) => self.take_given(given, &mut left, found),
                Told::Strangers(given) => found.add_strangers(given),
                Told::Failed(_) => {}
            }
        }
        for identifier in left {
            if found.gave_up() {
                break;
            }
            match self.ask_for(dialect, &[identifier], Patience::Short)? {
                Told::Given(given) => self.take_given(given, &mut Vec::new(), found),
                Told::Strangers(given) => found.add_strangers(given),
                Told::Failed(failure) => {
                    found.failed.push((identifier.to_owned(), failure));
                    found.in_a_row += 1;
                }
            }
        }
        Ok(())
    }

    fn take_given(&mut self, given: Records, left: &mut Vec<&str>, found: &mut Found) {
        found.in_a_row = 0;
        if given.is_empty() {
            return;
        }
        self.lookup.proven = true;
        left.retain(|identifier| given.iter().all(|record| record.identifier != Some(*identifier)));
        found.answers.push(given);
    }

    /// One question.
    fn ask_for(&mut self, dialect: &Dialect, identifiers: &[&str], patience: Patience) -> Result<Told, Error> {
        // By GET a comma stands between two identifiers.
        let unsayable = dialect.binding == Binding::Get && identifiers.iter().any(|identifier| identifier.contains(','));
        let answer = match (self.lookup.way, identifiers) {
            (Way::ById, _) if !unsayable => self.catalogue.get_records_by_id(dialect, identifiers, patience),
            (_, [identifier]) => {
                let query = Query::identified(identifier);
                self.catalogue.get_records(dialect, &query, patience).map(|answer| answer.results.records)
            }
            _ => Ok(Records::default()),
        };
        let asked_for = |identifier: Option<&str>| identifier.is_none_or(|identifier| identifiers.contains(&identifier));
        match answer {
            Ok(records) if records.iter().all(|record| asked_for(record.identifier)) => Ok(Told::Given(records)),
            Ok(records) => {
                let mut wanted = Records::default();
                let named = records.iter().filter(|record| record.identifier.is_some());
                named.filter(|record| asked_for(record.identifier)).for_each(|record| wanted.push(record));
                Ok(Told::Strangers(wanted))
            }
            Err(failure) => match failure.kind {
                FailureKind::Unreachable | FailureKind::Stopped(_) | FailureKind::Fault => Err(failure.into()),
                // It has given records before: of this one, or of what stands in its place now, nothing can be told.
                FailureKind::Access
                | FailureKind::Unavailable
                | FailureKind::TooLarge
                | FailureKind::NotCsw
                | FailureKind::PastTheEnd
                | FailureKind::Ceiling
                | FailureKind::Dialect
                | FailureKind::BadPage
                | FailureKind::Report => Ok(Told::Failed(failure)),
            },
        }
    }
}
