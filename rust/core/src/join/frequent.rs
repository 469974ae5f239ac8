//! Values that many units have: counted by kind, so that their lists need not be walked for each new unit.
//!
//! A list of units may be passed over if its edges, alone or with those of other lists that are passed over, lead to no
//! query that is not found without them. Where results are only counted, one more may be: its units have the same edge,
//! and what a group of them satisfies is decided once. Units that have a rarer value as well are looked at singly, and
//! it is they that are asked whether they have the frequent ones.

use super::evaluate::Run;
use super::parts::{EdgeId, OperandId};
use super::sets::{ClassId, EMPTY, SetId, later};
use super::state::State;
use super::unit::{Head, NOT_POSTED, Unit};
use super::values::{Posting, UnitId, ValueId};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use smallvec::SmallVec;

/// From how many units on a value is frequent.
const FREQUENT: usize = 64;
/// How many groups of units are told apart.
const GROUPS: usize = 16;

#[derive(Clone, Copy, Debug)]
struct Group {
    operand: OperandId,
    class: ClassId,
    units: u32,
}

/// What the counts of a value take.
pub(super) const FREQUENT_BYTES: usize = size_of::<Frequent>() + 16;

/// The units of a value, counted.
#[derive(Debug)]
pub struct Frequent {
    /// By operand and class; None if these are too many.
    groups: Option<SmallVec<[Group; 2]>>,
    /// No unit has an earlier timestamp.
    earliest: i64,
    /// No unit has a later one.
    latest: i64,
    /// No unit is of an older version of the population.
    oldest: u64,
    /// How many were taken out since all were looked at.
    withdrawn: usize,
}

impl Frequent {
    fn of(postings: &[Posting], heads: &[Head]) -> Frequent {
        let groups = Some(SmallVec::new());
        let mut frequent = Frequent { groups, earliest: i64::MAX, latest: i64::MIN, oldest: u64::MAX, withdrawn: 0 };
        postings.iter().for_each(|posting| frequent.add(posting.operand, &heads[posting.unit as usize]));
        frequent
    }

    fn add(&mut self, operand: OperandId, head: &Head) {
        self.earliest = self.earliest.min(head.time);
        self.latest = self.latest.max(head.time);
        self.oldest = self.oldest.min(head.version);
        let Some(groups) = &mut self.groups else { return };
        match groups.iter().position(|group| (group.operand, group.class) == (operand, head.class)) {
            Some(at) => groups[at].units += 1,
            None if groups.len() < GROUPS => groups.push(Group { operand, class: head.class, units: 1 }),
            None => self.groups = None,
        }
    }

    /// The edges that its units have, by the operand as which they have the value; None if they are not told apart.
    fn edges(&self, partners: &HashMap<OperandId, EdgeId, FixedState>) -> Option<SmallVec<[EdgeId; 2]>> {
        let groups = self.groups.as_ref()?;
        let mut edges: SmallVec<[EdgeId; 2]> =
            groups.iter().filter_map(|group| partners.get(&group.operand).copied()).collect();
        edges.sort_unstable();
        edges.dedup();
        Some(edges)
    }

    fn withdraw(&mut self, operand: OperandId, class: ClassId) {
        self.withdrawn += 1;
        let Some(groups) = &mut self.groups else { return };
        let Some(at) = groups.iter().position(|group| (group.operand, group.class) == (operand, class)) else { return };
        groups[at].units -= 1;
        if groups[at].units == 0 {
            groups.swap_remove(at);
        }
    }
}

/// The units that have a value which a new unit has as an operand.
pub(super) struct List<'p> {
    pub(super) value: ValueId,
    /// The edges by the operand as which these have it.
    pub(super) partners: &'p HashMap<OperandId, EdgeId, FixedState>,
    length: usize,
}

/// A group of units with the same edge and nothing else that a query asks for.
struct Counted {
    class: ClassId,
    units: u64,
    results: u64,
}

/// The lists of a new unit.
#[derive(Default)]
pub(super) struct Lists<'p> {
    /// Those to be walked.
    pub(super) walked: Vec<List<'p>>,
    /// Those that are passed over.
    skipped: Vec<List<'p>>,
    /// The place of the one among them whose units are counted, and their groups.
    counted: Option<(usize, Vec<Counted>)>,
}

impl State {
    /// Notes that a value has one posting more: of an operand and a unit with this head.
    pub(super) fn posted(&mut self, value: ValueId, operand: OperandId, head: &Head) {
        let postings = self.values.postings(value);
        if postings.len() < FREQUENT {
            return;
        }
        match self.frequent.get_mut(&value) {
            Some(frequent) => frequent.add(operand, head),
            None => {
                self.frequent.insert(value, Frequent::of(postings, &self.heads));
            }
        }
    }

    /// Notes that a value has one posting less.
    pub(super) fn withdrawn(&mut self, value: ValueId, operand: OperandId, class: ClassId) {
        let Some(frequent) = self.frequent.get_mut(&value) else { return };
        let postings = self.values.postings(value);
        if postings.len() < FREQUENT {
            self.frequent.remove(&value);
            return;
        }
        frequent.withdraw(operand, class);
        if frequent.withdrawn > postings.len() {
            *frequent = Frequent::of(postings, &self.heads);
        }
    }

