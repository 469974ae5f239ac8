//! Why documents do or do not satisfy a join.

use super::compile::NO_PATH;
use super::parts::{DefinitionId, OperandId, SourceId, SourceKind};
use super::population::{Population, Registration};
use super::publish::{Message, publish, units};
use super::query::Subscription;
use super::state::{Settings, State};
use super::witnesses::{Published, UnitWitness};
use crate::document::Document;
use crate::xpath::parser::QueryLimits;
use crate::xquery::parser::StaticContext;
use crate::xscl::ast::{Normal, OperatorKind};
use crate::xscl::parser::parse;
use std::collections::BTreeSet;

/// A document that might be joined.
#[derive(Debug)]
pub struct Candidate<'d> {
    /// The document.
    pub document: &'d Document,
    /// Its stream.
    pub stream: Option<&'d str>,
    /// Its id.
    pub id: &'d str,
    /// Its timestamp, in microseconds.
    pub time: i64,
}

/// A line of an explanation.
#[derive(Clone, Debug)]
pub struct Line {
    /// How deep it lies, from 0.
    pub depth: u32,
    /// What has to hold.
    pub text: String,
    /// Whether it does; None if no documents were given.
    pub held: Option<bool>,
    /// Why, in words.
    pub reason: String,
}

/// An explanation.
#[derive(Debug, Default)]
pub struct Explanation {
    /// Its lines.
    pub lines: Vec<Line>,
    /// Whether the documents are joined, each as the block of its place; None if none were given.
    pub joined: Option<bool>,
}

/// Most characters of a value that are shown.
const SHOWN: usize = 60;

/// Explains a subscription; `documents` has none, or one for each block.
pub fn explain(population: &Population, subscription: &Subscription, documents: &[Candidate<'_>]) -> Explanation {
    let work = Work { population, subscription, documents, units: taken_apart(population, documents) };
    let mut lines = Vec::new();
    let first = &population.queries()[subscription.steps[0]].key;
    for (block, source) in first.left.into_iter().chain([first.right]).enumerate() {
        lines.push(work.block(block, source));
    }
    let mut number = usize::from(first.left.is_some());
    for (place, step) in subscription.steps.iter().enumerate() {
        let key = &population.queries()[*step].key;
        if key.left.is_none() {
            continue;
        }
        if place > 0 {
            number += 1;
            lines.push(work.block(number, key.right));
        }
        lines.push(work.time(place));
        lines.extend(key.edges.iter().map(|edge| work.equality(place, *edge)));
    }
    let joined = (!documents.is_empty()).then(|| work.is_joined());
    Explanation { lines, joined }
}

fn taken_apart<'d>(population: &Population, documents: &[Candidate<'d>]) -> Vec<Vec<UnitWitness<'d>>> {
    let mut worker = population.worker();
    let taken = documents
        .iter()
        .map(|candidate| {
            let published = Published { document: candidate.document, stream: candidate.stream, is_derived: false };
            units(population, &mut worker, published, false, |_| {})
        })
        .collect();
    population.give_back(worker);
    taken
}

struct Work<'w, 'd> {
    population: &'w Population,
    subscription: &'w Subscription,
    documents: &'w [Candidate<'d>],
    units: Vec<Vec<UnitWitness<'d>>>,
}

impl Work<'_, '_> {
    fn block(&self, block: usize, source: SourceId) -> Line {
        let SourceKind::Pattern { stream, path } = &self.population.parts().sources[source].kind else {
            return Line { depth: 0, text: String::new(), held: None, reason: String::new() };
        };
        let path = &self.population.paths().get(*path).text;
        let stream = stream.as_deref().unwrap_or("every stream");
        let text = format!("block {}: {path} on {stream}", block + 1);
        let found = self.units.get(block).map(|units| units.iter().filter(|unit| unit.source == source).count());
        let reason = match found {
            None => String::new(),
            Some(0) => "the document has no such node with a value that is compared, or is of another stream".into(),
            Some(count) => format!("{count} in {:?}", self.documents[block].id),
        };
        Line { depth: 0, text, held: found.map(|count| count > 0), reason }
    }

    fn time(&self, place: usize) -> Line {
        let key = &self.population.queries()[self.subscription.steps[place]].key;
        let window = if key.window == i64::MAX { "INF".to_owned() } else { format!("{} us", key.window) };
        let name = match key.kind {
            OperatorKind::Join => "JOIN",
            OperatorKind::FollowedBy => "FOLLOWED BY",
        };
        let text = format!("{name} within {window}");
        if self.documents.is_empty() {
            return Line { depth: 0, text, held: None, reason: String::new() };
        }
        let before = self.documents[..=place].iter().map(|candidate| candidate.time).max().unwrap_or_default();
        let apart = self.documents[place + 1].time.saturating_sub(before);
        let (held, wanted) = match key.kind {
            OperatorKind::Join => (apart.saturating_abs() <= key.window, "|t1 - t2| <= T"),
            OperatorKind::FollowedBy => (apart > 0 && apart <= key.window, "0 < t2 - t1 <= T"),
        };
        Line { depth: 0, text, held: Some(held), reason: format!("{wanted}; t2 - t1 = {apart} us") }
    }

