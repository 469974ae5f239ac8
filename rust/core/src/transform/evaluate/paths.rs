//! Paths, filters and operators on node sequences (XQuery 1.0 §3.2, §3.3.2, §3.4.2).

use super::{Evaluator, Focus, KEEPING, Outcome, effective_boolean};
use crate::document::{NodeId, NodeKind};
use crate::transform::error::TransformError;
use crate::transform::value::{Atomic, Item, Sequence};
use crate::xquery::ast::{Axis, Expr, Function, NodeTest, Path, SetOp, Step};
use smallvec::SmallVec;

/// Nodes that most steps stay below.
type Nodes = SmallVec<[NodeId; 8]>;

impl<'a> Evaluator<'a> {
    pub(super) fn path(&mut self, path: &'a Path, focus: &Focus<'a>) -> Outcome<Sequence<'a>> {
        let mut nodes: Nodes = match &path.start {
            Expr::Root => Nodes::from_slice(&[0]),
            start => {
                let value = self.value(start, focus)?;
                match nodes_of(&value) {
                    Some(nodes) => nodes,
                    // A step such as `string()` may follow any item.
                    None => return self.steps_from_items(&value, &path.steps),
                }
            }
        };
        in_order(&mut nodes);
        let mut at = 0;
        while at < path.steps.len() {
            match &path.steps[at] {
                Step::Axis { axis, test, predicates } => {
                    let next = path.steps.get(at + 1);
                    if let (Axis::DescendantOrSelf, NodeTest::Node, true, Some((test, predicates))) =
                        (*axis, test, predicates.is_empty(), next.and_then(fusible))
                    {
                        // `//a` is one step unless positions are counted per parent.
                        nodes = self.axis_step(&nodes, Axis::Descendant, test, predicates)?;
                        at += 1;
                    } else {
                        nodes = self.axis_step(&nodes, *axis, test, predicates)?;
                    }
                }
                Step::Expr(expr) => {
                    let items: Sequence<'a> = nodes.iter().map(|node| Item::Node(*node)).collect();
                    let value = self.expression_step(&items, expr)?;
                    if at + 1 == path.steps.len() {
                        return in_document_order(value);
                    }
                    nodes = nodes_of(&value).ok_or_else(not_nodes)?;
                    in_order(&mut nodes);
                }
            }
            at += 1;
        }
        self.charge(nodes.len() as u64)?;
        Ok(nodes.into_iter().map(Item::Node).collect())
    }

    /// Steps from items that are not all nodes of the document; only expressions can be applied to them.
    fn steps_from_items(&mut self, items: &[Item<'a>], steps: &'a [Step]) -> Outcome<Sequence<'a>> {
        match steps {
            [Step::Expr(expr)] => {
                let value = self.expression_step(items, expr)?;
                in_document_order(value)
            }
            _ => Err(TransformError::dynamic(
                "XPTY0019",
                "a path goes on from something that is no node of the document",
            )),
        }
    }

    fn expression_step(&mut self, items: &[Item<'a>], expr: &'a Expr) -> Outcome<Sequence<'a>> {
        if items.iter().any(|item| matches!(item, Item::Atomic(_))) {
            return Err(TransformError::dynamic("XPTY0019", "a path goes on from an atomic value"));
        }
        let mut all = Sequence::new();
        for (at, item) in items.iter().enumerate() {
            let focus = Focus { item: item.clone(), position: at + 1, size: items.len() };
            let value = self.value(expr, &focus)?;
            self.charge(KEEPING * value.len() as u64)?;
            all.extend(value);
        }
        Ok(all)
    }

    /// One axis step from nodes in document order; the result is in document order.
    fn axis_step(
        &mut self,
        nodes: &[NodeId],
        axis: Axis,
        test: &'a NodeTest,
        predicates: &'a [Expr],
    ) -> Outcome<Nodes> {
        let mut found = Nodes::new();
        if predicates.iter().any(may_be_positional) {
            let mut own = Nodes::new();
            for node in nodes {
                own.clear();
                self.axis(*node, axis, test, &mut own)?;
                for predicate in predicates {
                    own = self.holding(own, predicate)?;
                }
                found.extend_from_slice(&own);
            }
            self.charge(found.len() as u64)?;
            in_order(&mut found);
            return Ok(found);
        }
        if matches!(axis, Axis::Descendant | Axis::DescendantOrSelf) {
            // What is inside an earlier node was looked at with it.
            let mut covered: Option<NodeId> = None;
            for node in nodes {
                if covered.is_none_or(|covered| *node > covered) {
                    self.axis(*node, axis, test, &mut found)?;
                    covered = Some(self.document().node(*node).last);
                }
            }
        } else {
            for node in nodes {
                self.axis(*node, axis, test, &mut found)?;
            }
            in_order(&mut found);
        }
        self.charge(found.len() as u64)?;
        for predicate in predicates {
            found = self.holding(found, predicate)?;
        }
        Ok(found)
    }

    /// The nodes of a list at which a predicate holds; positions count in the list.
    fn holding(&mut self, nodes: Nodes, predicate: &'a Expr) -> Outcome<Nodes> {
        let size = nodes.len();
        let mut held = Nodes::new();
        for (at, node) in nodes.into_iter().enumerate() {
            let focus = Focus { item: Item::Node(node), position: at + 1, size };
            if self.predicate(predicate, &focus)? {
                held.push(node);
            }
        }
        Ok(held)
    }

    /// Whether a predicate holds: a number is compared with the position (XQuery 1.0 §3.2.2).
    fn predicate(&mut self, predicate: &'a Expr, focus: &Focus<'a>) -> Outcome<bool> {
        match predicate {
            Expr::Or(..) | Expr::And(..) => self.truth(predicate, focus),
            _ => {
                let value = self.value(predicate, focus)?;
                match &value[..] {
                    [Item::Atomic(number)] if number.is_numeric() => {
                        let position = Atomic::Integer(focus.position as i64);
                        Ok(crate::transform::compare::numeric_order(number, &position)
                            == Some(std::cmp::Ordering::Equal))
                    }
                    value => effective_boolean(value),
                }
            }
        }
    }

    pub(super) fn filter(
        &mut self,
        primary: &'a Expr,
        predicates: &'a [Expr],
        focus: &Focus<'a>,
    ) -> Outcome<Sequence<'a>> {
        let mut items = self.value(primary, focus)?;
        for predicate in predicates {
            let size = items.len();
            let mut held = Sequence::new();
            for (at, item) in items.into_iter().enumerate() {
                let focus = Focus { item: item.clone(), position: at + 1, size };
                if self.predicate(predicate, &focus)? {
                    held.push(item);
                }
            }
            items = held;
        }
        Ok(items)
    }

    pub(super) fn combine(&mut self, op: SetOp, a: &'a Expr, b: &'a Expr, focus: &Focus<'a>) -> Outcome<Sequence<'a>> {
        let wrong = || TransformError::dynamic("XPTY0004", "union, intersect and except work on nodes of the document");
        let a = self.value(a, focus)?;
        let b = self.value(b, focus)?;
        let mut a = nodes_of(&a).ok_or_else(wrong)?;
        let mut b = nodes_of(&b).ok_or_else(wrong)?;
        self.charge((a.len() + b.len()) as u64)?;
        in_order(&mut b);
        match op {
            SetOp::Union => a.extend_from_slice(&b),
            SetOp::Intersect => a.retain(|node| b.binary_search(node).is_ok()),
            SetOp::Except => a.retain(|node| b.binary_search(node).is_err()),
        }
        in_order(&mut a);
        Ok(a.into_iter().map(Item::Node).collect())
    }

    /// Numbers of the document's names that pass a test; found once.
    fn passing_names(&mut self, test: &'a NodeTest) -> SmallVec<[u32; 2]> {
        let document = self.document();
        self.names
            .entry(std::ptr::from_ref(test))
            .or_insert_with(|| {
                let passes = |name: &crate::document::Name| match test {
                    NodeTest::Name(wanted) | NodeTest::Element(Some(wanted)) | NodeTest::Attribute(Some(wanted)) => {
                        *name.local == *wanted.local && *name.uri == *wanted.uri
                    }
                    NodeTest::Namespace(uri) => *name.uri == **uri,
                    NodeTest::Local(local) => *name.local == **local,
                    NodeTest::ProcessingInstruction(Some(target)) => *name.local == **target,
                    _ => false,
                };
                let names = document.names().iter().enumerate().skip(1);
                names.filter(|(_, name)| passes(name)).map(|(number, _)| number as u32).collect()
            })
            .clone()
    }

    /// Appends what an axis selects from one node, in the order of the axis.
    fn axis(&mut self, node: NodeId, axis: Axis, test: &'a NodeTest, found: &mut Nodes) -> Outcome<()> {
        let document = self.document();
        let principal = if axis == Axis::Attribute { NodeKind::Attribute } else { NodeKind::Element };
        let (kind, names) = match test {
            NodeTest::Node => (None, None),
            NodeTest::Any => (Some(principal), None),
            NodeTest::Name(_) | NodeTest::Namespace(_) | NodeTest::Local(_) => {
                (Some(principal), Some(self.passing_names(test)))
            }
            NodeTest::Text => (Some(NodeKind::Text), None),
            NodeTest::Comment => (Some(NodeKind::Comment), None),
            NodeTest::ProcessingInstruction(target) => {
                (Some(NodeKind::ProcessingInstruction), target.as_ref().map(|_| self.passing_names(test)))
            }
            NodeTest::Element(name) => (Some(NodeKind::Element), name.as_ref().map(|_| self.passing_names(test))),
            NodeTest::Attribute(name) => (Some(NodeKind::Attribute), name.as_ref().map(|_| self.passing_names(test))),
            NodeTest::Document => (Some(NodeKind::Root), None),
        };
        let passes = |id: NodeId| {
            let entry = document.node(id);
            kind.is_none_or(|kind| entry.kind == kind) && names.as_ref().is_none_or(|names| names.contains(&entry.name))
        };
        let entry = document.node(node);
        let is_attribute = |id: NodeId| document.node(id).kind == NodeKind::Attribute;
        let before = found.len();
        let visited = match axis {
            Axis::Child => {
                let mut visited = 1;
                found.extend(document.children(node).inspect(|_| visited += 1).filter(|id| passes(*id)));
                visited
            }
            Axis::Attribute => {
                found.extend(document.attributes(node).filter(|id| passes(*id)));
                1 + found.len() - before
            }
            Axis::SelfAxis => {
                found.extend(Some(node).filter(|id| passes(*id)));
                1
            }
            Axis::Parent => {
                found.extend((node != 0).then_some(entry.parent).filter(|id| passes(*id)));
                1
            }
            Axis::Ancestor | Axis::AncestorOrSelf => {
                let mut at = node;
                let mut visited = 1;
                if axis == Axis::AncestorOrSelf {
                    found.extend(Some(node).filter(|id| passes(*id)));
                }
                while at != 0 {
                    at = document.node(at).parent;
                    visited += 1;
                    found.extend(Some(at).filter(|id| passes(*id)));
                }
                visited
            }
            Axis::Descendant | Axis::DescendantOrSelf => {
                if axis == Axis::DescendantOrSelf {
                    found.extend(Some(node).filter(|id| passes(*id)));
                }
                found.extend((node + 1..=entry.last).filter(|id| passes(*id) && !is_attribute(*id)));
                1 + (entry.last - node) as usize
            }
            Axis::Following => {
                let start = entry.last + 1;
                found.extend((start..document.len() as NodeId).filter(|id| passes(*id) && !is_attribute(*id)));
                1 + document.len() - start as usize
            }
            Axis::Preceding => {
                let outside = |id: &NodeId| document.node(*id).last < node && passes(*id) && !is_attribute(*id);
                found.extend((0..node).rev().filter(outside));
                1 + node as usize
            }
            Axis::FollowingSibling | Axis::PrecedingSibling if node == 0 || is_attribute(node) => 1,
            Axis::FollowingSibling => {
                let mut visited = 1;
                let siblings = document.children(entry.parent).inspect(|_| visited += 1);
                found.extend(siblings.filter(|id| *id > node && passes(*id)));
                visited
            }
            Axis::PrecedingSibling => {
                let mut visited = 1;
                let siblings = document.children(entry.parent).inspect(|_| visited += 1);
                found.extend(siblings.take_while(|id| *id < node).filter(|id| passes(*id)));
                found[before..].reverse();
                visited
            }
            Axis::Namespace => 0,
        };
        self.charge(visited as u64)
    }
}

