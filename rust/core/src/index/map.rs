//! The one file with unsafe code: memory-mapping a file.
#![allow(unsafe_code)]

use memmap2::Mmap;
use std::path::Path;

/// A file mapped for reading.
#[derive(Debug)]
pub struct Mapped(Mmap);

impl Mapped {
    /// Maps a file.
    ///
    /// # Errors
    /// Those of the file system; an empty file cannot be mapped.
    pub fn open(path: &Path) -> std::io::Result<Mapped> {
        let file = std::fs::File::open(path)?;
        // SAFETY: the bytes are only read, and index files are never changed in place: they are written beside and
        // renamed (`Image::save`). Someone who truncates a file in use gets SIGBUS, as with any mapped file.
        unsafe { Mmap::map(&file) }.map(Mapped)
    }

    /// The bytes; the start is on a page border.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}
