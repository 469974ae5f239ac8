//! From a builder to an image: chooses access predicates, orders rows, lays out postings.
//!
//! Rows are numbered signature by signature and, within one, by access predicate, so that the rows of a posting are
//! neighbours: their columns can be scanned and their subscriptions handed out as ranges. Signatures are ordered by
//! the last steps of their access paths, because what one state of the path automaton accepts has its last steps in
//! common, and then by posting: a document touches a few stretches of memory instead of a row here and a row there.

use super::access::{Atom, AtomTest};
use super::builder::{BuildRow, SegmentBuilder};
use super::choice::{Choice, MAX_REQUIREMENTS};
use super::columns::Value;
use super::image::{ImageWriter, Section};
use super::rows::SignatureRows;
use super::segment::{ANY_STREAM, NO_ACCESS, Segment, SignatureRecord, write_symbols, write_texts};
use crate::paths::{Edge, TrieBuilder, TrieNode};
use crate::predicates::{NO_POSTING, Posting, ProbeKind, RangeList, Run, flags, hash_slots, probe_key};
use smallvec::SmallVec;

/// Where a row hangs.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
enum Key {
    Exists(TrieNode),
    Probe(u64),
    Range(TrieNode, u32, f64),
}

impl Key {
    /// Rows with near places are hit together.
    fn place(self) -> u64 {
        match self {
            Key::Exists(node) | Key::Range(node, ..) => probe_key(node, ProbeKind::StringEqual, 0),
            Key::Probe(key) => key,
        }
    }
}

/// How the rows of one signature are reached, with the paths as trie nodes.
struct Plan {
    choice: u16,
    plain: bool,
    exact: bool,
    atoms: SmallVec<[(TrieNode, AtomTest); 1]>,
    requirements: SmallVec<[(TrieNode, AtomTest); MAX_REQUIREMENTS]>,
    ending: [Option<Edge>; 2],
}

impl Plan {
    fn new(choice: Choice, trie: &mut TrieBuilder) -> Plan {
        let mut place = |atom: Atom| (trie.insert(&atom.path), atom.test);
        Plan {
            choice: choice.number,
            plain: choice.plain,
            exact: choice.exact,
            ending: choice.ending(),
            atoms: choice.atoms.into_iter().map(&mut place).collect(),
            requirements: choice.requirements.into_iter().map(&mut place).collect(),
        }
    }
}

impl SegmentBuilder {
    /// The finished segment.
    pub fn freeze(mut self) -> Segment {
        let mut by_signature = self.rows_by_signature();
        let mut trie = TrieBuilder::default();
        let mut plans: Vec<Plan> =
            self.choices(&by_signature).into_iter().map(|choice| Plan::new(choice, &mut trie)).collect();
        let (flat, numbers) = trie.freeze();
        for (node, _) in plans.iter_mut().flat_map(|plan| plan.atoms.iter_mut().chain(&mut plan.requirements)) {
            *node = numbers[*node as usize];
        }
        let equal_numbers = self.equality_numbers(&by_signature, &plans);

        let mut writer = ImageWriter::default();
        writer.add(Section::TrieStarts, &flat.starts);
        writer.add(Section::TrieEdges, &flat.edges);
        writer.add(Section::Numbers, &equal_numbers);

        // Order the signatures, and the rows of each by where they hang first.
        let mut order: Vec<usize> = (0..plans.len()).filter(|number| !by_signature.rows(*number).is_empty()).collect();
        order.sort_by_cached_key(|number| {
            let plan = &plans[*number];
            let first = self.rows[by_signature.rows(*number)[0] as usize];
            let key = plan.atoms.first().map(|atom| self.key(first, atom, &equal_numbers).place());
            (plan.ending, key)
        });
        let mut records = Vec::with_capacity(order.len() + 1);
        let mut cells = Vec::with_capacity(self.cells.len());
        let mut requirements: Vec<u64> = Vec::new();
        let mut columns: Vec<Value> = Vec::with_capacity(self.values.len());
        let mut new_rows = vec![0u32; self.rows.len()];
        let mut postings = Postings::default();
        let mut row_count = 0u32;
        for (number, old) in order.into_iter().enumerate() {
            let (rows, plan) = (by_signature.rows_mut(old), &plans[old]);
            let signature = &self.signatures[old];
            records.push(SignatureRecord {
                cells: cells.len() as u32,
                row: row_count,
                column: columns.len() as u32,
                choice: plan.choice,
                plain: u8::from(plan.plain),
                requirements: plan.requirements.len() as u8,
                slots: signature.slots,
                requirement: requirements.len() as u32,
                root: signature.root,
            });
            let key = |row: BuildRow, atom: &(TrieNode, AtomTest)| self.key(row, atom, &equal_numbers);
            if let Some(atom) = plan.atoms.first().filter(|_| rows.len() > 1) {
                rows.sort_by(|a, b| {
                    let (a, b) = (key(self.rows[*a as usize], atom), key(self.rows[*b as usize], atom));
                    a.partial_cmp(&b).unwrap_or(std::cmp::Ordering::Equal)
                });
            }
            for (at, row) in rows.iter().enumerate() {
                new_rows[*row as usize] = row_count + at as u32;
                let shared = plan.atoms.len() > 1;
                for atom in &plan.atoms {
                    let run = Run::new(row_count + at as u32, 1, number as u32, shared, plan.exact);
                    postings.add(key(self.rows[*row as usize], atom), run);
                }
                if plan.atoms.is_empty() {
                    append(&mut postings.always, Run::new(row_count + at as u32, 1, number as u32, false, false));
                }
            }
            for atom in &plan.requirements {
                requirements.extend(rows.iter().map(|row| match key(self.rows[*row as usize], atom) {
                    Key::Probe(key) => key,
                    _ => unreachable!("only probes are required"),
                }));
            }
            for slot in 0..signature.slots {
                columns.extend(rows.iter().map(|row| self.values[(self.rows[*row as usize].values + slot) as usize]));
            }
            row_count += rows.len() as u32;
            cells.extend_from_slice(&self.cells[signature.cells.start as usize..signature.cells.end as usize]);
        }
        records.push(SignatureRecord {
            cells: cells.len() as u32,
            row: row_count,
            column: columns.len() as u32,
            choice: NO_ACCESS,
            plain: 0,
            requirements: 0,
            slots: 0,
            requirement: requirements.len() as u32,
            root: 0,
        });
        writer.add(Section::Signatures, &records);
        writer.add(Section::Columns, &columns);
        postings.write(flat.starts.len() - 1, &requirements, &mut writer);
        self.write_subscriptions(&new_rows, row_count, &mut writer);
        writer.add(Section::Cells, &cells);
        writer.add(Section::Symbols, &write_symbols(&self.symbols));
        writer.add(Section::Streams, &write_texts(self.streams.iter().map(|name| &**name)));
        let (bytes, offsets, slots) = self.strings.freeze();
        let longest = offsets.windows(2).map(|pair| u64::from(pair[1] - pair[0])).max().unwrap_or(0);
        writer.add(Section::Facts, &[longest]);
        writer.add(Section::StringBytes, &bytes);
        writer.add(Section::StringOffsets, &offsets);
        writer.add(Section::StringSlots, &slots);
        Segment::new(writer.finish())
    }

