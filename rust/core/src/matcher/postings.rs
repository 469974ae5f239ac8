//! From a document to the postings it hits: one walk over its tree with the shared automata.

use super::bits::BitSet;
use super::places::{ListId, Places};
use crate::document::{Document, NodeId, NodeKind};
use crate::index::Segment;
use crate::paths::{Class, DEAD, PathCache, StateId, TrieNode};
use crate::predicates::{NO_POSTING, Patterns, Posting, PredicateIndex, ProbeKind, flags};
use crate::xpath::evaluate::number::to_number;
use crate::xpath::symbols::{DocumentSymbols, NO_SYMBOL, NameTest};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use std::ops::Range;
use std::sync::OnceLock;

/// What the matcher keeps with each state of the path DFA.
#[derive(Debug, Default)]
pub(super) struct Accepts {
    /// Document in which this state was met last, and the last in which it was met again.
    stamp: u64,
    again: u64,
    /// Existence postings of paths whose uniqueness matters.
    anchors: Box<[Posting]>,
    /// Existence postings of paths whose places matter, and, for the document of the stamp, where they are noted down.
    located: Box<[Posting]>,
    places: ListId,
    /// Postings that the paths' existence hits.
    exists: Box<[Posting]>,
    /// Trie nodes with probes.
    probed: Box<[TrieNode]>,
    /// Range lists.
    ranges: Box<[u32]>,
    /// Union of the nodes' flags.
    flags: u8,
}

/// What a value hits in a state.
#[derive(Debug)]
struct ValueHit {
    /// Where its postings are.
    postings: Range<u32>,
    /// Document in which this was met last, and where its places are noted down there.
    stamp: u64,
    places: ListId,
}

/// The parts of a walk that outlive a document.
#[derive(Debug)]
pub(super) struct Walker {
    paths: PathCache<Accepts>,
    element_classes: Vec<Class>,
    attribute_classes: Vec<Class>,
    open: Vec<StateId>,
    /// Postings hit by a value in a state: the value plays the part of one more input symbol of the lazy DFA.
    value_hits: HashMap<(StateId, u64), ValueHit, FixedState>,
    value_postings: Vec<Posting>,
    /// The same as a set.
    pub(super) hit: BitSet,
    /// Of the paths whose uniqueness matters, those that lead to several nodes.
    pub(super) repeated: BitSet,
    /// Where postings were hit, of those for which it matters.
    pub(super) places: Places,
    document_number: u64,
    /// Postings hit by values.
    probed: Vec<Posting>,
    /// Postings hit by the document, each once.
    pub(super) hits: Vec<Posting>,
    /// Range lists met and the best value seen for each.
    pub(super) ranges: Vec<(u32, f64)>,
}

impl Walker {
    pub(super) fn new(path_cache_bytes: usize) -> Walker {
        Walker {
            paths: PathCache::new(path_cache_bytes),
            element_classes: Vec::new(),
            attribute_classes: Vec::new(),
            open: Vec::new(),
            value_hits: HashMap::default(),
            value_postings: Vec::new(),
            hit: BitSet::default(),
            repeated: BitSet::default(),
            places: Places::default(),
            document_number: 0,
            probed: Vec::new(),
            hits: Vec::new(),
            ranges: Vec::new(),
        }
    }

    /// States, bytes and clearings of the path cache.
    pub(super) fn statistics(&self) -> (usize, usize, u64) {
        (
            self.paths.state_count(),
            self.paths.memory_bytes() + self.hit.memory_bytes() + self.places.memory_bytes(),
            self.paths.clear_count(),
        )
    }

