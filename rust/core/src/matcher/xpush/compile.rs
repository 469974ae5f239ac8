//! From the rows of a segment to states of the automaton.
//!
//! What the automaton can not say is approximated: by something that holds whenever the expression does, or, below a
//! negation, by something that holds only if it does. Such rows are *inexact*; where the automaton says yes, the exact
//! evaluator has the last word.

use super::automaton::{Automaton, Reach, State, Test};
use super::builder::{AutomatonBuilder, FALSE, TRUE};
use crate::index::{Comparand, Segment, Signature, Value, View};
use crate::predicates::Strings;
use crate::xpath::ast::{Axis, CompareOp, Expr, ExprId, Function, ListId, NONE, NodeTest, PathStart, Query, Step};
use crate::xpath::evaluate::number::to_number;
use crate::xpath::semantics::is_positional;
use crate::xpath::symbols::{NO_SYMBOL, NameTest, SymbolTable, Symbols};

/// Parts of one row that are compiled; an expression that unfolds to more is approximated.
const BUDGET: u32 = 20_000;

/// The automaton of all rows of a segment.
pub(super) fn compile(segment: &Segment) -> Automaton {
    let view = segment.view();
    let mut builder = AutomatonBuilder::default();
    let mut cells = Vec::new();
    for number in 0..view.signature_count() {
        let signature = view.signature(number);
        let root = view.query(&signature).extract(&mut cells);
        let query = Query { cells: &cells, root };
        for row in signature.rows.clone() {
            let mut compiler = Compiler {
                builder: &mut builder,
                query,
                view,
                signature: &signature,
                row,
                strings: segment.strings(),
                symbols: segment.symbols(),
                budget: BUDGET,
                exact: true,
            };
            // Signatures that are not plain may have positions, which is found on the way, or be huge: recursion below
            // is as deep as an expression has parts.
            let small = query.cells.len() <= MAX_CELLS;
            let state = if small { compiler.boolean(query.root, At::Document, true) } else { compiler.unknown(true) };
            let exact = compiler.exact;
            builder.row(row, state, exact);
        }
    }
    builder.freeze()
}

/// Larger expressions are left to the exact evaluator.
const MAX_CELLS: usize = 512;

/// Which kind of node a condition is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Document,
    Element,
    /// An attribute, text, comment or processing instruction: nothing is below it.
    Leaf(Leaf),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaf {
    Attribute,
    Text,
    Comment,
    Instruction,
}

/// What is asked of the last node of a path.
#[derive(Clone, Copy)]
enum Goal {
    Exists,
    Compare(CompareOp, Value),
    /// `contains` or `starts-with`.
    Pattern(Function, u32),
}

struct Compiler<'b, 'a> {
    builder: &'b mut AutomatonBuilder,
    query: Query<'a>,
    view: View<'a>,
    signature: &'a Signature,
    row: u32,
    strings: Strings<'a>,
    symbols: &'a Symbols,
    budget: u32,
    exact: bool,
}

impl Compiler<'_, '_> {
    /// Stands for something that the automaton can not say: true if more is asked for, false if less.
    fn unknown(&mut self, over: bool) -> State {
        self.exact = false;
        if over { TRUE } else { FALSE }
    }

    fn spend(&mut self) -> bool {
        self.budget = self.budget.saturating_sub(1);
        self.budget > 0
    }

    /// The state of an expression as a condition; `over` says on which side an approximation may err.
    fn boolean(&mut self, expr: ExprId, at: At, over: bool) -> State {
        if !self.spend() {
            return self.unknown(over);
        }
        match self.query.expr(expr) {
            Expr::And(a, b) => {
                let both = [self.boolean(a, at, over), self.boolean(b, at, over)];
                self.builder.and(&both)
            }
            Expr::Or(a, b) | Expr::Union(a, b) => {
                let both = [self.boolean(a, at, over), self.boolean(b, at, over)];
                self.builder.or(&both)
            }
            Expr::Path(start, first) => self.path(start, first, at, Goal::Exists, over),
            Expr::Compare(op, a, b) => match (self.constant(a), self.constant(b)) {
                (None, Some(value)) => self.nodes(a, at, Goal::Compare(op, value), over),
                (Some(value), None) => self.nodes(b, at, Goal::Compare(op.mirrored(), value), over),
                _ => self.unknown(over),
            },
            Expr::StringConstant(slot) => self.truth(|this| this.text_of(slot).is_some_and(|text| !text.is_empty())),
            Expr::NumberConstant(slot) => self.truth(|this| this.value_of(slot).as_number() != 0.0),
            Expr::Call(function, arguments) => self.call(function, arguments, at, over),
            Expr::Arithmetic(..) | Expr::Negate(_) | Expr::Filter(..) => self.unknown(over),
        }
    }

