//! The lazy DFA: states are sets of trie nodes, made when a document first leads there.
//!
//! The automaton is immutable and shared; the cache belongs to one worker at a time. It is bounded in bytes: when it
//! is full, everything is forgotten except the states of the elements that are open, which are made again at once.

use super::linear::{Edge, EdgeKind};
use super::trie::{Trie, TrieNode};
use crate::xpath::symbols::{DocumentSymbols, NO_SYMBOL, Symbol};
use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashTable};
use std::hash::BuildHasher;

/// Number of a DFA state in one cache.
pub type StateId = u32;
/// Number of a class of input symbols: names that pass the same tests.
pub type Class = u32;

/// The state without any trie node: nothing below can lead anywhere.
pub const DEAD: StateId = 0;
/// No state or class has this number.
const UNKNOWN: u32 = u32::MAX;

/// A class of inputs, spelled out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Input {
    kind: EdgeKind,
    expanded: Symbol,
    local: Symbol,
    namespace: Symbol,
}

/// One state.
#[derive(Debug, Default)]
struct State {
    nodes: Box<[TrieNode]>,
    next: Vec<StateId>,
}

/// The states found so far, and what the matcher attached to each.
#[derive(Debug)]
pub struct PathCache<T> {
    states: Vec<State>,
    attached: Vec<T>,
    by_nodes: HashTable<StateId>,
    classes: HashMap<Input, Class, FixedState>,
    /// The classes, as elements and as attributes, of names that pass no test but one of an expanded name, by
    /// [`plain`].
    plain: Vec<[Class; 2]>,
    inputs: Vec<Input>,
    scratch: Vec<TrieNode>,
    hasher: FixedState,
    bytes: usize,
    capacity_bytes: usize,
    /// Bytes at which it is full: the capacity, or more where the open elements alone need that.
    limit_bytes: usize,
    clear_count: u64,
}

impl<T> PathCache<T> {
    /// An empty cache that may use about `capacity_bytes`; the open elements of a document always fit.
    pub fn new(capacity_bytes: usize) -> Self {
        PathCache {
            states: Vec::new(),
            attached: Vec::new(),
            by_nodes: HashTable::new(),
            classes: HashMap::default(),
            plain: Vec::new(),
            inputs: Vec::new(),
            scratch: Vec::new(),
            hasher: FixedState::default(),
            bytes: 0,
            capacity_bytes,
            limit_bytes: capacity_bytes,
            clear_count: 0,
        }
    }

    /// Number of states.
    pub fn state_count(&self) -> usize {
        self.states.len()
    }

    /// How often the cache was full and forgot its states.
    pub fn clear_count(&self) -> u64 {
        self.clear_count
    }

    /// Approximate bytes in use.
    pub fn memory_bytes(&self) -> usize {
        self.bytes
    }

