//! From text to tree: quick-xml's events, made strict. What concerns tags is in `elements`.

use std::cell::OnceCell;

use quick_xml::Reader;
use quick_xml::errors::{Error, IllFormedError, SyntaxError};
use quick_xml::events::Event;

use super::attributes::RawAttribute;
use super::chars::{find_forbidden, is_blank, push_normalised};
use super::declaration;
use super::dtd::{self, Dtd};
use super::encoding;
use super::error::DocumentError;
use super::expansion::{Expansion, reference_character, unusable};
use super::limits::Limits;
use super::markup::{check_comment, split_instruction};
use super::names::NameCache;
use super::tree::{Document, TreeBuilder};

/// Reads a document from bytes; the encoding is found as XML 1.0 appendix F says.
///
/// # Errors
/// Whatever is not well-formed, ill-encoded or above a limit, with its position.
pub fn parse(input: &[u8], limits: &Limits) -> Result<Document, DocumentError> {
    Parser::new(limits.clone()).parse(input)
}

/// Reads a document from text; an encoding named in its XML declaration is ignored, since decoding is done.
///
/// # Errors
/// Whatever is not well-formed or above a limit, with its position.
pub fn parse_str(input: &str, limits: &Limits) -> Result<Document, DocumentError> {
    Parser::new(limits.clone()).parse_str(input)
}

const DOCTYPE: &str = "<!DOCTYPE";

const NO_MARKUP: &str = "'<!' begins a comment ('<!--'), a CDATA section ('<![CDATA[') or, once and before the document \
                         element, the document type declaration ('<!DOCTYPE'); none of them found";

/// A reader that keeps its scratch memory from one document to the next.
#[derive(Debug)]
pub struct Parser {
    limits: Limits,
    names: NameCache,
    scratch: Scratch,
    /// Number of the element last opened, over all documents.
    element: u64,
}

#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub(super) attributes: Vec<RawAttribute>,
    /// Open elements: their names as written.
    pub(super) open: Vec<u32>,
    /// Names (in the document) of the prefixed attributes of one element.
    pub(super) prefixed: Vec<u32>,
    pub(super) value: String,
}

impl Parser {
    /// A reader with these limits.
    pub fn new(limits: Limits) -> Self {
        Parser { limits, names: NameCache::default(), scratch: Scratch::default(), element: 0 }
    }

    /// The limits it reads with.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Reads a document from bytes, like [`parse`].
    ///
    /// # Errors
    /// As [`parse`].
    pub fn parse(&mut self, input: &[u8]) -> Result<Document, DocumentError> {
        self.check_size(input.len())?;
        let text = encoding::decode(input)?;
        self.read(&text)
    }

    /// Reads a document from text, like [`parse_str`].
    ///
    /// # Errors
    /// As [`parse_str`].
    pub fn parse_str(&mut self, input: &str) -> Result<Document, DocumentError> {
        self.check_size(input.len())?;
        self.read(input.strip_prefix('\u{FEFF}').unwrap_or(input))
    }

    fn check_size(&self, bytes: usize) -> Result<(), DocumentError> {
        if bytes <= self.limits.document_bytes {
            return Ok(());
        }
        let error = DocumentError::limit(0, "document_bytes", self.limits.document_bytes, bytes, "bytes of a document");
        Err(error.locate(""))
    }

    fn read(&mut self, source: &str) -> Result<Document, DocumentError> {
        self.names.begin();
        self.scratch.open.clear();
        let dtd = OnceCell::new();
        Run::new(self, source, &dtd).and_then(Run::document).map_err(|error| error.locate(source))
    }
}

/// A text that is being read: the document, or the replacement text of an entity in content.
pub(super) struct Frame<'a> {
    pub(super) text: &'a str,
    reader: Reader<&'a [u8]>,
    /// In an entity: its name and the offset of the reference.
    pub(super) entity: Option<(&'a str, usize)>,
    /// Elements open outside.
    pub(super) depth: usize,
    /// Whether line ends must be normalised; in entities they are already.
    has_cr: bool,
    has_cdata_end: bool,
}

