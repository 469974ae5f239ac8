//! The state: what was published and may still join, and what a new document joins with.

use super::frequent::{FREQUENT_BYTES, Frequent};
use super::parts::SourceId;
use super::population::Population;
use super::proof::Given;
use super::sets::{Classes, Decisions};
use super::slab::Slab;
use super::unit::{Cell, DocumentEntry, DocumentId, Head, NOT_POSTED, Part, Unit};
use super::values::{Posting, UnitId, ValueId, Values};
use super::witnesses::{Binding, RootText, UnitWitness};
use crate::xpath::evaluate::EvaluateError;
use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashTable};
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::hash::BuildHasher;
use std::sync::Arc;

/// Settings of a state.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How far a timestamp may lie behind the largest one seen, in microseconds.
    pub lateness_us: i64,
    /// What the state may take, in bytes.
    pub state_bytes: usize,
    /// What remembered decisions may take, in bytes.
    pub memory_bytes: usize,
    /// Whether results are made: units keep the XML text of their roots.
    pub results: bool,
    /// The most that proving one query on one pair of units may cost.
    pub cost_limit: u64,
}

/// Whether a document is heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It is new, and in time.
    Fresh,
    /// Stream, id and timestamp have been seen before.
    Repetition,
    /// Its timestamp is before the watermark, which this is.
    Late(i64),
}

/// A document taken apart.
#[derive(Debug)]
pub struct Arrived<'a> {
    /// Its stream.
    pub stream: Option<Arc<str>>,
    /// Its id.
    pub id: Arc<str>,
    /// Its timestamp, in microseconds.
    pub time: i64,
    /// The version of the population by which it was taken apart.
    pub version: u64,
    /// Its units.
    pub units: Vec<UnitWitness<'a>>,
}

impl Arrived<'_> {
    /// What a repetition has in common with it.
    fn key(&self) -> (i64, Name) {
        (self.time, (self.stream.clone(), self.id.clone()))
    }
}

/// The state has no room for a document; nothing of it was kept or joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the state of joins would take {needed} bytes, more than state_bytes = {limit}; shorter windows, or fewer, need less"
)]
pub struct StateFull {
    /// What it would take.
    pub needed: usize,
    /// What it may take.
    pub limit: usize,
}

/// A document of something found.
#[derive(Clone, Debug)]
pub struct FoundDocument {
    /// Its stream.
    pub stream: Option<Arc<str>>,
    /// Its id.
    pub id: Arc<str>,
    /// Its timestamp.
    pub time: i64,
    /// The root's node.
    pub root: u32,
    /// The root's XML text.
    pub text: Option<RootText>,
}

/// Nodes that satisfy a query.
#[derive(Clone, Debug)]
pub struct Found {
    /// The query.
    pub query: u32,
    /// The oldest version by which one of the documents was taken apart.
    pub version: u64,
    /// A document for each block.
    pub documents: SmallVec<[FoundDocument; 2]>,
    /// The nodes that the query gives out.
    pub nodes: Given,
}

/// What a document joins with.
#[derive(Debug, Default)]
pub struct Joined {
    /// Whether results are only counted, where they need no more.
    pub counts_only: bool,
    /// Pairs of units that satisfy a query, as far as they were counted.
    pub pairs: u64,
    /// Results that were counted: different ones for each different query.
    pub count: u64,
    /// Results that were not only counted.
    pub found: Vec<Found>,
    /// Queries that cost too much.
    pub failures: Vec<(u32, EvaluateError)>,
}

/// Counters of a state.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    /// Documents that were heard.
    pub documents: u64,
    /// Late ones.
    pub late: u64,
    /// Repetitions.
    pub repetitions: u64,
    /// Units that expired.
    pub expired: u64,
    /// Pairs of units that had a value in common which an edge compares.
    pub pairs: u64,
    /// Queries that had to be proved on a pair of units.
    pub proofs: u64,
}

/// What a value takes at most besides its text: its entry, a posting, a cell.
const VALUE_BYTES: usize = 128;

type Name = (Option<Arc<str>>, Arc<str>);

/// The state.
#[derive(Debug)]
pub struct State {
    pub(super) settings: Settings,
    pub(super) documents: Slab<DocumentEntry>,
    pub(super) units: Slab<Unit>,
    pub(super) heads: Vec<Head>,
    pub(super) values: Values,
    /// What is counted of values that many units have.
    pub(super) frequent: HashMap<ValueId, Frequent, FixedState>,
    pub(super) classes: Classes,
    pub(super) decisions: Decisions,
    pub(super) stamp: u32,
    pub(super) newest: i64,
    pub(super) counters: Counters,
    expiry: BinaryHeap<Reverse<(i64, UnitId, u64)>>,
    /// Documents that are not late when they come again.
    seen: BTreeSet<(i64, Name)>,
    /// The largest timestamp of a document.
    clock: Option<i64>,
    /// The documents by the hash of their names.
    names: HashTable<DocumentId>,
    serial: u64,
    unit_bytes: usize,
}

