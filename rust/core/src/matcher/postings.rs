//! From a document to the postings it hits, and what they lead to: one walk over its tree with the shared automata.

use super::bits::BitSet;
use super::places::{ListId, Places, Source};
use super::probes::{PROBE_BATCH, Values};
use super::reached::{Candidate, Found, Reach, Reached, Test, all_postings, always};
use crate::document::{Document, NodeId, NodeKind};
use crate::index::{Segment, View};
use crate::paths::{Class, DEAD, PathCache, StateId, Trie, TrieNode};
use crate::predicates::{NO_POSTING, Patterns, Posting, PredicateIndex, Strings, flags};
use crate::xpath::symbols::{DocumentSymbols, NO_SYMBOL, NameTest, RememberedSymbols};
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
    located: Source,
    places: ListId,
    /// What the paths' existence leads to.
    exists: Reach,
    /// Trie nodes with probes.
    pub(super) probed: Box<[TrieNode]>,
    /// Range lists.
    pub(super) ranges: Box<[u32]>,
    /// Union of the nodes' flags.
    pub(super) flags: u8,
}

/// The parts of a segment that matching reads, looked up once.
pub(super) struct Index<'a> {
    pub(super) trie: Trie<'a>,
    pub(super) predicates: PredicateIndex<'a>,
    pub(super) view: View<'a>,
    pub(super) strings: Strings<'a>,
}

impl<'a> Index<'a> {
    pub(super) fn new(segment: &'a Segment) -> Index<'a> {
        let (trie, predicates, view, strings) =
            (segment.trie(), segment.predicates(), segment.view(), segment.strings());
        Index { trie, predicates, view, strings }
    }
}

/// The parts of a walk that outlive a document.
#[derive(Debug)]
pub(super) struct Walker {
    pub(super) paths: PathCache<Accepts>,
    element_classes: Vec<Class>,
    attribute_classes: Vec<Class>,
    open: Vec<StateId>,
    /// Nodes whose values are still to be looked up.
    pub(super) probes: Vec<(StateId, NodeId)>,
    pub(super) values: Values,
    pub(super) reached: Reached,
    /// Postings hit by the document.
    pub(super) hit: BitSet,
    /// Of the paths whose uniqueness matters, those that lead to several nodes.
    pub(super) repeated: BitSet,
    /// Where postings were hit, of those for which it matters.
    pub(super) places: Places,
    pub(super) document_number: u64,
    /// What postings lead to; but candidates that were in the cache before it was cleared are in `carried`.
    pub(super) found: Found,
    carried: (Vec<Test>, Vec<Candidate>),
    /// About how many ranges of subscriptions a document satisfies.
    pub(super) expected: usize,
    /// Range lists met and the best value seen for each.
    pub(super) ranges: Vec<(u32, f64)>,
}

impl Walker {
    pub(super) fn new(path_cache_bytes: usize) -> Walker {
        Walker {
            // Numbers of what the cache holds have 32 bits.
            paths: PathCache::new(path_cache_bytes.min(u32::MAX as usize)),
            element_classes: Vec::new(),
            attribute_classes: Vec::new(),
            open: Vec::new(),
            probes: Vec::with_capacity(PROBE_BATCH),
            values: Values::default(),
            reached: Reached::default(),
            hit: BitSet::default(),
            repeated: BitSet::default(),
            places: Places::default(),
            document_number: 0,
            found: Found::default(),
            carried: Default::default(),
            expected: 0,
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

    /// Walks a document. What it satisfies or may satisfy is then in the fields of the walker, the values for order
    /// comparisons in [`Self::ranges`].
    pub(super) fn walk(
        &mut self,
        index: &Index<'_>,
        patterns: &OnceLock<Patterns>,
        document: &Document,
        symbols: &DocumentSymbols,
    ) {
        let Index { predicates, strings, .. } = index;
        let patterns = || (patterns.get_or_init(|| Patterns::new(predicates, *strings)), *strings);
        self.begin(index.predicates.posting_count());
        self.paths.classify(symbols, &mut self.element_classes, &mut self.attribute_classes);
        let text_class = self.paths.text_class();
        let start = self.start(index);
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
                    let state = self.step(index, above, self.element_classes[node.name as usize]);
                    self.open.truncate(depth);
                    self.open.push(state);
                    if state == DEAD {
                        at = node.last as usize + 1;
                        continue;
                    }
                    state
                }
                NodeKind::Attribute => self.step(index, above, self.attribute_classes[node.name as usize]),
                NodeKind::Text => self.step(index, above, text_class),
                _ => DEAD,
            };
            if state != DEAD && self.arrive(state, at as NodeId) & flags::PROBES != 0 {
                self.probes.push((state, at as NodeId));
            }
            if self.probes.len() == PROBE_BATCH || self.paths.is_full() {
                self.probe(index, document, &patterns);
                if self.paths.is_full() {
                    self.forget(index);
                }
            }
            at += 1;
        }
        self.probe(index, document, &patterns);
    }

