//! From bytes to text: byte order marks, the declared encoding, strict decoding.

use std::borrow::Cow;

use encoding_rs::{DecoderResult, Encoding, REPLACEMENT, UTF_8, UTF_16BE, UTF_16LE};

use super::declaration;
use super::error::{DocumentError, DocumentErrorKind};

/// How the bytes of a document are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Charset {
    /// US-ASCII; a byte above 7F is an error.
    Ascii,
    /// ISO-8859-1, in which 80 to 9F are the control characters of the same number. `encoding_rs` has no such
    /// encoding: the web reads the label as windows-1252.
    Latin1,
    /// An encoding of the WHATWG standard.
    Known(&'static Encoding),
}

impl Charset {
    /// The encoding that an XML declaration names; `None` if it is unknown.
    pub(crate) fn for_label(label: &str) -> Option<Charset> {
        let lower = label.to_ascii_lowercase();
        match lower.as_str() {
            "us-ascii" | "ascii" | "ansi_x3.4-1968" | "ansi_x3.4-1986" | "iso_646.irv:1991" | "iso646-us" | "us"
            | "ibm367" | "cp367" | "csascii" | "iso-ir-6" => return Some(Charset::Ascii),
            "iso-8859-1" | "iso_8859-1" | "iso8859-1" | "iso_8859-1:1987" | "iso88591" | "latin1" | "l1" | "ibm819"
            | "cp819" | "iso-ir-100" | "csisolatin1" => return Some(Charset::Latin1),
            "iso-10646-ucs-2" | "ucs-2" => return Some(Charset::Known(UTF_16LE)),
            _ => {}
        }
        let known = Encoding::for_label(lower.as_bytes())?;
        (known != REPLACEMENT).then_some(Charset::Known(known))
    }

    fn is_utf_16(self) -> bool {
        self == Charset::Known(UTF_16LE) || self == Charset::Known(UTF_16BE)
    }
}

/// What the first bytes tell: the encoding, the length of a byte order mark, and whether that decides alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Detected {
    pub(crate) charset: Charset,
    pub(crate) mark_bytes: usize,
}

/// Finds the encoding from the first bytes of a document (XML 1.0 appendix F); 1 KiB is enough for any declaration
/// that is not made to be odd.
pub(crate) fn detect(head: &[u8]) -> Result<Detected, DocumentError> {
    let wide = |charset, mark_bytes| Ok(Detected { charset: Charset::Known(charset), mark_bytes });
    match head {
        [0xFF, 0xFE, 0, 0, ..] | [0, 0, 0xFE, 0xFF, ..] | [0, 0, 0, b'<', ..] | [b'<', 0, 0, 0, ..] => {
            Err(error(0, "UTF-32 found, which is not supported: UTF-8 or UTF-16 expected"))
        }
        [0x4C, 0x6F, 0xA7, 0x94, ..] => Err(error(0, "EBCDIC found, which is not supported")),
        [0xEF, 0xBB, 0xBF, ..] => wide(UTF_8, 3),
        [0xFE, 0xFF, ..] => wide(UTF_16BE, 2),
        [0xFF, 0xFE, ..] => wide(UTF_16LE, 2),
        [0, b'<', 0, b'?', ..] => wide(UTF_16BE, 0),
        [b'<', 0, b'?', 0, ..] => wide(UTF_16LE, 0),
        _ => match declared(head) {
            None => wide(UTF_8, 0),
            Some(label) => match Charset::for_label(label) {
                None => Err(error(0, format!("the encoding '{label}' is not known"))),
                Some(charset) if charset.is_utf_16() => {
                    Err(error(0, format!("the encoding '{label}' is declared, but the bytes are not UTF-16")))
                }
                Some(charset) => Ok(Detected { charset, mark_bytes: 0 }),
            },
        },
    }
}

/// The label in the declaration of an ASCII-compatible document. What is not a declaration by the grammar names no
/// encoding; the reader reports it later.
fn declared(head: &[u8]) -> Option<&str> {
    if !head.starts_with(b"<?xml") {
        return None;
    }
    let end = memchr::memmem::find(head, b"?>")? + 2;
    let text = std::str::from_utf8(&head[..end]).ok()?;
    declaration::parse(text).ok()?.encoding
}

/// Decodes a document strictly: what is ill-formed in the encoding is an error, never a replacement character.
///
/// A byte order mark decides the encoding; a declaration that names another one is an error (XML 1.0 §4.3.3).
pub fn decode(input: &[u8]) -> Result<Cow<'_, str>, DocumentError> {
    let Detected { charset, mark_bytes } = detect(input)?;
    let text = decode_as(&input[mark_bytes..], charset)?;
    check_declaration(&text, charset)?;
    Ok(text)
}

