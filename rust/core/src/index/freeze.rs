//! Freezes a builder: chooses access predicates, lays out rows and postings, writes the image.
//!
//! Rows of a signature are ordered by where they hang and by their guards, so that the rows of one posting are
//! neighbours: their columns can be scanned and their subscriptions handed out as ranges. Signatures are ordered by
//! the last steps of their access paths, because what one state of the path automaton accepts has its last steps in
//! common, and then by path and constant: a document touches a few stretches of memory instead of a row here and there.

use super::access::{Atom, AtomTest};
use super::builder::{BuildRow, SegmentBuilder};
use super::choice::Choice;
use super::columns::{self, Comparand, Value};
use super::image::{ImageWriter, Section};
use super::parallel::both;
use super::postings::{Hanger, Keys, Meeting, NO_MEETING, Postings, existence_key};
use super::rows::SignatureRows;
use super::segment::{
    ANY_STREAM, HALVES, NO_ACCESS, NO_ZONES, PLAIN, Segment, SignatureRecord, write_symbols, write_texts,
};
use super::zones::{self, MIN_ZONED_ROWS, ZONE_ROWS};
use crate::paths::{Ending, TrieBuilder, TrieNode};
use crate::predicates::{ProbeKind, RangeList, Run, hash_slots, probe_key};
use crate::xpath::ast::{Cell, NONE};
use smallvec::SmallVec;

/// How access and guards meet, with the paths as trie nodes.
struct PlannedMeeting {
    anchors: Vec<TrieNode>,
    places: Vec<TrieNode>,
    joins: Vec<u32>,
}

/// How the rows of one signature are reached, with the paths as trie nodes.
struct Plan {
    choice: u16,
    exact: bool,
    atoms: SmallVec<[(TrieNode, AtomTest); 1]>,
    guards: Vec<(TrieNode, AtomTest)>,
    meeting: Option<PlannedMeeting>,
}

impl Plan {
    fn new(choice: Choice, trie: &mut TrieBuilder) -> Plan {
        let meeting = choice.meeting.map(|meeting| PlannedMeeting {
            anchors: meeting.anchors.iter().map(|path| trie.insert(path)).collect(),
            places: meeting.places.iter().map(|path| trie.insert(path)).collect(),
            joins: meeting.joins,
        });
        let mut place = |atom: Atom| (trie.insert(&atom.path), atom.test);
        Plan {
            choice: choice.number,
            exact: choice.exact,
            meeting,
            atoms: choice.atoms.into_iter().map(&mut place).collect(),
            guards: choice.guards.into_iter().map(&mut place).collect(),
        }
    }
}

/// A row and what puts it in order.
#[derive(Clone)]
struct Placed {
    hanger: Hanger,
    guards: Keys,
    row: u32,
}

impl Placed {
    fn hangs_with(&self, other: &Placed) -> bool {
        (self.hanger, &self.guards) == (other.hanger, &other.guards)
    }
}

/// Fewer rows, or subscriptions, are left to one thread.
const MIN_PARALLEL_ROWS: usize = 1 << 14;

/// Puts rows in order.
fn sort(placed: &mut [Placed]) {
    let order = |a: &Placed, b: &Placed| (a.hanger, &a.guards, a.row).cmp(&(b.hanger, &b.guards, b.row));
    if placed.len() < MIN_PARALLEL_ROWS {
        return placed.sort_unstable_by(order);
    }
    let (first, second) = placed.split_at_mut(placed.len() / 2);
    both(true, || first.sort_unstable_by(order), || second.sort_unstable_by(order));
    // The stable sort finds two ordered runs and only merges them.
    placed.sort_by(order);
}

/// Tables about the rows, in their final order.
#[derive(Default)]
struct Tables {
    records: Vec<SignatureRecord>,
    columns: Vec<u64>,
    zones: Vec<f32>,
    postings: Postings,
    /// Final number of each row of the builder.
    numbers: Vec<u32>,
    row_count: u32,
}

