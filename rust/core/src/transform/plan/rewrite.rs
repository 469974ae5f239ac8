//! Expressions in canonical form: variables renumbered, small `let`s put where they are used.

use crate::xquery::ast::{Clause, ElementConstructor, Expr, Flwor, Function, OrderKey, Part, Path, Slot, Step};
use foldhash::fast::FixedState;
use hashbrown::HashMap;

/// What a variable of the query stands for in a canonical expression.
pub type Meanings = HashMap<Slot, Expr, FixedState>;

/// Most nodes that an expression may grow to when `let`s are put where they are used.
const MAX_NODES: usize = 2_000;

/// Rewrites expressions of one query.
#[derive(Debug)]
pub struct Rewriter<'m> {
    meanings: &'m Meanings,
    /// New numbers of variables bound inside the expression.
    inner: HashMap<Slot, Slot, FixedState>,
    next: Slot,
    nodes: usize,
    /// Predicates and steps around, which have a context item of their own.
    focused: usize,
    /// What the context item is outside of them.
    context: Expr,
}

impl<'m> Rewriter<'m> {
    /// A rewriter for an expression inside `levels` variables, which are numbered from 0; `context` is what the
    /// context item is.
    pub fn new(meanings: &'m Meanings, levels: Slot, context: Expr) -> Rewriter<'m> {
        Rewriter { meanings, inner: HashMap::default(), next: levels, nodes: 0, focused: 0, context }
    }

    /// The canonical expression and how many variables evaluating it needs; `None` if it grows too large.
    pub fn rewrite(mut self, expr: &Expr) -> Option<(Expr, Slot)> {
        let rewritten = self.expr(expr)?;
        Some((rewritten, self.next))
    }

    fn many(&mut self, members: &[Expr]) -> Option<Vec<Expr>> {
        members.iter().map(|member| self.expr(member)).collect()
    }

    fn focused(&mut self, members: &[Expr]) -> Option<Vec<Expr>> {
        self.focused += 1;
        let rewritten = self.many(members);
        self.focused -= 1;
        rewritten
    }

    fn boxed(&mut self, expr: &Expr) -> Option<Box<Expr>> {
        self.expr(expr).map(Box::new)
    }

    fn bind(&mut self, slot: Slot) -> Slot {
        let number = self.next;
        self.next += 1;
        self.inner.insert(slot, number);
        number
    }

    fn expr(&mut self, expr: &Expr) -> Option<Expr> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return None;
        }
        Some(match expr {
            Expr::Context if self.focused == 0 => self.context.clone(),
            Expr::Literal(_) | Expr::Root | Expr::Context | Expr::Comment(_) | Expr::ProcessingInstruction(..) => {
                expr.clone()
            }
            Expr::Variable(slot) => match (self.inner.get(slot), self.meanings.get(slot)) {
                (Some(number), _) => Expr::Variable(*number),
                (None, Some(meaning)) => {
                    self.nodes += size(meaning);
                    meaning.clone()
                }
                (None, None) => return None,
            },
            Expr::Sequence(members) => Expr::Sequence(self.many(members)?),
            Expr::Flwor(flwor) => Expr::Flwor(Box::new(self.flwor(flwor)?)),
            Expr::Quantified { every, bindings, satisfies } => {
                let mut rewritten = Vec::with_capacity(bindings.len());
                for (slot, sequence) in bindings {
                    let sequence = self.expr(sequence)?;
                    rewritten.push((self.bind(*slot), sequence));
                }
                Expr::Quantified { every: *every, bindings: rewritten, satisfies: self.boxed(satisfies)? }
            }
            Expr::If(condition, yes, no) => Expr::If(self.boxed(condition)?, self.boxed(yes)?, self.boxed(no)?),
            Expr::Or(a, b) => Expr::Or(self.boxed(a)?, self.boxed(b)?),
            Expr::And(a, b) => Expr::And(self.boxed(a)?, self.boxed(b)?),
            Expr::Compare(comparison, a, b) => Expr::Compare(*comparison, self.boxed(a)?, self.boxed(b)?),
            Expr::Arithmetic(op, a, b) => Expr::Arithmetic(*op, self.boxed(a)?, self.boxed(b)?),
            Expr::Negate(a) => Expr::Negate(self.boxed(a)?),
            Expr::Range(a, b) => Expr::Range(self.boxed(a)?, self.boxed(b)?),
            Expr::Combine(op, a, b) => Expr::Combine(*op, self.boxed(a)?, self.boxed(b)?),
            Expr::Path(path) => self.path(path)?,
            Expr::Filter(primary, predicates) => Expr::Filter(self.boxed(primary)?, self.focused(predicates)?),
            Expr::Call(function, arguments) => {
                if self.focused == 0 && arguments.is_empty() {
                    self.implicit_context(*function)
                } else {
                    Expr::Call(*function, self.many(arguments)?)
                }
            }
            Expr::Element(element) => Expr::Element(Box::new(self.element(element)?)),
            Expr::ComputedElement(name, content) => Expr::ComputedElement(name.clone(), self.boxed(content)?),
            Expr::ComputedAttribute(name, content) => Expr::ComputedAttribute(name.clone(), self.boxed(content)?),
            Expr::ComputedText(content) => Expr::ComputedText(self.boxed(content)?),
        })
    }

    /// A call without arguments where the context item is known.
    fn implicit_context(&self, function: Function) -> Expr {
        let takes_context = function.arity() == (0, 1);
        Expr::Call(function, if takes_context { vec![self.context.clone()] } else { Vec::new() })
    }

    fn path(&mut self, path: &Path) -> Option<Expr> {
        let mut start = self.expr(&path.start)?;
        let mut steps = Vec::with_capacity(path.steps.len());
        // A variable that stood for a path makes one path of two.
        if let Expr::Path(inner) = start {
            start = inner.start;
            steps = inner.steps;
        }
        for step in &path.steps {
            steps.push(match step {
                Step::Axis { axis, test, predicates } => {
                    Step::Axis { axis: *axis, test: test.clone(), predicates: self.focused(predicates)? }
                }
                Step::Expr(expr) => Step::Expr(self.focused(std::slice::from_ref(expr))?.pop()?),
            });
        }
        Some(Expr::Path(Box::new(Path { start, steps })))
    }

    fn flwor(&mut self, flwor: &Flwor) -> Option<Flwor> {
        let mut clauses = Vec::with_capacity(flwor.clauses.len());
        for clause in &flwor.clauses {
            clauses.push(match clause {
                Clause::For { slot, position, sequence } => {
                    let sequence = self.expr(sequence)?;
                    let slot = self.bind(*slot);
                    Clause::For { slot, position: position.map(|position| self.bind(position)), sequence }
                }
                Clause::Let { slot, value } => {
                    let value = self.expr(value)?;
                    Clause::Let { slot: self.bind(*slot), value }
                }
                Clause::Where(condition) => Clause::Where(self.expr(condition)?),
                Clause::OrderBy(keys) => Clause::OrderBy(
                    keys.iter()
                        .map(|key| self.expr(&key.key).map(|rewritten| OrderKey { key: rewritten, ..key.clone() }))
                        .collect::<Option<_>>()?,
                ),
            });
        }
        Some(Flwor { clauses, result: self.expr(&flwor.result)? })
    }

    fn parts(&mut self, parts: &[Part]) -> Option<Vec<Part>> {
        parts
            .iter()
            .map(|part| match part {
                Part::Text(text) => Some(Part::Text(text.clone())),
                Part::Expr(expr) => self.expr(expr).map(Part::Expr),
            })
            .collect()
    }

    fn element(&mut self, element: &ElementConstructor) -> Option<ElementConstructor> {
        let mut attributes = Vec::with_capacity(element.attributes.len());
        for (name, parts) in &element.attributes {
            attributes.push((name.clone(), self.parts(parts)?));
        }
        Some(ElementConstructor {
            name: element.name.clone(),
            namespaces: element.namespaces.clone(),
            attributes,
            content: self.parts(&element.content)?,
        })
    }
}

/// Number of nodes of a path or literal, roughly; anything else is large.
pub fn size(expr: &Expr) -> usize {
    match expr {
        Expr::Literal(_) | Expr::Root | Expr::Context | Expr::Variable(_) => 1,
        Expr::Path(path) => {
            size(&path.start)
                + path
                    .steps
                    .iter()
                    .map(|step| match step {
                        Step::Axis { predicates, .. } => 1 + predicates.iter().map(size).sum::<usize>(),
                        Step::Expr(expr) => 1 + size(expr),
                    })
                    .sum::<usize>()
        }
        Expr::Compare(_, a, b) | Expr::And(a, b) | Expr::Or(a, b) => 1 + size(a) + size(b),
        Expr::Call(_, arguments) => 1 + arguments.iter().map(size).sum::<usize>(),
        _ => 1_000,
    }
}
