//! What the model catalogue is asked, whatever way the question came.

use super::super::quirks::CSW;

/// `PropertyIsGreaterThan` or `PropertyIsGreaterThanOrEqualTo`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    After,
    From,
}

/// The comparisons that a condition may make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compare {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    /// `%` and `*` for many, `_` and `?` for one.
    Like,
}

/// What a request asks for beside the window: the user's own filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    All(Vec<Condition>),
    Any(Vec<Condition>),
    Not(Box<Condition>),
    Term { property: String, compare: Compare, literal: String },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ElementSet {
    Brief,
    Summary,
    Full,
}

/// One GetRecords, whatever way it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ModelRequest {
    /// The property of `lower` and `upper`.
    pub(crate) property: Option<String>,
    pub(crate) lower: Option<(Operator, String)>,
    /// Inclusive.
    pub(crate) upper: Option<String>,
    pub(crate) also: Option<Condition>,
    pub(crate) sort: Option<String>,
    pub(crate) sort_then: Option<String>,
    pub(crate) descending: bool,
    pub(crate) start_position: i64,
    pub(crate) max_records: u32,
    pub(crate) hits: bool,
    pub(crate) schema: String,
    pub(crate) element_set: ElementSet,
    /// In which the question came, and the answer goes.
    pub(crate) version: &'static str,
}

impl ModelRequest {
    /// Unfiltered, unsorted, csw:Record in full.
    pub(crate) fn page(start_position: i64, max_records: u32) -> Self {
        ModelRequest {
            property: None,
            lower: None,
            upper: None,
            also: None,
            sort: None,
            sort_then: None,
            descending: false,
            start_position,
            max_records,
            hits: false,
            schema: CSW.to_owned(),
            element_set: ElementSet::Full,
            version: "2.0.2",
        }
    }

    pub(crate) fn after(self, property: &str, literal: &str) -> Self {
        ModelRequest { property: Some(property.to_owned()), lower: Some((Operator::After, literal.to_owned())), ..self }
    }

    pub(crate) fn from(self, property: &str, literal: &str) -> Self {
        ModelRequest { property: Some(property.to_owned()), lower: Some((Operator::From, literal.to_owned())), ..self }
    }

    pub(crate) fn until(self, property: &str, literal: &str) -> Self {
        ModelRequest { property: Some(property.to_owned()), upper: Some(literal.to_owned()), ..self }
    }

    pub(crate) fn sorted(self, name: &str) -> Self {
        ModelRequest { sort: Some(name.to_owned()), ..self }
    }

    pub(crate) fn in_schema(self, schema: &str) -> Self {
        ModelRequest { schema: schema.to_owned(), ..self }
    }

    pub(crate) fn counting(self) -> Self {
        ModelRequest { hits: true, ..self }
    }
}
