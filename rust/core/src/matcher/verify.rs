//! Exact verification of one row: does the document satisfy this expression with these constants?
//!
//! Plain expressions — no positions — are decided node by node, depth first, stopping at the first node that answers.
//! That visits few nodes, but without memory it can visit the same ones again and again; so it works on a budget, and
//! when that is used up, or where it meets something it does not know, the exact evaluator decides.

use super::lists::ElementLists;
use crate::document::{Document, NodeId, NodeKind};
use crate::xpath::ast::{Axis, CompareOp, ConstantRef, Expr, ExprId, Function, NONE, NodeTest, PathStart, Query, Step};
use crate::xpath::evaluate::number::to_number;
use crate::xpath::evaluate::{EvaluateError, Evaluator, compare_numbers};
use crate::xpath::symbols::DocumentSymbols;
use std::cell::OnceCell;
use std::rc::Rc;

/// Nodes that the depth-first attempt may visit per row.
const BUDGET: u32 = 4096;

/// Why the depth-first attempt gave up.
struct GiveUp;

/// Verifies rows against one document.
pub(super) struct Verifier<'d> {
    document: &'d Document,
    symbols: &'d DocumentSymbols,
    cost_limit: u64,
    budget: u32,
    /// Made when the first step needs it.
    lists: OnceCell<Rc<ElementLists>>,
}

/// A test of one node's value against a constant.
#[derive(Clone, Copy)]
pub(super) enum ValueTest<'c> {
    /// The node is enough.
    Exists,
    /// Compare with a constant, as in `node op constant`.
    Compare(CompareOp, ConstantRef<'c>),
}

impl ValueTest<'_> {
    /// Whether a string-value passes (XPath 1.0 §3.4).
    pub(super) fn passes(&self, value: &str) -> bool {
        match *self {
            ValueTest::Exists => true,
            ValueTest::Compare(CompareOp::Equal, ConstantRef::String(constant)) => value == constant,
            ValueTest::Compare(CompareOp::NotEqual, ConstantRef::String(constant)) => value != constant,
            ValueTest::Compare(op, ConstantRef::String(constant)) => {
                compare_numbers(op, to_number(value), to_number(constant))
            }
            ValueTest::Compare(op, ConstantRef::Number(constant)) => compare_numbers(op, to_number(value), constant),
        }
    }
}

impl<'d> Verifier<'d> {
    pub(super) fn new(document: &'d Document, symbols: &'d DocumentSymbols, cost_limit: u64) -> Self {
        Verifier { document, symbols, cost_limit, budget: 0, lists: OnceCell::new() }
    }