impl<'a> Frame<'a> {
    /// quick-xml drops a byte order mark where a text starts, so the text must not start with one.
    fn new(text: &'a str, entity: Option<(&'a str, usize)>, depth: usize) -> Self {
        let bytes = text.as_bytes();
        let mut reader = Reader::from_str(text);
        // End tags are compared with the names of open elements here, where those are numbers already.
        let config = reader.config_mut();
        config.check_end_names = false;
        config.allow_unmatched_ends = true;
        Frame {
            text,
            reader,
            entity,
            depth,
            has_cr: entity.is_none() && memchr::memchr(b'\r', bytes).is_some(),
            has_cdata_end: memchr::memmem::find(bytes, b"]]>").is_some(),
        }
    }

    /// Where the next event starts in this text, or the last one ended.
    #[inline]
    fn at(&self) -> usize {
        self.reader.buffer_position() as usize
    }

    /// Offset in the document of a place in this text.
    #[inline]
    pub(super) fn place(&self, at: usize) -> usize {
        self.entity.map_or(at, |(_, reference)| reference)
    }
}

/// One document being read.
pub(super) struct Run<'a, 'p> {
    source: &'a str,
    pub(super) limits: &'p Limits,
    pub(super) names: &'p mut NameCache,
    pub(super) scratch: &'p mut Scratch,
    pub(super) element: &'p mut u64,
    pub(super) dtd: &'a OnceCell<Dtd>,
    standalone: bool,
    pub(super) expansion: Expansion,
    pub(super) builder: TreeBuilder,
    /// Texts that the one being read was referred to from, the document first.
    outer: Vec<Frame<'a>>,
    pub(super) frame: Frame<'a>,
    pub(super) root_seen: bool,
}

impl<'a, 'p> Run<'a, 'p> {
    fn new(parser: &'p mut Parser, source: &'a str, dtd: &'a OnceCell<Dtd>) -> Result<Self, DocumentError> {
        if source.len() > u32::MAX as usize {
            let what = "bytes of a decoded document";
            return Err(DocumentError::limit(0, "document_bytes", u32::MAX as usize, source.len(), what));
        }
        if let Some((at, c)) = find_forbidden(source) {
            let message = format!("the character U+{:04X} is not allowed in XML", c as u32);
            return Err(DocumentError::malformed(at, message));
        }
        if source.starts_with('\u{FEFF}') {
            return Err(DocumentError::malformed(0, "U+FEFF found outside the document element"));
        }
        Ok(Run {
            source,
            limits: &parser.limits,
            names: &mut parser.names,
            scratch: &mut parser.scratch,
            element: &mut parser.element,
            dtd,
            standalone: false,
            expansion: Expansion::new(&parser.limits, source.len()),
            builder: TreeBuilder::new(source.len()),
            outer: Vec::new(),
            frame: Frame::new(source, None, 0),
            root_seen: false,
        })
    }

    fn document(mut self) -> Result<Document, DocumentError> {
        loop {
            let at = self.frame.at();
            let offset = self.frame.place(at);
            match self.frame.reader.read_event() {
                Ok(Event::Start(tag)) => self.start(&tag, at, offset, false)?,
                Ok(Event::Empty(tag)) => self.start(&tag, at, offset, true)?,
                Ok(Event::End(tag)) => self.end(tag.name().0, offset)?,
                Ok(Event::Text(text)) => self.text(&text, offset)?,
                Ok(Event::GeneralRef(body)) => self.reference(&body, offset)?,
                Ok(Event::CData(inside)) => self.cdata(&inside, offset)?,
                Ok(Event::Comment(inside)) => self.comment(&inside, at, offset)?,
                Ok(Event::PI(inside)) => self.instruction(&inside, offset)?,
                Ok(Event::Decl(_)) => self.declaration(offset)?,
                Ok(Event::DocType(_)) => self.doctype(at, offset)?,
                Ok(Event::Eof) => {
                    if self.leave(offset)? {
                        return Ok(self.builder.finish());
                    }
                }
                Err(error) => return Err(self.syntax(&error, at, offset)),
            }
            if self.builder.node_count() > self.limits.nodes {
                let (limit, given) = (self.limits.nodes, self.builder.node_count());
                return Err(DocumentError::limit(offset, "nodes", limit, given, "nodes of a document"));
            }
        }
    }

    /// The XML declaration, or what looks like one where none may be.
    fn declaration(&mut self, offset: usize) -> Result<(), DocumentError> {
        if offset == 0 {
            let declaration = declaration::parse(self.source)?;
            if declaration.len > 0 {
                self.standalone = declaration.standalone;
                return Ok(());
            }
        }
        self.instruction("xml", offset)
    }

