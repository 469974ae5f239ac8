//! The flat document tree.
//!
//! One array of fixed-size nodes in pre-order; all text content lies in one string in document order, so that the
//! string-value of an element is a slice of it (attribute values, comments and processing instructions lie in a
//! second string, since they are not part of any element's string-value).

use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

/// A node's pre-order number; the document node is 0.
pub type NodeId = u32;

/// What a node is (XPath 1.0 §5; namespace nodes are not stored, see [`Document::scope`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum NodeKind {
    /// The document node.
    Root,
    /// An element.
    Element,
    /// An attribute (never a namespace declaration).
    Attribute,
    /// A maximal run of character data, never empty.
    Text,
    /// A comment.
    Comment,
    /// A processing instruction; its name is its target.
    ProcessingInstruction,
}

/// One node, 32 bytes.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    /// Parent; the document node is its own parent.
    pub parent: NodeId,
    /// Largest id inside this node's subtree, attributes included (itself if empty).
    pub last: NodeId,
    /// Index into [`Document::names`]; 0 (the empty name) for nodes without a name.
    pub name: u32,
    /// Start of the string-value, in the text string (root, element, text) or the value string (others).
    pub start: u32,
    /// End of the string-value.
    pub end: u32,
    /// Byte offset in the decoded input where the node's markup or text starts.
    pub offset: u32,
    /// Namespace scope of an element: index into the scopes; its parent element's for other nodes.
    pub scope: u32,
    /// Depth; the document node has 0.
    pub depth: u16,
    /// Kind.
    pub kind: NodeKind,
    /// Whether a DTD declared this attribute to be of type ID.
    pub is_id: bool,
}

/// A qualified name as it occurs in the document; copies share its parts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Name(Arc<NameParts>);

/// What a [`Name`] consists of.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct NameParts {
    /// Prefix as written, empty if none.
    pub prefix: Box<str>,
    /// Local part.
    pub local: Box<str>,
    /// Namespace URI, empty if in no namespace.
    pub uri: Box<str>,
}

impl std::ops::Deref for Name {
    type Target = NameParts;

    fn deref(&self) -> &NameParts {
        &self.0
    }
}

impl Name {
    /// A name of these parts.
    pub fn new(prefix: &str, local: &str, uri: &str) -> Name {
        Name(Arc::new(NameParts { prefix: prefix.into(), local: local.into(), uri: uri.into() }))
    }

    /// The name as written: `prefix:local` or `local`.
    pub fn qualified(&self) -> String {
        if self.prefix.is_empty() { self.local.to_string() } else { format!("{}:{}", self.prefix, self.local) }
    }

    /// Whether one is a copy of the other; equal names need not be.
    #[inline]
    pub fn is_copy_of(&self, other: &Name) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Where its parts are, which is different for names that are no copies.
    #[inline]
    pub fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }
}

/// Equality of texts many of which are empty: vectorised comparisons of nothing, where no memory is, take a hundred
/// cycles.
#[inline]
pub(crate) fn is_same(a: &str, b: &str) -> bool {
    a.len() == b.len() && (a.is_empty() || a == b)
}

/// One namespace declaration, linked to the ones it shadows or adds to.
#[derive(Clone, Debug)]
pub struct Scope {
    /// The scope this one extends (index), `u32::MAX` for the outermost.
    pub parent: u32,
    /// Declared prefix, empty for the default namespace.
    pub prefix: Box<str>,
    /// Declared URI, empty when the default namespace is switched off.
    pub uri: Box<str>,
}

/// The scope that holds only the predeclared `xml` prefix.
pub(super) const XML_SCOPE: u32 = 0;
/// URI bound to the prefix `xml`.
pub const XML_URI: &str = "http://www.w3.org/XML/1998/namespace";
/// URI bound to the prefix `xmlns`.
pub const XMLNS_URI: &str = "http://www.w3.org/2000/xmlns/";

/// A parsed document: flat, owned and read-only.
#[derive(Clone, Debug)]
pub struct Document {
    nodes: Vec<Node>,
    names: Vec<Name>,
    scopes: Vec<Scope>,
    text: String,
    values: String,
}

