//! Builds a segment: parsed subscriptions in, an image out.
//!
//! Equal cells are stored once, so a whole expression is the number of its root: subscriptions with one root share a
//! signature, with equal constants too a row. What matching reads of many signatures is therefore a small set of cells
//! that stays in the processor's caches. Everything is kept in flat arrays while building, too, so that a million
//! subscriptions need no million allocations.

use super::access::{constant_class, depends_on_constants};
use super::columns::{Comparand, Value};
use super::error::CapacityError;
use super::segment::{ANY_STREAM, Segment};
use crate::predicates::{Run, StringPool};
use crate::xpath::ast::{Cell, Constant, ConstantRef, ExprId, Query};
use crate::xpath::semantics::has_positional_predicate;
use crate::xpath::symbols::{Symbol, SymbolTable, Symbols};
use foldhash::fast::FixedState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use std::hash::BuildHasher;

/// A signature under construction.
#[derive(Debug)]
pub(super) struct BuildSignature {
    pub(super) root: ExprId,
    pub(super) slots: u32,
    /// See [`constant_class`]; one bit per slot, 0 where it does not matter.
    class: u64,
    /// See [`Signature::plain`](super::segment::Signature::plain).
    pub(super) plain: bool,
}

/// An expression without its constants.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    root: ExprId,
    plain: bool,
    /// Whether constants of different [`constant_class`] must not share a signature.
    sensitive: bool,
}

/// What one constant adds to a class. Slots beyond 64 share bits: rows that differ there only fall into more
/// signatures than needed.
fn class_bit(constant: ConstantRef<'_>, slot: usize) -> u64 {
    constant_class(constant).rotate_left(slot as u32 % 64)
}

/// A row under construction: its signature and where its constants start.
#[derive(Clone, Copy, Debug)]
pub(super) struct BuildRow {
    pub(super) signature: u32,
    pub(super) values: u32,
}

/// Collects subscriptions for one segment.
#[derive(Debug, Default)]
pub struct SegmentBuilder {
    pub(super) symbols: Symbols,
    pub(super) strings: StringPool,
    pub(super) cells: Vec<Cell>,
    pub(super) signatures: Vec<BuildSignature>,
    pub(super) rows: Vec<BuildRow>,
    pub(super) values: Vec<Value>,
    pub(super) ids: StringPool,
    /// Row of each subscription.
    pub(super) subscription_rows: Vec<u32>,
    pub(super) subscription_streams: Vec<u32>,
    pub(super) streams: Vec<Box<str>>,
    by_cell: HashTable<u32>,
    by_root: HashTable<u32>,
    by_constants: HashTable<u32>,
    scratch: Vec<Value>,
    /// Numbers of an expression's cells.
    numbers: Vec<u32>,
    hasher: FixedState,
}

/// The hash of a row's signature and constants.
fn hash_of(row: u32, values: &[Value], rows: &[BuildRow], signatures: &[BuildSignature], hasher: &FixedState) -> u64 {
    let found = rows[row as usize];
    let slots = signatures[found.signature as usize].slots;
    hasher.hash_one((found.signature, &values[found.values as usize..(found.values + slots) as usize]))
}

/// Larger expressions go straight to the exact evaluator, which does not recurse over steps.
const MAX_PLAIN_CELLS: usize = 512;

impl SegmentBuilder {
    /// The table in which the expressions' name tests are numbered.
    pub fn symbols(&mut self) -> &mut Symbols {
        &mut self.symbols
    }

    /// Number of subscriptions, replaced ones included.
    pub fn len(&self) -> usize {
        self.subscription_rows.len()
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.subscription_rows.is_empty()
    }

    /// Makes room for that many more subscriptions.
    pub(super) fn reserve(&mut self, count: usize) {
        self.subscription_rows.reserve(count);
        self.subscription_streams.reserve(count);
        self.ids.reserve(count);
        self.rows.reserve(count);
        let (all, rows, signatures, hasher) = (&self.values, &self.rows, &self.signatures, &self.hasher);
        self.by_constants.reserve(count, |row| hash_of(*row, all, rows, signatures, hasher));
    }

