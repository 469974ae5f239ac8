//! Static semantics: types, dependence on position, and what an expression does not depend on.

use super::ast::{Expr, ExprId, Function, ListId, NONE, PathStart, Query};

/// The four types of XPath 1.0 (§1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// A set of nodes.
    NodeSet,
    /// A string.
    String,
    /// A number.
    Number,
    /// A truth value.
    Boolean,
}

impl Type {
    /// The name as the recommendation writes it.
    pub fn name(self) -> &'static str {
        match self {
            Type::NodeSet => "node-set",
            Type::String => "string",
            Type::Number => "number",
            Type::Boolean => "boolean",
        }
    }
}

/// A core function's name, arity and types.
#[derive(Clone, Copy, Debug)]
pub struct Signature {
    /// Name.
    pub name: &'static str,
    /// The function.
    pub function: Function,
    /// Fewest arguments.
    pub least: usize,
    /// Most arguments; `usize::MAX` where there is no bound.
    pub most: usize,
    /// Whether its arguments must be node-sets (otherwise any type is converted).
    pub node_sets: bool,
    /// Type of the result.
    pub result: Type,
}

const fn signature(
    name: &'static str,
    function: Function,
    least: usize,
    most: usize,
    node_sets: bool,
    result: Type,
) -> Signature {
    Signature { name, function, least, most, node_sets, result }
}

/// The core function library, in the order of [`Function`].
const SIGNATURES: [Signature; 27] = [
    signature("last", Function::Last, 0, 0, false, Type::Number),
    signature("position", Function::Position, 0, 0, false, Type::Number),
    signature("count", Function::Count, 1, 1, true, Type::Number),
    signature("id", Function::Id, 1, 1, false, Type::NodeSet),
    signature("local-name", Function::LocalName, 0, 1, true, Type::String),
    signature("namespace-uri", Function::NamespaceUri, 0, 1, true, Type::String),
    signature("name", Function::Name, 0, 1, true, Type::String),
    signature("string", Function::String, 0, 1, false, Type::String),
    signature("concat", Function::Concat, 2, usize::MAX, false, Type::String),
    signature("starts-with", Function::StartsWith, 2, 2, false, Type::Boolean),
    signature("contains", Function::Contains, 2, 2, false, Type::Boolean),
    signature("substring-before", Function::SubstringBefore, 2, 2, false, Type::String),
    signature("substring-after", Function::SubstringAfter, 2, 2, false, Type::String),
    signature("substring", Function::Substring, 2, 3, false, Type::String),
    signature("string-length", Function::StringLength, 0, 1, false, Type::Number),
    signature("normalize-space", Function::NormalizeSpace, 0, 1, false, Type::String),
    signature("translate", Function::Translate, 3, 3, false, Type::String),
    signature("boolean", Function::Boolean, 1, 1, false, Type::Boolean),
    signature("not", Function::Not, 1, 1, false, Type::Boolean),
    signature("true", Function::True, 0, 0, false, Type::Boolean),
    signature("false", Function::False, 0, 0, false, Type::Boolean),
    signature("lang", Function::Lang, 1, 1, false, Type::Boolean),
    signature("number", Function::Number, 0, 1, false, Type::Number),
    signature("sum", Function::Sum, 1, 1, true, Type::Number),
    signature("floor", Function::Floor, 1, 1, false, Type::Number),
    signature("ceiling", Function::Ceiling, 1, 1, false, Type::Number),
    signature("round", Function::Round, 1, 1, false, Type::Number),
];

/// The signature of a function.
pub fn function_signature(function: Function) -> &'static Signature {
    &SIGNATURES[function as usize]
}

/// The core function of this name.
pub fn function_named(name: &str) -> Option<&'static Signature> {
    SIGNATURES.iter().find(|signature| signature.name == name)
}

/// The names of all core functions.
pub fn function_names() -> impl Iterator<Item = &'static str> {
    SIGNATURES.iter().map(|signature| signature.name)
}

