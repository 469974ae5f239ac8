//! A segment: one immutable part of a population, read from its image in place.

use super::access::{Access, accesses};
use super::columns::{Comparand, Comparands, Value};
use super::error::IndexFormatError;
use super::image::{Image, Section};
use super::zones::Zones;
use crate::paths::{Edge, Trie};
use crate::predicates::{PredicateIndex, Strings};
use crate::xpath::ast::{Cell, ConstantRef, ExprId, Query};
use crate::xpath::symbols::{NameTest, SymbolTable, Symbols};
use bytemuck::{Pod, Zeroable};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

/// The stream number of a subscription that takes documents of every stream.
pub const ANY_STREAM: u32 = 0;

/// A signature as stored; the next record ends what this one starts.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct SignatureRecord {
    pub(super) row: u32,
    pub(super) column: u32,
    pub(super) root: ExprId,
    pub(super) slots: u32,
    /// Where its zones start, or [`NO_ZONES`].
    pub(super) zone: u32,
    /// Which of the offered accesses is used, or [`NO_ACCESS`].
    pub(super) choice: u16,
    /// [`PLAIN`] and [`HALVES`].
    pub(super) marks: u16,
}

/// No predicate of the expression looks at positions and it is of moderate size.
pub(super) const PLAIN: u16 = 1;

/// All constants fit in half the bytes.
pub(super) const HALVES: u16 = 2;

/// No access is used: every document is checked.
pub(super) const NO_ACCESS: u16 = 0xFFFF;

/// There are no zones.
pub(super) const NO_ZONES: u32 = u32::MAX;

/// A signature, spelled out.
#[derive(Clone, Debug)]
pub struct Signature {
    /// Its number.
    pub number: u32,
    /// Its rows.
    pub rows: Range<u32>,
    /// Number of constants per row.
    pub slots: u32,
    /// Which of the offered accesses leads to its rows; `None`: none, every document is checked.
    pub access: Option<u32>,
    /// Whether no predicate looks at positions and the expression is of moderate size, so that it can be verified
    /// node by node.
    pub plain: bool,
    root: ExprId,
    column: u32,
    are_halves: bool,
    zone: u32,
}

/// An immutable part of a population.
#[derive(Debug)]
pub struct Segment {
    number: u64,
    image: Image,
    symbols: Symbols,
    streams: Vec<Box<str>>,
}

impl Segment {
    /// Reads the small parts of an image.
    pub(super) fn new(image: Image) -> Segment {
        let symbols = read_symbols(image.section(Section::Symbols));
        let streams = read_texts(image.section(Section::Streams)).into_iter().map(Box::from).collect();
        Segment { number: NEXT_NUMBER.fetch_add(1, Ordering::Relaxed), image, symbols, streams }
    }

    /// A number that no other segment of this process has; matchers keep their caches by it.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Opens a saved segment by memory map, see [`Image::open`].
    ///
    /// # Errors
    /// If the file is not a sound index of this version.
    pub fn open(path: &Path, verify: bool) -> Result<Segment, IndexFormatError> {
        Image::open(path, verify).map(Segment::new)
    }

    /// The image.
    pub fn image(&self) -> &Image {
        &self.image
    }

    /// The name tests of the population.
    pub fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    /// Names of the streams that subscriptions name; number 1 is the first.
    pub fn streams(&self) -> &[Box<str>] {
        &self.streams
    }

    /// The number of a stream; `None` if no subscription names it.
    pub fn stream_number(&self, name: &str) -> Option<u32> {
        self.streams.iter().position(|known| &**known == name).map(|at| at as u32 + 1)
    }

    /// Stream number of a subscription.
    pub fn stream_of(&self, subscription: u32) -> u32 {
        self.image
            .section::<u32>(Section::SubscriptionStreams)
            .get(subscription as usize)
            .copied()
            .unwrap_or(ANY_STREAM)
    }

