//! A GetRecords answer: bytes in, counters and records out, in one pass.
//!
//! The root element is looked at before anything else. Elements are found by namespace, never by prefix. Each record comes out as a
//! document of its own, its bytes untouched but for the namespace declarations that it inherits. The counters are handed on as they
//! were written: what they are worth is for `plan.rs` to judge.

mod page;

use std::ops::Range;

use crate::csw::exception::{AnswerError, of_other_root};
use crate::csw::xml::{Flaw, decode};
use page::{Page, Root};

/// One GetRecordsResponse.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchResults {
    /// `numberOfRecordsMatched`, when it is a number that is not negative.
    pub matched: Option<u64>,
    /// `nextRecord`, when it is a number; -1 and 0 are in use for "no more".
    pub next_record: Option<i64>,
    /// `SearchStatus/@timestamp`, as written.
    pub timestamp: Option<String>,
    /// The element children of SearchResults, in order, records or not.
    pub records: Records,
}

/// The element children of one SearchResults, kept in one buffer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Records {
    arena: String,
    spans: Vec<Span>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Span {
    identifier: Option<Range<usize>>,
    title: Option<Range<usize>>,
    modified: Option<Range<usize>>,
    xml: Range<usize>,
    flaw: Option<Flaw>,
}

/// One element child of SearchResults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Trimmed; absent where the record holds none that is not blank.
    pub identifier: Option<&'a str>,
    /// Trimmed.
    pub title: Option<&'a str>,
    /// The stamp as delivered, trimmed; of several, the latest that can be read, else the first.
    pub modified: Option<&'a str>,
    /// UTF-8, without XML declaration; well formed on its own unless there is a flaw.
    pub xml: &'a str,
    /// Why the record cannot be stored: what it holds that no XML may hold, or an identifier that is no key.
    pub flaw: Option<Flaw>,
}

impl Records {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The records in the order of the answer.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Record<'_>> + '_ {
        let text = |range: &Range<usize>| self.arena.get(range.clone()).unwrap_or_default();
        self.spans.iter().map(move |span| Record {
            identifier: span.identifier.as_ref().map(text),
            title: span.title.as_ref().map(text),
            modified: span.modified.as_ref().map(text),
            xml: text(&span.xml),
            flaw: span.flaw,
        })
    }

    /// Puts a record at the end.
    pub fn push(&mut self, record: Record<'_>) {
        let xml = self.keep(record.xml);
        self.push_span(record, xml);
    }

    /// Puts a record at the end whose XML is in the buffer already; `record.xml` is not looked at.
    fn push_span(&mut self, record: Record<'_>, xml: Range<usize>) {
        let [identifier, title, modified] =
            [record.identifier, record.title, record.modified].map(|text| text.map(|text| self.keep(text)));
        self.spans.push(Span { identifier, title, modified, xml, flaw: record.flaw });
    }

    fn keep(&mut self, text: &str) -> Range<usize> {
        let start = self.arena.len();
        self.arena.push_str(text);
        start..self.arena.len()
    }
}

/// Reads one answer to GetRecords.
///
/// `charset` is the label from the HTTP header, used when neither a BOM nor the XML declaration says anything.
///
/// # Errors
/// [`AnswerError`], when the body is no whole GetRecordsResponse.
pub fn parse(body: &[u8], charset: Option<&str>) -> Result<SearchResults, AnswerError> {
    let text = decode(body, charset)?;
    let mut page = Page::new(&text);
    if page.read_root()? == Root::Other {
        return Err(of_other_root(&text));
    }
    page.finish()
}

