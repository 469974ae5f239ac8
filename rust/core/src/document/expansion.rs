//! Expansion of attribute values, and the account of what entities may cost.

use super::chars::{character_reference, is_ncname, predefined};
use super::dtd::{Dtd, Entity};
use super::error::{DocumentError, DocumentErrorKind};
use super::limits::Limits;

/// What entities have cost so far.
#[derive(Debug)]
pub(super) struct Expansion {
    spent: usize,
    allowed: usize,
    setting: &'static str,
    /// Entities that may be open inside each other.
    pub(super) depth: usize,
    /// Bytes that one value may have.
    pub(super) text_bytes: usize,
}

impl Expansion {
    pub(super) fn new(limits: &Limits, document_bytes: usize) -> Self {
        let allowed = limits.expansion_bytes(document_bytes);
        let setting = if allowed == limits.entity_bytes { "entity_bytes" } else { "entity_amplification" };
        Expansion { spent: 0, allowed, setting, depth: limits.entity_depth, text_bytes: limits.text_bytes }
    }

    /// Accounts for `bytes` more bytes of replacement text or of defaulted attributes.
    pub(super) fn spend(&mut self, bytes: usize, offset: usize) -> Result<(), DocumentError> {
        self.spent = self.spent.saturating_add(bytes);
        if self.spent <= self.allowed {
            return Ok(());
        }
        let what = "entity expansion, in bytes";
        Err(DocumentError::limit(offset, self.setting, self.allowed, self.spent, what))
    }

    /// Refuses one entity more than may be open inside each other.
    pub(super) fn check_depth(&self, open: usize, offset: usize) -> Result<(), DocumentError> {
        if open < self.depth {
            return Ok(());
        }
        Err(DocumentError::limit(offset, "entity_depth", self.depth, open + 1, "entities inside each other"))
    }
}

/// Where a reference stands, for the error when its entity cannot be used.
pub(super) fn unusable(dtd: Option<&Dtd>, name: &str, offset: usize) -> DocumentError {
    match dtd.and_then(|dtd| dtd.entity(name)) {
        Some(Entity::Unparsed) => {
            DocumentError::malformed(offset, format!("'&{name};' refers to an unparsed entity, a text is expected"))
        }
        Some(_) => DocumentError::new(
            DocumentErrorKind::UnreadEntity,
            offset,
            format!("'&{name};' refers to an external entity, which is never loaded"),
        ),
        None if dtd.is_some_and(|dtd| dtd.is_unread()) => DocumentError::new(
            DocumentErrorKind::UnreadEntity,
            offset,
            format!("'&{name};' may be declared outside the document, where nothing is read"),
        ),
        None => DocumentError::malformed(offset, format!("the entity '&{name};' is not declared")),
    }
}

/// An attribute value as the recommendation normalises it for the type CDATA (§3.3.3).
///
/// `literal` says that the value stands in the document itself, where CR LF counts as one line end.
pub(super) fn expand_value(
    raw: &str,
    literal: bool,
    dtd: Option<&Dtd>,
    expansion: &mut Expansion,
    offset: usize,
    out: &mut String,
) -> Result<(), DocumentError> {
    let start = out.len();
    let mut open: Vec<(&str, &str)> = Vec::new();
    let mut rest = raw;
    loop {
        let special = rest.bytes().position(|b| matches!(b, b'&' | b'<' | b'\t' | b'\n' | b'\r'));
        let Some(at) = special else {
            out.push_str(rest);
            check_length(out.len() - start, expansion, offset)?;
            match open.pop() {
                Some((_, outer)) => rest = outer,
                None => return Ok(()),
            }
            continue;
        };
        out.push_str(&rest[..at]);
        check_length(out.len() - start, expansion, offset)?;
        let byte = rest.as_bytes()[at];
        rest = &rest[at + 1..];
        match byte {
            b'<' => return Err(DocumentError::malformed(offset, "'<' found in an attribute value, '&lt;' expected")),
            b'&' => {
                let (body, after) = split_reference(rest, offset)?;
                rest = after;
                if let Some(c) = reference_character(body, offset)? {
                    out.push(c);
                    continue;
                }
                let Some(Entity::Internal(text)) = dtd.and_then(|dtd| dtd.entity(body)) else {
                    if let Some(Entity::External) = dtd.and_then(|dtd| dtd.entity(body)) {
                        let message =
                            format!("'&{body};' refers to an external entity, which no attribute value may do");
                        return Err(DocumentError::malformed(offset, message));
                    }
                    return Err(unusable(dtd, body, offset));
                };
                if open.iter().any(|(name, _)| *name == body) {
                    return Err(DocumentError::malformed(offset, format!("the entity '&{body};' contains itself")));
                }
                expansion.check_depth(open.len(), offset)?;
                expansion.spend(text.len(), offset)?;
                open.push((body, rest));
                rest = text;
            }
            b'\r' if literal && open.is_empty() && rest.starts_with('\n') => {}
            _ => out.push(' '),
        }
    }
}

fn check_length(bytes: usize, expansion: &Expansion, offset: usize) -> Result<(), DocumentError> {
    if bytes <= expansion.text_bytes {
        return Ok(());
    }
    Err(DocumentError::limit(offset, "text_bytes", expansion.text_bytes, bytes, "bytes of one attribute value"))
}

/// Cuts `name;` off the text after an ampersand.
pub(super) fn split_reference(rest: &str, offset: usize) -> Result<(&str, &str), DocumentError> {
    match rest.bytes().position(|b| matches!(b, b';' | b'&' | b'<')) {
        Some(end) if rest.as_bytes()[end] == b';' => Ok((&rest[..end], &rest[end + 1..])),
        _ => Err(DocumentError::malformed(offset, "'&' found without a reference: '&amp;' or ';' expected")),
    }
}

/// The character that a reference stands for; `None` if it names an entity of the DTD.
pub(super) fn reference_character(body: &str, offset: usize) -> Result<Option<char>, DocumentError> {
    if body.starts_with('#') {
        return match character_reference(body) {
            Some(c) => Ok(Some(c)),
            None => Err(DocumentError::malformed(offset, format!("'&{body};' refers to no legal character"))),
        };
    }
    if let Some(c) = predefined(body) {
        return Ok(Some(c));
    }
    if !is_ncname(body) {
        return Err(DocumentError::malformed(offset, format!("'&{body};' found, the name of an entity expected")));
    }
    Ok(None)
}

/// Normalises a value further, for attribute types other than CDATA: no space at the ends, one between tokens.
pub(super) fn tokenize(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for token in value.split(' ').filter(|token| !token.is_empty()) {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(token);
    }
    out
}
