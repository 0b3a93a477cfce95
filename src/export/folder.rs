//! A folder with a file of each record: `FOLDER/<source>/<identifier>.xml`, named by `file_name.rs`.
//!
//! A file has its old content or its new one, at any moment and after any crash. One whose content is the same is not touched. What is not
//! told of stays as it is: files of records that went before are removed by the deletions of an export of changes only.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::file_name::file_name;
use crate::error::Error;
use crate::replace::{sync_files, sync_folder};
use crate::store::Change;

/// Names that no record has, since those never begin with a dot.
const LOCK: &str = ".lock";
const BESIDE: &str = ".tmp";
/// Files that reach the disk together before they take their names.
const BATCH_FILES: usize = 256;

/// The folder under way. Whoever writes to it holds its lock.
#[derive(Debug)]
pub(super) struct Folder {
    root: PathBuf,
    /// The folders of sources that were written to.
    touched: BTreeMap<String, PathBuf>,
    /// Files that are written and have no name yet, and the path that each gets.
    nameless: Vec<(PathBuf, PathBuf)>,
    unchanged: u64,
}

impl Folder {
    /// The folder, made when only itself is missing.
    ///
    /// # Errors
    /// [`Error::Config`].
    pub(super) fn open(root: &Path) -> Result<Self, Error> {
        match fs::create_dir(root) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(unusable(root, &error.to_string())),
            _ if !root.is_dir() => Err(unusable(root, "it is not a folder")),
            _ => Ok(Folder { root: root.to_owned(), touched: BTreeMap::new(), nameless: Vec::new(), unchanged: 0 }),
        }
    }

    pub(super) fn lock_path(&self) -> PathBuf {
        self.root.join(LOCK)
    }

    /// Writes or removes the file of a record.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub(super) fn put(&mut self, change: &Change<'_>) -> Result<(), Error> {
        let name = format!("{}.xml", file_name(change.identifier));
        let Some(content) = change.content else {
            // Nothing to remove in a folder that is not there, and no reason to make it.
            let path = self.root.join(file_name(change.source)).join(name);
            if self.nameless.iter().any(|(_, named)| *named == path) {
                self.name()?;
            }
            return match fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(unwritten(&path, &error)),
                Err(_) => Ok(()),
                Ok(()) => self.of_source(change.source).map(|_| ()),
            };
        };
        let number = self.nameless.len();
        let folder = self.of_source(change.source)?;
        let (path, beside) = (folder.join(name), beside(folder, number));
        if holds(&path, content.xml.as_bytes()) {
            self.unchanged += 1;
            return Ok(());
        }
        fs::write(&beside, content.xml).map_err(|error| unwritten(&path, &error))?;
        self.nameless.push((beside, path));
        if self.nameless.len() < BATCH_FILES { Ok(()) } else { self.name() }
    }

    /// Waits for the files without a name, and names them.
    fn name(&mut self) -> Result<(), Error> {
        for folder in self.touched.values() {
            let files: Vec<&Path> =
                self.nameless.iter().map(|(beside, _)| beside.as_path()).filter(|file| file.starts_with(folder)).collect();
            if !files.is_empty() {
                sync_files(folder, &files).map_err(|error| unwritten(folder, &error))?;
            }
        }
        for (beside, path) in self.nameless.drain(..) {
            fs::rename(&beside, &path).map_err(|error| unwritten(&path, &error))?;
        }
        Ok(())
    }

    /// Waits until every name is on the disk. How many files were as they were.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub(super) fn end(mut self) -> Result<u64, Error> {
        self.name()?;
        for folder in self.touched.values().chain([&self.root]) {
            sync_folder(folder).map_err(|error| unwritten(folder, &error))?;
        }
        Ok(self.unchanged)
    }

    fn of_source(&mut self, source: &str) -> Result<&Path, Error> {
        if !self.touched.contains_key(source) {
            let folder = self.root.join(file_name(source));
            match fs::create_dir(&folder) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(unwritten(&folder, &error)),
                // What a killed export left; only to keep the folder clean.
                Err(_) => (0..BATCH_FILES).for_each(|number| drop(fs::remove_file(beside(&folder, number)))),
                Ok(()) => {}
            }
            self.touched.insert(source.to_owned(), folder);
        }
        Ok(self.touched.get(source).map_or(self.root.as_path(), PathBuf::as_path))
    }
}

fn beside(folder: &Path, number: usize) -> PathBuf {
    folder.join(format!("{BESIDE}{number}"))
}

fn holds(path: &Path, content: &[u8]) -> bool {
    let as_long = fs::symlink_metadata(path).is_ok_and(|found| found.is_file() && found.len() == content.len() as u64);
    as_long && fs::read(path).is_ok_and(|held| held == content)
}

fn unusable(root: &Path, why: &str) -> Error {
    Error::Config(format!("the folder {} of --xml-dir cannot be used: {why}", root.display()))
}

