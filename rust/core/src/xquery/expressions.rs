//! Expressions but paths and constructors (XQuery 1.0 §3.3 to §3.13).

use super::ast::{
    ArithmeticOp, Clause, CompareOp, Comparison, Double, Expr, Flwor, Function, Literal, OrderKey, Path, SetOp, Slot,
    Step,
};
use super::error::XQueryErrorKind;
use super::parser::{Parsed, Parser};

/// Operators of two operands.
#[derive(Clone, Copy)]
enum Operator {
    Or,
    And,
    Compare(Comparison),
    Range,
    Arithmetic(ArithmeticOp),
    Combine(SetOp),
}

impl Operator {
    /// How tightly it binds.
    fn precedence(self) -> u8 {
        match self {
            Operator::Or => 1,
            Operator::And => 2,
            Operator::Compare(_) => 3,
            Operator::Range => 4,
            Operator::Arithmetic(ArithmeticOp::Add | ArithmeticOp::Subtract) => 5,
            Operator::Arithmetic(_) => 6,
            Operator::Combine(SetOp::Union) => 7,
            Operator::Combine(_) => 8,
        }
    }

    /// Whether `a op b op c` is refused.
    fn is_single(self) -> bool {
        matches!(self, Operator::Compare(_) | Operator::Range)
    }
}