    /// String constants.
    #[inline]
    pub fn strings(&self) -> Strings<'_> {
        Strings {
            bytes: self.image.section(Section::StringBytes),
            offsets: self.image.section(Section::StringOffsets),
            slots: self.image.section(Section::StringSlots),
        }
    }

    /// Subscription ids, by subscription number.
    #[inline]
    pub fn ids(&self) -> Strings<'_> {
        Strings {
            bytes: self.image.section(Section::IdBytes),
            offsets: self.image.section(Section::IdOffsets),
            slots: self.image.section(Section::IdSlots),
        }
    }

    /// The path automaton.
    #[inline]
    pub fn trie(&self) -> Trie<'_> {
        Trie { starts: self.image.section(Section::TrieStarts), edges: self.image.section::<Edge>(Section::TrieEdges) }
    }

    /// The predicate index.
    #[inline]
    pub fn predicates(&self) -> PredicateIndex<'_> {
        PredicateIndex {
            node_postings: self.image.section(Section::NodePostings),
            node_flags: self.image.section(Section::NodeFlags),
            numbers: self.image.section(Section::Numbers),
            probes: self.image.section(Section::Probes),
            posting_runs: self.image.section(Section::PostingRuns),
            runs: self.image.section(Section::Runs),
            guards: self.image.section(Section::Guards),
            anchors: self.image.section(Section::Anchors),
            ranges: self.image.section(Section::Ranges),
            range_values: self.image.section(Section::RangeValues),
            range_runs: self.image.section(Section::RangeRuns),
            always_runs: self.image.section(Section::AlwaysRuns),
        }
    }

    /// Number of subscriptions.
    pub fn subscription_count(&self) -> u32 {
        self.ids().len() as u32
    }

    /// Number of rows without access predicate: every document is checked against them.
    pub fn always_row_count(&self) -> u32 {
        self.predicates().always_runs.iter().map(|run| run.rows().len() as u32).sum()
    }

    /// The parts that matching reads, looked up once.
    pub fn view(&self) -> View<'_> {
        let row_subscriptions: &[u32] = self.image.section(Section::RowSubscriptions);
        View {
            strings: self.strings(),
            records: self.image.section(Section::Signatures),
            cells: self.image.section(Section::Cells),
            columns: self.image.section(Section::Columns),
            zones: self.image.section(Section::Zones),
            row_subscriptions,
            // No row is without subscriptions.
            one_each: row_subscriptions.len() == self.ids().len() + 1,
            longest_string: self.image.section::<u64>(Section::Facts)[0] as usize,
        }
    }
}

/// The expression of one subscription.
#[derive(Clone, Debug)]
pub struct Filter<'a> {
    /// Its row.
    pub row: u32,
    /// The row's signature.
    pub signature: Signature,
    /// Its expression, see [`Self::query`].
    cells: Vec<Cell>,
    root: ExprId,
    /// The row's constants, by slot.
    pub constants: Vec<ConstantRef<'a>>,
}

impl Filter<'_> {
    /// The expression.
    pub fn query(&self) -> Query<'_> {
        Query { cells: &self.cells, root: self.root }
    }
}

/// The tables of a segment, borrowed.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    strings: Strings<'a>,
    records: &'a [SignatureRecord],
    cells: &'a [Cell],
    columns: &'a [u64],
    zones: &'a [f32],
    row_subscriptions: &'a [u32],
    /// Whether each row has one subscription, which then has its number.
    one_each: bool,
    longest_string: usize,
}

impl<'a> View<'a> {
    /// The number of a string constant; values longer than all constants are not even hashed.
    #[inline]
    pub fn find_string(&self, value: &str) -> Option<u32> {
        if self.may_be_string(value) { self.strings.find(value) } else { None }
    }

    /// Whether a value may be a string constant.
    #[inline]
    pub fn may_be_string(&self, value: &str) -> bool {
        value.len() <= self.longest_string
    }

    /// Number of rows.
    pub fn row_count(&self) -> u32 {
        (self.row_subscriptions.len() - 1) as u32
    }

    /// The subscriptions of a row; their numbers follow those of the row before.
    #[inline]
    pub fn subscriptions_of(&self, row: u32) -> Range<u32> {
        self.subscriptions_of_rows(row..row + 1)
    }

    /// The subscriptions of neighbouring rows.
    #[inline]
    pub fn subscriptions_of_rows(&self, rows: Range<u32>) -> Range<u32> {
        if self.one_each {
            return rows;
        }
        self.row_subscriptions[rows.start as usize]..self.row_subscriptions[rows.end as usize]
    }

    /// The row of a subscription.
    pub fn row_of(&self, subscription: u32) -> u32 {
        (self.row_subscriptions.partition_point(|start| *start <= subscription) - 1) as u32
    }

    /// Number of signatures.
    pub fn signature_count(&self) -> u32 {
        (self.records.len() - 1) as u32
    }

    /// A signature.
    #[inline]
    pub fn signature(&self, number: u32) -> Signature {
        let (record, next) = (&self.records[number as usize], &self.records[number as usize + 1]);
        Signature {
            number,
            rows: record.row..next.row,
            slots: record.slots,
            access: (record.choice != NO_ACCESS).then_some(u32::from(record.choice)),
            plain: record.marks & PLAIN != 0,
            root: record.root,
            column: record.column,
            are_halves: record.marks & HALVES != 0,
            zone: record.zone,
        }
    }

