//! The transitions of the machine: what is remembered is looked up, what is not is made.

use super::automaton::{Automaton, Connective, Reach, State};
use super::down::{DownId, Flagged, NO_VALUES, TOP, edge_of, flags};
use super::sets::{EMPTY, SetId};
use super::store::{Parts, PathId, Popped, Scratch, Store, ValueId};
use std::cmp::Reverse;

/// Of this many levels on the way up, one remembers what is reported.
const REPORT_STRIDE: usize = 16;

/// Begins the key of a union that keeps the order of siblings.
const ORDERED: SetId = SetId::MAX;

impl Store {
    /// The end of a node.
    #[inline]
    pub(super) fn pop(&mut self, state: SetId, value: ValueId, down: DownId, parts: Parts<'_>) -> Popped {
        if let Some(known) = self.pops.get(&(state, value, down)) {
            self.counts.lookups += 1;
            return *known;
        }
        self.count(false);
        self.close_over(state, value, down, parts.automaton);
        let made = self.popped(state, down, parts.automaton);
        self.pops.insert((state, value, down), made);
        made
    }

    /// Finds the states at a node that are not as without leaves: in the scratch list, marked as flipped.
    fn close_over(&mut self, state: SetId, value: ValueId, down: DownId, automaton: &Automaton) {
        let Scratch { flipped, queued, run, list, queue, .. } = &mut self.scratch;
        *run = run.wrapping_add(1);
        if *run == 0 {
            flipped.fill(0);
            queued.fill(0);
            *run = 1;
        }
        list.clear();
        list.extend_from_slice(self.sets.get(state));
        list.extend_from_slice(&self.downs[down as usize].names);
        let (index, class) = self.values[value as usize];
        if index != NO_VALUES {
            self.indexes[index as usize].passed(class, &self.side, list);
        }
        let mut next = 0;
        loop {
            while let Some(changed) = list.get(next) {
                next += 1;
                flipped[*changed as usize] = *run;
                for consumer in automaton.watchers.get(*changed) {
                    if queued[*consumer as usize] != *run {
                        queued[*consumer as usize] = *run;
                        queue.push(Reverse(*consumer));
                    }
                }
            }
            // Operands have smaller numbers: the smallest one's are settled.
            let Some(Reverse(state)) = queue.pop() else { break };
            let Some((connective, operands)) = automaton.inner(state) else { continue };
            let holds = |operand: &State| automaton.base(*operand) != (flipped[*operand as usize] == *run);
            let truth = match connective {
                Connective::And => operands.iter().all(holds),
                Connective::Or => operands.iter().any(holds),
                Connective::Not => !operands.iter().all(holds),
            };
            if truth != automaton.base(state) {
                list.push(state);
            }
        }
    }

    /// The edges of the parent that a node makes true, from what [`Self::close_over`] found.
    fn popped(&mut self, state: SetId, down: DownId, automaton: &Automaton) -> Popped {
        let Scratch { flipped, run, list, edges, other, .. } = &mut self.scratch;
        let down = &self.downs[down as usize];
        let mut found: Vec<Flagged> = Vec::new();
        for changed in list.iter().filter(|changed| !automaton.base(**changed)) {
            let asking = automaton.in_edges.get(*changed).iter().filter_map(|edge| down.entry(*edge));
            found.extend(asking.filter(|entry| entry & flags::MATCHED != 0));
        }
        found.extend(
            down.defaults.iter().filter(|entry| flipped[automaton.targets[edge_of(**entry) as usize] as usize] != *run),
        );
        let deep = automaton.edges_by(Reach::Descendant);
        let through = self.sets.get(state).iter().filter(|edge| deep.contains(edge));
        found.extend(through.filter_map(|edge| down.entry(*edge)));
        found.sort_unstable();
        found.dedup();
        edges.clear();
        other.clear();
        for entry in found {
            if entry & flags::PLAIN != 0 {
                edges.push(edge_of(entry));
            }
            if entry & flags::SPINE != 0 {
                other.push(edge_of(entry));
            }
        }
        Popped { kept: self.sets.intern(edges), early: self.side.intern(other) }
    }

