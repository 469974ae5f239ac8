//! The alternating automaton of a segment, in flat arrays.
//!
//! A *state* is a condition on one node of a document. Leaves are *edges* ("some child `a` satisfies state t"), value
//! tests and name tests; above them are conjunctions, disjunctions and negations at the same node. Equal conditions are
//! one state, whichever filters they come from. (Gupta & Suciu, "Stream Processing of XPath Queries with Predicates",
//! SIGMOD 2003, section 3: the AFA of a workload; edges stand for its labelled transitions.)

use crate::xpath::ast::CompareOp;
use crate::xpath::symbols::{NO_SYMBOL, Symbol};
use std::ops::Range;

/// Number of a state.
pub(super) type State = u32;

/// How an edge reaches the nodes that it looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Reach {
    /// Child elements.
    Child,
    /// Descendant elements.
    Descendant,
    /// Attributes.
    Attribute,
    /// Text node children.
    Text,
    /// Comment children.
    Comment,
    /// Processing instruction children.
    Instruction,
}

/// A test of a node's string-value. Inequalities are negations of equalities.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Test {
    /// It equals the string constant of this number.
    Equal(u32),
    /// It contains the string constant of this number, which is not empty.
    Contains(u32),
    /// It starts with the string constant of this number, which is not empty.
    StartsWith(u32),
    /// `number(value) op constant`, with any operator but `!=`; the constant is not NaN.
    Number(CompareOp, f64),
}

/// What a state above the leaves combines its operands by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(super) enum Connective {
    /// All operands; true without any.
    And,
    /// Some operand; false without any.
    Or,
    /// Not the only operand.
    Not,
}

/// Edges with one label, neighbours in number.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) reach: Reach,
    /// The name test, or [`NO_SYMBOL`] for any name.
    pub(super) symbol: Symbol,
    pub(super) edges: Range<State>,
}

/// Lists of numbers, one after the other.
#[derive(Debug, Default)]
pub(super) struct Lists {
    pub(super) starts: Vec<u32>,
    pub(super) members: Vec<u32>,
}

impl Lists {
    /// From (list, member) pairs, which are put in order.
    pub(super) fn of_pairs(count: usize, pairs: impl Iterator<Item = (u32, u32)> + Clone) -> Lists {
        let mut starts = vec![0u32; count + 1];
        for (list, _) in pairs.clone() {
            starts[list as usize + 1] += 1;
        }
        for at in 0..count {
            starts[at + 1] += starts[at];
        }
        let mut next = starts.clone();
        let mut members = vec![0; starts[count] as usize];
        for (list, member) in pairs {
            members[next[list as usize] as usize] = member;
            next[list as usize] += 1;
        }
        Lists { starts, members }
    }

    #[inline]
    pub(super) fn get(&self, list: u32) -> &[u32] {
        &self.members[self.starts[list as usize] as usize..self.starts[list as usize + 1] as usize]
    }

    fn memory_bytes(&self) -> usize {
        (self.starts.capacity() + self.members.capacity()) * 4
    }
}

/// The automaton: edges are numbered first, by label, then tests, name tests and the other states, operands first.
#[derive(Debug, Default)]
pub(super) struct Automaton {
    /// Labels, ascending by reach and symbol.
    pub(super) groups: Vec<Group>,
    /// The state that each edge asks for.
    pub(super) targets: Vec<State>,
    pub(super) tests: Vec<Test>,
    /// Name tests on the node itself (`self::a`).
    pub(super) names: Vec<Symbol>,
    pub(super) connectives: Vec<Connective>,
    /// Operands of the states above the leaves, by number above [`Self::first_inner`].
    pub(super) operands: Lists,
    /// The states that have a state as operand.
    pub(super) consumers: Lists,
    /// Of those, the ones that have to be looked at when a state is not as without leaves: a conjunction that is false
    /// without leaves watches one operand only, the one with the fewest consumers, since all have to change for it.
    pub(super) watchers: Lists,
    /// The edges that ask for a state.
    pub(super) in_edges: Lists,
    /// Truth of each state at a node where all leaves are false, 64 a word.
    pub(super) base: Vec<u64>,
    /// The states of whole filters, ascending, and their rows: number and, on top, [`INEXACT`].
    pub(super) roots: Vec<State>,
    pub(super) root_rows: Lists,
    /// Rows that are only approximated.
    pub(super) inexact_rows: u32,
    /// Of those, rows without any condition.
    pub(super) unfiltered_rows: u32,
}

