//! Of which class an answer is that is no GetRecordsResponse: one table over what reports say, one over HTTP statuses.
//!
//! Pure: the same answer is always of the same class. Whether it came first or after a thousand good ones, and what follows from its
//! class, is for those who ask.

use crate::csw::exception::{AnswerError, ExceptionReport};

/// What an answer that is none asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Credentials are missing or refused.
    Access,
    /// It may go better in a while.
    Transient,
    /// The position is past the last record, if everything matched has been seen.
    EndOfList,
    /// The position is past what the catalogue's search engine pages through.
    Ceiling,
    /// The catalogue does not understand this way of asking.
    Dialect,
    /// A record in the page cannot be delivered.
    BadPage,
    /// Well delivered, and no word of CSW.
    NotCsw,
    /// Any other exception report.
    Report,
}

#[derive(Clone, Copy)]
enum Place {
    Code,
    Locator,
    /// In code, locator or text.
    Anywhere,
}
use Place::{Anywhere, Code, Locator};

/// The first row that fits decides. Needles are in lower case and looked for in any case; a code or locator must be the needle, or end
/// with it after a colon (GeoNetwork: `constraint:PropertyName`). The last column says who writes so, or which
/// rule names it.
const RULES: [(Place, &str, Class, &str); 49] = [
    // What names its cause without doubt, since it stands within reports that hold the words of other rows too.
    (Anywhere, "result window is too large", Class::Ceiling, "GeoNetwork 4, Esri catalog: Elasticsearch beyond 10,000 or 15,000"),
    (Anywhere, "max_result_window", Class::Ceiling, "the same, newer wording"),
    (Anywhere, "not supported for metadata", Class::BadPage, "GeoNetwork: one record has no conversion to the output schema"),
    (Anywhere, "indexing", Class::Transient, "GeoNetwork: while it rebuilds its index"),
    (Anywhere, "retry later", Class::Transient, "GeoNetwork: the same"),
    (Anywhere, "try again later", Class::Transient, "the same, other wording"),
    (Locator, "startposition", Class::EndOfList, "GeoNetwork 3.2 and later; GeoServer for 0"),
    (Anywhere, "startposition", Class::EndOfList, "GeoNetwork 4: locator buried in the text"),
    (Anywhere, "start position", Class::EndOfList, "GeoNetwork 3 and 4: can't be greater than the matching records"),
    // A locator names the part of the request that is not understood.
    (Locator, "propertyname", Class::Dialect, "Esri Geoportal 1"),
    (Locator, "constraint", Class::Dialect, "pycsw, KVP and CQL"),
    (Locator, "query_constraint", Class::Dialect, "Examind: a date literal that it cannot read"),
    (Locator, "constraintlanguage", Class::Dialect, "OGC 07-006r1, 10.8.2: a parameter of GetRecords"),
    (Locator, "constraint_language_version", Class::Dialect, "the same"),
    (Locator, "filter", Class::Dialect, "the same"),
    (Locator, "sortby", Class::Dialect, "pycsw, KVP"),
    (Locator, "typename", Class::Dialect, "OGC 07-006r1, 10.8.2, as some spell it"),
    (Locator, "typenames", Class::Dialect, "OGC 07-006r1, 10.8.2"),
    (Locator, "outputschema", Class::Dialect, "pycsw"),
    (Locator, "outputformat", Class::Dialect, "OGC 07-006r1, 10.8.2"),
    (Locator, "elementsetname", Class::Dialect, "the same"),
    (Locator, "resulttype", Class::Dialect, "the same"),
    (Locator, "version", Class::Dialect, "catalogues that speak another version"),
    (Locator, "acceptversions", Class::Dialect, "the same"),
    (Locator, "service", Class::Dialect, "pycsw, POST: names the property in its text"),
    (Code, "versionnegotiationfailed", Class::Dialect, "OWS common 1.0, 7.4"),
    (Code, "operationnotsupported", Class::Dialect, "OWS common 1.0, table 20: by this binding, at least"),
    // What lies behind the catalogue is not well.
    (Anywhere, "timeout", Class::Transient, "GeoNetwork 4: of its search engine"),
    (Anywhere, "timed out", Class::Transient, "the same, other wording"),
    (Anywhere, "database", Class::Transient, "catalogues on a database, its message passed on"),
    (Anywhere, "connection", Class::Transient, "the same, and search engines"),
    // The words of a failed conversion, before the words of a request, which it may quote.
    (Anywhere, "transform", Class::BadPage, "GeoNetwork: the conversion of one record"),
    (Anywhere, "serializ", Class::BadPage, "GeoNetwork 4.2 and later: one record"),
    (Anywhere, "sorting on", Class::Dialect, "GeoServer: sorts by no property that it does not map"),
    (Anywhere, "mapping", Class::Dialect, "Elasticsearch, GeoServer: a property that is not mapped"),
    (Anywhere, "jsonparseexception", Class::Dialect, "GeoNetwork 4.2.8 to 4.2.10: every date literal"),
    (Anywhere, "numberformat", Class::Dialect, "GeoNetwork 4.4, early: the same"),
    (Anywhere, "propertyname", Class::Dialect, "pycsw: also of the sort property"),
    (Anywhere, "queryable", Class::Dialect, "catalogues that name their queryables"),
    (Anywhere, "constraint", Class::Dialect, "pycsw"),
    (Anywhere, "sortby", Class::Dialect, "pycsw"),
    (Anywhere, "typename", Class::Dialect, "catalogues that send no locator"),
    (Anywhere, "outputschema", Class::Dialect, "GeoNetwork 4: locator buried in the text"),
    // The plainest words last: each stands in many a stack trace.
    (Anywhere, "nullpointer", Class::BadPage, "GeoNetwork: a stale index entry in the page"),
    (Anywhere, "runtimeexception", Class::BadPage, "GeoNetwork 4: one record of the page"),
    (Anywhere, "elasticsearchstatusexception", Class::Transient, "GeoNetwork 4, when it says nothing else"),
    (Anywhere, "operator", Class::Dialect, "Esri catalog: operator not supported"),
    (Anywhere, "filter", Class::Dialect, "catalogues that send no locator"),
    (Anywhere, "version", Class::Dialect, "the same"),
];

