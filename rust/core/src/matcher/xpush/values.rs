//! From a string-value to the tests that it passes, by index.

use super::automaton::{Automaton, State, Test};
use super::sets::{EMPTY, SetId, Sets};
use crate::index::View;
use crate::predicates::{Patterns, Strings};
use crate::xpath::ast::CompareOp;
use crate::xpath::evaluate::number::to_number;
use foldhash::fast::FixedState;
use hashbrown::HashMap;

/// No string constant equals the value.
const NO_STRING: u32 = u32::MAX;
/// The value is no number, or no test asks for one.
const NO_NUMBER: u32 = u32::MAX;

/// Cuts that are searched together.
const BLOCK: usize = 16;

/// What a value is to one index: values with equal classes pass the same tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ValueClass {
    /// Number of the string constant that it equals.
    string: u32,
    /// Number of cuts of the number line that it has passed.
    position: u32,
    /// The tests of string functions that it passes, as a set.
    patterns: SetId,
}

impl ValueClass {
    /// A value that passes nothing.
    pub(super) const NONE: ValueClass = ValueClass { string: NO_STRING, position: NO_NUMBER, patterns: EMPTY };
}

/// A point of the number line where a test changes: just before a constant, or just after it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cut {
    constant: f64,
    after: bool,
}

impl Cut {
    #[inline]
    fn is_passed_by(&self, value: f64) -> bool {
        if self.after { value > self.constant } else { value >= self.constant }
    }
}

/// An index of some of the automaton's tests: those that can matter at one kind of place in a document.
#[derive(Debug)]
pub(super) struct ValueIndex {
    /// The tests, ascending.
    pub(super) tests: Box<[State]>,
    /// String constants: the test of each, and the value state of values that equal it, if it was asked for.
    strings: HashMap<u32, (State, Option<u32>), FixedState>,
    /// The value state of values that equal none and are no numbers, likewise.
    nothing: Option<u32>,
    cuts: Vec<Cut>,
    /// The first cut of each [`BLOCK`]: these stay in the caches, where all cuts do not.
    blocks: Vec<Cut>,
    /// The value states of numbers that have passed none of the cuts, one, and so on, if they were asked for.
    between: Box<[Option<u32>]>,
    /// `(cut, test)` of `<` and `<=`: true until that cut is passed.
    less: Vec<(u32, State)>,
    /// `(cut, test)` of `>` and `>=`: true from that cut on.
    greater: Vec<(u32, State)>,
    /// `(cut, test)` of `=`: true between that cut, which is before the constant, and the next.
    equal: Vec<(u32, State)>,
    /// String functions by the number of their constant; `true` for those that want it at the start.
    pattern_tests: Vec<(u32, bool, State)>,
    patterns: Option<Patterns>,
}

impl ValueIndex {
    pub(super) fn new(tests: &[State], automaton: &Automaton, strings: Strings<'_>) -> ValueIndex {
        let mut index = ValueIndex {
            tests: tests.into(),
            strings: HashMap::default(),
            nothing: None,
            cuts: Vec::new(),
            blocks: Vec::new(),
            between: Box::default(),
            less: Vec::new(),
            greater: Vec::new(),
            equal: Vec::new(),
            pattern_tests: Vec::new(),
            patterns: None,
        };
        let mut numbers: Vec<(CompareOp, f64, State)> = Vec::new();
        for state in tests {
            match automaton.test(*state) {
                Test::Equal(string) => {
                    index.strings.insert(string, (*state, None));
                }
                Test::Contains(string) => index.pattern_tests.push((string, false, *state)),
                Test::StartsWith(string) => index.pattern_tests.push((string, true, *state)),
                Test::Number(op, number) => numbers.push((op, number, *state)),
            }
        }
        index.add_numbers(&numbers);
        if !index.pattern_tests.is_empty() {
            index.pattern_tests.sort_unstable();
            let mut constants: Vec<u32> = index.pattern_tests.iter().map(|(string, ..)| *string).collect();
            constants.dedup();
            index.patterns = Some(Patterns::over(constants, strings));
        }
        index
    }

    fn add_numbers(&mut self, numbers: &[(CompareOp, f64, State)]) {
        for (op, constant, _) in numbers {
            let cut = |after| Cut { constant: *constant, after };
            match op {
                CompareOp::Less | CompareOp::GreaterEqual => self.cuts.push(cut(false)),
                CompareOp::LessEqual | CompareOp::Greater => self.cuts.push(cut(true)),
                CompareOp::Equal | CompareOp::NotEqual => self.cuts.extend([cut(false), cut(true)]),
            }
        }
        self.cuts.sort_by(|a, b| a.constant.total_cmp(&b.constant).then(a.after.cmp(&b.after)));
        self.cuts.dedup();
        self.blocks = self.cuts.iter().step_by(BLOCK).copied().collect();
        self.between = vec![None; self.cuts.len() + 1].into();
        for (op, constant, state) in numbers {
            let after = matches!(op, CompareOp::LessEqual | CompareOp::Greater);
            let at = self.cuts.partition_point(|cut| {
                cut.constant.total_cmp(constant).then(cut.after.cmp(&after)) == std::cmp::Ordering::Less
            }) as u32;
            match op {
                CompareOp::Less | CompareOp::LessEqual => self.less.push((at, *state)),
                CompareOp::Greater | CompareOp::GreaterEqual => self.greater.push((at, *state)),
                CompareOp::Equal | CompareOp::NotEqual => self.equal.push((at, *state)),
            }
        }
        for list in [&mut self.less, &mut self.greater, &mut self.equal] {
            list.sort_unstable();
        }
    }

