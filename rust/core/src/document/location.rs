//! Where something lies: line and column in the source, path in the tree.

use super::tree::{Document, NodeId, NodeKind};
use foldhash::fast::FixedState;
use hashbrown::HashMap;

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

/// Paths and lines of many nodes of one document, each found in constant time after the first.
#[derive(Debug)]
pub struct Locator<'d> {
    document: &'d Document,
    /// Byte offsets at which lines start, but the first.
    line_starts: Vec<usize>,
    /// For the children met: position and number among the siblings that the same step would name.
    positions: HashMap<NodeId, (u32, u32), FixedState>,
}

impl<'d> Locator<'d> {
    /// A locator; `source` is the decoded input of the document.
    pub fn new(document: &'d Document, source: &str) -> Self {
        let bytes = source.as_bytes();
        let line_starts = memchr::memchr2_iter(b'\n', b'\r', bytes)
            .filter(|at| bytes[*at] == b'\n' || bytes.get(at + 1) != Some(&b'\n'))
            .map(|at| at + 1)
            .collect();
        Locator { document, line_starts, positions: HashMap::default() }
    }

    /// Line, from 1, at which a node's markup or text starts.
    pub fn line(&self, node: NodeId) -> usize {
        let offset = self.document.node(node).offset as usize;
        self.line_starts.partition_point(|start| *start <= offset) + 1
    }

    /// The path of a node from the document node, such as `/nitf/head/title[1]/text()`.
    ///
    /// Names are qualified as written. A position is given wherever the parent has more than one child that the same
    /// step would name (elements: the same expanded name; else: the same kind, and target for processing instructions).
    pub fn path(&mut self, node: NodeId) -> String {
        let mut steps = Vec::new();
        let mut at = node;
        while at != 0 {
            steps.push(self.step(at));
            at = self.document.node(at).parent;
        }
        if steps.is_empty() {
            return "/".into();
        }
        steps.iter().rev().fold(String::new(), |path, step| path + "/" + step)
    }

    fn step(&mut self, id: NodeId) -> String {
        let document = self.document;
        let test = match document.node(id).kind {
            NodeKind::Root => return String::new(),
            NodeKind::Attribute => return format!("@{}", document.name(id).qualified()),
            NodeKind::Element => document.name(id).qualified(),
            NodeKind::Text => "text()".into(),
            NodeKind::Comment => "comment()".into(),
            NodeKind::ProcessingInstruction => format!("processing-instruction('{}')", document.name(id).local),
        };
        if !self.positions.contains_key(&id) {
            self.number_children(document.node(id).parent);
        }
        let (position, count) = self.positions[&id];
        if count > 1 { format!("{test}[{position}]") } else { test }
    }

    /// Numbers all children of a node at once: one by one would take quadratic time.
    fn number_children(&mut self, parent: NodeId) {
        let document = self.document;
        let mut counts: HashMap<(NodeKind, &str, &str), u32, FixedState> = HashMap::default();
        let key = |id: NodeId| {
            let name = document.name(id);
            (document.node(id).kind, &*name.local, &*name.uri)
        };
        for child in document.children(parent) {
            let count = counts.entry(key(child)).or_insert(0);
            *count += 1;
            self.positions.insert(child, (*count, 0));
        }
        for child in document.children(parent) {
            if let Some((_, count)) = self.positions.get_mut(&child) {
                *count = counts[&key(child)];
            }
        }
    }
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
