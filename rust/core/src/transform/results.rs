//! What a document means to a population of transformations.

use super::construct::write;
use super::error::TransformError;
use super::execute::{Execution, Worker};
use super::population::{PlanId, Population, SubscriberId};
use crate::document::{Document, Serializer};
use std::sync::{Mutex, PoisonError};

/// One result, for all subscriptions of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanResult {
    /// The plan.
    pub plan: PlanId,
    /// The XML text.
    pub text: String,
    /// Whether the document has nothing for the query: only those hear of it who asked for that.
    pub is_empty: bool,
}

/// The results of one document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transformed {
    /// Results, in the order of the plans' numbers.
    pub results: Vec<PlanResult>,
    /// Plans that could not be evaluated.
    pub failures: Vec<(PlanId, TransformError)>,
}

impl Transformed {
    /// The subscriptions that get a result, each with its number in [`Self::results`].
    pub fn recipients<'p>(
        &'p self,
        population: &'p Population,
        stream: Option<&'p str>,
    ) -> impl Iterator<Item = (SubscriberId, usize)> + 'p {
        self.results.iter().enumerate().flat_map(move |(at, result)| {
            population.plan(result.plan).subscribers.iter().filter_map(move |id| {
                let subscriber = population.subscriber(*id)?;
                let reads = subscriber.stream.as_deref().is_none_or(|own| Some(own) == stream);
                (reads && (!result.is_empty || subscriber.notify_empty)).then_some((*id, at))
            })
        })
    }
}

/// Transforms one document.
pub fn transform_document(
    population: &Population,
    worker: &mut Worker,
    document: &Document,
    cost_limit: u64,
) -> Transformed {
    let mut transformed = Transformed::default();
    if population.is_empty() {
        return transformed;
    }
    let mut execution = Execution::new(population, worker, document, cost_limit);
    let candidates = execution.candidates();
    for id in &candidates {
        let plan = population.plan(*id);
        if plan.subscribers.is_empty() {
            continue;
        }
        match execution.events(plan, plan.tells_empty()) {
            Ok(None) => {}
            Ok(Some((events, is_something))) => {
                let mut serializer = Serializer::default();
                match write(document, &events, &mut serializer) {
                    Ok(()) => {
                        let text = serializer.into_text();
                        transformed.results.push(PlanResult { plan: *id, text, is_empty: !is_something });
                    }
                    Err(error) => transformed.failures.push((*id, error)),
                }
            }
            Err(error) => transformed.failures.push((*id, error)),
        }
    }
    execution.recycle(candidates);
    transformed
}

/// Workers that are not at work.
#[derive(Debug, Default)]
pub struct Pool {
    idle: Mutex<Vec<Worker>>,
}

impl Pool {
    /// A worker, used before or new.
    pub fn take(&self) -> Worker {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    /// Returns a worker.
    pub fn give_back(&self, worker: Worker) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(worker);
    }

    /// Forgets all, as when the population started again: caches fit one population.
    pub fn clear(&self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
