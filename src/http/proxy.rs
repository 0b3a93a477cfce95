//! Which proxy a url goes through.
//!
//! As curl does it and not as ureq would: by the scheme of the url (HTTP_PROXY or HTTPS_PROXY, else ALL_PROXY), lower case before
//! upper case, and NO_PROXY also with networks. The environment itself is read by the caller, once.

use std::fmt;
use std::net::IpAddr;

use super::address::{Address, Scheme};
use super::text::without_credentials;

/// The proxies of the two schemes, and the hosts that are reached without one.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Proxies {
    http: Option<String>,
    https: Option<String>,
    direct: Vec<String>,
}

impl fmt::Debug for Proxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |proxy: &Option<String>| proxy.as_deref().map(without_credentials);
        f.debug_struct("Proxies")
            .field("http", &shown(&self.http))
            .field("https", &shown(&self.https))
            .field("direct", &self.direct)
            .finish()
    }
}

impl Proxies {
    /// No proxy for anything.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// From what `lookup` gives for the names of environment variables; an empty value counts as none.
    #[must_use]
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Self {
        let either = |name: &str| {
            [name.to_ascii_lowercase(), name.to_ascii_uppercase()]
                .iter()
                .filter_map(|name| lookup(name))
                .map(|value| value.trim().to_owned())
                .find(|value| !value.is_empty())
        };
        let all = either("all_proxy");
        let direct = either("no_proxy").unwrap_or_default();
        Self {
            http: either("http_proxy").or_else(|| all.clone()),
            https: either("https_proxy").or(all),
            direct: direct.split([',', ' ', '\t']).filter(|entry| !entry.is_empty()).map(str::to_ascii_lowercase).collect(),
        }
    }

    /// Every proxy that is named; each may hold credentials.
    pub(super) fn urls(&self) -> impl Iterator<Item = &str> {
        self.http.iter().chain(self.https.iter()).map(String::as_str)
    }

    /// The proxy for this address.
    pub(super) fn choose(&self, address: &Address) -> Option<&str> {
        let proxy = match address.scheme {
            Scheme::Http => self.http.as_deref(),
            Scheme::Https => self.https.as_deref(),
        };
        proxy.filter(|_| !self.direct.iter().any(|entry| covers(entry, address)))
    }
}

/// `*`; a name, which also covers what ends in it (`example.org`, `.example.org` and `*.example.org` alike); an address; a network
/// in CIDR notation; each but `*` and networks also with a port.
fn covers(entry: &str, address: &Address) -> bool {
    if entry == "*" {
        return true;
    }
    let host = address.host.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.');
    if let Ok(ip) = host.parse::<IpAddr>()
        && let Some((network, bits)) = entry.split_once('/')
    {
        return network.parse().is_ok_and(|network| bits.parse().is_ok_and(|bits| contains(network, bits, ip)));
    }
    let bare_ipv6 = entry.parse::<IpAddr>().is_ok();
    let (entry, port) = match entry.rsplit_once(':') {
        Some((entry, port)) if !bare_ipv6 && !port.ends_with(']') => (entry, Some(port)),
        _ => (entry, None),
    };
    if port.is_some_and(|port| port.parse() != Ok(address.port)) {
        return false;
    }
    let name = entry.trim_start_matches('[').trim_end_matches(']').trim_start_matches('*').trim_matches('.');
    !name.is_empty() && (host == name || host.strip_suffix(name).is_some_and(|front| front.ends_with('.')))
}

