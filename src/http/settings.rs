//! What holds for every request of a run, and the checks of it that need no connection.
//!
//! Where the values come from (options, files, the environment) is the caller's business. No message holds a secret.

use std::fmt;
use std::time::Duration;

use ureq::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use ureq::tls::{Certificate, PemItem, parse_pem};
use ureq::{Proxy, ProxyProtocol};

use super::{Credentials, Proxies, escape_outside_text, without_credentials};

const TEXT_CHARS_MAX: usize = 200;
/// What frames the message or the connection, or is decided per request, is not the user's to set.
const HEADERS_OURS: [HeaderName; 9] = [
    header::ACCEPT_ENCODING,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::EXPECT,
    header::HOST,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Which certificates are trusted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Roots {
    /// The system's store (or what SSL_CERT_FILE and SSL_CERT_DIR name).
    #[default]
    System,
    /// The system's store and the certificates of these PEM texts.
    SystemAnd(Vec<Vec<u8>>),
}

/// What holds for every request of a run.
#[derive(Clone)]
pub struct HttpSettings {
    /// At most a day. Limit for resolving, for connecting, for the first byte of the answer and for silence within it. A whole
    /// response, redirects included, may take ten times that, and a last hop that begins within this time as much again.
    pub timeout: Duration,
    /// The largest body after decompression.
    pub body_bytes_max: u64,
    /// Redirects followed for one request.
    pub redirects_max: u8,
    /// `User-Agent`; also told to a proxy.
    pub user_agent: String,
    /// For the catalogue's own origin only.
    pub credentials: Option<Credentials>,
    /// Name and value, for the catalogue's own origin only. They replace ours of the same name.
    pub headers: Vec<(String, String)>,
    /// Trust.
    pub roots: Roots,
    /// Proxies.
    pub proxies: Proxies,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(30),
            body_bytes_max: 64 << 20,
            redirects_max: 5,
            user_agent: concat!("csw-harvester/", env!("CARGO_PKG_VERSION")).to_owned(),
            credentials: None,
            headers: Vec::new(),
            roots: Roots::System,
            proxies: Proxies::none(),
        }
    }
}

/// Why settings cannot be used. Texts hold no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingsError {
    /// A PEM text has no certificate, or is damaged.
    Roots(String),
    /// A header's name or value cannot be sent, or is not the user's to set.
    Header(String),
    /// The credentials cannot be sent, or are given twice.
    Credentials(String),
    /// A proxy's url cannot be used.
    Proxy(String),
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingsError::Roots(detail) => write!(f, "the trusted certificates cannot be used: {detail}"),
            SettingsError::Header(detail) => write!(f, "a header cannot be sent: {detail}"),
            SettingsError::Credentials(detail) => write!(f, "the credentials cannot be sent: {detail}"),
            SettingsError::Proxy(detail) => write!(f, "a proxy cannot be used: {detail}"),
        }
    }
}

impl std::error::Error for SettingsError {}

/// Checks everything that can be checked without a connection.
///
/// # Errors
/// See [`SettingsError`].
pub fn check_settings(settings: &HttpSettings) -> Result<(), SettingsError> {
    for proxy in settings.proxies.urls() {
        usable_proxy(proxy)?;
    }
    HeaderValue::from_str(&settings.user_agent).map_err(|_| SettingsError::Header("User-Agent".to_owned()))?;
    if let Roots::SystemAnd(texts) = &settings.roots {
        certificates(texts)?;
    }
    private_headers(settings).map(drop)
}

/// ureq would ignore what it cannot use; a connection past the proxy that was asked for is worse than none.
pub(super) fn usable_proxy(url: &str) -> Result<Proxy, SettingsError> {
    let unusable =
        |what: &str| SettingsError::Proxy(format!("{what}: {}", escape_outside_text(&without_credentials(url), TEXT_CHARS_MAX)));
    // What cannot be taken apart cannot be shown without its password either.
    let proxy = Proxy::new(url)
        .map_err(|_| SettingsError::Proxy("not the url of a proxy (it is not shown, for it may hold a password)".to_owned()))?;
    match proxy.protocol() {
        ProxyProtocol::Http | ProxyProtocol::Https => Ok(proxy),
        _ => Err(unusable("only http and https proxies can be used")),
    }
}

