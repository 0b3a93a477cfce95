//! Requests as they come over the wire, CSW 2.0.2 and 3.0.0: POST bodies by namespace, GET parameters, and the CQL of both.
//!
//! Validates like pycsw does against the schemas (order of elements, attributes, positive positions) unless the catalogue is lenient.
//! What is understood becomes a `ModelRequest`; it answers nothing.

#[path = "cql.rs"]
mod cql;

use super::model::{Compare, Condition, ElementSet, ModelRequest, Operator, Report};
use super::quirks::{CSW, CSW_300, KvpFilters, Quirks, ResultTypeMissing, Validation};
use super::tree::{Element, parse};

const OGC: &str = "http://www.opengis.net/ogc";
const FES: &str = "http://www.opengis.net/fes/2.0";

/// The names of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tongue {
    number: &'static str,
    csw: &'static str,
    filter: &'static str,
    /// The element that holds a property's name.
    reference: &'static str,
}

const V202: Tongue = Tongue { number: "2.0.2", csw: CSW, filter: OGC, reference: "PropertyName" };
const V300: Tongue = Tongue { number: "3.0.0", csw: CSW_300, filter: FES, reference: "ValueReference" };

// csw:Record goes by the namespace of each version; the model knows one.
fn schema(tongue: Tongue, named: Option<&str>) -> String {
    match named {
        None => CSW.to_owned(),
        Some(named) if named == tongue.csw => CSW.to_owned(),
        Some(CSW | CSW_300) => "the other version's csw:Record".to_owned(),
        Some(other) => other.to_owned(),
    }
}

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::enum_variant_names, reason = "the protocol's own names")]
pub(crate) enum Operation {
    GetCapabilities,
    GetRecords(ModelRequest),
    GetRecordById { identifiers: Vec<String>, schema: String, element_set: ElementSet },
}

/// The query part of a url, names in lower case, values decoded.
pub(crate) fn parameters(target: &str) -> Vec<(String, String)> {
    let query = target.split_once('?').map_or("", |(_, query)| query);
    let pair = |part: &str| {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        (percent_decoded(name).to_ascii_lowercase(), percent_decoded(value))
    };
    query.split('&').filter(|part| !part.is_empty()).map(pair).collect()
}

/// Reads a GET.
pub(crate) fn from_target(target: &str, quirks: &Quirks) -> Result<Operation, Report> {
    let parameters = parameters(target);
    let of = |name: &str| parameters.iter().find(|(held, _)| held == name).map(|(_, value)| value.as_str());
    if !of("service").is_none_or(|service| service.eq_ignore_ascii_case("CSW")) {
        return Err(refusal(quirks, "InvalidParameterValue", "service", "service must be CSW"));
    }
    let tongue = check_version(quirks, of("version"), of("acceptversions"))?;
    match of("request").map(str::to_ascii_lowercase).as_deref() {
        None | Some("getcapabilities") => Ok(Operation::GetCapabilities),
        Some("getrecords") => get_records_kvp(&of, tongue, quirks).map(Operation::GetRecords),
        Some("getrecordbyid") => Ok(Operation::GetRecordById {
            identifiers: of("id").unwrap_or_default().split(',').map(str::to_owned).collect(),
            schema: of("outputschema").unwrap_or(CSW).to_owned(),
            element_set: element_set(quirks, of("elementsetname").unwrap_or("summary"))?,
        }),
        Some(other) => Err(refusal(quirks, "OperationNotSupported", "request", &format!("{other} is not an operation"))),
    }
}

/// Reads the body of a POST.
pub(crate) fn from_body(body: &str, quirks: &Quirks) -> Result<Operation, Report> {
    let root = parse(body).map_err(|error| invalid(quirks, &error))?;
    let tongue = if body.contains(CSW) { V202 } else { V300 };
    // pycsw takes a body that names the older namespace anywhere for one of that version.
    if root.namespace != tongue.csw {
        return Err(invalid(quirks, &format!("No matching global declaration for {} in {}", root.local, root.namespace)));
    }
    if !quirks.versions.speaks(tongue.number) {
        return Err(invalid(quirks, &format!("root element {} is not in a namespace that is spoken", root.local)));
    }
    if root.attribute("service").is_some_and(|service| service != "CSW") {
        return Err(refusal(quirks, "InvalidParameterValue", "service", "service must be CSW"));
    }
    match root.local.as_str() {
        "GetCapabilities" => Ok(Operation::GetCapabilities),
        "GetRecords" => {
            let request = get_records(&root, tongue, quirks)?;
            check_prefixes(&request, body, quirks)?;
            Ok(Operation::GetRecords(request))
        }
        "GetRecordById" => get_record_by_id(&root, quirks),
        other => Err(refusal(quirks, "OperationNotSupported", "request", &format!("{other} is not an operation"))),
    }
}

