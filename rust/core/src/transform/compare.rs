//! Comparisons of atomic values (XQuery 1.0 §3.5, Functions and Operators 1.0 §6.3 and §7.3).

use super::error::TransformError;
use super::value::{Atomic, decimal_to_double, not_castable, trim};
use crate::xquery::ast::CompareOp;
use rust_decimal::Decimal;
use std::cmp::Ordering;

/// Whether an order, `None` for values such as NaN that have none, satisfies an operator.
pub fn satisfies(op: CompareOp, order: Option<Ordering>) -> bool {
    match op {
        CompareOp::Equal => order == Some(Ordering::Equal),
        CompareOp::NotEqual => order != Some(Ordering::Equal),
        CompareOp::Less => order == Some(Ordering::Less),
        CompareOp::LessEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        CompareOp::Greater => order == Some(Ordering::Greater),
        CompareOp::GreaterEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
    }
}

/// The order of two numbers after promotion; `None` if one is NaN or is not a number.
pub fn numeric_order(a: &Atomic<'_>, b: &Atomic<'_>) -> Option<Ordering> {
    match (a, b) {
        (Atomic::Integer(a), Atomic::Integer(b)) => Some(a.cmp(b)),
        (Atomic::Double(_), _) | (_, Atomic::Double(_)) => as_double(a)?.partial_cmp(&as_double(b)?),
        _ => Some(as_decimal(a)?.cmp(&as_decimal(b)?)),
    }
}

fn as_double(value: &Atomic<'_>) -> Option<f64> {
    match value {
        Atomic::Integer(value) => Some(*value as f64),
        Atomic::Decimal(value) => Some(decimal_to_double(*value)),
        Atomic::Double(value) => Some(*value),
        _ => None,
    }
}

fn as_decimal(value: &Atomic<'_>) -> Option<Decimal> {
    match value {
        Atomic::Integer(value) => Some((*value).into()),
        Atomic::Decimal(value) => Some(*value),
        _ => None,
    }
}

fn incomparable(a: &Atomic<'_>, b: &Atomic<'_>) -> TransformError {
    TransformError::dynamic("XPTY0004", format!("{} can not be compared with {}", a.type_name(), b.type_name()))
}

/// The order of two values of which neither is untyped, by code points for strings.
fn typed_order(a: &Atomic<'_>, b: &Atomic<'_>) -> Result<Option<Ordering>, TransformError> {
    match (a, b) {
        (Atomic::String(a), Atomic::String(b)) => Ok(Some(a.as_str().cmp(b.as_str()))),
        (Atomic::Boolean(a), Atomic::Boolean(b)) => Ok(Some(a.cmp(b))),
        _ if a.is_numeric() && b.is_numeric() => Ok(numeric_order(a, b)),
        _ => Err(incomparable(a, b)),
    }
}

/// A general comparison of two values: untyped text becomes what it is compared with, strings among themselves.
///
/// # Errors
/// `FORG0001` for untyped text that is not of the other's type, `XPTY0004` for types that do not compare.
pub fn general(op: CompareOp, a: &Atomic<'_>, b: &Atomic<'_>) -> Result<bool, TransformError> {
    let order = match (a, b) {
        (Atomic::Untyped(x), Atomic::Untyped(y) | Atomic::String(y)) | (Atomic::String(x), Atomic::Untyped(y)) => {
            Some(x.as_str().cmp(y.as_str()))
        }
        (Atomic::Untyped(text), Atomic::Boolean(y)) => Some(parse_boolean(text.as_str())?.cmp(y)),
        (Atomic::Boolean(x), Atomic::Untyped(text)) => Some(x.cmp(&parse_boolean(text.as_str())?)),
        (Atomic::Untyped(_), _) => a.to_double()?.partial_cmp(&b.to_double()?),
        (_, Atomic::Untyped(_)) => a.to_double()?.partial_cmp(&b.to_double()?),
        _ => typed_order(a, b)?,
    };
    Ok(satisfies(op, order))
}

/// A value comparison of two values: untyped text is a string.
///
/// # Errors
/// `XPTY0004` for types that do not compare.
pub fn value(op: CompareOp, a: &Atomic<'_>, b: &Atomic<'_>) -> Result<bool, TransformError> {
    Ok(satisfies(op, order(a, b)?))
}

/// The order of two values as `order by`, `min`, `max` and value comparisons see it: untyped text is a string.
///
/// # Errors
/// `XPTY0004` for types that do not compare.
pub fn order(a: &Atomic<'_>, b: &Atomic<'_>) -> Result<Option<Ordering>, TransformError> {
    match (a.as_text(), b.as_text()) {
        (Some(a), Some(b)) => Ok(Some(a.cmp(b))),
        (None, None) => typed_order(a, b),
        _ => Err(incomparable(a, b)),
    }
}

/// Whether two values are one for `distinct-values` and `index-of`; values of types that do not compare differ.
pub fn is_same(a: &Atomic<'_>, b: &Atomic<'_>) -> bool {
    match (a, b) {
        (Atomic::Double(a), Atomic::Double(b)) if a.is_nan() && b.is_nan() => true,
        _ => matches!(order(a, b), Ok(Some(Ordering::Equal))),
    }
}

/// The boolean that a text stands for.
///
/// # Errors
/// `FORG0001` for any other text.
pub fn parse_boolean(text: &str) -> Result<bool, TransformError> {
    match trim(text) {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err(not_castable(text, "xs:boolean")),
    }
}
