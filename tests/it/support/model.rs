//! The model catalogue: records, edits, a clock that is set by hand, and the truth about what it shows.
//!
//! How it answers is in `answer.rs`, in which ways it errs in `quirks.rs`. Pure: no socket, no real clock, no XML. Simulation, server
//! and fuzzing all use this one model.

#[path = "answer.rs"]
mod answer;
#[path = "query.rs"]
mod query;
#[path = "views.rs"]
mod views;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::quirks::{CSW, Clock, CswStamp, EditedStamp, Quirks};
use super::stamps::{Micros, StampShape, read};
pub(crate) use query::{Compare, Condition, ElementSet, ModelRequest, Operator};
use views::Views;

/// Whose format a record was written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// csw:Record.
    Csw,
    /// gmd:MD_Metadata.
    Iso,
}

/// How a page fails that contains the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Poison {
    /// NoApplicableCode with this text.
    Exception(String),
    /// This status without a body.
    Http(u16),
}

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ModelRecord {
    pub(crate) identifier: Option<String>,
    pub(crate) title: String,
    /// The stamps shown, as text; none for an undated record.
    pub(crate) shown: Vec<String>,
    /// What filter and sort see when they compare as time.
    pub(crate) filter_stamp: Option<Micros>,
    /// What filter and sort see when they compare as text.
    pub(crate) filter_text: Option<String>,
    /// The resource's own revision date, which GeoNetwork shows in csw:Record.
    pub(crate) revision: Option<String>,
    pub(crate) rowid: u64,
    pub(crate) kind: Kind,
    /// Not shown before that.
    pub(crate) visible_from: Micros,
    /// Bytes that the record has when rendered, at least.
    pub(crate) size: usize,
    pub(crate) poison: Option<Poison>,
    /// Rises with every change of the content, and stands in the body.
    pub(crate) version: u64,
    /// When it was inserted or edited, as a count that rises through the catalogue.
    pub(crate) edited: u64,
}

impl ModelRecord {
    /// A record without stamps, of which the rest is set by the caller.
    pub(crate) fn new(identifier: &str) -> Self {
        ModelRecord {
            identifier: Some(identifier.to_owned()),
            title: format!("Title of {identifier}"),
            shown: Vec::new(),
            filter_stamp: None,
            filter_text: None,
            revision: None,
            rowid: 0,
            kind: Kind::Iso,
            visible_from: Micros::MIN,
            size: 0,
            poison: None,
            version: 1,
            edited: 0,
        }
    }

    /// A record that shows these stamps as they are.
    pub(crate) fn showing(identifier: &str, stamps: &[&str]) -> Self {
        let mut record = Self::new(identifier);
        record.shown = stamps.iter().map(|stamp| (*stamp).to_owned()).collect();
        record
    }

    /// What stands in every rendered body, so that a test can tell the versions apart.
    pub(crate) fn marker(&self) -> String {
        format!("[version {}]", self.version)
    }
}

/// An exception report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) code: String,
    /// Empty: none.
    pub(crate) locator: String,
    pub(crate) text: String,
    /// HTTP status that goes with it.
    pub(crate) status: u16,
}

/// What the catalogue says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ModelAnswer {
    Results {
        /// The attribute's text, None when it is absent.
        matched: Option<String>,
        returned: Option<u64>,
        next: Option<i64>,
        records: Vec<Arc<ModelRecord>>,
        /// `SearchStatus/@timestamp`.
        timestamp: String,
    },
    Report(Report),
    Http {
        status: u16,
        body: String,
    },
}

/// A catalogue. Change it through its methods: they keep the sorted views true.
#[derive(Clone, Debug)]
pub(crate) struct Catalogue {
    records: Vec<Arc<ModelRecord>>,
    now: Micros,
    quirks: Quirks,
    seed: u64,
    /// How many were asked; feeds the orders that change each time.
    asked: u64,
    rowid_last: u64,
    edited_last: u64,
    views: Views,
}

impl Catalogue {
    pub(crate) fn new(now: Micros, quirks: Quirks) -> Self {
        Catalogue {
            records: Vec::new(),
            now,
            quirks,
            seed: 0x5eed,
            asked: 0,
            rowid_last: 0,
            edited_last: 0,
            views: Views::default(),
        }
    }

