//! The nodes of streams: from the shared path matcher by joins, or by the evaluator.

use super::{Execution, Nodes};
use crate::document::{NodeId, NodeKind};
use crate::paths::{Edge, EdgeKind};
use crate::transform::evaluate::{Focus, Outcome};
use crate::transform::plan::{PathId, Route, Stream, StreamId};
use crate::transform::population::Strategy;
use crate::transform::value::Item;
use crate::xquery::ast::Expr;
use std::ops::Range;

impl<'a> Execution<'a> {
    /// Computes the nodes of a stream and of those above it, unless that was done.
    pub(super) fn compute(&mut self, id: StreamId) -> Outcome<()> {
        let stream = self.operators.stream(id);
        // What the path matcher delivered for `for` clauses is there for all plans under every strategy.
        let work = if stream.parent.is_none() { self.worker.shared_work } else { self.worker.work };
        if self.worker.streams[id as usize].stamp == work {
            return Ok(());
        }
        let made = match stream.parent {
            None => self.from_document(stream)?,
            Some(parent) => {
                self.compute(parent)?;
                self.from_bindings(stream, parent)?
            }
        };
        self.worker.streams[id as usize] = Nodes { stamp: work, ..made };
        Ok(())
    }

    fn end(&self) -> Outcome<u32> {
        u32::try_from(self.worker.arena.len()).map_err(|_| Self::too_large())
    }

    fn from_document(&mut self, stream: &'a Stream) -> Outcome<Nodes> {
        let start = self.end()?;
        match stream.route {
            Route::Matched(path) => {
                let worker = &mut *self.worker;
                worker.walk.nodes(path, &mut worker.arena);
            }
            _ => self.navigate(&stream.expr, 0)?,
        }
        Ok(Nodes { nodes: start..self.end()?, ..Nodes::default() })
    }

    /// Appends the nodes to which the evaluator finds a path to lead from a node.
    fn navigate(&mut self, expr: &'a Expr, from: NodeId) -> Outcome<()> {
        if *expr == Expr::Context {
            self.worker.arena.push(from);
            return Ok(());
        }
        for item in self.evaluator.value(expr, &Focus::node(from))? {
            if let Item::Node(node) = item {
                self.worker.arena.push(node);
            }
        }
        Ok(())
    }

    fn from_bindings(&mut self, stream: &'a Stream, parent: StreamId) -> Outcome<Nodes> {
        let above = self.worker.streams[parent as usize].nodes.clone();
        let nothing = stream.necessary_path().is_some_and(|path| !self.worker.walk.is_found(path));
        if nothing || above.is_empty() {
            let starts = self.end()?;
            self.worker.arena.resize(starts as usize + above.len() + 1, 0);
            let end = self.end()?;
            return Ok(Nodes { starts: starts..end, nodes: end..end, parents: end..end, ..Nodes::default() });
        }
        match &stream.route {
            Route::Climbed(path, steps) if self.strategy >= Strategy::ForWhere => {
                let steps = *steps;
                self.join(above, *path, |execution, node, pairs, _| {
                    let mut at = node;
                    for _ in 0..steps {
                        at = execution.document.node(at).parent;
                    }
                    pairs.push((at, node));
                })
            }
            Route::Traced(path, edges) if self.strategy >= Strategy::ForWhere => {
                self.join(above, *path, |execution, node, pairs, stamp| execution.trace(node, edges, pairs, stamp))
            }
            _ => {
                // Node by node.
                let mut starts = Vec::with_capacity(above.len() + 1);
                let start = self.end()?;
                for at in above.clone() {
                    starts.push(self.end()? - start);
                    let from = self.node_at(at);
                    self.navigate(&stream.expr, from)?;
                }
                starts.push(self.end()? - start);
                self.finish(start, &starts)
            }
        }
    }

    /// Puts the index of nodes by binding behind the nodes.
    fn finish(&mut self, start: u32, starts: &[u32]) -> Outcome<Nodes> {
        let nodes = start..self.end()?;
        let starts_at = nodes.end;
        self.worker.arena.extend_from_slice(starts);
        let parents_at = self.end()?;
        for (binding, pair) in starts.windows(2).enumerate() {
            self.worker.arena.extend(std::iter::repeat_n(binding as u32, (pair[1] - pair[0]) as usize));
        }
        Ok(Nodes { stamp: 0, nodes, starts: starts_at..parents_at, parents: parents_at..self.end()? })
    }

