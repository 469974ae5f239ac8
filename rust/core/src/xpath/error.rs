//! Why an expression was refused, and where.

use std::fmt;

/// What sort of fault an expression has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum XPathErrorKind {
    /// The text is not an expression.
    Syntax,
    /// A prefix has no binding.
    UnboundPrefix,
    /// A function outside the core library.
    UnknownFunction,
    /// A core function with too few or too many arguments.
    WrongArguments,
    /// A value of the wrong type, such as `count('x')`.
    Type,
    /// A variable reference: filters have no variables.
    Variable,
    /// Syntax of a later XPath version.
    NotXPath1,
    /// Larger or deeper than the limits allow.
    Limit,
}

impl XPathErrorKind {
    /// A stable name, for messages and dead letters.
    pub fn name(self) -> &'static str {
        match self {
            XPathErrorKind::Syntax => "syntax",
            XPathErrorKind::UnboundPrefix => "unbound_prefix",
            XPathErrorKind::UnknownFunction => "unknown_function",
            XPathErrorKind::WrongArguments => "wrong_arguments",
            XPathErrorKind::Type => "type",
            XPathErrorKind::Variable => "variable",
            XPathErrorKind::NotXPath1 => "not_xpath_1",
            XPathErrorKind::Limit => "limit",
        }
    }
}

/// A refused expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XPathError {
    /// The sort of fault.
    pub kind: XPathErrorKind,
    /// What was found and what was expected.
    pub message: String,
    /// Byte offset of the fault in the expression.
    pub offset: usize,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

impl XPathError {
    /// A fault at a byte offset of `text`.
    pub(crate) fn new(kind: XPathErrorKind, message: impl Into<String>, text: &str, offset: usize) -> Self {
        let (offset, line, column) = place(text, offset);
        XPathError { kind, message: message.into(), offset, line, column }
    }
}

/// A place in the text of a query: byte offset at the start of a character, line and column in characters from 1.
pub(crate) fn place(text: &str, offset: usize) -> (usize, u32, u32) {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    let before = &text[..offset];
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let line = before.bytes().filter(|byte| *byte == b'\n').count() as u32 + 1;
    (offset, line, before[line_start..].chars().count() as u32 + 1)
}

impl fmt::Display for XPathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (line {}, column {})", self.message, self.line, self.column)
    }
}

impl std::error::Error for XPathError {}
