//! Requests as text: body or url of a GetRecords, the url of a GetCapabilities, and the url that a user typed made clean.
//!
//! CSW 2.0.2 (OGC 07-006r1) and 3.0.0 (OGC 12-176r7), in the order and with the attributes that their schemas ask for: pycsw
//! validates. Which phrasing a catalogue understands is for `dialect.rs` to find out, and sending is for `http.rs`. Nothing in here
//! shows a password.

use std::fmt::Write as _;
use std::net::Ipv6Addr;

use quick_xml::escape::escape;

use crate::csw::user_filter::{self, Constraint, OurPart, UserFilter};
use crate::csw::{
    CSW_202, CSW_300, ConstraintLanguage, DC, DCT, FES, GCO, GMD, MDB, OGC, OWS, OWS_20, OutputSchema, Query, ResultType,
    SortOrder, Version, filter,
};

/// Prefixes that catalogues and users put before names, and what they stand for.
const PREFIXES: [(&str, &str); 10] = [
    ("dc", DC),
    ("dct", DCT),
    ("dcterms", DCT),
    ("gmd", GMD),
    ("gco", GCO),
    ("apiso", "http://www.opengis.net/cat/csw/apiso/1.0"),
    ("srv", "http://www.isotc211.org/2005/srv"),
    ("gmx", "http://www.isotc211.org/2005/gmx"),
    ("gml", "http://www.opengis.net/gml"),
    ("mdb", MDB),
];
/// Those of the protocol itself in 2.0.2.
const PREFIXES_202: [(&str, &str); 3] = [("csw", CSW_202), ("ogc", OGC), ("ows", OWS)];
/// And in 3.0.0.
const PREFIXES_300: [(&str, &str); 4] = [("csw30", CSW_300), ("fes", FES), ("csw", CSW_300), ("ows", OWS_20)];
/// Version of the language of constraints; pycsw's schemas and the examples of OGC 12-176r7 have it in 3.0.0 too.
const CONSTRAINT_VERSION: &str = "1.1.0";

/// Parameters that CSW 2.0.2 and 3.0.0 know, in lower case; what else stands in a url is the vendor's.
const OWN_PARAMETERS: [&str; 27] = [
    "service",
    "request",
    "version",
    "acceptversions",
    "acceptformats",
    "acceptlanguages",
    "sections",
    "updatesequence",
    "namespace",
    "resulttype",
    "requestid",
    "outputformat",
    "outputschema",
    "schemalanguage",
    "startposition",
    "maxrecords",
    "typename",
    "typenames",
    "elementname",
    "elementsetname",
    "constraint",
    "constraintlanguage",
    "constraint_language_version",
    "sortby",
    "distributedsearch",
    "hopcount",
    "responsehandler",
];

/// Longest url taken.
const URL_BYTES_MAX: usize = 4_096;

/// `typeNames`: what is queried, whatever the output schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TypeName {
    /// `csw:Record`, which every catalogue must know. Esri's refuse any other (RNDT with 400), pycsw selects the same rows by both.
    #[default]
    Record,
    /// `gmd:MD_Metadata`, for catalogues that keep ISO records apart: GeoServer looks only into the store of the type named.
    Metadata,
}

impl TypeName {
    /// As it stands in requests.
    #[must_use]
    pub const fn as_str(self, version: Version) -> &'static str {
        match (self, version) {
            (TypeName::Record, Version::V202) => "csw:Record",
            (TypeName::Record, Version::V300) => "csw30:Record",
            (TypeName::Metadata, _) => "gmd:MD_Metadata",
        }
    }
}

/// What a dialect adds to a [`Query`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phrasing<'a> {
    /// The version spoken.
    pub version: Version,
    /// In which language the filter is written by GET.
    pub language: ConstraintLanguage,
    /// The queryable to filter by. Without one no filter is sent, whatever the window.
    pub property: Option<&'a str>,
    /// The property to sort by, ascending. Without one no order is asked for.
    pub sort: Option<&'a str>,
    /// `outputSchema`.
    pub schema: &'a OutputSchema,
    /// `typeNames`.
    pub type_name: TypeName,
    /// The user's own filter, which holds in every request.
    pub user_filter: Option<&'a UserFilter>,
}

/// A url as it is requested and kept, and the credentials that stood in it.
#[derive(Clone, PartialEq, Eq)]
pub struct CleanUrl {
    /// Without credentials, fragment and parameters of CSW.
    pub url: String,
    /// User and password, percent-decoded.
    pub user: Option<(String, String)>,
}

impl std::fmt::Debug for CleanUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let user = self.user.as_ref().map(|_| "...");
        f.debug_struct("CleanUrl").field("url", &self.url).field("user", &user).finish()
    }
}

