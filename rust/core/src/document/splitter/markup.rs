//! Tags and document type declarations, as far as the splitter must understand them.

use quick_xml::Reader;
use quick_xml::errors::Error;
use quick_xml::parser::{ElementParser, Parser};

use super::super::attributes::{name_bytes, scan};
use super::super::chars::predefined;
use super::super::error::DocumentError;

/// Offset after the `>` that ends the tag at the start of `bytes`; `>` between quotes does not.
pub(super) fn tag_end(bytes: &[u8]) -> Option<usize> {
    ElementParser::default().feed(bytes).map(|at| at + 1)
}

/// Whether a tag is an empty-element tag.
pub(super) fn closes(tag: &[u8]) -> bool {
    tag.ends_with(b"/>")
}

/// What stands between the opening bytes of a whole tag (`<` or `</`) and its end.
fn inside(tag: &[u8], opening: usize) -> Option<&str> {
    let tag = &tag[opening..];
    std::str::from_utf8(tag.strip_suffix(b"/>").or(tag.strip_suffix(b">"))?).ok()
}

/// The name in a whole tag that begins with `opening` bytes of markup; `None` if there is none.
pub(super) fn name_of(tag: &[u8], opening: usize) -> Option<&str> {
    let inside = inside(tag, opening)?;
    Some(&inside[..name_bytes(inside)]).filter(|name| !name.is_empty())
}

/// Offset after the document type declaration at the start of `bytes`.
pub(super) fn doctype_end(bytes: &[u8]) -> Option<usize> {
    let mut reader = Reader::from_reader(bytes);
    match reader.read_event() {
        // What is wrong in it matters to the records that it goes along with only.
        Ok(_) | Err(Error::IllFormed(_)) => Some(reader.buffer_position() as usize),
        Err(_) => None,
    }
}

/// Whether a record may refer to entities of the document type declaration. References inside CDATA sections and
/// comments count too: the declaration is then given without need, which does no harm.
pub(super) fn uses_entities(record: &[u8]) -> bool {
    memchr::memchr_iter(b'&', record).any(|at| {
        let body = &record[at + 1..];
        let end = memchr::memchr(b';', body).unwrap_or(0);
        let name = std::str::from_utf8(&body[..end]).unwrap_or_default();
        !name.is_empty() && !name.starts_with('#') && predefined(name).is_none()
    })
}

/// The namespace declarations of one tag, values as written.
#[derive(Debug, Default)]
pub(super) struct Declarations(Vec<(Box<str>, Box<str>, char)>);

impl Declarations {
    /// Reads them from a start tag.
    pub(super) fn of(tag: &[u8]) -> Result<Self, String> {
        let mut found = Declarations::default();
        if memchr::memmem::find(tag, b"xmlns").is_none() {
            return Ok(found);
        }
        let inside = inside(tag, 1).ok_or("a tag that is not UTF-8 found")?;
        let mut names: Vec<Box<str>> = Vec::new();
        let mut attributes = Vec::new();
        let name = |name: &str, _| {
            names.push(name.into());
            Ok(names.len() as u32 - 1)
        };
        scan(inside, name_bytes(inside), 0, DocumentError::malformed, name, &mut attributes)
            .map_err(|error| error.message)?;
        for attribute in attributes {
            let (start, end) = (attribute.value.0 as usize, attribute.value.1 as usize);
            let name = &*names[attribute.name as usize];
            let prefix = match name.strip_prefix("xmlns") {
                Some("") => "",
                Some(rest) if rest.starts_with(':') => &rest[1..],
                _ => continue,
            };
            let quote = if inside.as_bytes()[end] == b'\'' { '\'' } else { '"' };
            found.0.push((prefix.into(), inside[start..end].into(), quote));
        }
        Ok(found)
    }

    /// Appends the declarations of `outer` (nearest first) that these and nearer ones do not override.
    pub(super) fn push_missing<'a>(&'a self, outer: impl Iterator<Item = &'a Declarations>, out: &mut Vec<u8>) {
        let mut seen: Vec<&str> = self.0.iter().map(|(prefix, ..)| &**prefix).collect();
        for (prefix, value, quote) in outer.flat_map(|declarations| &declarations.0) {
            if seen.contains(&&**prefix) {
                continue;
            }
            seen.push(prefix);
            if value.is_empty() {
                continue;
            }
            let colon = if prefix.is_empty() { "" } else { ":" };
            out.extend_from_slice(format!(" xmlns{colon}{prefix}={quote}{value}{quote}").as_bytes());
        }
    }
}
