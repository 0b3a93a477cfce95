//! The options about access: who asks, with which headers, and which certificates are trusted.
//!
//! Files that options name are read here, once, before the first effect. No message and no debug output holds what stands in them or in a
//! header. What is sent to whom is for `http/` to say.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::usage;
use crate::csw::user_filter::UserFilter;
use crate::error::Error;
use crate::http::{Credentials, HttpSettings, Proxies, Roots, SettingsError, check_settings, escape_outside_text};

/// A password or a token is no longer than this.
const SECRET_BYTES_MAX: u64 = 16 << 10;
/// Certificates of all the authorities that there are take a quarter of a MiB.
const CERTIFICATES_BYTES_MAX: u64 = 4 << 20;
/// A filter is sent with every request.
const FILTER_BYTES_MAX: u64 = 1 << 20;
/// Headers that the user may add.
const HEADERS_MAX: usize = 64;
/// Characters of a path shown in a message.
const PATH_CHARS_MAX: usize = 200;

/// The options as they were typed.
#[derive(Default)]
pub(super) struct TypedAccess {
    pub(super) user: Option<String>,
    pub(super) password_file: Option<PathBuf>,
    pub(super) token_file: Option<PathBuf>,
    pub(super) header: Vec<String>,
    pub(super) ca_file: Option<PathBuf>,
}

/// What they mean, all values checked.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Access {
    /// For the catalogue's own host only.
    pub credentials: Option<Credentials>,
    /// Name and value, for the catalogue's own host only.
    pub headers: Vec<(String, String)>,
    /// Which certificates are trusted.
    pub roots: Roots,
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Access").field("credentials", &self.credentials).field("headers", &names).finish_non_exhaustive()
    }
}

impl TypedAccess {
    /// `url_user` is what stood in the url.
    ///
    /// # Errors
    /// [`Error::Usage`] for what was typed, [`Error::Config`] for what stands in files.
    pub(super) fn check(self, url_user: Option<(String, String)>) -> Result<Access, Error> {
        let headers = self.header.iter().map(|text| header(text)).collect::<Result<Vec<_>, _>>()?;
        if headers.len() > HEADERS_MAX {
            return Err(usage(format!("--header: {HEADERS_MAX} at most")));
        }
        let wanted = HttpSettings { headers: headers.clone(), proxies: Proxies::none(), ..HttpSettings::default() };
        check_settings(&wanted).map_err(|error| usage(format!("--header: {error}")))?;
        let credentials = credentials(self.user, self.password_file.as_deref(), self.token_file.as_deref(), url_user)?;
        let wanted = HttpSettings { credentials: credentials.clone(), ..wanted };
        check_settings(&wanted).map_err(|error| match (&credentials, &self.token_file) {
            (Some(Credentials::Bearer(_)), Some(path)) if !has_authorization(&headers) => in_file("token-file", path, error),
            _ => usage(error.to_string()),
        })?;
        let roots = self.ca_file.as_deref().map(roots).transpose()?.unwrap_or_default();
        Ok(Access { credentials, headers, roots })
    }
}

fn has_authorization(headers: &[(String, String)]) -> bool {
    headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"))
}

