//! The image of a segment: one buffer of flat arrays, the same in memory and in a file.
//!
//! Layout (little-endian, every part on an 8-byte border): magic, version, number of sections, total length, checksum
//! (XXH3-128 of everything behind the header), then offset and length of each section, then the sections. An index
//! opened from a file is used in place; nothing is copied.

use super::error::IndexFormatError;
use super::map::Mapped;
use bytemuck::Pod;
use std::path::Path;
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

const MAGIC: [u8; 8] = *b"SDXINDEX";
const VERSION: u32 = 7;
const HEADER_BYTES: usize = 8 + 4 + 4 + 8 + 16;

macro_rules! sections {
    ($($(#[$meta:meta])* $name:ident),* $(,)?) => {
        /// The parts of an image.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub enum Section { $($(#[$meta])* $name),* }
        impl Section {
            const ALL: &'static [Section] = &[$(Section::$name),*];
            /// Name for listings.
            pub fn name(self) -> &'static str {
                match self { $(Section::$name => stringify!($name)),* }
            }
        }
    };
}

sections! {
    /// Numbers about the whole segment: the length of the longest string constant (u64).
    Facts,
    /// Name tests: kind, URI and local part as length-prefixed text.
    Symbols,
    /// Bytes of the distinct string constants.
    StringBytes,
    /// Where each string constant starts (u32), one more at the end.
    StringOffsets,
    /// Hash slots of the string constants.
    StringSlots,
    /// The distinct number constants of equality probes, ascending (f64).
    Numbers,
    /// The distinct cells of all signatures.
    Cells,
    /// Signature records, one more at the end.
    Signatures,
    /// Constants, column by column within a signature (see `columns`).
    Columns,
    /// Least and greatest constants of the blocks of rows, column by column (f32, see `zones`).
    Zones,
    /// First subscription of each row (u32), one more at the end.
    RowSubscriptions,
    /// Bytes of the subscription ids.
    IdBytes,
    /// Where each id starts (u32), one more at the end.
    IdOffsets,
    /// Hash slots of the ids.
    IdSlots,
    /// Stream of each subscription (u32, 0 for every stream); empty if none names one.
    SubscriptionStreams,
    /// Stream names as length-prefixed text.
    Streams,
    /// Edges of the path trie: starts.
    TrieStarts,
    /// Edges of the path trie: labels.
    TrieEdges,
    /// Posting of each trie node's existence (u32).
    NodePostings,
    /// What is probed at each trie node (u8 flags).
    NodeFlags,
    /// Probe keys, ascending (u64): kind, constant, trie node.
    Probes,
    /// Runs of each posting (u32), one more at the end.
    PostingRuns,
    /// Runs of rows.
    Runs,
    /// What guards runs: first postings, and where further ones are.
    Guards,
    /// Further guards, anchors and joins of runs, behind the numbers of them (u32).
    Anchors,
    /// Ranges: trie node, operator, entries.
    Ranges,
    /// Constants of the range entries, ascending within a range (f64).
    RangeValues,
    /// Rows of the range entries.
    RangeRuns,
    /// Runs that every document has to be checked against.
    AlwaysRuns,
    /// What a file carries besides the segment; the last section, empty in memory.
    Attachment,
}

/// Where the bytes are.
#[derive(Debug)]
enum Storage {
    /// Built here; u64 for alignment.
    Owned(Vec<u64>),
    /// A memory-mapped file.
    Mapped(Mapped),
}

/// An image, readable section by section.
#[derive(Debug)]
pub struct Image {
    storage: Storage,
    table: Vec<(usize, usize)>,
    byte_count: usize,
}

/// Values of one section, whatever they are.
trait Part: Send + std::fmt::Debug {
    fn bytes(&self) -> &[u8];
}

impl<T: Pod + Send + std::fmt::Debug> Part for Vec<T> {
    fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(self)
    }
}

