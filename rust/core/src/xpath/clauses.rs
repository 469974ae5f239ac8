//! Why a document does or does not satisfy an expression, clause by clause.

use super::ast::{ConstantRef, Expr, ExprId, Function, NONE, PathStart, Query, StepId};
use super::display::Printer;
use super::evaluate::{EvaluateError, Evaluator, NodeRef, Value};
use super::semantics::{self, Type};
use super::symbols::SymbolTable;

/// Values shown of a comparison that failed.
const VALUES_SHOWN: usize = 5;
/// Characters shown of one value.
const VALUE_CHARACTERS: usize = 40;

/// One clause of an expression and its fate in a document.
#[derive(Clone, Debug, PartialEq)]
pub struct Clause {
    /// Its text.
    pub text: String,
    /// Nesting, from 0.
    pub depth: usize,
    /// Whether it held (anywhere, for a clause inside a predicate).
    pub held: bool,
    /// The nodes that it selected, or at which it held.
    pub nodes: Vec<NodeRef>,
    /// What was found, in words.
    pub reason: String,
}

/// Lists the clauses of an expression, outer ones first: operands of `and`, `or` and `not`, the steps of paths and
/// their predicates, each with what the document made of it. Evaluated at the document node.
///
/// # Errors
/// If one clause costs more than the evaluator's limit.
pub fn explain_clauses(
    evaluator: &mut Evaluator<'_>,
    query: Query<'_>,
    constants: &[ConstantRef<'_>],
    symbols: &dyn SymbolTable,
    prefixes: Option<&[(&str, &str)]>,
) -> Result<Vec<Clause>, EvaluateError> {
    let printer = Printer { query, constants, symbols, prefixes };
    let mut explanation = Explanation { evaluator, query, constants, printer, clauses: Vec::new() };
    explanation.expression(query.root, &[NodeRef::ROOT], 0)?;
    Ok(explanation.clauses)
}

struct Explanation<'e, 'd, 'q> {
    evaluator: &'e mut Evaluator<'d>,
    query: Query<'q>,
    constants: &'q [ConstantRef<'q>],
    printer: Printer<'q>,
    clauses: Vec<Clause>,
}

