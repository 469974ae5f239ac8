//! The answers of a batch as Arrow, without a Python object per match.

use crate::errors::Fields;
use arrow_array::builder::{StringBuilder, UInt32Builder, UInt64Builder};
use arrow_array::types::UInt32Type;
use arrow_array::{Array, ArrayRef, DictionaryArray, RecordBatch, StringArray, UInt32Array};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use sardonyx_core::index::{Snapshot, SnapshotSegment};
use sardonyx_core::matcher::Matches;
use std::sync::Arc;

/// Rows below which one thread writes them as fast as several.
const MIN_ROWS_OF_A_THREAD: usize = 1 << 17;

/// Collects matches; subscription ids are in a dictionary, each once.
pub(crate) struct MatchTable<'s> {
    snapshot: &'s Snapshot,
    /// By document, ascending, with their number.
    matches: Vec<(u32, usize, Matches)>,
    count: usize,
}

impl<'s> MatchTable<'s> {
    /// An empty table.
    pub(crate) fn new(snapshot: &'s Snapshot) -> MatchTable<'s> {
        MatchTable { snapshot, matches: Vec::new(), count: 0 }
    }

    /// Adds the matches of one document.
    pub(crate) fn add(&mut self, document: u32, matches: Matches) {
        let count = matches.len();
        self.count += count;
        self.matches.push((document, count, matches));
    }

    /// The record batch: `document` and `subscription_id`.
    pub(crate) fn finish(self, threads: usize) -> Result<RecordBatch, ArrowError> {
        let mut total = 0u64;
        let first = |part: &SnapshotSegment| {
            total += u64::from(part.segment.subscription_count());
            total - u64::from(part.segment.subscription_count())
        };
        let firsts: Vec<u32> = self.snapshot.segments.iter().map(first).map(|first| first as u32).collect();
        let total = u32::try_from(total).map_err(|_| ArrowError::DictionaryKeyOverflowError)?;
        let (documents, mut keys) = self.rows(&firsts, threads);
        // Where most subscriptions are met, all ids may as well be in the dictionary: numbers are keys then.
        let all = if self.count >= total as usize / 2 { all_ids(self.snapshot) } else { None };
        let ids = match all {
            Some(ids) => ids,
            None => self.ids_of(&places(&mut keys, total), &firsts)?,
        };
        let documents: ArrayRef = Arc::new(UInt32Array::from(documents));
        let subscriptions = dictionary(keys, ids);
        let schema = Schema::new(vec![
            Field::new("document", DataType::UInt32, false),
            Field::new("subscription_id", subscriptions.data_type().clone(), false),
        ]);
        RecordBatch::try_new(Arc::new(schema), vec![documents, Arc::new(subscriptions)])
    }

    /// The columns, with the numbers of subscriptions among those of all segments.
    fn rows(&self, firsts: &[u32], threads: usize) -> (Vec<u32>, Vec<u32>) {
        let (mut documents, mut numbers) = (vec![0; self.count], vec![0; self.count]);
        let threads = threads.min(self.count / MIN_ROWS_OF_A_THREAD).max(1);
        std::thread::scope(|scope| {
            let (mut documents, mut numbers) = (&mut documents[..], &mut numbers[..]);
            for matches in self.matches.chunks(self.matches.len().div_ceil(threads).max(1)) {
                let count = matches.iter().map(|(_, count, _)| count).sum();
                let (own_documents, own_numbers);
                (own_documents, documents) = std::mem::take(&mut documents).split_at_mut(count);
                (own_numbers, numbers) = std::mem::take(&mut numbers).split_at_mut(count);
                let mut write = move || write_rows(matches, firsts, own_documents, own_numbers);
                if documents.is_empty() {
                    write();
                } else {
                    scope.spawn(write);
                }
            }
        });
        (documents, numbers)
    }

    /// The ids of subscriptions given by ascending numbers.
    fn ids_of(&self, numbers: &[u32], firsts: &[u32]) -> Result<StringArray, ArrowError> {
        let mut bytes = Vec::new();
        let mut offsets = Vec::with_capacity(numbers.len() + 1);
        offsets.push(0i32);
        let mut numbers = numbers.iter().copied().peekable();
        for (part, first) in self.snapshot.segments.iter().zip(firsts) {
            let (ids, end) = (part.segment.ids(), u64::from(*first) + u64::from(part.segment.subscription_count()));
            while let Some(number) = numbers.next_if(|number| u64::from(*number) < end) {
                bytes.extend_from_slice(ids.bytes_of(number - first));
                let end = i32::try_from(bytes.len());
                offsets.push(end.map_err(|_| ArrowError::OffsetOverflowError(bytes.len()))?);
            }
        }
        StringArray::try_new(OffsetBuffer::new(ScalarBuffer::from(offsets)), Buffer::from_vec(bytes), None)
    }
}

/// Of a population so many times larger than the number of rows not even a bit is looked at for each subscription.
const MANY: u32 = 1024;

/// The distinct numbers, ascending; the numbers become places among these.
fn places(numbers: &mut [u32], total: u32) -> Vec<u32> {
    if numbers.len() < (total / MANY) as usize {
        let mut met = numbers.to_vec();
        met.sort_unstable();
        met.dedup();
        for number in numbers {
            *number = met.partition_point(|other| other < number) as u32;
        }
        return met;
    }
    let mut words = vec![0u64; (total as usize).div_ceil(64)];
    for number in &*numbers {
        words[*number as usize / 64] |= 1 << (number % 64);
    }
    let mut met = Vec::new();
    // Places of the first numbers of the words.
    let mut first_places = Vec::with_capacity(words.len());
    for (at, word) in words.iter().enumerate() {
        first_places.push(met.len() as u32);
        let mut left = *word;
        while left != 0 {
            met.push(at as u32 * 64 + left.trailing_zeros());
            left &= left - 1;
        }
    }
    for number in numbers {
        let at = *number as usize / 64;
        *number = first_places[at] + (words[at] & ((1 << (*number % 64)) - 1)).count_ones();
    }
    met
}

/// The ids of all segments, one after the other, as they are stored; `None` if these are more than fit in one array.
fn all_ids(snapshot: &Snapshot) -> Option<StringArray> {
    let (mut bytes, mut offsets) = (Vec::new(), vec![0i32]);
    for part in &snapshot.segments {
        let ids = part.segment.ids();
        let before = bytes.len() as u32;
        bytes.extend_from_slice(ids.bytes);
        i32::try_from(bytes.len()).ok()?;
        offsets.extend(ids.offsets.get(1..).unwrap_or_default().iter().map(|offset| (before + offset) as i32));
    }
    let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
    StringArray::try_new(offsets, Buffer::from_vec(bytes), None).ok()
}

/// Writes the rows of some documents; numbers begin for each segment where they are told to.
fn write_rows(matches: &[(u32, usize, Matches)], firsts: &[u32], mut documents: &mut [u32], mut numbers: &mut [u32]) {
    for (document, count, matches) in matches {
        let own;
        (own, documents) = std::mem::take(&mut documents).split_at_mut(*count);
        own.fill(*document);
        for (segment, ranges) in &matches.segments {
            let first = firsts[*segment as usize];
            for range in ranges {
                let own;
                (own, numbers) = std::mem::take(&mut numbers).split_at_mut(range.len());
                own.iter_mut().zip(first + range.start..).for_each(|(place, number)| *place = number);
            }
        }
    }
}

/// A dictionary array of keys that were given out as places in `ids`.
#[allow(unsafe_code)] // looking at each key again takes as long as writing it
fn dictionary(keys: Vec<u32>, ids: StringArray) -> DictionaryArray<UInt32Type> {
    debug_assert!(keys.iter().all(|key| (*key as usize) < ids.len()));
    // SAFETY: a key is the number of a subscription among all, whose ids are all there, or its place among those that
    // are; so all are below the length, and none is null.
    unsafe { DictionaryArray::new_unchecked(UInt32Array::from(keys), Arc::new(ids)) }
}

/// Collects what could not be processed.
#[derive(Default)]
pub(crate) struct ErrorTable {
    documents: UInt32Builder,
    subscriptions: StringBuilder,
    kinds: StringBuilder,
    messages: StringBuilder,
    positions: [UInt64Builder; 3],
}

impl ErrorTable {
    /// Adds an error of a document, or of one subscription on it.
    pub(crate) fn add(&mut self, document: u32, subscription: Option<&str>, fields: &Fields) {
        self.documents.append_value(document);
        self.subscriptions.append_option(subscription);
        self.kinds.append_value(&fields.kind);
        self.messages.append_value(&fields.message);
        for (builder, value) in self.positions.iter_mut().zip([fields.line, fields.column, fields.offset]) {
            builder.append_option(value);
        }
    }

    /// The record batch.
    pub(crate) fn finish(mut self) -> Result<RecordBatch, ArrowError> {
        let columns: Vec<(&str, ArrayRef, bool)> = vec![
            ("document", Arc::new(self.documents.finish()), false),
            ("subscription_id", Arc::new(self.subscriptions.finish()), true),
            ("kind", Arc::new(self.kinds.finish()), false),
            ("message", Arc::new(self.messages.finish()), false),
            ("line", Arc::new(self.positions[0].finish()), true),
            ("column", Arc::new(self.positions[1].finish()), true),
            ("offset", Arc::new(self.positions[2].finish()), true),
        ];
        RecordBatch::try_from_iter_with_nullable(columns)
    }
}