fn refusal(quirks: &Quirks, code: &str, locator: &str, text: &str) -> Report {
    Report { code: code.to_owned(), locator: locator.to_owned(), text: text.to_owned(), status: quirks.exception_status }
}

fn invalid(quirks: &Quirks, why: &str) -> Report {
    refusal(quirks, "NoApplicableCode", "service", &format!("Exception: the document is not valid.\nError: {why}."))
}

// Of the versions accepted the first that is spoken; without any, what the catalogue answers unasked.
fn check_version(quirks: &Quirks, version: Option<&str>, accepted: Option<&str>) -> Result<Tongue, Report> {
    let tongue = |number: &str| if number == V300.number { V300 } else { V202 };
    if let Some(accepted) = accepted {
        let spoken = accepted.split(',').map(str::trim).find(|version| quirks.versions.speaks(version));
        return spoken.map(tongue).ok_or_else(|| {
            let text = format!("only {:?} are spoken", quirks.versions.numbers());
            refusal(quirks, "VersionNegotiationFailed", "acceptversions", &text)
        });
    }
    match version {
        None | Some("") => Ok(tongue(quirks.versions.numbers()[0])),
        Some(version) if quirks.versions.speaks(version) => Ok(tongue(version)),
        Some(other) => Err(refusal(quirks, "InvalidParameterValue", "version", &format!("version {other} is not spoken"))),
    }
}

fn element_set(quirks: &Quirks, name: &str) -> Result<ElementSet, Report> {
    match name.trim() {
        "brief" => Ok(ElementSet::Brief),
        "summary" => Ok(ElementSet::Summary),
        "full" => Ok(ElementSet::Full),
        other => Err(refusal(quirks, "InvalidParameterValue", "ElementSetName", &format!("{other:?} is no element set"))),
    }
}

fn is_hits(quirks: &Quirks, result_type: Option<&str>) -> Result<bool, Report> {
    match result_type {
        Some("results") => Ok(false),
        Some("hits") => Ok(true),
        None => Ok(quirks.result_type_missing == ResultTypeMissing::Hits),
        Some(other) => Err(refusal(quirks, "InvalidParameterValue", "resultType", &format!("{other:?} is no result type"))),
    }
}

fn number(quirks: &Quirks, name: &str, value: Option<&str>, default: i64) -> Result<i64, Report> {
    let Some(value) = value else { return Ok(default) };
    value.parse().map_err(|_| refusal(quirks, "InvalidParameterValue", name, &format!("{value:?} is not a number")))
}

fn check_type_names(quirks: &Quirks, names: Option<&str>) -> Result<(), Report> {
    let names = names.ok_or_else(|| invalid(quirks, "The attribute 'typeNames' is required but missing"))?;
    let known = |name: &str| matches!(name.rsplit(':').next(), Some("Record" | "MD_Metadata"));
    let refused = |name: &str| name.rsplit(':').next().is_some_and(|local| quirks.type_names_refused.contains(&local));
    if names.split([' ', ',']).all(|name| known(name) && !refused(name)) {
        return Ok(());
    }
    Err(refusal(quirks, "InvalidParameterValue", "typeNames", &format!("{names:?} is not offered")))
}

