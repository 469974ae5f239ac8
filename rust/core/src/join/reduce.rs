//! Patterns with only those nodes that matter to a join: the graph minor of the join graph (SIGMOD 2007, section 4).
//!
//! A pattern node matters if it is the root, if a value of it is compared or given out, or if two branches that matter
//! part in it, so that both have to start from the same node. A branch without any such node is a condition of the node
//! that it hangs from; a node between is a part of its child's path.

use super::paths::join;
use crate::xscl::ast::Block;

/// A block with the nodes that matter.
#[derive(Debug)]
pub struct Reduced {
    /// The nodes, the root first and parents before children.
    pub nodes: Vec<ReducedNode>,
    /// For each pattern node of the block its place in `nodes`.
    pub places: Vec<Option<u16>>,
}

/// A node that matters.
#[derive(Debug, PartialEq, Eq)]
pub struct ReducedNode {
    /// Its parent among those that matter; None for the root.
    pub parent: Option<u16>,
    /// Its path from there.
    pub path: String,
}

/// The reduced block; `used` says for each pattern node whether it is compared or given out.
pub fn reduce(block: &Block, used: &[bool]) -> Reduced {
    let count = block.nodes.len();
    let mut live = used.to_vec();
    let mut branches = vec![0_usize; count];
    let mut paths: Vec<String> = block.nodes.iter().map(|node| node.path.to_string()).collect();
    // Parents come before children, so that going backwards children are done first.
    for node in (1..count).rev() {
        let parent = block.nodes[node].parent.map_or(0, usize::from);
        if live[node] {
            live[parent] = true;
            branches[parent] += 1;
        } else {
            let condition = std::mem::take(&mut paths[node]);
            // Conditions that were written first stay first.
            let place = block.nodes[parent].path.len();
            paths[parent].insert_str(place, &format!("[{condition}]"));
        }
    }
    let mut nodes = Vec::new();
    let mut places = vec![None; count];
    // Of a node that is left out: what its children's paths start with, and where they hang.
    let mut prefixes: Vec<(Option<u16>, String)> = vec![(None, String::new()); count];
    for node in 0..count {
        if node > 0 && !live[node] {
            continue;
        }
        let path = std::mem::take(&mut paths[node]);
        let (parent, path) = match block.nodes[node].parent {
            None => (None, path),
            Some(above) => {
                let (parent, prefix) = &prefixes[usize::from(above)];
                let joined = if prefix.is_empty() { path } else { join(prefix, &path) };
                (*parent, joined)
            }
        };
        if node == 0 || used[node] || branches[node] > 1 {
            let place = nodes.len() as u16;
            nodes.push(ReducedNode { parent, path });
            places[node] = Some(place);
            prefixes[node] = (Some(place), String::new());
        } else {
            prefixes[node] = (parent, path);
        }
    }
    Reduced { nodes, places }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xscl::ast::PatternNode;

    fn block(nodes: &[(Option<u16>, &str)]) -> Block {
        let nodes = nodes
            .iter()
            .map(|(parent, path)| PatternNode { parent: *parent, path: (*path).into(), variable: None })
            .collect();
        Block { stream: None, nodes }
    }

    #[test]
    fn nodes_between_and_branches_without_values_are_left_out() {
        let block = block(&[
            (None, "//blog"),
            (Some(0), ".//author"),
            (Some(1), "./name"),
            (Some(1), "./mail"),
            (Some(0), "./title"),
            (Some(4), "./@lang"),
        ]);
        let reduced = reduce(&block, &[false, false, true, false, true, false]);
        let found: Vec<(Option<u16>, &str)> = reduced.nodes.iter().map(|node| (node.parent, &*node.path)).collect();
        assert_eq!(found, [(None, "//blog"), (Some(0), ".//author[./mail]/name"), (Some(0), "./title[./@lang]")]);
        assert_eq!(reduced.places, [Some(0), None, Some(1), None, Some(2), None]);
    }

    #[test]
    fn a_node_in_which_branches_part_stays() {
        let block = block(&[(None, "/a"), (Some(0), "./b"), (Some(1), "./c"), (Some(1), ".//d")]);
        let reduced = reduce(&block, &[false, false, true, true]);
        assert_eq!(reduced.nodes.len(), 4);
        assert_eq!(reduced.nodes[2], ReducedNode { parent: Some(1), path: "./c".into() });
    }

    #[test]
    fn conditions_keep_their_order() {
        let block = block(&[(None, "/a[x]"), (Some(0), "./b"), (Some(0), "./c")]);
        assert_eq!(reduce(&block, &[false; 3]).nodes[0].path, "/a[x][./b][./c]");
    }
}
