//! Numbers: from and to strings (§4.2, §4.4), and rounding.

/// The number that a string denotes: optional white space, an optional minus sign, digits with at most one point;
/// anything else, exponents included, is NaN.
pub fn to_number(text: &str) -> f64 {
    let trimmed = trim(text);
    let digits = trimmed.strip_prefix('-').unwrap_or(trimmed);
    let mut seen_digit = false;
    let mut seen_point = false;
    for byte in digits.bytes() {
        match byte {
            b'0'..=b'9' => seen_digit = true,
            b'.' if !seen_point => seen_point = true,
            _ => return f64::NAN,
        }
    }
    if seen_digit { trimmed.parse().unwrap_or(f64::NAN) } else { f64::NAN }
}

/// Whether a byte is white space in XML: space, tab, line feed or carriage return.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

fn trim(text: &str) -> &str {
    text.trim_matches([' ', '\t', '\n', '\r'])
}

/// A number as a string: no exponent, no point in integers, and the fewest digits that tell it from every other
/// double.
pub fn to_string(number: f64) -> String {
    if number.is_nan() {
        "NaN".into()
    } else if number.is_infinite() {
        if number > 0.0 { "Infinity".into() } else { "-Infinity".into() }
    } else if number == 0.0 {
        "0".into() // negative zero too
    } else {
        number.to_string()
    }
}

/// The nearest integer, halves towards positive infinity; what is between -0.5 and 0 becomes negative zero.
pub fn round(number: f64) -> f64 {
    // Not floor(number + 0.5): that sum is inexact, so that 0.49999999999999994 would become 1.
    let floor = number.floor();
    let rounded = if number - floor >= 0.5 { floor + 1.0 } else { floor };
    if rounded == 0.0 { 0.0_f64.copysign(number) } else { rounded }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_become_numbers_only_in_the_grammar_of_the_recommendation() {
        for (text, expected) in
            [("12", 12.0), (" \t\n\r-12.5 ", -12.5), (".5", 0.5), ("5.", 5.0), ("-.5", -0.5), ("007", 7.0)]
        {
            assert_eq!(to_number(text), expected, "{text:?}");
        }
        for text in [
            "", " ", ".", "-", "-.", "+1", "1e3", "1E3", "1 2", "- 1", "--1", "0x1", "Infinity", "NaN", "1.2.3",
            "\u{a0}1",
        ] {
            assert!(to_number(text).is_nan(), "{text:?}");
        }
        assert!(to_number("-0").is_sign_negative());
        assert_eq!(to_number(&"9".repeat(400)), f64::INFINITY);
    }

    #[test]
    fn numbers_become_the_shortest_decimal_without_exponent() {
        for (number, expected) in [
            (0.0, "0"),
            (-0.0, "0"),
            (1.0, "1"),
            (-1.5, "-1.5"),
            (0.1 + 0.2, "0.30000000000000004"),
            (1e21, "1000000000000000000000"),
            (1e-7, "0.0000001"),
            (123456789012345680.0, "123456789012345680"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(to_string(number), expected);
        }
        assert_eq!(to_number(&to_string(f64::MIN_POSITIVE)), f64::MIN_POSITIVE);
        assert_eq!(to_number(&to_string(f64::MAX)), f64::MAX);
    }

    #[test]
    fn halves_round_towards_positive_infinity() {
        for (number, expected) in [
            (2.5, 3.0),
            (-2.5, -2.0),
            (0.49999999999999994, 0.0),
            (-0.6, -1.0),
            (4503599627370497.0, 4503599627370497.0),
            (f64::INFINITY, f64::INFINITY),
        ] {
            assert_eq!(round(number), expected, "{number}");
        }
        assert!(round(-0.5).is_sign_negative() && round(-0.5) == 0.0);
        assert!(round(-0.2).is_sign_negative() && round(-0.0).is_sign_negative());
        assert!(round(0.2).is_sign_positive());
        assert!(round(f64::NAN).is_nan());
    }
}
