//! Many documents, several threads, one snapshot.

use super::inverted::{Inverted, Worker};
use super::naive;
use super::results::Matches;
use super::xpush::{XPush, XPushWorker};
use crate::document::{Document, DocumentError, Limits, Parser};
use crate::index::Snapshot;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Which matcher answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Matcher {
    /// Shared structures, then verification.
    #[default]
    Inverted,
    /// One lazily made pushdown machine for all expressions.
    XPush,
    /// Every expression, by the exact evaluator.
    Naive,
}

/// All matchers over one population, each with its caches.
#[derive(Debug, Default)]
pub struct Matchers {
    /// The inverted matcher.
    pub inverted: Inverted,
    /// The XPush matcher.
    pub xpush: XPush,
}

/// The caches of one thread for one matcher and snapshot; give it back with [`Matchers::give_back`].
#[derive(Debug)]
pub enum MatchersWorker {
    /// For [`Matcher::Inverted`].
    Inverted(Worker),
    /// For [`Matcher::XPush`].
    XPush(XPushWorker),
    /// For [`Matcher::Naive`], which keeps nothing.
    Naive,
}

impl Matchers {
    /// Caches for matching documents against a snapshot.
    pub fn worker(&self, matcher: Matcher, snapshot: &Snapshot) -> MatchersWorker {
        match matcher {
            Matcher::Inverted => MatchersWorker::Inverted(self.inverted.worker(snapshot)),
            Matcher::XPush => MatchersWorker::XPush(self.xpush.worker(snapshot)),
            Matcher::Naive => MatchersWorker::Naive,
        }
    }

    /// Returns caches.
    pub fn give_back(&self, worker: MatchersWorker) {
        match worker {
            MatchersWorker::Inverted(worker) => self.inverted.give_back(worker),
            MatchersWorker::XPush(worker) => self.xpush.give_back(worker),
            MatchersWorker::Naive => {}
        }
    }

    /// Matches one document by the matcher that the worker is for.
    pub fn match_document(
        &self,
        worker: &mut MatchersWorker,
        snapshot: &Snapshot,
        document: &Document,
        stream: Option<&str>,
    ) -> Matches {
        match worker {
            MatchersWorker::Inverted(worker) => self.inverted.match_document(worker, snapshot, document, stream),
            MatchersWorker::XPush(worker) => self.xpush.match_document(worker, snapshot, document, stream),
            MatchersWorker::Naive => {
                naive::match_document(snapshot, document, stream, self.inverted.settings().cost_limit)
            }
        }
    }
}

/// One document to match.
#[derive(Clone, Copy, Debug)]
pub enum DocumentInput<'a> {
    /// Bytes in whatever encoding they declare.
    Bytes(&'a [u8], Option<&'a str>),
    /// Text that is decoded already; its encoding declaration is not looked at.
    Text(&'a str, Option<&'a str>),
}

/// What became of one document.
pub type DocumentOutcome = Result<Matches, DocumentError>;

/// Documents taken at once by a thread, so that threads seldom meet.
const CHUNK: usize = 16;

/// Parses documents and does something with each, on up to `threads` threads; the outcomes are in the documents' order.
///
/// Each thread has its own `worker` and gives it back when all documents are taken.
pub fn process_documents<W, T: Send>(
    documents: &[DocumentInput<'_>],
    limits: &Limits,
    threads: usize,
    worker: impl Fn() -> W + Sync,
    process: impl Fn(&mut W, &Document, Option<&str>) -> T + Sync,
    give_back: impl Fn(W) + Sync,
) -> Vec<Result<T, DocumentError>> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut parser = Parser::new(limits.clone());
        let mut own = worker();
        let mut done: Vec<(usize, Result<T, DocumentError>)> = Vec::new();
        loop {
            let start = next.fetch_add(CHUNK, Ordering::Relaxed);
            if start >= documents.len() {
                break;
            }
            for (number, input) in documents.iter().enumerate().skip(start).take(CHUNK) {
                let (parsed, stream) = match *input {
                    DocumentInput::Bytes(bytes, stream) => (parser.parse(bytes), stream),
                    DocumentInput::Text(text, stream) => (parser.parse_str(text), stream),
                };
                done.push((number, parsed.map(|document| process(&mut own, &document, stream))));
            }
        }
        give_back(own);
        done
    };
    let threads = threads.clamp(1, documents.len().div_ceil(CHUNK).max(1));
    if threads == 1 {
        return work().into_iter().map(|(_, outcome)| outcome).collect();
    }
    let mut done: Vec<(usize, Result<T, DocumentError>)> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        handles
            .into_iter()
            .flat_map(|handle| handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    done.sort_unstable_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, outcome)| outcome).collect()
}

/// Matches documents against one snapshot with up to `threads` threads; the outcomes are in the documents' order.
pub fn match_documents(
    matchers: &Matchers,
    snapshot: &Snapshot,
    documents: &[DocumentInput<'_>],
    limits: &Limits,
    matcher: Matcher,
    threads: usize,
) -> Vec<DocumentOutcome> {
    process_documents(
        documents,
        limits,
        threads,
        || matchers.worker(matcher, snapshot),
        |worker, document, stream| matchers.match_document(worker, snapshot, document, stream),
        |worker| matchers.give_back(worker),
    )
}
