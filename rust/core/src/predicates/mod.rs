//! The predicate index: from (path, value) to the rows whose access predicate it satisfies.
//!
//! A *posting* is a set of rows with one access atom in common; *runs* are the rows of a posting, neighbours of one
//! signature together. Equalities and string functions are found by a key of kind, constant and trie node; order
//! comparisons in sorted lists per trie node and operator.

pub mod joins;
mod patterns;
mod strings;

pub use patterns::Patterns;
pub use strings::{FoundString, StringPool, Strings, hash_slots};

use crate::paths::TrieNode;
use crate::xpath::ast::CompareOp;
use bytemuck::{Pod, Zeroable};
use std::ops::Range;

/// Number of a posting.
pub type Posting = u32;
/// No posting.
pub const NO_POSTING: Posting = u32::MAX;

/// What a probe compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u64)]
pub enum ProbeKind {
    /// The string-value equals a string constant.
    StringEqual = 0,
    /// The number equals a number constant.
    NumberEqual = 1,
    /// The string-value contains a string constant.
    Contains = 2,
    /// The string-value starts with a string constant.
    StartsWith = 3,
}

/// Flags of a trie node: which kinds of probes there are.
pub mod flags {
    /// String equalities.
    pub const STRING_EQUAL: u8 = 1;
    /// Number equalities.
    pub const NUMBER_EQUAL: u8 = 2;
    /// `contains` or `starts-with`.
    pub const PATTERN: u8 = 4;
    /// Order comparisons.
    pub const RANGE: u8 = 8;
    /// Whether its path is unique matters.
    pub const ANCHOR: u8 = 16;
    /// Where its nodes are matters.
    pub const PLACES: u8 = 32;
    /// Where the nodes with these values are matters.
    pub const VALUE_PLACES: u8 = 64;
    /// Those that say that something is to be probed.
    pub const PROBES: u8 = STRING_EQUAL | NUMBER_EQUAL | PATTERN | RANGE;
}

const NODE_BITS: u32 = 30;

/// The key of a probe. Those of one constant are neighbours: a value hits them together.
#[inline]
pub fn probe_key(node: TrieNode, kind: ProbeKind, constant: u32) -> u64 {
    debug_assert!(node < 1 << NODE_BITS);
    constant_key(kind, constant) << NODE_BITS | u64::from(node)
}

/// The part of a [`probe_key`] that does not depend on the node.
#[inline]
pub fn constant_key(kind: ProbeKind, constant: u32) -> u64 {
    (kind as u64) << u32::BITS | u64::from(constant)
}

/// The trie node of a [`probe_key`], and its [`constant_key`].
#[inline]
pub fn parts_of_key(key: u64) -> (TrieNode, u64) {
    ((key & ((1 << NODE_BITS) - 1)) as TrieNode, key >> NODE_BITS)
}

/// Guards that are tested before a list of further ones is looked at.
pub const FIRST_GUARDS: usize = 2;
/// No guard.
pub const NO_GUARD: u32 = u32::MAX;
/// No list of further guards and anchors.
pub const NO_LIST: u32 = u32::MAX;

/// What a document must hit, besides the posting of a run, to satisfy any of its rows.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Guard {
    /// Postings; [`NO_POSTING`] asks nothing.
    pub first: [Posting; FIRST_GUARDS],
    /// Where the list of further postings and of anchors starts, or [`NO_LIST`].
    pub list: u32,
}

impl Guard {
    /// The guard that asks nothing.
    pub const NONE: Guard = Guard { first: [NO_POSTING; FIRST_GUARDS], list: NO_LIST };
}

/// What does not fit in a [`Guard`].
#[derive(Clone, Copy, Debug, Default)]
pub struct GuardList<'a> {
    /// Further postings that a document must hit.
    pub guards: &'a [Posting],
    /// Postings of the branches, those above first: if each leads to one node, guards and access predicate decide.
    pub anchors: &'a [Posting],
    /// Further postings that joins need the nodes of.
    pub places: &'a [Posting],
    /// The joins that decide in any case, see [`joins`]; empty if there are none.
    pub joins: &'a [u32],
}

impl<'a> GuardList<'a> {
    /// Numbers in front of a list: how many there are of the first three, and how many words of joins.
    pub const HEAD: usize = 4;

