//! Cuts a large document into record documents, in memory that does not grow with the document.
//!
//! A record is an element of a given name, with everything in it; elements of the same name inside it are part of it.
//! Its bytes stay as they are (decoded to UTF-8), with two additions that keep its meaning: namespace declarations of
//! its ancestors that it lacks, and the document type declaration where the record may depend on it.
//!
//! quick-xml finds the ends of tags and of the document type declaration and reads attributes, but its buffered reader
//! is not used: it holds every event whole, so that a comment, text or CDATA section of any length would have to fit
//! in memory (here they pass through in pieces, and a record above the limit is skipped), and it gives what stands
//! inside the markup, not the bytes of the source.

mod markup;
mod window;

use std::io::Read;

use super::limits::{Doctype, Limits};
use markup::{Declarations, closes, doctype_end, name_of, tag_end, uses_entities};
use window::Window;

/// A record document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Position among the records, from 1; records that gave an error are counted.
    pub number: u64,
    /// Offset in bytes of its start tag in the source as decoded to UTF-8, a byte order mark not counted.
    pub offset: u64,
    /// The document, in UTF-8 and without XML declaration.
    pub payload: Vec<u8>,
}

/// The kind of a [`SplitterError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SplitterErrorKind {
    /// The source failed.
    Io,
    /// The bytes do not fit the encoding.
    Encoding,
    /// The structure around the records is broken.
    NotWellFormed,
    /// A record or a tag is larger than `document_bytes`, or elements are nested deeper than `depth`.
    Limit,
    /// The source has a document type declaration and the settings forbid it.
    DoctypeForbidden,
}

/// A record that could not be cut out, or the reason why the splitter stopped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} (byte {offset} of the decoded source)")]
pub struct SplitterError {
    /// What sort of error this is.
    pub kind: SplitterErrorKind,
    /// What was found and what was expected.
    pub message: String,
    /// The record concerned; scanning goes on after it. Without a number the splitter has stopped.
    pub number: Option<u64>,
    /// Offset in bytes in the source as decoded to UTF-8.
    pub offset: u64,
}

/// The record being read.
struct Open {
    number: u64,
    offset: u64,
    payload: Vec<u8>,
    /// Open elements inside, the record itself included.
    depth: usize,
    /// Whether it is too large already; its bytes are then dropped.
    dropped: bool,
}

/// An element open around the records.
struct Ancestor {
    name: Box<str>,
    declarations: Declarations,
}

/// Iterates over the records of a source; see the module.
pub struct Splitter<R> {
    window: Window<R>,
    name: String,
    limits: Limits,
    ancestors: Vec<Ancestor>,
    /// The document type declaration and whether it declares attributes.
    doctype: Option<(Vec<u8>, bool)>,
    record: Option<Open>,
    ready: Option<Result<Record, SplitterError>>,
    records: u64,
    root_seen: bool,
    finished: bool,
}

impl<R> std::fmt::Debug for Splitter<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Splitter").field("name", &self.name).field("records", &self.records).finish_non_exhaustive()
    }
}

type Step = Result<(), SplitterError>;

impl<R: Read> Splitter<R> {
    /// Cuts `source` into elements named `record`: a qualified name as written, or a local name whatever the prefix.
    ///
    /// Of the limits, `document_bytes` holds for one record (and one tag), `depth` for the nesting, and `doctype`.
    pub fn new(source: R, record: &str, limits: Limits) -> Self {
        Splitter {
            window: Window::new(source),
            name: record.into(),
            limits,
            ancestors: Vec::new(),
            doctype: None,
            record: None,
            ready: None,
            records: 0,
            root_seen: false,
            finished: false,
        }
    }

    fn fault(&self, kind: SplitterErrorKind, message: impl Into<String>) -> SplitterError {
        SplitterError { kind, message: message.into(), number: None, offset: self.window.offset() }
    }

    fn malformed(&self, message: impl Into<String>) -> SplitterError {
        self.fault(SplitterErrorKind::NotWellFormed, message)
    }