    fn equality(&self, place: usize, edge: u32) -> Line {
        let edge = &self.population.parts().edges[edge];
        let sides =
            [(true, edge.left), (false, edge.right)].map(|(is_left, operand)| self.side(place, is_left, operand));
        let [left, right] = &sides;
        let text = format!("{} = {}", left.0, right.0);
        if self.documents.is_empty() {
            return Line { depth: 1, text, held: None, reason: String::new() };
        }
        let shared = left.1.intersection(&right.1).next();
        let reason = match shared {
            Some(value) => format!("both have {:?}", shortened(value)),
            None => {
                let some = |values: &BTreeSet<String>| {
                    let shown: Vec<String> =
                        values.iter().take(3).map(|value| format!("{:?}", shortened(value))).collect();
                    if shown.is_empty() { "nothing".into() } else { shown.join(", ") }
                };
                format!("left has {}, right has {}", some(&left.1), some(&right.1))
            }
        };
        Line { depth: 1, text, held: Some(shared.is_some()), reason }
    }

    /// An operand as text, and its values in the document of its block.
    fn side(&self, place: usize, is_left: bool, operand: OperandId) -> (String, BTreeSet<String>) {
        let parts = self.population.parts();
        let normal = parts.operands[operand].normal;
        let (block, definition) = self.origin(place, is_left, parts.operands[operand].definition);
        let path = parts.definitions[definition].from_root.map_or("?", |path| &self.population.paths().get(path).text);
        let text = match normal {
            Normal::Exact => path.to_owned(),
            Normal::Spaces => format!("normalize-space({path})"),
            Normal::Lower => format!("lower-case({path})"),
            Normal::SpacesLower => format!("lower-case(normalize-space({path}))"),
        };
        let own = parts.definitions[definition].operands.iter().find(|id| parts.operands[**id].normal == normal);
        let units = self.units.get(block).into_iter().flatten();
        let values = units.flat_map(|unit| &unit.values).filter(|value| Some(&value.operand) == own);
        (format!("block {} {text}", block + 1), values.map(|value| value.value.clone().into_owned()).collect())
    }

    /// The block and the definition that a definition of a step comes from.
    fn origin(&self, place: usize, is_left: bool, definition: DefinitionId) -> (usize, DefinitionId) {
        if !is_left {
            return (place + 1, definition);
        }
        let key = &self.population.parts().definitions[definition].key;
        match self.population.parts().sources[key.source].kind {
            SourceKind::Found(query) if key.path != NO_PATH => {
                let output = self.population.queries()[query].key.outputs[key.path as usize];
                self.origin(place.saturating_sub(1), output.is_left, output.definition)
            }
            _ => (0, definition),
        }
    }

    /// Whether the documents are joined when they are published by themselves.
    fn is_joined(&self) -> bool {
        let namespaces: Vec<(&str, &str)> =
            self.subscription.namespaces.iter().map(|(prefix, uri)| (&**prefix, &**uri)).collect();
        let limits = QueryLimits { length_bytes: usize::MAX, ..QueryLimits::default() };
        let Ok(parsed) = parse(&self.subscription.query, &StaticContext { namespaces: &namespaces, limits }) else {
            return false;
        };
        let mut alone = Population::new(limits, self.population.cost_limit());
        alone.register([Registration {
            id: self.subscription.id.clone(),
            query: self.subscription.query.clone(),
            namespaces: self.subscription.namespaces.clone(),
            stream: self.subscription.stream.clone(),
            parsed,
        }]);
        let mut state = State::new(Settings {
            lateness_us: i64::MAX,
            state_bytes: usize::MAX,
            memory_bytes: usize::MAX,
            results: false,
            cost_limit: self.population.cost_limit(),
        });
        let taken = taken_apart(&alone, self.documents);
        let messages = (0..).zip(self.documents).zip(taken).map(|((number, candidate), witnesses)| Message {
            number,
            stream: candidate.stream,
            id: candidate.id,
            time: candidate.time,
            witnesses,
        });
        let outcome = publish(&alone, &mut state, messages.collect(), false);
        outcome.notifications.iter().any(|(_, notification)| {
            notification.documents.iter().map(|id| &**id).eq(self.documents.iter().map(|candidate| candidate.id))
        })
    }
}

fn shortened(value: &str) -> String {
    let mut shown: String = value.chars().take(SHOWN).collect();
    if shown.len() < value.len() {
        shown.push('…');
    }
    shown
}
