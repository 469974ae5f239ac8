//! The state of a population at one moment: its segments and what was removed from them.

use super::builder::SegmentBuilder;
use super::error::CapacityError;
use super::segment::Segment;
use std::sync::Arc;

/// Number of a population's state; every change of what it holds counts one up.
pub type Generation = u64;

const BLOCK_BITS: usize = 1 << 15;

/// A set of subscription numbers, in blocks that are shared between generations until one changes.
#[derive(Clone, Debug, Default)]
pub struct Removed {
    blocks: Vec<Option<Arc<[u64; BLOCK_BITS / 64]>>>,
    count: u32,
}

impl Removed {
    /// Number of members.
    #[inline]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Whether a subscription is in it.
    #[inline]
    pub fn contains(&self, subscription: u32) -> bool {
        let at = subscription as usize;
        match self.blocks.get(at / BLOCK_BITS) {
            Some(Some(block)) => block[at % BLOCK_BITS / 64] >> (at % 64) & 1 == 1,
            _ => false,
        }
    }

    /// Bytes of the set.
    pub fn memory_bytes(&self) -> usize {
        let blocks = self.blocks.iter().flatten().count() * (BLOCK_BITS / 8);
        blocks + self.blocks.capacity() * size_of::<Option<Arc<[u64; BLOCK_BITS / 64]>>>()
    }

    pub(super) fn insert(&mut self, subscription: u32) {
        let at = subscription as usize;
        if self.blocks.len() <= at / BLOCK_BITS {
            self.blocks.resize(at / BLOCK_BITS + 1, None);
        }
        let block = self.blocks[at / BLOCK_BITS].get_or_insert_with(|| Arc::new([0; BLOCK_BITS / 64]));
        let word = &mut Arc::make_mut(block)[at % BLOCK_BITS / 64];
        self.count += u32::from(*word >> (at % 64) & 1 == 0);
        *word |= 1 << (at % 64);
    }
}

/// A segment and what was removed from it.
#[derive(Clone, Debug)]
pub struct SnapshotSegment {
    /// The segment.
    pub segment: Arc<Segment>,
    /// Subscriptions of it that are gone.
    pub removed: Removed,
}

impl SnapshotSegment {
    pub(super) fn new(segment: Segment) -> Self {
        SnapshotSegment { segment: Arc::new(segment), removed: Removed::default() }
    }

    /// Forgets a subscription of this id, if it is here.
    pub(super) fn remove(&mut self, id: &str) {
        if let Some(subscription) = self.find(id) {
            self.removed.insert(subscription);
        }
    }

    /// Number of live subscriptions.
    pub fn live_count(&self) -> u32 {
        self.segment.subscription_count() - self.removed.count()
    }

    /// The number of a live subscription.
    pub fn find(&self, id: &str) -> Option<u32> {
        self.segment.ids().find(id).filter(|subscription| !self.removed.contains(*subscription))
    }

    /// Numbers of the live subscriptions.
    pub fn live(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.segment.subscription_count()).filter(|subscription| !self.removed.contains(*subscription))
    }
}

/// The state of a population at one generation; never changes.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Which state this is.
    pub generation: Generation,
    /// Segments, oldest first.
    pub segments: Vec<SnapshotSegment>,
}

impl Snapshot {
    /// Number of live subscriptions.
    pub fn len(&self) -> usize {
        self.segments.iter().map(|part| part.live_count() as usize).sum()
    }

    /// Whether no subscription is live.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where a subscription is: number of the segment, and its number there.
    pub fn find(&self, id: &str) -> Option<(usize, u32)> {
        // Newest first: recent registrations are asked for most.
        self.segments.iter().enumerate().rev().find_map(|(number, part)| Some((number, part.find(id)?)))
    }
}

/// One segment with the live subscriptions of several.
pub(super) fn merge(parts: &[SnapshotSegment]) -> Result<Segment, CapacityError> {
    let mut builder = SegmentBuilder::default();
    for part in parts {
        builder.insert_segment(&part.segment, |subscription| !part.removed.contains(subscription))?;
    }
    Ok(builder.freeze())
}
