//! How the model catalogue answers a GetRecords: window, order, page, and the counters as this catalogue writes them.
//!
//! The steps stand in the order in which servers take them: refuse, select, limit, count. Nothing in here is XML.

use std::sync::Arc;

use super::super::quirks::{
    CSW, CeilingFace, Comparison, Conversion, DateTimes, DayLiterals, GMD, Greater, Hits, Matched, NextRecord, NoMatch, Order,
    PastEnd, SortObedience, Ties, UnknownName, UnknownSort,
};
use super::super::stamps::{DAY, has_time, month_start, read, seconds_z};
use super::views::{Arrangement, Key, Wanted, against, mix, shuffle, tied};
use super::{Catalogue, Compare, Condition, Kind, ModelAnswer, ModelRecord, ModelRequest, Operator, Poison, Report};

/// One page's place in the whole, all counts in records.
struct Place {
    start: u64,
    asked: u64,
    total: u64,
    returned: u64,
}

impl Catalogue {
    /// Answers one GetRecords.
    pub(crate) fn answer(&mut self, request: &ModelRequest) -> ModelAnswer {
        self.asked += 1;
        match self.try_answer(request) {
            Ok(answer) => answer,
            Err(report) => ModelAnswer::Report(report),
        }
    }

    fn try_answer(&mut self, request: &ModelRequest) -> Result<ModelAnswer, Report> {
        if !self.quirks.schemas.contains(&request.schema.as_str()) {
            return Err(self.report("InvalidParameterValue", "outputSchema", &format!("{} is not offered", request.schema)));
        }
        if request.start_position < 1 && self.quirks.position_zero_refused {
            return Err(self.report("InvalidParameterValue", "startPosition", "startPosition must be positive"));
        }
        let wanted = self.wanted(request)?;
        let arrangement = self.arrangement(request)?;
        let asked = self.quirks.page_cap.map_or(request.max_records, |cap| request.max_records.min(cap));
        let start = u64::try_from(request.start_position).unwrap_or(1).max(1);
        if let Some(refusal) = self.beyond_ceiling(request, start + u64::from(asked) - 1) {
            return refusal;
        }
        let selected = self.selected(arrangement, wanted);
        Ok(self.page(request, &selected, start, u64::from(asked)))
    }

    fn report(&self, code: &str, locator: &str, text: &str) -> Report {
        Report { code: code.to_owned(), locator: locator.to_owned(), text: text.to_owned(), status: self.quirks.exception_status }
    }

    // What the filter comes to; bounds are read as this catalogue reads them.
    fn wanted(&self, request: &ModelRequest) -> Result<Wanted, Report> {
        if self.quirks.filter_ignored {
            return Ok(Wanted::Everything);
        }
        if let Some(property) = &request.property
            && (request.lower.is_some() || request.upper.is_some())
            && !self.quirks.properties.accepts(property)
        {
            return match self.quirks.unknown_property {
                UnknownName::NoHits => Ok(Wanted::Nothing),
                UnknownName::Ignored => Ok(Wanted::Everything),
                UnknownName::Exception => Err(self.unknown_property(property)),
            };
        }
        if let Some(condition) = &request.also {
            self.check_condition(condition)?;
        }
        let operator = |operator: Operator| match self.quirks.greater {
            Greater::Inclusive => Operator::From,
            Greater::Strict => operator,
        };
        let lower = match &request.lower {
            Some((written, literal)) => {
                let operator = operator(*written);
                let key = if operator == Operator::After { self.day_end(literal)? } else { self.key(literal)? };
                Some((operator, key))
            }
            None => None,
        };
        let upper = request.upper.as_deref().map(|literal| self.day_end(literal)).transpose()?;
        if lower.is_none() && upper.is_none() && request.also.is_none() {
            return Ok(Wanted::Everything);
        }
        Ok(Wanted::Bounds { lower, upper, also: request.also.clone() })
    }

    fn unknown_property(&self, property: &str) -> Report {
        let text = format!("Invalid Constraint: Invalid Filter request: Invalid PropertyName: {property} is not a queryable");
        self.report("InvalidParameterValue", self.quirks.property_locator, &text)
    }