/// The body of a GetRecords by POST.
///
/// Prefixes of the property, the sort property and the type name are declared where this project knows what they stand for.
#[must_use]
pub fn get_records_body(query: &Query, phrasing: &Phrasing<'_>) -> String {
    let version = phrasing.version;
    let csw = prefix(version);
    let type_name = phrasing.type_name.as_str(version);
    let ours = OurPart { language: ConstraintLanguage::Filter, ..our_part(query, phrasing, "") };
    let constraint = match user_filter::constraint(phrasing.user_filter, &ours) {
        None => String::new(),
        Some(Constraint { language: ConstraintLanguage::Filter, text }) => text,
        Some(Constraint { language: ConstraintLanguage::CqlText, text }) => {
            format!("<{csw}:CqlText>{}</{csw}:CqlText>", escape(text.as_str()))
        }
    };
    let constraint = match constraint.as_str() {
        "" => String::new(),
        text => format!("<{csw}:Constraint version=\"{CONSTRAINT_VERSION}\">{text}</{csw}:Constraint>"),
    };
    let sort_by = phrasing.sort.map(|name| sort_by(version, name, query.sort_order)).unwrap_or_default();
    let result_type = match version {
        Version::V202 => format!(" resultType=\"{}\"", result_type(query.result_type)),
        Version::V300 => String::new(),
    };
    let (own, filters) = (format!("{csw}:"), format!("{}:", filter::prefix(version)));
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <{csw}:GetRecords{} service=\"CSW\" version=\"{}\"{result_type} outputFormat=\"application/xml\" \
         outputSchema=\"{}\" startPosition=\"{}\" maxRecords=\"{}\">\
         <{csw}:Query typeNames=\"{type_name}\"><{csw}:ElementSetName>{}</{csw}:ElementSetName>{constraint}{sort_by}</{csw}:Query>\
         </{csw}:GetRecords>",
        declarations(version, &[Some(&own), Some(&filters), Some(type_name), phrasing.property, phrasing.sort, identifier(query)]),
        version.as_str(),
        escape(phrasing.schema.in_version(version)),
        query.start_position,
        max_records(query, version),
        query.element_set.as_str(),
    )
}

/// The url of a GetRecords by GET, with the parameters of `base` kept.
#[must_use]
pub fn get_records_url(base: &str, query: &Query, phrasing: &Phrasing<'_>) -> String {
    let version = phrasing.version;
    let type_name = phrasing.type_name.as_str(version);
    let (start_position, max_records) = (query.start_position.to_string(), max_records(query, version).to_string());
    let namespaces = xmlns(version, &[Some(type_name), phrasing.property, phrasing.sort, identifier(query)]);
    let filters = format!("{}:", filter::prefix(version));
    let declarations = declarations(version, &[Some(&filters), phrasing.property, identifier(query)]);
    let constraint = user_filter::constraint(phrasing.user_filter, &our_part(query, phrasing, &declarations));
    let sort = phrasing.sort.map(|name| match query.sort_order {
        SortOrder::Ascending => format!("{}:A", name.trim()),
        SortOrder::Descending => format!("{}:D", name.trim()),
    });
    let mut parameters = vec![("service", "CSW"), ("request", "GetRecords"), ("version", version.as_str())];
    if version == Version::V202 {
        parameters.extend([("namespace", namespaces.as_str()), ("resultType", result_type(query.result_type))]);
    }
    parameters.extend([
        ("outputFormat", "application/xml"),
        ("outputSchema", phrasing.schema.in_version(version)),
        ("typeNames", type_name),
        ("elementSetName", query.element_set.as_str()),
        ("startPosition", start_position.as_str()),
        ("maxRecords", max_records.as_str()),
    ]);
    if let Some(constraint) = &constraint {
        parameters.extend([
            ("constraintLanguage", constraint.language.as_str()),
            ("constraint_language_version", CONSTRAINT_VERSION),
            ("constraint", constraint.text.as_str()),
        ]);
    }
    parameters.extend(sort.as_deref().map(|sort| ("sortby", sort)));
    with_parameters(base, &parameters)
}

/// The body of a GetRecordById by POST: the whole records of these identifiers, in the schema that is harvested.
///
/// 3.0.0 takes one identifier at a time.
#[must_use]
pub fn get_record_by_id_body(identifiers: &[&str], version: Version, schema: &OutputSchema) -> String {
    let csw = prefix(version);
    let own = format!("{csw}:");
    let ids: String = identifiers.iter().map(|identifier| format!("<{csw}:Id>{}</{csw}:Id>", escape(*identifier))).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <{csw}:GetRecordById{} service=\"CSW\" version=\"{}\" outputFormat=\"application/xml\" outputSchema=\"{}\">\
         {ids}<{csw}:ElementSetName>full</{csw}:ElementSetName></{csw}:GetRecordById>",
        declarations(version, &[Some(&own)]),
        version.as_str(),
        escape(schema.in_version(version)),
    )
}

/// The url of the same by GET. A comma stands between two identifiers, so that one that holds a comma cannot be asked for.
#[must_use]
pub fn get_record_by_id_url(base: &str, identifiers: &[&str], version: Version, schema: &OutputSchema) -> String {
    let ids = identifiers.join(",");
    let parameters = [
        ("service", "CSW"),
        ("request", "GetRecordById"),
        ("version", version.as_str()),
        ("outputFormat", "application/xml"),
        ("outputSchema", schema.in_version(version)),
        ("elementSetName", "full"),
        ("id", &ids),
    ];
    with_parameters(base, &parameters)
}

