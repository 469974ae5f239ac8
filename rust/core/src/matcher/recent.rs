//! Documents that were matched lately, for preparing caches with.

use crate::document::Document;
use std::sync::{Arc, Mutex, PoisonError};

/// So many are kept.
const KEPT: usize = 64;
/// One in so many is taken.
const INTERVAL: u64 = 16;
/// Larger ones are not: what they take would be felt.
const MAX_BYTES: usize = 128 << 10;

/// Some of the last documents.
#[derive(Debug, Default)]
pub(super) struct Recent {
    ring: Mutex<Ring>,
}

#[derive(Debug, Default)]
struct Ring {
    documents: Vec<Arc<Document>>,
    oldest: usize,
}

impl Recent {
    /// Keeps a document if it is its turn; `number` counts those of the caller.
    #[inline]
    pub(super) fn offer(&self, number: u64, document: &Document) {
        if number.is_multiple_of(INTERVAL) && document.memory_bytes() <= MAX_BYTES {
            self.keep(Arc::new(document.clone()));
        }
    }

    fn keep(&self, document: Arc<Document>) {
        let mut ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        let Ring { documents, oldest } = &mut *ring;
        if documents.len() < KEPT {
            documents.push(document);
            return;
        }
        let former = std::mem::replace(&mut documents[*oldest], document);
        *oldest = (*oldest + 1) % KEPT;
        drop(ring);
        drop(former);
    }

    /// Those that are kept.
    pub(super) fn documents(&self) -> Vec<Arc<Document>> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner).documents.clone()
    }

    /// Bytes in use.
    pub(super) fn memory_bytes(&self) -> usize {
        self.documents().iter().map(|document| document.memory_bytes()).sum()
    }
}