    /// Adds a subscription; one with the same id is replaced.
    ///
    /// # Errors
    /// If a segment cannot number that many.
    pub fn insert(
        &mut self,
        id: &str,
        stream: Option<&str>,
        cells: &[Cell],
        root: ExprId,
        constants: &[Constant],
    ) -> Result<(), CapacityError> {
        let form = self.form(&Query { cells, root });
        self.insert_form(id, stream, form, constants.iter().map(Constant::as_ref))
    }

    /// Adds a subscription of a known form.
    pub(super) fn insert_form<'c>(
        &mut self,
        id: &str,
        stream: Option<&str>,
        form: Form,
        constants: impl Iterator<Item = ConstantRef<'c>>,
    ) -> Result<(), CapacityError> {
        let mut values = std::mem::take(&mut self.scratch);
        values.clear();
        let mut class = 0;
        for (slot, constant) in constants.enumerate() {
            if form.sensitive {
                class ^= class_bit(constant, slot);
            }
            values.push(match constant {
                ConstantRef::String(text) => Value::string(self.strings.intern(text)),
                ConstantRef::Number(number) => Value::number(number),
            });
        }
        let signature = self.signature(form, values.len() as u32, class);
        let row = self.row(signature, &values);
        self.scratch = values;
        let stream = stream.map_or(ANY_STREAM, |name| self.stream(name));
        self.subscription(id, stream, row);
        self.check_capacity()
    }

    /// Adds the subscriptions of a segment for which `keep` holds, without parsing anything.
    ///
    /// # Errors
    /// If a segment cannot number that many.
    pub fn insert_segment(&mut self, from: &Segment, keep: impl Fn(u32) -> bool) -> Result<(), CapacityError> {
        let symbol_map: Vec<Symbol> = (0..from.symbols().len() as u32)
            .map(|symbol| self.symbols.intern(from.symbols().resolve(symbol)))
            .collect();
        let stream_map: Vec<u32> = from.streams().iter().map(|name| self.stream(name)).collect();
        let mut string_map = vec![u32::MAX; from.strings().len()];
        let mut cells = Vec::new();
        let mut values: Vec<Value> = Vec::new();
        let view = from.view();
        for number in 0..view.signature_count() {
            let signature = view.signature(number);
            let mut own = None;
            for row in signature.rows.clone() {
                let mut subscriptions =
                    view.subscriptions_of(row).filter(|subscription| keep(*subscription)).peekable();
                if subscriptions.peek().is_none() {
                    continue;
                }
                let own = *own.get_or_insert_with(|| {
                    let root = view.query(&signature).extract(&mut cells);
                    for cell in &mut cells {
                        *cell = cell.map_symbol(|symbol| symbol_map[symbol as usize]);
                    }
                    let form = self.form(&Query { cells: &cells, root });
                    let constants = (0..signature.slots).map(|slot| view.constant(&signature, row, slot));
                    let bits = constants.enumerate().map(|(slot, constant)| class_bit(constant, slot));
                    let class = if form.sensitive { bits.fold(0, |class, bit| class ^ bit) } else { 0 };
                    self.signature(form, signature.slots, class)
                });
                values.clear();
                for slot in 0..signature.slots {
                    let value = view.value(&signature, row, slot);
                    values.push(match value.as_string() {
                        Some(string) => {
                            let known = &mut string_map[string as usize];
                            if *known == u32::MAX {
                                *known = self.strings.intern(from.strings().get(string));
                            }
                            Value::string(*known)
                        }
                        None => value,
                    });
                }
                let row = self.row(own, &values);
                for subscription in subscriptions {
                    let stream = from.stream_of(subscription);
                    let stream = if stream == ANY_STREAM { ANY_STREAM } else { stream_map[stream as usize - 1] };
                    self.subscription(from.ids().get(subscription), stream, row);
                }
            }
        }
        self.check_capacity()
    }

    /// The number of a cell whose references are numbers of this builder.
    fn cell(&mut self, cell: Cell) -> u32 {
        let hash = self.hasher.hash_one(cell);
        let (cells, hasher) = (&self.cells, &self.hasher);
        let entry = self.by_cell.entry(
            hash,
            |number| cells[*number as usize] == cell,
            |number| hasher.hash_one(cells[*number as usize]),
        );
        match entry {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(place) => {
                let number = self.cells.len() as u32;
                place.insert(number);
                self.cells.push(cell);
                number
            }
        }
    }

    /// Stores an expression without its constants.
    pub(super) fn form(&mut self, query: &Query<'_>) -> Form {
        let mut numbers = std::mem::take(&mut self.numbers);
        numbers.clear();
        for cell in query.cells {
            let number = self.cell(cell.map_references(|reference| numbers[reference as usize]));
            numbers.push(number);
        }
        let root = numbers[query.root as usize];
        self.numbers = numbers;
        let plain = query.cells.len() <= MAX_PLAIN_CELLS && !has_positional_predicate(*query);
        Form { root, plain, sensitive: depends_on_constants(query) }
    }

    fn signature(&mut self, form: Form, slots: u32, class: u64) -> u32 {
        let Form { root, plain, .. } = form;
        let (signatures, hasher) = (&self.signatures, &self.hasher);
        let is_same = |number: &u32| {
            let known = &signatures[*number as usize];
            (known.root, known.slots, known.class) == (root, slots, class)
        };
        let hash = |number: &u32| {
            let known = &signatures[*number as usize];
            hasher.hash_one((known.root, known.slots, known.class))
        };
        match self.by_root.entry(hasher.hash_one((root, slots, class)), is_same, hash) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(place) => {
                let number = self.signatures.len() as u32;
                place.insert(number);
                self.signatures.push(BuildSignature { root, slots, class, plain });
                number
            }
        }
    }

    fn row(&mut self, signature: u32, values: &[Value]) -> u32 {
        let hash = self.hasher.hash_one((signature, values));
        let (all, rows) = (&self.values, &self.rows);
        let values_of = |row: BuildRow| &all[row.values as usize..row.values as usize + values.len()];
        if let Some(row) = self.by_constants.find(hash, |row| {
            let found = rows[*row as usize];
            found.signature == signature && values_of(found) == values
        }) {
            return *row;
        }
        let row = self.rows.len() as u32;
        self.rows.push(BuildRow { signature, values: self.values.len() as u32 });
        self.values.extend_from_slice(values);
        let (all, rows, signatures, hasher) = (&self.values, &self.rows, &self.signatures, &self.hasher);
        self.by_constants.insert_unique(hash, row, |row| hash_of(*row, all, rows, signatures, hasher));
        row
    }

    fn stream(&mut self, name: &str) -> u32 {
        // A population names few streams; number 0 is "every stream".
        let at = self.streams.iter().position(|known| &**known == name).unwrap_or_else(|| {
            self.streams.push(name.into());
            self.streams.len() - 1
        });
        at as u32 + 1
    }

    fn subscription(&mut self, id: &str, stream: u32, row: u32) {
        let number = self.ids.intern(id) as usize;
        if number == self.subscription_rows.len() {
            self.subscription_rows.push(row);
            self.subscription_streams.push(stream);
        } else {
            self.subscription_rows[number] = row;
            self.subscription_streams[number] = stream;
        }
    }

    fn check_capacity(&self) -> Result<(), CapacityError> {
        let limits = [
            ("number of rows", self.rows.len(), Run::MAX_ROWS),
            ("bytes of string constants", self.strings.byte_count(), u32::MAX as usize),
            ("bytes of subscription ids", self.ids.byte_count(), u32::MAX as usize),
            ("number of constants", self.values.len(), u32::MAX as usize),
            ("number of expression cells", self.cells.len(), u32::MAX as usize),
        ];
        match limits.into_iter().find(|(_, count, limit)| count > limit) {
            Some((what, _, limit)) => Err(CapacityError { what, limit: limit as u64 }),
            None => Ok(()),
        }
    }
}
