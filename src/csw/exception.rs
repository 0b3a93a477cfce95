//! Answers that are no answer: exception reports of every tongue, and what else comes in place of one.
//!
//! Reads `ows`, `ows/1.1` and `ows/2.0` ExceptionReport, `ServiceExceptionReport` and SOAP faults, and says of which class an answer
//! is. It decides nothing about what is done then: `catalogue.rs` retries, `plan.rs` halves, `dialect.rs` tries the next candidate.

mod class;

use std::fmt;

pub use class::{Class, classify, classify_status};

use crate::csw::xml::{Cursor, Ns, Scope, Step, resolve};

/// How many characters of each part of a report are kept.
pub const REPORT_CHARS_MAX: usize = 500;
const TITLE_CHARS_MAX: usize = 200;
const NAME_CHARS_MAX: usize = 200;
/// A title that begins later than this is not looked for.
const TITLE_BYTES_MAX: usize = 65_536;
/// How much text of a report is collected before it is shortened.
const COLLECTED_BYTES_MAX: usize = 16_384;

/// An exception report, with what it says shortened to a bounded length and control characters escaped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExceptionReport {
    /// `exceptionCode` of the first exception; empty when absent.
    pub code: String,
    /// `locator`; empty when absent.
    pub locator: String,
    /// All `ExceptionText`, joined.
    pub text: String,
}

/// Why a body is no whole GetRecordsResponse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerError {
    /// Nothing, or blanks only.
    Empty,
    /// An exception report.
    Report(ExceptionReport),
    /// A whole XML document with another root element.
    OtherRoot {
        /// Its namespace, may be empty.
        namespace: String,
        /// Its local name.
        local: String,
    },
    /// HTML; with the text of its title.
    Html {
        /// Title, if one was found.
        title: Option<String>,
    },
    /// Neither XML nor HTML (JSON, plain text, binary); with how it begins.
    NotXml {
        /// The first characters, escaped.
        start: String,
    },
    /// XML that ends before its root element does.
    Truncated,
    /// XML that is not well formed, or in an encoding that cannot be read; with where and why.
    Malformed(String),
    /// A document type declaration, which is refused.
    DocumentType,
}

impl AnswerError {
    /// Whether the body came whole and is something else than the answer to a CSW request: no line and no retry mends that.
    #[must_use]
    pub const fn is_well_delivered(&self) -> bool {
        match self {
            AnswerError::Report(_) | AnswerError::OtherRoot { .. } | AnswerError::Html { .. } => true,
            AnswerError::NotXml { .. } | AnswerError::DocumentType => true,
            AnswerError::Empty | AnswerError::Truncated | AnswerError::Malformed(_) => false,
        }
    }
}

impl std::error::Error for AnswerError {}

impl fmt::Display for AnswerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AnswerError::Empty => f.write_str("an empty body"),
            AnswerError::Report(report) => report.fmt(f),
            AnswerError::OtherRoot { namespace, local } if namespace.is_empty() => write!(f, "another XML document: {local}"),
            AnswerError::OtherRoot { namespace, local } => write!(f, "another XML document: {local} in {namespace}"),
            AnswerError::Html { title: Some(title) } => write!(f, "an HTML page with the title \"{title}\""),
            AnswerError::Html { title: None } => f.write_str("an HTML page without a title"),
            AnswerError::NotXml { start } => write!(f, "no XML; it begins with: {start}"),
            AnswerError::Truncated => f.write_str("XML that ends too early"),
            AnswerError::Malformed(why) => write!(f, "broken XML: {why}"),
            AnswerError::DocumentType => f.write_str("XML with a document type declaration, which is refused"),
        }
    }
}

impl fmt::Display for ExceptionReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an exception report")?;
        for (name, value) in [("code", &self.code), ("locator", &self.locator), ("text", &self.text)] {
            if !value.is_empty() {
                write!(f, ", {name} \"{value}\"")?;
            }
        }
        Ok(())
    }
}

/// What a document is whose root is not the one that was asked for. `text` is what [`crate::csw::xml::decode`] gave.
#[must_use]
pub fn of_other_root(text: &str) -> AnswerError {
    read_other_root(text).unwrap_or_else(|error| error)
}