impl Document {
    /// All nodes in document order.
    #[inline]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// One node.
    #[inline]
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id as usize]
    }

    /// Number of nodes, the document node included.
    #[allow(clippy::len_without_is_empty)] // never empty: the document node is always there
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The distinct names of the document; number 0 is the empty name.
    pub fn names(&self) -> &[Name] {
        &self.names
    }

    /// The name of a node, the empty name if it has none.
    pub fn name(&self, id: NodeId) -> &Name {
        &self.names[self.node(id).name as usize]
    }

    /// The string-value of a node (XPath 1.0 §5), without copying.
    #[inline]
    pub fn string_value(&self, id: NodeId) -> &str {
        let node = self.node(id);
        let source = match node.kind {
            NodeKind::Root | NodeKind::Element | NodeKind::Text => &self.text,
            NodeKind::Attribute | NodeKind::Comment | NodeKind::ProcessingInstruction => &self.values,
        };
        &source[node.start as usize..node.end as usize]
    }

    /// The namespace declarations in scope at a node, nearest first; shadowed ones come again further out.
    pub fn scopes(&self, id: NodeId) -> impl Iterator<Item = &Scope> {
        let mut at = self.node(id).scope;
        std::iter::from_fn(move || {
            let scope = self.scopes.get(at as usize)?;
            at = scope.parent;
            Some(scope)
        })
    }

    /// Whether no namespace but `xml` is in scope at an element and no element inside declares one.
    pub fn is_without_namespaces(&self, id: NodeId) -> bool {
        self.scopes.len() == 1
            || self.nodes[id as usize..=self.node(id).last as usize].iter().all(|node| node.scope == XML_SCOPE)
    }

    /// The namespaces in scope at a node as `(prefix, uri)`, sorted by prefix, `xml` included.
    pub fn namespaces(&self, id: NodeId) -> Vec<(&str, &str)> {
        let mut found: Vec<(&str, &str)> = Vec::new();
        for scope in self.scopes(id) {
            if !found.iter().any(|(prefix, _)| *prefix == &*scope.prefix) {
                found.push((&scope.prefix, &scope.uri));
            }
        }
        found.retain(|(_, uri)| !uri.is_empty());
        found.sort_unstable();
        found
    }

    /// Children of a node (attributes are not children), in document order.
    pub fn children(&self, id: NodeId) -> impl Iterator<Item = NodeId> {
        let last = self.node(id).last;
        let mut next = id + 1;
        std::iter::from_fn(move || {
            while next <= last {
                let at = next;
                next = self.node(at).last + 1;
                if self.node(at).kind != NodeKind::Attribute {
                    return Some(at);
                }
            }
            None
        })
    }

    /// Attributes of a node in the order written (defaulted ones last).
    pub fn attributes(&self, id: NodeId) -> impl Iterator<Item = NodeId> {
        let last = self.node(id).last;
        (id + 1..=last).take_while(move |at| self.node(*at).kind == NodeKind::Attribute)
    }

    /// The document element.
    pub fn root_element(&self) -> NodeId {
        self.children(0).find(|id| self.node(*id).kind == NodeKind::Element).unwrap_or(0)
    }

    /// Bytes that the tree holds in memory.
    pub fn memory_bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>() + self.text.capacity() + self.values.capacity()
    }

    /// Bytes that a copy of the tree takes: room to grow is not copied.
    pub fn copy_bytes(&self) -> usize {
        self.nodes.len() * size_of::<Node>() + self.text.len() + self.values.len()
    }
}

/// Builds a [`Document`] from events in document order.
///
/// Names arrive resolved; well-formedness is the reader's duty. Consecutive text is merged, empty text makes no node.
#[derive(Debug)]
pub struct TreeBuilder {
    document: Document,
    open: Vec<NodeId>,
    /// The numbers of the first `hashed` names; most documents never look one up.
    name_ids: HashTable<u32>,
    hashed: usize,
    /// Seeded at random, so that names cannot be chosen to collide; nothing depends on the order of the table.
    hasher: RandomState,
    text_open: bool,
}

/// Distinct names that most documents stay below.
const NAMES_EXPECTED: usize = 56;

impl Default for TreeBuilder {
    fn default() -> Self {
        Self::new(0)
    }
}

