//! Documents that were matched lately, for preparing caches with.

use crate::document::Document;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// So many are kept.
const KEPT: usize = 64;
/// One in so many is taken.
const INTERVAL: u64 = 16;
/// Those that take more as trees are not: about 50 KB of XML.
const MAX_BYTES: usize = 128 << 10;

/// Some of the last documents.
#[derive(Debug, Default)]
pub(super) struct Recent {
    kept: Mutex<VecDeque<Arc<Document>>>,
}

impl Recent {
    /// Keeps a document if it is its turn; `number` counts those of the caller.
    #[inline]
    pub(super) fn offer(&self, number: u64, document: &Document) {
        if number.is_multiple_of(INTERVAL) && document.copy_bytes() <= MAX_BYTES {
            self.keep(Arc::new(document.clone()));
        }
    }

    fn keep(&self, document: Arc<Document>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let oldest = if kept.len() == KEPT { kept.pop_front() } else { None };
        kept.push_back(document);
        drop(kept);
        drop(oldest);
    }

    /// Those that are kept.
    pub(super) fn documents(&self) -> Vec<Arc<Document>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// Bytes in use.
    pub(super) fn memory_bytes(&self) -> usize {
        self.documents().iter().map(|document| document.copy_bytes()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Limits, Parser};

    #[test]
    fn some_of_the_last_small_documents_are_kept() {
        let mut parser = Parser::new(Limits::default());
        let recent = Recent::default();
        let last = INTERVAL * KEPT as u64 * 2;
        for number in 0..=last {
            recent.offer(number, &parser.parse(format!("<a>{number}</a>").as_bytes()).expect("well-formed"));
        }
        let large = format!("<a>{}</a>", "x".repeat(MAX_BYTES));
        recent.offer(0, &parser.parse(large.as_bytes()).expect("well-formed"));
        let mut kept: Vec<u64> =
            recent.documents().iter().map(|it| it.string_value(0).parse().expect("number")).collect();
        kept.sort_unstable();
        let expected: Vec<u64> = (0..=last).filter(|number| number.is_multiple_of(INTERVAL)).collect();
        assert_eq!(kept, expected[expected.len() - KEPT..]);
    }
}
