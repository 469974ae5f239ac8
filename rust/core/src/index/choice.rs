//! Chooses access predicates: by form first, then by the number of distinct constants.

use super::access::{Access, Atom, AtomTest, accesses};
use super::builder::SegmentBuilder;
use super::columns::{Comparand, Value};
use super::joins::Joins;
use super::parallel::parts;
use super::pattern::{Leaf, Pattern};
use super::rows::SignatureRows;
use super::segment::NO_ACCESS;
use crate::paths::LinearPath;
use crate::xpath::ast::{ConstantRef, Query};
use foldhash::fast::FixedState;
use hashbrown::HashSet;
use smallvec::SmallVec;
use std::cmp::Reverse;

/// Rows of one signature looked at to compare the columns' numbers of distinct constants.
const DISTINCT_SAMPLE: usize = 4096;
/// With fewer rows the constants tell nothing about a column.
const MIN_SAMPLE: usize = 8;
/// Signatures that a thread takes at a time.
const PART: usize = 2048;

/// What leads to the rows of one signature.
#[derive(Debug, Default)]
pub(super) struct Choice {
    /// Which of the offered accesses it is, or [`NO_ACCESS`].
    pub(super) number: u16,
    /// The atoms of the access.
    pub(super) atoms: SmallVec<[Atom; 1]>,
    /// Whether they decide alone.
    pub(super) exact: bool,
    /// Other atoms that hold whenever the expression is true.
    pub(super) guards: Vec<Atom>,
    /// How access and guards meet, if together they say all that the expression says.
    pub(super) meeting: Option<Meeting>,
}

/// The nodes in which access and guards have to meet.
#[derive(Debug, Default)]
pub(super) struct Meeting {
    /// The paths of the branches; each comes behind the one above it.
    pub(super) anchors: Vec<LinearPath>,
    /// The joins that decide whether they do; empty if it takes more than nodes.
    pub(super) joins: Vec<u32>,
    /// The paths whose nodes joins need besides.
    pub(super) places: Vec<LinearPath>,
}

impl SegmentBuilder {
    /// The choices of all signatures, in their order; several threads share the work.
    pub(super) fn choices(&self, rows: &SignatureRows) -> Vec<Choice> {
        parts(self.signatures.len(), PART, |numbers| {
            numbers.map(|number| self.choose(number, rows.rows(number))).collect()
        })
    }

    fn choose(&self, number: usize, rows: &[u32]) -> Choice {
        let signature = &self.signatures[number];
        let query = Query { cells: &self.cells, root: signature.root };
        let nothing = Choice { number: NO_ACCESS, ..Choice::default() };
        let Some(first) = rows.first() else { return nothing };
        let constants: SmallVec<[ConstantRef<'_>; 8]> =
            (0..signature.slots).map(|slot| self.constant(*first, slot)).collect();
        let mut offered = accesses(&query, &constants);
        let best = offered.iter().enumerate().min_by_key(|(_, access)| {
            let (kind, inexact, names) = access.rank();
            (kind, inexact, usize::MAX - self.distinct_constants(access, rows), names)
        });
        let Some((best, _)) = best else { return nothing };
        let Access { atoms, exact } = offered.remove(best);
        let number = best as u16;
        if exact {
            return Choice { number, atoms, exact, ..Choice::default() };
        }
        let (guards, meeting) = match (&atoms[..], Pattern::new(&query)) {
            ([access], Some(pattern)) => of_pattern(access, &pattern),
            _ => (of_accesses(&atoms, offered), None),
        };
        // Nothing but the access, and nothing that it could miss.
        let exact = guards.is_empty() && meeting.as_ref().is_some_and(|meeting| meeting.anchors.is_empty());
        Choice { number, atoms, exact, guards, meeting }
    }

    pub(super) fn value(&self, row: u32, slot: u32) -> Value {
        self.values[(self.rows[row as usize].values + slot) as usize]
    }

    fn constant(&self, row: u32, slot: u32) -> ConstantRef<'_> {
        let value = self.value(row, slot);
        match value.as_string() {
            Some(string) => ConstantRef::String(self.strings.get(string)),
            None => ConstantRef::Number(value.as_number()),
        }
    }

    /// Distinct constants of an equality among some of the rows; 0 for anything else.
    fn distinct_constants(&self, access: &Access, rows: &[u32]) -> usize {
        let slot = match access.atoms[..] {
            [Atom { test: AtomTest::StringEqual(slot) | AtomTest::NumberEqual(slot), .. }] => slot,
            _ => return 0,
        };
        if rows.len() < MIN_SAMPLE {
            return 0;
        }
        let sample = rows.iter().take(DISTINCT_SAMPLE);
        sample.map(|row| self.value(*row, slot)).collect::<HashSet<Value, FixedState>>().len()
    }
}

/// The leaves of a pattern besides the access; how they meet, if they say all that the pattern says.
fn of_pattern(access: &Atom, pattern: &Pattern) -> (Vec<Atom>, Option<Meeting>) {
    let mut guards: Vec<Atom> = Vec::new();
    let mut complete = true;
    for Leaf { atom, .. } in &pattern.leaves {
        if matches!(atom.test, AtomTest::Range(..)) {
            complete &= atom == access;
        } else if atom != access && !guards.contains(atom) {
            guards.push(atom.clone());
        }
    }
    // What fails most often comes first.
    guards.sort_by_key(|leaf| (leaf.test == AtomTest::Exists, Reverse(leaf.path.named_count())));
    if !complete {
        return (guards, None);
    }
    let anchors = pattern.branches().map(|(_, branch)| branch.path.clone()).collect();
    let mut meeting = Meeting { anchors, ..Meeting::default() };
    // Of an order comparison only the best value is known, not the nodes.
    let located = !matches!(access.test, AtomTest::Range(..));
    if let Some(joins) = located.then(|| Joins::new(pattern, access, &guards)).flatten() {
        (meeting.joins, meeting.places) = (joins.words, joins.places);
    }
    (guards, Some(meeting))
}

/// Of the accesses not chosen, those that say something new and cost one bit to test: equalities and string functions
/// first, then paths that have to exist.
fn of_accesses(chosen: &[Atom], offered: Vec<Access>) -> Vec<Atom> {
    let mut guards: Vec<Atom> = Vec::new();
    for Access { atoms, .. } in offered {
        let Ok([atom]) = <[Atom; 1]>::try_from(atoms.into_vec()) else { continue };
        let implied = |known: &Atom| known.path.edges.starts_with(&atom.path.edges);
        let useful = match atom.test {
            AtomTest::Range(..) => false,
            AtomTest::Exists => !chosen.iter().all(implied) && !guards.iter().any(implied),
            _ => true,
        };
        if useful {
            guards.push(atom);
        }
    }
    guards
}
