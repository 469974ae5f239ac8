//! Text to tokens, with the disambiguation rules of §3.7. Tokens borrow the text; nothing is allocated.

use super::error::{XPathError, XPathErrorKind};

/// A token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Token<'t> {
    /// End of the text.
    End,
    /// `(`
    Open,
    /// `)`
    Close,
    /// `[`
    OpenBracket,
    /// `]`
    CloseBracket,
    /// `.`
    Dot,
    /// `..`
    DotDot,
    /// `@`
    At,
    /// `,`
    Comma,
    /// `::`
    ColonColon,
    /// `/`
    Slash,
    /// `//`
    SlashSlash,
    /// `|`
    Pipe,
    /// `+`
    Plus,
    /// `-`
    Minus,
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
    /// `*` as an operator
    Multiply,
    /// `and`
    And,
    /// `or`
    Or,
    /// `mod`
    Mod,
    /// `div`
    Div,
    /// `*` as a name test
    Star,
    /// `prefix:*`
    PrefixStar(&'t str),
    /// A name: prefix (empty if none) and local part.
    Name(&'t str, &'t str),
    /// A name directly followed by `(`: a function or a node type.
    CallName(&'t str, &'t str),
    /// A name directly followed by `::`.
    AxisName(&'t str),
    /// A string literal, without its quotes.
    Literal(&'t str),
    /// A number literal.
    Number(&'t str),
    /// `$` and what follows.
    Variable,
}

/// Reads tokens one at a time.
#[derive(Debug)]
pub(crate) struct Lexer<'t> {
    text: &'t str,
    at: usize,
    /// Whether the token before was an operand, so that a name or `*` is an operator now.
    after_operand: bool,
}

/// Operator words of later versions; met where an operator is due, they deserve their own message.
const LATER_OPERATORS: &[&str] = &[
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "is",
    "to",
    "idiv",
    "union",
    "intersect",
    "except",
    "instance",
    "cast",
    "castable",
    "treat",
    "return",
    "satisfies",
    "then",
    "else",
    "in",
];

impl<'t> Lexer<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Lexer { text, at: 0, after_operand: false }
    }

    fn error(&self, kind: XPathErrorKind, message: impl Into<String>, offset: usize) -> XPathError {
        XPathError::new(kind, message, self.text, offset)
    }

    fn byte(&self, at: usize) -> u8 {
        self.text.as_bytes().get(at).copied().unwrap_or(0)
    }

    fn skip_space(&self, mut at: usize) -> usize {
        while matches!(self.byte(at), b' ' | b'\t' | b'\n' | b'\r') {
            at += 1;
        }
        at
    }

    /// The end of the NCName at `at`; `at` itself if there is none.
    fn name_end(&self, start: usize) -> usize {
        let bytes = self.text.as_bytes();
        let mut at = start;
        while let Some(&byte) = bytes.get(at) {
            if byte.is_ascii_alphabetic() || byte == b'_' {
                at += 1;
            } else if byte.is_ascii_digit() || byte == b'-' || byte == b'.' {
                if at == start {
                    return start;
                }
                at += 1;
            } else if byte < 0x80 {
                break;
            } else {
                let Some(found) = self.text[at..].chars().next() else { break };
                if !(is_name_start(found) || (at > start && is_name_extra(found))) {
                    break;
                }
                at += found.len_utf8();
            }
        }
        at
    }

    /// The next token and its byte offset.
    pub(crate) fn next(&mut self) -> Result<(Token<'t>, usize), XPathError> {
        let start = self.skip_space(self.at);
        let (token, end) = self.scan(start)?;
        self.at = end;
        self.after_operand = matches!(
            token,
            Token::Close
                | Token::CloseBracket
                | Token::Dot
                | Token::DotDot
                | Token::Star
                | Token::PrefixStar(_)
                | Token::Name(..)
                | Token::CallName(..)
                | Token::AxisName(_)
                | Token::Literal(_)
                | Token::Number(_)
                | Token::Variable
        );
        Ok((token, start))
    }

    fn scan(&self, start: usize) -> Result<(Token<'t>, usize), XPathError> {
        let second = self.byte(start + 1);
        let one = |token| Ok((token, start + 1));
        let two = |token| Ok((token, start + 2));
        match self.byte(start) {
            0 if start >= self.text.len() => Ok((Token::End, start)),
            b'(' if second == b':' => Err(self.error(
                XPathErrorKind::NotXPath1,
                "`(:` opens a comment in XPath 2.0; XPath 1.0 has no comments",
                start,
            )),
            b'(' => one(Token::Open),
            b')' => one(Token::Close),
            b'[' => one(Token::OpenBracket),
            b']' => one(Token::CloseBracket),
            b',' => one(Token::Comma),
            b'@' => one(Token::At),
            b'$' => one(Token::Variable),
            b'+' => one(Token::Plus),
            b'-' => one(Token::Minus),
            b'=' if second == b'>' => Err(self.later("=>", start)),
            b'=' => one(Token::Equal),
            b'!' if second == b'=' => two(Token::NotEqual),
            b'!' => Err(self.later("!", start)),
            b'<' if second == b'=' => two(Token::LessEqual),
            b'<' if second == b'<' => Err(self.later("<<", start)),
            b'<' => one(Token::Less),
            b'>' if second == b'=' => two(Token::GreaterEqual),
            b'>' if second == b'>' => Err(self.later(">>", start)),
            b'>' => one(Token::Greater),
            b'|' if second == b'|' => Err(self.later("||", start)),
            b'|' => one(Token::Pipe),
            b'/' if second == b'/' => two(Token::SlashSlash),
            b'/' => one(Token::Slash),
            b':' if second == b':' => two(Token::ColonColon),
            b'*' if self.after_operand => one(Token::Multiply),
            b'*' if second == b':' && self.byte(start + 2) != b':' => Err(self.error(
                XPathErrorKind::NotXPath1,
                "`*:name` is XPath 2.0; write `*[local-name() = 'name']`, or register with ignore_namespaces",
                start,
            )),
            b'*' => one(Token::Star),
            b'.' if second == b'.' => two(Token::DotDot),
            b'.' if second.is_ascii_digit() => Ok(self.number(start)),
            b'.' => one(Token::Dot),
            b'0'..=b'9' => Ok(self.number(start)),
            quote @ (b'"' | b'\'') => match memchr::memchr(quote, &self.text.as_bytes()[start + 1..]) {
                Some(length) => {
                    let end = start + 1 + length;
                    Ok((Token::Literal(&self.text[start + 1..end]), end + 1))
                }
                None => {
                    Err(self.error(XPathErrorKind::Syntax, "the string literal that starts here has no end", start))
                }
            },
            _ => self.name(start),
        }
    }

    /// A parenthesis, but not the start of an XPath 2.0 comment.
    fn opens_call(&self, at: usize) -> bool {
        self.byte(at) == b'(' && self.byte(at + 1) != b':'
    }

    fn later(&self, operator: &str, start: usize) -> XPathError {
        let message = format!("`{operator}` is an operator of a later XPath version, not of XPath 1.0");
        self.error(XPathErrorKind::NotXPath1, message, start)
    }

    fn number(&self, start: usize) -> (Token<'t>, usize) {
        let mut end = start;
        while self.byte(end).is_ascii_digit() {
            end += 1;
        }
        if self.byte(end) == b'.' {
            end += 1;
            while self.byte(end).is_ascii_digit() {
                end += 1;
            }
        }
        (Token::Number(&self.text[start..end]), end)
    }

    fn name(&self, start: usize) -> Result<(Token<'t>, usize), XPathError> {
        let end = self.name_end(start);
        if end == start {
            let found = self.text[start..].chars().next().unwrap_or(' ');
            let message = format!("found {found:?}, which can start nothing in XPath 1.0");
            return Err(self.error(XPathErrorKind::Syntax, message, start));
        }
        let first = &self.text[start..end];
        if self.after_operand {
            return match first {
                "and" => Ok((Token::And, end)),
                "or" => Ok((Token::Or, end)),
                "mod" => Ok((Token::Mod, end)),
                "div" => Ok((Token::Div, end)),
                word if LATER_OPERATORS.contains(&word) => Err(self.later(word, start)),
                word => Err(self.error(
                    XPathErrorKind::Syntax,
                    format!("found the name `{word}` where an operator or the end was expected"),
                    start,
                )),
            };
        }
        if first == "Q" && self.byte(end) == b'{' {
            let message = "`Q{uri}name` is XPath 3.0; bind a prefix to the namespace instead";
            return Err(self.error(XPathErrorKind::NotXPath1, message, start));
        }
        // A prefixed name is one token without white space inside; `a::b` is an axis.
        if self.byte(end) == b':' && self.byte(end + 1) != b':' {
            if self.byte(end + 1) == b'*' {
                return Ok((Token::PrefixStar(first), end + 2));
            }
            let local_end = self.name_end(end + 1);
            if local_end == end + 1 {
                let message = format!("`{first}:` must be followed by a local name or `*`");
                return Err(self.error(XPathErrorKind::Syntax, message, end + 1));
            }
            let local = &self.text[end + 1..local_end];
            let next = self.skip_space(local_end);
            return Ok((
                if self.opens_call(next) { Token::CallName(first, local) } else { Token::Name(first, local) },
                local_end,
            ));
        }
        let next = self.skip_space(end);
        Ok((
            match self.byte(next) {
                b'(' if self.opens_call(next) => Token::CallName("", first),
                b':' if self.byte(next + 1) == b':' => Token::AxisName(first),
                _ => Token::Name("", first),
            },
            end,
        ))
    }
}

