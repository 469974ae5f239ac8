//! Text to tokens: those of XPath 1.0, with its rule that a name or `*` after an operand is an operator, and some more.

use super::error::{Outcome, XsclError, XsclErrorKind};
use crate::document::chars::{is_name_char, is_name_start, is_space};
use crate::xquery::parser;
use std::borrow::Cow;

/// What sort of token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name where an operand may stand; also `p:name` and `p:*`.
    Name,
    /// A name where an operator may stand, and none of the three below.
    Word,
    /// `and` where an operator may stand.
    And,
    /// `or` where an operator may stand.
    Or,
    /// `AS` where an operator may stand.
    As,
    /// `->`
    Arrow,
    /// A number.
    Number,
    /// A string literal.
    Literal,
    /// `/`
    Slash,
    /// `//`
    SlashSlash,
    /// `[`
    OpenBracket,
    /// `]`
    CloseBracket,
    /// `(`
    Open,
    /// `)`
    Close,
    /// `{`
    OpenBrace,
    /// `}`
    CloseBrace,
    /// `@`
    At,
    /// `*` as a name test
    Star,
    /// `::`
    ColonColon,
    /// `,`
    Comma,
    /// `=`
    Equal,
    /// `$`
    Dollar,
    /// `.`
    Dot,
    /// `..`
    DotDot,
    /// Any other character.
    Other,
    /// The end of the text.
    End,
}

/// A token.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) start: usize,
    pub(super) end: usize,
    /// Of what opens or closes a bracket: the token of the other side.
    pub(super) partner: usize,
    /// How many `->` and `AS` are before it.
    pub(super) binds: usize,
}

/// The tokens of a text, [`Kind::End`] last.
#[derive(Debug)]
pub(super) struct Tokens<'t> {
    pub(super) list: Vec<Token>,
    /// The text with spaces in place of comments, which XPath 1.0 does not have.
    pub(super) clean: Cow<'t, str>,
}

/// Whether a word is this keyword, in capitals or in small letters.
pub(super) fn is_keyword(word: &str, capitals: &str) -> bool {
    word == capitals || word.bytes().eq(capitals.bytes().map(|byte| byte.to_ascii_lowercase()))
}

/// The end of the comment that begins at `start`.
fn comment_end(text: &str, start: usize) -> Outcome<usize> {
    let unfinished = || XsclError::new(XsclErrorKind::Syntax, "this comment does not end", text, start);
    parser::comment_end(text, start).ok_or_else(unfinished)
}

/// The first place from `at` on that is neither white space nor in a comment.
pub(super) fn skip(text: &str, mut at: usize) -> Outcome<usize> {
    loop {
        while text.as_bytes().get(at).copied().is_some_and(is_space) {
            at += 1;
        }
        if !text[at..].starts_with("(:") {
            return Ok(at);
        }
        at = comment_end(text, at)?;
    }
}

/// The end of the name without colon at `start`, which is `start` if there is none. `->` ends a name.
pub(super) fn name_end(text: &str, start: usize) -> usize {
    let rest = &text[start..];
    if !rest.chars().next().is_some_and(is_name_start) {
        return start;
    }
    let stop = rest.char_indices().find(|(at, found)| !is_name_char(*found) || rest[*at..].starts_with("->"));
    start + stop.map_or(rest.len(), |(at, _)| at)
}

