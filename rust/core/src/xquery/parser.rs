//! The parser: its state, and how it reads the smallest parts.
//!
//! XQuery has no tokens that could be told apart without knowing what is being read (names are keywords in some places,
//! constructors have rules of their own), so the parser reads characters.

use super::ast::{Expr, Module, Name, Slot};
use super::error::{XQueryError, XQueryErrorKind};
use crate::document::XML_URI;
use crate::document::chars::{find_forbidden, name_run};
use crate::xpath::parser::QueryLimits;
use std::borrow::Cow;

/// What a query's names and sizes are judged by.
#[derive(Clone, Copy, Debug, Default)]
pub struct StaticContext<'a> {
    /// Prefix to namespace URI; the prefix `""` is the namespace of unprefixed element names.
    pub namespaces: &'a [(&'a str, &'a str)],
    /// Bounds.
    pub limits: QueryLimits,
}

/// Result of reading something.
pub(super) type Parsed<T> = Result<T, XQueryError>;

pub(super) const XS_URI: &str = "http://www.w3.org/2001/XMLSchema";
pub(super) const FN_URI: &str = "http://www.w3.org/2005/xpath-functions";
const PREDECLARED: [(&str, &str); 5] = [
    ("xml", XML_URI),
    ("xs", XS_URI),
    ("xsi", "http://www.w3.org/2001/XMLSchema-instance"),
    ("fn", FN_URI),
    ("local", "http://www.w3.org/2005/xquery-local-functions"),
];

/// Most names in scope of one sort (variables, namespaces): looking one up compares it with all of them.
const MOST_IN_SCOPE: usize = 1000;

/// Parses a query.
///
/// # Errors
/// If the text is no query of the subset, or exceeds the limits.
pub fn parse<'t>(text: &'t str, context: &StaticContext<'t>) -> Result<Module, XQueryError> {
    let mut parser = Parser::new(text, context);
    if text.len() > context.limits.length_bytes {
        let message =
            format!("the query has {} bytes, more than query_bytes = {}", text.len(), context.limits.length_bytes);
        return Err(parser.error_at(XQueryErrorKind::Limit, message, 0));
    }
    // What is written into results has to be XML.
    if let Some((offset, found)) = find_forbidden(text) {
        let message = format!("the character {found:?} is none of XML");
        return Err(parser.error_at(XQueryErrorKind::Syntax, message, offset));
    }
    parser.prolog()?;
    let body = parser.expression()?;
    parser.skip();
    if parser.at < text.len() {
        return Err(parser.unexpected("the end of the query or an operator"));
    }
    Ok(Module { body, slots: parser.constructed.len() as Slot })
}

/// The end of the comment that begins at `start`, if it has one; comments nest.
pub(crate) fn comment_end(text: &str, start: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut open = 1;
    let mut at = start + 2;
    while open > 0 {
        match bytes.get(at..at + 2)? {
            b"(:" => {
                open += 1;
                at += 2;
            }
            b":)" => {
                open -= 1;
                at += 2;
            }
            _ => at += 1,
        }
    }
    Some(at)
}

/// A text being parsed.
pub(super) struct Parser<'t> {
    pub(super) text: &'t str,
    pub(super) at: usize,
    limits: QueryLimits,
    pub(super) depth: usize,
    /// The deepest level of the tree that the expression being read has so far, counted like `depth`.
    pub(super) reach: usize,
    nodes: usize,
    /// Namespaces in scope, inner ones last.
    pub(super) namespaces: Vec<(Cow<'t, str>, Cow<'t, str>)>,
    /// Variables in scope, inner ones last.
    pub(super) variables: Vec<(Name, Slot)>,
    /// For each slot, whether the variable may hold constructed nodes.
    pub(super) constructed: Vec<bool>,
    /// Whether the context item may be a constructed node.
    pub(super) in_constructed: bool,
    /// The URI that the query calls its document.
    pub(super) document_uri: Option<String>,
    pub(super) preserve_space: bool,
    pub(super) empty_greatest: bool,
    /// Whether this is the constructor of a join, which sees its variables' nodes and nothing else.
    pub(super) in_join: bool,
    /// Whether there is a context item that the query chose itself: in steps and predicates.
    pub(super) has_focus: bool,
    /// In a join: the variables that the constructor does not bind, with the places of their first uses.
    pub(super) free: Vec<(Name, usize)>,
}

