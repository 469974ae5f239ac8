//! Why a document was refused, and where.

use std::fmt;

use super::location::position_of;

/// The kind of a [`DocumentError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DocumentErrorKind {
    /// A rule of XML 1.0 or of Namespaces in XML 1.0 is broken.
    NotWellFormed,
    /// The bytes do not fit the encoding, or the encoding is unknown or contradicts the byte order mark.
    Encoding,
    /// A limit was passed; [`DocumentError::setting`] names it.
    Limit,
    /// The document has a document type declaration and the settings forbid it.
    DoctypeForbidden,
    /// The document needs the text of an entity that lies outside it, which is never loaded.
    UnreadEntity,
}

impl DocumentErrorKind {
    /// The kind as the word that reports and Python's errors use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotWellFormed => "not_well_formed",
            Self::Encoding => "encoding",
            Self::Limit => "limit",
            Self::DoctypeForbidden => "doctype_forbidden",
            Self::UnreadEntity => "unread_entity",
        }
    }
}

/// A document that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentError {
    /// What sort of error this is.
    pub kind: DocumentErrorKind,
    /// What was found and what was expected.
    pub message: String,
    /// Byte offset in the decoded (UTF-8) input, a byte order mark not counted. Inside the text of an entity it is
    /// the offset of the reference in the document.
    pub offset: usize,
    /// Line, from 1; CR LF, CR and LF each end one line.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The setting whose limit was passed, for errors of kind [`DocumentErrorKind::Limit`].
    pub setting: Option<&'static str>,
}

impl DocumentError {
    pub(crate) fn new(kind: DocumentErrorKind, offset: usize, message: impl Into<String>) -> Self {
        DocumentError { kind, message: message.into(), offset, line: 0, column: 0, setting: None }
    }

    pub(crate) fn malformed(offset: usize, message: impl Into<String>) -> Self {
        Self::new(DocumentErrorKind::NotWellFormed, offset, message)
    }

    /// A limit error; `what` says what was counted, in its unit.
    pub(crate) fn limit(offset: usize, setting: &'static str, limit: usize, given: usize, what: &str) -> Self {
        let message = format!("{what}: {given} given, the setting {setting} allows {limit}");
        DocumentError { setting: Some(setting), ..Self::new(DocumentErrorKind::Limit, offset, message) }
    }

    /// Fills in line and column from the decoded input.
    pub(crate) fn locate(mut self, source: &str) -> Self {
        (self.line, self.column) = position_of(source, self.offset);
        self
    }
}

impl fmt::Display for DocumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {} ({})", self.line, self.column, self.message, self.kind.as_str())
    }
}

impl std::error::Error for DocumentError {}