    /// Joins the nodes of a path with the bindings that they belong to (VLDB 2003 §4: outer-join-select and group-by).
    ///
    /// `pairs_of` gives the pairs of a possible binding and the node. Bindings in document order that do not contain
    /// each other are met in order, too, and joined by merging; others by a table of the document's nodes.
    fn join(
        &mut self,
        above: Range<u32>,
        path: PathId,
        pairs_of: impl Fn(&Self, NodeId, &mut Vec<(NodeId, NodeId)>, u64),
    ) -> Outcome<Nodes> {
        let bindings: Vec<NodeId> = self.worker.arena[above.start as usize..above.end as usize].to_vec();
        let mut lasts: Vec<NodeId> = Vec::new();
        self.worker.walk.nodes(path, &mut lasts);
        self.evaluator.charge((bindings.len() + lasts.len()) as u64)?;
        // A stream that is itself below another may bind a node more than once.
        let distinct_in_order = bindings.is_sorted_by(|a, b| a < b);
        self.worker.place_stamp += 1;
        let stamp = self.worker.place_stamp;
        for (place, node) in bindings.iter().enumerate() {
            let entry = &mut self.worker.places[*node as usize];
            if entry.0 != stamp {
                *entry = (stamp, place as u32);
            }
        }
        let mut pairs: Vec<(NodeId, NodeId)> = Vec::with_capacity(lasts.len());
        for last in lasts {
            pairs_of(self, last, &mut pairs, stamp);
        }
        self.evaluator.charge(pairs.len() as u64)?;
        let place = |node: NodeId| {
            let (known, place) = self.worker.places[node as usize];
            (known == stamp).then_some(place)
        };
        // Count, then fill in: nodes stay in document order within each binding.
        let mut starts = vec![0u32; bindings.len() + 1];
        for (binding, _) in &pairs {
            if let Some(place) = place(*binding) {
                starts[place as usize + 1] += 1;
            }
        }
        for at in 0..bindings.len() {
            starts[at + 1] += starts[at];
        }
        let mut fill = starts.clone();
        let mut grouped = vec![0; starts[bindings.len()] as usize];
        for (binding, node) in &pairs {
            if let Some(place) = place(*binding) {
                let at = &mut fill[place as usize];
                grouped[*at as usize] = *node;
                *at += 1;
            }
        }
        let start = self.end()?;
        if distinct_in_order {
            self.worker.arena.extend_from_slice(&grouped);
            return self.finish(start, &starts);
        }
        let mut expanded = Vec::with_capacity(bindings.len() + 1);
        for binding in &bindings {
            expanded.push(self.end()? - start);
            let place = self.worker.places[*binding as usize].1 as usize;
            self.worker.arena.extend_from_slice(&grouped[starts[place] as usize..starts[place + 1] as usize]);
        }
        expanded.push(self.end()? - start);
        self.finish(start, &expanded)
    }

    /// Adds the pairs of a node with the bindings from which edges lead to it.
    ///
    /// Goes up from the node with the set of edges that may still have to be passed; where none has, is a binding.
    fn trace(&self, node: NodeId, edges: &[Edge], pairs: &mut Vec<(NodeId, NodeId)>, stamp: u64) {
        // Bit i: the first i edges are still ahead. Gaps may be passed without a node.
        let close = |mut set: u64| {
            for at in (1..=edges.len()).rev() {
                if set & 1 << at != 0 && edges[at - 1].kind() == EdgeKind::Gap {
                    set |= 1 << (at - 1);
                }
            }
            set
        };
        let passes = |at: NodeId, edge: Edge| {
            let entry = self.document.node(at);
            let kind = match edge.kind() {
                EdgeKind::Element => NodeKind::Element,
                EdgeKind::Attribute => NodeKind::Attribute,
                EdgeKind::Text => NodeKind::Text,
                EdgeKind::Gap => return entry.kind == NodeKind::Element,
            };
            entry.kind == kind && edge.symbol().is_none_or(|symbol| self.worker.symbols.passes(entry.name, symbol))
        };
        let mut set: u64 = 1 << edges.len();
        let mut at = node;
        loop {
            let mut next = 0u64;
            let mut rest = set & !1;
            while rest != 0 {
                let ahead = rest.trailing_zeros() as usize;
                rest &= rest - 1;
                let edge = edges[ahead - 1];
                if passes(at, edge) {
                    next |= 1 << if edge.kind() == EdgeKind::Gap { ahead } else { ahead - 1 };
                }
            }
            if at == 0 || next == 0 {
                return;
            }
            set = close(next);
            at = self.document.node(at).parent;
            if set & 1 != 0 && self.worker.places[at as usize].0 == stamp {
                pairs.push((at, node));
            }
        }
    }
}
