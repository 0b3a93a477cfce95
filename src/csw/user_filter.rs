//! The user's own filter, and the constraint that it makes together with our filter on dates.
//!
//! An `ogc:Filter` 1.1 (OGC 04-095) or `fes:Filter` 2.0 (OGC 09-026r2) is read once and written in both encodings, CQL stays a text.
//! Names, attributes and prefixes are changed where the two encodings differ; literals, geometries and functions stay as they are, and
//! so does what the other encoding has no word for (`fes:During`, `ogc:Add`): a catalogue refuses it in words of its own. Which encoding
//! is sent is the caller's to say, and so is the declaration of the prefixes `ogc` and `fes` around it. Files are read elsewhere.

use std::fmt::Write as _;

use quick_xml::escape::escape;

use crate::csw::exception::AnswerError;
use crate::csw::request;
use crate::csw::xml::{Attribute, Cursor, Flaw, Scope, Step, decode, holds_forbidden, is_blank, resolve};
use crate::csw::{ConstraintLanguage, FES, OGC, Version, Window, filter};

/// CQL that is longer than this is none that a person wrote.
const CQL_BYTES_MAX: usize = 64 << 10;
/// Elements that may be nested in a filter.
const DEPTH_MAX: usize = 64;

/// What the user filters by, besides our dates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserFilter(Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Filter { ogc: Operators, fes: Operators },
    Cql(Cql),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Cql {
    text: String,
    needs_parentheses: bool,
    and: &'static str,
}

/// The content of a Filter: as it stands alone, and as one operator.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Operators {
    alone: String,
    joined: String,
}

/// What stands in a `Constraint`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constraint {
    /// Of the text: the user's CQL stays CQL, and the user's document a Filter, whatever was wished for.
    pub language: ConstraintLanguage,
    /// A whole Filter element, or CQL that is not escaped.
    pub text: String,
}

/// Our part of a constraint, and how it is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OurPart<'a> {
    /// What is asked for.
    pub window: &'a Window,
    /// By what. Without one there is no window.
    pub property: Option<&'a str>,
    /// The one record that is asked for.
    pub identifier: Option<&'a str>,
    /// The version spoken, and so the encoding of a Filter.
    pub version: Version,
    /// In which language, as long as the user does not decide it.
    pub language: ConstraintLanguage,
    /// Stands within the start tag of a Filter, with a blank before it; empty where the surrounding document declares the prefixes.
    pub declarations: &'a str,
}

impl UserFilter {
    /// Reads a filter document, of either encoding and in any character encoding that XML declares.
    ///
    /// # Errors
    /// What is wrong with it, in one line: not well formed, another root, not exactly one operator.
    pub fn from_document(bytes: &[u8]) -> Result<Self, String> {
        let text = decode(bytes, None).map_err(|error| match error {
            // Its beginning is not shown: the wrong file may be the one with the password.
            AnswerError::NotXml { .. } => "it is no XML".to_owned(),
            other => other.to_string(),
        })?;
        let ogc = written(&text, Version::V202)?;
        let fes = written(&text, Version::V300)?;
        Ok(UserFilter(Kind::Filter { ogc, fes }))
    }

    /// Takes a CQL expression. Only quotes and parentheses are looked at, since ours is joined to it: the rest is the catalogue's to judge.
    ///
    /// # Errors
    /// What is wrong with it, in one line.
    pub fn from_cql(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.is_empty() || text.len() > CQL_BYTES_MAX {
            return Err(format!("may not be empty or longer than {CQL_BYTES_MAX} bytes"));
        }
        if text.chars().any(|c| c.is_control() && !matches!(c, '\t' | '\n' | '\r')) || holds_forbidden(text) {
            return Err("holds characters that cannot be sent".to_owned());
        }
        read_cql(text).map(|cql| UserFilter(Kind::Cql(cql)))
    }

    /// A text that is the same for filters that select the same, whatever the layout of the file.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        match &self.0 {
            Kind::Filter { ogc, .. } => format!("filter {}", ogc.alone),
            Kind::Cql(cql) => format!("cql {}", cql.text),
        }
    }
}

