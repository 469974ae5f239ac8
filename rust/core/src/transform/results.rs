//! What a document means to a population of transformations.

use super::error::TransformError;
use super::execute::{Execution, Worker};
use super::population::{PlanId, Population, SubscriberId};
use crate::document::Document;
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
        if plan.subscribers.is_empty() || (!plan.tells_empty() && matches!(execution.is_closed(*id), Ok(true))) {
            continue;
        }
        match execution.text(plan, plan.tells_empty()) {
            Ok(None) => {}
            Ok(Some((text, is_something))) => {
                transformed.results.push(PlanResult { plan: *id, text, is_empty: !is_something });
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

/// In which form results are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As groups in place: bindings that count and the streams that list their nodes.
    Groups,
    /// As XML text.
    Text,
}

/// What transforming documents took and gave.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Profile {
    /// Wall-clock time, parsing not included.
    pub seconds: f64,
    /// Of it, finding the nodes of all paths.
    pub path_seconds: f64,
    /// Plans that were looked at.
    pub candidates: u64,
    /// Plans with a result.
    pub results: u64,
    /// Groups of all results.
    pub groups: u64,
    /// Bytes of XML text.
    pub text_bytes: u64,
    /// Plans that could not be evaluated.
    pub failures: u64,
}

/// Transforms parsed documents and measures it; each different plan is counted once, however many subscribe to it.
pub fn profile(
    population: &Population,
    worker: &mut Worker,
    documents: &[&Document],
    form: Form,
    cost_limit: u64,
) -> Profile {
    let mut profile = Profile::default();
    let mut bindings = Vec::new();
    let started = std::time::Instant::now();
    for document in documents {
        let begun = std::time::Instant::now();
        let mut execution = Execution::new(population, worker, document, cost_limit);
        profile.path_seconds += begun.elapsed().as_secs_f64();
        let candidates = execution.candidates();
        profile.candidates += candidates.len() as u64;
        bindings.clear();
        for id in &candidates {
            let outcome = match form {
                Form::Groups => execution.group_in_place(*id, &mut bindings),
                Form::Text if matches!(execution.is_closed(*id), Ok(true)) => continue,
                Form::Text => execution.text(population.plan(*id), false).map(|text| {
                    profile.text_bytes += text.as_ref().map_or(0, |(text, _)| text.len() as u64);
                    text.is_some()
                }),
            };
            match outcome {
                Ok(is_something) => profile.results += u64::from(is_something),
                Err(_) => profile.failures += 1,
            }
        }
        profile.groups += bindings.len() as u64;
        execution.recycle(candidates);
    }
    profile.seconds = started.elapsed().as_secs_f64();
    profile
}