    /// Reads one piece of text or markup.
    fn step(&mut self) -> Step {
        if self.window.rest().is_empty() && !self.window.fill()? {
            return self.end_of_source();
        }
        let rest = self.window.rest();
        match rest.first() {
            None => Ok(()),
            Some(b'<') => self.markup(),
            Some(_) => {
                let bytes = memchr::memchr(b'<', rest).unwrap_or(rest.len());
                if self.ancestors.is_empty() && self.record.is_none() {
                    let blank = rest[..bytes].iter().all(|b| super::chars::is_space(*b));
                    if !blank {
                        return Err(self.malformed("text found outside the document element"));
                    }
                }
                self.take(bytes);
                Ok(())
            }
        }
    }

    fn end_of_source(&mut self) -> Step {
        self.finished = true;
        if let Some(record) = &self.record {
            return Err(self.malformed(format!("the source ends inside record {}", record.number)));
        }
        match self.ancestors.last() {
            Some(ancestor) => Err(self.malformed(format!("the source ends inside the element '{}'", ancestor.name))),
            None if !self.root_seen => Err(self.malformed("the source has no element")),
            None => Ok(()),
        }
    }

    /// Consumes bytes, which belong to the open record if there is one.
    fn take(&mut self, bytes: usize) {
        if let Some(record) = &mut self.record
            && !record.dropped
        {
            record.payload.extend_from_slice(&self.window.rest()[..bytes]);
            if record.payload.len() > self.limits.document_bytes {
                record.dropped = true;
                record.payload = Vec::new();
            }
        }
        self.window.consume(bytes);
    }

    fn markup(&mut self) -> Step {
        while self.window.rest().len() < b"<![CDATA[".len() && self.window.fill()? {}
        let rest = self.window.rest();
        if rest.starts_with(b"<!--") {
            self.skip(4, b"-->")
        } else if rest.starts_with(b"<![CDATA[") {
            self.skip(9, b"]]>")
        } else if rest.starts_with(b"<?") {
            self.skip(2, b"?>")
        } else if rest.starts_with(b"<!DOCTYPE") && !self.root_seen && self.doctype.is_none() {
            self.document_type()
        } else if rest.starts_with(b"<!") {
            Err(self.malformed("'<!' begins neither a comment nor a CDATA section nor a DOCTYPE in its place"))
        } else {
            let end = self.whole(tag_end, "a tag")?;
            if self.window.rest().starts_with(b"</") { self.end_tag(end) } else { self.start_tag(end) }
        }
    }

    /// Consumes `opening` bytes and everything up to and including `end`, in pieces.
    fn skip(&mut self, opening: usize, end: &[u8]) -> Step {
        self.take(opening);
        loop {
            let rest = self.window.rest();
            if let Some(at) = memchr::memmem::find(rest, end) {
                self.take(at + end.len());
                return Ok(());
            }
            // The end may begin in what is here already.
            let kept = rest.len().min(end.len() - 1);
            self.take(rest.len() - kept);
            if !self.window.fill()? {
                let end = String::from_utf8_lossy(end);
                return Err(self.malformed(format!("the source ends where '{end}' is expected")));
            }
        }
    }

    /// Reads until `end` finds the end of a piece of markup.
    fn whole(&mut self, end: fn(&[u8]) -> Option<usize>, what: &str) -> Result<usize, SplitterError> {
        loop {
            if let Some(end) = end(self.window.rest()) {
                return Ok(end);
            }
            let given = self.window.rest().len();
            if given > self.limits.document_bytes {
                let message = format!(
                    "bytes of {what}: more than {given} given, the setting document_bytes allows {}",
                    self.limits.document_bytes
                );
                return Err(self.fault(SplitterErrorKind::Limit, message));
            }
            if !self.window.fill()? {
                return Err(self.malformed(format!("the source ends inside {what}")));
            }
        }
    }

