//! Capabilities and exception reports, right ones and those of the field.

use std::fmt::Write as _;

use super::super::model::Report;
use super::super::quirks::{Bindings, CSW, KvpFilters, Quirks};
use super::{OWS, escaped};

/// What GetCapabilities brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CapabilitiesFace {
    Right,
    /// A sign-on or waiting page.
    Html,
    NotFound,
    /// A root element and nothing in it.
    NoSections,
    /// Addresses are this text, as a server shows its unfilled template (`${SITE_URL}/csw`) or an internal host.
    Address(String),
    /// GetRecords names a SOAP address before the XML one.
    SoapFirst(String),
}

/// The tongue of an exception report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReportFace {
    /// OWS 1.0, as CSW 2.0.2 has it.
    Ows,
    /// `http://www.opengis.net/ows/1.1` (MICKA).
    Ows11,
    /// `http://www.opengis.net/ows/2.0` (pycsw, for bodies that it cannot parse).
    Ows20,
    /// WMS-like ServiceExceptionReport.
    Service,
    /// A SOAP 1.2 fault.
    Soap,
}

/// An exception report.
pub(crate) fn exception_report(face: ReportFace, report: &Report) -> String {
    let (code, text) = (escaped(&report.code), escaped(&report.text));
    let locator = match report.locator.as_str() {
        "" => String::new(),
        locator => format!(" locator=\"{}\"", escaped(locator)),
    };
    let ows = |namespace: &str, version: &str| {
        format!(
            "<ows:ExceptionReport xmlns:ows=\"{namespace}\" version=\"{version}\" language=\"en\">\n  \
             <ows:Exception exceptionCode=\"{code}\"{locator}>\n    <ows:ExceptionText>{text}</ows:ExceptionText>\n  \
             </ows:Exception>\n</ows:ExceptionReport>\n"
        )
    };
    let body = match face {
        ReportFace::Ows => ows(OWS, "1.2.0"),
        ReportFace::Ows11 => ows("http://www.opengis.net/ows/1.1", "1.1.0"),
        ReportFace::Ows20 => ows("http://www.opengis.net/ows/2.0", "3.0.0"),
        ReportFace::Service => format!(
            "<ServiceExceptionReport xmlns=\"http://www.opengis.net/ogc\" version=\"1.2.0\">\n  \
             <ServiceException code=\"{code}\"{locator}>{text}</ServiceException>\n</ServiceExceptionReport>\n"
        ),
        ReportFace::Soap => format!(
            "<env:Envelope xmlns:env=\"http://www.w3.org/2003/05/soap-envelope\"><env:Body><env:Fault>\
             <env:Code><env:Value>env:Receiver</env:Value></env:Code>\
             <env:Reason><env:Text xml:lang=\"en\">{text}</env:Text></env:Reason></env:Fault></env:Body></env:Envelope>\n"
        ),
    };
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{body}")
}

/// Status, media type and body of an answer to GetCapabilities; `endpoint` is the absolute url that is advertised.
pub(crate) fn capabilities(face: &CapabilitiesFace, endpoint: &str, quirks: &Quirks) -> (u16, &'static str, String) {
    match face {
        CapabilitiesFace::Html => (200, "text/html; charset=utf-8", html("Please sign in")),
        CapabilitiesFace::NotFound => (404, "text/html", html("404 Not Found")),
        CapabilitiesFace::NoSections => {
            (200, "application/xml", format!("<csw:Capabilities xmlns:csw=\"{CSW}\" version=\"2.0.2\"/>\n"))
        }
        CapabilitiesFace::Right => (200, "application/xml", document(endpoint, "", quirks)),
        CapabilitiesFace::Address(address) => (200, "application/xml", document(address, "", quirks)),
        CapabilitiesFace::SoapFirst(address) => {
            let soap = post(address, "SOAP");
            (200, "application/xml", document(endpoint, &soap, quirks))
        }
    }
}

/// A page for people.
pub(crate) fn html(title: &str) -> String {
    let title = escaped(title);
    format!("<!DOCTYPE html>\n<html><head><title>{title}</title></head><body><p>{title}</p></body></html>\n")
}

