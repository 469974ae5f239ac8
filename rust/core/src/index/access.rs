//! Access predicates: conditions that hold whenever an expression is true.
//!
//! An [`Access`] is a disjunction of [`Atom`]s, each something the shared structures can find: a path that exists, or
//! a path with a value. An expression offers several ([`accesses`]); the index uses one of them, so that a row is
//! looked at only if that one held. A conjunction offers what each operand offers, a disjunction needs one of both,
//! a negation offers nothing. An access is *exact* when it holds exactly if the expression is true: then it decides
//! alone. (After the "query indexing" of predicates in relational XML publish/subscribe and of percolators: candidates
//! may be too many, never too few.)

use crate::paths::LinearPath;
use crate::xpath::ast::{CompareOp, ConstantRef, Expr, ExprId, Function, ListId, NONE, PathStart, Query};
use crate::xpath::display::{compare_sign, constant_text};
use crate::xpath::symbols::SymbolTable;
use smallvec::{SmallVec, smallvec};

/// What is asked of the value at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AtomTest {
    /// Nothing: a node is there.
    Exists,
    /// Its string-value equals the string constant in this slot.
    StringEqual(u32),
    /// Its number equals the number constant in this slot.
    NumberEqual(u32),
    /// Its string-value contains the string constant in this slot.
    Contains(u32),
    /// Its string-value starts with the string constant in this slot.
    StartsWith(u32),
    /// `value op constant`, with an order operator, as numbers.
    Range(CompareOp, u32),
}

/// An atomic predicate: a linear path and a test of the value found there.
#[derive(Clone, Debug, PartialEq)]
pub struct Atom {
    /// The path from the document node.
    pub path: LinearPath,
    /// The test.
    pub test: AtomTest,
}

/// A disjunction of atoms: at least one holds whenever the expression is true.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    /// The atoms; never empty.
    pub atoms: SmallVec<[Atom; 1]>,
    /// Whether the disjunction alone decides the expression.
    pub exact: bool,
}

impl Atom {
    /// The atom as text, for explanations.
    pub fn text(&self, symbols: &dyn SymbolTable, constants: &[ConstantRef<'_>]) -> String {
        let path = self.path.text(symbols);
        let constant = |slot: u32| constant_text(constants[slot as usize]);
        match self.test {
            AtomTest::Exists => format!("{path} exists"),
            AtomTest::StringEqual(slot) | AtomTest::NumberEqual(slot) => format!("{path} = {}", constant(slot)),
            AtomTest::Contains(slot) => format!("contains({path}, {})", constant(slot)),
            AtomTest::StartsWith(slot) => format!("starts-with({path}, {})", constant(slot)),
            AtomTest::Range(op, slot) => format!("{path}{}{}", compare_sign(op), constant(slot)),
        }
    }
}

impl Access {
    fn one(path: LinearPath, test: AtomTest, exact: bool) -> Access {
        Access { atoms: smallvec![Atom { path, test }], exact }
    }

    /// Smaller is more selective, as far as the form tells: equality, then string functions, then ranges, then
    /// existence; then the path with more names; exact before inexact.
    pub fn rank(&self) -> (u32, u32, u32) {
        let worst = self.atoms.iter().map(|atom| {
            let kind = match atom.test {
                AtomTest::StringEqual(_) | AtomTest::NumberEqual(_) => 0,
                AtomTest::StartsWith(_) | AtomTest::Contains(_) => 1,
                AtomTest::Range(..) => 2,
                AtomTest::Exists => 3,
            };
            (kind, 1000 - atom.path.named_count().min(1000) as u32)
        });
        let (kind, names) = worst.max().unwrap_or((9, 0));
        (kind, u32::from(!self.exact), names + 1000 * self.atoms.len() as u32)
    }
}

/// At most this many accesses are offered for one expression; the most selective ones are kept.
const MAX_ACCESSES: usize = 8;
/// A disjunction of more atoms than this is not worth its entries.
const MAX_ATOMS: usize = 64;

/// The accesses of a whole expression, best first; none means that it has to be evaluated for every document.
pub fn accesses(query: &Query<'_>, constants: &[ConstantRef<'_>]) -> Vec<Access> {
    let mut finder = Finder { query, constants };
    let mut found = finder.of(query.root, &LinearPath::default(), true);
    finder.trim(&mut found);
    found
}

