//! The transformations of an index: XQuery subscriptions beside its filters.

use crate::document::borrow;
use crate::errors::{Failed, Fields, work};
use crate::settings::{AllLimits, Payload};
use arrow_array::builder::{LargeStringBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{ArrayRef, DictionaryArray, RecordBatch, UInt32Array};
use arrow_schema::ArrowError;
use arrow_select::concat::concat;
use arrow_select::take::take;
use hashbrown::HashMap;
use pyo3::prelude::*;
use pyo3::types::PyMapping;
use sardonyx_core::document::Document;
use sardonyx_core::transform::evaluate::Evaluator;
use sardonyx_core::transform::execute::{Execution, GroupResult};
use sardonyx_core::transform::population::{Population, Registration, Strategy, SubscriberId};
use sardonyx_core::transform::results::{Form, Pool, Profile, Transformed, profile, transform_document};
use sardonyx_core::transform::schema::ElementGraph;
use sardonyx_core::transform::store::{decode, encode};
use sardonyx_core::xpath::parser::QueryLimits;
use sardonyx_core::xquery::parser::{StaticContext, parse};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// A DTD's elements with the elements that each may contain.
pub(crate) type Graph = std::collections::HashMap<String, Vec<String>>;

/// Transformations that are registered at a time, so that matching does not wait long for many.
pub(crate) const CHUNK: usize = 2_000;

/// A population of transformations that changes while documents are transformed.
#[derive(Debug)]
pub(crate) struct Transformations {
    population: RwLock<Population>,
    pool: Pool,
    changes: AtomicU64,
    cost_limit: u64,
}

impl Transformations {
    /// No transformations yet.
    pub(crate) fn new(strategy: Strategy, graph: Option<Graph>, cost_limit: u64) -> Transformations {
        let graph = graph.map(|graph| {
            let elements =
                graph.iter().map(|(name, children)| (&**name, children.iter().map(|child| &**child).collect()));
            Arc::new(ElementGraph::new(elements))
        });
        Transformations {
            population: RwLock::new(Population::new(strategy, graph)),
            pool: Pool::default(),
            changes: AtomicU64::new(0),
            cost_limit,
        }
    }

    /// The current population.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Population> {
        self.population.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Population> {
        self.population.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// How often the population changed.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    /// Registers parsed transformations.
    pub(crate) fn register(&self, registrations: impl IntoIterator<Item = Registration>) {
        self.write().register(registrations);
    }

    /// Notes that the population has changed.
    pub(crate) fn changed(&self) {
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    /// Removes transformations; gives the ids that were not there.
    pub(crate) fn unregister<'i>(
        &self,
        ids: impl IntoIterator<Item = &'i str>,
        limits: QueryLimits,
    ) -> Result<Vec<String>, Failed> {
        let mut population = self.write();
        let before = population.len();
        let missing = population.unregister(ids);
        if population.len() != before {
            self.changed();
        }
        if population.is_mostly_garbage() {
            // Operators that no plan uses any more are dropped by starting again.
            let kept =
                decode(&encode(&population), limits).map_err(|reason| Failed::Core(Fields::new("internal", reason)))?;
            let mut fresh = Population::new(population.strategy(), population.operators().graph().cloned());
            fresh.register(kept);
            *population = fresh;
            self.pool.clear();
        }
        Ok(missing)
    }

    /// As bytes for a file.
    pub(crate) fn encode(&self) -> Vec<u8> {
        encode(&self.read())
    }

    /// Registers what a file carries.
    pub(crate) fn restore(&self, bytes: &[u8], limits: QueryLimits) -> Result<(), Failed> {
        let registrations =
            decode(bytes, limits).map_err(|reason| Failed::Core(Fields::new("index_format", reason)))?;
        self.write().register(registrations);
        Ok(())
    }

    /// Transforms one document with a worker from [`Self::pool`].
    pub(crate) fn transform(
        &self,
        population: &Population,
        worker: &mut sardonyx_core::transform::execute::Worker,
        document: &Document,
    ) -> Transformed {
        transform_document(population, worker, document, self.cost_limit)
    }

    /// The groups of each subscription that has something of a document, sorted by id; what fails is left out.
    pub(crate) fn groups(&self, document: &Document, stream: Option<&str>) -> Vec<(String, GroupResult)> {
        let population = self.read();
        let mut worker = self.pool.take();
        let mut found = Vec::new();
        if !population.is_empty() {
            let mut execution = Execution::new(&population, &mut worker, document, self.cost_limit);
            for plan in execution.candidates() {
                let Ok(Some(groups)) = execution.groups(plan) else { continue };
                for subscriber in population.plan(plan).subscribers.iter().filter_map(|id| population.subscriber(*id)) {
                    if subscriber.stream.as_deref().is_none_or(|own| Some(own) == stream) {
                        found.push((subscriber.id.to_string(), groups.clone()));
                    }
                }
            }
        }
        self.pool.give_back(worker);
        found.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        found
    }

    /// Measures transforming parsed documents, over several passes.
    pub(crate) fn profile(&self, documents: &[&Document], form: Form, passes: usize) -> Profile {
        let population = self.read();
        let mut worker = self.pool.take();
        let mut total = Profile::default();
        for _ in 0..passes {
            let pass = profile(&population, &mut worker, documents, form, self.cost_limit);
            total.seconds += pass.seconds;
            total.path_seconds += pass.path_seconds;
            total = Profile { seconds: total.seconds, path_seconds: total.path_seconds, ..pass };
        }
        self.pool.give_back(worker);
        total
    }

    /// Workers that are not at work.
    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }
}

/// Collects results for Arrow: each different text and id once.
#[derive(Default)]
pub(crate) struct ResultTable {
    documents: Vec<u32>,
    subscribers: Vec<u32>,
    ids: StringBuilder,
    known: HashMap<SubscriberId, u32>,
    /// The results of a batch may be more than 2 GiB.
    texts: LargeStringBuilder,
    text_count: u32,
    keys: Vec<u32>,
}

impl ResultTable {
    /// Adds the results of one document.
    pub(crate) fn add(
        &mut self,
        number: u32,
        population: &Population,
        stream: Option<&str>,
        transformed: &Transformed,
    ) {
        let mut written: Vec<Option<u32>> = vec![None; transformed.results.len()];
        for (subscriber, at) in transformed.recipients(population, stream) {
            let key = *written[at].get_or_insert_with(|| {
                self.texts.append_value(&transformed.results[at].text);
                self.text_count += 1;
                self.text_count - 1
            });
            let next = self.known.len() as u32;
            let id = *self.known.entry(subscriber).or_insert_with(|| {
                self.ids.append_value(population.subscriber(subscriber).map_or("", |entry| &entry.id));
                next
            });
            self.documents.push(number);
            self.subscribers.push(id);
            self.keys.push(key);
        }
    }

    /// Matches of filters and the results, ordered by document: `document`, `subscription_id` and `result`, which is
    /// null for filters.
    pub(crate) fn join(mut self, matches: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let own_ids = DictionaryArray::<UInt32Type>::try_new(self.subscribers.into(), Arc::new(self.ids.finish()))?;
        let texts: ArrayRef = Arc::new(self.texts.finish());
        let own = DictionaryArray::<UInt32Type>::try_new(self.keys.into(), texts.clone())?;
        let nothing = DictionaryArray::<UInt32Type>::try_new(UInt32Array::new_null(matches.num_rows()), texts)?;
        let own_documents: ArrayRef = Arc::new(UInt32Array::from(self.documents));
        let columns = [
            ("document", matches.column(0).clone(), own_documents, false),
            ("subscription_id", matches.column(1).clone(), Arc::new(own_ids) as ArrayRef, false),
            ("result", Arc::new(nothing) as ArrayRef, Arc::new(own) as ArrayRef, true),
        ];
        let mut joined = Vec::with_capacity(columns.len());
        for (name, filters, transformations, nullable) in columns {
            joined.push((name, concat(&[&*filters, &*transformations])?, nullable));
        }
        let documents = joined[0].1.as_primitive::<UInt32Type>();
        // A stable sort: filters first, each in its own order.
        let mut order: Vec<u32> = (0..documents.len() as u32).collect();
        order.sort_by_key(|row| documents.value(*row as usize));
        let order = UInt32Array::from(order);
        for (_, column, _) in &mut joined {
            *column = take(&*column, &order, None)?;
        }
        RecordBatch::try_from_iter_with_nullable(joined)
    }
}

/// The result of one query on one document, by the exact evaluator.
#[pyfunction]
#[pyo3(signature = (query, payload, namespaces=None, limits=None, cost_limit=None))]
pub(crate) fn evaluate_xquery(
    py: Python<'_>,
    query: &str,
    payload: Payload,
    namespaces: Option<&Bound<'_, PyMapping>>,
    limits: Option<&Bound<'_, PyMapping>>,
    cost_limit: Option<u64>,
) -> PyResult<String> {
    let pairs = crate::document::namespaces(namespaces)?;
    let limits = AllLimits::read(limits)?;
    work(py, || {
        let module = parse(query, &StaticContext { namespaces: &borrow(&pairs), limits: limits.query })?;
        let document = payload.parse(&limits.document)?;
        let cost_limit = cost_limit.unwrap_or(sardonyx_core::matcher::Settings::default().cost_limit);
        Ok(Evaluator::new(&document, cost_limit).text(&module)?)
    })
}
