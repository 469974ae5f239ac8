//! From postings to satisfied rows: guards, joins, columns, verification.

use super::bits::BitSet;
use super::columns::{FlatPlan, FlatView, Scratch};
use super::pairs::{Pair, meet};
use super::places::{Joiner, Located, Operands, Scene};
use super::postings::{Index, Walker};
use super::reached::{Candidate, Test};
use super::results::append;
use super::verify::Verifier;
use crate::document::Document;
use crate::index::{Signature, View};
use crate::predicates::{GuardList, NO_POSTING, Posting, PredicateIndex, Run};
use crate::xpath::ast::ConstantRef;
use crate::xpath::evaluate::EvaluateError;
use crate::xpath::symbols::DocumentSymbols;
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// What happened to rows, over all documents.
#[derive(Clone, Copy, Debug, Default)]
pub struct RowCounts {
    /// Rows that the shared structures led to.
    pub candidates: u64,
    /// Runs of rows that a guard or a join spared from being looked at; their rows are no candidates.
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

/// Runs shorter than this are verified row by row: looking up values for columns would cost more.
const MIN_COLUMNAR_ROWS: usize = 4;

/// Runs that are judged together; at most 256.
const JUDGE_BATCH: usize = 64;

/// Rows that are verified together.
const VERIFY_BATCH: usize = 64;

/// The runs that a document leads to without a posting that would say where.
fn without_posting<'a>(predicates: &PredicateIndex<'a>, walker: &'a Walker) -> impl Iterator<Item = &'a Run> {
    let predicates = *predicates;
    let in_range = walker.ranges.iter().flat_map(move |(list, value)| {
        let list = &predicates.ranges[*list as usize];
        predicates.satisfied(list, *value)
    });
    predicates.always_runs.iter().chain(in_range)
}

/// Whether postings and guards lead from the document that was walked to a row.
pub(super) fn leads_to(index: &Index<'_>, walker: &Walker, row: u32) -> bool {
    let Index { predicates, view, .. } = index;
    let subscription = view.subscriptions_of(row).start;
    let hit = walker.candidates().flat_map(|(_, candidates)| candidates);
    let hit = hit.map(|candidate| &predicates.runs[candidate.run as usize]);
    let is_open = |run: &Run| {
        let list = predicates.list(predicates.guard(run).list);
        let (test, _) = Test::new(run, predicates, view);
        test.passes(&walker.hit) && !matches!(Passage::behind(run, list, walker), Passage::Closed)
    };
    walker.found.satisfied.iter().any(|subscriptions| subscriptions.contains(&subscription))
        || without_posting(predicates, walker).chain(hit).filter(|run| run.rows().contains(&row)).any(is_open)
}

/// What the guards of a run say.
#[derive(Clone, Copy)]
enum Passage {
    /// No row can be satisfied.
    Closed,
    /// Rows may be satisfied.
    Open,
    /// Rows may be satisfied, and joins decide which; so many of the first branches are one node each.
    Joined { unique: usize },
    /// All rows are satisfied.
    Decided,
}

impl Passage {
    /// Where the first guards have said nothing against it.
    #[inline]
    fn behind(run: &Run, list: GuardList<'_>, walker: &Walker) -> Passage {
        let open = if run.is_decided() { Passage::Decided } else { Passage::Open };
        if !list.guards.iter().all(|posting| walker.hit.contains(*posting)) {
            return Passage::Closed;
        }
        let unique = list.anchors.iter().take_while(|anchor| !walker.repeated.contains(**anchor)).count();
        if run.is_conjunctive() && unique == list.anchors.len() {
            return Passage::Decided;
        }
        if list.joins.is_empty() { open } else { Passage::Joined { unique } }
    }
}

/// What is kept between documents.
#[derive(Debug, Default)]
pub(super) struct Kept {
    joiner: Joiner,
    located: Located,
    rows_seen: BitSet,
    flat_plans: HashMap<u32, Option<Arc<FlatPlan>>, FixedState>,
    /// What the plans see in the document.
    flat_views: HashMap<u32, FlatView, FixedState>,
    scratch: Scratch,
}

impl Kept {
    /// Bytes in use.
    pub(super) fn memory_bytes(&self) -> usize {
        self.rows_seen.memory_bytes() + self.joiner.memory_bytes() + self.located.memory_bytes()
    }
}

/// A candidate that its [`Pair`] decides.
struct Paired {
    candidate: Candidate,
    guard: Posting,
    pair: Pair,
    subscription: u32,
}

/// What came out.
#[derive(Default)]
pub(super) struct Judgement {
    /// Subscriptions.
    pub(super) satisfied: Vec<Range<u32>>,
    /// Rows whose evaluation failed.
    pub(super) failed: Vec<(u32, EvaluateError)>,
    pub(super) rows: RowCounts,
}

/// Judges the candidates of one document in one segment.
pub(super) struct Judge<'a> {
    view: View<'a>,
    predicates: PredicateIndex<'a>,
    /// What the document hits.
    walker: &'a Walker,
    document: &'a Document,
    symbols: &'a DocumentSymbols,
    kept: &'a mut Kept,
    verifier: Verifier<'a>,
    /// Rows to be verified: signature and row.
    pending: Vec<(u32, u32)>,
    batch: Vec<(Signature, u32)>,
    constants: Vec<ConstantRef<'a>>,
    held: Vec<u32>,
    /// Candidates that are not decided by what is asked first. They wait, so that little else is read while tests are.
    pairs: Vec<Paired>,
    others: Vec<(Posting, &'a Run)>,
    out: Judgement,
}

impl<'a> Judge<'a> {
    pub(super) fn new(
        index: &Index<'a>,
        walker: &'a Walker,
        document: &'a Document,
        symbols: &'a DocumentSymbols,
        kept: &'a mut Kept,
        cost_limit: u64,
        satisfied: Vec<Range<u32>>,
    ) -> Judge<'a> {
        kept.joiner.clear();
        kept.flat_views.clear();
        kept.located.clear(index.predicates.posting_count());
        Judge {
            view: index.view,
            predicates: index.predicates,
            walker,
            document,
            symbols,
            kept,
            verifier: Verifier::new(document, symbols, cost_limit),
            pending: Vec::new(),
            batch: Vec::new(),
            constants: Vec::new(),
            held: Vec::new(),
            pairs: Vec::new(),
            others: Vec::new(),
            out: Judgement { satisfied, ..Judgement::default() },
        }
    }

