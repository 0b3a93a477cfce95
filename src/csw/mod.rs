//! The protocol, pure: requests as text, answers as values, for CSW 2.0.2 (OGC 07-006r1) and 3.0.0 (OGC 12-176r7).
//!
//! Nothing in here knows a socket, a file, a clock or the log. Names are the specification's own. What a catalogue is known to
//! understand lies in `dialect.rs`; which page is asked for next lies in `plan.rs`.

pub mod capabilities;
pub mod exception;
pub mod filter;
pub mod record;
pub mod request;
pub mod response;
pub mod user_filter;
pub mod xml;

/// Namespace of CSW 2.0.2 messages and of `csw:Record`.
pub const CSW_202: &str = "http://www.opengis.net/cat/csw/2.0.2";
/// Namespace of CSW 3.0.0 messages and of their `csw30:Record`.
pub const CSW_300: &str = "http://www.opengis.net/cat/csw/3.0";
/// Namespace of ISO 19139 (`gmd`) records, as an output schema too.
pub const GMD: &str = "http://www.isotc211.org/2005/gmd";
/// Namespace of ISO 19115-3 (`mdb`) records, as an output schema too.
pub const MDB: &str = "http://standards.iso.org/iso/19115/-3/mdb/2.0";
/// Namespace of the ISO 19139 basic types (`gco:CharacterString`, `gco:DateTime`).
pub const GCO: &str = "http://www.isotc211.org/2005/gco";
/// Dublin Core elements.
pub const DC: &str = "http://purl.org/dc/elements/1.1/";
/// Dublin Core terms.
pub const DCT: &str = "http://purl.org/dc/terms/";
/// OGC filter encoding 1.1.
pub const OGC: &str = "http://www.opengis.net/ogc";
/// Filter encoding 2.0 (OGC 09-026r2), used by CSW 3.0.0.
pub const FES: &str = "http://www.opengis.net/fes/2.0";
/// OWS common 1.0, used by CSW 2.0.2.
pub const OWS: &str = "http://www.opengis.net/ows";
/// OWS common 2.0, used by CSW 3.0.0.
pub const OWS_20: &str = "http://www.opengis.net/ows/2.0";

/// The version spoken with a catalogue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// CSW 2.0.2.
    #[default]
    V202,
    /// CSW 3.0.0.
    V300,
}

impl Version {
    /// As it stands in requests.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Version::V202 => "2.0.2",
            Version::V300 => "3.0.0",
        }
    }

    /// The version of that number.
    #[must_use]
    pub fn named(number: &str) -> Option<Self> {
        [Version::V202, Version::V300].into_iter().find(|version| version.as_str() == number)
    }
}

/// How GetRecords is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Binding {
    /// XML in the body of a POST.
    #[default]
    Post,
    /// Key-value pairs in the url of a GET.
    Get,
}

impl Binding {
    /// As it stands in options and in the store.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Binding::Post => "post",
            Binding::Get => "get",
        }
    }

    /// The binding of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        [Binding::Post, Binding::Get].into_iter().find(|binding| binding.as_str() == name)
    }
}

/// `constraintLanguage`, which is a matter of GET alone: by POST the element says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConstraintLanguage {
    /// A Filter as XML text.
    #[default]
    Filter,
    /// Common query language (OGC 07-006r1): pycsw 2.6 reads no Filter 2.0 by GET, GeoServer prefers it.
    CqlText,
}

impl ConstraintLanguage {
    /// As it stands in requests.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            ConstraintLanguage::Filter => "FILTER",
            ConstraintLanguage::CqlText => "CQL_TEXT",
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

    /// ISO 19115-3.
    #[must_use]
    pub fn iso3() -> Self {
        OutputSchema(MDB.to_owned())
    }

    /// The namespace to send. `csw:Record` goes by another name in each version, and pycsw takes a 3.0.0 body that as much as names
    /// the other version's namespace for one of 2.0.2.
    #[must_use]
    pub fn in_version(&self, version: Version) -> &str {
        match (self.0.as_str(), version) {
            (CSW_202 | CSW_300, Version::V202) => CSW_202,
            (CSW_202 | CSW_300, Version::V300) => CSW_300,
            (other, _) => other,
        }
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

/// `ElementSetName`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ElementSet {
    /// Identifier, title and little more; a modified date nowhere.
    Brief,
    /// In between.
    Summary,
    /// All that there is.
    #[default]
    Full,
}

impl ElementSet {
    /// As it stands in requests.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            ElementSet::Brief => "brief",
            ElementSet::Summary => "summary",
            ElementSet::Full => "full",
        }
    }

    /// The element set of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        [ElementSet::Brief, ElementSet::Summary, ElementSet::Full].into_iter().find(|set| set.as_str() == name)
    }
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
    /// How much of each record.
    pub element_set: ElementSet,
    /// Only what has this identifier.
    pub identifier: Option<String>,
}

/// Records of one identifier that are looked at.
const TWINS_MAX: u32 = 10;

impl Default for Query {
    /// How many records the whole catalogue holds.
    fn default() -> Self {
        Query {
            window: Window::default(),
            start_position: 1,
            max_records: 1,
            result_type: ResultType::Hits,
            sort_order: SortOrder::Ascending,
            element_set: ElementSet::Full,
            identifier: None,
        }
    }
}

impl Query {
    /// How many records lie in `window`.
    #[must_use]
    pub fn hits(window: Window) -> Self {
        Query { window, ..Query::default() }
    }

    /// The records that have this identifier: one, as a rule.
    #[must_use]
    pub fn identified(identifier: &str) -> Self {
        let result_type = ResultType::Results;
        Query { max_records: TWINS_MAX, result_type, identifier: Some(identifier.to_owned()), ..Query::default() }
    }
}