/// `Name: value`; a text without a colon may be all secret, and is not shown.
fn header(text: &str) -> Result<(String, String), Error> {
    let (name, value) = text.split_once(':').ok_or_else(|| usage("--header: 'Name: value' is expected"))?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

fn credentials(
    user: Option<String>,
    password_file: Option<&Path>,
    token_file: Option<&Path>,
    url_user: Option<(String, String)>,
) -> Result<Option<Credentials>, Error> {
    let ways = [user.is_some() || password_file.is_some(), token_file.is_some(), url_user.is_some()];
    if ways.iter().filter(|given| **given).count() > 1 {
        return Err(usage("--user with --password-file, --token-file, user and password in the url: only one of these"));
    }
    match (user, password_file) {
        (Some(user), Some(path)) => {
            let unusable = user.is_empty() || user.contains(':') || user.chars().any(char::is_control);
            if unusable {
                return Err(usage("--user: may not be empty or hold a colon or control characters"));
            }
            return Ok(Some(Credentials::Basic { user, password: secret("password-file", path)? }));
        }
        (Some(_), None) => return Err(usage("--user needs --password-file")),
        (None, Some(_)) => return Err(usage("--password-file needs --user")),
        (None, None) => {}
    }
    if let Some(path) = token_file {
        return secret("token-file", path).map(|token| Some(Credentials::Bearer(token)));
    }
    Ok(url_user.map(|(user, password)| Credentials::Basic { user, password }))
}

/// The one line of a file, without the line's end.
fn secret(option: &str, path: &Path) -> Result<String, Error> {
    let bytes = read(option, path, SECRET_BYTES_MAX)?;
    // The bytes stay with the error, and are not shown.
    let text = String::from_utf8(bytes).map_err(|_| in_file(option, path, "it is not UTF-8"))?;
    let line = text.strip_suffix('\n').map_or(text.as_str(), |line| line.strip_suffix('\r').unwrap_or(line));
    if line.is_empty() {
        return Err(in_file(option, path, "it is empty"));
    }
    if line.chars().any(char::is_control) {
        return Err(in_file(option, path, "it holds more than one line, or control characters"));
    }
    Ok(line.to_owned())
}

fn roots(path: &Path) -> Result<Roots, Error> {
    let roots = Roots::SystemAnd(vec![read("ca-file", path, CERTIFICATES_BYTES_MAX)?]);
    let wanted = HttpSettings { roots: roots.clone(), proxies: Proxies::none(), ..HttpSettings::default() };
    match check_settings(&wanted) {
        Ok(()) => Ok(roots),
        Err(SettingsError::Roots(detail)) => Err(in_file("ca-file", path, detail)),
        Err(other) => Err(in_file("ca-file", path, other)),
    }
}

/// The filter of `--filter-file` or `--cql`.
///
/// # Errors
/// [`Error::Usage`] for both at once and for CQL that cannot be joined, [`Error::Config`] for a file that holds no filter.
pub(super) fn user_filter(file: Option<&Path>, cql: Option<&str>) -> Result<Option<UserFilter>, Error> {
    match (file, cql) {
        (Some(_), Some(_)) => Err(usage("--filter-file and --cql exclude each other")),
        (None, None) => Ok(None),
        (None, Some(text)) => UserFilter::from_cql(text).map(Some).map_err(|why| usage(format!("--cql: {why}"))),
        (Some(path), None) => {
            let bytes = read("filter-file", path, FILTER_BYTES_MAX)?;
            UserFilter::from_document(&bytes).map(Some).map_err(|why| in_file("filter-file", path, why))
        }
    }
}

fn read(option: &str, path: &Path, bytes_max: u64) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| in_file(option, path, error))?;
    file.take(bytes_max + 1).read_to_end(&mut bytes).map_err(|error| in_file(option, path, error))?;
    if bytes.is_empty() {
        return Err(in_file(option, path, "it is empty"));
    }
    if bytes.len() as u64 > bytes_max {
        return Err(in_file(option, path, format!("it is larger than {bytes_max} bytes")));
    }
    Ok(bytes)
}

