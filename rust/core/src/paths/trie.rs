//! The path NFA: a trie of edges, flat.
//!
//! Nodes are numbered breadth-first, so that the edges of one node are neighbours and the node behind edge `e` is
//! `e + 1`: a node costs its edge label and one offset.

use super::linear::{Edge, EdgeKind, LinearPath};
use foldhash::fast::FixedState;
use hashbrown::HashMap;

/// Number of a trie node; 0 is the document node.
pub type TrieNode = u32;

/// A trie under construction; node numbers are provisional until [`TrieBuilder::freeze`].
#[derive(Debug)]
pub struct TrieBuilder {
    edges: HashMap<(TrieNode, Edge), TrieNode, FixedState>,
    parents: Vec<(TrieNode, Edge)>,
}

impl Default for TrieBuilder {
    fn default() -> Self {
        TrieBuilder { edges: HashMap::default(), parents: vec![(0, Edge::GAP)] }
    }
}

impl TrieBuilder {
    /// Adds a path; returns its (provisional) node.
    pub fn insert(&mut self, path: &LinearPath) -> TrieNode {
        let mut node = 0;
        for edge in &path.edges {
            let next = self.parents.len() as TrieNode;
            node = *self.edges.entry((node, *edge)).or_insert_with(|| {
                self.parents.push((node, *edge));
                next
            });
        }
        node
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.parents.len()
    }

    /// Whether only the document node is there.
    pub fn is_empty(&self) -> bool {
        self.parents.len() == 1
    }

    /// The flat form and, for each provisional number, the final one.
    pub fn freeze(self) -> (FlatTrie, Vec<TrieNode>) {
        let count = self.parents.len();
        let mut children: Vec<(TrieNode, Edge, TrieNode)> = self
            .parents
            .iter()
            .enumerate()
            .skip(1)
            .map(|(node, (parent, edge))| (*parent, *edge, node as u32))
            .collect();
        children.sort_unstable();
        let mut first = vec![0usize; count + 1];
        for (parent, _, _) in &children {
            first[*parent as usize + 1] += 1;
        }
        for at in 0..count {
            first[at + 1] += first[at];
        }
        let mut flat = FlatTrie { starts: Vec::with_capacity(count + 1), edges: Vec::with_capacity(count) };
        let mut numbers = vec![0; count];
        let mut order: Vec<TrieNode> = Vec::with_capacity(count);
        order.push(0);
        let mut at = 0;
        while at < order.len() {
            let old = order[at] as usize;
            flat.starts.push(flat.edges.len() as u32);
            for (_, edge, child) in &children[first[old]..first[old + 1]] {
                flat.edges.push(*edge);
                numbers[*child as usize] = order.len() as TrieNode;
                order.push(*child);
            }
            at += 1;
        }
        flat.starts.push(flat.edges.len() as u32);
        (flat, numbers)
    }
}

/// The arrays of a frozen trie, owned.
#[derive(Debug, Default)]
pub struct FlatTrie {
    /// For each node, where its edges start; one more at the end.
    pub starts: Vec<u32>,
    /// Edge labels, sorted within a node; edge `e` leads to node `e + 1`.
    pub edges: Vec<Edge>,
}

impl FlatTrie {
    /// The last edges of each node's path, last first.
    pub fn endings(&self) -> Vec<Ending> {
        let mut endings = vec![[Edge::GAP; 3]; self.edges.len() + 1];
        for node in 0..endings.len() {
            let [last, before, _] = endings[node];
            for edge in self.starts[node]..self.starts[node + 1] {
                // The parents of a node come before it.
                endings[edge as usize + 1] = [self.edges[edge as usize], last, before];
            }
        }
        endings
    }
}

/// The last edges of a path, last first; gaps where it has fewer.
pub type Ending = [Edge; 3];

/// A frozen trie, borrowed (from memory or from a memory map).
#[derive(Clone, Copy, Debug)]
pub struct Trie<'a> {
    /// See [`FlatTrie::starts`].
    pub starts: &'a [u32],
    /// See [`FlatTrie::edges`].
    pub edges: &'a [Edge],
}

impl<'a> Trie<'a> {
    /// The edges of a node, and the number of the node behind the first of them.
    #[inline]
    pub fn edges_of(&self, node: TrieNode) -> (&'a [Edge], TrieNode) {
        let (start, end) = (self.starts[node as usize], self.starts[node as usize + 1]);
        (&self.edges[start as usize..end as usize], start + 1)
    }

    /// The node behind an edge.
    #[inline]
    pub fn follow(&self, node: TrieNode, edge: Edge) -> Option<TrieNode> {
        let (edges, first) = self.edges_of(node);
        // Most nodes have a handful of edges: a scan beats a search there.
        let found = if edges.len() <= 8 {
            edges.iter().position(|candidate| *candidate == edge)
        } else {
            edges.binary_search(&edge).ok()
        };
        found.map(|at| first + at as TrieNode)
    }

    /// Whether this node loops on every element, that is, whether a gap edge leads to it.
    #[inline]
    pub fn is_gap(&self, node: TrieNode) -> bool {
        node > 0 && self.edges[node as usize - 1].kind() == EdgeKind::Gap
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// Whether the trie has no node at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::super::linear::EdgeKind;
    use super::*;

    #[test]
    fn endings_are_the_last_edges_backwards() {
        let edge = |symbol| Edge::new(EdgeKind::Element, Some(symbol));
        let paths = [vec![edge(1)], vec![edge(2), Edge::GAP, edge(1), edge(3)], vec![edge(2), edge(1)]];
        let mut trie = TrieBuilder::default();
        let mut insert = |edges: &Vec<Edge>| {
            let mut path = LinearPath::default();
            path.edges.extend_from_slice(edges);
            trie.insert(&path)
        };
        let nodes: Vec<TrieNode> = paths.iter().map(&mut insert).collect();
        let (flat, numbers) = trie.freeze();
        let endings = flat.endings();
        assert_eq!(endings.len(), 7);
        assert_eq!(endings[0], [Edge::GAP; 3]);
        for (path, node) in paths.iter().zip(nodes) {
            let mut backwards = path.iter().rev().copied().chain(std::iter::repeat(Edge::GAP));
            assert_eq!(endings[numbers[node as usize] as usize], [(); 3].map(|()| backwards.next().unwrap()));
        }
    }
}
