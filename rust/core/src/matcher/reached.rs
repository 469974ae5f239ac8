//! What postings lead to, side by side in the order in which documents ask for it.
//!
//! In the index a posting leads to its runs, each of these to its guard, and its rows to their subscriptions: places
//! scattered over memory, each known only when the one before has been read. So what a state of the path automaton, or
//! a value in a state, leads to is copied when it is first met, and later documents read it forwards.

use super::bits::{BitSet, Word};
use super::pairs::Pair;
use super::results::append;
use crate::index::View;
use crate::predicates::{FIRST_GUARDS, NO_POSTING, Posting, PredicateIndex, Run};
use std::ops::Range;

/// A posting that decides alone, and the subscriptions that it satisfies.
#[derive(Clone, Copy, Debug)]
struct Settled {
    posting: Posting,
    rows: u32,
    first: u32,
    end: u32,
}

/// A posting that does not, and the end of its candidates, which begin where those of the one before end.
#[derive(Clone, Copy, Debug)]
struct Asking {
    posting: Posting,
    end: u32,
}

/// What is asked first of a run. Most need nothing else: they have one row, and that has one subscription.
#[derive(Clone, Copy, Debug)]
pub(super) struct Test {
    /// Postings that have to be hit.
    guards: [Posting; FIRST_GUARDS],
    /// If they decide unless this posting leads to several nodes: this posting.
    anchor: Posting,
    /// The subscription, if they decide.
    pub(super) subscription: u32,
}

/// Two postings more than there are: one that every document hits and that leads to several nodes, so that [`Test`]s
/// need not ask whether there is anything to ask, and one that none hits.
pub(super) fn always(posting_count: usize) -> Posting {
    posting_count as Posting
}

fn never(posting_count: usize) -> Posting {
    posting_count as Posting + 1
}

/// Number of postings with those two.
pub(super) fn all_postings(posting_count: usize) -> usize {
    posting_count + 2
}

impl Test {
    /// What is asked first of a run, and what decides it if that does not.
    #[inline]
    pub(super) fn new(run: &Run, index: &PredicateIndex<'_>, view: &View<'_>) -> (Test, Option<Pair>) {
        let guard = index.guard(run);
        let subscriptions = view.subscriptions_of_rows(run.rows());
        let list = index.list(guard.list);
        let postings = index.posting_count();
        let mut pair = None;
        let anchor = match list.anchors {
            // Rows that stand in several postings are judged once each.
            _ if run.is_shared() || !list.guards.is_empty() => always(postings),
            _ if run.rows().len() > 1 || subscriptions.len() > 1 => always(postings),
            [] if run.is_conjunctive() || run.is_decided() && list.joins.is_empty() => never(postings),
            [anchor] if run.is_conjunctive() => {
                pair = Pair::new(guard, &list);
                *anchor
            }
            _ => always(postings),
        };
        let guards = guard.first.map(|posting| posting.min(always(postings)));
        (Test { guards, anchor, subscription: subscriptions.start }, pair)
    }

    /// The first guard.
    #[inline]
    pub(super) fn first_guard(&self) -> Posting {
        self.guards[0]
    }

    /// Whether the document hits what is asked.
    #[inline]
    pub(super) fn passes(&self, hit: &BitSet) -> bool {
        // No branches: which way they go can not be predicted, and what comes next need not wait for it.
        self.guards.iter().fold(true, |all, posting| all & hit.contains(*posting))
    }

    /// Whether that decides, if it does; `repeated` are the postings that lead to several nodes.
    #[inline]
    pub(super) fn decides(&self, repeated: &BitSet) -> bool {
        !repeated.contains(self.anchor)
    }
}

/// A run that a document may lead to. What guards it is not copied: few runs need more than their [`Test`], and most of
/// these a [`Pair`] of access and first guard.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) access: Posting,
    /// Number of the run.
    pub(super) run: u32,
    /// What decides if the test does not.
    pub(super) pair: Option<Pair>,
}

/// Where the things are that a state, or a value in a state, leads to.
#[derive(Clone, Debug, Default)]
pub(super) struct Reach {
    guards: Range<u32>,
    settled: Range<u32>,
    asking: Range<u32>,
    first_candidate: u32,
}

