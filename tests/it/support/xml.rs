//! Answers as XML: GetRecordsResponse, GetRecordByIdResponse, records of both kinds.
//!
//! Capabilities and exception reports are in `documents.rs`. Shapes follow what pycsw and GeoNetwork send. It decides nothing: what is
//! answered was settled in `model`.

#[path = "documents.rs"]
mod documents;

use std::fmt::Write as _;
use std::sync::Arc;

pub(crate) use documents::{CapabilitiesFace, ReportFace, capabilities, exception_report, html};

use super::model::{ElementSet, Kind, ModelRecord, stamps_in};
use super::quirks::{CSW, CSW_300, Conversion, Quirks};
use super::stamps::has_time;

pub(crate) const DC: &str = "http://purl.org/dc/elements/1.1/";
pub(crate) const DCT: &str = "http://purl.org/dc/terms/";
pub(crate) const OWS: &str = "http://www.opengis.net/ows";
pub(crate) const GMD: &str = "http://www.isotc211.org/2005/gmd";
pub(crate) const GCO: &str = "http://www.isotc211.org/2005/gco";

/// Where the prefixes that records use are declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Declared {
    /// On the root element only (pycsw): a record cut out lacks them.
    OnRoot,
    /// On each record (GeoNetwork).
    OnRecords,
}

/// Which prefixes stand for the namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prefixes {
    /// csw, dc, dct, ows, gmd, gco.
    Usual,
    /// csw and gmd are default namespaces, the others go by other names.
    Foreign,
    /// As usual, but the stamp's element binds `dc` (or `gmd`) a second time, to the namespace that it is in.
    Rebound,
}

/// How answers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rendering {
    pub(crate) declared: Declared,
    pub(crate) prefixes: Prefixes,
}

impl Default for Rendering {
    fn default() -> Self {
        Rendering { declared: Declared::OnRoot, prefixes: Prefixes::Usual }
    }
}

/// The counters and what else stands around the records; attributes that are None are left out.
#[derive(Clone, Debug)]
pub(crate) struct Envelope<'a> {
    pub(crate) matched: Option<&'a str>,
    pub(crate) returned: Option<u64>,
    pub(crate) next: Option<i64>,
    pub(crate) timestamp: &'a str,
    pub(crate) schema: &'a str,
    pub(crate) element_set: ElementSet,
    pub(crate) version: &'a str,
}

/// An answer as a catalogue of that version writes it: the same but for the namespaces and the version's number.
pub(crate) fn in_version(version: &str, text: String) -> String {
    if version != "3.0.0" {
        return text;
    }
    let other = text.replace(CSW, CSW_300).replace(&format!("\"{OWS}\""), "\"http://www.opengis.net/ows/2.0\"");
    other.replace("version=\"2.0.2\"", "version=\"3.0.0\"").replace("csw:", "csw30:").replace("xmlns:csw=", "xmlns:csw30=")
}

/// Text safe within elements and attributes.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            _ => out.push(character),
        }
    }
    out
}

impl Rendering {
    // The written name of an element, and what stands after it to declare its namespace.
    fn name(self, namespace: &str, local: &str) -> String {
        match self.prefix(namespace) {
            "" => local.to_owned(),
            prefix => format!("{prefix}:{local}"),
        }
    }