    /// Judges all runs that the document leads to.
    pub(super) fn run_all(mut self) -> Judgement {
        let (walker, predicates, view) = (self.walker, self.predicates, self.view);
        self.kept.rows_seen.reserve(view.row_count() as usize);
        self.out.rows.candidates += walker.found.rows;
        self.out.rows.decided += walker.found.rows;
        for run in without_posting(&predicates, walker) {
            let (test, _) = Test::new(run, &predicates, &view);
            if !test.passes(&walker.hit) {
                self.out.rows.guarded += 1;
            } else if test.decides(&walker.repeated) {
                self.decided(test.subscription);
            } else {
                self.others.push((NO_POSTING, run));
            }
        }
        for (tests, candidates) in walker.candidates() {
            for (tests, candidates) in tests.chunks(JUDGE_BATCH).zip(candidates.chunks(JUDGE_BATCH)) {
                self.judge_runs(tests, candidates);
            }
        }
        self.judge_others();
        self.verify_pending();
        self.kept.rows_seen.clear();
        self.out
    }

    /// Judges some runs, at most [`JUDGE_BATCH`]. What their first guards say can not be predicted, so they are sorted
    /// by it without branches.
    fn judge_runs(&mut self, tests: &[Test], candidates: &[Candidate]) {
        let (mut decided, mut others) = ([0u8; JUDGE_BATCH], [0u8; JUDGE_BATCH]);
        let (mut decided_count, mut other_count) = (0, 0);
        for (at, test) in tests.iter().enumerate() {
            let passes = test.passes(&self.walker.hit);
            let decides = test.decides(&self.walker.repeated);
            decided[decided_count] = at as u8;
            decided_count += usize::from(passes & decides);
            others[other_count] = at as u8;
            other_count += usize::from(passes & !decides);
        }
        self.out.rows.guarded += (tests.len() - decided_count - other_count) as u64;
        self.out.rows.candidates += decided_count as u64;
        self.out.rows.decided += decided_count as u64;
        for at in &decided[..decided_count] {
            let subscription = tests[*at as usize].subscription;
            append(&mut self.out.satisfied, subscription..subscription + 1);
        }
        let runs = self.predicates.runs;
        for at in &others[..other_count] {
            let (test, candidate) = (&tests[*at as usize], candidates[*at as usize]);
            match candidate.pair {
                Some(pair) => {
                    let guard = test.first_guard();
                    self.kept.located.want_all([candidate.access, guard]);
                    self.pairs.push(Paired { candidate, guard, pair, subscription: test.subscription });
                }
                None => self.others.push((candidate.access, &runs[candidate.run as usize])),
            }
        }
    }