fn get_records(root: &Element, tongue: Tongue, quirks: &Quirks) -> Result<ModelRequest, Report> {
    let strict = quirks.validation == Validation::Strict;
    const ALLOWED: [&str; 7] = ["service", "version", "outputFormat", "outputSchema", "startPosition", "maxRecords", "requestId"];
    let allowed = |name: &str| ALLOWED.contains(&name) || (name == "resultType" && tongue == V202);
    let unknown = root.attributes.keys().find(|name| !allowed(name) && !name.starts_with("xsi:"));
    if let (true, Some(unknown)) = (strict, unknown) {
        return Err(invalid(quirks, &format!("The attribute '{unknown}' is not allowed")));
    }
    if root.attribute("service").is_none() || root.attribute("version") != Some(tongue.number) {
        return Err(invalid(quirks, &format!("service=\"CSW\" version=\"{}\" is required", tongue.number)));
    }
    let start_position = number(quirks, "startPosition", root.attribute("startPosition"), 1)?;
    let max_records = number(quirks, "maxRecords", root.attribute("maxRecords"), 10)?;
    if strict && (start_position < 1 || max_records < 0) {
        return Err(invalid(quirks, "startPosition and maxRecords must be positive"));
    }
    let query =
        root.children.iter().find(|child| child.is(tongue.csw, "Query")).ok_or_else(|| invalid(quirks, "Query is missing"))?;
    check_type_names(quirks, query.attribute("typeNames"))?;
    if strict {
        check_order(query, tongue, quirks)?;
    }
    let mut request = ModelRequest {
        start_position,
        max_records: u32::try_from(max_records).unwrap_or(0),
        hits: is_hits_in(tongue, quirks, root.attribute("resultType"), max_records)?,
        schema: schema(tongue, root.attribute("outputSchema")),
        version: tongue.number,
        ..ModelRequest::page(1, 10)
    };
    request.element_set = match query.child("ElementSetName") {
        Some(name) => element_set(quirks, &name.text)?,
        None => ElementSet::Summary,
    };
    if let Some(constraint) = query.child("Constraint") {
        set_conditions(&mut request, constraint_of(constraint, tongue, quirks)?);
    }
    if let Some(sort) = query.children.iter().find(|child| child.is(tongue.filter, "SortBy")) {
        set_sort(&mut request, sort, tongue);
    }
    hide_others(&mut request, query.attribute("typeNames"), quirks);
    Ok(request)
}

// 3.0.0 has no resultType: no records are asked for where only their number is.
fn is_hits_in(tongue: Tongue, quirks: &Quirks, result_type: Option<&str>, max_records: i64) -> Result<bool, Report> {
    match tongue {
        V300 => Ok(max_records == 0),
        _ => is_hits(quirks, result_type),
    }
}

// csw:QueryType: a sequence of (ElementSetName | ElementName+), Constraint?, SortBy?.
fn check_order(query: &Element, tongue: Tongue, quirks: &Quirks) -> Result<(), Report> {
    let rank = |child: &Element| match child.local.as_str() {
        "ElementSetName" | "ElementName" if child.namespace == tongue.csw => Some(0),
        "Constraint" if child.namespace == tongue.csw => Some(1),
        "SortBy" if child.namespace == tongue.filter => Some(2),
        _ => None,
    };
    let mut last = -1;
    for child in &query.children {
        let rank = rank(child).ok_or_else(|| invalid(quirks, &format!("Element '{}': not expected", child.local)))?;
        if rank < last || (rank == last && rank > 0) {
            return Err(invalid(quirks, &format!("Element '{}': not expected here", child.local)));
        }
        last = rank;
    }
    let first = query.children.first().map(|child| child.local.as_str());
    if !matches!(first, Some("ElementSetName" | "ElementName")) {
        return Err(invalid(quirks, "ElementSetName is missing"));
    }
    let constraint = query.child("Constraint");
    if constraint.is_some_and(|constraint| constraint.attribute("version").is_none()) {
        return Err(invalid(quirks, "The attribute 'version' of Constraint is required but missing"));
    }
    Ok(())
}

// No condition of none holds.
fn hide_others(request: &mut ModelRequest, type_names: Option<&str>, quirks: &Quirks) {
    let local = type_names.and_then(|names| names.rsplit(':').next()).unwrap_or_default();
    if quirks.type_names_empty.contains(&local) {
        request.also = Some(Condition::Any(Vec::new()));
    }
}

// deegree looks property names up by namespace, so that each prefix in one must be declared.
fn check_prefixes(request: &ModelRequest, body: &str, quirks: &Quirks) -> Result<(), Report> {
    for name in [&request.property, &request.sort, &request.sort_then].into_iter().flatten() {
        let Some((prefix, _)) = name.split_once(':') else { continue };
        if !body.contains(&format!("xmlns:{prefix}=")) {
            return Err(invalid(quirks, &format!("the prefix of {name} is not declared")));
        }
    }
    Ok(())
}

fn set_sort(request: &mut ModelRequest, sort: &Element, tongue: Tongue) {
    let property = |element: &&Element| element.is(tongue.filter, "SortProperty");
    let name = |element: &Element| element.child(tongue.reference).map(|name| name.text.clone());
    let mut properties = sort.children.iter().filter(property);
    let Some(first) = properties.next() else { return };
    request.sort = name(first);
    request.descending = first.child("SortOrder").is_some_and(|order| order.text.trim() == "DESC");
    request.sort_then = properties.next().and_then(name);
}