/// The constraint of a request: ours and the user's. None where neither asks for anything.
#[must_use]
pub fn constraint(user: Option<&UserFilter>, ours: &OurPart<'_>) -> Option<Constraint> {
    let (language, text) = match (user.map(|user| &user.0), ours.language) {
        (None, ConstraintLanguage::CqlText) => (ConstraintLanguage::CqlText, our_terms(ours).join(" AND ")),
        (None, ConstraintLanguage::Filter) => (ConstraintLanguage::Filter, our_filter(ours)),
        (Some(Kind::Filter { ogc, fes }), _) => {
            let operators = match ours.version {
                Version::V202 => ogc,
                Version::V300 => fes,
            };
            (ConstraintLanguage::Filter, joined(operators, ours))
        }
        (Some(Kind::Cql(cql)), _) => (ConstraintLanguage::CqlText, joined_cql(cql, ours)),
    };
    if text.is_empty() { None } else { Some(Constraint { language, text }) }
}

fn our_filter(ours: &OurPart<'_>) -> String {
    filter::document(&our_operators(ours), ours.version, ours.declarations)
}

fn our_operators(ours: &OurPart<'_>) -> Vec<String> {
    let dates = ours.property.map(|property| filter::comparisons(ours.window, property, ours.version)).unwrap_or_default();
    let identity = ours.identifier.map(|identifier| filter::identifies(identifier, ours.version));
    dates.into_iter().chain(identity).collect()
}

fn our_terms(ours: &OurPart<'_>) -> Vec<String> {
    let dates = ours.property.map(|property| filter::cql_terms(ours.window, property)).unwrap_or_default();
    dates.into_iter().chain(ours.identifier.map(filter::cql_identifies)).collect()
}

fn joined(user: &Operators, ours: &OurPart<'_>) -> String {
    let operators = our_operators(ours);
    let theirs = if operators.is_empty() { &user.alone } else { &user.joined };
    let own = match operators.as_slice() {
        [] | [_] => operators,
        several => vec![filter::all_of(several, ours.version)],
    };
    let all: Vec<String> = [theirs.clone()].into_iter().chain(own).collect();
    filter::document(&all, ours.version, ours.declarations)
}

fn joined_cql(user: &Cql, ours: &OurPart<'_>) -> String {
    let Cql { text, needs_parentheses, and } = user;
    let dates = our_terms(ours);
    if dates.is_empty() {
        return text.clone();
    }
    let first = if *needs_parentheses { format!("({text})") } else { text.clone() };
    [first].into_iter().chain(dates).collect::<Vec<_>>().join(&format!(" {and} "))
}

/// How a CQL expression is to be joined: whether it needs parentheses, and the word for and.
///
/// pycsw 2.6 understands no parentheses and splits at ` and ` or at ` AND `, whichever it meets first, so that ours has to look like the
/// user's; an expression without an or at its top means the same with and without parentheses.
///
/// # Errors
/// A quote or parenthesis is not closed, or closed that was not opened: the date would end up within the expression instead of beside it.
fn read_cql(text: &str) -> Result<Cql, String> {
    let (mut open, mut quote) = (0_usize, None);
    let (mut needs_parentheses, mut and) = (false, "AND");
    let mut word = String::new();
    for c in text.chars().chain([' ']) {
        let is_letter = quote.is_none() && open == 0 && (c.is_alphanumeric() || matches!(c, '_' | ':' | '.' | '-'));
        if is_letter {
            word.push(c);
        } else {
            needs_parentheses |= word.eq_ignore_ascii_case("or");
            and = if word == "and" { "and" } else { and };
            word.clear();
        }
        match (quote, c) {
            (Some(held), c) if held == c => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '(') => open += 1,
            (None, ')') => open = open.checked_sub(1).ok_or("a parenthesis is closed that was not opened")?,
            (None, _) => {}
        }
    }
    match (open, quote) {
        (0, None) => Ok(Cql { text: text.to_owned(), needs_parentheses, and }),
        (_, Some(_)) => Err("a quote is not closed".to_owned()),
        (_, None) => Err("a parenthesis is not closed".to_owned()),
    }
}

