//! Canonical text of expressions and of their parts.
//!
//! The text of a whole expression parses to the same cells again, as long as every name can be written: with a prefix
//! map, names take its prefixes; a name whose namespace has none shows as `Q{uri}local`, which is for reading only.

use super::ast::{
    ArithmeticOp, Axis, CompareOp, ConstantRef, Expr, ExprId, ListId, NONE, NodeTest, PathStart, Query, Step, StepId,
};
use super::evaluate::number;
use super::semantics;
use super::symbols::{NameTest, Symbol, SymbolTable};

/// Prints parts of one expression.
#[derive(Clone, Copy)]
pub struct Printer<'a> {
    /// The expression.
    pub query: Query<'a>,
    /// Its constants, by slot.
    pub constants: &'a [ConstantRef<'a>],
    /// Names of its symbols.
    pub symbols: &'a dyn SymbolTable,
    /// Prefix to URI, if names are to be written with prefixes.
    pub prefixes: Option<&'a [(&'a str, &'a str)]>,
}

impl std::fmt::Debug for Printer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Printer")
            .field("query", &self.query)
            .field("constants", &self.constants)
            .finish_non_exhaustive()
    }
}

/// The canonical text of an expression.
pub fn query_text(
    query: Query<'_>,
    constants: &[ConstantRef<'_>],
    symbols: &dyn SymbolTable,
    prefixes: Option<&[(&str, &str)]>,
) -> String {
    Printer { query, constants, symbols, prefixes }.text(query.root)
}

const UNARY: u8 = 7;
const UNION: u8 = 8;
const PRIMARY: u8 = 9;

fn precedence(expr: Expr) -> u8 {
    match expr {
        Expr::Or(..) => 1,
        Expr::And(..) => 2,
        Expr::Compare(CompareOp::Equal | CompareOp::NotEqual, ..) => 3,
        Expr::Compare(..) => 4,
        Expr::Arithmetic(ArithmeticOp::Add | ArithmeticOp::Subtract, ..) => 5,
        Expr::Arithmetic(..) => 6,
        Expr::Negate(_) => UNARY,
        Expr::Union(..) => UNION,
        _ => PRIMARY,
    }
}

pub(crate) fn axis_name(axis: Axis) -> &'static str {
    match axis {
        Axis::Ancestor => "ancestor",
        Axis::AncestorOrSelf => "ancestor-or-self",
        Axis::Attribute => "attribute",
        Axis::Child => "child",
        Axis::Descendant => "descendant",
        Axis::DescendantOrSelf => "descendant-or-self",
        Axis::Following => "following",
        Axis::FollowingSibling => "following-sibling",
        Axis::Namespace => "namespace",
        Axis::Parent => "parent",
        Axis::Preceding => "preceding",
        Axis::PrecedingSibling => "preceding-sibling",
        Axis::SelfAxis => "self",
    }
}

pub(crate) fn compare_sign(op: CompareOp) -> &'static str {
    match op {
        CompareOp::Equal => " = ",
        CompareOp::NotEqual => " != ",
        CompareOp::Less => " < ",
        CompareOp::LessEqual => " <= ",
        CompareOp::Greater => " > ",
        CompareOp::GreaterEqual => " >= ",
    }
}

fn arithmetic_sign(op: ArithmeticOp) -> &'static str {
    match op {
        ArithmeticOp::Add => " + ",
        ArithmeticOp::Subtract => " - ",
        ArithmeticOp::Multiply => " * ",
        ArithmeticOp::Divide => " div ",
        ArithmeticOp::Modulo => " mod ",
    }
}

