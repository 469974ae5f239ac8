//! The exact evaluator of transformations: XQuery on one document, expression by expression.
//!
//! It is the oracle of the shared plans, which also leave to it whatever they have no operator for. Everything it does
//! is counted, so that a query costs bounded time and memory.

mod arithmetic;
mod flwor;
mod functions;
mod paths;

pub use flwor::{Tuple, sort_tuples};
pub use paths::may_be_positional;

use super::compare;
use super::construct::{Builder, constructed, write};
use super::error::TransformError;
use super::value::{Atomic, AttributeName, Event, Item, Sequence, Text, single};
use crate::document::{Document, NodeId, NodeKind, Serializer};
use crate::xquery::ast::{Comparison, ElementConstructor, Expr, Literal, Module, NodeTest, Part};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use smallvec::SmallVec;

/// Result of an evaluation.
pub type Outcome<T> = Result<T, TransformError>;

/// Cost of an item that is kept: the limit bounds memory too.
const KEEPING: u64 = 8;

/// Context item, position and size (XQuery 1.0 §2.1.2).
#[derive(Clone, Debug)]
pub struct Focus<'a> {
    /// The context item.
    pub item: Item<'a>,
    /// Its position, from 1.
    pub position: usize,
    /// How many items there are.
    pub size: usize,
}

impl Focus<'_> {
    /// A node alone.
    pub fn node(node: NodeId) -> Focus<'static> {
        Focus { item: Item::Node(node), position: 1, size: 1 }
    }
}

/// Evaluates expressions on one document.
#[derive(Debug)]
pub struct Evaluator<'a> {
    document: &'a Document,
    cost_limit: u64,
    cost: u64,
    /// Values of variables, by slot.
    slots: Vec<Sequence<'a>>,
    /// Names of the document that pass a name test, by the test's place in memory.
    names: HashMap<*const NodeTest, SmallVec<[u32; 2]>, FixedState>,
}

impl<'a> Evaluator<'a> {
    /// An evaluator whose every evaluation may cost up to `cost_limit` units.
    pub fn new(document: &'a Document, cost_limit: u64) -> Evaluator<'a> {
        Evaluator { document, cost_limit, cost: 0, slots: Vec::new(), names: HashMap::default() }
    }

    /// The document.
    pub fn document(&self) -> &'a Document {
        self.document
    }

    /// Starts counting anew, for a query of this many variables.
    pub fn restart(&mut self, slots: u32) {
        self.cost = 0;
        self.slots.clear();
        self.slots.resize(slots as usize, Sequence::new());
    }

    /// Makes room for this many variables.
    pub fn reserve(&mut self, slots: u32) {
        if self.slots.len() < slots as usize {
            self.slots.resize(slots as usize, Sequence::new());
        }
    }

    /// Binds a variable.
    pub fn bind(&mut self, slot: u32, value: Sequence<'a>) {
        self.slots[slot as usize] = value;
    }

    /// The XML text of a query's result.
    ///
    /// # Errors
    /// A dynamic error, or more cost than the limit.
    pub fn text(&mut self, module: &'a Module) -> Outcome<String> {
        let events = self.events(module)?;
        let mut serializer = Serializer::default();
        write(self.document, &events, &mut serializer)?;
        Ok(serializer.into_text())
    }

