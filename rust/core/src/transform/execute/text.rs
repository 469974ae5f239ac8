//! Templates written as XML at once, where nothing in them has to be looked at first.
//!
//! Content in general is collected before it is written, since what comes out of an expression may be attributes or
//! values that are joined by spaces. A template of elements, text and copied elements or text nodes needs none of that.
//! Nodes that many results copy are written once per document.

use super::Execution;
use crate::document::{NodeId, NodeKind, Serializer};
use crate::transform::evaluate::Outcome;
use crate::transform::plan::{ContentPart, Piece, StartTag, TextPart};

/// What was written of a template.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Written {
    /// Whether anything was.
    pub(super) any: bool,
    /// Whether it came from a piece that selects from the document.
    pub(super) selected: bool,
}

impl Written {
    fn add(&mut self, other: Written) {
        self.any |= other.any;
        self.selected |= other.selected;
    }
}

impl<'a> Execution<'a> {
    /// Writes a plain template.
    pub(super) fn write_plain(&mut self, piece: &'a Piece, out: &mut Serializer<'a>) -> Outcome<Written> {
        let mut written = Written::default();
        match piece {
            Piece::Element(element) => {
                self.open_plain(&element.tag, out)?;
                for part in &element.content {
                    match part {
                        ContentPart::Text(text) => out.text(text),
                        ContentPart::Piece(piece) => written.add(self.write_plain(piece, out)?),
                    }
                }
                out.end();
                written.any = true;
            }
            Piece::Sequence(pieces) => {
                for piece in pieces {
                    written.add(self.write_plain(piece, out)?);
                }
            }
            Piece::Nodes(stream) => {
                let nodes = self.current(*stream)?;
                self.evaluator.charge(2 * nodes.len() as u64)?;
                written.any = !nodes.is_empty();
                written.selected = written.any;
                for at in nodes {
                    self.copy(self.node_at(at), out);
                }
            }
            Piece::Loop(own) => {
                let depth = self.chain.len();
                for binding in self.selected(own)? {
                    self.enter(own.stream, binding, depth);
                    self.evaluator.charge(1)?;
                    written.any |= self.write_plain(&own.body, out)?.any;
                }
                self.leave(depth);
                written.selected = written.any;
            }
            Piece::Residue(_) => {}
        }
        Ok(written)
    }

    fn open_plain(&mut self, tag: &'a StartTag, out: &mut Serializer<'a>) -> Outcome<()> {
        self.evaluator.charge(4)?;
        let name = &tag.name.0;
        let declared = tag.namespaces.iter().map(|(prefix, uri)| (&**prefix, &**uri));
        out.start_with(&name.prefix, &name.local, &name.uri, declared);
        for (name, parts) in &tag.attributes {
            let (prefix, local, uri) = (&*name.0.prefix, &*name.0.local, &*name.0.uri);
            match &parts[..] {
                [] => out.attribute(prefix, local, uri, ""),
                [TextPart::Text(text)] => out.attribute(prefix, local, uri, text),
                parts => {
                    let text = self.attribute_text(parts)?;
                    out.attribute(prefix, local, uri, &text);
                }
            }
        }
        Ok(())
    }

    /// Copies a node; one whose text does not depend on where it stands is written once per document.
    fn copy(&mut self, node: NodeId, out: &mut Serializer<'a>) {
        let document = self.document;
        let entry = document.node(node);
        if entry.kind != NodeKind::Element || !document.is_without_namespaces(node) || out.has_declarations() {
            out.copy(document, node);
            return;
        }
        let (stamp, start, end) = self.worker.copies[node as usize];
        if stamp == self.worker.document {
            out.raw(&self.worker.copied[start as usize..end as usize]);
            return;
        }
        let mut alone = Serializer::default();
        alone.copy(document, node);
        let text = alone.into_text();
        out.raw(&text);
        let start = self.worker.copied.len();
        if let Ok(end) = u32::try_from(start + text.len()) {
            self.worker.copied.push_str(&text);
            self.worker.copies[node as usize] = (self.worker.document, start as u32, end);
        }
    }
}