/// Of which class an answer is. The status is 200 where nobody looked at it.
///
/// A report decides whatever the status is, apart from those that speak of access and of overload: catalogues send reports with 200,
/// 400, 404 and 500 alike. Without a report a status that is no success decides, then the body. A page, JSON or nothing in place of XML
/// comes from waiting rooms and gateways as a rule, so it is worth a retry; [`AnswerError::is_well_delivered`] tells them apart
/// afterwards.
#[must_use]
pub fn classify(status: u16, error: &AnswerError) -> Class {
    match (error, classify_status(status)) {
        (AnswerError::Report(_), Some(Class::Access)) => Class::Access,
        (AnswerError::Report(_), _) if matches!(status, 429 | 503) => Class::Transient,
        (AnswerError::Report(report), _) => classify_report(report),
        (_, Some(class)) => class,
        (AnswerError::OtherRoot { .. } | AnswerError::DocumentType, None) => Class::NotCsw,
        _ => Class::Transient,
    }
}

/// What a status says of itself, when no report comes with it; nothing for a success.
///
/// 400 and 422 are the request's fault and so the dialect's; 403 and 404 after successes are for the caller to see as transient.
#[must_use]
pub const fn classify_status(status: u16) -> Option<Class> {
    match status {
        200..=299 => None,
        401 | 403 | 407 => Some(Class::Access),
        408 | 425 | 429 | 500.. => Some(Class::Transient),
        400 | 422 => Some(Class::Dialect),
        _ => Some(Class::NotCsw),
    }
}

