//! What ureq's errors mean for us.
//!
//! Each symptom was provoked and looked at (ureq 3.5.2, rustls 0.23): certificate errors come as `Io` of kind InvalidData, failed
//! lookups as `Io` of a kind that has no name, cut bodies as `Io(UnexpectedEof)`. Whether to try again is decided by
//! [`TransportError::transient`].

use std::io::ErrorKind;
use std::time::Duration;

use ureq::{Error, Timeout};

use super::TransportError;
use super::text::escape_outside_text;

const DETAIL_CHARS_MAX: usize = 200;
/// As rustls calls a certificate that no trusted root vouches for.
const UNKNOWN_ISSUER: &str = "UnknownIssuer";

/// What the settings allow, for the messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) timeout: Duration,
    pub(super) total: Duration,
    pub(super) body_bytes_max: u64,
}

/// How far the exchange had come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Before the header of the answer was had, connecting included.
    Header,
    /// In the body.
    Body,
}

/// Whether a connection that the server had kept open turned out to be closed.
pub(super) fn lost_connection(error: &Error) -> bool {
    use ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(error, Error::Io(io) if matches!(io.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof))
}

pub(super) fn meaning(error: &Error, stage: Stage, limits: &Limits) -> TransportError {
    let detail = || escape_outside_text(&error.to_string(), DETAIL_CHARS_MAX);
    match error {
        Error::Io(io) => io_meaning(io, stage),
        Error::Timeout(which) => TransportError::Timeout(timeout_text(*which, limits)),
        Error::HostNotFound => TransportError::Resolve(detail()),
        Error::ConnectionFailed => TransportError::Connect(detail()),
        Error::Tls(_) | Error::Pem(_) | Error::Rustls(_) | Error::TlsRequired => TransportError::Tls(detail()),
        Error::Decompress(_, io) => TransportError::Decompress(escape_outside_text(&io.to_string(), DETAIL_CHARS_MAX)),
        Error::BodyExceedsLimit(_) => TransportError::TooLarge { body_bytes_max: limits.body_bytes_max },
        Error::ConnectProxyFailed(text) => {
            let status = proxy_status(text);
            let detail = status.map_or_else(|| escape_outside_text(text, DETAIL_CHARS_MAX), proxy_detail);
            TransportError::Proxy { status, detail }
        }
        Error::InvalidProxyUrl => TransportError::Proxy { status: None, detail: detail() },
        Error::BadUri(_) | Error::Http(_) | Error::RequireHttpsOnly(_) => {
            TransportError::Url("it is too long, or holds what a url cannot hold".to_owned())
        }
        Error::RedirectFailed | Error::TooManyRedirects => TransportError::Redirect(detail()),
        Error::BodyStalled => TransportError::Cut(detail()),
        _ => TransportError::Protocol(detail()),
    }
}

fn io_meaning(io: &std::io::Error, stage: Stage) -> TransportError {
    let text = io.to_string();
    let detail = escape_outside_text(&text, DETAIL_CHARS_MAX);
    match io.kind() {
        ErrorKind::ConnectionRefused
        | ErrorKind::HostUnreachable
        | ErrorKind::NetworkUnreachable
        | ErrorKind::NetworkDown
        | ErrorKind::AddrNotAvailable
        | ErrorKind::PermissionDenied => TransportError::Connect(detail),
        ErrorKind::InvalidData if stage == Stage::Header => TransportError::Tls(certificate_text(detail)),
        ErrorKind::InvalidInput | ErrorKind::Unsupported if stage == Stage::Header => TransportError::Url(detail),
        ErrorKind::TimedOut | ErrorKind::WouldBlock => TransportError::Timeout(detail),
        // The kind of a failed lookup cannot be named; the text chooses only between two words for what is tried again either way.
        _ if text.starts_with("failed to lookup address") => TransportError::Resolve(detail),
        _ => TransportError::Cut(detail),
    }
}

fn timeout_text(which: Timeout, limits: &Limits) -> String {
    let (one, all) = (limits.timeout.as_secs_f64(), limits.total.as_secs_f64());
    match which {
        Timeout::Resolve => format!("the host name was not resolved within {one} s"),
        Timeout::Connect => format!("no connection within {one} s"),
        Timeout::SendRequest | Timeout::SendBody | Timeout::PerWrite | Timeout::Await100 => {
            format!("the server did not take the request within {one} s")
        }
        Timeout::RecvResponse => format!("no answer within {one} s"),
        Timeout::PerRead => format!("the server was silent for {one} s"),
        _ => format!("the answer was not complete within {all} s"),
    }
}

/// ureq tells a proxy's status in words only: "proxy server responded 407/407".
fn proxy_status(text: &str) -> Option<u16> {
    let (_, status) = text.split_once("responded ")?;
    status.split('/').next()?.trim().parse().ok()
}

/// tinyproxy says 401 where it means 407.
fn proxy_detail(status: u16) -> String {
    match status {
        401 | 407 => format!("HTTP {status}: it wants a user name and a password"),
        403 => format!("HTTP {status}: it forbids this"),
        _ => format!("HTTP {status}"),
    }
}

