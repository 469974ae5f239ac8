//! The exact evaluator: XPath 1.0 on one document, in polynomial time and within a cost limit.
//!
//! It is the oracle of every other matcher, so it follows the recommendation step by step on node-sets in document
//! order. What keeps it fast: axes run from whole sets and visit nothing twice; only steps with positional predicates
//! run node by node; inside predicates, what does not depend on the context is computed once, and truth values and
//! numbers are remembered per (subexpression, node) where the same pair can come again (Gottlob, Koch and Pichler,
//! "Efficient algorithms for processing XPath queries", section 4: polynomial time by tabulating contexts).

mod axes;
mod compare;
mod functions;
pub mod number;
mod value;

pub use compare::compare_numbers;
pub use value::{NodeRef, Value};

use super::ast::{ArithmeticOp, ConstantRef, Expr, ExprId, Function, ListId, NONE, PathStart, Query, Step, StepId};
use super::semantics::{self, Type};
use super::symbols::DocumentSymbols;
use crate::document::{Document, NodeId};
use hashbrown::HashMap;
use number::to_number;
use std::borrow::Cow;
use std::cell::OnceCell;
use std::fmt;
use std::rc::Rc;
use value::{Closed, Nodes, number_is_true};

/// Why an evaluation gave up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvaluateError {
    /// It would have cost more than this many units (a node visited, a value compared, 16 bytes of text).
    CostLimit {
        /// The limit.
        limit: u64,
    },
}

impl fmt::Display for EvaluateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let EvaluateError::CostLimit { limit } = self;
        write!(f, "the evaluation costs more than {limit} units, the limit (cost_limit)")
    }
}

impl std::error::Error for EvaluateError {}

type Map<K, V> = HashMap<K, V, foldhash::fast::FixedState>;
type NamespaceList<'d> = Rc<[(&'d str, &'d str)]>;

/// Evaluates expressions on one document.
#[derive(Debug)]
pub struct Evaluator<'d> {
    document: &'d Document,
    symbols: &'d DocumentSymbols,
    cost_limit: u64,
    cost: u64,
    /// ID to element, made on the first call of `id()`.
    ids: Option<Map<&'d str, NodeId>>,
    /// Namespaces in scope, by scope.
    namespaces: Map<u32, NamespaceList<'d>>,
}

impl<'d> Evaluator<'d> {
    /// An evaluator whose every evaluation may cost up to `cost_limit` units.
    pub fn new(document: &'d Document, symbols: &'d DocumentSymbols, cost_limit: u64) -> Self {
        Evaluator { document, symbols, cost_limit, cost: 0, ids: None, namespaces: Map::default() }
    }

