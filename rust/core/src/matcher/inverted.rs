//! The inverted matcher: candidates from shared structures, then only what has to be verified.
//!
//! `document → walk (path DFA, predicate index) → postings → runs of rows → decided rows, columns, exact verification`.
//! The cost of a document depends on the postings it hits, not on the number of subscriptions.

use super::bits::BitSet;
use super::columns::{FlatPlan, FlatView, Scratch};
use super::places::{Joiner, Operands};
use super::postings::{Walker, resolve};
use super::results::Matches;
use super::verify::Verifier;
use crate::document::Document;
use crate::index::{Segment, Signature, Snapshot, View};
use crate::predicates::{Guard, GuardList, NO_POSTING, Patterns, Posting, PredicateIndex, Run};
use crate::xpath::ast::ConstantRef;
use crate::xpath::evaluate::EvaluateError;
use crate::xpath::symbols::DocumentSymbols;
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::ops::Range;
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

/// Runs shorter than this are verified row by row: looking up values for columns would cost more.
const MIN_COLUMNAR_ROWS: usize = 4;

/// Runs that are judged together; fewer than 256.
const JUDGE_BATCH: usize = 64;

/// Rows that are verified together.
const VERIFY_BATCH: usize = 64;

/// What all workers share for one segment.
#[derive(Debug)]
struct Shared {
    segment: Weak<Segment>,
    patterns: Arc<OnceLock<Patterns>>,
    idle: Vec<Part>,
}

/// What one worker keeps for one segment between documents.
#[derive(Debug)]
struct Part {
    patterns: Arc<OnceLock<Patterns>>,
    walker: Walker,
    symbols: DocumentSymbols,
    joiner: Joiner,
    rows_seen: BitSet,
    flat_plans: HashMap<u32, Option<Arc<FlatPlan>>, FixedState>,
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

/// What happened to rows, over all documents.
#[derive(Clone, Copy, Debug, Default)]
pub struct RowCounts {
    /// Rows that the shared structures led to.
    pub candidates: u64,
    /// Rows that a guard or a join spared from being looked at; they are no candidates.
    pub guarded: u64,
    /// Candidates decided by their access predicate, or by it, its guards and their joins.
    pub decided: u64,
    /// Rows judged by columns.
    pub columnar: u64,
    /// Rows evaluated one by one.
    pub verified: u64,
}

impl std::ops::AddAssign for RowCounts {
    fn add_assign(&mut self, other: RowCounts) {
        self.candidates += other.candidates;
        self.guarded += other.guarded;
        self.decided += other.decided;
        self.columnar += other.columnar;
        self.verified += other.verified;
    }
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
    parts: Vec<(u64, Part)>,
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
                let own = shared.idle.pop().unwrap_or_else(|| Part {
                    patterns: shared.patterns.clone(),
                    walker: Walker::new(self.settings.path_cache_bytes),
                    symbols: DocumentSymbols::default(),
                    joiner: Joiner::default(),
                    rows_seen: BitSet::default(),
                    flat_plans: HashMap::default(),
                    rows: RowCounts::default(),
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
            total.cache_bytes += bytes + part.rows_seen.memory_bytes() + part.joiner.memory_bytes();
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
            resolve(segment, document, &mut own.symbols);
            own.joiner.clear();
            own.walker.walk(segment, &own.patterns, document, &own.symbols);
            let mut judge = Judge {
                view: segment.view(),
                predicates: segment.predicates(),
                walker: &own.walker,
                document,
                symbols: &own.symbols,
                joiner: &mut own.joiner,
                rows_seen: &mut own.rows_seen,
                flat_plans: &mut own.flat_plans,
                flat_views: HashMap::default(),
                verifier: Verifier::new(document, &own.symbols, self.settings.cost_limit),
                pending: Vec::new(),
                batch: Vec::new(),
                constants: Vec::new(),
                scratch: Scratch::default(),
                held: Vec::new(),
                satisfied: Vec::new(),
                failed: Vec::new(),
                rows: RowCounts::default(),
            };
            judge.run_all();
            let Judge { satisfied, failed, rows, .. } = judge;
            own.rows += rows;
            let view = segment.view();
            let satisfied = satisfied.into_iter().map(|rows| view.subscriptions_of_rows(rows));
            matches.add(snapshot, number, stream, satisfied);
            for (row, error) in failed {
                matches.fail(snapshot, number, stream, view.subscriptions_of(row), &error);
            }
        }
        matches
    }