    /// Where units are that have a value in common with a unit, left or right of it, where an edge compares them.
    pub(super) fn lists<'p>(&mut self, run: &Run<'p>, unit: &Unit, is_left: bool) -> Lists<'p> {
        let parts = run.population.parts();
        let mut lists = Vec::new();
        let mut before = None;
        for cell in &unit.cells {
            if before.replace((cell.operand, cell.value)) == Some((cell.operand, cell.value)) {
                continue;
            }
            let Some(operand) = parts.operands.get(cell.operand) else { continue };
            let partners = if is_left { &operand.as_left } else { &operand.as_right };
            let length = self.values.postings(cell.value).len();
            if length > 0 && !partners.is_empty() {
                lists.push(List { value: cell.value, partners, length });
            }
        }
        if lists.iter().any(|list| list.length >= FREQUENT) {
            self.pass_over(run, unit, is_left, lists)
        } else {
            Lists { walked: lists, ..Lists::default() }
        }
    }

    /// Chooses among lists those that need not be walked.
    fn pass_over<'p>(&mut self, run: &Run<'p>, unit: &Unit, is_left: bool, mut lists: Vec<List<'p>>) -> Lists<'p> {
        let population = run.population;
        lists.sort_by_key(|list| std::cmp::Reverse(list.length));
        let mut chosen = Lists::default();
        // The edges of lists that are passed over; those of the list that is counted; both.
        let (mut passed, mut base, mut all) = (EMPTY, EMPTY, EMPTY);
        for list in lists {
            let Some(edges) = self.frequent.get(&list.value).and_then(|frequent| frequent.edges(list.partners)) else {
                chosen.walked.push(list);
                continue;
            };
            let decisions = &mut self.decisions;
            let mut with = |set| edges.iter().fold(set, |set, edge| decisions.with(set, *edge));
            let (own, more, both) = (with(EMPTY), with(passed), with(all));
            let mut wanted = |set| decisions.wanted(population, set);
            // The edges that are passed over lead to nothing, the base does: so they have none in common.
            let (of_own, of_more, of_both, of_base) = (wanted(own), wanted(more), wanted(both), wanted(base));
            if of_more == 0 && of_both == of_base {
                (passed, all) = (more, both);
                chosen.skipped.push(list);
            } else if base == EMPTY
                && edges.len() == 1
                && of_both == of_own
                && let Some(counted) = self.counted(run, unit, is_left, &list, own)
            {
                (base, all) = (own, both);
                chosen.counted = Some((chosen.skipped.len(), counted));
                chosen.skipped.push(list);
            } else {
                chosen.walked.push(list);
            }
        }
        let length = |lists: &[List<'_>]| lists.iter().map(|list| list.length).sum::<usize>();
        if length(&chosen.skipped) <= length(&chosen.walked) {
            // Asking those that are walked for the other values would take as long as walking all.
            chosen.walked.append(&mut chosen.skipped);
            chosen.counted = None;
        }
        chosen
    }

    /// What the groups of a list satisfy by its edge alone, if nothing but their number is asked for.
    fn counted(
        &mut self,
        run: &Run<'_>,
        unit: &Unit,
        is_left: bool,
        list: &List<'_>,
        edge: SetId,
    ) -> Option<Vec<Counted>> {
        if !run.joined.counts_only || self.is_kept_under_its_name(unit) {
            return None;
        }
        let frequent = &self.frequent[&list.value];
        let version = frequent.oldest.min(unit.version);
        let [from, to] = [frequent.earliest, frequent.latest].map(|time| later(unit.time, is_left, time));
        let groups = frequent.groups.iter().flatten().filter(|group| list.partners.contains_key(&group.operand));
        let mut counted = Vec::new();
        for group in groups {
            let (left, right) = if is_left { (unit.class, group.class) } else { (group.class, unit.class) };
            let decided = self.decisions.decide(run.population, &self.classes, edge, left, right);
            let held = decided.within(from);
            // On one side of the unit, results change one way only; on both, FOLLOWED BY knows one of them.
            let is_even = held == decided.within(to)
                && ((from > 0) == (to > 0) || (decided.followed.is_empty() && held == decided.within(0)));
            if !decided.is_plain || decided.newest > version || !is_even {
                return None;
            }
            counted.push(Counted { class: group.class, units: group.units.into(), results: (held.0 + held.1) as u64 });
        }
        Some(counted)
    }

    /// Adds to units that were found on the lists that were walked the edges of the others, and to what was joined the
    /// results of the units that are on the counted one only.
    pub(super) fn complete(&mut self, run: &mut Run<'_>, lists: Lists<'_>, touched: &[UnitId]) {
        let Lists { skipped, counted, .. } = lists;
        if skipped.is_empty() {
            return;
        }
        let (counted, mut groups) = counted.map_or((None, Vec::new()), |(place, groups)| (Some(place), groups));
        for other in touched {
            let head = &mut self.heads[*other as usize];
            let mut is_counted = false;
            // What is not on a list is not counted either.
            for cell in self.units[*other].cells.iter().filter(|cell| cell.place != NOT_POSTED) {
                for (place, list) in skipped.iter().enumerate().filter(|(_, list)| list.value == cell.value) {
                    if let Some(edge) = list.partners.get(&cell.operand) {
                        head.edges = self.decisions.with(head.edges, *edge);
                        is_counted |= counted == Some(place);
                    }
                }
            }
            if is_counted && let Some(group) = groups.iter_mut().find(|group| group.class == head.class) {
                group.units -= 1;
            }
        }
        for group in groups.iter().filter(|group| group.results > 0) {
            self.counters.pairs += group.units;
            run.joined.pairs += group.units;
            run.joined.count += group.units * group.results;
        }
    }
}