/// A constant as a literal.
pub fn constant_text(constant: ConstantRef<'_>) -> String {
    match constant {
        ConstantRef::String(text) if text.contains('"') => format!("'{text}'"),
        ConstantRef::String(text) => format!("\"{text}\""),
        // A literal this large is infinite; it can only be written as one.
        ConstantRef::Number(value) if value.is_infinite() => {
            format!("{}1{}", if value < 0.0 { "-" } else { "" }, "0".repeat(309))
        }
        ConstantRef::Number(value) if value == 0.0 && value.is_sign_negative() => "-0".into(),
        ConstantRef::Number(value) => number::to_string(value),
    }
}

/// `//` before a step, in place of `descendant-or-self::node()/`.
fn is_everything(step: &Step) -> bool {
    step.axis == Axis::DescendantOrSelf && step.test == NodeTest::Node && step.predicates == NONE
}

impl Printer<'_> {
    /// The text of an expression.
    pub fn text(&self, expr: ExprId) -> String {
        let mut out = String::new();
        self.expr(expr, 0, &mut out);
        out
    }

    /// The text of a path's start and its steps from `first` up to and including `last`, that one with its first
    /// `predicates` predicates.
    pub fn path_text(&self, start: PathStart, first: StepId, last: StepId, predicates: usize) -> String {
        let mut out = String::new();
        self.path(start, first, last, predicates, &mut out);
        out
    }

    /// The text of one step, without the slash before it.
    pub fn step_text(&self, step: Step) -> String {
        let mut out = String::new();
        self.step(&step, usize::MAX, &mut out);
        out
    }

    fn expr(&self, id: ExprId, least: u8, out: &mut String) {
        let expr = self.query.expr(id);
        let own = precedence(expr);
        // `/ or a` would read `or` as a step.
        let bare_root = least > 0 && matches!(expr, Expr::Path(PathStart::Root, NONE));
        if own < least || bare_root {
            out.push('(');
            self.expr(id, 0, out);
            out.push(')');
            return;
        }
        match expr {
            // The parser balances these chains again, whatever their shape.
            Expr::Or(a, b) => self.pair(a, " or ", b, own, own, out),
            Expr::And(a, b) => self.pair(a, " and ", b, own, own, out),
            Expr::Union(a, b) => self.pair(a, " | ", b, own, own, out),
            Expr::Compare(op, a, b) => self.pair(a, compare_sign(op), b, own, own + 1, out),
            Expr::Arithmetic(op, a, b) => self.pair(a, arithmetic_sign(op), b, own, own + 1, out),
            Expr::Negate(a) => {
                out.push('-');
                self.expr(a, UNARY, out);
            }
            Expr::StringConstant(slot) | Expr::NumberConstant(slot) => match self.constants.get(slot as usize) {
                Some(constant) => out.push_str(&constant_text(*constant)),
                None => out.push('?'), // a signature without its row
            },
            Expr::Call(function, arguments) => {
                out.push_str(semantics::function_signature(function).name);
                out.push('(');
                for (number, argument) in self.query.list(arguments).enumerate() {
                    if number > 0 {
                        out.push_str(", ");
                    }
                    self.expr(argument, 0, out);
                }
                out.push(')');
            }
            Expr::Path(start, first) => self.path(start, first, NONE, usize::MAX, out),
            Expr::Filter(primary, predicates) => {
                self.primary(primary, out);
                self.predicates(predicates, usize::MAX, out);
            }
        }
    }

    fn pair(&self, a: ExprId, sign: &str, b: ExprId, left: u8, right: u8, out: &mut String) {
        self.expr(a, left, out);
        out.push_str(sign);
        self.expr(b, right, out);
    }

    /// What a filter's predicates or a path's steps are applied to.
    fn primary(&self, id: ExprId, out: &mut String) {
        let bare = matches!(self.query.expr(id), Expr::Call(..) | Expr::Filter(..));
        self.expr(id, if bare { 0 } else { PRIMARY + 1 }, out);
    }

    fn path(&self, start: PathStart, first: StepId, last: StepId, predicates: usize, out: &mut String) {
        let mut needs_slash = match start {
            PathStart::Root => true,
            PathStart::Context => false,
            PathStart::Expr(primary) => {
                match self.query.expr(primary) {
                    Expr::Filter(..) | Expr::Call(..) => self.expr(primary, 0, out),
                    _ => self.primary(primary, out),
                }
                true
            }
        };
        if first == NONE && start == PathStart::Root {
            out.push('/');
        }
        let mut at = first;
        let mut doubled = false;
        while at != NONE {
            let step = self.query.step(at);
            let shown = if at == last { predicates } else { usize::MAX };
            let positional = semantics::is_positional_list(self.query, step.predicates);
            let short = step.axis == Axis::Descendant && !positional && !doubled;
            if (short || (is_everything(&step) && !doubled)) && !needs_slash {
                out.push('.');
            }
            if is_everything(&step) && !doubled {
                out.push_str("//");
                if step.next == NONE || at == last {
                    out.push('.');
                }
                doubled = true;
            } else {
                if short {
                    out.push_str("//");
                } else if needs_slash && !doubled {
                    out.push('/');
                }
                let step = if short { Step { axis: Axis::Child, ..step } } else { step };
                self.step(&step, shown, out);
                doubled = false;
            }
            needs_slash = true;
            if at == last {
                break;
            }
            at = step.next;
        }
    }

    fn step(&self, step: &Step, predicates: usize, out: &mut String) {
        match (step.axis, step.test, step.predicates) {
            (Axis::SelfAxis, NodeTest::Node, NONE) => return out.push('.'),
            (Axis::Parent, NodeTest::Node, NONE) => return out.push_str(".."),
            (Axis::Child, ..) => {}
            (Axis::Attribute, ..) => out.push('@'),
            (axis, ..) => {
                out.push_str(axis_name(axis));
                out.push_str("::");
            }
        }
        match step.test {
            NodeTest::Node => out.push_str("node()"),
            NodeTest::Any => out.push('*'),
            NodeTest::Name(symbol) => self.name(symbol, step.axis == Axis::Attribute, out),
            NodeTest::Text => out.push_str("text()"),
            NodeTest::Comment => out.push_str("comment()"),
            NodeTest::ProcessingInstruction => out.push_str("processing-instruction()"),
            NodeTest::ProcessingInstructionNamed(symbol) => {
                let (_, target) = super::symbols::parts(self.symbols.resolve(symbol));
                out.push_str("processing-instruction(");
                out.push_str(&constant_text(ConstantRef::String(target)));
                out.push(')');
            }
        }
        self.predicates(step.predicates, predicates, out);
    }

    fn predicates(&self, list: ListId, count: usize, out: &mut String) {
        for predicate in self.query.list(list).take(count) {
            out.push('[');
            self.expr(predicate, 0, out);
            out.push(']');
        }
    }

    fn name(&self, symbol: Symbol, attribute: bool, out: &mut String) {
        let (uri, local) = match self.symbols.resolve(symbol) {
            NameTest::Local(local) => return out.push_str(local),
            NameTest::Expanded(uri, local) => (uri, local),
            NameTest::Namespace(uri) => (uri, "*"),
        };
        let prefixes = self.prefixes.unwrap_or_default();
        // Unprefixed means the default namespace for elements, but never for attributes or `*`.
        let default = prefixes.iter().find(|(prefix, _)| prefix.is_empty()).map_or("", |(_, uri)| uri);
        if local != "*" && uri == if attribute { "" } else { default } {
            return out.push_str(local);
        }
        match prefixes.iter().find(|(prefix, bound)| !prefix.is_empty() && !uri.is_empty() && *bound == uri) {
            Some((prefix, _)) => out.push_str(prefix),
            None if uri == crate::document::XML_URI => out.push_str("xml"),
            None => {
                out.push_str("Q{");
                out.push_str(uri);
                out.push('}');
                return out.push_str(local);
            }
        }
        out.push(':');
        out.push_str(local);
    }
}
