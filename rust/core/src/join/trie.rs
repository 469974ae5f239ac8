//! Queries by the set of their edges, so that those whose edges all hold are found without looking at the others.

use super::parts::{EdgeId, QueryId};
use foldhash::fast::FixedState;
use hashbrown::HashMap;

#[derive(Debug, Default)]
struct Node {
    children: HashMap<EdgeId, u32, FixedState>,
    queries: Vec<QueryId>,
}

/// A trie over sorted sets of edges (Hoffmann & Koehler, "A new method to index and query sets", IJCAI 1999).
#[derive(Debug)]
pub struct SetTrie {
    nodes: Vec<Node>,
    free: Vec<u32>,
}

impl Default for SetTrie {
    fn default() -> SetTrie {
        SetTrie { nodes: vec![Node::default()], free: Vec::new() }
    }
}

impl SetTrie {
    /// Adds a query under its edges, which are sorted.
    pub fn insert(&mut self, edges: &[EdgeId], query: QueryId) {
        let mut at = 0;
        for edge in edges {
            at = match self.nodes[at as usize].children.get(edge) {
                Some(child) => *child,
                None => {
                    let child = self.free.pop().unwrap_or_else(|| {
                        self.nodes.push(Node::default());
                        self.nodes.len() as u32 - 1
                    });
                    self.nodes[at as usize].children.insert(*edge, child);
                    child
                }
            };
        }
        self.nodes[at as usize].queries.push(query);
    }

    /// Takes a query out.
    pub fn remove(&mut self, edges: &[EdgeId], query: QueryId) {
        let mut way = vec![0_u32];
        for edge in edges {
            let Some(child) = self.nodes[way[way.len() - 1] as usize].children.get(edge) else { return };
            way.push(*child);
        }
        self.nodes[way[way.len() - 1] as usize].queries.retain(|other| *other != query);
        for depth in (0..edges.len()).rev() {
            let node = way[depth + 1];
            let Node { children, queries } = &mut self.nodes[node as usize];
            if !children.is_empty() || !queries.is_empty() {
                break;
            }
            *children = HashMap::default();
            self.free.push(node);
            self.nodes[way[depth] as usize].children.remove(&edges[depth]);
        }
    }

    /// The queries whose edges are all among `held`, which is sorted.
    pub fn subsets(&self, held: &[EdgeId]) -> Vec<QueryId> {
        let mut found = Vec::new();
        // Edges of a query are sorted: below an edge only later ones come.
        let mut open = vec![(0_u32, 0_usize)];
        while let Some((number, from)) = open.pop() {
            let node = &self.nodes[number as usize];
            found.extend_from_slice(&node.queries);
            let rest = &held[from..];
            if node.children.len() < rest.len() {
                #[allow(clippy::iter_over_hash_type)] // what is found is sorted at the end
                for (edge, child) in &node.children {
                    if let Ok(at) = rest.binary_search(edge) {
                        open.push((*child, from + at + 1));
                    }
                }
            } else {
                for (at, edge) in rest.iter().enumerate() {
                    if let Some(child) = node.children.get(edge) {
                        open.push((*child, from + at + 1));
                    }
                }
            }
        }
        found.sort_unstable();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subsets_are_found_and_removed_ones_are_not() {
        let mut trie = SetTrie::default();
        let sets: [&[u32]; 5] = [&[1], &[1, 3], &[3], &[2, 3], &[1, 2, 3]];
        for (query, edges) in sets.iter().enumerate() {
            trie.insert(edges, query as u32);
        }
        assert_eq!(trie.subsets(&[1, 3]), [0, 1, 2]);
        assert_eq!(trie.subsets(&[1, 2, 3, 9]), [0, 1, 2, 3, 4]);
        assert!(trie.subsets(&[2]).is_empty());
        trie.remove(&[1, 3], 1);
        trie.remove(&[1, 2, 3], 4);
        assert_eq!(trie.subsets(&[1, 2, 3]), [0, 2, 3]);
        trie.insert(&[1, 2], 7);
        assert_eq!(trie.subsets(&[1, 2]), [0, 7]);
    }
}
