//! The attributes of one tag: quick-xml's iterator, made strict.
//!
//! The iterator lets attributes follow each other without white space and allows `<` in values; both are refused here.

use quick_xml::events::attributes::{AttrError, Attributes};

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

/// Whether a text has anything that a plain value has not. There is no early exit, so that the compiler can use
/// vectors; control characters other than white space were refused before.
#[inline]
fn is_special(text: &str) -> bool {
    text.bytes().fold(false, |found, byte| found | (byte < b' ') | (byte == b'&') | (byte == b'<'))
}

/// Offset of a part in the whole that it is a slice of.
#[inline]
fn offset_in(whole: &str, part: &str) -> usize {
    part.as_ptr().addr() - whole.as_ptr().addr()
}

/// Length of the name at the start of the inside of a tag, which ends where quick-xml ends it: at white space.
pub(super) fn name_bytes(tag: &str) -> usize {
    tag.bytes().position(is_space).unwrap_or(tag.len())
}

/// Reads the attributes that follow the name of a tag.
///
/// `tag` is what stands between `<` and `>` or `/>`, `base` its offset in the text; `fault` makes an error of an
/// offset in the text and a message, `entry` looks up a name, given with its offset.
#[inline]
pub(super) fn scan(
    tag: &str,
    name_bytes: usize,
    base: usize,
    fault: impl Fn(usize, String) -> DocumentError,
    mut entry: impl FnMut(&str, usize) -> Result<u32, DocumentError>,
    found: &mut Vec<RawAttribute>,
) -> Result<(), DocumentError> {
    // Most tags are plain as a whole, which one pass shows.
    let special = is_special(&tag[name_bytes..]);
    let mut end = name_bytes;
    let mut attributes = Attributes::new(tag, name_bytes);
    for attribute in attributes.with_checks(false) {
        let attribute = match attribute {
            Ok(attribute) => attribute,
            Err(error) => {
                let (name, at, message) = explain(&error, tag, end);
                if at == end {
                    return Err(fault(base + at, "white space, '>' or '/>' expected in the tag".into()));
                }
                // A name that is none comes first.
                entry(name, base + at)?;
                return Err(fault(base + message.0, message.1));
            }
        };
        let (name, value) = (attribute.key.0, &*attribute.value);
        let at = offset_in(tag, name);
        if at == end {
            return Err(fault(base + at, "white space, '>' or '/>' expected in the tag".into()));
        }
        let name = entry(name, base + at)?;
        let start = offset_in(tag, value);
        end = start + value.len() + 1;
        let plain = !special || !is_special(value);
        if !plain && let Some(open) = memchr::memchr(b'<', value.as_bytes()) {
            return Err(fault(base + start + open, "'<' found in an attribute value, '&lt;' expected".into()));
        }
        let value = ((base + start) as u32, (base + start + value.len()) as u32);
        found.push(RawAttribute { name, at: (base + at) as u32, value, plain });
    }
    Ok(())
}

/// An error of the iterator for the attribute after `end`: its name, where that starts, and where what is wrong.
#[cold]
fn explain<'t>(error: &AttrError, tag: &'t str, end: usize) -> (&'t str, usize, (usize, String)) {
    let at = end + tag.as_bytes()[end..].iter().take_while(|byte| is_space(**byte)).count();
    let rest = &tag[at..];
    let name = &rest[..rest.bytes().position(|byte| byte == b'=' || is_space(byte)).unwrap_or(rest.len())];
    let fault = match error {
        AttrError::ExpectedEq(place) => (*place, format!("'=' and a quoted value expected after '{name}'")),
        AttrError::ExpectedQuote(_, quote) => {
            let value = memchr::memchr(*quote, rest.as_bytes()).map_or(rest.len(), |quote| quote + 1);
            (at + value, "the attribute value is not closed".into())
        }
        AttrError::ExpectedValue(place) | AttrError::UnquotedValue(place) | AttrError::Duplicated(place, _) => {
            (*place, "a quoted attribute value expected after '='".into())
        }
    };
    (name, at, fault)
}