impl<'t> Parser<'t> {
    pub(super) fn new(text: &'t str, context: &StaticContext<'t>) -> Parser<'t> {
        let given = PREDECLARED.iter().chain(context.namespaces);
        Parser {
            text,
            at: 0,
            limits: context.limits,
            depth: 0,
            reach: 0,
            nodes: 0,
            namespaces: given.map(|(prefix, uri)| (Cow::Borrowed(*prefix), Cow::Borrowed(*uri))).collect(),
            variables: Vec::new(),
            constructed: Vec::new(),
            in_constructed: false,
            document_uri: None,
            preserve_space: false,
            empty_greatest: false,
            in_join: false,
            has_focus: false,
            free: Vec::new(),
        }
    }

    pub(super) fn error_at(&self, kind: XQueryErrorKind, message: impl Into<String>, offset: usize) -> XQueryError {
        XQueryError::new(kind, message, self.text, offset)
    }

    pub(super) fn syntax(&self, message: impl Into<String>) -> XQueryError {
        self.error_at(XQueryErrorKind::Syntax, message, self.at)
    }

    pub(super) fn unsupported(&self, feature: &str, offset: usize) -> XQueryError {
        let message = format!("{feature}: not in the subset of XQuery that is available (docs/xquery.md)");
        self.error_at(XQueryErrorKind::Unsupported, message, offset)
    }

    /// The error for what is at the current place.
    pub(super) fn unexpected(&self, expected: &str) -> XQueryError {
        let rest = &self.text[self.at..];
        if rest.is_empty() {
            return self.syntax(format!("the query ends where {expected} is expected"));
        }
        let length = name_run(rest).max(rest.chars().next().map_or(1, char::len_utf8));
        let found: String = rest[..length].chars().take(20).collect();
        self.syntax(format!("found {found:?} where {expected} is expected"))
    }

    /// Counts a node of the tree.
    pub(super) fn node(&mut self) -> Parsed<()> {
        self.nodes += 1;
        if self.nodes > self.limits.cells {
            let message = format!("the query has more than query_parts = {} parts", self.limits.cells);
            return Err(self.error_at(XQueryErrorKind::Limit, message, self.at));
        }
        Ok(())
    }

    /// Reads something nested: depth is bounded, so that recursion is.
    pub(super) fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        self.depth += 1;
        self.check_depth(self.depth)?;
        self.reach = self.reach.max(self.depth);
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// What was read goes `levels` down, below what is put around it: operators and the like nest without brackets.
    pub(super) fn deepen(&mut self, levels: usize) -> Parsed<()> {
        self.reach += levels;
        self.check_depth(self.reach)
    }

    fn check_depth(&self, depth: usize) -> Parsed<()> {
        if depth > self.limits.depth {
            let message = format!("the query nests deeper than query_depth = {}", self.limits.depth);
            return Err(self.error_at(XQueryErrorKind::Limit, message, self.at));
        }
        Ok(())
    }

    #[inline]
    pub(super) fn byte(&self, ahead: usize) -> u8 {
        self.text.as_bytes().get(self.at + ahead).copied().unwrap_or(0)
    }

    pub(super) fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// Skips white space and comments. A comment that does not end is left for the next expectation to fail on.
    pub(super) fn skip(&mut self) {
        loop {
            while matches!(self.byte(0), b' ' | b'\t' | b'\n' | b'\r') {
                self.at += 1;
            }
            if !(self.byte(0) == b'(' && self.byte(1) == b':') {
                return;
            }
            let Some(at) = comment_end(self.text, self.at) else { return };
            self.at = at;
        }
    }

    /// Takes a piece of punctuation after white space, if it comes next.
    pub(super) fn take(&mut self, wanted: &str) -> bool {
        self.skip();
        let found = self.rest().starts_with(wanted);
        if found {
            self.at += wanted.len();
        }
        found
    }

    pub(super) fn expect(&mut self, wanted: &str) -> Parsed<()> {
        if self.take(wanted) { Ok(()) } else { Err(self.unexpected(&format!("{wanted:?}"))) }
    }

    /// Takes a keyword after white space, if it comes next as a whole name.
    pub(super) fn keyword(&mut self, wanted: &str) -> bool {
        self.skip();
        let found = self.peek_name() == wanted;
        if found {
            self.at += wanted.len();
        }
        found
    }

    pub(super) fn expect_keyword(&mut self, wanted: &str) -> Parsed<()> {
        if self.keyword(wanted) { Ok(()) } else { Err(self.unexpected(&format!("{wanted:?}"))) }
    }

    /// The name without colon that comes next, or nothing.
    pub(super) fn peek_name(&self) -> &'t str {
        let rest = self.rest();
        let first = rest.as_bytes().first().copied().unwrap_or(0);
        if first < 128 && !(first.is_ascii_alphabetic() || first == b'_') {
            return "";
        }
        // Most names are short and ASCII.
        let ascii = rest.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
        let length = ascii.count();
        if rest.as_bytes().get(length).is_none_or(u8::is_ascii) {
            return &rest[..length];
        }
        let run = &rest[..name_run(rest)];
        let run = &run[..run.find(':').unwrap_or(run.len())];
        if crate::document::chars::is_ncname(run) { run } else { "" }
    }

    pub(super) fn ncname(&mut self, what: &str) -> Parsed<&'t str> {
        let name = self.peek_name();
        if name.is_empty() {
            return Err(self.unexpected(what));
        }
        self.at += name.len();
        Ok(name)
    }

    /// A name, perhaps with a prefix, as written.
    pub(super) fn qname(&mut self, what: &str) -> Parsed<(&'t str, &'t str)> {
        let first = self.ncname(what)?;
        if self.byte(0) == b':' && self.byte(1) != b':' {
            let before = self.at;
            self.at += 1;
            let second = self.peek_name();
            if !second.is_empty() {
                self.at += second.len();
                return Ok((first, second));
            }
            self.at = before;
        }
        Ok(("", first))
    }

    /// The URI that a prefix is bound to; unbound, the empty prefix is the empty URI.
    pub(super) fn bound(&self, prefix: &str, offset: usize) -> Parsed<&str> {
        match self.namespaces.iter().rev().find(|(known, _)| known == prefix) {
            Some((_, uri)) if !uri.is_empty() || prefix.is_empty() => Ok(uri),
            _ if prefix.is_empty() => Ok(""),
            _ => {
                let message = format!("the prefix {prefix:?} is bound to no namespace");
                Err(self.error_at(XQueryErrorKind::UnboundPrefix, message, offset))
            }
        }
    }

    /// A name with its prefix resolved; unprefixed ones are in the default element namespace if `is_element`.
    pub(super) fn resolve(&self, (prefix, local): (&str, &str), is_element: bool, offset: usize) -> Parsed<Name> {
        let uri = if prefix.is_empty() && !is_element { "" } else { self.bound(prefix, offset)? };
        Ok(Name { prefix: prefix.into(), uri: uri.into(), local: local.into() })
    }

    /// `$name`, where a variable is bound.
    pub(super) fn variable_name(&mut self) -> Parsed<Name> {
        self.expect("$")?;
        self.skip();
        let offset = self.at;
        let name = self.qname("the name of a variable")?;
        self.resolve(name, false, offset)
    }

    /// Brings a variable into scope.
    pub(super) fn bind(&mut self, name: Name, is_constructed: bool) -> Parsed<Slot> {
        self.check_scope(self.variables.len())?;
        let slot = self.constructed.len() as Slot;
        self.constructed.push(is_constructed);
        self.variables.push((name, slot));
        Ok(slot)
    }

    /// Refuses to bring more into scope than can be looked through quickly.
    pub(super) fn check_scope(&self, count: usize) -> Parsed<()> {
        if count >= MOST_IN_SCOPE {
            let message = format!("more than {MOST_IN_SCOPE} variables, namespaces or attributes in one place");
            return Err(self.error_at(XQueryErrorKind::Limit, message, self.at));
        }
        Ok(())
    }

    /// Whether an expression may give constructed nodes.
    pub(super) fn may_construct(&self, expr: &Expr) -> bool {
        use super::ast::{Function, Step};
        match expr {
            Expr::Element(_)
            | Expr::ComputedElement(..)
            | Expr::ComputedAttribute(..)
            | Expr::ComputedText(_)
            | Expr::Comment(_)
            | Expr::ProcessingInstruction(..) => true,
            Expr::Context => self.in_constructed,
            Expr::Variable(slot) => self.constructed.get(*slot as usize).is_some_and(|is_constructed| *is_constructed),
            Expr::Sequence(members) => members.iter().any(|member| self.may_construct(member)),
            Expr::Flwor(flwor) => self.may_construct(&flwor.result),
            Expr::If(_, yes, no) => self.may_construct(yes) || self.may_construct(no),
            Expr::Filter(primary, _) => self.may_construct(primary),
            Expr::Path(path) => matches!(path.steps.last(), Some(Step::Expr(expr)) if self.may_construct(expr)),
            Expr::Call(
                Function::ExactlyOne
                | Function::OneOrMore
                | Function::Reverse
                | Function::Subsequence
                | Function::Unordered
                | Function::ZeroOrOne,
                arguments,
            ) => arguments.iter().any(|argument| self.may_construct(argument)),
            _ => false,
        }
    }

    /// Refuses to go on from constructed nodes.
    pub(super) fn refuse_constructed(&self, expr: &Expr, offset: usize) -> Parsed<()> {
        if self.may_construct(expr) {
            return Err(self.unsupported("paths into constructed nodes", offset));
        }
        Ok(())
    }
}