    fn document_type(&mut self) -> Step {
        if self.limits.doctype == Doctype::Forbid {
            let message = "a document type declaration found, which the setting doctype forbids";
            return Err(self.fault(SplitterErrorKind::DoctypeForbidden, message));
        }
        let end = self.whole(doctype_end, "the document type declaration")?;
        let text = self.window.rest()[..end].to_vec();
        let attributes = memchr::memmem::find(&text, b"<!ATTLIST").is_some();
        self.doctype = Some((text, attributes));
        self.take(end);
        Ok(())
    }

    fn start_tag(&mut self, end: usize) -> Step {
        let tag = &self.window.rest()[..end];
        let empty = closes(tag);
        if let Some(record) = &mut self.record {
            record.depth += usize::from(!empty);
            self.take(end);
            return Ok(());
        }
        if self.root_seen && self.ancestors.is_empty() {
            return Err(self.malformed("a second document element found"));
        }
        let Some(name) = name_of(tag, 1) else { return Err(self.malformed("a tag without a name found")) };
        let declarations = Declarations::of(tag).map_err(|message| self.malformed(message))?;
        let local = name.rsplit(':').next().unwrap_or(name);
        if name == self.name || local == self.name {
            self.root_seen = true;
            return self.start_record(end, empty, declarations);
        }
        if !empty {
            if self.ancestors.len() >= self.limits.depth {
                let message =
                    format!("levels of nested elements: more than the setting depth allows, {}", self.limits.depth);
                return Err(self.fault(SplitterErrorKind::Limit, message));
            }
            self.ancestors.push(Ancestor { name: name.into(), declarations });
        }
        self.root_seen = true;
        self.take(end);
        Ok(())
    }

    fn start_record(&mut self, end: usize, empty: bool, own: Declarations) -> Step {
        self.records += 1;
        let tag = &self.window.rest()[..end];
        let name_bytes = name_of(tag, 1).map_or(0, str::len) + 1;
        let mut payload = tag[..name_bytes].to_vec();
        let outer = self.ancestors.iter().rev().map(|ancestor| &ancestor.declarations);
        own.push_missing(outer, &mut payload);
        self.record = Some(Open {
            number: self.records,
            offset: self.window.offset(),
            payload,
            depth: usize::from(!empty),
            dropped: false,
        });
        self.window.consume(name_bytes);
        self.take(end - name_bytes);
        if empty {
            self.finish_record();
        }
        Ok(())
    }

    fn end_tag(&mut self, end: usize) -> Step {
        if let Some(record) = &mut self.record {
            record.depth -= 1;
            let done = record.depth == 0;
            self.take(end);
            if done {
                self.finish_record();
            }
            return Ok(());
        }
        let tag = &self.window.rest()[..end];
        let name = name_of(tag, 2).unwrap_or_default();
        match self.ancestors.pop() {
            Some(open) if *open.name == *name => {
                self.take(end);
                Ok(())
            }
            Some(open) => Err(self.malformed(format!("the end tag '</{name}>' found, '</{}>' expected", open.name))),
            None => Err(self.malformed(format!("the end tag '</{name}>' has no start tag"))),
        }
    }

    fn finish_record(&mut self) {
        let Some(Open { number, offset, mut payload, mut dropped, .. }) = self.record.take() else { return };
        if !dropped
            && let Some((doctype, attributes)) = &self.doctype
            && (*attributes || uses_entities(&payload))
        {
            payload.splice(..0, doctype.iter().copied());
            dropped = payload.len() > self.limits.document_bytes;
        }
        self.ready = Some(if dropped {
            let limit = self.limits.document_bytes;
            Err(SplitterError {
                kind: SplitterErrorKind::Limit,
                message: format!("record {number} has more bytes than the setting document_bytes allows, {limit}"),
                number: Some(number),
                offset,
            })
        } else {
            Ok(Record { number, offset, payload })
        });
    }
}

impl<R: Read> Iterator for Splitter<R> {
    type Item = Result<Record, SplitterError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(record) = self.ready.take() {
                return Some(record);
            }
            if self.finished {
                return None;
            }
            if let Err(error) = self.step() {
                self.finished = true;
                return Some(Err(error));
            }
        }
    }
}