fn constraint_of(constraint: &Element, tongue: Tongue, quirks: &Quirks) -> Result<Vec<Condition>, Report> {
    let lenient = quirks.validation == Validation::Lenient;
    match constraint.children.first() {
        Some(filter) if filter.is(tongue.filter, "Filter") => {
            let parts = filter.children.iter().map(|child| condition(child, tongue, quirks));
            parts.collect()
        }
        Some(text) if text.is(tongue.csw, "CqlText") => Ok(vec![cql::parse(&text.text).map_err(|why| bad_cql(quirks, &why))?]),
        // Esri Geoportal 1 passes over a filter in another namespace, and everything comes.
        _ if lenient => Ok(Vec::new()),
        _ => Err(invalid(quirks, "Constraint holds neither ogc:Filter nor csw:CqlText")),
    }
}

fn bad_cql(quirks: &Quirks, why: &str) -> Report {
    refusal(quirks, "InvalidParameterValue", "constraint", &format!("Invalid CQL: {why}"))
}

fn condition(element: &Element, tongue: Tongue, quirks: &Quirks) -> Result<Condition, Report> {
    if element.namespace != tongue.filter {
        return Err(invalid(quirks, &format!("Element '{}' is not in {}", element.local, tongue.filter)));
    }
    let parts = || element.children.iter().map(|child| condition(child, tongue, quirks)).collect::<Result<Vec<_>, _>>();
    match element.local.as_str() {
        "And" => return parts().map(Condition::All),
        "Or" => return parts().map(Condition::Any),
        "Not" => {
            let part = element.children.first().ok_or_else(|| invalid(quirks, "Not is empty"))?;
            return Ok(Condition::Not(Box::new(condition(part, tongue, quirks)?)));
        }
        "PropertyIsBetween" => {
            let lower = term(element, element.child("LowerBoundary"), Compare::GreaterOrEqual, tongue, quirks)?;
            let upper = term(element, element.child("UpperBoundary"), Compare::LessOrEqual, tongue, quirks)?;
            return Ok(Condition::All(vec![lower, upper]));
        }
        _ => {}
    }
    let compare = match element.local.as_str() {
        "PropertyIsEqualTo" => Compare::Equal,
        "PropertyIsNotEqualTo" => Compare::NotEqual,
        "PropertyIsLessThan" => Compare::Less,
        "PropertyIsLessThanOrEqualTo" => Compare::LessOrEqual,
        "PropertyIsGreaterThan" => Compare::Greater,
        "PropertyIsGreaterThanOrEqualTo" => Compare::GreaterOrEqual,
        "PropertyIsLike" => Compare::Like,
        other => return Err(refusal(quirks, "InvalidParameterValue", "constraint", &format!("Operator {other} not supported"))),
    };
    term(element, Some(element), compare, tongue, quirks)
}

fn term(
    element: &Element,
    holder: Option<&Element>,
    compare: Compare,
    tongue: Tongue,
    quirks: &Quirks,
) -> Result<Condition, Report> {
    let missing = || invalid(quirks, &format!("{} is missing", tongue.reference));
    let property = element.child(tongue.reference).ok_or_else(missing)?;
    let literal = holder.and_then(|holder| holder.child("Literal")).ok_or_else(|| invalid(quirks, "Literal is missing"))?;
    let blank = |text: &str| text.trim() != text;
    if quirks.validation == Validation::Strict && (blank(&property.text) || blank(&literal.text)) {
        return Err(invalid(quirks, "blanks around a PropertyName or a Literal are compared as they are"));
    }
    Ok(Condition::Term { property: property.text.clone(), compare, literal: literal.text.clone() })
}

// The first lower and the first upper bound of one property become the window; the rest stays a condition.
fn set_conditions(request: &mut ModelRequest, conditions: Vec<Condition>) {
    let mut rest = Vec::new();
    let mut open = conditions;
    while !open.is_empty() {
        let part = open.remove(0);
        match part {
            Condition::All(parts) => drop(open.splice(0..0, parts)),
            Condition::Term { property, compare, literal } if fits(request, &property, compare) => {
                match compare {
                    Compare::Greater => request.lower = Some((Operator::After, literal)),
                    Compare::GreaterOrEqual => request.lower = Some((Operator::From, literal)),
                    _ => request.upper = Some(literal),
                }
                request.property = Some(property);
            }
            other => rest.push(other),
        }
    }
    request.also = match rest.len() {
        0 => None,
        1 => rest.pop(),
        _ => Some(Condition::All(rest)),
    };
}