impl SegmentBuilder {
    /// The finished segment.
    pub fn freeze(mut self) -> Segment {
        let by_signature = self.rows_by_signature();
        let mut trie = TrieBuilder::default();
        let mut plans: Vec<Plan> =
            self.choices(&by_signature).into_iter().map(|choice| Plan::new(choice, &mut trie)).collect();
        let (flat, numbers) = trie.freeze();
        for plan in &mut plans {
            let atoms = plan.atoms.iter_mut().chain(&mut plan.guards).map(|(node, _)| node);
            let meeting = plan.meeting.iter_mut();
            for node in atoms.chain(meeting.flat_map(|meeting| meeting.anchors.iter_mut().chain(&mut meeting.places))) {
                *node = numbers[*node as usize];
            }
        }
        let endings = flat.endings();
        let equal_numbers = self.equality_numbers(&by_signature, &plans);
        let mut tables = self.tables(&plans, &by_signature, &equal_numbers, &endings);
        let cells = self.cells_in_order(&mut tables.records);
        let strings = std::mem::take(&mut self.strings);

        let is_large = self.subscription_rows.len() >= MIN_PARALLEL_ROWS;
        let postings = std::mem::take(&mut tables.postings);
        let by_constant = || {
            let mut writer = ImageWriter::default();
            let (bytes, offsets, slots) = strings.freeze();
            let longest = offsets.windows(2).map(|pair| u64::from(pair[1] - pair[0])).max().unwrap_or(0);
            writer.add(Section::Facts, vec![longest]);
            writer.add(Section::StringBytes, bytes);
            writer.add(Section::StringOffsets, offsets);
            writer.add(Section::StringSlots, slots);
            postings.write(&endings, &mut writer);
            writer
        };
        let by_subscription = || {
            let mut writer = ImageWriter::default();
            self.write_subscriptions(&tables.numbers, tables.row_count, &mut writer);
            writer
        };
        let (mut writer, by_subscription) = both(is_large, by_constant, by_subscription);
        writer.append(by_subscription);
        writer.add(Section::Numbers, equal_numbers);
        writer.add(Section::TrieStarts, flat.starts);
        writer.add(Section::TrieEdges, flat.edges);
        writer.add(Section::Signatures, tables.records);
        writer.add(Section::Columns, tables.columns);
        writer.add(Section::Zones, tables.zones);
        writer.add(Section::Symbols, write_symbols(&self.symbols));
        writer.add(Section::Streams, write_texts(self.streams.iter().map(|name| &**name)));
        writer.add(Section::Cells, cells);
        Segment::new(writer.finish())
    }

    /// Puts signatures and rows in order and fills everything that follows it.
    fn tables(&self, plans: &[Plan], by_signature: &SignatureRows, numbers: &[f64], endings: &[Ending]) -> Tables {
        let mut order: Vec<usize> = (0..plans.len()).filter(|number| !by_signature.rows(*number).is_empty()).collect();
        order.sort_by_cached_key(|number| {
            let plan = &plans[*number];
            let first = self.rows[by_signature.rows(*number)[0] as usize];
            plan.atoms.first().map(|atom| (endings[atom.0 as usize], self.hanger(first, atom, numbers).place()))
        });
        let mut tables = Tables {
            records: Vec::with_capacity(order.len() + 1),
            columns: Vec::with_capacity(self.values.len() / 2),
            numbers: vec![0; self.rows.len()],
            ..Tables::default()
        };
        let (mut placed, mut columns): (Vec<Placed>, Vec<Value>) = Default::default();
        for (number, old) in order.into_iter().enumerate() {
            let plan = &plans[old];
            let signature = &self.signatures[old];
            placed.clear();
            placed.extend(by_signature.rows(old).iter().map(|row| self.placed(*row, plan, numbers)));
            sort(&mut placed);
            let zoned = placed.len() >= MIN_ZONED_ROWS && signature.slots > 0;
            if zoned {
                self.arrange_all(&mut placed, signature.slots);
            }
            columns.clear();
            columns.resize(placed.len() * signature.slots as usize, Value::number(0.0));
            // Row by row: a row's constants lie together in the builder.
            for (at, row) in placed.iter().enumerate() {
                for slot in 0..signature.slots {
                    columns[slot as usize * placed.len() + at] = self.value(row.row, slot);
                }
            }
            let column = tables.columns.len() as u32;
            let are_halves = columns::write(&columns, &mut tables.columns);
            tables.records.push(SignatureRecord {
                row: tables.row_count,
                column,
                root: signature.root,
                slots: signature.slots,
                zone: if zoned { tables.zones.len() as u32 } else { NO_ZONES },
                choice: plan.choice,
                marks: if signature.plain { PLAIN } else { 0 } | if are_halves { HALVES } else { 0 },
            });
            self.hang(&placed, number as u32, plan, numbers, &mut tables);
            if zoned {
                for column in columns.chunks(placed.len()) {
                    zones::write(column, &mut tables.zones);
                }
            }
            tables.row_count += placed.len() as u32;
        }
        tables.records.push(SignatureRecord {
            row: tables.row_count,
            column: tables.columns.len() as u32,
            root: 0,
            slots: 0,
            zone: NO_ZONES,
            choice: NO_ACCESS,
            marks: 0,
        });
        tables
    }

