//! The postings of a segment under construction: what hangs where.

use super::image::{ImageWriter, Section};
use crate::paths::{Ending, TrieNode};
use crate::predicates::{
    FIRST_GUARDS, Guard, GuardList, NO_LIST, NO_POSTING, Posting, ProbeKind, RangeList, Run, constant_key, flags,
    parts_of_key, probe_key,
};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use smallvec::SmallVec;

/// Where a row hangs: a probe key, or a place in a list of order comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Hanger {
    /// A probe key or [`existence_key`], or trie node and operator of a list.
    pub(super) key: u64,
    /// The constant in a list, as an integer of the same order; `PROBE` otherwise.
    value: u64,
}

/// Keys of guards or of anchors.
pub(super) type Keys = SmallVec<[u64; 2]>;

/// No key: no trie node has this number.
const NO_KEY: u64 = u64::MAX;
const PROBE: u64 = u64::MAX;

/// The key of a trie node's existence. No string constant has that number.
pub(super) fn existence_key(node: TrieNode) -> u64 {
    probe_key(node, ProbeKind::StringEqual, u32::MAX)
}

fn is_existence(key: u64) -> bool {
    parts_of_key(key).1 == constant_key(ProbeKind::StringEqual, u32::MAX)
}

fn node_of(key: u64) -> TrieNode {
    parts_of_key(key).0
}

impl Hanger {
    /// Nowhere: every document is checked.
    pub(super) const ALWAYS: Hanger = Hanger { key: NO_KEY, value: PROBE };

    /// At a probe or existence key.
    pub(super) fn probe(key: u64) -> Hanger {
        Hanger { key, value: PROBE }
    }

    /// In the list of an order operator.
    pub(super) fn range(node: TrieNode, op: u32, value: f64) -> Hanger {
        // Flips negative numbers' bits, so that integers compare as the numbers do (constants are never NaN).
        let bits = value.to_bits();
        let value = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
        Hanger { key: u64::from(node) << u32::BITS | u64::from(op), value }
    }

    /// Trie node and operator of a list.
    fn list(self) -> (TrieNode, u32) {
        ((self.key >> u32::BITS) as TrieNode, self.key as u32)
    }

    fn constant(self) -> f64 {
        f64::from_bits(if self.value >> 63 == 1 { self.value & !(1 << 63) } else { !self.value })
    }

    /// Rows with near places are hit together: those of one path, and of one constant there.
    pub(super) fn place(self) -> (TrieNode, u64) {
        if self.value == PROBE {
            return parts_of_key(self.key);
        }
        let (node, op) = self.list();
        (node, u64::from(op))
    }
}

/// How access and guards of a row meet, see [`GuardList`].
#[derive(Default, PartialEq, Eq, Hash)]
pub(super) struct Meeting {
    pub(super) anchors: Keys,
    pub(super) places: Keys,
    pub(super) joins: Vec<u32>,
}

/// Nothing is known of how they meet, or there is nothing to know.
pub(super) const NO_MEETING: u32 = u32::MAX;

struct Entry {
    hanger: Hanger,
    run: Run,
    guards: Keys,
    /// Number of its [`Meeting`], or [`NO_MEETING`].
    meeting: u32,
}

/// Postings under construction.
#[derive(Default)]
pub(super) struct Postings {
    probes: Vec<Entry>,
    ranges: Vec<Entry>,
    always: Vec<Entry>,
    meetings: Vec<Meeting>,
}

impl Postings {
    /// Takes down how rows meet that are hung next; its number.
    pub(super) fn meeting(&mut self, meeting: Meeting) -> u32 {
        if meeting == Meeting::default() {
            return NO_MEETING;
        }
        if self.meetings.last() != Some(&meeting) {
            self.meetings.push(meeting);
        }
        (self.meetings.len() - 1) as u32
    }

    /// Hangs rows; to be called in ascending order of rows for each place.
    pub(super) fn add(&mut self, hanger: Hanger, run: Run, guards: &Keys, meeting: u32) {
        let list = match hanger {
            Hanger::ALWAYS => &mut self.always,
            Hanger { value: PROBE, .. } => &mut self.probes,
            _ => &mut self.ranges,
        };
        if let Some(last) = list.last_mut()
            && (last.hanger, &last.guards, last.meeting) == (hanger, guards, meeting)
            && last.run.extend(&run)
        {
            return;
        }
        list.push(Entry { hanger, run, guards: guards.clone(), meeting });
    }

