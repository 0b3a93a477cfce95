//! Changes as lines on stdout, a buffer at a time.
//!
//! A reader that goes away is no error. Where stdout is a file, what was written is on the disk when the stream has ended.

use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::fd::AsFd;

use super::Cut;
use super::line::push_line;
use crate::error::Error;
use crate::store::Change;

/// Bytes of the buffer: what a pipe holds.
const BUFFER_BYTES: usize = 64 * 1024;
/// Bytes of a line that are kept for the next one; what one large record took is given back.
const LINE_BYTES_KEPT: usize = 1024 * 1024;

/// The lines under way.
#[derive(Debug)]
pub(super) struct Stream {
    out: BufWriter<File>,
    line: String,
}

impl Stream {
    /// To stdout, by a handle of its own: that of std would be flushed at every line.
    pub(super) fn to_stdout() -> Result<Self, Error> {
        let handle = io::stdout().as_fd().try_clone_to_owned().map_err(|error| Error::Output(error.to_string()))?;
        Ok(Stream { out: BufWriter::with_capacity(BUFFER_BYTES, File::from(handle)), line: String::new() })
    }

    pub(super) fn put(&mut self, change: &Change<'_>) -> Result<(), Cut> {
        self.line.clear();
        self.line.shrink_to(LINE_BYTES_KEPT);
        push_line(&mut self.line, change);
        self.out.write_all(self.line.as_bytes()).map_err(cut)
    }

    /// Waits until all of it has left.
    pub(super) fn end(mut self) -> Result<(), Cut> {
        self.out.flush().map_err(cut)?;
        let file = self.out.get_ref();
        if file.metadata().is_ok_and(|metadata| metadata.is_file()) { file.sync_data().map_err(cut) } else { Ok(()) }
    }
}

fn cut(error: io::Error) -> Cut {
    match error.kind() {
        ErrorKind::BrokenPipe => Cut::Closed,
        _ => Cut::Error(Error::Output(error.to_string())),
    }
}