    fn key(&self, literal: &str) -> Result<Key, Report> {
        match self.quirks.date_times {
            DateTimes::EveryDateRefused => {
                let text = format!("JsonParseException: Unexpected character ('-') in {literal}");
                return Err(self.report("NoApplicableCode", "", &text));
            }
            DateTimes::Refused if has_time(literal) => {
                let text = format!("{literal} is not a valid date");
                return Err(self.report("InvalidParameterValue", "constraint", &text));
            }
            _ => {}
        }
        if self.quirks.comparison == Comparison::Text {
            return Ok(Key::Text(literal.to_owned()));
        }
        let Some(at) = read(literal) else {
            return Err(self.report("InvalidParameterValue", "constraint", &format!("{literal:?} cannot be parsed as a date")));
        };
        match self.quirks.date_times {
            DateTimes::MonthStart if has_time(literal) => Ok(Key::Time(month_start(at))),
            _ => Ok(Key::Time(at)),
        }
    }

    // The key of a literal in `>` and `<=`.
    fn day_end(&self, literal: &str) -> Result<Key, Report> {
        match self.key(literal)? {
            Key::Time(at) if self.quirks.day_literals == DayLiterals::End && !has_time(literal) => Ok(Key::Time(at + DAY - 1)),
            key => Ok(key),
        }
    }

    fn check_condition(&self, condition: &Condition) -> Result<(), Report> {
        match condition {
            Condition::All(parts) | Condition::Any(parts) => parts.iter().try_for_each(|part| self.check_condition(part)),
            Condition::Not(part) => self.check_condition(part),
            Condition::Term { property, literal, .. } => {
                if self.quirks.properties.accepts(property) {
                    return self.key(literal).map(|_| ());
                }
                match (is_known(property), self.quirks.unknown_property) {
                    (false, UnknownName::Exception) => Err(self.unknown_property(property)),
                    _ => Ok(()),
                }
            }
        }
    }

    fn matches(&self, record: &ModelRecord, condition: &Condition) -> bool {
        match condition {
            Condition::All(parts) => parts.iter().all(|part| self.matches(record, part)),
            Condition::Any(parts) => parts.iter().any(|part| self.matches(record, part)),
            Condition::Not(part) => !self.matches(record, part),
            Condition::Term { property, compare, literal } => {
                if self.quirks.properties.accepts(property) {
                    let ordering = self.key(literal).ok().and_then(|key| against(record, &key));
                    return ordering.is_some_and(|ordering| holds(*compare, ordering));
                }
                let local = property.rsplit(':').next().unwrap_or_default().to_ascii_lowercase();
                let value = match local.as_str() {
                    "title" | "anytext" => record.title.as_str(),
                    "identifier" => record.identifier.as_deref().unwrap_or_default(),
                    _ => return self.quirks.unknown_property == UnknownName::Ignored,
                };
                match compare {
                    Compare::Like => like(&literal.to_lowercase(), &value.to_lowercase()),
                    other => holds(*other, value.cmp(literal.as_str())),
                }
            }
        }
    }

    fn arrangement(&self, request: &ModelRequest) -> Result<Arrangement, Report> {
        let unsorted = Arrangement::Unsorted(self.quirks.order);
        let Some(name) = &request.sort else { return Ok(unsorted) };
        let by_stamp = self.quirks.sort_names.accepts(name);
        if !by_stamp && !self.quirks.sort_identifier.accepts(name) {
            return match self.quirks.unknown_sort {
                UnknownSort::Ignored => Ok(unsorted),
                UnknownSort::Exception => {
                    let text = format!("Invalid ogc:SortProperty/ogc:PropertyName: Sorting on {name} is not supported");
                    Err(self.report("InvalidParameterValue", "sortby", &text))
                }
            };
        }
        if self.quirks.sort == SortObedience::NotObeyed {
            return Ok(unsorted);
        }
        if !by_stamp {
            return Ok(Arrangement::Identifier(request.descending));
        }
        match &request.sort_then {
            Some(then) if self.quirks.sort_identifier.accepts(then) => Ok(Arrangement::StampThenIdentifier(request.descending)),
            _ => Ok(Arrangement::Stamp(request.descending)),
        }
    }

    // Search engines refuse by position + size, however few match.
    fn beyond_ceiling(&self, request: &ModelRequest, last: u64) -> Option<Result<ModelAnswer, Report>> {
        let (ceiling, face) = self.quirks.ceiling?;
        if request.hits || last <= ceiling {
            return None;
        }
        let text = format!("Result window is too large, from + size must be less than or equal to: [{ceiling}] but was [{last}]");
        match face {
            CeilingFace::Exception => Some(Err(self.report("NoApplicableCode", "", &text))),
            CeilingFace::Http500 => Some(Ok(ModelAnswer::Http { status: 500, body: String::new() })),
            CeilingFace::MatchedPinned | CeilingFace::Silence | CeilingFace::EmptyPage | CeilingFace::NoneMatch => None,
        }
    }