    /// Whether the shared structures lead from a document to a row of a segment.
    pub fn is_candidate(&self, segment: &Arc<Segment>, document: &Document, row: u32) -> bool {
        let mut walker = Walker::new(self.settings.path_cache_bytes);
        let mut symbols = DocumentSymbols::default();
        resolve(segment, document, &mut symbols);
        walker.walk(segment, &OnceLock::new(), document, &symbols);
        let predicates = segment.predicates();
        let hit = walker.hits.iter().flat_map(|posting| predicates.runs(*posting));
        without_posting(&predicates, &walker)
            .chain(hit)
            .filter(|run| run.rows().contains(&row))
            .map(|run| Candidate::new(NO_POSTING, run, &predicates))
            .filter(|candidate| candidate.passes_first(&walker))
            .map(|candidate| Passage::behind(candidate.run, predicates.list(candidate.guard.list), &walker))
            .any(|passage| !matches!(passage, Passage::Closed))
    }
}

/// The runs that a document leads to without a posting that would say where.
fn without_posting<'a>(predicates: &PredicateIndex<'a>, walker: &'a Walker) -> impl Iterator<Item = &'a Run> {
    let predicates = *predicates;
    let in_range = walker.ranges.iter().flat_map(move |(list, value)| {
        let list = &predicates.ranges[*list as usize];
        predicates.satisfied(list, *value)
    });
    predicates.always_runs.iter().chain(in_range)
}

/// Adds satisfied rows, to those before if they are neighbours. Their subscriptions are looked up later, all at once.
fn satisfy(satisfied: &mut Vec<Range<u32>>, rows: Range<u32>) {
    match satisfied.last_mut() {
        Some(last) if last.end == rows.start => last.end = rows.end,
        _ => satisfied.push(rows),
    }
}

/// What the guards of a run say.
#[derive(Clone, Copy)]
enum Passage<'a> {
    /// No row can be satisfied.
    Closed,
    /// Rows may be satisfied.
    Open,
    /// Rows may be satisfied, and joins decide which.
    Joined(GuardList<'a>),
    /// All rows are satisfied.
    Decided,
}

impl<'a> Passage<'a> {
    /// Where the first guards have said nothing against it.
    #[inline]
    fn behind(run: &Run, list: GuardList<'a>, walker: &Walker) -> Passage<'a> {
        let open = if run.is_decided() { Passage::Decided } else { Passage::Open };
        if !list.guards.iter().all(|posting| walker.hit.contains(*posting)) {
            return Passage::Closed;
        }
        if run.is_conjunctive() && !list.anchors.iter().any(|anchor| walker.repeated.contains(*anchor)) {
            return Passage::Decided;
        }
        if list.joins.is_empty() { open } else { Passage::Joined(list) }
    }
}

/// A run that a document leads to, and what guards it.
#[derive(Clone, Copy)]
struct Candidate<'a> {
    access: Posting,
    run: &'a Run,
    guard: &'a Guard,
}

impl<'a> Candidate<'a> {
    #[inline]
    fn new(access: Posting, run: &'a Run, predicates: &PredicateIndex<'a>) -> Candidate<'a> {
        Candidate { access, run, guard: predicates.guards.get(run.guard as usize).unwrap_or(&Guard::NONE) }
    }

    /// Whether the document hits what the first guards ask for.
    #[inline]
    fn passes_first(&self, walker: &Walker) -> bool {
        // No branches: which way they go can not be predicted, and what comes next need not wait for it.
        self.guard.first.iter().fold(true, |all, posting| all & walker.hit.contains_if_within(*posting))
    }
}

/// Judges the candidates of one document in one segment.
struct Judge<'a> {
    view: View<'a>,
    predicates: PredicateIndex<'a>,
    /// What the document hits.
    walker: &'a Walker,
    document: &'a Document,
    symbols: &'a DocumentSymbols,
    joiner: &'a mut Joiner,
    rows_seen: &'a mut BitSet,
    flat_plans: &'a mut HashMap<u32, Option<Arc<FlatPlan>>, FixedState>,
    flat_views: HashMap<u32, FlatView, FixedState>,
    verifier: Verifier<'a>,
    /// Rows to be verified: signature and row.
    pending: Vec<(u32, u32)>,
    batch: Vec<(Signature, u32)>,
    constants: Vec<ConstantRef<'a>>,
    scratch: Scratch,
    held: Vec<u32>,
    /// Rows.
    satisfied: Vec<Range<u32>>,
    failed: Vec<(u32, EvaluateError)>,
    rows: RowCounts,
}

impl<'a> Judge<'a> {
    /// Judges all runs that the document leads to. What is read of the index is scattered over memory, and each part
    /// says where the next one is; so one part of many runs is read before the next part of any: the processor then
    /// waits for many lines at a time, not for one.
    fn run_all(&mut self) {
        let (walker, predicates) = (self.walker, self.predicates);
        self.rows_seen.reserve(self.view.row_count() as usize);
        let mut block = Vec::with_capacity(JUDGE_BATCH);
        for run in without_posting(&predicates, walker) {
            self.look(NO_POSTING, run, &mut block);
        }
        let mut found: [(Posting, Range<u32>); JUDGE_BATCH] = std::array::from_fn(|_| (NO_POSTING, 0..0));
        for hits in walker.hits.chunks(JUDGE_BATCH) {
            for (posting, into) in hits.iter().zip(&mut found) {
                *into = (*posting, predicates.run_numbers(*posting));
            }
            for (posting, numbers) in &found[..hits.len()] {
                for run in &predicates.runs[numbers.start as usize..numbers.end as usize] {
                    self.look(*posting, run, &mut block);
                }
            }
        }
        self.judge_block(&block);
        self.verify_pending();
        self.rows_seen.clear();
    }

