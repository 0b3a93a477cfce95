//! Fixed answers for cases that are told as envelopes: `env(matched, returned, next){records}`.
//!
//! A script answers pages only. Capabilities, counts and filtered probes that a harvester sends first have answers of their own, so that
//! a case can say in its pages alone what it is about.

use std::collections::BTreeMap;

use super::model::{ElementSet, ModelRequest, Report};
use super::quirks::{CSW, GMD};
use super::requests::Operation;
use super::xml::{self, DC, DCT, Envelope, GCO, Rendering, ReportFace, escaped};

/// One HTTP answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// In place of, or beside, the usual ones; names as they are written.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    /// 200, application/xml.
    pub(crate) fn xml(body: impl Into<Vec<u8>>) -> Self {
        Reply::of(200, "application/xml", body)
    }

    pub(crate) fn of(status: u16, media_type: &str, body: impl Into<Vec<u8>>) -> Self {
        let headers = vec![("Content-Type".to_owned(), media_type.to_owned())];
        Reply { status, headers, body: body.into() }
    }

    pub(crate) fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(held, _)| !held.eq_ignore_ascii_case(name));
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// An exception report with its own status.
    pub(crate) fn report(report: &Report) -> Self {
        Reply::of(report.status, "application/xml", xml::exception_report(ReportFace::Ows, report))
    }
}

/// A GetRecordsResponse; None leaves an attribute out.
pub(crate) fn env(matched: Option<i64>, returned: Option<u64>, next: Option<i64>, records: &[String]) -> String {
    let matched = matched.map(|matched| matched.to_string());
    let envelope = Envelope {
        matched: matched.as_deref(),
        returned,
        next,
        timestamp: "2025-06-01T12:00:00Z",
        schema: if records.iter().any(|record| record.contains("MD_Metadata")) { GMD } else { CSW },
        element_set: ElementSet::Full,
        version: "2.0.2",
    };
    xml::envelope(Rendering::default(), &envelope, &records.concat())
}

/// A csw:Record that declares what it uses; empty texts leave the element out.
pub(crate) fn dc(identifier: &str, title: &str, modified: &str) -> String {
    dc_of(identifier, title, &[modified])
}

/// The same with several dct:modified.
pub(crate) fn dc_of(identifier: &str, title: &str, modified: &[&str]) -> String {
    let mut inner = element("dc:identifier", identifier) + &element("dc:title", title);
    for stamp in modified {
        inner += &element("dct:modified", stamp);
    }
    format!("<csw:Record xmlns:csw=\"{CSW}\" xmlns:dc=\"{DC}\" xmlns:dct=\"{DCT}\">{inner}</csw:Record>\n")
}

/// A gmd:MD_Metadata; a stamp with a time is a gco:DateTime, one without a gco:Date.
pub(crate) fn iso(identifier: &str, title: &str, stamp: &str) -> String {
    let kind = if super::stamps::has_time(stamp) { "gco:DateTime" } else { "gco:Date" };
    iso_with(identifier, title, &element(kind, stamp))
}

/// The same with anything within dateStamp; empty leaves the element out.
pub(crate) fn iso_with(identifier: &str, title: &str, stamp_xml: &str) -> String {
    let wrapped = |name: &str, inner: String| match inner.is_empty() {
        true => String::new(),
        false => format!("<gmd:{name}>{inner}</gmd:{name}>"),
    };
    let file_identifier = wrapped("fileIdentifier", element("gco:CharacterString", identifier));
    let stamp = wrapped("dateStamp", stamp_xml.to_owned());
    let title = wrapped("title", element("gco:CharacterString", title));
    format!(
        "<gmd:MD_Metadata xmlns:gmd=\"{GMD}\" xmlns:gco=\"{GCO}\">{file_identifier}{stamp}<gmd:identificationInfo>\
         <gmd:MD_DataIdentification><gmd:citation><gmd:CI_Citation>{title}</gmd:CI_Citation></gmd:citation>\
         </gmd:MD_DataIdentification></gmd:identificationInfo></gmd:MD_Metadata>\n"
    )
}

/// An exception report; an empty locator is left out.
pub(crate) fn exc(code: &str, locator: &str, text: &str) -> String {
    let report = Report { code: code.to_owned(), locator: locator.to_owned(), text: text.to_owned(), status: 200 };
    xml::exception_report(ReportFace::Ows, &report)
}

fn element(name: &str, text: &str) -> String {
    match text {
        "" => String::new(),
        text => format!("<{name}>{}</{name}>", escaped(text)),
    }
}

/// Decides on one request: `None` leaves it to the script's next rule.
pub(crate) type Rule = Box<dyn FnMut(&Operation) -> Option<Reply> + Send>;

/// The answers of a catalogue that has no model behind it.
pub(crate) struct Canned {
    by_start: BTreeMap<i64, Reply>,
    in_order: Vec<Reply>,
    given: usize,
    past_end: Reply,
    rule: Option<Rule>,
}

impl Canned {
    /// A page for each start position; other positions get an empty page.
    pub(crate) fn by_start(pages: impl IntoIterator<Item = (i64, String)>) -> Self {
        let by_start: BTreeMap<i64, Reply> = pages.into_iter().map(|(start, body)| (start, Reply::xml(body))).collect();
        Canned { by_start, ..Canned::in_order([]) }
    }

    /// One page after the other, whatever the position; after the last an empty page. The probe for one record (`maxRecords="1"` at
    /// position 1) sees the next page without using it up.
    pub(crate) fn in_order(pages: impl IntoIterator<Item = String>) -> Self {
        Canned {
            by_start: BTreeMap::new(),
            in_order: pages.into_iter().map(Reply::xml).collect(),
            given: 0,
            past_end: Reply::xml(env(Some(0), Some(0), Some(0), &[])),
            rule: None,
        }
    }

    /// What comes for positions and times that have no page.
    pub(crate) fn past_end(mut self, reply: Reply) -> Self {
        self.past_end = reply;
        self
    }

    /// A rule that is asked first, counts and filtered requests included.
    pub(crate) fn rule(mut self, rule: impl FnMut(&Operation) -> Option<Reply> + Send + 'static) -> Self {
        self.rule = Some(Box::new(rule));
        self
    }

    /// The answer to anything but GetCapabilities, unless the rule wants that too.
    pub(crate) fn answer(&mut self, operation: &Operation) -> Option<Reply> {
        if let Some(reply) = self.rule.as_mut().and_then(|rule| rule(operation)) {
            return Some(reply);
        }
        match operation {
            Operation::GetCapabilities => None,
            Operation::GetRecordById { .. } => {
                Some(Reply::xml(format!("<csw:GetRecordByIdResponse xmlns:csw=\"{CSW}\"></csw:GetRecordByIdResponse>")))
            }
            Operation::GetRecords(request) => Some(self.page(request)),
        }
    }

    fn page(&mut self, request: &ModelRequest) -> Reply {
        if request.lower.is_some() || request.upper.is_some() {
            let name = request.property.as_deref().unwrap_or_default();
            return Reply::xml(exc("InvalidParameterValue", "PropertyName", &format!("{name} is not a queryable")));
        }
        if !self.by_start.is_empty() {
            return self.by_start.get(&request.start_position).unwrap_or(&self.past_end).clone();
        }
        let reply = self.in_order.get(self.given).unwrap_or(&self.past_end).clone();
        let probe = request.hits || (request.max_records == 1 && request.start_position == 1);
        self.given += usize::from(!probe);
        reply
    }
}