    /// A document type declaration: quick-xml finds its end, what stands in it is read by us.
    fn doctype(&mut self, at: usize, offset: usize) -> Result<(), DocumentError> {
        if self.root_seen || !self.frame.text[at..].starts_with(DOCTYPE) {
            return Err(DocumentError::malformed(offset, NO_MARKUP));
        }
        let (dtd, end) = dtd::parse(self.source, at, self.standalone, self.limits, &mut self.expansion)?;
        if end != self.frame.at() {
            let message = "the document type declaration ends where a quote, comment or bracket in it is still open";
            return Err(DocumentError::malformed(end, message));
        }
        match self.dtd.set(dtd) {
            Ok(()) => Ok(()),
            Err(_) => Err(DocumentError::malformed(offset, "a second document type declaration found")),
        }
    }

    /// An error of quick-xml in our words.
    #[cold]
    fn syntax(&mut self, error: &Error, at: usize, offset: usize) -> DocumentError {
        let rest = &self.frame.text[at..];
        if !self.root_seen && rest.starts_with(DOCTYPE) {
            // Our own reading says more exactly what is wrong inside.
            let read = dtd::parse(self.source, at, self.standalone, self.limits, &mut self.expansion);
            let message = "the document type declaration is not closed, '>' expected";
            return read.err().unwrap_or_else(|| DocumentError::malformed(offset, message));
        }
        let message = match error {
            Error::Syntax(
                SyntaxError::UnclosedTag
                | SyntaxError::UnclosedSingleQuotedAttributeValue
                | SyntaxError::UnclosedDoubleQuotedAttributeValue,
            ) => {
                if !rest.starts_with("</") {
                    return self.unclosed(at, offset);
                }
                "the end tag is not closed, '>' expected"
            }
            Error::Syntax(SyntaxError::UnclosedComment) if rest.starts_with("<!--") => {
                "the comment is not closed, '-->' expected"
            }
            Error::Syntax(SyntaxError::UnclosedCData) if rest.starts_with("<![CDATA[") => {
                "the CDATA section is not closed, ']]>' expected"
            }
            Error::Syntax(SyntaxError::UnclosedPI | SyntaxError::UnclosedXmlDecl) => {
                "the processing instruction is not closed, '?>' expected"
            }
            Error::IllFormed(IllFormedError::UnclosedReference) => {
                "'&' found without a reference: '&amp;' or ';' expected"
            }
            _ => NO_MARKUP,
        };
        DocumentError::malformed(offset, message)
    }

    fn cdata(&mut self, inside: &str, offset: usize) -> Result<(), DocumentError> {
        if self.builder.depth() == 0 {
            return Err(DocumentError::malformed(offset, "a CDATA section found outside the document element"));
        }
        self.push_text(inside, offset)
    }

    fn text(&mut self, text: &str, offset: usize) -> Result<(), DocumentError> {
        if self.builder.depth() == 0 {
            if is_blank(text) {
                return Ok(());
            }
            let at = text.find(|c: char| !c.is_ascii() || !is_blank(c.encode_utf8(&mut [0; 4]))).unwrap_or(0);
            let message = "text found outside the document element";
            return Err(DocumentError::malformed(offset + at, message));
        }
        if self.frame.has_cdata_end
            && let Some(at) = memchr::memmem::find(text.as_bytes(), b"]]>")
        {
            let message = "']]>' found in text, ']]&gt;' expected";
            return Err(DocumentError::malformed(self.frame.entity.map_or(offset + at, |_| offset), message));
        }
        self.push_text(text, offset)
    }

    /// Adds text with its line ends normalised.
    fn push_text(&mut self, text: &str, offset: usize) -> Result<(), DocumentError> {
        if self.frame.has_cr && memchr::memchr(b'\r', text.as_bytes()).is_some() {
            self.scratch.value.clear();
            push_normalised(&mut self.scratch.value, text);
            self.builder.text(&self.scratch.value, offset);
        } else {
            self.builder.text(text, offset);
        }
        self.check_text(offset)
    }

    fn check_text(&self, offset: usize) -> Result<(), DocumentError> {
        let given = self.builder.open_text_bytes();
        if given > self.limits.text_bytes {
            let limit = self.limits.text_bytes;
            return Err(DocumentError::limit(offset, "text_bytes", limit, given, "bytes of one text node"));
        }
        self.check_content(offset)
    }

