//! Making outside text fit to be shown: control characters escaped, length limited, secrets gone.
//!
//! For messages and logs only: what is stored or sent stays as it is.

use super::credentials::percent_decoded;

const ELLIPSIS: &str = "...";

/// Text from outside, on one line and harmless on a terminal.
///
/// Control characters (C0, DEL, C1), line and paragraph separators, bidirectional controls (UAX 9) and characters without width are
/// written as escapes. At most `chars_max` characters long; what is cut off is shown by `...`, and no escape is ever cut in two.
#[must_use]
pub fn escape_outside_text(text: &str, chars_max: usize) -> String {
    let room = chars_max.saturating_sub(ELLIPSIS.len());
    let mut shown = String::new();
    let mut chars = 0;
    let mut fits = 0;
    for c in text.chars() {
        let before = shown.len();
        if needs_escape(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
        chars += shown.get(before..).map_or(0, |added| added.chars().count());
        if chars <= room {
            fits = shown.len();
        }
        if chars > chars_max {
            shown.truncate(fits);
            shown.extend(ELLIPSIS.chars().take(chars_max));
            return shown;
        }
    }
    shown
}

fn needs_escape(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{061c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
}

/// A url as it may be shown: without user information, and `***` for the values of query parameters that are named like secrets.
///
/// Takes any text, also what is no url, since it is meant for messages about urls that cannot be used.
#[must_use]
pub fn without_credentials(url: &str) -> String {
    let (scheme, rest) = match url.find("://").and_then(|at| url.split_at_checked(at + 3)) {
        Some((scheme, rest)) if !scheme.contains(['?', '#', '@']) => (scheme, rest),
        _ => ("", url),
    };
    let rest = without_anything_like_userinfo(rest);
    let Some((path, query)) = rest.split_once('?') else {
        return format!("{scheme}{rest}");
    };
    let shown: String = query.split_inclusive(['&', ';', '#', '?']).map(masked).collect();
    format!("{scheme}{path}?{shown}")
}

/// What follows the scheme, less user information: all up to the last `@` before path, query and fragment.
pub(super) fn without_userinfo(rest: &str) -> &str {
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    let cut = authority.rsplit_once('@').map_or(0, |(userinfo, _)| userinfo.len() + 1);
    rest.get(cut..).unwrap_or(rest)
}

/// The same for showing: where a password holds the very characters that end it, rather too much goes than too little.
fn without_anything_like_userinfo(rest: &str) -> &str {
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    // `user:pass/word@host`: what stands where the port would is not one, and an `@` comes later.
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
    let odd_port = authority.split_once(':').is_some_and(|(_, port)| !is_port(port)) && !authority.starts_with('[');
    if authority.contains('@') || odd_port {
        return rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    }
    rest
}

/// One `name=value` with the separator that follows it.
fn masked(parameter: &str) -> String {
    let bare = parameter.trim_end_matches(['&', ';', '#', '?']);
    let separators = parameter.get(bare.len()..).unwrap_or("");
    match bare.split_once('=') {
        Some((name, value)) if !value.is_empty() && is_secret(name) => format!("{name}=***{separators}"),
        _ => parameter.to_owned(),
    }
}

fn is_secret(name: &str) -> bool {
    let name = String::from_utf8_lossy(&percent_decoded(name)).to_ascii_lowercase();
    name.ends_with("key")
        || ["token", "secret", "passw", "pwd", "credential", "signature"].iter().any(|word| name.contains(word))
        || ["pass", "auth", "sig", "sid", "session"].contains(&name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn plain_text_stays() {
        assert_eq!(escape_outside_text("Gr\u{fc}n \u{6f22} \\ 'a'", 80), "Gr\u{fc}n \u{6f22} \\ 'a'");
    }

    #[test]
    fn what_moves_a_terminal_or_hides_is_escaped() {
        assert_eq!(
            escape_outside_text("a\n\x1b[2J\u{9b}\u{7f}\u{202e}b\u{200b}\u{feff}", 80),
            r"a\n\u{1b}[2J\u{9b}\u{7f}\u{202e}b\u{200b}\u{feff}"
        );
    }

    #[test]
    fn long_text_is_shortened_and_no_escape_is_cut() {
        assert_eq!(escape_outside_text("abcdef", 6), "abcdef");
        assert_eq!(escape_outside_text("abcdefg", 6), "abc...");
        assert_eq!(escape_outside_text("ab\u{1b}cdefg", 6), "ab...");
        assert_eq!(escape_outside_text("abcdef", 2), "..");
        assert_eq!(escape_outside_text("abcdef", 0), "");
    }

    #[test]
    fn user_information_goes() {
        for (url, shown) in [
            ("http://example.org/csw", "http://example.org/csw"),
            ("http://me:pw@example.org/csw", "http://example.org/csw"),
            ("http://me:p@w@example.org:80/csw", "http://example.org:80/csw"),
            ("http://me:p/w@example.org/csw", "http://example.org/csw"),
            ("http://me:p?w@example.org/csw", "http://example.org/csw"),
            ("http://me:p#w@example.org/csw", "http://example.org/csw"),
            ("http://me:?w@example.org/csw", "http://example.org/csw"),
            ("http://me::1/w@example.org/csw", "http://example.org/csw"),
            ("http://me:p@w/x@example.org/csw", "http://example.org/csw"),
            ("me:pw@example.org/csw", "example.org/csw"),
            ("http://example.org:80/a@b", "http://example.org:80/a@b"),
            ("http://[::1]:8080/a@b", "http://[::1]:8080/a@b"),
            ("http://[::1]/a@b", "http://[::1]/a@b"),
            ("", ""),
            ("://", "://"),
        ] {
            assert_eq!(without_credentials(url), shown, "{url}");
        }
    }

    #[test]
    fn secrets_in_the_query_are_masked_and_nothing_else() {
        for (url, shown) in [
            ("http://a/?request=GetRecords&token=abc&x=1", "http://a/?request=GetRecords&token=***&x=1"),
            ("http://a/?ApiKey=abc;Password=d#f", "http://a/?ApiKey=***;Password=***#f"),
            (
                "http://a/?key=a&access_token=b&client_secret=c&keywords=d",
                "http://a/?key=***&access_token=***&client_secret=***&keywords=d",
            ),
            ("http://a/?%74oken=abc", "http://a/?%74oken=***"),
            ("http://a/?token=&token&x", "http://a/?token=&token&x"),
            ("http://a/?u=http://b/?token=c", "http://a/?u=http://b/?token=***"),
            ("http://a/?url=http://me:pw@b/&token=c", "http://a/?url=http://me:pw@b/&token=***"),
        ] {
            assert_eq!(without_credentials(url), shown, "{url}");
        }
    }

    proptest! {
        #[test]
        fn any_text_comes_out_within_the_limit_and_clean(text in "\\PC*|[\\x00-\\x1f\u{80}-\u{9f}a]*", chars_max in 0usize..40) {
            let shown = escape_outside_text(&text, chars_max);
            prop_assert!(shown.chars().count() <= chars_max);
            prop_assert!(!shown.chars().any(needs_escape));
        }

        #[test]
        fn a_password_is_never_shown(password in "([a-z/?#@:%][a-z0-9/?#@:%]{0,4})?XYZZY[a-z0-9/?#@:%]{0,4}") {
            let shown = without_credentials(&format!("https://me:{password}@example.org/csw"));
            prop_assert!(!shown.contains("XYZZY"), "{}", shown);
        }
    }
}
