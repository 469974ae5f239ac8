//! What is wanted at a node: the states of the top-down automaton.
//!
//! Of a node it says which edges of its parent it may make true (the *entries*), which edges are wanted at the node
//! itself, and which value tests matter there. With top-down pruning that follows from the path from the document node;
//! without, from the node's own name. (Gupta & Suciu, section 5: top-down pruning.)

use super::automaton::{Automaton, Reach, State, labels};
use crate::xpath::symbols::{NO_SYMBOL, Symbol};

/// Number of a top-down state in one store.
pub(super) type DownId = u32;
/// Nothing is wanted at the node or anywhere below.
pub(super) const DEAD: DownId = 0;
/// The document node.
pub(super) const TOP: DownId = 1;
/// A transition that was not taken yet.
pub(super) const UNKNOWN: DownId = u32::MAX;

/// Flags of entries and wanted edges.
pub(super) mod flags {
    /// The node's name is the edge's: its target is looked at here. Otherwise a descendant edge passes through.
    pub(in super::super) const MATCHED: u32 = 1;
    /// The edge alone makes a whole filter true.
    pub(in super::super) const SPINE: u32 = 2;
    /// The edge is wanted for something else.
    pub(in super::super) const PLAIN: u32 = 4;
    /// Bits that the flags take.
    pub(in super::super) const BITS: u32 = 3;
}

use flags::{BITS, MATCHED, PLAIN, SPINE};

/// An edge with flags.
pub(super) type Flagged = u32;

/// The edge of a flagged one.
#[inline]
pub(super) fn edge_of(flagged: Flagged) -> State {
    flagged >> BITS
}

/// A kind of nodes with the name tests that they pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Input {
    /// [`Reach::Child`] for elements; otherwise the reach that leads to such nodes.
    pub(super) kind: Reach,
    pub(super) tests: [Symbol; 3],
}

/// One state.
#[derive(Debug)]
pub(super) struct Down {
    /// Edges of the parent, ascending.
    pub(super) entries: Box<[Flagged]>,
    /// Edges of the node, ascending; empty without top-down pruning.
    pub(super) wanted: Box<[Flagged]>,
    /// Entries that are true unless something at the node makes them false.
    pub(super) defaults: Box<[Flagged]>,
    /// Name tests that the node passes, as states.
    pub(super) names: Box<[State]>,
    /// Number of the index of the tests that matter, or [`NO_VALUES`].
    pub(super) values: u32,
    /// The next states, by class of input.
    pub(super) next: Vec<DownId>,
}

/// No value test matters.
pub(super) const NO_VALUES: u32 = u32::MAX;

impl Down {
    /// The entry of an edge.
    #[inline]
    pub(super) fn entry(&self, edge: State) -> Option<Flagged> {
        let at = self.entries.partition_point(|entry| edge_of(*entry) < edge);
        self.entries.get(at).copied().filter(|entry| edge_of(*entry) == edge)
    }

    /// Bytes in use.
    pub(super) fn memory_bytes(&self) -> usize {
        let lists = [&self.entries, &self.wanted, &self.defaults, &self.names];
        size_of::<Down>() + lists.iter().map(|list| list.len() * 4).sum::<usize>() + self.next.capacity() * 4
    }
}

/// Makes states; what it keeps is memory only.
#[derive(Debug, Default)]
pub(super) struct DownMaker {
    reached: Vec<u8>,
    touched: Vec<State>,
    stack: Vec<(State, u32)>,
    entries: Vec<Flagged>,
    /// Tests that matter at the state made last, ascending.
    pub(super) tests: Vec<State>,
}

impl DownMaker {
    /// The state of the document node; `early` tells edges that decide filters from others.
    pub(super) fn top(&mut self, automaton: &Automaton, early: bool) -> Down {
        let flag = if early { SPINE } else { PLAIN };
        for root in &automaton.roots {
            self.stack.push((*root, flag));
        }
        self.entries.clear();
        self.finish(automaton, &[])
    }

