//! Which nodes of two units satisfy a query: needed where edges alone do not decide, since a value joins only if the
//! nodes that hold it hang together as the patterns say.

use super::parts::{DefinitionId, Parts};
use super::query::{Query, Side};
use super::unit::Unit;
use crate::document::NodeId;
use crate::xpath::evaluate::EvaluateError;
use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashSet};
use smallvec::SmallVec;
use std::collections::BTreeSet;

/// The nodes that a query gives out, in its order.
pub type Given = SmallVec<[NodeId; 2]>;

/// A pattern node that has to be given a node.
struct Variable {
    is_left: bool,
    /// The place of its parent among the variables; None: the root.
    parent: Option<usize>,
    /// The place of its node in what is given out.
    output: Option<usize>,
    /// Its candidates: places among its unit's bindings.
    candidates: Vec<u32>,
    /// What it has to equal: the other variable (None: the root of the other unit), its own operand and the other's.
    equal: Vec<(Option<usize>, u32, u32)>,
}

/// Enumerates; `left` is None for a query of one block.
pub struct Proof<'u> {
    left: Option<&'u Unit>,
    right: &'u Unit,
    cost_limit: u64,
    cost: u64,
    variables: Vec<Variable>,
    chosen: Vec<u32>,
}

impl<'u> Proof<'u> {
    /// The different choices of nodes that satisfy a query, as it gives them out, in order.
    ///
    /// # Errors
    /// If finding them costs more than the limit.
    pub fn run(
        query: &Query,
        parts: &Parts,
        left: Option<&'u Unit>,
        right: &'u Unit,
        cost_limit: u64,
    ) -> Result<Vec<Given>, EvaluateError> {
        let mut proof = Proof { left, right, cost_limit, cost: 0, variables: Vec::new(), chosen: Vec::new() };
        if !proof.prepare(query, parts) {
            return Ok(Vec::new());
        }
        proof.chosen = vec![0; proof.variables.len()];
        // Variables that neither hang together nor are compared are chosen on their own.
        let mut results: Vec<Given> = vec![proof.roots(query, parts)];
        for component in proof.components() {
            let outputs: Vec<usize> = component.iter().filter_map(|at| proof.variables[*at].output).collect();
            let mut found: BTreeSet<Given> = BTreeSet::new();
            let order = proof.order(&component);
            proof.choose(&order, 0, outputs.is_empty(), &mut found)?;
            if found.is_empty() {
                return Ok(Vec::new());
            }
            if outputs.is_empty() {
                continue;
            }
            let mut combined = Vec::with_capacity(results.len() * found.len());
            for result in &results {
                for choice in &found {
                    proof.charge(1)?;
                    let mut result = result.clone();
                    let given = component.iter().filter_map(|at| proof.variables[*at].output);
                    given.zip(choice).for_each(|(output, node)| result[output] = *node);
                    combined.push(result);
                }
            }
            results = combined;
        }
        results.sort_unstable();
        results.dedup();
        Ok(results)
    }

    fn charge(&mut self, units: u64) -> Result<(), EvaluateError> {
        self.cost += units;
        if self.cost > self.cost_limit {
            return Err(EvaluateError::CostLimit { limit: self.cost_limit });
        }
        Ok(())
    }