fn contains(network: IpAddr, bits: u32, ip: IpAddr) -> bool {
    let (network, ip, width) = match (network, ip) {
        (IpAddr::V4(network), IpAddr::V4(ip)) => (u128::from(u32::from(network)), u128::from(u32::from(ip)), 32),
        (IpAddr::V6(network), IpAddr::V6(ip)) => (u128::from(network), u128::from(ip), 128),
        _ => return false,
    };
    let host_bits = u32::checked_sub(width, bits);
    host_bits.is_some_and(|host_bits| (network ^ ip).checked_shr(host_bits).unwrap_or(0) == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(variables: &[(&str, &str)]) -> Proxies {
        Proxies::from_lookup(|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
    }

    fn chosen(variables: &[(&str, &str)], url: &str) -> Option<String> {
        proxies(variables).choose(&Address::parse(url).unwrap()).map(str::to_owned)
    }

    #[test]
    fn the_scheme_of_the_url_chooses() {
        let both = [("HTTP_PROXY", "http://p:1"), ("HTTPS_PROXY", "http://p:2")];
        assert_eq!(chosen(&both, "http://a/").as_deref(), Some("http://p:1"));
        assert_eq!(chosen(&both, "https://a/").as_deref(), Some("http://p:2"));
        assert_eq!(chosen(&[("HTTPS_PROXY", "http://p:2")], "http://a/"), None);
    }

    #[test]
    fn all_proxy_fills_in_lower_case_goes_first_and_empty_is_none() {
        assert_eq!(chosen(&[("ALL_PROXY", "p:3")], "https://a/").as_deref(), Some("p:3"));
        assert_eq!(chosen(&[("all_proxy", "p:3"), ("http_proxy", "p:1")], "http://a/").as_deref(), Some("p:1"));
        assert_eq!(chosen(&[("HTTP_PROXY", "p:1"), ("http_proxy", "p:2")], "http://a/").as_deref(), Some("p:2"));
        assert_eq!(chosen(&[("HTTP_PROXY", "p:1"), ("http_proxy", "")], "http://a/").as_deref(), Some("p:1"));
        assert_eq!(chosen(&[("HTTP_PROXY", " ")], "http://a/"), None);
        assert_eq!(Proxies::none(), proxies(&[]));
        assert_eq!(proxies(&[("ALL_PROXY", "p:3")]).urls().count(), 2);
    }

    #[test]
    fn debug_output_hides_the_password() {
        let shown = format!("{:?}", proxies(&[("ALL_PROXY", "http://me:hunter2@p:3")]));
        assert!(shown.contains("//p:3") && !shown.contains("hunter2"), "{shown}");
    }

    #[test]
    fn no_proxy_covers_names_suffixes_addresses_networks_ports_and_all() {
        for (entries, url, direct) in [
            ("*", "http://a/", true),
            ("example.org", "http://example.org/", true),
            ("example.org", "http://www.Example.org/", true),
            ("example.org", "http://notexample.org/", false),
            (".example.org", "http://www.example.org/", true),
            ("*.example.org", "http://www.example.org/", true),
            ("EXAMPLE.org", "http://example.org/", true),
            ("x, example.org y", "http://example.org/", true),
            ("example.org:8080", "http://example.org:8080/", true),
            ("example.org:8080", "http://example.org/", false),
            ("example.org", "http://example.org:8080/", true),
            ("127.0.0.1", "http://127.0.0.1:99/", true),
            ("127.0.0.0/8", "http://127.9.9.9/", true),
            ("10.0.0.0/8", "http://11.0.0.1/", false),
            ("0.0.0.0/0", "http://11.0.0.1/", true),
            ("10.0.0.0/33", "http://10.0.0.0/", false),
            ("10.0.0.0/x", "http://10.0.0.0/", false),
            ("::1", "http://[::1]:8080/", true),
            ("[::1]", "http://[::1]/", true),
            ("[::1]:81", "http://[::1]:80/", false),
            ("fe80::/10", "http://[fe80::1]/", true),
            ("::/0", "http://[fe80::1]/", true),
            ("::/0", "http://1.2.3.4/", false),
            (".", "http://a/", false),
            ("", "http://a/", false),
        ] {
            assert_eq!(chosen(&[("http_proxy", "p:1"), ("no_proxy", entries)], url).is_none(), direct, "{entries} {url}");
        }
    }
}
