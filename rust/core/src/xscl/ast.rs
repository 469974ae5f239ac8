//! A parsed join in value-join normal form: blocks of pattern nodes, and equalities between pattern nodes.
//!
//! Hong et al., SIGMOD 2007, section 2: relative paths in equalities have become pattern nodes of their own, so every
//! equality compares two nodes that a pattern binds.

use crate::xquery::ast::Module;

/// A join subscription.
#[derive(Debug)]
pub struct JoinQuery {
    /// What a notification's result is made of.
    pub select: Select,
    /// The blocks, left to right; at least one.
    pub blocks: Vec<Block>,
    /// The operators between them: one less than there are blocks.
    pub operators: Vec<Operator>,
    /// The stream on which results are published.
    pub publish: Option<Box<str>>,
}

/// The `SELECT` clause.
#[derive(Debug)]
pub enum Select {
    /// `*`, or no clause: the roots of all blocks.
    Roots,
    /// An element constructor in which variables stand for nodes.
    Construct {
        /// The constructor; its variables have the slots 0, 1, ... in the order of `variables`.
        module: Box<Module>,
        /// The pattern nodes whose variables it uses, each once, in the order of their first use.
        variables: Vec<NodeAt>,
    },
}

/// A pattern node of a query: block and node numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeAt {
    /// Number of the block.
    pub block: u16,
    /// Number of the pattern node in it.
    pub node: u16,
}

/// An XPath pattern on the documents of one stream.
#[derive(Debug)]
pub struct Block {
    /// The stream; None: that of the subscription, or every one.
    pub stream: Option<Box<str>>,
    /// The pattern nodes, parents before children; node 0 is the root.
    pub nodes: Vec<PatternNode>,
}

/// A node of a pattern: where it is bound, seen from its parent.
#[derive(Debug)]
pub struct PatternNode {
    /// The pattern node that its path starts from; None for the root alone.
    pub parent: Option<u16>,
    /// XPath 1.0 text of its path: absolute for the root (`//blog[@lang = 'en']`), else relative to the parent
    /// (`.//author`, `./name`, `./@id`). It holds the conditions that bind nothing, and, only in steps where a
    /// positional predicate makes the order of conditions matter, those that bind, without their variables.
    pub path: Box<str>,
    /// Its variable; None for a node that other pattern nodes hang from, or one made of a path in an equality.
    pub variable: Option<Box<str>>,
}

/// An operator between what is left of it and the block right of it.
#[derive(Debug)]
pub struct Operator {
    /// Which.
    pub kind: OperatorKind,
    /// What must be equal; at least one.
    pub equalities: Vec<Equality>,
    /// Its window, in microseconds; None: unlimited.
    pub window_us: Option<i64>,
}

/// Operators by what they ask of the timestamps left (t1) and right (t2), with T the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OperatorKind {
    /// |t1 - t2| <= T
    Join,
    /// 0 < t2 - t1 <= T
    FollowedBy,
}

/// Two pattern nodes whose values must be equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Equality {
    /// A node of an earlier block.
    pub left: Operand,
    /// A node of the block right of the operator.
    pub right: Operand,
}

/// A value of a pattern node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Operand {
    /// The node.
    pub at: NodeAt,
    /// What is done to its string-value.
    pub normal: Normal,
}

/// Functions around an operand, from the inside to the outside; equal ones in a row are one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Normal {
    /// The string-value itself.
    Exact,
    /// `normalize-space()`.
    Spaces,
    /// `lower-case()`.
    Lower,
    /// `lower-case(normalize-space())`, which equals `normalize-space(lower-case())`.
    SpacesLower,
}