    /// A row with one subscription is satisfied.
    #[inline]
    fn decided(&mut self, subscription: u32) {
        self.out.rows.candidates += 1;
        self.out.rows.decided += 1;
        append(&mut self.out.satisfied, subscription..subscription + 1);
    }

    /// Judges the runs that what is asked first does not decide.
    fn judge_others(&mut self) {
        let (others, pairs) = (std::mem::take(&mut self.others), std::mem::take(&mut self.pairs));
        let predicates = self.predicates;
        // One part of all of them before the next part of any, as in `verify_pending`.
        let guards: Vec<_> = others.iter().map(|(_, run)| predicates.guard(run)).collect();
        let lists: Vec<_> = guards.iter().map(|guard| predicates.list(guard.list)).collect();
        let mut joined = Vec::new();
        for (((access, run), guard), list) in others.into_iter().zip(guards).zip(lists) {
            match Passage::behind(run, list, self.walker) {
                Passage::Joined { unique } => {
                    let operands = Operands { access, guard, list, unique };
                    self.kept.located.want(&operands);
                    joined.push((run, operands));
                }
                passage => self.judge_run(run, passage),
            }
        }
        if pairs.len() + joined.len() > 0 {
            self.kept.located.find(&self.walker.places);
        }
        for Paired { candidate, guard, pair, subscription } in pairs {
            let scene = Scene { document: self.document, places: &self.walker.places, located: &self.kept.located };
            match meet(scene, candidate.access, guard, pair) {
                Some(true) => self.decided(subscription),
                Some(false) => self.out.rows.guarded += 1,
                None => {
                    let run = &predicates.runs[candidate.run as usize];
                    let guard = predicates.guard(run);
                    let list = predicates.list(guard.list);
                    joined.push((run, Operands { access: candidate.access, guard, list, unique: 0 }));
                }
            }
        }
        for (run, operands) in joined {
            let Kept { located, joiner, .. } = &mut *self.kept;
            let scene = Scene { document: self.document, places: &self.walker.places, located };
            let passage = match joiner.decide(scene, &operands) {
                Some(true) => Passage::Decided,
                Some(false) => Passage::Closed,
                None => Passage::Open,
            };
            self.judge_run(run, passage);
        }
    }

    fn judge_run(&mut self, run: &Run, passage: Passage) {
        if matches!(passage, Passage::Closed) {
            self.out.rows.guarded += 1;
        } else if run.is_shared() {
            // Rows in several postings are judged once each.
            for row in run.rows() {
                if self.kept.rows_seen.insert(row) {
                    self.judge(run, passage, row..row + 1);
                }
            }
        } else {
            self.judge(run, passage, run.rows());
        }
    }

    fn judge(&mut self, run: &Run, passage: Passage, rows: Range<u32>) {
        self.out.rows.candidates += rows.len() as u64;
        if matches!(passage, Passage::Decided) {
            self.out.rows.decided += rows.len() as u64;
            append(&mut self.out.satisfied, self.view.subscriptions_of_rows(rows));
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
            self.out.rows.verified += pending.len() as u64;
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
                    Ok(true) => append(&mut self.out.satisfied, view.subscriptions_of(*row)),
                    Ok(false) => {}
                    Err(error) => self.out.failed.push((*row, error)),
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
        let Kept { flat_plans, flat_views, scratch, .. } = &mut *self.kept;
        let plan = flat_plans.entry(run.signature).or_insert_with(|| {
            if !signature.plain {
                return None;
            }
            let mut constants = Vec::new();
            view.constants(&signature, signature.rows.start, &mut constants);
            FlatPlan::new(&query, view.access(&signature, &constants).as_ref()).map(Arc::new)
        });
        let Some(plan) = plan.clone() else { return false };
        let seen = flat_views
            .entry(run.signature)
            .or_insert_with(|| FlatView::new(&plan, &query, &view, self.document, self.symbols, scratch));
        self.out.rows.columnar += rows.len() as u64;
        let mut held = std::mem::take(&mut self.held);
        held.clear();
        seen.refine(&plan, &view, &signature, rows, scratch, &mut held);
        for row in &held {
            if plan.residual {
                self.verify(run.signature, *row..row + 1);
            } else {
                append(&mut self.out.satisfied, view.subscriptions_of(*row));
            }
        }
        self.held = held;
        true
    }
}
