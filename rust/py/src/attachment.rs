//! What an index file carries besides its filters: transformations, then joins.

use crate::errors::{Failed, malformed};
use sardonyx_core::index::bytes::{Reader, Writer};

/// Both parts as one.
pub(crate) fn joined(transformations: &[u8], joins: &[u8]) -> Vec<u8> {
    let mut out = Writer::default();
    if !transformations.is_empty() || !joins.is_empty() {
        out.block(transformations);
        out.block(joins);
    }
    out.bytes
}

/// The parts again.
pub(crate) fn split(attachment: &[u8]) -> Result<(&[u8], &[u8]), Failed> {
    if attachment.is_empty() {
        return Ok((&[], &[]));
    }
    let mut reader = Reader::new(attachment);
    let mut part = || reader.block().map_err(malformed);
    Ok((part()?, part()?))
}
