//! One worker's machine for one segment: runs documents through the store.

use super::automaton::{Automaton, INEXACT, Reach};
use super::down::{DEAD, DownId, Input, TOP};
use super::order::SymbolOrder;
use super::sets::{EMPTY, SetId};
use super::store::{Frame, NO_VALUE, Parts, PathId, Store};
use super::{Settings, Shared};
use crate::document::{Document, NodeKind};
use crate::index::Segment;
use crate::matcher::bits::BitSet;
use crate::xpath::evaluate::number;
use crate::xpath::symbols::{DocumentSymbols, NO_SYMBOL};
use foldhash::fast::FixedState;
use hashbrown::HashSet;
use std::sync::Arc;

/// Children that wait at most.
const MAX_WAITING: usize = 32;

/// The class of a name that was not looked up yet.
const UNKNOWN_CLASS: u32 = u32::MAX;

/// A document and what its names are to a segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subject<'a> {
    pub(super) document: &'a Document,
    pub(super) symbols: &'a DocumentSymbols,
    /// Whether it keeps the order of siblings.
    pub(super) ordered: bool,
}

/// The machine.
#[derive(Debug)]
pub(super) struct Machine {
    pub(super) automaton: Arc<Automaton>,
    pub(super) order: Option<Arc<SymbolOrder>>,
    pub(super) store: Store,
    frames: Vec<Frame>,
    /// The states that the children of open nodes ended in and that are not part of the node's state yet. They are
    /// united all at once, as far as possible: states of some of them are then not made.
    children: Vec<SetId>,
    /// Classes of text nodes and comments.
    text_class: u32,
    comment_class: u32,
    /// Classes of a document's names, for elements, attributes and processing instructions.
    classes: [Vec<u32>; 3],
    reported: HashSet<SetId, FixedState>,
    rows_seen: BitSet,
    /// Rows of the document matched last, with [`INEXACT`] on top.
    pub(super) rows: Vec<u32>,
    pub(super) early_rows: u64,
    precompute: bool,
}

impl Machine {
    /// An empty machine.
    pub(super) fn new(shared: &Shared, segment: &Segment, settings: &Settings) -> Machine {
        let automaton = shared.automaton(segment);
        let order = settings.order.as_ref().map(|order| Arc::new(order.over(segment.symbols())));
        let parts = Parts { automaton: &automaton, segment, view: segment.view(), order: order.as_deref() };
        let mut store = Store::new(settings.top_down, settings.early, settings.store_bytes, parts);
        let mut nameless = |kind| store.class(Input { kind, tests: [NO_SYMBOL; 3] });
        let (text_class, comment_class) = (nameless(Reach::Text), nameless(Reach::Comment));
        let mut machine = Machine {
            automaton,
            order,
            store,
            text_class,
            comment_class,
            frames: Vec::new(),
            children: Vec::new(),
            classes: Default::default(),
            reported: HashSet::default(),
            rows_seen: BitSet::default(),
            rows: Vec::new(),
            early_rows: 0,
            precompute: settings.precompute_values,
        };
        machine.rows_seen.reserve(segment.view().row_count() as usize);
        machine
    }

    /// Bytes in use, those of the automaton apart.
    pub(super) fn memory_bytes(&self) -> usize {
        self.store.memory_bytes() + self.store.scratch_bytes() + self.rows_seen.memory_bytes()
    }

    /// Runs a document; the rows that it satisfies are in [`Self::rows`], each once.
    pub(super) fn run(&mut self, segment: &Segment, subject: Subject<'_>) {
        let (automaton, order) = (self.automaton.clone(), self.order.clone());
        let parts = Parts { automaton: &automaton, segment, view: segment.view(), order: order.as_deref() };
        let document = subject.document;
        for classes in &mut self.classes {
            classes.clear();
            classes.resize(document.names().len(), UNKNOWN_CLASS);
        }
        self.rows.clear();
        self.reported.clear();
        self.frames.clear();
        self.children.clear();
        let nodes = document.nodes();
        let last = nodes.len() as u32 - 1;
        self.frames.push(Frame { path: TOP, state: EMPTY, children: 0, node: 0, last });
        let mut at = 1;
        while at <= last {
            while at > self.top().last {
                self.close(subject, parts);
            }
            let node = &nodes[at as usize];
            let class = self.class(subject, node.kind, node.name);
            let path = self.step(self.top().path, class, parts);
            if node.kind == NodeKind::Element {
                if path == DEAD {
                    at = node.last + 1;
                    continue;
                }
                self.frames.push(Frame {
                    path,
                    state: EMPTY,
                    children: self.children.len() as u32,
                    node: at,
                    last: node.last,
                });
            } else if path != DEAD {
                self.end(path, EMPTY, at, subject, parts);
            }
            at += 1;
        }
        while self.frames.len() > 1 {
            self.close(subject, parts);
        }
        let value =
            if self.store.asks_values(TOP) { self.store.value(TOP, document.string_value(0), parts) } else { NO_VALUE };
        let state = self.unite(0, subject, parts);
        let accepted = self.store.accept(state, value, &automaton);
        self.take(accepted);
        self.rows_seen.clear();
        self.clear_if_full();
    }

