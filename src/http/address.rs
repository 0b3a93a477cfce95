//! The parts of an http url that redirects, proxies and credentials are decided by, and where a relative `Location` leads.
//!
//! Only as much of RFC 3986 as a catalogue's endpoint needs: no user information, no names outside ASCII (those are written
//! `xn--`). Characters that a url must write as `%XX` are written so, the rest of path and query stays as it came. Nothing is
//! resolved or opened.

use std::fmt;
use std::net::Ipv6Addr;

use super::text::without_userinfo;

const HOST_BYTES_MAX: usize = 255;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    Http,
    Https,
}

impl Scheme {
    fn parse(text: &str) -> Option<Self> {
        match text.to_ascii_lowercase().as_str() {
            "http" => Some(Scheme::Http),
            "https" => Some(Scheme::Https),
            _ => None,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }

    fn default_port(self) -> u16 {
        match self {
            Scheme::Http => 80,
            Scheme::Https => 443,
        }
    }
}

/// An absolute http or https url without user information and fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) scheme: Scheme,
    /// Lower case; an IPv6 address in brackets.
    pub(super) host: String,
    pub(super) port: u16,
    /// Path and query, ASCII, beginning with a slash.
    pub(super) target: String,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme.name(), self.host)?;
        if self.port != self.scheme.default_port() {
            write!(f, ":{}", self.port)?;
        }
        f.write_str(&self.target)
    }
}

/// Whether a url without user information can be sent to.
///
/// # Errors
/// What is wrong with it, without quoting it.
pub fn check_url(url: &str) -> Result<(), &'static str> {
    Address::parse(url).map(drop)
}

impl Address {
    /// Reads an absolute url, or says what is wrong with it (without quoting it).
    pub(super) fn parse(url: &str) -> Result<Self, &'static str> {
        let (scheme, rest) = url.split_once("://").ok_or("it does not begin with http:// or https://")?;
        let scheme = Scheme::parse(scheme).ok_or("its scheme is neither http nor https")?;
        let split = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at_checked(split).unwrap_or((rest, ""));
        if authority.contains('@') {
            return Err("it holds user information, which must be given apart");
        }
        let (host, port) = host_and_port(authority)?;
        Ok(Self { scheme, host, port: port.unwrap_or(scheme.default_port()), target: target_of(target) })
    }

    /// Where a `Location` leads from here (RFC 9110, 10.2.2; RFC 3986, 5.2). User information in it is dropped.
    pub(super) fn resolve(&self, location: &[u8]) -> Result<Self, &'static str> {
        let location = encoded(location.trim_ascii());
        if let Some((_, rest)) = location.split_once("://").filter(|(scheme, _)| is_scheme(scheme)) {
            let scheme = location.strip_suffix(rest).unwrap_or("");
            return Self::parse(&format!("{scheme}{}", without_userinfo(rest)));
        }
        if let Some(rest) = location.strip_prefix("//") {
            return Self::parse(&format!("{}://{}", self.scheme.name(), without_userinfo(rest)));
        }
        if location.split_once(':').is_some_and(|(scheme, _)| is_scheme(scheme)) {
            return Err("its scheme is neither http nor https");
        }
        let reference = location.split('#').next().unwrap_or("");
        let (base_path, base_query) = split_query(&self.target);
        let (path, query) = split_query(reference);
        let target = if path.is_empty() {
            format!("{base_path}{}", if query.is_empty() { base_query } else { query })
        } else if path.starts_with('/') {
            format!("{}{query}", without_dots(path))
        } else {
            let folder = base_path.rsplit_once('/').map_or("", |(folder, _)| folder);
            format!("{}{query}", without_dots(&format!("{folder}/{path}")))
        };
        Ok(Self { target: target_of(&target), ..self.clone() })
    }

    /// Whether secrets meant for this address may go to `other`: the same host, and the same port by the same scheme, or the step
    /// from http to https on their usual ports.
    pub(super) fn shares_secrets_with(&self, other: &Self) -> bool {
        let same = self.scheme == other.scheme && self.port == other.port;
        let upgrade = (self.scheme, self.port, other.scheme, other.port) == (Scheme::Http, 80, Scheme::Https, 443);
        self.host == other.host && (same || upgrade)
    }
}

fn host_and_port(authority: &str) -> Result<(String, Option<u16>), &'static str> {
    let (host, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((inner, port)) => {
            inner.parse::<Ipv6Addr>().map_err(|_| "its host is not an IPv6 address")?;
            (format!("[{}]", inner.to_ascii_lowercase()), port)
        }
        None => {
            let split = authority.find(':').unwrap_or(authority.len());
            let (host, port) = authority.split_at_checked(split).unwrap_or((authority, ""));
            if !host.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_')) {
                return Err(
                    "its host name holds characters that a host name cannot have (names outside ASCII are written xn--...)",
                );
            }
            (host.to_ascii_lowercase(), port)
        }
    };
    if host.is_empty() || host.len() > HOST_BYTES_MAX {
        return Err("it has no host name, or one that is too long");
    }
    let port = match port.strip_prefix(':') {
        None if port.is_empty() => None,
        Some("") => None,
        Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => {
            digits.parse().ok().filter(|port| *port > 0).map(Some).ok_or(PORT)?
        }
        _ => return Err(PORT),
    };
    Ok((host, port))
}

const PORT: &str = "its port is not a number from 1 to 65535";

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
}

fn target_of(text: &str) -> String {
    let text = encoded(text.split('#').next().unwrap_or("").as_bytes());
    if text.starts_with('/') { text } else { format!("/{text}") }
}

