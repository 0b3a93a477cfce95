//! What a catalogue says about itself: the few facts of a Capabilities document that negotiation wants.
//!
//! Reads 2.0.2 and 3.0.0 alike. The root must be a Capabilities of CSW; below it local names count, since catalogues mix the
//! versions of OWS. All that is found is a hint: dialects are settled by asking, in `dialect.rs`. A broken document gives what
//! stands before the break. Nothing is fetched here and no address is judged.

use quick_xml::NsReader;
use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::name::{Namespace, ResolveResult};

/// What every namespace of CSW begins with; 2.0.0 is this itself, 2.0.2 and 3.0 go on.
const CSW_ANY: &str = "http://www.opengis.net/cat/csw";

/// Longest list kept, and longest text in it: more is no help in negotiating.
const LIST_LEN_MAX: usize = 256;
const TEXT_BYTES_MAX: usize = 2_048;

/// Names tried for the modified date, in this order. pycsw always knows `dct:modified`; deegree knows only `apiso:Modified` and
/// its like.
const MODIFIED_NAMES: [&str; 7] =
    ["dct:modified", "apiso:Modified", "Modified", "apiso:modified", "dct:Modified", "modified", "dc:modified"];

/// At most so many names are tried: each costs a request.
const CANDIDATES_MAX: usize = 12;

/// Hints from a Capabilities document. Lists are in document order, trimmed, without repeats and at most 256 long.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// The root's `version`, then every `ServiceTypeVersion`.
    pub versions: Vec<String>,
    /// Addresses of GetRecords by POST: those that say `PostEncoding` XML first, without those that say SOAP alone.
    pub post_urls: Vec<String>,
    /// Addresses of GetRecords by GET.
    pub get_urls: Vec<String>,
    /// Values of the constraints of GetRecords that name queryables (`SupportedISOQueryables`, `AdditionalQueryables`,
    /// `CoreQueryables`, ...).
    pub queryables: Vec<String>,
    /// Values of `outputSchema` of GetRecords.
    pub output_schemas: Vec<String>,
    /// Values of `CONSTRAINTLANGUAGE` of GetRecords: `FILTER`, `CQL_TEXT`.
    pub constraint_languages: Vec<String>,
    /// `MaxRecordDefault`: for pycsw the cap on a page.
    pub max_record_default: Option<u32>,
}

/// Reads a Capabilities document that is already decoded.
///
/// None where the root is no Capabilities of CSW, or a document type comes before it.
#[must_use]
pub fn parse(text: &str) -> Option<Capabilities> {
    let mut xml = NsReader::from_str(text.trim_start_matches('\u{feff}'));
    xml.config_mut().expand_empty_elements = true;
    let mut reading: Option<Reading> = None;
    loop {
        match (xml.read_resolved_event(), &mut reading) {
            (Ok((namespace, Event::Start(root))), None) if is_capabilities(&namespace, &root) => {
                reading = Some(Reading::of(&root));
            }
            (Ok((_, Event::Start(_) | Event::DocType(_))), None) => return None,
            (Ok((_, Event::Start(element))), Some(reading)) => reading.open(&element),
            (Ok((_, Event::Text(text))), Some(reading)) => reading.add_text(&text.xml10_content()),
            (Ok((_, Event::CData(text))), Some(reading)) => reading.add_text(&text.xml10_content()),
            (Ok((_, Event::GeneralRef(reference))), Some(reading)) => reading.add_reference(&reference),
            (Ok((_, Event::End(element))), Some(reading)) => reading.close(element.local_name().into_inner()),
            (Ok((_, Event::Eof)) | Err(_), reading) => return reading.take().map(Reading::finish),
            _ => {}
        }
    }
}

