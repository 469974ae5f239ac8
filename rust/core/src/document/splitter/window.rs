//! A sliding window of decoded text over a source of bytes.

use std::io::Read;

use encoding_rs::{Decoder, DecoderResult};

use super::super::encoding::{Charset, check_declaration, detect};
use super::{SplitterError, SplitterErrorKind};

/// Bytes read at a time.
const CHUNK_BYTES: usize = 64 << 10;
/// Bytes that are enough to find the encoding.
const HEAD_BYTES: usize = 1 << 10;

enum Decoding {
    /// The first bytes are not read yet.
    Unknown,
    Ascii,
    Latin1,
    Known(Decoder),
}

/// Decoded text of a source, as far as it is not consumed.
pub(super) struct Window<R> {
    source: R,
    decoding: Decoding,
    raw: Vec<u8>,
    text: Vec<u8>,
    at: usize,
    /// Offset of `text[0]` in the decoded source.
    base: u64,
    ended: bool,
}

impl<R: Read> Window<R> {
    pub(super) fn new(source: R) -> Self {
        Window { source, decoding: Decoding::Unknown, raw: Vec::new(), text: Vec::new(), at: 0, base: 0, ended: false }
    }

    /// What is decoded and not consumed; always whole characters.
    pub(super) fn rest(&self) -> &[u8] {
        &self.text[self.at..]
    }

    /// Offset of the first byte of [`Self::rest`] in the decoded source.
    pub(super) fn offset(&self) -> u64 {
        self.base + self.at as u64
    }

    pub(super) fn consume(&mut self, bytes: usize) {
        self.at += bytes;
    }

    fn error(&self, kind: SplitterErrorKind, message: String) -> SplitterError {
        SplitterError { kind, message, number: None, offset: self.base + self.text.len() as u64 }
    }

    /// Reads and decodes more; false at the end of the source.
    pub(super) fn fill(&mut self) -> Result<bool, SplitterError> {
        if self.ended {
            return Ok(false);
        }
        if self.at > 0 {
            self.text.drain(..self.at);
            self.base += self.at as u64;
            self.at = 0;
        }
        let start = matches!(self.decoding, Decoding::Unknown);
        // The window grows with what could not be consumed, so that a long tag costs few passes over it.
        let wanted = if start { HEAD_BYTES } else { CHUNK_BYTES.max(self.text.len()) };
        self.raw.clear();
        let read = self.source.by_ref().take(wanted as u64).read_to_end(&mut self.raw);
        if let Err(error) = read {
            return Err(self.error(SplitterErrorKind::Io, format!("the source cannot be read: {error}")));
        }
        self.ended = self.raw.len() < wanted;
        let mut skipped = 0;
        let mut charset = None;
        if start {
            let found = detect(&self.raw).map_err(|e| self.error(SplitterErrorKind::Encoding, e.message))?;
            skipped = found.mark_bytes;
            charset = Some(found.charset);
            self.decoding = match found.charset {
                Charset::Ascii => Decoding::Ascii,
                Charset::Latin1 => Decoding::Latin1,
                Charset::Known(encoding) => Decoding::Known(encoding.new_decoder_without_bom_handling()),
            };
        }
        self.decode(skipped)?;
        if let Some(charset) = charset {
            let text = std::str::from_utf8(&self.text).unwrap_or_default();
            check_declaration(text, charset).map_err(|e| self.error(SplitterErrorKind::Encoding, e.message))?;
        }
        Ok(true)
    }

    fn decode(&mut self, skipped: usize) -> Result<(), SplitterError> {
        let raw = &self.raw[skipped..];
        let ill_formed = match &mut self.decoding {
            Decoding::Unknown => None,
            Decoding::Ascii => {
                let good = raw.iter().position(|b| *b >= 0x80);
                self.text.extend_from_slice(&raw[..good.unwrap_or(raw.len())]);
                good.map(|_| "US-ASCII")
            }
            Decoding::Latin1 => {
                self.text.extend_from_slice(encoding_rs::mem::decode_latin1(raw).as_bytes());
                None
            }
            Decoding::Known(decoder) => {
                let room = decoder.max_utf8_buffer_length_without_replacement(raw.len()).unwrap_or(raw.len() * 4 + 8);
                let start = self.text.len();
                self.text.resize(start + room, 0);
                let (result, _, written) =
                    decoder.decode_to_utf8_without_replacement(raw, &mut self.text[start..], self.ended);
                self.text.truncate(start + written);
                (result != DecoderResult::InputEmpty).then(|| decoder.encoding().name())
            }
        };
        match ill_formed {
            None => Ok(()),
            Some(name) => {
                let message = format!("the bytes after this place are not well-formed {name}");
                Err(self.error(SplitterErrorKind::Encoding, message))
            }
        }
    }
}
