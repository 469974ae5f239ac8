//! The attributes of one start tag, scanned strictly.

use super::chars::is_space;

/// An attribute as it stands in a tag: byte ranges in the tag's text.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawAttribute {
    /// Name.
    pub(super) name: (u32, u32),
    /// Value, without quotes.
    pub(super) value: (u32, u32),
    /// Whether the value is its own normalised form: no reference and no white space but blanks.
    pub(super) plain: bool,
}

const PLAIN: u8 = 0;
const SPECIAL: u8 = 1;
const FORBIDDEN: u8 = 2;

const CLASS: [u8; 256] = {
    let mut table = [PLAIN; 256];
    table[b'&' as usize] = SPECIAL;
    table[b'\t' as usize] = SPECIAL;
    table[b'\n' as usize] = SPECIAL;
    table[b'\r' as usize] = SPECIAL;
    table[b'<' as usize] = FORBIDDEN;
    table
};

/// Scans what follows the element name in a tag; an error carries the offset in the tag and what is wrong.
///
/// quick-xml's own iterator is not used: it lets attributes follow each other without white space and allows `<` in
/// values, so that a second scan would be needed to be strict.
pub(super) fn scan(
    tag: &str,
    name_bytes: usize,
    mut found: impl FnMut(RawAttribute) -> bool,
) -> Result<(), (usize, String)> {
    let bytes = tag.as_bytes();
    let mut at = name_bytes;
    loop {
        let before = at;
        at = skip_space(bytes, at);
        if at == bytes.len() {
            return Ok(());
        }
        if at == before {
            return Err((at, "white space expected between attributes".into()));
        }
        let start = at;
        while at < bytes.len() && bytes[at] != b'=' && !is_space(bytes[at]) {
            at += 1;
        }
        let name = (start as u32, at as u32);
        at = skip_space(bytes, at);
        if bytes.get(at) != Some(&b'=') {
            let name = &tag[name.0 as usize..name.1 as usize];
            return Err((at, format!("'=' and a quoted value expected after '{name}'")));
        }
        at = skip_space(bytes, at + 1);
        let quote = match bytes.get(at) {
            Some(quote @ (b'"' | b'\'')) => *quote,
            _ => return Err((at, "a quoted attribute value expected after '='".into())),
        };
        let start = at + 1;
        let mut class = PLAIN;
        at = start;
        loop {
            match bytes.get(at) {
                None => return Err((start, "the attribute value is not closed".into())),
                Some(byte) if *byte == quote => break,
                Some(byte) => class |= CLASS[*byte as usize],
            }
            at += 1;
        }
        if class & FORBIDDEN != 0 {
            let open = memchr::memchr(b'<', &bytes[start..at]).unwrap_or(0);
            return Err((start + open, "'<' found in an attribute value, '&lt;' expected".into()));
        }
        let value = (start as u32, at as u32);
        at += 1;
        if !found(RawAttribute { name, value, plain: class == PLAIN }) {
            return Ok(());
        }
    }
}

fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() && is_space(bytes[at]) {
        at += 1;
    }
    at
}
