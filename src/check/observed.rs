//! A catalogue that keeps what it was asked and what it said, so that negotiation is told without being done twice.
//!
//! Every question goes through unchanged, and so does every answer. Records are counted, not kept.

use crate::catalogue::{Answer, Catalogue, Failure, Patience, Traffic};
use crate::csw::capabilities::Capabilities;
use crate::csw::response::Records;
use crate::csw::{Query, ResultType, Window};
use crate::dialect::Dialect;

/// Questions kept at most.
const QUESTIONS_MAX: usize = 64;

/// A question that was asked, and how it ended.
pub(super) struct Question {
    pub(super) property: Option<String>,
    pub(super) sort: Option<String>,
    pub(super) window: Window,
    pub(super) result_type: ResultType,
    /// `numberOfRecordsMatched` where it was answered; what was said where it was not.
    pub(super) said: Result<Option<u64>, String>,
}

/// What was said while a dialect was found.
#[derive(Default)]
pub(super) struct Talk {
    pub(super) capabilities: Option<Capabilities>,
    pub(super) questions: Vec<Question>,
}

impl Talk {
    /// The counts that were asked for with a filter on `property`: first of what is newer than long ago, then than the far future.
    pub(super) fn counts<'a>(&'a self, property: &'a str) -> impl Iterator<Item = &'a Result<Option<u64>, String>> {
        self.filtered().filter(move |question| question.property.as_deref() == Some(property)).map(|question| &question.said)
    }

    /// The names that were tried as the modified date, in order.
    pub(super) fn properties_tried(&self) -> Vec<&str> {
        distinct(self.filtered().filter_map(|question| question.property.as_deref()))
    }

    /// The names that were tried to sort by, in order.
    pub(super) fn sorts_tried(&self) -> Vec<&str> {
        distinct(self.questions.iter().filter_map(|question| question.sort.as_deref()))
    }

    fn filtered(&self) -> impl Iterator<Item = &Question> {
        self.questions.iter().filter(|question| question.result_type == ResultType::Hits && question.window.lower.is_some())
    }
}

fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut known = Vec::new();
    for name in names {
        if !known.contains(&name) {
            known.push(name);
        }
    }
    known
}

/// A catalogue whose talk is kept.
pub(super) struct Observed<'a> {
    inner: &'a mut dyn Catalogue,
    talk: Talk,
}

impl<'a> Observed<'a> {
    pub(super) fn new(inner: &'a mut dyn Catalogue) -> Self {
        Observed { inner, talk: Talk::default() }
    }

    pub(super) fn into_talk(self) -> Talk {
        self.talk
    }
}

impl Catalogue for Observed<'_> {
    fn get_capabilities(&mut self, base: &str) -> Result<Option<Capabilities>, Failure> {
        let capabilities = self.inner.get_capabilities(base)?;
        self.talk.capabilities.clone_from(&capabilities);
        Ok(capabilities)
    }

    fn get_records(&mut self, dialect: &Dialect, query: &Query, patience: Patience) -> Result<Answer, Failure> {
        let answer = self.inner.get_records(dialect, query, patience);
        if self.talk.questions.len() < QUESTIONS_MAX {
            self.talk.questions.push(Question {
                property: dialect.property.clone(),
                sort: dialect.sort.clone(),
                window: query.window.clone(),
                result_type: query.result_type,
                said: answer.as_ref().map(|answer| answer.results.matched).map_err(|failure| failure.message.clone()),
            });
        }
        answer
    }

    fn get_records_by_id(&mut self, dialect: &Dialect, identifiers: &[&str], patience: Patience) -> Result<Records, Failure> {
        self.inner.get_records_by_id(dialect, identifiers, patience)
    }

    fn traffic(&self) -> Traffic {
        self.inner.traffic()
    }

    fn gzip(&self) -> bool {
        self.inner.gzip()
    }
}
