//! One HTTP exchange at a time: ureq behind a one-method trait.
//!
//! Limits on time and size, redirects of POST, gzip and its mislabelling, credentials that never leave the host they were meant
//! for. It never retries (`retry.rs` does) and never looks at what a body means (`csw/` does).
//!
//! The parts, in `http/`: `exchange.rs` talks to ureq, `settings.rs` checks what it is told, `failure.rs` says what ureq's errors
//! mean, `address.rs` resolves urls, `proxy.rs` chooses the proxy, `credentials.rs` and `text.rs` keep secrets and control
//! characters out of messages, `date.rs` reads HTTP's dates, `courier.rs` keeps the caller free to stop.
//!
//! Two things that ureq decides: a proxy is always asked by CONNECT, for http urls too; and the bytes on the wire of a gzip body
//! cannot be had, so sizes are those after decompression. At trace level ureq logs credentials: whoever sets up the logger caps it
//! for `ureq`.

mod address;
mod courier;
mod credentials;
mod date;
mod exchange;
mod failure;
mod proxy;
mod settings;
mod text;

use std::fmt;

use time::OffsetDateTime;

pub use address::check_url;
pub use courier::Courier;
pub use credentials::{Credentials, base64_url, split_credentials};
pub use exchange::UreqTransport;
pub use proxy::Proxies;
pub use settings::{HttpSettings, Roots, SettingsError, check_settings};
pub use text::{escape_outside_text, without_credentials};

/// The method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// GET, no body.
    Get,
    /// POST with a body, XML unless a header says otherwise.
    Post,
    /// PUT, the same.
    Put,
}

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Method.
    pub method: Method,
    /// Absolute http or https url, without user information.
    pub url: String,
    /// The body, UTF-8; empty for GET.
    pub body: String,
    /// Whether gzip may be offered (`Accept-Encoding: gzip`, else `identity`).
    pub gzip: bool,
}

/// What came back, whatever the status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Response {
    /// HTTP status of the last hop.
    pub status: u16,
    /// The url of the last hop, after redirects, as it was sent; a query may hold secrets, see [`without_credentials`].
    pub url: String,
    /// `Location`, as sent, of a 3xx that is not followed (300, 304, 305, 306).
    pub location: Option<String>,
    /// The `charset` parameter of Content-Type, if any.
    pub charset: Option<String>,
    /// `Date`.
    pub date: Option<OffsetDateTime>,
    /// `Retry-After` in seconds from now, both of its forms (RFC 9110, 10.2.3); a date in the past is 0.
    pub retry_after_s: Option<u64>,
    /// The decoded body, whole as far as HTTP can tell. Below a status of 400 or more it may be cut (at the latest after 1 MiB), or
    /// empty when it could not be decoded: there the status is the message.
    pub body: Vec<u8>,
}

/// Anything that sends a request and brings the answer back.
pub trait Transport {
    /// One attempt, redirects included.
    ///
    /// # Errors
    /// No complete response was had; a 4xx or 5xx with its body is a response.
    fn send(&mut self, request: &Request) -> Result<Response, TransportError>;
}

/// Why no complete response was had. Texts are escaped and without credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransportError {
    /// The host name could not be resolved.
    Resolve(String),
    /// No connection: refused, unreachable, reset before anything was sent.
    Connect(String),
    /// The certificate or the TLS handshake: final, trying again does not help.
    Tls(String),
    /// A limit on time was reached; says which.
    Timeout(String),
    /// The connection or the body ended early.
    Cut(String),
    /// The body is not what Content-Encoding says; asking again without gzip may help.
    Decompress(String),
    /// The body, decompressed, is larger than allowed: ask for a smaller page.
    TooLarge {
        /// The limit, bytes.
        body_bytes_max: u64,
    },
    /// What came is not HTTP.
    Protocol(String),
    /// Redirects that lead nowhere, or where we do not follow: final.
    Redirect(String),
    /// The proxy refused: 407 and the like are final.
    Proxy {
        /// The proxy's HTTP status, when it gave one.
        status: Option<u16>,
        /// What is known besides.
        detail: String,
    },
    /// The url cannot be used: final.
    Url(String),
    /// A bug of ours: the fetching thread is gone, or was used wrongly. Final.
    Fault(String),
}

