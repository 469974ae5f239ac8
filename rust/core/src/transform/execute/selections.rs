//! Shared selection: values of a document looked up among the constants of all conditions (VLDB 2003 §5.3).

use super::gates::WORD;
use super::streams::Joined;
use super::{Execution, Verdict};
use crate::document::NodeId;
use crate::transform::bits::Bits;
use crate::transform::gates::NONE;
use crate::transform::plan::{ConditionId, PathId, StreamId};
use crate::transform::population::{PlanId, Selection, Strategy};
use crate::transform::value::parse_double;

/// A node that has one of the values that a stream's nodes are compared with, or no number where one is needed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hit {
    node: NodeId,
    /// The conditions that its value makes true, by its text and by its number.
    text: Option<ConditionId>,
    number: Option<ConditionId>,
    is_odd: bool,
}

impl Execution<'_> {
    /// The plans that may give something, each once, in the order of their numbers.
    pub(super) fn find_candidates(&mut self, candidates: &mut Vec<PlanId>) {
        let population = self.population;
        candidates.extend_from_slice(&population.always);
        let mut found = std::mem::take(&mut self.worker.walk.found);
        let mut held = std::mem::take(&mut self.worker.held);
        held.clear();
        for path in &found {
            if let Some(plans) = population.by_path.get(*path as usize) {
                candidates.extend_from_slice(plans);
            }
            for stream in population.selections_of(*path) {
                let Some(selection) = population.selection(*stream) else { continue };
                match self.probe(*stream, &mut held) {
                    Ok(()) => {
                        if self.worker.not_numeric[*stream as usize].is_some() {
                            held.extend(selection.numbers.values());
                        }
                    }
                    // Errors are for the plans that meet them again.
                    Err(_) => {
                        self.worker.is_unsure = true;
                        held.extend(selection.texts.values().chain(selection.numbers.values()));
                    }
                }
            }
        }
        found.append(&mut self.worker.walk.found);
        self.worker.walk.found = found;
        // Now that all streams have been looked at, most plans are closed by the other condition that they wait for.
        let is_settled = self.strategy == Strategy::Shared && !self.worker.is_unsure;
        for condition in &held {
            let Some(waiting) = population.by_condition.get(*condition as usize) else { continue };
            let word = self.worker.words[*condition as usize].1;
            let may_give = |other: ConditionId| {
                let (stamp, own) = self.worker.words[other as usize];
                stamp == self.worker.work && own & word != 0
            };
            let open = waiting.iter().filter(|plan| !is_settled || plan.other == NONE || may_give(plan.other));
            candidates.extend(open.map(|waiting| waiting.plan));
        }
        self.worker.held = held;
        candidates.sort_unstable();
        candidates.dedup();
    }

    /// Looks the values of a stream up among the constants that they are compared with for equality: afterwards it is
    /// known which conditions hold somewhere, and the others hold nowhere. Appends the former.
    pub(super) fn probe(&mut self, stream: StreamId, held: &mut Vec<ConditionId>) -> super::Outcome<()> {
        let Some(selection) = self.population.selection(stream) else { return Ok(()) };
        let Some(base) = self.operators.stream(stream).parent else { return Ok(()) };
        let mut hits = std::mem::take(&mut self.worker.hits);
        let mut joined = std::mem::take(&mut self.worker.joined);
        let outcome = match self.joined_path(stream) {
            Some(path) => {
                self.hits_of(path, selection, &mut hits);
                self.join_hits(stream, base, &hits, &mut joined, held)
            }
            None => Ok(false),
        };
        self.worker.hits = hits;
        self.worker.joined = joined;
        if !outcome? {
            self.probe_one_by_one(stream, base, selection, held)?;
        }
        self.worker.probed[stream as usize] = self.worker.work;
        Ok(())
    }

    /// The nodes of a path whose values matter to a selection.
    fn hits_of(&mut self, path: PathId, selection: &Selection, hits: &mut Vec<Hit>) {
        let mut nodes = std::mem::take(&mut self.worker.path_nodes);
        if self.worker.path_of_nodes != (path, self.worker.document) {
            self.worker.path_of_nodes = (path, self.worker.document);
            nodes.clear();
            self.worker.walk.nodes(path, &mut nodes);
        }
        hits.clear();
        hits.extend(nodes.iter().filter_map(|node| self.found(selection, *node)));
        self.worker.path_nodes = nodes;
    }

    /// Joins nodes with their bindings, and notes which conditions hold there. False if a node is bound more than once.
    fn join_hits(
        &mut self,
        stream: StreamId,
        base: StreamId,
        hits: &[Hit],
        joined: &mut Joined,
        held: &mut Vec<ConditionId>,
    ) -> super::Outcome<bool> {
        let mut not_numeric: Option<Bits> = None;
        if !hits.is_empty() {
            if !self.place_all(base)? {
                return Ok(false);
            }
            self.evaluator.charge(hits.len() as u64 + 1)?;
            let count = self.count(base);
            for hit in hits {
                joined.pairs.clear();
                self.pairs_of(stream, hit.node, joined);
                for (place, _) in &joined.pairs {
                    self.note(hit, *place as usize, count, &mut not_numeric, held);
                }
            }
        }
        self.worker.is_unsure |= not_numeric.is_some();
        self.worker.not_numeric[stream as usize] = not_numeric;
        Ok(true)
    }

    /// Notes which conditions hold where, for a stream whose nodes are not those of its path.
    fn probe_one_by_one(
        &mut self,
        stream: StreamId,
        base: StreamId,
        selection: &Selection,
        held: &mut Vec<ConditionId>,
    ) -> super::Outcome<()> {
        let mut not_numeric: Option<Bits> = None;
        self.compute(stream)?;
        let count = self.count(base);
        let nodes = self.worker.streams[stream as usize].clone();
        for at in 0..nodes.nodes.len() as u32 {
            let node = self.node_at(nodes.nodes.start + at);
            let binding = self.worker.arena[(nodes.parents.start + at) as usize] as usize;
            if let Some(hit) = self.found(selection, node) {
                self.note(&hit, binding, count, &mut not_numeric, held);
            }
        }
        self.worker.is_unsure |= not_numeric.is_some();
        self.worker.not_numeric[stream as usize] = not_numeric;
        Ok(())
    }

    fn note(
        &mut self,
        hit: &Hit,
        binding: usize,
        count: usize,
        not_numeric: &mut Option<Bits>,
        held: &mut Vec<ConditionId>,
    ) {
        for condition in hit.text.into_iter().chain(hit.number) {
            self.hold(condition, binding, count, held);
        }
        if hit.is_odd {
            not_numeric.get_or_insert_with(|| Bits::none(count)).insert(binding);
        }
    }

    /// What a node's value says to a selection, if anything.
    fn found(&mut self, selection: &Selection, node: NodeId) -> Option<Hit> {
        let mut hit = Hit { node, text: None, number: None, is_odd: false };
        if !selection.texts.is_empty() {
            hit.text = self.constant_text(node).and_then(|text| selection.texts.get(&text)).copied();
        }
        if !selection.numbers.is_empty() {
            match self.number(node) {
                // Positive and negative zero are equal.
                Some(number) => hit.number = selection.numbers.get(&(number + 0.0).to_bits()).copied(),
                None => hit.is_odd = true,
            }
        }
        (hit.text.is_some() || hit.number.is_some() || hit.is_odd).then_some(hit)
    }

    fn hold(&mut self, condition: ConditionId, binding: usize, count: usize, held: &mut Vec<ConditionId>) {
        let worker = &mut *self.worker;
        let word = &mut worker.words[condition as usize];
        let is_first = word.0 != worker.work;
        if is_first {
            held.push(condition);
        }
        if count <= WORD {
            // The verdict is made of the word where one is asked for.
            *word = (worker.work, if is_first { 0 } else { word.1 } | 1 << binding);
            return;
        }
        // Of more bindings than one word has bits for, the gate asks the plan.
        *word = (worker.work, u64::MAX);
        let verdict = &mut worker.verdicts[condition as usize];
        if is_first {
            *verdict = Verdict { stamp: worker.work, holds: Bits::none(count), unsure: None };
        }
        verdict.holds.insert(binding);
    }

    /// The number of a node's text among the population's constants, if it is one.
    pub(super) fn constant_text(&mut self, node: NodeId) -> Option<u32> {
        let at = node as usize;
        if self.worker.values.stamps[at] != self.worker.document {
            self.worker.values.stamps[at] = self.worker.document;
            self.worker.values.texts[at] = self.population.constant(self.document.string_value(node));
        }
        self.worker.values.texts[at]
    }

    /// The number that a node's text stands for in a comparison, if it stands for one.
    pub(super) fn number(&mut self, node: NodeId) -> Option<f64> {
        let at = node as usize;
        if self.worker.values.number_stamps[at] != self.worker.document {
            self.worker.values.number_stamps[at] = self.worker.document;
            self.worker.values.numbers[at] = parse_double(self.document.string_value(node));
        }
        self.worker.values.numbers[at]
    }
}
