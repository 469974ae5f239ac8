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

/// What a join works with, kept for its memory.
#[derive(Debug, Default)]
pub(super) struct Joined {
    /// The nodes of the path.
    pub(super) lasts: Vec<NodeId>,
    /// The place of a binding, and a node that belongs to it.
    pub(super) pairs: Vec<(u32, NodeId)>,
    /// Whether the pairs are in the order of the bindings.
    in_order: bool,
    starts: Vec<u32>,
    fill: Vec<u32>,
}

impl Joined {
    fn clear(&mut self) {
        self.lasts.clear();
        self.pairs.clear();
        self.in_order = true;
        self.starts.clear();
        self.fill.clear();
    }
}

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
            None => self.document_nodes(stream)?,
            Some(parent) => {
                self.compute(parent)?;
                self.nodes_below(stream, parent)?
            }
        };
        self.worker.streams[id as usize] = Nodes { stamp: work, ..made };
        Ok(())
    }

    fn end(&self) -> Outcome<u32> {
        u32::try_from(self.worker.arena.len()).map_err(|_| Self::too_large())
    }

    fn document_nodes(&mut self, stream: &'a Stream) -> Outcome<Nodes> {
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

    fn nodes_below(&mut self, stream: &'a Stream, parent: StreamId) -> Outcome<Nodes> {
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
                self.join(parent, above, *path, |execution, node, joined| execution.climb(steps, node, joined))
            }
            Route::Traced(path, _, Some(levels)) if self.strategy >= Strategy::ForWhere && self.agrees() => {
                let levels = *levels;
                self.join(parent, above, *path, |execution, node, joined| execution.climb(levels, node, joined))
            }
            Route::Traced(path, edges, _) if self.strategy >= Strategy::ForWhere => {
                self.join(parent, above, *path, |execution, node, joined| execution.trace(node, edges, joined))
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

    /// Whether the document agrees with the DTD; found out when first asked.
    fn agrees(&mut self) -> bool {
        let (graph, document) = (self.operators.graph(), self.document);
        *self.agrees.get_or_insert_with(|| graph.is_some_and(|graph| graph.agrees_with(document)))
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
    /// `join_one` adds the pairs of one node. Where bindings do not contain each other, the pairs come in the order of
    /// the bindings, and joining them is merging; otherwise they are put in order by counting.
    fn join(
        &mut self,
        parent: StreamId,
        above: Range<u32>,
        path: PathId,
        join_one: impl Fn(&Self, NodeId, &mut Joined),
    ) -> Outcome<Nodes> {
        let distinct = self.place(parent, above.clone());
        let mut joined = std::mem::take(&mut self.worker.joined);
        joined.clear();
        self.worker.walk.nodes(path, &mut joined.lasts);
        self.evaluator.charge(joined.lasts.len() as u64 + 1)?;
        for at in 0..joined.lasts.len() {
            let last = joined.lasts[at];
            join_one(self, last, &mut joined);
        }
        self.evaluator.charge(joined.pairs.len() as u64)?;
        let count = above.len();
        let start = self.end()?;
        joined.starts.resize(count + 1, 0);
        for (place, _) in &joined.pairs {
            joined.starts[*place as usize + 1] += 1;
        }
        for at in 0..count {
            joined.starts[at + 1] += joined.starts[at];
        }
        if joined.in_order {
            self.worker.arena.extend(joined.pairs.iter().map(|(_, node)| *node));
        } else {
            // Nodes stay in document order within each binding.
            self.worker.arena.resize(start as usize + joined.pairs.len(), 0);
            joined.fill.extend_from_slice(&joined.starts);
            for (place, node) in &joined.pairs {
                let at = &mut joined.fill[*place as usize];
                self.worker.arena[(start + *at) as usize] = *node;
                *at += 1;
            }
        }
        let made = if distinct {
            self.finish(start, &joined.starts)
        } else {
            // A stream that is itself below another may bind a node more than once; its first binding has the nodes.
            joined.fill.clear();
            let first = self.end()?;
            for at in above {
                joined.fill.push(self.end()? - first);
                let place = self.worker.places[self.node_at(at) as usize].1 as usize;
                let nodes = start + joined.starts[place]..start + joined.starts[place + 1];
                self.evaluator.charge(nodes.len() as u64)?;
                self.worker.arena.extend_from_within(nodes.start as usize..nodes.end as usize);
            }
            joined.fill.push(self.end()? - first);
            self.finish(first, &joined.fill)
        };
        self.worker.joined = joined;
        made
    }

    /// The path whose nodes a stream's are, if they are joined with their bindings.
    pub(super) fn joined_path(&self, id: StreamId) -> Option<PathId> {
        match self.operators.stream(id).route {
            Route::Climbed(path, _) | Route::Traced(path, ..) if self.strategy >= Strategy::ForWhere => Some(path),
            _ => None,
        }
    }

    /// Gets ready for [`Self::pairs_of`]: the places of the bindings above. False if a node is bound more than once.
    pub(super) fn place_all(&mut self, parent: StreamId) -> Outcome<bool> {
        self.compute(parent)?;
        let above = self.worker.streams[parent as usize].nodes.clone();
        Ok(self.place(parent, above))
    }

    /// Adds the pairs of one node of a stream's path with the bindings above.
    pub(super) fn pairs_of(&mut self, id: StreamId, node: NodeId, joined: &mut Joined) {
        match &self.operators.stream(id).route {
            Route::Climbed(_, levels) => self.climb(*levels, node, joined),
            Route::Traced(_, _, Some(levels)) if self.agrees() => self.climb(*levels, node, joined),
            Route::Traced(_, edges, _) => self.trace(node, edges, joined),
            Route::Matched(_) | Route::Navigated(_) => {}
        }
    }

    /// Adds the pair of a node with the binding a number of levels above.
    fn climb(&self, levels: u16, node: NodeId, joined: &mut Joined) {
        let mut at = node;
        for _ in 0..levels {
            at = self.document.node(at).parent;
        }
        self.pair(at, node, joined);
    }

    /// Notes for each node that a stream binds which binding that is; whether no node is bound twice.
    fn place(&mut self, stream: StreamId, bindings: Range<u32>) -> bool {
        let (placed, work, distinct) = self.worker.placed;
        if (placed, work) == (stream, self.worker.work) {
            return distinct;
        }
        self.worker.place_stamp += 1;
        let stamp = self.worker.place_stamp;
        let mut distinct = true;
        for (place, at) in bindings.enumerate() {
            let node = self.worker.arena[at as usize];
            let entry = &mut self.worker.places[node as usize];
            if entry.0 == stamp {
                distinct = false;
            } else {
                *entry = (stamp, place as u32);
            }
        }
        self.worker.placed = (stream, self.worker.work, distinct);
        distinct
    }

    /// Adds a pair if its first node is bound.
    #[inline]
    fn pair(&self, binding: NodeId, node: NodeId, joined: &mut Joined) {
        let (stamp, place) = self.worker.places[binding as usize];
        if stamp == self.worker.place_stamp {
            joined.in_order &= joined.pairs.last().is_none_or(|(last, _)| *last <= place);
            joined.pairs.push((place, node));
        }
    }

    /// Adds the pairs of a node with the bindings from which edges lead to it.
    ///
    /// Goes up from the node with the set of edges that may still have to be passed; where none has, is a binding.
    fn trace(&self, node: NodeId, edges: &[Edge], joined: &mut Joined) {
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
            if set & 1 != 0 {
                self.pair(at, node, joined);
            }
        }
    }
}