/// The names to try for the modified date: `dct:modified`, then those that the catalogue advertises, then those that many know
/// unadvertised.
///
/// `dct:modified` leads in any case: Esri Geoportal 1 advertises `apiso:Modified` alone and knows both, but only the former is
/// its own clock. Look-ups are exact on several servers, so spellings count as different names. At most 12, and the usual seven
/// are always among them.
#[must_use]
pub fn modified_candidates(capabilities: Option<&Capabilities>) -> Vec<String> {
    let advertised = capabilities.map(|c| c.queryables.as_slice()).unwrap_or_default();
    let first = MODIFIED_NAMES.into_iter().take(1);
    let usual_and_advertised = MODIFIED_NAMES.into_iter().filter(|name| advertised.iter().any(|a| a == name));
    let advertised_only =
        advertised.iter().map(String::as_str).filter(|name| is_modified_name(name) && !MODIFIED_NAMES.contains(name));
    let bounded = advertised_only.take(CANDIDATES_MAX - MODIFIED_NAMES.len());
    let mut candidates = Vec::with_capacity(CANDIDATES_MAX);
    for name in first.chain(usual_and_advertised).chain(bounded).chain(MODIFIED_NAMES) {
        push_new(&mut candidates, name);
    }
    candidates
}

fn is_modified_name(name: &str) -> bool {
    name.to_ascii_lowercase().ends_with("modified") && name.chars().all(|c| c.is_ascii_alphanumeric() || ":._-/".contains(c))
}

fn is_capabilities(namespace: &ResolveResult<'_>, root: &BytesStart<'_>) -> bool {
    let ResolveResult::Bound(Namespace(namespace)) = namespace else {
        return false;
    };
    namespace.starts_with(CSW_ANY) && root.local_name().into_inner() == "Capabilities"
}

/// Where in the document we are, as far as it matters, and what was found so far.
#[derive(Default)]
struct Reading {
    found: Capabilities,
    /// POST addresses of GetRecords that say nothing about their encoding.
    post_urls_unmarked: Vec<String>,
    /// The `name` of the open Operation; empty outside.
    operation: String,
    /// The `name` of the open Constraint or Parameter; empty outside.
    domain: String,
    post: Option<Post>,
    /// Collects the text of the open element whose text counts.
    text: Option<String>,
}

/// An open `Post` element.
#[derive(Default)]
struct Post {
    url: String,
    takes_xml: bool,
    takes_soap: bool,
}

impl Reading {
    fn of(root: &BytesStart<'_>) -> Self {
        let mut reading = Reading::default();
        push_new(&mut reading.found.versions, &attribute(root, "version"));
        reading
    }

    fn open(&mut self, element: &BytesStart<'_>) {
        match element.local_name().into_inner() {
            "Operation" => self.operation = attribute(element, "name"),
            "Constraint" | "Parameter" => self.domain = attribute(element, "name").to_ascii_lowercase(),
            "Post" if self.in_get_records() => self.post = Some(Post { url: attribute(element, "href"), ..Post::default() }),
            "Get" if self.in_get_records() => push_new(&mut self.found.get_urls, &attribute(element, "href")),
            "Value" | "DefaultValue" | "ServiceTypeVersion" => self.text = Some(String::new()),
            _ => {}
        }
    }

    fn close(&mut self, local: &str) {
        match local {
            "Operation" => self.operation.clear(),
            "Constraint" | "Parameter" => self.domain.clear(),
            "Post" => self.close_post(),
            "ServiceTypeVersion" => {
                let version = self.text.take().unwrap_or_default();
                push_new(&mut self.found.versions, &version);
            }
            "Value" | "DefaultValue" => {
                let value = self.text.take().unwrap_or_default();
                self.close_value(value.trim());
            }
            _ => {}
        }
    }

    fn close_post(&mut self) {
        match self.post.take() {
            Some(Post { url, takes_xml: true, .. }) => push_new(&mut self.found.post_urls, &url),
            Some(Post { url, takes_soap: false, .. }) => push_new(&mut self.post_urls_unmarked, &url),
            _ => {}
        }
    }

