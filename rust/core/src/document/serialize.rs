//! From tree to text.

use super::tree::{Document, NodeId, NodeKind};

/// The XML text of a node and everything in it, well-formed on its own for a document or an element.
///
/// Names keep their prefixes. The outermost element declares all namespaces in scope, so that names in its content
/// (QNames in values too) keep their meaning; elements inside declare what they declared in the source. There is no
/// XML declaration. An attribute gives `name="value"`; a text node its escaped text.
pub fn serialize(document: &Document, node: NodeId) -> String {
    let mut out = String::new();
    let last = document.node(node).last;
    let mut open: Vec<NodeId> = Vec::new();
    let mut id = node;
    while id <= last {
        close_until(document, &mut open, id, &mut out);
        match document.node(id).kind {
            NodeKind::Root => {}
            NodeKind::Element => {
                let namespaces = if id == node { document.namespaces(id) } else { own_declarations(document, id) };
                out.push('<');
                push_name(document, id, &mut out);
                for (prefix, uri) in namespaces {
                    if prefix != "xml" {
                        push_declaration(prefix, uri, &mut out);
                    }
                }
                for attribute in document.attributes(id) {
                    out.push(' ');
                    push_attribute(document, attribute, &mut out);
                }
                let inner = document.attributes(id).last().unwrap_or(id);
                if inner == document.node(id).last {
                    out.push_str("/>");
                } else {
                    out.push('>');
                    open.push(id);
                }
                id = inner;
            }
            NodeKind::Attribute => push_attribute(document, id, &mut out),
            NodeKind::Text => push_escaped_text(document.string_value(id), &mut out),
            NodeKind::Comment => {
                out.push_str("<!--");
                out.push_str(document.string_value(id));
                out.push_str("-->");
            }
            NodeKind::ProcessingInstruction => {
                out.push_str("<?");
                out.push_str(&document.name(id).local);
                if !document.string_value(id).is_empty() {
                    out.push(' ');
                    out.push_str(document.string_value(id));
                }
                out.push_str("?>");
            }
        }
        id += 1;
    }
    close_until(document, &mut open, NodeId::MAX, &mut out);
    out
}

fn close_until(document: &Document, open: &mut Vec<NodeId>, id: NodeId, out: &mut String) {
    while let Some(last) = open.last()
        && document.node(*last).last < id
    {
        out.push_str("</");
        push_name(document, *last, out);
        out.push('>');
        open.pop();
    }
}

fn push_name(document: &Document, id: NodeId, out: &mut String) {
    let name = document.name(id);
    if !name.prefix.is_empty() {
        out.push_str(&name.prefix);
        out.push(':');
    }
    out.push_str(&name.local);
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

fn push_attribute(document: &Document, id: NodeId, out: &mut String) {
    push_name(document, id, out);
    out.push_str("=\"");
    push_escaped_attribute(document.string_value(id), out);
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
