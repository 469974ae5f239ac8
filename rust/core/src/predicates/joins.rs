//! Joins as they are stored: what has to meet in one node.
//!
//! A join is a head and its inputs, one word each. An input takes nodes up to the branch that they have in common; the
//! nodes that all inputs lead to are the join's. Joins come behind those that they take nodes of.

use bytemuck::{Pod, Zeroable};

/// Where an input has its nodes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A posting: 0 is that of the run, then come those of its guard, then further ones.
    Posting(usize),
    /// An earlier join.
    Join(usize),
}

/// What leads from some nodes to a branch above them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(transparent)]
pub struct Input(u32);

const JOIN: u32 = 1 << 14;
const GAP: u32 = 1 << 15;
const LEVELS_SHIFT: u32 = 16;
const TOP: u32 = 1 << 31;

impl Input {
    /// An input; with `gap` the branch is this many levels up or further, else exactly. `None` if a number is too large.
    pub fn new(operand: Operand, levels: usize, gap: bool) -> Option<Input> {
        let (number, kind) = match operand {
            Operand::Posting(number) => (number, 0),
            Operand::Join(number) => (number, JOIN),
        };
        let number = u32::try_from(number).ok().filter(|number| *number < JOIN)?;
        let levels = u16::try_from(levels).ok()?;
        Some(Input(number | kind | if gap { GAP } else { 0 } | u32::from(levels) << LEVELS_SHIFT))
    }

    /// Where its nodes are from.
    #[inline]
    pub fn operand(self) -> Operand {
        let number = (self.0 & (JOIN - 1)) as usize;
        if self.0 & JOIN == 0 { Operand::Posting(number) } else { Operand::Join(number) }
    }

    /// How far up the branch is, at least.
    #[inline]
    pub fn levels(self) -> u32 {
        self.0 >> LEVELS_SHIFT
    }

    /// Whether it may be further up.
    #[inline]
    pub fn has_gap(self) -> bool {
        self.0 & GAP != 0
    }

    /// As stored.
    pub fn word(self) -> u32 {
        self.0
    }
}

/// The head of a join: how many inputs follow, and whether it is enough that it has a node.
pub fn join_head(inputs: usize, top: bool) -> u32 {
    inputs as u32 | if top { TOP } else { 0 }
}

/// The joins of a run: whether it is enough that they have a node, and their inputs, those without gaps first.
pub fn joins(mut words: &[u32]) -> impl Iterator<Item = (bool, &[Input])> {
    std::iter::from_fn(move || {
        let (head, rest) = words.split_first()?;
        let (inputs, rest) = rest.split_at_checked((head & !TOP) as usize)?;
        words = rest;
        Some((head & TOP != 0, bytemuck::cast_slice(inputs)))
    })
}
