//! The first canonical form of the XML conformance suite, in which its expected outputs are written.

use super::serialize::own_declarations;
use super::tree::{Document, NodeId, NodeKind};

/// A document in the suite's first canonical form: no declarations, comments or CDATA sections, attributes sorted,
/// empty elements as two tags, line ends and tabs as character references.
pub fn canonical(document: &Document) -> Vec<u8> {
    let mut out = String::new();
    let mut open: Vec<NodeId> = Vec::new();
    for (id, node) in (0..).zip(document.nodes()) {
        while let Some(last) = open.last()
            && document.node(*last).last < id
        {
            close(document, *last, &mut out);
            open.pop();
        }
        match node.kind {
            NodeKind::Root | NodeKind::Attribute | NodeKind::Comment => {}
            NodeKind::Element => {
                start_tag(document, id, &mut out);
                open.push(id);
            }
            NodeKind::Text => escape(document.string_value(id), &mut out),
            NodeKind::ProcessingInstruction => {
                out.push_str("<?");
                out.push_str(&document.name(id).local);
                out.push(' ');
                out.push_str(document.string_value(id));
                out.push_str("?>");
            }
        }
    }
    while let Some(id) = open.pop() {
        close(document, id, &mut out);
    }
    out.into_bytes()
}

fn start_tag(document: &Document, id: NodeId, out: &mut String) {
    let mut attributes: Vec<(String, &str)> =
        document.attributes(id).map(|at| (document.name(at).qualified(), document.string_value(at))).collect();
    attributes.extend(own_declarations(document, id).into_iter().map(|(prefix, uri)| {
        let name = if prefix.is_empty() { "xmlns".into() } else { format!("xmlns:{prefix}") };
        (name, uri)
    }));
    attributes.sort_unstable();
    out.push('<');
    out.push_str(&document.name(id).qualified());
    for (name, value) in attributes {
        out.push(' ');
        out.push_str(&name);
        out.push_str("=\"");
        escape(value, out);
        out.push('"');
    }
    out.push('>');
}

fn close(document: &Document, id: NodeId, out: &mut String) {
    out.push_str("</");
    out.push_str(&document.name(id).qualified());
    out.push('>');
}

fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' => out.push_str("&#9;"),
            '\n' => out.push_str("&#10;"),
            '\r' => out.push_str("&#13;"),
            c => out.push(c),
        }
    }
}
