//! The function library (Functions and Operators 1.0).

use super::arithmetic::compute;
use super::{Evaluator, Focus, KEEPING, Outcome, effective_boolean};
use crate::document::NodeKind;
use crate::transform::compare::{self, is_same, parse_boolean};
use crate::transform::error::TransformError;
use crate::transform::value::{
    Atomic, Item, Sequence, Text, double_to_decimal, not_castable, parse_double, parse_integer, single, trim,
};
use crate::xquery::ast::{ArithmeticOp, Expr, Function};
use foldhash::fast::FixedState;
use hashbrown::HashSet;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use std::cmp::Ordering;

type Call<'a> = Outcome<Sequence<'a>>;

fn boolean<'a>(value: bool) -> Sequence<'a> {
    single(Atomic::Boolean(value))
}

fn string<'a>(value: impl Into<String>) -> Sequence<'a> {
    single(Atomic::String(value.into().into()))
}

impl<'a> Evaluator<'a> {
    pub(super) fn call(&mut self, function: Function, arguments: &'a [Expr], focus: &Focus<'a>) -> Call<'a> {
        match function {
            Function::True => Ok(boolean(true)),
            Function::False => Ok(boolean(false)),
            Function::Position => Ok(single(Atomic::Integer(focus.position as i64))),
            Function::Last => Ok(single(Atomic::Integer(focus.size as i64))),
            Function::Boolean => Ok(boolean(self.truth(&arguments[0], focus)?)),
            Function::Not => Ok(boolean(!self.truth(&arguments[0], focus)?)),
            Function::Count => Ok(single(Atomic::Integer(self.value(&arguments[0], focus)?.len() as i64))),
            Function::Empty => Ok(boolean(self.value(&arguments[0], focus)?.is_empty())),
            Function::Exists => Ok(boolean(!self.value(&arguments[0], focus)?.is_empty())),
            Function::Data => {
                let values = self.atomized(&arguments[0], focus)?;
                Ok(values.into_iter().map(Item::Atomic).collect())
            }
            Function::Unordered => self.value(&arguments[0], focus),
            Function::Reverse => {
                let mut value = self.value(&arguments[0], focus)?;
                value.reverse();
                Ok(value)
            }
            Function::ZeroOrOne | Function::OneOrMore | Function::ExactlyOne => {
                let value = self.value(&arguments[0], focus)?;
                let (fits, code, wanted) = match function {
                    Function::ZeroOrOne => (value.len() <= 1, "FORG0003", "at most one item"),
                    Function::OneOrMore => (!value.is_empty(), "FORG0004", "at least one item"),
                    _ => (value.len() == 1, "FORG0005", "exactly one item"),
                };
                let wrong = || TransformError::dynamic(code, format!("{wanted} is needed, not {}", value.len()));
                if fits { Ok(value) } else { Err(wrong()) }
            }
            Function::Subsequence => self.subsequence(arguments, focus),
            Function::DistinctValues => self.distinct_values(&arguments[0], focus),
            Function::IndexOf => self.index_of(arguments, focus),
            Function::Sum | Function::Avg => self.sum(function, arguments, focus),
            Function::Min | Function::Max => self.extreme(function, &arguments[0], focus),
            Function::Root | Function::Name | Function::LocalName | Function::NamespaceUri => {
                self.node_function(function, arguments, focus)
            }
            Function::Number => {
                let value = match arguments.first() {
                    Some(argument) => self.atomized_one(argument, focus, "the argument of number()")?,
                    None => Some(self.atom(&focus.item)?),
                };
                Ok(single(Atomic::Double(value.as_ref().map_or(f64::NAN, to_number))))
            }
            Function::Abs | Function::Ceiling | Function::Floor | Function::Round => {
                self.rounding(function, &arguments[0], focus)
            }
            Function::XsBoolean
            | Function::XsDecimal
            | Function::XsDouble
            | Function::XsInteger
            | Function::XsString => {
                let value = self.atomized_one(&arguments[0], focus, "the argument of a cast")?;
                value.map_or(Ok(Sequence::new()), |value| Ok(single(cast(function, &value)?)))
            }
            _ => self.string_call(function, arguments, focus),
        }
    }

    fn string_call(&mut self, function: Function, arguments: &'a [Expr], focus: &Focus<'a>) -> Call<'a> {
        match function {
            Function::String => {
                let item = match arguments.first() {
                    None => focus.item.clone(),
                    Some(argument) => {
                        let value = self.value(argument, focus)?;
                        match &value[..] {
                            [] => return Ok(string("")),
                            [item] => item.clone(),
                            _ => return Err(TransformError::dynamic("XPTY0004", "string() takes one item")),
                        }
                    }
                };
                let text = self.atom(&item)?.to_text();
                Ok(single(Atomic::String(text)))
            }
            Function::Concat => {
                let mut all = String::new();
                for argument in arguments {
                    if let Some(value) = self.atomized_one(argument, focus, "an argument of concat()")? {
                        all.push_str(value.to_text().as_str());
                    }
                    self.charge_text(all.len())?;
                }
                Ok(string(all))
            }
            Function::StringJoin => {
                let values = self.atomized(&arguments[0], focus)?;
                let separator = self.string_argument(&arguments[1], focus)?;
                let mut all = String::new();
                for (at, value) in values.iter().enumerate() {
                    if at > 0 {
                        all.push_str(separator.as_str());
                    }
                    all.push_str(value.to_text().as_str());
                    self.charge_text(separator.as_str().len() + 16)?;
                }
                self.charge_text(all.len())?;
                Ok(string(all))
            }
            Function::Compare => {
                let a = self.optional_string(&arguments[0], focus)?;
                let b = self.optional_string(&arguments[1], focus)?;
                let (Some(a), Some(b)) = (a, b) else { return Ok(Sequence::new()) };
                Ok(single(Atomic::Integer(a.as_str().cmp(b.as_str()) as i64)))
            }
            Function::NormalizeSpace | Function::StringLength => {
                let text = match arguments.first() {
                    Some(argument) => self.string_argument(argument, focus)?,
                    None => self.atom(&focus.item)?.to_text(),
                };
                self.charge_text(text.as_str().len())?;
                if function == Function::StringLength {
                    return Ok(single(Atomic::Integer(text.as_str().chars().count() as i64)));
                }
                let words = text.as_str().split([' ', '\t', '\n', '\r']).filter(|word| !word.is_empty());
                Ok(string(words.collect::<Vec<_>>().join(" ")))
            }
            Function::LowerCase | Function::UpperCase => {
                let text = self.string_argument(&arguments[0], focus)?;
                self.charge_text(text.as_str().len())?;
                let text = text.as_str();
                Ok(string(if function == Function::LowerCase { text.to_lowercase() } else { text.to_uppercase() }))
            }
            Function::Substring => self.substring(arguments, focus),
            Function::Translate => {
                let text = self.string_argument(&arguments[0], focus)?;
                let from = self.string_argument(&arguments[1], focus)?;
                let to: Vec<char> = self.string_argument(&arguments[2], focus)?.as_str().chars().collect();
                self.charge_text(text.as_str().len().saturating_mul(1 + from.as_str().len()))?;
                let map = |letter: char| match from.as_str().chars().position(|known| known == letter) {
                    Some(at) => to.get(at).copied(),
                    None => Some(letter),
                };
                Ok(string(text.as_str().chars().filter_map(map).collect::<String>()))
            }
            _ => {
                let text = self.string_argument(&arguments[0], focus)?;
                let part = self.string_argument(&arguments[1], focus)?;
                self.charge_text(text.as_str().len())?;
                let (text, part) = (text.as_str(), part.as_str());
                Ok(match function {
                    Function::Contains => boolean(text.contains(part)),
                    Function::StartsWith => boolean(text.starts_with(part)),
                    Function::EndsWith => boolean(text.ends_with(part)),
                    // An empty part is found before the first character.
                    Function::SubstringBefore => string(text.find(part).map_or("", |at| &text[..at])),
                    _ => string(text.find(part).map_or("", |at| &text[at + part.len()..])),
                })
            }
        }
    }

    /// An argument that has to be a string, or nothing.
    fn optional_string(&mut self, expr: &'a Expr, focus: &Focus<'a>) -> Outcome<Option<Text<'a>>> {
        match self.atomized_one(expr, focus, "an argument of a string function")? {
            None => Ok(None),
            Some(Atomic::Untyped(text) | Atomic::String(text)) => Ok(Some(text)),
            Some(other) => {
                Err(TransformError::dynamic("XPTY0004", format!("a string is needed, not {}", other.type_name())))
            }
        }
    }

    /// An argument that has to be a string; nothing counts as the empty string.
    fn string_argument(&mut self, expr: &'a Expr, focus: &Focus<'a>) -> Outcome<Text<'a>> {
        Ok(self.optional_string(expr, focus)?.unwrap_or(Text::Borrowed("")))
    }

    /// An argument that has to be one number.
    fn double(&mut self, expr: &'a Expr, focus: &Focus<'a>) -> Outcome<f64> {
        match self.atomized_one(expr, focus, "an argument that is a number")? {
            Some(value) => value.to_double(),
            None => Err(TransformError::dynamic("XPTY0004", "a number is needed, not an empty sequence")),
        }
    }

    fn substring(&mut self, arguments: &'a [Expr], focus: &Focus<'a>) -> Call<'a> {
        let text = self.string_argument(&arguments[0], focus)?;
        let start = round_double(self.double(&arguments[1], focus)?);
        let end = match arguments.get(2) {
            Some(length) => start + round_double(self.double(length, focus)?),
            None => f64::INFINITY,
        };
        self.charge_text(text.as_str().len())?;
        let within = |position: usize| position as f64 >= start && (position as f64) < end;
        let letters = text.as_str().chars().enumerate().filter(|(at, _)| within(at + 1));
        Ok(string(letters.map(|(_, letter)| letter).collect::<String>()))
    }

    fn subsequence(&mut self, arguments: &'a [Expr], focus: &Focus<'a>) -> Call<'a> {
        let value = self.value(&arguments[0], focus)?;
        let start = round_double(self.double(&arguments[1], focus)?);
        let end = match arguments.get(2) {
            Some(length) => start + round_double(self.double(length, focus)?),
            None => f64::INFINITY,
        };
        let within = |position: usize| position as f64 >= start && (position as f64) < end;
        Ok(value.into_iter().enumerate().filter(|(at, _)| within(at + 1)).map(|(_, item)| item).collect())
    }

    fn distinct_values(&mut self, expr: &'a Expr, focus: &Focus<'a>) -> Call<'a> {
        let values = self.atomized(expr, focus)?;
        let mut texts: HashSet<&str, FixedState> = HashSet::default();
        let mut others: Vec<&Atomic<'a>> = Vec::new();
        let mut distinct = Sequence::new();
        for value in &values {
            let is_new = match value.as_text() {
                Some(text) => {
                    self.charge_text(text.len())?;
                    texts.insert(text)
                }
                None => {
                    self.charge(others.len() as u64)?;
                    let is_new = !others.iter().any(|other| is_same(other, value));
                    if is_new {
                        others.push(value);
                    }
                    is_new
                }
            };
            if is_new {
                distinct.push(Item::Atomic(value.clone()));
            }
        }
        self.charge(KEEPING * distinct.len() as u64)?;
        Ok(distinct)
    }

    fn index_of(&mut self, arguments: &'a [Expr], focus: &Focus<'a>) -> Call<'a> {
        let values = self.atomized(&arguments[0], focus)?;
        let Some(wanted) = self.atomized_one(&arguments[1], focus, "what index-of() looks for")? else {
            return Err(TransformError::dynamic("XPTY0004", "index-of() looks for one value, not for nothing"));
        };
        let is_wanted = |value: &Atomic<'a>| matches!(compare::order(value, &wanted), Ok(Some(Ordering::Equal)));
        let found = values.iter().enumerate().filter(|(_, value)| is_wanted(value));
        Ok(found.map(|(at, _)| Item::Atomic(Atomic::Integer(at as i64 + 1))).collect())
    }

    fn sum(&mut self, function: Function, arguments: &'a [Expr], focus: &Focus<'a>) -> Call<'a> {
        let values = self.atomized(&arguments[0], focus)?;
        let Some((first, rest)) = values.split_first() else {
            return match (function, arguments.get(1)) {
                (Function::Avg, _) => Ok(Sequence::new()),
                (_, Some(zero)) => self.value(zero, focus),
                _ => Ok(single(Atomic::Integer(0))),
            };
        };
        let mut total = summand(first)?;
        for value in rest {
            total = compute(ArithmeticOp::Add, &total, &summand(value)?)?;
        }
        if function == Function::Avg {
            total = compute(ArithmeticOp::Divide, &total, &Atomic::Integer(values.len() as i64))?;
        }
        Ok(single(total))
    }

    fn extreme(&mut self, function: Function, expr: &'a Expr, focus: &Focus<'a>) -> Call<'a> {
        let values = self.atomized(expr, focus)?;
        let mut values: Vec<Atomic<'a>> = values
            .into_iter()
            .map(|value| match &value {
                Atomic::Untyped(_) => value.to_double().map(Atomic::Double),
                _ => Ok(value),
            })
            .collect::<Outcome<_>>()?;
        if values.iter().any(|value| matches!(value, Atomic::Double(_))) {
            for value in &mut values {
                if value.is_numeric() {
                    *value = Atomic::Double(value.to_double()?);
                }
            }
        }
        let wanted = if function == Function::Min { Ordering::Less } else { Ordering::Greater };
        let mut values = values.into_iter();
        let Some(mut best) = values.next() else { return Ok(Sequence::new()) };
        let is_nan = |value: &Atomic<'_>| matches!(value, Atomic::Double(value) if value.is_nan());
        for value in values {
            let order = compare::order(&value, &best)
                .map_err(|_| TransformError::dynamic("FORG0006", "values of types that do not compare"))?;
            if is_nan(&value) || (!is_nan(&best) && order == Some(wanted)) {
                best = value;
            }
        }
        Ok(single(best))
    }

    fn node_function(&mut self, function: Function, arguments: &'a [Expr], focus: &Focus<'a>) -> Call<'a> {
        let item = match arguments.first() {
            None => Some(focus.item.clone()),
            Some(argument) => {
                let value = self.value(argument, focus)?;
                match &value[..] {
                    [] => None,
                    [item] => Some(item.clone()),
                    _ => {
                        let message = format!("{}() takes one node, not {}", function.name(), value.len());
                        return Err(TransformError::dynamic("XPTY0004", message));
                    }
                }
            }
        };
        let node = match item {
            None if function == Function::Root => return Ok(Sequence::new()),
            None => return Ok(string("")),
            Some(Item::Node(node)) => node,
            Some(_) => {
                let message = format!("{}() takes a node of the document", function.name());
                return Err(TransformError::dynamic("XPTY0004", message));
            }
        };
        let name = self.document().name(node);
        let is_instruction = self.document().node(node).kind == NodeKind::ProcessingInstruction;
        Ok(match function {
            Function::Root => Sequence::from_iter([Item::Node(0)]),
            Function::LocalName => string(&*name.local),
            Function::NamespaceUri if is_instruction => string(""),
            Function::NamespaceUri => string(&*name.uri),
            _ => string(name.qualified()),
        })
    }

    fn rounding(&mut self, function: Function, expr: &'a Expr, focus: &Focus<'a>) -> Call<'a> {
        let Some(value) = self.atomized_one(expr, focus, "the argument of a numeric function")? else {
            return Ok(Sequence::new());
        };
        Ok(single(match value {
            Atomic::Integer(value) if function == Function::Abs => Atomic::Integer(value.saturating_abs()),
            Atomic::Integer(value) => Atomic::Integer(value),
            Atomic::Decimal(value) => Atomic::Decimal(match function {
                Function::Abs => value.abs(),
                Function::Ceiling => value.ceil(),
                Function::Floor => value.floor(),
                _ => (value + Decimal::new(5, 1)).floor(),
            }),
            other => {
                let value = other.to_double()?;
                Atomic::Double(match function {
                    Function::Abs => value.abs(),
                    Function::Ceiling => value.ceil(),
                    Function::Floor => value.floor(),
                    _ => round_double(value),
                })
            }
        }))
    }
}

