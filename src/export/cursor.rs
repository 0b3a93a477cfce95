//! The cursor file: the sequence number that the next export begins after, one line of digits.
//!
//! It is read whole or refused, and replaced whole. Whoever reads or moves it holds its lock, `NAME.lock` beside it, so that two exports
//! never move one cursor at the same time.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::replace::{replace, sync_folder};

/// Bytes of a line that may be a number, and what is looked at.
const LINE_BYTES_MAX: u64 = 32;

/// The number in the file; `None` where there is no file.
///
/// # Errors
/// [`Error::Config`] for a file that cannot be read or holds anything else.
pub(super) fn read(path: &Path) -> Result<Option<i64>, Error> {
    let refused = |why: &str| Error::Config(format!("the cursor file {} cannot be used: {why}", path.display()));
    let mut bytes = Vec::new();
    match std::fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Ok(found) if !found.is_file() => return Err(refused("it is not a regular file")),
        _ => {}
    }
    let file = File::open(path).map_err(|error| refused(&error.to_string()))?;
    file.take(LINE_BYTES_MAX).read_to_end(&mut bytes).map_err(|error| refused(&error.to_string()))?;
    let digits = std::str::from_utf8(&bytes).ok().map(|text| text.strip_suffix('\n').unwrap_or(text));
    let is_number = |digits: &&str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let seq = digits.filter(is_number).and_then(|digits| digits.parse().ok());
    seq.map(Some).ok_or_else(|| refused("it does not hold a sequence number; mend it, or remove it to begin anew"))
}

/// Moves the cursor; when this returns, it stays there whatever happens.
///
/// # Errors
/// [`Error::Write`]. The cursor is then where it was, unless only the disk did not confirm its move.
pub(super) fn write(path: &Path, seq: i64) -> Result<(), Error> {
    replace(path, format!("{seq}\n").as_bytes(), None)
        .and_then(|()| sync_folder(folder_of(path)))
        .map_err(|error| Error::Write(format!("the cursor file {} cannot be written: {error}", path.display())))
}

/// Whether there is a folder for the cursor.
///
/// # Errors
/// [`Error::Config`].
pub(super) fn expect_folder(path: &Path) -> Result<(), Error> {
    if folder_of(path).is_dir() {
        return Ok(());
    }
    Err(Error::Config(format!("the cursor file {} cannot be used: there is no folder for it", path.display())))
}

/// The lock of a cursor file.
pub(super) fn lock_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_a_missing_file_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cursor");
        assert_eq!(read(&path).unwrap(), None);
        for seq in [0, 7, i64::MAX] {
            write(&path, seq).unwrap();
            assert_eq!(read(&path).unwrap(), Some(seq));
        }
        std::fs::write(&path, "12").unwrap();
        assert_eq!(read(&path).unwrap(), Some(12));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn anything_else_is_refused_and_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cursor");
        let long = format!("1{}\n", "0".repeat(40));
        for text in ["", "\n", "-1\n", "+1\n", "1 \n", "1\n\n", "0x1\n", "12a", "9223372036854775808\n", long.as_str()] {
            std::fs::write(&path, text).unwrap();
            let error = read(&path).unwrap_err();
            assert!(matches!(&error, Error::Config(why) if why.contains("cursor")), "{text:?}: {error:?}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        assert!(matches!(read(folder.path()), Err(Error::Config(_))));
        assert!(matches!(write(&folder.path().join("no/cursor"), 1), Err(Error::Write(_))));
    }
}
