//! What is sent as `Authorization`: Basic (RFC 7617) or Bearer (RFC 6750).
//!
//! Which hosts may see it is decided in `exchange.rs`. Its debug output never shows the secret.

use std::fmt;

use super::text::without_userinfo;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Credentials for the catalogue's own host.
#[derive(Clone, PartialEq, Eq)]
pub enum Credentials {
    /// HTTP Basic, sent at once, in UTF-8.
    Basic {
        /// Without a colon, which the scheme cannot carry.
        user: String,
        /// May be empty.
        password: String,
    },
    /// A bearer token, without the word `Bearer`.
    Bearer(String),
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Credentials::Basic { user, .. } => write!(f, "Basic {{ user: {user:?}, password: *** }}"),
            Credentials::Bearer(_) => f.write_str("Bearer(***)"),
        }
    }
}

impl Credentials {
    /// The value of `Authorization`, or what is wrong with the credentials.
    pub(super) fn authorization(&self) -> Result<String, &'static str> {
        match self {
            Credentials::Basic { user, .. } if user.contains(':') => Err("a user name with a colon cannot be sent by HTTP Basic"),
            Credentials::Basic { user, password } => Ok(format!("Basic {}", base64(format!("{user}:{password}").as_bytes()))),
            Credentials::Bearer(token) if token.is_empty() => Err("the token is empty"),
            Credentials::Bearer(token) if !token.bytes().all(|b| b.is_ascii_graphic()) => {
                Err("the token holds other characters than visible ASCII")
            }
            Credentials::Bearer(token) => Ok(format!("Bearer {token}")),
        }
    }
}

impl Credentials {
    /// All by which the secret could be told: itself, and as it is sent. Not the name of the user.
    #[must_use]
    pub fn secrets(&self) -> Vec<String> {
        let own = match self {
            Credentials::Basic { password, .. } => password,
            Credentials::Bearer(token) => token,
        };
        let sent = self.authorization().ok();
        let sent = sent.as_deref().and_then(|value| value.split_once(' ')).map(|(_, sent)| sent.to_owned());
        [own.clone()].into_iter().chain(sent).collect()
    }
}

/// Takes `user:password@` out of a url; both are percent-decoded (RFC 3986, 3.2.1), or taken as written if that does not give
/// UTF-8.
///
/// The user information ends at the last `@` before the path, as in browsers. A url without user information comes back as it is.
#[must_use]
pub fn split_credentials(url: &str) -> (String, Option<Credentials>) {
    let Some((scheme, rest)) = url.split_once("://") else {
        return (url.to_owned(), None);
    };
    let bare = without_userinfo(rest);
    let Some(userinfo) = rest.strip_suffix(bare).and_then(|taken| taken.strip_suffix('@')) else {
        return (url.to_owned(), None);
    };
    let (user, password) = userinfo.split_once(':').unwrap_or((userinfo, ""));
    let decoded = |text: &str| String::from_utf8(percent_decoded(text)).unwrap_or_else(|_| text.to_owned());
    let credentials = (!userinfo.is_empty()).then(|| Credentials::Basic { user: decoded(user), password: decoded(password) });
    (format!("{scheme}://{bare}"), credentials)
}

/// Percent-decoding; a `%` without two hexadecimal digits stays.
pub(super) fn percent_decoded(text: &str) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [byte, after @ ..] = rest {
        match (byte, after) {
            (b'%', [high, low, after @ ..]) if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                decoded.push(hex_digit(*high) << 4 | hex_digit(*low));
                rest = after;
            }
            _ => {
                decoded.push(*byte);
                rest = after;
            }
        }
    }
    decoded
}

fn hex_digit(digit: u8) -> u8 {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok()).unwrap_or(0)
}

/// Base64 for urls (RFC 4648, 5) without padding; of an empty text the padding alone, as a Pushgateway wants it in a path.
#[must_use]
pub fn base64_url(text: &str) -> String {
    match base64(text.as_bytes()).trim_end_matches('=') {
        "" => "=".to_owned(),
        coded => coded.replace('+', "-").replace('/', "_"),
    }
}

fn base64(bytes: &[u8]) -> String {
    let sextet = |bits: u32, shift: u32| ALPHABET.get((bits >> shift & 63) as usize).map_or('=', |c| char::from(*c));
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits = (0..3).fold(0, |bits, at| bits << 8 | u32::from(chunk.get(at).copied().unwrap_or(0)));
        text.push(sextet(bits, 18));
        text.push(sextet(bits, 12));
        text.push(if chunk.len() > 1 { sextet(bits, 6) } else { '=' });
        text.push(if chunk.len() > 2 { sextet(bits, 0) } else { '=' });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn basic(user: &str, password: &str) -> Credentials {
        Credentials::Basic { user: user.to_owned(), password: password.to_owned() }
    }

    #[test]
    fn base64_is_that_of_rfc_4648() {
        for (plain, coded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
        assert_eq!(base64(&[0xfb, 0xff, 0xfe]), "+//+");
    }

    #[test]
    fn base64_for_urls_needs_no_escape_in_a_path() {
        for (plain, coded) in [("http://a/?b>c", "aHR0cDovL2EvP2I-Yw"), ("\u{7ff}\u{7ff}", "37_fvw"), ("", "=")] {
            assert_eq!(base64_url(plain), coded);
        }
    }

    #[test]
    fn basic_is_the_example_of_rfc_7617() {
        assert_eq!(basic("Aladdin", "open sesame").authorization(), Ok("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==".to_owned()));
        assert_eq!(basic("test", "123\u{a3}").authorization(), Ok("Basic dGVzdDoxMjPCow==".to_owned()));
    }

    #[test]
    fn what_cannot_be_sent_is_refused() {
        assert!(basic("a:b", "c").authorization().is_err());
        for token in ["", "a b", "a\r\nX: y", "\u{e4}"] {
            assert!(Credentials::Bearer(token.to_owned()).authorization().is_err(), "{token:?}");
        }
        assert_eq!(Credentials::Bearer("abc".to_owned()).authorization(), Ok("Bearer abc".to_owned()));
    }

    #[test]
    fn debug_output_hides_the_secret() {
        let shown = format!("{:?} {:?}", basic("me", "hunter2"), Credentials::Bearer("hunter2".to_owned()));
        assert!(shown.contains("me") && !shown.contains("hunter2"), "{shown}");
    }

    #[test]
    fn user_information_is_taken_out_of_the_url_and_decoded() {
        for (url, bare, credentials) in [
            ("https://a/csw", "https://a/csw", None),
            ("https://me:pw@a/csw", "https://a/csw", Some(basic("me", "pw"))),
            ("https://us%40er:p%3Aw%C3%A4@a:8/", "https://a:8/", Some(basic("us@er", "p:w\u{e4}"))),
            ("https://me@a/", "https://a/", Some(basic("me", ""))),
            ("https://m:p@w@a/", "https://a/", Some(basic("m", "p@w"))),
            ("https://me:100%@a/", "https://a/", Some(basic("me", "100%"))),
            ("https://me:%FF@a/", "https://a/", Some(basic("me", "%FF"))),
            ("https://@a/", "https://a/", None),
            ("https://a/x@y?z@", "https://a/x@y?z@", None),
            ("nonsense", "nonsense", None),
        ] {
            assert_eq!(split_credentials(url), (bare.to_owned(), credentials), "{url}");
        }
    }
}
