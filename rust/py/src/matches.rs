//! The answers of a batch as Arrow, without a Python object per match.

use crate::errors::Fields;
use arrow_array::builder::{StringBuilder, UInt32Builder, UInt64Builder};
use arrow_array::types::UInt32Type;
use arrow_array::{ArrayRef, DictionaryArray, RecordBatch, UInt32Array};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use hashbrown::HashMap;
use sardonyx_core::index::Snapshot;
use sardonyx_core::matcher::Matches;
use std::sync::Arc;

const UNUSED: u32 = u32::MAX;

/// Collects matches; each distinct subscription id is written once, into a dictionary.
pub(crate) struct MatchTable<'s> {
    snapshot: &'s Snapshot,
    numbering: Numbering,
    ids: StringBuilder,
    documents: Vec<u32>,
    keys: Vec<u32>,
    count: u32,
}

/// Dictionary key of each subscription already seen: an array if there are many matches, a map if few.
enum Numbering {
    Dense(Vec<Vec<u32>>),
    Sparse(HashMap<(u32, u32), u32>),
}

impl<'s> MatchTable<'s> {
    /// A table for about `expected` matches.
    pub(crate) fn new(snapshot: &'s Snapshot, expected: usize) -> MatchTable<'s> {
        let sizes: Vec<usize> =
            snapshot.segments.iter().map(|part| part.segment.subscription_count() as usize).collect();
        let dense = expected >= sizes.iter().sum::<usize>() / 32;
        MatchTable {
            snapshot,
            numbering: if dense {
                Numbering::Dense(sizes.into_iter().map(|size| vec![UNUSED; size]).collect())
            } else {
                Numbering::Sparse(HashMap::new())
            },
            ids: StringBuilder::new(),
            documents: Vec::with_capacity(expected),
            keys: Vec::with_capacity(expected),
            count: 0,
        }
    }

    /// Adds the matches of one document.
    pub(crate) fn add(&mut self, document: u32, matches: &Matches) {
        for (segment, range) in &matches.ranges {
            let names = self.snapshot.segments[*segment as usize].segment.ids();
            self.documents.extend(std::iter::repeat_n(document, range.len()));
            for subscription in range.clone() {
                let key = match &mut self.numbering {
                    Numbering::Dense(keys) => &mut keys[*segment as usize][subscription as usize],
                    Numbering::Sparse(keys) => keys.entry((*segment, subscription)).or_insert(UNUSED),
                };
                if *key == UNUSED {
                    *key = self.count;
                    self.count += 1;
                    self.ids.append_value(names.get(subscription));
                }
                self.keys.push(*key);
            }
        }
    }

    /// The record batch: `document` and `subscription_id`.
    pub(crate) fn finish(mut self) -> Result<RecordBatch, ArrowError> {
        let dictionary =
            DictionaryArray::<UInt32Type>::try_new(UInt32Array::from(self.keys), Arc::new(self.ids.finish()))?;
        let documents: ArrayRef = Arc::new(UInt32Array::from(self.documents));
        let subscriptions: ArrayRef = Arc::new(dictionary);
        let schema = Schema::new(vec![
            Field::new("document", DataType::UInt32, false),
            Field::new("subscription_id", subscriptions.data_type().clone(), false),
        ]);
        RecordBatch::try_new(Arc::new(schema), vec![documents, subscriptions])
    }
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