pub(super) fn certificates(texts: &[Vec<u8>]) -> Result<Vec<Certificate<'static>>, SettingsError> {
    let mut all = Vec::new();
    for text in texts {
        let before = all.len();
        for part in parse_pem(text) {
            match part {
                Ok(PemItem::Certificate(certificate)) => all.push(certificate),
                Ok(_) => (),
                Err(error) => return Err(SettingsError::Roots(escape_outside_text(&error.to_string(), TEXT_CHARS_MAX))),
            }
        }
        if all.len() == before {
            return Err(SettingsError::Roots("no certificate in it (PEM is expected)".to_owned()));
        }
    }
    Ok(all)
}

/// The user's headers and Authorization.
pub(super) fn private_headers(settings: &HttpSettings) -> Result<HeaderMap, SettingsError> {
    let mut headers = HeaderMap::new();
    for (name, value) in &settings.headers {
        let shown = escape_outside_text(name, TEXT_CHARS_MAX);
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| SettingsError::Header(format!("{shown} is not a name")))?;
        if HEADERS_OURS.contains(&name) {
            return Err(SettingsError::Header(format!("{shown} is not yours to set")));
        }
        if name == header::AUTHORIZATION && headers.contains_key(&name) {
            return Err(SettingsError::Header(format!("{shown} can be given once only")));
        }
        let mut value = HeaderValue::from_bytes(value.as_bytes())
            .map_err(|_| SettingsError::Header(format!("{shown} has a value that cannot be sent")))?;
        value.set_sensitive(true);
        headers.append(name, value);
    }
    let Some(credentials) = &settings.credentials else {
        return Ok(headers);
    };
    if headers.contains_key(header::AUTHORIZATION) {
        return Err(SettingsError::Credentials("there is an Authorization header already".to_owned()));
    }
    let value = credentials.authorization().map_err(|what| SettingsError::Credentials(what.to_owned()))?;
    let mut value =
        HeaderValue::from_str(&value).map_err(|_| SettingsError::Credentials("characters that no header can hold".to_owned()))?;
    value.set_sensitive(true);
    headers.insert(header::AUTHORIZATION, value);
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::UreqTransport;

    fn settings() -> HttpSettings {
        HttpSettings::default()
    }

    fn refused(settings: HttpSettings) -> String {
        UreqTransport::new(settings).map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn settings_that_cannot_be_used_are_refused_before_anything_is_sent() {
        let header = |name: &str, value: &str| HttpSettings { headers: vec![(name.to_owned(), value.to_owned())], ..settings() };
        assert!(refused(header("a b", "c")).contains("not a name"));
        assert!(refused(header("X", "hunter2\r\nY: z")).contains("cannot be sent"));
        assert!(!refused(header("X", "hunter2\r\nY: z")).contains("hunter2"));
        assert!(refused(header("Content-length", "1")).contains("not yours"));
        let twice = HttpSettings { credentials: Some(Credentials::Bearer("x".to_owned())), ..header("authorization", "x") };
        assert!(refused(twice).contains("already"));
        let colon = Credentials::Basic { user: "a:b".to_owned(), password: String::new() };
        assert!(refused(HttpSettings { credentials: Some(colon), ..settings() }).contains("colon"));
        assert!(refused(HttpSettings { user_agent: "a\nb".to_owned(), ..settings() }).contains("User-Agent"));
        for proxy in ["socks5://p:1", "http://", "http://me:hunter2@p:x y"] {
            let proxies = Proxies::from_lookup(|name| (name == "all_proxy").then(|| proxy.to_owned()));
            let text = refused(HttpSettings { proxies, ..settings() });
            assert!(text.contains("proxy") && !text.contains("hunter2"), "{text}");
        }
    }

    #[test]
    fn roots_are_pem_texts_with_certificates() {
        let roots = |text: &str| HttpSettings { roots: Roots::SystemAnd(vec![text.as_bytes().to_vec()]), ..settings() };
        assert!(refused(roots("")).contains("no certificate"));
        assert!(
            refused(roots("-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n")).contains("certificates cannot be used")
        );
        let two = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n".repeat(2);
        assert_eq!(certificates(&[two.into_bytes()]).map(|found| found.len()), Ok(2));
    }
}
