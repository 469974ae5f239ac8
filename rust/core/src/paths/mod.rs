//! Shared path matching: all linear paths of a population as one trie-shaped NFA, run through a lazy DFA.
//!
//! The NFA is YFilter's (Diao et al., "Path Sharing and Predicate Evaluation for High-Performance XML Filtering",
//! TODS 2003, §3): one node per distinct path prefix, `//` as a node that loops on every element. The DFA over it is
//! built only where documents lead (Green et al., "Processing XML Streams with Deterministic Automata", ICDT 2003).

mod lazy;
mod linear;
mod trie;

pub use lazy::{Class, DEAD, PathCache, StateId};
pub use linear::{Edge, EdgeKind, LinearPath, implies};
pub use trie::{Ending, FlatTrie, Trie, TrieBuilder, TrieNode};
