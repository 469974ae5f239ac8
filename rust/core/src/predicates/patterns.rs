//! String functions: all `contains` and `starts-with` constants of a segment in one automaton.

use super::{PredicateIndex, ProbeKind, Strings, constant_key, parts_of_key};
use aho_corasick::{AhoCorasick, MatchKind};

/// The automaton over the constants of the pattern probes (Aho & Corasick, CACM 18(6), 1975).
#[derive(Debug)]
pub struct Patterns {
    automaton: Option<AhoCorasick>,
    constants: Vec<u32>,
}

impl Patterns {
    /// Collects and compiles the constants; done once per segment and process, when a document first needs it.
    pub fn new(predicates: &PredicateIndex<'_>, strings: Strings<'_>) -> Patterns {
        // The keys of all kinds that are patterns come last.
        let first = constant_key(ProbeKind::Contains, 0);
        let patterns = predicates.probes.partition_point(|key| parts_of_key(*key).1 < first);
        let mut constants: Vec<u32> =
            predicates.probes[patterns..].iter().map(|key| parts_of_key(*key).1 as u32).collect();
        constants.sort_unstable();
        constants.dedup();
        Patterns::over(constants, strings)
    }

    /// Compiles these string constants, each given once.
    pub fn over(constants: Vec<u32>, strings: Strings<'_>) -> Patterns {
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::Standard)
            .build(constants.iter().map(|constant| strings.get(*constant).as_bytes()))
            .ok();
        Patterns { automaton, constants }
    }

    /// Bytes in use.
    pub fn memory_bytes(&self) -> usize {
        self.automaton.as_ref().map_or(0, AhoCorasick::memory_usage) + self.constants.capacity() * 4
    }

    /// Calls `found(constant, at_start)` for each constant in a value, once or more.
    pub fn scan(&self, value: &str, strings: Strings<'_>, mut found: impl FnMut(u32, bool)) {
        match &self.automaton {
            Some(automaton) => {
                for hit in automaton.find_overlapping_iter(value) {
                    found(self.constants[hit.pattern().as_usize()], hit.start() == 0);
                }
            }
            // Too many patterns for one automaton: one search each, slow but right.
            None => {
                for constant in &self.constants {
                    if let Some(at) = value.find(strings.get(*constant)) {
                        found(*constant, at == 0);
                    }
                }
            }
        }
    }
}
