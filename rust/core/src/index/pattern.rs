//! Tree patterns: conjunctions of linear paths that meet in common nodes.
//!
//! `/a/b[c = 1][.//d]/e` asks for three *leaves*, `/a/b/c = 1`, `/a/b//d` and `/a/b/e`, that meet in a *branch*, `/a/b`.
//! That all leaves are in a document is only necessary: they may belong to different `b`. But where the path of
//! each branch leads to one node only, they can not, and the leaves decide alone; elsewhere the nodes decide at which
//! they were found, see [`Joins`](super::joins::Joins). (Tree patterns are called twigs by Bruno et al., "Holistic twig
//! joins", SIGMOD 2002; deciding them by unique branches is our own.)

use super::access::{Atom, AtomTest};
use crate::paths::{LinearPath, implies};
use crate::xpath::ast::{CompareOp, Expr, ExprId, Function, NONE, PathStart, Query};

/// The branch that is no branch: the document node, of which there is one.
pub(super) const TOP: usize = 0;

/// Expressions of more leaves are not looked at: what follows from what is asked for all pairs.
const MAX_LEAVES: usize = 64;

/// Something that has to hold.
#[derive(Debug, PartialEq)]
pub(super) struct Leaf {
    /// The path from the document node, and what is asked of the value.
    pub(super) atom: Atom,
    /// The branch below which it lies; its path begins with the branch's.
    pub(super) branch: usize,
}

/// A node in which leaves or other branches meet.
#[derive(Debug, PartialEq)]
pub(super) struct Branch {
    /// Its path from the document node.
    pub(super) path: LinearPath,
    /// The branch below which it lies, one before it; its path begins with that one's.
    pub(super) above: usize,
    /// Leaves and branches right below it; those that have fewer than two are no longer part of the pattern.
    pub(super) ways: usize,
}

/// The leaves and branches of an expression.
#[derive(Debug, PartialEq)]
pub(super) struct Pattern {
    /// What has to hold; none follows from another.
    pub(super) leaves: Vec<Leaf>,
    /// Where they meet, [`TOP`] first.
    branches: Vec<Branch>,
}

impl Pattern {
    /// The pattern of an expression, if it is one: anything but paths forwards, their predicates of the same kind,
    /// `and` and comparisons with constants makes it something else.
    pub(super) fn new(query: &Query<'_>) -> Option<Pattern> {
        let top = Branch { path: LinearPath::default(), above: TOP, ways: 0 };
        let mut pattern = Pattern { leaves: Vec::new(), branches: vec![top] };
        pattern.collect(query, query.root, &LinearPath::default(), TOP)?;
        pattern.drop_implied();
        pattern.contract();
        Some(pattern)
    }

    /// The branches but [`TOP`], with their numbers; each comes behind the one above it.
    pub(super) fn branches(&self) -> impl DoubleEndedIterator<Item = (usize, &Branch)> {
        self.branches.iter().enumerate().skip(1).filter(|(_, branch)| branch.ways > 1)
    }

    /// A branch, [`TOP`] included.
    pub(super) fn branch(&self, number: usize) -> &Branch {
        &self.branches[number]
    }

    /// Drops leaves that only have to exist where another leaf below the same branch cannot do without them.
    fn drop_implied(&mut self) {
        let mut at = 0;
        while at < self.leaves.len() {
            let leaf = &self.leaves[at];
            let own = self.branches[leaf.branch].path.edges.len();
            let implied = leaf.atom.test == AtomTest::Exists
                && self.leaves.iter().enumerate().any(|(other, known)| {
                    other != at
                        && self.lies_below(known.branch, leaf.branch)
                        && implies(&known.atom.path.edges[own..], &leaf.atom.path.edges[own..])
                });
            if implied {
                self.leaves.remove(at);
            } else {
                at += 1;
            }
        }
    }

    fn lies_below(&self, mut branch: usize, above: usize) -> bool {
        // Branches come behind those above them.
        while branch > above {
            branch = self.branches[branch].above;
        }
        branch == above
    }

