//! A change as a line of NDJSON. Its keys are published, all of them are always there.

use crate::report::{push_raw, push_text};
use crate::store::Change;

/// Appends the object and its line end.
pub(super) fn push_line(out: &mut String, change: &Change<'_>) {
    let content = change.content;
    out.push('{');
    push_text(out, "source", Some(change.source));
    push_text(out, "identifier", Some(change.identifier));
    push_text(out, "title", content.and_then(|content| content.title));
    push_text(out, "modified", content.and_then(|content| content.modified));
    push_text(out, "harvested_at", Some(change.at));
    push_raw(out, "seq", change.seq);
    push_raw(out, "deleted", content.is_none());
    push_text(out, "xml", content.map(|content| content.xml));
    out.push_str("}\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Content;
    use proptest::prelude::*;
    use serde_json::Value;

    fn line(change: &Change<'_>) -> String {
        let mut out = String::new();
        push_line(&mut out, change);
        out
    }

    #[test]
    fn a_record_and_a_deletion_read_as_published() {
        let content = Some(Content { title: Some("T"), modified: None, xml: "<r a=\"1\"/>" });
        let change = Change { source: "s", identifier: "i", at: "2026-07-10T00:00:00Z", seq: 7, content };
        let record = concat!(
            r#"{"source":"s","identifier":"i","title":"T","modified":null,"harvested_at":"2026-07-10T00:00:00Z","#,
            r#""seq":7,"deleted":false,"xml":"<r a=\"1\"/>"}"#
        );
        assert_eq!(line(&change), format!("{record}\n"));
        let gone = concat!(
            r#"{"source":"s","identifier":"i","title":null,"modified":null,"harvested_at":"2026-07-10T00:00:00Z","#,
            r#""seq":7,"deleted":true,"xml":null}"#
        );
        assert_eq!(line(&Change { content: None, ..change }), format!("{gone}\n"));
    }

    proptest! {
        #[test]
        fn any_text_comes_back_from_a_json_parser_and_stays_on_one_line(
            texts in proptest::array::uniform4("(?s:.{0,20})|[\\x00-\\x1f\"\\\\\u{7f}\u{2028}\u{10ffff}]{0,8}"),
            seq in 0..i64::MAX,
        ) {
            let [source, identifier, title, xml] = &texts;
            let content = Some(Content { title: Some(title), modified: Some(identifier), xml });
            let told = line(&Change { source, identifier, at: source, seq, content });
            prop_assert!(told.lines().count() == 1 && told.ends_with('\n'));
            let value: Value = serde_json::from_str(&told).expect("JSON");
            for (key, text) in [("source", source), ("identifier", identifier), ("title", title), ("xml", xml)] {
                prop_assert_eq!(value[key].as_str(), Some(text.as_str()));
            }
            prop_assert_eq!(value["seq"].as_i64(), Some(seq));
        }
    }
}
