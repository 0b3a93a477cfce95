//! A window as the text of an OGC Filter 1.1 (OGC 04-095).
//!
//! Writes comparisons of one property with one or two literals, nothing else. Which property and which literals a catalogue
//! understands is for `dialect.rs` and `watermark.rs` to say; no literal is changed here but for the blanks around it.

use quick_xml::escape::escape;

use crate::csw::{Lower, Window};

/// The `ogc:Filter` that keeps the records of `window` by `property`; empty where the window has no edge.
///
/// The prefix `ogc` and that of the property are for the surrounding document to declare. There are no blanks around literals:
/// pycsw compares texts, and a leading blank sorts before every stamp.
#[must_use]
pub fn comparison(window: &Window, property: &str) -> String {
    let lower = window.lower.as_ref().map(|lower| match lower {
        Lower::After(literal) => operator("PropertyIsGreaterThan", property, literal),
        Lower::From(literal) => operator("PropertyIsGreaterThanOrEqualTo", property, literal),
    });
    let upper = window.upper.as_ref().map(|literal| operator("PropertyIsLessThanOrEqualTo", property, literal));
    match (lower, upper) {
        (None, None) => String::new(),
        (Some(only), None) | (None, Some(only)) => format!("<ogc:Filter>{only}</ogc:Filter>"),
        (Some(lower), Some(upper)) => format!("<ogc:Filter><ogc:And>{lower}{upper}</ogc:And></ogc:Filter>"),
    }
}

fn operator(name: &str, property: &str, literal: &str) -> String {
    let (property, literal) = (escape(property.trim()), escape(literal.trim()));
    format!("<ogc:{name}><ogc:PropertyName>{property}</ogc:PropertyName><ogc:Literal>{literal}</ogc:Literal></ogc:{name}>")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(lower: Option<Lower>, upper: Option<&str>) -> Window {
        Window { lower, upper: upper.map(str::to_owned) }
    }

    #[test]
    fn a_window_without_edges_has_no_filter() {
        assert_eq!(comparison(&Window::default(), "dct:modified"), "");
    }

    #[test]
    fn one_edge_is_one_comparison() {
        let after = window(Some(Lower::After("2024-05-06T00:00:00Z".to_owned())), None);
        let from = window(Some(Lower::From("2024-05-06".to_owned())), None);
        let until = window(None, Some("2024"));

        assert_eq!(
            comparison(&after, "dct:modified"),
            "<ogc:Filter><ogc:PropertyIsGreaterThan><ogc:PropertyName>dct:modified</ogc:PropertyName>\
             <ogc:Literal>2024-05-06T00:00:00Z</ogc:Literal></ogc:PropertyIsGreaterThan></ogc:Filter>"
        );
        assert_eq!(
            comparison(&from, "Modified"),
            "<ogc:Filter><ogc:PropertyIsGreaterThanOrEqualTo><ogc:PropertyName>Modified</ogc:PropertyName>\
             <ogc:Literal>2024-05-06</ogc:Literal></ogc:PropertyIsGreaterThanOrEqualTo></ogc:Filter>"
        );
        assert_eq!(
            comparison(&until, "Modified"),
            "<ogc:Filter><ogc:PropertyIsLessThanOrEqualTo><ogc:PropertyName>Modified</ogc:PropertyName>\
             <ogc:Literal>2024</ogc:Literal></ogc:PropertyIsLessThanOrEqualTo></ogc:Filter>"
        );
    }

    #[test]
    fn two_edges_are_joined_by_and() {
        let both = window(Some(Lower::From("a".to_owned())), Some("b"));

        let text = comparison(&both, "p");

        assert!(text.starts_with("<ogc:Filter><ogc:And><ogc:PropertyIsGreaterThanOrEqualTo>"), "{text}");
        assert!(text.contains("</ogc:PropertyIsGreaterThanOrEqualTo><ogc:PropertyIsLessThanOrEqualTo>"), "{text}");
        assert!(text.ends_with("</ogc:PropertyIsLessThanOrEqualTo></ogc:And></ogc:Filter>"), "{text}");
    }

    #[test]
    fn literals_are_escaped_and_stand_without_blanks() {
        let odd = window(Some(Lower::After(" 1 < 2 & \"3\"\n".to_owned())), None);

        let text = comparison(&odd, "a<b");

        assert!(text.contains("<ogc:PropertyName>a&lt;b</ogc:PropertyName>"), "{text}");
        assert!(text.contains("<ogc:Literal>1 &lt; 2 &amp; &quot;3&quot;</ogc:Literal>"), "{text}");
    }
}
