//! Where something lies: line and column in the source, path in the tree.

use super::tree::{Document, NodeId, NodeKind};

/// Line and column, both from 1, of a byte offset in a decoded document; the column counts characters.
///
/// CR LF, CR and LF each end one line. An offset past the end means the end.
pub fn position_of(source: &str, offset: usize) -> (usize, usize) {
    let bytes = &source.as_bytes()[..offset.min(source.len())];
    let (mut line, mut start) = (1, 0);
    for at in memchr::memchr2_iter(b'\n', b'\r', bytes) {
        if bytes[at] == b'\r' && source.as_bytes().get(at + 1) == Some(&b'\n') {
            continue;
        }
        line += 1;
        start = at + 1;
    }
    // Bytes that continue a character are not counted.
    (line, 1 + bytes[start..].iter().filter(|b| **b & 0xC0 != 0x80).count())
}

/// Line, from 1, at which a node's markup or text starts; `source` is the decoded input of the document.
pub fn line_of(document: &Document, node: NodeId, source: &str) -> usize {
    position_of(source, document.node(node).offset as usize).0
}

/// The path of a node from the document node, such as `/nitf/head/title[1]/text()`.
///
/// Names are qualified as written. A position is given wherever the parent has more than one child that the same
/// step would name (elements: the same expanded name; else: the same kind, and target for processing instructions).
pub fn path_of(document: &Document, node: NodeId) -> String {
    let mut steps = Vec::new();
    let mut at = node;
    while at != 0 {
        steps.push(step(document, at));
        at = document.node(at).parent;
    }
    if steps.is_empty() {
        return "/".into();
    }
    steps.iter().rev().fold(String::new(), |path, step| path + "/" + step)
}

fn step(document: &Document, id: NodeId) -> String {
    let test = match document.node(id).kind {
        NodeKind::Root => return String::new(),
        NodeKind::Attribute => return format!("@{}", document.name(id).qualified()),
        NodeKind::Element => document.name(id).qualified(),
        NodeKind::Text => "text()".into(),
        NodeKind::Comment => "comment()".into(),
        NodeKind::ProcessingInstruction => format!("processing-instruction('{}')", document.name(id).local),
    };
    let (mut count, mut position) = (0, 0);
    for sibling in document.children(document.node(id).parent) {
        if same_step(document, sibling, id) {
            count += 1;
            if sibling == id {
                position = count;
            }
        }
    }
    if count > 1 { format!("{test}[{position}]") } else { test }
}

fn same_step(document: &Document, a: NodeId, b: NodeId) -> bool {
    let (left, right) = (document.node(a), document.node(b));
    if left.kind != right.kind {
        return false;
    }
    if left.name == right.name {
        return true;
    }
    let (left, right) = (document.name(a), document.name(b));
    left.local == right.local && left.uri == right.uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_end_counts_once() {
        let source = "a\r\nb\rc\né\u{1F600}x";
        assert_eq!(position_of(source, 0), (1, 1));
        assert_eq!(position_of(source, 3), (2, 1));
        assert_eq!(position_of(source, 5), (3, 1));
        assert_eq!(position_of(source, source.len() - 1), (4, 3));
        assert_eq!(position_of(source, 999), (4, 4));
    }
}
