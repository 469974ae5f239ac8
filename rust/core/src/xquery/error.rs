//! Why a query was refused, and where.

use crate::xpath::error::place;
use std::fmt;

/// What sort of fault a query has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum XQueryErrorKind {
    /// The text is no query.
    Syntax,
    /// A prefix has no binding.
    UnboundPrefix,
    /// A function that XQuery does not have.
    UnknownFunction,
    /// A function with too few or too many arguments.
    WrongArguments,
    /// A construction that can never be evaluated, such as two attributes of one name.
    Type,
    /// A variable that nothing binds.
    Variable,
    /// XQuery, but not of the subset.
    Unsupported,
    /// Larger or deeper than the limits allow.
    Limit,
}

/// A refused query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XQueryError {
    /// The sort of fault.
    pub kind: XQueryErrorKind,
    /// What was found and what was expected.
    pub message: String,
    /// Byte offset of the fault in the query.
    pub offset: usize,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

impl XQueryError {
    /// A fault at a byte offset of `text`.
    pub(crate) fn new(kind: XQueryErrorKind, message: impl Into<String>, text: &str, offset: usize) -> XQueryError {
        let (offset, line, column) = place(text, offset);
        XQueryError { kind, message: message.into(), offset, line, column }
    }
}

impl fmt::Display for XQueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (line {}, column {})", self.message, self.line, self.column)
    }
}

impl std::error::Error for XQueryError {}
