//! Axes and node tests (§2.2, §2.3), from one node and from a set of nodes.

use super::value::NodeRef;
use super::{EvaluateError, Run};
use crate::document::{NodeId, NodeKind};
use crate::xpath::ast::{Axis, NodeTest};
use hashbrown::HashSet;

type Found = Result<Vec<NodeRef>, EvaluateError>;

/// Nodes collected so far, with a note of whether they came in document order.
struct Sink {
    nodes: Vec<NodeRef>,
    ordered: bool,
    most: usize,
}

impl Sink {
    fn new(most: usize) -> Self {
        Sink { nodes: Vec::new(), ordered: true, most }
    }

    fn push(&mut self, node: NodeRef) {
        self.ordered &= self.nodes.last().is_none_or(|last| *last < node);
        self.nodes.push(node);
    }

    fn full(&self) -> bool {
        self.nodes.len() >= self.most
    }
}

/// Sorts into document order and drops duplicates.
pub(super) fn in_order(nodes: &mut Vec<NodeRef>) {
    if !nodes.is_sorted_by(|a, b| a < b) {
        nodes.sort_unstable();
        nodes.dedup();
    }
}

/// Whether nodes reached from different context nodes by this axis are always different.
pub(super) fn is_exclusive(axis: Axis) -> bool {
    matches!(axis, Axis::Child | Axis::Attribute | Axis::Namespace | Axis::SelfAxis)
}

fn principal(axis: Axis) -> NodeKind {
    if axis == Axis::Attribute { NodeKind::Attribute } else { NodeKind::Element }
}

impl Run<'_, '_> {
    fn passes(&self, id: NodeId, test: NodeTest, principal: NodeKind) -> bool {
        let node = self.document.node(id);
        match test {
            NodeTest::Node => true,
            NodeTest::Any => node.kind == principal,
            NodeTest::Name(symbol) => node.kind == principal && self.evaluator.symbols.passes(node.name, symbol),
            NodeTest::Text => node.kind == NodeKind::Text,
            NodeTest::Comment => node.kind == NodeKind::Comment,
            NodeTest::ProcessingInstruction => node.kind == NodeKind::ProcessingInstruction,
            NodeTest::ProcessingInstructionNamed(symbol) => {
                node.kind == NodeKind::ProcessingInstruction && self.evaluator.symbols.passes(node.name, symbol)
            }
        }
    }

    /// A node itself, where an axis includes it. Namespace nodes are of no such axis's principal type.
    fn take_self(&self, node: NodeRef, test: NodeTest, sink: &mut Sink) {
        let passes =
            if node.is_namespace() { test == NodeTest::Node } else { self.passes(node.id(), test, NodeKind::Element) };
        if passes {
            sink.push(node);
        }
    }

    fn is_attribute(&self, id: NodeId) -> bool {
        self.document.node(id).kind == NodeKind::Attribute
    }

    fn parent(&self, node: NodeRef) -> Option<NodeId> {
        if node.is_namespace() {
            Some(node.id())
        } else {
            (node.id() != 0).then(|| self.document.node(node.id()).parent)
        }
    }

    /// Whether the node can have siblings.
    fn in_child_list(&self, node: NodeRef) -> bool {
        !node.is_namespace() && node.id() != 0 && !self.is_attribute(node.id())
    }

    /// The last node inside a node; for a namespace node its element, since what is inside follows it.
    fn last(&self, node: NodeRef) -> NodeId {
        if node.is_namespace() { node.id() } else { self.document.node(node.id()).last }
    }

    fn range(
        &mut self,
        ids: impl Iterator<Item = NodeId>,
        test: NodeTest,
        sink: &mut Sink,
    ) -> Result<(), EvaluateError> {
        let mut visited = 0;
        for id in ids {
            visited += 1;
            if !self.is_attribute(id) && self.passes(id, test, NodeKind::Element) {
                sink.push(NodeRef::tree(id));
                if sink.full() {
                    break;
                }
            }
        }
        self.charge(visited)
    }