    /// The entries of a node below one where `wanted` edges are, or, with `None`, of any node of this input; left in
    /// [`Self::entries`].
    pub(super) fn enter(&mut self, automaton: &Automaton, wanted: Option<&[Flagged]>, input: &Input) -> &[Flagged] {
        self.entries.clear();
        for symbol in labels(input.tests) {
            let edges = automaton.edges(input.kind, symbol);
            match wanted {
                None => self.entries.extend(edges.map(|edge| edge << BITS | MATCHED | PLAIN)),
                Some(wanted) => {
                    let start = wanted.partition_point(|flagged| edge_of(*flagged) < edges.start);
                    let end = wanted.partition_point(|flagged| edge_of(*flagged) < edges.end);
                    self.entries.extend(wanted[start..end].iter().map(|flagged| flagged | MATCHED));
                }
            }
        }
        if input.kind == Reach::Child {
            let all = automaton.edges_by(Reach::Descendant);
            let mut matching = [0..0, 0..0, 0..0, 0..0];
            for (place, symbol) in matching.iter_mut().zip(labels(input.tests)) {
                *place = automaton.edges(Reach::Descendant, symbol);
            }
            let matched = |edge: State| u32::from(matching.iter().any(|range| range.contains(&edge))) * MATCHED;
            match wanted {
                None => self.entries.extend(all.map(|edge| edge << BITS | PLAIN | matched(edge))),
                Some(wanted) => {
                    let start = wanted.partition_point(|flagged| edge_of(*flagged) < all.start);
                    let end = wanted.partition_point(|flagged| edge_of(*flagged) < all.end);
                    self.entries.extend(wanted[start..end].iter().map(|flagged| flagged | matched(edge_of(*flagged))));
                }
            }
        }
        self.entries.sort_unstable();
        &self.entries
    }

    /// The state whose entries [`Self::enter`] has just found.
    pub(super) fn state(&mut self, automaton: &Automaton, input: &Input) -> Down {
        for entry in &self.entries {
            if entry & MATCHED != 0 {
                self.stack.push((automaton.targets[edge_of(*entry) as usize], entry & (SPINE | PLAIN)));
            }
        }
        self.finish(automaton, &input.tests)
    }

    /// Follows what is wanted through the states at the node.
    fn finish(&mut self, automaton: &Automaton, own_names: &[Symbol]) -> Down {
        self.reached.resize(automaton.state_count() as usize, 0);
        self.tests.clear();
        let (mut wanted, mut names) = (Vec::new(), Vec::new());
        while let Some((state, flag)) = self.stack.pop() {
            let known = &mut self.reached[state as usize];
            if u32::from(*known) & flag == flag {
                continue;
            }
            if *known == 0 {
                self.touched.push(state);
            }
            *known |= flag as u8;
            if let Some((_, operands)) = automaton.inner(state) {
                self.stack.extend(operands.iter().map(|operand| (*operand, PLAIN)));
            }
        }
        for state in self.touched.drain(..) {
            let flag = u32::from(std::mem::take(&mut self.reached[state as usize]));
            if state < automaton.first_test() {
                wanted.push(state << BITS | flag);
            } else if state < automaton.first_name() {
                self.tests.push(state);
            } else if state < automaton.first_inner() {
                let symbol = automaton.names[(state - automaton.first_name()) as usize];
                if symbol != NO_SYMBOL && own_names.contains(&symbol) {
                    names.push(state);
                }
            }
        }
        self.tests.sort_unstable();
        // What passes through here is wanted here.
        let through = automaton.edges_by(Reach::Descendant);
        wanted.extend(self.entries.iter().filter(|entry| through.contains(&edge_of(**entry))).map(|e| e & !MATCHED));
        wanted.sort_unstable();
        wanted.dedup_by(|next, kept| {
            let same = edge_of(*next) == edge_of(*kept);
            if same {
                *kept |= *next & (SPINE | PLAIN);
            }
            same
        });
        let defaults = self
            .entries
            .iter()
            .copied()
            .filter(|entry| entry & MATCHED != 0 && automaton.base(automaton.targets[edge_of(*entry) as usize]));
        Down {
            defaults: defaults.collect(),
            entries: self.entries.as_slice().into(),
            wanted: wanted.into(),
            names: names.into(),
            values: NO_VALUES,
            next: Vec::new(),
        }
    }
}
