//! What an index file carries besides its filters: transformations, then joins.

use crate::errors::{Failed, Fields};

/// Both parts as one.
pub(crate) fn joined(transformations: &[u8], joins: &[u8]) -> Vec<u8> {
    if transformations.is_empty() && joins.is_empty() {
        return Vec::new();
    }
    let mut out = (transformations.len() as u64).to_le_bytes().to_vec();
    out.extend(transformations);
    out.extend(joins);
    out
}

/// The parts again.
pub(crate) fn split(attachment: &[u8]) -> Result<(&[u8], &[u8]), Failed> {
    if attachment.is_empty() {
        return Ok((&[], &[]));
    }
    let parts = attachment
        .split_first_chunk::<8>()
        .and_then(|(length, rest)| rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?));
    parts.ok_or_else(|| Failed::Core(Fields::new("index_format", "the subscriptions in the file are cut off")))
}