    /// Follows an axis from one node; at most `most` nodes, in the order of the axis.
    pub(super) fn axis_from_node(&mut self, node: NodeRef, axis: Axis, test: NodeTest, most: usize) -> Found {
        let mut sink = Sink::new(most);
        match axis {
            Axis::Ancestor | Axis::AncestorOrSelf => {
                if axis == Axis::AncestorOrSelf {
                    self.take_self(node, test, &mut sink);
                }
                let mut at = self.parent(node);
                while let Some(id) = at.filter(|_| !sink.full()) {
                    self.charge(1)?;
                    self.take_self(NodeRef::tree(id), test, &mut sink);
                    at = self.parent(NodeRef::tree(id));
                }
            }
            Axis::Preceding => {
                let before = node.id();
                let mut visited = 0;
                for id in (0..before).rev() {
                    visited += 1;
                    let ancestor = self.document.node(id).last >= before;
                    if !ancestor && !self.is_attribute(id) && self.passes(id, test, NodeKind::Element) {
                        sink.push(NodeRef::tree(id));
                        if sink.full() {
                            break;
                        }
                    }
                }
                self.charge(visited)?;
            }
            Axis::PrecedingSibling => {
                let mut at = node;
                while let Some(id) = self.previous_sibling(at)?.filter(|_| !sink.full()) {
                    if self.passes(id, test, NodeKind::Element) {
                        sink.push(NodeRef::tree(id));
                    }
                    at = NodeRef::tree(id);
                }
            }
            _ => self.forward(node, axis, test, &mut sink)?,
        }
        self.charge(1)?;
        Ok(sink.nodes)
    }

    fn previous_sibling(&mut self, node: NodeRef) -> Result<Option<NodeId>, EvaluateError> {
        if !self.in_child_list(node) {
            return Ok(None);
        }
        let parent = self.document.node(node.id()).parent;
        // The node before is the parent, or the end of the previous sibling (or of an attribute).
        let mut at = node.id() - 1;
        let mut visited = 1;
        while at != parent && self.document.node(at).parent != parent {
            at = self.document.node(at).parent;
            visited += 1;
        }
        self.charge(visited)?;
        Ok((at != parent && !self.is_attribute(at)).then_some(at))
    }

    fn forward(&mut self, node: NodeRef, axis: Axis, test: NodeTest, sink: &mut Sink) -> Result<(), EvaluateError> {
        let document = self.document;
        let id = node.id();
        match axis {
            Axis::Child if !node.is_namespace() => {
                let mut visited = 0;
                for child in document.children(id) {
                    visited += 1;
                    if self.passes(child, test, NodeKind::Element) {
                        sink.push(NodeRef::tree(child));
                        if sink.full() {
                            break;
                        }
                    }
                }
                self.charge(visited)?;
            }
            Axis::Attribute if !node.is_namespace() => {
                let mut visited = 0;
                for attribute in document.attributes(id) {
                    visited += 1;
                    if self.passes(attribute, test, principal(axis)) {
                        sink.push(NodeRef::tree(attribute));
                    }
                }
                self.charge(visited)?;
            }
            Axis::Namespace if !node.is_namespace() && document.node(id).kind == NodeKind::Element => {
                if matches!(test, NodeTest::Node | NodeTest::Any) {
                    let count = self.namespaces(id)?.len();
                    self.charge(count as u64)?;
                    for number in 0..count {
                        sink.push(NodeRef::namespace(id, number as u32));
                    }
                }
            }
            Axis::Descendant | Axis::DescendantOrSelf => {
                if axis == Axis::DescendantOrSelf {
                    self.take_self(node, test, sink);
                }
                if !node.is_namespace() && !sink.full() {
                    self.range(id + 1..=document.node(id).last, test, sink)?;
                }
            }
            Axis::Following => {
                let start = self.last(node) + 1;
                self.range(start..document.len() as NodeId, test, sink)?;
            }
            Axis::FollowingSibling if self.in_child_list(node) => {
                let end = document.node(document.node(id).parent).last;
                let mut at = document.node(id).last + 1;
                let mut visited = 1;
                while at <= end && !sink.full() {
                    visited += 1;
                    if self.passes(at, test, NodeKind::Element) {
                        sink.push(NodeRef::tree(at));
                    }
                    at = document.node(at).last + 1;
                }
                self.charge(visited)?;
            }
            Axis::Parent => {
                if let Some(parent) = self.parent(node) {
                    self.take_self(NodeRef::tree(parent), test, sink);
                }
            }
            Axis::SelfAxis => self.take_self(node, test, sink),
            _ => {}
        }
        Ok(())
    }