    /// Numbers the postings and writes everything about them; `endings` are those of all trie nodes.
    pub(super) fn write(mut self, endings: &[Ending], writer: &mut ImageWriter) {
        // Stable: rows were added in ascending order and must stay so within a posting.
        self.probes.sort_by_key(|entry| entry.hanger.key);
        self.ranges.sort_by_key(|entry| entry.hanger);
        let numbering = Numbering::new(&self, endings);
        let meetings = std::mem::take(&mut self.meetings);
        let mut guards = GuardTable { meetings: &meetings, ..GuardTable::default() };
        let mut starts: Vec<u32> = Vec::with_capacity(numbering.count() + 1);
        let mut runs: Vec<Run> = Vec::with_capacity(self.probes.len());
        let mut groups: Vec<&[Entry]> = vec![&[]; numbering.count()];
        for group in self.probes.chunk_by(|a, b| a.hanger == b.hanger) {
            groups[numbering.posting(group[0].hanger.key) as usize] = group;
        }
        for group in groups {
            let first = runs.len();
            starts.push(first as u32);
            for entry in group {
                let run = guards.run(entry, &numbering);
                // Runs never grow across postings.
                if !(runs.len() > first && runs.last_mut().is_some_and(|last| last.extend(&run))) {
                    runs.push(run);
                }
            }
        }
        starts.push(runs.len() as u32);
        let mut node_flags = vec![0u8; endings.len()];
        for key in &numbering.probes {
            let (node, constant) = parts_of_key(*key);
            node_flags[node as usize] |= match constant >> u32::BITS {
                0 => flags::STRING_EQUAL,
                1 => flags::NUMBER_EQUAL,
                _ => flags::PATTERN,
            };
        }
        for key in numbering.anchors.iter() {
            node_flags[node_of(*key) as usize] |= flags::ANCHOR;
        }
        self.mark_places(&meetings, &mut node_flags);
        let mut lists = Vec::new();
        let mut at = 0;
        for group in self.ranges.chunk_by(|a, b| a.hanger.key == b.hanger.key) {
            let (node, op) = group[0].hanger.list();
            lists.push(RangeList { node, op, start: at, end: at + group.len() as u32 });
            node_flags[node as usize] |= flags::RANGE;
            at += group.len() as u32;
        }
        let mut guarded =
            |entries: &[Entry]| -> Vec<Run> { entries.iter().map(|entry| guards.run(entry, &numbering)).collect() };
        writer.add(Section::RangeValues, self.ranges.iter().map(|entry| entry.hanger.constant()).collect::<Vec<f64>>());
        writer.add(Section::RangeRuns, guarded(&self.ranges));
        writer.add(Section::AlwaysRuns, guarded(&self.always));
        writer.add(Section::Guards, guards.guards);
        writer.add(Section::Anchors, guards.lists);
        writer.add(Section::NodePostings, numbering.nodes);
        writer.add(Section::NodeFlags, node_flags);
        writer.add(Section::Probes, numbering.probes);
        writer.add(Section::PostingRuns, starts);
        writer.add(Section::Runs, runs);
        writer.add(Section::Ranges, lists);
    }
}

impl Postings {
    /// Flags the nodes of which joins need to know where they are.
    fn mark_places(&self, meetings: &[Meeting], node_flags: &mut [u8]) {
        for entry in &self.probes {
            let Some(meeting) = meetings.get(entry.meeting as usize).filter(|meeting| !meeting.joins.is_empty()) else {
                continue;
            };
            for key in std::iter::once(&entry.hanger.key).chain(&entry.guards).chain(&meeting.places) {
                let flag = if is_existence(*key) { flags::PLACES } else { flags::VALUE_PLACES };
                node_flags[node_of(*key) as usize] |= flag;
            }
        }
    }
}

/// The numbers of postings: existence in the order of the rows, then what is only a guard, in the order of the last steps:
/// one state of the path automaton hits those with its last steps, which then share words of bits. Probes come last, in the
/// order of their keys.
struct Numbering {
    nodes: Vec<Posting>,
    existence_count: usize,
    probes: Vec<u64>,
    /// Keys of all anchors, each once.
    anchors: Vec<u64>,
}