/// Splits a text from `start` on into at most `most` tokens.
pub(super) fn tokens(text: &str, start: usize, most: usize) -> Outcome<Tokens<'_>> {
    let bytes = text.as_bytes();
    let error = |message: String, offset| Err(XsclError::new(XsclErrorKind::Syntax, message, text, offset));
    let mut list: Vec<Token> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    let mut blanked = String::new();
    let mut copied = 0;
    let mut binds = 0;
    let mut at = start;
    loop {
        let begin = at;
        at = skip(text, at)?;
        if bytes[begin..at].contains(&b'(') {
            blanked.push_str(&text[copied..begin]);
            blanked.extend(std::iter::repeat_n(' ', at - begin));
            copied = at;
        }
        if list.len() >= most {
            let message = format!("the query has more than query_parts = {most} parts");
            return Err(XsclError::new(XsclErrorKind::Limit, message, text, at));
        }
        let after_operand = list.last().is_some_and(|token| ends_operand(token.kind));
        let (kind, end) = scan(text, at, after_operand)?;
        let number = list.len();
        let mut partner = number;
        match kind {
            Kind::OpenBracket | Kind::Open | Kind::OpenBrace => open.push(number),
            Kind::CloseBracket | Kind::Close | Kind::CloseBrace => {
                let found = &text[at..end];
                let Some(opener) = open.pop() else {
                    return error(format!("this {found} closes nothing"), at);
                };
                let before = &text[list[opener].start..list[opener].end];
                if !matches!((before, found), ("[", "]") | ("(", ")") | ("{", "}")) {
                    return error(format!("found {found} before the {before} is closed"), at);
                }
                partner = opener;
                list[opener].partner = number;
            }
            Kind::End => {
                if let Some(opener) = open.pop() {
                    let token = list[opener];
                    return error(format!("this {} is not closed", &text[token.start..token.end]), token.start);
                }
            }
            _ => {}
        }
        list.push(Token { kind, start: at, end, partner, binds });
        binds += usize::from(matches!(kind, Kind::Arrow | Kind::As));
        at = end;
        if kind == Kind::End {
            break;
        }
    }
    let clean = if copied == 0 {
        Cow::Borrowed(text)
    } else {
        blanked.push_str(&text[copied..]);
        Cow::Owned(blanked)
    };
    Ok(Tokens { list, clean })
}

fn ends_operand(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Name
            | Kind::Number
            | Kind::Literal
            | Kind::CloseBracket
            | Kind::Close
            | Kind::Star
            | Kind::Dot
            | Kind::DotDot
    )
}

/// The kind and the end of the token at `at`.
fn scan(text: &str, at: usize, after_operand: bool) -> Outcome<(Kind, usize)> {
    let byte = |place: usize| text.as_bytes().get(place).copied().unwrap_or(0);
    let digits = |mut place: usize| {
        while byte(place).is_ascii_digit() {
            place += 1;
        }
        place
    };
    let Some(first) = text[at..].chars().next() else { return Ok((Kind::End, at)) };
    let one = |kind| Ok((kind, at + 1));
    match (first, byte(at + 1)) {
        ('-', b'>') => Ok((Kind::Arrow, at + 2)),
        ('/', b'/') => Ok((Kind::SlashSlash, at + 2)),
        ('/', _) => one(Kind::Slash),
        ('[', _) => one(Kind::OpenBracket),
        (']', _) => one(Kind::CloseBracket),
        ('(', _) => one(Kind::Open),
        (')', _) => one(Kind::Close),
        ('{', _) => one(Kind::OpenBrace),
        ('}', _) => one(Kind::CloseBrace),
        ('@', _) => one(Kind::At),
        (',', _) => one(Kind::Comma),
        ('=', _) => one(Kind::Equal),
        ('$', _) => one(Kind::Dollar),
        (':', b':') => Ok((Kind::ColonColon, at + 2)),
        ('*', _) => one(if after_operand { Kind::Other } else { Kind::Star }),
        ('.', b'.') => Ok((Kind::DotDot, at + 2)),
        ('.', next) if next.is_ascii_digit() => Ok((Kind::Number, digits(at + 1))),
        ('.', _) => one(Kind::Dot),
        ('0'..='9', _) => {
            let end = digits(at);
            Ok((Kind::Number, if byte(end) == b'.' { digits(end + 1) } else { end }))
        }
        ('"' | '\'', _) => match memchr::memchr(first as u8, &text.as_bytes()[at + 1..]) {
            Some(length) => Ok((Kind::Literal, at + length + 2)),
            None => Err(XsclError::new(XsclErrorKind::Syntax, "this string literal does not end", text, at)),
        },
        _ => {
            let end = name_end(text, at);
            let name = &text[at..end];
            if end == at {
                return Ok((Kind::Other, at + first.len_utf8()));
            }
            if after_operand {
                let kind = match name {
                    "and" => Kind::And,
                    "or" => Kind::Or,
                    _ if is_keyword(name, "AS") => Kind::As,
                    _ => Kind::Word,
                };
                return Ok((kind, end));
            }
            // A name with a prefix has no white space inside.
            if byte(end) == b':' && byte(end + 1) == b'*' {
                return Ok((Kind::Name, end + 2));
            }
            let local_end = if byte(end) == b':' { name_end(text, end + 1) } else { end };
            Ok((Kind::Name, if local_end > end + 1 { local_end } else { end }))
        }
    }
}