impl State {
    /// An empty state.
    pub fn new(settings: Settings) -> State {
        State {
            settings,
            documents: Slab::default(),
            units: Slab::default(),
            heads: Vec::new(),
            values: Values::default(),
            frequent: HashMap::default(),
            classes: Classes::default(),
            decisions: Decisions::default(),
            stamp: 0,
            newest: i64::MIN,
            counters: Counters::default(),
            expiry: BinaryHeap::new(),
            seen: BTreeSet::new(),
            clock: None,
            names: HashTable::new(),
            serial: 0,
            unit_bytes: 0,
        }
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The watermark: documents before it are late. None: there was no document yet.
    pub fn watermark(&self) -> Option<i64> {
        self.clock.map(|clock| clock.saturating_sub(self.settings.lateness_us))
    }

    /// Counters.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// How many documents, units, values and classes are kept.
    pub fn sizes(&self) -> [usize; 4] {
        [self.documents.count(), self.units.count(), self.values.count(), self.classes.count()]
    }

    /// What was decided once and is remembered.
    pub fn decisions(&self) -> &Decisions {
        &self.decisions
    }

    /// What the state takes, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.unit_bytes + self.values.memory_bytes() + self.frequent.len() * FREQUENT_BYTES
    }

    /// Whether a document is to be heard; counts those that are not.
    pub fn admit(&mut self, arrived: &Arrived<'_>) -> Admission {
        if let Some(watermark) = self.watermark()
            && arrived.time < watermark
        {
            self.counters.late += 1;
            return Admission::Late(watermark);
        }
        if self.seen.contains(&arrived.key()) {
            self.counters.repetitions += 1;
            return Admission::Repetition;
        }
        Admission::Fresh
    }

    /// Ends a batch of documents whose largest timestamp is this: moves the watermark, and lets go what it passed.
    pub fn advance(&mut self, time: i64) {
        if self.clock.is_some_and(|clock| clock >= time) {
            return;
        }
        self.clock = Some(time);
        let Some(watermark) = self.watermark() else { return };
        self.seen = self.seen.split_off(&(watermark, (None, Arc::from(""))));
        while let Some(Reverse((until, unit, serial))) = self.expiry.peek().copied() {
            if until >= watermark {
                break;
            }
            self.expiry.pop();
            if self.units.get(unit).is_some_and(|kept| kept.serial == serial) {
                self.counters.expired += 1;
                self.expire(unit);
            }
        }
    }

    /// The largest timestamp of a document.
    pub(super) fn clock(&self) -> Option<i64> {
        self.clock
    }

    /// Documents that are not late when they come again: timestamp, stream and id.
    pub(super) fn seen(&self) -> impl Iterator<Item = (i64, Option<&str>, &str)> {
        self.seen.iter().map(|(time, (stream, id))| (*time, stream.as_deref(), &**id))
    }

    /// The units, oldest first, with the last watermark at which they are needed (`i64::MAX`: always).
    pub(super) fn kept(&self) -> impl Iterator<Item = (i64, &Unit)> {
        let ends: HashMap<u64, i64, FixedState> =
            self.expiry.iter().map(|Reverse((until, _, serial))| (*serial, *until)).collect();
        let mut units: Vec<&Unit> = self.units.iter().map(|(_, unit)| unit).collect();
        units.sort_unstable_by_key(|unit| unit.serial);
        units.into_iter().map(move |unit| (ends.get(&unit.serial).copied().unwrap_or(i64::MAX), unit))
    }

    /// Takes over the clock and what was seen of another state.
    pub(super) fn start(&mut self, clock: Option<i64>, seen: Vec<(i64, Option<Arc<str>>, Arc<str>)>) {
        self.clock = clock;
        self.seen = seen.into_iter().map(|(time, stream, id)| (time, (stream, id))).collect();
    }

