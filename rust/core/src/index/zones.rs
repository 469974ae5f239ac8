//! Zones: the least and the greatest constant of each block of rows, so that columns need not be read everywhere.
//!
//! Rows that hang together are arranged as the leaves of a k-d tree (Bentley, CACM 18(9), 1975) over their number
//! constants: split at the median of one column, then of the next, down to single blocks. A block then covers a small
//! box, and few boxes contain the values of a document.

use super::columns::Value;
use std::cmp::Ordering;

/// Rows of a block.
pub const ZONE_ROWS: usize = 32;
/// Signatures with fewer rows have no zones.
pub(super) const MIN_ZONED_ROWS: usize = 4 * ZONE_ROWS;

/// The least and the greatest constant of a block.
pub type Zone = [f64; 2];

/// Appends the zones of one column. Strings have no useful order: their zones say nothing.
pub(super) fn write(column: &[Value], into: &mut Vec<Zone>) {
    into.extend(column.chunks(ZONE_ROWS).map(|block| {
        if block[0].as_string().is_some() {
            return [f64::NEG_INFINITY, f64::INFINITY];
        }
        block.iter().map(|value| value.as_number()).fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], value| {
            [low.min(value), high.max(value)]
        })
    }));
}

/// Arranges rows that start at row `start` of their signature, so that each block holds near ones.
pub(super) fn arrange<R>(rows: &mut [R], start: usize, slots: &[u32], value: &dyn Fn(&R, u32) -> f64) {
    if slots.is_empty() {
        return;
    }
    // Each level halves the rows, so this is deep enough for any number of them and needs no recursion.
    let mut parts = vec![(0, rows.len(), 0)];
    while let Some((from, to, level)) = parts.pop() {
        let first = (start + from).div_ceil(ZONE_ROWS) * ZONE_ROWS - start;
        let blocks = to.saturating_sub(first).div_ceil(ZONE_ROWS);
        // Splits lie on borders of blocks.
        let middle = first + blocks / 2 * ZONE_ROWS;
        if middle <= from || middle >= to {
            continue;
        }
        let slot = slots[level % slots.len()];
        let order = |a: &R, b: &R| value(a, slot).partial_cmp(&value(b, slot)).unwrap_or(Ordering::Equal);
        rows[from..to].select_nth_unstable_by(middle - from, order);
        parts.push((from, middle, level + 1));
        parts.push((middle, to, level + 1));
    }
}