/// Reads a Filter document and writes what it holds in `target`.
fn written(text: &str, target: Version) -> Result<Operators, String> {
    let mut writer = Writer { target, scope: Scope::default(), root: Vec::new(), parts: Vec::new(), open: Vec::new() };
    let mut cursor = Cursor::new(text);
    let mut ended = false;
    // A blank text is layout unless it is all that an element holds.
    let mut blank: Option<&str> = None;
    let mut leaf = false;
    loop {
        let step = cursor.step().map_err(|error| error.to_string())?;
        let depth = cursor.depth();
        if depth > DEPTH_MAX {
            return Err(format!("elements nested deeper than {DEPTH_MAX}"));
        }
        match step {
            Step::Start(_) | Step::Empty(_) if ended => return Err("more than one root element".to_owned()),
            Step::Start(tag) => {
                (blank, leaf) = (None, true);
                writer.start(tag, depth)?;
            }
            Step::Empty(tag) => {
                (blank, leaf) = (None, false);
                writer.start(tag, depth + 1)?;
                writer.end(depth + 1);
                ended |= depth == 0;
            }
            Step::End => {
                writer.text(blank.take().filter(|_| leaf).unwrap_or_default());
                leaf = false;
                writer.end(depth + 1);
                ended |= depth == 0;
            }
            Step::Text(text) | Step::CData(text) if text.bytes().all(is_blank) => blank = Some(text),
            _ if depth == 0 && matches!(step, Step::Text(_) | Step::CData(_) | Step::Reference(_)) => {
                return Err("text outside of the root element".to_owned());
            }
            Step::Text(text) if text.starts_with('&') || holds_forbidden(text) || text.contains("]]>") => {
                return Err(not_well_formed("a text that XML forbids"));
            }
            Step::CData(text) if holds_forbidden(text) => return Err(not_well_formed("a text that XML forbids")),
            Step::Text(text) => {
                writer.text(blank.take().unwrap_or_default());
                writer.text(text);
            }
            Step::CData(text) => {
                writer.text(blank.take().unwrap_or_default());
                writer.text(&escape(text));
            }
            Step::Reference(name) => {
                resolve(name).map_err(not_well_formed)?;
                writer.text(blank.take().unwrap_or_default());
                writer.text(&format!("&{name};"));
            }
            Step::Comment(_) | Step::Instruction(_) => {}
            Step::Eof if depth == 0 && ended => return writer.operators(),
            Step::Eof => return Err("it ends within the document".to_owned()),
        }
    }
}

/// Prefix (empty: the default namespace) and namespace, as it may stand between double quotes.
type Declaration = (String, String);

struct Writer<'a> {
    target: Version,
    scope: Scope<'a>,
    /// Declarations of the root, which each operator takes along.
    root: Vec<Declaration>,
    parts: Vec<Part>,
    open: Vec<OpenElement>,
}

/// One child of the Filter.
struct Part {
    is_id: bool,
    name: String,
    /// The root's, its own, and those of prefixes that a property's name uses and nothing declares, as far as they are known.
    declarations: Vec<Declaration>,
    rest: String,
}

struct OpenElement {
    name: String,
    names_property: bool,
}

impl<'a> Writer<'a> {
    fn start(&mut self, tag: &'a str, depth: usize) -> Result<(), String> {
        let opened = self.scope.open(tag, depth);
        if let Some(flaw) = opened.flaw {
            return Err(not_well_formed(flaw));
        }
        let namespace = self.scope.namespace(opened.name);
        let is_filter = is_filter_namespace(&namespace);
        if depth == 1 && (!is_filter || opened.local != "Filter") {
            return Err(format!("its root element is {} and not an ogc:Filter or fes:Filter", shown(opened.name)));
        }
        let declarations = self.declarations(depth)?;
        if depth == 1 {
            self.root = declarations;
            return Ok(());
        }
        let local = if is_filter { element_in(self.target, opened.local) } else { opened.local };
        let name = if is_filter { format!("{}:{local}", filter::prefix(self.target)) } else { opened.name.to_owned() };
        let attributes: String = self
            .scope
            .attributes()
            .iter()
            .map(|attribute| attribute_in(self.target, is_filter.then_some(local), attribute))
            .collect();
        if depth == 2 {
            let is_own = |outer: &Declaration| declarations.iter().any(|(prefix, _)| *prefix == outer.0);
            let mut all: Vec<Declaration> = self.root.iter().filter(|outer| !is_own(outer)).cloned().collect();
            all.extend(declarations);
            let is_id = is_filter && matches!(local, "FeatureId" | "GmlObjectId" | "ResourceId");
            self.parts.push(Part { is_id, name: name.clone(), declarations: all, rest: format!("{attributes}>") });
        } else if let Some(part) = self.parts.last_mut() {
            let _ = write!(part.rest, "<{name}{}{attributes}>", declared(&declarations));
        }
        let names_property = is_filter && matches!(local, "PropertyName" | "ValueReference");
        self.open.push(OpenElement { name, names_property });
        Ok(())
    }