    /// Whether the cache is over its capacity; the caller then calls [`Self::clear`], and
    /// [`Self::make_room`] if states are kept.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.bytes > self.limit_bytes
    }

    /// After a clearing: what is left may take all of the capacity, and there has to be room for more, or the next
    /// state would clear the cache again.
    pub fn make_room(&mut self) {
        self.limit_bytes = self.capacity_bytes.max(2 * self.bytes);
    }

    /// Counts bytes that the matcher keeps per state.
    pub fn charge(&mut self, bytes: usize) {
        self.bytes += bytes;
    }

    /// What the matcher attached to a state.
    #[inline]
    pub fn attached(&mut self, state: StateId) -> &mut T {
        &mut self.attached[state as usize]
    }

    /// The class of an element or attribute name that passes these tests, and of text nodes.
    pub fn class(&mut self, kind: EdgeKind, expanded: Symbol, local: Symbol, namespace: Symbol) -> Class {
        let input = Input { kind, expanded, local, namespace };
        if let Some(class) = self.classes.get(&input) {
            return *class;
        }
        let class = self.inputs.len() as Class;
        self.inputs.push(input);
        self.classes.insert(input, class);
        self.bytes += 2 * size_of::<Input>() + 8;
        class
    }

    /// The classes of a document's names, as elements and as attributes, by the number of the name.
    pub fn classify(&mut self, symbols: &DocumentSymbols, elements: &mut Vec<Class>, attributes: &mut Vec<Class>) {
        elements.clear();
        attributes.clear();
        for name in 0..symbols.expanded.len() {
            let (expanded, local, namespace) = (symbols.expanded[name], symbols.local[name], symbols.namespace[name]);
            let is_plain = (local, namespace) == (NO_SYMBOL, NO_SYMBOL);
            let known = self.plain.get(plain(expanded)).filter(|known| is_plain && **known != [UNKNOWN; 2]);
            let [element, attribute] = match known {
                Some(known) => *known,
                None => self.both_classes(expanded, local, namespace),
            };
            elements.push(element);
            attributes.push(attribute);
        }
    }

    #[cold]
    fn both_classes(&mut self, expanded: Symbol, local: Symbol, namespace: Symbol) -> [Class; 2] {
        let kinds = [EdgeKind::Element, EdgeKind::Attribute];
        let both = kinds.map(|kind| self.class(kind, expanded, local, namespace));
        if (local, namespace) == (NO_SYMBOL, NO_SYMBOL) {
            let at = plain(expanded);
            if self.plain.len() <= at {
                self.bytes += (at + 1 - self.plain.len()) * size_of::<[Class; 2]>();
                self.plain.resize(at + 1, [UNKNOWN; 2]);
            }
            self.plain[at] = both;
        }
        both
    }

    /// The class of text nodes.
    pub fn text_class(&mut self) -> Class {
        self.class(EdgeKind::Text, NO_SYMBOL, NO_SYMBOL, NO_SYMBOL)
    }

    /// The state of the document node.
    pub fn start(&mut self, trie: &Trie<'_>, attach: &mut impl FnMut(&[TrieNode]) -> T) -> StateId {
        if self.states.is_empty() {
            self.state(attach); // the empty set: DEAD
        }
        self.scratch.clear();
        if !trie.is_empty() {
            self.scratch.push(0);
            close(trie, &mut self.scratch);
        }
        self.state(attach)
    }

    /// The state after one more input; `attach` makes the matcher's part of a new state from its trie nodes.
    #[inline]
    pub fn step(
        &mut self,
        trie: &Trie<'_>,
        state: StateId,
        class: Class,
        attach: &mut impl FnMut(&[TrieNode]) -> T,
    ) -> StateId {
        match self.states[state as usize].next.get(class as usize) {
            Some(next) if *next != UNKNOWN => *next,
            _ => self.make(trie, state, class, attach),
        }
    }

    #[cold]
    fn make(
        &mut self,
        trie: &Trie<'_>,
        state: StateId,
        class: Class,
        attach: &mut impl FnMut(&[TrieNode]) -> T,
    ) -> StateId {
        let input = self.inputs[class as usize];
        let mut tests = [Edge::TEXT; 4];
        let mut count = 1;
        if input.kind != EdgeKind::Text {
            tests[0] = Edge::new(input.kind, None);
            for symbol in [input.expanded, input.local, input.namespace] {
                if symbol != NO_SYMBOL {
                    tests[count] = Edge::new(input.kind, Some(symbol));
                    count += 1;
                }
            }
        }
        self.scratch.clear();
        for node in &self.states[state as usize].nodes {
            if input.kind == EdgeKind::Element && trie.is_gap(*node) {
                self.scratch.push(*node);
            }
            for test in &tests[..count] {
                self.scratch.extend(trie.follow(*node, *test));
            }
        }
        if input.kind == EdgeKind::Element {
            close(trie, &mut self.scratch);
        } else {
            self.scratch.sort_unstable();
        }
        let target = self.state(attach);
        let next = &mut self.states[state as usize].next;
        if next.len() <= class as usize {
            let before = next.capacity();
            next.resize(class as usize + 1, UNKNOWN);
            self.bytes += (next.capacity() - before) * size_of::<StateId>();
        }
        next[class as usize] = target;
        target
    }

    /// The state whose nodes are in `scratch`, made if new.
    fn state(&mut self, attach: &mut impl FnMut(&[TrieNode]) -> T) -> StateId {
        let hash = self.hasher.hash_one(&self.scratch[..]);
        let (states, scratch) = (&self.states, &self.scratch);
        if let Some(id) = self.by_nodes.find(hash, |id| *states[*id as usize].nodes == scratch[..]) {
            return *id;
        }
        let id = self.states.len() as StateId;
        self.bytes += size_of::<State>() + size_of::<T>() + 16 + self.scratch.len() * size_of::<TrieNode>();
        self.states.push(State { nodes: self.scratch.as_slice().into(), next: Vec::new() });
        self.attached.push(attach(&self.scratch));
        let (states, hasher) = (&self.states, &self.hasher);
        self.by_nodes.insert_unique(hash, id, |id| hasher.hash_one(&states[*id as usize].nodes[..]));
        id
    }

    /// Forgets all states but the given ones (the open elements), which get new numbers in place.
    pub fn clear(&mut self, open: &mut [StateId], attach: &mut impl FnMut(&[TrieNode]) -> T) {
        let kept: Vec<Box<[TrieNode]>> =
            open.iter().map(|id| std::mem::take(&mut self.states[*id as usize].nodes)).collect();
        // The same state may be open at several depths: its nodes were taken at its first occurrence.
        let mut first: HashMap<StateId, usize, FixedState> = HashMap::default();
        let order: Vec<usize> = open.iter().enumerate().map(|(at, id)| *first.entry(*id).or_insert(at)).collect();
        self.states.clear();
        self.attached.clear();
        self.by_nodes.clear();
        self.bytes = self.inputs.len() * (2 * size_of::<Input>() + 8) + self.plain.len() * size_of::<[Class; 2]>();
        self.clear_count += 1;
        self.scratch.clear();
        self.state(attach); // DEAD
        for (at, id) in open.iter_mut().enumerate() {
            self.scratch.clear();
            self.scratch.extend_from_slice(&kept[order[at]]);
            *id = self.state(attach);
        }
    }
}

/// The place of a test of an expanded name; 0 is that of names without one.
fn plain(expanded: Symbol) -> usize {
    expanded.wrapping_add(1) as usize
}

/// Adds the gap nodes reachable without input and puts the set in order.
fn close(trie: &Trie<'_>, nodes: &mut Vec<TrieNode>) {
    for at in 0..nodes.len() {
        nodes.extend(trie.follow(nodes[at], Edge::GAP));
    }
    nodes.sort_unstable();
    nodes.dedup();
}