    fn truth(&self, holds: impl Fn(&Self) -> bool) -> State {
        if holds(self) { TRUE } else { FALSE }
    }

    fn value_of(&self, slot: u32) -> Value {
        self.view.value(self.signature, self.row, slot)
    }

    fn text_of(&self, slot: u32) -> Option<&str> {
        self.value_of(slot).as_string().map(|number| self.strings.get(number))
    }

    fn constant(&self, expr: ExprId) -> Option<Value> {
        match self.query.expr(expr) {
            Expr::StringConstant(slot) | Expr::NumberConstant(slot) => Some(self.value_of(slot)),
            _ => None,
        }
    }

    fn call(&mut self, function: Function, arguments: ListId, at: At, over: bool) -> State {
        let mut list = self.query.list(arguments);
        match (function, list.next(), list.next()) {
            (Function::True, None, None) => TRUE,
            (Function::False, None, None) => FALSE,
            (Function::Boolean, Some(argument), None) => self.boolean(argument, at, over),
            (Function::Not, Some(argument), None) => {
                let inner = self.boolean(argument, at, !over);
                self.builder.not(inner)
            }
            (Function::Contains | Function::StartsWith, Some(subject), Some(pattern)) => {
                let Some(number) = self.constant(pattern).and_then(Value::as_string) else {
                    return self.unknown(over);
                };
                if self.strings.get(number).is_empty() {
                    return TRUE; // without any node, too
                }
                // Only the first node counts. Where there may be several, any of them is as near as one can get.
                let sure = matches!(self.query.expr(subject), Expr::Path(_, first) if self.at_most_one(first));
                if !sure && !over {
                    return self.unknown(over);
                }
                self.exact &= sure;
                self.nodes(subject, at, Goal::Pattern(function, number), over)
            }
            _ => self.unknown(over),
        }
    }

    /// Whether steps lead to one node at most: `.`, or an attribute of a full name.
    fn at_most_one(&self, first: u32) -> bool {
        self.query.steps(first).all(|step| match (step.axis, step.test) {
            (Axis::SelfAxis, _) => true,
            (Axis::Attribute, NodeTest::Name(symbol)) => {
                matches!(self.symbols.resolve(symbol), NameTest::Expanded(..))
            }
            _ => false,
        })
    }

    /// "Some node of this node-set is as asked for."
    fn nodes(&mut self, expr: ExprId, at: At, goal: Goal, over: bool) -> State {
        if !self.spend() {
            return self.unknown(over);
        }
        match self.query.expr(expr) {
            Expr::Path(start, first) => self.path(start, first, at, goal, over),
            Expr::Union(a, b) => {
                let both = [self.nodes(a, at, goal, over), self.nodes(b, at, goal, over)];
                self.builder.or(&both)
            }
            _ => self.unknown(over),
        }
    }

    fn path(&mut self, start: PathStart, first: u32, at: At, goal: Goal, over: bool) -> State {
        match start {
            PathStart::Context => self.steps(first, at, goal, over),
            PathStart::Root if at == At::Document => self.steps(first, at, goal, over),
            PathStart::Root | PathStart::Expr(_) => self.unknown(over),
        }
    }

    fn steps(&mut self, at_step: u32, at: At, goal: Goal, over: bool) -> State {
        if !self.spend() {
            return self.unknown(over);
        }
        if at_step == NONE {
            return self.goal(goal);
        }
        let step = self.query.step(at_step);
        match step.axis {
            Axis::SelfAxis => self.own(&step, at, goal, over),
            Axis::Child => self.below(&step, at, false, goal, over),
            Axis::Descendant => self.below(&step, at, true, goal, over),
            Axis::DescendantOrSelf => {
                let both = [self.own(&step, at, goal, over), self.below(&step, at, true, goal, over)];
                self.builder.or(&both)
            }
            Axis::Attribute => {
                let symbol = match step.test {
                    NodeTest::Name(symbol) => symbol,
                    NodeTest::Any | NodeTest::Node => NO_SYMBOL,
                    _ => return FALSE,
                };
                if at != At::Element {
                    return FALSE;
                }
                let target = self.rest(&step, At::Leaf(Leaf::Attribute), goal, over);
                self.builder.edge(Reach::Attribute, symbol, target)
            }
            _ => self.unknown(over),
        }
    }