impl Explanation<'_, '_, '_> {
    fn push(&mut self, depth: usize, text: String, nodes: Vec<NodeRef>, reason: String) {
        self.clauses.push(Clause { text, depth, held: !nodes.is_empty(), nodes, reason });
    }

    /// Explains an expression at context nodes; recursion is as deep as the expression.
    fn expression(&mut self, expr: ExprId, contexts: &[NodeRef], depth: usize) -> Result<(), EvaluateError> {
        let text = self.printer.text(expr);
        if semantics::uses_position(self.query, expr) && contexts != [NodeRef::ROOT] {
            let reason = "depends on the position; judged with its whole predicate".to_string();
            self.push(depth, text, Vec::new(), reason);
            return Ok(());
        }
        if let Expr::Path(start, first) = self.query.expr(expr) {
            return self.path(expr, start, first, contexts, depth);
        }
        let holding = self.evaluator.holding(self.query, self.constants, expr, contexts)?;
        let held = !holding.is_empty();
        let mut reason = if contexts == [NodeRef::ROOT] {
            if held { "holds".to_string() } else { "does not hold".to_string() }
        } else {
            format!("held at {} of {} nodes", count_word(holding.len()), contexts.len())
        };
        let mut parts = Vec::new();
        match self.query.expr(expr) {
            Expr::Or(..) | Expr::And(..) => parts = self.operands(expr),
            Expr::Union(a, b) => parts.extend([a, b]),
            Expr::Filter(primary, _) => parts.push(primary),
            Expr::Call(Function::Not | Function::Boolean | Function::Count, arguments) => {
                parts.extend(self.query.list(arguments));
            }
            Expr::Compare(_, a, b) => {
                for side in [a, b] {
                    if let Some(seen) = self.values_seen(side, contexts)? {
                        reason.push_str("; ");
                        reason.push_str(&seen);
                    }
                    if !held && self.is_path_worth_showing(side) {
                        parts.push(side);
                    }
                }
            }
            _ => {}
        }
        self.push(depth, text, holding, reason);
        for part in parts {
            self.expression(part, contexts, depth + 1)?;
        }
        Ok(())
    }

    /// The operands of a chain of `and` or of `or`, from left to right.
    fn operands(&self, expr: ExprId) -> Vec<ExprId> {
        let is_or = matches!(self.query.expr(expr), Expr::Or(..));
        let mut found = Vec::new();
        let mut pending = vec![expr];
        while let Some(id) = pending.pop() {
            match self.query.expr(id) {
                Expr::Or(a, b) if is_or => pending.extend([b, a]),
                Expr::And(a, b) if !is_or => pending.extend([b, a]),
                _ => found.push(id),
            }
        }
        found
    }

    /// A path of one bare step says no more than the comparison that it stands in.
    fn is_path_worth_showing(&self, expr: ExprId) -> bool {
        match self.query.expr(expr) {
            Expr::Path(_, first) if first != NONE => {
                let step = self.query.step(first);
                step.next != NONE || step.predicates != NONE
            }
            _ => false,
        }
    }

    fn values_seen(&mut self, expr: ExprId, contexts: &[NodeRef]) -> Result<Option<String>, EvaluateError> {
        if matches!(self.query.expr(expr), Expr::StringConstant(_) | Expr::NumberConstant(_)) {
            return Ok(None);
        }
        let mut values: Vec<String> = Vec::new();
        let mut more = false;
        'contexts: for &context in contexts {
            let value = self.evaluator.evaluate_expr(self.query, expr, self.constants, context, 1, 1)?;
            let texts: Vec<String> = match &value {
                Value::Nodes(nodes) => {
                    nodes.iter().take(VALUES_SHOWN + 1).map(|node| self.evaluator.string_value(*node)).collect()
                }
                other => vec![self.evaluator.to_text(other)],
            };
            for text in texts {
                let shown = shorten(&text);
                if values.contains(&shown) {
                    continue;
                }
                if values.len() == VALUES_SHOWN {
                    more = true;
                    break 'contexts;
                }
                values.push(shown);
            }
        }
        let text = self.printer.text(expr);
        if values.is_empty() {
            return Ok(Some(format!("no node at {text}")));
        }
        let values = values.join(", ");
        Ok(Some(format!("values seen of {text}: {values}{}", if more { ", …" } else { "" })))
    }

    fn path(
        &mut self,
        expr: ExprId,
        start: PathStart,
        first: StepId,
        contexts: &[NodeRef],
        depth: usize,
    ) -> Result<(), EvaluateError> {
        let whole = self.clauses.len();
        self.push(depth, self.printer.text(expr), Vec::new(), String::new());
        let mut nodes = match start {
            PathStart::Root => vec![NodeRef::ROOT],
            PathStart::Context => contexts.to_vec(),
            PathStart::Expr(primary) => {
                self.expression(primary, contexts, depth + 1)?;
                self.evaluator.selected(self.query, self.constants, primary, contexts)?
            }
        };
        let mut failure = None;
        let mut at = first;
        let mut number = 0;
        while at != NONE && failure.is_none() {
            number += 1;
            let step = self.query.step(at);
            let mut found = self.evaluator.step_nodes(self.query, self.constants, &nodes, step, 0)?;
            let text = self.printer.path_text(start, first, at, 0);
            let reason = if found.is_empty() {
                let text = format!("no node after step {number} `{}`", self.printer.path_text(start, first, at, 0));
                failure = Some(text.clone());
                text
            } else {
                format!("{} nodes", found.len())
            };
            // A path of one bare step is its own only step.
            if step.predicates != NONE || step.next != NONE || at != first {
                self.push(depth + 1, text, found.clone(), reason);
            }
            for (index, predicate) in self.query.list(step.predicates).enumerate() {
                if found.is_empty() {
                    break;
                }
                let kept = self.evaluator.step_nodes(self.query, self.constants, &nodes, step, index + 1)?;
                failure = failure.or(self.predicate(predicate, &found, kept.clone(), depth + 2)?);
                found = kept;
            }
            nodes = found;
            at = step.next;
        }
        let clause = &mut self.clauses[whole];
        clause.held = !nodes.is_empty() && failure.is_none();
        clause.reason = failure.unwrap_or_else(|| format!("selects {} nodes", nodes.len()));
        clause.nodes = if clause.held { nodes } else { Vec::new() };
        Ok(())
    }

    /// A predicate on candidates, of which it kept some; returns why nothing was left.
    fn predicate(
        &mut self,
        predicate: ExprId,
        candidates: &[NodeRef],
        kept: Vec<NodeRef>,
        depth: usize,
    ) -> Result<Option<String>, EvaluateError> {
        let text = format!("[{}]", self.printer.text(predicate));
        let mut reason = format!("held at {} of {} nodes", count_word(kept.len()), candidates.len());
        let failed = kept.is_empty();
        let mut parts = Vec::new();
        if !semantics::is_positional(self.query, predicate) {
            match self.query.expr(predicate) {
                Expr::Compare(_, a, b) => {
                    for side in [a, b] {
                        if let (true, Some(seen)) = (failed, self.values_seen(side, candidates)?) {
                            reason.push_str("; ");
                            reason.push_str(&seen);
                        }
                        if failed && self.is_path_worth_showing(side) {
                            parts.push(side);
                        }
                    }
                }
                Expr::Or(..) | Expr::And(..) => parts = self.operands(predicate),
                Expr::Call(Function::Not | Function::Boolean, arguments) => parts.extend(self.query.list(arguments)),
                Expr::Path(..) if self.is_path_worth_showing(predicate) => parts.push(predicate),
                _ => {}
            }
        } else if semantics::static_type(self.query, predicate) == Type::Number && failed {
            reason.push_str("; a number holds at the node with that position");
        }
        let failure = failed.then(|| format!("predicate {text} {reason}"));
        self.push(depth, text, kept, reason);
        for part in parts {
            self.expression(part, candidates, depth + 1)?;
        }
        Ok(failure)
    }
}

fn count_word(count: usize) -> String {
    if count == 0 { "none".into() } else { count.to_string() }
}

fn shorten(text: &str) -> String {
    let mut shown: String = text.chars().take(VALUE_CHARACTERS).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    format!("\"{shown}\"")
}