    /// Follows an axis from nodes in document order; the result is in document order. What several context nodes
    /// reach is visited once. Stops early once `most` nodes are found (which then need not be the first ones).
    pub(super) fn axis_from_set(&mut self, nodes: &[NodeRef], axis: Axis, test: NodeTest, most: usize) -> Found {
        let mut sink = Sink::new(most);
        let document = self.document;
        self.charge(nodes.len() as u64)?;
        match axis {
            Axis::Descendant | Axis::DescendantOrSelf => {
                // Everything up to here has been looked at.
                let mut covered = 0;
                for &node in nodes {
                    let id = node.id();
                    let inside = id != 0 && id <= covered;
                    let leaf = node.is_namespace() || self.is_attribute(id);
                    if axis == Axis::DescendantOrSelf && (leaf || !inside) {
                        self.take_self(node, test, &mut sink);
                    }
                    if !leaf && !inside && !sink.full() {
                        covered = document.node(id).last;
                        self.range(id + 1..=covered, test, &mut sink)?;
                    }
                    if sink.full() {
                        break;
                    }
                }
            }
            Axis::Ancestor | Axis::AncestorOrSelf => {
                let mut seen: HashSet<NodeId, foldhash::fast::FixedState> = HashSet::default();
                for &node in nodes {
                    if axis == Axis::AncestorOrSelf && (node.is_namespace() || seen.insert(node.id())) {
                        self.take_self(node, test, &mut sink);
                    }
                    let mut at = self.parent(node);
                    while let Some(id) = at.filter(|_| !sink.full()) {
                        self.charge(1)?;
                        if !seen.insert(id) {
                            break; // and so is everything above
                        }
                        self.take_self(NodeRef::tree(id), test, &mut sink);
                        at = self.parent(NodeRef::tree(id));
                    }
                }
            }
            Axis::Following => {
                // The union starts behind the context node that ends first.
                if let Some(first) = nodes.iter().map(|node| self.last(*node)).min() {
                    self.range(first + 1..document.len() as NodeId, test, &mut sink)?;
                }
            }
            Axis::Preceding => {
                // Likewise what ends before the last context node starts.
                if let Some(end) = nodes.last().map(|node| node.id()) {
                    let ids = (0..end).filter(|id| document.node(*id).last < end);
                    self.charge(u64::from(end))?;
                    self.range(ids, test, &mut sink)?;
                }
            }
            Axis::FollowingSibling | Axis::PrecedingSibling => self.siblings(nodes, axis, test, &mut sink)?,
            _ => {
                for &node in nodes {
                    self.forward(node, axis, test, &mut sink)?;
                    if sink.full() {
                        break;
                    }
                }
            }
        }
        let Sink { mut nodes, ordered, .. } = sink;
        if !ordered {
            self.charge(nodes.len() as u64)?;
            in_order(&mut nodes);
        }
        Ok(nodes)
    }

    /// Of the context nodes under one parent, the first has all following siblings, the last all preceding ones.
    fn siblings(
        &mut self,
        nodes: &[NodeRef],
        axis: Axis,
        test: NodeTest,
        sink: &mut Sink,
    ) -> Result<(), EvaluateError> {
        let document = self.document;
        let mut seen: HashSet<NodeId, foldhash::fast::FixedState> = HashSet::default();
        for at in 0..nodes.len() {
            let node = nodes[if axis == Axis::FollowingSibling { at } else { nodes.len() - 1 - at }];
            if !self.in_child_list(node) || (nodes.len() > 1 && !seen.insert(document.node(node.id()).parent)) {
                continue;
            }
            if axis == Axis::FollowingSibling {
                self.forward(node, axis, test, sink)?;
            } else {
                let mut visited = 0;
                for child in document.children(document.node(node.id()).parent).take_while(|child| *child < node.id()) {
                    visited += 1;
                    if self.passes(child, test, NodeKind::Element) {
                        sink.push(NodeRef::tree(child));
                    }
                }
                self.charge(visited)?;
            }
            if sink.full() {
                break;
            }
        }
        Ok(())
    }
}
