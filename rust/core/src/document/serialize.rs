//! From tree to text.

use super::tree::{Document, NodeId, NodeKind, XML_SCOPE, XML_URI};
use smallvec::SmallVec;
use std::borrow::Cow;

/// The XML text of a node and everything in it, well-formed on its own for a document or an element.
///
/// Names keep their prefixes. The outermost element declares all namespaces in scope, so that names in its content
/// (QNames in values too) keep their meaning; elements inside declare what they declared in the source. There is no
/// XML declaration. An attribute gives `name="value"`; a text node its escaped text.
pub fn serialize(document: &Document, node: NodeId) -> String {
    let mut serializer = Serializer::default();
    serializer.copy(document, node);
    serializer.into_text()
}

/// Writes nodes as XML text, keeping account of the namespaces that are in scope where it writes.
#[derive(Debug, Default)]
pub struct Serializer<'a> {
    out: String,
    /// Declarations in scope: prefix and URI, inner ones last.
    scope: Vec<(Cow<'a, str>, &'a str)>,
    /// Open elements: qualified name, and how many declarations were in scope before.
    open: Vec<(&'a str, &'a str, usize)>,
    /// Whether the start tag of the innermost element is still open.
    in_tag: bool,
    /// Number of the next prefix to be made up.
    generated: u32,
}

impl<'a> Serializer<'a> {
    /// A serializer that writes into this memory, which it empties first.
    pub fn reusing(mut memory: String) -> Serializer<'a> {
        memory.clear();
        Serializer { out: memory, ..Serializer::default() }
    }

    /// What was written.
    pub fn into_text(self) -> String {
        self.out
    }

    /// Whether a namespace was declared in an element that is open.
    pub fn has_declarations(&self) -> bool {
        !self.scope.is_empty()
    }

    /// Adds XML text as it is.
    pub fn raw(&mut self, xml: &str) {
        self.close_tag();
        self.out.push_str(xml);
    }

    /// The URI bound to a prefix where it writes; the empty prefix unbound is the empty URI.
    fn bound(&self, prefix: &str) -> Option<&'a str> {
        if prefix == "xml" {
            return Some(XML_URI);
        }
        let found = self.scope.iter().rev().find(|(known, _)| known == prefix).map(|(_, uri)| *uri);
        if prefix.is_empty() { Some(found.unwrap_or("")) } else { found }
    }

    /// Declares a prefix in the open start tag unless it is bound to this URI already.
    fn declare(&mut self, prefix: Cow<'a, str>, uri: &'a str) {
        if self.bound(&prefix) != Some(uri) {
            push_declaration(&prefix, uri, &mut self.out);
            self.scope.push((prefix, uri));
        }
    }

    fn close_tag(&mut self) {
        if std::mem::take(&mut self.in_tag) {
            self.out.push('>');
        }
    }

    /// Opens an element; attributes may follow.
    pub fn start(&mut self, prefix: &'a str, local: &'a str, uri: &'a str) {
        self.start_with(prefix, local, uri, std::iter::empty());
    }

    /// Opens an element that declares namespaces; attributes may follow.
    pub fn start_with(
        &mut self,
        prefix: &'a str,
        local: &'a str,
        uri: &'a str,
        namespaces: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) {
        self.close_tag();
        self.open.push((prefix, local, self.scope.len()));
        self.in_tag = true;
        self.out.push('<');
        push_qualified(prefix, local, &mut self.out);
        for (prefix, uri) in namespaces {
            if prefix != "xml" {
                self.declare(Cow::Borrowed(prefix), uri);
            }
        }
        self.declare(Cow::Borrowed(prefix), uri);
    }

    /// Adds an attribute to the element just opened. Its prefix gives way if it means something else there.
    pub fn attribute(&mut self, prefix: &'a str, local: &'a str, uri: &'a str, value: &str) {
        let prefix = self.attribute_prefix(prefix, uri);
        self.out.push(' ');
        push_qualified(&prefix, local, &mut self.out);
        self.out.push_str("=\"");
        push_escaped_attribute(value, &mut self.out);
        self.out.push('"');
    }

    fn attribute_prefix(&mut self, prefix: &'a str, uri: &'a str) -> Cow<'a, str> {
        if uri.is_empty() {
            return Cow::Borrowed("");
        }
        if !prefix.is_empty() {
            let own = self.open.last().map_or(0, |(_, _, before)| *before);
            let declared_here = self.scope[own..].iter().any(|(known, _)| known == prefix);
            if !declared_here || self.bound(prefix) == Some(uri) {
                self.declare(Cow::Borrowed(prefix), uri);
                return Cow::Borrowed(prefix);
            }
        }
        let known = self.scope.iter().map(|(known, _)| known.clone());
        if let Some(known) = known.rev().find(|known| !known.is_empty() && self.bound(known) == Some(uri)) {
            return known;
        }
        let made: Cow<'a, str> = loop {
            let made = format!("ns{}", self.generated);
            self.generated += 1;
            if self.bound(&made).is_none() {
                break Cow::Owned(made);
            }
        };
        self.declare(made.clone(), uri);
        made
    }

    /// Closes the innermost element.
    pub fn end(&mut self) {
        let Some((prefix, local, before)) = self.open.pop() else { return };
        self.scope.truncate(before);
        if std::mem::take(&mut self.in_tag) {
            self.out.push_str("/>");
        } else {
            self.out.push_str("</");
            push_qualified(prefix, local, &mut self.out);
            self.out.push('>');
        }
    }

    /// Adds text.
    pub fn text(&mut self, text: &str) {
        if !text.is_empty() {
            self.close_tag();
            push_escaped_text(text, &mut self.out);
        }
    }

    /// Adds a comment.
    pub fn comment(&mut self, text: &str) {
        self.close_tag();
        self.out.push_str("<!--");
        self.out.push_str(text);
        self.out.push_str("-->");
    }

    /// Adds a processing instruction.
    pub fn processing_instruction(&mut self, target: &str, data: &str) {
        self.close_tag();
        self.out.push_str("<?");
        self.out.push_str(target);
        if !data.is_empty() {
            self.out.push(' ');
            self.out.push_str(data);
        }
        self.out.push_str("?>");
    }

    /// Adds a node of a document and everything in it.
    ///
    /// The outermost element declares what is in scope in the source and not where it is written; elements inside
    /// declare what they declared in the source. An attribute outside a start tag gives `name="value"`.
    pub fn copy(&mut self, document: &'a Document, node: NodeId) {
        let last = document.node(node).last;
        let base = self.open.len();
        // Last node inside each element opened here.
        let mut ends: SmallVec<[NodeId; 16]> = SmallVec::new();
        for id in node..=last {
            while ends.last().is_some_and(|end| *end < id) {
                ends.pop();
                self.end();
            }
            let entry = document.node(id);
            match entry.kind {
                NodeKind::Root => {}
                NodeKind::Element => {
                    let name = document.name(id);
                    let (prefix, local, uri) = (&*name.prefix, &*name.local, &*name.uri);
                    let parent_scope = document.node(entry.parent).scope;
                    let outermost = self.open.len() == base;
                    if outermost && entry.scope != XML_SCOPE {
                        self.start_with(prefix, local, uri, document.namespaces(id));
                    } else if !outermost && entry.scope != parent_scope {
                        self.start_with(prefix, local, uri, own_declarations(document, id));
                    } else {
                        self.start(prefix, local, uri);
                    }
                    ends.push(entry.last);
                }
                NodeKind::Attribute if self.in_tag => {
                    let name = document.name(id);
                    self.attribute(&name.prefix, &name.local, &name.uri, document.string_value(id));
                }
                NodeKind::Attribute => {
                    let name = document.name(id);
                    push_qualified(&name.prefix, &name.local, &mut self.out);
                    self.out.push_str("=\"");
                    push_escaped_attribute(document.string_value(id), &mut self.out);
                    self.out.push('"');
                }
                NodeKind::Text => self.text(document.string_value(id)),
                NodeKind::Comment => self.comment(document.string_value(id)),
                NodeKind::ProcessingInstruction => {
                    self.processing_instruction(&document.name(id).local, document.string_value(id));
                }
            }
        }
        for _ in ends {
            self.end();
        }
    }
}

