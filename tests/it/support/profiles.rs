//! The servers of the field as quirks, from their sources and trackers.
//!
//! Each function names the versions that it is like. Where a build of a server differs, take the profile and change the one field.

use super::quirks::{
    Bindings, CSW, Clock, Comparison, Conversion, CswStamp, DateTimes, DayLiterals, EditedStamp, GMD, Greater, Hits, Matched,
    Matching, Names, NextRecord, NoMatch, Order, PastEnd, Quirks, ResultTypeMissing, Ties, Undated, UnknownName, UnknownSort,
    Validation,
};
use super::stamps::StampShape;

/// Every profile with its name, for tests that go through all of them.
pub(crate) fn all() -> Vec<(&'static str, Quirks)> {
    vec![
        ("pycsw", pycsw()),
        ("geonetwork3", geonetwork3()),
        ("geonetwork4", geonetwork4()),
        ("deegree", deegree()),
        ("esri1", esri1()),
        ("esri2", esri2()),
        ("geoserver", geoserver()),
        ("examind", examind()),
        ("micka", micka()),
        ("terra", terra()),
    ]
}

/// pycsw 2.6 as it comes: silent cap of 10, text comparison, no order without a sort.
pub(crate) fn pycsw() -> Quirks {
    Quirks {
        page_cap: Some(10),
        comparison: Comparison::Text,
        properties: Names::exactly(&["dct:modified", "apiso:Modified"]),
        sort_names: Names::exactly(&["dct:modified", "apiso:Modified"]),
        sort_identifier: Names::exactly(&["dc:identifier", "apiso:Identifier"]),
        property_locator: "service",
        order: Order::EditedLast,
        past_end: PastEnd::EmptyNextOne,
        hits: Hits::ClaimsPage,
        queryables: vec!["dc:identifier", "dc:title", "dct:modified", "apiso:Modified", "apiso:Title"],
        ..Quirks::default()
    }
}

/// GeoNetwork 3.8: any prefix and case, text comparison on gmd:dateStamp, csw:Record shows the revision date.
pub(crate) fn geonetwork3() -> Quirks {
    Quirks {
        csw_stamp: CswStamp::Revision,
        comparison: Comparison::Text,
        properties: Names::of(Matching::LocalNameAnyCase, &["modified"]),
        unknown_property: UnknownName::NoHits,
        sort_names: Names::of(Matching::LocalNameAnyCase, &["modified"]),
        sort_identifier: Names::of(Matching::LocalNameAnyCase, &["identifier"]),
        unknown_sort: UnknownSort::Ignored,
        order: Order::RandomEachTime,
        ties: Ties::RandomStable,
        past_end: PastEnd::Exception,
        no_match: NoMatch::AsPastEnd,
        queryables: vec!["Identifier", "Title", "Modified"],
        ..Quirks::default()
    }
}

/// GeoNetwork 4.2: the database's change date, which no record shows; a window of 15,000.
pub(crate) fn geonetwork4() -> Quirks {
    Quirks {
        clock: Clock::Hidden(StampShape::Fraction(3)),
        edited_stamp: EditedStamp::Kept,
        csw_stamp: CswStamp::Revision,
        properties: Names::of(Matching::LocalNameAnyCase, &["modified"]),
        unknown_property: UnknownName::NoHits,
        sort_names: Names::of(Matching::LocalNameAnyCase, &["modified"]),
        sort_identifier: Names::of(Matching::LocalNameAnyCase, &["identifier"]),
        unknown_sort: UnknownSort::Ignored,
        order: Order::RandomEachTime,
        ties: Ties::RandomEachTime,
        undated: Undated::Last,
        day_literals: DayLiterals::End,
        ceiling: Some((15_000, super::quirks::CeilingFace::Exception)),
        next: NextRecord::MatchedPlusOne,
        past_end: PastEnd::Buried,
        conversion: Conversion::PageFails,
        queryables: vec!["Identifier", "Title", "Modified"],
        ..Quirks::default()
    }
}

/// deegree 3: POST only, `Wed Jun 28 00:00:00 CEST 2017` in csw:Record.
pub(crate) fn deegree() -> Quirks {
    Quirks {
        csw_stamp: CswStamp::JavaText,
        properties: Names::exactly(&["apiso:Modified", "apiso:modified", "dct:Modified", "Modified", "csw:Modified"]),
        sort_names: Names::exactly(&["apiso:Modified", "apiso:modified", "dct:Modified", "Modified", "csw:Modified"]),
        sort_identifier: Names::exactly(&["apiso:Identifier", "Identifier"]),
        undated: Undated::Last,
        hits: Hits::Right,
        bindings: Bindings::PostOnly,
        validation: Validation::Lenient,
        queryables: vec!["apiso:Modified", "apiso:Title"],
        ..Quirks::default()
    }
}