    #[inline]
    fn read(words: &'a [u32]) -> Option<GuardList<'a>> {
        let (head, rest) = words.split_first_chunk::<{ GuardList::HEAD }>()?;
        let (guards, rest) = rest.split_at_checked(head[0] as usize)?;
        let (anchors, rest) = rest.split_at_checked(head[1] as usize)?;
        let (places, rest) = rest.split_at_checked(head[2] as usize)?;
        Some(GuardList { guards, anchors, places, joins: rest.get(..head[3] as usize)? })
    }
}

/// Neighbouring rows of one signature.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Run {
    /// First row.
    pub row: u32,
    /// Number of rows, with [`Run::SHARED`] and [`Run::DECIDED`] on top.
    length: u32,
    /// Signature of the rows.
    pub signature: u32,
    /// Number of its [`Guard`], or [`NO_GUARD`].
    pub guard: u32,
}

impl Run {
    const SHARED: u32 = 1 << 31;
    const DECIDED: u32 = 1 << 30;
    const CONJUNCTIVE: u32 = 1 << 29;
    const MARKS: u32 = Run::SHARED | Run::DECIDED | Run::CONJUNCTIVE;
    /// Rows must be fewer than this.
    pub const MAX_ROWS: usize = 1 << 29;

    /// A run; `shared` if its rows stand in other postings too, `decided` if the access predicate decides alone,
    /// `conjunctive` if access predicate and guards together do so where all anchors are unique.
    pub fn new(row: u32, length: u32, signature: u32, shared: bool, decided: bool, conjunctive: bool) -> Run {
        let mark = |set: bool, mark: u32| if set { mark } else { 0 };
        let marks = mark(shared, Run::SHARED) | mark(decided, Run::DECIDED) | mark(conjunctive, Run::CONJUNCTIVE);
        Run { row, length: length | marks, signature, guard: NO_GUARD }
    }

    /// Its rows.
    #[inline]
    pub fn rows(&self) -> Range<u32> {
        self.row..self.row + (self.length & !Run::MARKS)
    }

    /// Whether its rows stand in other postings too.
    #[inline]
    pub fn is_shared(&self) -> bool {
        self.length & Run::SHARED != 0
    }

    /// Whether the access predicate decides alone.
    #[inline]
    pub fn is_decided(&self) -> bool {
        self.length & Run::DECIDED != 0
    }

    /// Whether the access predicate decides alone and leads to the rows alone.
    #[inline]
    pub fn is_settled(&self) -> bool {
        self.length & Run::MARKS == Run::DECIDED && self.guard == NO_GUARD
    }

    /// Whether access predicate and guards decide where all anchors are unique.
    #[inline]
    pub fn is_conjunctive(&self) -> bool {
        self.length & Run::CONJUNCTIVE != 0
    }

    /// Takes in a run that follows on this one and is reached and guarded alike; whether it is one.
    pub fn extend(&mut self, next: &Run) -> bool {
        let follows = self.signature == next.signature
            && self.rows().end == next.row
            && (self.length ^ next.length) & Run::MARKS == 0
            && self.guard == next.guard;
        if follows {
            self.length += next.length & !Run::MARKS;
        }
        follows
    }
}

/// A list of order comparisons at one trie node: entries `start..end`, ascending by constant.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct RangeList {
    /// Trie node.
    pub node: TrieNode,
    /// Operator as `value op constant`: number of [`CompareOp`].
    pub op: u32,
    /// First entry.
    pub start: u32,
    /// End of the entries.
    pub end: u32,
}

impl RangeList {
    /// The operator.
    pub fn operator(&self) -> CompareOp {
        [CompareOp::Less, CompareOp::LessEqual, CompareOp::Greater, CompareOp::GreaterEqual][self.op as usize]
    }

    /// The stored form of an order operator.
    ///
    /// # Panics
    /// For `=` and `!=`, which are no order operators.
    pub fn number(op: CompareOp) -> u32 {
        match op {
            CompareOp::Less => 0,
            CompareOp::LessEqual => 1,
            CompareOp::Greater => 2,
            CompareOp::GreaterEqual => 3,
            CompareOp::Equal | CompareOp::NotEqual => panic!("not an order operator"),
        }
    }

    /// Of two values seen, the one that satisfies more constants.
    #[inline]
    pub fn better(&self, a: f64, b: f64) -> f64 {
        if self.op < 2 { a.min(b) } else { a.max(b) }
    }
}