fn read_other_root(text: &str) -> Result<AnswerError, AnswerError> {
    let mut cursor = Cursor::new(text);
    let mut scope = Scope::default();
    let mut report = Collected::default();
    let mut root = None;
    // Bounded by the text: each step takes at least a byte of it.
    loop {
        let step = cursor.step()?;
        match step {
            Step::Start(tag) | Step::Empty(tag) => {
                let empty = matches!(step, Step::Empty(_));
                let depth = cursor.depth() + usize::from(empty);
                let opened = scope.open(tag, depth);
                if depth == 1 {
                    if root.is_some() {
                        return Err(cursor.malformed("a second root element"));
                    }
                    if opened.local.eq_ignore_ascii_case("html") {
                        return Ok(AnswerError::Html { title: html_title(text) });
                    }
                    root = Some((opened.ns, opened.local, scope.namespace(opened.name).into_owned()));
                }
                report.enter(opened.local, &scope);
                if empty {
                    report.leave();
                    scope.close(depth);
                }
            }
            Step::End => {
                report.leave();
                scope.close(cursor.depth() + 1);
            }
            Step::Text(part) | Step::CData(part) => report.push(part),
            Step::Reference(name) => match resolve(name) {
                Ok(c) => report.push(c.encode_utf8(&mut [0; 4])),
                Err(_) => report.push(" "),
            },
            Step::Comment(_) | Step::Instruction(_) => {}
            Step::Eof => break,
        }
    }
    let (ns, local, namespace) = root.filter(|_| cursor.depth() == 0).ok_or(AnswerError::Truncated)?;
    let fault = report.faulted && (ns == Ns::Soap || local == "Fault");
    if fault || ["ExceptionReport", "ServiceExceptionReport"].contains(&local) {
        return Ok(AnswerError::Report(report.finish()));
    }
    Ok(AnswerError::OtherRoot { namespace: shown(&namespace, NAME_CHARS_MAX), local: shown(local, NAME_CHARS_MAX) })
}

/// Elements whose own text says what went wrong, the plainest first.
const SPEAKING: [&str; 5] = ["ExceptionText", "ServiceException", "Exception", "faultstring", "Text"];

/// What an exception report says, in whatever order and tongue.
#[derive(Default)]
struct Collected<'a> {
    /// The local names of the open elements.
    path: Vec<&'a str>,
    code: String,
    locator: String,
    fault_code: String,
    faulted: bool,
    /// One for each of [`SPEAKING`].
    texts: [String; SPEAKING.len()],
}

impl<'a> Collected<'a> {
    fn enter(&mut self, local: &'a str, scope: &Scope<'_>) {
        self.path.push(local);
        self.faulted |= local == "Fault";
        let names: &[&str] = match local {
            "Exception" | "ServiceException" => &["exceptionCode", "code"],
            _ => &[],
        };
        for name in names {
            if let Some(code) = scope.attribute(name).filter(|code| self.code.is_empty() && !code.trim().is_empty()) {
                self.code = code.into_owned();
            }
        }
        if let Some(locator) = scope.attribute("locator").filter(|_| !names.is_empty() && self.locator.is_empty()) {
            self.locator = locator.into_owned();
        }
        // Several texts, and the lines of one that come as elements of their own, stand apart.
        self.push(" ");
    }

    fn leave(&mut self) {
        self.path.pop();
        self.push(" ");
    }

    fn push(&mut self, part: &str) {
        let Some(&local) = self.path.last() else { return };
        let target = match (local, SPEAKING.iter().zip(&mut self.texts).find(|(name, _)| **name == local)) {
            (_, Some((_, text))) => text,
            ("faultcode" | "Value", None) => &mut self.fault_code,
            _ => return,
        };
        if target.len() < COLLECTED_BYTES_MAX {
            target.extend(part.chars().take(COLLECTED_BYTES_MAX));
        }
    }

    fn finish(self) -> ExceptionReport {
        let code = if self.code.is_empty() { self.fault_code } else { self.code };
        let text = self.texts.into_iter().find(|text| !text.trim().is_empty()).unwrap_or_default();
        let [code, locator, text] = [code, self.locator, text].map(|part| shown(&part, REPORT_CHARS_MAX));
        ExceptionReport { code, locator, text }
    }
}

/// Text of a stranger as it may be shown on one line: blanks run together, control characters escaped, at most so many characters.
#[must_use]
pub fn shown(text: &str, chars_max: usize) -> String {
    let mut line = String::new();
    let mut chars = 0;
    for word in text.split_whitespace() {
        for c in (chars > 0).then_some(' ').into_iter().chain(word.chars()) {
            if chars == chars_max {
                line.push_str("...");
                return line;
            }
            chars += 1;
            // Marks that turn the direction of text round would change what else stands on the line.
            if c.is_control()
                || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
            {
                line.extend(c.escape_default());
            } else {
                line.push(c);
            }
        }
    }
    line
}

