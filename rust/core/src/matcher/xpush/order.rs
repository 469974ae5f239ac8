//! The order of siblings, as a document type promises it.

use super::automaton::{Automaton, Reach, State};
use crate::document::{Document, NodeKind};
use crate::xpath::symbols::{NameTest, Symbol, Symbols};
use foldhash::fast::FixedState;
use hashbrown::HashMap;

/// Chain and position in it.
type Place = (u32, u32);

/// Chains of element names: among the children of one element, an earlier name never comes after a later one.
///
/// A promise, not a fact: [`Self::holds`] looks whether a document keeps it, and only then it is relied on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SiblingOrder {
    places: HashMap<(Box<str>, Box<str>), Vec<Place>, FixedState>,
    chains: usize,
}

impl SiblingOrder {
    /// From chains of names, each `local` or `{uri}local`. Of a name that occurs twice in a chain the first place
    /// counts.
    pub fn new<'a>(chains: impl IntoIterator<Item = Vec<&'a str>>) -> SiblingOrder {
        let mut order = SiblingOrder::default();
        for (chain, names) in chains.into_iter().enumerate() {
            order.chains = chain + 1;
            for (position, name) in names.into_iter().enumerate() {
                let split = name.strip_prefix('{').and_then(|rest| rest.split_once('}'));
                let (uri, local) = split.unwrap_or(("", name));
                let places = order.places.entry((uri.into(), local.into())).or_default();
                if places.iter().all(|(known, _)| *known != chain as u32) {
                    places.push((chain as u32, position as u32));
                }
            }
        }
        order
    }

    /// Whether the children of every element of a document are in this order.
    pub fn holds(&self, document: &Document) -> bool {
        if self.chains == 0 {
            return true;
        }
        let places: Vec<&[Place]> = document
            .names()
            .iter()
            .map(|name| self.places.get(&(&*name.uri, &*name.local) as &dyn Key).map_or(&[][..], Vec::as_slice))
            .collect();
        // For each open element and chain, the last position seen among its children.
        let mut seen = vec![0u32; self.chains];
        for node in document.nodes().iter().filter(|node| node.kind == NodeKind::Element) {
            let depth = usize::from(node.depth);
            seen.resize((depth + 1) * self.chains, 0);
            seen[depth * self.chains..].fill(0);
            for (chain, position) in places[node.name as usize] {
                let last = &mut seen[(depth - 1) * self.chains + *chain as usize];
                if position < last {
                    return false;
                }
                *last = *position;
            }
        }
        true
    }

    /// The order over the name tests of a segment.
    pub(super) fn over(&self, symbols: &Symbols) -> SymbolOrder {
        let mut places = HashMap::default();
        #[allow(clippy::iter_over_hash_type)] // into another table, one entry each
        for ((uri, local), own) in &self.places {
            if let Some(symbol) = symbols.find(NameTest::Expanded(uri, local)) {
                places.insert(symbol, own.clone());
            }
        }
        SymbolOrder { places }
    }
}

/// Borrowed names as keys of a table of owned ones.
trait Key {
    fn parts(&self) -> (&str, &str);
}

impl Key for (Box<str>, Box<str>) {
    fn parts(&self) -> (&str, &str) {
        (&self.0, &self.1)
    }
}

impl Key for (&str, &str) {
    fn parts(&self) -> (&str, &str) {
        *self
    }
}

impl std::hash::Hash for dyn Key + '_ {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.parts().hash(state); // as the hash of the owned pair
    }
}

impl hashbrown::Equivalent<(Box<str>, Box<str>)> for dyn Key + '_ {
    fn equivalent(&self, key: &(Box<str>, Box<str>)) -> bool {
        self.parts() == key.parts()
    }
}

/// The order of a segment's name tests.
#[derive(Debug)]
pub(super) struct SymbolOrder {
    places: HashMap<Symbol, Vec<Place>, FixedState>,
}

impl SymbolOrder {
    /// First place of a name, for sorting children into an order that holds.
    pub(super) fn place(&self, symbol: Symbol) -> Option<Place> {
        self.places.get(&symbol).and_then(|places| places.first().copied())
    }

    /// Whether what `earlier` looks at is complete before anything that `later` looks at.
    fn precedes(&self, earlier: (Reach, Symbol), later: (Reach, Symbol)) -> bool {
        match (earlier.0, later.0) {
            (Reach::Attribute, reach) => reach != Reach::Attribute,
            (Reach::Child, Reach::Child) => {
                let (Some(a), Some(b)) = (self.places.get(&earlier.1), self.places.get(&later.1)) else {
                    return false;
                };
                a.iter().any(|(chain, at)| b.iter().any(|(other, then)| chain == other && at < then))
            }
            _ => false,
        }
    }

    /// Whether an edge can be left out of a state, in which all `earlier` edges of its node are already: it serves
    /// conjunctions alone, and in each an edge that had to be true by now is not.
    pub(super) fn is_idle(&self, automaton: &Automaton, edge: State, earlier: &[State]) -> bool {
        let label = automaton.label(edge);
        if label.0 == Reach::Descendant // which may serve the nodes above
            || !automaton.in_edges.get(edge).is_empty()
            || !automaton.rows(edge).is_empty()
        {
            return false;
        }
        automaton.consumers.get(edge).iter().all(|consumer| {
            automaton.inner(*consumer).is_some_and(|(connective, operands)| {
                connective == super::automaton::Connective::And
                    && operands.iter().any(|operand| {
                        *operand < automaton.edge_count()
                            && self.precedes(automaton.label(*operand), label)
                            && earlier.binary_search(operand).is_err()
                    })
            })
        })
    }
}
