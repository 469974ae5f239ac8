//! The clauses of a query, and what reading them has in common.

use super::ast::{Block, JoinQuery, NodeAt, OperatorKind, PatternNode, Select};
use super::error::{Outcome, XsclError, XsclErrorKind, in_piece};
use super::lexer::{Kind, Token, Tokens, is_keyword, name_end, skip, tokens};
use super::operators::OpenOperator;
use super::patterns::OpenBlock;
use crate::document::chars::find_forbidden;
use crate::xpath::ast::{Constant, ConstantRef};
use crate::xpath::display::query_text;
use crate::xpath::error::XPathError;
use crate::xpath::parser as xpath;
use crate::xpath::semantics::{Type, static_type, uses_position};
use crate::xpath::symbols::Symbols;
use crate::xquery::joined::{Constructor, parse_constructor};
use crate::xquery::parser::StaticContext;
use std::collections::HashMap;

/// Parses a join.
///
/// # Errors
/// If the text is no query of the language, or exceeds the limits.
pub fn parse<'t>(text: &'t str, context: &StaticContext<'t>) -> Result<JoinQuery, XsclError> {
    let limits = context.limits;
    let error = |kind, message: String, offset| Err(XsclError::new(kind, message, text, offset));
    if text.len() > limits.length_bytes {
        let message = format!("the query has {} bytes, more than query_bytes = {}", text.len(), limits.length_bytes);
        return error(XsclErrorKind::Limit, message, 0);
    }
    if let Some((offset, found)) = find_forbidden(text) {
        return error(XsclErrorKind::Syntax, format!("the character {found:?} is none of XML"), offset);
    }
    let word = |at: usize| &text[at..name_end(text, at)];
    let mut at = skip(text, 0)?;
    let mut constructor = None;
    let has_select = is_keyword(word(at), "SELECT");
    if has_select {
        at = skip(text, at + "SELECT".len())?;
        if text[at..].starts_with('*') {
            at += 1;
        } else if text[at..].starts_with('<') && name_end(text, at + 1) > at + 1 {
            let found = parse_constructor(text, at, context)?;
            at = found.end;
            constructor = Some(found);
        } else {
            let message = "SELECT is followed by * or an element constructor such as <r>{$a}</r>";
            return error(XsclErrorKind::Syntax, message.to_owned(), at);
        }
        at = skip(text, at)?;
    }
    if is_keyword(word(at), "FROM") {
        at += "FROM".len();
    } else if has_select {
        let found: String = text[at..].chars().take(20).collect();
        return error(XsclErrorKind::Syntax, format!("found {found:?} where FROM is expected"), at);
    }
    let mut parser = Parser {
        source: text,
        tokens: tokens(text, at, limits.cells)?,
        at: 0,
        context: xpath::StaticContext { namespaces: context.namespaces, ignore_namespaces: false, limits },
        xpath: xpath::Parser::default(),
        symbols: Symbols::default(),
        depth: 0,
        path_bytes: 0,
        blocks: Vec::new(),
        variables: HashMap::new(),
    };
    let operators = parser.chain()?;
    let publish = if parser.keyword("PUBLISH") { Some(parser.stream_name()?) } else { None };
    if parser.kind() != Kind::End {
        return Err(parser.unexpected("JOIN, FOLLOWED BY, PUBLISH or the end"));
    }
    let operators = parser.resolve(operators)?;
    let select = match constructor {
        Some(constructor) => parser.select(constructor)?,
        None => Select::Roots,
    };
    Ok(JoinQuery { select, blocks: parser.finish()?, operators, publish })
}

/// What the parser needs to know of a piece of XPath.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) is_number: bool,
    pub(super) uses_position: bool,
}

/// A text being parsed.
pub(super) struct Parser<'t> {
    source: &'t str,
    tokens: Tokens<'t>,
    /// Number of the token that comes next.
    pub(super) at: usize,
    context: xpath::StaticContext<'t>,
    xpath: xpath::Parser,
    symbols: Symbols,
    /// How many conditions are open.
    depth: usize,
    /// Length of all paths.
    path_bytes: usize,
    pub(super) blocks: Vec<OpenBlock>,
    pub(super) variables: HashMap<&'t str, NodeAt>,
}

