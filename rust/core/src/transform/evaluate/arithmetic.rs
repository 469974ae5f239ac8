//! Arithmetic (XQuery 1.0 §3.4, Functions and Operators 1.0 §6.2).

use super::{Evaluator, Focus, KEEPING, Outcome};
use crate::transform::error::TransformError;
use crate::transform::value::{Atomic, Item, Sequence, parse_integer, single};
use crate::xquery::ast::{ArithmeticOp, Expr};
use rust_decimal::prelude::ToPrimitive;
use rust_decimal::{Decimal, RoundingStrategy};

/// Fraction digits of a quotient of decimals, where the operands have no more.
const QUOTIENT_DIGITS: u32 = 18;

impl<'a> Evaluator<'a> {
    pub(super) fn arithmetic(
        &mut self,
        op: ArithmeticOp,
        a: &'a Expr,
        b: &'a Expr,
        focus: &Focus<'a>,
    ) -> Outcome<Sequence<'a>> {
        let a = self.atomized_one(a, focus, "an operand of arithmetic")?;
        let b = self.atomized_one(b, focus, "an operand of arithmetic")?;
        match (a, b) {
            (Some(a), Some(b)) => Ok(single(compute(op, &number(a)?, &number(b)?)?)),
            _ => Ok(Sequence::new()),
        }
    }

    pub(super) fn negate(&mut self, a: &'a Expr, focus: &Focus<'a>) -> Outcome<Sequence<'a>> {
        let Some(a) = self.atomized_one(a, focus, "an operand of arithmetic")? else { return Ok(Sequence::new()) };
        Ok(single(match number(a)? {
            Atomic::Integer(value) => Atomic::Integer(value.checked_neg().ok_or_else(overflow)?),
            Atomic::Decimal(value) => Atomic::Decimal(-value),
            other => Atomic::Double(-other.to_double()?),
        }))
    }

    pub(super) fn range(&mut self, a: &'a Expr, b: &'a Expr, focus: &Focus<'a>) -> Outcome<Sequence<'a>> {
        let from = self.integer(a, focus)?;
        let to = self.integer(b, focus)?;
        let (Some(from), Some(to)) = (from, to) else { return Ok(Sequence::new()) };
        if from > to {
            return Ok(Sequence::new());
        }
        self.charge((to.abs_diff(from).saturating_add(1)).saturating_mul(KEEPING))?;
        Ok((from..=to).map(|value| Item::Atomic(Atomic::Integer(value))).collect())
    }

    /// An operand that has to be an integer.
    fn integer(&mut self, expr: &'a Expr, focus: &Focus<'a>) -> Outcome<Option<i64>> {
        match self.atomized_one(expr, focus, "an end of a range")? {
            None => Ok(None),
            Some(Atomic::Integer(value)) => Ok(Some(value)),
            Some(Atomic::Untyped(text)) => Ok(Some(parse_integer(text.as_str())?)),
            Some(other) => {
                let message = format!("an end of a range is an xs:integer, not {}", other.type_name());
                Err(TransformError::dynamic("XPTY0004", message))
            }
        }
    }
}

/// Untyped text is a double; what is no number at all is an error.
fn number(value: Atomic<'_>) -> Outcome<Atomic<'_>> {
    match value {
        Atomic::Untyped(_) => Ok(Atomic::Double(value.to_double()?)),
        value if value.is_numeric() => Ok(value),
        other => {
            Err(TransformError::dynamic("XPTY0004", format!("arithmetic needs numbers, not {}", other.type_name())))
        }
    }
}

fn overflow() -> TransformError {
    TransformError::dynamic("FOAR0002", "the result is too large")
}

fn division_by_zero() -> TransformError {
    TransformError::dynamic("FOAR0001", "division by zero")
}

/// One operation on two numbers, after promotion.
pub(super) fn compute<'a>(op: ArithmeticOp, a: &Atomic<'_>, b: &Atomic<'_>) -> Outcome<Atomic<'a>> {
    match (a, b) {
        (Atomic::Integer(a), Atomic::Integer(b)) => integers(op, *a, *b),
        (Atomic::Double(_), _) | (_, Atomic::Double(_)) => doubles(op, a.to_double()?, b.to_double()?),
        _ => decimals(op, decimal(a), decimal(b)),
    }
}

fn decimal(value: &Atomic<'_>) -> Decimal {
    match value {
        Atomic::Integer(value) => (*value).into(),
        Atomic::Decimal(value) => *value,
        _ => Decimal::ZERO,
    }
}

fn integers<'a>(op: ArithmeticOp, a: i64, b: i64) -> Outcome<Atomic<'a>> {
    let exact = match op {
        ArithmeticOp::Add => a.checked_add(b),
        ArithmeticOp::Subtract => a.checked_sub(b),
        ArithmeticOp::Multiply => a.checked_mul(b),
        ArithmeticOp::Divide => return decimals(op, a.into(), b.into()),
        ArithmeticOp::IntegerDivide | ArithmeticOp::Modulo if b == 0 => return Err(division_by_zero()),
        ArithmeticOp::IntegerDivide => a.checked_div(b),
        ArithmeticOp::Modulo => Some(a.checked_rem(b).unwrap_or(0)),
    };
    exact.map(Atomic::Integer).ok_or_else(overflow)
}

fn decimals<'a>(op: ArithmeticOp, a: Decimal, b: Decimal) -> Outcome<Atomic<'a>> {
    let exact = match op {
        ArithmeticOp::Add => a.checked_add(b),
        ArithmeticOp::Subtract => a.checked_sub(b),
        ArithmeticOp::Multiply => a.checked_mul(b),
        _ if b.is_zero() => return Err(division_by_zero()),
        ArithmeticOp::Divide => {
            let digits = QUOTIENT_DIGITS.max(a.scale()).max(b.scale());
            a.checked_div(b).map(|value| value.round_dp_with_strategy(digits, RoundingStrategy::MidpointTowardZero))
        }
        ArithmeticOp::IntegerDivide => {
            let quotient = a.checked_div(b).and_then(|value| value.trunc().to_i64());
            return quotient.map(Atomic::Integer).ok_or_else(overflow);
        }
        ArithmeticOp::Modulo => a.checked_rem(b),
    };
    exact.map(Atomic::Decimal).ok_or_else(overflow)
}

fn doubles<'a>(op: ArithmeticOp, a: f64, b: f64) -> Outcome<Atomic<'a>> {
    Ok(Atomic::Double(match op {
        ArithmeticOp::Add => a + b,
        ArithmeticOp::Subtract => a - b,
        ArithmeticOp::Multiply => a * b,
        ArithmeticOp::Divide => a / b,
        ArithmeticOp::Modulo => a % b,
        ArithmeticOp::IntegerDivide if b == 0.0 => return Err(division_by_zero()),
        ArithmeticOp::IntegerDivide => {
            let quotient = (a / b).trunc();
            let fits = (-9.2e18..9.2e18).contains(&quotient);
            return if fits { Ok(Atomic::Integer(quotient as i64)) } else { Err(overflow()) };
        }
    }))
}
