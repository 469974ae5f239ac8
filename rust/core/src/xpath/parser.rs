//! The parser: recursive descent over the grammar of §2 and §3, straight into canonical cells.
//!
//! Spelled variants of one expression end as equal cells: abbreviations are expanded, redundant `self::node()` steps
//! and parentheses vanish, `//a` is `descendant::a` where no predicate counts positions, chains of `and`, `or` and
//! `|` become balanced trees (so that a thousand alternatives are ten levels deep), a constant on the left of a
//! comparison moves to the right. A subtree's cells always end at its root, so what has to be rewritten is taken back
//! from the end of the cells and built again.

mod calls;
mod paths;
pub(crate) mod steps;

use super::ast::{ArithmeticOp, Axis, Cell, CompareOp, Constant, Expr, ExprId, NodeTest, Query, QueryBuilder};
use super::error::{XPathError, XPathErrorKind};
use super::lexer::{Lexer, Token};
use super::semantics::Type;
use super::symbols::SymbolTable;

/// Bounds on one expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryLimits {
    /// Longest text, in bytes.
    pub length_bytes: usize,
    /// Deepest nesting, of the text and of the finished tree.
    pub depth: usize,
    /// Most cells.
    pub cells: usize,
}

impl Default for QueryLimits {
    fn default() -> Self {
        QueryLimits { length_bytes: 1 << 20, depth: 200, cells: 1 << 18 }
    }
}

/// What an expression's names and sizes are judged by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StaticContext<'a> {
    /// Prefix to namespace URI; the prefix `""` is the namespace of unprefixed element names.
    pub namespaces: &'a [(&'a str, &'a str)],
    /// Whether name tests compare local parts only.
    pub ignore_namespaces: bool,
    /// Bounds.
    pub limits: QueryLimits,
}

/// A parsed expression, in the memory of its parser.
#[derive(Clone, Copy, Debug)]
pub struct ParsedQuery<'p> {
    /// Cells and constants.
    pub builder: &'p QueryBuilder,
    /// The whole expression.
    pub root: ExprId,
}

impl<'p> ParsedQuery<'p> {
    /// Cells and root.
    pub fn query(&self) -> Query<'p> {
        Query { cells: &self.builder.cells, root: self.root }
    }

    /// The cells.
    pub fn cells(&self) -> &'p [Cell] {
        &self.builder.cells
    }

    /// The constants, by slot.
    pub fn constants(&self) -> &'p [Constant] {
        &self.builder.constants
    }
}

/// A reusable parser; its scratch memory grows to the largest expression seen.
#[derive(Debug, Default)]
pub struct Parser {
    builder: QueryBuilder,
    steps: Vec<OpenStep>,
    predicates: Vec<ExprId>,
    operands: Vec<ExprId>,
}

impl Parser {
    /// Parses one expression.
    ///
    /// # Errors
    /// If the text is not an XPath 1.0 expression that this context admits.
    pub fn parse(
        &mut self,
        text: &str,
        context: &StaticContext<'_>,
        symbols: &mut dyn SymbolTable,
    ) -> Result<ParsedQuery<'_>, XPathError> {
        self.builder.clear();
        self.steps.clear();
        self.predicates.clear();
        self.operands.clear();
        if text.len() > context.limits.length_bytes {
            let message = format!(
                "the expression has {} bytes; the limit is {} (length_bytes)",
                text.len(),
                context.limits.length_bytes
            );
            return Err(XPathError::new(XPathErrorKind::Limit, message, text, context.limits.length_bytes));
        }
        let mut lexer = Lexer::new(text);
        let (token, at) = lexer.next()?;
        let mut run = Run { parser: self, text, context, symbols, lexer, token, at, depth: 0 };
        if run.token == Token::End {
            return Err(run.error(XPathErrorKind::Syntax, "the expression is empty"));
        }
        let root = run.expression()?;
        if run.token != Token::End {
            return Err(run.unexpected("an operator or the end"));
        }
        run.check_cells()?;
        Ok(ParsedQuery { builder: &self.builder, root: root.id })
    }
}

