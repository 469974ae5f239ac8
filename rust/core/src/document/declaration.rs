//! The XML declaration (XML 1.0 §2.8, §4.3.1).

use super::chars::is_space;
use super::error::DocumentError;

/// What an XML declaration says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Declaration<'a> {
    /// Bytes that the declaration takes, 0 if there is none.
    pub(crate) len: usize,
    /// The encoding named, if one is.
    pub(crate) encoding: Option<&'a str>,
    /// Whether it says `standalone="yes"`.
    pub(crate) standalone: bool,
}

/// Reads the XML declaration at the start of a document, or finds that there is none.
pub(crate) fn parse(text: &str) -> Result<Declaration<'_>, DocumentError> {
    let mut declaration = Declaration { len: 0, encoding: None, standalone: false };
    if !text.starts_with("<?xml") || !text.as_bytes().get(5).is_some_and(|b| is_space(*b)) {
        return Ok(declaration);
    }
    let Some(end) = memchr::memmem::find(text.as_bytes(), b"?>") else {
        return Err(DocumentError::malformed(0, "the XML declaration is not closed: '?>' expected"));
    };
    let mut fields = Fields { text: &text[..end], at: 5 };
    match fields.next("version")? {
        Some(version) if is_version(version) => {}
        Some(version) => return Err(fields.error(format!("version '{version}' found, '1.0' expected"))),
        None => return Err(fields.error("the XML declaration must begin with version")),
    }
    if let Some(encoding) = fields.next("encoding")? {
        if !is_encoding_name(encoding) {
            return Err(fields.error(format!("'{encoding}' is not a possible name of an encoding")));
        }
        declaration.encoding = Some(encoding);
    }
    declaration.standalone = match fields.next("standalone")? {
        None | Some("no") => false,
        Some("yes") => true,
        Some(other) => return Err(fields.error(format!("standalone is '{other}', 'yes' or 'no' expected"))),
    };
    fields.skip_space();
    if fields.at != end {
        return Err(
            fields.error("version, encoding and standalone, in this order, are all an XML declaration may have")
        );
    }
    declaration.len = end + 2;
    Ok(declaration)
}

/// Every version 1.x is read as 1.0 (5th edition, §2.8).
fn is_version(version: &str) -> bool {
    version.strip_prefix("1.").is_some_and(|minor| !minor.is_empty() && minor.bytes().all(|b| b.is_ascii_digit()))
}

fn is_encoding_name(name: &str) -> bool {
    name.bytes().next().is_some_and(|b| b.is_ascii_alphabetic())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

struct Fields<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Fields<'a> {
    fn error(&self, message: impl Into<String>) -> DocumentError {
        DocumentError::malformed(self.at, message)
    }

    fn skip_space(&mut self) -> bool {
        let bytes = &self.text.as_bytes()[self.at..];
        let spaces = bytes.iter().take_while(|b| is_space(**b)).count();
        self.at += spaces;
        spaces > 0
    }

    /// The value of `name` if it comes next.
    fn next(&mut self, name: &str) -> Result<Option<&'a str>, DocumentError> {
        let start = self.at;
        let spaced = self.skip_space();
        if !self.text[self.at..].starts_with(name) {
            self.at = start;
            return Ok(None);
        }
        if !spaced {
            return Err(self.error(format!("white space expected before {name}")));
        }
        self.at += name.len();
        self.skip_space();
        if !self.text[self.at..].starts_with('=') {
            return Err(self.error(format!("'=' expected after {name}")));
        }
        self.at += 1;
        self.skip_space();
        let rest = &self.text[self.at..];
        let quote = rest.bytes().next().filter(|b| matches!(b, b'"' | b'\''));
        let Some(quote) = quote else { return Err(self.error(format!("quoted value expected for {name}"))) };
        let Some(len) = memchr::memchr(quote, &rest.as_bytes()[1..]) else {
            return Err(self.error(format!("the value of {name} is not closed")));
        };
        self.at += len + 2;
        Ok(Some(&rest[1..=len]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grammar_is_strict() {
        let full = parse("<?xml version='1.1' encoding = \"UTF-8\" standalone='yes' ?><a/>").unwrap();
        assert_eq!((full.len, full.encoding, full.standalone), (58, Some("UTF-8"), true));
        assert_eq!(parse("<?xml-style a?>").unwrap().len, 0);
        for bad in [
            "<?xml version='1.0'",
            "<?xml version='2.0'?>",
            "<?xml version='1.'?>",
            "<?xml encoding='UTF-8'?>",
            "<?xml version='1.0'encoding='UTF-8'?>",
            "<?xml version='1.0' standalone='yes' encoding='UTF-8'?>",
            "<?xml version='1.0' standalone='YES'?>",
            "<?xml version='1.0' encoding='8'?>",
            "<?xml version=1.0?>",
            "<?xml version='1.0' x='y'?>",
            "<?xml ?>",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
