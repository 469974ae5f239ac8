//! What can be said of a template without a document.

use super::{ContentPart, Operators, Piece, StreamId, TextPart};
use crate::xquery::ast::{Axis, Expr, NodeTest, Step};

/// Whether a template can be written at once.
pub fn is_plain(piece: &Piece, operators: &Operators) -> bool {
    match piece {
        Piece::Element(element) => {
            let parts = element.tag.attributes.iter().flat_map(|(_, parts)| parts);
            parts.into_iter().all(|part| !matches!(part, TextPart::Residue(_)))
                && element.tag.attributes.iter().all(|(name, _)| &*name.0.local != "id" || name.0.prefix.is_empty())
                && element.content.iter().all(|part| match part {
                    ContentPart::Text(_) => true,
                    ContentPart::Piece(piece) => is_plain(piece, operators),
                })
        }
        Piece::Sequence(pieces) => pieces.iter().all(|piece| is_plain(piece, operators)),
        Piece::Nodes(stream) => match &*operators.stream(*stream).expr {
            Expr::Path(path) => match path.steps.last() {
                Some(Step::Axis { axis, test, .. }) => match axis {
                    Axis::Child | Axis::Descendant => true,
                    Axis::SelfAxis | Axis::Parent | Axis::DescendantOrSelf | Axis::Attribute => {
                        *axis != Axis::Attribute && matches!(test, NodeTest::Text | NodeTest::Name(_))
                    }
                    _ => false,
                },
                _ => false,
            },
            _ => false,
        },
        Piece::Loop(own) => is_plain(&own.body, operators),
        Piece::Residue(_) => false,
    }
}

/// The streams whose nodes the loops of a template list.
pub fn listed(piece: &Piece) -> Vec<StreamId> {
    fn walk(piece: &Piece, inside: bool, found: &mut Vec<StreamId>) {
        match piece {
            Piece::Element(element) => {
                for part in &element.content {
                    if let ContentPart::Piece(piece) = part {
                        walk(piece, inside, found);
                    }
                }
            }
            Piece::Sequence(pieces) => pieces.iter().for_each(|piece| walk(piece, inside, found)),
            Piece::Nodes(stream) if inside => found.push(*stream),
            Piece::Loop(own) => walk(&own.body, true, found),
            Piece::Nodes(_) | Piece::Residue(_) => {}
        }
    }
    let mut found = Vec::new();
    walk(piece, false, &mut found);
    found.sort_unstable();
    found.dedup();
    found
}
