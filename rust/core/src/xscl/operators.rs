//! Operators: what is equal to what.

use super::ast::{Equality, NodeAt, Normal, Operand, Operator, OperatorKind};
use super::error::{Outcome, XsclErrorKind};
use super::lexer::Kind;
use super::parser::Parser;
use std::collections::HashMap;

/// An operator whose operands are not resolved yet: the block right of it has to be read first.
pub(super) struct OpenOperator<'t> {
    kind: OperatorKind,
    equalities: Vec<(OpenOperand<'t>, OpenOperand<'t>)>,
    window_us: Option<i64>,
}

struct OpenOperand<'t> {
    variable: &'t str,
    /// Path below the variable's node, empty for this node itself.
    path: String,
    normal: Normal,
    offset: usize,
}

impl<'t> Parser<'t> {
    /// What follows the keywords of an operator.
    pub(super) fn operator(&mut self, kind: OperatorKind) -> Outcome<OpenOperator<'t>> {
        self.expect(Kind::OpenBrace, "{")?;
        let mut equalities = Vec::new();
        loop {
            let first = self.operand()?;
            if self.kind() != Kind::Equal {
                return Err(self.unexpected("= (a join compares with = alone)"));
            }
            self.at += 1;
            equalities.push((first, self.operand()?));
            if !self.keyword("AND") {
                break;
            }
        }
        self.expect(Kind::Comma, "AND, or a comma and a window,")?;
        let window_us = self.window()?;
        self.expect(Kind::CloseBrace, "}")?;
        Ok(OpenOperator { kind, equalities, window_us })
    }

    /// A variable, perhaps with a path, in any number of functions; these are idempotent and can be exchanged.
    fn operand(&mut self) -> Outcome<OpenOperand<'t>> {
        let offset = self.offset();
        let (mut spaces, mut lower, mut open) = (false, false, 0);
        while self.kind() == Kind::Name && self.kind_after() == Kind::Open {
            match self.text() {
                "normalize-space" => spaces = true,
                "lower-case" => lower = true,
                name => {
                    let message =
                        format!("operands of a join can be put in normalize-space() and lower-case(), not {name}()");
                    return Err(self.error(XsclErrorKind::Unsupported, message, self.offset()));
                }
            }
            open += 1;
            self.at += 2;
        }
        self.at += usize::from(self.kind() == Kind::Dollar);
        let variable = self.plain_name("a variable")?;
        let path = self.plain_path()?;
        for _ in 0..open {
            self.expect(Kind::Close, ")")?;
        }
        let normal = match (spaces, lower) {
            (false, false) => Normal::Exact,
            (true, false) => Normal::Spaces,
            (false, true) => Normal::Lower,
            (true, true) => Normal::SpacesLower,
        };
        Ok(OpenOperand { variable, path, normal, offset })
    }

    /// Finds the nodes of all operands, making those of paths.
    pub(super) fn resolve(&mut self, operators: Vec<OpenOperator<'t>>) -> Outcome<Vec<Operator>> {
        let mut made = HashMap::new();
        let mut resolved = Vec::new();
        for (number, operator) in operators.into_iter().enumerate() {
            let mut equalities = Vec::new();
            for (first, second) in operator.equalities {
                let offset = first.offset;
                let first = self.resolve_operand(first, number + 1, &mut made)?;
                let second = self.resolve_operand(second, number + 1, &mut made)?;
                let is_right = |operand: Operand| usize::from(operand.at.block) == number + 1;
                let (left, right) = match (is_right(first), is_right(second)) {
                    (false, true) => (first, second),
                    (true, false) => (second, first),
                    (both_right, _) => {
                        let where_ = if both_right { "right" } else { "left" };
                        let message = format!(
                            "both sides of this equality are of blocks {where_} of the operator; one has to be of the \
                             block right of it, the other of a block left of it"
                        );
                        return Err(self.error(XsclErrorKind::Variable, message, offset));
                    }
                };
                equalities.push(Equality { left, right });
            }
            resolved.push(Operator { kind: operator.kind, equalities, window_us: operator.window_us });
        }
        Ok(resolved)
    }

    /// The node of an operand; `last` is the block right of the operator.
    fn resolve_operand(
        &mut self,
        operand: OpenOperand<'t>,
        last: usize,
        made: &mut HashMap<(NodeAt, String), u16>,
    ) -> Outcome<Operand> {
        let OpenOperand { variable, path, normal, offset } = operand;
        let mut at = self.variable(variable, offset)?;
        if usize::from(at.block) > last {
            let message = format!("the variable {variable} is bound behind the block right of this operator");
            return Err(self.error(XsclErrorKind::Variable, message, offset));
        }
        if !path.is_empty() {
            // Equal paths are one node, however they are spelled.
            let key = (at, self.canonical(&path, offset)?);
            at.node = match made.get(&key) {
                Some(node) => *node,
                None => {
                    let node = self.add_node(at.block, Some(at.node), path, None, offset)?;
                    made.insert(key, node);
                    node
                }
            };
        }
        Ok(Operand { at, normal })
    }
}