    /// The document.
    pub fn document(&self) -> &'d Document {
        self.document
    }

    /// What the last evaluation cost, in units.
    pub fn cost(&self) -> u64 {
        self.cost
    }

    /// `boolean()` of an expression, evaluated at the document node.
    ///
    /// # Errors
    /// If it costs more than the limit.
    pub fn boolean(&mut self, query: Query<'_>, constants: &[ConstantRef<'_>]) -> Result<bool, EvaluateError> {
        let root = Context { node: NodeRef::ROOT, position: 1, size: 1 };
        Run::new(self, query, constants).boolean(query.root, root)
    }

    /// The value of an expression at a node.
    ///
    /// # Errors
    /// If it costs more than the limit.
    pub fn value(
        &mut self,
        query: Query<'_>,
        constants: &[ConstantRef<'_>],
        node: NodeRef,
    ) -> Result<Value, EvaluateError> {
        self.evaluate_expr(query, query.root, constants, node, 1, 1)
    }

    /// The value of a subexpression at a node with a context position and size.
    ///
    /// # Errors
    /// If it costs more than the limit.
    pub fn evaluate_expr(
        &mut self,
        query: Query<'_>,
        expr: ExprId,
        constants: &[ConstantRef<'_>],
        node: NodeRef,
        position: usize,
        size: usize,
    ) -> Result<Value, EvaluateError> {
        let mut run = Run::new(self, query, constants);
        let context = Context { node, position, size };
        Ok(match run.type_of(expr) {
            Type::NodeSet => Value::Nodes(run.nodes(expr, context)?.into_vec()),
            Type::String => Value::String(run.string(expr, context)?.into_owned()),
            Type::Number => Value::Number(run.number(expr, context)?),
            Type::Boolean => Value::Boolean(run.boolean(expr, context)?),
        })
    }

    /// The nodes that one step selects from nodes in document order, its first `predicates` predicates applied.
    pub(crate) fn step_nodes(
        &mut self,
        query: Query<'_>,
        constants: &[ConstantRef<'_>],
        nodes: &[NodeRef],
        step: Step,
        predicates: usize,
    ) -> Result<Vec<NodeRef>, EvaluateError> {
        Run::new(self, query, constants).step(nodes, step, predicates)
    }

    /// The nodes at which an expression that does not look at positions is true.
    pub(crate) fn holding(
        &mut self,
        query: Query<'_>,
        constants: &[ConstantRef<'_>],
        expr: ExprId,
        nodes: &[NodeRef],
    ) -> Result<Vec<NodeRef>, EvaluateError> {
        let mut run = Run::new(self, query, constants);
        run.nesting = 1;
        let mut holding = Vec::new();
        for &node in nodes {
            if run.boolean(expr, Context::of(node))? {
                holding.push(node);
            }
        }
        Ok(holding)
    }

    /// The nodes that a node-set expression selects from any of several context nodes.
    pub(crate) fn selected(
        &mut self,
        query: Query<'_>,
        constants: &[ConstantRef<'_>],
        expr: ExprId,
        nodes: &[NodeRef],
    ) -> Result<Vec<NodeRef>, EvaluateError> {
        let mut run = Run::new(self, query, constants);
        run.nesting = 1;
        let mut selected = Vec::new();
        for &node in nodes {
            selected.extend_from_slice(&run.nodes(expr, Context::of(node))?);
        }
        axes::in_order(&mut selected);
        Ok(selected)
    }

    /// The string-value of a node (§5).
    pub fn string_value(&self, node: NodeRef) -> String {
        match node.namespace_number() {
            Some(number) => {
                self.document.namespaces(node.id()).get(number).map_or(String::new(), |(_, uri)| (*uri).into())
            }
            None => self.document.string_value(node.id()).into(),
        }
    }

    /// `string()` of a value (§4.2).
    pub fn to_text(&self, value: &Value) -> String {
        match value {
            Value::Nodes(nodes) => nodes.first().map_or(String::new(), |node| self.string_value(*node)),
            Value::String(text) => text.clone(),
            Value::Number(value) => number::to_string(*value),
            Value::Boolean(value) => value.to_string(),
        }
    }
}

/// Context node, position and size (§1).
#[derive(Clone, Copy, Debug)]
struct Context {
    node: NodeRef,
    position: usize,
    size: usize,
}

impl Context {
    /// For expressions that do not look at position and size.
    fn of(node: NodeRef) -> Self {
        Context { node, position: 1, size: 1 }
    }
}

/// A remembered value of an expression that does not depend on the context.
#[derive(Clone, Debug)]
enum Known<'r> {
    Nodes(Rc<Closed<'r>>),
    String(Rc<str>),
    Number(f64),
    Boolean(bool),
}

/// Cost of remembering one value: the limit bounds memory too.
const REMEMBERING: u64 = 4;

const CLOSED_KNOWN: u8 = 1;
const CLOSED: u8 = 2;
const POSITIONAL_KNOWN: u8 = 4;
const POSITIONAL: u8 = 8;
const POSITION_KNOWN: u8 = 16;
const POSITION: u8 = 32;

/// One evaluation.
struct Run<'r, 'd> {
    evaluator: &'r mut Evaluator<'d>,
    document: &'r Document,
    query: Query<'r>,
    constants: &'r [ConstantRef<'r>],
    /// Static properties by expression, found when first asked for.
    flags: Vec<u8>,
    /// Predicates around the current expression.
    nesting: usize,
    /// Enclosing predicates that may meet the same node again.
    repeats: usize,
    closed: Map<ExprId, Known<'r>>,
    truths: Map<(ExprId, NodeRef), bool>,
    numbers: Map<(ExprId, NodeRef), f64>,
}

impl<'r, 'd: 'r> Run<'r, 'd> {
    fn new(evaluator: &'r mut Evaluator<'d>, query: Query<'r>, constants: &'r [ConstantRef<'r>]) -> Self {
        evaluator.cost = 0;
        Run {
            document: evaluator.document,
            evaluator,
            query,
            constants,
            flags: Vec::new(),
            nesting: 0,
            repeats: 0,
            closed: Map::default(),
            truths: Map::default(),
            numbers: Map::default(),
        }
    }
}

impl<'r> Run<'r, '_> {
    fn charge(&mut self, units: u64) -> Result<(), EvaluateError> {
        let limit = self.evaluator.cost_limit;
        self.evaluator.cost = self.evaluator.cost.saturating_add(units);
        if self.evaluator.cost > limit { Err(EvaluateError::CostLimit { limit }) } else { Ok(()) }
    }

    fn charge_text(&mut self, bytes: usize) -> Result<(), EvaluateError> {
        self.charge(1 + bytes as u64 / 16)
    }

    fn type_of(&self, expr: ExprId) -> Type {
        semantics::static_type(self.query, expr)
    }

    fn flag(&mut self, expr: ExprId, known: u8, flag: u8, find: fn(Query<'_>, ExprId) -> bool) -> bool {
        if self.flags.is_empty() {
            self.flags.resize(self.query.cells.len(), 0);
        }
        let flags = self.flags[expr as usize];
        if flags & known != 0 {
            return flags & flag != 0;
        }
        let found = find(self.query, expr);
        self.flags[expr as usize] |= known | if found { flag } else { 0 };
        found
    }

    fn is_closed(&mut self, expr: ExprId) -> bool {
        self.flag(expr, CLOSED_KNOWN, CLOSED, semantics::is_closed)
    }

    fn is_positional(&mut self, expr: ExprId) -> bool {
        self.flag(expr, POSITIONAL_KNOWN, POSITIONAL, semantics::is_positional)
    }

    fn uses_position(&mut self, expr: ExprId) -> bool {
        self.flag(expr, POSITION_KNOWN, POSITION, semantics::uses_position)
    }

    /// Whether a number or truth value is worth remembering for this node: it will come again and is no constant.
    fn is_remembered(&mut self, expr: ExprId) -> bool {
        if self.repeats == 0 {
            return false;
        }
        match self.query.expr(expr) {
            Expr::StringConstant(_) | Expr::NumberConstant(_) => false,
            Expr::Call(Function::Position | Function::Last | Function::True | Function::False, _) => false,
            _ => !self.uses_position(expr),
        }
    }

    fn namespaces(&mut self, element: NodeId) -> Result<NamespaceList<'r>, EvaluateError> {
        let scope = self.document.node(element).scope;
        if let Some(found) = self.evaluator.namespaces.get(&scope) {
            return Ok(found.clone());
        }
        let document = self.evaluator.document;
        let declared = document.scopes(element).count() as u64;
        self.charge(declared.saturating_mul(declared))?;
        let found: NamespaceList<'_> = document.namespaces(element).into();
        self.evaluator.namespaces.insert(scope, found.clone());
        Ok(found)
    }

    fn string_of(&mut self, node: NodeRef) -> Result<&'r str, EvaluateError> {
        match node.namespace_number() {
            Some(number) => Ok(self.namespaces(node.id())?.get(number).map_or("", |(_, uri)| *uri)),
            None => Ok(self.document.string_value(node.id())),
        }
    }

    /// Remembers a value that does not depend on the context, where it would be computed again.
    fn known<T>(
        &mut self,
        expr: ExprId,
        context: Context,
        compute: fn(&mut Self, ExprId, Context) -> Result<T, EvaluateError>,
        keep: fn(T) -> Known<'r>,
        give: fn(&Known<'r>) -> Option<T>,
    ) -> Result<T, EvaluateError> {
        if self.nesting == 0 || !self.is_closed(expr) {
            return compute(self, expr, context);
        }
        if let Some(known) = self.closed.get(&expr).and_then(give) {
            return Ok(known);
        }
        let nesting = std::mem::replace(&mut self.nesting, 0);
        let computed = compute(self, expr, context);
        self.nesting = nesting;
        let known = keep(computed?);
        let value = give(&known);
        self.closed.insert(expr, known);
        match value {
            Some(value) => Ok(value),
            None => compute(self, expr, context),
        }
    }

    fn boolean(&mut self, expr: ExprId, context: Context) -> Result<bool, EvaluateError> {
        self.known(expr, context, Self::remembered_boolean, Known::Boolean, |known| match known {
            Known::Boolean(value) => Some(*value),
            _ => None,
        })
    }

    fn remembered_boolean(&mut self, expr: ExprId, context: Context) -> Result<bool, EvaluateError> {
        if !self.is_remembered(expr) {
            return self.fresh_boolean(expr, context);
        }
        if let Some(value) = self.truths.get(&(expr, context.node)) {
            return Ok(*value);
        }
        let value = self.fresh_boolean(expr, context)?;
        self.charge(REMEMBERING)?;
        self.truths.insert((expr, context.node), value);
        Ok(value)
    }

    fn fresh_boolean(&mut self, expr: ExprId, context: Context) -> Result<bool, EvaluateError> {
        self.charge(1)?;
        match self.query.expr(expr) {
            Expr::Or(a, b) => Ok(self.boolean(a, context)? || self.boolean(b, context)?),
            Expr::And(a, b) => Ok(self.boolean(a, context)? && self.boolean(b, context)?),
            Expr::Compare(op, a, b) => self.compare(op, a, b, context),
            Expr::Union(a, b) => Ok(self.boolean(a, context)? || self.boolean(b, context)?),
            Expr::Path(start, first) => Ok(!self.path(start, first, context, 1)?.is_empty()),
            Expr::Call(function, arguments) if self.type_of(expr) == Type::Boolean => {
                self.boolean_call(function, arguments, context)
            }
            _ => Ok(match self.type_of(expr) {
                Type::NodeSet => !self.nodes(expr, context)?.is_empty(),
                Type::String => !self.string(expr, context)?.is_empty(),
                _ => number_is_true(self.number(expr, context)?),
            }),
        }
    }

    fn number(&mut self, expr: ExprId, context: Context) -> Result<f64, EvaluateError> {
        self.known(expr, context, Self::remembered_number, Known::Number, |known| match known {
            Known::Number(value) => Some(*value),
            _ => None,
        })
    }

    fn remembered_number(&mut self, expr: ExprId, context: Context) -> Result<f64, EvaluateError> {
        if !self.is_remembered(expr) {
            return self.fresh_number(expr, context);
        }
        if let Some(value) = self.numbers.get(&(expr, context.node)) {
            return Ok(*value);
        }
        let value = self.fresh_number(expr, context)?;
        self.charge(REMEMBERING)?;
        self.numbers.insert((expr, context.node), value);
        Ok(value)
    }

    fn fresh_number(&mut self, expr: ExprId, context: Context) -> Result<f64, EvaluateError> {
        self.charge(1)?;
        match self.query.expr(expr) {
            Expr::NumberConstant(slot) => Ok(match self.constants[slot as usize] {
                ConstantRef::Number(value) => value,
                ConstantRef::String(text) => to_number(text),
            }),
            Expr::Negate(a) => Ok(-self.number(a, context)?),
            Expr::Arithmetic(op, a, b) => {
                let (a, b) = (self.number(a, context)?, self.number(b, context)?);
                Ok(match op {
                    ArithmeticOp::Add => a + b,
                    ArithmeticOp::Subtract => a - b,
                    ArithmeticOp::Multiply => a * b,
                    ArithmeticOp::Divide => a / b,
                    ArithmeticOp::Modulo => a % b,
                })
            }
            Expr::Call(function, arguments) if self.type_of(expr) == Type::Number => {
                self.number_call(function, arguments, context)
            }
            _ if self.type_of(expr) == Type::Boolean => Ok(f64::from(u8::from(self.boolean(expr, context)?))),
            _ => {
                let text = self.string(expr, context)?;
                self.charge_text(text.len())?;
                Ok(to_number(&text))
            }
        }
    }

    fn string(&mut self, expr: ExprId, context: Context) -> Result<Cow<'r, str>, EvaluateError> {
        // Only calls are worth keeping: other strings are constants or borrowed from the document.
        if self.nesting > 0 && matches!(self.query.expr(expr), Expr::Call(..)) {
            let keep = |text: Cow<'r, str>| Known::String((*text).into());
            return self.known(expr, context, Self::fresh_string, keep, |known| match known {
                Known::String(text) => Some(Cow::Owned(text.to_string())),
                _ => None,
            });
        }
        self.fresh_string(expr, context)
    }

    fn fresh_string(&mut self, expr: ExprId, context: Context) -> Result<Cow<'r, str>, EvaluateError> {
        self.charge(1)?;
        match self.query.expr(expr) {
            Expr::StringConstant(slot) => Ok(match self.constants[slot as usize] {
                ConstantRef::String(text) => Cow::Borrowed(text),
                ConstantRef::Number(value) => Cow::Owned(number::to_string(value)),
            }),
            Expr::Call(function, arguments) if self.type_of(expr) == Type::String => {
                self.string_call(function, arguments, context)
            }
            _ => match self.type_of(expr) {
                Type::NodeSet => match self.nodes(expr, context)?.first() {
                    Some(node) => self.string_of(*node).map(Cow::Borrowed),
                    None => Ok(Cow::Borrowed("")),
                },
                Type::Boolean => Ok(Cow::Borrowed(if self.boolean(expr, context)? { "true" } else { "false" })),
                _ => Ok(Cow::Owned(number::to_string(self.number(expr, context)?))),
            },
        }
    }

    fn nodes(&mut self, expr: ExprId, context: Context) -> Result<Nodes<'r>, EvaluateError> {
        let keep = |nodes: Nodes<'r>| {
            Known::Nodes(Rc::new(Closed { nodes: nodes.into_vec(), strings: OnceCell::new(), range: OnceCell::new() }))
        };
        self.known(expr, context, Self::fresh_nodes, keep, |known| match known {
            Known::Nodes(closed) => Some(Nodes::Shared(closed.clone())),
            _ => None,
        })
    }

    fn fresh_nodes(&mut self, expr: ExprId, context: Context) -> Result<Nodes<'r>, EvaluateError> {
        self.charge(1)?;
        Ok(Nodes::Own(match self.query.expr(expr) {
            Expr::Path(start, first) => self.path(start, first, context, usize::MAX)?,
            Expr::Filter(primary, predicates) => {
                let nodes = self.nodes(primary, context)?.into_vec();
                self.filter(nodes, predicates)?
            }
            Expr::Union(a, b) => {
                let mut nodes = self.nodes(a, context)?.into_vec();
                let more = self.nodes(b, context)?;
                nodes.extend_from_slice(&more);
                self.charge(nodes.len() as u64)?;
                axes::in_order(&mut nodes);
                nodes
            }
            Expr::Call(Function::Id, arguments) => self.id_call(arguments, context)?,
            _ => Vec::new(), // the parser admits no other node-sets
        }))
    }

    /// A location path; `most` lets a test for existence stop at the first node.
    fn path(
        &mut self,
        start: PathStart,
        first: StepId,
        context: Context,
        most: usize,
    ) -> Result<Vec<NodeRef>, EvaluateError> {
        let mut nodes = match start {
            PathStart::Root => vec![NodeRef::ROOT],
            PathStart::Context => vec![context.node],
            PathStart::Expr(primary) => self.nodes(primary, context)?.into_vec(),
        };
        for step in self.query.steps(first) {
            if nodes.is_empty() {
                break;
            }
            nodes = if step.next == NONE && step.predicates == NONE {
                self.axis_from_set(&nodes, step.axis, step.test, most)?
            } else {
                self.step(&nodes, step, usize::MAX)?
            };
        }
        Ok(nodes)
    }

    /// One step from nodes in document order, with the first `count` of its predicates.
    fn step(&mut self, nodes: &[NodeRef], step: Step, count: usize) -> Result<Vec<NodeRef>, EvaluateError> {
        let list: Vec<ExprId> = self.query.list(step.predicates).take(count).collect();
        let exclusive = axes::is_exclusive(step.axis);
        let positional = list.iter().any(|predicate| self.is_positional(*predicate));
        if !positional {
            let mut found = self.axis_from_set(nodes, step.axis, step.test, usize::MAX)?;
            let again = !exclusive && self.nesting > 0;
            for predicate in list {
                found = self.retain(found, predicate, again)?;
            }
            return Ok(found);
        }
        let most = self.most_needed(&list);
        let again = !exclusive && (self.nesting > 0 || nodes.len() > 1);
        let mut found = Vec::new();
        for &node in nodes {
            let mut selected = self.axis_from_node(node, step.axis, step.test, most)?;
            for &predicate in &list {
                selected = self.retain(selected, predicate, again)?;
            }
            found.append(&mut selected);
        }
        self.charge(found.len() as u64)?;
        axes::in_order(&mut found);
        Ok(found)
    }

    /// How many nodes of an axis are enough: a first predicate `[3]` needs three.
    fn most_needed(&self, predicates: &[ExprId]) -> usize {
        let Some(Expr::NumberConstant(slot)) = predicates.first().map(|first| self.query.expr(*first)) else {
            return usize::MAX;
        };
        match self.constants[slot as usize] {
            ConstantRef::Number(value) if value >= 1.0 => value as usize, // saturates
            _ => 1,
        }
    }

    /// The nodes, in document order, that pass the predicates of a filter.
    fn filter(&mut self, mut nodes: Vec<NodeRef>, list: ListId) -> Result<Vec<NodeRef>, EvaluateError> {
        for predicate in self.query.list(list) {
            let again = self.nesting > 0;
            nodes = self.retain(nodes, predicate, again)?;
        }
        Ok(nodes)
    }

    /// The nodes that pass one predicate; their order gives the positions.
    fn retain(
        &mut self,
        mut nodes: Vec<NodeRef>,
        predicate: ExprId,
        again: bool,
    ) -> Result<Vec<NodeRef>, EvaluateError> {
        self.nesting += 1;
        self.repeats += usize::from(again);
        let positional = self.is_positional(predicate);
        let numeric = self.type_of(predicate) == Type::Number;
        let size = nodes.len();
        let mut kept = 0;
        for at in 0..size {
            let node = nodes[at];
            let passes = if numeric {
                let context = Context { node, position: at + 1, size };
                self.number(predicate, context)? == (at + 1) as f64
            } else if positional {
                self.boolean(predicate, Context { node, position: at + 1, size })?
            } else {
                self.boolean(predicate, Context::of(node))?
            };
            if passes {
                nodes[kept] = node;
                kept += 1;
            }
        }
        nodes.truncate(kept);
        self.nesting -= 1;
        self.repeats -= usize::from(again);
        Ok(nodes)
    }
}
