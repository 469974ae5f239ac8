//! The XPush matcher: all filters as one lazily made deterministic pushdown machine, run bottom-up.
//!
//! `document → for each node, when it ends: value state, pop (what it makes true in its parent), add → filters`.
//! All states and transitions are made when a document first needs them and remembered, so that a document like earlier
//! ones costs a few table lookups per node, whatever the number of filters. (Gupta & Suciu, "Stream Processing of XPath
//! Queries with Predicates", SIGMOD 2003.)

mod automaton;
mod builder;
mod compile;
mod down;
mod machine;
mod order;
mod sets;
mod store;
mod training;
mod transitions;
mod values;

pub use order::SiblingOrder;

use super::postings::resolve;
use super::results::{Matches, append};
use super::verify::Verifier;
use crate::document::Document;
use crate::index::{Segment, Snapshot};
use crate::xpath::symbols::{DocumentSymbols, RememberedSymbols};
use automaton::{Automaton, INEXACT};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use machine::{Machine, Subject};
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

/// Settings of the matcher. The options change costs, never answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Top-down pruning: only what the path from the document node leads to is looked at.
    pub top_down: bool,
    /// Early notification: a filter that is known to be true leaves the states. Needs `top_down`.
    pub early: bool,
    /// Order optimisation: the order of siblings that a document type promises. Documents that do not keep it are
    /// matched without.
    pub order: Option<SiblingOrder>,
    /// Training: run documents made from the filters before the first real one.
    pub training: bool,
    /// Make the states of nodes whose value is a constant of the filters before a document needs them.
    pub precompute_values: bool,
    /// Bytes that the states and transitions of one worker may use per segment.
    pub store_bytes: usize,
    /// Most that one exact evaluation may cost, see [`Evaluator`](crate::xpath::evaluate::Evaluator).
    pub cost_limit: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            top_down: true,
            early: false,
            order: None,
            training: false,
            precompute_values: false,
            store_bytes: 256 << 20,
            cost_limit: 100_000_000,
        }
    }
}

/// What all workers share for one segment.
#[derive(Debug)]
struct Shared {
    segment: Weak<Segment>,
    automaton: Arc<OnceLock<Arc<Automaton>>>,
    idle: Vec<Part>,
}

impl Shared {
    /// The automaton, made when the first worker needs it.
    fn automaton(&self, segment: &Segment) -> Arc<Automaton> {
        self.automaton.get_or_init(|| Arc::new(compile::compile(segment))).clone()
    }
}

/// What one worker keeps for one segment between documents.
#[derive(Debug)]
struct Part {
    machine: Machine,
    symbols: DocumentSymbols,
    remembered: RememberedSymbols,
    counts: Counts,
}

/// Counts of one worker over all documents.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    verified: u64,
    unordered: u64,
}

/// Sizes and counters, summed over idle workers.
#[derive(Clone, Copy, Debug, Default)]
pub struct XPushStatistics {
    /// States of the machines: distinct sets of edges.
    pub states: usize,
    /// Members of all states together; divided by `states`, the average size of a state.
    pub state_members: usize,
    /// States of the top-down automata.
    pub top_down_states: usize,
    /// Value states.
    pub value_states: usize,
    /// Remembered transitions.
    pub transitions: usize,
    /// Transitions asked for.
    pub lookups: u64,
    /// Of those, transitions that were remembered.
    pub hits: u64,
    /// How often a store was full and started again.
    pub clears: u64,
    /// Bytes of the stores.
    pub store_bytes: usize,
    /// States of the automata of all filters, shared by the workers.
    pub automaton_states: usize,
    /// Bytes of the automata.
    pub automaton_bytes: usize,
    /// Rows whose filter the automata only approximate: what they let through is verified.
    pub inexact_rows: usize,
    /// Of those, rows that are verified on every document.
    pub unfiltered_rows: usize,
    /// Verifications of such rows.
    pub verified_rows: u64,
    /// Rows reported before the document ended.
    pub early_rows: u64,
    /// Documents that did not keep the promised order of siblings.
    pub unordered_documents: u64,
}

/// The matcher: settings and a pool of machines, to be shared between threads.
#[derive(Debug, Default)]
pub struct XPush {
    settings: Settings,
    pool: Mutex<HashMap<u64, Shared, FixedState>>,
}

/// The machines of one thread for the segments of one snapshot; give it back with [`XPush::give_back`].
#[derive(Debug)]
pub struct XPushWorker {
    parts: Vec<(u64, Part)>,
}

impl XPush {
    /// A matcher with these settings.
    pub fn new(settings: Settings) -> XPush {
        XPush { settings, pool: Mutex::default() }
    }