    /// A query's result as content: nothing for an empty sequence.
    ///
    /// # Errors
    /// A dynamic error, or more cost than the limit.
    pub fn events(&mut self, module: &'a Module) -> Outcome<Vec<Event<'a>>> {
        self.restart(module.slots);
        let mut builder = Builder::new(self.document);
        self.emit(&module.body, &Focus::node(0), &mut builder)?;
        Ok(builder.into_events())
    }

    /// The value of an expression.
    ///
    /// # Errors
    /// A dynamic error, or more cost than the limit.
    pub fn value(&mut self, expr: &'a Expr, focus: &Focus<'a>) -> Outcome<Sequence<'a>> {
        self.charge(1)?;
        match expr {
            Expr::Literal(literal) => Ok(single(literal_value(literal))),
            Expr::Sequence(members) => {
                let mut all = Sequence::new();
                for member in members {
                    let value = self.value(member, focus)?;
                    self.charge(KEEPING * value.len() as u64)?;
                    all.extend(value);
                }
                Ok(all)
            }
            Expr::Variable(slot) => {
                let value = self.slots[*slot as usize].clone();
                self.charge(value.len() as u64)?;
                Ok(value)
            }
            Expr::Root => Ok(Sequence::from_iter([Item::Node(0)])),
            Expr::Context => Ok(Sequence::from_iter([focus.item.clone()])),
            Expr::Flwor(flwor) => self.flwor(flwor, focus),
            Expr::Quantified { every, bindings, satisfies } => {
                let found = self.quantified(bindings, satisfies, !*every, focus)?;
                Ok(single(Atomic::Boolean(found != *every)))
            }
            Expr::If(condition, yes, no) => {
                let branch = if self.truth(condition, focus)? { yes } else { no };
                self.value(branch, focus)
            }
            Expr::Or(..) | Expr::And(..) => Ok(single(Atomic::Boolean(self.truth(expr, focus)?))),
            Expr::Compare(comparison, a, b) => self.compare(*comparison, a, b, focus),
            Expr::Arithmetic(op, a, b) => self.arithmetic(*op, a, b, focus),
            Expr::Negate(a) => self.negate(a, focus),
            Expr::Range(a, b) => self.range(a, b, focus),
            Expr::Combine(op, a, b) => self.combine(*op, a, b, focus),
            Expr::Path(path) => self.path(path, focus),
            Expr::Filter(primary, predicates) => self.filter(primary, predicates, focus),
            Expr::Call(function, arguments) => self.call(*function, arguments, focus),
            Expr::Element(_)
            | Expr::ComputedElement(..)
            | Expr::ComputedAttribute(..)
            | Expr::ComputedText(_)
            | Expr::Comment(_)
            | Expr::ProcessingInstruction(..) => {
                let mut builder = Builder::new(self.document);
                self.emit(expr, focus, &mut builder)?;
                self.charge(KEEPING * builder.event_count() as u64)?;
                let events = builder.into_events();
                // Only a computed text of an empty sequence makes no node.
                Ok(if events.is_empty() { Sequence::new() } else { Sequence::from_iter([constructed(events)]) })
            }
        }
    }

    /// Adds the items of an expression's value to content, constructed nodes without making them first.
    ///
    /// # Errors
    /// A dynamic error, or more cost than the limit.
    pub fn emit(&mut self, expr: &'a Expr, focus: &Focus<'a>, builder: &mut Builder<'a>) -> Outcome<()> {
        match expr {
            Expr::Sequence(members) => {
                for member in members {
                    self.emit(member, focus, builder)?;
                }
                Ok(())
            }
            Expr::If(condition, yes, no) => {
                let branch = if self.truth(condition, focus)? { yes } else { no };
                self.emit(branch, focus, builder)
            }
            Expr::Flwor(flwor) => self.emit_flwor(flwor, focus, builder),
            Expr::Element(element) => self.emit_element(element, focus, builder),
            Expr::ComputedElement(name, content) => {
                builder.start(name, &[]);
                self.emit(content, focus, builder)?;
                builder.end();
                self.charge(KEEPING)
            }
            Expr::ComputedAttribute(name, content) => {
                let mut text = String::new();
                self.join_into(content, focus, &mut text)?;
                builder.attribute(AttributeName::Constructed(name), text.into())
            }
            Expr::ComputedText(content) => {
                if !self.value(content, focus)?.is_empty() {
                    let mut text = String::new();
                    self.join_into(content, focus, &mut text)?;
                    builder.text(text.into());
                }
                Ok(())
            }
            Expr::Comment(text) => {
                builder.comment(text);
                self.charge(KEEPING)
            }
            Expr::ProcessingInstruction(target, data) => {
                builder.processing_instruction(target, data);
                self.charge(KEEPING)
            }
            _ => {
                let value = self.value(expr, focus)?;
                self.charge(KEEPING * value.len() as u64)?;
                value.iter().try_for_each(|item| builder.item(item))
            }
        }
    }