/// The test and predicates of a child step that may follow `//` as one descendant step.
fn fusible(step: &Step) -> Option<(&NodeTest, &[Expr])> {
    match step {
        Step::Axis { axis: Axis::Child, test, predicates } if !predicates.iter().any(may_be_positional) => {
            Some((test, predicates))
        }
        _ => None,
    }
}

/// Whether a predicate may look at positions: by its value, if that may be a number, or by asking for them.
pub fn may_be_positional(predicate: &Expr) -> bool {
    let boolean = match predicate {
        Expr::Compare(..) | Expr::And(..) | Expr::Or(..) | Expr::Quantified { .. } => true,
        Expr::Literal(crate::xquery::ast::Literal::String(_)) => true,
        Expr::Path(path) => matches!(path.steps.last(), Some(Step::Axis { .. })),
        Expr::Call(function, _) => matches!(
            function,
            Function::Boolean
                | Function::Contains
                | Function::Empty
                | Function::EndsWith
                | Function::Exists
                | Function::False
                | Function::Not
                | Function::StartsWith
                | Function::True
        ),
        _ => false,
    };
    !boolean || asks_for_position(predicate)
}

/// Whether `position()` or `last()` is called with the focus of the expression; inside predicates and steps there is
/// another.
fn asks_for_position(expr: &Expr) -> bool {
    match expr {
        Expr::Call(Function::Position | Function::Last, _) => true,
        Expr::Call(_, members) | Expr::Sequence(members) => members.iter().any(asks_for_position),
        Expr::Compare(_, a, b)
        | Expr::Arithmetic(_, a, b)
        | Expr::Or(a, b)
        | Expr::And(a, b)
        | Expr::Range(a, b)
        | Expr::Combine(_, a, b) => asks_for_position(a) || asks_for_position(b),
        Expr::Negate(a) | Expr::Filter(a, _) => asks_for_position(a),
        Expr::Path(path) => asks_for_position(&path.start),
        Expr::Literal(_) | Expr::Variable(_) | Expr::Root | Expr::Context => false,
        // Rare in predicates: better a step node by node than a wrong one.
        _ => true,
    }
}

fn not_nodes() -> TransformError {
    TransformError::dynamic("XPTY0019", "a path goes on from something that is no node of the document")
}

/// The result of a last step that is an expression: nodes in document order, or values as they come.
fn in_document_order(value: Sequence<'_>) -> Outcome<Sequence<'_>> {
    if let Some(mut nodes) = nodes_of(&value) {
        in_order(&mut nodes);
        return Ok(nodes.into_iter().map(Item::Node).collect());
    }
    let atomic = value.iter().filter(|item| matches!(item, Item::Atomic(_))).count();
    if atomic > 0 && atomic < value.len() {
        return Err(TransformError::dynamic("XPTY0018", "the last step of a path gives both nodes and atomic values"));
    }
    Ok(value)
}

/// The nodes of a sequence, if it holds nothing but nodes of the document.
fn nodes_of(value: &[Item<'_>]) -> Option<Nodes> {
    value
        .iter()
        .map(|item| match item {
            Item::Node(node) => Some(*node),
            _ => None,
        })
        .collect()
}

/// Sorts into document order and drops duplicates.
fn in_order(nodes: &mut Nodes) {
    if !nodes.is_sorted_by(|a, b| a < b) {
        nodes.sort_unstable();
        nodes.dedup();
    }
}