    /// The distinct constants of number equalities, ascending.
    fn equality_numbers(&self, by_signature: &SignatureRows, plans: &[Plan]) -> Vec<f64> {
        let mut numbers = Vec::new();
        for (signature, plan) in plans.iter().enumerate() {
            let rows = by_signature.rows(signature);
            for (_, test) in plan.atoms.iter().chain(&plan.requirements) {
                if let AtomTest::NumberEqual(slot) = test {
                    numbers.extend(
                        rows.iter()
                            .map(|row| self.values[(self.rows[*row as usize].values + slot) as usize].as_number()),
                    );
                }
            }
        }
        numbers.sort_unstable_by(f64::total_cmp);
        numbers.dedup();
        numbers
    }

    fn key(&self, row: BuildRow, (node, test): &(TrieNode, AtomTest), numbers: &[f64]) -> Key {
        let value = |slot: u32| self.values[(row.values + slot) as usize];
        let string = |slot: u32| value(slot).as_string().expect("string slots hold strings");
        match *test {
            AtomTest::Exists => Key::Exists(*node),
            AtomTest::StringEqual(slot) => Key::Probe(probe_key(*node, ProbeKind::StringEqual, string(slot))),
            AtomTest::Contains(slot) => Key::Probe(probe_key(*node, ProbeKind::Contains, string(slot))),
            AtomTest::StartsWith(slot) => Key::Probe(probe_key(*node, ProbeKind::StartsWith, string(slot))),
            AtomTest::NumberEqual(slot) => {
                let number = value(slot).as_number();
                let at = numbers.binary_search_by(|known| known.total_cmp(&number)).expect("collected before");
                Key::Probe(probe_key(*node, ProbeKind::NumberEqual, at as u32))
            }
            AtomTest::Range(op, slot) => Key::Range(*node, RangeList::number(op), value(slot).as_number()),
        }
    }

    /// Numbers the live subscriptions row by row and writes everything about them.
    fn write_subscriptions(&mut self, new_rows: &[u32], row_count: u32, writer: &mut ImageWriter) {
        let mut order: Vec<(u32, u32)> = self
            .subscription_rows
            .iter()
            .enumerate()
            .map(|(number, row)| (new_rows[*row as usize], number as u32))
            .collect();
        order.sort_unstable();
        let mut starts = vec![0u32; row_count as usize + 1];
        let mut bytes = Vec::with_capacity(self.ids.byte_count());
        let mut offsets = Vec::with_capacity(order.len() + 1);
        offsets.push(0u32);
        for (row, number) in &order {
            starts[*row as usize + 1] += 1;
            bytes.extend_from_slice(self.ids.get(*number).as_bytes());
            offsets.push(bytes.len() as u32);
        }
        for at in 0..row_count as usize {
            starts[at + 1] += starts[at];
        }
        writer.add(Section::RowSubscriptions, &starts);
        writer.add(Section::IdSlots, &hash_slots(&bytes, &offsets));
        writer.add(Section::IdBytes, &bytes);
        writer.add(Section::IdOffsets, &offsets);
        if self.subscription_streams.iter().any(|stream| *stream != ANY_STREAM) {
            let streams: Vec<u32> =
                order.iter().map(|(_, number)| self.subscription_streams[*number as usize]).collect();
            writer.add(Section::SubscriptionStreams, &streams);
        }
    }
}