    /// Where the value state of a value is kept, and its class, if all tests compare strings or all compare numbers: the
    /// most frequent cases, which need one table less.
    #[inline]
    pub(super) fn kept(&mut self, value: &str, view: &View<'_>) -> Option<(&mut Option<u32>, ValueClass)> {
        if self.patterns.is_some() {
            return None;
        }
        if self.cuts.is_empty() {
            let string = view.find_string(value).unwrap_or(NO_STRING);
            return Some(match self.strings.get_mut(&string) {
                Some((_, known)) => (known, ValueClass { string, ..ValueClass::NONE }),
                None => (&mut self.nothing, ValueClass::NONE),
            });
        }
        if !self.strings.is_empty() {
            return None;
        }
        let number = to_number(value);
        if number.is_nan() {
            return Some((&mut self.nothing, ValueClass::NONE));
        }
        let position = self.passed_cuts(number);
        Some((&mut self.between[position as usize], ValueClass { position, ..ValueClass::NONE }))
    }

    /// Forgets the value states.
    pub(super) fn forget(&mut self) {
        self.nothing = None;
        self.between.fill(None);
        #[allow(clippy::iter_over_hash_type)] // all alike
        for (_, known) in self.strings.values_mut() {
            *known = None;
        }
    }

    /// The class of a value: a hash of the string, a binary search of its number, a run of the pattern automaton —
    /// each only if some test asks for it.
    pub(super) fn class(&self, value: &str, view: &View<'_>, strings: Strings<'_>, sets: &mut Sets) -> ValueClass {
        let string = if self.strings.is_empty() {
            NO_STRING
        } else {
            view.find_string(value).filter(|string| self.strings.contains_key(string)).unwrap_or(NO_STRING)
        };
        let mut position = NO_NUMBER;
        if !self.cuts.is_empty() {
            let number = to_number(value);
            if !number.is_nan() {
                position = self.passed_cuts(number);
            }
        }
        let patterns = match &self.patterns {
            None => EMPTY,
            Some(patterns) => {
                let mut found: Vec<State> = Vec::new();
                patterns.scan(value, strings, |constant, at_start| {
                    let first = self.pattern_tests.partition_point(|(string, ..)| *string < constant);
                    let own = self.pattern_tests[first..].iter().take_while(|(string, ..)| *string == constant);
                    found.extend(own.filter(|(_, start, _)| at_start || !start).map(|(_, _, state)| *state));
                });
                found.sort_unstable();
                found.dedup();
                sets.intern(&found)
            }
        };
        ValueClass { string, position, patterns }
    }

    /// How many cuts a number has passed.
    #[inline]
    fn passed_cuts(&self, number: f64) -> u32 {
        let passed = |cuts: &[Cut]| cuts.partition_point(|cut| cut.is_passed_by(number));
        let from = passed(&self.blocks).saturating_sub(1) * BLOCK;
        let to = self.cuts.len().min(from + BLOCK);
        (from + passed(&self.cuts[from..to])) as u32
    }

    /// The tests that values of a class pass, added to `into`.
    pub(super) fn passed(&self, class: ValueClass, sets: &Sets, into: &mut Vec<State>) {
        into.extend(self.strings.get(&class.string).map(|(test, _)| *test));
        if class.position != NO_NUMBER {
            let p = class.position;
            let states = |list: &[(u32, State)], into: &mut Vec<State>| into.extend(list.iter().map(|(_, test)| *test));
            states(&self.less[self.less.partition_point(|(cut, _)| *cut < p)..], into);
            states(&self.greater[..self.greater.partition_point(|(cut, _)| *cut < p)], into);
            let (from, to) =
                (self.equal.partition_point(|(cut, _)| cut + 1 < p), self.equal.partition_point(|(cut, _)| *cut < p));
            states(&self.equal[from..to], into);
        }
        into.extend_from_slice(sets.get(class.patterns));
    }

    /// Bytes in use.
    pub(super) fn memory_bytes(&self) -> usize {
        size_of::<ValueIndex>()
            + self.tests.len() * 4
            + self.between.len() * 8
            + self.strings.capacity() * 17
            + (self.cuts.capacity() + self.blocks.capacity()) * size_of::<Cut>()
            + (self.less.capacity() + self.greater.capacity() + self.equal.capacity()) * 8
            + self.pattern_tests.capacity() * 12
            + self.patterns.as_ref().map_or(0, Patterns::memory_bytes)
    }
}