    pub(crate) fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self.views.forget();
        self
    }

    pub(crate) fn now(&self) -> Micros {
        self.now
    }

    pub(crate) fn advance(&mut self, by: Micros) {
        self.set_now(self.now + by);
    }

    pub(crate) fn set_now(&mut self, now: Micros) {
        if now < self.now {
            self.views.forget();
        }
        self.now = now;
    }

    pub(crate) fn quirks(&self) -> &Quirks {
        &self.quirks
    }

    /// To turn a server into another one between runs.
    pub(crate) fn quirks_mut(&mut self) -> &mut Quirks {
        self.views.forget();
        &mut self.quirks
    }

    pub(crate) fn records(&self) -> &[Arc<ModelRecord>] {
        &self.records
    }

    /// Inserts a record that is stamped now.
    pub(crate) fn insert(&mut self, identifier: &str) {
        self.insert_at(identifier, self.now);
    }

    /// Inserts a record that shows another stamp than now, in the catalogue's shape. A hidden clock sees now.
    pub(crate) fn insert_at(&mut self, identifier: &str, stamp: Micros) {
        let mut record = ModelRecord::new(identifier);
        let text = self.quirks.shape.write(stamp, self.rowid_last);
        // Read back, for a shape may name less than the instant.
        record.filter_stamp = text.as_deref().map(|text| read(text).unwrap_or(stamp));
        record.shown = text.into_iter().collect();
        self.insert_record(record);
    }

    /// Inserts a record with the stamps that it shows; `rowid` and what the filter sees are filled in when they are not set.
    pub(crate) fn insert_record(&mut self, mut record: ModelRecord) {
        self.rowid_last += 1;
        self.edited_last += 1;
        record.rowid = self.rowid_last;
        record.edited = self.edited_last;
        match self.quirks.clock {
            Clock::Hidden(shape) if record.filter_stamp.is_none() || record.filter_text.is_none() => {
                set_hidden(&mut record, shape, self.now);
            }
            Clock::Hidden(_) => {}
            Clock::Shown => fill_from_shown(&mut record),
        }
        self.records.push(Arc::new(record));
        self.views.forget();
    }

    /// `count` records `prefix-000001` and so on, `stamp` giving each its instant.
    pub(crate) fn fill(&mut self, prefix: &str, count: usize, stamp: impl Fn(usize) -> Micros) {
        for number in 0..count {
            self.insert_at(&format!("{prefix}-{:06}", number + 1), stamp(number));
        }
    }

    /// New content, stamped now in the shape that the catalogue writes.
    pub(crate) fn edit(&mut self, identifier: &str) -> bool {
        self.edit_at(identifier, self.now)
    }

    /// The same with another stamp than now. A hidden clock sees now.
    pub(crate) fn edit_at(&mut self, identifier: &str, stamp: Micros) -> bool {
        let quirks = (self.quirks.clock, self.quirks.shape, self.quirks.edited_stamp);
        let now = self.now;
        self.change(identifier, |record| {
            record.version += 1;
            let (clock, shape, edited_stamp) = quirks;
            if edited_stamp == EditedStamp::Rewritten {
                let text = shape.write(stamp, record.rowid + record.version);
                record.filter_stamp = text.as_deref().map(|text| read(text).unwrap_or(stamp));
                record.filter_text = None;
                record.shown = text.into_iter().collect();
            }
            match clock {
                Clock::Hidden(shape) => set_hidden(record, shape, now),
                Clock::Shown => fill_from_shown(record),
            }
        })
    }

    /// The catalogue's own clock alone says that the record changed: same content, same stamp shown. Where the clock is the shown
    /// stamp, this shows nowhere but in an order by last edit.
    pub(crate) fn touch(&mut self, identifier: &str) -> bool {
        let (clock, now) = (self.quirks.clock, self.now);
        self.change(identifier, |record| {
            if let Clock::Hidden(shape) = clock {
                set_hidden(record, shape, now);
            }
        })
    }

    /// Anything else that may happen to a record; the views are built anew.
    pub(crate) fn change(&mut self, identifier: &str, change: impl FnOnce(&mut ModelRecord)) -> bool {
        let found = self.records.iter_mut().find(|record| record.identifier.as_deref() == Some(identifier));
        let Some(record) = found else { return false };
        self.edited_last += 1;
        let record = Arc::make_mut(record);
        record.edited = self.edited_last;
        change(record);
        self.views.forget();
        true
    }

    /// Removes all records of that identifier.
    pub(crate) fn delete(&mut self, identifier: &str) -> bool {
        let before = self.records.len();
        self.records.retain(|record| record.identifier.as_deref() != Some(identifier));
        self.views.forget();
        self.records.len() < before
    }

    pub(crate) fn clear(&mut self) {
        self.records.clear();
        self.views.forget();
    }

    /// What a harvester must hold now: by identifier the stamp as csw:Record shows it and the version of the content.
    pub(crate) fn visible(&self) -> BTreeMap<String, (Option<String>, u64)> {
        self.visible_in(CSW)
    }

    /// The same in another output schema. Of two records with one identifier the newer counts.
    pub(crate) fn visible_in(&self, schema: &str) -> BTreeMap<String, (Option<String>, u64)> {
        let mut newest: BTreeMap<&str, &ModelRecord> = BTreeMap::new();
        for record in self.records.iter().filter(|record| record.visible_from <= self.now) {
            let Some(identifier) = record.identifier.as_deref() else { continue };
            let age = |record: &ModelRecord| (record.filter_stamp, record.rowid);
            match newest.get(identifier) {
                Some(held) if age(held) > age(record) => {}
                _ => drop(newest.insert(identifier, record)),
            }
        }
        let truth = |record: &ModelRecord| (best(&self.stamps_in(record, schema)), record.version);
        newest.into_iter().map(|(identifier, record)| (identifier.to_owned(), truth(record))).collect()
    }

    /// The stamps that a record shows in an output schema.
    pub(crate) fn stamps_in(&self, record: &ModelRecord, schema: &str) -> Vec<String> {
        stamps_in(&self.quirks, record, schema)
    }

    /// The records of these identifiers, in the order asked for.
    pub(crate) fn by_ids(&self, identifiers: &[String]) -> Vec<Arc<ModelRecord>> {
        let visible = |identifier: &String| {
            let mut records = self.records.iter().filter(|record| record.visible_from <= self.now);
            records.find(|record| record.identifier.as_ref() == Some(identifier)).cloned()
        };
        identifiers.iter().filter_map(visible).collect()
    }
}