/// Whether a slot's constant changes which accesses are offered: an empty string is contained in everything, also
/// where there is no node; a count of zero nodes is satisfied by none. Rows that differ here must not share a plan.
pub fn constant_class(constant: ConstantRef<'_>) -> u64 {
    match constant {
        ConstantRef::String(value) => u64::from(value.is_empty()),
        ConstantRef::Number(value) => u64::from(value >= 1.0),
    }
}

/// Whether the slots of this expression have to be told apart by [`constant_class`].
pub fn depends_on_constants(query: &Query<'_>) -> bool {
    (0..query.cells.len() as u32).any(|id| {
        query.call(id).is_some_and(|function| {
            matches!(
                function,
                Function::Contains
                    | Function::StartsWith
                    | Function::String
                    | Function::NormalizeSpace
                    | Function::Count
            )
        })
    })
}

struct Finder<'q, 'c> {
    query: &'q Query<'q>,
    constants: &'c [ConstantRef<'c>],
}

impl Finder<'_, '_> {
    fn trim(&self, found: &mut Vec<Access>) {
        if found.len() > 1 {
            found.sort_by_cached_key(Access::rank);
            found.truncate(MAX_ACCESSES);
        }
    }

    /// Accesses of `expr`, evaluated at the end of `context` (`known` = whether that path says where exactly we are).
    ///
    /// Exactness is relative to the context: "some node at `context` satisfies `expr`" exactly if the access holds.
    fn of(&mut self, expr: ExprId, context: &LinearPath, known: bool) -> Vec<Access> {
        match self.query.expr(expr) {
            Expr::And(a, b) => {
                let mut found = self.of(a, context, known);
                found.extend(self.of(b, context, known));
                for access in &mut found {
                    access.exact = false;
                }
                self.trim(&mut found);
                found
            }
            Expr::Or(a, b) => self.either(a, b, context, known),
            Expr::Compare(op, a, b) => self.compare(op, a, b, context, known),
            Expr::Union(..) | Expr::Path(..) | Expr::Filter(..) => self.nodes(expr, context, known).0,
            Expr::Call(function, arguments) => self.call(function, arguments, context, known),
            Expr::StringConstant(_) | Expr::NumberConstant(_) | Expr::Arithmetic(..) | Expr::Negate(_) => Vec::new(),
        }
    }

    fn either(&mut self, a: ExprId, b: ExprId, context: &LinearPath, known: bool) -> Vec<Access> {
        let (left, right) = (self.of(a, context, known), self.of(b, context, known));
        self.join(left, right)
    }

    /// The best access of a disjunction: the best of both sides together.
    fn join(&mut self, mut left: Vec<Access>, mut right: Vec<Access>) -> Vec<Access> {
        self.trim(&mut left);
        self.trim(&mut right);
        match (left.into_iter().next(), right.into_iter().next()) {
            (Some(mut access), Some(other)) if access.atoms.len() + other.atoms.len() <= MAX_ATOMS => {
                access.exact &= other.exact;
                access.atoms.extend(other.atoms);
                vec![access]
            }
            _ => Vec::new(),
        }
    }

    /// Accesses for "this node-set is not empty", and its linear path if it is one without predicates.
    fn nodes(&mut self, expr: ExprId, context: &LinearPath, known: bool) -> (Vec<Access>, Option<LinearPath>) {
        match self.query.expr(expr) {
            Expr::Path(start, first) => self.path(start, first, context, known),
            Expr::Union(a, b) => {
                let (left, right) = (self.nodes(a, context, known).0, self.nodes(b, context, known).0);
                (self.join(left, right), None)
            }
            Expr::Filter(primary, _) => {
                let mut found = self.nodes(primary, context, known).0;
                for access in &mut found {
                    access.exact = false;
                }
                (found, None)
            }
            // `id(…)` selects by value; nothing is known about where.
            _ => (Vec::new(), None),
        }
    }