/// deegree 3 with MaxMatches: the end is told after each full page, and matched grows.
pub(crate) fn deegree_with_max_matches(most: u32) -> Quirks {
    Quirks { page_cap: Some(most), matched: Matched::GrowsWithPage, next: NextRecord::ZeroOnFullPage, ..deegree() }
}

/// Esri Geoportal Server 1.x: change date of the catalogue with an offset, date-times become their month's start.
pub(crate) fn esri1() -> Quirks {
    Quirks {
        page_cap: Some(5_000),
        clock: Clock::Shown,
        shape: StampShape::Offset(120),
        properties: Names::of(Matching::AnyCase, &["dct:modified", "modified"]),
        sort_names: Names::of(Matching::AnyCase, &["dct:modified", "modified"]),
        sort_identifier: Names::of(Matching::AnyCase, &["dc:identifier"]),
        date_times: DateTimes::MonthStart,
        order: Order::NewestFirst,
        validation: Validation::Lenient,
        queryables: vec!["dct:modified", "dc:title"],
        ..Quirks::default()
    }
}

/// Esri geoportal-server-catalog 2 and 3: `>` acts as `>=`, sort by `modified` alone, -1 at the end, 10,000.
pub(crate) fn esri2() -> Quirks {
    Quirks {
        shape: StampShape::Fraction(3),
        properties: Names::exactly(&["dct:modified", "modified"]),
        greater: Greater::Inclusive,
        day_literals: DayLiterals::End,
        sort_names: Names::of(Matching::AnyCase, &["modified"]),
        sort_identifier: Names::none(),
        unknown_sort: UnknownSort::Ignored,
        order: Order::RandomEachTime,
        ties: Ties::RandomStable,
        undated: Undated::Last,
        ceiling: Some((10_000, super::quirks::CeilingFace::Http500)),
        matched: Matched::GarbageForNone("[object Object]".to_owned()),
        next: NextRecord::MinusOneAtEnd,
        hits: Hits::SendsRecords,
        result_type_missing: ResultTypeMissing::Results,
        conversion: Conversion::Sentence,
        validation: Validation::Lenient,
        exception_status: 400,
        queryables: vec!["modified", "title"],
        ..Quirks::default()
    }
}

/// GeoServer CSW: nothing to filter or sort on.
pub(crate) fn geoserver() -> Quirks {
    Quirks {
        properties: Names::none(),
        sort_names: Names::none(),
        sort_identifier: Names::none(),
        queryables: vec!["dc:title", "dct:modified"],
        ..Quirks::default()
    }
}

/// Examind and Constellation: the prefix is cut, the rest must be right; unknown names give no hits.
pub(crate) fn examind() -> Quirks {
    Quirks {
        properties: Names::of(Matching::LocalName, &["Modified"]),
        unknown_property: UnknownName::NoHits,
        sort_names: Names::of(Matching::LocalName, &["Modified"]),
        sort_identifier: Names::of(Matching::LocalName, &["Identifier"]),
        unknown_sort: UnknownSort::Ignored,
        undated: Undated::Last,
        validation: Validation::Lenient,
        queryables: vec!["apiso:Modified"],
        ..Quirks::default()
    }
}

/// MICKA: whole days, pages of 100, gmd by default.
pub(crate) fn micka() -> Quirks {
    Quirks {
        page_cap: Some(100),
        shape: StampShape::Day,
        properties: Names::of(Matching::Containing, &["modified"]),
        sort_names: Names::of(Matching::Containing, &["modified", "date"]),
        result_type_missing: ResultTypeMissing::Results,
        validation: Validation::Lenient,
        schemas: vec![GMD, CSW],
        queryables: vec!["modified", "title"],
        ..Quirks::default()
    }
}

/// terra catalog (con terra): nextRecord is absent; the rest is not known.
pub(crate) fn terra() -> Quirks {
    Quirks {
        properties: Names::exactly(&["apiso:Modified"]),
        sort_names: Names::exactly(&["apiso:Modified"]),
        next: NextRecord::Absent,
        bindings: Bindings::PostOnly,
        queryables: vec!["apiso:Modified"],
        ..Quirks::default()
    }
}
