//! From text to tree: quick-xml's events, made strict.

use std::cell::OnceCell;

use quick_xml::Reader;
use quick_xml::errors::{Error, IllFormedError, SyntaxError};
use quick_xml::events::Event;

use super::attributes::{RawAttribute, scan};
use super::chars::{find_forbidden, is_blank, push_normalised};
use super::declaration;
use super::dtd::{self, Dtd};
use super::encoding;
use super::error::{DocumentError, DocumentErrorKind};
use super::expansion::{Expansion, expand_value, reference_character, tokenize, unusable};
use super::limits::Limits;
use super::markup::{check_comment, split_instruction};
use super::names::{NameCache, Role};
use super::tree::{Document, TreeBuilder, XML_URI, XMLNS_URI};

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
struct Scratch {
    attributes: Vec<(u32, RawAttribute)>,
    /// Open elements: their names as written.
    open: Vec<u32>,
    /// Names (in the document) of the prefixed attributes of one element.
    prefixed: Vec<u32>,
    value: String,
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
struct Frame<'a> {
    reader: Reader<&'a [u8]>,
    /// Offset of the reader's start in the document.
    base: usize,
    /// In an entity: its name and the offset of the reference.
    entity: Option<(&'a str, usize)>,
    /// Elements open outside.
    depth: usize,
    /// Whether line ends must be normalised; in entities they are already.
    has_cr: bool,
    has_cdata_end: bool,
}

impl<'a> Frame<'a> {
    fn new(text: &'a str, start: usize, entity: Option<(&'a str, usize)>, depth: usize) -> Self {
        let bytes = text.as_bytes();
        let mut reader = Reader::from_str(&text[start..]);
        let config = reader.config_mut();
        config.check_end_names = false;
        config.allow_unmatched_ends = true;
        Frame {
            reader,
            base: start,
            entity,
            depth,
            has_cr: entity.is_none() && memchr::memchr(b'\r', bytes).is_some(),
            has_cdata_end: memchr::memmem::find(bytes, b"]]>").is_some(),
        }
    }

    /// Offset of the next event in the document.
    #[inline]
    fn offset(&self) -> usize {
        match self.entity {
            None => self.base + self.reader.buffer_position() as usize,
            Some((_, reference)) => reference,
        }
    }

    /// Offset of a place inside the event that starts at `offset`.
    fn inside(&self, offset: usize, at: usize) -> usize {
        if self.entity.is_none() { offset + at } else { offset }
    }
}

