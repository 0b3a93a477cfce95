//! Files that are replaced as a whole: whoever reads one, at any moment and after any crash, sees the old text or the new one.
//!
//! The new text goes into a file beside, reaches the disk, and then takes the name (rename(2)). Two that replace files of one folder at the
//! same time must be kept apart by their callers: the file beside has one name, so that what a killed process left is written over.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Gives the file at `path` this content, by way of the file at `beside` in the same folder. That the name itself is on the disk
/// takes [`sync_folder`]. `mode` are its permission bits, whatever the umask; `None` leaves them to the umask.
///
/// # Errors
/// What the system says. The file at `path` is then as it was.
pub fn replace(path: &Path, beside: &Path, content: &[u8], mode: Option<u32>) -> io::Result<()> {
    let mut file = File::create(beside)?;
    let permitted = mode.map_or(Ok(()), |mode| file.set_permissions(Permissions::from_mode(mode)));
    let written =
        permitted.and_then(|()| file.write_all(content)).and_then(|()| file.sync_all()).and_then(|()| fs::rename(beside, path));
    if written.is_err() {
        // Only to leave the folder clean; what matters is told already.
        let _ = fs::remove_file(beside);
    }
    written
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
        let (path, beside) = (folder.path().join("a"), folder.path().join("b"));
        fs::write(&beside, "half of what a killed process wro").unwrap();
        for text in ["one", "", "two"] {
            replace(&path, &beside, text.as_bytes(), None).unwrap();
            sync_folder(folder.path()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            assert!(!beside.exists());
        }
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
        let (path, beside) = (folder.path().join("a"), folder.path().join("b"));
        fs::create_dir(&path).unwrap();
        fs::write(path.join("x"), "").unwrap();
        replace(&path, &beside, b"new", None).unwrap_err();
        assert!(path.join("x").exists() && !beside.exists());
        replace(&folder.path().join("no/a"), &folder.path().join("no/b"), b"new", None).unwrap_err();
    }
}
