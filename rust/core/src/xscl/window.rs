//! Windows: exact microseconds.

use super::error::{Outcome, XsclErrorKind};
use super::lexer::{Kind, is_keyword};
use super::parser::Parser;

/// Units of a number, in microseconds.
const UNITS: [(&str, i128); 6] =
    [("us", 1), ("ms", 1000), ("s", SECOND), ("min", 60 * SECOND), ("h", 3600 * SECOND), ("d", 86400 * SECOND)];

const SECOND: i128 = 1_000_000;

/// Parts of an ISO 8601 duration in their order: before or after the `T`, letter, microseconds.
const PARTS: [(bool, u8, i128); 5] = [
    (false, b'W', 7 * 86400 * SECOND),
    (false, b'D', 86400 * SECOND),
    (true, b'H', 3600 * SECOND),
    (true, b'M', 60 * SECOND),
    (true, b'S', SECOND),
];

/// Most decimals of a whole number of microseconds: a day has the factor 2 thirteen times, and no longer unit has
/// decimals.
const MOST_DECIMALS: usize = 13;

/// More than any window; what is larger is not worth telling apart.
const TOO_LONG: i128 = i64::MAX as i128 + 1;

const TOO_FINE: &str = "this window is finer than a microsecond";

/// Microseconds of a decimal number of units.
fn exact(number: &str, unit: i128) -> Result<i128, &'static str> {
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    let whole = whole.trim_start_matches('0');
    let decimals = decimals.trim_end_matches('0');
    if decimals.len() > MOST_DECIMALS {
        return Err(TOO_FINE);
    }
    let value = |digits: &str| digits.bytes().fold(0, |sum: i128, digit| sum * 10 + i128::from(digit - b'0'));
    let scale = 10_i128.pow(decimals.len() as u32);
    let part = value(decimals) * unit;
    if part % scale != 0 {
        return Err(TOO_FINE);
    }
    if whole.len() > 19 {
        return Ok(TOO_LONG);
    }
    Ok((value(whole) * unit + part / scale).min(TOO_LONG))
}

/// Microseconds of an ISO 8601 duration.
fn duration(text: &str) -> Result<i128, &'static str> {
    const FORM: &str = "a window is a number with one of the units us, ms, s, min, h, d, an ISO 8601 duration such as \
                        P7D or PT1H30M, or INF";
    let mut rest = text.strip_prefix('P').ok_or(FORM)?;
    let mut in_time = false;
    let mut next = 0;
    let mut sum = 0;
    let mut is_empty = true;
    while !rest.is_empty() {
        if !in_time && let Some(time) = rest.strip_prefix('T') {
            in_time = true;
            is_empty = true;
            rest = time;
            continue;
        }
        let length = rest.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
        let (number, letter) = (&rest[..length], rest.as_bytes().get(length).copied().unwrap_or(0));
        if !in_time && matches!(letter, b'M' | b'Y') {
            return Err("months and years have no fixed length: write weeks or days, and minutes after a T (PT30M)");
        }
        let part = PARTS.iter().position(|(after, name, _)| (*after, *name) == (in_time, letter)).ok_or(FORM)?;
        let decimals = number.split_once('.').map(|(_, decimals)| decimals);
        let has_form = match decimals {
            None => !number.is_empty(),
            Some(decimals) => {
                letter == b'S' && !number.starts_with('.') && !decimals.is_empty() && !decimals.contains('.')
            }
        };
        if !has_form || part < next {
            return Err(FORM);
        }
        next = part + 1;
        is_empty = false;
        sum = (sum + exact(number, PARTS[part].2)?).min(TOO_LONG);
        rest = &rest[length + 1..];
    }
    if is_empty { Err(FORM) } else { Ok(sum) }
}

impl Parser<'_> {
    /// A window, in microseconds; None: unlimited.
    pub(super) fn window(&mut self) -> Outcome<Option<i64>> {
        let start = self.offset();
        if self.text() == "-" {
            return Err(self.error(XsclErrorKind::Syntax, "a window can not be negative", start));
        }
        let text = self.text();
        let micros = match self.kind() {
            Kind::Number => {
                self.at += 1;
                let unit = self.text();
                let factor = if matches!(self.kind(), Kind::Word | Kind::And | Kind::Or | Kind::As) {
                    let Some((_, factor)) = UNITS.iter().find(|(name, _)| *name == unit) else {
                        let message = format!("{unit:?} is no unit of time; units are us, ms, s, min, h and d");
                        return Err(self.error(XsclErrorKind::Syntax, message, self.offset()));
                    };
                    self.at += 1;
                    *factor
                } else {
                    SECOND
                };
                exact(text, factor)
            }
            Kind::Name => {
                self.at += 1;
                if is_keyword(text, "INF") {
                    return Ok(None);
                }
                duration(text)
            }
            _ => return Err(self.unexpected("a window such as 7 d or INF")),
        };
        let micros = micros.map_err(|message| self.error(XsclErrorKind::Syntax, message, start))?;
        match i64::try_from(micros) {
            Ok(micros) => Ok(Some(micros)),
            Err(_) => {
                let message = "this window is longer than 292,000 years; write INF for one without end";
                Err(self.error(XsclErrorKind::Limit, message, start))
            }
        }
    }
}