    /// Walks a document; the postings are in [`Self::hits`], the values for order comparisons in [`Self::ranges`].
    pub(super) fn walk(
        &mut self,
        segment: &Segment,
        patterns: &OnceLock<Patterns>,
        document: &Document,
        symbols: &DocumentSymbols,
    ) {
        let (trie, predicates) = (segment.trie(), segment.predicates());
        let (strings, view) = (segment.strings(), segment.view());
        self.document_number += 1;
        self.hits.clear();
        self.ranges.clear();
        self.hit.clear();
        self.hit.reserve(predicates.posting_count());
        self.repeated.clear();
        self.repeated.reserve(predicates.posting_count());
        self.places.clear(predicates.posting_count());
        self.paths.classify(symbols, &mut self.element_classes, &mut self.attribute_classes);
        let text_class = self.paths.text_class();
        let mut attach = |nodes: &[TrieNode]| Accepts::new(&predicates, nodes);
        let start = self.paths.start(&trie, &mut attach);
        self.open.clear();
        self.open.push(start);
        let nodes = document.nodes();
        let mut at = 1;
        while at < nodes.len() {
            let node = &nodes[at];
            let depth = node.depth as usize;
            let above = self.open[depth - 1];
            let state = match node.kind {
                NodeKind::Element => {
                    let class = self.element_classes[node.name as usize];
                    let state = self.paths.step(&trie, above, class, &mut attach);
                    self.open.truncate(depth);
                    self.open.push(state);
                    if state == DEAD {
                        at = node.last as usize + 1;
                        continue;
                    }
                    state
                }
                NodeKind::Attribute => {
                    let class = self.attribute_classes[node.name as usize];
                    self.paths.step(&trie, above, class, &mut attach)
                }
                NodeKind::Text => self.paths.step(&trie, above, text_class, &mut attach),
                _ => DEAD,
            };
            if state != DEAD {
                let accepts = self.paths.attached(state);
                let first_visit = accepts.stamp != self.document_number;
                if first_visit {
                    accepts.stamp = self.document_number;
                    for posting in &accepts.anchors {
                        if self.hit.contains(*posting) {
                            self.repeated.insert(*posting);
                        }
                    }
                    for posting in &accepts.exists {
                        if self.hit.insert(*posting) {
                            self.hits.push(*posting);
                        }
                    }
                    if !accepts.located.is_empty() {
                        accepts.places = self.places.list(&accepts.located);
                    }
                }
                if !accepts.located.is_empty() {
                    self.places.add(accepts.places, at as u32);
                }
                if accepts.again != self.document_number && !first_visit {
                    accepts.again = self.document_number;
                    for posting in &accepts.anchors {
                        self.repeated.insert(*posting);
                    }
                }
                if accepts.flags & flags::PROBES != 0 {
                    self.probe(
                        &predicates,
                        state,
                        at as u32,
                        document.string_value(at as u32),
                        &|value| view.find_string(value),
                        || (patterns.get_or_init(|| Patterns::new(&predicates, strings)), strings),
                    );
                }
            }
            if self.paths.is_full() {
                self.value_hits.clear();
                self.value_postings.clear();
                let mut open = std::mem::take(&mut self.open);
                self.paths.clear(&mut open, &mut attach);
                self.open = open;
            }
            at += 1;
        }
        // What values hit is mostly verified: in the order of the rows, memory is read forwards. What exists is mostly
        // decided, and putting thousands of postings in order would cost more than it saves.
        self.probed.sort_unstable();
        self.hits.append(&mut self.probed);
    }

