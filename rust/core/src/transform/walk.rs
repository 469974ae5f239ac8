//! The shared path matcher of a population of plans: one walk over a document finds the nodes of all paths.
//!
//! A node is noted with its state of the lazy DFA alone, however many paths that state accepts; what the paths lead to
//! is put together from the states they are accepted in, for the paths that are asked for.

use super::plan::{Operators, PathId};
use crate::document::{Document, NodeId, NodeKind};
use crate::paths::{Class, DEAD, FlatTrie, PathCache, StateId, Trie, TrieBuilder, TrieNode};
use crate::xpath::symbols::DocumentSymbols;

/// The automaton of all paths of a population.
#[derive(Debug, Default)]
pub struct PathAutomaton {
    trie: FlatTrie,
    /// For each trie node, the path that ends there.
    accepted: Vec<Option<PathId>>,
    path_count: usize,
}

impl PathAutomaton {
    /// The automaton of all paths of the operators.
    pub fn new(operators: &Operators) -> PathAutomaton {
        let mut builder = TrieBuilder::default();
        let ends: Vec<TrieNode> = operators.paths().iter().map(|path| builder.insert(path)).collect();
        let (trie, numbers) = builder.freeze();
        let mut accepted = vec![None; numbers.len()];
        for (path, end) in ends.into_iter().enumerate() {
            accepted[numbers[end as usize] as usize] = Some(path as PathId);
        }
        PathAutomaton { trie, accepted, path_count: operators.paths().len() }
    }

    /// Number of paths it finds.
    pub fn path_count(&self) -> usize {
        self.path_count
    }

    fn view(&self) -> Trie<'_> {
        Trie { starts: &self.trie.starts, edges: &self.trie.edges }
    }
}

/// What is kept with a state: the paths it accepts, and its nodes in the current document.
#[derive(Debug, Default)]
struct Met {
    paths: Box<[PathId]>,
    nodes: Vec<NodeId>,
}

/// The caches of one thread for one automaton, and what the current document led to.
#[derive(Debug)]
pub struct Walk {
    cache: PathCache<Met>,
    element_classes: Vec<Class>,
    attribute_classes: Vec<Class>,
    open: Vec<StateId>,
    /// Accepting states met in the document.
    met: Vec<StateId>,
    /// For each path, the states in which the document met it.
    states: Vec<Vec<StateId>>,
    /// Paths met in the document.
    pub found: Vec<PathId>,
}

impl Walk {
    /// An empty cache of about this many bytes.
    pub fn new(cache_bytes: usize) -> Walk {
        Walk {
            cache: PathCache::new(cache_bytes),
            element_classes: Vec::new(),
            attribute_classes: Vec::new(),
            open: Vec::new(),
            met: Vec::new(),
            states: Vec::new(),
            found: Vec::new(),
        }
    }

    /// Bytes of the cache.
    pub fn memory_bytes(&self) -> usize {
        self.cache.memory_bytes() + self.states.capacity() * size_of::<Vec<StateId>>()
    }

    /// Walks a document.
    pub fn walk(&mut self, automaton: &PathAutomaton, document: &Document, symbols: &DocumentSymbols) {
        for state in self.met.drain(..) {
            self.cache.attached(state).nodes.clear();
        }
        for path in self.found.drain(..) {
            self.states[path as usize].clear();
        }
        self.states.resize_with(automaton.path_count, Vec::new);
        let trie = automaton.view();
        let mut attach = |nodes: &[TrieNode]| Met {
            paths: nodes.iter().filter_map(|node| automaton.accepted[*node as usize]).collect(),
            nodes: Vec::new(),
        };
        if self.cache.is_full() {
            self.cache.clear(&mut [], &mut attach);
        }
        self.cache.classify(symbols, &mut self.element_classes, &mut self.attribute_classes);
        let text_class = self.cache.text_class();
        let start = self.cache.start(&trie, &mut attach);
        self.open.clear();
        self.open.push(start);
        let nodes = document.nodes();
        let mut at = 1;
        while at < nodes.len() {
            let node = &nodes[at];
            let depth = node.depth as usize;
            let above = self.open[depth - 1];
            let class = match node.kind {
                NodeKind::Element => self.element_classes[node.name as usize],
                NodeKind::Attribute => self.attribute_classes[node.name as usize],
                NodeKind::Text => text_class,
                _ => {
                    at += 1;
                    continue;
                }
            };
            let state = self.cache.step(&trie, above, class, &mut attach);
            if node.kind == NodeKind::Element {
                self.open.truncate(depth);
                self.open.push(state);
                if state == DEAD {
                    at = node.last as usize + 1;
                    continue;
                }
            }
            let met = self.cache.attached(state);
            if !met.paths.is_empty() {
                if met.nodes.is_empty() {
                    self.met.push(state);
                }
                met.nodes.push(at as NodeId);
            }
            at += 1;
        }
        for state in &self.met {
            for path in &self.cache.attached(*state).paths {
                let states = &mut self.states[*path as usize];
                if states.is_empty() {
                    self.found.push(*path);
                }
                states.push(*state);
            }
        }
    }

    /// Appends the nodes that a path led to, in document order.
    pub fn nodes(&mut self, path: PathId, into: &mut Vec<NodeId>) {
        let from = into.len();
        for state in &self.states[path as usize] {
            into.extend_from_slice(&self.cache.attached(*state).nodes);
        }
        if self.states[path as usize].len() > 1 {
            into[from..].sort_unstable();
        }
    }

    /// Whether a path led to any node.
    pub fn is_found(&self, path: PathId) -> bool {
        !self.states[path as usize].is_empty()
    }
}