    /// The cells in the order in which signatures use them first, children before their parents; roots follow.
    fn cells_in_order(&self, records: &mut [SignatureRecord]) -> Vec<Cell> {
        let mut cells: Vec<Cell> = Vec::with_capacity(self.cells.len());
        let mut numbers = vec![NONE; self.cells.len()];
        let mut open = Vec::new();
        let Some((_, signatures)) = records.split_last_mut() else { return cells };
        for signature in signatures {
            open.push(signature.root);
            while let Some(id) = open.last().copied() {
                let before = open.len();
                let cell = self.cells[id as usize];
                if numbers[id as usize] == NONE {
                    cell.map_references(|reference| {
                        if numbers[reference as usize] == NONE {
                            open.push(reference);
                        }
                        reference
                    });
                }
                if open.len() == before {
                    open.pop();
                    if numbers[id as usize] == NONE {
                        numbers[id as usize] = cells.len() as u32;
                        cells.push(cell.map_references(|reference| numbers[reference as usize]));
                    }
                }
            }
            signature.root = numbers[signature.root as usize];
        }
        cells
    }

    fn placed(&self, row: u32, plan: &Plan, numbers: &[f64]) -> Placed {
        let own = self.rows[row as usize];
        let hanger = plan.atoms.first().map_or(Hanger::ALWAYS, |atom| self.hanger(own, atom, numbers));
        let guards = plan.guards.iter().map(|atom| self.hanger(own, atom, numbers).key).collect();
        Placed { hanger, guards, row }
    }

    /// Brings rows that hang together in an order in which those with near constants are neighbours.
    fn arrange_all(&self, placed: &mut [Placed], slots: u32) {
        let slots: SmallVec<[u32; 8]> =
            (0..slots).filter(|slot| self.value(placed[0].row, *slot).as_string().is_none()).collect();
        if slots.is_empty() {
            return;
        }
        let mut middle = if placed.len() < MIN_PARALLEL_ROWS { placed.len() } else { placed.len() / 2 };
        while middle < placed.len() && placed[middle].hangs_with(&placed[middle - 1]) {
            middle += 1;
        }
        let (first, second) = placed.split_at_mut(middle);
        both(!second.is_empty(), || self.arrange(first, 0, &slots), || self.arrange(second, middle, &slots));
    }

    /// The same for some of a signature's rows, the first of which is number `offset`.
    fn arrange(&self, placed: &mut [Placed], offset: usize, slots: &[u32]) {
        let mut points = Vec::new();
        let mut start = 0;
        while start < placed.len() {
            let first = &placed[start];
            let end = start + placed[start..].iter().take_while(|row| row.hangs_with(first)).count();
            let group = &mut placed[start..end];
            if group.len() > ZONE_ROWS {
                points.clear();
                points.extend(
                    group.iter().flat_map(|row| slots.iter().map(|slot| self.value(row.row, *slot).as_number())),
                );
                let order = zones::arrange(&points, slots.len(), offset + start);
                let arranged: Vec<Placed> = order.into_iter().map(|at| group[at as usize].clone()).collect();
                group.clone_from_slice(&arranged);
            }
            start = end;
        }
    }

