//! A window as the text of an OGC Filter 1.1 (OGC 04-095), a Filter 2.0 (OGC 09-026r2) or CQL_TEXT (OGC 07-006r1).
//!
//! Writes comparisons of one property with one or two literals, nothing else. Which property, which literals and which of the three a
//! catalogue understands is for `dialect.rs` and `watermark.rs` to say; no literal is changed here but for the blanks around it.

use quick_xml::escape::escape;

use crate::csw::{Lower, Version, Window};

/// The prefix of the filter's elements.
#[must_use]
pub const fn prefix(version: Version) -> &'static str {
    match version {
        Version::V202 => "ogc",
        Version::V300 => "fes",
    }
}

/// The element that holds a property's name.
#[must_use]
pub const fn reference(version: Version) -> &'static str {
    match version {
        Version::V202 => "ogc:PropertyName",
        Version::V300 => "fes:ValueReference",
    }
}

/// The queryable that every catalogue has for a record's identifier (OGC 07-006r1, table 6; OGC 12-176r7, table 8).
pub const IDENTIFIER: &str = "dc:identifier";

/// The comparisons that keep the records of `window` by `property`, one for each edge.
///
/// There are no blanks around literals: pycsw compares texts, and a leading blank sorts before every stamp.
#[must_use]
pub fn comparisons(window: &Window, property: &str, version: Version) -> Vec<String> {
    let operator = |name: &str, literal: &str| operator(version, name, property, literal);
    let lower = window.lower.as_ref().map(|lower| match lower {
        Lower::After(literal) => operator("PropertyIsGreaterThan", literal),
        Lower::From(literal) => operator("PropertyIsGreaterThanOrEqualTo", literal),
    });
    let upper = window.upper.as_ref().map(|literal| operator("PropertyIsLessThanOrEqualTo", literal));
    lower.into_iter().chain(upper).collect()
}

/// The comparison that keeps what has this identifier.
#[must_use]
pub fn identifies(identifier: &str, version: Version) -> String {
    operator(version, "PropertyIsEqualTo", IDENTIFIER, identifier)
}

/// The `Filter` of operators that must all hold; empty where there are none.
///
/// `declarations` stands within the start tag, with a blank before it: empty where the surrounding document declares the prefix of the
/// filter and those of the properties.
#[must_use]
pub fn document(operators: &[String], version: Version, declarations: &str) -> String {
    let prefix = prefix(version);
    match operators {
        [] => String::new(),
        [only] => format!("<{prefix}:Filter{declarations}>{only}</{prefix}:Filter>"),
        several => format!("<{prefix}:Filter{declarations}>{}</{prefix}:Filter>", all_of(several, version)),
    }
}

/// The operator that holds when all of these do.
#[must_use]
pub fn all_of(operators: &[String], version: Version) -> String {
    let prefix = prefix(version);
    format!("<{prefix}:And>{}</{prefix}:And>", operators.concat())
}

fn operator(version: Version, name: &str, property: &str, literal: &str) -> String {
    let (property, literal) = (escape(property.trim()), escape(literal.trim()));
    let (prefix, reference) = (prefix(version), reference(version));
    format!(
        "<{prefix}:{name}><{reference}>{property}</{reference}><{prefix}:Literal>{literal}</{prefix}:Literal></{prefix}:{name}>"
    )
}

/// The comparisons of the same window in CQL_TEXT, one for each edge.
#[must_use]
pub fn cql_terms(window: &Window, property: &str) -> Vec<String> {
    let lower = window.lower.as_ref().map(|lower| match lower {
        Lower::After(literal) => cql_term(property, ">", literal),
        Lower::From(literal) => cql_term(property, ">=", literal),
    });
    let upper = window.upper.as_ref().map(|literal| cql_term(property, "<=", literal));
    lower.into_iter().chain(upper).collect()
}

/// [`identifies`] in CQL_TEXT.
#[must_use]
pub fn cql_identifies(identifier: &str) -> String {
    cql_term(IDENTIFIER, "=", identifier)
}

