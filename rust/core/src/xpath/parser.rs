//! The parser: recursive descent over the grammar of §2 and §3, straight into canonical cells.
//!
//! Spelled variants of one expression end as equal cells: abbreviations are expanded, redundant `self::node()` steps
//! and parentheses vanish, `//a` is `descendant::a` where no predicate counts positions, chains of `and`, `or` and
//! `|` become balanced trees (so that a thousand alternatives are ten levels deep), a constant on the left of a
//! comparison moves to the right. A subtree's cells always end at its root, so what has to be rewritten is taken back
//! from the end of the cells and built again.

use super::ast::{
    ArithmeticOp, Axis, Cell, CompareOp, Constant, Expr, ExprId, Function, NONE, NodeTest, PathStart, Query,
    QueryBuilder, Step,
};
use super::error::{XPathError, XPathErrorKind};
use super::lexer::{Lexer, Token};
use super::semantics::{self, Type};
use super::symbols::{NameTest, SymbolTable, XML_URI};

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
#[derive(Clone, Copy, Debug, Default)]
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

/// The operator with its sides exchanged.
pub(crate) fn mirrored(op: CompareOp) -> CompareOp {
    match op {
        CompareOp::Equal => CompareOp::Equal,
        CompareOp::NotEqual => CompareOp::NotEqual,
        CompareOp::Less => CompareOp::Greater,
        CompareOp::LessEqual => CompareOp::GreaterEqual,
        CompareOp::Greater => CompareOp::Less,
        CompareOp::GreaterEqual => CompareOp::LessEqual,
    }
}

fn axis_named(name: &str) -> Option<Axis> {
    Some(match name {
        "ancestor" => Axis::Ancestor,
        "ancestor-or-self" => Axis::AncestorOrSelf,
        "attribute" => Axis::Attribute,
        "child" => Axis::Child,
        "descendant" => Axis::Descendant,
        "descendant-or-self" => Axis::DescendantOrSelf,
        "following" => Axis::Following,
        "following-sibling" => Axis::FollowingSibling,
        "namespace" => Axis::Namespace,
        "parent" => Axis::Parent,
        "preceding" => Axis::Preceding,
        "preceding-sibling" => Axis::PrecedingSibling,
        "self" => Axis::SelfAxis,
        _ => return None,
    })
}

fn is_node_type(name: &str) -> bool {
    matches!(name, "node" | "text" | "comment" | "processing-instruction")
}

