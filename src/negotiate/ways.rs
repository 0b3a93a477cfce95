//! In which ways the first GetRecords may be put: version, method and address, the likeliest first.
//!
//! Pure. Takes what the capabilities say for a hint, and learns from each refusal which of the other ways are worth a request. Asks
//! nothing itself.

use std::collections::VecDeque;

use super::Pinned;
use crate::csw::capabilities::Capabilities;
use crate::csw::request::{TypeName, clean_url};
use crate::csw::{Binding, Version};

/// Hosts that templates and installers leave in capabilities, which lead nowhere.
const PLACEHOLDERS: [&str; 5] = ["0.0.0.0", "example.com", "example.org", "www.example.com", "hostname"];

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Way {
    /// Where GetRecords goes.
    pub(super) endpoint: String,
    /// In which version.
    pub(super) version: Version,
    /// By which method.
    pub(super) binding: Binding,
    /// What is queried.
    pub(super) type_name: TypeName,
}

/// Who refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// No catalogue spoke: the address or the method is wrong.
    NoCatalogue,
    /// A catalogue spoke, and refused the words.
    Report,
}

/// Those that were not tried, in order; at most two versions by two methods at two addresses.
#[derive(Clone, Debug)]
pub(super) struct Ways(VecDeque<Way>);

impl Ways {
    /// What is worth trying at `base`. Version 2.0.2 leads unless the capabilities name 3.0.0 alone; POST leads; the given address leads.
    pub(super) fn of(base: &str, capabilities: Option<&Capabilities>, pinned: &Pinned) -> Self {
        let versions = match pinned.version {
            Some(version) => vec![version],
            None if speaks_only_3(capabilities) => vec![Version::V300, Version::V202],
            None => vec![Version::V202, Version::V300],
        };
        let bindings = match pinned.binding {
            Some(binding) => vec![binding],
            None => vec![Binding::Post, Binding::Get],
        };
        let mut ways = VecDeque::new();
        for version in versions {
            for binding in &bindings {
                let advertised = capabilities.map(|capabilities| match binding {
                    Binding::Post => capabilities.post_urls.as_slice(),
                    Binding::Get => capabilities.get_urls.as_slice(),
                });
                let other = usable_endpoint(base, advertised.unwrap_or_default());
                for endpoint in [Some(base.to_owned()), other].into_iter().flatten() {
                    ways.push_back(Way { endpoint, version, binding: *binding, type_name: TypeName::Record });
                }
            }
        }
        Ways(ways)
    }

    /// The next to try.
    pub(super) fn next(&mut self) -> Option<Way> {
        self.0.pop_front()
    }

    /// Tries this one before the others.
    pub(super) fn prefer(&mut self, way: Way) {
        self.0.push_front(way);
    }

    /// Takes out what `tried` has shown to be in vain, and puts last what it has made unlikely.
    pub(super) fn learn(&mut self, tried: &Way, refusal: Refusal) {
        match refusal {
            Refusal::NoCatalogue => self.0.retain(|way| (&way.endpoint, way.binding) != (&tried.endpoint, tried.binding)),
            Refusal::Report => {
                self.0.retain(|way| way.endpoint == tried.endpoint);
                // Not to be refused in the same version once more, unless by then all else is tried.
                let (same, other): (Vec<Way>, Vec<Way>) = self.0.drain(..).partition(|way| way.version == tried.version);
                self.0.extend(other.into_iter().chain(same));
            }
        }
    }
}

fn speaks_only_3(capabilities: Option<&Capabilities>) -> bool {
    let speaks = |number: &str| capabilities.is_some_and(|capabilities| capabilities.versions.iter().any(|v| v == number));
    speaks(Version::V300.as_str()) && !speaks(Version::V202.as_str())
}

/// The first advertised address that may be used in place of the given one: never from https down to http, never at another host,
/// since credentials go along and internal names and loopback addresses lead elsewhere.
fn usable_endpoint(base: &str, advertised: &[String]) -> Option<String> {
    let given = host(base)?;
    let may_stand_in = |url: &String| {
        let secure = !base.starts_with("https:") || url.starts_with("https:");
        let host = host(url).unwrap_or_default();
        let same = host == given || (is_loopback(host) && is_loopback(given));
        url != base && secure && same && !PLACEHOLDERS.contains(&host) && !url.contains("$%7B") && !url.contains(['$', '{', '}'])
    };
    advertised.iter().filter_map(|url| clean_url(url).ok()).map(|clean| clean.url).find(may_stand_in)
}

