//! Columnar refinement: many rows of one flat signature at once.
//!
//! A *flat* expression is a path to some nodes (the anchors) and a conjunction of comparisons of values near each
//! anchor with constants, `/stock[symbol = ? and price > ? and price < ?]`. The values are looked up once per document;
//! then a row costs a few comparisons over columns, written so that the compiler can use wide instructions.

use super::bits::numbers;
use crate::document::{Document, NodeId};
use crate::index::access::{Access, Atom, AtomTest};
use crate::index::{Comparand, Comparands, Signature, View, ZONE_ROWS, Zones};
use crate::paths::LinearPath;
use crate::xpath::ast::{Axis, CompareOp, Expr, ExprId, NONE, NodeTest, PathStart, Query};
use crate::xpath::evaluate::compare_numbers;
use crate::xpath::evaluate::number::to_number;
use crate::xpath::symbols::DocumentSymbols;
use smallvec::SmallVec;
use std::hint::black_box;
use std::ops::Range;

/// One comparison: nodes relative to the anchor, against the column of a slot.
#[derive(Clone, Debug)]
struct ColumnTest {
    steps: u32,
    op: CompareOp,
    slot: u32,
}

/// How a flat signature is refined; derived from its cells.
#[derive(Clone, Debug)]
pub(super) struct FlatPlan {
    /// Steps to the anchors, without the last step's predicates; `NONE` for the document node.
    anchor: u32,
    tests: Vec<ColumnTest>,
    /// The test that the access predicate of the rows is: where there is one anchor, it holds there.
    access: Option<usize>,
    /// Whether the expression says more than the tests: rows that pass still have to be verified.
    pub(super) residual: bool,
}

impl FlatPlan {
    /// The plan of an expression, if it is flat; `access` is its access predicate.
    pub(super) fn new(query: &Query<'_>, access: Option<&Access>) -> Option<FlatPlan> {
        let mut plan = FlatPlan { anchor: NONE, tests: Vec::new(), access: None, residual: false };
        match query.expr(query.root) {
            Expr::Path(PathStart::Root | PathStart::Context, first) => {
                let steps: Vec<_> = query.steps(first).collect();
                let (last, others) = steps.split_last()?;
                let linear = others.iter().all(|step| step.predicates == NONE) && steps.iter().all(is_forward);
                if !linear || last.predicates == NONE {
                    return None;
                }
                plan.anchor = first;
                for predicate in query.list(last.predicates) {
                    plan.collect(query, predicate, false);
                }
            }
            _ => plan.collect(query, query.root, true),
        }
        let atom = access.and_then(|access| <&[Atom; 1]>::try_from(&access.atoms[..]).ok());
        if let Some([Atom { test: AtomTest::StringEqual(slot) | AtomTest::NumberEqual(slot), .. }]) = atom {
            // A slot is one constant in one place.
            plan.access = plan.tests.iter().position(|test| test.slot == *slot && test.op == CompareOp::Equal);
        }
        (!plan.tests.is_empty()).then_some(plan)
    }

    /// The tests that are left if the one of this number is known to hold.
    fn tests(&self, known: Option<usize>) -> impl Iterator<Item = &ColumnTest> + Clone {
        self.tests.iter().enumerate().filter(move |(number, _)| Some(*number) != known).map(|(_, test)| test)
    }

    fn collect(&mut self, query: &Query<'_>, expr: ExprId, absolute: bool) {
        match query.expr(expr) {
            Expr::And(a, b) => {
                self.collect(query, a, absolute);
                self.collect(query, b, absolute);
            }
            Expr::Compare(op, a, b) => {
                let test =
                    self.test(query, op, a, b, absolute).or_else(|| self.test(query, op.mirrored(), b, a, absolute));
                match test {
                    Some(test) => self.tests.push(test),
                    None => self.residual = true,
                }
            }
            _ => self.residual = true,
        }
    }

    fn test(
        &self,
        query: &Query<'_>,
        op: CompareOp,
        path: ExprId,
        value: ExprId,
        absolute: bool,
    ) -> Option<ColumnTest> {
        let slot = match query.expr(value) {
            Expr::NumberConstant(slot) => slot,
            // Order comparisons with a string constant would need the column as numbers: left to verification.
            Expr::StringConstant(slot) if matches!(op, CompareOp::Equal | CompareOp::NotEqual) => slot,
            _ => return None,
        };
        let Expr::Path(start, steps) = query.expr(path) else { return None };
        if start != PathStart::Context && !(absolute && start == PathStart::Root) {
            return None;
        }
        let linear = query.steps(steps).all(|step| step.predicates == NONE && is_forward(&step));
        linear.then_some(ColumnTest { steps, op, slot })
    }
}

