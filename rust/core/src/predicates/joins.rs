//! Joins as they are stored: what has to meet in one node.
//!
//! A join is a head and its inputs, one word each. An input takes nodes up to the branch that they have in common; the
//! nodes that all inputs lead to are the join's. Joins come behind those that they take nodes of: those of the last
//! branch first.

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

/// For whom the nodes of a join are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The join is that of a branch, and this is the number of the branch above, from 1; 0 is the document.
    Branch(u32),
    /// The join is a part of the next one that is of a branch.
    Part,
}

const INPUTS: u32 = (1 << 16) - 1;
const ABOVE_SHIFT: u32 = 16;
const PART: u32 = u32::MAX >> ABOVE_SHIFT;

/// The head of a join with so many inputs; `None` if a number is too large.
pub fn join_head(inputs: usize, purpose: Purpose) -> Option<u32> {
    let inputs = u32::try_from(inputs).ok().filter(|inputs| *inputs <= INPUTS)?;
    let above = match purpose {
        Purpose::Branch(above) => Some(above).filter(|above| *above < PART)?,
        Purpose::Part => PART,
    };
    Some(inputs | above << ABOVE_SHIFT)
}

/// All joins of a run: for whom their nodes are, and their inputs, those without gaps first.
pub fn joins(mut words: &[u32]) -> impl Iterator<Item = (Purpose, &[Input])> {
    std::iter::from_fn(move || {
        let (head, rest) = words.split_first()?;
        let (inputs, rest) = rest.split_at_checked((head & INPUTS) as usize)?;
        words = rest;
        let above = head >> ABOVE_SHIFT;
        Some((if above == PART { Purpose::Part } else { Purpose::Branch(above) }, bytemuck::cast_slice(inputs)))
    })
}

/// The joins that are left where the first `unique` of so many `branches` are one node each: whether it is enough that a
/// join has a node, and its inputs. What leads to a branch leads to its only node, so these need no join.
pub fn undecided(words: &[u32], branches: usize, unique: usize) -> impl Iterator<Item = (bool, &[Input])> {
    let mut left = branches - unique;
    joins(words)
        .take_while(move |(purpose, _)| {
            let is_left = left > 0;
            left -= usize::from(is_left && *purpose != Purpose::Part);
            is_left
        })
        .map(move |(purpose, inputs)| (matches!(purpose, Purpose::Branch(above) if above as usize <= unique), inputs))
}
