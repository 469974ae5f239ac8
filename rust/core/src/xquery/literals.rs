//! Literals and references (XQuery 1.0 §3.1.1).

use super::ast::{Double, Expr, Literal};
use super::error::XQueryErrorKind;
use super::parser::{Parsed, Parser};
use crate::document::chars::{character_reference, predefined};
use std::borrow::Cow;

/// A text with the ends of its lines as XML has them.
pub(super) fn line_ends(text: &str) -> Cow<'_, str> {
    if memchr::memchr(b'\r', text.as_bytes()).is_none() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n"))
}

impl<'t> Parser<'t> {
    /// A string literal after white space.
    pub(super) fn string_literal(&mut self) -> Parsed<String> {
        self.skip();
        let quote = self.byte(0);
        if !matches!(quote, b'"' | b'\'') {
            return Err(self.unexpected("a string literal"));
        }
        let start = self.at;
        self.at += 1;
        let mut value = String::new();
        loop {
            let rest = self.rest();
            let Some(stop) = memchr::memchr2(quote, b'&', rest.as_bytes()) else {
                return Err(self.error_at(XQueryErrorKind::Syntax, "this string literal does not end", start));
            };
            value.push_str(&line_ends(&rest[..stop]));
            self.at += stop;
            if self.byte(0) == b'&' {
                value.push(self.reference()?);
            } else if self.byte(1) == quote {
                value.push(quote as char);
                self.at += 2;
            } else {
                self.at += 1;
                return Ok(value);
            }
        }
    }

    /// `&name;` or `&#number;`.
    pub(super) fn reference(&mut self) -> Parsed<char> {
        let rest = self.rest();
        let end = rest.bytes().take(40).position(|byte| byte == b';');
        let found = end.and_then(|end| {
            let body = &rest[1..end];
            predefined(body).or_else(|| character_reference(body)).map(|found| (found, end))
        });
        match found {
            Some((found, end)) => {
                self.at += end + 1;
                Ok(found)
            }
            None => Err(self.syntax("this & begins no reference to a character or a predefined entity")),
        }
    }

    /// A number.
    pub(super) fn number(&mut self) -> Parsed<Expr> {
        let start = self.at;
        let digits = |parser: &mut Self| {
            let from = parser.at;
            while parser.byte(0).is_ascii_digit() {
                parser.at += 1;
            }
            parser.at - from
        };
        let mut count = digits(self);
        let has_point = self.byte(0) == b'.';
        if has_point {
            self.at += 1;
            count += digits(self);
        }
        let mut has_exponent = false;
        if count > 0 && matches!(self.byte(0), b'e' | b'E') {
            has_exponent = true;
            self.at += 1;
            if matches!(self.byte(0), b'+' | b'-') {
                self.at += 1;
            }
            if digits(self) == 0 {
                return Err(self.unexpected("the digits of an exponent"));
            }
        }
        if count == 0 || !self.peek_name().is_empty() {
            return Err(self.unexpected("white space or an operator after a number"));
        }
        let text = &self.text[start..self.at];
        let too_large = |parser: &Self| {
            parser.error_at(XQueryErrorKind::Limit, format!("the number {text} is too large or too exact"), start)
        };
        let literal = if has_exponent {
            Literal::Double(Double(text.parse().map_err(|_| too_large(self))?))
        } else if has_point {
            let plain = text.trim_end_matches('.');
            let whole = if plain.starts_with('.') { format!("0{plain}") } else { plain.to_owned() };
            Literal::Decimal(rust_decimal::Decimal::from_str_exact(&whole).map_err(|_| too_large(self))?)
        } else {
            Literal::Integer(text.parse().map_err(|_| too_large(self))?)
        };
        Ok(Expr::Literal(literal))
    }
}