/// Appends a run, to the one before it if they are neighbours.
fn append(runs: &mut Vec<Run>, run: Run) {
    match runs.last_mut() {
        Some(last)
            if last.signature == run.signature
                && last.rows().end == run.row
                && last.is_shared() == run.is_shared()
                && last.is_decided() == run.is_decided() =>
        {
            last.grow();
        }
        _ => runs.push(run),
    }
}

/// The postings under construction.
#[derive(Default)]
struct Postings {
    exists: Vec<(TrieNode, Run)>,
    probes: Vec<(u64, Run)>,
    ranges: Vec<(TrieNode, u32, f64, Run)>,
    always: Vec<Run>,
}

impl Postings {
    fn add(&mut self, key: Key, run: Run) {
        match key {
            Key::Exists(node) => self.exists.push((node, run)),
            Key::Probe(key) => self.probes.push((key, run)),
            Key::Range(node, op, value) => self.ranges.push((node, op, value, run)),
        }
    }

    fn write(mut self, node_count: usize, required: &[u64], writer: &mut ImageWriter) {
        // Stable: rows were added in ascending order and must stay so within a posting.
        self.exists.sort_by_key(|(node, _)| *node);
        self.probes.sort_by_key(|(key, _)| *key);
        self.ranges.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)).then(a.2.total_cmp(&b.2)));
        let mut node_postings = vec![NO_POSTING; node_count];
        let mut node_flags = vec![0u8; node_count];
        let mut starts: Vec<u32> = Vec::new();
        let mut runs: Vec<Run> = Vec::new();
        // Postings are in the order of their rows, see the module.
        let mut groups: Vec<&[(TrieNode, Run)]> = self.exists.chunk_by(|a, b| a.0 == b.0).collect();
        groups.sort_by_key(|group| group[0].1.row);
        for group in groups {
            node_postings[group[0].0 as usize] = starts.len() as u32;
            posting(&mut starts, &mut runs, group.iter().map(|(_, run)| *run));
        }
        // A key that is only required has a posting without runs.
        let existence_count = starts.len();
        let mut probes: Vec<u64> = self.probes.iter().map(|(key, _)| *key).chain(required.iter().copied()).collect();
        probes.sort_unstable();
        probes.dedup();
        let mut groups = self.probes.chunk_by(|a, b| a.0 == b.0).peekable();
        for key in &probes {
            node_flags[(key >> 34) as usize] |= match key >> 32 & 3 {
                0 => flags::STRING_EQUAL,
                1 => flags::NUMBER_EQUAL,
                _ => flags::PATTERN,
            };
            let group = groups.next_if(|group| group[0].0 == *key).unwrap_or_default();
            posting(&mut starts, &mut runs, group.iter().map(|(_, run)| *run));
        }
        let requirements: Vec<Posting> = required
            .iter()
            .map(|key| (existence_count + probes.binary_search(key).expect("collected above")) as Posting)
            .collect();
        writer.add(Section::Requirements, &requirements);
        starts.push(runs.len() as u32);
        let mut lists = Vec::new();
        let mut at = 0;
        for group in self.ranges.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let (node, op, _, _) = group[0];
            lists.push(RangeList { node, op, start: at, end: at + group.len() as u32 });
            node_flags[node as usize] |= flags::RANGE;
            at += group.len() as u32;
        }
        writer.add(Section::NodePostings, &node_postings);
        writer.add(Section::NodeFlags, &node_flags);
        writer.add(Section::Probes, &probes);
        writer.add(Section::PostingRuns, &starts);
        writer.add(Section::Runs, &runs);
        writer.add(Section::Ranges, &lists);
        writer.add(Section::RangeValues, &self.ranges.iter().map(|entry| entry.2).collect::<Vec<f64>>());
        writer.add(Section::RangeRuns, &self.ranges.iter().map(|entry| entry.3).collect::<Vec<Run>>());
        writer.add(Section::AlwaysRuns, &self.always);
    }
}

fn posting(starts: &mut Vec<u32>, runs: &mut Vec<Run>, members: impl Iterator<Item = Run>) {
    let first = runs.len();
    starts.push(first as u32);
    for run in members {
        // Runs never grow across postings.
        if runs.len() > first { append(runs, run) } else { runs.push(run) }
    }
}