impl TreeBuilder {
    /// A builder for an input of about `input_bytes` bytes.
    pub fn new(input_bytes: usize) -> Self {
        let mut names = Vec::with_capacity(NAMES_EXPECTED);
        names.push(Name::new("", "", ""));
        let mut nodes = Vec::with_capacity((input_bytes / 8).min(1 << 16) + 8);
        nodes.push(Node {
            parent: 0,
            last: 0,
            name: 0,
            start: 0,
            end: 0,
            offset: 0,
            scope: XML_SCOPE,
            depth: 0,
            kind: NodeKind::Root,
            is_id: false,
        });
        TreeBuilder {
            document: Document {
                nodes,
                names,
                scopes: vec![Scope { parent: u32::MAX, prefix: "xml".into(), uri: XML_URI.into() }],
                text: String::with_capacity(input_bytes / 2),
                values: String::with_capacity(input_bytes / 4),
            },
            open: vec![0],
            name_ids: HashTable::new(),
            hashed: 0,
            hasher: RandomState::default(),
            text_open: false,
        }
    }

    /// The number of a name, adding it if new; a name that is there already costs no allocation.
    pub fn intern(&mut self, prefix: &str, local: &str, uri: &str) -> u32 {
        self.add_name(prefix, local, uri, || Name::new(prefix, local, uri))
    }

    /// The same for a name that is there as a whole.
    pub(super) fn intern_name(&mut self, name: &Name) -> u32 {
        self.add_name(&name.prefix, &name.local, &name.uri, || name.clone())
    }

    /// The number of a name that was not interned before, as far as whoever calls knows.
    pub(super) fn intern_new(&mut self, name: &Name) -> u32 {
        if self.hashed > 0 {
            return self.intern_name(name);
        }
        // All were new so far, and who says so knows them all.
        self.document.names.push(name.clone());
        (self.document.names.len() - 1) as u32
    }

    fn add_name(&mut self, prefix: &str, local: &str, uri: &str, name: impl FnOnce() -> Name) -> u32 {
        let hasher = &self.hasher;
        let names = &mut self.document.names;
        let hash_of = |name: &Name| hasher.hash_one((&*name.prefix, &*name.local, &*name.uri));
        for id in self.hashed..names.len() {
            self.name_ids.insert_unique(hash_of(&names[id]), id as u32, |id| hash_of(&names[*id as usize]));
        }
        self.hashed = names.len();
        let same = |id: &u32| {
            let name = &names[*id as usize];
            is_same(&name.local, local) && is_same(&name.prefix, prefix) && is_same(&name.uri, uri)
        };
        if let Some(id) = self.name_ids.find(hasher.hash_one((prefix, local, uri)), same) {
            return *id;
        }
        let id = names.len() as u32;
        names.push(name());
        id
    }

    /// The names so far.
    pub fn names(&self) -> &[Name] {
        &self.document.names
    }

    /// The namespace scope of the innermost open element.
    pub fn scope(&self) -> u32 {
        self.document.nodes[self.current() as usize].scope
    }

    /// Adds a declaration on top of `parent`; returns the new scope, to be given to [`Self::start_element`].
    pub fn declare(&mut self, parent: u32, prefix: &str, uri: &str) -> u32 {
        self.document.scopes.push(Scope { parent, prefix: prefix.into(), uri: uri.into() });
        (self.document.scopes.len() - 1) as u32
    }

    /// The URI bound to a prefix in a scope; `None` if unbound (an undeclared default namespace is `Some("")`).
    pub fn resolve(&self, scope: u32, prefix: &str) -> Option<&str> {
        match self.bound(scope, prefix) {
            Some(uri) if !uri.is_empty() => Some(uri),
            _ if prefix.is_empty() => Some(""),
            _ => None,
        }
    }

    fn bound(&self, scope: u32, prefix: &str) -> Option<&str> {
        let mut at = scope;
        while let Some(found) = self.document.scopes.get(at as usize) {
            if is_same(&found.prefix, prefix) {
                return Some(&found.uri);
            }
            at = found.parent;
        }
        None
    }

    /// Depth of the innermost open node (the document node: 0).
    pub fn depth(&self) -> usize {
        self.open.len() - 1
    }

    /// Bytes of the text node that further text would be added to, 0 if there is none.
    pub fn open_text_bytes(&self) -> usize {
        if !self.text_open {
            return 0;
        }
        self.document.nodes.last().map_or(0, |node| (node.end - node.start) as usize)
    }

    /// Bytes of all text and of all values so far; each must stay below 4 GiB.
    pub fn content_bytes(&self) -> (usize, usize) {
        (self.document.text.len(), self.document.values.len())
    }