    /// Begins a constructed element, attributes included.
    ///
    /// # Errors
    /// A dynamic error, or more cost than the limit.
    pub fn open_element(
        &mut self,
        element: &'a ElementConstructor,
        focus: &Focus<'a>,
        builder: &mut Builder<'a>,
    ) -> Outcome<()> {
        self.charge(KEEPING)?;
        builder.start(&element.name, &element.namespaces);
        for (name, parts) in &element.attributes {
            let value = match &parts[..] {
                [] => Text::Borrowed(""),
                [Part::Text(text)] => Text::Borrowed(text),
                parts => {
                    let mut text = String::new();
                    for part in parts {
                        match part {
                            Part::Text(literal) => text.push_str(literal),
                            Part::Expr(expr) => self.join_into(expr, focus, &mut text)?,
                        }
                    }
                    text.into()
                }
            };
            builder.attribute(AttributeName::Constructed(name), value)?;
        }
        Ok(())
    }

    fn emit_element(
        &mut self,
        element: &'a ElementConstructor,
        focus: &Focus<'a>,
        builder: &mut Builder<'a>,
    ) -> Outcome<()> {
        self.open_element(element, focus, builder)?;
        for part in &element.content {
            match part {
                Part::Text(text) => builder.text(Text::Borrowed(text)),
                Part::Expr(expr) => {
                    builder.boundary();
                    self.emit(expr, focus, builder)?;
                    builder.boundary();
                }
            }
        }
        builder.end();
        Ok(())
    }

    /// Appends the atomised value of an expression, its items joined by single spaces.
    ///
    /// # Errors
    /// A dynamic error, or more cost than the limit.
    pub fn join_into(&mut self, expr: &'a Expr, focus: &Focus<'a>, text: &mut String) -> Outcome<()> {
        for (at, value) in self.atomized(expr, focus)?.iter().enumerate() {
            if at > 0 {
                text.push(' ');
            }
            text.push_str(value.to_text().as_str());
        }
        self.charge_text(text.len())
    }

    /// Counts units of cost.
    ///
    /// # Errors
    /// If there are more than the limit.
    pub fn charge(&mut self, units: u64) -> Outcome<()> {
        self.cost = self.cost.saturating_add(units);
        if self.cost > self.cost_limit { Err(TransformError::CostLimit { limit: self.cost_limit }) } else { Ok(()) }
    }

    fn charge_text(&mut self, bytes: usize) -> Outcome<()> {
        self.charge(1 + bytes as u64 / 16)
    }

    /// The typed value of an item; without a schema text is untyped.
    pub(super) fn atom(&mut self, item: &Item<'a>) -> Outcome<Atomic<'a>> {
        Ok(match item {
            Item::Atomic(value) => value.clone(),
            Item::Node(node) => {
                let text = Text::Borrowed(self.document.string_value(*node));
                match self.document.node(*node).kind {
                    NodeKind::Comment | NodeKind::ProcessingInstruction => Atomic::String(text),
                    _ => Atomic::Untyped(text),
                }
            }
            Item::Constructed(fragment) => {
                let text = fragment.text(self.document);
                self.charge_text(text.len())?;
                if fragment.is_string_valued() { Atomic::String(text.into()) } else { Atomic::Untyped(text.into()) }
            }
        })
    }

    /// The atomised value of an expression.
    fn atomized(&mut self, expr: &'a Expr, focus: &Focus<'a>) -> Outcome<SmallVec<[Atomic<'a>; 1]>> {
        let value = self.value(expr, focus)?;
        self.charge(value.len() as u64)?;
        value.iter().map(|item| self.atom(item)).collect()
    }

    /// The atomised value of an expression that gives one item or none.
    fn atomized_one(&mut self, expr: &'a Expr, focus: &Focus<'a>, what: &str) -> Outcome<Option<Atomic<'a>>> {
        let value = self.value(expr, focus)?;
        match &value[..] {
            [] => Ok(None),
            [item] => Ok(Some(self.atom(item)?)),
            more => Err(TransformError::dynamic("XPTY0004", format!("{what} is one item, not {}", more.len()))),
        }
    }

