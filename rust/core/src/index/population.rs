//! A population: what changes it, and generations.
//!
//! A change never touches what a match may be looking at. It makes a new [`Snapshot`] aside — a new small segment for
//! registrations, a new set of removals otherwise — and swaps it in; a match keeps the snapshot it began with. Small
//! segments are merged as they pile up ([`merging`](super::merging)), on a thread of their own if that takes long.
//!
//! A merge works on the snapshot that it began with, while changes go on; then it replaces the segments it merged in the
//! snapshot of that moment and repeats the removals that happened meanwhile. What a population holds is the same before
//! and after, and so is its generation. One merge runs at a time.

use super::builder::SegmentBuilder;
use super::error::{CapacityError, IndexFormatError};
use super::merging::{MAX_SEGMENTS, aside, at_once};
use super::priority::work_in_background;
use super::segment::Segment;
use super::snapshot::{Generation, Snapshot, SnapshotSegment, merge};
use foldhash::fast::FixedState;
use hashbrown::HashSet;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant};

/// A population that changes.
#[derive(Debug, Default)]
pub struct Population {
    shared: Arc<Shared>,
}

/// What the threads that change a population share.
#[derive(Debug, Default)]
struct Shared {
    current: RwLock<Arc<Snapshot>>,
    writer: Mutex<Writer>,
    /// Told whenever a merge or the merging thread ends.
    merged: Condvar,
    preparation: Preparation,
}

/// What is done with a new segment before matches see it, for about so long at most.
#[derive(Default)]
struct Preparation(OnceLock<Box<Prepare>>);

/// With less time than this, segments are not prepared.
const MIN_PREPARATION: Duration = Duration::from_micros(100);

type Prepare = dyn Fn(&Arc<Segment>, Duration) + Send + Sync;

impl std::fmt::Debug for Preparation {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Preparation").field(&self.0.get().is_some()).finish()
    }
}

/// What is known to whoever changes a population.
#[derive(Debug, Default)]
struct Writer {
    /// Numbers of the segments that are being merged; nobody else may merge them.
    merging: Vec<u64>,
    /// Whether there is a thread that merges what is due.
    running: bool,
    /// How many wait for compacting everything, which goes before what is due.
    compacting: usize,
    /// Why that thread gave up.
    failure: Option<CapacityError>,
}

impl Population {
    /// A population that consists of one segment.
    pub fn of(segment: Segment) -> Population {
        let snapshot = Snapshot { generation: 1, segments: vec![SnapshotSegment::new(segment)] };
        Population { shared: Arc::new(Shared { current: RwLock::new(Arc::new(snapshot)), ..Shared::default() }) }
    }

    /// Opens a saved population, see [`Segment::open`].
    ///
    /// # Errors
    /// If the file is not a sound index of this version.
    pub fn open(path: &Path, verify: bool) -> Result<Population, IndexFormatError> {
        Segment::open(path, verify).map(Population::of)
    }

    /// Has new segments prepared before matches see them, by the thread that made them. `prepare` is told how long it may
    /// take: as long as a merge in the background, or a quarter of the time that somebody who registers waits anyway.
    /// Only the first call counts.
    pub fn prepare_by(&self, prepare: impl Fn(&Arc<Segment>, Duration) + Send + Sync + 'static) {
        let _ = self.shared.preparation.0.set(Box::new(prepare));
    }