/// Whether a text begins as an HTML page does, well formed or not.
#[must_use]
pub fn looks_like_html(text: &str) -> bool {
    let begins = |start: &str| text.get(..start.len()).is_some_and(|found| found.eq_ignore_ascii_case(start));
    let ends_name = |at: usize| text.as_bytes().get(at).is_none_or(|byte| byte.is_ascii_whitespace() || b">/".contains(byte));
    begins("<!doctype html") || (begins("<html") && ends_name("<html".len()))
}

/// The title of an HTML page, found without parsing it; none where it is blank.
#[must_use]
pub fn html_title(text: &str) -> Option<String> {
    let find = |from: usize, needle: &str| {
        let text = text.as_bytes().get(from..)?;
        let text = text.get(..TITLE_BYTES_MAX).unwrap_or(text);
        text.windows(needle.len()).position(|part| part.eq_ignore_ascii_case(needle.as_bytes())).map(|at| from + at)
    };
    let tag = find(0, "<title")?;
    let start = find(tag, ">")? + 1;
    let end = find(start, "<").unwrap_or(text.len());
    let title = shown(&crate::csw::xml::unescape(text.get(start..end)?), TITLE_CHARS_MAX);
    Some(title).filter(|title| !title.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(text: &str) -> [String; 3] {
        match of_other_root(text) {
            AnswerError::Report(report) => [report.code, report.locator, report.text],
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn ows_reports_of_every_version_are_read() {
        for version in ["", "/1.1", "/2.0"] {
            let text = format!(
                "<?xml version='1.0'?><ows:ExceptionReport xmlns:ows='http://www.opengis.net/ows{version}' version='1.2.0'>\
                 <ows:Exception exceptionCode='InvalidParameterValue' locator='startPosition'>\
                 <ows:ExceptionText>One &lt;a&gt;\n  two</ows:ExceptionText>\
                 <ows:ExceptionText><![CDATA[<three>]]></ows:ExceptionText></ows:Exception>\
                 <ows:Exception exceptionCode='Other' locator='x'>\
                 <ows:ExceptionText>four</ows:ExceptionText></ows:Exception></ows:ExceptionReport>"
            );
            assert_eq!(report(&text), ["InvalidParameterValue", "startPosition", "One <a> two <three> four"]);
        }
    }

    #[test]
    fn reports_without_code_locator_text_or_namespace_are_reports() {
        assert_eq!(report("<ExceptionReport><Exception/></ExceptionReport>"), ["", "", ""]);
        assert_eq!(report("<ExceptionReport/>"), ["", "", ""]);
        assert_eq!(report("<ExceptionReport><Exception exceptionCode=''>bare</Exception></ExceptionReport>"), ["", "", "bare"]);
    }

    #[test]
    fn service_exception_reports_are_read() {
        let inner = "<ServiceException code='InvalidFormat' locator='f'> a &amp; b &nbsp;c </ServiceException>";
        for namespace in ["", " xmlns='http://www.opengis.net/ogc'"] {
            let text = format!("<ServiceExceptionReport{namespace}>{inner}</ServiceExceptionReport>");
            assert_eq!(report(&text), ["InvalidFormat", "f", "a & b c"]);
        }
    }

    #[test]
    fn soap_faults_are_read_and_so_is_the_report_within() {
        let soap11 = "<s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/'><s:Body><s:Fault><faultcode>s:Server</faultcode>\
            <faultstring>It broke</faultstring></s:Fault></s:Body></s:Envelope>";
        assert_eq!(report(soap11), ["s:Server", "", "It broke"]);
        let soap12 = "<s:Envelope xmlns:s='http://www.w3.org/2003/05/soap-envelope'><s:Body><s:Fault><s:Code>\
                      <s:Value>s:Receiver</s:Value></s:Code>\
            <s:Reason><s:Text xml:lang='en'>It broke</s:Text></s:Reason>DETAIL</s:Fault></s:Body></s:Envelope>";
        assert_eq!(report(soap12), ["s:Receiver", "", "It broke"]);
        let detail = "<s:Detail><o:ExceptionReport xmlns:o='http://www.opengis.net/ows'><o:Exception exceptionCode='X' locator='y'>\
            <o:ExceptionText>deep</o:ExceptionText></o:Exception></o:ExceptionReport></s:Detail>";
        assert_eq!(report(&soap12.replace("DETAIL", detail)), ["X", "y", "deep"]);
        let envelope = "<s:Envelope xmlns:s='http://www.w3.org/2003/05/soap-envelope'><s:Body/></s:Envelope>";
        assert!(matches!(of_other_root(envelope), AnswerError::OtherRoot { local, .. } if local == "Envelope"));
        assert!(matches!(of_other_root("<a><Fault/></a>"), AnswerError::OtherRoot { .. }));
    }

    #[test]
    fn what_a_report_says_is_shortened_and_escaped() {
        let text = format!(
            "<ExceptionReport><Exception exceptionCode='\u{1b}[31m'>{}</Exception></ExceptionReport>",
            "\u{e9} ".repeat(100_000)
        );
        let [code, _, said] = report(&text);
        assert_eq!(code, "\\u{1b}[31m");
        assert_eq!(said.chars().count(), REPORT_CHARS_MAX + 3);
        assert!(said.starts_with("\u{e9} \u{e9}") && said.ends_with("..."));
        assert_eq!(shown(" a\n\tb\u{0}\u{202e}c ", 100), "a b\\u{0}\\u{202e}c");
        assert_eq!(
            (shown("abc", 3), shown("abcd", 3), shown("ab c", 2), shown("a", 0)),
            ("abc".into(), "abc...".into(), "ab...".into(), "...".into())
        );
    }

    #[test]
    fn a_report_with_loose_ampersands_is_still_read_and_a_cut_one_is_not() {
        let text = "<ExceptionReport><Exception exceptionCode='X'><ExceptionText>?a=1&b=2 & more</ExceptionText></Exception>\
                    </ExceptionReport>";
        assert_eq!(report(text), ["X", "", "?a=1&b=2 & more"]);
        for length in 1..text.len() {
            assert_eq!(of_other_root(&text[..length]), AnswerError::Truncated, "{length}");
        }
        assert!(matches!(of_other_root("<ExceptionReport/><a/>"), AnswerError::Malformed(_)));
    }

    #[test]
    fn html_is_seen_however_it_is_written() {
        let title = |text: &str| match of_other_root(text) {
            AnswerError::Html { title } => title,
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(title("<html><head><title>Please wait</title></head></html>").as_deref(), Some("Please wait"), "A3");
        assert_eq!(
            title("<!doctype html>\n<br><TITLE lang='en'>\n502 Bad\n Gateway &amp; so</TITLE>").as_deref(),
            Some("502 Bad Gateway & so")
        );
        assert_eq!(title("<!DOCTYPE HTML PUBLIC \"-//W3C//DTD HTML 4.01//EN\" \"x\"><HTML><br></HTML>"), None);
        assert_eq!(
            title("<?xml version='1.0'?><!DOCTYPE html><html xmlns='http://www.w3.org/1999/xhtml'><title> </title></html>"),
            None
        );
        assert_eq!(title("<!-- x --><h:HTML xmlns:h='y'><br>"), None);
        assert_eq!(title("<html lang=en><title>cut").as_deref(), Some("cut"));
        assert_eq!(title("<!DOCTYPE html"), None);
        assert!(!matches!(of_other_root("<htmlish/>"), AnswerError::Html { .. }));
        assert_eq!(html_title(&format!("<title>{}</title>", "a".repeat(10_000))).unwrap().len(), TITLE_CHARS_MAX + 3);
    }

    #[test]
    fn every_error_is_one_clear_line() {
        let report = ExceptionReport { code: "X".to_owned(), locator: String::new(), text: "why".to_owned() };
        let lines = [
            (AnswerError::Empty, "an empty body"),
            (AnswerError::Report(report), "an exception report, code \"X\", text \"why\""),
            (AnswerError::OtherRoot { namespace: "u".to_owned(), local: "a".to_owned() }, "another XML document: a in u"),
            (AnswerError::OtherRoot { namespace: String::new(), local: "a".to_owned() }, "another XML document: a"),
            (AnswerError::Html { title: Some("t".to_owned()) }, "an HTML page with the title \"t\""),
            (AnswerError::Html { title: None }, "an HTML page without a title"),
            (AnswerError::NotXml { start: "{}".to_owned() }, "no XML; it begins with: {}"),
            (AnswerError::Truncated, "XML that ends too early"),
            (AnswerError::Malformed("byte 3: x".to_owned()), "broken XML: byte 3: x"),
            (AnswerError::DocumentType, "XML with a document type declaration, which is refused"),
        ];
        for (error, line) in lines {
            assert_eq!(error.to_string(), line);
        }
    }
}