/// A step whose cells are not built yet; its predicates lie in the parser's stack.
#[derive(Clone, Copy, Debug)]
struct OpenStep {
    axis: Axis,
    test: NodeTest,
    predicates: usize,
}

/// What is known of a finished subexpression.
#[derive(Clone, Copy, Debug)]
struct Part {
    id: ExprId,
    height: usize,
    kind: Type,
    /// Calls `position()` or `last()` in its own context.
    positional: bool,
}

/// Predicates just read onto the stack.
#[derive(Clone, Copy, Debug, Default)]
struct Predicates {
    count: usize,
    positional: bool,
    height: usize,
}

struct Run<'r> {
    parser: &'r mut Parser,
    text: &'r str,
    context: &'r StaticContext<'r>,
    symbols: &'r mut dyn SymbolTable,
    lexer: Lexer<'r>,
    token: Token<'r>,
    at: usize,
    depth: usize,
}

const OR: u8 = 1;
const AND: u8 = 2;
const EQUALITY: u8 = 3;
const RELATIONAL: u8 = 4;
const ADDITIVE: u8 = 5;
const MULTIPLICATIVE: u8 = 6;

enum Operator {
    Or,
    And,
    Compare(CompareOp),
    Arithmetic(ArithmeticOp),
}

fn operator(token: Token<'_>) -> Option<(u8, Operator)> {
    Some(match token {
        Token::Or => (OR, Operator::Or),
        Token::And => (AND, Operator::And),
        Token::Equal => (EQUALITY, Operator::Compare(CompareOp::Equal)),
        Token::NotEqual => (EQUALITY, Operator::Compare(CompareOp::NotEqual)),
        Token::Less => (RELATIONAL, Operator::Compare(CompareOp::Less)),
        Token::LessEqual => (RELATIONAL, Operator::Compare(CompareOp::LessEqual)),
        Token::Greater => (RELATIONAL, Operator::Compare(CompareOp::Greater)),
        Token::GreaterEqual => (RELATIONAL, Operator::Compare(CompareOp::GreaterEqual)),
        Token::Plus => (ADDITIVE, Operator::Arithmetic(ArithmeticOp::Add)),
        Token::Minus => (ADDITIVE, Operator::Arithmetic(ArithmeticOp::Subtract)),
        Token::Multiply => (MULTIPLICATIVE, Operator::Arithmetic(ArithmeticOp::Multiply)),
        Token::Div => (MULTIPLICATIVE, Operator::Arithmetic(ArithmeticOp::Divide)),
        Token::Mod => (MULTIPLICATIVE, Operator::Arithmetic(ArithmeticOp::Modulo)),
        _ => return None,
    })
}

impl<'r> Run<'r> {
    fn error(&self, kind: XPathErrorKind, message: impl Into<String>) -> XPathError {
        XPathError::new(kind, message, self.text, self.at)
    }

    fn error_at(&self, kind: XPathErrorKind, message: impl Into<String>, at: usize) -> XPathError {
        XPathError::new(kind, message, self.text, at)
    }

    fn unexpected(&self, expected: &str) -> XPathError {
        if self.token == Token::End {
            return self.error(XPathErrorKind::Syntax, format!("the expression ends where {expected} was expected"));
        }
        if self.token == Token::Variable {
            return self.error(XPathErrorKind::Variable, "found a variable reference; filters have no variables");
        }
        let found: String = self.text[self.at..].chars().take(20).collect();
        self.error(XPathErrorKind::Syntax, format!("found `{found}` where {expected} was expected"))
    }

    fn advance(&mut self) -> Result<(), XPathError> {
        (self.token, self.at) = self.lexer.next()?;
        Ok(())
    }

    fn expect(&mut self, token: Token<'r>, shown: &str) -> Result<(), XPathError> {
        if self.token != token {
            return Err(self.unexpected(shown));
        }
        self.advance()
    }

    fn cells(&self) -> usize {
        self.parser.builder.cells.len()
    }

