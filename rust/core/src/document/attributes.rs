//! The tokens of one tag, scanned strictly.

use super::chars::is_space;
use super::error::DocumentError;

/// An attribute as it stands in a tag.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawAttribute {
    /// Entry of the name.
    pub(super) name: u32,
    /// Where the name starts in the text.
    pub(super) at: u32,
    /// Byte range of the value in the text, without quotes.
    pub(super) value: (u32, u32),
    /// Whether the value is its own normalised form: no reference and no white space but blanks.
    pub(super) plain: bool,
}

/// The end of a tag.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tag {
    /// Offset after it.
    pub(super) end: usize,
    /// Whether it is an empty-element tag.
    pub(super) empty: bool,
}

const PLAIN: u8 = 0;
const SPECIAL: u8 = 1;
const FORBIDDEN: u8 = 2;
/// Ends a name: white space, `=`, `/`, `>`, `<`, quotes and the ampersand.
const ENDS_NAME: u8 = 4;

const CLASS: [u8; 256] = {
    let mut table = [PLAIN; 256];
    let ends = b" \t\r\n=/><\"'&";
    let mut at = 0;
    while at < ends.len() {
        table[ends[at] as usize] = ENDS_NAME;
        at += 1;
    }
    table[b'&' as usize] |= SPECIAL;
    table[b'\t' as usize] |= SPECIAL;
    table[b'\n' as usize] |= SPECIAL;
    table[b'\r' as usize] |= SPECIAL;
    table[b'<' as usize] |= FORBIDDEN;
    table
};

/// Offset of the first byte at or after `at` that cannot be part of a name, whatever else a name must be.
#[inline]
pub(super) fn name_end(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() && CLASS[bytes[at] as usize] & ENDS_NAME == 0 {
        at += 1;
    }
    at
}

/// Scans a tag from the end of its name; `fault` makes an error of an offset and a message, `entry` looks a name up
/// by its range.
#[inline]
pub(super) fn scan(
    text: &str,
    name_end_at: usize,
    fault: impl Fn(usize, String) -> DocumentError,
    mut entry: impl FnMut((usize, usize)) -> Result<u32, DocumentError>,
    found: &mut Vec<RawAttribute>,
) -> Result<Tag, DocumentError> {
    let bytes = text.as_bytes();
    let mut at = name_end_at;
    loop {
        let before = at;
        at = skip_space(bytes, at);
        match bytes.get(at) {
            Some(b'>') => return Ok(Tag { end: at + 1, empty: false }),
            Some(b'/') if bytes.get(at + 1) == Some(&b'>') => return Ok(Tag { end: at + 2, empty: true }),
            Some(_) if at > before => {}
            Some(_) => return Err(fault(at, "white space, '>' or '/>' expected in the tag".into())),
            None => return Err(fault(at, "the tag is not closed, '>' expected".into())),
        }
        let start = at;
        at = name_end(bytes, at);
        let name = entry((start, at))?;
        at = skip_space(bytes, at);
        if bytes.get(at) != Some(&b'=') {
            let name = &text[start..name_end(bytes, start)];
            return Err(fault(at, format!("'=' and a quoted value expected after '{name}'")));
        }
        at = skip_space(bytes, at + 1);
        let quote = match bytes.get(at) {
            Some(quote @ (b'"' | b'\'')) => *quote,
            _ => return Err(fault(at, "a quoted attribute value expected after '='".into())),
        };
        let value_at = at + 1;
        let mut class = PLAIN;
        at = value_at;
        loop {
            match bytes.get(at) {
                None => return Err(fault(value_at, "the attribute value is not closed".into())),
                Some(byte) if *byte == quote => break,
                Some(byte) => class |= CLASS[*byte as usize],
            }
            at += 1;
        }
        if class & FORBIDDEN != 0 {
            let open = memchr::memchr(b'<', &bytes[value_at..at]).unwrap_or(0);
            return Err(fault(value_at + open, "'<' found in an attribute value, '&lt;' expected".into()));
        }
        found.push(RawAttribute {
            name,
            at: start as u32,
            value: (value_at as u32, at as u32),
            plain: class & SPECIAL == 0,
        });
        at += 1;
    }
}

#[inline]
fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() && is_space(bytes[at]) {
        at += 1;
    }
    at
}
