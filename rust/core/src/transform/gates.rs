//! Gates: what most plans look at first, packed into a cache line each.
//!
//! Of thousands of plans whose trigger happened, many give nothing in the end, and a plan is a tree of boxes all over
//! memory: following it costs more than what is to be decided. Most plans are one loop over a stream from the document
//! with a few conditions, so these are kept beside each other.

use super::plan::{ConditionId, ConditionKind, ContentPart, Operators, Piece, StreamId};
use crate::xquery::ast::CompareOp;

/// No condition or stream.
pub const NONE: u32 = u32::MAX;
/// Marks a condition that is known to hold nowhere unless the values of the document were found among its constants.
pub const SETTLED: u32 = 1 << 31;

/// Conditions and lists that a gate has room for.
const CONDITIONS: usize = 4;
const LISTS: usize = 6;

/// What a plan looks at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gate {
    /// The stream of its only loop; [`NONE`] if the plan is of another shape.
    pub stream: StreamId,
    /// Conditions of the loop, perhaps marked [`SETTLED`].
    pub conditions: [ConditionId; CONDITIONS],
    /// The streams that its groups list.
    pub lists: [StreamId; LISTS],
    /// Whether an open gate says which bindings count. Otherwise there is more to ask, and only a closed one is final.
    pub is_exact: bool,
}

impl Gate {
    /// The gate of a plan of any shape.
    pub const OTHER: Gate =
        Gate { stream: NONE, conditions: [NONE; CONDITIONS], lists: [NONE; LISTS], is_exact: false };

    /// The gate of a plan.
    pub fn new(piece: &Piece, lists: &[StreamId], operators: &Operators) -> Gate {
        let mut loops = Vec::new();
        if !find_loops(piece, &mut loops) || loops.len() != 1 {
            return Gate::OTHER;
        }
        let own = loops[0];
        if operators.stream(own.stream).level > 0 || !matches!(*own.body, Piece::Element(_)) {
            return Gate::OTHER;
        }
        let leaf = |member: &ConditionId| {
            let condition = operators.condition(*member);
            match condition.kind {
                ConditionKind::Compare(stream, CompareOp::Equal, _)
                    if operators.stream(stream).necessary_path().is_some() =>
                {
                    Some(member | SETTLED)
                }
                ConditionKind::Exists(_)
                | ConditionKind::Compare(..)
                | ConditionKind::CompareStreams(..)
                | ConditionKind::Contains(..)
                | ConditionKind::StartsWith(..)
                | ConditionKind::Count(..) => Some(*member),
                _ => None,
            }
        };
        let members = own.condition.map_or(Vec::new(), |condition| operators.conjuncts(condition));
        let leaves: Vec<ConditionId> = members.iter().filter_map(leaf).collect();
        let fits = leaves.len() == members.len() && leaves.len() <= CONDITIONS && lists.len() <= LISTS;
        let mut gate = Gate { stream: own.stream, is_exact: fits && own.order.is_empty(), ..Gate::OTHER };
        for (place, condition) in gate.conditions.iter_mut().zip(leaves) {
            *place = condition;
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
