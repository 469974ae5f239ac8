//! Timestamps of documents, in microseconds of UTC.

use crate::document::Document;
use crate::xpath::ast::{Cell, Constant, ConstantRef, ExprId, Query};
use crate::xpath::error::XPathError;
use crate::xpath::evaluate::{Evaluator, NodeRef};
use crate::xpath::parser::{Parser, QueryLimits, StaticContext};
use crate::xpath::symbols::{DocumentSymbols, Symbols};
use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime};
use std::collections::BTreeMap;

/// Where the documents of streams say when they happened.
#[derive(Debug, Default)]
pub struct Clocks {
    symbols: Symbols,
    by_stream: BTreeMap<Box<str>, Clock>,
}

#[derive(Debug)]
struct Clock {
    text: Box<str>,
    cells: Box<[Cell]>,
    root: ExprId,
    constants: Box<[Constant]>,
}

impl Clocks {
    /// Declares a stream's expression; its string value is the timestamp.
    ///
    /// # Errors
    /// If it is no XPath 1.0 expression.
    pub fn declare(&mut self, stream: &str, text: &str, namespaces: &[(&str, &str)]) -> Result<(), XPathError> {
        let mut parser = Parser::default();
        let context = StaticContext { namespaces, ignore_namespaces: false, limits: QueryLimits::default() };
        let parsed = parser.parse(text, &context, &mut self.symbols)?;
        let clock = Clock {
            text: text.into(),
            cells: parsed.cells().into(),
            root: parsed.root,
            constants: parsed.constants().into(),
        };
        self.by_stream.insert(stream.into(), clock);
        Ok(())
    }

    /// The timestamp of a document by its stream's declaration; None if there is none.
    ///
    /// # Errors
    /// What is wrong with what the expression gives.
    pub fn read(&self, document: &Document, stream: Option<&str>, cost_limit: u64) -> Option<Result<i64, String>> {
        let clock = self.by_stream.get(stream?)?;
        let symbols = DocumentSymbols::new(document, |test| self.symbols.find(test));
        let mut evaluator = Evaluator::new(document, &symbols, cost_limit);
        let constants: Vec<ConstantRef<'_>> = clock.constants.iter().map(Constant::as_ref).collect();
        let query = Query { cells: &clock.cells, root: clock.root };
        Some(match evaluator.value(query, &constants, NodeRef::ROOT) {
            Ok(value) => {
                let text = evaluator.to_text(&value);
                parse_timestamp(&text).ok_or_else(|| {
                    format!(
                        "{} gives {text:?}, which is no timestamp: ISO 8601, RFC 2822 or seconds since 1970 are needed",
                        clock.text
                    )
                })
            }
            Err(error) => Err(error.to_string()),
        })
    }
}

/// A timestamp in microseconds of UTC: ISO 8601 (`2014-04-24T11:58:20.5Z`, without a zone UTC, a date alone its
/// midnight), RFC 2822 (`Thu, 24 Apr 2014 11:58:20 GMT`), or seconds since 1970 as a decimal number.
pub fn parse_timestamp(text: &str) -> Option<i64> {
    let text = text.trim();
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Some(time.timestamp_micros());
    }
    if let Ok(time) = DateTime::parse_from_rfc2822(text) {
        return Some(time.timestamp_micros());
    }
    for form in ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M"] {
        if let Ok(time) = NaiveDateTime::parse_from_str(text, form) {
            return Some(time.and_utc().timestamp_micros());
        }
    }
    for form in ["%Y-%m-%dT%H:%M:%S%.f%z", "%Y-%m-%d %H:%M:%S%.f%z", "%Y-%m-%dT%H:%M%z"] {
        if let Ok(time) = DateTime::parse_from_str(text, form) {
            return Some(time.timestamp_micros());
        }
    }
    if let Ok(date) = NaiveDate::parse_from_str(text, "%Y-%m-%d") {
        return Some(date.and_time(NaiveTime::MIN).and_utc().timestamp_micros());
    }
    decimal_seconds(text)
}

/// `12.5` as microseconds; finer parts are cut off.
fn decimal_seconds(text: &str) -> Option<i64> {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !all_digits(whole) || !all_digits(part) {
        return None;
    }
    let fraction: String = part.chars().chain(std::iter::repeat('0')).take(6).collect();
    let micros = whole.parse::<i64>().ok()?.checked_mul(1_000_000)?.checked_add(fraction.parse().ok()?)?;
    Some(sign * micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_of_every_form_are_read() {
        let noon = 1_398_340_800_000_000;
        for text in [
            "2014-04-24T12:00:00Z",
            "2014-04-24T14:00:00+02:00",
            " 2014-04-24T12:00:00 ",
            "2014-04-24T12:00:00.000000",
            "2014-04-24 12:00:00",
            "2014-04-24T12:00",
            "2014-04-24T14:00:00+0200",
            "Thu, 24 Apr 2014 12:00:00 GMT",
            "Thu, 24 Apr 2014 14:00:00 +0200",
            "1398340800",
            "1398340800.0",
        ] {
            assert_eq!(parse_timestamp(text), Some(noon), "{text}");
        }
        assert_eq!(parse_timestamp("2014-04-24"), Some(noon - 12 * 3600 * 1_000_000));
        assert_eq!(parse_timestamp("-0.000001"), Some(-1));
        for text in ["", "soon", "2014-13-01", "1e3", "99999999999999999999", ".5"] {
            assert_eq!(parse_timestamp(text), None, "{text}");
        }
    }
}