    fn top(&self) -> &Frame {
        &self.frames[self.frames.len() - 1]
    }

    fn class(&mut self, subject: Subject<'_>, kind: NodeKind, name: u32) -> u32 {
        let (place, reach) = match kind {
            NodeKind::Element | NodeKind::Root => (0, Reach::Child),
            NodeKind::Attribute => (1, Reach::Attribute),
            NodeKind::ProcessingInstruction => (2, Reach::Instruction),
            NodeKind::Text => return self.text_class,
            NodeKind::Comment => return self.comment_class,
        };
        let known = self.classes[place][name as usize];
        if known != UNKNOWN_CLASS {
            return known;
        }
        let name_at = name as usize;
        let symbols = subject.symbols;
        let tests = [symbols.expanded[name_at], symbols.local[name_at], symbols.namespace[name_at]];
        let class = self.store.class(Input { kind: reach, tests });
        self.classes[place][name_at] = class;
        class
    }

    /// What is wanted at a child, with the value states of its tests' constants where those are asked for beforehand.
    fn step(&mut self, path: PathId, class: u32, parts: Parts<'_>) -> PathId {
        let before = self.store.down_count();
        let next = self.store.step(path, class, parts);
        if self.precompute && self.store.down_count() > before {
            self.precompute(self.store.down(next), parts);
        }
        next
    }

    fn precompute(&mut self, down: DownId, parts: Parts<'_>) {
        use super::automaton::Test;
        for state in self.store.tests_at(down).to_vec() {
            if self.store.is_full() {
                break;
            }
            let text = match parts.automaton.test(state) {
                Test::Equal(string) | Test::Contains(string) | Test::StartsWith(string) => {
                    parts.segment.strings().get(string).to_owned()
                }
                Test::Number(_, constant) => number::to_string(constant),
            };
            let value = self.store.value(down, &text, parts);
            self.store.pop(EMPTY, value, down, parts);
        }
    }

    /// Ends the innermost open element.
    fn close(&mut self, subject: Subject<'_>, parts: Parts<'_>) {
        let state = self.unite(self.frames.len() - 1, subject, parts);
        if let Some(frame) = self.frames.pop() {
            self.end(frame.path, state, frame.node, subject, parts);
        }
    }

    /// Ends a node whose parent is the innermost open one.
    fn end(&mut self, path: PathId, state: SetId, node: u32, subject: Subject<'_>, parts: Parts<'_>) {
        let down = self.store.down(path);
        let value = if self.store.asks_values(down) {
            self.store.value(down, subject.document.string_value(node), parts)
        } else {
            NO_VALUE
        };
        let popped = self.store.pop(state, value, down, parts);
        let at = self.frames.len() - 1;
        if popped.kept != EMPTY {
            if self.children.len() - self.frames[at].children as usize == MAX_WAITING {
                self.frames[at].state = self.unite(at, subject, parts);
            }
            self.children.push(popped.kept);
        }
        if popped.early != EMPTY {
            // Filters that are known to be true are reported at once.
            let rows = self.store.report(self.frames[at].path, popped.early, parts.automaton);
            if self.reported.insert(rows) {
                let before = self.rows.len();
                self.take(rows);
                self.early_rows += (self.rows.len() - before) as u64;
            }
        }
        self.clear_if_full();
    }

    /// The state of an open node, of which the innermost one's children wait.
    fn unite(&mut self, at: usize, subject: Subject<'_>, parts: Parts<'_>) -> SetId {
        let frame = self.frames[at];
        let waiting = self.children.drain(frame.children as usize..);
        self.store.unite(frame.state, waiting, subject.ordered, parts)
    }

    /// Takes marked rows, each once.
    fn take(&mut self, rows: SetId) {
        for row in self.store.side.get(rows) {
            if self.rows_seen.insert(row & !INEXACT) {
                self.rows.push(*row);
            }
        }
    }

    fn clear_if_full(&mut self) {
        if self.store.is_full() {
            self.store.clear(&mut self.frames, &mut self.children);
            self.reported.clear();
        }
    }
}