    /// A node's state after some more of its children, in their order; `ordered` if the document keeps that of siblings.
    pub(super) fn unite(
        &mut self,
        state: SetId,
        children: impl ExactSizeIterator<Item = SetId>,
        ordered: bool,
        parts: Parts<'_>,
    ) -> SetId {
        if children.len() == 0 {
            self.count(true);
            return state;
        }
        let order = parts.order.filter(|_| ordered);
        let key = &mut self.scratch.key;
        key.clear();
        if order.is_some() {
            key.extend([ORDERED, state]);
            key.extend(children);
        } else {
            key.extend(std::iter::once(state).filter(|state| *state != EMPTY).chain(children));
            key.sort_unstable();
            key.dedup();
            if let [only] = key[..] {
                self.count(true);
                return only;
            }
        }
        let union = self.unions.intern(key) as usize;
        let known = self.sums.get(union).copied();
        self.count(known.is_some());
        if let Some(known) = known {
            return known;
        }
        let Scratch { edges, key, .. } = &mut self.scratch;
        edges.clear();
        match order {
            None => {
                edges.extend(key.iter().flat_map(|set| self.sets.get(*set)));
                edges.sort_unstable();
                edges.dedup();
            }
            Some(order) => {
                edges.extend_from_slice(self.sets.get(state));
                for child in &key[2..] {
                    let new = self.sets.get(*child).iter();
                    let new: Vec<State> =
                        new.copied().filter(|edge| !order.is_idle(parts.automaton, *edge, edges)).collect();
                    edges.extend(new);
                    edges.sort_unstable();
                    edges.dedup();
                }
            }
        }
        let sum = self.sets.intern(edges);
        self.sums.push(sum);
        sum
    }

    /// The filters that edges which alone make filters true, at the nodes of a path, do make true: as marked rows.
    #[inline]
    pub(super) fn report(&mut self, path: PathId, edges: SetId, automaton: &Automaton) -> SetId {
        if let Some(known) = self.reports.get(&(path, edges)) {
            self.counts.lookups += 1;
            return *known;
        }
        self.make_report(path, edges, automaton)
    }

    /// Goes up until the answer is known, at the latest at the document node. Some places on the way get it too, so that
    /// deep documents do not go all the way from every level.
    #[cold]
    fn make_report(&mut self, path: PathId, edges: SetId, automaton: &Automaton) -> SetId {
        let mut way = vec![(path, edges)];
        let rows = loop {
            let (path, edges) = way[way.len() - 1];
            if let Some(known) = self.reports.get(&(path, edges)) {
                break *known;
            }
            if path == TOP {
                let edges = self.side.get(edges).iter();
                let mut rows: Vec<u32> = edges.flat_map(|edge| automaton.rows(*edge)).copied().collect();
                rows.sort_unstable();
                break self.side.intern(&rows);
            }
            way.push((self.paths[path as usize].parent, self.up(self.down(path), edges, automaton)));
        };
        for place in way.into_iter().step_by(REPORT_STRIDE) {
            if self.reports.insert(place, rows).is_none() {
                self.count(false);
            }
        }
        rows
    }

    /// From edges that alone make filters true, at a node, to those at its parent.
    fn up(&mut self, down: DownId, edges: SetId, automaton: &Automaton) -> SetId {
        let deep = automaton.edges_by(Reach::Descendant);
        let from = &self.downs[down as usize];
        let entry = |edge: &State| from.entry(*edge).filter(|entry| entry & flags::SPINE != 0);
        let mut found: Vec<State> = Vec::new();
        for edge in self.side.get(edges) {
            if deep.contains(edge) && entry(edge).is_some() {
                found.push(*edge);
            }
            let asking = automaton.in_edges.get(*edge).iter();
            found.extend(asking.filter(|edge| entry(edge).is_some_and(|entry| entry & flags::MATCHED != 0)));
        }
        found.sort_unstable();
        found.dedup();
        self.side.intern(&found)
    }

    /// The filters that are true at the end of the document, as marked rows.
    pub(super) fn accept(&mut self, state: SetId, value: ValueId, automaton: &Automaton) -> SetId {
        if let Some(known) = self.tops.get(&(state, value)) {
            self.counts.lookups += 1;
            return *known;
        }
        self.count(false);
        self.close_over(state, value, TOP, automaton);
        let Scratch { flipped, run, list, .. } = &self.scratch;
        let changed = list.iter().filter(|state| !automaton.base(**state));
        let unchanged = |root: &&State| automaton.base(**root) && flipped[**root as usize] != *run;
        let held = changed.chain(automaton.roots.iter().filter(unchanged));
        let mut found: Vec<u32> = held.flat_map(|state| automaton.rows(*state)).copied().collect();
        found.sort_unstable();
        let made = self.side.intern(&found);
        self.tops.insert((state, value), made);
        made
    }
}