fn is_forward(step: &crate::xpath::ast::Step) -> bool {
    let mut path = LinearPath::default();
    path.push(step);
    !path.truncated && (step.axis != Axis::SelfAxis || step.test == NodeTest::Node)
}

/// The value of a node, in all the forms that columns compare with.
#[derive(Clone, Copy, Debug)]
struct Seen {
    string: Option<u32>,
    number: f64,
}

/// What a plan sees in one document.
#[derive(Debug)]
pub(super) struct FlatView {
    /// The test that is known to hold.
    known: Option<usize>,
    /// Number of anchors at which every other test has values.
    anchors: usize,
    /// The values for the tests at the first anchor, at the second, and so on, and where those of each test end.
    seen: Vec<Seen>,
    ends: SmallVec<[u32; 8]>,
}

impl FlatView {
    /// Looks everything up.
    pub(super) fn new(
        plan: &FlatPlan,
        query: &Query<'_>,
        view: &View<'_>,
        document: &Document,
        symbols: &DocumentSymbols,
        scratch: &mut Scratch,
    ) -> FlatView {
        let Scratch { anchors, nodes, next, .. } = scratch;
        anchors.clear();
        anchors.push(0);
        select(query, plan.anchor, document, symbols, anchors, next);
        let known = plan.access.filter(|_| anchors.len() == 1);
        let mut found = FlatView { known, anchors: 0, seen: Vec::new(), ends: SmallVec::new() };
        for anchor in anchors {
            let (seen, ends) = (found.seen.len(), found.ends.len());
            let every = plan.tests(known).all(|test| {
                nodes.clear();
                nodes.push(*anchor);
                select(query, test.steps, document, symbols, nodes, next);
                found.seen.extend(nodes.iter().map(|node| {
                    let text = document.string_value(*node);
                    Seen { string: view.find_string(text), number: to_number(text) }
                }));
                found.ends.push(found.seen.len() as u32);
                // A comparison over no nodes is false for every constant.
                !nodes.is_empty()
            });
            if every {
                found.anchors += 1;
            } else {
                found.seen.truncate(seen);
                found.ends.truncate(ends);
            }
        }
        found
    }

    /// The values at an anchor, test by test.
    fn at(&self, anchor: usize) -> impl Iterator<Item = &[Seen]> + Clone {
        let tests = self.ends.len() / self.anchors;
        let ends = &self.ends[anchor * tests..(anchor + 1) * tests];
        let start = (anchor * tests).checked_sub(1).map_or(0, |before| self.ends[before]);
        let starts = std::iter::once(start).chain(ends.iter().copied());
        starts.zip(ends).map(|(start, end)| &self.seen[start as usize..*end as usize])
    }