/// rustls's word for the commonest case says little to those who have not met it.
fn certificate_text(detail: String) -> String {
    match detail.ends_with(UNKNOWN_ISSUER) {
        true => format!("the certificate comes from no authority that is trusted here ({UNKNOWN_ISSUER})"),
        false => detail,
    }
}

/// Of two reasons why a certificate is not trusted, by the given roots and by the system's, the one that says more.
pub(super) fn both_reasons(first: String, second: String) -> String {
    if first == second || second.contains(UNKNOWN_ISSUER) {
        return first;
    }
    if first.contains(UNKNOWN_ISSUER) { second } else { format!("{first}; {second}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    const LIMITS: Limits = Limits { timeout: Duration::from_secs(30), total: Duration::from_secs(300), body_bytes_max: 9 };

    fn of(error: Error) -> TransportError {
        meaning(&error, Stage::Header, &LIMITS)
    }

    fn of_io(kind: ErrorKind, text: &'static str) -> TransportError {
        of(Error::Io(io::Error::new(kind, text)))
    }

    #[test]
    fn kinds_of_io_errors_are_told_apart() {
        let t = || "x".to_owned();
        assert_eq!(of_io(ErrorKind::ConnectionRefused, "x"), TransportError::Connect(t()));
        assert_eq!(of_io(ErrorKind::ConnectionReset, "x"), TransportError::Cut(t()));
        assert_eq!(of_io(ErrorKind::UnexpectedEof, "x"), TransportError::Cut(t()));
        assert_eq!(of_io(ErrorKind::InvalidData, "x"), TransportError::Tls(t()));
        assert_eq!(of_io(ErrorKind::InvalidInput, "x"), TransportError::Url(t()));
        let lookup = "failed to lookup address information: Name or service not known";
        assert_eq!(of_io(ErrorKind::Other, lookup), TransportError::Resolve(lookup.to_owned()));
    }

    #[test]
    fn broken_encryption_within_a_body_is_not_the_certificate() {
        let error = Error::Io(io::Error::new(ErrorKind::InvalidData, "bad record mac"));
        assert_eq!(meaning(&error, Stage::Body, &LIMITS), TransportError::Cut("bad record mac".to_owned()));
    }

    #[test]
    fn every_limit_on_time_is_named() {
        let texts: Vec<String> = [Timeout::Connect, Timeout::RecvResponse, Timeout::PerRead, Timeout::Global]
            .map(|which| timeout_text(which, &LIMITS))
            .into();
        assert_eq!(texts[0], "no connection within 30 s");
        assert_eq!(texts[1], "no answer within 30 s");
        assert_eq!(texts[2], "the server was silent for 30 s");
        assert_eq!(texts[3], "the answer was not complete within 300 s");
        assert!(of(Error::Timeout(Timeout::Connect)).transient());
    }

    #[test]
    fn the_status_of_a_proxy_is_found() {
        let refused = of(Error::ConnectProxyFailed("proxy server responded 407/407".to_owned()));
        assert!(refused.denied() && !refused.transient());
        assert_eq!(refused.to_string(), "the proxy refused: HTTP 407: it wants a user name and a password");
        let silent = of(Error::ConnectProxyFailed("proxy server did not respond".to_owned()));
        assert!(!silent.denied() && silent.transient());
    }

    #[test]
    fn of_two_reasons_against_a_certificate_the_one_that_says_more_is_told() {
        let t = str::to_owned;
        let unknown = match of_io(ErrorKind::InvalidData, "invalid peer certificate: UnknownIssuer") {
            TransportError::Tls(text) => text,
            other => panic!("{other:?}"),
        };
        assert_eq!(unknown, "the certificate comes from no authority that is trusted here (UnknownIssuer)");
        assert_eq!(both_reasons(unknown.clone(), unknown.clone()), unknown);
        assert_eq!(both_reasons(unknown.clone(), t("expired")), "expired");
        assert_eq!(both_reasons(t("expired"), unknown), "expired");
        assert_eq!(both_reasons(t("a"), t("b")), "a; b");
    }

    #[test]
    fn the_rest_has_its_place() {
        assert_eq!(of(Error::BodyExceedsLimit(7)), TransportError::TooLarge { body_bytes_max: 9 });
        assert!(matches!(of(Error::HostNotFound), TransportError::Resolve(_)));
        assert!(matches!(of(Error::Tls("x")), TransportError::Tls(_)));
        assert!(matches!(of(Error::BadUri("http://me:pw@a".to_owned())), TransportError::Url(text) if !text.contains("pw")));
        assert!(matches!(of(Error::LargeResponseHeader(2, 1)), TransportError::Protocol(_)));
        let gzip = Error::Decompress("gzip", io::Error::new(ErrorKind::InvalidInput, "corrupt\u{1b}"));
        assert_eq!(of(gzip), TransportError::Decompress(r"corrupt\u{1b}".to_owned()));
    }

    #[test]
    fn only_a_lost_connection_counts_as_one() {
        assert!(lost_connection(&Error::Io(ErrorKind::ConnectionReset.into())));
        assert!(lost_connection(&Error::Io(ErrorKind::UnexpectedEof.into())));
        assert!(!lost_connection(&Error::Io(ErrorKind::ConnectionRefused.into())));
        assert!(!lost_connection(&Error::Timeout(Timeout::RecvResponse)));
    }
}