/// Non-ASCII characters that may start a name (XML 1.0 fifth edition, production 4).
fn is_name_start(found: char) -> bool {
    matches!(found,
        '\u{C0}'..='\u{D6}' | '\u{D8}'..='\u{F6}' | '\u{F8}'..='\u{2FF}' | '\u{370}'..='\u{37D}'
        | '\u{37F}'..='\u{1FFF}' | '\u{200C}'..='\u{200D}' | '\u{2070}'..='\u{218F}' | '\u{2C00}'..='\u{2FEF}'
        | '\u{3001}'..='\u{D7FF}' | '\u{F900}'..='\u{FDCF}' | '\u{FDF0}'..='\u{FFFD}' | '\u{10000}'..='\u{EFFFF}')
}

/// Non-ASCII characters that may continue a name but not start one (production 4a).
fn is_name_extra(found: char) -> bool {
    matches!(found, '\u{B7}' | '\u{300}'..='\u{36F}' | '\u{203F}'..='\u{2040}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<Token<'_>> {
        let mut lexer = Lexer::new(text);
        let mut found = Vec::new();
        loop {
            match lexer.next().unwrap().0 {
                Token::End => return found,
                token => found.push(token),
            }
        }
    }

    #[test]
    fn stars_and_operator_names_depend_on_what_came_before() {
        assert_eq!(tokens("* * *"), [Token::Star, Token::Multiply, Token::Star]);
        assert_eq!(tokens("div div div"), [Token::Name("", "div"), Token::Div, Token::Name("", "div")]);
        assert_eq!(tokens("and and and"), [Token::Name("", "and"), Token::And, Token::Name("", "and")]);
        assert_eq!(tokens("/or"), [Token::Slash, Token::Name("", "or")]);
        assert_eq!(tokens("@mod mod 2"), [Token::At, Token::Name("", "mod"), Token::Mod, Token::Number("2")]);
        assert_eq!(tokens("(*)*2")[3], Token::Multiply);
        assert_eq!(tokens("a[*]*2")[4], Token::Multiply);
        assert_eq!(tokens("/*")[1], Token::Star);
        assert_eq!(tokens(".*.")[1], Token::Multiply);
    }

    #[test]
    fn names_take_hyphens_and_dots_and_one_colon() {
        assert_eq!(tokens("a-b"), [Token::Name("", "a-b")]);
        assert_eq!(tokens("a -b"), [Token::Name("", "a"), Token::Minus, Token::Name("", "b")]);
        assert_eq!(tokens("p:a.b"), [Token::Name("p", "a.b")]);
        assert_eq!(tokens("p:*"), [Token::PrefixStar("p")]);
        assert_eq!(tokens("child :: p:a")[0], Token::AxisName("child"));
        assert_eq!(tokens("count (x)")[0], Token::CallName("", "count"));
        assert_eq!(tokens("été"), [Token::Name("", "été")]);
    }

    #[test]
    fn numbers_may_lack_either_side_of_the_point() {
        assert_eq!(tokens(".5 + 5."), [Token::Number(".5"), Token::Plus, Token::Number("5.")]);
        assert_eq!(tokens("1.5"), [Token::Number("1.5")]);
        assert_eq!(tokens(". ."), [Token::Dot, Token::Dot]);
    }
}