/// Collects sections and lays them out.
#[derive(Debug, Default)]
pub struct ImageWriter {
    parts: Vec<(Section, Box<dyn Part>)>,
}

impl ImageWriter {
    /// Adds a section.
    pub fn add<T: Pod + Send + std::fmt::Debug>(&mut self, section: Section, values: Vec<T>) {
        self.parts.push((section, Box::new(values)));
    }

    /// Adds the sections of another writer.
    pub fn append(&mut self, other: ImageWriter) {
        self.parts.extend(other.parts);
    }

    /// Lays everything out.
    pub fn finish(self) -> Image {
        let count = Section::ALL.len();
        let head = HEADER_BYTES + count * 16;
        let mut table = vec![(head, 0); count];
        let mut at = head;
        for (section, part) in &self.parts {
            let length = part.bytes().len();
            table[*section as usize] = (at, length);
            at += length.next_multiple_of(8);
        }
        let mut words = vec![0u64; at / 8];
        let buffer: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
        for (section, part) in self.parts {
            let (start, length) = table[section as usize];
            buffer[start..start + length].copy_from_slice(part.bytes());
        }
        for (number, (start, length)) in table.iter().enumerate() {
            let place = HEADER_BYTES + number * 16;
            buffer[place..place + 8].copy_from_slice(&(*start as u64).to_le_bytes());
            buffer[place + 8..place + 16].copy_from_slice(&(*length as u64).to_le_bytes());
        }
        buffer[..8].copy_from_slice(&MAGIC);
        buffer[8..12].copy_from_slice(&VERSION.to_le_bytes());
        buffer[12..16].copy_from_slice(&(count as u32).to_le_bytes());
        buffer[16..24].copy_from_slice(&(at as u64).to_le_bytes());
        // The checksum is written with the file: an image that stays in memory does not need one.
        Image { storage: Storage::Owned(words), table, byte_count: at }
    }
}

impl Image {
    fn bytes(&self) -> &[u8] {
        match &self.storage {
            Storage::Owned(words) => bytemuck::cast_slice(words),
            Storage::Mapped(map) => map.bytes(),
        }
    }

    /// Size in bytes.
    pub fn byte_count(&self) -> usize {
        self.byte_count
    }

    /// Whether the bytes are a memory-mapped file.
    pub fn is_mapped(&self) -> bool {
        matches!(self.storage, Storage::Mapped(_))
    }

    /// Name and size in bytes of each section.
    pub fn sizes(&self) -> Vec<(&'static str, usize)> {
        Section::ALL.iter().map(|section| (section.name(), self.table[*section as usize].1)).collect()
    }

    /// A section as values.
    ///
    /// # Panics
    /// If the length is not a multiple of the value's size, which opening has ruled out.
    #[inline]
    pub fn section<T: Pod>(&self, section: Section) -> &[T] {
        let (start, length) = self.table[section as usize];
        bytemuck::cast_slice(&self.bytes()[start..start + length])
    }

    /// Checksum of the content (all bytes behind the header).
    pub fn checksum(&self) -> u128 {
        match &self.storage {
            Storage::Owned(_) => xxh3_128(&self.bytes()[HEADER_BYTES..]),
            Storage::Mapped(_) => stored_checksum(self.bytes()),
        }
    }

