//! Tree patterns: conjunctions of linear paths that meet in common nodes.
//!
//! `/a/b[c = 1][.//d]/e` asks for three *leaves*, `/a/b/c = 1`, `/a/b//d` and `/a/b/e`, that meet in a *branch*, `/a/b`.
//! That all leaves are in a document is only necessary: they may belong to different `b`. But where the path of
//! each branch leads to one node only, they can not, and the leaves decide alone. (Tree patterns are called twigs by
//! Bruno et al., "Holistic twig joins", SIGMOD 2002; deciding them by unique branches is our own.)

use super::access::{Atom, AtomTest};
use crate::paths::LinearPath;
use crate::xpath::ast::{CompareOp, Expr, ExprId, Function, NONE, PathStart, Query};

/// The leaves and branches of an expression.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Pattern {
    /// What has to hold; none follows from another.
    pub(super) leaves: Vec<Atom>,
    /// Paths of the nodes in which leaves meet, each once.
    pub(super) branches: Vec<LinearPath>,
}

impl Pattern {
    /// The pattern of an expression, if it is one: anything but paths forwards, their predicates of the same kind,
    /// `and` and comparisons with constants makes it something else.
    pub(super) fn new(query: &Query<'_>) -> Option<Pattern> {
        let mut pattern = Pattern::default();
        pattern.collect(query, query.root, &LinearPath::default())?;
        let leaves = std::mem::take(&mut pattern.leaves);
        for (number, leaf) in leaves.iter().enumerate() {
            let implied = leaves.iter().enumerate().any(|(other, known)| {
                leaf == known && other < number
                    || leaf.test == AtomTest::Exists && leaf != known && known.path.edges.starts_with(&leaf.path.edges)
            });
            if !implied {
                pattern.leaves.push(leaf.clone());
            }
        }
        Some(pattern)
    }

    fn collect(&mut self, query: &Query<'_>, expr: ExprId, context: &LinearPath) -> Option<()> {
        match query.expr(expr) {
            Expr::And(a, b) => {
                self.collect(query, a, context)?;
                self.collect(query, b, context)
            }
            Expr::Call(Function::Boolean, arguments) => self.collect(query, query.list(arguments).next()?, context),
            Expr::Path(start, first) => self.path(query, start, first, context, AtomTest::Exists),
            Expr::Compare(op, path, constant) => {
                let Expr::Path(start, first) = query.expr(path) else { return None };
                let test = match (query.expr(constant), op) {
                    (Expr::StringConstant(slot), CompareOp::Equal) => AtomTest::StringEqual(slot),
                    (Expr::NumberConstant(slot), CompareOp::Equal) => AtomTest::NumberEqual(slot),
                    (Expr::NumberConstant(slot), op) if op != CompareOp::NotEqual => AtomTest::Range(op, slot),
                    _ => return None,
                };
                self.path(query, start, first, context, test)
            }
            _ => None,
        }
    }

    fn path(
        &mut self,
        query: &Query<'_>,
        start: PathStart,
        first: u32,
        context: &LinearPath,
        test: AtomTest,
    ) -> Option<()> {
        let mut path = match start {
            PathStart::Root => LinearPath::default(),
            PathStart::Context => context.clone(),
            PathStart::Expr(_) => return None,
        };
        let mut at = first;
        while at != NONE {
            let step = query.step(at);
            path.push(&step);
            let before = self.leaves.len();
            for predicate in query.list(step.predicates) {
                if !path.is_exact() {
                    return None;
                }
                self.collect(query, predicate, &path)?;
            }
            let ways = self.leaves.len() - before + usize::from(step.next != NONE || test != AtomTest::Exists);
            if step.predicates != NONE && ways > 1 && !self.branches.contains(&path) {
                self.branches.push(path.clone());
            }
            at = step.next;
        }
        if !path.is_exact() || path.edges.is_empty() {
            return None;
        }
        self.leaves.push(Atom { path, test });
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xpath::parser::{Parser, StaticContext};
    use crate::xpath::symbols::Symbols;

    fn pattern(text: &str) -> Option<(Vec<String>, Vec<String>)> {
        let mut symbols = Symbols::default();
        let mut parser = Parser::default();
        let parsed = parser.parse(text, &StaticContext::default(), &mut symbols).unwrap();
        let constants: Vec<_> = parsed.constants().iter().map(|constant| constant.as_ref()).collect();
        let found = Pattern::new(&parsed.query())?;
        Some((
            found.leaves.iter().map(|leaf| leaf.text(&symbols, &constants)).collect(),
            found.branches.iter().map(|path| path.text(&symbols)).collect(),
        ))
    }

    #[test]
    fn leaves_meet_in_branches() {
        let of = |leaves: &[&str], branches: &[&str]| {
            let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
            Some((owned(leaves), owned(branches)))
        };
        assert_eq!(pattern("/a/b"), of(&["/a/b exists"], &[]));
        assert_eq!(pattern("/a/b[c]"), of(&["/a/b/c exists"], &[]));
        assert_eq!(pattern("/a/b[c = 1]/d"), of(&["/a/b/c = 1", "/a/b/d exists"], &["/a/b"]));
        assert_eq!(pattern("/a/b[c and .//d]"), of(&["/a/b/c exists", "/a/b//d exists"], &["/a/b"]));
        assert_eq!(
            pattern("//a[@k = 'x']/b[c]/d"),
            of(&["//a/@k = \"x\"", "//a/b/c exists", "//a/b/d exists"], &["//a", "//a/b"])
        );
        assert_eq!(pattern("/a[b[c]/d]/e"), of(&["/a/b/c exists", "/a/b/d exists", "/a/e exists"], &["/a/b", "/a"]));
        assert_eq!(pattern("/a[b > 2]"), of(&["/a/b > 2"], &[]));
        assert_eq!(pattern("/a and /b = 1"), of(&["/a exists", "/b = 1"], &[]));
        assert_eq!(pattern("/a/b[. = 'x']/c"), of(&["/a/b = \"x\"", "/a/b/c exists"], &["/a/b"]));
    }

    #[test]
    fn other_expressions_are_no_patterns() {
        for text in [
            "/a[1]",
            "/a[b or c]",
            "/a[not(b)]",
            "/a/..",
            "/a[b != 1]",
            "count(/a) > 1",
            "/a[b = c]",
            "(/a)[2]",
            "/a[contains(b, 'x')]",
            "/a//node()[b]/c",
            "/a[position() = 1]",
            "/",
        ] {
            assert_eq!(pattern(text), None, "{text}");
        }
    }
}