/// One document being read.
struct Run<'a, 'p> {
    source: &'a str,
    limits: &'p Limits,
    names: &'p mut NameCache,
    scratch: &'p mut Scratch,
    element: &'p mut u64,
    dtd: &'a OnceCell<Dtd>,
    standalone: bool,
    expansion: Expansion,
    builder: TreeBuilder,
    /// Entities open in content, outermost first; the document itself is not among them.
    outer: Vec<Frame<'a>>,
    frame: Frame<'a>,
    root_seen: bool,
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
        let declaration = declaration::parse(source)?;
        let mut run = Run {
            source,
            limits: &parser.limits,
            names: &mut parser.names,
            scratch: &mut parser.scratch,
            element: &mut parser.element,
            dtd,
            standalone: declaration.standalone,
            expansion: Expansion::new(&parser.limits, source.len()),
            builder: TreeBuilder::new(source.len()),
            outer: Vec::new(),
            frame: Frame::new(source, declaration.len, None, 0),
            root_seen: false,
        };
        run.refuse_mark(declaration.len)?;
        Ok(run)
    }

    /// quick-xml drops a byte order mark where it starts to read; here that is never the start of the document.
    fn refuse_mark(&mut self, at: usize) -> Result<(), DocumentError> {
        if self.source[at..].starts_with('\u{FEFF}') {
            return Err(DocumentError::malformed(at, "U+FEFF found outside the document element"));
        }
        Ok(())
    }

    fn document(mut self) -> Result<Document, DocumentError> {
        loop {
            let offset = self.frame.offset();
            if !self.root_seen && self.source[offset..].starts_with("<!DOCTYPE") {
                self.doctype(offset)?;
                continue;
            }
            match self.frame.reader.read_event() {
                Ok(Event::Start(tag)) => self.start(&tag, tag.name().0.len(), offset, false)?,
                Ok(Event::Empty(tag)) => self.start(&tag, tag.name().0.len(), offset, true)?,
                Ok(Event::End(tag)) => self.end(tag.name().0, offset)?,
                Ok(Event::Text(text)) => self.text(&text, offset)?,
                Ok(Event::GeneralRef(reference)) => self.reference(&reference, offset)?,
                Ok(Event::CData(text)) => self.cdata(&text, offset)?,
                Ok(Event::Comment(inside)) => self.comment(&inside, offset)?,
                Ok(Event::PI(inside)) => self.instruction(&inside, offset)?,
                Ok(Event::Decl(_)) => self.instruction("xml", offset)?,
                Ok(Event::DocType(_)) => {
                    let message = "a document type declaration found, which must be written '<!DOCTYPE', stand once and \
                                   before the document element";
                    return Err(DocumentError::malformed(offset, message));
                }
                Ok(Event::Eof) => {
                    if self.leave(offset)? {
                        return Ok(self.builder.finish());
                    }
                }
                Err(error) => return Err(self.syntax(&error, offset)),
            }
            if self.builder.node_count() > self.limits.nodes {
                let (limit, given) = (self.limits.nodes, self.builder.node_count());
                return Err(DocumentError::limit(offset, "nodes", limit, given, "nodes of a document"));
            }
        }
    }

    fn doctype(&mut self, offset: usize) -> Result<(), DocumentError> {
        let (dtd, end) = dtd::parse(self.source, offset, self.standalone, self.limits, &mut self.expansion)?;
        if self.dtd.set(dtd).is_err() {
            return Err(DocumentError::malformed(offset, "a second document type declaration found"));
        }
        self.refuse_mark(end)?;
        self.frame = Frame::new(self.source, end, None, 0);
        Ok(())
    }

    fn start(&mut self, tag: &str, name_bytes: usize, offset: usize, empty: bool) -> Result<(), DocumentError> {
        let depth = self.builder.depth();
        if depth == 0 && self.root_seen {
            let message = "a second document element found, only comments and processing instructions may follow the \
                           first";
            return Err(DocumentError::malformed(offset, message));
        }
        if depth >= self.limits.depth.min(u16::MAX as usize - 1) {
            let limit = self.limits.depth.min(u16::MAX as usize - 1);
            return Err(DocumentError::limit(offset, "depth", limit, depth + 1, "levels of nested elements"));
        }
        self.root_seen = true;
        let raw = self.name(&tag[..name_bytes], offset + 1)?;
        if self.names.role(raw) == Role::Namespace {
            return Err(DocumentError::malformed(offset, "the prefix 'xmlns' found on an element, which is reserved"));
        }
        *self.element += 1;
        let dtd = self.dtd.get().filter(|dtd| dtd.has_attributes());
        if name_bytes == tag.len() && dtd.is_none() {
            let scope = self.builder.scope();
            let name = self.element_name(raw, scope, offset)?;
            self.builder.start_element(name, scope, offset);
        } else {
            self.scan_attributes(tag, name_bytes, offset)?;
            self.start_with_attributes(tag, raw, offset, dtd)?;
        }
        if empty {
            self.builder.end_element();
        } else {
            self.scratch.open.push(raw);
        }
        Ok(())
    }

    /// The cached entry of a name as written.
    #[inline]
    fn name(&mut self, name: &str, offset: usize) -> Result<u32, DocumentError> {
        if name.len() > self.limits.name_bytes {
            let (limit, given) = (self.limits.name_bytes, name.len());
            return Err(DocumentError::limit(offset, "name_bytes", limit, given, "bytes of one name"));
        }
        match self.names.entry(name) {
            Some(entry) => Ok(entry),
            None => Err(DocumentError::malformed(offset, format!("'{name}' found, a qualified name expected"))),
        }
    }

    fn scan_attributes(&mut self, tag: &str, name_bytes: usize, offset: usize) -> Result<(), DocumentError> {
        let mut attributes = std::mem::take(&mut self.scratch.attributes);
        attributes.clear();
        let mut failed = None;
        let scanned = scan(tag, name_bytes, |found| {
            let at = offset + 1 + found.name.0 as usize;
            match self.attribute_entry(&tag[found.name.0 as usize..found.name.1 as usize], attributes.len(), at) {
                Ok(entry) => {
                    attributes.push((entry, found));
                    true
                }
                Err(error) => {
                    failed = Some(error);
                    false
                }
            }
        });
        self.scratch.attributes = attributes;
        scanned.map_err(|(at, message)| DocumentError::malformed(self.frame.inside(offset, at + 1), message))?;
        failed.map_or(Ok(()), Err)
    }

    fn attribute_entry(&mut self, name: &str, before: usize, offset: usize) -> Result<u32, DocumentError> {
        let offset = if self.frame.entity.is_none() { offset } else { self.frame.offset() };
        let entry = self.name(name, offset)?;
        if !self.names.mark(entry, *self.element) {
            return Err(DocumentError::malformed(offset, format!("the attribute '{name}' stands twice in one tag")));
        }
        self.check_attributes(before + 1, offset)?;
        Ok(entry)
    }

    fn check_attributes(&self, count: usize, offset: usize) -> Result<(), DocumentError> {
        if count <= self.limits.attributes {
            return Ok(());
        }
        let limit = self.limits.attributes;
        Err(DocumentError::limit(offset, "attributes", limit, count, "attributes of one element"))
    }

    /// Opens an element whose tag has attributes, or for which the DTD may declare some.
    fn start_with_attributes(
        &mut self,
        tag: &str,
        raw: u32,
        offset: usize,
        dtd: Option<&'a Dtd>,
    ) -> Result<(), DocumentError> {
        let declared = dtd.map_or(&[][..], |dtd| dtd.attributes(self.names.text(raw)));
        let attributes = std::mem::take(&mut self.scratch.attributes);
        let mut value = std::mem::take(&mut self.scratch.value);
        let written = attributes.len();
        // Defaults come last, after what the tag says; an attribute in the tag switches its default off.
        let mut defaults = Vec::new();
        for attribute in declared {
            let Some(default) = &attribute.default else { continue };
            let entry = self.name(&attribute.name, offset)?;
            if !self.names.is_marked(entry, *self.element) {
                self.expansion.spend(default.len() + attribute.name.len() + size_of::<super::tree::Node>(), offset)?;
                defaults.push((entry, &**default));
            }
        }
        self.check_attributes(written + defaults.len(), offset)?;

        let mut scope = self.builder.scope();
        for (entry, attribute) in &attributes {
            if self.names.role(*entry) != Role::Plain {
                let place = self.frame.inside(offset, attribute.name.0 as usize + 1);
                let uri = self.value(tag, *entry, attribute, declared, &mut value, place)?;
                scope = self.declare(scope, *entry, uri, place)?;
            }
        }
        for (entry, default) in &defaults {
            if self.names.role(*entry) != Role::Plain {
                scope = self.declare(scope, *entry, default, offset)?;
            }
        }

        let name = self.element_name(raw, scope, offset)?;
        self.builder.start_element(name, scope, offset);
        self.scratch.prefixed.clear();
        for (entry, attribute) in &attributes {
            if self.names.role(*entry) == Role::Plain {
                let place = self.frame.inside(offset, attribute.name.0 as usize + 1);
                let name = self.attribute_name(*entry, scope, place)?;
                let text = self.value(tag, *entry, attribute, declared, &mut value, place)?;
                let is_id = declared.iter().any(|a| a.is_id && *a.name == *self.names.text(*entry));
                self.builder.attribute(name, text, is_id, place);
            }
        }
        for (entry, default) in &defaults {
            if self.names.role(*entry) == Role::Plain {
                let name = self.attribute_name(*entry, scope, offset)?;
                let is_id = declared.iter().any(|a| a.is_id && *a.name == *self.names.text(*entry));
                self.builder.attribute(name, default, is_id, offset);
            }
        }
        self.scratch.attributes = attributes;
        self.scratch.value = value;
        self.check_expanded(offset)?;
        self.check_content(offset)
    }

    /// The normalised value of an attribute in a tag.
    fn value<'v>(
        &mut self,
        tag: &'v str,
        entry: u32,
        attribute: &RawAttribute,
        declared: &[dtd::AttributeDeclaration],
        buffer: &'v mut String,
        offset: usize,
    ) -> Result<&'v str, DocumentError> {
        let raw = &tag[attribute.value.0 as usize..attribute.value.1 as usize];
        let tokenized =
            !declared.is_empty() && declared.iter().any(|a| a.tokenized && *a.name == *self.names.text(entry));
        if attribute.plain && !tokenized {
            if raw.len() > self.limits.text_bytes {
                let (limit, given) = (self.limits.text_bytes, raw.len());
                return Err(DocumentError::limit(offset, "text_bytes", limit, given, "bytes of one attribute value"));
            }
            return Ok(raw);
        }
        buffer.clear();
        let literal = self.frame.entity.is_none();
        expand_value(raw, literal, self.dtd.get(), &mut self.expansion, offset, buffer)?;
        if tokenized {
            *buffer = tokenize(buffer);
        }
        Ok(buffer)
    }

    /// Adds a namespace declaration (Namespaces in XML 1.0, §2.2, §3 and §5).
    fn declare(&mut self, scope: u32, entry: u32, uri: &str, offset: usize) -> Result<u32, DocumentError> {
        let prefix = match self.names.role(entry) {
            Role::Namespace => self.names.parts(entry).1,
            _ => "",
        };
        let fault = |message: String| Err(DocumentError::malformed(offset, message));
        if prefix == "xmlns" {
            return fault("the prefix 'xmlns' found in a declaration, which is reserved".into());
        }
        if (prefix == "xml") != (uri == XML_URI) {
            return fault(format!("the prefix 'xml' and '{XML_URI}' may be bound to each other only"));
        }
        if uri == XMLNS_URI {
            return fault(format!("'{XMLNS_URI}' found in a declaration, it may not be declared"));
        }
        if uri.is_empty() && !prefix.is_empty() {
            return fault(format!("the prefix '{prefix}' is bound to no namespace, a URI expected"));
        }
        if prefix == "xml" {
            return Ok(scope);
        }
        Ok(self.builder.declare(scope, prefix, uri))
    }

    /// The number of an element's name in a scope.
    #[inline]
    fn element_name(&mut self, raw: u32, scope: u32, offset: usize) -> Result<u32, DocumentError> {
        if let Some(name) = self.names.element(raw, scope) {
            return Ok(name);
        }
        let name = self.resolve(raw, scope, true, offset)?;
        self.names.set_element(raw, scope, name);
        Ok(name)
    }

    /// The number of an attribute's name in a scope; no two attributes of an element may have the same expanded name.
    #[inline]
    fn attribute_name(&mut self, raw: u32, scope: u32, offset: usize) -> Result<u32, DocumentError> {
        let name = match self.names.attribute(raw, scope) {
            Some(name) => name,
            None => {
                let name = self.resolve(raw, scope, self.names.has_prefix(raw), offset)?;
                self.names.set_attribute(raw, scope, name);
                name
            }
        };
        if self.names.has_prefix(raw) {
            self.scratch.prefixed.push(name);
        }
        Ok(name)
    }

    fn resolve(&mut self, raw: u32, scope: u32, use_default: bool, offset: usize) -> Result<u32, DocumentError> {
        let (prefix, local) = self.names.parts(raw);
        if !use_default {
            return Ok(self.builder.intern("", local, ""));
        }
        let Some(uri) = self.builder.resolve(scope, prefix) else {
            return Err(DocumentError::malformed(offset, format!("the namespace prefix '{prefix}' is not declared")));
        };
        // The builder cannot hand out a borrowed URI and take a name at once.
        let uri = uri.to_owned();
        Ok(self.builder.intern(prefix, local, &uri))
    }

    /// Refuses two prefixed attributes with the same namespace and local part (Namespaces §6.3).
    fn check_expanded(&mut self, offset: usize) -> Result<(), DocumentError> {
        if self.scratch.prefixed.len() < 2 {
            return Ok(());
        }
        let names = self.builder.names();
        let key = |name: &u32| (&*names[*name as usize].local, &*names[*name as usize].uri);
        self.scratch.prefixed.sort_unstable_by(|a, b| key(a).cmp(&key(b)));
        match self.scratch.prefixed.windows(2).find(|pair| key(&pair[0]) == key(&pair[1])) {
            None => Ok(()),
            Some(pair) => {
                let (local, uri) = key(&pair[0]);
                let message = format!("two attributes of one element have the local name '{local}' in '{uri}'");
                Err(DocumentError::malformed(offset, message))
            }
        }
    }

    fn end(&mut self, name: &str, offset: usize) -> Result<(), DocumentError> {
        if self.scratch.open.len() <= self.frame.depth {
            let message = match self.frame.entity {
                None => format!("the end tag '</{name}>' has no start tag"),
                Some((entity, _)) => format!("the end tag '</{name}>' has no start tag in the entity '&{entity};'"),
            };
            return Err(DocumentError::malformed(offset, message));
        }
        if let Some(raw) = self.scratch.open.pop() {
            let expected = self.names.text(raw);
            if expected != name {
                let message = format!("the end tag '</{name}>' found, '</{expected}>' expected");
                return Err(DocumentError::malformed(offset, message));
            }
        }
        self.builder.end_element();
        Ok(())
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
            return Err(DocumentError::malformed(self.frame.inside(offset, at), message));
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
    fn check_content(&self, offset: usize) -> Result<(), DocumentError> {
        let (text, values) = self.builder.content_bytes();
        let (given, limit) = (text.max(values), u32::MAX as usize);
        if given > limit {
            return Err(DocumentError::limit(offset, "document_bytes", limit, given, "bytes of a document's text"));
        }
        Ok(())
    }

    fn cdata(&mut self, text: &str, offset: usize) -> Result<(), DocumentError> {
        if self.builder.depth() == 0 {
            return Err(DocumentError::malformed(offset, "a CDATA section found outside the document element"));
        }
        self.push_text(text, offset)
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
        let mut start = 0;
        while text[start..].starts_with('\u{FEFF}') {
            self.builder.text("\u{FEFF}", offset);
            start += '\u{FEFF}'.len_utf8();
        }
        let frame = Frame::new(text, start, Some((name, offset)), self.scratch.open.len());
        self.outer.push(std::mem::replace(&mut self.frame, frame));
        Ok(())
    }

    fn comment(&mut self, inside: &str, offset: usize) -> Result<(), DocumentError> {
        check_comment(inside)
            .map_err(|(at, message)| DocumentError::malformed(self.frame.inside(offset, at + 4), message))?;
        self.check_leaf(inside, offset, "bytes of one comment")?;
        let mut buffer = std::mem::take(&mut self.scratch.value);
        self.builder.comment(self.normalised(inside, &mut buffer), offset);
        self.scratch.value = buffer;
        Ok(())
    }

    fn instruction(&mut self, inside: &str, offset: usize) -> Result<(), DocumentError> {
        let (target, data) = split_instruction(inside).map_err(|message| DocumentError::malformed(offset, message))?;
        self.name(target, offset + 2)?;
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

    /// A tokenizer error in our words.
    fn syntax(&self, error: &Error, offset: usize) -> DocumentError {
        let message = match error {
            Error::Syntax(SyntaxError::UnclosedComment) => "the comment is not closed, '-->' expected",
            Error::Syntax(SyntaxError::UnclosedCData) => "the CDATA section is not closed or not opened as '<![CDATA['",
            Error::Syntax(SyntaxError::UnclosedPI | SyntaxError::UnclosedXmlDecl) => {
                "the processing instruction is not closed, '?>' expected"
            }
            Error::Syntax(SyntaxError::UnclosedTag) => "the tag is not closed, '>' expected",
            Error::Syntax(
                SyntaxError::UnclosedSingleQuotedAttributeValue | SyntaxError::UnclosedDoubleQuotedAttributeValue,
            ) => "the attribute value is not closed",
            Error::Syntax(SyntaxError::InvalidBangMarkup | SyntaxError::UnclosedDoctype) => {
                "'<!' begins neither a comment nor a CDATA section nor a document type declaration in its place"
            }
            Error::IllFormed(IllFormedError::UnclosedReference) => {
                "'&' found without a reference: '&amp;' or ';' expected"
            }
            other => return DocumentError::malformed(offset, format!("no markup that XML knows: {other}")),
        };
        DocumentError::new(DocumentErrorKind::NotWellFormed, offset, message)
    }
}
