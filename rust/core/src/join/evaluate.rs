//! Stage 2: what a new document joins with, for all queries at once.
//!
//! Each value of a new unit leads to the units that have the same value where an edge compares them; so each of these
//! collects the set of edges that hold between the two. What a set means is decided once (`sets`), and a pair costs a
//! look-up. The units of frequent values are not even looked at one by one if no query wants them, or only their number
//! is asked for (`frequent`).

use super::compile::NO_PATH;
use super::frequent::Lists;
use super::parts::{EdgeId, QueryId};
use super::population::Population;
use super::proof::{Given, Proof};
use super::query::Query;
use super::sets::{Candidate, Decided, EMPTY, SetId, later};
use super::state::{Arrived, Found, FoundDocument, Joined, State, StateFull};
use super::unit::{Cell, DocumentId, NOT_POSTED, Unit};
use super::values::UnitId;
use super::witnesses::Binding;
use crate::xpath::evaluate::EvaluateError;
use foldhash::fast::FixedState;
use hashbrown::HashSet;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::Arc;

type Documents = SmallVec<[DocumentId; 2]>;

/// What is looked at while one document is joined.
pub(super) struct Run<'p> {
    pub(super) population: &'p Population,
    pub(super) joined: Joined,
    /// Units that wait for being joined: those of the document, then what was found with them.
    waiting: VecDeque<Unit>,
    waiting_bytes: usize,
    /// What was given out already by queries that may give the same out twice.
    given: HashSet<(QueryId, Documents, Given), FixedState>,
}

impl State {
    /// Joins a document with the state, and keeps what may join with later ones.
    ///
    /// The document must have been admitted. Its results are added to `joined`.
    ///
    /// # Errors
    /// If the state would grow beyond its limit; then nothing of the document is kept or joined.
    pub fn join(
        &mut self,
        population: &Population,
        arrived: &Arrived<'_>,
        joined: &mut Joined,
    ) -> Result<(), StateFull> {
        self.decisions.renew(population.version(), self.settings.memory_bytes);
        if arrived.units.is_empty() {
            self.note(arrived);
            return Ok(());
        }
        let limit = self.settings.state_bytes;
        let needed = self.memory_bytes() + self.estimate(arrived);
        if needed > limit {
            return Err(StateFull { needed, limit });
        }
        let document = self.enter(arrived);
        let mut run = Run {
            population,
            joined: Joined { counts_only: joined.counts_only, ..Joined::default() },
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            given: HashSet::default(),
        };
        for witness in &arrived.units {
            let unit = self.unit(population, arrived, witness, document);
            run.waiting.push_back(unit);
        }
        let mut done = Vec::with_capacity(run.waiting.len());
        while let Some(unit) = run.waiting.pop_front() {
            self.single(&mut run, &unit);
            self.pairs(&mut run, &unit, false);
            // Seen from the left, what is older can only be right of a JOIN.
            if population.has_joins() || unit.time < self.newest {
                self.pairs(&mut run, &unit, true);
            }
            done.push(unit);
            let needed = self.memory_bytes() + run.waiting_bytes;
            if needed > limit {
                done.into_iter().chain(run.waiting).for_each(|unit| self.discard(unit));
                self.leave(document);
                return Err(StateFull { needed, limit });
            }
        }
        done.into_iter().for_each(|unit| self.keep(population, unit));
        self.leave(document);
        self.note(arrived);
        joined.pairs += run.joined.pairs;
        joined.count += run.joined.count;
        joined.found.append(&mut run.joined.found);
        joined.failures.append(&mut run.joined.failures);
        Ok(())
    }

    /// Queries of one block.
    fn single(&mut self, run: &mut Run<'_>, unit: &Unit) {
        let population = run.population;
        let Some(source) = population.parts().sources.get(unit.source) else { return };
        for id in &source.singles {
            let query = &population.queries()[*id];
            match Proof::run(query, population.parts(), None, unit, self.settings.cost_limit) {
                Ok(results) => results.into_iter().for_each(|nodes| self.give(run, *id, None, unit, nodes)),
                Err(error) => run.joined.failures.push((*id, error)),
            }
        }
    }