    /// The tree's spans are 32 bits wide.
    pub(super) fn check_content(&self, offset: usize) -> Result<(), DocumentError> {
        let (text, values) = self.builder.content_bytes();
        let (given, limit) = (text.max(values), u32::MAX as usize);
        if given > limit {
            return Err(DocumentError::limit(offset, "document_bytes", limit, given, "bytes of a document's text"));
        }
        Ok(())
    }

    fn reference(&mut self, body: &str, offset: usize) -> Result<(), DocumentError> {
        if self.builder.depth() == 0 {
            let message = format!("the reference '&{body};' found outside the document element");
            return Err(DocumentError::malformed(offset, message));
        }
        if let Some(c) = reference_character(body, offset)? {
            self.builder.text(c.encode_utf8(&mut [0; 4]), offset);
            return self.check_text(offset);
        }
        let Some((name, text)) = self.dtd.get().and_then(|dtd| dtd.internal(body)) else {
            return Err(unusable(self.dtd.get(), body, offset));
        };
        let open = self.outer.iter().chain([&self.frame]).filter_map(|frame| frame.entity);
        if open.clone().any(|(open, _)| open == name) {
            return Err(DocumentError::malformed(offset, format!("the entity '&{name};' contains itself")));
        }
        self.expansion.check_depth(open.count(), offset)?;
        self.expansion.spend(text.len(), offset)?;
        let rest = text.trim_start_matches('\u{FEFF}');
        if rest.len() < text.len() {
            self.push_text(&text[..text.len() - rest.len()], offset)?;
        }
        let frame = Frame::new(rest, Some((name, offset)), self.scratch.open.len());
        self.outer.push(std::mem::replace(&mut self.frame, frame));
        Ok(())
    }

    fn comment(&mut self, inside: &str, at: usize, offset: usize) -> Result<(), DocumentError> {
        check_comment(inside)
            .map_err(|(inner, message)| DocumentError::malformed(self.frame.place(at + 4 + inner), message))?;
        self.check_leaf(inside, offset, "bytes of one comment")?;
        let mut buffer = std::mem::take(&mut self.scratch.value);
        self.builder.comment(self.normalised(inside, &mut buffer), offset);
        self.scratch.value = buffer;
        Ok(())
    }

    fn instruction(&mut self, inside: &str, offset: usize) -> Result<(), DocumentError> {
        let (target, data) = split_instruction(inside).map_err(|message| DocumentError::malformed(offset, message))?;
        self.name(target, offset)?;
        self.check_leaf(inside, offset, "bytes of one processing instruction")?;
        let mut buffer = std::mem::take(&mut self.scratch.value);
        let data = self.normalised(data, &mut buffer);
        let target = self.builder.intern("", target, "");
        self.builder.processing_instruction(target, data, offset);
        self.scratch.value = buffer;
        Ok(())
    }

    fn check_leaf(&self, inside: &str, offset: usize, what: &str) -> Result<(), DocumentError> {
        if inside.len() > self.limits.text_bytes {
            return Err(DocumentError::limit(offset, "text_bytes", self.limits.text_bytes, inside.len(), what));
        }
        Ok(())
    }

    fn normalised<'t>(&self, text: &'t str, buffer: &'t mut String) -> &'t str {
        if !self.frame.has_cr {
            return text;
        }
        buffer.clear();
        push_normalised(buffer, text);
        buffer
    }

    /// Ends an entity, or the document: then true.
    fn leave(&mut self, offset: usize) -> Result<bool, DocumentError> {
        if self.scratch.open.len() > self.frame.depth {
            let name = self.scratch.open.last().map_or("", |raw| self.names.text(*raw));
            let message = match self.frame.entity {
                None => format!("the document ends inside the element '{name}', '</{name}>' expected"),
                Some((entity, _)) => format!("the entity '&{entity};' ends inside the element '{name}'"),
            };
            return Err(DocumentError::malformed(offset, message));
        }
        if let Some(outer) = self.outer.pop() {
            self.frame = outer;
            return Ok(false);
        }
        if !self.root_seen {
            return Err(DocumentError::malformed(offset, "the document has no element, one document element expected"));
        }
        Ok(true)
    }
}
