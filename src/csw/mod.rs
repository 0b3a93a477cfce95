//! The protocol, pure: requests as text, answers as values, for CSW 2.0.2 (OGC 07-006r1).
//!
//! Nothing in here knows a socket, a file, a clock or the log. Names are the specification's own. What a catalogue is known to
//! understand lies in `dialect.rs`; which page is asked for next lies in `plan.rs`.

pub mod capabilities;
pub mod exception;
pub mod filter;
pub mod record;
pub mod request;
pub mod response;
pub mod xml;

/// Namespace of CSW 2.0.2 messages and of `csw:Record`.
pub const CSW_202: &str = "http://www.opengis.net/cat/csw/2.0.2";
/// Namespace of ISO 19139 (`gmd`) records, as an output schema too.
pub const GMD: &str = "http://www.isotc211.org/2005/gmd";
/// Namespace of the ISO 19139 basic types (`gco:CharacterString`, `gco:DateTime`).
pub const GCO: &str = "http://www.isotc211.org/2005/gco";
/// Dublin Core elements.
pub const DC: &str = "http://purl.org/dc/elements/1.1/";
/// Dublin Core terms.
pub const DCT: &str = "http://purl.org/dc/terms/";
/// OGC filter encoding 1.1.
pub const OGC: &str = "http://www.opengis.net/ogc";
/// OWS common 1.0, used by CSW 2.0.2.
pub const OWS: &str = "http://www.opengis.net/ows";

/// The version spoken with a catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// CSW 2.0.2.
    V202,
}

impl Version {
    /// As it stands in requests.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Version::V202 => "2.0.2",
        }
    }
}

/// The record format asked for, as a namespace (`outputSchema`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputSchema(pub String);

impl OutputSchema {
    /// `csw:Record`, which every catalogue must offer.
    #[must_use]
    pub fn csw() -> Self {
        OutputSchema(CSW_202.to_owned())
    }

    /// ISO 19139.
    #[must_use]
    pub fn iso() -> Self {
        OutputSchema(GMD.to_owned())
    }
}

/// The lower edge of a window, as the text of the literal that is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lower {
    /// `PropertyIsGreaterThan`.
    After(String),
    /// `PropertyIsGreaterThanOrEqualTo`.
    From(String),
}

impl Lower {
    /// The literal, without its operator.
    #[must_use]
    pub fn literal(&self) -> &str {
        match self {
            Lower::After(text) | Lower::From(text) => text,
        }
    }
}

/// Which part of the catalogue a query speaks of. Both edges absent: everything, undated records too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// The lower edge.
    pub lower: Option<Lower>,
    /// The upper edge, inclusive (`PropertyIsLessThanOrEqualTo`).
    pub upper: Option<String>,
}

/// `resultType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultType {
    /// Records, please. Never left out: several servers default to hits.
    Results,
    /// Only how many there are.
    Hits,
}

/// `SortOrder` on the modified property.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SortOrder {
    /// Oldest first: the order in which everything is read.
    #[default]
    Ascending,
    /// Newest first: only to see whether a sort is obeyed at all.
    Descending,
}

/// One GetRecords, apart from what the dialect adds to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// The filter on the modified property.
    pub window: Window,
    /// 1-based `startPosition`; never 0, which many servers refuse.
    pub start_position: u64,
    /// `maxRecords`.
    pub max_records: u32,
    /// `resultType`.
    pub result_type: ResultType,
    /// The order, where the catalogue sorts.
    pub sort_order: SortOrder,
}

impl Query {
    /// How many records lie in `window`.
    #[must_use]
    pub fn hits(window: Window) -> Self {
        Query { window, start_position: 1, max_records: 1, result_type: ResultType::Hits, sort_order: SortOrder::Ascending }
    }
}