    /// The signature of a row.
    pub fn signature_of(&self, row: u32) -> Signature {
        self.signature((self.records.partition_point(|record| record.row <= row) - 1) as u32)
    }

    /// The expression of a signature, among the cells of all of them.
    #[inline]
    pub fn query(&self, signature: &Signature) -> Query<'a> {
        Query { cells: self.cells, root: signature.root }
    }

    /// The access predicate of a signature, if it has any; `constants` are those of any of its rows.
    #[inline]
    pub fn access(&self, signature: &Signature, constants: &[ConstantRef<'_>]) -> Option<Access> {
        accesses(&self.query(signature), constants).into_iter().nth(signature.access? as usize)
    }

    /// All constants of a signature, column by column.
    #[inline]
    fn all_constants(&self, signature: &Signature) -> Comparands<'a> {
        let count = signature.slots as usize * signature.rows.len();
        Comparands::read(&self.columns[signature.column as usize..], signature.are_halves, count)
    }

    /// A column: the constants of one slot for all rows of a signature.
    #[inline]
    pub fn column(&self, signature: &Signature, slot: u32) -> Comparands<'a> {
        let rows = signature.rows.len();
        self.all_constants(signature).slice(slot as usize * rows..(slot as usize + 1) * rows)
    }

    /// The zones of a column, if the signature has any.
    #[inline]
    pub fn zones(&self, signature: &Signature, slot: u32) -> Option<Zones<'a>> {
        let zones = self.zones.get(signature.zone as usize..)?;
        Some(Zones::of(zones, slot, signature.rows.len()))
    }

    /// The constant of one row and slot, as stored.
    #[inline]
    pub fn value(&self, signature: &Signature, row: u32, slot: u32) -> Value {
        let at = slot as usize * signature.rows.len() + (row - signature.rows.start) as usize;
        self.all_constants(signature).get(at)
    }

    /// The constant of one row and slot.
    #[inline]
    pub fn constant(&self, signature: &Signature, row: u32, slot: u32) -> ConstantRef<'a> {
        let value = self.value(signature, row, slot);
        match value.as_string() {
            Some(string) => ConstantRef::String(self.strings.get(string)),
            None => ConstantRef::Number(value.as_number()),
        }
    }

    /// All constants of a row, in slot order, into `into`.
    pub fn constants(&self, signature: &Signature, row: u32, into: &mut Vec<ConstantRef<'a>>) {
        into.clear();
        into.extend((0..signature.slots).map(|slot| self.constant(signature, row, slot)));
    }

    /// What a subscription asks for.
    pub fn filter(&self, subscription: u32) -> Filter<'a> {
        let row = self.row_of(subscription);
        let signature = self.signature_of(row);
        let mut constants = Vec::new();
        self.constants(&signature, row, &mut constants);
        let mut cells = Vec::new();
        let root = self.query(&signature).extract(&mut cells);
        Filter { row, signature, cells, root, constants }
    }
}

/// Length-prefixed texts, one after the other.
pub(super) fn write_texts<'a>(texts: impl IntoIterator<Item = &'a str>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for text in texts {
        bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
        bytes.extend_from_slice(text.as_bytes());
    }
    bytes
}

fn read_texts(mut bytes: &[u8]) -> Vec<&str> {
    let mut texts = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk::<4>() {
        let (text, rest) = rest.split_at(u32::from_le_bytes(*length) as usize);
        texts.push(std::str::from_utf8(text).expect("texts of an index are UTF-8"));
        bytes = rest;
    }
    texts
}

/// The symbol table as bytes.
pub(super) fn write_symbols(symbols: &Symbols) -> Vec<u8> {
    let texts: Vec<String> = (0..symbols.len() as u32)
        .flat_map(|symbol| {
            let test = symbols.resolve(symbol);
            let (uri, local) = crate::xpath::symbols::parts(test);
            [test.kind().to_string(), uri.to_owned(), local.to_owned()]
        })
        .collect();
    write_texts(texts.iter().map(String::as_str))
}

fn read_symbols(bytes: &[u8]) -> Symbols {
    let mut symbols = Symbols::default();
    for part in read_texts(bytes).chunks_exact(3) {
        symbols.intern(match part[0] {
            "0" => NameTest::Expanded(part[1], part[2]),
            "1" => NameTest::Local(part[2]),
            _ => NameTest::Namespace(part[1]),
        });
    }
    symbols
}
