//! What a DTD says about paths: its element graph.
//!
//! Where the graph has exactly one way from one element down to another, a `//` between them says no more than the steps
//! of that way do (VLDB 2003 §4.3: superfluous `//`), and the binding that a node belongs to is a fixed number of levels
//! above it. Documents need not be valid, though: each is compared with the graph first, and one that does not agree
//! with it is joined as if there were none.

use crate::document::{Document, NodeKind};
use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashSet};

/// Deepest way that is looked for.
const MAX_LEVELS: u16 = 64;

/// Which elements may contain which.
#[derive(Clone, Debug, Default)]
pub struct ElementGraph {
    children: HashMap<Box<str>, HashSet<Box<str>, FixedState>, FixedState>,
}

/// Ways from one element down to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ways {
    None,
    One(u16),
    Many,
}

impl ElementGraph {
    /// A graph from each element with its possible children; elements are in no namespace.
    pub fn new<'n>(elements: impl IntoIterator<Item = (&'n str, Vec<&'n str>)>) -> ElementGraph {
        let mut graph = ElementGraph::default();
        for (name, children) in elements {
            graph.children.entry(name.into()).or_default().extend(children.into_iter().map(Into::into));
        }
        graph
    }

    /// Whether the graph has no element.
    pub fn is_empty(&self) -> bool {
        self.children.is_empty()
    }

    /// The number of levels from an element down to another, if there is exactly one way.
    pub fn only_way(&self, from: &str, to: &str) -> Option<u16> {
        let mut known = HashMap::default();
        match self.ways(from, to, &mut known, 0) {
            Ways::One(levels) => Some(levels),
            _ => None,
        }
    }

    fn ways<'g>(
        &'g self,
        from: &str,
        to: &str,
        known: &mut HashMap<&'g str, Option<Ways>, FixedState>,
        depth: u16,
    ) -> Ways {
        let Some((from, children)) = self.children.get_key_value(from) else { return Ways::None };
        match known.get(&**from) {
            Some(Some(ways)) => return *ways,
            // A cycle: if it leads to the element at all, it does so in many ways.
            Some(None) => return if self.reaches(from, to) { Ways::Many } else { Ways::None },
            None => {}
        }
        if depth > MAX_LEVELS {
            return Ways::Many;
        }
        known.insert(from, None);
        let mut found = Ways::None;
        for child in children {
            let below = if **child == *to { Ways::One(0) } else { Ways::None };
            for ways in [below, self.ways(child, to, known, depth + 1)] {
                found = match (found, ways) {
                    (Ways::None, Ways::One(levels)) => Ways::One(levels + 1),
                    (found, Ways::None) => found,
                    _ => Ways::Many,
                };
            }
        }
        known.insert(from, Some(found));
        found
    }

    fn reaches(&self, from: &str, to: &str) -> bool {
        let mut open = vec![from];
        let mut seen: HashSet<&str, FixedState> = HashSet::default();
        while let Some(name) = open.pop() {
            for child in self.children.get(name).into_iter().flatten() {
                if **child == *to {
                    return true;
                }
                if seen.insert(child) {
                    open.push(child);
                }
            }
        }
        false
    }

    /// Whether a document has no element inside another that the graph does not allow there.
    pub fn agrees_with(&self, document: &Document) -> bool {
        let names = document.names();
        let mut checked: HashSet<(u32, u32), FixedState> = HashSet::default();
        document.nodes().iter().skip(1).filter(|node| node.kind == NodeKind::Element).all(|node| {
            let parent = document.node(node.parent);
            if parent.kind == NodeKind::Root || !checked.insert((parent.name, node.name)) {
                return true;
            }
            let (outer, inner) = (&names[parent.name as usize], &names[node.name as usize]);
            // Elements in namespaces are none of the graph's.
            (!outer.uri.is_empty() && !inner.uri.is_empty())
                || self.children.get(&*outer.local).is_some_and(|children| {
                    outer.uri.is_empty() && inner.uri.is_empty() && children.contains(&*inner.local)
                })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph() -> ElementGraph {
        ElementGraph::new([
            ("bib", vec!["book"]),
            ("book", vec!["title", "author", "price"]),
            ("author", vec!["last", "first"]),
            ("section", vec!["title", "section", "figure"]),
            ("figure", vec!["title"]),
            ("title", vec![]),
        ])
    }

    #[test]
    fn ways() {
        let graph = graph();
        assert_eq!(graph.only_way("bib", "last"), Some(3));
        assert_eq!(graph.only_way("book", "title"), Some(1));
        assert_eq!(graph.only_way("section", "title"), None);
        assert_eq!(graph.only_way("section", "section"), None);
        assert_eq!(graph.only_way("figure", "title"), Some(1));
        assert_eq!(graph.only_way("title", "book"), None);
        assert_eq!(graph.only_way("unknown", "book"), None);
    }

    #[test]
    fn agreement() {
        let parse = |text| crate::document::parse_str(text, &crate::document::Limits::default()).expect("well-formed");
        assert!(graph().agrees_with(&parse("<bib><book><author><last/></author></book></bib>")));
        assert!(!graph().agrees_with(&parse("<bib><last/></bib>")));
        assert!(!graph().agrees_with(&parse("<bib><book xmlns='urn:x'/></bib>")));
    }
}