    fn selected(&mut self, arrangement: Arrangement, wanted: Wanted) -> Arc<Vec<u32>> {
        let mut views = std::mem::take(&mut self.views);
        let selected = {
            let matches = |record: &ModelRecord, condition: &Condition| self.matches(record, condition);
            views.select(&self.records, &self.quirks, (self.now, self.seed), (arrangement, wanted), matches)
        };
        self.views = views;
        let draw = mix(self.seed ^ mix(self.asked));
        if arrangement == Arrangement::Unsorted(Order::RandomEachTime) {
            let mut shuffled = selected.to_vec();
            shuffle(&mut shuffled, draw);
            return Arc::new(shuffled);
        }
        if matches!(arrangement, Arrangement::Stamp(_)) && self.quirks.ties == Ties::RandomEachTime {
            let mut shuffled = selected.to_vec();
            let same = |left: &u32, right: &u32| {
                tied(&self.records[*left as usize], &self.records[*right as usize], self.quirks.comparison)
            };
            for ties in shuffled.chunk_by_mut(same) {
                shuffle(ties, draw);
            }
            return Arc::new(shuffled);
        }
        selected
    }

    fn page(&self, request: &ModelRequest, selected: &[u32], start: u64, asked: u64) -> ModelAnswer {
        let count = selected.len() as u64;
        let (total, within_reach) = match self.quirks.ceiling {
            Some((ceiling, CeilingFace::MatchedPinned)) => (ceiling.min(count), ceiling.min(count)),
            Some((ceiling, CeilingFace::Silence)) => (count, ceiling.min(count)),
            Some((ceiling, CeilingFace::EmptyPage)) if start > ceiling => (count, 0),
            Some((ceiling, CeilingFace::NoneMatch)) if start > ceiling => (0, 0),
            _ => (count, count),
        };
        let mut place = Place { start, asked, total, returned: 0 };
        if request.hits && self.quirks.hits != Hits::SendsRecords {
            return self.count_only(&mut place);
        }
        if start > within_reach {
            return self.past_the_end(selected, &place);
        }
        let end = within_reach.min(start - 1 + asked);
        let chosen = &selected[(start - 1) as usize..end as usize];
        let records: Vec<Arc<ModelRecord>> = chosen.iter().map(|index| Arc::clone(&self.records[*index as usize])).collect();
        if let Some(failure) = records.iter().find_map(|record| self.failure(record, &request.schema)) {
            return failure;
        }
        place.returned = records.len() as u64;
        let next = self.next_record(&place);
        self.results(self.matched(&place), Some(place.returned), next, records)
    }

    fn results(
        &self,
        matched: Option<String>,
        returned: Option<u64>,
        next: Option<i64>,
        records: Vec<Arc<ModelRecord>>,
    ) -> ModelAnswer {
        ModelAnswer::Results { matched, returned, next, records, timestamp: seconds_z(self.now) }
    }

    /// Why a page (or a GetRecordById) with this record in this schema fails, if it does.
    pub(crate) fn failure(&self, record: &ModelRecord, schema: &str) -> Option<ModelAnswer> {
        match &record.poison {
            Some(Poison::Exception(text)) => return Some(ModelAnswer::Report(self.report("NoApplicableCode", "", text))),
            Some(Poison::Http(status)) => return Some(ModelAnswer::Http { status: *status, body: String::new() }),
            None => {}
        }
        let native = match record.kind {
            Kind::Csw => schema == CSW,
            Kind::Iso => schema == GMD || schema == CSW,
        };
        if native || self.quirks.conversion != Conversion::PageFails {
            return None;
        }
        let identifier = record.identifier.as_deref().unwrap_or("none");
        let text = format!("code=InvalidParameterValue, locator=OutputSchema, {schema} not supported for metadata {identifier}");
        Some(ModelAnswer::Report(self.report("NoApplicableCode", "", &text)))
    }

    fn count_only(&self, place: &mut Place) -> ModelAnswer {
        let first = if place.total == 0 { 0 } else { 1 };
        match self.quirks.hits {
            Hits::MatchedOnly => self.results(self.matched(place), None, None, Vec::new()),
            Hits::ClaimsPage => {
                place.returned = place.asked.min(place.total);
                self.results(self.matched(place), Some(place.returned), self.next_record(place), Vec::new())
            }
            Hits::Right | Hits::SendsRecords => {
                // The page's size is all that such a catalogue counts.
                place.returned = place.asked.min(place.total);
                self.results(self.matched(place), Some(0), Some(first), Vec::new())
            }
        }
    }

