//! A batch of documents, from trees to notifications; results on derived streams go the same way again.

use super::population::{Population, Worker};
use super::results::{Notification, hexadecimal, notification_id, own_limits, result};
use super::state::{Admission, Arrived, Found, Joined, State, StateFull};
use super::witnesses::{Published, UnitWitness, witnesses};
use crate::document::Parser;
use crate::transform::error::TransformError;
use std::collections::VecDeque;
use std::sync::Arc;

/// A document of a batch.
#[derive(Debug)]
pub struct Message<'a> {
    /// Its number in the batch.
    pub number: u32,
    /// Its stream.
    pub stream: Option<&'a str>,
    /// Its id.
    pub id: &'a str,
    /// Its timestamp, in microseconds of UTC.
    pub time: i64,
    /// What it has to join with.
    pub witnesses: Vec<UnitWitness<'a>>,
}

/// A result that is a document of a derived stream.
#[derive(Clone, Debug)]
pub struct Derived {
    /// The stream.
    pub stream: Arc<str>,
    /// Its id: that of the notification.
    pub id: String,
    /// Its timestamp.
    pub time: i64,
    /// Its text.
    pub text: String,
}

/// Why a document was not heard.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Refusal {
    /// It is late.
    #[error("the timestamp {time} us is before the watermark {watermark} us: the document is late and joins nothing")]
    Late {
        /// Its timestamp.
        time: i64,
        /// The watermark.
        watermark: i64,
    },
    /// The state is full.
    #[error(transparent)]
    Full(#[from] StateFull),
}

/// A subscription that failed on a document.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Number of the document in the batch.
    pub number: u32,
    /// The subscription.
    pub subscription_id: Arc<str>,
    /// Why.
    pub error: TransformError,
}

/// What a batch led to.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The notifications, each with the number of the document that completed it.
    pub notifications: Vec<(u32, Notification)>,
    /// Documents of derived streams.
    pub derived: Vec<(u32, Derived)>,
    /// Documents that were not heard.
    pub refused: Vec<(u32, Refusal)>,
    /// Subscriptions that failed.
    pub failures: Vec<Failure>,
    /// Documents that have been seen before.
    pub repetitions: u64,
    /// Pairs and results that were counted only.
    pub pairs: u64,
    /// The latter.
    pub count: u64,
}

/// Publishes the documents of one batch: none makes another late. `counts_only` makes no notifications but counts what
/// would be one for each different query, except where results go on.
pub fn publish(population: &Population, state: &mut State, mut batch: Vec<Message<'_>>, counts_only: bool) -> Outcome {
    let mut outcome = Outcome::default();
    // Whatever order they come in, the answer is the same.
    batch.sort_by(|a, b| (a.time, a.stream, a.id).cmp(&(b.time, b.stream, b.id)));
    let mut latest: Option<i64> = None;
    for message in batch {
        latest = latest.max(Some(message.time));
        let Message { number, stream, id, time, witnesses } = message;
        let arrived = Arrived {
            stream: stream.map(Arc::from),
            id: id.into(),
            time,
            version: population.version(),
            units: witnesses,
        };
        let mut derived = hear(population, state, number, &arrived, counts_only, &mut outcome);
        while let Some(next) = derived.pop_front() {
            derived.extend(hear_derived(population, state, number, &next, counts_only, &mut outcome));
            outcome.derived.push((number, next));
        }
    }
    if let Some(latest) = latest {
        state.advance(latest);
    }
    outcome
}

fn hear_derived(
    population: &Population,
    state: &mut State,
    number: u32,
    derived: &Derived,
    counts_only: bool,
    outcome: &mut Outcome,
) -> VecDeque<Derived> {
    let Ok(document) = Parser::new(own_limits()).parse_str(&derived.text) else { return VecDeque::new() };
    let mut worker = population.worker();
    let published = Published { document: &document, stream: Some(&derived.stream), is_derived: true };
    let units = units(population, &mut worker, published, state.settings().results, |error| {
        outcome.failures.push(Failure { number, ..error });
    });
    population.give_back(worker);
    let arrived = Arrived {
        stream: Some(derived.stream.clone()),
        id: derived.id.as_str().into(),
        time: derived.time,
        version: population.version(),
        units,
    };
    hear(population, state, number, &arrived, counts_only, outcome)
}

/// The witnesses of a document; sources that cost too much are told of, for each subscription that reads them.
pub fn units<'d>(
    population: &Population,
    worker: &mut Worker,
    published: Published<'d>,
    results: bool,
    mut fail: impl FnMut(Failure),
) -> Vec<UnitWitness<'d>> {
    let found = witnesses(population, worker, published, results || population.publishes());
    for (source, error) in found.failures {
        for id in population.readers(source) {
            fail(Failure { number: 0, subscription_id: id, error: error.into() });
        }
    }
    found.units
}

/// Joins one document; gives the documents that its results are.
fn hear(
    population: &Population,
    state: &mut State,
    number: u32,
    arrived: &Arrived<'_>,
    counts_only: bool,
    outcome: &mut Outcome,
) -> VecDeque<Derived> {
    match state.admit(arrived) {
        Admission::Fresh => {}
        Admission::Repetition => {
            outcome.repetitions += 1;
            return VecDeque::new();
        }
        Admission::Late(watermark) => {
            outcome.refused.push((number, Refusal::Late { time: arrived.time, watermark }));
            return VecDeque::new();
        }
    }
    let mut joined = Joined { counts_only, ..Joined::default() };
    if let Err(full) = state.join(population, arrived, &mut joined) {
        outcome.refused.push((number, full.into()));
        return VecDeque::new();
    }
    outcome.pairs += joined.pairs;
    outcome.count += joined.count;
    for (query, error) in joined.failures {
        for id in population.askers(query) {
            outcome.failures.push(Failure { number, subscription_id: id, error: error.into() });
        }
    }
    let mut told = Vec::new();
    for found in &joined.found {
        for subscription in &population.queries()[found.query].subscriptions {
            if population.subscriptions()[*subscription].since <= found.version {
                told.push((*subscription, found));
            }
        }
    }
    let by_name = |(subscription, found): &(u32, &Found)| {
        let documents: Vec<_> = found.documents.iter().map(|document| (document.id.clone(), document.time)).collect();
        (population.subscriptions()[*subscription].id.clone(), documents, found.nodes.clone())
    };
    told.sort_by_cached_key(by_name);
    let mut derived = VecDeque::new();
    for (subscription, found) in told {
        let subscription = &population.subscriptions()[subscription];
        let name = notification_id(&subscription.id, found);
        let time = found.documents.iter().map(|document| document.time).max().unwrap_or_default();
        let wanted = state.settings().results || subscription.publish.is_some();
        let text = match wanted.then(|| result(subscription, found, population.cost_limit())).transpose() {
            Ok(text) => text,
            Err(error) => {
                outcome.failures.push(Failure { number, subscription_id: subscription.id.clone(), error });
                continue;
            }
        };
        if let (Some(stream), Some(text)) = (&subscription.publish, &text) {
            derived.push_back(Derived { stream: stream.clone(), id: hexadecimal(&name), time, text: text.clone() });
        }
        if counts_only {
            outcome.count += 1;
            continue;
        }
        let notification = Notification {
            subscription_id: subscription.id.clone(),
            documents: found.documents.iter().map(|document| document.id.clone()).collect(),
            notification_id: name,
            nodes: found.nodes.to_vec(),
            result: text.filter(|_| state.settings().results),
            time,
        };
        outcome.notifications.push((number, notification));
    }
    derived
}
