//! Limits on documents.

/// Whether a document may carry a document type declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Doctype {
    /// The internal subset is read within the limits; nothing external is ever loaded.
    #[default]
    Allow,
    /// Any `<!DOCTYPE` is an error of kind [`super::DocumentErrorKind::DoctypeForbidden`].
    Forbid,
}

/// What one document may cost. A document above a limit is an error that names the setting, never a crash.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// Input size, in bytes as given (before decoding).
    pub document_bytes: usize,
    /// Levels of nested elements; at most 65,534, the width of the tree's depth field.
    pub depth: usize,
    /// Attributes of one element, namespace declarations and defaulted ones included.
    pub attributes: usize,
    /// Bytes (UTF-8) of one name as written, prefix included.
    pub name_bytes: usize,
    /// Bytes (UTF-8) of one text node, attribute value, comment or processing instruction.
    pub text_bytes: usize,
    /// Nodes of one document, attributes included.
    pub nodes: usize,
    /// Bytes that entities and defaulted attributes may add, as a multiple of the document's bytes.
    pub entity_amplification: usize,
    /// Bytes that are always allowed for entities, so that the factor does not hit small honest documents.
    pub entity_floor_bytes: usize,
    /// Bytes that entities and defaulted attributes may add in all, whatever the factor says.
    pub entity_bytes: usize,
    /// Entities open inside each other.
    pub entity_depth: usize,
    /// Whether a document type declaration is accepted.
    pub doctype: Doctype,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            document_bytes: 64 << 20,
            depth: 1024,
            attributes: 1024,
            name_bytes: 4096,
            text_bytes: 16 << 20,
            nodes: 8 << 20,
            entity_amplification: 10,
            entity_floor_bytes: 256 << 10,
            entity_bytes: 16 << 20,
            entity_depth: 32,
            doctype: Doctype::Allow,
        }
    }
}

impl Limits {
    /// Expanded bytes allowed for a document of `document_bytes` bytes.
    pub(crate) fn expansion_bytes(&self, document_bytes: usize) -> usize {
        let factor = document_bytes.saturating_mul(self.entity_amplification);
        factor.max(self.entity_floor_bytes).min(self.entity_bytes)
    }
}