    fn past_the_end(&self, selected: &[u32], place: &Place) -> ModelAnswer {
        let empty = |next| self.results(self.matched(place), Some(0), next, Vec::new());
        if self.quirks.next == NextRecord::OneMore {
            if let (PastEnd::LastAgain, Some(last)) = (self.quirks.past_end, selected.last()) {
                let records = vec![Arc::clone(&self.records[*last as usize])];
                return self.results(self.matched(place), Some(1), Some(place.start as i64 + 1), records);
            }
            return empty(Some(place.start as i64 + 1));
        }
        if place.total == 0 && (self.quirks.no_match == NoMatch::Empty) {
            return empty(self.at_end(0));
        }
        let text = format!("Start position ({}) can't be greater than number of matches ({}).", place.start, place.total);
        match self.quirks.past_end {
            PastEnd::EmptyNextOne => empty(Some(1)),
            PastEnd::EmptyNextZero => empty(self.at_end(place.total)),
            PastEnd::Exception => ModelAnswer::Report(self.report("InvalidParameterValue", "startPosition", &text)),
            PastEnd::Buried => {
                let text = format!("java.lang.RuntimeException: {text} code=InvalidParameterValue, locator=startPosition");
                ModelAnswer::Report(self.report("NoApplicableCode", "", &text))
            }
            PastEnd::LastAgain => match selected.last() {
                Some(last) => {
                    let records = vec![Arc::clone(&self.records[*last as usize])];
                    self.results(self.matched(place), Some(1), self.at_end(place.total), records)
                }
                None => empty(self.at_end(0)),
            },
        }
    }

    fn matched(&self, place: &Place) -> Option<String> {
        let number = match &self.quirks.matched {
            Matched::Absent => return None,
            Matched::Garbage(text) => return Some(text.clone()),
            Matched::GarbageForNone(text) if place.total == 0 => return Some(text.clone()),
            Matched::True | Matched::GarbageForNone(_) => place.total,
            Matched::PageSize => place.returned,
            Matched::Pinned(most) => place.total.min(*most),
            Matched::TooMany(more) => place.total + more,
            Matched::GrowsWithPage => place.start - 1 + place.returned,
        };
        Some(number.to_string())
    }

    fn next_record(&self, place: &Place) -> Option<i64> {
        let next = place.start + place.returned;
        if self.quirks.next == NextRecord::OneMore {
            return Some(next as i64);
        }
        let too_early = match self.quirks.next {
            NextRecord::ZeroTooEarly => next == place.total,
            NextRecord::ZeroOnFullPage => place.returned == place.asked,
            _ => false,
        };
        if self.quirks.next == NextRecord::Absent {
            return None;
        }
        if next > place.total || too_early {
            return self.at_end(place.total);
        }
        Some(next as i64)
    }

    fn at_end(&self, total: u64) -> Option<i64> {
        match self.quirks.next {
            NextRecord::Absent => None,
            NextRecord::MinusOneAtEnd => Some(-1),
            NextRecord::MatchedPlusOne if total > 0 => Some(total as i64 + 1),
            _ => Some(0),
        }
    }
}

fn is_known(property: &str) -> bool {
    let local = property.rsplit(':').next().unwrap_or_default().to_ascii_lowercase();
    matches!(local.as_str(), "title" | "anytext" | "identifier")
}

fn holds(compare: Compare, ordering: std::cmp::Ordering) -> bool {
    match compare {
        Compare::Equal | Compare::Like => ordering.is_eq(),
        Compare::NotEqual => ordering.is_ne(),
        Compare::Less => ordering.is_lt(),
        Compare::LessOrEqual => ordering.is_le(),
        Compare::Greater => ordering.is_gt(),
        Compare::GreaterOrEqual => ordering.is_ge(),
    }
}

// Backtracks over the last wildcard only, which is enough for one that takes any length.
fn like(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut from) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while from < text.len() {
        match pattern.get(at) {
            Some('%' | '*') => {
                retry = Some((at + 1, from));
                at += 1;
            }
            Some(character) if matches!(character, '_' | '?') || *character == text[from] => {
                at += 1;
                from += 1;
            }
            _ => {
                let Some((pattern_at, text_at)) = retry else { return false };
                retry = Some((pattern_at, text_at + 1));
                at = pattern_at;
                from = text_at + 1;
            }
        }
    }
    pattern[at..].iter().all(|character| matches!(character, '%' | '*'))
}
