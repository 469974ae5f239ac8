//! Many documents, several threads, one snapshot.

use super::inverted::Inverted;
use super::naive;
use super::results::Matches;
use crate::document::{DocumentError, Limits, Parser};
use crate::index::Snapshot;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Which matcher answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Matcher {
    /// Shared structures, then verification.
    #[default]
    Inverted,
    /// Every expression, by the exact evaluator.
    Naive,
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

/// Matches documents against one snapshot with up to `threads` threads; the outcomes are in the documents' order.
pub fn match_documents(
    inverted: &Inverted,
    snapshot: &Snapshot,
    documents: &[DocumentInput<'_>],
    limits: &Limits,
    matcher: Matcher,
    threads: usize,
) -> Vec<DocumentOutcome> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut parser = Parser::new(limits.clone());
        let mut worker = inverted.worker(snapshot);
        let mut done: Vec<(usize, DocumentOutcome)> = Vec::new();
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
                let outcome = parsed.map(|document| match matcher {
                    Matcher::Inverted => inverted.match_document(&mut worker, snapshot, &document, stream),
                    Matcher::Naive => {
                        naive::match_document(snapshot, &document, stream, inverted.settings().cost_limit)
                    }
                });
                done.push((number, outcome));
            }
        }
        inverted.give_back(worker);
        done
    };
    let threads = threads.clamp(1, documents.len().div_ceil(CHUNK).max(1));
    if threads == 1 {
        return work().into_iter().map(|(_, outcome)| outcome).collect();
    }
    let mut done: Vec<(usize, DocumentOutcome)> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        handles
            .into_iter()
            .flat_map(|handle| handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    done.sort_unstable_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, outcome)| outcome).collect()
}
