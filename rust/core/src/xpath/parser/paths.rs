//! Location paths and filter expressions (§2, §3.3), and their canonical form.

use super::steps::{counts_positions, is_later_node_type, is_node_type};
use super::{OpenStep, Parser, Part, Predicates, Run};
use crate::xpath::ast::{Axis, Expr, ExprId, NONE, NodeTest, PathStart, Query, Step};
use crate::xpath::error::{XPathError, XPathErrorKind};
use crate::xpath::lexer::Token;
use crate::xpath::semantics::Type;

impl Run<'_> {
    /// A path or filter expression.
    pub(super) fn path(&mut self) -> Result<Part, XPathError> {
        match self.token {
            Token::Literal(_) | Token::Number(_) | Token::Open | Token::Variable => self.filter(),
            Token::CallName(prefix, local)
                if !(prefix.is_empty() && (is_node_type(local) || is_later_node_type(local))) =>
            {
                self.filter()
            }
            Token::Slash => {
                self.advance()?;
                if self.starts_step() {
                    self.location(PathStart::Root, self.parser.steps.len(), Part::root())
                } else {
                    let id = self.parser.builder.expr(Expr::Path(PathStart::Root, NONE));
                    Ok(Part { id, ..Part::root() })
                }
            }
            Token::SlashSlash => {
                let base = self.parser.steps.len();
                self.advance()?;
                self.push_step(base, Axis::DescendantOrSelf, NodeTest::Node, Predicates::default());
                self.location(PathStart::Root, base, Part::root())
            }
            _ if self.starts_step() => self.location(PathStart::Context, self.parser.steps.len(), Part::root()),
            Token::Close => Err(self.unexpected("an expression")),
            _ => Err(self.unexpected("a path, a literal, a function call or `(`")),
        }
    }

    pub(super) fn starts_step(&self) -> bool {
        match self.token {
            Token::Dot
            | Token::DotDot
            | Token::At
            | Token::Star
            | Token::PrefixStar(_)
            | Token::Name(..)
            | Token::AxisName(_) => true,
            Token::CallName(prefix, local) => prefix.is_empty() && (is_node_type(local) || is_later_node_type(local)),
            _ => false,
        }
    }

    /// Steps from here on, appended to those open since `base`; then the path's cells.
    pub(super) fn location(&mut self, start: PathStart, base: usize, origin: Part) -> Result<Part, XPathError> {
        let mut height = origin.height;
        loop {
            height = height.max(self.step(base)?);
            match self.token {
                Token::Slash => self.advance()?,
                Token::SlashSlash => {
                    self.push_step(base, Axis::DescendantOrSelf, NodeTest::Node, Predicates::default());
                    self.advance()?;
                }
                _ => break,
            }
        }
        let height = self.check_height(height + 1)?;
        let id = self.close(start, base);
        Ok(Part { id, height, kind: Type::NodeSet, positional: origin.positional })
    }

    /// Builds the cells of the path whose steps are open since `base`.
    pub(super) fn close(&mut self, start: PathStart, base: usize) -> ExprId {
        if self.parser.steps.len() == base {
            match start {
                PathStart::Expr(primary) => return primary,
                PathStart::Root => {}
                PathStart::Context => {
                    self.parser.steps.push(OpenStep { axis: Axis::SelfAxis, test: NodeTest::Node, predicates: 0 });
                }
            }
        }
        let Parser { builder, steps, predicates, .. } = &mut *self.parser;
        let mut next = NONE;
        while steps.len() > base {
            let Some(OpenStep { axis, test, predicates: count }) = steps.pop() else { break };
            let from = predicates.len() - count;
            let list = builder.list(&predicates[from..]);
            predicates.truncate(from);
            next = builder.step(Step { axis, test, predicates: list, next });
        }
        builder.expr(Expr::Path(start, next))
    }

    /// Takes a path's cells back and opens its steps; it must be the last thing built.
    pub(super) fn reopen(&mut self, path: ExprId) -> Option<PathStart> {
        let Parser { builder, steps, predicates, .. } = &mut *self.parser;
        let query = Query { cells: &builder.cells, root: path };
        let Expr::Path(start, first) = query.expr(path) else { return None };
        let mut taken = 1;
        for step in query.steps(first) {
            let before = predicates.len();
            predicates.extend(query.list(step.predicates));
            let count = predicates.len() - before;
            taken += 1 + count;
            // A lone `.` is an empty path from the context node.
            let dot = step.axis == Axis::SelfAxis && step.test == NodeTest::Node && count == 0;
            if !dot {
                steps.push(OpenStep { axis: step.axis, test: step.test, predicates: count });
            }
        }
        let left = builder.cells.len() - taken;
        builder.cells.truncate(left);
        Some(start)
    }

    /// Adds a step whose predicates are on top of the stack, in canonical form.
    pub(super) fn push_step(&mut self, base: usize, axis: Axis, test: NodeTest, predicates: Predicates) {
        let steps = &mut self.parser.steps;
        let count = predicates.count;
        let previous = if steps.len() > base { steps.last_mut() } else { None };
        if axis == Axis::SelfAxis && test == NodeTest::Node && !predicates.positional {
            match previous {
                _ if count == 0 => return,
                Some(previous) => {
                    previous.predicates += count;
                    return;
                }
                None => {}
            }
        } else if let Some(previous) = previous {
            let everything = previous.axis == Axis::DescendantOrSelf
                && previous.test == NodeTest::Node
                && previous.predicates == 0
                && !predicates.positional;
            let merged = match axis {
                Axis::Child | Axis::Descendant => Some(Axis::Descendant),
                Axis::DescendantOrSelf | Axis::SelfAxis => Some(Axis::DescendantOrSelf),
                _ => None,
            };
            if let (true, Some(axis)) = (everything, merged) {
                *previous = OpenStep { axis, test, predicates: count };
                return;
            }
        }
        steps.push(OpenStep { axis, test, predicates: count });
    }

    /// A primary expression with predicates and further steps.
    pub(super) fn filter(&mut self) -> Result<Part, XPathError> {
        let at = self.at;
        let part = self.primary()?;
        if !matches!(self.token, Token::OpenBracket | Token::Slash | Token::SlashSlash) {
            return Ok(part);
        }
        if part.kind != Type::NodeSet {
            let message = format!("only a node-set can have predicates or steps; this is a {}", part.kind.name());
            return Err(self.error_at(XPathErrorKind::Type, message, at));
        }
        let base = self.parser.steps.len();
        let mut height = part.height;
        // A path takes predicates that count no positions, and further steps, as its own: `(a)[b]/c` is `a[b]/c`.
        let reopened = self.reopen(part.id);
        let mut closed = reopened.is_none();
        let mut start = reopened.unwrap_or(PathStart::Expr(part.id));
        let mut filters = 0;
        while self.token == Token::OpenBracket {
            let predicate = self.predicate()?;
            height = height.max(predicate.height);
            if !closed && counts_positions(predicate) {
                start = PathStart::Expr(self.close(start, base));
                closed = true;
            }
            if closed {
                filters += 1;
            } else if self.parser.steps.len() > base {
                let last = self.parser.steps.len() - 1;
                self.parser.steps[last].predicates += 1;
            } else {
                self.parser.steps.push(OpenStep { axis: Axis::SelfAxis, test: NodeTest::Node, predicates: 1 });
            }
            self.parser.predicates.push(predicate.id);
        }
        if let (true, PathStart::Expr(primary)) = (filters > 0, start) {
            let from = self.parser.predicates.len() - filters;
            let list = self.parser.builder.list(&self.parser.predicates[from..]);
            self.parser.predicates.truncate(from);
            start = PathStart::Expr(self.parser.builder.expr(Expr::Filter(primary, list)));
        }
        let height = self.check_height(height + 1)?;
        let origin = Part { height, ..part };
        match self.token {
            Token::Slash => self.advance()?,
            Token::SlashSlash => {
                self.advance()?;
                self.push_step(base, Axis::DescendantOrSelf, NodeTest::Node, Predicates::default());
            }
            _ => return Ok(Part { id: self.close(start, base), ..origin }),
        }
        self.location(start, base, origin)
    }
}