    fn check_cells(&self) -> Result<(), XPathError> {
        let limit = self.context.limits.cells;
        if self.cells() > limit {
            let message = format!("the expression has more than {limit} parts, the limit (cells)");
            return Err(self.error(XPathErrorKind::Limit, message));
        }
        Ok(())
    }

    fn check_height(&self, height: usize) -> Result<usize, XPathError> {
        let limit = self.context.limits.depth;
        if height > limit {
            let message = format!("the expression is nested more than {limit} deep, the limit (depth)");
            return Err(self.error(XPathErrorKind::Limit, message));
        }
        Ok(height)
    }

    fn expression(&mut self) -> Result<Part, XPathError> {
        self.depth += 1;
        self.check_height(self.depth)?;
        self.check_cells()?;
        let part = self.binary(OR);
        self.depth -= 1;
        part
    }

    fn binary(&mut self, least: u8) -> Result<Part, XPathError> {
        let mut left = self.unary()?;
        while let Some((level, found)) = operator(self.token) {
            if level < least {
                break;
            }
            left = match found {
                Operator::Or => self.chain(left, Token::Or, |run| run.binary(AND))?,
                Operator::And => self.chain(left, Token::And, |run| run.binary(EQUALITY))?,
                Operator::Compare(op) => self.comparison(left, op, level)?,
                Operator::Arithmetic(op) => {
                    self.advance()?;
                    let right = self.binary(level + 1)?;
                    self.joined(left, right, Type::Number, Expr::Arithmetic(op, left.id, right.id))?
                }
            };
        }
        Ok(left)
    }

    fn joined(&mut self, left: Part, right: Part, kind: Type, expr: Expr) -> Result<Part, XPathError> {
        let height = self.check_height(left.height.max(right.height) + 1)?;
        let id = self.parser.builder.expr(expr);
        Ok(Part { id, height, kind, positional: left.positional || right.positional })
    }

    /// A comparison; a lone constant goes to the right.
    fn comparison(&mut self, left: Part, op: CompareOp, level: u8) -> Result<Part, XPathError> {
        self.advance()?;
        let held = match self.parser.builder.query(left.id).expr(left.id) {
            Expr::StringConstant(_) | Expr::NumberConstant(_) => self.parser.builder.cells.pop(),
            _ => None,
        };
        let slots = self.parser.builder.constants.len();
        let right_start = self.cells();
        let right = self.binary(level + 1)?;
        let Some(constant) = held else {
            return self.joined(left, right, Type::Boolean, Expr::Compare(op, left.id, right.id));
        };
        if self.parser.builder.constants.len() == slots {
            let id = self.cells() as ExprId;
            self.parser.builder.cells.push(constant);
            return self.joined(right, left, Type::Boolean, Expr::Compare(op.mirrored(), right.id, id));
        }
        // The right side has constants too: slots follow the text, so the left one keeps its place. A right side of
        // several cells stays where it is (its cells number each other) and the left one follows it.
        let (left_id, right_id) = if self.cells() == right_start + 1 {
            let last = self.parser.builder.cells.pop();
            self.parser.builder.cells.push(constant);
            self.parser.builder.cells.extend(last);
            (right_start as ExprId, right_start as ExprId + 1)
        } else {
            self.parser.builder.cells.push(constant);
            (self.cells() as ExprId - 1, right.id)
        };
        self.joined(left, right, Type::Boolean, Expr::Compare(op, left_id, right_id))
    }

    /// A chain of `and`, `or` or `|`, as a balanced tree. Operands in parentheses join the chain.
    fn chain(
        &mut self,
        first: Part,
        token: Token<'r>,
        operand: fn(&mut Self) -> Result<Part, XPathError>,
    ) -> Result<Part, XPathError> {
        let base = self.parser.operands.len();
        let mut height = first.height;
        let mut positional = first.positional;
        self.absorb(first.id, token);
        while self.token == token {
            self.advance()?;
            let at = self.at;
            let part = operand(self)?;
            if token == Token::Pipe && part.kind != Type::NodeSet {
                return Err(self.union_error(part, at));
            }
            height = height.max(part.height);
            positional |= part.positional;
            self.absorb(part.id, token);
        }
        let count = self.parser.operands.len() - base;
        let levels = count.next_power_of_two().trailing_zeros() as usize;
        // A chain inside the chain counted its own levels already, so this is an upper bound.
        let height = self.check_height(height + levels)?;
        let id = self.balance(base, self.parser.operands.len(), token);
        self.parser.operands.truncate(base);
        let kind = if token == Token::Pipe { Type::NodeSet } else { Type::Boolean };
        Ok(Part { id, height, kind, positional })
    }

