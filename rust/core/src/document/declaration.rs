//! The XML declaration (XML 1.0 §2.8, §4.3.1).

use quick_xml::parser::{Parser, PiParser};

use super::attributes::scan;
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

/// What an XML declaration may have, in this order.
const FIELDS: [&str; 3] = ["version", "encoding", "standalone"];

const ORDER: &str = "version, encoding and standalone, in this order, are all an XML declaration may have";

/// Reads the XML declaration at the start of a document, or finds that there is none.
pub(crate) fn parse(text: &str) -> Result<Declaration<'_>, DocumentError> {
    let mut declaration = Declaration { len: 0, encoding: None, standalone: false };
    if !text.starts_with("<?xml") || !text.as_bytes().get(5).is_some_and(|b| is_space(*b)) {
        return Ok(declaration);
    }
    let Some(close) = PiParser::default().feed(text.as_bytes()) else {
        return Err(DocumentError::malformed(0, "the XML declaration is not closed: '?>' expected"));
    };
    let mut fields = Vec::new();
    let place = |name: &str, at: usize| match FIELDS.iter().position(|field| *field == name) {
        Some(place) => Ok(place as u32),
        None => Err(DocumentError::malformed(at, ORDER)),
    };
    scan(&text[2..close - 1], "xml".len(), 2, DocumentError::malformed, place, &mut fields)?;
    if fields.first().is_none_or(|field| FIELDS[field.name as usize] != "version") {
        return Err(DocumentError::malformed(5, "the XML declaration must begin with version"));
    }
    if let Some(pair) = fields.windows(2).find(|pair| pair[0].name >= pair[1].name) {
        return Err(DocumentError::malformed(pair[1].at as usize, ORDER));
    }
    for field in fields {
        let value = &text[field.value.0 as usize..field.value.1 as usize];
        let fault = |message: String| Err(DocumentError::malformed(field.value.1 as usize + 1, message));
        match (FIELDS[field.name as usize], value) {
            ("version", _) if !is_version(value) => return fault(format!("version '{value}' found, '1.0' expected")),
            ("version", _) => {}
            ("encoding", _) if !is_encoding_name(value) => {
                return fault(format!("'{value}' is not a possible name of an encoding"));
            }
            ("encoding", _) => declaration.encoding = Some(value),
            (_, "yes") => declaration.standalone = true,
            (_, "no") => {}
            _ => return fault(format!("standalone is '{value}', 'yes' or 'no' expected")),
        }
    }
    declaration.len = close + 1;
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