    /// The effective boolean value of an expression (XQuery 1.0 §2.4.3).
    ///
    /// # Errors
    /// A dynamic error, or more cost than the limit.
    pub fn truth(&mut self, expr: &'a Expr, focus: &Focus<'a>) -> Outcome<bool> {
        match expr {
            Expr::Or(a, b) => Ok(self.truth(a, focus)? || self.truth(b, focus)?),
            Expr::And(a, b) => Ok(self.truth(a, focus)? && self.truth(b, focus)?),
            _ => {
                let value = self.value(expr, focus)?;
                effective_boolean(&value)
            }
        }
    }

    fn compare(
        &mut self,
        comparison: Comparison,
        a: &'a Expr,
        b: &'a Expr,
        focus: &Focus<'a>,
    ) -> Outcome<Sequence<'a>> {
        let holds = match comparison {
            Comparison::General(op) => {
                let (a, b) = (self.atomized(a, focus)?, self.atomized(b, focus)?);
                self.charge(a.len() as u64 * b.len() as u64)?;
                let mut holds = false;
                'pairs: for a in &a {
                    for b in &b {
                        if compare::general(op, a, b)? {
                            holds = true;
                            break 'pairs;
                        }
                    }
                }
                holds
            }
            Comparison::Value(op) => {
                let a = self.atomized_one(a, focus, "an operand of a value comparison")?;
                let b = self.atomized_one(b, focus, "an operand of a value comparison")?;
                match (a, b) {
                    (Some(a), Some(b)) => compare::value(op, &a, &b)?,
                    _ => return Ok(Sequence::new()),
                }
            }
            Comparison::Same | Comparison::Before | Comparison::After => {
                let (Some(a), Some(b)) = (self.one_node(a, focus)?, self.one_node(b, focus)?) else {
                    return Ok(Sequence::new());
                };
                match comparison {
                    Comparison::Same => a == b,
                    Comparison::Before => a < b,
                    _ => a > b,
                }
            }
        };
        Ok(single(Atomic::Boolean(holds)))
    }

    fn one_node(&mut self, expr: &'a Expr, focus: &Focus<'a>) -> Outcome<Option<NodeId>> {
        match &self.value(expr, focus)?[..] {
            [] => Ok(None),
            [Item::Node(node)] => Ok(Some(*node)),
            _ => {
                Err(TransformError::dynamic("XPTY0004", "an operand of a node comparison is one node of the document"))
            }
        }
    }
}

fn literal_value(literal: &Literal) -> Atomic<'_> {
    match literal {
        Literal::String(text) => Atomic::String(Text::Borrowed(text)),
        Literal::Integer(value) => Atomic::Integer(*value),
        Literal::Decimal(value) => Atomic::Decimal(*value),
        Literal::Double(value) => Atomic::Double(value.0),
    }
}

/// The effective boolean value of a sequence.
///
/// # Errors
/// `FORG0006` where it has none.
pub fn effective_boolean(value: &[Item<'_>]) -> Outcome<bool> {
    match value {
        [] => Ok(false),
        [Item::Node(_) | Item::Constructed(_), ..] => Ok(true),
        [Item::Atomic(value)] => Ok(match value {
            Atomic::Boolean(value) => *value,
            Atomic::Untyped(text) | Atomic::String(text) => !text.as_str().is_empty(),
            Atomic::Integer(value) => *value != 0,
            Atomic::Decimal(value) => !value.is_zero(),
            Atomic::Double(value) => *value != 0.0 && !value.is_nan(),
        }),
        [Item::Atomic(_), ..] => {
            Err(TransformError::dynamic("FORG0006", "a sequence of several atomic values is neither true nor false"))
        }
    }
}
