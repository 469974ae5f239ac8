//! Reading tokens of a DTD.

use super::super::chars::{is_nmtoken, is_space, name_run, qname_colon};
use super::super::error::DocumentError;

/// A place in the text of a DTD, or of a parameter entity.
#[derive(Debug)]
pub(super) struct Cursor<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
    /// Inside a parameter entity: offset of the reference in the document, which is what errors name.
    pub(super) reference: Option<usize>,
    pub(super) name_bytes: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Offset in the document, for errors.
    pub(super) fn offset(&self) -> usize {
        self.reference.unwrap_or(self.at)
    }

    pub(super) fn error(&self, message: impl Into<String>) -> DocumentError {
        DocumentError::malformed(self.offset(), message)
    }

    /// An error that says what is here and what should be.
    pub(super) fn expected(&self, what: &str) -> DocumentError {
        match self.rest().chars().next() {
            Some(found) => self.error(format!("'{found}' found in the DTD, {what} expected")),
            None => self.error(format!("the DTD ends where {what} is expected")),
        }
    }

    pub(super) fn skip_space(&mut self) -> bool {
        let spaces = self.rest().bytes().take_while(|b| is_space(*b)).count();
        self.at += spaces;
        spaces > 0
    }

    pub(super) fn space(&mut self) -> Result<(), DocumentError> {
        if self.skip_space() { Ok(()) } else { Err(self.expected("white space")) }
    }

    /// Takes a fixed text if it is next.
    pub(super) fn take(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        if found {
            self.at += text.len();
        }
        found
    }

    pub(super) fn expect(&mut self, text: &str) -> Result<(), DocumentError> {
        if self.take(text) { Ok(()) } else { Err(self.expected(&format!("'{text}'"))) }
    }

    /// Optional white space and the end of a declaration.
    pub(super) fn end(&mut self) -> Result<(), DocumentError> {
        self.skip_space();
        self.expect(">")
    }

    fn token(&mut self, what: &str, fits: impl Fn(&str) -> bool) -> Result<&'a str, DocumentError> {
        let token = &self.rest()[..name_run(self.rest())];
        if !fits(token) {
            return Err(if token.is_empty() {
                self.expected(what)
            } else {
                self.error(format!("'{token}' found in the DTD, {what} expected"))
            });
        }
        if token.len() > self.name_bytes {
            let what = "bytes of one name";
            return Err(DocumentError::limit(self.offset(), "name_bytes", self.name_bytes, token.len(), what));
        }
        self.at += token.len();
        Ok(token)
    }

    /// A name without colon, as entities, notations and processing instructions have.
    pub(super) fn ncname(&mut self) -> Result<&'a str, DocumentError> {
        self.token("a name without colon", |token| qname_colon(token) == Some(None))
    }

    /// A qualified name, as elements and attributes have.
    pub(super) fn qname(&mut self) -> Result<&'a str, DocumentError> {
        self.token("a qualified name", |token| qname_colon(token).is_some())
    }

    pub(super) fn nmtoken(&mut self) -> Result<&'a str, DocumentError> {
        self.token("a name token", is_nmtoken)
    }

    /// A quoted text, without its quotes.
    pub(super) fn quoted(&mut self, what: &str) -> Result<&'a str, DocumentError> {
        let quote = match self.peek() {
            Some(quote @ (b'"' | b'\'')) => quote,
            _ => return Err(self.expected(what)),
        };
        let inside = &self.rest()[1..];
        let Some(end) = memchr::memchr(quote, inside.as_bytes()) else {
            return Err(self.error(format!("{what} is not closed")));
        };
        self.at += end + 2;
        Ok(&inside[..end])
    }

    /// The text up to `end`, which is taken too.
    pub(super) fn until(&mut self, end: &str, what: &str) -> Result<&'a str, DocumentError> {
        let Some(at) = memchr::memmem::find(self.rest().as_bytes(), end.as_bytes()) else {
            return Err(self.error(format!("{what} is not closed: '{end}' expected")));
        };
        let inside = &self.rest()[..at];
        self.at += at + end.len();
        Ok(inside)
    }

    fn public_literal(&mut self) -> Result<(), DocumentError> {
        let start = self.offset();
        let literal = self.quoted("a quoted public identifier")?;
        let fits = |b: u8| b.is_ascii_alphanumeric() || b" \r\n-'()+,./:=?;!*#@$_%".contains(&b);
        match literal.chars().find(|c| !c.is_ascii() || !fits(*c as u8)) {
            Some(c) => Err(DocumentError::malformed(start, format!("'{c}' is not allowed in a public identifier"))),
            None => Ok(()),
        }
    }

    /// An external identifier, if one is next. With `public_only`, the system identifier may be missing after a
    /// public one (notations).
    pub(super) fn external_id(&mut self, public_only: bool) -> Result<bool, DocumentError> {
        if self.take("SYSTEM") {
            self.space()?;
        } else if self.take("PUBLIC") {
            self.space()?;
            self.public_literal()?;
            let spaced = self.skip_space();
            if public_only && self.peek() == Some(b'>') {
                return Ok(true);
            }
            if !spaced {
                return Err(self.expected("white space"));
            }
        } else {
            return Ok(false);
        }
        self.quoted("a quoted system identifier")?;
        Ok(true)
    }
}