    /// A unit of another state.
    #[allow(clippy::too_many_arguments)] // what a unit is
    pub(super) fn restored(
        &mut self,
        population: &Population,
        source: SourceId,
        version: u64,
        time: i64,
        parts: SmallVec<[Part; 1]>,
        bindings: Vec<Binding>,
        mut cells: Vec<Cell>,
    ) -> Unit {
        cells.sort_unstable_by_key(|cell| (cell.operand, cell.value, cell.binding));
        self.serial += 1;
        Unit {
            source,
            class: self.classes.acquire((source, irregular(population, &bindings))),
            version,
            time,
            serial: self.serial,
            parts,
            bindings: bindings.into(),
            cells: cells.into(),
        }
    }

    /// Makes a unit of what was found in a document. It is not looked at by others before [`State::keep`].
    pub(super) fn unit(
        &mut self,
        population: &Population,
        arrived: &Arrived<'_>,
        witness: &UnitWitness<'_>,
        document: DocumentId,
    ) -> Unit {
        let mut cells: Vec<Cell> = witness
            .values
            .iter()
            .map(|witness| Cell {
                operand: witness.operand,
                binding: witness.binding,
                value: self.values.acquire(&witness.value),
                place: NOT_POSTED,
            })
            .collect();
        cells.sort_unstable_by_key(|cell| (cell.operand, cell.value, cell.binding));
        let part = Part {
            document,
            root: witness.bindings[0].node,
            text: witness.text.clone(),
            name: name_hash(arrived.stream.as_deref(), &arrived.id),
        };
        self.serial += 1;
        Unit {
            source: witness.source,
            class: self.classes.acquire((witness.source, irregular(population, &witness.bindings))),
            version: arrived.version,
            time: arrived.time,
            serial: self.serial,
            parts: SmallVec::from_elem(part, 1),
            bindings: witness.bindings.as_slice().into(),
            cells: cells.into(),
        }
    }

    /// Makes a unit of what a query found.
    pub(super) fn found_unit(
        &mut self,
        source: SourceId,
        parts: SmallVec<[Part; 1]>,
        version: u64,
        time: i64,
        bindings: Vec<Binding>,
        mut cells: Vec<Cell>,
    ) -> Unit {
        cells.iter().for_each(|cell| self.values.share(cell.value));
        cells.sort_unstable_by_key(|cell| (cell.operand, cell.value, cell.binding));
        self.serial += 1;
        Unit {
            source,
            class: self.classes.acquire((source, [].into())),
            version,
            time,
            serial: self.serial,
            parts,
            bindings: bindings.into(),
            cells: cells.into(),
        }
    }

    /// Lets go of a unit that is not kept.
    pub(super) fn discard(&mut self, unit: Unit) {
        unit.cells.iter().for_each(|cell| self.values.release(cell.value));
        self.classes.release(unit.class);
    }

    /// Keeps a unit as long as something may join with it.
    pub(super) fn keep(&mut self, population: &Population, unit: Unit) {
        let parts = population.parts();
        let source = parts.sources.get(unit.source).filter(|source| source.is_kept());
        let until = source.map(|source| source.needed_until(unit.time));
        let passed =
            |until: Option<i64>| until.zip(self.watermark()).is_some_and(|(until, watermark)| until < watermark);
        match until.filter(|until| !passed(*until)) {
            Some(until) => self.keep_until(population, unit, until.unwrap_or(i64::MAX)),
            None => self.discard(unit),
        }
    }

    /// Keeps a unit until the watermark passes a time.
    pub(super) fn keep_until(&mut self, population: &Population, mut unit: Unit, until: i64) {
        let parts = population.parts();
        let (bytes, serial, time) = (unit.memory_bytes(), unit.serial, unit.time);
        let head = Head {
            time,
            version: unit.version,
            class: unit.class,
            stamp: 0,
            edges: 0,
            name: if unit.parts.len() == 1 { unit.parts[0].name } else { 0 },
        };
        unit.parts.iter().for_each(|part| self.documents[part.document].units += 1);
        // The number that it will have is needed for its postings.
        let mut cells = std::mem::take(&mut unit.cells);
        let id = self.units.insert(unit);
        if self.heads.len() <= id as usize {
            self.heads.resize(id as usize + 1, Head::default());
        }
        self.heads[id as usize] = head;
        let mut before = None;
        for cell in &mut cells {
            let is_first = before != Some((cell.operand, cell.value));
            before = Some((cell.operand, cell.value));
            if is_first && parts.operands.get(cell.operand).is_some_and(|operand| operand.is_joined()) {
                cell.place = self.values.post(cell.value, Posting { operand: cell.operand, unit: id });
                self.posted(cell.value, cell.operand, &head);
            }
        }
        self.units[id].cells = cells;
        self.unit_bytes += bytes + size_of::<Head>();
        self.newest = self.newest.max(time);
        if until < i64::MAX {
            self.expiry.push(Reverse((until, id, serial)));
        }
    }

