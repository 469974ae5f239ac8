//! The inverted matcher: candidates from shared structures, then only what has to be verified.
//!
//! `document → walk (path DFA, predicate index) → postings → runs of rows → decided rows, columns, exact verification`.
//! The cost of a document depends on the postings it hits, not on the number of subscriptions.

use super::judge::{self, Judge, Judgement, Kept, RowCounts};
use super::postings::{Index, Walker, resolve};
use super::recent::Recent;
use super::results::Matches;
use crate::document::Document;
use crate::index::{Segment, Snapshot};
use crate::predicates::Patterns;
use crate::xpath::symbols::{DocumentSymbols, RememberedSymbols};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

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

impl Part {
    fn new(patterns: Arc<OnceLock<Patterns>>, settings: &Settings) -> Box<Part> {
        Box::new(Part {
            patterns,
            walker: Walker::new(settings.path_cache_bytes),
            symbols: DocumentSymbols::default(),
            remembered: RememberedSymbols::default(),
            kept: Kept::default(),
            rows: RowCounts::default(),
        })
    }

    /// Judges the rows of a segment by a document.
    fn judge(&mut self, segment: &Segment, document: &Document, cost_limit: u64) -> Judgement {
        let index = Index::new(segment);
        resolve(segment, document, &mut self.symbols, &mut self.remembered);
        self.walker.walk(&index, &self.patterns, document, &self.symbols);
        let satisfied = std::mem::take(&mut self.walker.found.satisfied);
        let judge = Judge::new(&index, &self.walker, document, &self.symbols, &mut self.kept, cost_limit, satisfied);
        let judgement = judge.run_all();
        self.walker.expected = judgement.satisfied.len();
        judgement
    }
}

impl Shared {
    fn of<'p>(pool: &'p mut HashMap<u64, Shared, FixedState>, segment: &Arc<Segment>) -> &'p mut Shared {
        pool.entry(segment.number()).or_insert_with(|| Shared {
            segment: Arc::downgrade(segment),
            patterns: Arc::default(),
            idle: Vec::new(),
        })
    }

    /// Takes out those of segments that are gone; freeing them takes time, in which nobody should be locked out.
    fn take_gone(pool: &mut HashMap<u64, Shared, FixedState>) -> Vec<Shared> {
        pool.extract_if(|_, shared| shared.segment.strong_count() == 0).map(|(_, shared)| shared).collect()
    }
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

/// The caches that wait for a thread, and, if somebody prepares new ones, what with.
#[derive(Debug, Default)]
struct Pool {
    segments: Mutex<HashMap<u64, Shared, FixedState>>,
    recent: OnceLock<Recent>,
}

/// Most that one exact evaluation may cost while caches are prepared; it leaves nothing in them that costs more.
const PREPARATION_COST: u64 = 10_000;

/// The matcher: settings and a pool of caches, to be shared between threads.
#[derive(Debug, Default)]
pub struct Inverted {
    settings: Settings,
    pool: Arc<Pool>,
}

/// The caches of one thread for the segments of one snapshot; give it back with [`Inverted::give_back`].
#[derive(Debug)]
pub struct Worker {
    parts: Vec<(u64, Box<Part>)>,
}

impl Pool {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Shared, FixedState>> {
        self.segments.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inverted {
    /// A matcher with these settings.
    pub fn new(settings: Settings) -> Inverted {
        Inverted { settings, pool: Arc::default() }
    }

    /// Its settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Takes caches for the segments of a snapshot out of the pool, or makes new ones.
    pub fn worker(&self, snapshot: &Snapshot) -> Worker {
        let mut pool = self.pool.lock();
        let parts = snapshot.segments.iter().map(|part| {
            let segment = &part.segment;
            let shared = Shared::of(&mut pool, segment);
            let own = shared.idle.pop().unwrap_or_else(|| Part::new(shared.patterns.clone(), &self.settings));
            (segment.number(), own)
        });
        Worker { parts: parts.collect() }
    }

    /// What prepares caches for a segment that nobody has matched with yet: it matches some of the last documents, until
    /// `at_most` is over. Without that, the first matches with a large segment take many times as long.
    pub fn preparation(&self) -> impl Fn(&Arc<Segment>, Duration) + Send + Sync + use<> {
        let (pool, settings) = (self.pool.clone(), self.settings);
        pool.recent.get_or_init(Recent::default);
        move |segment, at_most| {
            let began = Instant::now();
            let documents = pool.recent.get_or_init(Recent::default).documents();
            if documents.is_empty() {
                return;
            }
            let patterns = Shared::of(&mut pool.lock(), segment).patterns.clone();
            let mut part = Part::new(patterns, &settings);
            for document in documents.iter().take_while(|_| began.elapsed() < at_most) {
                part.judge(segment, document, settings.cost_limit.min(PREPARATION_COST));
            }
            let mut segments = pool.lock();
            Shared::of(&mut segments, segment).idle.push(part);
            // Registering may go on for long while nobody matches.
            let gone = Shared::take_gone(&mut segments);
            drop(segments);
            drop(gone);
        }
    }

    /// Returns caches to the pool and forgets those of segments that are gone.
    pub fn give_back(&self, worker: Worker) {
        let mut pool = self.pool.lock();
        for (number, part) in worker.parts {
            if let Some(shared) = pool.get_mut(&number) {
                shared.idle.push(part);
            }
        }
        let gone = Shared::take_gone(&mut pool);
        drop(pool);
        drop(gone);
    }

    /// Sizes and counters of the idle caches.
    pub fn statistics(&self) -> InvertedStatistics {
        let pool = self.pool.lock();
        let recent = self.pool.recent.get().map_or(0, Recent::memory_bytes);
        let mut total = InvertedStatistics { cache_bytes: recent, ..Default::default() };
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
            let Judgement { satisfied, failed, rows } = own.judge(segment, document, self.settings.cost_limit);
            own.rows += rows;
            matches.add(snapshot, number, stream, satisfied);
            for (row, error) in failed {
                matches.fail(snapshot, number, stream, segment.view().subscriptions_of(row), &error);
            }
        }
        if let (Some(recent), Some((_, first))) = (self.pool.recent.get(), worker.parts.first()) {
            recent.offer(first.walker.document_number, document);
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