    /// Its settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Takes machines for the segments of a snapshot out of the pool, or makes new ones. A segment's first worker makes
    /// its automaton; others that want it wait for that.
    pub fn worker(&self, snapshot: &Snapshot) -> XPushWorker {
        let parts = snapshot.segments.iter().map(|part| (part.segment.number(), self.part(&part.segment)));
        XPushWorker { parts: parts.collect() }
    }

    fn part(&self, segment: &Arc<Segment>) -> Part {
        let shared = {
            let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
            let shared = pool.entry(segment.number()).or_insert_with(|| Shared {
                segment: Arc::downgrade(segment),
                automaton: Arc::default(),
                idle: Vec::new(),
            });
            match shared.idle.pop() {
                Some(part) => return part,
                None => Shared { segment: Weak::new(), automaton: shared.automaton.clone(), idle: Vec::new() },
            }
        };
        // Not under the lock: automaton and training take their time.
        let mut machine = Machine::new(&shared, segment, &self.settings);
        if self.settings.training {
            training::train(&mut machine, segment, &self.settings);
        }
        Part {
            machine,
            symbols: DocumentSymbols::default(),
            remembered: RememberedSymbols::default(),
            counts: Counts::default(),
        }
    }

    /// Returns machines to the pool and forgets those of segments that are gone.
    pub fn give_back(&self, worker: XPushWorker) {
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        for (number, part) in worker.parts {
            if let Some(shared) = pool.get_mut(&number) {
                shared.idle.push(part);
            }
        }
        pool.retain(|_, shared| shared.segment.strong_count() > 0);
    }

    /// Sizes and counters of the idle machines.
    pub fn statistics(&self) -> XPushStatistics {
        let pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        let mut total = XPushStatistics::default();
        #[allow(clippy::iter_over_hash_type)] // a sum does not depend on the order
        for shared in pool.values() {
            if let Some(automaton) = shared.automaton.get() {
                total.automaton_states += automaton.state_count() as usize;
                total.automaton_bytes += automaton.memory_bytes();
                total.inexact_rows += automaton.inexact_rows as usize;
                total.unfiltered_rows += automaton.unfiltered_rows as usize;
            }
            for part in &shared.idle {
                part.add_to(&mut total);
            }
        }
        total
    }

    /// Matches one document.
    pub fn match_document(
        &self,
        worker: &mut XPushWorker,
        snapshot: &Snapshot,
        document: &Document,
        stream: Option<&str>,
    ) -> Matches {
        let mut matches = Matches::default();
        let ordered = self.settings.order.as_ref().is_some_and(|order| order.holds(document));
        for (number, (part, (_, own))) in snapshot.segments.iter().zip(&mut worker.parts).enumerate() {
            let segment = &*part.segment;
            resolve(segment, document, &mut own.symbols, &mut own.remembered);
            own.counts.unordered += u64::from(self.settings.order.is_some() && !ordered);
            own.machine.run(segment, Subject { document, symbols: &own.symbols, ordered });
            let mut verifier = Verifier::new(document, &own.symbols, self.settings.cost_limit);
            let view = segment.view();
            let mut constants = Vec::new();
            let mut satisfied: Vec<Range<u32>> = Vec::new();
            for marked in &own.machine.rows {
                let row = marked & !INEXACT;
                let subscriptions = view.subscriptions_of(row);
                if marked & INEXACT != 0 {
                    own.counts.verified += 1;
                    let signature = view.signature_of(row);
                    view.constants(&signature, row, &mut constants);
                    match verifier.verify(view.query(&signature), signature.plain, &constants) {
                        Ok(true) => {}
                        Ok(false) => continue,
                        Err(error) => {
                            matches.fail(snapshot, number, stream, subscriptions, &error);
                            continue;
                        }
                    }
                }
                append(&mut satisfied, subscriptions);
            }
            matches.add(snapshot, number, stream, satisfied);
        }
        matches
    }
}

impl Part {
    fn add_to(&self, total: &mut XPushStatistics) {
        let store = &self.machine.store;
        total.states += store.sets.len();
        total.state_members += store.sets.member_count();
        total.top_down_states += store.down_count();
        total.value_states += store.value_count();
        total.transitions += store.transition_count();
        total.lookups += store.counts.lookups;
        total.hits += store.counts.lookups - store.counts.misses;
        total.clears += store.counts.clears;
        total.store_bytes += self.machine.memory_bytes();
        total.verified_rows += self.counts.verified;
        total.early_rows += self.machine.early_rows;
        total.unordered_documents += self.counts.unordered;
    }
}
