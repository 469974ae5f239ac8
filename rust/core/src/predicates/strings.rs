//! Distinct strings, numbered: a pool while building, three flat arrays afterwards.

use hashbrown::HashTable;
use xxhash_rust::xxh3::xxh3_64;

const EMPTY: u32 = u32::MAX;

/// Strings under construction.
#[derive(Debug)]
pub struct StringPool {
    bytes: Vec<u8>,
    offsets: Vec<u32>,
    table: HashTable<u32>,
}

impl Default for StringPool {
    fn default() -> Self {
        StringPool { bytes: Vec::new(), offsets: vec![0], table: HashTable::new() }
    }
}

fn slice<'a>(bytes: &'a [u8], offsets: &[u32], number: u32) -> &'a [u8] {
    &bytes[offsets[number as usize] as usize..offsets[number as usize + 1] as usize]
}

impl StringPool {
    /// Makes room for that many more strings.
    pub fn reserve(&mut self, count: usize) {
        self.offsets.reserve(count);
        let (bytes, offsets) = (&self.bytes, &self.offsets);
        self.table.reserve(count, |number| xxh3_64(slice(bytes, offsets, *number)));
    }

    /// Number of strings.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of all strings together.
    pub fn byte_count(&self) -> usize {
        self.bytes.len()
    }

    /// The string behind a number.
    pub fn get(&self, number: u32) -> &str {
        std::str::from_utf8(slice(&self.bytes, &self.offsets, number)).expect("only whole strings are stored")
    }

    /// The bytes of a string.
    pub fn bytes_of(&self, number: u32) -> &[u8] {
        slice(&self.bytes, &self.offsets, number)
    }

    /// The number of a string, adding it if new.
    pub fn intern(&mut self, text: &str) -> u32 {
        let hash = xxh3_64(text.as_bytes());
        let (bytes, offsets) = (&self.bytes, &self.offsets);
        if let Some(number) = self.table.find(hash, |number| slice(bytes, offsets, *number) == text.as_bytes()) {
            return *number;
        }
        let number = (self.offsets.len() - 1) as u32;
        self.bytes.extend_from_slice(text.as_bytes());
        self.offsets.push(self.bytes.len() as u32);
        let (bytes, offsets) = (&self.bytes, &self.offsets);
        self.table.insert_unique(hash, number, |number| xxh3_64(slice(bytes, offsets, *number)));
        number
    }

    /// The flat form: bytes, offsets, hash slots.
    pub fn freeze(self) -> (Vec<u8>, Vec<u32>, Vec<u32>) {
        let slots = hash_slots(&self.bytes, &self.offsets);
        (self.bytes, self.offsets, slots)
    }
}

/// Open-addressing slots (linear probing, at most 3/4 full) over flat strings.
pub fn hash_slots(bytes: &[u8], offsets: &[u32]) -> Vec<u32> {
    let count = offsets.len() - 1;
    if count == 0 {
        return Vec::new();
    }
    let mut slots = vec![EMPTY; (count * 4 / 3 + 1).next_power_of_two()];
    let mask = slots.len() - 1;
    for number in 0..count as u32 {
        let mut at = xxh3_64(slice(bytes, offsets, number)) as usize & mask;
        while slots[at] != EMPTY {
            at = (at + 1) & mask;
        }
        slots[at] = number;
    }
    slots
}

/// What [`Strings::find_all`] found for one string, and what it found it by.
#[derive(Clone, Copy, Debug)]
pub struct FoundString {
    home: usize,
    number: u32,
    start: u32,
}

impl Default for FoundString {
    fn default() -> FoundString {
        FoundString { home: 0, number: EMPTY, start: 0 }
    }
}

impl FoundString {
    /// The number of the string, if it is known.
    #[inline]
    pub fn number(&self) -> Option<u32> {
        Some(self.number).filter(|number| *number != EMPTY)
    }
}

/// Flat strings, borrowed.
#[derive(Clone, Copy, Debug)]
pub struct Strings<'a> {
    /// All bytes.
    pub bytes: &'a [u8],
    /// Where each string starts, one more at the end.
    pub offsets: &'a [u32],
    /// Hash slots.
    pub slots: &'a [u32],
}

impl<'a> Strings<'a> {
    /// Number of strings.
    pub fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The string behind a number.
    ///
    /// # Panics
    /// If the bytes are not UTF-8 (a damaged index).
    #[inline]
    pub fn get(&self, number: u32) -> &'a str {
        std::str::from_utf8(slice(self.bytes, self.offsets, number)).expect("strings of an index are UTF-8")
    }

    /// The bytes of a string.
    #[inline]
    pub fn bytes_of(&self, number: u32) -> &'a [u8] {
        slice(self.bytes, self.offsets, number)
    }

    /// The numbers of many strings. Each table is read for all of them before the next: where it is not in the caches,
    /// the processor waits for many lines at once.
    pub fn find_all<'t>(&self, texts: impl Iterator<Item = &'t str> + Clone, found: &mut Vec<FoundString>) {
        found.clear();
        if self.slots.is_empty() {
            found.extend(texts.map(|_| FoundString::default()));
            return;
        }
        found.extend(texts.clone().map(|text| {
            let home = self.home(text);
            FoundString { home, number: self.slots[home], start: 0 }
        }));
        for found in &mut *found {
            found.start = self.offsets.get(found.number as usize).copied().unwrap_or(0);
        }
        for (text, found) in texts.zip(found) {
            if found.number != EMPTY {
                let stored = &self.bytes[found.start as usize..self.offsets[found.number as usize + 1] as usize];
                if stored != text.as_bytes() {
                    found.number = self.find_from(text, found.home + 1).unwrap_or(EMPTY);
                }
            }
        }
    }

    /// The number of a string.
    #[inline]
    pub fn find(&self, text: &str) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        self.find_from(text, self.home(text))
    }

    /// The slot where a string would be.
    #[inline]
    fn home(&self, text: &str) -> usize {
        xxh3_64(text.as_bytes()) as usize & (self.slots.len() - 1)
    }

    #[inline]
    fn find_from(&self, text: &str, at: usize) -> Option<u32> {
        let mask = self.slots.len() - 1;
        let mut at = at & mask;
        // Bounded, so that not even a damaged table without an empty slot loops for ever.
        for _ in 0..self.slots.len() {
            match self.slots[at] {
                EMPTY => return None,
                number if slice(self.bytes, self.offsets, number) == text.as_bytes() => return Some(number),
                _ => at = (at + 1) & mask,
            }
        }
        None
    }
}
