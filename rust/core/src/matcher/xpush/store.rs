//! The lazily made machine: states and transitions, each made when a document first needs it.
//!
//! A state is the set of edges already known to be true at an open node. All of it is bounded in bytes: when it is full,
//! everything is forgotten except what the open nodes stand on.

use super::automaton::{Automaton, State};
use super::down::{DEAD, Down, DownId, DownMaker, Input, NO_VALUES, TOP, UNKNOWN};
use super::order::SymbolOrder;
use super::sets::{EMPTY, SetId, Sets};
use super::values::{ValueClass, ValueIndex};
use crate::index::{Segment, View};
use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashTable};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hash::BuildHasher;

/// Number of a value state; [`NO_VALUE`] where no test matters.
pub(super) type ValueId = u32;
/// The value state of nodes whose value nothing asks for.
pub(super) const NO_VALUE: ValueId = 0;

type Map<K, V> = HashMap<K, V, FixedState>;

/// What a node that ends makes true in its parent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Popped {
    /// Edges that the parent's state takes in.
    pub(super) kept: SetId,
    /// Edges that make whole filters true.
    pub(super) early: SetId,
}

/// Number of a path in one store; [`DEAD`] and [`TOP`] are as for top-down states.
pub(super) type PathId = u32;

/// Where in a document a node is: a path of classes from the document node. It says what is wanted there, and what its
/// ancestors want, which the top-down state alone does not.
#[derive(Debug)]
pub(super) struct Path {
    down: DownId,
    pub(super) parent: PathId,
    /// The next paths, by class of input.
    next: Vec<PathId>,
}

/// An open node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    /// Where it is.
    pub(super) path: PathId,
    /// The edges true at it so far, but for those of the children that wait.
    pub(super) state: SetId,
    /// Where its children that wait begin.
    pub(super) children: u32,
    /// The node.
    pub(super) node: u32,
    /// The last node inside.
    pub(super) last: u32,
}

/// What the transitions need besides themselves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts<'a> {
    pub(super) automaton: &'a Automaton,
    pub(super) segment: &'a Segment,
    pub(super) view: View<'a>,
    pub(super) order: Option<&'a SymbolOrder>,
}

/// Counts of one store.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) lookups: u64,
    pub(super) misses: u64,
    pub(super) clears: u64,
}

/// The store of one worker for one segment.
#[derive(Debug)]
pub(super) struct Store {
    top_down: bool,
    early: bool,
    capacity_bytes: usize,
    /// Bytes at which it is cleared: the capacity, or more where the open nodes alone need that.
    limit_bytes: usize,
    /// The states.
    pub(super) sets: Sets,
    /// Other sets: edges on their way to a report, rows reported, tests passed.
    pub(super) side: Sets,
    pub(super) downs: Vec<Down>,
    down_numbers: HashTable<DownId>,
    /// Name tests of each top-down state's nodes, told apart only if the automaton asks for names.
    down_tests: Vec<[u32; 3]>,
    pub(super) paths: Vec<Path>,
    classes: Map<Input, u32>,
    inputs: Vec<Input>,
    pub(super) indexes: Vec<ValueIndex>,
    index_numbers: HashTable<u32>,
    value_numbers: Map<(u32, ValueClass), ValueId>,
    pub(super) values: Vec<(u32, ValueClass)>,
    pub(super) pops: Map<(SetId, ValueId, DownId), Popped>,
    /// States that were united, and what came of it: that of the empty set, which is never asked for, stands first.
    pub(super) unions: Sets,
    pub(super) sums: Vec<SetId>,
    pub(super) tops: Map<(SetId, ValueId), SetId>,
    pub(super) reports: Map<(PathId, SetId), SetId>,
    /// Bytes of top-down states and value indexes.
    part_bytes: usize,
    transitions: usize,
    maker: DownMaker,
    pub(super) scratch: Scratch,
    hasher: FixedState,
    pub(super) counts: Counts,
}

