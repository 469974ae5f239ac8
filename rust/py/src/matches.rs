//! The answers of a batch as Arrow, without a Python object per match.

use crate::errors::Fields;
use arrow_array::builder::{StringBuilder, UInt32Builder, UInt64Builder};
use arrow_array::types::UInt32Type;
use arrow_array::{Array, ArrayRef, DictionaryArray, RecordBatch, StringArray, UInt32Array};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use hashbrown::HashMap;
use sardonyx_core::index::Snapshot;
use sardonyx_core::matcher::Matches;
use std::ops::Range;
use std::sync::Arc;

/// Collects matches; each distinct subscription id is written once, into a dictionary.
pub(crate) struct MatchTable<'s> {
    snapshot: &'s Snapshot,
    /// Document, segment and subscriptions.
    ranges: Vec<(u32, u32, Range<u32>)>,
    count: usize,
}

impl<'s> MatchTable<'s> {
    /// An empty table.
    pub(crate) fn new(snapshot: &'s Snapshot) -> MatchTable<'s> {
        MatchTable { snapshot, ranges: Vec::new(), count: 0 }
    }

    /// Adds the matches of one document.
    pub(crate) fn add(&mut self, document: u32, matches: &Matches) {
        self.ranges.extend(matches.ranges.iter().map(|(segment, range)| (document, *segment, range.clone())));
        self.count += matches.len();
    }

    /// The record batch: `document` and `subscription_id`.
    pub(crate) fn finish(self) -> Result<RecordBatch, ArrowError> {
        let sizes = self.snapshot.segments.iter().map(|part| part.segment.subscription_count() as usize);
        // Tables over all subscriptions do not pay for a few matches.
        let (keys, ids) = if self.count >= sizes.sum::<usize>() / 32 { self.dense_keys() } else { self.sparse_keys() };
        let mut documents = Vec::with_capacity(self.count);
        for (document, _, range) in &self.ranges {
            documents.extend(std::iter::repeat_n(*document, range.len()));
        }
        let dictionary = dictionary(keys, ids);
        let documents: ArrayRef = Arc::new(UInt32Array::from(documents));
        let subscriptions: ArrayRef = Arc::new(dictionary);
        let schema = Schema::new(vec![
            Field::new("document", DataType::UInt32, false),
            Field::new("subscription_id", subscriptions.data_type().clone(), false),
        ]);
        RecordBatch::try_new(Arc::new(schema), vec![documents, subscriptions])
    }

    /// Dictionary keys in the order of the subscriptions. All of a range are in the dictionary, so their keys follow
    /// each other: a range is written without looking at its members.
    fn dense_keys(&self) -> (Vec<u32>, StringArray) {
        let mut ids = StringBuilder::new();
        let mut count = 0;
        // For each segment: how many ranges begin less end at a subscription, then the keys.
        let mut tables: Vec<Vec<u32>> = self
            .snapshot
            .segments
            .iter()
            .map(|part| vec![0u32; part.segment.subscription_count() as usize + 1])
            .collect();
        for (_, segment, range) in &self.ranges {
            let table = &mut tables[*segment as usize];
            table[range.start as usize] = table[range.start as usize].wrapping_add(1);
            table[range.end as usize] = table[range.end as usize].wrapping_sub(1);
        }
        for (part, table) in self.snapshot.segments.iter().zip(&mut tables) {
            let names = part.segment.ids();
            let mut open = 0u32;
            for (subscription, place) in table.iter_mut().enumerate() {
                open = open.wrapping_add(*place);
                *place = count;
                if open != 0 {
                    ids.append_value(names.get(subscription as u32));
                    count += 1;
                }
            }
        }
        let mut keys = Vec::with_capacity(self.count);
        for (_, segment, range) in &self.ranges {
            let first = tables[*segment as usize][range.start as usize];
            keys.extend(first..first + range.len() as u32);
        }
        (keys, ids.finish())
    }

    /// Dictionary keys in the order in which subscriptions are met.
    fn sparse_keys(&self) -> (Vec<u32>, StringArray) {
        let mut ids = StringBuilder::new();
        let mut known: HashMap<(u32, u32), u32> = HashMap::new();
        let mut keys = Vec::with_capacity(self.count);
        for (_, segment, range) in &self.ranges {
            let names = self.snapshot.segments[*segment as usize].segment.ids();
            for subscription in range.clone() {
                let count = known.len() as u32;
                keys.push(*known.entry((*segment, subscription)).or_insert_with(|| {
                    ids.append_value(names.get(subscription));
                    count
                }));
            }
        }
        (keys, ids.finish())
    }
}

/// A dictionary array of keys that were given out as places in `ids`.
#[allow(unsafe_code)] // looking at each key again takes as long as writing it
fn dictionary(keys: Vec<u32>, ids: StringArray) -> DictionaryArray<UInt32Type> {
    debug_assert!(keys.iter().all(|key| (*key as usize) < ids.len()));
    // SAFETY: a key is the number of ids before its id was appended (`sparse_keys`), or lies between the first and the
    // last of a range all of whose ids were appended (`dense_keys`); so all are below the length, and none is null.
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
