//! From any text to a name in a folder: two texts never share one, also where a file system takes capitals and small letters for the same.
//!
//! Small letters, digits, `-`, `_` and inner `.` stand for themselves, every other byte of UTF-8 as `%` and two hexadecimal digits. So
//! a percent decoder gives the text back, and no name begins with a dot. What gets too long is cut, and told apart by its SHA-256 after
//! a `~`, which stands for nothing else. Text only: no file is touched here.

use std::fmt::Write;

use ring::digest::{SHA256, digest};

/// Bytes of a name: 255 is what file systems take (`NAME_MAX`), an ending and some room less.
const NAME_BYTES_MAX: usize = 240;
/// Bytes that are kept of one that is longer.
const CUT_BYTES: usize = 150;

/// The name; the same for the same text in every version of this program.
#[must_use]
pub(super) fn file_name(text: &str) -> String {
    let mut name = String::with_capacity(text.len() + 16);
    for byte in text.bytes() {
        let plain = byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_');
        if plain || (byte == b'.' && !name.is_empty()) {
            name.push(char::from(byte));
        } else {
            let _ = write!(name, "%{byte:02x}");
        }
    }
    if !name.is_empty() && name.len() <= NAME_BYTES_MAX {
        return name;
    }
    // Only ASCII stands in it: any place is between two characters. An escape that is cut in two can be told by the ~ behind it.
    name.truncate(CUT_BYTES);
    name.push('~');
    for byte in digest(&SHA256, text.as_bytes()).as_ref() {
        let _ = write!(name, "{byte:02x}");
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_read_as_published() {
        let long = "a".repeat(241);
        for (text, name) in [
            ("urn-uuid_1.2", "urn-uuid_1.2"),
            ("{A1B2}", "%7b%411%422%7d"),
            ("a/b", "a%2fb"),
            (".", "%2e"),
            ("..", "%2e."),
            (".htaccess", "%2ehtaccess"),
            ("a%2fb", "a%252fb"),
            ("\u{e4}\n\0", "%c3%a4%0a%00"),
            ("https://a.example/csw?x=1", "https%3a%2f%2fa.example%2fcsw%3fx%3d1"),
            ("~", "%7e"),
        ] {
            assert_eq!(file_name(text), name);
        }
        assert_eq!(file_name(&"a".repeat(240)), "a".repeat(240));
        assert_eq!(
            file_name(&long),
            format!("{}~ec6e326ef29fe322b62111584194c54efc8c4b6c25f098b24fa742a3918abf6f", "a".repeat(150))
        );
        // FIPS 180-4 of nothing.
        assert_eq!(file_name(""), "~e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }

    fn is_safe(name: &str) -> bool {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.%~".contains(&byte);
        !name.is_empty() && name.len() <= NAME_BYTES_MAX && !name.starts_with('.') && name.bytes().all(plain)
    }

    fn decoded(name: &str) -> Vec<u8> {
        let mut bytes = name.bytes();
        let mut out = Vec::new();
        while let Some(byte) = bytes.next() {
            match byte {
                b'%' => {
                    let digits = [bytes.next().unwrap(), bytes.next().unwrap()];
                    out.push(u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap());
                }
                byte => out.push(byte),
            }
        }
        out
    }

    /// Short ones that are likely to meet, and such as get too long.
    fn texts() -> &'static str {
        "[aA./%~]{0,4}|(?s:.{70,300})"
    }

    proptest! {
        #[test]
        fn any_text_becomes_a_safe_name_that_gives_it_back(text in "(?s:.{0,60})|[A-Za./\\\\%~]{0,12}") {
            let name = file_name(&text);
            prop_assert!(is_safe(&name), "{}", name);
            if !name.contains('~') {
                prop_assert_eq!(decoded(&name), text.as_bytes());
            }
        }

        #[test]
        fn two_texts_never_share_a_name(one in texts(), other in texts(), tail in "(?s:.{0,3})") {
            for other in [other, format!("{one}{tail}"), one.to_uppercase()] {
                prop_assert_eq!(one == other, file_name(&one).eq_ignore_ascii_case(&file_name(&other)), "{:?} {:?}", one, other);
            }
        }
    }
}
