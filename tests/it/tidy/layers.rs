//! Which file may name what: pure modules no effect, SQL only in the store, HTTP only in `http`.

use super::code::{before_tests, paths};

/// Modules that know no file, socket, clock, environment or log. A name stands for the file and for the folder.
const PURE: [&str; 11] = [
    "timestamp",
    "plan",
    "watermark",
    "dialect",
    "report",
    "findings",
    "metrics",
    "csw",
    "reconcile",
    "stable_hash",
    "export/file_name",
];

/// What pure modules may not name.
const EFFECTS: [&str; 24] = [
    "std::fs",
    "std::net",
    "std::env",
    "std::io",
    "std::process",
    "std::thread",
    "std::time::SystemTime",
    "std::time::Instant",
    "log",
    "ureq",
    "rusqlite",
    "crate::http",
    "crate::retry",
    "crate::clock",
    "crate::lock",
    "crate::signal",
    "crate::journal",
    "crate::progress",
    "crate::publish",
    "crate::store",
    "crate::harvest",
    "crate::negotiate",
    "crate::catalogue",
    "crate::cli",
];

/// Values that live among effects: an address is no socket.
const VALUES: [&str; 3] = ["std::net::IpAddr", "std::net::Ipv4Addr", "std::net::Ipv6Addr"];

/// Crates that one module alone may name.
const OWNED: [(&str, &str); 5] =
    [("rusqlite", "store"), ("ureq", "http"), ("indicatif", "progress"), ("ring", "export/file_name"), ("rustix", "replace")];

/// What a file of `src` names although it may not.
pub(super) fn breaches(file: &str, text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for named in paths(file, before_tests(text)) {
        let place = format!("{file}:{}: {}", named.line, named.path);
        let is_value = VALUES.iter().any(|value| within(&named.path, value));
        let pure = !is_value && PURE.iter().any(|module| is_of(file, module));
        if pure && EFFECTS.iter().any(|effect| reaches(&named.path, effect)) {
            found.push(format!("{place}: a pure module may not know it"));
        }
        for (owned, owner) in OWNED {
            if reaches(&named.path, owned) && !is_of(file, owner) {
                found.push(format!("{place}: only {owner} may name {owned}"));
            }
        }
    }
    found.dedup();
    found
}

fn is_of(file: &str, module: &str) -> bool {
    let inner = file.strip_prefix("src/").unwrap_or(file);
    inner.strip_prefix(module).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
}

/// The thing itself, something within it, or everything of a module that holds it.
fn reaches(path: &str, effect: &str) -> bool {
    within(path, effect) || path.strip_suffix("::*").is_some_and(|all| within(effect, all))
}

fn within(inner: &str, outer: &str) -> bool {
    inner == outer || inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with("::"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_effect_in_a_pure_module_is_found_however_it_is_written() {
        let ways = [
            "use std::fs;\n",
            "use std::{cmp::Ordering, io::Read};\n",
            "use std::time::{Duration, Instant};\n",
            "use std::time::*;\n",
            "use std::time;\nfn f() { time::SystemTime::now(); }\n",
            "fn f() { std::env::var(\"X\").ok(); }\n",
            "fn f() { log::warn!(\"x\"); }\n",
            "use crate::{csw::Query, store::Store};\n",
            "use super::super::retry::RetryPolicy;\n",
            "use crate::*;\n",
            "use ureq::Agent;\n",
            "use std::net::{Ipv6Addr, TcpStream};\n",
        ];
        for way in ways {
            assert!(!breaches("src/csw/request.rs", way).is_empty(), "not found: {way}");
        }
    }

    #[test]
    fn the_same_is_no_breach_in_comments_texts_tests_and_effect_modules() {
        let harmless = [
            "//! Never std::fs.\n",
            "const A: &str = \"std::fs::read\";\n",
            "use std::time::Duration;\nuse std::net::Ipv6Addr;\nuse crate::timestamp;\nuse crate::exit::ExitStatus;\n",
            "#[cfg(test)]\nmod tests {\n    use std::fs;\n}\n",
            "struct Catalogue { log: u8 }\nfn f(c: &Catalogue) -> u8 { c.log }\n",
        ];
        for text in harmless {
            assert_eq!(breaches("src/csw/request.rs", text), [""; 0], "{text}");
        }
        assert_eq!(breaches("src/lock.rs", "use std::fs;\nuse crate::clock::Clock;\n"), [""; 0]);
    }

    #[test]
    fn sql_and_http_stay_where_they_are() {
        assert_eq!(breaches("src/store/page.rs", "use rusqlite::params;\n"), [""; 0]);
        assert_eq!(breaches("src/http/exchange.rs", "use ureq::Agent;\n"), [""; 0]);
        assert_eq!(breaches("src/http.rs", "use ureq::Agent;\n"), [""; 0]);
        assert!(!breaches("src/harvest.rs", "use rusqlite::params;\n").is_empty());
        assert!(!breaches("src/httpd.rs", "fn f() { ureq::get(\"x\"); }\n").is_empty());
        assert!(!breaches("src/store/page.rs", "use ureq::Agent;\n").is_empty());
    }
}