const fn prefix(version: Version) -> &'static str {
    match version {
        Version::V202 => "csw",
        Version::V300 => "csw30",
    }
}

/// The property that a query for one record compares.
fn identifier(query: &Query) -> Option<&'static str> {
    query.identifier.as_ref().map(|_| filter::IDENTIFIER)
}

const fn result_type(result_type: ResultType) -> &'static str {
    match result_type {
        ResultType::Results => "results",
        ResultType::Hits => "hits",
    }
}

/// 3.0.0 has no resultType: whoever wants the number alone asks for no records (maxRecords in cswGetRecords.xsd).
const fn max_records(query: &Query, version: Version) -> u32 {
    match (version, query.result_type) {
        (Version::V300, ResultType::Hits) => 0,
        _ => query.max_records,
    }
}

fn our_part<'a>(query: &'a Query, phrasing: &Phrasing<'a>, declarations: &'a str) -> OurPart<'a> {
    OurPart {
        window: &query.window,
        property: phrasing.property,
        identifier: query.identifier.as_deref(),
        version: phrasing.version,
        language: phrasing.language,
        declarations,
    }
}

fn sort_by(version: Version, property: &str, order: SortOrder) -> String {
    let order = match order {
        SortOrder::Ascending => "ASC",
        SortOrder::Descending => "DESC",
    };
    let (prefix, reference) = (filter::prefix(version), filter::reference(version));
    format!(
        "<{prefix}:SortBy><{prefix}:SortProperty><{reference}>{}</{reference}><{prefix}:SortOrder>{order}</{prefix}:SortOrder>\
         </{prefix}:SortProperty></{prefix}:SortBy>",
        escape(property.trim())
    )
}

/// The known prefixes that are used, and what they stand for; paths such as `gmd:MD_Metadata/gmd:dateStamp` use several.
pub(super) fn used(version: Version, names: &[Option<&str>]) -> Vec<(&'static str, &'static str)> {
    let is_used =
        |prefix: &str| names.iter().flatten().flat_map(|name| name.split('/')).any(|step| is_prefixed(step.trim(), prefix));
    let own: &[(&str, &str)] = match version {
        Version::V202 => &PREFIXES_202,
        Version::V300 => &PREFIXES_300,
    };
    own.iter().copied().chain(PREFIXES).filter(|(prefix, _)| is_used(prefix)).collect()
}

fn declarations(version: Version, names: &[Option<&str>]) -> String {
    let mut text = String::new();
    for (prefix, namespace) in used(version, names) {
        let _ = write!(text, " xmlns:{prefix}=\"{namespace}\"");
    }
    text
}

/// The same as the parameter `namespace` has it of 2.0.2 has it.
fn xmlns(version: Version, names: &[Option<&str>]) -> String {
    used(version, names).iter().map(|(prefix, namespace)| format!("xmlns({prefix}={namespace})")).collect::<Vec<_>>().join(",")
}

fn is_prefixed(name: &str, prefix: &str) -> bool {
    name.trim_start_matches('@').split_once(':').is_some_and(|(written, _)| written == prefix)
}

/// The url that asks for capabilities, 2.0.2 by preference: without a version pycsw and Esri's catalogue answer 3.0.0.
#[must_use]
pub fn get_capabilities_url(base: &str) -> String {
    let parameters = [("service", "CSW"), ("request", "GetCapabilities"), ("version", "2.0.2"), ("acceptversions", "2.0.2,3.0.0")];
    with_parameters(base, &parameters)
}

/// Appends parameters, percent-encoded, with `?` or `&` as it takes. `base` has no fragment.
#[must_use]
pub fn with_parameters(base: &str, params: &[(&str, &str)]) -> String {
    let mut url = base.to_owned();
    for (name, value) in params {
        if !url.contains('?') {
            url.push('?');
        } else if !url.ends_with(['?', '&']) {
            url.push('&');
        }
        // RFC 3986, 3.4: these may stand in a query as they are, and mean nothing to those that take parameters apart.
        url.extend(name.bytes().map(|byte| percent_encoded(byte, b"-._~")));
        url.push('=');
        url.extend(value.bytes().map(|byte| percent_encoded(byte, b"-._~,:/")));
    }
    url
}

/// Makes one url out of the many ways in which one endpoint is typed: the same key for the same source.
///
/// Scheme and host in lower case, default port, fragment, credentials and the parameters of CSW taken away, vendor parameters
/// kept as typed. Characters that RFC 3986 does not allow in a path or query are percent-encoded.
///
/// # Errors
/// One line that says what is wrong, without what stood before an `@`.
pub fn clean_url(typed: &str) -> Result<CleanUrl, String> {
    let typed = typed.trim();
    if typed.is_empty() {
        return Err("the url is empty".to_owned());
    }
    if typed.len() > URL_BYTES_MAX {
        return Err(format!("the url is longer than {URL_BYTES_MAX} bytes"));
    }
    if typed.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err("the url holds blanks or control characters".to_owned());
    }

    let (scheme, rest) = scheme_of(typed)?;
    let without_fragment = rest.split('#').next().unwrap_or_default();
    let (address, query) = without_fragment.split_once('?').unwrap_or((without_fragment, ""));
    let (authority, path) = match address.find('/') {
        Some(slash) => address.split_at(slash),
        None => (address, "/"),
    };
    let (user_text, host_and_port) = match authority.rsplit_once('@') {
        Some((user, host)) => (user, host),
        None => ("", authority),
    };
    let url = format!("{scheme}://{}{}{}", clean_host(host_and_port, scheme)?, legal(path), vendor_query(query));
    if url.len() > URL_BYTES_MAX {
        return Err(format!("the url is longer than {URL_BYTES_MAX} bytes when its characters are percent-encoded"));
    }
    Ok(CleanUrl { url, user: credentials(user_text)? })
}