    /// Writes the image to a file, with an attachment in place of the one that it has: beside it first, then renamed over
    /// it, so that no reader sees half of it. Returns the checksum of the file's content.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn save(&self, path: &Path, attachment: &[u8]) -> std::io::Result<u128> {
        use std::io::Write;
        let bytes = self.bytes();
        let place = HEADER_BYTES + Section::Attachment as usize * 16;
        let head_end = HEADER_BYTES + Section::ALL.len() * 16;
        let (start, length) = self.table[Section::Attachment as usize];
        let body_end = if length == 0 { bytes.len() } else { start };
        let padding = attachment.len().next_multiple_of(8) - attachment.len();
        let mut head = bytes[..head_end].to_vec();
        let total = body_end + attachment.len() + padding;
        head[16..24].copy_from_slice(&(total as u64).to_le_bytes());
        head[place..place + 8].copy_from_slice(&(body_end as u64).to_le_bytes());
        head[place + 8..place + 16].copy_from_slice(&(attachment.len() as u64).to_le_bytes());
        let parts = [&head[HEADER_BYTES..], &bytes[head_end..body_end], attachment, &[0; 8][..padding]];
        let mut hasher = Xxh3::new();
        parts.iter().for_each(|part| hasher.update(part));
        let checksum = hasher.digest128();
        let mut name = path.file_name().unwrap_or_default().to_os_string();
        name.push(format!(".{}.part", std::process::id()));
        let part_path = path.with_file_name(name);
        let written = (|| {
            let mut file = std::fs::File::create(&part_path)?;
            file.write_all(&head[..24])?;
            file.write_all(&checksum.to_le_bytes())?;
            for part in parts {
                file.write_all(part)?;
            }
            file.sync_all()?;
            std::fs::rename(&part_path, path)
        })();
        if written.is_err() {
            // The original error is what matters; a left-over part file is harmless.
            let _ = std::fs::remove_file(&part_path);
        }
        written.map(|()| checksum)
    }

    /// Opens a file by memory map. With `verify` the checksum of all bytes is compared, which reads the file once;
    /// without it only the header and the layout are checked.
    ///
    /// # Errors
    /// If the file cannot be read, is no index, has another version, or is truncated or damaged.
    pub fn open(path: &Path, verify: bool) -> Result<Image, IndexFormatError> {
        let fail = |reason: String| IndexFormatError::new(path, reason);
        let map = Mapped::open(path).map_err(|error| fail(format!("cannot be opened: {error}")))?;
        let bytes = map.bytes();
        if bytes.len() < 8 || bytes[..8] != MAGIC {
            return Err(fail("is not a Sardonyx index (its first bytes are not \"SDXINDEX\")".into()));
        }
        let count = Section::ALL.len();
        let head = HEADER_BYTES + count * 16;
        if bytes.len() < HEADER_BYTES {
            return Err(fail(format!("is truncated: {} bytes, less than a header", bytes.len())));
        }
        let version = u32::from_le_bytes(bytes[8..12].try_into().expect("4 bytes"));
        if version != VERSION {
            return Err(fail(format!("has format version {version}, this build reads version {VERSION}")));
        }
        let sections = u32::from_le_bytes(bytes[12..16].try_into().expect("4 bytes")) as usize;
        let total = u64::from_le_bytes(bytes[16..24].try_into().expect("8 bytes"));
        if total != bytes.len() as u64 {
            return Err(fail(format!("is truncated or extended: {} bytes instead of {total}", bytes.len())));
        }
        if sections != count || bytes.len() < head {
            return Err(fail(format!("is damaged: {sections} sections instead of {count}")));
        }
        let mut table = Vec::with_capacity(count);
        for number in 0..count {
            let place = HEADER_BYTES + number * 16;
            let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes")) as usize;
            let (start, length) = (word(place), word(place + 8));
            let inside = start.checked_add(length).is_some_and(|end| end <= bytes.len());
            if !inside || start < head || start % 8 != 0 {
                return Err(fail(format!("is damaged: section {} lies outside the file", Section::ALL[number].name())));
            }
            table.push((start, length));
        }
        if verify {
            let mut hasher = Xxh3::new();
            for chunk in bytes[HEADER_BYTES..].chunks(1 << 20) {
                hasher.update(chunk);
            }
            if hasher.digest128() != stored_checksum(bytes) {
                return Err(fail("is damaged: its checksum does not match its content".into()));
            }
        }
        let byte_count = bytes.len();
        Ok(Image { storage: Storage::Mapped(map), table, byte_count })
    }
}

fn stored_checksum(bytes: &[u8]) -> u128 {
    u128::from_le_bytes(bytes[24..40].try_into().expect("16 bytes"))
}