    fn unit(&self, is_left: bool) -> &'u Unit {
        if is_left { self.left.unwrap_or(self.right) } else { self.right }
    }

    /// The nodes given out, roots filled in.
    fn roots(&self, query: &Query, parts: &Parts) -> Given {
        let root = |is_left: bool| self.unit(is_left).bindings[0].node;
        let given = query.key.outputs.iter();
        given
            .map(|output| match parts.definitions[output.definition].key.parent {
                None => root(output.is_left),
                Some(_) => 0,
            })
            .collect()
    }

    /// Makes the variables; false if one has no node at all.
    fn prepare(&mut self, query: &Query, parts: &Parts) -> bool {
        let mut numbers: HashMap<(bool, DefinitionId), usize, FixedState> = HashMap::default();
        let sides: [(bool, &Side); 2] = [(true, &query.left), (false, &query.right)];
        for (is_left, side) in sides {
            for definition in side.nodes.iter().skip(1) {
                let parent = parts.definitions[*definition].key.parent;
                let parent = parent.and_then(|parent| numbers.get(&(is_left, parent)).copied());
                let bindings = self.unit(is_left).bindings.iter().zip(0_u32..);
                let candidates: Vec<u32> =
                    bindings.filter(|(binding, _)| binding.definition == *definition).map(|(_, at)| at).collect();
                if candidates.is_empty() {
                    return false;
                }
                let given = query.key.outputs.iter();
                let output = given
                    .zip(0..)
                    .find(|(output, _)| output.is_left == is_left && output.definition == *definition)
                    .map(|(_, at)| at);
                numbers.insert((is_left, *definition), self.variables.len());
                let equal = Vec::new();

                self.variables.push(Variable { is_left, parent, output, candidates, equal });
            }
        }
        for edge in &query.key.edges {
            let edge = &parts.edges[*edge];
            let place =
                |is_left: bool, operand: u32| numbers.get(&(is_left, parts.operands[operand].definition)).copied();
            let (left, right) = (place(true, edge.left), place(false, edge.right));
            if let Some(at) = left {
                self.variables[at].equal.push((right, edge.left, edge.right));
            }
            if let Some(at) = right {
                self.variables[at].equal.push((left, edge.right, edge.left));
            }
            if left.is_none() && right.is_none() {
                let values = [self.unit(true).value(edge.left, 0), self.unit(false).value(edge.right, 0)];
                if values[0].is_none() || values[0] != values[1] {
                    return false;
                }
            }
        }
        true
    }

    /// Groups of variables that hang together.
    fn components(&self) -> Vec<Vec<usize>> {
        let mut group: Vec<usize> = (0..self.variables.len()).collect();
        fn top(group: &mut [usize], mut at: usize) -> usize {
            while group[at] != at {
                group[at] = group[group[at]];
                at = group[at];
            }
            at
        }
        for (number, variable) in self.variables.iter().enumerate() {
            let others = variable.parent.into_iter().chain(variable.equal.iter().filter_map(|(other, _, _)| *other));
            for other in others {
                let (a, b) = (top(&mut group, number), top(&mut group, other));
                group[a.max(b)] = a.min(b);
            }
        }
        let mut components: Vec<Vec<usize>> = vec![Vec::new(); self.variables.len()];
        for number in 0..self.variables.len() {
            components[top(&mut group, number)].push(number);
        }
        components.retain(|component| !component.is_empty());
        components
    }

    /// The order in which a group's variables are chosen: parents before children, and those first that are compared
    /// with chosen ones.
    fn order(&self, component: &[usize]) -> Vec<usize> {
        let mut order: Vec<usize> = Vec::with_capacity(component.len());
        let mut rest: Vec<usize> = component.to_vec();
        while !rest.is_empty() {
            let chosen: HashSet<usize, FixedState> = order.iter().copied().collect();
            let ready = |at: &usize| self.variables[*at].parent.is_none_or(|parent| chosen.contains(&parent));
            let ties = |at: usize| {
                let variable = &self.variables[at];
                let compared =
                    variable.equal.iter().filter(|(other, _, _)| other.is_none_or(|other| chosen.contains(&other)));
                let hangs = usize::from(variable.parent.is_some());
                (compared.count() + hangs, std::cmp::Reverse(variable.candidates.len()))
            };
            let next = (0..rest.len()).filter(|place| ready(&rest[*place])).max_by_key(|place| ties(rest[*place]));
            // Parents come before children, so that there is always one that is ready.
            order.push(rest.remove(next.unwrap_or(0)));
        }
        order
    }

    fn choose(
        &mut self,
        order: &[usize],
        depth: usize,
        any: bool,
        found: &mut BTreeSet<Given>,
    ) -> Result<(), EvaluateError> {
        let Some(at) = order.get(depth).copied() else {
            let mut outputs: Vec<usize> =
                order.iter().copied().filter(|at| self.variables[*at].output.is_some()).collect();
            outputs.sort_unstable();
            let node = |at: usize| self.unit(self.variables[at].is_left).bindings[self.chosen[at] as usize].node;
            found.insert(outputs.into_iter().map(node).collect());
            return Ok(());
        };
        for number in 0..self.variables[at].candidates.len() {
            self.charge(1)?;
            let place = self.variables[at].candidates[number];
            if !self.fits(at, place, &order[..depth]) {
                continue;
            }
            self.chosen[at] = place;
            self.choose(order, depth + 1, any, found)?;
            if any && !found.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// Whether a node hangs from, and equals, what is chosen.
    fn fits(&self, at: usize, place: u32, chosen: &[usize]) -> bool {
        let variable = &self.variables[at];
        let unit = self.unit(variable.is_left);
        if variable.parent.is_some_and(|parent| unit.bindings[place as usize].parent != self.chosen[parent]) {
            return false;
        }
        variable.equal.iter().all(|(other, own, others)| {
            let other_place = match other {
                None => 0,
                Some(other) if chosen.contains(other) => self.chosen[*other],
                Some(_) => return true,
            };
            let value = unit.value(*own, place);
            value.is_some() && value == self.unit(!variable.is_left).value(*others, other_place)
        })
    }
}
