//! The live rows of a builder, by signature.

use super::builder::SegmentBuilder;

/// The live rows of each signature.
pub(super) struct SignatureRows {
    starts: Vec<u32>,
    rows: Vec<u32>,
}

impl SignatureRows {
    /// Those of one signature.
    pub(super) fn rows(&self, signature: usize) -> &[u32] {
        &self.rows[self.starts[signature] as usize..self.starts[signature + 1] as usize]
    }
}

impl SegmentBuilder {
    /// The rows that a live subscription points to, by signature.
    pub(super) fn rows_by_signature(&self) -> SignatureRows {
        let mut live = vec![false; self.rows.len()];
        for row in &self.subscription_rows {
            live[*row as usize] = true;
        }
        let live = || live.iter().enumerate().filter(|(_, live)| **live).map(|(row, _)| row);
        let mut starts = vec![0u32; self.signatures.len() + 1];
        for row in live() {
            starts[self.rows[row].signature as usize + 1] += 1;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut rows = vec![0u32; starts[self.signatures.len()] as usize];
        let mut next = starts.clone();
        for row in live() {
            let place = &mut next[self.rows[row].signature as usize];
            rows[*place as usize] = row as u32;
            *place += 1;
        }
        SignatureRows { starts, rows }
    }
}