    fn probe<'s>(
        &mut self,
        predicates: &PredicateIndex<'_>,
        state: StateId,
        node: NodeId,
        value: &str,
        find: &dyn Fn(&str) -> Option<u32>,
        patterns: impl FnOnce() -> (&'s Patterns, crate::predicates::Strings<'s>),
    ) {
        let kinds = self.paths.attached(state).flags;
        if kinds & flags::STRING_EQUAL != 0
            && let Some(string) = find(value)
        {
            self.value(predicates, state, node, ProbeKind::StringEqual, string);
        }
        if kinds & (flags::NUMBER_EQUAL | flags::RANGE) != 0 {
            let number = to_number(value);
            if !number.is_nan() {
                if kinds & flags::NUMBER_EQUAL != 0
                    && let Some(constant) = predicates.number(number)
                {
                    self.value(predicates, state, node, ProbeKind::NumberEqual, constant);
                }
                if kinds & flags::RANGE != 0 {
                    self.range(predicates, state, number);
                }
            }
        }
        if kinds & flags::PATTERN != 0 {
            let (patterns, strings) = patterns();
            patterns.scan(value, strings, |constant, at_start| {
                self.value(predicates, state, node, ProbeKind::Contains, constant);
                if at_start {
                    self.value(predicates, state, node, ProbeKind::StartsWith, constant);
                }
            });
        }
    }

    fn range(&mut self, predicates: &PredicateIndex<'_>, state: StateId, number: f64) {
        for list in &self.paths.attached(state).ranges {
            match self.ranges.iter_mut().find(|(known, _)| known == list) {
                Some((_, best)) => *best = predicates.ranges[*list as usize].better(*best, number),
                None => self.ranges.push((*list, number)),
            }
        }
    }

    /// The postings that a known constant hits in a state, found once and remembered.
    fn value(&mut self, predicates: &PredicateIndex<'_>, state: StateId, node: NodeId, kind: ProbeKind, constant: u32) {
        let accepts = self.paths.attached(state);
        let located = accepts.flags & flags::VALUE_PLACES != 0;
        let hit = match self.value_hits.entry((state, (kind as u64) << 32 | u64::from(constant))) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(vacant) => {
                let first = self.value_postings.len() as u32;
                let probed = accepts.probed.iter();
                self.value_postings.extend(probed.filter_map(|node| predicates.probe(*node, kind, constant)));
                let postings = first..self.value_postings.len() as u32;
                self.paths.charge(postings.len() * 4 + 56);
                vacant.insert(ValueHit { postings, stamp: 0, places: 0 })
            }
        };
        if hit.stamp != self.document_number {
            hit.stamp = self.document_number;
            let postings = &self.value_postings[hit.postings.start as usize..hit.postings.end as usize];
            for posting in postings {
                if self.hit.insert(*posting) {
                    self.probed.push(*posting);
                }
            }
            if located {
                hit.places = self.places.list(postings);
            }
        }
        if located {
            self.places.add(hit.places, node);
        }
    }
}

impl Accepts {
    fn new(predicates: &PredicateIndex<'_>, nodes: &[TrieNode]) -> Accepts {
        let of = |node: &TrieNode| predicates.node_flags[*node as usize];
        let probed = flags::STRING_EQUAL | flags::NUMBER_EQUAL | flags::PATTERN;
        let with = |flag: u8| {
            let nodes = nodes.iter().filter(move |node| of(node) & flag != 0);
            nodes.map(|node| predicates.node_postings[*node as usize]).collect()
        };
        let postings = nodes.iter().map(|node| predicates.node_postings[*node as usize]);
        let mut exists: Box<[Posting]> = postings.filter(|posting| *posting != NO_POSTING).collect();
        // Runs and rows are in the order of postings: memory is read forwards.
        exists.sort_unstable();
        Accepts {
            stamp: 0,
            again: 0,
            anchors: with(flags::ANCHOR),
            located: with(flags::PLACES),
            places: 0,
            exists,
            probed: nodes.iter().copied().filter(|node| of(node) & probed != 0).collect(),
            ranges: nodes
                .iter()
                .filter(|node| of(node) & flags::RANGE != 0)
                .flat_map(|node| predicates.ranges_at(*node))
                .collect(),
            flags: nodes.iter().fold(0, |all, node| all | of(node)),
        }
    }
}

/// Fills `symbols` for a document; kinds of tests that the segment has none of are not looked up.
pub(super) fn resolve(segment: &Segment, document: &Document, symbols: &mut DocumentSymbols) {
    let table = segment.symbols();
    let (local, namespace) = (table.has_local(), table.has_namespace());
    symbols.fill(document, |test| match test {
        NameTest::Local(_) if !local => None,
        NameTest::Namespace(_) if !namespace => None,
        _ => table.find(test),
    });
    debug_assert!(symbols.expanded.iter().all(|symbol| *symbol == NO_SYMBOL || (*symbol as usize) < table.len()));
}