    fn expire(&mut self, id: UnitId) {
        let Some(mut unit) = self.units.remove(id) else { return };
        self.unit_bytes -= unit.memory_bytes() + size_of::<Head>();
        for at in 0..unit.cells.len() {
            let Cell { operand, place, value, .. } = unit.cells[at];
            if place == NOT_POSTED {
                continue;
            }
            let moved = self.values.withdraw(value, place);
            self.withdrawn(value, operand, unit.class);
            let Some(moved) = moved else { continue };
            let cells = if moved.unit == id { &mut unit.cells } else { &mut self.units[moved.unit].cells };
            let from = cells.partition_point(|cell| (cell.operand, cell.value) < (moved.operand, value));
            cells[from].place = place;
        }
        for part in &unit.parts {
            self.forget_part(part.document);
        }
        self.discard(unit);
    }

    fn forget_part(&mut self, document: DocumentId) {
        let entry = &mut self.documents[document];
        entry.units -= 1;
        if entry.units == 0 {
            self.remove(document);
        }
    }

    fn remove(&mut self, document: DocumentId) {
        let Some(entry) = self.documents.remove(document) else { return };
        self.unit_bytes -= entry.memory_bytes();
        let hash = name_hash(entry.stream.as_deref(), &entry.id);
        if let Ok(place) = self.names.find_entry(hash, |other| *other == document) {
            place.remove();
        }
    }

    /// Whether units are kept of another document of the same stream and id as one of a unit, or of the same document.
    pub(super) fn is_kept_under_its_name(&self, unit: &Unit) -> bool {
        unit.parts.iter().any(|part| {
            let own = &self.documents[part.document];
            let is_named =
                |other: &DocumentEntry| other.units > 0 && (&other.stream, &other.id) == (&own.stream, &own.id);
            self.names.find(part.name, |other| is_named(&self.documents[*other])).is_some()
        })
    }

    /// Puts down a document that has units.
    pub(super) fn enter(&mut self, arrived: &Arrived<'_>) -> DocumentId {
        self.enter_named(arrived.stream.clone(), arrived.id.clone(), arrived.time)
    }

    /// Puts down a document by its names.
    pub(super) fn enter_named(&mut self, stream: Option<Arc<str>>, id: Arc<str>, time: i64) -> DocumentId {
        let hash = name_hash(stream.as_deref(), &id);
        let entry = DocumentEntry { stream, id, time, units: 0 };
        self.unit_bytes += entry.memory_bytes();
        let number = self.documents.insert(entry);
        let documents = &self.documents;
        self.names.insert_unique(hash, number, |other| {
            let entry = &documents[*other];
            name_hash(entry.stream.as_deref(), &entry.id)
        });
        number
    }

    /// Lets go of a document none of whose units was kept.
    pub(super) fn leave(&mut self, document: DocumentId) {
        if self.documents[document].units == 0 {
            self.remove(document);
        }
    }

    /// Remembers that a document was heard.
    pub(super) fn note(&mut self, arrived: &Arrived<'_>) {
        self.counters.documents += 1;
        self.seen.insert(arrived.key());
    }

    /// What a document will take, as far as it can be known before it is looked at.
    pub(super) fn estimate(&self, arrived: &Arrived<'_>) -> usize {
        let unit = |unit: &UnitWitness<'_>| {
            let values: usize = unit.values.iter().map(|witness| witness.value.len().min(64) + VALUE_BYTES).sum();
            let text = unit.text.as_ref().map_or(0, |text| text.xml.len());
            size_of::<Unit>() + size_of::<Head>() + values + text + unit.bindings.len() * size_of::<Binding>()
        };
        let units: usize = arrived.units.iter().map(unit).sum();
        units + size_of::<DocumentEntry>() + arrived.id.len() + 16
    }
}

/// A hash of a document's stream and id; never zero.
fn name_hash(stream: Option<&str>, id: &str) -> u64 {
    FixedState::with_seed(0).hash_one((stream, id)).max(1)
}

/// Slots of definitions that have several nodes.
fn irregular(population: &Population, bindings: &[Binding]) -> Box<[u32]> {
    let mut slots: Vec<u32> = bindings
        .windows(2)
        .filter(|pair| pair[0].definition == pair[1].definition)
        .filter(|pair| population.parts().definitions.get(pair[0].definition).is_some())
        .map(|pair| population.parts().definitions[pair[0].definition].slot)
        .collect();
    slots.sort_unstable();
    slots.dedup();
    slots.into()
}