/// The type of an expression; every XPath 1.0 expression without variables has a static one.
pub fn static_type(query: Query<'_>, expr: ExprId) -> Type {
    match query.expr(expr) {
        Expr::Or(..) | Expr::And(..) | Expr::Compare(..) => Type::Boolean,
        Expr::Arithmetic(..) | Expr::Negate(_) | Expr::NumberConstant(_) => Type::Number,
        Expr::Union(..) | Expr::Path(..) | Expr::Filter(..) => Type::NodeSet,
        Expr::StringConstant(_) => Type::String,
        Expr::Call(function, _) => function_signature(function).result,
    }
}

/// Whether a predicate looks at the context position or size: it is a number, or it calls `position()` or `last()`
/// in its own context.
pub fn is_positional(query: Query<'_>, predicate: ExprId) -> bool {
    static_type(query, predicate) == Type::Number || uses_position(query, predicate)
}

/// Whether an expression calls `position()` or `last()` in its own context.
pub fn uses_position(query: Query<'_>, expr: ExprId) -> bool {
    own_context_calls(query, expr, |function| matches!(function, Function::Position | Function::Last))
}

/// Whether an expression calls `last()` in its own context.
pub fn uses_last(query: Query<'_>, expr: ExprId) -> bool {
    own_context_calls(query, expr, |function| function == Function::Last)
}

/// Whether an expression calls such a function outside all predicates in it. Recursion is as deep as the expression,
/// which the parser bounds.
fn own_context_calls(query: Query<'_>, expr: ExprId, wanted: fn(Function) -> bool) -> bool {
    match query.expr(expr) {
        Expr::Or(a, b) | Expr::And(a, b) | Expr::Compare(_, a, b) | Expr::Arithmetic(_, a, b) | Expr::Union(a, b) => {
            own_context_calls(query, a, wanted) || own_context_calls(query, b, wanted)
        }
        Expr::Negate(a) | Expr::Filter(a, _) | Expr::Path(PathStart::Expr(a), _) => own_context_calls(query, a, wanted),
        Expr::StringConstant(_) | Expr::NumberConstant(_) | Expr::Path(..) => false,
        Expr::Call(function, arguments) => {
            wanted(function) || query.list(arguments).any(|argument| own_context_calls(query, argument, wanted))
        }
    }
}

/// Whether an expression has the same value for every context node, position and size.
pub fn is_closed(query: Query<'_>, expr: ExprId) -> bool {
    match query.expr(expr) {
        Expr::Or(a, b) | Expr::And(a, b) | Expr::Compare(_, a, b) | Expr::Arithmetic(_, a, b) | Expr::Union(a, b) => {
            is_closed(query, a) && is_closed(query, b)
        }
        // Predicates have contexts of their own, which come from the primary alone.
        Expr::Negate(a) | Expr::Filter(a, _) | Expr::Path(PathStart::Expr(a), _) => is_closed(query, a),
        Expr::StringConstant(_) | Expr::NumberConstant(_) | Expr::Path(PathStart::Root, _) => true,
        Expr::Path(PathStart::Context, _) => false,
        Expr::Call(function, arguments) => match function {
            Function::Position | Function::Last | Function::Lang => false,
            Function::True | Function::False => true,
            _ => arguments != NONE && query.list(arguments).all(|argument| is_closed(query, argument)),
        },
    }
}

/// Whether any of these predicates looks at the context position or size.
pub fn is_positional_list(query: Query<'_>, predicates: ListId) -> bool {
    query.list(predicates).any(|predicate| is_positional(query, predicate))
}

/// Whether positions matter anywhere in an expression: a step has a positional predicate, or there is a filter
/// expression, whose predicates count over a whole node-set.
pub fn has_positional_predicate(query: Query<'_>) -> bool {
    (0..query.cells.len() as u32).any(|id| {
        query.is_filter(id)
            || query
                .as_step(id)
                .is_some_and(|step| query.list(step.predicates).any(|predicate| is_positional(query, predicate)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_in_the_order_of_the_functions() {
        for (number, signature) in SIGNATURES.iter().enumerate() {
            assert_eq!(signature.function as usize, number, "{}", signature.name);
        }
    }
}