fn fits(request: &ModelRequest, property: &str, compare: Compare) -> bool {
    let same = request.property.as_deref().is_none_or(|held| held == property);
    match compare {
        Compare::Greater | Compare::GreaterOrEqual => same && request.lower.is_none(),
        Compare::LessOrEqual => same && request.upper.is_none(),
        _ => false,
    }
}

fn get_record_by_id(root: &Element, quirks: &Quirks) -> Result<Operation, Report> {
    let identifiers: Vec<String> =
        root.children.iter().filter(|child| child.is(CSW, "Id")).map(|child| child.text.clone()).collect();
    if identifiers.is_empty() {
        return Err(invalid(quirks, "Id is missing"));
    }
    let set = root.child("ElementSetName").map_or("summary", |name| name.text.as_str());
    Ok(Operation::GetRecordById {
        identifiers,
        schema: root.attribute("outputSchema").unwrap_or(CSW).to_owned(),
        element_set: element_set(quirks, set)?,
    })
}

fn get_records_kvp<'a>(of: &impl Fn(&str) -> Option<&'a str>, tongue: Tongue, quirks: &Quirks) -> Result<ModelRequest, Report> {
    check_type_names(quirks, of("typenames"))?;
    let max_records = number(quirks, "maxrecords", of("maxrecords"), 10)?;
    let mut request = ModelRequest {
        start_position: number(quirks, "startposition", of("startposition"), 1)?,
        max_records: u32::try_from(max_records).unwrap_or(0),
        hits: is_hits_in(tongue, quirks, of("resulttype"), max_records)?,
        schema: schema(tongue, of("outputschema")),
        element_set: element_set(quirks, of("elementsetname").unwrap_or("summary"))?,
        version: tongue.number,
        ..ModelRequest::page(1, 10)
    };
    if let Some(constraint) = of("constraint") {
        let conditions = match of("constraintlanguage").map(str::to_ascii_uppercase).as_deref() {
            Some("FILTER") if quirks.kvp_filters == KvpFilters::CqlOnly => {
                let text = "Invalid Filter query: only CQL_TEXT is understood";
                return Err(refusal(quirks, "InvalidParameterValue", "constraintlanguage", text));
            }
            Some("FILTER") => {
                let tongue = if quirks.kvp_filters == KvpFilters::Filter11 { V202 } else { tongue };
                filter_kvp(constraint, tongue, quirks)?
            }
            Some("CQL_TEXT") => vec![cql::parse(constraint).map_err(|why| bad_cql(quirks, &why))?],
            _ => return Err(refusal(quirks, "MissingParameterValue", "constraintlanguage", "CQL_TEXT or FILTER")),
        };
        set_conditions(&mut request, conditions);
    }
    hide_others(&mut request, of("typenames"), quirks);
    if let Some(sort) = of("sortby") {
        let mut keys = sort.split(',');
        let (name, descending) = sort_key(quirks, keys.next().unwrap_or_default())?;
        request.sort = Some(name);
        request.descending = descending;
        request.sort_then = keys.next().map(|key| sort_key(quirks, key)).transpose()?.map(|(name, _)| name);
    }
    Ok(request)
}

fn filter_kvp(constraint: &str, tongue: Tongue, quirks: &Quirks) -> Result<Vec<Condition>, Report> {
    let filter = parse(constraint).map_err(|error| invalid(quirks, &error))?;
    if !filter.is(tongue.filter, "Filter") {
        return Err(invalid(quirks, &format!("the constraint is no Filter in {}", tongue.filter)));
    }
    filter.children.iter().map(|child| condition(child, tongue, quirks)).collect()
}

// `dct:modified:A`: what follows the last colon is the order, and must be there (pycsw).
fn sort_key(quirks: &Quirks, key: &str) -> Result<(String, bool), Report> {
    let wrong = || refusal(quirks, "InvalidParameterValue", "sortby", &format!("Invalid SortBy propertyname: {key}"));
    let (name, order) = key.rsplit_once(':').ok_or_else(wrong)?;
    match order.to_ascii_uppercase().as_str() {
        "A" | "ASC" => Ok((name.to_owned(), false)),
        "D" | "DESC" => Ok((name.to_owned(), true)),
        _ => Err(wrong()),
    }
}

/// `%41` and `+` taken back; what is no UTF-8 afterwards is replaced.
pub(crate) fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        let hex = tail.get(..2).and_then(|pair| std::str::from_utf8(pair).ok());
        match (first, hex.and_then(|pair| u8::from_str_radix(pair, 16).ok())) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            (b'+', _) => bytes.push(b' '),
            _ => bytes.push(*first),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