/// Mark of a row whose state is only necessary: it is verified.
pub(super) const INEXACT: u32 = 1 << 31;

impl Automaton {
    pub(super) fn edge_count(&self) -> u32 {
        self.targets.len() as u32
    }

    pub(super) fn first_test(&self) -> State {
        self.edge_count()
    }

    pub(super) fn first_name(&self) -> State {
        self.first_test() + self.tests.len() as u32
    }

    pub(super) fn first_inner(&self) -> State {
        self.first_name() + self.names.len() as u32
    }

    pub(super) fn state_count(&self) -> u32 {
        self.first_inner() + self.connectives.len() as u32
    }

    /// The test of a state that is one.
    #[inline]
    pub(super) fn test(&self, state: State) -> Test {
        self.tests[(state - self.first_test()) as usize]
    }

    /// Connective and operands of a state above the leaves.
    #[inline]
    pub(super) fn inner(&self, state: State) -> Option<(Connective, &[State])> {
        let number = state.checked_sub(self.first_inner())?;
        Some((self.connectives[number as usize], self.operands.get(number)))
    }

    /// Whether a state is true where all leaves are false.
    #[inline]
    pub(super) fn base(&self, state: State) -> bool {
        self.base[state as usize / 64] >> (state % 64) & 1 == 1
    }

    /// The edges of a label.
    pub(super) fn edges(&self, reach: Reach, symbol: Symbol) -> Range<State> {
        let at = self.groups.binary_search_by_key(&(reach, symbol), |group| (group.reach, group.symbol));
        at.map_or(0..0, |at| self.groups[at].edges.clone())
    }

    /// The edges of a reach, whatever the label.
    pub(super) fn edges_by(&self, reach: Reach) -> Range<State> {
        let start = self.groups.partition_point(|group| group.reach < reach);
        let end = self.groups.partition_point(|group| group.reach <= reach);
        if start == end { 0..0 } else { self.groups[start].edges.start..self.groups[end - 1].edges.end }
    }

    /// The label of an edge.
    pub(super) fn label(&self, edge: State) -> (Reach, Symbol) {
        let at = self.groups.partition_point(|group| group.edges.end <= edge);
        (self.groups[at].reach, self.groups[at].symbol)
    }

    /// Rows of a filter's state, none if it is not one.
    pub(super) fn rows(&self, state: State) -> &[u32] {
        self.roots.binary_search(&state).map_or(&[], |at| self.root_rows.get(at as u32))
    }

    /// Bytes in use.
    pub(super) fn memory_bytes(&self) -> usize {
        let lists = [&self.operands, &self.consumers, &self.watchers, &self.in_edges, &self.root_rows];
        lists.iter().map(|list| list.memory_bytes()).sum::<usize>()
            + self.groups.capacity() * size_of::<Group>()
            + self.targets.capacity() * 4
            + self.tests.capacity() * size_of::<Test>()
            + self.names.capacity() * 4
            + self.connectives.capacity()
            + self.base.capacity() * 8
            + self.roots.capacity() * 4
    }
}

/// The labels that a node passes: by any name, and by up to three name tests.
pub(super) fn labels(tests: [Symbol; 3]) -> impl Iterator<Item = Symbol> {
    std::iter::once(NO_SYMBOL).chain(tests.into_iter().filter(|symbol| *symbol != NO_SYMBOL))
}
