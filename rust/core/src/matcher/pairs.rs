//! Joins of two postings: most joins are of the access posting and one guard.
//!
//! Both have few nodes as a rule, so that all there is to do is to take them up and to compare a few numbers. (Keeping the
//! branches of a guard for the whole document was no quicker: two joins in three have one of their own.)

use super::places::Scene;
use crate::document::{Document, NodeId};
use crate::predicates::joins::{Input, Operand, joins};
use crate::predicates::{Guard, GuardList, NO_POSTING, Posting};
use std::num::NonZeroU32;

/// With more nodes to look at, a join is decided as any other.
const MAX_NODES: usize = 256;
/// The same for branches of the access posting.
const MAX_BRANCHES: usize = 8;

/// How far above its node a branch is, see [`Input`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Climb(u16);

impl Climb {
    const GAP: u16 = 1 << 14;

    fn new(input: Input) -> Option<Climb> {
        let levels = u16::try_from(input.levels()).ok().filter(|levels| *levels < Climb::GAP)?;
        Some(Climb(levels | if input.has_gap() { Climb::GAP } else { 0 }))
    }

    /// The branches of a node, nearest first.
    #[inline]
    fn branches(self, document: &Document, node: NodeId) -> impl Iterator<Item = NodeId> {
        let above = |node: NodeId| document.node(node).parent;
        let nearest = (0..self.0 & !Climb::GAP).fold(node, |at, _| above(at));
        let has_gap = self.0 & Climb::GAP != 0;
        std::iter::successors(Some(nearest), move |at| (has_gap && *at != 0).then(|| above(*at)))
    }
}

/// A join of the nodes of a run's posting and of its first guard.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair(NonZeroU32);

impl Pair {
    const IS_PAIR: u32 = 1 << 31;

    /// The join of a run, if it is nothing else.
    pub(super) fn new(guard: &Guard, list: &GuardList<'_>) -> Option<Pair> {
        let mut joins = joins(list.joins);
        let (Some((true, [one, other])), None) = (joins.next(), joins.next()) else { return None };
        if guard.first[0] == NO_POSTING || guard.first[1] != NO_POSTING {
            return None;
        }
        let (access, guard) = match (one.operand(), other.operand()) {
            (Operand::Posting(0), Operand::Posting(1)) => (one, other),
            (Operand::Posting(1), Operand::Posting(0)) => (other, one),
            _ => return None,
        };
        let word = u32::from(Climb::new(*access)?.0) << 16 | u32::from(Climb::new(*guard)?.0);
        NonZeroU32::new(word | Pair::IS_PAIR).map(Pair)
    }

    fn access(self) -> Climb {
        Climb(((self.0.get() & !Pair::IS_PAIR) >> 16) as u16)
    }

    fn guard(self) -> Climb {
        Climb(self.0.get() as u16)
    }
}

/// Whether a node of one posting and a node of the other, the guard, have the branch in common that a pair asks for;
/// `None` if there are too many nodes to look at.
#[inline]
pub(super) fn meet(scene: Scene<'_>, access: Posting, guard: Posting, pair: Pair) -> Option<bool> {
    let (mut branches, mut count) = ([0; MAX_BRANCHES], 0);
    let climb = pair.access();
    let too_many = scene.any(access, |node| {
        climb.branches(scene.document, node).any(|branch| {
            let place = branches.get_mut(count);
            count += 1;
            place.map(|place| *place = branch).is_none()
        })
    });
    if too_many {
        return None;
    }
    let branches = &branches[..count];
    let (climb, mut looked_at) = (pair.guard(), 0);
    let met = scene.any(guard, |node| {
        climb.branches(scene.document, node).any(|branch| {
            looked_at += 1;
            looked_at > MAX_NODES || branches.contains(&branch)
        })
    });
    (looked_at <= MAX_NODES).then_some(met)
}