    /// Whether the document satisfies the expression.
    pub(super) fn verify(
        &mut self,
        query: Query<'_>,
        plain: bool,
        constants: &[ConstantRef<'_>],
    ) -> Result<bool, EvaluateError> {
        if plain {
            self.budget = BUDGET;
            if let Ok(held) = self.boolean(&query, constants, query.root, 0) {
                return Ok(held);
            }
        }
        let mut cells = Vec::new();
        let root = query.extract(&mut cells);
        let query = Query { cells: &cells, root };
        Evaluator::new(self.document, self.symbols, self.cost_limit).boolean(query, constants)
    }

    fn boolean(
        &mut self,
        query: &Query<'_>,
        constants: &[ConstantRef<'_>],
        expr: ExprId,
        node: NodeId,
    ) -> Result<bool, GiveUp> {
        match query.expr(expr) {
            Expr::And(a, b) => Ok(self.boolean(query, constants, a, node)? && self.boolean(query, constants, b, node)?),
            Expr::Or(a, b) => Ok(self.boolean(query, constants, a, node)? || self.boolean(query, constants, b, node)?),
            Expr::Path(start, first) => self.path(query, constants, start, first, node, ValueTest::Exists),
            Expr::Compare(op, a, b) => {
                if let (Expr::Path(start, first), Some(constant)) = (query.expr(a), constant_of(query, constants, b)) {
                    let test = ValueTest::Compare(op, constant);
                    self.path(query, constants, start, first, node, test)
                } else if let (Some(constant), Expr::Path(start, first)) =
                    (constant_of(query, constants, a), query.expr(b))
                {
                    let test = ValueTest::Compare(op.mirrored(), constant);
                    self.path(query, constants, start, first, node, test)
                } else {
                    Err(GiveUp)
                }
            }
            Expr::Union(a, b) => {
                Ok(self.boolean(query, constants, a, node)? || self.boolean(query, constants, b, node)?)
            }
            Expr::Call(function, arguments) => {
                let mut list = query.list(arguments);
                match (function, list.next(), list.next()) {
                    (Function::Not, Some(argument), None) => Ok(!self.boolean(query, constants, argument, node)?),
                    (Function::Boolean, Some(argument), None) => self.boolean(query, constants, argument, node),
                    (Function::True, None, None) => Ok(true),
                    (Function::False, None, None) => Ok(false),
                    (Function::Contains | Function::StartsWith, Some(subject), Some(pattern)) => {
                        let Some(ConstantRef::String(pattern)) = constant_of(query, constants, pattern) else {
                            return Err(GiveUp);
                        };
                        let value = self.first_value(query, subject, node)?;
                        Ok(if function == Function::Contains {
                            value.contains(pattern)
                        } else {
                            value.starts_with(pattern)
                        })
                    }
                    _ => Err(GiveUp),
                }
            }
            _ => Err(GiveUp),
        }
    }

    /// The string-value of the first node of `.`, `@name` or a chain of child steps without predicates; empty if none.
    fn first_value(&mut self, query: &Query<'_>, subject: ExprId, node: NodeId) -> Result<&'d str, GiveUp> {
        let Expr::Path(start, first) = query.expr(subject) else { return Err(GiveUp) };
        let at = match start {
            PathStart::Root => 0,
            PathStart::Context => node,
            PathStart::Expr(_) => return Err(GiveUp),
        };
        let mut found = None;
        self.first(query, first, at, &mut found)?;
        Ok(found.map_or("", |node| self.document.string_value(node)))
    }

    /// Child and attribute steps reach nodes in document order, so the first one met is the first one.
    fn first(&mut self, query: &Query<'_>, at: u32, node: NodeId, found: &mut Option<NodeId>) -> Result<bool, GiveUp> {
        if at == NONE {
            *found = Some(node);
            return Ok(true);
        }
        let step = query.step(at);
        if step.predicates != NONE || !matches!(step.axis, Axis::Child | Axis::Attribute | Axis::SelfAxis) {
            return Err(GiveUp);
        }
        self.walk(&step, node, |this, next| this.first(query, step.next, next, found))
    }

    fn path(
        &mut self,
        query: &Query<'_>,
        constants: &[ConstantRef<'_>],
        start: PathStart,
        first: u32,
        node: NodeId,
        test: ValueTest<'_>,
    ) -> Result<bool, GiveUp> {
        let at = match start {
            PathStart::Root => 0,
            PathStart::Context => node,
            PathStart::Expr(_) => return Err(GiveUp),
        };
        self.steps(query, constants, first, at, test)
    }

    /// Whether some node behind the steps from `at` on passes the test. Recursion is as deep as the steps, which
    /// plain expressions have few of.
    fn steps(
        &mut self,
        query: &Query<'_>,
        constants: &[ConstantRef<'_>],
        at: u32,
        node: NodeId,
        test: ValueTest<'_>,
    ) -> Result<bool, GiveUp> {
        if at == NONE {
            return Ok(test.passes(self.document.string_value(node)));
        }
        let step = query.step(at);
        // Keeping answers of parts without constants, by cell and node, for all rows of a document was tried: the
        // look-ups cost a fifth more than they saved.
        self.walk(&step, node, |this, next| {
            for predicate in query.list(step.predicates) {
                if !this.boolean(query, constants, predicate, next)? {
                    return Ok(false);
                }
            }
            this.steps(query, constants, step.next, next, test)
        })
    }

    /// Calls `visit` for the nodes of a step until it says true.
    fn walk(
        &mut self,
        step: &Step,
        node: NodeId,
        mut visit: impl FnMut(&mut Self, NodeId) -> Result<bool, GiveUp>,
    ) -> Result<bool, GiveUp> {
        let document = self.document;
        let nodes = document.nodes();
        let from = &nodes[node as usize];
        match step.axis {
            Axis::Child => {
                let mut at = node + 1;
                while at <= from.last {
                    let candidate = &nodes[at as usize];
                    if candidate.kind != NodeKind::Attribute
                        && self.test(step.test, candidate, NodeKind::Element)?
                        && visit(self, at)?
                    {
                        return Ok(true);
                    }
                    at = candidate.last + 1;
                }
                Ok(false)
            }
            Axis::Attribute => {
                if from.kind != NodeKind::Element {
                    return Ok(false);
                }
                for at in document.attributes(node) {
                    if self.test(step.test, &nodes[at as usize], NodeKind::Attribute)? && visit(self, at)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Axis::Descendant if matches!(step.test, NodeTest::Name(symbol) if self.symbols.is_expanded_only(symbol)) => {
                let NodeTest::Name(symbol) = step.test else { return Err(GiveUp) };
                let lists = self.lists.get_or_init(|| Rc::new(ElementLists::new(document, self.symbols))).clone();
                for at in lists.within(symbol, node + 1, from.last) {
                    self.budget = self.budget.checked_sub(1).ok_or(GiveUp)?;
                    if visit(self, *at)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Axis::Descendant | Axis::DescendantOrSelf => {
                if step.axis == Axis::DescendantOrSelf
                    && self.test(step.test, from, NodeKind::Element)?
                    && visit(self, node)?
                {
                    return Ok(true);
                }
                for at in node + 1..=from.last {
                    let candidate = &nodes[at as usize];
                    if candidate.kind != NodeKind::Attribute
                        && self.test(step.test, candidate, NodeKind::Element)?
                        && visit(self, at)?
                    {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Axis::SelfAxis => Ok(self.test(step.test, from, NodeKind::Element)? && visit(self, node)?),
            Axis::Parent => Ok(node != 0
                && self.test(step.test, &nodes[from.parent as usize], NodeKind::Element)?
                && visit(self, from.parent)?),
            _ => Err(GiveUp),
        }
    }

    /// Whether a node passes a node test whose principal node type is `principal`; costs one of the budget.
    #[inline]
    fn test(&mut self, test: NodeTest, node: &crate::document::Node, principal: NodeKind) -> Result<bool, GiveUp> {
        self.budget = self.budget.checked_sub(1).ok_or(GiveUp)?;
        Ok(match test {
            NodeTest::Name(symbol) => node.kind == principal && self.symbols.passes(node.name, symbol),
            NodeTest::Any => node.kind == principal,
            NodeTest::Node => true,
            NodeTest::Text => node.kind == NodeKind::Text,
            NodeTest::Comment => node.kind == NodeKind::Comment,
            NodeTest::ProcessingInstruction => node.kind == NodeKind::ProcessingInstruction,
            NodeTest::ProcessingInstructionNamed(symbol) => {
                node.kind == NodeKind::ProcessingInstruction && self.symbols.passes(node.name, symbol)
            }
        })
    }
}

fn constant_of<'c>(query: &Query<'_>, constants: &[ConstantRef<'c>], expr: ExprId) -> Option<ConstantRef<'c>> {
    match query.expr(expr) {
        Expr::StringConstant(slot) | Expr::NumberConstant(slot) => Some(constants[slot as usize]),
        _ => None,
    }
}