    /// Joins a unit with those in the state, left or right of them.
    fn pairs(&mut self, run: &mut Run<'_>, unit: &Unit, is_left: bool) {
        self.stamp = self.stamp.wrapping_add(1);
        if self.stamp == 0 {
            self.heads.iter_mut().for_each(|head| head.stamp = 0);
            self.stamp = 1;
        }
        let lists = self.lists(run, unit, is_left);
        let touched = self.touch(&lists);
        self.complete(run, lists, &touched);
        self.counters.pairs += touched.len() as u64;
        let mut last: Option<((SetId, u32), Arc<Decided>)> = None;
        for other in touched {
            let head = self.heads[other as usize];
            if self.is_same_document(head.name, other, unit) {
                continue;
            }
            let key = (head.edges, head.class);
            if last.as_ref().is_none_or(|(known, _)| *known != key) {
                let (left, right) = if is_left { (unit.class, head.class) } else { (head.class, unit.class) };
                let decided = self.decisions.decide(run.population, &self.classes, head.edges, left, right);
                last = Some((key, decided));
            }
            let Some((_, decided)) = &last else { continue };
            let (followed, joined) = decided.within(later(unit.time, is_left, head.time));
            if followed + joined == 0 {
                continue;
            }
            let version = head.version.min(unit.version);
            if run.joined.counts_only && decided.is_plain && decided.newest <= version {
                run.joined.pairs += 1;
                run.joined.count += (followed + joined) as u64;
                continue;
            }
            let decided = decided.clone();
            for candidate in decided.followed[..followed].iter().chain(&decided.joined[..joined]) {
                if candidate.since <= version {
                    self.pair(run, candidate, unit, other, is_left);
                }
            }
        }
    }

    /// The units on the lists that are walked, each with the set of the edges of these in its head.
    fn touch(&mut self, lists: &Lists<'_>) -> Vec<UnitId> {
        let mut touched = Vec::new();
        for list in &lists.walked {
            // Neighbours in a list mostly have the same operand and the same edges so far.
            let mut edge: (u32, Option<EdgeId>) = (u32::MAX, None);
            let mut added: (SetId, EdgeId, SetId) = (EMPTY, EdgeId::MAX, EMPTY);
            for posting in self.values.postings(list.value) {
                if posting.operand != edge.0 {
                    edge = (posting.operand, list.partners.get(&posting.operand).copied());
                }
                let Some(edge) = edge.1 else { continue };
                let head = &mut self.heads[posting.unit as usize];
                if head.stamp != self.stamp {
                    head.stamp = self.stamp;
                    head.edges = EMPTY;
                    touched.push(posting.unit);
                }
                if (added.0, added.1) != (head.edges, edge) {
                    added = (head.edges, edge, self.decisions.with(head.edges, edge));
                }
                head.edges = added.2;
            }
        }
        touched
    }

    /// Whether a unit in the state has a document in common with another unit.
    fn is_same_document(&self, name: u64, other: UnitId, unit: &Unit) -> bool {
        if name != 0 && unit.parts.iter().all(|part| part.name != name) {
            return false;
        }
        let named = |document: DocumentId| {
            let entry = &self.documents[document];
            (&entry.stream, &entry.id)
        };
        let others = &self.units[other].parts;
        unit.parts.iter().any(|part| others.iter().any(|other| named(part.document) == named(other.document)))
    }

    /// A query on a pair of units that have all its edges.
    fn pair(&mut self, run: &mut Run<'_>, candidate: &Candidate, unit: &Unit, other: UnitId, is_left: bool) {
        let population = run.population;
        let query = &population.queries()[candidate.query];
        let kept = &self.units[other];
        let (left, right) = if is_left { (unit, kept) } else { (kept, unit) };
        let results = if candidate.needs_proof {
            self.counters.proofs += 1;
            Proof::run(query, population.parts(), Some(left), right, self.settings.cost_limit)
        } else {
            Ok(direct(query, left, right).into_iter().collect())
        };
        match results {
            Ok(results) => {
                for nodes in results {
                    self.give(run, candidate.query, Some((other, is_left)), unit, nodes);
                }
            }
            Err(error) => self.fail(run, candidate.query, error),
        }
    }