    fn end(&mut self, depth: usize) {
        if let (Some(element), Some(part)) = (self.open.pop(), self.parts.last_mut()) {
            let _ = write!(part.rest, "</{}>", element.name);
        }
        self.scope.close(depth);
    }

    fn text(&mut self, text: &str) {
        // Within the Filter itself text means nothing.
        let (Some(element), Some(part)) = (self.open.last(), self.parts.last_mut()) else { return };
        part.rest.push_str(text);
        if !element.names_property {
            return;
        }
        for (prefix, namespace) in request::used(self.target, &[Some(text)]) {
            let is_bound = self.scope.bindings().iter().any(|binding| binding.prefix == prefix);
            let is_declared = part.declarations.iter().any(|(written, _)| written == prefix);
            if !is_bound && !is_declared {
                part.declarations.push((prefix.to_owned(), namespace.to_owned()));
            }
        }
    }

    /// The declarations of the element that was opened last, without those that only name a filter encoding.
    fn declarations(&self, depth: usize) -> Result<Vec<Declaration>, String> {
        let mut found = Vec::new();
        for binding in self.scope.bindings().iter().filter(|binding| binding.depth == depth) {
            if is_filter_namespace(binding.value) {
                continue;
            }
            if ["ogc", "fes"].contains(&binding.prefix) {
                return Err(format!("the prefix {} stands for something else than a filter", binding.prefix));
            }
            found.push((binding.prefix.to_owned(), quoted(binding.value)));
        }
        Ok(found)
    }

    fn operators(self) -> Result<Operators, String> {
        let ids = self.parts.iter().filter(|part| part.is_id).count();
        if self.parts.is_empty() || (ids == 0 && self.parts.len() > 1) || (ids > 0 && ids < self.parts.len()) {
            return Err("a Filter holds one operator, or identifiers only: join several by And or Or".to_owned());
        }
        let texts = self.parts.iter().map(|part| format!("<{}{}{}", part.name, declared(&part.declarations), part.rest));
        let alone: String = texts.collect();
        let prefix = filter::prefix(self.target);
        let joined = if ids > 1 { format!("<{prefix}:Or>{alone}</{prefix}:Or>") } else { alone.clone() };
        Ok(Operators { alone, joined })
    }
}

fn is_filter_namespace(namespace: &str) -> bool {
    namespace == OGC || namespace == FES
}

fn not_well_formed(flaw: Flaw) -> String {
    format!("not well formed: {flaw}")
}

fn shown(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(60).collect()
}

/// A value for between double quotes, which it may have been free to hold before.
fn quoted(value: &str) -> String {
    value.replace('"', "&quot;")
}

fn declared(declarations: &[Declaration]) -> String {
    let one = |(prefix, namespace): &Declaration| match prefix.as_str() {
        "" => format!(" xmlns=\"{namespace}\""),
        prefix => format!(" xmlns:{prefix}=\"{namespace}\""),
    };
    declarations.iter().map(one).collect()
}

/// The name of a filter element in the other encoding (OGC 09-026r2, 6.3.3.1 and D.2); what has none keeps its own.
fn element_in(target: Version, local: &str) -> &str {
    match (target, local) {
        (Version::V300, "PropertyName") => "ValueReference",
        (Version::V300, "FeatureId" | "GmlObjectId") => "ResourceId",
        (Version::V202, "ValueReference") => "PropertyName",
        (Version::V202, "ResourceId") => "FeatureId",
        _ => local,
    }
}