fn cql_term(property: &str, sign: &str, literal: &str) -> String {
    format!("{} {sign} '{}'", property.trim(), literal.trim().replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison(window: &Window, property: &str, version: Version, declarations: &str) -> String {
        document(&comparisons(window, property, version), version, declarations)
    }

    fn window(lower: Option<Lower>, upper: Option<&str>) -> Window {
        Window { lower, upper: upper.map(str::to_owned) }
    }

    #[test]
    fn a_window_without_edges_has_no_filter() {
        assert_eq!(comparison(&Window::default(), "dct:modified", Version::V202, ""), "");
    }

    #[test]
    fn one_edge_is_one_comparison() {
        let after = window(Some(Lower::After("2024-05-06T00:00:00Z".to_owned())), None);
        let from = window(Some(Lower::From("2024-05-06".to_owned())), None);
        let until = window(None, Some("2024"));

        assert_eq!(
            comparison(&after, "dct:modified", Version::V202, ""),
            "<ogc:Filter><ogc:PropertyIsGreaterThan><ogc:PropertyName>dct:modified</ogc:PropertyName>\
             <ogc:Literal>2024-05-06T00:00:00Z</ogc:Literal></ogc:PropertyIsGreaterThan></ogc:Filter>"
        );
        assert_eq!(
            comparison(&from, "Modified", Version::V202, ""),
            "<ogc:Filter><ogc:PropertyIsGreaterThanOrEqualTo><ogc:PropertyName>Modified</ogc:PropertyName>\
             <ogc:Literal>2024-05-06</ogc:Literal></ogc:PropertyIsGreaterThanOrEqualTo></ogc:Filter>"
        );
        assert_eq!(
            comparison(&until, "Modified", Version::V202, ""),
            "<ogc:Filter><ogc:PropertyIsLessThanOrEqualTo><ogc:PropertyName>Modified</ogc:PropertyName>\
             <ogc:Literal>2024</ogc:Literal></ogc:PropertyIsLessThanOrEqualTo></ogc:Filter>"
        );
    }

    #[test]
    fn two_edges_are_joined_by_and() {
        let both = window(Some(Lower::From("a".to_owned())), Some("b"));

        let text = comparison(&both, "p", Version::V202, "");

        assert!(text.starts_with("<ogc:Filter><ogc:And><ogc:PropertyIsGreaterThanOrEqualTo>"), "{text}");
        assert!(text.contains("</ogc:PropertyIsGreaterThanOrEqualTo><ogc:PropertyIsLessThanOrEqualTo>"), "{text}");
        assert!(text.ends_with("</ogc:PropertyIsLessThanOrEqualTo></ogc:And></ogc:Filter>"), "{text}");
    }

    #[test]
    fn literals_are_escaped_and_stand_without_blanks() {
        let odd = window(Some(Lower::After(" 1 < 2 & \"3\"\n".to_owned())), None);

        let text = comparison(&odd, "a<b", Version::V202, "");

        assert!(text.contains("<ogc:PropertyName>a&lt;b</ogc:PropertyName>"), "{text}");
        assert!(text.contains("<ogc:Literal>1 &lt; 2 &amp; &quot;3&quot;</ogc:Literal>"), "{text}");
    }

    #[test]
    fn version_3_speaks_filter_2() {
        let both = window(Some(Lower::After("a".to_owned())), Some("b"));

        assert_eq!(
            comparison(&both, "dct:modified", Version::V300, " xmlns:fes=\"http://www.opengis.net/fes/2.0\""),
            "<fes:Filter xmlns:fes=\"http://www.opengis.net/fes/2.0\"><fes:And>\
             <fes:PropertyIsGreaterThan><fes:ValueReference>dct:modified</fes:ValueReference><fes:Literal>a</fes:Literal>\
             </fes:PropertyIsGreaterThan><fes:PropertyIsLessThanOrEqualTo><fes:ValueReference>dct:modified</fes:ValueReference>\
             <fes:Literal>b</fes:Literal></fes:PropertyIsLessThanOrEqualTo></fes:And></fes:Filter>"
        );
    }

    #[test]
    fn an_identifier_is_compared_with_what_every_catalogue_has() {
        assert_eq!(
            document(&[identifies("a<b", Version::V202)], Version::V202, ""),
            "<ogc:Filter><ogc:PropertyIsEqualTo><ogc:PropertyName>dc:identifier</ogc:PropertyName>\
             <ogc:Literal>a&lt;b</ogc:Literal></ogc:PropertyIsEqualTo></ogc:Filter>"
        );
        assert_eq!(cql_identifies("it's"), "dc:identifier = 'it''s'");
    }

    #[test]
    fn cql_quotes_its_literals() {
        let both = window(Some(Lower::After(" 2024-05-06T00:00:00Z".to_owned())), Some("it's"));
        let from = window(Some(Lower::From("2024".to_owned())), None);

        assert_eq!(cql_terms(&both, "dct:modified"), ["dct:modified > '2024-05-06T00:00:00Z'", "dct:modified <= 'it''s'"]);
        assert_eq!(cql_terms(&from, " Modified "), ["Modified >= '2024'"]);
        assert!(cql_terms(&Window::default(), "Modified").is_empty());
    }
}
