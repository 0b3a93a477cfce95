//! Files that are replaced as a whole: whoever reads one, at any moment and after any crash, sees the old text or the new one.
//!
//! The new text goes into a hidden file beside, under a name of its own that ends in `.tmp`, reaches the disk, and then takes the name
//! (rename(2)). A process that dies in between leaves such a file behind, which nobody reads.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Gives the file at `path` this content, by way of a new file beside. That the name itself is on the disk
/// takes [`sync_folder`]. `mode` are its permission bits, whatever the umask; `None` leaves them to the umask.
///
/// # Errors
/// What the system says. The file at `path` is then as it was.
pub fn replace(path: &Path, content: &[u8], mode: Option<u32>) -> io::Result<()> {
    // A link stays one: what it leads to is replaced.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let beside = &beside(path);
    let mut file = OpenOptions::new().write(true).create_new(true).open(beside)?;
    let permitted = mode.map_or(Ok(()), |mode| file.set_permissions(Permissions::from_mode(mode)));
    let written =
        permitted.and_then(|()| file.write_all(content)).and_then(|()| file.sync_all()).and_then(|()| fs::rename(beside, path));
    if written.is_err() {
        // Only to leave the folder clean; what matters is told already.
        let _ = fs::remove_file(beside);
    }
    written
}

/// A hidden name of its own in the same folder. In containers every process has the same number, so the time goes with it.
fn beside(path: &Path) -> PathBuf {
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}-{nanos}.tmp", std::process::id()));
    path.with_file_name(name)
}

/// Waits until the names in a folder are on the disk.
///
/// # Errors
/// What the system says.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Waits until the content of files in one folder is on the disk: at once on Linux, where a file at a time takes a hundred times as long.
///
/// # Errors
/// What the system says.
pub fn sync_files(folder: &Path, files: &[&Path]) -> io::Result<()> {
    if cfg!(target_os = "linux") {
        return sync_file_system(&File::open(folder)?);
    }
    files.iter().try_for_each(|file| File::open(file)?.sync_all())
}

#[cfg(target_os = "linux")]
fn sync_file_system(folder: &File) -> io::Result<()> {
    Ok(rustix::fs::syncfs(folder)?)
}

#[cfg(not(target_os = "linux"))]
fn sync_file_system(folder: &File) -> io::Result<()> {
    folder.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_new_text_is_there_and_nothing_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        for text in ["one", "", "two"] {
            replace(&path, text.as_bytes(), None).unwrap();
            sync_folder(folder.path()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        }
    }

    #[test]
    fn what_a_link_leads_to_is_replaced_and_no_other_file_is_touched() {
        let folder = tempfile::tempdir().unwrap();
        let [target, link, other] = ["target", "link", "link.tmp"].map(|name| folder.path().join(name));
        fs::write(&target, "old").unwrap();
        fs::write(&other, "somebody's").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        replace(&link, b"new", None).unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&target).unwrap(), "new");
        assert_eq!(fs::read_to_string(&other).unwrap(), "somebody's");
    }

    #[test]
    fn files_are_waited_for_together() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "a").unwrap();
        sync_files(folder.path(), &[&path]).unwrap();
        sync_files(&folder.path().join("no"), &[&folder.path().join("no/a")]).unwrap_err();
    }

    #[test]
    fn a_name_that_cannot_be_taken_leaves_all_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::create_dir(&path).unwrap();
        fs::write(path.join("x"), "").unwrap();
        replace(&path, b"new", None).unwrap_err();
        assert!(path.join("x").exists());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        replace(&folder.path().join("no/a"), b"new", None).unwrap_err();
    }

    #[test]
    fn the_name_beside_is_hidden_and_no_metrics_file() {
        let name = beside(Path::new("/a/csw.prom"));
        assert_eq!(name.parent(), Some(Path::new("/a")));
        let name = name.file_name().unwrap().to_str().unwrap().to_owned();
        assert!(name.starts_with(".csw.prom.") && name.ends_with(".tmp"), "{name}");
    }
}