impl<'t> Parser<'t> {
    pub(super) fn error(&self, kind: XsclErrorKind, message: impl Into<String>, offset: usize) -> XsclError {
        XsclError::new(kind, message, self.source, offset)
    }

    pub(super) fn unexpected(&self, expected: &str) -> XsclError {
        let message = if self.kind() == Kind::End {
            format!("the query ends where {expected} is expected")
        } else {
            let found: String = self.text().chars().take(20).collect();
            format!("found {found:?} where {expected} is expected")
        };
        self.error(XsclErrorKind::Syntax, message, self.offset())
    }

    pub(super) fn token(&self, number: usize) -> Token {
        // Nothing reads on behind the end, which is the last.
        self.tokens.list[number.min(self.tokens.list.len() - 1)]
    }

    pub(super) fn text_of(&self, number: usize) -> &'t str {
        let token = self.token(number);
        &self.source[token.start..token.end]
    }

    pub(super) fn kind(&self) -> Kind {
        self.token(self.at).kind
    }

    pub(super) fn kind_after(&self) -> Kind {
        self.token(self.at + 1).kind
    }

    pub(super) fn text(&self) -> &'t str {
        self.text_of(self.at)
    }

    pub(super) fn offset(&self) -> usize {
        self.token(self.at).start
    }

    pub(super) fn expect(&mut self, kind: Kind, shown: &str) -> Outcome<()> {
        if self.kind() != kind {
            return Err(self.unexpected(shown));
        }
        self.at += 1;
        Ok(())
    }

    /// Takes a keyword, if it comes next.
    pub(super) fn keyword(&mut self, capitals: &str) -> bool {
        let is_word = matches!(self.kind(), Kind::Name | Kind::Word | Kind::And);
        let found = is_word && is_keyword(self.text(), capitals);
        self.at += usize::from(found);
        found
    }

    /// A name without colon.
    pub(super) fn plain_name(&mut self, what: &str) -> Outcome<&'t str> {
        let name = self.text();
        if self.kind() != Kind::Name {
            return Err(self.unexpected(what));
        }
        if name.contains(':') {
            let message = format!("found {name:?} where {what} is expected, which has no colon");
            return Err(self.error(XsclErrorKind::Syntax, message, self.offset()));
        }
        self.at += 1;
        Ok(name)
    }

    pub(super) fn stream_name(&mut self) -> Outcome<Box<str>> {
        if self.kind() != Kind::Literal {
            return self.plain_name("the name of a stream").map(Box::from);
        }
        let quoted = self.text();
        if quoted.len() == 2 {
            return Err(self.error(XsclErrorKind::Syntax, "the name of a stream is empty", self.offset()));
        }
        self.at += 1;
        Ok(quoted[1..quoted.len() - 1].into())
    }

    /// Blocks and the operators between them.
    fn chain(&mut self) -> Outcome<Vec<OpenOperator<'t>>> {
        let mut operators = Vec::new();
        loop {
            self.block()?;
            let kind = if self.keyword("JOIN") {
                OperatorKind::Join
            } else if self.keyword("FOLLOWED") {
                if !self.keyword("BY") {
                    return Err(self.unexpected("BY"));
                }
                OperatorKind::FollowedBy
            } else {
                return Ok(operators);
            };
            operators.push(self.operator(kind)?);
        }
    }

    /// The node of a variable.
    pub(super) fn variable(&self, name: &str, offset: usize) -> Outcome<NodeAt> {
        match self.variables.get(name) {
            Some(at) => Ok(*at),
            None => {
                let message = format!("nothing binds the variable {name}");
                Err(self.error(XsclErrorKind::Variable, message, offset))
            }
        }
    }

    fn select(&self, constructor: Constructor) -> Outcome<Select> {
        let nodes = constructor.variables.iter().map(|(name, offset)| self.variable(name, *offset));
        let variables = nodes.collect::<Outcome<Vec<NodeAt>>>()?;
        Ok(Select::Construct { module: Box::new(constructor.module), variables })
    }

    /// Reads something nested: depth is bounded, so that recursion is.
    pub(super) fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Outcome<T>) -> Outcome<T> {
        self.depth += 1;
        self.check_depth(self.depth, self.offset())?;
        let result = read(self);
        self.depth -= 1;
        result
    }

    pub(super) fn check_depth(&self, depth: usize, offset: usize) -> Outcome<()> {
        let limit = self.context.limits.depth;
        if depth > limit {
            let message = format!("the query nests deeper than query_depth = {limit}");
            return Err(self.error(XsclErrorKind::Limit, message, offset));
        }
        Ok(())
    }

    /// Counts the text of paths. It can be longer than the query, as positions repeat conditions.
    pub(super) fn count_path(&mut self, bytes: usize, offset: usize) -> Outcome<()> {
        self.path_bytes += bytes;
        let limit = self.context.limits.length_bytes;
        if self.path_bytes > limit {
            let message = format!("the paths of the query have more than query_bytes = {limit} bytes");
            return Err(self.error(XsclErrorKind::Limit, message, offset));
        }
        Ok(())
    }

    /// Checks the tokens from `from` up to `to` as an XPath expression.
    pub(super) fn piece(&mut self, from: usize, to: usize) -> Outcome<Piece> {
        // With the white space behind, so that what is missing is missed at the next token.
        let (start, end) = (self.token(from).start, self.token(to).start);
        let parsed = self.xpath.parse(&self.tokens.clean[start..end], &self.context, &mut self.symbols);
        let parsed = parsed.map_err(|error| in_piece(error, self.source, start))?;
        Ok(Piece {
            is_number: static_type(parsed.query(), parsed.root) == Type::Number,
            uses_position: uses_position(parsed.query(), parsed.root),
        })
    }

    /// A fault of a path that was put together, which is at `offset`.
    fn whole_error(&self, error: XPathError, path: &str, offset: usize) -> XsclError {
        let fault = in_piece(error, path, 0);
        self.error(fault.kind, fault.message, offset)
    }

    /// The text that a path has in common with all that are spelled otherwise.
    pub(super) fn canonical(&mut self, path: &str, offset: usize) -> Outcome<String> {
        let parsed = match self.xpath.parse(path, &self.context, &mut self.symbols) {
            Ok(parsed) => parsed,
            Err(error) => return Err(self.whole_error(error, path, offset)),
        };
        let constants: Vec<ConstantRef<'_>> = parsed.constants().iter().map(Constant::as_ref).collect();
        Ok(query_text(parsed.query(), &constants, &self.symbols, None))
    }

    /// The tokens from `from` up to `to` as text, without comments and without what binds variables.
    pub(super) fn render(&self, from: usize, to: usize, into: &mut String) {
        let mut at = from;
        while at < to {
            let token = self.token(at);
            if matches!(token.kind, Kind::Arrow | Kind::As) {
                at += 2;
                continue;
            }
            if at > from && self.token(at - 1).end < token.start {
                into.push(' ');
            }
            into.push_str(self.text_of(at));
            at += 1;
        }
    }

    /// The blocks. Every path is parsed as a whole, so that whoever parses it again will succeed.
    fn finish(&mut self) -> Outcome<Vec<Block>> {
        let mut finished = Vec::new();
        for block in std::mem::take(&mut self.blocks) {
            let mut nodes = Vec::with_capacity(block.nodes.len());
            for node in block.nodes {
                if let Err(error) = self.xpath.parse(&node.path, &self.context, &mut self.symbols) {
                    return Err(self.whole_error(error, &node.path, node.offset));
                }
                let variable = node.variable.map(Box::from);
                nodes.push(PatternNode { parent: node.parent, path: node.path.into(), variable });
            }
            finished.push(Block { stream: block.stream, nodes });
        }
        Ok(finished)
    }
}