    /// Appends the rows that pass all tests at some anchor to `held`.
    pub(super) fn refine(
        &self,
        plan: &FlatPlan,
        view: &View<'_>,
        signature: &Signature,
        rows: Range<u32>,
        scratch: &mut Scratch,
        held: &mut Vec<u32>,
    ) {
        let first = signature.rows.start;
        let columns: SmallVec<[Column<'_>; 8]> =
            plan.tests(self.known).map(|test| Column::new(view, signature, test)).collect();
        let local = (rows.start - first) as usize..(rows.end - first) as usize;
        if columns.iter().any(|column| column.zones.is_some()) {
            // Blocks of one word's bits at a time: which of them do the zones leave, for each anchor?
            const BLOCKS: usize = u64::BITS as usize;
            let blocks = local.start / ZONE_ROWS..local.end.div_ceil(ZONE_ROWS);
            for from in blocks.clone().step_by(BLOCKS) {
                let some = from..blocks.end.min(from + BLOCKS);
                let masks: SmallVec<[u64; 4]> =
                    (0..self.anchors).map(|anchor| self.left(&columns, anchor, some.clone())).collect();
                let any = masks.iter().fold(0, |all, mask| all | mask);
                let left = numbers(any).map(|bit| {
                    let start = (from + bit as usize) * ZONE_ROWS;
                    (bit, local.start.max(start)..local.end.min(start + ZONE_ROWS))
                });
                touch(&columns, left.clone().map(|(_, piece)| piece));
                for (bit, piece) in left {
                    let anchors = (0..self.anchors).filter(|anchor| masks[*anchor] >> bit & 1 == 1);
                    self.narrow_all(&columns, anchors, piece, first, scratch, held);
                }
            }
        } else {
            self.narrow_all(&columns, 0..self.anchors, local, first, scratch, held);
        }
    }

    /// The blocks in which some row may pass all tests at an anchor, as bits.
    fn left(&self, columns: &[Column<'_>], anchor: usize, blocks: Range<usize>) -> u64 {
        let all = u64::MAX >> (u64::BITS as usize - blocks.len());
        columns.iter().zip(self.at(anchor)).fold(all, |left, (column, seen)| {
            let Some(zones) = column.zones.filter(|_| left != 0) else { return left };
            let (lows, highs) = (&zones.lows[blocks.clone()], &zones.highs[blocks.clone()]);
            left & seen.iter().fold(0, |any, seen| any | blocks_left(column.op, seen.number, lows, highs))
        })
    }

    /// Appends the rows of a piece that pass all tests at one of these anchors; `first` is the row that columns start at.
    fn narrow_all(
        &self,
        columns: &[Column<'_>],
        anchors: impl Iterator<Item = usize>,
        piece: Range<usize>,
        first: u32,
        scratch: &mut Scratch,
        held: &mut Vec<u32>,
    ) {
        let Scratch { any, all, .. } = scratch;
        any.clear();
        for anchor in anchors {
            let tests = || columns.iter().zip(self.at(anchor));
            if tests().any(|(column, seen)| column.excludes(piece.clone(), seen)) {
                continue;
            }
            // There is one anchor as a rule: its marks are the result.
            let is_first = any.is_empty();
            let marks = if is_first { &mut *any } else { &mut *all };
            marks.clear();
            marks.resize(piece.len(), HELD);
            for (column, seen) in tests() {
                column.narrow(piece.clone(), seen, marks);
                if marks.iter().fold(0, |any, mark| any | mark) == 0 {
                    break;
                }
            }
            if !is_first {
                any.iter_mut().zip(&*all).for_each(|(any, all)| *any |= all);
            }
        }
        let rows = first + piece.start as u32..;
        held.extend(rows.zip(&*any).filter(|(_, held)| **held != 0).map(|(row, _)| row));
    }
}

/// Reads a little of each line of memory that is read next: rows lie far from each other, and columns, too, so the
/// processor had better wait for all at once.
fn touch(columns: &[Column<'_>], pieces: impl Iterator<Item = Range<usize>>) {
    fn lines<T: Comparand>(constants: &[T]) -> u64 {
        let lines = constants.iter().step_by(64 / size_of::<T>());
        lines.fold(0, |sum, constant| sum ^ constant.as_number().to_bits())
    }
    let mut sum = 0;
    for piece in pieces {
        for column in columns {
            sum ^= match column.constants.slice(piece.clone()) {
                Comparands::Whole(constants) => lines(constants),
                Comparands::Halves(constants) => lines(constants),
            };
        }
    }
    black_box(sum);
}

/// The blocks in which some constant may satisfy `value op constant`, as bits. Free of branches on the data.
fn blocks_left(op: CompareOp, value: f64, lows: &[f32], highs: &[f32]) -> u64 {
    fn blocks(borders: &[f32], holds: impl Fn(f64) -> bool) -> u64 {
        let word = |(bit, border): (usize, &f32)| u64::from(holds(f64::from(*border))) << bit;
        borders.iter().enumerate().map(word).fold(0, |all, bit| all | bit)
    }
    match op {
        CompareOp::Equal => blocks(lows, |low| low <= value) & blocks(highs, |high| value <= high),
        CompareOp::NotEqual => u64::MAX,
        CompareOp::Less => blocks(highs, |high| value < high),
        CompareOp::LessEqual => blocks(highs, |high| value <= high),
        CompareOp::Greater => blocks(lows, |low| value > low),
        CompareOp::GreaterEqual => blocks(lows, |low| value >= low),
    }
}

/// Buffers, kept between documents.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    anchors: Vec<NodeId>,
    nodes: Vec<NodeId>,
    next: Vec<NodeId>,
    /// One mark per row: 0 or [`HELD`].
    any: Vec<u64>,
    all: Vec<u64>,
}

/// The mark of a row that holds. Marks are as wide as numbers, so that comparing makes them as they are.
const HELD: u64 = u64::MAX;

#[inline]
fn mark(held: bool) -> u64 {
    u64::from(held).wrapping_neg()
}

/// One test with its column.
struct Column<'a> {
    op: CompareOp,
    constants: Comparands<'a>,
    /// For columns of numbers.
    zones: Option<Zones<'a>>,
}

impl<'a> Column<'a> {
    fn new(view: &View<'a>, signature: &Signature, test: &ColumnTest) -> Column<'a> {
        let constants = view.column(signature, test.slot);
        let is_string = !signature.rows.is_empty() && constants.get(0).as_string().is_some();
        let zones = if is_string { None } else { view.zones(signature, test.slot) };
        Column { op: test.op, constants, zones }
    }

    /// Whether no row can pass because all have the same constant: rows of a run usually share that of their access
    /// predicate, and most anchors fail on it.
    fn excludes(&self, rows: Range<usize>, seen: &[Seen]) -> bool {
        fn all_fail<T: Comparand>(op: CompareOp, seen: &[Seen], constants: &[T]) -> bool {
            let first = constants[0];
            first == constants[constants.len() - 1]
                && !seen.iter().any(|seen| passes(op, seen, first))
                && constants.iter().all(|constant| *constant == first)
        }
        self.zones.is_none()
            && self.op == CompareOp::Equal
            && match self.constants.slice(rows) {
                Comparands::Whole(constants) => all_fail(self.op, seen, constants),
                Comparands::Halves(constants) => all_fail(self.op, seen, constants),
            }
    }

    fn narrow(&self, rows: Range<usize>, seen: &[Seen], held: &mut [u64]) {
        match self.constants.slice(rows) {
            Comparands::Whole(constants) => narrow(self.op, seen, constants, held),
            Comparands::Halves(constants) => narrow(self.op, seen, constants, held),
        }
    }
}

/// The values of a test against a whole column.
fn narrow<T: Comparand>(op: CompareOp, seen: &[Seen], column: &[T], held: &mut [u64]) {
    let rows = held.iter_mut().zip(column);
    let [Seen { string, number }] = *seen else {
        return rows.for_each(|(held, constant)| *held &= mark(seen.iter().any(|seen| passes(op, seen, *constant))));
    };
    if column.first().is_some_and(|value| value.as_string().is_some()) {
        // Columns of strings are only compared with `=` and `!=`, and no constant has a number that is not known.
        let equal = op == CompareOp::Equal;
        match string.and_then(T::string) {
            Some(string) => rows.for_each(|(held, constant)| *held &= mark((*constant == string) == equal)),
            None => rows.for_each(|(held, _)| *held &= mark(!equal)),
        }
        return;
    }
    match op {
        CompareOp::Equal => rows.for_each(|(held, constant)| *held &= mark(number == constant.as_number())),
        CompareOp::NotEqual => rows.for_each(|(held, constant)| *held &= mark(number != constant.as_number())),
        CompareOp::Less => rows.for_each(|(held, constant)| *held &= mark(number < constant.as_number())),
        CompareOp::LessEqual => rows.for_each(|(held, constant)| *held &= mark(number <= constant.as_number())),
        CompareOp::Greater => rows.for_each(|(held, constant)| *held &= mark(number > constant.as_number())),
        CompareOp::GreaterEqual => rows.for_each(|(held, constant)| *held &= mark(number >= constant.as_number())),
    }
}

fn passes(op: CompareOp, seen: &Seen, constant: impl Comparand) -> bool {
    match constant.as_string() {
        // Columns of strings are only compared with `=` and `!=`.
        Some(string) => (seen.string == Some(string)) == (op == CompareOp::Equal),
        None => compare_numbers(op, seen.number, constant.as_number()),
    }
}

/// Replaces nodes by what a chain of forward steps without predicates selects from them, each once, in order.
fn select(
    query: &Query<'_>,
    first: u32,
    document: &Document,
    symbols: &DocumentSymbols,
    nodes: &mut Vec<NodeId>,
    next: &mut Vec<NodeId>,
) {
    use crate::document::NodeKind;
    if first == NONE {
        return;
    }
    for step in query.steps(first) {
        if step.axis == Axis::SelfAxis {
            continue;
        }
        let all = document.nodes();
        let principal = if step.axis == Axis::Attribute { NodeKind::Attribute } else { NodeKind::Element };
        let passes = |id: NodeId| {
            let node = &all[id as usize];
            match step.test {
                NodeTest::Name(symbol) => node.kind == principal && symbols.passes(node.name, symbol),
                NodeTest::Any => node.kind == principal,
                NodeTest::Text => node.kind == NodeKind::Text,
                NodeTest::Node => (node.kind == NodeKind::Attribute) == (principal == NodeKind::Attribute),
                _ => false,
            }
        };
        next.clear();
        for node in nodes.drain(..) {
            match step.axis {
                Axis::Child => next.extend(document.children(node).filter(|id| passes(*id))),
                Axis::Attribute => next.extend(document.attributes(node).filter(|id| passes(*id))),
                Axis::DescendantOrSelf if passes(node) => {
                    next.push(node);
                    next.extend((node + 1..=all[node as usize].last).filter(|id| passes(*id)));
                }
                _ => next.extend((node + 1..=all[node as usize].last).filter(|id| passes(*id))),
            }
        }
        next.sort_unstable();
        next.dedup();
        std::mem::swap(nodes, next);
    }
}
