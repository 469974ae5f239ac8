//! Which segments are merged, and when: few segments for matching, few repeated merges for registering.
//!
//! By size, as in a log-structured merge tree (O'Neil et al., Acta Informatica 33, 1996, section 2): a segment is merged
//! with the newer ones when these have grown to a quarter of it, which takes hardly more merges than a half, and leaves
//! fewer segments. Merges of about the size of what is registered are done by whoever registers it, all others by a
//! thread of their own.

use super::snapshot::SnapshotSegment;

/// With more segments than this, the newest are merged whatever their sizes: a match walks each of them. With this
/// many, registering waits for the thread that merges, if it is at work. (Twice as many before it had to wait made
/// registering hardly quicker, as what is put off has to be merged all the same, but matching beside it half as quick.)
pub(super) const MAX_SEGMENTS: usize = 6;
/// A segment is merged with the newer ones when it is at most so many times as large as these.
const RATIO: usize = 4;
/// Whoever registers merges so many times the subscriptions that are registered, at least a millisecond's worth and at
/// most 20 milliseconds'. Left to the thread that merges, which steps back behind everybody who matches, such segments
/// pile up until registering has to wait, and each match passes all of them.
const AT_ONCE: usize = 4;
const MIN_AT_ONCE: usize = 1 << 10;
const MAX_AT_ONCE: usize = 40_000;

/// What is to be merged now, by whoever registers the last segment: the last ones, from this one on.
pub(super) fn at_once(live: &[usize]) -> Option<usize> {
    let most = live.last()?.saturating_mul(AT_ONCE).clamp(MIN_AT_ONCE, MAX_AT_ONCE);
    due(live, most)
}

/// What is to be merged aside: numbers of neighbours in the list.
pub(super) fn aside(parts: &[SnapshotSegment]) -> Option<std::ops::Range<usize>> {
    let live: Vec<usize> = parts.iter().map(|part| part.live_count() as usize).collect();
    if let Some(from) = due(&live, usize::MAX) {
        return Some(from..live.len());
    }
    // A large segment that mostly consists of removed subscriptions is written again without them.
    let wasteful = |part: &SnapshotSegment| {
        part.removed.count() as usize > MIN_AT_ONCE && part.removed.count() > part.live_count()
    };
    parts.iter().position(wasteful).map(|at| at..at + 1)
}

fn due(live: &[usize], most: usize) -> Option<usize> {
    let mut from = live.len().checked_sub(1)?;
    let mut sum = live[from];
    while from > 0
        && (live[from - 1] <= RATIO * sum || from >= MAX_SEGMENTS)
        && live[from - 1].saturating_add(sum) <= most
    {
        from -= 1;
        sum += live[from];
    }
    (from + 1 < live.len()).then_some(from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_of_like_size_are_merged() {
        assert_eq!(at_once(&[]), None);
        assert_eq!(at_once(&[1]), None);
        assert_eq!(at_once(&[1, 1]), Some(0));
        assert_eq!(at_once(&[100, 3, 2, 1]), Some(1));
        assert_eq!(at_once(&[100, 4, 1]), Some(1));
        assert_eq!(at_once(&[100, 5, 1]), None);
    }

    #[test]
    fn large_merges_are_not_done_at_once() {
        assert_eq!(at_once(&[4000, 1000]), None);
        assert_eq!(due(&[4000, 1000], usize::MAX), Some(0));
        assert_eq!(at_once(&[20_000, 2000, 1000]), Some(1));
        assert_eq!(at_once(&[50_000, 50_000]), None);
        assert_eq!(at_once(&[5000, 400, 300, 200]), Some(1));
    }

    #[test]
    fn there_are_never_many() {
        let falling: Vec<usize> = (0..=MAX_SEGMENTS as u32).rev().map(|power| 10 * 5usize.pow(power)).collect();
        assert_eq!(due(&falling, usize::MAX), Some(MAX_SEGMENTS - 1));
        assert_eq!(due(&falling[1..], usize::MAX), None);
    }

    #[test]
    fn each_subscription_is_merged_rarely() {
        let (mut live, mut merged) = (Vec::new(), 0);
        for _ in 0..100_000 {
            live.push(1);
            if let Some(from) = due(&live, usize::MAX) {
                let sum = live.drain(from..).sum();
                merged += sum;
                live.push(sum);
            }
            assert!(live.len() <= MAX_SEGMENTS);
        }
        assert!(merged < 100_000 * 40, "{merged}");
    }
}