    /// Number of nodes so far.
    pub fn node_count(&self) -> usize {
        self.document.nodes.len()
    }

    fn current(&self) -> NodeId {
        self.open[self.open.len() - 1]
    }

    fn push(&mut self, kind: NodeKind, name: u32, scope: u32, start: usize, end: usize, offset: usize) -> NodeId {
        let id = self.document.nodes.len() as NodeId;
        self.document.nodes.push(Node {
            parent: self.current(),
            last: id,
            name,
            start: start as u32,
            end: end as u32,
            offset: offset as u32,
            scope,
            depth: self.open.len() as u16,
            kind,
            is_id: false,
        });
        id
    }

    /// Opens an element; its attributes must follow at once.
    pub fn start_element(&mut self, name: u32, scope: u32, offset: usize) -> NodeId {
        self.text_open = false;
        let start = self.document.text.len();
        let id = self.push(NodeKind::Element, name, scope, start, start, offset);
        self.open.push(id);
        id
    }

    /// Adds an attribute to the element just opened.
    pub fn attribute(&mut self, name: u32, value: &str, is_id: bool, offset: usize) -> NodeId {
        let start = self.document.values.len();
        self.document.values.push_str(value);
        let end = self.document.values.len();
        let scope = self.scope();
        let id = self.push(NodeKind::Attribute, name, scope, start, end, offset);
        self.document.nodes[id as usize].is_id = is_id;
        id
    }

    /// Closes the innermost element.
    pub fn end_element(&mut self) {
        self.text_open = false;
        if let Some(id) = self.open.pop() {
            self.close(id);
        }
    }

    fn close(&mut self, id: NodeId) {
        let last = (self.document.nodes.len() - 1) as NodeId;
        let end = self.document.text.len() as u32;
        let node = &mut self.document.nodes[id as usize];
        node.last = last;
        node.end = end;
    }

    /// Adds character data; runs next to each other become one text node.
    pub fn text(&mut self, value: &str, offset: usize) {
        if value.is_empty() {
            return;
        }
        let start = self.document.text.len();
        self.document.text.push_str(value);
        let end = self.document.text.len();
        if self.text_open {
            let last = self.document.nodes.len() - 1;
            self.document.nodes[last].end = end as u32;
        } else {
            let scope = self.scope();
            self.push(NodeKind::Text, 0, scope, start, end, offset);
            self.text_open = true;
        }
    }

    /// Adds a comment.
    pub fn comment(&mut self, value: &str, offset: usize) {
        self.leaf(NodeKind::Comment, 0, value, offset);
    }

    /// Adds a processing instruction; `target` is an interned name without prefix or URI.
    pub fn processing_instruction(&mut self, target: u32, value: &str, offset: usize) {
        self.leaf(NodeKind::ProcessingInstruction, target, value, offset);
    }

    fn leaf(&mut self, kind: NodeKind, name: u32, value: &str, offset: usize) {
        self.text_open = false;
        let start = self.document.values.len();
        self.document.values.push_str(value);
        let end = self.document.values.len();
        let scope = self.scope();
        self.push(kind, name, scope, start, end, offset);
    }

    /// Ends the document.
    pub fn finish(mut self) -> Document {
        while let Some(id) = self.open.pop() {
            self.close(id);
        }
        self.document
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn string_values_are_slices_in_document_order() {
        let mut builder = TreeBuilder::default();
        let scope = builder.scope();
        let (a, b, k) = (builder.intern("", "a", ""), builder.intern("", "b", ""), builder.intern("", "k", ""));
        builder.start_element(a, scope, 0);
        builder.attribute(k, "1", false, 3);
        builder.text("x", 5);
        builder.start_element(b, scope, 6);
        builder.text("y", 9);
        builder.text("z", 10);
        builder.end_element();
        builder.comment("no", 14);
        builder.text("w", 20);
        builder.end_element();
        let document = builder.finish();
        assert_eq!(document.string_value(0), "xyzw");
        assert_eq!(document.string_value(1), "xyzw");
        assert_eq!(document.string_value(2), "1");
        assert_eq!(document.string_value(4), "yz");
        assert_eq!(document.children(1).collect::<Vec<_>>(), [3, 4, 6, 7]);
        assert_eq!(document.attributes(1).collect::<Vec<_>>(), [2]);
        assert_eq!(document.node(1).last, 7);
    }
}