/// Writes as `%XX` what no url may hold as it is (RFC 3986, 2); a `%` stays, so that nothing is encoded twice.
fn encoded(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        if byte.is_ascii_graphic() && !matches!(byte, b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}') {
            text.push(char::from(*byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

/// The path, and the query with its question mark.
fn split_query(text: &str) -> (&str, &str) {
    let split = text.find('?').unwrap_or(text.len());
    text.split_at_checked(split).unwrap_or((text, ""))
}

/// RFC 3986, 5.2.4, for a path that begins with a slash.
fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut ends_in_folder = false;
    for segment in path.split('/').skip(1) {
        ends_in_folder = matches!(segment, "." | "..");
        match segment {
            "." => (),
            ".." => {
                kept.pop();
            }
            _ => kept.push(segment),
        }
    }
    if ends_in_folder {
        kept.push("");
    }
    format!("/{}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn address(url: &str) -> Address {
        Address::parse(url).unwrap()
    }

    #[test]
    fn a_url_is_read_and_written() {
        for (url, written) in [
            ("http://example.org", "http://example.org/"),
            ("HTTPS://Example.ORG:443/CSW?a=B#c", "https://example.org/CSW?a=B"),
            ("http://example.org:443?a", "http://example.org:443/?a"),
            ("http://example.org:/x", "http://example.org/x"),
            ("http://[::1]:8080/a b\u{e4}|%20", "http://[::1]:8080/a%20b%C3%A4%7C%20"),
            ("http://10.0.0.1:80/x//y/../z", "http://10.0.0.1/x//y/../z"),
        ] {
            assert_eq!(address(url).to_string(), written);
        }
    }

    #[test]
    fn what_is_no_http_url_is_refused() {
        for url in [
            "",
            "example.org",
            "ftp://a/",
            "http://",
            "http:///x",
            "http://:80/",
            "http://a:0/",
            "http://a:65536/",
            "http://a:b/",
            "http://a:+1/",
            "http://me@a/",
            "http://me:pw@a/",
            "http://a b/",
            "http://a\r\nX:y/",
            "http://[::1/",
            "http://[zz]/",
            "http://[::1]x/",
            "http://\u{e4}/",
            "http://a%2fb/",
        ] {
            assert!(Address::parse(url).is_err(), "{url:?}");
        }
        assert!(Address::parse(&format!("http://{}/", "a".repeat(256))).is_err());
    }

    #[test]
    fn a_location_is_resolved_as_in_rfc_3986_5_4() {
        let base = address("http://a/b/c/d;p?q");
        for (location, target) in [
            ("g", "/b/c/g"),
            ("./g", "/b/c/g"),
            ("g/", "/b/c/g/"),
            ("/g", "/g"),
            ("?y", "/b/c/d;p?y"),
            ("g?y", "/b/c/g?y"),
            ("#s", "/b/c/d;p?q"),
            ("g#s", "/b/c/g"),
            (";x", "/b/c/;x"),
            ("", "/b/c/d;p?q"),
            (".", "/b/c/"),
            ("./", "/b/c/"),
            ("..", "/b/"),
            ("../g", "/b/g"),
            ("../..", "/"),
            ("../../g", "/g"),
            ("../../../g", "/g"),
            ("/./g", "/g"),
            ("/../g", "/g"),
            ("g.", "/b/c/g."),
            ("..g", "/b/c/..g"),
            ("./../g", "/b/g"),
            ("g/./h", "/b/c/g/h"),
            ("g/../h", "/b/c/h"),
            ("g?y/../x", "/b/c/g?y/../x"),
        ] {
            assert_eq!(base.resolve(location.as_bytes()).unwrap().target, target, "{location}");
        }
    }

    #[test]
    fn a_location_with_a_host_leads_there() {
        let base = address("https://a:8443/b");
        for (location, url) in [
            ("http://c/d", "http://c/d"),
            (" https://c/d\u{e4} ", "https://c/d%C3%A4"),
            ("//c:1/d", "https://c:1/d"),
            ("http://me:pw@c/d", "http://c/d"),
            ("/x?u=http://c/", "https://a:8443/x?u=http://c/"),
            ("x/y://z", "https://a:8443/x/y://z"),
        ] {
            assert_eq!(base.resolve(location.as_bytes()).unwrap().to_string(), url, "{location}");
        }
        for location in ["ftp://c/", "javascript:x", "http:/x", "http://", "data:,x"] {
            assert!(base.resolve(location.as_bytes()).is_err(), "{location}");
        }
    }

    #[test]
    fn secrets_go_to_the_same_origin_and_its_https_twin_only() {
        let share = |a: &str, b: &str| address(a).shares_secrets_with(&address(b));
        assert!(share("http://a/x", "http://A:80/y"));
        assert!(share("http://a/", "https://a/"));
        assert!(!share("https://a/", "http://a/"));
        assert!(!share("http://a/", "http://b/"));
        assert!(!share("http://a/", "http://a:8080/"));
        assert!(!share("http://a:8080/", "https://a:8443/"));
        assert!(!share("http://a/", "http://a.b/"));
    }

    proptest! {
        #[test]
        fn no_location_makes_it_panic_or_gives_what_cannot_be_read_again(location in proptest::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(next) = address("http://a/b/c?d").resolve(&location) {
                prop_assert_eq!(Address::parse(&next.to_string()).unwrap(), next);
            }
        }

        #[test]
        fn nor_does_one_of_url_characters(location in "(http://|//|/)?[a-z:/?#@.\\[\\]%]{0,20}") {
            if let Ok(next) = address("http://a/b/c?d").resolve(location.as_bytes()) {
                prop_assert_eq!(Address::parse(&next.to_string()).unwrap(), next);
            }
        }
    }
}