/// An attribute with a blank before it; `element` is the local name of the filter element that has it, as it is written.
fn attribute_in(target: Version, element: Option<&str>, attribute: &Attribute<'_>) -> String {
    let local = match (target, element, attribute.local) {
        (Version::V300, Some("ResourceId"), "fid" | "id") => "rid",
        (Version::V300, Some("Distance"), "units") => "uom",
        (Version::V202, Some("FeatureId"), "rid") => "fid",
        (Version::V202, Some("Distance"), "uom") => "units",
        (_, _, local) => local,
    };
    let renamed = local != attribute.local;
    let prefix = if renamed || attribute.prefix.is_empty() { String::new() } else { format!("{}:", attribute.prefix) };
    format!(" {prefix}{local}=\"{}\"", quoted(attribute.value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::csw::Lower;

    const LIKE_OGC: &str = "<ogc:PropertyIsLike xmlns:apiso=\"http://www.opengis.net/cat/csw/apiso/1.0\" wildCard=\"%\" singleChar=\"_\" \
         escapeChar=\"\\\"><ogc:PropertyName>apiso:Title</ogc:PropertyName><ogc:Literal>%a &amp; b%</ogc:Literal></ogc:PropertyIsLike>";

    fn like_fes() -> String {
        LIKE_OGC.replace("ogc:PropertyName", "fes:ValueReference").replace("ogc:", "fes:")
    }

    fn filter(document: &str) -> UserFilter {
        UserFilter::from_document(document.as_bytes()).unwrap_or_else(|error| panic!("{error}: {document}"))
    }

    fn cql(text: &str) -> UserFilter {
        UserFilter::from_cql(text).unwrap()
    }

    fn refused(document: &str) -> String {
        UserFilter::from_document(document.as_bytes()).unwrap_err()
    }

    fn all() -> Window {
        Window::default()
    }

    fn between(lower: Lower, upper: &str) -> Window {
        Window { lower: Some(lower), upper: Some(upper.to_owned()) }
    }

    fn after(literal: &str) -> Window {
        Window { lower: Some(Lower::After(literal.to_owned())), upper: None }
    }

    fn joint(user: Option<&UserFilter>, window: &Window, property: Option<&str>) -> Option<Constraint> {
        let language = ConstraintLanguage::Filter;
        constraint(user, &OurPart { window, property, identifier: None, version: Version::V202, language, declarations: "" })
    }

    fn filter_text(text: impl Into<String>) -> Option<Constraint> {
        Some(Constraint { language: ConstraintLanguage::Filter, text: text.into() })
    }

    fn cql_text(text: impl Into<String>) -> Option<Constraint> {
        Some(Constraint { language: ConstraintLanguage::CqlText, text: text.into() })
    }

    fn comparison(window: &Window, property: &str) -> String {
        filter::document(&filter::comparisons(window, property, Version::V202), Version::V202, "")
    }

    fn text_of(user: &UserFilter, version: Version) -> String {
        let (window, language) = (all(), ConstraintLanguage::CqlText);
        let ours =
            OurPart { window: &window, property: Some("dct:modified"), identifier: None, version, language, declarations: "" };
        match constraint(Some(user), &ours) {
            Some(Constraint { language: ConstraintLanguage::Filter, text }) => text,
            other => panic!("{other:?}"),
        }
    }

    fn operator_of(document: &str, encoding: Version) -> String {
        let text = text_of(&filter(document), encoding);
        let prefix = filter::prefix(encoding);
        let start = format!("<{prefix}:Filter>");
        text.strip_prefix(&start).and_then(|rest| rest.strip_suffix(&start.replace('<', "</"))).unwrap().to_owned()
    }

    #[test]
    fn without_a_filter_of_the_user_the_constraint_is_ours() {
        assert_eq!(joint(None, &all(), Some("p")), None);
        assert_eq!(joint(None, &after("x"), None), None);
        let ours = comparison(&after("x"), "p");
        assert_eq!(joint(None, &after("x"), Some("p")), filter_text(ours));
    }

    #[test]
    fn a_document_is_written_in_both_encodings_from_either() {
        let ogc = "<?xml version='1.0'?>\n<!-- titles --><ogc:Filter xmlns:ogc='http://www.opengis.net/ogc' \
             xmlns:apiso='http://www.opengis.net/cat/csw/apiso/1.0'>\n  <ogc:PropertyIsLike wildCard='%' singleChar='_' escapeChar='\\'>\n\
             <ogc:PropertyName>apiso:Title</ogc:PropertyName> <ogc:Literal>%a &amp; b%</ogc:Literal>\n\
             </ogc:PropertyIsLike>\n</ogc:Filter>\n";
        let fes = "<Filter xmlns=\"http://www.opengis.net/fes/2.0\" xmlns:apiso=\"http://www.opengis.net/cat/csw/apiso/1.0\">\
             <PropertyIsLike wildCard=\"%\" singleChar=\"_\" escapeChar=\"\\\"><ValueReference>apiso:Title</ValueReference>\
             <Literal><![CDATA[%a & b%]]></Literal></PropertyIsLike></Filter>";

        for document in [ogc, fes] {
            assert_eq!(operator_of(document, Version::V202), LIKE_OGC);
            assert_eq!(operator_of(document, Version::V300), like_fes());
        }
        assert_eq!(filter(ogc).fingerprint(), filter(fes).fingerprint());
    }

    #[test]
    fn the_date_is_joined_by_and() {
        let user = filter(&format!("<ogc:Filter xmlns:ogc=\"{OGC}\">{LIKE_OGC}</ogc:Filter>"));
        let date = "<ogc:PropertyIsGreaterThan><ogc:PropertyName>dct:modified</ogc:PropertyName><ogc:Literal>2024-05-06</ogc:Literal>\
             </ogc:PropertyIsGreaterThan>";

        let one = joint(Some(&user), &after("2024-05-06"), Some("dct:modified"));
        let unbounded = joint(Some(&user), &after("2024-05-06"), None);
        let two = joint(Some(&user), &between(Lower::From("a".to_owned()), "b"), Some("p"));

        assert_eq!(one, filter_text(format!("<ogc:Filter><ogc:And>{LIKE_OGC}{date}</ogc:And></ogc:Filter>")));
        assert_eq!(unbounded, filter_text(format!("<ogc:Filter>{LIKE_OGC}</ogc:Filter>")));
        let Some(Constraint { text: two, .. }) = two else { panic!("{two:?}") };
        let start = format!("<ogc:Filter><ogc:And>{LIKE_OGC}<ogc:And><ogc:PropertyIsGreaterThanOrEqualTo>");
        assert!(two.starts_with(&start) && two.ends_with("</ogc:And></ogc:And></ogc:Filter>"), "{two}");
    }

    #[test]
    fn by_get_the_filter_declares_its_prefixes_and_the_users_language_goes_first() {
        let user = filter(&format!("<ogc:Filter xmlns:ogc=\"{OGC}\">{LIKE_OGC}</ogc:Filter>"));
        let window = after("1");
        let by_get = |property, language| OurPart {
            window: &window,
            property,
            identifier: None,
            version: Version::V300,
            language,
            declarations: " xmlns:fes=\"http://www.opengis.net/fes/2.0\"",
        };
        let (like, start) = (like_fes(), "<fes:Filter xmlns:fes=\"http://www.opengis.net/fes/2.0\">");

        let alone = constraint(Some(&user), &by_get(None, ConstraintLanguage::CqlText));
        let dated = constraint(Some(&user), &by_get(Some("p"), ConstraintLanguage::Filter));
        let in_cql = constraint(Some(&cql("a = 1")), &by_get(Some("p"), ConstraintLanguage::Filter));

        assert_eq!(alone, filter_text(format!("{start}{like}</fes:Filter>")));
        assert_eq!(
            dated,
            filter_text(format!(
                "{start}<fes:And>{like}<fes:PropertyIsGreaterThan><fes:ValueReference>p</fes:ValueReference>\
                 <fes:Literal>1</fes:Literal></fes:PropertyIsGreaterThan></fes:And></fes:Filter>"
            ))
        );
        assert_eq!(in_cql, cql_text("a = 1 AND p > '1'"));
        assert_eq!(constraint(None, &by_get(Some("p"), ConstraintLanguage::CqlText)), cql_text("p > '1'"));
    }

    #[test]
    fn a_geometry_stays_as_it_is() {
        let envelope = "<gml:Envelope xmlns:gml=\"http://www.opengis.net/gml\" srsName=\"EPSG:4326\">\
             <gml:lowerCorner>5 50</gml:lowerCorner><gml:upperCorner>10 55</gml:upperCorner></gml:Envelope>";
        let document = format!(
            "<ogc:Filter xmlns:ogc=\"{OGC}\"><ogc:BBOX><ogc:PropertyName>ows:BoundingBox</ogc:PropertyName>{envelope}</ogc:BBOX>\
             </ogc:Filter>"
        );

        assert_eq!(
            operator_of(&document, Version::V300),
            format!(
                "<fes:BBOX xmlns:ows=\"http://www.opengis.net/ows/2.0\"><fes:ValueReference>ows:BoundingBox</fes:ValueReference>\
                 {envelope}</fes:BBOX>"
            )
        );
        let declared_at_the_root = document
            .replace(" xmlns:gml=\"http://www.opengis.net/gml\"", "")
            .replace("<ogc:Filter", "<ogc:Filter xmlns:gml=\"http://www.opengis.net/gml\"");
        let text = operator_of(&declared_at_the_root, Version::V202);
        assert!(text.starts_with("<ogc:BBOX xmlns:gml=\"http://www.opengis.net/gml\" xmlns:ows="), "{text}");
        assert!(text.contains("<gml:Envelope srsName=\"EPSG:4326\">"), "{text}");
    }

    #[test]
    fn identifiers_and_distances_have_other_names() {
        let ids = format!("<Filter xmlns=\"{OGC}\"><FeatureId fid=\"a\"/><FeatureId fid=\"b\"/></Filter>");
        let other = format!("<f:Filter xmlns:f=\"{FES}\"><f:ResourceId rid=\"a\"/><f:ResourceId rid=\"b\"/></f:Filter>");
        for document in [ids.as_str(), other.as_str()] {
            let (ogc, fes) = (operator_of(document, Version::V202), operator_of(document, Version::V300));
            assert_eq!(ogc, "<ogc:FeatureId fid=\"a\"></ogc:FeatureId><ogc:FeatureId fid=\"b\"></ogc:FeatureId>");
            assert_eq!(fes, "<fes:ResourceId rid=\"a\"></fes:ResourceId><fes:ResourceId rid=\"b\"></fes:ResourceId>");
        }
        let Some(Constraint { text: dated, .. }) = joint(Some(&filter(&ids)), &after("x"), Some("p")) else { panic!("no filter") };
        assert!(dated.starts_with("<ogc:Filter><ogc:And><ogc:Or><ogc:FeatureId"), "{dated}");

        let near = format!(
            "<Filter xmlns=\"{OGC}\"><DWithin><PropertyName>p</PropertyName><gml:Point xmlns:gml=\"g\"/>\
             <Distance units=\"m\">9</Distance></DWithin></Filter>"
        );
        assert!(operator_of(&near, Version::V300).ends_with("<fes:Distance uom=\"m\">9</fes:Distance></fes:DWithin>"));
    }

    #[test]
    fn literals_stay_as_they_are_and_layout_goes() {
        let document = format!(
            "<Filter xmlns=\"{OGC}\"> <PropertyIsEqualTo a='\"' >\n\
             <PropertyName>p</PropertyName><Literal> </Literal></PropertyIsEqualTo></Filter>"
        );
        assert_eq!(
            operator_of(&document, Version::V202),
            "<ogc:PropertyIsEqualTo a=\"&quot;\"><ogc:PropertyName>p</ogc:PropertyName><ogc:Literal> </ogc:Literal></ogc:PropertyIsEqualTo>"
        );
        let references = document.replace("<Literal> </Literal>", "<Literal> &lt; &#233; <![CDATA[&]]> </Literal>");
        assert!(operator_of(&references, Version::V202).contains("<ogc:Literal> &lt; &#233; &amp; </ogc:Literal>"));
    }

    #[test]
    fn what_is_no_filter_is_refused_in_one_line() {
        let within = |inner: &str| format!("<ogc:Filter xmlns:ogc=\"{OGC}\">{inner}</ogc:Filter>");
        let one = "<ogc:PropertyIsNull><ogc:PropertyName>p</ogc:PropertyName></ogc:PropertyIsNull>";
        let cases = [
            (String::new(), "empty"),
            ("dct:modified > 1".to_owned(), "it is no XML"),
            (within(""), "one operator"),
            (within(&format!("{one}{one}")), "one operator"),
            (within(&format!("{one}<ogc:FeatureId fid=\"a\"/>")), "one operator"),
            (within(one).replace("</ogc:Filter>", ""), "ends within"),
            (within("<ogc:Not></ogc:And>"), ""),
            (within("<x:y/>"), "unbound prefix"),
            (within("<ogc:Not>&nope;</ogc:Not>"), "entity"),
            (format!("{}{}", within(one), within(one)), "more than one root"),
            (format!("{}x", within(one)), "outside"),
            (format!("<!DOCTYPE a>{}", within(one)), ""),
            (within(one).replace(OGC, "http://example.org/"), "root element"),
            (format!("<csw:Constraint xmlns:csw=\"c\">{}</csw:Constraint>", within(one)), "root element is csw:Constraint"),
            (within(one).replace(&within(one), "<Filter/>"), "root element is Filter"),
            (format!("<Filter xmlns=\"{OGC}\" xmlns:ogc=\"x\"/>"), "stands for something else"),
            (within(&"<ogc:Not>".repeat(99)), "deeper"),
        ];
        for (document, word) in cases {
            let error = refused(&document);
            assert!(error.contains(word) && !error.contains('\n') && !error.is_empty(), "{document}: {error}");
        }
    }

    #[test]
    fn cql_with_an_or_is_put_in_parentheses_and_the_date_beside_it() {
        let user = cql(" apiso:Title LIKE '%a%' OR b = 'x)' ");
        let of = |window: &Window, property| match joint(Some(&user), window, property) {
            Some(Constraint { language: ConstraintLanguage::CqlText, text }) => text,
            other => panic!("{other:?}"),
        };

        assert_eq!(of(&all(), Some("p")), "apiso:Title LIKE '%a%' OR b = 'x)'");
        assert_eq!(of(&after("2024"), None), "apiso:Title LIKE '%a%' OR b = 'x)'");
        assert_eq!(
            of(&after(" 2024-05-06 "), Some("dct:modified")),
            "(apiso:Title LIKE '%a%' OR b = 'x)') AND dct:modified > '2024-05-06'"
        );
        assert_eq!(
            of(&between(Lower::From("it's".to_owned()), "b"), Some("p")),
            "(apiso:Title LIKE '%a%' OR b = 'x)') AND p >= 'it''s' AND p <= 'b'"
        );
    }

    #[test]
    fn cql_without_an_or_gets_no_parentheses_and_its_own_word_for_and() {
        for (text, dated) in [
            ("a like 'x'", "a like 'x' AND p > '1'"),
            ("a = 'x or y' AND b = 2", "a = 'x or y' AND b = 2 AND p > '1'"),
            ("a = 1 and b = 2", "a = 1 and b = 2 and p > '1'"),
            ("(a = 1 or b = 2)", "(a = 1 or b = 2) AND p > '1'"),
            ("a:or = 1", "a:or = 1 AND p > '1'"),
            ("a = 1 or b = 2", "(a = 1 or b = 2) AND p > '1'"),
            ("a = 1 Or(b = 2)", "(a = 1 Or(b = 2)) AND p > '1'"),
            ("(a = 1)OR b = 2", "((a = 1)OR b = 2) AND p > '1'"),
            ("a = 'x'or b = 2", "(a = 'x'or b = 2) AND p > '1'"),
        ] {
            let user = cql(text);
            assert_eq!(joint(Some(&user), &after("1"), Some("p")), cql_text(dated));
        }
    }

    #[test]
    fn cql_that_would_reach_around_ours_is_refused() {
        for text in ["", "  ", "a = 1) OR (b = 2", "(a = 1", "a = 'x", "a = \"x", "a\u{0}b", "a\u{fffe}"] {
            assert!(UserFilter::from_cql(text).is_err(), "{text:?}");
        }
        for text in ["(a = 1) OR (b = 2)", "a = '('", "a = 'it''s'", "a\n= 1", "\"a(\" = 1"] {
            assert!(UserFilter::from_cql(text).is_ok(), "{text:?}");
        }
        assert_ne!(cql("a = 1").fingerprint(), cql("a = 2").fingerprint());
    }
}
