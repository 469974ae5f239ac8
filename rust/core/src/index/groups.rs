//! Groups: the signatures of a population by size, for looking at an index.

use super::segment::{Segment, Signature};
use super::snapshot::Snapshot;
use crate::xpath::display::query_text;
use std::cmp::Reverse;

/// A signature of one segment, and what hangs on it.
#[derive(Clone, Debug)]
pub struct Group {
    /// Number of its rows: distinct lists of constants.
    pub rows: u32,
    /// Number of its subscriptions, removed ones included.
    pub subscriptions: u32,
    /// Number of constants of each row.
    pub constants: u32,
    /// Its expression with the constants of its first row.
    pub query: String,
    /// The access predicates that lead to its first row; empty if every document is checked.
    pub access: Vec<String>,
}

/// The groups with the most rows, largest first; a signature that several segments have is a group in each of them.
pub fn largest_groups(snapshot: &Snapshot, limit: usize) -> Vec<Group> {
    let mut all: Vec<(&Segment, Signature)> = Vec::new();
    for part in &snapshot.segments {
        let view = part.segment.view();
        all.extend((0..view.signature_count()).map(|number| (&*part.segment, view.signature(number))));
    }
    all.sort_by_key(|(_, signature)| Reverse(signature.rows.len()));
    all.truncate(limit);
    all.into_iter().map(|(segment, signature)| group(segment, &signature)).collect()
}

fn group(segment: &Segment, signature: &Signature) -> Group {
    let view = segment.view();
    let query = view.query(signature);
    let mut constants = Vec::new();
    view.constants(signature, signature.rows.start, &mut constants);
    let access = view.access(signature, &constants);
    Group {
        rows: signature.rows.len() as u32,
        subscriptions: view.subscriptions_of_rows(signature.rows.clone()).len() as u32,
        constants: signature.slots,
        query: query_text(query, &constants, segment.symbols(), None),
        access: access
            .map(|access| access.atoms.iter().map(|atom| atom.text(segment.symbols(), &constants)).collect())
            .unwrap_or_default(),
    }
}