    /// Counts the ways below each branch; what is the only one goes to the branch above.
    fn contract(&mut self) {
        for number in (1..self.branches.len()).rev() {
            let leaves = self.leaves.iter().filter(|leaf| leaf.branch == number).count();
            let below = |branch: &&Branch| branch.above == number && branch.ways > 1;
            let ways = leaves + self.branches[number + 1..].iter().filter(below).count();
            self.branches[number].ways = ways;
            if ways == 1 {
                let above = self.branches[number].above;
                for leaf in self.leaves.iter_mut().filter(|leaf| leaf.branch == number) {
                    leaf.branch = above;
                }
                for branch in self.branches[number + 1..].iter_mut().filter(|branch| branch.above == number) {
                    branch.above = above;
                }
            }
        }
    }

    fn collect(&mut self, query: &Query<'_>, expr: ExprId, context: &LinearPath, branch: usize) -> Option<()> {
        match query.expr(expr) {
            Expr::And(a, b) => {
                self.collect(query, a, context, branch)?;
                self.collect(query, b, context, branch)
            }
            Expr::Call(Function::Boolean, arguments) => {
                self.collect(query, query.list(arguments).next()?, context, branch)
            }
            Expr::Path(start, first) => self.path(query, (start, first), context, branch, AtomTest::Exists),
            Expr::Compare(op, path, constant) => {
                let Expr::Path(start, first) = query.expr(path) else { return None };
                let test = match (query.expr(constant), op) {
                    (Expr::StringConstant(slot), CompareOp::Equal) => AtomTest::StringEqual(slot),
                    (Expr::NumberConstant(slot), CompareOp::Equal) => AtomTest::NumberEqual(slot),
                    (Expr::NumberConstant(slot), op) if op != CompareOp::NotEqual => AtomTest::Range(op, slot),
                    _ => return None,
                };
                self.path(query, (start, first), context, branch, test)
            }
            _ => None,
        }
    }

    fn path(
        &mut self,
        query: &Query<'_>,
        (start, first): (PathStart, u32),
        context: &LinearPath,
        branch: usize,
        test: AtomTest,
    ) -> Option<()> {
        let (mut path, mut branch) = match start {
            PathStart::Root => (LinearPath::default(), TOP),
            PathStart::Context => (context.clone(), branch),
            PathStart::Expr(_) => return None,
        };
        let mut at = first;
        while at != NONE {
            let step = query.step(at);
            path.push(&step);
            if step.predicates != NONE {
                if !path.is_exact() {
                    return None;
                }
                if !path.edges.is_empty() {
                    self.branches.push(Branch { path: path.clone(), above: branch, ways: 0 });
                    branch = self.branches.len() - 1;
                }
                for predicate in query.list(step.predicates) {
                    self.collect(query, predicate, &path, branch)?;
                }
            }
            at = step.next;
        }
        if !path.is_exact() || path.edges.is_empty() || self.leaves.len() == MAX_LEAVES {
            return None;
        }
        self.leaves.push(Leaf { atom: Atom { path, test }, branch });
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
            found.leaves.iter().map(|leaf| leaf.atom.text(&symbols, &constants)).collect(),
            found.branches().map(|(_, branch)| branch.path.text(&symbols)).collect(),
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
        assert_eq!(pattern("/a[b[c]/d]/e"), of(&["/a/b/c exists", "/a/b/d exists", "/a/e exists"], &["/a", "/a/b"]));
        assert_eq!(pattern("/a[b > 2]"), of(&["/a/b > 2"], &[]));
        assert_eq!(pattern("/a and /b = 1"), of(&["/a exists", "/b = 1"], &[]));
        assert_eq!(pattern("/a/b[c = 1]/c"), of(&["/a/b/c = 1"], &[]));
        assert_eq!(pattern("/a/b[*]/c/d"), of(&["/a/b/c/d exists"], &[]));
        assert_eq!(pattern("/a/b[.//*/d]/c//e/d"), of(&["/a/b/c//e/d exists"], &[]));
        assert_eq!(pattern("/a/b[c]/*"), of(&["/a/b/c exists"], &[]));
        assert_eq!(
            pattern("/r[a/b = 1]/a[c]/b"),
            of(&["/r/a/b = 1", "/r/a/c exists", "/r/a/b exists"], &["/r", "/r/a"])
        );
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