    fn prefix(self, namespace: &str) -> &'static str {
        let foreign = self.prefixes == Prefixes::Foreign;
        match namespace {
            CSW | GMD if foreign => "",
            CSW => "csw",
            GMD => "gmd",
            DC if foreign => "e",
            DC => "dc",
            DCT if foreign => "terms",
            DCT => "dct",
            GCO if foreign => "basic",
            GCO => "gco",
            OWS if foreign => "o",
            _ => "ows",
        }
    }

    fn declaration(self, namespace: &str) -> String {
        match self.prefix(namespace) {
            "" => format!(" xmlns=\"{namespace}\""),
            prefix => format!(" xmlns:{prefix}=\"{namespace}\""),
        }
    }

    fn root_declarations(self) -> String {
        let mut out = self.declaration(CSW);
        if self.declared == Declared::OnRoot {
            for namespace in [DC, DCT, OWS, GCO] {
                out.push_str(&self.declaration(namespace));
            }
            // As a default namespace it would hide csw; then each record declares it.
            if self.prefixes != Prefixes::Foreign {
                out.push_str(&self.declaration(GMD));
            }
        }
        out
    }

    fn record_declarations(self, namespaces: &[&str]) -> String {
        if self.declared == Declared::OnRecords {
            return namespaces.iter().map(|namespace| self.declaration(namespace)).collect();
        }
        match namespaces.contains(&GMD) && self.prefixes == Prefixes::Foreign {
            true => self.declaration(GMD),
            false => String::new(),
        }
    }
}

/// A GetRecordsResponse around records that are rendered already.
pub(crate) fn envelope(rendering: Rendering, envelope: &Envelope<'_>, records: &str) -> String {
    let root = rendering.name(CSW, "GetRecordsResponse");
    let (status, results) = (rendering.name(CSW, "SearchStatus"), rendering.name(CSW, "SearchResults"));
    let mut out = String::with_capacity(records.len() + 1_024);
    out.push_str("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = write!(out, "<{root}{} version=\"2.0.2\">\n  ", rendering.root_declarations());
    let _ = write!(out, "<{status} timestamp=\"{}\"/>\n  <{results}", envelope.timestamp);
    if let Some(matched) = envelope.matched {
        let _ = write!(out, " numberOfRecordsMatched=\"{}\"", escaped(matched));
    }
    if let Some(returned) = envelope.returned {
        let _ = write!(out, " numberOfRecordsReturned=\"{returned}\"");
    }
    if let Some(next) = envelope.next {
        let _ = write!(out, " nextRecord=\"{next}\"");
    }
    let set = set_name(envelope.element_set);
    let _ = write!(out, " recordSchema=\"{}\" elementSet=\"{set}\">\n{records}", envelope.schema);
    let _ = write!(out, "  </{results}>\n</{root}>\n");
    in_version(envelope.version, out)
}

fn set_name(element_set: ElementSet) -> &'static str {
    match element_set {
        ElementSet::Brief => "brief",
        ElementSet::Summary => "summary",
        ElementSet::Full => "full",
    }
}

/// The records of a page, one after the other.
pub(crate) fn records(
    rendering: Rendering,
    quirks: &Quirks,
    (schema, element_set): (&str, ElementSet),
    records: &[Arc<ModelRecord>],
) -> String {
    let mut out = String::with_capacity(records.iter().map(|record| record.size + 1_024).sum());
    for record in records {
        if schema == CSW {
            csw_record(&mut out, rendering, quirks, record, element_set);
        } else if record.kind == Kind::Csw && quirks.conversion == Conversion::Sentence {
            let name = rendering.name(GMD, "MD_Metadata");
            let declarations = rendering.record_declarations(&[GMD]);
            let _ = writeln!(out, "<{name}{declarations}>Cannot disseminate schema</{name}>");
        } else {
            iso_record(&mut out, rendering, quirks, record, element_set);
        }
    }
    out
}

/// A GetRecordByIdResponse: empty when there is none.
pub(crate) fn by_id(
    rendering: Rendering,
    quirks: &Quirks,
    (schema, element_set): (&str, ElementSet),
    found: &[Arc<ModelRecord>],
) -> String {
    let root = rendering.name(CSW, "GetRecordByIdResponse");
    let records = records(rendering, quirks, (schema, element_set), found);
    let declarations = rendering.root_declarations();
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<{root}{declarations}>\n{records}</{root}>\n")
}