    fn path(
        &mut self,
        start: PathStart,
        first: u32,
        context: &LinearPath,
        known: bool,
    ) -> (Vec<Access>, Option<LinearPath>) {
        let mut path = match start {
            PathStart::Root => LinearPath::default(),
            PathStart::Context => {
                if !known {
                    return (Vec::new(), None);
                }
                context.clone()
            }
            PathStart::Expr(primary) => {
                let mut found = self.nodes(primary, context, known).0;
                for access in &mut found {
                    access.exact = false;
                }
                return (found, None);
            }
        };
        // An absolute path in a predicate says nothing about the context node, so it never decides there.
        let relative = start == PathStart::Context || context.edges.is_empty();
        let mut found = Vec::new();
        let mut plain = true;
        let mut at = first;
        while at != NONE {
            let step = self.query.step(at);
            path.push(&step);
            let here = path.is_exact();
            for predicate in self.query.list(step.predicates) {
                let last_step = step.next == NONE;
                let single = self.query.list(step.predicates).count() == 1;
                let mut offered = self.of(predicate, &path, here);
                for access in &mut offered {
                    access.exact &= plain && last_step && single && here && relative;
                }
                found.extend(offered);
            }
            plain &= step.predicates == NONE;
            at = step.next;
        }
        if !path.edges.is_empty() {
            let exact = plain && path.is_exact() && relative;
            found.push(Access::one(path.clone(), AtomTest::Exists, exact));
        }
        self.trim(&mut found);
        let linear = (plain && path.is_exact()).then_some(path);
        (found, linear)
    }

    fn is_context_free(&self, expr: ExprId) -> bool {
        matches!(self.query.expr(expr), Expr::Path(PathStart::Context, _))
    }

    fn compare(&mut self, op: CompareOp, a: ExprId, b: ExprId, context: &LinearPath, known: bool) -> Vec<Access> {
        let (left_set, right_set) = (self.is_node_set(a), self.is_node_set(b));
        match (left_set, right_set) {
            (true, true) => {
                // Some pair of nodes must compare: neither side may be empty.
                let mut found = self.nodes(a, context, known).0;
                found.extend(self.nodes(b, context, known).0);
                for access in &mut found {
                    access.exact = false;
                }
                self.trim(&mut found);
                found
            }
            (true, false) => self.compare_value(op, a, b, context, known),
            (false, true) => self.compare_value(op.mirrored(), b, a, context, known),
            (false, false) => self.compare_strings(op, a, b, context, known),
        }
    }

    /// A node-set against something that is not one.
    fn compare_value(
        &mut self,
        op: CompareOp,
        nodes: ExprId,
        value: ExprId,
        context: &LinearPath,
        known: bool,
    ) -> Vec<Access> {
        if self.is_boolean(value) {
            return Vec::new(); // an empty node-set counts as false and may well be equal
        }
        let (mut found, linear) = self.nodes(nodes, context, known);
        let relative = self.is_context_free(nodes) || context.edges.is_empty();
        for access in &mut found {
            access.exact = false;
        }
        let test = match (self.query.expr(value), op) {
            (Expr::StringConstant(slot), CompareOp::Equal) => Some(AtomTest::StringEqual(slot)),
            (Expr::NumberConstant(slot), CompareOp::Equal) => Some(AtomTest::NumberEqual(slot)),
            (Expr::NumberConstant(slot), CompareOp::Less | CompareOp::LessEqual) => Some(AtomTest::Range(op, slot)),
            (Expr::NumberConstant(slot), CompareOp::Greater | CompareOp::GreaterEqual) => {
                Some(AtomTest::Range(op, slot))
            }
            _ => None,
        };
        if let (Some(test), Some(path)) = (test, linear.filter(|path| !path.edges.is_empty())) {
            found.push(Access::one(path, test, relative));
        }
        self.trim(&mut found);
        found
    }

