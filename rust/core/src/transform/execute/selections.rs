//! Shared selection: values of a document looked up among the constants of all conditions (VLDB 2003 §5.3).

use super::Execution;
use crate::document::NodeId;
use crate::transform::bits::Bits;
use crate::transform::plan::{ConditionId, PathId, Route, StreamId};
use crate::transform::population::{PlanId, Selection};
use crate::transform::value::parse_double;

impl Execution<'_> {
    /// The plans that may give something, each once.
    pub(super) fn find_candidates(&mut self, candidates: &mut Vec<PlanId>) {
        let population = self.population;
        self.take(&population.always, candidates);
        let mut found = std::mem::take(&mut self.worker.walk.found);
        for path in &found {
            if let Some(plans) = population.by_path.get(*path as usize) {
                self.take(plans, candidates);
            }
            for stream in population.selections_of(*path) {
                if !self.may_hold(*stream, *path) {
                    continue;
                }
                let Some(selection) = population.selection(*stream) else { continue };
                match self.probe(*stream) {
                    Ok(held) => {
                        self.take_waiting(held, candidates);
                        if self.worker.not_numeric[*stream as usize].is_some() {
                            self.take_waiting(selection.numbers.values().copied(), candidates);
                        }
                    }
                    // Errors are for the plans that meet them again.
                    Err(_) => {
                        self.worker.is_unsure = true;
                        let waiting = selection.texts.values().chain(selection.numbers.values());
                        self.take_waiting(waiting.copied(), candidates);
                    }
                }
            }
        }
        found.append(&mut self.worker.walk.found);
        self.worker.walk.found = found;
        candidates.sort_unstable();
    }

    fn take(&mut self, plans: &[PlanId], candidates: &mut Vec<PlanId>) {
        let document = self.worker.document;
        for plan in plans {
            let stamp = &mut self.worker.plan_stamps[*plan as usize];
            if *stamp != document {
                *stamp = document;
                candidates.push(*plan);
            }
        }
    }

    /// Takes the plans that wait for one of these conditions.
    fn take_waiting(&mut self, conditions: impl IntoIterator<Item = ConditionId>, candidates: &mut Vec<PlanId>) {
        let population = self.population;
        for condition in conditions {
            if let Some(plans) = population.by_condition.get(&condition) {
                self.take(plans, candidates);
            }
        }
    }

    /// Whether any node of a path has one of the values that a stream's nodes are compared with, or a text that is no
    /// number where one is needed. Only then are the nodes joined with their bindings.
    fn may_hold(&mut self, stream: StreamId, path: PathId) -> bool {
        if let Route::Navigated(_) = self.operators.stream(stream).route {
            // Its nodes are others than those of the path.
            return true;
        }
        let Some(selection) = self.population.selection(stream) else { return false };
        let mut nodes = std::mem::take(&mut self.worker.path_nodes);
        nodes.clear();
        self.worker.walk.nodes(path, &mut nodes);
        let may_hold = nodes.iter().any(|node| {
            let (text, number, is_odd) = self.found(selection, *node);
            text.is_some() || number.is_some() || is_odd
        });
        self.worker.path_nodes = nodes;
        may_hold
    }

    /// Looks the values of a stream up among the constants that they are compared with for equality: afterwards the
    /// verdicts of the conditions that hold somewhere are known, and the others hold nowhere. Gives the former.
    pub(super) fn probe(&mut self, stream: StreamId) -> super::Outcome<Vec<ConditionId>> {
        let mut held = Vec::new();
        let Some(selection) = self.population.selection(stream) else { return Ok(held) };
        let Some(base) = self.operators.stream(stream).parent else { return Ok(held) };
        let work = self.worker.work;
        let mut not_numeric: Option<Bits> = None;
        let mut joined = std::mem::take(&mut self.worker.joined);
        if self.begin_pairs(stream, base, &mut joined)? {
            // Only nodes with one of the values are joined with their bindings.
            let count = self.count(base);
            for at in 0..joined.lasts.len() {
                let node = joined.lasts[at];
                let (text, number, is_odd) = self.found(selection, node);
                if text.is_none() && number.is_none() && !is_odd {
                    continue;
                }
                joined.pairs.clear();
                self.pairs_of(stream, node, &mut joined);
                for (place, _) in &joined.pairs {
                    for condition in text.into_iter().chain(number) {
                        self.hold(condition, *place as usize, count, &mut held);
                    }
                    if is_odd {
                        not_numeric.get_or_insert_with(|| Bits::none(count)).insert(*place as usize);
                    }
                }
            }
        } else {
            self.compute(stream)?;
            let count = self.count(base);
            let nodes = self.worker.streams[stream as usize].clone();
            for at in 0..nodes.nodes.len() as u32 {
                let node = self.node_at(nodes.nodes.start + at);
                let binding = self.worker.arena[(nodes.parents.start + at) as usize] as usize;
                let (text, number, is_odd) = self.found(selection, node);
                for condition in text.into_iter().chain(number) {
                    self.hold(condition, binding, count, &mut held);
                }
                if is_odd {
                    not_numeric.get_or_insert_with(|| Bits::none(count)).insert(binding);
                }
            }
        }
        self.worker.joined = joined;
        self.worker.probed[stream as usize] = work;
        self.worker.is_unsure |= not_numeric.is_some();
        self.worker.not_numeric[stream as usize] = not_numeric;
        Ok(held)
    }

    /// The conditions that a node's value makes true, by its text and by its number, and whether it is no number where
    /// one is needed.
    fn found(&mut self, selection: &Selection, node: NodeId) -> (Option<ConditionId>, Option<ConditionId>, bool) {
        let mut text = None;
        if !selection.texts.is_empty() {
            text = self.constant_text(node).and_then(|text| selection.texts.get(&text)).copied();
        }
        if selection.numbers.is_empty() {
            return (text, None, false);
        }
        match self.number(node) {
            // Positive and negative zero are equal.
            Some(number) => (text, selection.numbers.get(&(number + 0.0).to_bits()).copied(), false),
            None => (text, None, true),
        }
    }

    fn hold(&mut self, condition: ConditionId, binding: usize, count: usize, held: &mut Vec<ConditionId>) {
        let work = self.worker.work;
        let verdict = &mut self.worker.verdicts[condition as usize];
        if verdict.stamp != work {
            verdict.stamp = work;
            verdict.holds = Bits::none(count);
            verdict.unsure = None;
            held.push(condition);
        }
        verdict.holds.insert(binding);
        // Of more bindings than one word has bits for, the gate asks the plan.
        let word = if count <= 64 { verdict.holds.first_word() } else { u64::MAX };
        self.worker.words[condition as usize] = (work, word);
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