    fn close_value(&mut self, value: &str) {
        match self.domain.as_str() {
            "postencoding" => {
                if let Some(post) = &mut self.post {
                    post.takes_xml |= value.eq_ignore_ascii_case("XML");
                    post.takes_soap |= value.eq_ignore_ascii_case("SOAP");
                }
            }
            "maxrecorddefault" if self.operation.is_empty() || self.in_get_records() => {
                self.found.max_record_default = self.found.max_record_default.or(value.parse().ok());
            }
            "outputschema" if self.in_get_records() => push_new(&mut self.found.output_schemas, value),
            "constraintlanguage" if self.in_get_records() => push_new(&mut self.found.constraint_languages, value),
            // XPathQueryables says whether XPath is allowed; it names none.
            "xpathqueryables" => {}
            name if name.contains("queryable") && self.in_get_records() => push_new(&mut self.found.queryables, value),
            _ => {}
        }
    }

    fn in_get_records(&self) -> bool {
        self.operation == "GetRecords"
    }

    fn add_text(&mut self, text: &str) {
        if let Some(sum) = self.text.as_mut().filter(|sum| sum.len() <= TEXT_BYTES_MAX) {
            sum.push_str(text);
        }
    }

    fn add_reference(&mut self, reference: &BytesRef<'_>) {
        if let Ok(Some(letter)) = reference.resolve_char_ref() {
            self.add_text(letter.encode_utf8(&mut [0; 4]));
        } else if let Some(text) = quick_xml::escape::resolve_xml_entity(&reference.xml10_content()) {
            self.add_text(text);
        }
    }

    fn finish(mut self) -> Capabilities {
        for url in &self.post_urls_unmarked {
            push_new(&mut self.found.post_urls, url);
        }
        self.found
    }
}

/// The attribute of that local name, whichever its prefix; empty where there is none.
fn attribute(element: &BytesStart<'_>, local: &str) -> String {
    let mut attributes = element.attributes();
    let found = attributes.with_checks(false).flatten().find(|a| a.key.local_name().into_inner() == local);
    let value = found.and_then(|a| a.normalized_value(quick_xml::XmlVersion::Implicit1_0).ok()).unwrap_or_default();
    value.trim().to_owned()
}