    /// The current state.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.shared.snapshot()
    }

    /// Adds the subscriptions of a builder as one generation; ids already there are replaced. Waits for the thread that
    /// merges only if [`MAX_SEGMENTS`] have piled up.
    ///
    /// # Errors
    /// If a merge, this one's or one before, outgrew what one segment can number; nothing is changed then.
    pub fn register(&self, builder: SegmentBuilder) -> Result<Generation, CapacityError> {
        let began = Instant::now();
        let added = builder.freeze();
        let mut writer = self.shared.write();
        while writer.running && self.snapshot().segments.len() >= MAX_SEGMENTS {
            writer = self.shared.wait(writer);
        }
        if let Some(failure) = &writer.failure {
            return Err(failure.clone());
        }
        let mut next = (*self.snapshot()).clone();
        if added.subscription_count() == 0 {
            return Ok(next.generation);
        }
        for part in &mut next.segments {
            (0..added.subscription_count()).for_each(|number| part.remove(added.ids().get(number)));
        }
        next.segments.retain(|part| part.live_count() > 0);
        next.segments.push(SnapshotSegment::new(added));
        // Segments that are being merged stand before those that came since.
        let taken = |part: &SnapshotSegment| writer.merging.contains(&part.segment.number());
        let free = next.segments.iter().rposition(taken).map_or(0, |at| at + 1);
        let live: Vec<usize> = next.segments[free..].iter().map(|part| part.live_count() as usize).collect();
        if let Some(from) = at_once(&live) {
            let merged = merge(&next.segments[free + from..])?;
            next.segments.truncate(free + from);
            next.segments.push(SnapshotSegment::new(merged));
        }
        if let Some(newest) = next.segments.last() {
            self.shared.prepare(&newest.segment, began.elapsed() / 4);
        }
        next.generation += 1;
        let generation = next.generation;
        self.shared.publish(next);
        self.shared.start_merging(&mut writer);
        Ok(generation)
    }

    /// Removes subscriptions as one generation; returns the ids that were not there.
    pub fn unregister<'a>(&self, ids: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
        let mut writer = self.shared.write();
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
            next.generation += 1;
            self.shared.publish(next);
            writer.failure = None;
            self.shared.start_merging(&mut writer);
        }
        missing
    }

    /// Merges all segments of this moment into one without the removed subscriptions. Matching, registering and
    /// unregistering go on meanwhile.
    ///
    /// # Errors
    /// If the result would outgrow what one segment can number; nothing is changed then.
    pub fn compact(&self) -> Result<Generation, CapacityError> {
        let mut writer = self.shared.write();
        writer.compacting += 1;
        while !writer.merging.is_empty() {
            writer = self.shared.wait(writer);
        }
        writer.compacting -= 1;
        let segments = self.snapshot().segments.clone();
        if segments.len() > 1 || segments.iter().any(|part| part.removed.count() > 0) {
            self.shared.merge(writer, segments)?.wait();
        } else {
            drop(writer);
            self.shared.merged.notify_all();
        }
        Ok(self.snapshot().generation)
    }

    /// Writes the current state to one file, atomically, with an attachment; returns the checksum of its content.
    ///
    /// # Errors
    /// Those of the file system; of kind `FileTooLarge` if the state outgrew what one segment can number.
    pub fn save(&self, path: &Path, attachment: &[u8]) -> std::io::Result<u128> {
        let snapshot = self.snapshot();
        match &snapshot.segments[..] {
            [part] if part.removed.count() == 0 => part.segment.image().save(path, attachment),
            parts => {
                let merged =
                    merge(parts).map_err(|error| std::io::Error::new(std::io::ErrorKind::FileTooLarge, error))?;
                merged.image().save(path, attachment)
            }
        }
    }
}