impl Numbering {
    fn new(postings: &Postings, endings: &[Ending]) -> Numbering {
        let entries = || [&postings.probes, &postings.ranges, &postings.always].into_iter().flatten();
        let meetings = || postings.meetings.iter();
        let mut anchors: Vec<u64> = meetings().flat_map(|meeting| meeting.anchors.iter().copied()).collect();
        anchors.sort_unstable();
        anchors.dedup();
        let guards = entries().flat_map(|entry| entry.guards.iter().copied()).chain(anchors.iter().copied());
        let guards = guards.chain(meetings().flat_map(|meeting| meeting.places.iter().copied()));
        let (guarding, guarding_probes): (Vec<u64>, Vec<u64>) = guards.partition(|key| is_existence(*key));
        let mut guarding: Vec<TrieNode> = guarding.into_iter().map(node_of).collect();
        guarding.sort_unstable();
        guarding.dedup();
        guarding.sort_unstable_by_key(|node| (endings[*node as usize], *node));
        let hung = || postings.probes.iter().map(|entry| (entry.run.row, entry.hanger.key));
        // In the order of their rows, see `freeze`.
        let mut existence: Vec<(u32, u64)> = hung().filter(|(_, key)| is_existence(*key)).collect();
        existence.sort_unstable();
        let mut nodes = vec![NO_POSTING; endings.len()];
        let mut existence_count = 0;
        for node in existence.into_iter().map(|(_, key)| node_of(key)).chain(guarding) {
            let posting = &mut nodes[node as usize];
            if *posting == NO_POSTING {
                *posting = existence_count;
                existence_count += 1;
            }
        }
        let hung = hung().map(|(_, key)| key).filter(|key| !is_existence(*key));
        let mut probes: Vec<u64> = hung.chain(guarding_probes).collect();
        probes.sort_unstable();
        probes.dedup();
        Numbering { nodes, existence_count: existence_count as usize, probes, anchors }
    }

    fn count(&self) -> usize {
        self.existence_count + self.probes.len()
    }

    fn posting(&self, key: u64) -> Posting {
        if is_existence(key) {
            return self.nodes[node_of(key) as usize];
        }
        (self.existence_count + self.probes.binary_search(&key).expect("collected before")) as Posting
    }
}

/// Guards of runs, and the lists of what does not fit in them.
#[derive(Default)]
struct GuardTable<'a> {
    meetings: &'a [Meeting],
    guards: Vec<Guard>,
    lists: Vec<Posting>,
    known: HashMap<Vec<Posting>, u32, FixedState>,
}

impl GuardTable<'_> {
    /// The run of an entry, with the number of its guards.
    fn run(&mut self, entry: &Entry, numbering: &Numbering) -> Run {
        let mut run = entry.run;
        let meeting = self.meetings.get(entry.meeting as usize);
        if entry.guards.is_empty() && meeting.is_none() {
            return run;
        }
        let posting = |key: &u64| numbering.posting(*key);
        let mut first = [NO_POSTING; FIRST_GUARDS];
        for (place, key) in first.iter_mut().zip(&entry.guards) {
            *place = posting(key);
        }
        let more = entry.guards.get(FIRST_GUARDS..).unwrap_or_default();
        let list = if more.is_empty() && meeting.is_none() {
            NO_LIST
        } else {
            let nothing = Meeting::default();
            let Meeting { anchors, places, joins } = meeting.unwrap_or(&nothing);
            let counts: [usize; GuardList::HEAD] = [more.len(), anchors.len(), places.len(), joins.len()];
            let mut list: Vec<u32> = counts.iter().map(|count| *count as u32).collect();
            list.extend(more.iter().chain(anchors).chain(places).map(posting));
            list.extend(joins);
            // Few different branches serve many rows.
            let lists = &mut self.lists;
            *self.known.entry(list).or_insert_with_key(|list| {
                lists.extend_from_slice(list);
                (lists.len() - list.len()) as u32
            })
        };
        run.guard = self.guards.len() as u32;
        self.guards.push(Guard { first, list });
        run
    }
}