/// Memory for making transitions.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// States whose truth is not their base truth, marked with the number of the run.
    pub(super) flipped: Vec<u32>,
    pub(super) queued: Vec<u32>,
    pub(super) run: u32,
    pub(super) list: Vec<State>,
    pub(super) queue: BinaryHeap<Reverse<State>>,
    pub(super) edges: Vec<State>,
    pub(super) other: Vec<State>,
    pub(super) key: Vec<SetId>,
}

/// What an entry of a transition table costs, about.
const TRANSITION_BYTES: usize = 32;

impl Store {
    pub(super) fn new(top_down: bool, early: bool, capacity_bytes: usize, parts: Parts<'_>) -> Store {
        let count = parts.automaton.state_count() as usize;
        let scratch = Scratch { flipped: vec![0; count], queued: vec![0; count], ..Scratch::default() };
        let mut store = Store {
            top_down,
            early: early && top_down,
            capacity_bytes,
            limit_bytes: capacity_bytes,
            sets: Sets::default(),
            side: Sets::default(),
            downs: Vec::new(),
            down_numbers: HashTable::new(),
            down_tests: Vec::new(),
            paths: Vec::new(),
            classes: Map::default(),
            inputs: Vec::new(),
            indexes: Vec::new(),
            index_numbers: HashTable::new(),
            value_numbers: Map::default(),
            values: vec![(NO_VALUES, ValueClass::NONE)],
            pops: Map::default(),
            unions: Sets::default(),
            sums: vec![EMPTY],
            tops: Map::default(),
            reports: Map::default(),
            part_bytes: 0,
            transitions: 0,
            maker: DownMaker::default(),
            scratch,
            hasher: FixedState::default(),
            counts: Counts::default(),
        };
        let dead = Down {
            entries: Box::default(),
            wanted: Box::default(),
            defaults: Box::default(),
            names: Box::default(),
            values: NO_VALUES,
            next: Vec::new(),
        };
        store.push_down(dead, [0; 3]);
        let top = store.maker.top(parts.automaton, store.early);
        let top = store.with_values(top, parts);
        store.push_down(top, [0; 3]);
        store.push_path(DEAD, DEAD);
        store.push_path(TOP, DEAD);
        store
    }

    /// Bytes in use, about.
    pub(super) fn memory_bytes(&self) -> usize {
        self.sets.memory_bytes()
            + self.side.memory_bytes()
            + self.unions.memory_bytes()
            + self.part_bytes
            + self.transitions * TRANSITION_BYTES
            + self.values.len() * 3 * size_of::<(u32, ValueClass)>()
            + self.inputs.len() * 2 * size_of::<Input>()
    }

    /// Bytes that do not count towards the capacity: memory for making transitions.
    pub(super) fn scratch_bytes(&self) -> usize {
        (self.scratch.flipped.len() + self.scratch.queued.len()) * 4
    }

    /// Number of transitions.
    pub(super) fn transition_count(&self) -> usize {
        self.transitions
    }

    /// Number of top-down states.
    pub(super) fn down_count(&self) -> usize {
        self.downs.len()
    }

    /// Number of value states.
    pub(super) fn value_count(&self) -> usize {
        self.values.len() - 1
    }

