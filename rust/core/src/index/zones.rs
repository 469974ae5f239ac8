//! Zones: the least and the greatest constant of each block of rows, so that columns need not be read everywhere.
//!
//! Rows that hang together are arranged as the leaves of a k-d tree (Bentley, CACM 18(9), 1975) over their number
//! constants: split at the median of one column, then of the next, down to single blocks. A block then covers a small
//! box, and few boxes contain the values of a document.

use super::columns::{Comparand, Value};

/// Rows of a block.
pub const ZONE_ROWS: usize = 32;
/// Signatures with fewer rows have no zones.
pub(super) const MIN_ZONED_ROWS: usize = 4 * ZONE_ROWS;

/// The zones of one column: borders of each block, rounded outwards to half the bytes.
#[derive(Clone, Copy, Debug)]
pub struct Zones<'a> {
    /// The least constants.
    pub lows: &'a [f32],
    /// The greatest constants.
    pub highs: &'a [f32],
}

impl<'a> Zones<'a> {
    /// The zones of slot `slot` in what [`write`] made, for a signature of that many rows.
    pub(super) fn of(all: &'a [f32], slot: u32, rows: usize) -> Zones<'a> {
        let blocks = rows.div_ceil(ZONE_ROWS);
        let start = slot as usize * 2 * blocks;
        Zones { lows: &all[start..start + blocks], highs: &all[start + blocks..start + 2 * blocks] }
    }
}

/// Appends the zones of one column: least, then greatest constants. Strings have no useful order: theirs say nothing.
pub(super) fn write(column: &[Value], into: &mut Vec<f32>) {
    let is_string = column[0].as_string().is_some();
    let blocks = || column.chunks(ZONE_ROWS).map(|block| block.iter().map(|value| value.as_number()));
    into.extend(
        blocks().map(|block| if is_string { f32::NEG_INFINITY } else { below(block.fold(f64::MAX, f64::min)) }),
    );
    into.extend(blocks().map(|block| if is_string { f32::INFINITY } else { above(block.fold(f64::MIN, f64::max)) }));
}

fn below(value: f64) -> f32 {
    let rounded = value as f32;
    if f64::from(rounded) > value { rounded.next_down() } else { rounded }
}

fn above(value: f64) -> f32 {
    let rounded = value as f32;
    if f64::from(rounded) < value { rounded.next_up() } else { rounded }
}

/// The order of `points` (of so many numbers each, one point after the other) in which each block holds near ones, for
/// rows that start at row `start` of their signature.
pub(super) fn arrange(points: &[f64], dimensions: usize, start: usize) -> Vec<u32> {
    let count = points.len() / dimensions;
    let mut order: Vec<u32> = (0..count as u32).collect();
    // Each level halves the rows, so this is never deep.
    let mut parts = vec![(0, count, 0)];
    while let Some((from, to, level)) = parts.pop() {
        let first = (start + from).div_ceil(ZONE_ROWS) * ZONE_ROWS - start;
        let blocks = to.saturating_sub(first).div_ceil(ZONE_ROWS);
        // Splits lie on borders of blocks.
        let middle = first + blocks / 2 * ZONE_ROWS;
        if middle <= from || middle >= to {
            continue;
        }
        let value = |point: u32| points[point as usize * dimensions + level % dimensions];
        order[from..to]
            .select_nth_unstable_by(middle - from, |a, b| value(*a).total_cmp(&value(*b)).then_with(|| a.cmp(b)));
        parts.push((from, middle, level + 1));
        parts.push((middle, to, level + 1));
    }
    order
}