/// The host of a cleaned url, without its port.
fn host(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?']).next()?;
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => Some(host),
        _ => Some(authority),
    }
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.starts_with("127.") || host == "[::1]"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capabilities(versions: &[&str], post: &[&str], get: &[&str]) -> Capabilities {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        Capabilities { versions: owned(versions), post_urls: owned(post), get_urls: owned(get), ..Capabilities::default() }
    }

    fn told(ways: &mut Ways) -> Vec<String> {
        let mut out = Vec::new();
        while let Some(way) = ways.next() {
            out.push(format!("{} {} {}", way.version.as_str(), way.binding.as_str(), way.endpoint));
        }
        out
    }

    const BASE: &str = "http://c.example/csw";

    #[test]
    fn version_2_by_post_at_the_given_address_leads() {
        let offered = capabilities(&["3.0.0", "2.0.2"], &["http://c.example/post"], &[BASE]);
        let mut ways = Ways::of(BASE, Some(&offered), &Pinned::default());
        let expected = [
            "2.0.2 post http://c.example/csw",
            "2.0.2 post http://c.example/post",
            "2.0.2 get http://c.example/csw",
            "3.0.0 post http://c.example/csw",
            "3.0.0 post http://c.example/post",
            "3.0.0 get http://c.example/csw",
        ];
        assert_eq!(told(&mut ways), expected);
    }

    #[test]
    fn version_3_leads_where_it_stands_alone() {
        for (versions, first) in [
            (vec!["3.0.0"], Version::V300),
            (vec!["2.0.2"], Version::V202),
            (vec!["2.0.0"], Version::V202),
            (vec![], Version::V202),
        ] {
            let offered = capabilities(&versions, &[], &[]);
            let way = Ways::of(BASE, Some(&offered), &Pinned::default()).next().unwrap();
            assert_eq!(way.version, first, "{versions:?}");
        }
        assert_eq!(Ways::of(BASE, None, &Pinned::default()).next().unwrap().version, Version::V202);
    }

    #[test]
    fn what_is_pinned_is_not_asked_about() {
        let pinned = Pinned { version: Some(Version::V300), binding: Some(Binding::Get), ..Pinned::default() };
        assert_eq!(told(&mut Ways::of(BASE, None, &pinned)), ["3.0.0 get http://c.example/csw"]);
    }

    #[test]
    fn where_no_catalogue_spoke_neither_version_is_tried_again() {
        let mut ways = Ways::of(BASE, None, &Pinned::default());
        let tried = ways.next().unwrap();
        ways.learn(&tried, Refusal::NoCatalogue);
        assert_eq!(told(&mut ways), ["2.0.2 get http://c.example/csw", "3.0.0 get http://c.example/csw"]);
    }

    #[test]
    fn after_a_report_the_other_version_comes_first_and_no_other_address() {
        let offered = capabilities(&["2.0.2"], &["http://c.example/post"], &["http://c.example/get"]);
        let mut ways = Ways::of(BASE, Some(&offered), &Pinned::default());
        let tried = ways.next().unwrap();
        ways.learn(&tried, Refusal::Report);
        let expected = ["3.0.0 post http://c.example/csw", "3.0.0 get http://c.example/csw", "2.0.2 get http://c.example/csw"];
        assert_eq!(told(&mut ways), expected);
    }

    #[test]
    fn a9_addresses_that_lead_elsewhere_are_not_used() {
        let usable = |base: &str, url: &str| usable_endpoint(base, &[url.to_owned()]);
        for (base, url) in [
            ("https://c.example/csw", "http://c.example/soap"),
            ("http://c.example/csw", "http://localhost/csw"),
            ("http://c.example/csw", "http://127.0.0.1:8080/csw"),
            ("http://c.example/csw", "http://c-internal/csw"),
            ("http://c.example/csw", "${SITE_URL}/csw"),
            ("http://c.example/csw", "http://c.example/${PATH}"),
            ("http://example.org/csw", "http://example.org/other"),
            ("http://c.example/csw", "http://c.example/csw?service=CSW"),
        ] {
            assert_eq!(usable(base, url), None, "{base} {url}");
        }
        for (base, url) in [
            ("http://c.example/csw", "https://c.example/csw"),
            ("http://c.example:8080/csw", "http://c.example/other?map=1"),
            ("http://127.0.0.1:8000/csw", "http://localhost:8000/x"),
        ] {
            assert_eq!(usable(base, url).as_deref(), Some(url), "{base}");
        }
    }
}