fn classify_report(report: &ExceptionReport) -> Class {
    let [code, locator, text] = [&report.code, &report.locator, &report.text].map(|part| part.to_ascii_lowercase());
    let is = |part: &str, needle: &str| part.trim().rsplit(':').next().is_some_and(|last| last.trim() == needle);
    let fits = |(place, needle, _, _): &&(Place, &str, Class, &str)| match place {
        Code => is(&code, needle),
        Locator => is(&locator, needle),
        Anywhere => [&code, &locator, &text].iter().any(|part| part.contains(needle)),
    };
    RULES.iter().find(fits).map_or(Class::Report, |(_, _, class, _)| *class)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(code: &str, locator: &str, text: &str) -> AnswerError {
        AnswerError::Report(ExceptionReport { code: code.to_owned(), locator: locator.to_owned(), text: text.to_owned() })
    }

    fn class(code: &str, locator: &str, text: &str) -> Class {
        classify(200, &report(code, locator, text))
    }

    #[test]
    fn reports_of_the_field_are_of_their_class() {
        let none = "NoApplicableCode";
        let invalid = "InvalidParameterValue";
        let field = [
            ("A1", none, "", "NullPointerException", Class::BadPage),
            ("A2", invalid, "PropertyName", "", Class::Dialect),
            ("A4", none, "", "Catalog is indexing records, retry later", Class::Transient),
            ("A8", none, "", "Sorting on dct:modified is not supported", Class::Dialect),
            ("B1", none, "", "RuntimeException", Class::BadPage),
            (
                "B3",
                none,
                "",
                "code=InvalidParameterValue, locator=OutputSchema, Schema 'gmd' not supported for metadata 17",
                Class::BadPage,
            ),
            ("P9", none, "", "Result window is too large, from + size must be less than or equal to: [10000]", Class::Ceiling),
            ("", none, "", "can be set by changing the [index.MAX_RESULT_WINDOW] setting: startPosition", Class::Ceiling),
            (
                "GeoNetwork 3",
                invalid,
                "startPosition",
                "Start position (10) can't be greater than the number of records",
                Class::EndOfList,
            ),
            (
                "GeoNetwork 4",
                none,
                "",
                "RuntimeException: InvalidParameterValue, Start position can't be greater",
                Class::EndOfList,
            ),
            (
                "pycsw POST",
                invalid,
                "service",
                "Invalid Constraint: Invalid Filter request: Invalid PropertyName: dc:modified",
                Class::Dialect,
            ),
            ("pycsw CQL", invalid, "constraint", "Invalid Filter syntax", Class::Dialect),
            ("pycsw", invalid, "outputschema", "Invalid outputschema parameter", Class::Dialect),
            ("prefixed", invalid, "csw:Query:TypeNames", "", Class::Dialect),
            ("Examind", invalid, "QUERY_CONSTRAINT", "", Class::Dialect),
            ("Esri catalog", none, "", "operator not supported", Class::Dialect),
            ("GeoNetwork 4.2.8", none, "", "RuntimeException: com.fasterxml.jackson.core.JsonParseException: x", Class::Dialect),
            ("GeoNetwork 4.4", none, "", "java.lang.NumberFormatException: For input string", Class::Dialect),
            ("", none, "", "ElasticsearchStatusException: No mapping found for [x] in order to sort on", Class::Dialect),
            ("", none, "", "ElasticsearchStatusException", Class::Transient),
            ("", none, "", "RuntimeException: Connection refused", Class::Transient),
            ("", none, "", "the database does not answer", Class::Transient),
            ("", none, "", "Read timed out", Class::Transient),
            ("", none, "", "gateway timeout; try again later", Class::Transient),
            ("", none, "", "Failed to transform the record to outputSchema gmd", Class::BadPage),
            ("", none, "", "Serialization failed in version 4", Class::BadPage),
            ("", "VersionNegotiationFailed", "", "", Class::Dialect),
            ("", "OperationNotSupported", "request", "", Class::Dialect),
            ("", none, "", "", Class::Report),
            ("", "", "", "", Class::Report),
            ("", "NotFound", "id", "No repository item found", Class::Report),
        ];
        for (case, code, locator, text, expected) in field {
            assert_eq!(class(code, locator, text), expected, "{case} {code} {locator} {text}");
        }
    }

    #[test]
    fn a_report_decides_whatever_the_status_unless_it_speaks_of_access_or_overload() {
        let dialect = report("InvalidParameterValue", "PropertyName", "");
        for status in [200, 400, 404, 500, 502] {
            assert_eq!(classify(status, &dialect), Class::Dialect, "{status}");
        }
        for (status, expected) in
            [(401, Class::Access), (403, Class::Access), (407, Class::Access), (429, Class::Transient), (503, Class::Transient)]
        {
            assert_eq!(classify(status, &dialect), expected, "{status}");
        }
    }

    #[test]
    fn without_a_report_the_status_decides_and_then_the_body() {
        let html = AnswerError::Html { title: None };
        for (status, expected) in [
            (200, Class::Transient),
            (301, Class::NotCsw),
            (400, Class::Dialect),
            (401, Class::Access),
            (404, Class::NotCsw),
            (405, Class::NotCsw),
            (410, Class::NotCsw),
            (408, Class::Transient),
            (425, Class::Transient),
            (429, Class::Transient),
            (500, Class::Transient),
            (504, Class::Transient),
            (599, Class::Transient),
        ] {
            assert_eq!(classify(status, &html), expected, "{status}");
        }
        let other = AnswerError::OtherRoot { namespace: String::new(), local: "a".to_owned() };
        assert_eq!(classify(200, &other), Class::NotCsw);
        assert_eq!(classify(204, &AnswerError::DocumentType), Class::NotCsw);
        let broken = [
            AnswerError::Empty,
            AnswerError::Truncated,
            AnswerError::Malformed(String::new()),
            AnswerError::NotXml { start: String::new() },
        ];
        assert!(broken.iter().all(|error| classify(200, error) == Class::Transient));
        assert_eq!(classify_status(200), None);
        assert!(html.is_well_delivered() && !AnswerError::Truncated.is_well_delivered());
    }

    #[test]
    fn no_row_of_the_table_is_hidden_by_an_earlier_one() {
        for (place, needle, expected, who) in RULES {
            assert_eq!(needle, needle.to_ascii_lowercase());
            let found = match place {
                Code => class(needle, "", ""),
                Locator => class("", needle, ""),
                Anywhere => class("", "", needle),
            };
            assert_eq!(found, expected, "{needle}: {who}");
        }
    }
}