/// `fn:round`: to the nearest integer, halves upwards, the sign of zero kept.
fn round_double(value: f64) -> f64 {
    if (-0.5..0.0).contains(&value) {
        return -0.0;
    }
    let floor = value.floor();
    if value - floor >= 0.5 { floor + 1.0 } else { floor }
}

fn summand<'a>(value: &Atomic<'a>) -> Outcome<Atomic<'a>> {
    match value {
        Atomic::Untyped(_) => Ok(Atomic::Double(value.to_double()?)),
        value if value.is_numeric() => Ok(value.clone()),
        other => Err(TransformError::dynamic("FORG0006", format!("numbers are needed, not {}", other.type_name()))),
    }
}

/// `number()`: NaN for what is no number.
fn to_number(value: &Atomic<'_>) -> f64 {
    match value {
        Atomic::String(text) => parse_double(text.as_str()).unwrap_or(f64::NAN),
        Atomic::Boolean(value) => f64::from(u8::from(*value)),
        value => value.to_double().unwrap_or(f64::NAN),
    }
}

fn cast<'a>(function: Function, value: &Atomic<'a>) -> Outcome<Atomic<'a>> {
    let too_large = || TransformError::dynamic("FOCA0002", format!("{} does not fit", value.to_text().as_str()));
    Ok(match function {
        Function::XsString => Atomic::String(value.to_text()),
        Function::XsBoolean => Atomic::Boolean(match value.as_text() {
            Some(text) => parse_boolean(text)?,
            None => effective_boolean(&[Item::Atomic(value.clone())])?,
        }),
        Function::XsDouble => Atomic::Double(match value {
            Atomic::String(text) => {
                parse_double(text.as_str()).ok_or_else(|| not_castable(text.as_str(), "xs:double"))?
            }
            Atomic::Boolean(value) => f64::from(u8::from(*value)),
            value => value.to_double()?,
        }),
        Function::XsInteger => Atomic::Integer(match value {
            Atomic::Untyped(text) | Atomic::String(text) => parse_integer(text.as_str())?,
            Atomic::Integer(value) => *value,
            Atomic::Decimal(value) => value.trunc().to_i64().ok_or_else(too_large)?,
            Atomic::Double(value) if (-9.2e18..9.2e18).contains(value) => value.trunc() as i64,
            Atomic::Double(_) => return Err(too_large()),
            Atomic::Boolean(value) => i64::from(*value),
        }),
        _ => Atomic::Decimal(match value {
            Atomic::Untyped(text) | Atomic::String(text) => {
                let trimmed = trim(text.as_str());
                let plain = trimmed.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'-' | b'+'));
                let parsed = if plain { trimmed.parse().ok() } else { None };
                parsed.ok_or_else(|| not_castable(text.as_str(), "xs:decimal"))?
            }
            Atomic::Integer(value) => (*value).into(),
            Atomic::Decimal(value) => *value,
            Atomic::Double(value) => double_to_decimal(*value).ok_or_else(too_large)?,
            Atomic::Boolean(value) => i64::from(*value).into(),
        }),
    })
}
