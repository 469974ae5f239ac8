//! Readers that wait for single documents.

use crate::errors::Failed;
use crate::settings::Payload;
use sardonyx_core::document::{Document, Limits, Parser};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A reader of a longer document is not kept: it may hold much memory.
const LONG_BYTES: usize = 1 << 20;

/// A pool of readers: one that has read documents before knows their names.
#[derive(Debug)]
pub(crate) struct Parsers {
    limits: Limits,
    idle: Mutex<Vec<Parser>>,
}

impl Parsers {
    /// Readers with these limits.
    pub(crate) fn new(limits: Limits) -> Parsers {
        Parsers { limits, idle: Mutex::default() }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Parser>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads a document.
    pub(crate) fn parse(&self, payload: &Payload) -> Result<Document, Failed> {
        let waiting = self.idle().pop();
        let mut parser = waiting.unwrap_or_else(|| Parser::new(self.limits.clone()));
        let document = payload.parse_with(&mut parser);
        if payload.len() < LONG_BYTES {
            self.idle().push(parser);
        }
        document
    }
}