/// Appends a text that is new to the list, neither blank nor too long, while there is room.
fn push_new(list: &mut Vec<String>, text: &str) {
    let text = text.trim();
    let fits = !text.is_empty() && text.len() <= TEXT_BYTES_MAX && list.len() < LIST_LEN_MAX;
    if fits && !list.iter().any(|known| known == text) {
        list.push(text.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE_202: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<!-- a catalogue -->
<csw:Capabilities xmlns:csw="http://www.opengis.net/cat/csw/2.0.2" xmlns:ows="http://www.opengis.net/ows"
    xmlns:xlink="http://www.w3.org/1999/xlink" version="2.0.2">
  <ows:ServiceIdentification>
    <ows:ServiceType>CSW</ows:ServiceType>
    <ows:ServiceTypeVersion>2.0.2</ows:ServiceTypeVersion>
    <ows:ServiceTypeVersion> 3.0.0 </ows:ServiceTypeVersion>
  </ows:ServiceIdentification>
  <ows:OperationsMetadata>
    <ows:Operation name="GetCapabilities">
      <ows:DCP><ows:HTTP><ows:Post xlink:href="http://other.example/caps"/></ows:HTTP></ows:DCP>
    </ows:Operation>
    <ows:Operation name="GetRecords">
      <ows:DCP><ows:HTTP>
        <ows:Get xlink:href="http://c.example/csw?map=/a.map&amp;"/>
        <ows:Post xlink:href="http://c.example/soap">
          <ows:Constraint name="PostEncoding"><ows:Value>SOAP</ows:Value></ows:Constraint>
        </ows:Post>
        <ows:Post xlink:href="http://c.example/unmarked"/>
        <ows:Post xlink:href="http://c.example/xml">
          <ows:Constraint name="PostEncoding"><ows:Value>XML</ows:Value></ows:Constraint>
        </ows:Post>
      </ows:HTTP></ows:DCP>
      <ows:Parameter name="outputSchema">
        <ows:Value>http://www.opengis.net/cat/csw/2.0.2</ows:Value>
        <ows:Value>http://www.isotc211.org/2005/gmd</ows:Value>
      </ows:Parameter>
      <ows:Constraint name="SupportedISOQueryables">
        <ows:Value>apiso:Title</ows:Value><ows:Value>apiso:Modified</ows:Value>
      </ows:Constraint>
      <ows:Constraint name="SupportedDublinCoreQueryables"><ows:Value>dct:modified</ows:Value></ows:Constraint>
      <ows:Constraint name="XPathQueryables"><ows:Value>allowed</ows:Value></ows:Constraint>
    </ows:Operation>
    <ows:Operation name="GetRecordById">
      <ows:Parameter name="outputSchema"><ows:Value>urn:other</ows:Value></ows:Parameter>
    </ows:Operation>
    <ows:Constraint name="MaxRecordDefault"><ows:Value>10</ows:Value></ows:Constraint>
  </ows:OperationsMetadata>
</csw:Capabilities>"#;

    const SAMPLE_300: &str = r#"<Capabilities xmlns="http://www.opengis.net/cat/csw/3.0" xmlns:o="http://www.opengis.net/ows/2.0"
    xmlns:x="http://www.w3.org/1999/xlink" version="3.0.0">
  <o:OperationsMetadata><o:Operation name="GetRecords">
    <o:DCP><o:HTTP><o:Post x:href="https://c.example/csw"><o:Constraint name="PostEncoding"><o:AllowedValues>
      <o:Value>XML</o:Value><o:Value>SOAP</o:Value></o:AllowedValues></o:Constraint></o:Post></o:HTTP></o:DCP>
    <o:Constraint name="CoreQueryables"><o:AllowedValues><o:Value>title</o:Value><o:Value><![CDATA[modified]]></o:Value>
      <o:Value>a&amp;b&#x63;</o:Value></o:AllowedValues></o:Constraint>
    <o:Constraint name="MaxRecordDefault"><o:NoValues/><o:DefaultValue>50</o:DefaultValue></o:Constraint>
  </o:Operation></o:OperationsMetadata></Capabilities>"#;

    fn strings(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    fn advertising(queryables: &[&str]) -> Capabilities {
        Capabilities { queryables: strings(queryables), ..Capabilities::default() }
    }

    #[test]
    fn a_document_of_2_0_2_gives_what_get_records_says_of_itself() {
        let found = parse(SAMPLE_202).unwrap();

        assert_eq!(found.versions, ["2.0.2", "3.0.0"]);
        assert_eq!(found.post_urls, ["http://c.example/xml", "http://c.example/unmarked"]);
        assert_eq!(found.get_urls, ["http://c.example/csw?map=/a.map&"]);
        assert_eq!(found.queryables, ["apiso:Title", "apiso:Modified", "dct:modified"]);
        assert_eq!(found.output_schemas, ["http://www.opengis.net/cat/csw/2.0.2", "http://www.isotc211.org/2005/gmd"]);
        assert_eq!(found.max_record_default, Some(10));
    }

    #[test]
    fn a_document_of_3_0_0_is_read_the_same_way() {
        let found = parse(SAMPLE_300).unwrap();

        assert_eq!(found.versions, ["3.0.0"]);
        assert_eq!(found.post_urls, ["https://c.example/csw"]);
        assert_eq!(found.queryables, ["title", "modified", "a&bc"]);
        assert_eq!(found.max_record_default, Some(50));
    }

    #[test]
    fn a_broken_document_gives_what_stands_before_the_break() {
        let cut = SAMPLE_202.find("SupportedDublinCoreQueryables").unwrap();
        let mismatched = SAMPLE_202.replacen("</ows:Parameter>", "</ows:Oops>", 1);

        assert_eq!(parse(&SAMPLE_202[..cut]).unwrap().queryables, ["apiso:Title", "apiso:Modified"]);
        assert_eq!(parse(&mismatched).unwrap().output_schemas.len(), 2);
    }

    #[test]
    fn every_cut_of_a_document_is_survived() {
        for (at, _) in SAMPLE_202.char_indices() {
            let _ = parse(&SAMPLE_202[..at]);
        }
    }

    #[test]
    fn other_documents_are_no_capabilities() {
        let others = [
            "",
            "<html><head><title>Please wait</title></head></html>",
            "{\"a\": 1}",
            "<Capabilities/>",
            "<WMS_Capabilities xmlns='http://www.opengis.net/wms' version='1.3.0'/>",
            "<r><c:Capabilities xmlns:c='http://www.opengis.net/cat/csw/2.0.2'/></r>",
            "<!DOCTYPE c:Capabilities><c:Capabilities xmlns:c='http://www.opengis.net/cat/csw/2.0.2'/>",
        ];
        for text in others {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn an_empty_root_and_a_byte_order_mark_are_no_trouble() {
        let text = "\u{feff}<c:Capabilities xmlns:c='http://www.opengis.net/cat/csw/2.0.2'/>";

        assert_eq!(parse(text), Some(Capabilities::default()));
    }

    #[test]
    fn lists_and_texts_are_bounded() {
        let many: String = (0..1_000).map(|i| format!("<Value>q{i}</Value>")).collect();
        let long = "x".repeat(TEXT_BYTES_MAX + 1);
        let text = format!(
            "<Capabilities xmlns='http://www.opengis.net/cat/csw/2.0.2'><Operation name='GetRecords'>\
             <Constraint name='AdditionalQueryables'><Value>{long}</Value>{many}</Constraint></Operation></Capabilities>"
        );

        let found = parse(&text).unwrap();

        assert_eq!(found.queryables.len(), LIST_LEN_MAX);
        assert_eq!(found.queryables.first().unwrap(), "q0");
    }

    #[test]
    fn without_capabilities_the_usual_names_are_tried() {
        assert_eq!(modified_candidates(None), MODIFIED_NAMES);
        assert_eq!(modified_candidates(Some(&advertising(&["apiso:Title"]))), MODIFIED_NAMES);
    }

    #[test]
    fn advertised_names_come_first_in_the_usual_order() {
        let several = advertising(&["apiso:Modified", "dct:modified", "gmd:MODIFIED", "modified on", "dc:title", "apiso:Modified"]);

        assert_eq!(
            modified_candidates(Some(&several)),
            [
                "dct:modified",
                "apiso:Modified",
                "gmd:MODIFIED",
                "Modified",
                "apiso:modified",
                "dct:Modified",
                "modified",
                "dc:modified"
            ]
        );
    }

    #[test]
    fn the_clock_of_esri_geoportal_1_is_tried_before_the_documents_date_that_it_advertises() {
        let candidates = modified_candidates(Some(&advertising(&["Modified", "apiso:Modified"])));

        assert_eq!(candidates[..4], ["dct:modified", "apiso:Modified", "Modified", "apiso:modified"]);
    }

    #[test]
    fn many_advertised_names_leave_room_for_the_usual_ones() {
        let names: Vec<String> = (0..50).map(|i| format!("n{i}:modified")).collect();
        let many = Capabilities { queryables: names, ..Capabilities::default() };

        let candidates = modified_candidates(Some(&many));

        assert_eq!(candidates.len(), CANDIDATES_MAX);
        assert!(MODIFIED_NAMES.iter().all(|name| candidates.iter().any(|c| c == name)));
    }
}