    #[inline]
    fn look(&mut self, access: Posting, run: &'a Run, block: &mut Vec<Candidate<'a>>) {
        if run.is_settled() {
            // Mere existence: of these there are many, and nothing has to be asked.
            self.rows.candidates += run.rows().len() as u64;
            self.rows.decided += run.rows().len() as u64;
            satisfy(&mut self.satisfied, run.rows());
            return;
        }
        block.push(Candidate::new(access, run, &self.predicates));
        if block.len() == JUDGE_BATCH {
            self.judge_block(block);
            block.clear();
        }
    }

    /// Judges some runs.
    fn judge_block(&mut self, block: &[Candidate<'a>]) {
        let mut passing = [0u8; JUDGE_BATCH];
        let mut count = 0;
        for (at, candidate) in block.iter().enumerate() {
            let passes = candidate.passes_first(self.walker);
            passing[count] = at as u8;
            count += usize::from(passes);
            self.rows.guarded += u64::from(!passes) * candidate.run.rows().len() as u64;
        }
        let mut lists = [GuardList::default(); JUDGE_BATCH];
        for (at, list) in passing[..count].iter().zip(&mut lists) {
            *list = self.predicates.list(block[*at as usize].guard.list);
        }
        for (at, list) in passing[..count].iter().zip(lists) {
            self.judge_run(&block[*at as usize], list);
        }
    }

    fn judge_run(&mut self, candidate: &Candidate<'a>, list: GuardList<'a>) {
        let Candidate { access, run, guard } = *candidate;
        let mut passage = Passage::behind(run, list, self.walker);
        if let Passage::Joined(list) = passage {
            let operands = Operands { access, guard, list };
            passage = match self.joiner.decide(self.document, &self.walker.places, &operands) {
                Some(true) => Passage::Decided,
                Some(false) => Passage::Closed,
                None => Passage::Open,
            };
        }
        if matches!(passage, Passage::Closed) {
            self.rows.guarded += run.rows().len() as u64;
        } else if run.is_shared() {
            // Rows in several postings are judged once each.
            for row in run.rows() {
                if self.rows_seen.insert(row) {
                    self.judge(run, passage, row..row + 1);
                }
            }
        } else {
            self.judge(run, passage, run.rows());
        }
    }

    fn judge(&mut self, run: &Run, passage: Passage<'_>, rows: Range<u32>) {
        self.rows.candidates += rows.len() as u64;
        if matches!(passage, Passage::Decided) {
            self.rows.decided += rows.len() as u64;
            satisfy(&mut self.satisfied, rows);
        } else if rows.len() < MIN_COLUMNAR_ROWS || !self.refine(run, rows.clone()) {
            self.verify(run.signature, rows);
        }
        if self.pending.len() >= VERIFY_BATCH {
            self.verify_pending();
        }
    }

    fn verify(&mut self, signature: u32, rows: Range<u32>) {
        self.pending.extend(rows.map(|row| (signature, row)));
    }

    /// Verifies the pending rows. What it reads of the index is scattered over memory, so it reads the same part of
    /// all rows before the next part of any: the processor then waits for many lines at a time, not for one.
    fn verify_pending(&mut self) {
        let view = self.view;
        for pending in self.pending.chunks(VERIFY_BATCH) {
            self.rows.verified += pending.len() as u64;
            self.batch.clear();
            self.batch.extend(pending.iter().map(|(signature, row)| (view.signature(*signature), *row)));
            self.constants.clear();
            for (signature, row) in &self.batch {
                self.constants.extend((0..signature.slots).map(|slot| view.constant(signature, *row, slot)));
            }
            let mut constants = &self.constants[..];
            for (signature, row) in &self.batch {
                let (own, others) = constants.split_at(signature.slots as usize);
                constants = others;
                match self.verifier.verify(view.query(signature), signature.plain, own) {
                    Ok(true) => satisfy(&mut self.satisfied, *row..row + 1),
                    Ok(false) => {}
                    Err(error) => self.failed.push((*row, error)),
                }
            }
        }
        self.pending.clear();
    }

    /// Judges the rows of a flat signature by columns; false if the signature is not flat.
    fn refine(&mut self, run: &Run, rows: Range<u32>) -> bool {
        let view = self.view;
        let signature = view.signature(run.signature);
        let query = view.query(&signature);
        let plan = self
            .flat_plans
            .entry(run.signature)
            .or_insert_with(|| if signature.plain { FlatPlan::new(&query).map(Arc::new) } else { None });
        let Some(plan) = plan.clone() else { return false };
        let seen = self
            .flat_views
            .entry(run.signature)
            .or_insert_with(|| FlatView::new(&plan, &query, &view, self.document, self.symbols));
        self.rows.columnar += rows.len() as u64;
        let mut held = std::mem::take(&mut self.held);
        held.clear();
        seen.refine(&plan, &view, &signature, rows, &mut self.scratch, &mut held);
        for row in &held {
            if plan.residual {
                self.verify(run.signature, *row..row + 1);
            } else {
                satisfy(&mut self.satisfied, *row..row + 1);
            }
        }
        self.held = held;
        true
    }
}