    fn fail(&self, run: &mut Run<'_>, query: QueryId, error: EvaluateError) {
        if !run.joined.failures.iter().any(|(other, _)| *other == query) {
            run.joined.failures.push((query, error));
        }
    }

    /// Gives nodes that satisfy a query to those who asked.
    fn give(&mut self, run: &mut Run<'_>, id: QueryId, other: Option<(UnitId, bool)>, unit: &Unit, nodes: Given) {
        let population = run.population;
        let query = &population.queries()[id];
        let sides: [Option<&Unit>; 2] = match other {
            None => [None, Some(unit)],
            Some((other, true)) => [Some(unit), self.units.get(other)],
            Some((other, false)) => [self.units.get(other), Some(unit)],
        };
        let units = || sides.into_iter().flatten();
        if query.repeats {
            let documents = units().flat_map(|unit| unit.parts.iter().map(|part| part.document)).collect();
            if !run.given.insert((id, documents, nodes.clone())) {
                return;
            }
        }
        if !query.subscriptions.is_empty() {
            let publishes = |number: &u32| population.subscriptions()[*number].publish.is_some();
            if run.joined.counts_only && !query.subscriptions.iter().any(publishes) {
                run.joined.count += 1;
            } else {
                let documents = units().flat_map(|unit| &unit.parts).map(|part| {
                    let entry = &self.documents[part.document];
                    let (stream, id, text) = (entry.stream.clone(), entry.id.clone(), part.text.clone());
                    FoundDocument { stream, id, time: entry.time, root: part.root, text }
                });
                let version = units().map(|unit| unit.version).min().unwrap_or(0);
                run.joined.found.push(Found {
                    query: id,
                    version,
                    documents: documents.collect(),
                    nodes: nodes.clone(),
                });
            }
        }
        if let (Some(source), [Some(left), Some(right)]) = (query.found, sides) {
            let (bindings, cells) = found_bindings(population, query, source, left, right, &nodes);
            let parts = left.parts.iter().chain(&right.parts).cloned().collect();
            let (version, time) = (left.version.min(right.version), left.time.max(right.time));
            let made = self.found_unit(source, parts, version, time, bindings, cells);
            run.waiting_bytes += made.memory_bytes();
            run.waiting.push_back(made);
        }
    }
}

/// The nodes that a query gives out of units in which each of its pattern nodes has one node; None if one has none.
fn direct(query: &Query, left: &Unit, right: &Unit) -> Option<Given> {
    let node = |unit: &Unit, definition| unit.binding(definition).map(|binding| binding.node);
    let outputs = query.key.outputs.iter();
    outputs.map(|output| node(if output.is_left { left } else { right }, output.definition)).collect()
}

/// What a query found, as bindings and values of a unit.
fn found_bindings(
    population: &Population,
    query: &Query,
    source: u32,
    left: &Unit,
    right: &Unit,
    nodes: &Given,
) -> (Vec<Binding>, Vec<Cell>) {
    let parts = population.parts();
    let mut bindings = Vec::new();
    let mut cells = Vec::new();
    for definition in &parts.sources[source].definitions {
        let key = &parts.definitions[*definition].key;
        if key.path == NO_PATH {
            bindings.push(Binding { definition: *definition, parent: 0, node: 0 });
            continue;
        }
        let place = key.path as usize;
        let (output, node) = (query.key.outputs[place], nodes[place]);
        let unit = if output.is_left { left } else { right };
        let is_bound = |binding: &Binding| binding.definition == output.definition && binding.node == node;
        let Some(bound) = unit.bindings.iter().position(is_bound) else { continue };
        for operand in &parts.definitions[*definition].operands {
            let normal = parts.operands[*operand].normal;
            let origin = parts.definitions[output.definition].operands.iter();
            let origin = origin.copied().find(|other| parts.operands[*other].normal == normal);
            let value = origin.and_then(|origin| unit.value(origin, bound as u32));
            if let Some(value) = value {
                let binding = bindings.len() as u32;
                cells.push(Cell { operand: *operand, binding, value, place: NOT_POSTED });
            }
        }
        bindings.push(Binding { definition: *definition, parent: 0, node });
    }
    (bindings, cells)
}
