//! Comparisons (§3.4), linear in the sizes of the node-sets compared.

use super::number::to_number;
use super::value::{NodeRef, Nodes};
use super::{Context, EvaluateError, Run};
use crate::xpath::ast::{CompareOp, ExprId};
use crate::xpath::semantics::Type;
use hashbrown::HashSet;
use std::cmp::Ordering;

type Truth = Result<bool, EvaluateError>;

fn equality(op: CompareOp) -> bool {
    matches!(op, CompareOp::Equal | CompareOp::NotEqual)
}

/// Compares numbers; NaN is unequal to everything and in no order.
pub fn compare_numbers(op: CompareOp, a: f64, b: f64) -> bool {
    let order = a.partial_cmp(&b);
    match op {
        CompareOp::Equal => order == Some(Ordering::Equal),
        CompareOp::NotEqual => order != Some(Ordering::Equal),
        CompareOp::Less => order == Some(Ordering::Less),
        CompareOp::LessEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        CompareOp::Greater => order == Some(Ordering::Greater),
        CompareOp::GreaterEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
    }
}

fn compare_booleans(op: CompareOp, a: bool, b: bool) -> bool {
    compare_numbers(op, f64::from(u8::from(a)), f64::from(u8::from(b)))
}

impl<'r> Run<'r, '_> {
    pub(super) fn compare(&mut self, op: CompareOp, a: ExprId, b: ExprId, context: Context) -> Truth {
        match (self.type_of(a), self.type_of(b)) {
            (Type::Boolean, Type::NodeSet) | (Type::NodeSet, Type::Boolean) => {
                Ok(compare_booleans(op, self.boolean(a, context)?, self.boolean(b, context)?))
            }
            (Type::NodeSet, Type::NodeSet) => {
                let left = self.nodes(a, context)?;
                if left.is_empty() {
                    return Ok(false);
                }
                let right = self.nodes(b, context)?;
                self.compare_sets(op, &left, &right)
            }
            (Type::NodeSet, _) => self.compare_set(op, a, b, context),
            (_, Type::NodeSet) => self.compare_set(op.mirrored(), b, a, context),
            (Type::Boolean, _) | (_, Type::Boolean) if equality(op) => {
                Ok(compare_booleans(op, self.boolean(a, context)?, self.boolean(b, context)?))
            }
            (Type::String, Type::String) if equality(op) => {
                let (left, right) = (self.string(a, context)?, self.string(b, context)?);
                self.charge_text(left.len().min(right.len()))?;
                Ok((left == right) == (op == CompareOp::Equal))
            }
            _ => Ok(compare_numbers(op, self.number(a, context)?, self.number(b, context)?)),
        }
    }

    /// A node-set against a string or a number.
    fn compare_set(&mut self, op: CompareOp, set: ExprId, other: ExprId, context: Context) -> Truth {
        let nodes = self.nodes(set, context)?;
        if nodes.is_empty() {
            return Ok(false);
        }
        if self.type_of(other) == Type::String && equality(op) {
            let text = self.string(other, context)?;
            for &node in nodes.iter() {
                let value = self.string_of(node)?;
                let same_length = value.len() == text.len();
                self.charge_text(if same_length { text.len() } else { 0 })?;
                if (same_length && *value == *text) == (op == CompareOp::Equal) {
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        let number = self.number(other, context)?;
        for &node in nodes.iter() {
            if compare_numbers(op, self.number_of(node)?, number) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn compare_sets(&mut self, op: CompareOp, left: &Nodes<'r>, right: &Nodes<'r>) -> Truth {
        if right.is_empty() {
            return Ok(false);
        }
        match op {
            CompareOp::Equal => self.share_a_string(left, right),
            CompareOp::NotEqual => {
                // Two nodes differ unless every string-value on both sides is one and the same.
                let first = self.string_of(left[0])?;
                for &node in left.iter().chain(right.iter()) {
                    let value = self.string_of(node)?;
                    self.charge_text(if value.len() == first.len() { value.len() } else { 0 })?;
                    if value != first {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            _ => {
                let (Some((left_least, left_most)), Some((right_least, right_most))) =
                    (self.number_range(left)?, self.number_range(right)?)
                else {
                    return Ok(false);
                };
                Ok(match op {
                    CompareOp::Less | CompareOp::LessEqual => compare_numbers(op, left_least, right_most),
                    _ => compare_numbers(op, left_most, right_least),
                })
            }
        }
    }

    fn share_a_string(&mut self, left: &Nodes<'r>, right: &Nodes<'r>) -> Truth {
        if left.len().min(right.len()) == 1 {
            let (one, many) = if left.len() == 1 { (left[0], right) } else { (right[0], left) };
            if let (Nodes::Own(_), _) | (_, 1) = (many, many.len()) {
                let text = self.string_of(one)?;
                for &node in many.iter() {
                    let value = self.string_of(node)?;
                    self.charge_text(if value.len() == text.len() { text.len() } else { 0 })?;
                    if value == text {
                        return Ok(true);
                    }
                }
                return Ok(false);
            }
        }
        // Hash the side that is hashed already, else the smaller one.
        let shared = |nodes: &Nodes<'_>| matches!(nodes, Nodes::Shared(_));
        let hash_right = shared(right) || (!shared(left) && right.len() <= left.len());
        let (hashed, probing) = if hash_right { (right, left) } else { (left, right) };
        if let Nodes::Shared(closed) = hashed {
            if closed.strings.get().is_none() {
                let strings = self.distinct_strings(hashed)?;
                let _ = closed.strings.set(strings);
            }
            if let Some(strings) = closed.strings.get() {
                return self.any_in(probing, strings);
            }
        }
        let strings = self.distinct_strings(hashed)?;
        self.any_in(probing, &strings)
    }

    fn any_in(&mut self, nodes: &[NodeRef], strings: &HashSet<&'r str, foldhash::fast::FixedState>) -> Truth {
        for &node in nodes {
            let value = self.string_of(node)?;
            self.charge_text(value.len())?;
            if strings.contains(value) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn distinct_strings(
        &mut self,
        nodes: &[NodeRef],
    ) -> Result<HashSet<&'r str, foldhash::fast::FixedState>, EvaluateError> {
        let mut strings = HashSet::with_capacity_and_hasher(nodes.len(), foldhash::fast::FixedState::default());
        for &node in nodes {
            let value = self.string_of(node)?;
            self.charge_text(value.len())?;
            strings.insert(value);
        }
        Ok(strings)
    }

    fn number_range(&mut self, nodes: &Nodes<'r>) -> Result<Option<(f64, f64)>, EvaluateError> {
        if let Nodes::Shared(closed) = nodes
            && let Some(range) = closed.range.get()
        {
            return Ok(*range);
        }
        let mut range = None;
        for &node in nodes.iter() {
            let number = self.number_of(node)?;
            if !number.is_nan() {
                let (least, most) = range.unwrap_or((number, number));
                range = Some((number.min(least), number.max(most)));
            }
        }
        if let Nodes::Shared(closed) = nodes {
            let _ = closed.range.set(range);
        }
        Ok(range)
    }

    pub(super) fn number_of(&mut self, node: NodeRef) -> Result<f64, EvaluateError> {
        let text = self.string_of(node)?;
        self.charge_text(text.len())?;
        Ok(to_number(text))
    }
}