/// Scheme and what follows `://`.
fn scheme_of(typed: &str) -> Result<(&'static str, &str), String> {
    let is_scheme = |s: &str| {
        s.starts_with(|c: char| c.is_ascii_alphabetic()) && s.chars().all(|c| c.is_ascii_alphanumeric() || "+.-".contains(c))
    };
    match typed.split_once("://").filter(|(scheme, _)| is_scheme(scheme)) {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => Ok(("http", rest)),
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => Ok(("https", rest)),
        Some((scheme, _)) => Err(format!("the url begins with {scheme}:// but only http:// and https:// are spoken")),
        None => Err(missing_scheme(typed)),
    }
}

fn missing_scheme(typed: &str) -> String {
    let address = typed.split(['?', '#']).next().unwrap_or_default();
    let without_user = address.rsplit('@').next().unwrap_or_default();
    let host = without_user.split(['/', ':']).next().unwrap_or_default();
    if !host.is_empty() && !host.eq_ignore_ascii_case("http") && !host.eq_ignore_ascii_case("https") && is_host_name(host) {
        return format!("the url has no scheme: type https://{without_user} or http://{without_user}");
    }
    "this is not a url: it must begin with http:// or https://".to_owned()
}

fn is_host_name(host: &str) -> bool {
    host.chars().any(|c| c.is_ascii_alphanumeric()) && host.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c))
}

/// Host in lower case, and the port unless it is the scheme's own.
fn clean_host(host_and_port: &str, scheme: &str) -> Result<String, String> {
    let literal_end = host_and_port.rfind(']').map_or(0, |at| at + 1);
    let (literal, after_literal) = host_and_port.split_at_checked(literal_end).unwrap_or(("", host_and_port));
    let (name, port) = match after_literal.split_once(':') {
        Some((name, port)) => (name, Some(port)),
        None => (after_literal, None),
    };
    let host = match literal.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
        Some(address) if name.is_empty() && address.parse::<Ipv6Addr>().is_ok() => literal.to_ascii_lowercase(),
        None if literal.is_empty() && name.is_empty() => return Err("the url names no host".to_owned()),
        None if literal.is_empty() && is_host_name(name) => name.to_ascii_lowercase(),
        _ if !host_and_port.is_ascii() => return Err("the host is not ASCII: type it in its xn-- form".to_owned()),
        _ => return Err("the url names no valid host".to_owned()),
    };
    let default_port = if scheme == "https" { 443 } else { 80 };
    match port.filter(|port| !port.is_empty()).map(port_number) {
        None => Ok(host),
        Some(Some(port)) if port == default_port => Ok(host),
        Some(Some(port)) => Ok(format!("{host}:{port}")),
        Some(None) => Err("the port of the url is no number from 1 to 65535".to_owned()),
    }
}

fn port_number(text: &str) -> Option<u16> {
    if !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse().ok().filter(|port| *port > 0)
}

fn credentials(user_text: &str) -> Result<Option<(String, String)>, String> {
    if user_text.is_empty() {
        return Ok(None);
    }
    let (user, password) = user_text.split_once(':').unwrap_or((user_text, ""));
    let decoded = |text: &str| percent_decoded(text).ok_or("user or password in the url are not UTF-8 when percent-decoded");
    Ok(Some((decoded(user)?, decoded(password)?)))
}

/// The query without CSW's own parameters, with its `?`; empty where nothing is left.
fn vendor_query(query: &str) -> String {
    let pieces = query.split('&').map(bare_parameter);
    let kept: Vec<&str> = pieces.filter(|piece| !piece.is_empty() && !is_own_parameter(piece)).collect();
    if kept.is_empty() {
        return String::new();
    }
    format!("?{}", legal(&kept.join("&")))
}

/// A parameter without the rest of an `&amp;` or a second `?` before it: addresses are pasted out of XML and put together by hand.
fn bare_parameter(mut piece: &str) -> &str {
    while let Some(rest) = piece.strip_prefix("amp;").or_else(|| piece.strip_prefix('?')) {
        piece = rest;
    }
    piece
}

fn is_own_parameter(piece: &str) -> bool {
    let name = piece.split('=').next().unwrap_or_default();
    percent_decoded(name).is_some_and(|name| OWN_PARAMETERS.contains(&name.to_ascii_lowercase().as_str()))
}

/// Percent-encodes what RFC 3986 does not allow in a path or query, and leaves all else as it is.
fn legal(text: &str) -> String {
    text.bytes().map(|byte| percent_encoded(byte, b"-._~:/?[]@!$&'()*+,;=%")).collect()
}