/// The predicate index of a segment, borrowed.
#[derive(Clone, Copy, Debug)]
pub struct PredicateIndex<'a> {
    /// For each trie node, the posting of rows for which its existence is enough to look, or [`NO_POSTING`].
    pub node_postings: &'a [Posting],
    /// For each trie node, its [`flags`].
    pub node_flags: &'a [u8],
    /// Distinct constants of number equalities, ascending.
    pub numbers: &'a [f64],
    /// Probe keys, ascending; the probe at `i` has the posting `i` after the existence postings.
    pub probes: &'a [u64],
    /// First run of each posting, one more at the end.
    pub posting_runs: &'a [u32],
    /// All runs.
    pub runs: &'a [Run],
    /// What guards runs.
    pub guards: &'a [Guard],
    /// Lists of further guards, anchors and joins, see [`GuardList`].
    pub anchors: &'a [Posting],
    /// Order comparisons, by trie node.
    pub ranges: &'a [RangeList],
    /// Their constants.
    pub range_values: &'a [f64],
    /// Their rows.
    pub range_runs: &'a [Run],
    /// Rows without access predicate.
    pub always_runs: &'a [Run],
}

impl<'a> PredicateIndex<'a> {
    /// Number of postings.
    pub fn posting_count(&self) -> usize {
        self.posting_runs.len() - 1
    }

    fn existence_count(&self) -> usize {
        self.posting_count() - self.probes.len()
    }

    /// The postings of a constant's probes, `constant` as of [`constant_key`], at some of the trie nodes; ascending if these are.
    pub fn probe(&self, nodes: &[TrieNode], constant: u64) -> impl Iterator<Item = Posting> {
        let start = self.probes.partition_point(|key| parts_of_key(*key).1 < constant);
        let count = self.probes[start..].partition_point(|key| parts_of_key(*key).1 == constant);
        let keys = &self.probes[start..start + count];
        let first = self.existence_count() + start;
        nodes.iter().filter_map(move |node| {
            let at = keys.binary_search_by_key(node, |key| parts_of_key(*key).0).ok()?;
            Some((first + at) as Posting)
        })
    }

    /// The number of an equality constant.
    pub fn number(&self, value: f64) -> Option<u32> {
        // -0 equals 0 and is stored as 0; NaN equals nothing and is stored nowhere.
        let value = value + 0.0;
        self.numbers.binary_search_by(|known| known.total_cmp(&value)).ok().map(|at| at as u32)
    }

    /// The numbers of the runs of a posting.
    #[inline]
    pub fn run_numbers(&self, posting: Posting) -> Range<u32> {
        self.posting_runs[posting as usize]..self.posting_runs[posting as usize + 1]
    }

    /// The runs of a posting.
    #[inline]
    pub fn runs(&self, posting: Posting) -> &'a [Run] {
        let numbers = self.run_numbers(posting);
        &self.runs[numbers.start as usize..numbers.end as usize]
    }

    /// What guards a run.
    #[inline]
    pub fn guard(&self, run: &Run) -> &'a Guard {
        self.guards.get(run.guard as usize).unwrap_or(&Guard::NONE)
    }

    /// A list of further guards, anchors and joins; empty for [`NO_LIST`].
    #[inline]
    pub fn list(&self, list: u32) -> GuardList<'a> {
        self.anchors.get(list as usize..).and_then(GuardList::read).unwrap_or_default()
    }

    /// Numbers of the range lists at a trie node.
    pub fn ranges_at(&self, node: TrieNode) -> Range<u32> {
        let start = self.ranges.partition_point(|list| list.node < node);
        let count = self.ranges[start..].iter().take_while(|list| list.node == node).count();
        start as u32..(start + count) as u32
    }

    /// The entries of a range list that a value satisfies.
    pub fn satisfied(&self, list: &RangeList, value: f64) -> &'a [Run] {
        let entries = list.start as usize..list.end as usize;
        let values = &self.range_values[entries.clone()];
        let runs = &self.range_runs[entries];
        match list.operator() {
            CompareOp::Less => &runs[values.partition_point(|constant| *constant <= value)..],
            CompareOp::LessEqual => &runs[values.partition_point(|constant| *constant < value)..],
            CompareOp::Greater => &runs[..values.partition_point(|constant| *constant < value)],
            _ => &runs[..values.partition_point(|constant| *constant <= value)],
        }
    }
}
