//! What a match answers.

use crate::index::{ANY_STREAM, Snapshot};
use crate::xpath::evaluate::EvaluateError;
use std::ops::Range;

/// A subscription whose expression could not be evaluated on a document.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Number of the segment in the snapshot.
    pub segment: usize,
    /// Number of the subscription in the segment.
    pub subscription: u32,
    /// Why.
    pub error: EvaluateError,
}

/// The subscriptions that a document satisfies, as ranges of subscription numbers per segment.
///
/// Every subscription occurs at most once. The order is that of the index: fixed for a generation, not meaningful.
#[derive(Clone, Debug, Default)]
pub struct Matches {
    /// Segment number and ranges of subscriptions in it; segments without any are left out.
    pub segments: Vec<(u32, Vec<Range<u32>>)>,
    /// Subscriptions that could not be judged.
    pub failures: Vec<Failure>,
}

impl Matches {
    /// Number of subscriptions.
    pub fn len(&self) -> usize {
        self.segments.iter().flat_map(|(_, ranges)| ranges).map(|range| range.len()).sum()
    }

    /// Whether no subscription is satisfied.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Segment and number of each subscription.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.segments.iter().flat_map(|(segment, ranges)| {
            ranges.iter().cloned().flatten().map(move |subscription| (*segment, subscription))
        })
    }

    /// Adds the satisfied subscriptions of a segment, without those that were removed or read another stream.
    pub(super) fn add(
        &mut self,
        snapshot: &Snapshot,
        segment: usize,
        stream: Option<&str>,
        mut satisfied: Vec<Range<u32>>,
    ) {
        let part = &snapshot.segments[segment];
        let all_streams = part.segment.streams().is_empty();
        if part.removed.count() > 0 || !all_streams {
            let own_stream = stream.and_then(|name| part.segment.stream_number(name)).unwrap_or(ANY_STREAM);
            let all = std::mem::take(&mut satisfied);
            for subscription in all.into_iter().flatten() {
                let wanted = part.segment.stream_of(subscription);
                let reads = wanted == ANY_STREAM || wanted == own_stream;
                if reads && !part.removed.contains(subscription) {
                    append(&mut satisfied, subscription..subscription + 1);
                }
            }
        }
        if !satisfied.is_empty() {
            self.segments.push((segment as u32, satisfied));
        }
    }

    /// Adds a failure for each live subscription of a row that reads the stream.
    pub(super) fn fail(
        &mut self,
        snapshot: &Snapshot,
        segment: usize,
        stream: Option<&str>,
        subscriptions: Range<u32>,
        error: &EvaluateError,
    ) {
        let mut own = Matches::default();
        own.add(snapshot, segment, stream, vec![subscriptions]);
        self.failures.extend(own.iter().map(|(_, subscription)| Failure { segment, subscription, error: *error }));
    }
}

/// Adds a range, to the one before if they are neighbours.
#[inline]
pub(super) fn append(ranges: &mut Vec<Range<u32>>, next: Range<u32>) {
    match ranges.last_mut() {
        Some(last) if last.end == next.start => last.end = next.end,
        _ => ranges.push(next),
    }
}