/// Node types of later versions.
fn is_later_node_type(name: &str) -> bool {
    matches!(
        name,
        "element" | "attribute" | "document-node" | "item" | "schema-element" | "schema-attribute" | "namespace-node"
    )
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
            return self.joined(right, left, Type::Boolean, Expr::Compare(mirrored(op), right.id, id));
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
        // An even number of signs is not nothing: it makes a number of its operand.
        let negations = if minuses % 2 == 1 { 1 } else { 2 };
        for _ in 0..negations {
            part.id = self.parser.builder.expr(Expr::Negate(part.id));
        }
        part.height = self.check_height(part.height + negations)?;
        part.kind = Type::Number;
        Ok(part)
    }

    /// A path or filter expression.
    fn path(&mut self) -> Result<Part, XPathError> {
        match self.token {
            Token::Literal(_) | Token::Number(_) | Token::Open | Token::Variable => self.filter(),
            Token::CallName(prefix, local)
                if !(prefix.is_empty() && (is_node_type(local) || is_later_node_type(local))) =>
            {
                self.filter()
            }
            Token::Slash => {
                self.advance()?;
                if self.starts_step() {
                    self.location(PathStart::Root, self.parser.steps.len(), Part::root())
                } else {
                    let id = self.parser.builder.expr(Expr::Path(PathStart::Root, NONE));
                    Ok(Part { id, ..Part::root() })
                }
            }
            Token::SlashSlash => {
                let base = self.parser.steps.len();
                self.advance()?;
                self.push_step(base, Axis::DescendantOrSelf, NodeTest::Node, Predicates::default());
                self.location(PathStart::Root, base, Part::root())
            }
            _ if self.starts_step() => self.location(PathStart::Context, self.parser.steps.len(), Part::root()),
            Token::Close => Err(self.unexpected("an expression")),
            _ => Err(self.unexpected("a path, a literal, a function call or `(`")),
        }
    }

    fn starts_step(&self) -> bool {
        match self.token {
            Token::Dot
            | Token::DotDot
            | Token::At
            | Token::Star
            | Token::PrefixStar(_)
            | Token::Name(..)
            | Token::AxisName(_) => true,
            Token::CallName(prefix, local) => prefix.is_empty() && (is_node_type(local) || is_later_node_type(local)),
            _ => false,
        }
    }

    /// Steps from here on, appended to those open since `base`; then the path's cells.
    fn location(&mut self, start: PathStart, base: usize, origin: Part) -> Result<Part, XPathError> {
        let mut height = origin.height;
        loop {
            height = height.max(self.step(base)?);
            match self.token {
                Token::Slash => self.advance()?,
                Token::SlashSlash => {
                    self.push_step(base, Axis::DescendantOrSelf, NodeTest::Node, Predicates::default());
                    self.advance()?;
                }
                _ => break,
            }
        }
        let height = self.check_height(height + 1)?;
        let id = self.close(start, base);
        Ok(Part { id, height, kind: Type::NodeSet, positional: origin.positional })
    }

    /// Builds the cells of the path whose steps are open since `base`.
    fn close(&mut self, start: PathStart, base: usize) -> ExprId {
        if self.parser.steps.len() == base {
            match start {
                PathStart::Expr(primary) => return primary,
                PathStart::Root => {}
                PathStart::Context => {
                    self.parser.steps.push(OpenStep { axis: Axis::SelfAxis, test: NodeTest::Node, predicates: 0 });
                }
            }
        }
        let Parser { builder, steps, predicates, .. } = &mut *self.parser;
        let mut next = NONE;
        while steps.len() > base {
            let Some(OpenStep { axis, test, predicates: count }) = steps.pop() else { break };
            let from = predicates.len() - count;
            let list = builder.list(&predicates[from..]);
            predicates.truncate(from);
            next = builder.step(Step { axis, test, predicates: list, next });
        }
        builder.expr(Expr::Path(start, next))
    }

    /// Takes a path's cells back and opens its steps; it must be the last thing built.
    fn reopen(&mut self, path: ExprId) -> Option<PathStart> {
        let Parser { builder, steps, predicates, .. } = &mut *self.parser;
        let query = Query { cells: &builder.cells, root: path };
        let Expr::Path(start, first) = query.expr(path) else { return None };
        let mut taken = 1;
        for step in query.steps(first) {
            let before = predicates.len();
            predicates.extend(query.list(step.predicates));
            let count = predicates.len() - before;
            taken += 1 + count;
            // A lone `.` is an empty path from the context node.
            let dot = step.axis == Axis::SelfAxis && step.test == NodeTest::Node && count == 0;
            if !dot {
                steps.push(OpenStep { axis: step.axis, test: step.test, predicates: count });
            }
        }
        let left = builder.cells.len() - taken;
        builder.cells.truncate(left);
        Some(start)
    }

    /// Adds a step whose predicates are on top of the stack, in canonical form.
    fn push_step(&mut self, base: usize, axis: Axis, test: NodeTest, predicates: Predicates) {
        let steps = &mut self.parser.steps;
        let count = predicates.count;
        let previous = if steps.len() > base { steps.last_mut() } else { None };
        if axis == Axis::SelfAxis && test == NodeTest::Node && !predicates.positional {
            match previous {
                _ if count == 0 => return,
                Some(previous) => {
                    previous.predicates += count;
                    return;
                }
                None => {}
            }
        } else if let Some(previous) = previous {
            let everything = previous.axis == Axis::DescendantOrSelf
                && previous.test == NodeTest::Node
                && previous.predicates == 0
                && !predicates.positional;
            let merged = match axis {
                Axis::Child | Axis::Descendant => Some(Axis::Descendant),
                Axis::DescendantOrSelf | Axis::SelfAxis => Some(Axis::DescendantOrSelf),
                _ => None,
            };
            if let (true, Some(axis)) = (everything, merged) {
                *previous = OpenStep { axis, test, predicates: count };
                return;
            }
        }
        steps.push(OpenStep { axis, test, predicates: count });
    }

    /// One step; returns the height of its predicates.
    fn step(&mut self, base: usize) -> Result<usize, XPathError> {
        let shorthand = match self.token {
            Token::Dot => Some((Axis::SelfAxis, "self::node()")),
            Token::DotDot => Some((Axis::Parent, "parent::node()")),
            _ => None,
        };
        if let Some((axis, long)) = shorthand {
            self.advance()?;
            if self.token == Token::OpenBracket {
                let message = format!("a predicate cannot follow `.` or `..`; write `{long}[…]`");
                return Err(self.error(XPathErrorKind::Syntax, message));
            }
            self.push_step(base, axis, NodeTest::Node, Predicates::default());
            return Ok(0);
        }
        let axis = match self.token {
            Token::At => {
                self.advance()?;
                Axis::Attribute
            }
            Token::AxisName(name) => {
                let Some(axis) = axis_named(name) else {
                    return Err(self.error(XPathErrorKind::Syntax, format!("`{name}` is not an axis of XPath 1.0")));
                };
                self.advance()?;
                self.expect(Token::ColonColon, "`::`")?;
                axis
            }
            _ => Axis::Child,
        };
        let before = self.parser.predicates.len();
        let test = self.node_test(axis)?;
        let mut predicates = self.predicates()?;
        // A test on a namespace node's prefix was turned into a predicate, which comes first.
        predicates.count = self.parser.predicates.len() - before;
        self.push_step(base, axis, test, predicates);
        Ok(predicates.height.max(usize::from(axis == Axis::Namespace) * 2))
    }

    fn node_test(&mut self, axis: Axis) -> Result<NodeTest, XPathError> {
        let test = match self.token {
            Token::Star => NodeTest::Any,
            Token::PrefixStar(_) if self.context.ignore_namespaces => NodeTest::Any,
            Token::PrefixStar(prefix) => {
                let uri = self.namespace(prefix)?;
                if axis == Axis::Namespace {
                    self.namespace_test(None);
                    NodeTest::Any
                } else {
                    NodeTest::Name(self.symbols.intern(NameTest::Namespace(uri)))
                }
            }
            Token::Name(prefix, local) => self.name_test(axis, prefix, local)?,
            Token::CallName("", name) if is_node_type(name) => return self.node_type(name),
            Token::CallName(prefix, local) => return Err(self.not_a_node_type(prefix, local)),
            _ => return Err(self.unexpected("a name, `*` or a node type")),
        };
        let named = self.token;
        self.advance()?;
        if let (Token::Name("", word @ ("for" | "some" | "every" | "let")), Token::Variable) = (named, self.token) {
            let message = format!("`{word} $…` is XPath 2.0 or later");
            return Err(self.error(XPathErrorKind::NotXPath1, message));
        }
        Ok(test)
    }

    fn name_test(&mut self, axis: Axis, prefix: &str, local: &str) -> Result<NodeTest, XPathError> {
        let uri = if self.context.ignore_namespaces {
            None
        } else if !prefix.is_empty() {
            Some(self.namespace(prefix)?)
        } else if matches!(axis, Axis::Attribute | Axis::Namespace) {
            Some("")
        } else {
            Some(self.context.namespaces.iter().find(|(prefix, _)| prefix.is_empty()).map_or("", |(_, uri)| uri))
        };
        if axis == Axis::Namespace {
            self.namespace_test((uri.unwrap_or("").is_empty()).then_some(local));
            return Ok(NodeTest::Any);
        }
        Ok(NodeTest::Name(self.symbols.intern(match uri {
            Some(uri) => NameTest::Expanded(uri, local),
            None => NameTest::Local(local),
        })))
    }

    /// `namespace::p` as `namespace::*[local-name() = 'p']`; a namespace node's name is in no namespace, so that a
    /// prefixed test holds for none: `[false()]`. The prefixes of documents thus need no symbols.
    fn namespace_test(&mut self, prefix: Option<&str>) {
        let builder = &mut self.parser.builder;
        let predicate = match prefix {
            Some(prefix) => {
                let name = builder.expr(Expr::Call(Function::LocalName, NONE));
                let constant = builder.string(prefix);
                builder.expr(Expr::Compare(CompareOp::Equal, name, constant))
            }
            None => builder.expr(Expr::Call(Function::False, NONE)),
        };
        self.parser.predicates.push(predicate);
    }

    fn namespace(&self, prefix: &str) -> Result<&'r str, XPathError> {
        if let Some((_, uri)) = self.context.namespaces.iter().find(|(bound, _)| *bound == prefix) {
            if !uri.is_empty() {
                return Ok(uri);
            }
            let message = format!("the prefix `{prefix}` is bound to no namespace; only the default can be empty");
            return Err(self.error(XPathErrorKind::UnboundPrefix, message));
        }
        if prefix == "xml" {
            return Ok(XML_URI);
        }
        let message = format!("the prefix `{prefix}` is not bound to a namespace");
        Err(self.error(XPathErrorKind::UnboundPrefix, message))
    }

    fn node_type(&mut self, name: &str) -> Result<NodeTest, XPathError> {
        self.advance()?;
        self.expect(Token::Open, "`(`")?;
        let test = match (name, self.token) {
            ("processing-instruction", Token::Literal(target)) => {
                self.advance()?;
                NodeTest::ProcessingInstructionNamed(self.symbols.intern(NameTest::Expanded("", target)))
            }
            ("processing-instruction", _) => NodeTest::ProcessingInstruction,
            ("text", _) => NodeTest::Text,
            ("comment", _) => NodeTest::Comment,
            _ => NodeTest::Node,
        };
        let expected = if test == NodeTest::ProcessingInstruction { "a target in quotes or `)`" } else { "`)`" };
        self.expect(Token::Close, expected)?;
        Ok(test)
    }

    fn not_a_node_type(&self, prefix: &str, local: &str) -> XPathError {
        if prefix.is_empty() && is_later_node_type(local) {
            let message = format!("the node test `{local}()` is XPath 2.0 or later");
            return self.error(XPathErrorKind::NotXPath1, message);
        }
        let message =
            format!("found the call `{local}(`; a step is a name, `*` or a node type (calls as steps are XPath 2.0)");
        self.error(XPathErrorKind::NotXPath1, message)
    }

    fn predicates(&mut self) -> Result<Predicates, XPathError> {
        let mut found = Predicates::default();
        while self.token == Token::OpenBracket {
            let part = self.predicate()?;
            self.parser.predicates.push(part.id);
            found.count += 1;
            found.positional |= counts_positions(part);
            found.height = found.height.max(part.height);
        }
        Ok(found)
    }

    fn predicate(&mut self) -> Result<Part, XPathError> {
        self.advance()?;
        if self.token == Token::CloseBracket {
            return Err(self.unexpected("an expression"));
        }
        let part = self.expression()?;
        self.expect(Token::CloseBracket, "an operator or `]`")?;
        Ok(part)
    }

    /// A primary expression with predicates and further steps.
    fn filter(&mut self) -> Result<Part, XPathError> {
        let at = self.at;
        let part = self.primary()?;
        if !matches!(self.token, Token::OpenBracket | Token::Slash | Token::SlashSlash) {
            return Ok(part);
        }
        if part.kind != Type::NodeSet {
            let message = format!("only a node-set can have predicates or steps; this is a {}", part.kind.name());
            return Err(self.error_at(XPathErrorKind::Type, message, at));
        }
        let base = self.parser.steps.len();
        let mut height = part.height;
        // A path takes predicates that count no positions, and further steps, as its own: `(a)[b]/c` is `a[b]/c`.
        let reopened = self.reopen(part.id);
        let mut closed = reopened.is_none();
        let mut start = reopened.unwrap_or(PathStart::Expr(part.id));
        let mut filters = 0;
        while self.token == Token::OpenBracket {
            let predicate = self.predicate()?;
            height = height.max(predicate.height);
            if !closed && counts_positions(predicate) {
                start = PathStart::Expr(self.close(start, base));
                closed = true;
            }
            if closed {
                filters += 1;
            } else if self.parser.steps.len() > base {
                let last = self.parser.steps.len() - 1;
                self.parser.steps[last].predicates += 1;
            } else {
                self.parser.steps.push(OpenStep { axis: Axis::SelfAxis, test: NodeTest::Node, predicates: 1 });
            }
            self.parser.predicates.push(predicate.id);
        }
        if let (true, PathStart::Expr(primary)) = (filters > 0, start) {
            let from = self.parser.predicates.len() - filters;
            let list = self.parser.builder.list(&self.parser.predicates[from..]);
            self.parser.predicates.truncate(from);
            start = PathStart::Expr(self.parser.builder.expr(Expr::Filter(primary, list)));
        }
        let height = self.check_height(height + 1)?;
        let origin = Part { height, ..part };
        match self.token {
            Token::Slash => self.advance()?,
            Token::SlashSlash => {
                self.advance()?;
                self.push_step(base, Axis::DescendantOrSelf, NodeTest::Node, Predicates::default());
            }
            _ => return Ok(Part { id: self.close(start, base), ..origin }),
        }
        self.location(start, base, origin)
    }

    fn primary(&mut self) -> Result<Part, XPathError> {
        let leaf = |id, kind| Part { id, height: 1, kind, positional: false };
        match self.token {
            Token::Literal(value) => {
                self.advance()?;
                Ok(leaf(self.parser.builder.string(value), Type::String))
            }
            Token::Number(digits) => {
                self.advance()?;
                let value = digits.parse().unwrap_or(f64::NAN);
                Ok(leaf(self.parser.builder.number(value), Type::Number))
            }
            Token::Open => {
                self.advance()?;
                if self.token == Token::Close {
                    return Err(self.error(XPathErrorKind::NotXPath1, "the empty sequence `()` is XPath 2.0"));
                }
                let part = self.expression()?;
                if self.token == Token::Comma {
                    return Err(self.error(XPathErrorKind::NotXPath1, "a sequence `(a, b)` is XPath 2.0; use `a | b`"));
                }
                self.expect(Token::Close, "an operator or `)`")?;
                Ok(part)
            }
            Token::CallName(prefix, local) => self.call(prefix, local),
            _ => Err(self.unexpected("an expression")),
        }
    }

    fn call(&mut self, prefix: &str, local: &str) -> Result<Part, XPathError> {
        let at = self.at;
        if prefix.is_empty() && matches!(local, "if" | "typeswitch" | "switch" | "function" | "map" | "array") {
            let message = format!("`{local} (…)` is not XPath 1.0");
            return Err(self.error(XPathErrorKind::NotXPath1, message));
        }
        let Some(signature) = semantics::function_named(local).filter(|_| prefix.is_empty()) else {
            return Err(self.unknown_function(prefix, local));
        };
        self.advance()?;
        self.expect(Token::Open, "`(`")?;
        let base = self.parser.operands.len();
        let mut part = Part {
            id: 0,
            height: 0,
            kind: signature.result,
            positional: matches!(signature.function, Function::Position | Function::Last),
        };
        while self.token != Token::Close {
            let argument_at = self.at;
            let argument = self.expression()?;
            if signature.node_sets && argument.kind != Type::NodeSet {
                let message = format!("{}() takes a node-set; this is a {}", signature.name, argument.kind.name());
                return Err(self.error_at(XPathErrorKind::Type, message, argument_at));
            }
            self.parser.operands.push(argument.id);
            part.height = part.height.max(argument.height);
            part.positional |= argument.positional;
            match self.token {
                Token::Comma => {
                    self.advance()?;
                    if self.token == Token::Close {
                        return Err(self.unexpected("an argument"));
                    }
                }
                Token::Close => {}
                _ => return Err(self.unexpected("an operator, `,` or `)`")),
            }
        }
        let count = self.parser.operands.len() - base;
        if count < signature.least || count > signature.most {
            return Err(self.error_at(XPathErrorKind::WrongArguments, wrong_arguments(signature, count), at));
        }
        self.advance()?;
        let list = self.parser.builder.list(&self.parser.operands[base..]);
        self.parser.operands.truncate(base);
        part.id = self.parser.builder.expr(Expr::Call(signature.function, list));
        part.height = self.check_height(part.height + 1)?;
        Ok(part)
    }

    fn unknown_function(&self, prefix: &str, local: &str) -> XPathError {
        let shown = if prefix.is_empty() { local.to_string() } else { format!("{prefix}:{local}") };
        let nearest = semantics::function_names().find(|name| name.eq_ignore_ascii_case(local));
        let advice = match nearest {
            Some(name) => format!("; did you mean {name}()?"),
            None => format!("; the core functions are {}", semantics::function_names().collect::<Vec<_>>().join(", ")),
        };
        self.error(XPathErrorKind::UnknownFunction, format!("{shown}() is not an XPath 1.0 function{advice}"))
    }
}

impl Part {
    /// What a path starts from when it starts from no expression.
    fn root() -> Part {
        Part { id: 0, height: 1, kind: Type::NodeSet, positional: false }
    }
}

fn counts_positions(predicate: Part) -> bool {
    predicate.positional || predicate.kind == Type::Number
}

fn wrong_arguments(signature: &semantics::Signature, count: usize) -> String {
    let expected = match (signature.least, signature.most) {
        (least, usize::MAX) => format!("at least {least}"),
        (least, most) if least == most => least.to_string(),
        (least, most) => format!("{least} to {most}"),
    };
    format!("{}() takes {expected} arguments; found {count}", signature.name)
}
