//! Gates: what most plans look at first, packed into half a cache line each.
//!
//! Of thousands of plans whose trigger happened, many give nothing in the end, and a plan is a tree of boxes all over
//! memory: following it costs more than what is to be decided. Most plans are one loop over a stream from the document
//! with one or two conditions, so these are kept beside each other.

use super::plan::{ConditionId, ConditionKind, ContentPart, Operators, Piece, StreamId};
use crate::xquery::ast::CompareOp;

/// No condition or stream.
pub const NONE: u32 = u32::MAX;
/// Marks a condition that is known to hold nowhere unless the values of the document were found among its constants.
pub const SETTLED: u32 = 1 << 31;

/// What a plan looks at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gate {
    /// The stream of its only loop; [`NONE`] if the plan is of another shape.
    pub stream: StreamId,
    /// Its conditions, perhaps marked [`SETTLED`].
    pub conditions: [ConditionId; 2],
    /// The streams that its groups list.
    pub lists: [StreamId; 3],
}

impl Gate {
    /// The gate of a plan of any shape.
    pub const OTHER: Gate = Gate { stream: NONE, conditions: [NONE; 2], lists: [NONE; 3] };

    /// The gate of a plan.
    pub fn new(piece: &Piece, lists: &[StreamId], operators: &Operators) -> Gate {
        let mut loops = Vec::new();
        if !find_loops(piece, &mut loops) || loops.len() != 1 || lists.len() > 3 {
            return Gate::OTHER;
        }
        let own = loops[0];
        let is_simple =
            operators.stream(own.stream).level == 0 && own.order.is_empty() && matches!(*own.body, Piece::Element(_));
        let members = own.condition.map_or(Vec::new(), |condition| operators.conjuncts(condition));
        if !is_simple || members.len() > 2 {
            return Gate::OTHER;
        }
        let mut gate = Gate { stream: own.stream, ..Gate::OTHER };
        for (place, member) in gate.conditions.iter_mut().zip(&members) {
            let condition = operators.condition(*member);
            *place = *member;
            match condition.kind {
                ConditionKind::Compare(stream, CompareOp::Equal, _)
                    if operators.stream(stream).necessary_path().is_some() =>
                {
                    *place |= SETTLED;
                }
                ConditionKind::Exists(_)
                | ConditionKind::Compare(..)
                | ConditionKind::CompareStreams(..)
                | ConditionKind::Contains(..)
                | ConditionKind::StartsWith(..)
                | ConditionKind::Count(..) => {}
                _ => return Gate::OTHER,
            }
        }
        for (place, list) in gate.lists.iter_mut().zip(lists) {
            *place = *list;
        }
        gate
    }
}

/// Collects the loops of a template; false if anything else in it depends on the document.
fn find_loops<'p>(piece: &'p Piece, loops: &mut Vec<&'p super::plan::Loop>) -> bool {
    match piece {
        Piece::Element(element) => element.content.iter().all(|part| match part {
            ContentPart::Text(_) => true,
            ContentPart::Piece(piece) => find_loops(piece, loops),
        }),
        Piece::Sequence(pieces) => pieces.iter().all(|piece| find_loops(piece, loops)),
        Piece::Loop(own) => {
            loops.push(own);
            true
        }
        Piece::Nodes(_) | Piece::Residue(_) => false,
    }
}