impl Shared {
    fn snapshot(&self) -> Arc<Snapshot> {
        // A poisoned lock still holds a whole snapshot: it is only ever replaced in one assignment.
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn write(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, writer: MutexGuard<'a, Writer>) -> MutexGuard<'a, Writer> {
        self.merged.wait(writer).unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, snapshot: Snapshot) {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let former = std::mem::replace(&mut *current, Arc::new(snapshot));
        // Freeing what only the former state held takes time, in which nobody should be locked out.
        drop(current);
        drop(former);
    }

    /// Prepares a segment that nobody has matched with yet, if there is time for more than a document or two.
    fn prepare(&self, segment: &Arc<Segment>, at_most: Duration) {
        if at_most >= MIN_PREPARATION
            && let Some(prepare) = self.preparation.0.get()
        {
            prepare(segment, at_most);
        }
    }

    /// Merges segments of the current snapshot, which are returned; the lock is given up while that takes.
    fn merge(&self, mut writer: MutexGuard<'_, Writer>, parts: Vec<SnapshotSegment>) -> Result<Retired, CapacityError> {
        writer.merging = parts.iter().map(|part| part.segment.number()).collect();
        drop(writer);
        let reserved = Reserved(self);
        let began = Instant::now();
        let mut merged = SnapshotSegment::new(merge(&parts)?);
        self.prepare(&merged.segment, began.elapsed());
        let writer = self.write();
        let mut next = (*self.snapshot()).clone();
        let mut at = None;
        for part in &parts {
            let number = next.segments.iter().position(|now| now.segment.number() == part.segment.number());
            // A segment that is no longer there has lost its last subscription.
            let now = number.map(|number| next.segments.remove(number));
            at = at.or(number);
            let ids = part.segment.ids();
            let gone = part.live().filter(|gone| now.as_ref().is_none_or(|now| now.removed.contains(*gone)));
            gone.for_each(|gone| merged.remove(ids.get(gone)));
        }
        if let Some(at) = at.filter(|_| merged.live_count() > 0) {
            next.segments.insert(at, merged);
        }
        self.publish(next);
        drop(writer);
        drop(reserved);
        Ok(Retired(parts))
    }

    /// Starts a thread that merges what is due, if there is anything and nobody merges.
    fn start_merging(self: &Arc<Self>, writer: &mut Writer) {
        if writer.running || !writer.merging.is_empty() || aside(&self.snapshot().segments).is_none() {
            return;
        }
        let shared = Arc::downgrade(self);
        let thread = std::thread::Builder::new().name("sardonyx-merge".to_owned());
        // Without a thread nothing is lost: the next change tries again.
        writer.running = thread.spawn(move || merge_all_due(&shared)).is_ok();
    }

    /// Marks the end of the merging thread.
    fn stop_merging(&self, mut writer: MutexGuard<'_, Writer>, failure: Option<CapacityError>) {
        writer.running = false;
        writer.failure = failure;
        drop(writer);
        self.merged.notify_all();
    }
}

/// Merges until nothing is due, or the population is gone.
fn merge_all_due(shared: &Weak<Shared>) {
    work_in_background();
    let mut retired = Retired::default();
    while let Some(shared) = shared.upgrade() {
        let _panic = PanicGuard(&shared);
        let mut writer = shared.write();
        while !writer.merging.is_empty() || writer.compacting > 0 {
            writer = shared.wait(writer);
        }
        let segments = shared.snapshot().segments.clone();
        let Some(chosen) = aside(&segments) else {
            shared.stop_merging(writer, None);
            break;
        };
        let parts = segments[chosen].to_vec();
        drop(segments);
        match shared.merge(writer, parts) {
            Ok(merged) => retired.add(merged),
            Err(failure) => {
                shared.stop_merging(shared.write(), Some(failure));
                break;
            }
        }
    }
    retired.wait();
}

/// Ends the reservation of the segments that are being merged, however the merge ends.
struct Reserved<'a>(&'a Shared);

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        self.0.write().merging.clear();
        self.0.merged.notify_all();
    }
}

/// Lets others merge again, and nobody wait for ever, if the merging thread panics.
struct PanicGuard<'a>(&'a Shared);

impl Drop for PanicGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop_merging(self.0.write(), None);
        }
    }
}

/// Segments that were merged. They are let go of after the matches that still read them, so that not one of those has
/// to free the memory.
#[derive(Default)]
struct Retired(Vec<SnapshotSegment>);

impl Retired {
    /// Adds some, and lets go of those that nobody reads any more.
    fn add(&mut self, more: Retired) {
        self.0.extend(more.0);
        self.free_unused();
    }

    fn free_unused(&mut self) {
        self.0.retain(|part| Arc::strong_count(&part.segment) > 1);
    }

    /// Waits a little for those who read them.
    fn wait(mut self) {
        for _ in 0..100 {
            self.free_unused();
            if self.0.is_empty() {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_segments_wait_for_those_who_read_them() {
        let part = || SnapshotSegment::new(SegmentBuilder::default().freeze());
        let (read, unread) = (part(), part());
        let reader = read.clone();
        let mut retired = Retired::default();
        retired.add(Retired(vec![read, unread]));
        assert_eq!(retired.0.len(), 1);
        assert_eq!(retired.0[0].segment.number(), reader.segment.number());
        drop(reader);
        retired.free_unused();
        assert!(retired.0.is_empty());
    }
}