    /// The predicates of a step and what follows it, at a node that the step selects.
    fn rest(&mut self, step: &Step, at: At, goal: Goal, over: bool) -> State {
        let mut parts = Vec::new();
        for predicate in self.query.list(step.predicates) {
            parts.push(if is_positional(self.query, predicate) {
                self.unknown(over)
            } else {
                self.boolean(predicate, at, over)
            });
        }
        parts.push(self.steps(step.next, at, goal, over));
        self.builder.and(&parts)
    }

    /// A step that stays at the node.
    fn own(&mut self, step: &Step, at: At, goal: Goal, over: bool) -> State {
        let passes = match (step.test, at) {
            (NodeTest::Node, _) | (NodeTest::Any, At::Element) => TRUE,
            (NodeTest::Name(symbol), At::Element) => self.builder.name(symbol),
            (NodeTest::Text, At::Leaf(Leaf::Text)) | (NodeTest::Comment, At::Leaf(Leaf::Comment)) => TRUE,
            (NodeTest::ProcessingInstruction, At::Leaf(Leaf::Instruction)) => TRUE,
            (NodeTest::ProcessingInstructionNamed(_), At::Leaf(Leaf::Instruction)) => self.unknown(over),
            _ => return FALSE,
        };
        let rest = self.rest(step, at, goal, over);
        self.builder.and(&[passes, rest])
    }

    /// A step to children or descendants.
    fn below(&mut self, step: &Step, at: At, deep: bool, goal: Goal, over: bool) -> State {
        if let At::Leaf(_) = at {
            return FALSE;
        }
        let mut found = Vec::new();
        let element = match step.test {
            NodeTest::Name(symbol) => Some(symbol),
            NodeTest::Any | NodeTest::Node => Some(NO_SYMBOL),
            _ => None,
        };
        if let Some(symbol) = element {
            let target = self.rest(step, At::Element, goal, over);
            found.push(self.builder.edge(if deep { Reach::Descendant } else { Reach::Child }, symbol, target));
        }
        let leaves: &[(Leaf, Reach, u32)] = match step.test {
            NodeTest::Text => &[(Leaf::Text, Reach::Text, NO_SYMBOL)],
            NodeTest::Comment => &[(Leaf::Comment, Reach::Comment, NO_SYMBOL)],
            NodeTest::ProcessingInstruction => &[(Leaf::Instruction, Reach::Instruction, NO_SYMBOL)],
            NodeTest::ProcessingInstructionNamed(symbol) => &[(Leaf::Instruction, Reach::Instruction, symbol)],
            NodeTest::Node => &[
                (Leaf::Text, Reach::Text, NO_SYMBOL),
                (Leaf::Comment, Reach::Comment, NO_SYMBOL),
                (Leaf::Instruction, Reach::Instruction, NO_SYMBOL),
            ],
            NodeTest::Name(_) | NodeTest::Any => &[],
        };
        for (leaf, reach, symbol) in leaves {
            let target = self.rest(step, At::Leaf(*leaf), goal, over);
            let here = self.builder.edge(*reach, *symbol, target);
            found.push(here);
            if deep {
                found.push(self.builder.edge(Reach::Descendant, NO_SYMBOL, here));
            }
        }
        self.builder.or(&found)
    }

    /// The test at the end of a path (XPath 1.0 §3.4 for comparisons).
    fn goal(&mut self, goal: Goal) -> State {
        match goal {
            Goal::Exists => TRUE,
            Goal::Pattern(Function::Contains, string) => self.builder.test(Test::Contains(string)),
            Goal::Pattern(_, string) => self.builder.test(Test::StartsWith(string)),
            Goal::Compare(op, value) => {
                let (equal, number) = match value.as_string() {
                    Some(string) if matches!(op, CompareOp::Equal | CompareOp::NotEqual) => {
                        (Some(Test::Equal(string)), f64::NAN)
                    }
                    Some(string) => (None, to_number(self.strings.get(string))),
                    None => (None, value.as_number()),
                };
                match (op, equal) {
                    (CompareOp::NotEqual, _) => {
                        let equal = self.builder.test(equal.unwrap_or(Test::Number(CompareOp::Equal, number)));
                        self.builder.not(equal)
                    }
                    (_, Some(test)) => self.builder.test(test),
                    // Nothing is in order with NaN.
                    _ if number.is_nan() => FALSE,
                    _ => self.builder.test(Test::Number(op, number)),
                }
            }
        }
    }
}