fn csw_record(out: &mut String, rendering: Rendering, quirks: &Quirks, record: &ModelRecord, element_set: ElementSet) {
    let local = match element_set {
        ElementSet::Brief => "BriefRecord",
        ElementSet::Summary => "SummaryRecord",
        ElementSet::Full => "Record",
    };
    let root = rendering.name(CSW, local);
    let start = out.len();
    let _ = writeln!(out, "    <{root}{}>", rendering.record_declarations(&[CSW, DC, DCT, OWS]));
    if let Some(identifier) = &record.identifier {
        line(out, rendering, DC, "identifier", identifier);
    }
    line(out, rendering, DC, "title", &record.title);
    line(out, rendering, DC, "type", "dataset");
    let mut tail = String::new();
    if element_set != ElementSet::Brief {
        line(out, rendering, DC, "subject", "environment");
        for stamp in stamps_in(quirks, record, CSW) {
            modified(out, rendering, &stamp);
        }
        let name = rendering.name(DCT, "abstract");
        let _ = write!(out, "      <{name}>{} ", record.marker());
        let _ = writeln!(tail, "</{name}>");
    }
    bounding_box(&mut tail, rendering);
    let _ = writeln!(tail, "    </{root}>");
    if element_set == ElementSet::Full {
        fill(out, record, record.size.saturating_sub(out.len() - start + tail.len()));
    }
    out.push_str(&tail);
}

fn line(out: &mut String, rendering: Rendering, namespace: &str, local: &str, text: &str) {
    let name = rendering.name(namespace, local);
    let _ = writeln!(out, "      <{name}>{}</{name}>", escaped(text));
}

fn modified(out: &mut String, rendering: Rendering, stamp: &str) {
    if rendering.prefixes == Prefixes::Rebound {
        let _ = writeln!(out, "      <dc:modified xmlns:dc=\"{DCT}\">{}</dc:modified>", escaped(stamp));
        return;
    }
    line(out, rendering, DCT, "modified", stamp);
}

fn bounding_box(out: &mut String, rendering: Rendering) {
    let name = |local| rendering.name(OWS, local);
    let (outer, lower, upper) = (name("BoundingBox"), name("LowerCorner"), name("UpperCorner"));
    let _ = writeln!(out, "      <{outer} crs=\"urn:x-ogc:def:crs:EPSG:6.11:4326\">");
    let _ = writeln!(out, "        <{lower}>47.59 -4.10</{lower}>\n        <{upper}>51.22 0.89</{upper}>\n      </{outer}>");
}

// The same words for the same record and version.
fn fill(out: &mut String, record: &ModelRecord, bytes: usize) {
    const WORDS: &str =
        "measurements of water level and discharge at gauging stations along the river, monthly means, quality controlled; ";
    let offset = (record.rowid as usize * 7 + record.version as usize) % WORDS.len();
    let end = out.len() + bytes;
    out.push_str(&WORDS[offset..][..bytes.min(WORDS.len() - offset)]);
    while out.len() < end {
        out.push_str(&WORDS[..WORDS.len().min(end - out.len())]);
    }
}