/// Reads one answer to GetRecordById: a GetRecordByIdResponse (2.0.2) with any number of records, or a record alone (3.0.0). Of a record
/// alone that has no identifier nothing says that it is one.
///
/// # Errors
/// [`AnswerError`], when the body is neither.
pub fn parse_by_id(body: &[u8], charset: Option<&str>) -> Result<Records, AnswerError> {
    let text = decode(body, charset)?;
    let mut page = Page::new(&text);
    if page.read_asked_root()? == Root::Other {
        return Err(of_other_root(&text));
    }
    let alone = page.is_bare();
    let records = page.finish()?.records;
    if alone && records.iter().all(|record| record.identifier.is_none()) {
        return Err(of_other_root(&text));
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::csw::exception::ExceptionReport;

    const SAMPLE: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!-- made -->\n\
        <csw:GetRecordsResponse xmlns:csw=\"http://www.opengis.net/cat/csw/2.0.2\" xmlns:dc='http://purl.org/dc/elements/1.1/' \
        xmlns:dct=\"http://purl.org/dc/terms/\" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:schemaLocation=\"a b\">\
        <csw:SearchStatus timestamp=\"2025-01-01T00:00:00Z\"/>\
        <csw:SearchResults numberOfRecordsMatched=\"7\" numberOfRecordsReturned=\"2\" nextRecord=\"3\" elementSet=\"full\">\
        <csw:Record><dc:identifier>a&amp;b</dc:identifier><dc:title><![CDATA[A & B]]> &#233;\u{e9}</dc:title>\
        <dct:modified>2020-01-01</dct:modified><!-- c --><?p i?></csw:Record>\n<csw:Record>\
        <dc:identifier xsi:type=\"dc:x\">b</dc:identifier>\
        </csw:Record></csw:SearchResults></csw:GetRecordsResponse>";

    fn envelope(counters: &str, records: &str) -> String {
        format!(
            "<csw:GetRecordsResponse xmlns:csw=\"http://www.opengis.net/cat/csw/2.0.2\" xmlns:dc=\"http://purl.org/dc/elements/1.1/\" \
             xmlns:dct=\"http://purl.org/dc/terms/\"><csw:SearchResults {counters}>{records}</csw:SearchResults></csw:GetRecordsResponse>"
        )
    }

    fn dc(identifier: &str, title: &str, modified: &str) -> String {
        format!(
            "<csw:Record><dc:identifier>{identifier}</dc:identifier><dc:title>{title}</dc:title>\
             <dct:modified>{modified}</dct:modified></csw:Record>"
        )
    }

    fn parsed(text: &str) -> SearchResults {
        parse(text.as_bytes(), None).unwrap()
    }

    fn failed(text: &str) -> AnswerError {
        parse(text.as_bytes(), None).unwrap_err()
    }

    #[test]
    fn a_page_gives_counters_and_records_in_order() {
        let results = parsed(SAMPLE);
        assert_eq!((results.matched, results.next_record), (Some(7), Some(3)));
        assert_eq!(results.timestamp.as_deref(), Some("2025-01-01T00:00:00Z"));
        let records: Vec<Record<'_>> = results.records.iter().collect();
        assert_eq!(records.len(), 2);
        assert_eq!(records[0].identifier, Some("a&b"));
        assert_eq!(records[0].title, Some("A & B \u{e9}\u{e9}"));
        assert_eq!(records[0].modified, Some("2020-01-01"));
        assert_eq!((records[1].identifier, records[1].title, records[1].modified), (Some("b"), None, None));
        assert!(records.iter().all(|record| record.flaw.is_none()));
    }

    #[test]
    fn counters_are_taken_as_they_come() {
        let counters = |written: &str| {
            let results = parsed(&envelope(written, ""));
            (results.matched, results.next_record)
        };
        assert_eq!(counters("numberOfRecordsMatched=\"3\" numberOfRecordsReturned='2' nextRecord=\"3\""), (Some(3), Some(3)));
        assert_eq!(counters("numberOfRecordsMatched=\"5\" numberOfRecordsReturned=\"2\""), (Some(5), None), "P3");
        assert_eq!(counters("numberOfRecordsMatched=\"25\" nextRecord=\"0\""), (Some(25), Some(0)), "P4");
        assert_eq!(
            counters("numberOfRecordsMatched=\"2\" numberOfRecordsReturned=\"0\" nextRecord=\"1\""),
            (Some(2), Some(1)),
            "P2"
        );
        assert_eq!(counters("nextRecord=\"-1\" numberOfRecordsMatched=\" 12\n\""), (Some(12), Some(-1)), "P7");
        assert_eq!(counters("numberOfRecordsMatched=\"[object Object]\" nextRecord=\"\""), (None, None), "Esri catalog 2");
        assert_eq!(counters("numberOfRecordsMatched=\"-3\" nextRecord=\"1e3\""), (None, None));
        assert_eq!(counters("numberOfRecordsMatched=\"99999999999999999999\""), (None, None));
        assert_eq!(counters(""), (None, None));
    }

    #[test]
    fn every_element_child_is_counted_whatever_it_is() {
        let text = envelope("", "text<dc:a/><b><c/></b><!-- d --><csw:Record/> &amp; <![CDATA[e]]>");
        let results = parsed(&text);
        assert_eq!(results.records.len(), 3);
        assert!(results.records.iter().all(|record| record.identifier.is_none() && record.flaw.is_none()));
    }

    #[test]
    fn other_children_of_the_root_are_passed_over() {
        let text = SAMPLE.replace(
            "<csw:SearchStatus",
            "<csw:RequestId>x<csw:SearchResults><a/></csw:SearchResults></csw:RequestId><csw:SearchStatus",
        );
        assert_eq!(parsed(&text).records.len(), 2);
    }

    #[test]
    fn y1_letters_survive_latin_1_and_utf_8_by_declaration() {
        let text = |label: &str| format!("<?xml version='1.0' encoding='{label}'?>{}", envelope("", &dc("\u{e9}", "\u{fc}", "")));
        let latin: Vec<u8> = text("ISO-8859-1").chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
        for body in [latin.as_slice(), text("UTF-8").as_bytes()] {
            let results = parse(body, None).unwrap();
            let record = results.records.iter().next().unwrap();
            assert_eq!((record.identifier, record.title), (Some("\u{e9}"), Some("\u{fc}")));
            assert!(record.xml.contains("<dc:title>\u{fc}</dc:title>"));
        }
    }

    #[test]
    fn y3_elements_are_found_by_namespace() {
        let text = "<GetRecordsResponse xmlns='http://www.opengis.net/cat/csw/3.0'>\
                    <SearchResults numberOfRecordsMatched='1' xmlns:csw='urn:x'>\
             <z:SummaryRecord xmlns:z='http://www.opengis.net/cat/csw/3.0' xmlns:i='http://purl.org/dc/elements/1.1/' \
             xmlns:j='http://purl.org/dc/elements/1.1/'><csw:identifier>no</csw:identifier><j:identifier>yes</j:identifier>\
             <title>no</title><i:title>yes</i:title><title xmlns='http://purl.org/dc/elements/1.1/'>late</title>\
             </z:SummaryRecord></SearchResults></GetRecordsResponse>";
        let results = parsed(text);
        let record = results.records.iter().next().unwrap();
        assert_eq!((results.matched, record.identifier, record.title, record.flaw), (Some(1), Some("yes"), Some("yes"), None));
    }

    #[test]
    fn b5_records_without_identifier_come_out_without_one() {
        let text = envelope("", &[dc("", "x", ""), dc("a", "y", ""), dc(" \n", "z", "")].concat());
        let results = parsed(&text);
        let identifiers: Vec<_> = results.records.iter().map(|record| record.identifier).collect();
        assert_eq!(identifiers, [None, Some("a"), None]);
    }

    #[test]
    fn b6_two_records_of_one_identifier_both_come_out_in_order() {
        let text = envelope("", &[dc("a", "new", "2024-01-01"), dc("a", "old", "2020-01-01")].concat());
        let results = parsed(&text);
        let stamps: Vec<_> = results.records.iter().map(|record| record.modified).collect();
        assert_eq!(stamps, [Some("2024-01-01"), Some("2020-01-01")]);
    }

    #[test]
    fn b9_no_prefix_of_an_answer_is_one() {
        assert!(parse(SAMPLE.as_bytes(), None).is_ok());
        for length in 0..SAMPLE.len() {
            let error = parse(&SAMPLE.as_bytes()[..length], None).unwrap_err();
            let expected = if length == 0 { AnswerError::Empty } else { AnswerError::Truncated };
            assert_eq!(error, expected, "{length} bytes");
        }
        let wide: Vec<u8> = [0xFF, 0xFE].into_iter().chain(SAMPLE.encode_utf16().flat_map(u16::to_le_bytes)).collect();
        assert!(parse(&wide, None).is_ok());
        for length in 0..wide.len() {
            assert!(parse(&wide[..length], None).is_err(), "{length} bytes");
        }
    }

    #[test]
    fn no_flipped_byte_breaks_the_parser() {
        let mut body = SAMPLE.as_bytes().to_vec();
        for at in 0..body.len() {
            let was = body[at];
            for flip in [1, 2, 4, 8, 16, 32, 64, 128, 255, was ^ b'<', was ^ b'&', was ^ b'"', was ^ b'>', was] {
                body[at] = was ^ flip;
                if let Ok(results) = parse(&body, None) {
                    assert!(
                        results.records.iter().all(|record| record.flaw.is_some() || is_alone(record.xml)),
                        "byte {at} ^ {flip}"
                    );
                }
            }
            body[at] = was;
        }
    }

    /// Whether a text is a document that a reader which resolves every prefix gets through.
    fn is_alone(xml: &str) -> bool {
        use quick_xml::name::ResolveResult::Unknown;
        let mut reader = quick_xml::NsReader::from_str(xml);
        let mut depth = 0;
        loop {
            let Ok((name, event)) = reader.read_resolved_event() else { return false };
            match event {
                quick_xml::events::Event::Start(_) => depth += 1,
                quick_xml::events::Event::End(_) => depth -= 1,
                quick_xml::events::Event::Eof => return depth == 0,
                _ => {}
            }
            if matches!(name, Unknown(_)) {
                return false;
            }
        }
    }

    #[test]
    fn a_root_that_is_another_is_told() {
        let capabilities = "<Capabilities xmlns='http://www.opengis.net/cat/csw/2.0.2'><a/></Capabilities>";
        let namespace = "http://www.opengis.net/cat/csw/2.0.2".to_owned();
        assert_eq!(failed(capabilities), AnswerError::OtherRoot { namespace, local: "Capabilities".to_owned() });
        assert_eq!(failed(&capabilities[..capabilities.len() - 1]), AnswerError::Truncated);
        let nowhere = SAMPLE.replace("http://www.opengis.net/cat/csw/2.0.2", "urn:x");
        assert!(matches!(failed(&nowhere), AnswerError::OtherRoot { local, .. } if local == "GetRecordsResponse"));
        let unbound = "<csw:GetRecordsResponse/>";
        assert_eq!(failed(unbound), AnswerError::OtherRoot { namespace: String::new(), local: "GetRecordsResponse".to_owned() });
    }

    #[test]
    fn a_report_in_place_of_a_page_is_read() {
        let text = "<ows:ExceptionReport xmlns:ows='http://www.opengis.net/ows'>\
                    <ows:Exception exceptionCode='X' locator='y'/></ows:ExceptionReport>";
        let expected = ExceptionReport { code: "X".to_owned(), locator: "y".to_owned(), text: String::new() };
        assert_eq!(failed(text), AnswerError::Report(expected));
        let results = parsed(&envelope("", &[dc("a", "", ""), text.to_owned()].concat()));
        let flaws: Vec<_> = results.records.iter().map(|record| record.flaw).collect();
        assert_eq!(flaws, [None, Some("exception report in place of a record")]);
    }

    #[test]
    fn a_document_type_is_refused_unless_it_is_html() {
        for lead in ["<!DOCTYPE GetRecordsResponse [<!ENTITY a \"b\">]>", "<!DOCTYPE csw:GetRecordsResponse SYSTEM 'x'>"] {
            assert_eq!(failed(&format!("{lead}{}", envelope("", ""))), AnswerError::DocumentType);
        }
        assert_eq!(failed("<?xml version='1.0'?><!DOCTYPE html><html><br>"), AnswerError::Html { title: None });
    }

    #[test]
    fn one_root_is_demanded_and_nothing_beside_it() {
        let whole = envelope("", "");
        for tail in ["", "\n", "<!-- x -->", "<?x y?>", " <!-- x -->\r\n"] {
            assert_eq!(parse(format!("{whole}{tail}").as_bytes(), None), Ok(parsed(&whole)));
        }
        for tail in ["x", "<a/>", "&amp;", "</a>", "<![CDATA[]]>", "\0", &whole] {
            assert!(matches!(failed(&format!("{whole}{tail}")), AnswerError::Malformed(_)), "{tail}");
        }
        assert!(matches!(failed(&format!("<?xml version='1.0'?>x{whole}")), AnswerError::Malformed(_)));
        assert_eq!(failed("<?xml version='1.0'?><!-- only -->"), AnswerError::Truncated);
    }

    #[test]
    fn search_results_stands_there_once() {
        let empty = "<GetRecordsResponse xmlns='http://www.opengis.net/cat/csw/2.0.2'/>";
        assert!(matches!(failed(empty), AnswerError::Malformed(why) if why.contains("without SearchResults")));
        let twice = envelope("", "").replace("</csw:GetR", "<csw:SearchResults/></csw:GetR");
        assert!(matches!(failed(&twice), AnswerError::Malformed(why) if why.contains("second")));
    }

    #[test]
    fn broken_nesting_ends_the_page_with_its_place() {
        let text = envelope("", "<csw:Record><a></b></csw:Record>");
        let place = format!("byte {}: ", text.find("</b>").unwrap());
        assert!(matches!(failed(&text), AnswerError::Malformed(why) if why.starts_with(&place)));
        let deep = envelope("", &"<a>".repeat(2_000));
        assert!(matches!(failed(&deep), AnswerError::Malformed(why) if why.contains("1,000")));
        let flaw = envelope("numberOfRecordsMatched='1' numberOfRecordsMatched='2'", "");
        assert!(matches!(failed(&flaw), AnswerError::Malformed(why) if why.contains("duplicate")));
    }

    fn by_id(text: &str) -> Vec<(Option<String>, String)> {
        let records = parse_by_id(text.as_bytes(), None).unwrap();
        records.iter().map(|record| (record.identifier.map(str::to_owned), record.xml.to_owned())).collect()
    }

    #[test]
    fn records_asked_for_by_identifier_come_in_a_response_or_alone() {
        let namespaces = "xmlns:csw='http://www.opengis.net/cat/csw/2.0.2' xmlns:dc='http://purl.org/dc/elements/1.1/' \
                          xmlns:dct='http://purl.org/dc/terms/'";
        let response = |inner: &str| {
            format!("<?xml version='1.0'?><csw:GetRecordByIdResponse {namespaces}>{inner}</csw:GetRecordByIdResponse>")
        };
        let two = by_id(&response(&[dc("a", "x", "2024"), "\n".to_owned(), dc("b", "y", "")].concat()));
        assert_eq!(two.iter().map(|(identifier, _)| identifier.as_deref()).collect::<Vec<_>>(), [Some("a"), Some("b")]);
        assert!(two.iter().all(|(_, xml)| is_alone(xml)), "{two:?}");
        assert!(by_id(&response("")).is_empty());
        assert!(by_id("<GetRecordByIdResponse xmlns='http://www.opengis.net/cat/csw/2.0.2'/>").is_empty());
        let alone = dc("a", "x", "2024").replacen("<csw:Record", &format!("<csw:Record {namespaces}"), 1);
        assert_eq!(by_id(&format!("<?xml version='1.0'?><!-- x -->{alone}\n")), [(Some("a".to_owned()), alone)]);
    }

    #[test]
    fn a_record_alone_reads_as_it_does_in_a_list() {
        let namespaces = "xmlns:a='u:a' xmlns:csw='http://www.opengis.net/cat/csw/3.0' xmlns=\"u:d\" xmlns:q='u:q' \
                          xmlns:dc='http://purl.org/dc/elements/1.1/' xmlns:no='u:n' xmlns:dct = 'u:>'";
        let inner = ">\n<dc:identifier no='q:x'>i=\"</dc:identifier><b xmlns='u:b' xmlns:e='u:e'/></csw:Record>";
        for own in ["", " k='1 > 0'", "\n  a:k = \"a:'x=\"", " xmlnsx='a' dct:k=''"] {
            let listed = format!(
                "<csw:GetRecordsResponse {namespaces}><csw:SearchResults><csw:Record{own}{inner}</csw:SearchResults>\
                 </csw:GetRecordsResponse>"
            );
            let listed = parsed(&listed).records.iter().map(|record| record.xml.to_owned()).collect::<Vec<_>>();
            for alone in [format!("<csw:Record {namespaces}{own}{inner}"), format!("<csw:Record{own} {namespaces}{inner}")] {
                let found: Vec<String> = by_id(&alone).into_iter().map(|(_, xml)| xml).collect();
                assert_eq!(found, listed, "{alone}");
                assert!(is_alone(&found[0]) && !found[0].contains("xmlns:no"), "{found:?}");
            }
        }
    }

    #[test]
    fn what_is_no_answer_to_get_record_by_id_is_told() {
        let failed = |text: &str| parse_by_id(text.as_bytes(), None).unwrap_err();
        let report = "<ows:ExceptionReport xmlns:ows='http://www.opengis.net/ows'><ows:Exception exceptionCode='X' locator='id'/>\
                      </ows:ExceptionReport>";
        assert!(matches!(failed(report), AnswerError::Report(report) if report.locator == "id"));
        assert!(matches!(failed("<Capabilities xmlns='http://www.opengis.net/cat/csw/2.0.2'/>"), AnswerError::OtherRoot { .. }));
        assert!(matches!(failed("<a><b/></a>"), AnswerError::OtherRoot { .. }));
        assert!(matches!(failed("<html><body/></html>"), AnswerError::Html { .. }));
        assert_eq!(failed("<csw:GetRecordByIdResponse xmlns:csw='http://www.opengis.net/cat/csw/2.0.2'>"), AnswerError::Truncated);
        assert_eq!(failed(""), AnswerError::Empty);
    }

    #[test]
    fn records_can_be_put_together_by_hand() {
        let mut records = Records::default();
        let record = Record { identifier: Some("a"), title: None, modified: Some("b"), xml: "<c/>", flaw: None };
        records.push(record);
        assert!(!records.is_empty());
        assert_eq!(records.iter().collect::<Vec<_>>(), [record]);
    }

    proptest! {
        #[test]
        fn random_bytes_break_nothing(body in prop::collection::vec(any::<u8>(), 0..300), label in "[a-z0-9-]{0,12}") {
            let _ = parse(&body, Some(&label));
        }

        #[test]
        fn random_markup_breaks_nothing(parts in prop::collection::vec(0..PARTS.len(), 0..40)) {
            let inner: String = parts.iter().map(|part| PARTS[*part]).collect();
            let _ = parse(inner.as_bytes(), None);
            if let Ok(results) = parse(envelope("", &inner).as_bytes(), None) {
                for record in results.records.iter() {
                    prop_assert!(record.flaw.is_some() || is_alone(record.xml), "{}", record.xml);
                }
            }
        }
    }

    const PARTS: [&str; 32] = [
        "<a>",
        "</a>",
        "<a/>",
        "<b:c xmlns:b='d'>",
        "</b:c>",
        "<b:c/>",
        "<dc:title>",
        "</dc:title>",
        "<csw:Record>",
        "</csw:Record>",
        "&amp;",
        "&#0;",
        "&x;",
        "&",
        ";",
        "<![CDATA[",
        "]]>",
        "<!--",
        "-->",
        "<?",
        "?>",
        "<!DOCTYPE",
        "<html>",
        "<",
        ">",
        "\u{1}",
        " ",
        "x:y",
        "\"",
        "'",
        "=",
        "<dc:identifier q='dct:x' dc:q=''>",
    ];
}
