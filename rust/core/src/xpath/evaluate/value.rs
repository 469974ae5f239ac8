//! Nodes and values that evaluation works on.

use super::number;
use crate::document::NodeId;
use hashbrown::HashSet;
use std::cell::OnceCell;
use std::ops::Deref;
use std::rc::Rc;

/// A node of a document, namespace nodes included; ordered by document order.
///
/// Namespace nodes are not in the tree. One is named by its element and its number among the namespaces in scope
/// there, sorted by prefix: it comes after its element and before the element's attributes, and equal element and
/// prefix are one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeRef {
    id: NodeId,
    namespace: u32,
}

impl NodeRef {
    /// The document node.
    pub const ROOT: NodeRef = NodeRef::tree(0);

    /// A node of the tree.
    pub const fn tree(id: NodeId) -> Self {
        NodeRef { id, namespace: 0 }
    }

    /// The namespace node number `number` of an element.
    pub(crate) const fn namespace(element: NodeId, number: u32) -> Self {
        NodeRef { id: element, namespace: number + 1 }
    }

    /// Its number in the tree; for a namespace node, its element's.
    pub const fn id(self) -> NodeId {
        self.id
    }

    /// For a namespace node, its number among [`Document::namespaces`](crate::document::Document::namespaces).
    pub fn namespace_number(self) -> Option<usize> {
        self.namespace.checked_sub(1).map(|number| number as usize)
    }

    /// Whether it is a namespace node.
    pub const fn is_namespace(self) -> bool {
        self.namespace != 0
    }
}

/// The value of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nodes in document order, each once.
    Nodes(Vec<NodeRef>),
    /// A string.
    String(String),
    /// A number.
    Number(f64),
    /// A truth value.
    Boolean(bool),
}

impl Value {
    /// `boolean()` of the value (§4.3).
    pub fn to_boolean(&self) -> bool {
        match self {
            Value::Nodes(nodes) => !nodes.is_empty(),
            Value::String(text) => !text.is_empty(),
            Value::Number(number) => number_is_true(*number),
            Value::Boolean(value) => *value,
        }
    }

    /// The string of a value that is not a node-set; `None` for a node-set, whose string lies in the document.
    pub fn to_text(&self) -> Option<String> {
        match self {
            Value::Nodes(_) => None,
            Value::String(text) => Some(text.clone()),
            Value::Number(value) => Some(number::to_string(*value)),
            Value::Boolean(value) => Some(value.to_string()),
        }
    }
}

pub(super) fn number_is_true(number: f64) -> bool {
    number != 0.0 && !number.is_nan()
}

/// A node-set that does not depend on the context, with what comparisons derive from it.
#[derive(Debug)]
pub(super) struct Closed<'r> {
    pub(super) nodes: Vec<NodeRef>,
    /// Its distinct string-values.
    pub(super) strings: OnceCell<HashSet<&'r str, foldhash::fast::FixedState>>,
    /// Its least and greatest number; `None` if no string-value is a number.
    pub(super) range: OnceCell<Option<(f64, f64)>>,
}

/// A node-set during evaluation.
#[derive(Debug)]
pub(super) enum Nodes<'r> {
    Own(Vec<NodeRef>),
    Shared(Rc<Closed<'r>>),
}

impl Deref for Nodes<'_> {
    type Target = [NodeRef];
    fn deref(&self) -> &[NodeRef] {
        match self {
            Nodes::Own(nodes) => nodes,
            Nodes::Shared(closed) => &closed.nodes,
        }
    }
}

impl Nodes<'_> {
    pub(super) fn into_vec(self) -> Vec<NodeRef> {
        match self {
            Nodes::Own(nodes) => nodes,
            Nodes::Shared(closed) => closed.nodes.clone(),
        }
    }
}
