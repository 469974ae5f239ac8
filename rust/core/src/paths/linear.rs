//! Linear paths: what shared path matching understands.

use crate::xpath::ast::{Axis, NodeTest, Step};
use crate::xpath::symbols::{NameTest, Symbol, SymbolTable};
use smallvec::SmallVec;

/// What one edge of the path automaton consumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum EdgeKind {
    /// One element, a child.
    Element = 0,
    /// One attribute of the current element; always last.
    Attribute = 1,
    /// One text node child; always last.
    Text = 2,
    /// Any number of elements, none included: the `//` between two steps.
    Gap = 3,
}

/// An edge label in four bytes: kind and name test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct Edge(u32);

const TEST_BITS: u32 = 30;

impl Edge {
    /// The gap edge.
    pub const GAP: Edge = Edge((EdgeKind::Gap as u32) << TEST_BITS);
    /// Any text node.
    pub const TEXT: Edge = Edge((EdgeKind::Text as u32) << TEST_BITS);

    /// An edge whose test is a symbol, or any name.
    pub fn new(kind: EdgeKind, symbol: Option<Symbol>) -> Edge {
        let test = symbol.map_or(0, |symbol| symbol + 1);
        debug_assert!(test < 1 << TEST_BITS);
        Edge((kind as u32) << TEST_BITS | test)
    }

    /// What it consumes.
    pub fn kind(self) -> EdgeKind {
        match self.0 >> TEST_BITS {
            0 => EdgeKind::Element,
            1 => EdgeKind::Attribute,
            2 => EdgeKind::Text,
            _ => EdgeKind::Gap,
        }
    }

    /// Whether everything that passes the other edge passes this one.
    fn covers(self, other: Edge) -> bool {
        self == other || self.kind() == other.kind() && self.symbol().is_none()
    }

    /// Its name test; `None` for any name (and for text and gaps).
    pub fn symbol(self) -> Option<Symbol> {
        let test = self.0 & ((1 << TEST_BITS) - 1);
        test.checked_sub(1)
    }
}

/// Whether a node behind `path` is there only if a node behind `general` is, from the same node on.
///
/// Between two gaps, the earliest place where the edges fit is the best one, because `path` may go on behind them.
pub fn implies(path: &[Edge], general: &[Edge]) -> bool {
    let mut rest = path;
    for (number, edges) in general.split(|edge| *edge == Edge::GAP).enumerate() {
        let fits = |from: &[Edge]| {
            from.len() >= edges.len() && edges.iter().zip(from).all(|(general, edge)| general.covers(*edge))
        };
        let places = if number == 0 { 0 } else { rest.len() };
        let Some(at) = (0..=places).find(|at| fits(&rest[*at..])) else { return false };
        rest = &rest[at + edges.len()..];
    }
    true
}

/// A path without branches: the longest beginning of a location path that the automaton can follow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinearPath {
    /// Edges from the document node on.
    pub edges: SmallVec<[Edge; 12]>,
    /// Whether the path ends in a pending gap (`a//`), waiting for the next step.
    gap: bool,
    /// Whether a step could not be followed; the edges are then only a necessary condition.
    pub truncated: bool,
}

impl LinearPath {
    /// Appends a step (its predicates are not looked at). Does nothing once truncated.
    pub fn push(&mut self, step: &Step) {
        if self.truncated {
            return;
        }
        let at_leaf = self.edges.last().is_some_and(|edge| matches!(edge.kind(), EdgeKind::Attribute | EdgeKind::Text));
        let symbol = match step.test {
            NodeTest::Name(symbol) => Some(Some(symbol)),
            NodeTest::Any => Some(None),
            _ => None,
        };
        let edge = match (step.axis, step.test, symbol) {
            (Axis::SelfAxis, NodeTest::Node, _) => return,
            _ if at_leaf => None,
            (Axis::DescendantOrSelf, NodeTest::Node, _) => {
                self.gap = true;
                return;
            }
            (Axis::Child, _, Some(symbol)) => Some(Edge::new(EdgeKind::Element, symbol)),
            (Axis::Descendant, _, Some(symbol)) => {
                self.gap = true;
                Some(Edge::new(EdgeKind::Element, symbol))
            }
            (Axis::Attribute, _, Some(symbol)) => Some(Edge::new(EdgeKind::Attribute, symbol)),
            // Every attribute passes `@node()`.
            (Axis::Attribute, NodeTest::Node, _) => Some(Edge::new(EdgeKind::Attribute, None)),
            (Axis::Child, NodeTest::Text, _) => Some(Edge::TEXT),
            (Axis::Descendant, NodeTest::Text, _) => {
                self.gap = true;
                Some(Edge::TEXT)
            }
            _ => None,
        };
        match edge {
            Some(edge) => {
                if std::mem::take(&mut self.gap) {
                    self.edges.push(Edge::GAP);
                }
                self.edges.push(edge);
            }
            None => self.truncated = true,
        }
    }

    /// Whether the edges say exactly what the steps said: nothing was cut off and no gap is left open.
    ///
    /// An open gap (`/a//.`) also selects text and comments; the edges so far are then only necessary.
    pub fn is_exact(&self) -> bool {
        !self.truncated && !self.gap
    }

    /// The path as text, names as in `Q{uri}local`.
    pub fn text(&self, symbols: &dyn SymbolTable) -> String {
        let mut text = String::new();
        let mut separator = "/";
        for edge in &self.edges {
            let name = match edge.symbol().map(|symbol| symbols.resolve(symbol)) {
                None => "*".to_owned(),
                Some(NameTest::Expanded("", local)) => local.to_owned(),
                Some(NameTest::Expanded(uri, local)) => format!("Q{{{uri}}}{local}"),
                Some(NameTest::Local(local)) => format!("*:{local}"),
                Some(NameTest::Namespace(uri)) => format!("Q{{{uri}}}*"),
            };
            match edge.kind() {
                EdgeKind::Gap => {
                    separator = "//";
                    continue;
                }
                EdgeKind::Element => text += &format!("{separator}{name}"),
                EdgeKind::Attribute => text += &format!("{separator}@{name}"),
                EdgeKind::Text => text += &format!("{separator}text()"),
            }
            separator = "/";
        }
        text
    }

    /// Its first edges as a path.
    pub fn prefix(&self, edges: usize) -> LinearPath {
        LinearPath { edges: self.edges[..edges].into(), gap: false, truncated: false }
    }

    /// Number of steps with a name.
    pub fn named_count(&self) -> usize {
        self.edges.iter().filter(|edge| edge.symbol().is_some()).count()
    }
}