fn in_file(option: &str, path: &Path, why: impl fmt::Display) -> Error {
    Error::Config(format!("--{option} {}: {why}", escape_outside_text(&path.display().to_string(), PATH_CHARS_MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(tempfile::TempDir);

    impl Folder {
        fn new() -> Self {
            Folder(tempfile::tempdir().unwrap())
        }

        fn file(&self, name: &str, content: impl AsRef<[u8]>) -> Option<PathBuf> {
            let path = self.0.path().join(name);
            std::fs::write(&path, content).unwrap();
            Some(path)
        }
    }

    fn with_password(file: Option<PathBuf>) -> TypedAccess {
        TypedAccess { user: Some("me".to_owned()), password_file: file, ..TypedAccess::default() }
    }

    fn with_header(text: &str) -> TypedAccess {
        TypedAccess { header: vec![text.to_owned()], ..TypedAccess::default() }
    }

    fn basic(password: &str) -> Option<Credentials> {
        Some(Credentials::Basic { user: "me".to_owned(), password: password.to_owned() })
    }

    #[test]
    fn a_password_is_the_line_of_its_file_without_the_lines_end() {
        let folder = Folder::new();
        for (content, password) in
            [("hunter2", "hunter2"), ("hunter2\n", "hunter2"), ("hunter2\r\n", "hunter2"), (" a b ", " a b ")]
        {
            let access = with_password(folder.file("p", content)).check(None).unwrap();
            assert_eq!(access.credentials, basic(password), "{content:?}");
        }
    }

    #[test]
    fn credentials_come_from_one_place_only() {
        let folder = Folder::new();
        let url_user = || Some(("me".to_owned(), "hunter2".to_owned()));
        let password = folder.file("p", "hunter2");
        let token = folder.file("t", "tok123\n");
        let with_token = || TypedAccess { token_file: token.clone(), ..TypedAccess::default() };

        assert_eq!(TypedAccess::default().check(None).unwrap(), Access::default());
        assert_eq!(TypedAccess::default().check(url_user()).unwrap().credentials, basic("hunter2"));
        assert_eq!(with_token().check(None).unwrap().credentials, Some(Credentials::Bearer("tok123".to_owned())));
        let wrong = [
            with_password(password.clone()).check(url_user()),
            with_token().check(url_user()),
            TypedAccess { token_file: token.clone(), ..with_password(password.clone()) }.check(None),
            with_password(None).check(None),
            TypedAccess { user: None, ..with_password(password.clone()) }.check(None),
            TypedAccess { user: Some("a:b".to_owned()), ..with_password(password.clone()) }.check(None),
            TypedAccess { header: vec!["Authorization: x".to_owned()], ..with_password(password.clone()) }.check(None),
            TypedAccess { header: vec!["authorization: x".to_owned()], ..with_token() }.check(None),
        ];
        for error in wrong.map(Result::unwrap_err) {
            assert!(matches!(&error, Error::Usage(text) if !text.contains("hunter2") && !text.contains("tok123")), "{error:?}");
        }
    }

    #[test]
    fn files_that_cannot_be_used_are_named_and_not_shown() {
        let folder = Folder::new();
        let with_token = |file| TypedAccess { token_file: file, ..TypedAccess::default() };
        let with_ca = |file| TypedAccess { ca_file: file, ..TypedAccess::default() };
        let long = vec![b'x'; 20 << 10];
        let unusable = [
            with_password(Some(folder.0.path().join("missing"))),
            with_password(Some(folder.0.path().to_owned())),
            with_password(folder.file("empty", "")),
            with_password(folder.file("blank", "\n")),
            with_password(folder.file("two", "hunter2\nhunter2\n")),
            with_password(folder.file("latin", b"hunter2\xff")),
            with_password(folder.file("long", &long)),
            with_token(folder.file("blanks", "hunter2 hunter2")),
            with_token(folder.file("none", "")),
            with_ca(folder.file("text", "hunter2")),
            with_ca(Some(folder.0.path().join("missing"))),
            with_ca(folder.file("pem", "-----BEGIN CERTIFICATE-----\nhunter2!\n-----END CERTIFICATE-----\n")),
        ];
        for typed in unusable {
            let error = typed.check(None).unwrap_err();
            let Error::Config(text) = &error else { panic!("{error:?}") };
            assert!(text.starts_with("--") && text.contains("-file /") && !text.contains("hunter2"), "{text}");
        }
    }

    #[test]
    fn headers_are_checked_and_their_values_never_shown() {
        let access = with_header("X-Key:  hunter2: b ").check(None).unwrap();
        assert_eq!(access.headers, [("X-Key".to_owned(), "hunter2: b".to_owned())]);
        assert!(!format!("{access:?}").contains("hunter2"), "{access:?}");
        for text in ["hunter2", ": hunter2", "a b: hunter2", "Host: hunter2", "X: hunter2\nY: z"] {
            let error = with_header(text).check(None).unwrap_err();
            assert!(matches!(&error, Error::Usage(text) if !text.contains("hunter2")), "{error:?}");
        }
        let given = |names: [&str; 2]| {
            let header = names.map(|name| format!("{name}: hunter2")).to_vec();
            TypedAccess { header, ..TypedAccess::default() }.check(None).map(|access| access.headers.len())
        };
        assert_eq!(given(["X-Key", "x-key"]).unwrap(), 2);
        assert!(matches!(given(["Authorization", "authorization"]), Err(Error::Usage(text)) if text.contains("once only")));
    }

    #[test]
    fn a_filter_comes_from_one_place_only_and_must_be_one() {
        let folder = Folder::new();
        let good = folder.file("f", "<Filter xmlns='http://www.opengis.net/ogc'><FeatureId fid='a'/></Filter>");
        let bad = folder.file("g", "<csw:Constraint xmlns:csw='http://www.opengis.net/cat/csw/2.0.2'/>");

        assert_eq!(user_filter(None, None).unwrap(), None);
        assert!(user_filter(good.as_deref(), None).unwrap().is_some());
        assert!(user_filter(None, Some("a = 1")).unwrap().is_some());
        assert!(matches!(user_filter(good.as_deref(), Some("a = 1")), Err(Error::Usage(_))));
        assert!(matches!(user_filter(None, Some("a = 1)")), Err(Error::Usage(_))));
        assert!(matches!(user_filter(bad.as_deref(), None), Err(Error::Config(_))));
        assert!(matches!(user_filter(Some(Path::new("/no/such")), None), Err(Error::Config(_))));
    }
}
