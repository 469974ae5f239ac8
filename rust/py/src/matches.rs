//! The answers of a batch as Arrow, without a Python object per match.

use crate::errors::Fields;
use arrow_array::builder::{StringBuilder, UInt32Builder, UInt64Builder};
use arrow_array::types::UInt32Type;
use arrow_array::{Array, ArrayRef, DictionaryArray, RecordBatch, StringArray, UInt32Array};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use hashbrown::HashMap;
use sardonyx_core::index::Snapshot;
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
        let sizes = self.snapshot.segments.iter().map(|part| part.segment.subscription_count() as usize);
        let is_dense = self.count >= sizes.sum::<usize>() / 2;
        let ids = if is_dense { all_ids(self.snapshot) } else { None };
        let (documents, subscriptions) = match ids {
            Some(ids) => self.dense(ids, threads),
            None => self.sparse(),
        };
        let documents: ArrayRef = Arc::new(UInt32Array::from(documents));
        let schema = Schema::new(vec![
            Field::new("document", DataType::UInt32, false),
            Field::new("subscription_id", subscriptions.data_type().clone(), false),
        ]);
        RecordBatch::try_new(Arc::new(schema), vec![documents, Arc::new(subscriptions)])
    }

    /// All ids are in the dictionary, so that keys are known without looking anything up: a range is written as it is.
    fn dense(&self, ids: StringArray, threads: usize) -> (Vec<u32>, DictionaryArray<UInt32Type>) {
        let mut next = 0;
        let first_keys = self.snapshot.segments.iter().map(|part| {
            next += part.segment.subscription_count();
            next - part.segment.subscription_count()
        });
        let first_keys: Vec<u32> = first_keys.collect();
        let (mut documents, mut keys) = (vec![0; self.count], vec![0; self.count]);
        let threads = threads.min(self.count / MIN_ROWS_OF_A_THREAD).max(1);
        std::thread::scope(|scope| {
            let (mut documents, mut keys) = (&mut documents[..], &mut keys[..]);
            for matches in self.matches.chunks(self.matches.len().div_ceil(threads).max(1)) {
                let count = matches.iter().map(|(_, count, _)| count).sum();
                let (own_documents, own_keys);
                (own_documents, documents) = std::mem::take(&mut documents).split_at_mut(count);
                (own_keys, keys) = std::mem::take(&mut keys).split_at_mut(count);
                let first_keys = &first_keys;
                let mut write = move || write_rows(matches, first_keys, own_documents, own_keys);
                if documents.is_empty() {
                    write();
                } else {
                    scope.spawn(write);
                }
            }
        });
        (documents, dictionary(keys, ids))
    }

    /// Ids are in the dictionary in the order in which they are met.
    fn sparse(&self) -> (Vec<u32>, DictionaryArray<UInt32Type>) {
        let mut ids = StringBuilder::new();
        let mut known: HashMap<(u32, u32), u32> = HashMap::new();
        let (mut documents, mut keys) = (Vec::with_capacity(self.count), Vec::with_capacity(self.count));
        for (document, count, matches) in &self.matches {
            documents.extend(std::iter::repeat_n(*document, *count));
            for (segment, subscription) in matches.iter() {
                let count = known.len() as u32;
                keys.push(*known.entry((segment, subscription)).or_insert_with(|| {
                    ids.append_value(self.snapshot.segments[segment as usize].segment.ids().get(subscription));
                    count
                }));
            }
        }
        (documents, dictionary(keys, ids.finish()))
    }
}

/// The ids of all segments, one after the other, as they are stored; `None` if these are more than fit in one array.
fn all_ids(snapshot: &Snapshot) -> Option<StringArray> {
    let (mut bytes, mut offsets) = (Vec::new(), vec![0i32]);
    for part in &snapshot.segments {
        let ids = part.segment.ids();
        let before = bytes.len();
        bytes.extend_from_slice(ids.bytes);
        i32::try_from(bytes.len()).ok()?;
        offsets.extend(ids.offsets.iter().skip(1).map(|offset| (before + *offset as usize) as i32));
    }
    let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
    StringArray::try_new(offsets, Buffer::from_vec(bytes), None).ok()
}

/// Writes the rows of some documents; keys begin for each segment where they are told to.
fn write_rows(matches: &[(u32, usize, Matches)], first_keys: &[u32], mut documents: &mut [u32], mut keys: &mut [u32]) {
    for (document, count, matches) in matches {
        let own;
        (own, documents) = std::mem::take(&mut documents).split_at_mut(*count);
        own.fill(*document);
        for (segment, ranges) in &matches.segments {
            let first_key = first_keys[*segment as usize];
            for range in ranges {
                let own;
                (own, keys) = std::mem::take(&mut keys).split_at_mut(range.len());
                own.iter_mut().zip(first_key + range.start..).for_each(|(key, number)| *key = number);
            }
        }
    }
}

/// A dictionary array of keys that were given out as places in `ids`.
#[allow(unsafe_code)] // looking at each key again takes as long as writing it
fn dictionary(keys: Vec<u32>, ids: StringArray) -> DictionaryArray<UInt32Type> {
    debug_assert!(keys.iter().all(|key| (*key as usize) < ids.len()));
    // SAFETY: a key is the number of ids before its id was appended (`sparse`), or the number of a subscription among
    // all, whose ids were all appended (`dense`); so all are below the length, and none is null.
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