    /// `string(path) = 'x'`, `normalize-space(path) = 'x'`, `count(path) >= 1` and the like.
    fn compare_strings(
        &mut self,
        op: CompareOp,
        a: ExprId,
        b: ExprId,
        context: &LinearPath,
        known: bool,
    ) -> Vec<Access> {
        let (call, value, op) = match (self.query.expr(a), self.query.expr(b)) {
            (Expr::Call(function, arguments), value) => ((function, arguments), value, op),
            (value, Expr::Call(function, arguments)) => ((function, arguments), value, op.mirrored()),
            _ => return Vec::new(),
        };
        let (function, arguments) = call;
        let needs_node = match (function, value) {
            (Function::String | Function::NormalizeSpace, Expr::StringConstant(slot)) => {
                op == CompareOp::Equal && constant_class(self.constants[slot as usize]) == 0
            }
            (Function::Count, Expr::NumberConstant(slot)) => {
                matches!(op, CompareOp::Equal | CompareOp::Greater | CompareOp::GreaterEqual)
                    && constant_class(self.constants[slot as usize]) == 1
            }
            _ => false,
        };
        let Some(argument) = self.query.list(arguments).next().filter(|_| needs_node) else { return Vec::new() };
        if !self.is_node_set(argument) {
            return Vec::new();
        }
        let (mut found, linear) = self.nodes(argument, context, known);
        if let (Function::String, Expr::StringConstant(slot), Some(path)) = (function, value, linear)
            && !path.edges.is_empty()
        {
            found.push(Access::one(path, AtomTest::StringEqual(slot), false));
        }
        for access in &mut found {
            access.exact = false;
        }
        self.trim(&mut found);
        found
    }

    fn call(&mut self, function: Function, arguments: ListId, context: &LinearPath, known: bool) -> Vec<Access> {
        let mut list = self.query.list(arguments);
        match (function, list.next(), list.next()) {
            (Function::Boolean, Some(argument), None) => self.of(argument, context, known),
            (Function::Contains | Function::StartsWith, Some(subject), Some(pattern)) => {
                let Expr::StringConstant(slot) = self.query.expr(pattern) else { return Vec::new() };
                if constant_class(self.constants[slot as usize]) == 1 || !self.is_node_set(subject) {
                    return Vec::new(); // everything contains the empty string
                }
                let (mut found, linear) = self.nodes(subject, context, known);
                for access in &mut found {
                    access.exact = false;
                }
                if let Some(path) = linear.filter(|path| !path.edges.is_empty()) {
                    let test = if function == Function::Contains {
                        AtomTest::Contains(slot)
                    } else {
                        AtomTest::StartsWith(slot)
                    };
                    // Only the first node counts, unless it is the context node itself.
                    let own = matches!(self.query.expr(subject), Expr::Path(PathStart::Context, first)
                        if self.query.steps(first).all(|step| step.axis == crate::xpath::ast::Axis::SelfAxis));
                    found.push(Access::one(path, test, own));
                }
                self.trim(&mut found);
                found
            }
            _ => Vec::new(),
        }
    }

    fn is_node_set(&self, expr: ExprId) -> bool {
        matches!(
            self.query.expr(expr),
            Expr::Path(..) | Expr::Union(..) | Expr::Filter(..) | Expr::Call(Function::Id, _)
        )
    }

    fn is_boolean(&self, expr: ExprId) -> bool {
        matches!(
            self.query.expr(expr),
            Expr::Or(..)
                | Expr::And(..)
                | Expr::Compare(..)
                | Expr::Call(
                    Function::Boolean
                        | Function::Not
                        | Function::True
                        | Function::False
                        | Function::Contains
                        | Function::StartsWith
                        | Function::Lang,
                    _
                )
        )
    }
}
