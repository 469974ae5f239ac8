//! Tags: names, attributes and namespaces.

use quick_xml::events::BytesStart;

use super::attributes::{RawAttribute, name_bytes, scan};
use super::dtd::{AttributeDeclaration, Dtd};
use super::error::DocumentError;
use super::expansion::{expand_value, tokenize};
use super::names::Role;
use super::reader::Run;
use super::tree::{Node, XML_URI, XMLNS_URI, is_same};

impl<'a> Run<'a, '_> {
    /// A start tag or empty-element tag.
    pub(super) fn start(
        &mut self,
        tag: &BytesStart<'_>,
        at: usize,
        offset: usize,
        empty: bool,
    ) -> Result<(), DocumentError> {
        let depth = self.builder.depth();
        if depth == 0 && self.root_seen {
            let message = "a second document element found, only comments and processing instructions may follow the \
                           first";
            return Err(DocumentError::malformed(offset, message));
        }
        let limit = self.limits.depth.min(u16::MAX as usize - 1);
        if depth >= limit {
            return Err(DocumentError::limit(offset, "depth", limit, depth + 1, "levels of nested elements"));
        }
        self.root_seen = true;
        let name = tag.name().0;
        let raw = self.name(name, self.frame.place(at + 1))?;
        if self.names.role(raw) == Role::Namespace {
            return Err(DocumentError::malformed(offset, "the prefix 'xmlns' found on an element, which is reserved"));
        }
        *self.element += 1;
        let dtd = self.dtd.get().filter(|dtd| dtd.has_attributes());
        if tag.len() == name.len() && dtd.is_none() {
            let scope = self.builder.scope();
            let name = self.element_name(raw, scope, offset)?;
            self.builder.start_element(name, scope, offset);
        } else {
            self.scan_attributes(tag, name.len(), at + 1, offset)?;
            self.start_with_attributes(raw, offset, dtd)?;
        }
        if empty {
            self.builder.end_element();
        } else {
            self.scratch.open.push(raw);
        }
        Ok(())
    }

    /// What is wrong with the start tag at `at`, of which quick-xml found no end.
    pub(super) fn unclosed(&mut self, at: usize, offset: usize) -> DocumentError {
        let text = self.frame.text;
        let tag = &text[at + 1..];
        *self.element += 1;
        match self.scan_attributes(tag, name_bytes(tag), at + 1, offset) {
            Err(error) => error,
            Ok(()) => DocumentError::malformed(self.frame.place(text.len()), "the tag is not closed, '>' expected"),
        }
    }

    /// The cached entry of a name as written.
    #[inline]
    pub(super) fn name(&mut self, name: &str, offset: usize) -> Result<u32, DocumentError> {
        if name.len() > self.limits.name_bytes {
            let (limit, given) = (self.limits.name_bytes, name.len());
            return Err(DocumentError::limit(offset, "name_bytes", limit, given, "bytes of one name"));
        }
        match self.names.entry(name) {
            Some(entry) => Ok(entry),
            None => Err(DocumentError::malformed(offset, format!("'{name}' found, a qualified name expected"))),
        }
    }

    /// Reads the attributes of a tag, whose inside starts at `base`, into the scratch memory.
    fn scan_attributes(
        &mut self,
        tag: &str,
        name_bytes: usize,
        base: usize,
        offset: usize,
    ) -> Result<(), DocumentError> {
        let mut attributes = std::mem::take(&mut self.scratch.attributes);
        attributes.clear();
        let entity = self.frame.entity;
        let scanned = scan(
            tag,
            name_bytes,
            base,
            |at, message| DocumentError::malformed(entity.map_or(at, |_| offset), message),
            |name, at| {
                let place = self.frame.place(at);
                let entry = self.name(name, place)?;
                if !self.names.mark(entry, *self.element) {
                    let message = format!("the attribute '{name}' stands twice in one tag");
                    return Err(DocumentError::malformed(place, message));
                }
                Ok(entry)
            },
            &mut attributes,
        );
        let count = attributes.len();
        self.scratch.attributes = attributes;
        self.check_attributes(count, offset)?;
        scanned
    }

    fn check_attributes(&self, count: usize, offset: usize) -> Result<(), DocumentError> {
        if count <= self.limits.attributes {
            return Ok(());
        }
        let limit = self.limits.attributes;
        Err(DocumentError::limit(offset, "attributes", limit, count, "attributes of one element"))
    }

    /// Opens an element whose tag has attributes, or for which the DTD may declare some.
    fn start_with_attributes(&mut self, raw: u32, offset: usize, dtd: Option<&'a Dtd>) -> Result<(), DocumentError> {
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
                self.expansion.spend(default.len() + attribute.name.len() + size_of::<Node>(), offset)?;
                defaults.push((entry, &**default));
            }
        }
        self.check_attributes(written + defaults.len(), offset)?;

        let mut scope = self.builder.scope();
        for attribute in &attributes {
            if self.names.role(attribute.name) != Role::Plain {
                let place = self.frame.place(attribute.at as usize);
                let uri = self.value(attribute, declared, &mut value, place)?;
                scope = self.declare(scope, attribute.name, uri, place)?;
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
        for attribute in &attributes {
            if self.names.role(attribute.name) == Role::Plain {
                let place = self.frame.place(attribute.at as usize);
                let name = self.attribute_name(attribute.name, scope, place)?;
                let text = self.value(attribute, declared, &mut value, place)?;
                let is_id = declared.iter().any(|a| a.is_id && *a.name == *self.names.text(attribute.name));
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
        attribute: &RawAttribute,
        declared: &[AttributeDeclaration],
        buffer: &'v mut String,
        offset: usize,
    ) -> Result<&'v str, DocumentError>
    where
        'a: 'v,
    {
        let text: &'a str = self.frame.text;
        let raw = &text[attribute.value.0 as usize..attribute.value.1 as usize];
        let tokenized =
            !declared.is_empty() && declared.iter().any(|a| a.tokenized && *a.name == *self.names.text(attribute.name));
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
            Role::Namespace => self.names.local(entry),
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
        let prefix = self.names.prefix(raw);
        let uri = if use_default { self.builder.resolve(scope, prefix) } else { Some("") };
        let uri = uri.ok_or_else(|| {
            DocumentError::malformed(offset, format!("the namespace prefix '{prefix}' is not declared"))
        })?;
        let known = self.names.number(raw);
        if let Some(number) = known.filter(|number| is_same(&self.builder.names()[*number as usize].uri, uri)) {
            return Ok(number);
        }
        let name = self.names.name(raw, use_default, uri);
        Ok(if known.is_none() { self.builder.intern_new(name) } else { self.builder.intern_name(name) })
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

    /// An end tag; `found` is what stands between `</` and `>`, without white space at its end.
    pub(super) fn end(&mut self, found: &str, offset: usize) -> Result<(), DocumentError> {
        let open = self.scratch.open.len() > self.frame.depth;
        let Some(raw) = self.scratch.open.last().filter(|_| open) else {
            let name = &found[..name_bytes(found)];
            let message = match self.frame.entity {
                None => format!("the end tag '</{name}>' has no start tag"),
                Some((entity, _)) => format!("the end tag '</{name}>' has no start tag in the entity '&{entity};'"),
            };
            return Err(DocumentError::malformed(offset, message));
        };
        let expected = self.names.text(*raw);
        if found == expected {
            self.scratch.open.pop();
            self.builder.end_element();
            return Ok(());
        }
        let name = &found[..name_bytes(found)];
        let message = if name == expected {
            format!("the end tag '</{name}' is not closed, '>' expected")
        } else {
            format!("the end tag '</{name}>' found, '</{expected}>' expected")
        };
        Err(DocumentError::malformed(offset, message))
    }
}