impl TransportError {
    /// Whether the same request may succeed later.
    #[must_use]
    pub fn transient(&self) -> bool {
        match self {
            TransportError::Resolve(_)
            | TransportError::Connect(_)
            | TransportError::Timeout(_)
            | TransportError::Cut(_)
            | TransportError::Decompress(_)
            | TransportError::Protocol(_) => true,
            TransportError::Proxy { status, .. } => status.is_none_or(|status| status >= 500 || matches!(status, 408 | 425 | 429)),
            TransportError::Tls(_)
            | TransportError::TooLarge { .. }
            | TransportError::Redirect(_)
            | TransportError::Url(_)
            | TransportError::Fault(_) => false,
        }
    }

    /// Whether the proxy asks for other credentials, or forbids.
    #[must_use]
    pub fn denied(&self) -> bool {
        matches!(self, TransportError::Proxy { status: Some(401 | 403 | 407), .. })
    }
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TransportError::Resolve(detail) => write!(f, "the host name could not be resolved: {detail}"),
            TransportError::Connect(detail) => write!(f, "no connection: {detail}"),
            TransportError::Tls(detail) => write!(f, "no secure connection: {detail}"),
            TransportError::Timeout(detail) => write!(f, "out of time: {detail}"),
            TransportError::Cut(detail) => write!(f, "the connection ended early: {detail}"),
            TransportError::Decompress(detail) => write!(f, "the body cannot be decompressed: {detail}"),
            TransportError::TooLarge { body_bytes_max } => write!(f, "the body is larger than {body_bytes_max} bytes"),
            TransportError::Protocol(detail) => write!(f, "the answer is not HTTP: {detail}"),
            TransportError::Redirect(detail) => write!(f, "a redirect that is not followed: {detail}"),
            TransportError::Proxy { detail, .. } => write!(f, "the proxy refused: {detail}"),
            TransportError::Url(detail) => write!(f, "the url cannot be used: {detail}"),
            TransportError::Fault(detail) => write!(f, "a fault in this program: {detail}"),
        }
    }
}

impl std::error::Error for TransportError {}

#[cfg(test)]
mod tests {
    use super::TransportError as E;

    fn one_of_each() -> Vec<(E, bool, &'static str)> {
        let t = || "x".to_owned();
        vec![
            (E::Resolve(t()), true, "the host name could not be resolved: x"),
            (E::Connect(t()), true, "no connection: x"),
            (E::Tls(t()), false, "no secure connection: x"),
            (E::Timeout(t()), true, "out of time: x"),
            (E::Cut(t()), true, "the connection ended early: x"),
            (E::Decompress(t()), true, "the body cannot be decompressed: x"),
            (E::TooLarge { body_bytes_max: 7 }, false, "the body is larger than 7 bytes"),
            (E::Protocol(t()), true, "the answer is not HTTP: x"),
            (E::Redirect(t()), false, "a redirect that is not followed: x"),
            (E::Proxy { status: None, detail: t() }, true, "the proxy refused: x"),
            (E::Url(t()), false, "the url cannot be used: x"),
            (E::Fault(t()), false, "a fault in this program: x"),
        ]
    }

    #[test]
    fn each_error_says_in_words_what_went_wrong_and_whether_it_passes() {
        for (error, transient, text) in one_of_each() {
            assert_eq!(error.transient(), transient, "{error:?}");
            assert_eq!(error.to_string(), text);
        }
    }

    #[test]
    fn a_proxy_that_wants_credentials_is_final_and_one_in_trouble_is_not() {
        let proxy = |status| E::Proxy { status: Some(status), detail: String::new() };
        for (status, transient, denied) in [
            (407, false, true),
            (403, false, true),
            (401, false, true),
            (404, false, false),
            (429, true, false),
            (502, true, false),
        ] {
            assert_eq!((proxy(status).transient(), proxy(status).denied()), (transient, denied), "{status}");
        }
    }
}