    /// Puts an operand on the stack; if it is such a chain itself, takes that one apart.
    fn absorb(&mut self, id: ExprId, token: Token<'r>) {
        let query = self.parser.builder.query(id);
        let pair = |id| match (query.expr(id), token) {
            (Expr::Or(a, b), Token::Or) | (Expr::And(a, b), Token::And) | (Expr::Union(a, b), Token::Pipe) => {
                Some((a, b))
            }
            _ => None,
        };
        let Some((a, b)) = pair(id) else {
            self.parser.operands.push(id);
            return;
        };
        let mut inner = 1;
        let mut pending = vec![b, a];
        while let Some(id) = pending.pop() {
            match pair(id) {
                Some((a, b)) => {
                    inner += 1;
                    pending.extend([b, a]);
                }
                None => self.parser.operands.push(id),
            }
        }
        let left = self.cells() - inner;
        self.parser.builder.cells.truncate(left);
    }

    fn balance(&mut self, from: usize, to: usize, token: Token<'r>) -> ExprId {
        if to - from == 1 {
            return self.parser.operands[from];
        }
        let middle = from + (to - from).div_ceil(2);
        let a = self.balance(from, middle, token);
        let b = self.balance(middle, to, token);
        self.parser.builder.expr(match token {
            Token::Or => Expr::Or(a, b),
            Token::And => Expr::And(a, b),
            _ => Expr::Union(a, b),
        })
    }

    fn union_error(&self, part: Part, at: usize) -> XPathError {
        let message = format!("`|` joins node-sets; this operand is a {}", part.kind.name());
        self.error_at(XPathErrorKind::Type, message, at)
    }

    fn unary(&mut self) -> Result<Part, XPathError> {
        let mut minuses = 0_usize;
        while self.token == Token::Minus {
            minuses += 1;
            self.advance()?;
        }
        let at = self.at;
        let mut part = self.path()?;
        if self.token == Token::Pipe {
            if part.kind != Type::NodeSet {
                return Err(self.union_error(part, at));
            }
            part = self.chain(part, Token::Pipe, Self::path)?;
        }
        if minuses == 0 {
            return Ok(part);
        }
        if let Expr::NumberConstant(slot) = self.parser.builder.query(part.id).expr(part.id) {
            // A signed literal is a constant, so that `-3` and `3` share a signature.
            if let (true, Constant::Number(value)) =
                (minuses % 2 == 1, &mut self.parser.builder.constants[slot as usize])
            {
                *value = -*value;
            }
            return Ok(part);
        }
        // Signs in parentheses count with those outside: `-(-a)` is `--a`.
        while let Expr::Negate(operand) = self.parser.builder.query(part.id).expr(part.id)
            && part.id as usize + 1 == self.parser.builder.cells.len()
        {
            self.parser.builder.cells.pop();
            minuses += 1;
            part.id = operand;
            part.height -= 1;
        }
        // An even number of signs is not nothing: it makes a number of its operand.
        let negations = if minuses % 2 == 1 { 1 } else { 2 };
        for _ in 0..negations {
            part.id = self.parser.builder.expr(Expr::Negate(part.id));
        }
        part.height = self.check_height(part.height + negations)?;
        part.kind = Type::Number;
        Ok(part)
    }
}

impl Part {
    /// What a path starts from when it starts from no expression.
    fn root() -> Part {
        Part { id: 0, height: 1, kind: Type::NodeSet, positional: false }
    }
}
