//! Joins of two postings: most joins are of the access posting and one guard.
//!
//! Both have few nodes as a rule, so that all there is to do is to take them up and to compare a few numbers. (Keeping the
//! branches of a guard for the whole document was no quicker: two joins in three have one of their own.)

use super::places::{Scene, branches};
use crate::document::{Document, NodeId};
use crate::predicates::joins::{Input, Operand, Purpose, joins};
use crate::predicates::{Guard, GuardList, NO_POSTING, Posting};
use std::num::NonZeroU16;

/// With more nodes to look at, a join is decided as any other.
const MAX_NODES: usize = 256;
/// The same for branches of the access posting.
const MAX_BRANCHES: usize = 8;

/// An [`Input`] in half the bytes; what does not fit is joined as any other.
#[derive(Clone, Copy, Debug)]
struct Climb(NonZeroU16);

impl Climb {
    const IS_CLIMB: u16 = 1 << 15;
    const GAP: u16 = 1 << 14;

    fn new(input: Input) -> Option<Climb> {
        let levels = u16::try_from(input.levels()).ok().filter(|levels| *levels < Climb::GAP)?;
        NonZeroU16::new(levels | if input.has_gap() { Climb::GAP } else { 0 } | Climb::IS_CLIMB).map(Climb)
    }

    /// The branches of a node.
    #[inline]
    fn branches(self, document: &Document, node: NodeId) -> impl Iterator<Item = NodeId> {
        let word = self.0.get();
        branches(document, node, u32::from(word & (Climb::GAP - 1)), word & Climb::GAP != 0)
    }
}

/// A join of the nodes of a run's posting and of its first guard.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    access: Climb,
    guard: Climb,
}

impl Pair {
    /// The join of a run, if it is nothing else.
    pub(super) fn new(guard: &Guard, list: &GuardList<'_>) -> Option<Pair> {
        let mut joins = joins(list.joins);
        let (Some((Purpose::Branch(0), [one, other])), None) = (joins.next(), joins.next()) else { return None };
        if guard.first[0] == NO_POSTING || guard.first[1] != NO_POSTING {
            return None;
        }
        let (access, guard) = match (one.operand(), other.operand()) {
            (Operand::Posting(0), Operand::Posting(1)) => (one, other),
            (Operand::Posting(1), Operand::Posting(0)) => (other, one),
            _ => return None,
        };
        Some(Pair { access: Climb::new(*access)?, guard: Climb::new(*guard)? })
    }
}

/// Whether a node of one posting and a node of the other, the guard, have the branch in common that a pair asks for;
/// `None` if there are too many nodes to look at.
#[inline]
pub(super) fn meet(scene: Scene<'_>, access: Posting, guard: Posting, pair: Pair) -> Option<bool> {
    let (mut found, mut count) = ([0; MAX_BRANCHES], 0);
    let too_many = scene.any(access, |node| {
        pair.access.branches(scene.document, node).any(|branch| {
            let place = found.get_mut(count);
            count += 1;
            place.map(|place| *place = branch).is_none()
        })
    });
    if too_many {
        return None;
    }
    let found = &found[..count];
    let mut looked_at = 0;
    let met = scene.any(guard, |node| {
        pair.guard.branches(scene.document, node).any(|branch| {
            looked_at += 1;
            looked_at > MAX_NODES || found.contains(&branch)
        })
    });
    (looked_at <= MAX_NODES).then_some(met)
}
