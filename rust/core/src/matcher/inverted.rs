//! The inverted matcher: candidates from shared structures, then only what has to be verified.
//!
//! `document → walk (path DFA, predicate index) → postings → runs of rows → decided rows, columns, exact verification`.
//! The cost of a document depends on the postings it hits, not on the number of subscriptions.

use super::judge::{self, Judge, Judgement, Kept, RowCounts};
use super::postings::{Index, Walker, resolve};
use super::results::Matches;
use crate::document::Document;
use crate::index::{Segment, Snapshot};
use crate::predicates::Patterns;
use crate::xpath::symbols::{DocumentSymbols, RememberedSymbols};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

/// Settings of a matcher.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Most that one exact evaluation may cost, see [`Evaluator`](crate::xpath::evaluate::Evaluator).
    pub cost_limit: u64,
    /// Bytes that the path cache of one worker may use per segment.
    pub path_cache_bytes: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { cost_limit: 100_000_000, path_cache_bytes: 256 << 20 }
    }
}

/// What all workers share for one segment.
#[derive(Debug)]
struct Shared {
    segment: Weak<Segment>,
    patterns: Arc<OnceLock<Patterns>>,
    #[allow(clippy::vec_box)] // each match takes them and gives them back, and small documents feel what that copies
    idle: Vec<Box<Part>>,
}

/// What one worker keeps for one segment between documents.
#[derive(Debug)]
struct Part {
    patterns: Arc<OnceLock<Patterns>>,
    walker: Walker,
    symbols: DocumentSymbols,
    remembered: RememberedSymbols,
    kept: Kept,
    rows: RowCounts,
}

/// Sizes and counters of the caches, summed over idle workers.
#[derive(Clone, Copy, Debug, Default)]
pub struct InvertedStatistics {
    /// States of the path automata.
    pub path_states: usize,
    /// Bytes of the caches.
    pub cache_bytes: usize,
    /// How often a path cache was full and started again.
    pub path_cache_clears: u64,
    /// What happened to rows.
    pub rows: RowCounts,
}

/// The matcher: settings and a pool of caches, to be shared between threads.
#[derive(Debug, Default)]
pub struct Inverted {
    settings: Settings,
    pool: Mutex<HashMap<u64, Shared, FixedState>>,
}

/// The caches of one thread for the segments of one snapshot; give it back with [`Inverted::give_back`].
#[derive(Debug)]
pub struct Worker {
    parts: Vec<(u64, Box<Part>)>,
}

impl Inverted {
    /// A matcher with these settings.
    pub fn new(settings: Settings) -> Inverted {
        Inverted { settings, pool: Mutex::default() }
    }

    /// Its settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Takes caches for the segments of a snapshot out of the pool, or makes new ones.
    pub fn worker(&self, snapshot: &Snapshot) -> Worker {
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        let parts = snapshot
            .segments
            .iter()
            .map(|part| {
                let segment = &part.segment;
                let shared = pool.entry(segment.number()).or_insert_with(|| Shared {
                    segment: Arc::downgrade(segment),
                    patterns: Arc::default(),
                    idle: Vec::new(),
                });
                let own = shared.idle.pop().unwrap_or_else(|| {
                    Box::new(Part {
                        patterns: shared.patterns.clone(),
                        walker: Walker::new(self.settings.path_cache_bytes),
                        symbols: DocumentSymbols::default(),
                        remembered: RememberedSymbols::default(),
                        kept: Kept::default(),
                        rows: RowCounts::default(),
                    })
                });
                (segment.number(), own)
            })
            .collect();
        Worker { parts }
    }

    /// Returns caches to the pool and forgets those of segments that are gone.
    pub fn give_back(&self, worker: Worker) {
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        for (number, part) in worker.parts {
            if let Some(shared) = pool.get_mut(&number) {
                shared.idle.push(part);
            }
        }
        pool.retain(|_, shared| shared.segment.strong_count() > 0);
    }

    /// Sizes and counters of the idle caches.
    pub fn statistics(&self) -> InvertedStatistics {
        let pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        let mut total = InvertedStatistics::default();
        #[allow(clippy::iter_over_hash_type)] // a sum does not depend on the order
        for part in pool.values().flat_map(|shared| &shared.idle) {
            let (states, bytes, clears) = part.walker.statistics();
            total.path_states += states;
            total.cache_bytes += bytes + part.kept.memory_bytes() + part.remembered.memory_bytes();
            total.path_cache_clears += clears;
            total.rows += part.rows;
        }
        total
    }

    /// Matches one document.
    pub fn match_document(
        &self,
        worker: &mut Worker,
        snapshot: &Snapshot,
        document: &Document,
        stream: Option<&str>,
    ) -> Matches {
        let mut matches = Matches::default();
        for (number, (part, (_, own))) in snapshot.segments.iter().zip(&mut worker.parts).enumerate() {
            let segment = &*part.segment;
            let index = Index::new(segment);
            resolve(segment, document, &mut own.symbols, &mut own.remembered);
            own.walker.walk(&index, &own.patterns, document, &own.symbols);
            let satisfied = std::mem::take(&mut own.walker.found.satisfied);
            let limit = self.settings.cost_limit;
            let judge = Judge::new(&index, &own.walker, document, &own.symbols, &mut own.kept, limit, satisfied);
            let Judgement { satisfied, failed, rows } = judge.run_all();
            own.rows += rows;
            own.walker.expected = satisfied.len();
            matches.add(snapshot, number, stream, satisfied);
            for (row, error) in failed {
                matches.fail(snapshot, number, stream, segment.view().subscriptions_of(row), &error);
            }
        }
        matches
    }

    /// Whether the shared structures lead from a document to a row of a segment.
    pub fn is_candidate(&self, segment: &Arc<Segment>, document: &Document, row: u32) -> bool {
        let mut walker = Walker::new(self.settings.path_cache_bytes);
        let mut symbols = DocumentSymbols::default();
        resolve(segment, document, &mut symbols, &mut RememberedSymbols::default());
        let index = Index::new(segment);
        walker.walk(&index, &OnceLock::new(), document, &symbols);
        judge::leads_to(&index, &walker, row)
    }
}