/// The stamps that a record shows in an output schema.
pub(crate) fn stamps_in(quirks: &Quirks, record: &ModelRecord, schema: &str) -> Vec<String> {
    if schema != CSW {
        return record.shown.clone();
    }
    match quirks.csw_stamp {
        CswStamp::Same => record.shown.clone(),
        CswStamp::Revision => record.revision.iter().cloned().collect(),
        CswStamp::JavaText => {
            let java = |text: &String| read(text).and_then(|at| StampShape::JavaText.write(at, 0)).unwrap_or_else(|| text.clone());
            record.shown.iter().map(java).collect()
        }
    }
}

// The latest stamp that can be read, else the first (contract of the records table).
fn best(stamps: &[String]) -> Option<String> {
    let mut latest: Option<(Micros, &String)> = None;
    for stamp in stamps {
        let Some(at) = read(stamp) else { continue };
        if latest.is_none_or(|(held, _)| at > held) {
            latest = Some((at, stamp));
        }
    }
    latest.map(|(_, stamp)| stamp).or(stamps.first()).cloned()
}

fn set_hidden(record: &mut ModelRecord, shape: StampShape, now: Micros) {
    let text = shape.write(now, record.rowid);
    record.filter_stamp = text.as_deref().and_then(read);
    record.filter_text = text;
}

fn fill_from_shown(record: &mut ModelRecord) {
    let shown = best(&record.shown);
    if record.filter_stamp.is_none() {
        record.filter_stamp = shown.as_deref().and_then(read);
    }
    if record.filter_text.is_none() {
        record.filter_text = shown;
    }
}
