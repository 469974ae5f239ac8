//! Character classes of XML 1.0, 5th edition, and qualified names.

const START: u8 = 1;
const NAME: u8 = 2;
const SPACE: u8 = 4;

/// Classes of the ASCII characters; the colon is in none, callers treat it apart.
const ASCII: [u8; 128] = {
    let mut table = [0; 128];
    let mut byte = 0;
    while byte < 128 {
        table[byte] = match byte as u8 {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => START | NAME,
            b'0'..=b'9' | b'-' | b'.' => NAME,
            b' ' | b'\t' | b'\n' | b'\r' => SPACE,
            _ => 0,
        };
        byte += 1;
    }
    table
};

/// White space (production 3).
#[inline]
pub(crate) fn is_space(byte: u8) -> bool {
    byte < 128 && ASCII[byte as usize] & SPACE != 0
}

/// Whether a text is white space only.
pub(crate) fn is_blank(text: &str) -> bool {
    text.bytes().all(is_space)
}

/// A legal character (production 2).
pub(crate) fn is_char(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..)
}

/// Whether a character may start a name (production 4, without the colon).
pub(crate) fn is_name_start(c: char) -> bool {
    match c as u32 {
        0..128 => ASCII[c as usize] & START != 0,
        0xC0..=0xD6
        | 0xD8..=0xF6
        | 0xF8..=0x2FF
        | 0x370..=0x37D
        | 0x37F..=0x1FFF
        | 0x200C..=0x200D
        | 0x2070..=0x218F
        | 0x2C00..=0x2FEF
        | 0x3001..=0xD7FF
        | 0xF900..=0xFDCF
        | 0xFDF0..=0xFFFD
        | 0x10000..=0xEFFFF => true,
        _ => false,
    }
}

/// Whether a character may continue a name (production 4a, without the colon).
pub(crate) fn is_name_char(c: char) -> bool {
    match c as u32 {
        0..128 => ASCII[c as usize] & NAME != 0,
        0xB7 | 0x300..=0x36F | 0x203F..=0x2040 => true,
        _ => is_name_start(c),
    }
}

/// Whether a text is a name without colon (NCName).
pub(crate) fn is_ncname(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(is_name_start) && chars.all(is_name_char)
}

/// Whether a text is a name token (Nmtoken), colons allowed.
pub(crate) fn is_nmtoken(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c == ':' || is_name_char(c))
}

/// Length in bytes of the longest run of name characters and colons at the start of a text.
pub(crate) fn name_run(text: &str) -> usize {
    text.find(|c| c != ':' && !is_name_char(c)).unwrap_or(text.len())
}

/// Position of the colon of a qualified name (`Some(None)`: no colon); `None` if the text is not a QName.
pub(crate) fn qname_colon(text: &str) -> Option<Option<usize>> {
    match memchr::memchr(b':', text.as_bytes()) {
        None => is_ncname(text).then_some(None),
        Some(at) => (is_ncname(&text[..at]) && is_ncname(&text[at + 1..])).then_some(Some(at)),
    }
}

/// Offset and value of the first character that XML does not allow.
pub(crate) fn find_forbidden(text: &str) -> Option<(usize, char)> {
    let bytes = text.as_bytes();
    let control = |byte: u8| byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r');
    // Folding without an early exit lets the compiler use vectors; a hit is rare and is looked for again.
    let dirty = bytes.chunks(4096).position(|chunk| chunk.iter().fold(false, |found, b| found | control(*b)));
    let first =
        dirty.and_then(|chunk| bytes[chunk * 4096..].iter().position(|b| control(*b)).map(|i| chunk * 4096 + i));
    // U+FFFE and U+FFFF are EF BF BE and EF BF BF; surrogates cannot occur in a str.
    let noncharacter = memchr::memmem::find_iter(bytes, b"\xEF\xBF").find(|at| bytes[at + 2] >= 0xBE);
    let at = match (first, noncharacter) {
        (Some(a), Some(b)) => a.min(b),
        (a, b) => a.or(b)?,
    };
    text[at..].chars().next().map(|c| (at, c))
}

/// Resolves the inside of a character reference (`#65`, `#x41`); `None` if it is malformed or no legal character.
pub(crate) fn character_reference(body: &str) -> Option<char> {
    let digits = body.strip_prefix('#')?;
    let (digits, radix) = digits.strip_prefix('x').map_or((digits, 10), |hex| (hex, 16));
    if digits.is_empty() || !digits.bytes().all(|b| (b as char).is_digit(radix)) {
        return None;
    }
    // Leading zeros may be many: they fit because the sum saturates only on real digits.
    let code = digits
        .bytes()
        .fold(0u32, |sum, b| sum.saturating_mul(radix).saturating_add((b as char).to_digit(radix).unwrap_or(0)));
    char::from_u32(code).filter(|c| is_char(*c))
}

/// The five predefined entities.
pub(crate) fn predefined(name: &str) -> Option<char> {
    match name {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => None,
    }
}

/// Appends a text with its line ends normalised (§2.11): CR LF and CR become LF.
pub(crate) fn push_normalised(out: &mut String, text: &str) {
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'\r', rest.as_bytes()) {
        out.push_str(&rest[..at]);
        out.push('\n');
        rest = &rest[at + 1..];
        rest = rest.strip_prefix('\n').unwrap_or(rest);
    }
    out.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_fifth_edition() {
        for good in ["a", "_a.-1", "é", "a\u{B7}", "\u{10000}"] {
            assert!(is_ncname(good), "{good}");
        }
        for bad in ["", "1a", "-a", ".a", "a:b", "a b", "\u{B7}", "\u{D7}", "\u{37E}"] {
            assert!(!is_ncname(bad), "{bad}");
        }
        assert_eq!(qname_colon("a:b"), Some(Some(1)));
        assert_eq!(qname_colon("a:b:c"), None);
        assert_eq!(qname_colon(":b"), None);
    }

    #[test]
    fn forbidden_characters_are_found_anywhere() {
        assert_eq!(find_forbidden("a\tb\u{FFFD}\u{7F}\u{85}"), None);
        assert_eq!(find_forbidden("é\u{1}"), Some((2, '\u{1}')));
        assert_eq!(find_forbidden("x\u{FFFF}\u{2}"), Some((1, '\u{FFFF}')));
        assert_eq!(find_forbidden(&("a".repeat(5000) + "\0")), Some((5000, '\0')));
    }

    #[test]
    fn references_are_strict() {
        assert_eq!(character_reference("#65"), Some('A'));
        assert_eq!(character_reference("#x0000000000041"), Some('A'));
        for bad in ["#", "#x", "#X41", "# 65", "#0", "#8", "#xD800", "#xFFFE", "#x110000", "#99999999999999", "#+1"] {
            assert_eq!(character_reference(bad), None, "{bad}");
        }
    }

    #[test]
    fn line_ends() {
        let mut out = String::new();
        push_normalised(&mut out, "a\r\nb\rc\r\r\n");
        assert_eq!(out, "a\nb\nc\n\n");
    }
}