fn iso_record(out: &mut String, rendering: Rendering, quirks: &Quirks, record: &ModelRecord, element_set: ElementSet) {
    let root = rendering.name(GMD, "MD_Metadata");
    let start = out.len();
    let iso = Iso { rendering };
    let _ = writeln!(out, "    <{root}{}>", rendering.record_declarations(&[GMD, GCO]));
    if let Some(identifier) = &record.identifier {
        iso.text(out, "fileIdentifier", identifier);
    }
    if element_set != ElementSet::Brief {
        iso.text(out, "language", "eng");
    }
    iso.code(out, "hierarchyLevel", "MD_ScopeCode", "dataset");
    if element_set != ElementSet::Brief {
        iso.contact(out, "contact");
        if let Some(stamp) = stamps_in(quirks, record, GMD).first() {
            iso.date_stamp(out, stamp);
        }
        iso.text(out, "metadataStandardName", "ISO 19115:2003/19139");
    }
    iso.open(out, &["identificationInfo", "MD_DataIdentification", "citation", "CI_Citation"]);
    iso.text(out, "title", &record.title);
    iso.open(out, &["date", "CI_Date", "date"]);
    // A date of the resource, which must not be taken for the record's stamp.
    let date = rendering.name(GCO, "Date");
    let _ = writeln!(out, "      <{date}>1999-12-31</{date}>");
    iso.close(out, &["date"]);
    iso.code(out, "dateType", "CI_DateTypeCode", "publication");
    iso.close(out, &["date", "CI_Date"]);
    iso.close(out, &["citation", "CI_Citation"]);
    let string = rendering.name(GCO, "CharacterString");
    iso.open(out, &["abstract"]);
    let _ = write!(out, "      <{string}>{} ", record.marker());
    let mut tail = String::new();
    let _ = writeln!(tail, "</{string}>");
    iso.close(&mut tail, &["abstract"]);
    if element_set == ElementSet::Full {
        iso.contact(&mut tail, "pointOfContact");
        iso.open(&mut tail, &["descriptiveKeywords", "MD_Keywords"]);
        for keyword in ["hydrography", "river", "gauge"] {
            iso.text(&mut tail, "keyword", keyword);
        }
        iso.close(&mut tail, &["descriptiveKeywords", "MD_Keywords"]);
    }
    iso.close(&mut tail, &["identificationInfo", "MD_DataIdentification"]);
    let _ = writeln!(tail, "    </{root}>");
    if element_set == ElementSet::Full {
        fill(out, record, record.size.saturating_sub(out.len() - start + tail.len()));
    }
    out.push_str(&tail);
}

/// The recurring pieces of a gmd:MD_Metadata.
#[derive(Clone, Copy)]
struct Iso {
    rendering: Rendering,
}

impl Iso {
    fn open(self, out: &mut String, path: &[&str]) {
        for local in path {
            let _ = writeln!(out, "      <{}>", self.rendering.name(GMD, local));
        }
    }

    // The path as it was opened: the innermost is closed first.
    fn close(self, out: &mut String, path: &[&str]) {
        for local in path.iter().rev() {
            let _ = writeln!(out, "      </{}>", self.rendering.name(GMD, local));
        }
    }

    fn text(self, out: &mut String, local: &str, text: &str) {
        let (name, string) = (self.rendering.name(GMD, local), self.rendering.name(GCO, "CharacterString"));
        let _ = writeln!(out, "      <{name}><{string}>{}</{string}></{name}>", escaped(text));
    }

    fn code(self, out: &mut String, local: &str, list: &str, value: &str) {
        let (name, code) = (self.rendering.name(GMD, local), self.rendering.name(GMD, list));
        let url = format!("http://standards.iso.org/iso/19139/resources/gmxCodelists.xml#{list}");
        let _ = writeln!(out, "      <{name}><{code} codeList=\"{url}\" codeListValue=\"{value}\">{value}</{code}></{name}>");
    }

    fn contact(self, out: &mut String, local: &str) {
        self.open(out, &[local, "CI_ResponsibleParty"]);
        self.text(out, "organisationName", "Agency of Waters");
        self.code(out, "role", "CI_RoleCode", "pointOfContact");
        self.close(out, &[local, "CI_ResponsibleParty"]);
    }

    fn date_stamp(self, out: &mut String, stamp: &str) {
        let local = if has_time(stamp) { "DateTime" } else { "Date" };
        let (mut name, value) = (self.rendering.name(GMD, "dateStamp"), self.rendering.name(GCO, local));
        let mut declaration = String::new();
        if self.rendering.prefixes == Prefixes::Rebound {
            name = "dc:dateStamp".to_owned();
            declaration = format!(" xmlns:dc=\"{GMD}\"");
        }
        let _ = writeln!(out, "      <{name}{declaration}><{value}>{}</{value}></{name}>", escaped(stamp));
    }
}