fn post(address: &str, encoding: &str) -> String {
    let address = escaped(address);
    format!(
        "          <ows:Post xlink:type=\"simple\" xlink:href=\"{address}\"><ows:Constraint name=\"PostEncoding\">\
         <ows:Value>{encoding}</ows:Value></ows:Constraint></ows:Post>\n"
    )
}

fn document(address: &str, soap: &str, quirks: &Quirks) -> String {
    let get = format!("          <ows:Get xlink:type=\"simple\" xlink:href=\"{}\"/>\n", escaped(address));
    let xml = post(address, "XML");
    let both = match quirks.bindings {
        Bindings::Both => format!("{get}{soap}{xml}"),
        Bindings::PostOnly => format!("{soap}{xml}"),
        Bindings::GetOnly => get.clone(),
    };
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<csw:Capabilities xmlns:csw=\"{CSW}\" xmlns:ows=\"{OWS}\" \
         xmlns:ogc=\"http://www.opengis.net/ogc\" xmlns:xlink=\"http://www.w3.org/1999/xlink\" version=\"2.0.2\">\n  \
         <ows:ServiceIdentification>\n    <ows:Title>Model catalogue</ows:Title>\n    <ows:ServiceType>CSW</ows:ServiceType>\n"
    );
    for number in quirks.versions.numbers() {
        let _ = writeln!(out, "    <ows:ServiceTypeVersion>{number}</ows:ServiceTypeVersion>");
    }
    out.push_str("  </ows:ServiceIdentification>\n  <ows:OperationsMetadata>\n");
    operation(&mut out, "GetCapabilities", &get, &[], &[]);
    let languages: &[&str] = match quirks.kvp_filters {
        KvpFilters::CqlOnly => &["CQL_TEXT"],
        KvpFilters::Right | KvpFilters::Filter11 => &["CQL_TEXT", "FILTER"],
    };
    let parameters = [
        ("outputSchema", quirks.schemas.as_slice()),
        ("typeNames", &["csw:Record", "gmd:MD_Metadata"]),
        ("resultType", &["hits", "results"]),
        ("ElementSetName", &["brief", "summary", "full"]),
        ("CONSTRAINTLANGUAGE", languages),
    ];
    operation(&mut out, "GetRecords", &both, &parameters, &quirks.queryables);
    operation(&mut out, "GetRecordById", &both, &parameters[..1], &[]);
    if let Some(cap) = quirks.page_cap {
        let _ = writeln!(out, "    <ows:Constraint name=\"MaxRecordDefault\"><ows:Value>{cap}</ows:Value></ows:Constraint>");
    }
    out.push_str("  </ows:OperationsMetadata>\n  <ogc:Filter_Capabilities/>\n</csw:Capabilities>\n");
    out
}

fn operation(out: &mut String, name: &str, addresses: &str, parameters: &[(&str, &[&str])], queryables: &[&str]) {
    let _ = write!(
        out,
        "    <ows:Operation name=\"{name}\">\n      <ows:DCP>\n        <ows:HTTP>\n{addresses}        </ows:HTTP>\n      </ows:DCP>\n"
    );
    let values =
        |values: &[&str]| values.iter().map(|value| format!("<ows:Value>{}</ows:Value>", escaped(value))).collect::<String>();
    for (parameter, offered) in parameters {
        let _ = writeln!(out, "      <ows:Parameter name=\"{parameter}\">{}</ows:Parameter>", values(offered));
    }
    // Dublin Core names in one constraint, ISO names in the other, as servers that know both announce them.
    let iso: Vec<&str> = queryables.iter().copied().filter(|name| name.starts_with("apiso:")).collect();
    let dublin: Vec<&str> = queryables.iter().copied().filter(|name| !name.starts_with("apiso:")).collect();
    for (constraint, names) in [("SupportedDublinCoreQueryables", dublin), ("SupportedISOQueryables", iso)] {
        if !names.is_empty() {
            let _ = writeln!(out, "      <ows:Constraint name=\"{constraint}\">{}</ows:Constraint>", values(&names));
        }
    }
    out.push_str("    </ows:Operation>\n");
}