fn push_qualified(prefix: &str, local: &str, out: &mut String) {
    if !prefix.is_empty() {
        out.push_str(prefix);
        out.push(':');
    }
    out.push_str(local);
}

fn push_declaration(prefix: &str, uri: &str, out: &mut String) {
    out.push_str(" xmlns");
    if !prefix.is_empty() {
        out.push(':');
        out.push_str(prefix);
    }
    out.push_str("=\"");
    push_escaped_attribute(uri, out);
    out.push('"');
}

/// Appends a text so that it reads back as it is: `&`, `<` and `>` escaped, carriage returns as references.
pub fn push_escaped_text(text: &str, out: &mut String) {
    push_escaped(text, out, |byte| match byte {
        b'&' => Some("&amp;"),
        b'<' => Some("&lt;"),
        b'>' => Some("&gt;"),
        b'\r' => Some("&#13;"),
        _ => None,
    });
}

/// Appends a value for use between double quotes so that it reads back as it is.
pub fn push_escaped_attribute(value: &str, out: &mut String) {
    push_escaped(value, out, |byte| match byte {
        b'&' => Some("&amp;"),
        b'<' => Some("&lt;"),
        b'"' => Some("&quot;"),
        b'\t' => Some("&#9;"),
        b'\n' => Some("&#10;"),
        b'\r' => Some("&#13;"),
        _ => None,
    });
}

fn push_escaped(text: &str, out: &mut String, escape: impl Fn(u8) -> Option<&'static str>) {
    let mut start = 0;
    for (at, byte) in text.bytes().enumerate() {
        if let Some(escaped) = escape(byte) {
            out.push_str(&text[start..at]);
            out.push_str(escaped);
            start = at + 1;
        }
    }
    out.push_str(&text[start..]);
}

/// The namespace declarations of an element itself, in the order written: those that its parent's scope lacks.
pub(super) fn own_declarations(document: &Document, id: NodeId) -> Vec<(&str, &str)> {
    let inherited = document.scopes(document.node(id).parent).count();
    let own = document.scopes(id).count() - inherited;
    let mut found: Vec<(&str, &str)> =
        document.scopes(id).take(own).map(|scope| (&*scope.prefix, &*scope.uri)).collect();
    found.reverse();
    found
}
