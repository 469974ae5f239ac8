//! Matching documents against an index: one, its selected nodes, a batch.

use super::Index;
use crate::arrow::Row;
use crate::document::MatchedNode;
use crate::errors::{Failed, Fields, arrow_error};
use crate::matches::{ErrorTable, MatchTable};
use crate::transformations::ResultTable;
use arrow_array::RecordBatch;
use sardonyx_core::document::{Document, Locator};
use sardonyx_core::index::Snapshot;
use sardonyx_core::matcher::{DocumentInput, Matcher, Matches, process_documents};
use sardonyx_core::transform::results::Transformed;
use sardonyx_core::xpath::evaluate::{Evaluator, NodeRef, Value};
use sardonyx_core::xpath::symbols::DocumentSymbols;
use std::sync::atomic::Ordering;

impl Index {
    /// The results of one document: subscription id and XML text.
    pub(super) fn transform_one(
        &self,
        document: &Document,
        stream: Option<&str>,
    ) -> Result<Vec<(String, String)>, Failed> {
        let population = self.transformations.read();
        let mut worker = self.transformations.pool().take();
        let transformed = self.transformations.transform(&population, &mut worker, document);
        self.transformations.pool().give_back(worker);
        let own = |id: &u32| {
            population.subscriber(*id).filter(|entry| entry.stream.as_deref().is_none_or(|own| Some(own) == stream))
        };
        for (plan, error) in &transformed.failures {
            if let Some(subscriber) = population.plan(*plan).subscribers.iter().find_map(own) {
                let mut fields = Fields::from(error.clone());
                fields.message = format!("subscription {:?}: {}", subscriber.id, fields.message);
                return Err(Failed::Core(fields));
            }
        }
        let recipients = transformed.recipients(&population, stream);
        let name = |id: u32| population.subscriber(id).map_or(String::new(), |entry| entry.id.to_string());
        Ok(recipients.map(|(id, at)| (name(id), transformed.results[at].text.clone())).collect())
    }

    pub(super) fn match_one(
        &self,
        snapshot: &Snapshot,
        document: &Document,
        stream: Option<&str>,
        matcher: Matcher,
    ) -> Result<Matches, Failed> {
        self.documents.fetch_add(1, Ordering::Relaxed);
        let mut worker = self.matchers.worker(matcher, snapshot);
        let matches = self.matchers.match_document(&mut worker, snapshot, document, stream);
        self.matchers.give_back(worker);
        match matches.failures.first() {
            None => Ok(matches),
            Some(failure) => {
                let id = snapshot.segments[failure.segment].segment.ids().get(failure.subscription);
                let mut fields = Fields::from(failure.error);
                fields.message = format!("subscription {id:?}: {}", fields.message);
                Err(Failed::Core(fields))
            }
        }
    }

    pub(super) fn selected_nodes(
        &self,
        snapshot: &Snapshot,
        document: &Document,
        source: &str,
        matches: &Matches,
        node_limit: usize,
    ) -> Result<Vec<(String, Vec<MatchedNode>)>, Failed> {
        let symbols: Vec<DocumentSymbols> = snapshot
            .segments
            .iter()
            .map(|part| DocumentSymbols::new(document, |test| part.segment.symbols().find(test)))
            .collect();
        let mut locator = Locator::new(document, source);
        let mut found = Vec::with_capacity(matches.len());
        for (number, subscription) in matches.iter() {
            let segment = &snapshot.segments[number as usize].segment;
            let filter = segment.view().filter(subscription);
            let cost_limit = self.matchers.inverted.settings().cost_limit;
            let mut evaluator = Evaluator::new(document, &symbols[number as usize], cost_limit);
            let root = NodeRef::ROOT;
            let nodes = match evaluator.value(filter.query(), &filter.constants, root)? {
                Value::Nodes(nodes) => nodes,
                _ => Vec::new(),
            };
            let nodes = nodes.into_iter().take(node_limit).map(|node| MatchedNode::new(document, node, &mut locator));
            found.push((segment.ids().get(subscription).to_owned(), nodes.collect()));
        }
        Ok(found)
    }

    pub(super) fn match_inputs(
        &self,
        rows: &[Row<'_>],
        threads: usize,
        matcher: Matcher,
    ) -> Result<(RecordBatch, RecordBatch), Failed> {
        let snapshot = self.population.snapshot();
        let present: Vec<DocumentInput<'_>> = rows
            .iter()
            .filter_map(|row| match row {
                Row::Present(input) => Some(*input),
                _ => None,
            })
            .collect();
        let population = self.transformations.read();
        let outcomes = process_documents(
            &present,
            &self.limits.document,
            threads,
            || (self.matchers.worker(matcher, &snapshot), self.transformations.pool().take()),
            |(worker, transformer), document, stream| {
                let matches = self.matchers.match_document(worker, &snapshot, document, stream);
                (matches, self.transformations.transform(&population, transformer, document))
            },
            |(worker, transformer)| {
                self.matchers.give_back(worker);
                self.transformations.pool().give_back(transformer);
            },
        );
        let mut results = ResultTable::default();
        self.documents.fetch_add(present.len() as u64, Ordering::Relaxed);
        let mut table = MatchTable::new(&snapshot);
        let mut errors = ErrorTable::default();
        let mut outcomes = outcomes.into_iter();
        for (number, row) in rows.iter().enumerate() {
            let number = number as u32;
            let mut stream = None;
            let outcome: Option<Result<(Matches, Transformed), _>> = match row {
                Row::Present(input) => {
                    let (DocumentInput::Bytes(_, own) | DocumentInput::Text(_, own)) = *input;
                    stream = own;
                    outcomes.next()
                }
                other => {
                    other.refuse(number, &mut errors);
                    None
                }
            };
            match outcome {
                Some(Ok((matches, transformed))) => {
                    results.add(number, &population, stream, &transformed);
                    for (plan, error) in &transformed.failures {
                        for id in &population.plan(*plan).subscribers {
                            let Some(subscriber) = population.subscriber(*id) else { continue };
                            if subscriber.stream.as_deref().is_none_or(|own| Some(own) == stream) {
                                errors.add(number, Some(&subscriber.id), &error.clone().into());
                            }
                        }
                    }
                    for failure in &matches.failures {
                        let id = snapshot.segments[failure.segment].segment.ids().get(failure.subscription);
                        errors.add(number, Some(id), &failure.error.into());
                    }
                    table.add(number, matches);
                }
                Some(Err(error)) => errors.add(number, None, &error.into()),
                None => {}
            }
        }
        let matches = table.finish(threads).map_err(arrow_error)?;
        let matches = if population.is_empty() { matches } else { results.join(&matches).map_err(arrow_error)? };
        Ok((matches, errors.finish().map_err(arrow_error)?))
    }
}