/// What postings lead to.
#[derive(Debug, Default)]
pub(super) struct Reached {
    /// Postings that only guard others.
    guards: Vec<Word>,
    settled: Vec<Settled>,
    asking: Vec<Asking>,
    /// For each candidate.
    tests: Vec<Test>,
    candidates: Vec<Candidate>,
}

impl Reached {
    /// Copies what some postings lead to.
    pub(super) fn add(
        &mut self,
        postings: impl IntoIterator<Item = Posting>,
        predicates: &PredicateIndex<'_>,
        view: &View<'_>,
    ) -> Reach {
        let (guards, settled, asking) = (self.guards.len() as u32, self.settled.len() as u32, self.asking.len() as u32);
        let first_candidate = self.candidates.len() as u32;
        for posting in postings {
            let (numbers, runs) = (predicates.run_numbers(posting), predicates.runs(posting));
            if runs.is_empty() {
                Word::append(&mut self.guards, guards as usize, posting);
                continue;
            }
            if !runs.iter().all(Run::is_settled) {
                for (run, number) in runs.iter().zip(numbers) {
                    let (test, pair) = Test::new(run, predicates, view);
                    self.tests.push(test);
                    self.candidates.push(Candidate { access: posting, run: number, pair });
                }
                self.asking.push(Asking { posting, end: self.candidates.len() as u32 });
                continue;
            }
            let begin = self.settled.len();
            for run in runs {
                let Range { start: first, end } = view.subscriptions_of_rows(run.rows());
                let rows = run.rows().len() as u32;
                match self.settled[begin..].last_mut() {
                    Some(last) if last.end == first => (last.rows, last.end) = (last.rows + rows, end),
                    _ => self.settled.push(Settled { posting, rows, first, end }),
                }
            }
        }
        Reach {
            guards: guards..self.guards.len() as u32,
            settled: settled..self.settled.len() as u32,
            asking: asking..self.asking.len() as u32,
            first_candidate,
        }
    }

    /// A document hits these postings; what they lead to is found if they are new in `hit`.
    #[inline]
    pub(super) fn hit(&self, reach: &Reach, hit: &mut BitSet, found: &mut Found) {
        for word in &self.guards[reach.guards.start as usize..reach.guards.end as usize] {
            hit.insert_word(*word);
        }
        let mut once = Once { last: NO_POSTING, new: false };
        for settled in &self.settled[reach.settled.start as usize..reach.settled.end as usize] {
            if once.is_new(settled.posting, hit) {
                found.rows += u64::from(settled.rows);
                append(&mut found.satisfied, settled.first..settled.end);
            }
        }
        let mut first = reach.first_candidate;
        for asking in &self.asking[reach.asking.start as usize..reach.asking.end as usize] {
            if hit.insert(asking.posting) {
                append(&mut found.candidates, first..asking.end);
            }
            first = asking.end;
        }
    }

    /// Candidates by number, with what is asked of them first.
    #[inline]
    pub(super) fn candidates(&self, numbers: Range<u32>) -> (&[Test], &[Candidate]) {
        let numbers = numbers.start as usize..numbers.end as usize;
        (&self.tests[numbers.clone()], &self.candidates[numbers])
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.guards.clear();
        self.settled.clear();
        self.asking.clear();
        self.tests.clear();
        self.candidates.clear();
    }

    /// Bytes in use.
    pub(super) fn memory_bytes(&self) -> usize {
        self.guards.len() * size_of::<Word>()
            + self.settled.len() * size_of::<Settled>()
            + self.asking.len() * size_of::<Asking>()
            + self.candidates.len() * (size_of::<Test>() + size_of::<Candidate>())
    }
}

/// What a document leads to.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Subscriptions that are satisfied without further questions, and how many rows they have.
    pub(super) satisfied: Vec<Range<u32>>,
    pub(super) rows: u64,
    /// Numbers of candidates.
    pub(super) candidates: Vec<Range<u32>>,
}

/// The posting that came last, so that those of several parts are asked for once.
struct Once {
    last: Posting,
    new: bool,
}

impl Once {
    #[inline]
    fn is_new(&mut self, posting: Posting, hit: &mut BitSet) -> bool {
        if posting != self.last {
            *self = Once { last: posting, new: hit.insert(posting) };
        }
        self.new
    }
}
