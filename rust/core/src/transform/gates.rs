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

    /// A condition beside another one of the gate, of those that hold nowhere unless their constants were found.
    pub fn beside(&self, condition: ConditionId) -> Option<ConditionId> {
        let is_settled = |member: &&ConditionId| **member != NONE && **member & SETTLED != 0;
        let mut members = self.conditions.iter().filter(is_settled).map(|member| member & !SETTLED);
        if !members.clone().any(|member| member == condition) {
            return None;
        }
        members.find(|member| *member != condition)
    }

    /// The gate of a plan.
    pub fn new(piece: &Piece, lists: &[StreamId], operators: &Operators) -> Gate {
        let mut own = None;
        if !find_loop(piece, &mut own) {
            return Gate::OTHER;
        }
        let Some(own) = own else { return Gate::OTHER };
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
        let mut gate = Gate { stream: own.stream, ..Gate::OTHER };
        let mut leaves = 0;
        for condition in own.conditions.iter().filter_map(leaf) {
            if let Some(place) = gate.conditions.get_mut(leaves) {
                *place = condition;
            }
            leaves += 1;
        }
        let fits = leaves == own.conditions.len() && leaves <= CONDITIONS && lists.len() <= LISTS;
        gate.is_exact = fits && own.order.is_empty();
        for (place, list) in gate.lists.iter_mut().zip(lists) {
            *place = *list;
        }
        gate
    }
}

/// Finds the loop of a template; false if there are two, or if anything else in it depends on the document.
fn find_loop<'p>(piece: &'p Piece, found: &mut Option<&'p super::plan::Loop>) -> bool {
    match piece {
        Piece::Element(element) => element.content.iter().all(|part| match part {
            ContentPart::Text(_) => true,
            ContentPart::Piece(piece) => find_loop(piece, found),
        }),
        Piece::Sequence(pieces) => pieces.iter().all(|piece| find_loop(piece, found)),
        Piece::Loop(own) => found.replace(own).is_none(),
        Piece::Nodes(_) | Piece::Residue(_) => false,
    }
}
