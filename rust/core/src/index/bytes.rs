//! Numbers and texts as bytes: little endian, texts behind their length.

/// Adds values to bytes.
#[derive(Debug, Default)]
pub struct Writer {
    /// What was written.
    pub bytes: Vec<u8>,
}

impl Writer {
    /// A number.
    pub fn small(&mut self, number: u32) {
        self.bytes.extend(number.to_le_bytes());
    }

    /// A length.
    pub fn length(&mut self, length: usize) {
        self.large(length as u64);
    }

    /// A large number.
    pub fn large(&mut self, number: u64) {
        self.bytes.extend(number.to_le_bytes());
    }

    /// A signed number.
    pub fn signed(&mut self, number: i64) {
        self.bytes.extend(number.to_le_bytes());
    }

    /// Bytes.
    pub fn block(&mut self, bytes: &[u8]) {
        self.length(bytes.len());
        self.bytes.extend(bytes);
    }

    /// A value that may be missing.
    pub fn option<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Writer, T)) {
        self.bytes.push(u8::from(value.is_some()));
        if let Some(value) = value {
            write(self, value);
        }
    }
}

/// Bytes that are not what is expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub &'static str);

/// Result of reading.
pub type Read<T> = Result<T, Malformed>;

const CUT: Malformed = Malformed("the bytes are cut off");

/// Reads values from bytes.
#[derive(Debug)]
pub struct Reader<'b> {
    bytes: &'b [u8],
}

impl<'b> Reader<'b> {
    /// A reader of these bytes.
    pub fn new(bytes: &'b [u8]) -> Reader<'b> {
        Reader { bytes }
    }

    /// That many bytes.
    pub fn take(&mut self, count: usize) -> Read<&'b [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(count).ok_or(CUT)?;
        self.bytes = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Read<[u8; N]> {
        self.take(N)?.try_into().map_err(|_| CUT)
    }

    /// A number.
    pub fn small(&mut self) -> Read<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// A large number.
    pub fn large(&mut self) -> Read<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// A signed number.
    pub fn signed(&mut self) -> Read<i64> {
        Ok(i64::from_le_bytes(self.array()?))
    }

    /// How many things of at least one byte follow.
    pub fn length(&mut self) -> Read<usize> {
        let length = usize::try_from(self.large()?).map_err(|_| CUT)?;
        if length > self.bytes.len() { Err(CUT) } else { Ok(length) }
    }

    /// Bytes.
    pub fn block(&mut self) -> Read<&'b [u8]> {
        let length = self.length()?;
        self.take(length)
    }

    /// A text.
    pub fn text(&mut self) -> Read<&'b str> {
        std::str::from_utf8(self.block()?).map_err(|_| Malformed("a text is not UTF-8"))
    }

    /// A value that may be missing.
    pub fn option<T>(&mut self, read: impl FnOnce(&mut Reader<'b>) -> Read<T>) -> Read<Option<T>> {
        match self.take(1)?[0] {
            0 => Ok(None),
            1 => read(self).map(Some),
            _ => Err(Malformed("a mark is neither zero nor one")),
        }
    }

    /// Several values.
    pub fn list<T>(&mut self, mut read: impl FnMut(&mut Reader<'b>) -> Read<T>) -> Read<Vec<T>> {
        (0..self.length()?).map(|_| read(self)).collect()
    }
}