/// Refuses a declaration that contradicts the encoding found.
pub(crate) fn check_declaration(text: &str, charset: Charset) -> Result<(), DocumentError> {
    let Some(label) = declaration::parse(text).ok().and_then(|d| d.encoding) else { return Ok(()) };
    let fits = match Charset::for_label(label) {
        None => false,
        // "UTF-16" leaves the byte order to the mark.
        Some(found) if found.is_utf_16() && charset.is_utf_16() => {
            let lower = label.to_ascii_lowercase();
            let order = if charset == Charset::Known(UTF_16BE) { "utf-16be" } else { "utf-16le" };
            lower == order || !(lower == "utf-16le" || lower == "utf-16be")
        }
        Some(found) => found == charset,
    };
    if fits {
        return Ok(());
    }
    let name = match charset {
        Charset::Known(known) => known.name(),
        Charset::Ascii => "US-ASCII",
        Charset::Latin1 => "ISO-8859-1",
    };
    Err(error(0, format!("the encoding '{label}' is declared, but the first bytes show {name}")))
}

fn decode_as(input: &[u8], charset: Charset) -> Result<Cow<'_, str>, DocumentError> {
    match charset {
        Charset::Known(encoding) if encoding == UTF_8 => {
            std::str::from_utf8(input).map(Cow::Borrowed).map_err(|found| {
                let at = found.valid_up_to();
                let text = std::str::from_utf8(&input[..at]).unwrap_or_default();
                ill_formed(text, "UTF-8", at, input)
            })
        }
        Charset::Ascii => match input.iter().position(|b| *b >= 0x80) {
            None => Ok(Cow::Borrowed(std::str::from_utf8(input).unwrap_or_default())),
            Some(at) => Err(ill_formed(std::str::from_utf8(&input[..at]).unwrap_or_default(), "US-ASCII", at, input)),
        },
        Charset::Latin1 => Ok(encoding_rs::mem::decode_latin1(input)),
        Charset::Known(encoding) => decode_known(input, encoding).map(Cow::Owned),
    }
}

fn decode_known(input: &[u8], encoding: &'static Encoding) -> Result<String, DocumentError> {
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let room = decoder.max_utf8_buffer_length_without_replacement(input.len());
    let mut text = String::with_capacity(room.unwrap_or(0));
    let (result, read) = decoder.decode_to_string_without_replacement(input, &mut text, true);
    match result {
        DecoderResult::InputEmpty => Ok(text),
        DecoderResult::Malformed(length, after) => {
            Err(ill_formed(&text, encoding.name(), read.saturating_sub(length as usize + after as usize), input))
        }
        DecoderResult::OutputFull => Err(error(text.len(), "the document is too large to be decoded")),
    }
}

/// An ill-formed sequence at byte `at` of the input, after `text` was decoded.
fn ill_formed(text: &str, name: &str, at: usize, input: &[u8]) -> DocumentError {
    let byte = input.get(at).copied().unwrap_or_default();
    error(text.len(), format!("byte {byte:02X} at input byte {at} is not well-formed {name}")).locate(text)
}

fn error(offset: usize, message: impl Into<String>) -> DocumentError {
    DocumentError { line: 1, column: 1, ..DocumentError::new(DocumentErrorKind::Encoding, offset, message) }
}

#[cfg(test)]
mod tests {
    use encoding_rs::WINDOWS_1252;

    use super::*;

    #[test]
    fn marks_and_declarations() {
        assert_eq!(decode(b"\xEF\xBB\xBF<a/>").unwrap(), "<a/>");
        assert_eq!(decode(b"\xFE\xFF\0<\0a\0/\0>").unwrap(), "<a/>");
        assert_eq!(decode(b"\xFF\xFE<\0a\0/\0>\0").unwrap(), "<a/>");
        assert!(decode(b"\xEF\xBB\xBF<?xml version='1.0' encoding='ISO-8859-1'?><a/>").is_err());
        assert!(decode(b"<?xml version='1.0' encoding='UTF-16'?><a/>").is_err());
        assert!(decode(b"<?xml version='1.0' encoding='x-nothing'?><a/>").is_err());
    }

    #[test]
    fn latin1_is_not_windows_1252() {
        let text = |label: &str| {
            let mut input = format!("<?xml version='1.0' encoding='{label}'?>").into_bytes();
            let start = input.len();
            input.push(0x80);
            decode(&input).unwrap()[start..].to_string()
        };
        assert_eq!(text("ISO-8859-1"), "\u{80}");
        assert_eq!(text("windows-1252"), "\u{20AC}");
        assert_eq!(Charset::for_label("cp1252"), Some(Charset::Known(WINDOWS_1252)));
    }

    #[test]
    fn ill_formed_bytes_have_a_position() {
        let found = decode(b"<a>\n\xC3\xA9\xE9</a>").unwrap_err();
        assert_eq!((found.kind, found.offset, found.line, found.column), (DocumentErrorKind::Encoding, 6, 2, 2));
        let found = decode(b"\xFF\xFE<\0\0\xD8a\0").unwrap_err();
        assert_eq!((found.offset, found.line, found.column), (1, 1, 2));
    }
}
