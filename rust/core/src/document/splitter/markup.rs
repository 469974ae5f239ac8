//! Tags and document type declarations, as far as the splitter must understand them.

use super::super::attributes::{name_end, scan};
use super::super::chars::predefined;
use super::super::error::DocumentError;

/// Offset after the `>` that ends the tag at the start of `bytes`; `>` between quotes does not.
pub(super) fn tag_end(bytes: &[u8]) -> Option<usize> {
    let mut quote = 0;
    for at in memchr::memchr3_iter(b'>', b'"', b'\'', bytes) {
        match bytes[at] {
            b'>' if quote == 0 => return Some(at + 1),
            b'>' => {}
            found if quote == 0 => quote = found,
            found if found == quote => quote = 0,
            _ => {}
        }
    }
    None
}

/// Whether a tag is an empty-element tag.
pub(super) fn closes(tag: &[u8]) -> bool {
    tag.ends_with(b"/>")
}

/// The name at the start of `bytes`; `None` if there is none.
pub(super) fn name_of(bytes: &[u8]) -> Option<&str> {
    let name = &bytes[..name_end(bytes, 0)];
    std::str::from_utf8(name).ok().filter(|name| !name.is_empty())
}

/// Offset after the document type declaration at the start of `bytes`.
pub(super) fn doctype_end(bytes: &[u8]) -> Option<usize> {
    let mut at = b"<!DOCTYPE".len();
    let mut subset = false;
    // Inside the subset, each declaration ends at its own '>'.
    let mut declaration = false;
    loop {
        let rest = bytes.get(at..)?;
        let past = |end: &[u8]| memchr::memmem::find(rest, end).map(|found| found + end.len());
        at += match rest.first()? {
            quote @ (b'"' | b'\'') if declaration || !subset => 1 + memchr::memchr(*quote, &rest[1..])? + 1,
            b'<' if rest.starts_with(b"<!--") => past(b"-->")?,
            b'<' if rest.starts_with(b"<?") => past(b"?>")?,
            b'<' if b"<!--".starts_with(&rest[..rest.len().min(4)]) => return None,
            b'<' => {
                declaration = true;
                1
            }
            b'>' if declaration => {
                declaration = false;
                1
            }
            b'>' if !subset => return Some(at + 1),
            b'[' if !declaration => {
                subset = true;
                1
            }
            b']' if !declaration => {
                subset = false;
                1
            }
            _ => 1,
        };
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
        let tag = std::str::from_utf8(tag).map_err(|e| e.to_string())?;
        let mut names: Vec<&str> = Vec::new();
        let mut attributes = Vec::new();
        let name = |range: (usize, usize)| {
            names.push(&tag[range.0..range.1]);
            Ok(names.len() as u32 - 1)
        };
        let start = name_end(tag.as_bytes(), 1);
        scan(tag, start, DocumentError::malformed, name, &mut attributes).map_err(|error| error.message)?;
        for attribute in attributes {
            let (start, end) = (attribute.value.0 as usize, attribute.value.1 as usize);
            let name = names[attribute.name as usize];
            let prefix = match name.strip_prefix("xmlns") {
                Some("") => "",
                Some(rest) if rest.starts_with(':') => &rest[1..],
                _ => continue,
            };
            let quote = if tag.as_bytes()[end] == b'\'' { '\'' } else { '"' };
            found.0.push((prefix.into(), tag[start..end].into(), quote));
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
