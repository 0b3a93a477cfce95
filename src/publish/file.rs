//! The metrics file: replaced as a whole, so that a reader sees the old text or the new one.
//!
//! The new text is written beside the old one under a name that node_exporter does not read (it takes `*.prom`), and renamed. A process
//! that dies in between leaves such a file behind, which nobody reads.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::replace;

/// For all to read: node_exporter runs as another user.
const MODE: u32 = 0o644;
/// The texts written here have a few KiB.
const BYTES_MAX: u64 = 1 << 20;

/// The text that is there, if one can be read.
pub(super) fn read(path: &Path) -> Option<String> {
    let mut text = String::new();
    let file = File::open(path).ok().filter(|file| file.metadata().is_ok_and(|data| data.is_file()))?;
    file.take(BYTES_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Puts the text where the old one was.
///
/// # Errors
/// It could not be written or renamed; the old text is still there.
pub(super) fn replace(path: &Path, text: &str) -> io::Result<()> {
    replace::replace(path, text.as_bytes(), Some(MODE))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_made_and_replaced_for_all_to_read_and_nothing_stays_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("csw.prom");
        assert_eq!(read(&path), None);
        for text in ["one\n", "a longer two\n", ""] {
            replace(&path, text).unwrap();
            assert_eq!(read(&path).as_deref(), Some(text));
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, MODE);
            assert_eq!(names(folder.path()), ["csw.prom"]);
        }
    }

    #[test]
    fn a_reader_that_holds_the_old_text_still_reads_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("csw.prom");
        replace(&path, "old\n").unwrap();
        let mut reader = File::open(&path).unwrap();
        replace(&path, "new\n").unwrap();
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "old\n");
    }

    #[test]
    fn what_cannot_be_renamed_leaves_nothing_beside() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("csw.prom");
        fs::create_dir(&path).unwrap();
        replace(&path, "text\n").unwrap_err();
        assert_eq!(names(folder.path()), ["csw.prom"]);
        replace(&folder.path().join("missing/csw.prom"), "text\n").unwrap_err();
    }
}
