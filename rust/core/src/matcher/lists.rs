//! The elements of one document by name, so that `descendant::name` visits those and nothing else.

use crate::document::{Document, NodeId, NodeKind};
use crate::xpath::symbols::{DocumentSymbols, NO_SYMBOL, Symbol};

/// Elements by the symbol of their expanded name, in document order.
#[derive(Debug, Default)]
pub(super) struct ElementLists {
    /// Symbol and where its elements are; sorted.
    symbols: Vec<(Symbol, u32, u32)>,
    nodes: Vec<NodeId>,
}

impl ElementLists {
    /// Sorts the elements of a document; what no subscription names is left out.
    pub(super) fn new(document: &Document, symbols: &DocumentSymbols) -> ElementLists {
        let mut elements: Vec<(Symbol, NodeId)> = document
            .nodes()
            .iter()
            .enumerate()
            .filter(|(_, node)| node.kind == NodeKind::Element)
            .map(|(id, node)| (symbols.expanded[node.name as usize], id as NodeId))
            .filter(|(symbol, _)| *symbol != NO_SYMBOL)
            .collect();
        elements.sort_unstable();
        let mut lists = ElementLists::default();
        for group in elements.chunk_by(|a, b| a.0 == b.0) {
            let start = lists.nodes.len() as u32;
            lists.nodes.extend(group.iter().map(|(_, id)| *id));
            lists.symbols.push((group[0].0, start, lists.nodes.len() as u32));
        }
        lists
    }

    /// The elements of a name with ids in `from..=last`.
    pub(super) fn within(&self, symbol: Symbol, from: NodeId, last: NodeId) -> &[NodeId] {
        let Ok(at) = self.symbols.binary_search_by_key(&symbol, |(symbol, _, _)| *symbol) else { return &[] };
        let (_, start, end) = self.symbols[at];
        let nodes = &self.nodes[start as usize..end as usize];
        let start = nodes.partition_point(|id| *id < from);
        let end = start + nodes[start..].partition_point(|id| *id <= last);
        &nodes[start..end]
    }
}