    fn begin(&mut self, posting_count: usize) {
        self.document_number += 1;
        self.found.satisfied = Vec::with_capacity(self.expected);
        self.found.rows = 0;
        self.found.candidates.clear();
        self.carried.0.clear();
        self.carried.1.clear();
        self.ranges.clear();
        for set in [&mut self.hit, &mut self.repeated] {
            set.clear();
            set.reserve(all_postings(posting_count));
            set.insert(always(posting_count));
        }
        self.places.clear();
    }

    fn start(&mut self, index: &Index<'_>) -> StateId {
        let Walker { paths, reached, places, .. } = self;
        paths.start(&index.trie, &mut |nodes| Accepts::new(index, reached, places, nodes))
    }

    #[inline]
    fn step(&mut self, index: &Index<'_>, above: StateId, class: Class) -> StateId {
        let Walker { paths, reached, places, .. } = self;
        let before = reached.memory_bytes() + places.source_bytes();
        let attach = &mut |nodes: &[TrieNode]| Accepts::new(index, reached, places, nodes);
        let state = paths.step(&index.trie, above, class, attach);
        paths.charge(reached.memory_bytes() + places.source_bytes() - before);
        state
    }

    /// Empties the caches, but for the states of the open elements and what the document still needs.
    #[cold]
    fn forget(&mut self, index: &Index<'_>) {
        for numbers in self.found.candidates.drain(..) {
            let (tests, candidates) = self.reached.candidates(numbers);
            self.carried.0.extend_from_slice(tests);
            self.carried.1.extend_from_slice(candidates);
        }
        self.values.clear();
        self.reached.clear();
        self.places.forget();
        let Walker { paths, reached, places, .. } = self;
        paths.clear(&mut self.open, &mut |nodes| Accepts::new(index, reached, places, nodes));
        paths.charge(reached.memory_bytes() + places.source_bytes());
        paths.make_room();
    }

    /// A node is in a state; the flags of the state.
    #[inline]
    fn arrive(&mut self, state: StateId, node: NodeId) -> u8 {
        let accepts = self.paths.attached(state);
        let first_visit = accepts.stamp != self.document_number;
        if first_visit {
            accepts.stamp = self.document_number;
            for posting in &accepts.anchors {
                if self.hit.contains(*posting) {
                    self.repeated.insert(*posting);
                }
            }
            self.reached.hit(&accepts.exists, &mut self.hit, &mut self.found);
            if !accepts.located.is_empty() {
                accepts.places = self.places.list(&accepts.located);
            }
        }
        if !accepts.located.is_empty() {
            self.places.add(accepts.places, node);
        }
        if accepts.again != self.document_number && !first_visit {
            accepts.again = self.document_number;
            for posting in &accepts.anchors {
                self.repeated.insert(*posting);
            }
        }
        accepts.flags
    }

    /// Candidates that postings lead to, with what is asked of them first.
    pub(super) fn candidates(&self) -> impl Iterator<Item = (&[Test], &[Candidate])> {
        let cached = self.found.candidates.iter().map(|numbers| self.reached.candidates(numbers.clone()));
        cached.chain(std::iter::once((&self.carried.0[..], &self.carried.1[..])))
    }
}

impl Accepts {
    fn new(index: &Index<'_>, reached: &mut Reached, places: &mut Places, nodes: &[TrieNode]) -> Accepts {
        let predicates = &index.predicates;
        let of = |node: &TrieNode| predicates.node_flags[*node as usize];
        let probed = flags::STRING_EQUAL | flags::NUMBER_EQUAL | flags::PATTERN;
        let with = |flag: u8| -> Box<[Posting]> {
            let nodes = nodes.iter().filter(move |node| of(node) & flag != 0);
            nodes.map(|node| predicates.node_postings[*node as usize]).collect()
        };
        let mut located = with(flags::PLACES);
        located.sort_unstable();
        let postings = nodes.iter().map(|node| predicates.node_postings[*node as usize]);
        let mut exists: Vec<Posting> = postings.filter(|posting| *posting != NO_POSTING).collect();
        // Neighbouring postings have neighbouring rows.
        exists.sort_unstable();
        Accepts {
            stamp: 0,
            again: 0,
            anchors: with(flags::ANCHOR),
            located: places.source(&located),
            places: 0,
            exists: reached.add(exists, predicates, &index.view),
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

/// Fills `symbols` for a document. What is `remembered` of documents before, in the same segment, is not looked up, nor
/// are kinds of tests that the segment has none of.
pub(super) fn resolve(
    segment: &Segment,
    document: &Document,
    symbols: &mut DocumentSymbols,
    remembered: &mut RememberedSymbols,
) {
    let table = segment.symbols();
    let (local, namespace) = (table.has_local(), table.has_namespace());
    symbols.fill_remembering(document, remembered, |test| match test {
        NameTest::Local(_) if !local => None,
        NameTest::Namespace(_) if !namespace => None,
        _ => table.find(test),
    });
    debug_assert!(symbols.expanded.iter().all(|symbol| *symbol == NO_SYMBOL || (*symbol as usize) < table.len()));
}