impl Parser<'_> {
    /// Expressions separated by commas.
    pub(super) fn expression(&mut self) -> Parsed<Expr> {
        self.nested(|parser| {
            let first = parser.single()?;
            if !parser.take(",") {
                return Ok(first);
            }
            let mut members = vec![first];
            loop {
                members.push(parser.single()?);
                if !parser.take(",") {
                    parser.node()?;
                    return Ok(Expr::Sequence(members));
                }
            }
        })
    }

    /// One expression.
    pub(super) fn single(&mut self) -> Parsed<Expr> {
        self.skip();
        let start = self.at;
        let word = self.peek_name();
        if !word.is_empty() {
            self.at += word.len();
            self.skip();
            let next = self.byte(0);
            match (word, next) {
                ("for" | "let", b'$') => {
                    self.at = start;
                    return self.nested(Self::flwor);
                }
                ("some" | "every", b'$') => return self.nested(|parser| parser.quantified(word == "every")),
                ("if", b'(') => return self.nested(Self::conditional),
                ("typeswitch", b'(') => return Err(self.unsupported("typeswitch", start)),
                ("switch", b'(') => return Err(self.unsupported("switch", start)),
                ("try", b'{') => return Err(self.unsupported("try", start)),
                ("for", _) if matches!(self.peek_name(), "tumbling" | "sliding") => {
                    return Err(self.unsupported("windows", start));
                }
                _ => {}
            }
            self.at = start;
        }
        self.binary(1)
    }

    fn conditional(&mut self) -> Parsed<Expr> {
        self.expect("(")?;
        let condition = self.expression()?;
        self.expect(")")?;
        self.expect_keyword("then")?;
        let yes = self.single()?;
        self.expect_keyword("else")?;
        let no = self.single()?;
        self.node()?;
        Ok(Expr::If(Box::new(condition), Box::new(yes), Box::new(no)))
    }

    /// A binding's sequence after its variable; types are refused.
    fn untyped(&mut self) -> Parsed<()> {
        self.skip();
        let offset = self.at;
        if self.keyword("as") {
            return Err(self.unsupported("types of variables", offset));
        }
        Ok(())
    }

    fn quantified(&mut self, every: bool) -> Parsed<Expr> {
        let scope = self.variables.len();
        let mut bindings: Vec<(Slot, Expr)> = Vec::new();
        loop {
            let name = self.variable_name()?;
            self.untyped()?;
            self.expect_keyword("in")?;
            let sequence = self.single()?;
            let is_constructed = self.may_construct(&sequence);
            bindings.push((self.bind(name, is_constructed)?, sequence));
            self.node()?;
            if !self.take(",") {
                break;
            }
        }
        self.expect_keyword("satisfies")?;
        let satisfies = Box::new(self.single()?);
        self.variables.truncate(scope);
        Ok(Expr::Quantified { every, bindings, satisfies })
    }

    fn flwor(&mut self) -> Parsed<Expr> {
        let scope = self.variables.len();
        let mut clauses = Vec::new();
        // for and let, then where, then order by: later versions allow other orders.
        let mut stage = 0;
        loop {
            self.skip();
            let start = self.at;
            let word = self.peek_name();
            self.at += word.len();
            let (next, is_in_order) = match word {
                "for" | "let" => (0, stage == 0),
                "where" => (1, stage == 0),
                "stable" | "order" => (2, stage < 2),
                _ => (stage, true),
            };
            if !is_in_order {
                return Err(self.unsupported(&format!("{word} behind where or order by"), start));
            }
            stage = next;
            match word {
                "for" => self.for_clause(&mut clauses)?,
                "let" => self.let_clause(&mut clauses)?,
                "where" => clauses.push(Clause::Where(self.single()?)),
                "stable" | "order" => {
                    if word == "stable" {
                        self.expect_keyword("order")?;
                    }
                    self.expect_keyword("by")?;
                    self.order_by(&mut clauses)?;
                }
                "return" => break,
                "group" => return Err(self.unsupported("group by", start)),
                "count" => return Err(self.unsupported("the count clause", start)),
                _ => {
                    self.at = start;
                    return Err(self.unexpected("for, let, where, order by or return"));
                }
            }
        }
        let result = self.single()?;
        self.variables.truncate(scope);
        self.node()?;
        Ok(Expr::Flwor(Box::new(Flwor { clauses, result })))
    }

    fn for_clause(&mut self, clauses: &mut Vec<Clause>) -> Parsed<()> {
        loop {
            let name = self.variable_name()?;
            self.untyped()?;
            self.skip();
            let offset = self.at;
            if self.keyword("allowing") {
                return Err(self.unsupported("allowing empty", offset));
            }
            let position = if self.keyword("at") { Some(self.variable_name()?) } else { None };
            if position.as_ref() == Some(&name) {
                let message = format!("${} is bound twice in one clause", name.local);
                return Err(self.error_at(XQueryErrorKind::Type, message, offset));
            }
            self.expect_keyword("in")?;
            let sequence = self.single()?;
            let is_constructed = self.may_construct(&sequence);
            let slot = self.bind(name, is_constructed)?;
            let position = position.map(|name| self.bind(name, false)).transpose()?;
            clauses.push(Clause::For { slot, position, sequence });
            self.node()?;
            if !self.take(",") {
                return Ok(());
            }
        }
    }

    fn let_clause(&mut self, clauses: &mut Vec<Clause>) -> Parsed<()> {
        loop {
            let name = self.variable_name()?;
            self.untyped()?;
            self.expect(":=")?;
            let value = self.single()?;
            let is_constructed = self.may_construct(&value);
            let slot = self.bind(name, is_constructed)?;
            clauses.push(Clause::Let { slot, value });
            self.node()?;
            if !self.take(",") {
                return Ok(());
            }
        }
    }

    fn order_by(&mut self, clauses: &mut Vec<Clause>) -> Parsed<()> {
        let mut keys = Vec::new();
        loop {
            let key = self.single()?;
            let descending = self.keyword("descending");
            if !descending {
                self.keyword("ascending");
            }
            let mut empty_greatest = self.empty_greatest;
            if self.keyword("empty") {
                empty_greatest = self.keyword("greatest");
                if !empty_greatest {
                    self.expect_keyword("least")?;
                }
            }
            self.skip();
            let offset = self.at;
            if self.keyword("collation") {
                return Err(self.unsupported("collations", offset));
            }
            keys.push(OrderKey { key, descending, empty_greatest });
            self.node()?;
            if !self.take(",") {
                clauses.push(Clause::OrderBy(keys));
                return Ok(());
            }
        }
    }

    /// Operators that bind at least as tightly as `least`, by precedence climbing.
    fn binary(&mut self, least: u8) -> Parsed<Expr> {
        let start = self.at;
        let around = std::mem::replace(&mut self.reach, self.depth);
        let mut left = self.unary()?;
        loop {
            let before = self.at;
            let operator = self.operator()?;
            let Some(operator) = operator.filter(|operator| operator.precedence() >= least) else {
                self.at = before;
                self.reach = self.reach.max(around);
                return Ok(left);
            };
            self.deepen(1)?;
            self.node()?;
            self.skip();
            let right_start = self.at;
            let left_reach = std::mem::replace(&mut self.reach, self.depth);
            let right = self.binary(operator.precedence() + 1)?;
            self.deepen(1)?;
            self.reach = self.reach.max(left_reach);
            if matches!(
                operator,
                Operator::Combine(_) | Operator::Compare(Comparison::Same | Comparison::Before | Comparison::After)
            ) {
                self.refuse_constructed(&left, start)?;
                self.refuse_constructed(&right, right_start)?;
            }
            let (a, b) = (Box::new(left), Box::new(right));
            left = match operator {
                Operator::Or => Expr::Or(a, b),
                Operator::And => Expr::And(a, b),
                Operator::Compare(comparison) => Expr::Compare(comparison, a, b),
                Operator::Range => Expr::Range(a, b),
                Operator::Arithmetic(op) => Expr::Arithmetic(op, a, b),
                Operator::Combine(op) => Expr::Combine(op, a, b),
            };
            if operator.is_single() {
                let before = self.at;
                if let Some(next) = self.operator()?
                    && next.precedence() == operator.precedence()
                {
                    self.at = before;
                    self.skip();
                    return Err(self.unexpected("an operator that may follow a comparison or a range"));
                }
                self.at = before;
            }
        }
    }

    /// Takes the operator that comes next.
    fn operator(&mut self) -> Parsed<Option<Operator>> {
        self.skip();
        let start = self.at;
        let general = |op| Operator::Compare(Comparison::General(op));
        let value = |op| Operator::Compare(Comparison::Value(op));
        let (operator, length) = match (self.byte(0), self.byte(1)) {
            (b'=', b'>') => return Err(self.unsupported("the arrow operator", start)),
            (b'=', _) => (general(CompareOp::Equal), 1),
            (b'!', b'=') => (general(CompareOp::NotEqual), 2),
            (b'!', _) => return Err(self.unsupported("the simple map operator", start)),
            (b'<', b'<') => (Operator::Compare(Comparison::Before), 2),
            (b'>', b'>') => (Operator::Compare(Comparison::After), 2),
            (b'<', b'=') => (general(CompareOp::LessEqual), 2),
            (b'>', b'=') => (general(CompareOp::GreaterEqual), 2),
            (b'<', _) => (general(CompareOp::Less), 1),
            (b'>', _) => (general(CompareOp::Greater), 1),
            (b'+', _) => (Operator::Arithmetic(ArithmeticOp::Add), 1),
            (b'-', _) => (Operator::Arithmetic(ArithmeticOp::Subtract), 1),
            (b'*', _) => (Operator::Arithmetic(ArithmeticOp::Multiply), 1),
            (b'|', b'|') => return Err(self.unsupported("the operator ||", start)),
            (b'|', _) => (Operator::Combine(SetOp::Union), 1),
            _ => {
                let word = self.peek_name();
                let operator = match word {
                    "or" => Operator::Or,
                    "and" => Operator::And,
                    "eq" => value(CompareOp::Equal),
                    "ne" => value(CompareOp::NotEqual),
                    "lt" => value(CompareOp::Less),
                    "le" => value(CompareOp::LessEqual),
                    "gt" => value(CompareOp::Greater),
                    "ge" => value(CompareOp::GreaterEqual),
                    "is" => Operator::Compare(Comparison::Same),
                    "to" => Operator::Range,
                    "div" => Operator::Arithmetic(ArithmeticOp::Divide),
                    "idiv" => Operator::Arithmetic(ArithmeticOp::IntegerDivide),
                    "mod" => Operator::Arithmetic(ArithmeticOp::Modulo),
                    "union" => Operator::Combine(SetOp::Union),
                    "intersect" => Operator::Combine(SetOp::Intersect),
                    "except" => Operator::Combine(SetOp::Except),
                    "instance" | "treat" | "castable" | "cast" => {
                        let feature = match word {
                            "instance" => "instance of",
                            "treat" => "treat as",
                            "castable" => "castable as",
                            _ => "cast as",
                        };
                        return Err(self.unsupported(feature, start));
                    }
                    _ => return Ok(None),
                };
                (operator, word.len())
            }
        };
        self.at += length;
        Ok(Some(operator))
    }

    fn unary(&mut self) -> Parsed<Expr> {
        let mut negative = false;
        let mut is_signed = false;
        loop {
            self.skip();
            match self.byte(0) {
                b'-' => negative = !negative,
                b'+' => {}
                _ => break,
            }
            self.at += 1;
            is_signed = true;
        }
        let operand = self.path()?;
        if !is_signed {
            return Ok(operand);
        }
        Ok(match operand {
            Expr::Literal(Literal::Integer(value)) if negative => Expr::Literal(Literal::Integer(-value)),
            Expr::Literal(Literal::Decimal(value)) if negative => Expr::Literal(Literal::Decimal(-value)),
            Expr::Literal(Literal::Double(value)) if negative => Expr::Literal(Literal::Double(Double(-value.0))),
            number @ Expr::Literal(Literal::Integer(_) | Literal::Decimal(_) | Literal::Double(_)) => number,
            operand => {
                self.deepen(2)?;
                let negated = Expr::Negate(Box::new(operand));
                // A plus sign asks for a number, too.
                if negative { negated } else { Expr::Negate(Box::new(negated)) }
            }
        })
    }

    /// The document, by a call of `doc` or `document`.
    pub(super) fn document_call(&mut self, name: &str, start: usize) -> Parsed<Expr> {
        self.refuse_in_join(&format!("{name}()"), start)?;
        self.skip();
        if !matches!(self.byte(0), b'"' | b'\'') {
            return Err(self.unsupported(&format!("{name}() of anything but a string literal"), start));
        }
        let uri = self.string_literal()?;
        self.expect(")")?;
        match &self.document_uri {
            Some(known) if *known != uri => {
                let message = format!(
                    "two documents in one query ({known:?} and {uri:?}): a transformation sees the published document \
                     alone"
                );
                return Err(self.unsupported(&message, start));
            }
            _ => self.document_uri = Some(uri),
        }
        Ok(Expr::Root)
    }

    /// Functions that ask for the names or the tree of nodes do not get constructed ones.
    pub(super) fn check_call(&self, function: Function, arguments: &[Expr], start: usize) -> Parsed<()> {
        if function == Function::Root {
            self.refuse_in_join("root()", start)?;
        }
        if arguments.is_empty() && !matches!(function, Function::True | Function::False) {
            self.check_focus(&format!("{}() without argument", function.name()), start)?;
        }
        let asks = matches!(function, Function::Name | Function::LocalName | Function::NamespaceUri | Function::Root);
        if asks {
            match arguments.first() {
                Some(argument) => self.refuse_constructed(argument, start)?,
                None => self.refuse_constructed(&Expr::Context, start)?,
            }
        }
        Ok(())
    }

    /// A path, or its start alone if there are no steps.
    pub(super) fn path_of(start: Expr, steps: Vec<Step>) -> Expr {
        if steps.is_empty() { start } else { Expr::Path(Box::new(Path { start, steps })) }
    }
}