    /// Adds the rows of a signature to the postings they hang on.
    fn hang(&self, placed: &[Placed], signature: u32, plan: &Plan, numbers: &[f64], tables: &mut Tables) {
        let shared = plan.atoms.len() > 1;
        let keys = |nodes: &[TrieNode]| nodes.iter().map(|node| existence_key(*node)).collect();
        let meeting = plan.meeting.as_ref().map_or(NO_MEETING, |meeting| {
            tables.postings.meeting(Meeting {
                anchors: keys(&meeting.anchors),
                places: keys(&meeting.places),
                joins: meeting.joins.clone(),
            })
        });
        for (at, row) in placed.iter().enumerate() {
            let number = tables.row_count + at as u32;
            tables.numbers[row.row as usize] = number;
            let run = Run::new(number, 1, signature, shared, plan.exact, plan.meeting.is_some());
            tables.postings.add(row.hanger, run, &row.guards, meeting);
            for atom in plan.atoms.iter().skip(1) {
                let hanger = self.hanger(self.rows[row.row as usize], atom, numbers);
                tables.postings.add(hanger, run, &row.guards, meeting);
            }
        }
    }

    /// The distinct constants of number equalities, ascending.
    fn equality_numbers(&self, by_signature: &SignatureRows, plans: &[Plan]) -> Vec<f64> {
        let mut numbers = Vec::new();
        for (signature, plan) in plans.iter().enumerate() {
            let rows = by_signature.rows(signature);
            for (_, test) in plan.atoms.iter().chain(&plan.guards) {
                if let AtomTest::NumberEqual(slot) = test {
                    numbers.extend(rows.iter().map(|row| self.value(*row, *slot).as_number()));
                }
            }
        }
        numbers.sort_unstable_by(f64::total_cmp);
        numbers.dedup();
        numbers
    }

    fn hanger(&self, row: BuildRow, (node, test): &(TrieNode, AtomTest), numbers: &[f64]) -> Hanger {
        let value = |slot: u32| self.values[(row.values + slot) as usize];
        let string = |slot: u32| value(slot).as_string().expect("string slots hold strings");
        let probe = |kind, constant| Hanger::probe(probe_key(*node, kind, constant));
        match *test {
            AtomTest::Exists => Hanger::probe(existence_key(*node)),
            AtomTest::StringEqual(slot) => probe(ProbeKind::StringEqual, string(slot)),
            AtomTest::Contains(slot) => probe(ProbeKind::Contains, string(slot)),
            AtomTest::StartsWith(slot) => probe(ProbeKind::StartsWith, string(slot)),
            AtomTest::NumberEqual(slot) => {
                let number = value(slot).as_number();
                let at = numbers.binary_search_by(|known| known.total_cmp(&number)).expect("collected before");
                probe(ProbeKind::NumberEqual, at as u32)
            }
            AtomTest::Range(op, slot) => Hanger::range(*node, RangeList::number(op), value(slot).as_number()),
        }
    }

    /// Numbers the live subscriptions row by row and writes everything about them.
    fn write_subscriptions(&self, numbers: &[u32], row_count: u32, writer: &mut ImageWriter) {
        // A counting sort by row: stable, and linear however many there are.
        let mut starts = vec![0u32; row_count as usize + 1];
        for row in &self.subscription_rows {
            starts[numbers[*row as usize] as usize + 1] += 1;
        }
        for at in 0..row_count as usize {
            starts[at + 1] += starts[at];
        }
        let mut next = starts.clone();
        let mut order = vec![0u32; self.subscription_rows.len()];
        for (number, row) in self.subscription_rows.iter().enumerate() {
            let place = &mut next[numbers[*row as usize] as usize];
            order[*place as usize] = number as u32;
            *place += 1;
        }
        let mut bytes = Vec::with_capacity(self.ids.byte_count());
        let mut offsets = Vec::with_capacity(order.len() + 1);
        offsets.push(0u32);
        for number in &order {
            bytes.extend_from_slice(self.ids.bytes_of(*number));
            offsets.push(bytes.len() as u32);
        }
        writer.add(Section::RowSubscriptions, starts);
        writer.add(Section::IdSlots, hash_slots(&bytes, &offsets));
        writer.add(Section::IdBytes, bytes);
        writer.add(Section::IdOffsets, offsets);
        if self.subscription_streams.iter().any(|stream| *stream != ANY_STREAM) {
            let streams: Vec<u32> = order.iter().map(|number| self.subscription_streams[*number as usize]).collect();
            writer.add(Section::SubscriptionStreams, streams);
        }
    }
}