fn unwritten(path: &Path, error: &std::io::Error) -> Error {
    Error::Write(format!("{} cannot be written: {error}; what was exported before stays, run it again", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Content;

    fn record<'a>(source: &'a str, identifier: &'a str, xml: &'a str) -> Change<'a> {
        let content = Some(Content { title: None, modified: None, xml });
        Change { source, identifier, at: "", seq: 1, content }
    }

    fn gone<'a>(source: &'a str, identifier: &'a str) -> Change<'a> {
        Change { content: None, ..record(source, identifier, "") }
    }

    #[test]
    fn a_file_a_record_in_a_folder_a_source_and_gone_when_it_is() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("out");
        let mut folder = Folder::open(&path).unwrap();
        for change in [record("s", "a/b", "<a/>"), record("s", "A/B", "<A/>"), record("../t", "..", "<t/>"), gone("s", "never")] {
            folder.put(&change).unwrap();
        }
        assert_eq!(folder.end().unwrap(), 0);
        let read = |name: &str| fs::read_to_string(path.join(name)).ok();
        assert_eq!(read("s/a%2fb.xml").as_deref(), Some("<a/>"));
        assert_eq!(read("s/%41%2f%42.xml").as_deref(), Some("<A/>"));
        assert_eq!(read("%2e.%2ft/%2e..xml").as_deref(), Some("<t/>"));
        let mut folder = Folder::open(&path).unwrap();
        for change in [record("s", "a/b", "<a/>"), record("s", "A/B", "<B/>"), gone("../t", ".."), gone("u", "a")] {
            folder.put(&change).unwrap();
        }
        assert_eq!(folder.end().unwrap(), 1);
        assert_eq!((read("s/%41%2f%42.xml").as_deref(), read("%2e.%2ft/%2e..xml")), (Some("<B/>"), None));
        assert!(!path.join("u").exists() && fs::read_dir(path.join("s")).unwrap().count() == 2);
    }

    #[test]
    fn a_file_that_holds_the_same_is_not_touched() {
        use std::os::unix::fs::MetadataExt;
        let root = tempfile::tempdir().unwrap();
        let inode = || fs::metadata(root.path().join("s/a.xml")).unwrap().ino();
        let put = |xml: &str| {
            let mut folder = Folder::open(root.path()).unwrap();
            folder.put(&record("s", "a", xml)).unwrap();
            folder.end().unwrap()
        };
        assert_eq!(put("<a/>"), 0);
        // Held open, so that its number is not given out again.
        let _first = fs::File::open(root.path().join("s/a.xml")).unwrap();
        let first = inode();
        assert_eq!((put("<a/>"), inode()), (1, first));
        assert_eq!(put("<b/>"), 0);
        assert_ne!(inode(), first);
    }

    #[test]
    fn what_cannot_be_used_or_written_is_told_by_name() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("file");
        fs::write(&file, "").unwrap();
        for path in [file, root.path().join("no/such")] {
            assert!(matches!(Folder::open(&path), Err(Error::Config(why)) if why.contains(path.to_str().unwrap())));
        }
        let mut folder = Folder::open(root.path()).unwrap();
        let error = folder.put(&record("file", "a", "x")).unwrap_err();
        assert!(matches!(&error, Error::Write(why) if why.contains("file")), "{error:?}");
        fs::create_dir_all(root.path().join("s/a.xml/x")).unwrap();
        assert!(matches!(folder.put(&gone("s", "a")), Err(Error::Write(_))));
        folder.put(&record("s", "a", "x")).unwrap();
        assert!(matches!(folder.end(), Err(Error::Write(why)) if why.contains("s/a.xml")));
    }

    #[test]
    fn many_files_get_their_names_in_turn_and_a_deletion_comes_after_its_record() {
        let root = tempfile::tempdir().unwrap();
        let names: Vec<String> = (0..BATCH_FILES + 10).map(|number| number.to_string()).collect();
        let mut folder = Folder::open(root.path()).unwrap();
        let there = || fs::read_dir(root.path().join("s")).unwrap();
        for name in &names {
            folder.put(&record("s", name, name)).unwrap();
        }
        assert!(there().count() > BATCH_FILES && root.path().join("s/0.xml").exists());
        folder.put(&gone("s", &names[BATCH_FILES + 1])).unwrap();
        folder.put(&record("s", "last", "last")).unwrap();
        drop(folder);
        // As a killed export leaves it: the last one has no name, and the next export takes it away.
        assert!(root.path().join("s/.tmp0").exists() && !root.path().join("s/last.xml").exists());
        let mut folder = Folder::open(root.path()).unwrap();
        folder.put(&record("s", "0", "0")).unwrap();
        assert_eq!(folder.end().unwrap(), 1);
        assert_eq!(there().count(), BATCH_FILES + 9);
        assert_eq!(fs::read_to_string(root.path().join("s/200.xml")).unwrap(), "200");
    }
}