    /// Whether it holds more than it may; the caller then calls [`Self::clear`].
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.memory_bytes() > self.limit_bytes
    }

    /// The class of a kind of nodes.
    pub(super) fn class(&mut self, input: Input) -> u32 {
        *self.classes.entry(input).or_insert_with(|| {
            self.inputs.push(input);
            (self.inputs.len() - 1) as u32
        })
    }

    #[inline]
    pub(super) fn count(&mut self, hit: bool) {
        self.counts.lookups += 1;
        self.counts.misses += u64::from(!hit);
        self.transitions += usize::from(!hit);
    }

    fn push_path(&mut self, down: DownId, parent: PathId) -> PathId {
        self.paths.push(Path { down, parent, next: Vec::new() });
        self.part_bytes += size_of::<Path>();
        (self.paths.len() - 1) as PathId
    }

    /// What is wanted at the nodes of a path.
    #[inline]
    pub(super) fn down(&self, path: PathId) -> DownId {
        self.paths[path as usize].down
    }

    /// The path to a child of this class; [`DEAD`] if nothing is wanted there or below.
    #[inline]
    pub(super) fn step(&mut self, path: PathId, class: u32, parts: Parts<'_>) -> PathId {
        let from = if self.top_down { path } else { TOP };
        self.counts.lookups += 1;
        match self.paths[from as usize].next.get(class as usize) {
            Some(next) if *next != UNKNOWN => *next,
            _ => self.make_path(from, class, parts),
        }
    }

    #[cold]
    fn make_path(&mut self, from: PathId, class: u32, parts: Parts<'_>) -> PathId {
        self.counts.misses += 1;
        let down = self.down(from);
        let next = match self.downs[down as usize].next.get(class as usize) {
            Some(next) if *next != UNKNOWN => *next,
            _ => self.make_step(down, class, parts),
        };
        let path = if next == DEAD { DEAD } else { self.push_path(next, from) };
        self.part_bytes += set(&mut self.paths[from as usize].next, class, path);
        path
    }

    fn make_step(&mut self, from: DownId, class: u32, parts: Parts<'_>) -> DownId {
        let input = self.inputs[class as usize];
        let wanted = self.top_down.then(|| &*self.downs[from as usize].wanted);
        let entries = self.maker.enter(parts.automaton, wanted, &input);
        let tests = if parts.automaton.names.is_empty() { [0; 3] } else { input.tests };
        let hash = self.hasher.hash_one((entries, tests));
        let (downs, down_tests) = (&self.downs, &self.down_tests);
        let same = |id: &DownId| *downs[*id as usize].entries == *entries && down_tests[*id as usize] == tests;
        let next = if entries.is_empty() {
            DEAD
        } else if let Some(known) = self.down_numbers.find(hash, same) {
            *known
        } else {
            let down = self.maker.state(parts.automaton, &input);
            let down = self.with_values(down, parts);
            self.push_down(down, tests)
        };
        self.part_bytes += set(&mut self.downs[from as usize].next, class, next);
        next
    }

    /// Gives a new top-down state the index of the tests that [`DownMaker`] found to matter at it.
    fn with_values(&mut self, mut down: Down, parts: Parts<'_>) -> Down {
        if !self.top_down {
            down.wanted = Box::default();
        }
        let tests = &self.maker.tests;
        if tests.is_empty() {
            return down;
        }
        let hash = self.hasher.hash_one(&tests[..]);
        let indexes = &self.indexes;
        let known = self.index_numbers.find(hash, |number| *indexes[*number as usize].tests == tests[..]).copied();
        down.values = match known {
            Some(number) => number,
            None => {
                let index = ValueIndex::new(tests, parts.automaton, parts.segment.strings());
                self.push_index(index)
            }
        };
        down
    }

    fn push_index(&mut self, index: ValueIndex) -> u32 {
        let number = self.indexes.len() as u32;
        self.part_bytes += index.memory_bytes();
        let hash = self.hasher.hash_one(&index.tests[..]);
        self.indexes.push(index);
        let (indexes, hasher) = (&self.indexes, &self.hasher);
        self.index_numbers.insert_unique(hash, number, |at| hasher.hash_one(&indexes[*at as usize].tests[..]));
        number
    }

    fn push_down(&mut self, down: Down, tests: [u32; 3]) -> DownId {
        let id = self.downs.len() as DownId;
        self.part_bytes += down.memory_bytes() + 16;
        let hash = self.hasher.hash_one((&down.entries[..], tests));
        self.downs.push(down);
        self.down_tests.push(tests);
        if id > TOP {
            let (downs, tests, hasher) = (&self.downs, &self.down_tests, &self.hasher);
            self.down_numbers
                .insert_unique(hash, id, |at| hasher.hash_one((&downs[*at as usize].entries[..], tests[*at as usize])));
        }
        id
    }

    /// The tests that matter at a top-down state.
    pub(super) fn tests_at(&self, down: DownId) -> &[State] {
        self.indexes.get(self.downs[down as usize].values as usize).map_or(&[], |index| &index.tests)
    }

    /// Whether any value matters at a top-down state.
    #[inline]
    pub(super) fn asks_values(&self, down: DownId) -> bool {
        self.downs[down as usize].values != NO_VALUES
    }

    /// The value state of a node's string-value.
    pub(super) fn value(&mut self, down: DownId, value: &str, parts: Parts<'_>) -> ValueId {
        let number = self.downs[down as usize].values;
        if number == NO_VALUES {
            return NO_VALUE;
        }
        let index = &mut self.indexes[number as usize];
        let values = &mut self.values;
        let mut make = |class| {
            values.push((number, class));
            (values.len() - 1) as ValueId
        };
        if let Some((known, class)) = index.kept(value, &parts.view) {
            return *known.get_or_insert_with(|| make(class));
        }
        let class = index.class(value, &parts.view, parts.segment.strings(), &mut self.side);
        *self.value_numbers.entry((number, class)).or_insert_with(|| make(class))
    }

    /// Forgets everything but what the open nodes stand on, which gets new numbers in place.
    pub(super) fn clear(&mut self, frames: &mut [Frame], children: &mut [SetId]) {
        let sets = std::mem::take(&mut self.sets);
        self.side = Sets::default();
        let mut downs: Vec<Option<Down>> = std::mem::take(&mut self.downs).into_iter().map(Some).collect();
        let tests = std::mem::take(&mut self.down_tests);
        let mut indexes: Vec<Option<ValueIndex>> = std::mem::take(&mut self.indexes).into_iter().map(Some).collect();
        self.down_numbers.clear();
        self.index_numbers.clear();
        self.value_numbers = Map::default();
        self.values.truncate(1);
        self.pops = Map::default();
        self.unions = Sets::default();
        self.sums.truncate(1);
        self.tops = Map::default();
        self.reports = Map::default();
        self.part_bytes = 0;
        self.transitions = 0;
        self.counts.clears += 1;

        let mut index_numbers: Map<u32, u32> = Map::default();
        let mut down_numbers: Map<DownId, DownId> = Map::default();
        let paths = std::mem::take(&mut self.paths);
        let open = frames.iter().map(|frame| paths[frame.path as usize].down);
        for old in [DEAD, TOP].into_iter().chain(open) {
            let Some(mut down) = downs[old as usize].take() else { continue };
            down.next = Vec::new();
            if let Some(index) = indexes.get_mut(down.values as usize) {
                if let Some(mut index) = index.take() {
                    index.forget();
                    index_numbers.insert(down.values, self.push_index(index));
                }
                down.values = index_numbers[&down.values];
            }
            let new = self.push_down(down, tests[old as usize]);
            down_numbers.insert(old, new);
        }
        self.push_path(DEAD, DEAD);
        let mut path = self.push_path(TOP, DEAD);
        for frame in frames {
            // The first open node is the document node.
            if frame.path != TOP {
                let down = down_numbers[&paths[frame.path as usize].down];
                path = self.push_path(down, if self.top_down { path } else { TOP });
            }
            frame.path = path;
            frame.state = self.sets.intern(sets.get(frame.state));
        }
        for child in children {
            *child = self.sets.intern(sets.get(*child));
        }
        self.limit_bytes = self.capacity_bytes.max(2 * self.memory_bytes());
    }
}

/// Sets an entry of a list that grows as needed; returns by how many bytes it grew.
fn set(list: &mut Vec<u32>, at: u32, to: u32) -> usize {
    let before = list.capacity();
    if list.len() <= at as usize {
        list.resize(at as usize + 1, UNKNOWN);
    }
    list[at as usize] = to;
    (list.capacity() - before) * 4
}
