//! A population: segments, the subscriptions removed from them, and generations.
//!
//! A change never touches what a match may be looking at. It makes a new [`Snapshot`] aside — a new small segment for
//! registrations, a new set of removals otherwise — and swaps it in; a match keeps the snapshot it began with. Small
//! segments are merged as they pile up (by size, as in a log-structured merge tree), so that there are few of them.

use super::builder::SegmentBuilder;
use super::error::{CapacityError, IndexFormatError};
use super::segment::Segment;
use foldhash::fast::FixedState;
use hashbrown::HashSet;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// Number of a population's state; every change counts one up.
pub type Generation = u64;

const BLOCK_BITS: usize = 1 << 15;
const MAX_SEGMENTS: usize = 8;

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

    fn insert(&mut self, subscription: u32) {
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
    fn new(segment: Segment) -> Self {
        SnapshotSegment { segment: Arc::new(segment), removed: Removed::default() }
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

    /// One segment with all live subscriptions.
    fn merged(&self) -> Result<Segment, CapacityError> {
        merge(&self.segments)
    }
}

fn merge(parts: &[SnapshotSegment]) -> Result<Segment, CapacityError> {
    let mut builder = SegmentBuilder::default();
    for part in parts {
        builder.insert_segment(&part.segment, |subscription| !part.removed.contains(subscription))?;
    }
    Ok(builder.freeze())
}

/// A population that changes.
#[derive(Debug, Default)]
pub struct Population {
    current: RwLock<Arc<Snapshot>>,
    writer: Mutex<()>,
}

impl Population {
    /// A population that consists of one segment.
    pub fn of(segment: Segment) -> Population {
        let snapshot = Snapshot { generation: 1, segments: vec![SnapshotSegment::new(segment)] };
        Population { current: RwLock::new(Arc::new(snapshot)), writer: Mutex::default() }
    }

    /// Opens a saved population, see [`Segment::open`].
    ///
    /// # Errors
    /// If the file is not a sound index of this version.
    pub fn open(path: &Path, verify: bool) -> Result<Population, IndexFormatError> {
        Segment::open(path, verify).map(Population::of)
    }

    /// The current state.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        // A poisoned lock still holds a whole snapshot: it is only ever replaced in one assignment.
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn write(&self) -> MutexGuard<'_, ()> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, mut snapshot: Snapshot) -> Generation {
        snapshot.generation += 1;
        let generation = snapshot.generation;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(snapshot);
        generation
    }

    /// Adds the subscriptions of a builder as one generation; ids already there are replaced.
    ///
    /// # Errors
    /// If merging would outgrow what one segment can number; nothing is changed then.
    pub fn register(&self, builder: SegmentBuilder) -> Result<Generation, CapacityError> {
        let added = builder.freeze();
        let _writing = self.write();
        let mut next = (*self.snapshot()).clone();
        if added.subscription_count() == 0 {
            return Ok(next.generation);
        }
        for part in &mut next.segments {
            remove_all(part, (0..added.subscription_count()).map(|number| added.ids().get(number)));
        }
        next.segments.retain(|part| part.live_count() > 0);
        next.segments.push(SnapshotSegment::new(added));
        while let [.., older, newer] = &next.segments[..] {
            let crowded = next.segments.len() > MAX_SEGMENTS;
            if !crowded && older.live_count() > 2 * newer.live_count() {
                break;
            }
            let merged = merge(&next.segments[next.segments.len() - 2..])?;
            next.segments.truncate(next.segments.len() - 2);
            next.segments.push(SnapshotSegment::new(merged));
        }
        Ok(self.publish(next))
    }

    /// Removes subscriptions as one generation; returns the ids that were not there.
    pub fn unregister<'a>(&self, ids: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
        let _writing = self.write();
        let mut next = (*self.snapshot()).clone();
        let before = next.len();
        let mut missing: Vec<&str> = Vec::new();
        let mut gone: HashSet<&str, FixedState> = HashSet::default();
        for id in ids {
            match next.find(id) {
                Some((number, subscription)) => {
                    next.segments[number].removed.insert(subscription);
                    gone.insert(id);
                }
                // An id given twice was there.
                None if gone.contains(id) => {}
                None => missing.push(id),
            }
        }
        if next.len() != before {
            next.segments.retain(|part| part.live_count() > 0);
            self.publish(next);
        }
        missing
    }

    /// Merges all segments into one without the removed subscriptions. Matching goes on meanwhile.
    ///
    /// # Errors
    /// If the result would outgrow what one segment can number; nothing is changed then.
    pub fn compact(&self) -> Result<Generation, CapacityError> {
        let _writing = self.write();
        let mut next = (*self.snapshot()).clone();
        if next.segments.len() <= 1 && next.segments.iter().all(|part| part.removed.count() == 0) {
            return Ok(next.generation);
        }
        next.segments = vec![SnapshotSegment::new(next.merged()?)];
        next.segments.retain(|part| part.live_count() > 0);
        Ok(self.publish(next))
    }

    /// Writes the current state to one file, atomically; returns the checksum of its content.
    ///
    /// # Errors
    /// Those of the file system; of kind `FileTooLarge` if the state outgrew what one segment can number.
    pub fn save(&self, path: &Path) -> std::io::Result<u128> {
        let snapshot = self.snapshot();
        match &snapshot.segments[..] {
            [part] if part.removed.count() == 0 => part.segment.image().save(path),
            _ => {
                let merged =
                    snapshot.merged().map_err(|error| std::io::Error::new(std::io::ErrorKind::FileTooLarge, error))?;
                merged.image().save(path)
            }
        }
    }
}

fn remove_all<'a>(part: &mut SnapshotSegment, ids: impl Iterator<Item = &'a str>) {
    for id in ids {
        if let Some(subscription) = part.find(id) {
            part.removed.insert(subscription);
        }
    }
}
