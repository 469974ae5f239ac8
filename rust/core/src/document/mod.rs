//! Documents: from bytes to a flat, read-only tree.
//!
//! The tree is in document order: a node's id is its pre-order number, an element's attributes come right after it,
//! and everything inside it is the id range up to its last descendant.

mod tree;

pub use tree::{Document, Name, Node, NodeId, NodeKind, Scope, TreeBuilder};
