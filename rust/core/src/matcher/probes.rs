//! From values in states to the postings they hit.
//!
//! What is read here is scattered over memory, and each part says where the next one is. So values are looked up many
//! at a time, one part of all of them before the next part of any: the processor then waits for many lines at once.

use super::places::{ListId, Source};
use super::postings::{Index, Walker};
use super::reached::Reach;
use crate::document::{Document, NodeId};
use crate::paths::StateId;
use crate::predicates::{FoundString, Patterns, Posting, ProbeKind, Strings, constant_key, flags};
use crate::xpath::evaluate::number::to_number;
use foldhash::fast::FixedState;
use hashbrown::HashMap;

/// Values that are looked up together.
pub(super) const PROBE_BATCH: usize = 64;

/// What a value hits in a state.
#[derive(Debug)]
struct ValueHit {
    /// Document in which this was met last.
    stamp: u64,
    /// What its postings lead to.
    reach: Reach,
    /// The postings if it matters where they were hit, and, for the document of the stamp, where that is noted down.
    source: Source,
    places: ListId,
}

/// About how many bytes a [`ValueHit`] takes, with its place in the table.
const VALUE_HIT_BYTES: usize = size_of::<ValueHit>() + 40;

/// Postings hit by values in states: the value plays the part of one more input symbol of the lazy DFA.
#[derive(Debug, Default)]
pub(super) struct Values {
    /// By state, and kind and number of a constant.
    numbers: HashMap<(StateId, u64), u32, FixedState>,
    hits: Vec<ValueHit>,
    /// Of the value that is made.
    postings: Vec<Posting>,
    /// Of the batch: the constants that values pass, and where what they hit is.
    passed: Vec<(StateId, NodeId, u64)>,
    found: Vec<u32>,
    /// Of the batch: the values that may be string constants, and which they are.
    strings: Vec<(StateId, NodeId)>,
    found_strings: Vec<FoundString>,
}

impl Values {
    /// Forgets what values hit.
    pub(super) fn clear(&mut self) {
        self.numbers.clear();
        self.hits.clear();
    }
}

impl Walker {
    /// Looks up the values of the nodes that wait for it.
    pub(super) fn probe<'s>(
        &mut self,
        index: &Index<'_>,
        document: &Document,
        patterns: &impl Fn() -> (&'s Patterns, Strings<'s>),
    ) {
        let probes = std::mem::take(&mut self.probes);
        for (state, node) in &probes {
            let kinds = self.paths.attached(*state).flags;
            let value = document.string_value(*node);
            if kinds & flags::STRING_EQUAL != 0 && index.view.may_be_string(value) {
                self.values.strings.push((*state, *node));
            }
            if kinds & flags::PROBES & !flags::STRING_EQUAL != 0 {
                self.constants(index, *state, *node, value, patterns);
            }
        }
        self.probes = probes;
        self.probes.clear();
        self.strings(index, document);
        let passed = std::mem::take(&mut self.values.passed);
        for (state, _, constant) in &passed {
            let hit = match self.values.numbers.get(&(*state, *constant)) {
                Some(number) => *number,
                None => self.make_value(index, *state, *constant),
            };
            self.values.found.push(hit);
        }
        let found = std::mem::take(&mut self.values.found);
        for ((_, node, _), number) in passed.iter().zip(&found) {
            self.value(*number, *node);
        }
        (self.values.passed, self.values.found) = (passed, found);
        self.values.passed.clear();
        self.values.found.clear();
    }

    /// Notes down the string constants that the values which may be some equal.
    fn strings(&mut self, index: &Index<'_>, document: &Document) {
        let Values { strings, found_strings, passed, .. } = &mut self.values;
        let values = strings.iter().map(|(_, node)| document.string_value(*node));
        index.strings.find_all(values, found_strings);
        for ((state, node), found) in strings.drain(..).zip(found_strings) {
            if let Some(string) = found.number() {
                passed.push((state, node, constant_key(ProbeKind::StringEqual, string)));
            }
        }
    }

    /// Notes down what else a value passes in a state.
    fn constants<'s>(
        &mut self,
        index: &Index<'_>,
        state: StateId,
        node: NodeId,
        value: &str,
        patterns: &impl Fn() -> (&'s Patterns, Strings<'s>),
    ) {
        let kinds = self.paths.attached(state).flags;
        let passed = &mut self.values.passed;
        let mut pass = |kind: ProbeKind, constant: u32| passed.push((state, node, constant_key(kind, constant)));
        let number = if kinds & (flags::NUMBER_EQUAL | flags::RANGE) == 0 { f64::NAN } else { to_number(value) };
        if kinds & flags::NUMBER_EQUAL != 0
            && let Some(constant) = index.predicates.number(number)
        {
            pass(ProbeKind::NumberEqual, constant);
        }
        if kinds & flags::PATTERN != 0 {
            let (patterns, strings) = patterns();
            patterns.scan(value, strings, |constant, at_start| {
                pass(ProbeKind::Contains, constant);
                if at_start {
                    pass(ProbeKind::StartsWith, constant);
                }
            });
        }
        if kinds & flags::RANGE != 0 && !number.is_nan() {
            for list in &self.paths.attached(state).ranges {
                match self.ranges.iter_mut().find(|(known, _)| known == list) {
                    Some((_, best)) => *best = index.predicates.ranges[*list as usize].better(*best, number),
                    None => self.ranges.push((*list, number)),
                }
            }
        }
    }

    /// What a constant hits in a state, to be remembered.
    #[cold]
    fn make_value(&mut self, index: &Index<'_>, state: StateId, constant: u64) -> u32 {
        let accepts = self.paths.attached(state);
        let is_located = accepts.flags & flags::VALUE_PLACES != 0;
        let Values { postings, hits, numbers, .. } = &mut self.values;
        postings.clear();
        postings.extend(index.predicates.probe(&accepts.probed, constant));
        let before = self.reached.memory_bytes() + self.places.source_bytes();
        let reach = self.reached.add(postings.iter().copied(), &index.predicates, &index.view);
        let source = if is_located { self.places.source(postings) } else { Source::default() };
        let bytes = self.reached.memory_bytes() + self.places.source_bytes() - before;
        self.paths.charge(bytes + VALUE_HIT_BYTES);
        let number = hits.len() as u32;
        hits.push(ValueHit { stamp: 0, reach, source, places: 0 });
        numbers.insert((state, constant), number);
        number
    }

    /// A node has a value that hits something.
    #[inline]
    fn value(&mut self, number: u32, node: NodeId) {
        let hit = &mut self.values.hits[number as usize];
        if hit.stamp != self.document_number {
            hit.stamp = self.document_number;
            self.reached.hit(&hit.reach, &mut self.hit, &mut self.found);
            if !hit.source.is_empty() {
                hit.places = self.places.list(&hit.source);
            }
        }
        if !hit.source.is_empty() {
            self.places.add(hit.places, node);
        }
    }
}