fn percent_encoded(byte: u8, plain: &[u8]) -> String {
    if byte.is_ascii_alphanumeric() || plain.contains(&byte) {
        return char::from(byte).to_string();
    }
    format!("%{byte:02X}")
}

/// None where the result is not UTF-8. A `%` without two hexadecimal digits after it stands for itself.
fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code =
            after.split_at_checked(2).filter(|_| *first == b'%').and_then(|(digits, after)| Some((hex_byte(digits)?, after)));
        let (byte, after) = code.unwrap_or((*first, after));
        bytes.push(byte);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}

fn hex_byte(digits: &[u8]) -> Option<u8> {
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::csw::ElementSet;
    use crate::csw::{Lower, Window};

    fn query(window: Window) -> Query {
        Query { start_position: 101, max_records: 100, result_type: ResultType::Results, ..Query::hits(window) }
    }

    fn phrasing(schema: &OutputSchema) -> Phrasing<'_> {
        Phrasing {
            version: Version::V202,
            language: ConstraintLanguage::Filter,
            property: None,
            sort: None,
            schema,
            type_name: TypeName::Record,
            user_filter: None,
        }
    }

    fn cleaned(typed: &str) -> String {
        clean_url(typed).unwrap().url
    }

    fn refused(typed: &str) -> String {
        clean_url(typed).unwrap_err()
    }

    #[test]
    fn a_whole_request_is_in_the_order_of_the_schema() {
        let schema = OutputSchema::csw();
        let phrasing = Phrasing { property: Some("dct:modified"), sort: Some("apiso:Modified"), ..phrasing(&schema) };
        let window = Window { lower: Some(Lower::After("2024-05-06".to_owned())), upper: None };

        let body = get_records_body(&query(window), &phrasing);

        assert_eq!(
            body,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <csw:GetRecords xmlns:csw=\"http://www.opengis.net/cat/csw/2.0.2\" xmlns:ogc=\"http://www.opengis.net/ogc\" \
             xmlns:dct=\"http://purl.org/dc/terms/\" xmlns:apiso=\"http://www.opengis.net/cat/csw/apiso/1.0\" \
             service=\"CSW\" version=\"2.0.2\" resultType=\"results\" outputFormat=\"application/xml\" \
             outputSchema=\"http://www.opengis.net/cat/csw/2.0.2\" startPosition=\"101\" maxRecords=\"100\">\
             <csw:Query typeNames=\"csw:Record\"><csw:ElementSetName>full</csw:ElementSetName>\
             <csw:Constraint version=\"1.1.0\"><ogc:Filter><ogc:PropertyIsGreaterThan>\
             <ogc:PropertyName>dct:modified</ogc:PropertyName>\
             <ogc:Literal>2024-05-06</ogc:Literal></ogc:PropertyIsGreaterThan></ogc:Filter></csw:Constraint>\
             <ogc:SortBy><ogc:SortProperty><ogc:PropertyName>apiso:Modified</ogc:PropertyName><ogc:SortOrder>ASC</ogc:SortOrder>\
             </ogc:SortProperty></ogc:SortBy></csw:Query></csw:GetRecords>"
        );
    }

    #[test]
    fn a_whole_request_of_version_3_is_in_the_order_of_its_schema() {
        // pycsw validates: this very text was accepted by 2.6.2 and 3.0.0b2. It names nothing of 2.0.2, for pycsw looks for that.
        let schema = OutputSchema::csw();
        let phrasing =
            Phrasing { version: Version::V300, property: Some("dct:modified"), sort: Some("dct:modified"), ..phrasing(&schema) };
        let window = Window { lower: Some(Lower::After("2024-05-06".to_owned())), upper: None };

        let body = get_records_body(&query(window), &phrasing);

        assert_eq!(
            body,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <csw30:GetRecords xmlns:csw30=\"http://www.opengis.net/cat/csw/3.0\" xmlns:fes=\"http://www.opengis.net/fes/2.0\" \
             xmlns:dct=\"http://purl.org/dc/terms/\" service=\"CSW\" version=\"3.0.0\" outputFormat=\"application/xml\" \
             outputSchema=\"http://www.opengis.net/cat/csw/3.0\" startPosition=\"101\" maxRecords=\"100\">\
             <csw30:Query typeNames=\"csw30:Record\"><csw30:ElementSetName>full</csw30:ElementSetName>\
             <csw30:Constraint version=\"1.1.0\"><fes:Filter><fes:PropertyIsGreaterThan>\
             <fes:ValueReference>dct:modified</fes:ValueReference>\
             <fes:Literal>2024-05-06</fes:Literal></fes:PropertyIsGreaterThan></fes:Filter></csw30:Constraint>\
             <fes:SortBy><fes:SortProperty><fes:ValueReference>dct:modified</fes:ValueReference><fes:SortOrder>ASC</fes:SortOrder>\
             </fes:SortProperty></fes:SortBy></csw30:Query></csw30:GetRecords>"
        );
        assert!(!body.contains("csw/2.0.2"), "{body}");
    }

    #[test]
    fn hits_are_no_records_in_version_3() {
        let schema = OutputSchema::iso();
        let phrasing = Phrasing { version: Version::V300, type_name: TypeName::Metadata, ..phrasing(&schema) };

        let body = get_records_body(&Query::hits(Window::default()), &phrasing);
        let url = get_records_url("http://c/csw", &Query::hits(Window::default()), &phrasing);

        assert!(body.contains("startPosition=\"1\" maxRecords=\"0\"") && !body.contains("resultType"), "{body}");
        assert!(body.contains("xmlns:gmd=") && body.contains("typeNames=\"gmd:MD_Metadata\""), "{body}");
        assert!(url.contains("&maxRecords=0") && !url.contains("resultType"), "{url}");
    }

    #[test]
    fn the_url_of_version_2_declares_its_prefixes() {
        let schema = OutputSchema::csw();
        let phrasing = Phrasing { property: Some("dct:modified"), sort: Some("dct:modified"), ..phrasing(&schema) };
        let window = Window { lower: Some(Lower::After("2024-05-06T00:00:00Z".to_owned())), upper: None };

        let url = get_records_url("http://c/csw?map=/x.map", &query(window), &phrasing);

        assert_eq!(
            url,
            "http://c/csw?map=/x.map&service=CSW&request=GetRecords&version=2.0.2\
             &namespace=xmlns%28csw%3Dhttp://www.opengis.net/cat/csw/2.0.2%29,xmlns%28dct%3Dhttp://purl.org/dc/terms/%29\
             &resultType=results&outputFormat=application/xml&outputSchema=http://www.opengis.net/cat/csw/2.0.2\
             &typeNames=csw:Record&elementSetName=full&startPosition=101&maxRecords=100\
             &constraintLanguage=FILTER&constraint_language_version=1.1.0\
             &constraint=%3Cogc:Filter%20xmlns:ogc%3D%22http://www.opengis.net/ogc%22%20xmlns:dct%3D%22http://purl.org/dc/terms/%22%3E\
             %3Cogc:PropertyIsGreaterThan%3E%3Cogc:PropertyName%3Edct:modified%3C/ogc:PropertyName%3E\
             %3Cogc:Literal%3E2024-05-06T00:00:00Z%3C/ogc:Literal%3E%3C/ogc:PropertyIsGreaterThan%3E%3C/ogc:Filter%3E\
             &sortby=dct:modified:A"
        );
    }

    #[test]
    fn the_url_of_version_3_in_cql() {
        let schema = OutputSchema::csw();
        let phrasing = Phrasing {
            version: Version::V300,
            language: ConstraintLanguage::CqlText,
            property: Some("Modified"),
            sort: Some("Modified"),
            ..phrasing(&schema)
        };
        let window = Window { lower: Some(Lower::After("2024".to_owned())), upper: Some("2025".to_owned()) };
        let newest_first = Query { sort_order: SortOrder::Descending, ..query(window) };

        let url = get_records_url("http://c/csw", &newest_first, &phrasing);

        assert_eq!(
            url,
            "http://c/csw?service=CSW&request=GetRecords&version=3.0.0&outputFormat=application/xml\
             &outputSchema=http://www.opengis.net/cat/csw/3.0&typeNames=csw30:Record&elementSetName=full&startPosition=101\
             &maxRecords=100&constraintLanguage=CQL_TEXT&constraint_language_version=1.1.0\
             &constraint=Modified%20%3E%20%272024%27%20AND%20Modified%20%3C%3D%20%272025%27&sortby=Modified:D"
        );
    }

    #[test]
    fn without_edges_or_property_there_is_no_constraint() {
        let schema = OutputSchema::iso();
        let window = Window { lower: Some(Lower::After("2024-05-06".to_owned())), upper: None };

        let unfiltered =
            get_records_body(&Query::hits(Window::default()), &Phrasing { property: Some("Modified"), ..phrasing(&schema) });
        let unnamed = get_records_body(&query(window), &phrasing(&schema));

        for body in [&unfiltered, &unnamed] {
            assert!(!body.contains("Constraint") && !body.contains("SortBy"), "{body}");
        }
        assert!(unfiltered.contains("resultType=\"hits\""), "{unfiltered}");
        assert!(unfiltered.contains("startPosition=\"1\" maxRecords=\"1\""), "{unfiltered}");
    }

    #[test]
    fn every_prefix_in_use_is_declared_once() {
        let schema = OutputSchema::iso();
        let phrasing = Phrasing {
            property: Some("gmd:MD_Metadata/gco:DateTime"),
            sort: Some("gmd:dateStamp"),
            type_name: TypeName::Metadata,
            ..phrasing(&schema)
        };

        let brief = Query { element_set: ElementSet::Brief, ..query(Window::default()) };
        let body = get_records_body(&brief, &phrasing);

        for prefix in ["csw", "ogc", "gmd", "gco"] {
            assert_eq!(body.matches(&format!(" xmlns:{prefix}=")).count(), 1, "{body}");
        }
        assert_eq!(body.matches("xmlns:").count(), 4, "{body}");
        assert!(body.contains("typeNames=\"gmd:MD_Metadata\"><csw:ElementSetName>brief<"), "{body}");
    }

    #[test]
    fn records_are_asked_for_by_identifier() {
        let schema = OutputSchema::iso();
        assert_eq!(
            get_record_by_id_body(&["a&b", "c"], Version::V202, &schema),
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<csw:GetRecordById xmlns:csw=\"http://www.opengis.net/cat/csw/2.0.2\" \
             service=\"CSW\" version=\"2.0.2\" outputFormat=\"application/xml\" outputSchema=\"http://www.isotc211.org/2005/gmd\">\
             <csw:Id>a&amp;b</csw:Id><csw:Id>c</csw:Id><csw:ElementSetName>full</csw:ElementSetName></csw:GetRecordById>"
        );
        assert!(get_record_by_id_body(&["a"], Version::V300, &OutputSchema::csw()).contains("<csw30:Id>a</csw30:Id>"));
        assert_eq!(
            get_record_by_id_url("http://c.example/csw", &["a b", "c"], Version::V202, &schema),
            "http://c.example/csw?service=CSW&request=GetRecordById&version=2.0.2&outputFormat=application/xml\
             &outputSchema=http://www.isotc211.org/2005/gmd&elementSetName=full&id=a%20b,c"
        );
    }

    #[test]
    fn one_record_is_asked_for_by_a_filter_of_its_identifier() {
        let schema = OutputSchema::csw();
        let body = get_records_body(&Query::identified("a"), &phrasing(&schema));
        assert!(body.contains("<ogc:PropertyName>dc:identifier</ogc:PropertyName><ogc:Literal>a</ogc:Literal>"), "{body}");
        assert_eq!(body.matches(" xmlns:dc=").count(), 1, "{body}");
    }

    #[test]
    fn what_a_user_pins_cannot_break_the_request() {
        let schema = OutputSchema("urn:a\"><b".to_owned());
        let phrasing = Phrasing { sort: Some(" x:a<b "), ..phrasing(&schema) };

        let body = get_records_body(&query(Window::default()), &phrasing);

        assert!(body.contains("outputSchema=\"urn:a&quot;&gt;&lt;b\""), "{body}");
        assert!(body.contains("<ogc:PropertyName>x:a&lt;b</ogc:PropertyName>"), "{body}");
    }

    #[test]
    fn capabilities_are_asked_for_beside_vendor_parameters() {
        assert_eq!(
            get_capabilities_url("http://c.example/csw?map=/x.map"),
            "http://c.example/csw?map=/x.map&service=CSW&request=GetCapabilities&version=2.0.2&acceptversions=2.0.2,3.0.0"
        );
    }

    #[test]
    fn parameters_are_joined_and_encoded() {
        assert_eq!(with_parameters("http://c/csw", &[]), "http://c/csw");
        assert_eq!(with_parameters("http://c/csw", &[("a", "b c&d=\u{e9}+")]), "http://c/csw?a=b%20c%26d%3D%C3%A9%2B");
        assert_eq!(with_parameters("http://c/csw?", &[("a", "1"), ("b:", "2:3")]), "http://c/csw?a=1&b%3A=2:3");
        assert_eq!(with_parameters("http://c/csw?x&", &[("a", "1")]), "http://c/csw?x&a=1");
    }

    #[test]
    fn a13_a_pasted_url_is_the_endpoint_with_its_vendor_parameters() {
        let cases = [
            ("http://c.example/csw?Request=GetCapabilities&SERVICE=CSW&map=/x.map&", "http://c.example/csw?map=/x.map"),
            ("http://c.example/csw?map=/x.map&lang=a%20b&MAP2", "http://c.example/csw?map=/x.map&lang=a%20b&MAP2"),
            ("http://c.example/csw?service=CSW&amp;request=GetCapabilities&amp;node=a", "http://c.example/csw?node=a"),
            ("http://c.example/csw?%73ervice=CSW&serv", "http://c.example/csw?serv"),
            ("http://c.example/csw?", "http://c.example/csw"),
            ("http://c.example/csw?&&", "http://c.example/csw"),
            ("http://c.example/csw??service=CSW", "http://c.example/csw"),
            ("http://c.example/csw?&?amp;&amp;?map=a?b", "http://c.example/csw?map=a?b"),
            ("http://c.example/csw#top?map=1", "http://c.example/csw"),
            ("  HTTPS://C.Example:443/CSW/De  ", "https://c.example/CSW/De"),
            ("http://c.example:80", "http://c.example/"),
            ("http://c.example:?map=1", "http://c.example/?map=1"),
            ("http://c.example:0443/csw", "http://c.example:443/csw"),
            ("https://c.example:80/csw", "https://c.example:80/csw"),
            ("http://[2001:DB8::1]:8080/csw", "http://[2001:db8::1]:8080/csw"),
            ("http://[::1]:80/csw", "http://[::1]/csw"),
            ("http://127.0.0.1:8000/csw", "http://127.0.0.1:8000/csw"),
            ("http://c.example/caf\u{e9}?q={a|b}", "http://c.example/caf%C3%A9?q=%7Ba%7Cb%7D"),
            ("http://c.example/proxy?url=http://d@e/csw", "http://c.example/proxy?url=http://d@e/csw"),
        ];
        for (typed, clean) in cases {
            assert_eq!(clean_url(typed), Ok(CleanUrl { url: clean.to_owned(), user: None }), "{typed}");
        }
    }

    #[test]
    fn every_parameter_of_a_request_is_csws_own() {
        let typed = "https://c.example/csw?service=CSW&version=2.0.2&request=GetRecords&namespace=xmlns(a=b)&resultType=results\
                     &outputSchema=a&outputFormat=b&elementSetName=full&typeNames=csw:Record&constraint=a%3Db\
                     &constraintLanguage=CQL_TEXT&CONSTRAINT_LANGUAGE_VERSION=1.1.0&startPosition=1&maxRecords=10&sortBy=a:A\
                     &acceptVersions=2.0.2&sections=All&acceptFormats=a&updateSequence=0";

        assert_eq!(cleaned(typed), "https://c.example/csw");
    }

    #[test]
    fn credentials_are_taken_out_and_decoded() {
        let user = |typed| clean_url(typed).unwrap().user;
        let pair = |user: &str, password: &str| Some((user.to_owned(), password.to_owned()));

        assert_eq!(cleaned("https://joe:s%40c@c.example/csw"), "https://c.example/csw");
        assert_eq!(user("https://joe:s%40c%C3%A9%zz@c.example/csw"), pair("joe", "s@c\u{e9}%zz"));
        assert_eq!(user("https://a@b:c:d@c.example/csw"), pair("a@b", "c:d"));
        assert_eq!(user("https://joe@c.example/csw"), pair("joe", ""));
        assert_eq!(user("https://@c.example/csw"), None);
        assert!(refused("https://joe:%ff@c.example/csw").contains("UTF-8"));
    }

    #[test]
    fn bad_urls_are_refused_with_a_word_that_helps() {
        let cases = [
            ("", "empty"),
            (" \t", "empty"),
            ("hello", "type https://hello "),
            ("c.example/csw?x=http://y", "type https://c.example/csw or http://c.example/csw"),
            ("localhost:8000/csw", "type https://localhost:8000/csw "),
            ("joe:secret@c.example/csw", "type https://c.example/csw "),
            ("http:/c.example/csw", "not a url"),
            ("://c.example", "not a url"),
            ("/csw", "not a url"),
            ("ftp://c.example/csw", "begins with ftp://"),
            ("file:///etc/hosts", "begins with file://"),
            ("http://", "no host"),
            ("http:///csw", "no host"),
            ("http://?map=1", "no host"),
            ("http://:80/csw", "no host"),
            ("http://joe@/csw", "no host"),
            ("http://c.example/a b", "blanks"),
            ("http://c.example/a\u{a0}b", "blanks"),
            ("http://c.example/a\u{7}b", "control"),
            ("http://c.example:0/csw", "port"),
            ("http://c.example:65536/csw", "port"),
            ("http://c.example:8o/csw", "port"),
            ("http://c.example:+80/csw", "port"),
            ("http://c.example:80:80/csw", "port"),
            ("http://[::1/csw", "valid host"),
            ("http://[::g]/csw", "valid host"),
            ("http://a[::1]/csw", "valid host"),
            ("http://[::1]a/csw", "valid host"),
            ("http://.../csw", "valid host"),
            ("http://${SITE}/csw", "valid host"),
            ("http://caf\u{e9}.example/csw", "xn--"),
        ];
        for (typed, word) in cases {
            let line = refused(typed);
            assert!(line.contains(word) && !line.contains("secret"), "{typed}: {line}");
        }
        assert!(refused(&format!("http://c.example/{}", "a".repeat(URL_BYTES_MAX))).contains("longer"));
        assert!(refused(&format!("http://c.example/{}", "|".repeat(URL_BYTES_MAX / 2))).contains("percent-encoded"));
    }

    #[test]
    fn a_password_is_not_shown_by_debug() {
        let shown = format!("{:?}", clean_url("https://joe:secret@c.example/csw").unwrap());

        assert!(shown.contains("c.example") && !shown.contains("secret"), "{shown}");
    }

    proptest! {
        #[test]
        fn a_clean_url_stays_as_it_is(tail in "[!-~\u{e9}]{0,60}", host in "[a-zA-Z0-9.-]{1,10}(:[0-9]{0,5})?") {
            if let Ok(clean) = clean_url(&format!("http://{host}/{tail}")) {
                prop_assert_eq!(clean_url(&clean.url), Ok(CleanUrl { url: clean.url.clone(), user: None }));
            }
        }

        #[test]
        fn no_url_makes_it_panic(typed in any::<String>(), close in "(http://)?[]a1:@/?&#%.\\[-]{0,30}") {
            for typed in [typed, close] {
                let _ = clean_url(&typed).is_ok();
            }
        }

        #[test]
        fn what_is_encoded_decodes_again(value in any::<String>()) {
            let url = with_parameters("http://c/", &[("k", &value)]);
            prop_assert_eq!(percent_decoded(url.trim_start_matches("http://c/?k=")), Some(value));
        }
    }
}
