//! Columnar refinement: many rows of one flat signature at once.
//!
//! A *flat* expression is a path to some nodes (the anchors) and a conjunction of comparisons of values near each
//! anchor with constants, `/stock[symbol = ? and price > ? and price < ?]`. The values are looked up once per document;
//! then a row costs a few comparisons over columns, written so that the compiler can use wide instructions.

use crate::document::{Document, NodeId};
use crate::index::{Signature, Value, View, ZONE_ROWS, Zone};
use crate::paths::LinearPath;
use crate::xpath::ast::{Axis, CompareOp, Expr, ExprId, NONE, NodeTest, PathStart, Query};
use crate::xpath::evaluate::compare_numbers;
use crate::xpath::evaluate::number::to_number;
use crate::xpath::symbols::DocumentSymbols;
use smallvec::SmallVec;
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
    /// Whether the expression says more than the tests: rows that pass still have to be verified.
    pub(super) residual: bool,
}

impl FlatPlan {
    /// The plan of an expression, if it is flat.
    pub(super) fn new(query: &Query<'_>) -> Option<FlatPlan> {
        let mut plan = FlatPlan { anchor: NONE, tests: Vec::new(), residual: false };
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
        (!plan.tests.is_empty()).then_some(plan)
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

/// What a plan sees in one document: per anchor and test, the values.
#[derive(Debug)]
pub(super) struct FlatView {
    anchors: Vec<Vec<Vec<Seen>>>,
}

impl FlatView {
    /// Looks everything up.
    pub(super) fn new(
        plan: &FlatPlan,
        query: &Query<'_>,
        view: &View<'_>,
        document: &Document,
        symbols: &DocumentSymbols,
    ) -> FlatView {
        let mut anchors = vec![0];
        select(query, plan.anchor, document, symbols, &mut anchors);
        let seen = |anchor: NodeId, test: &ColumnTest| -> Vec<Seen> {
            let mut nodes = vec![anchor];
            select(query, test.steps, document, symbols, &mut nodes);
            nodes
                .into_iter()
                .map(|node| {
                    let text = document.string_value(node);
                    Seen { string: view.find_string(text), number: to_number(text) }
                })
                .collect()
        };
        let anchors = anchors
            .into_iter()
            .map(|anchor| plan.tests.iter().map(|test| seen(anchor, test)).collect::<Vec<_>>())
            // A comparison over no nodes is false for every constant.
            .filter(|tests: &Vec<Vec<Seen>>| tests.iter().all(|values| !values.is_empty()))
            .collect();
        FlatView { anchors }
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
            plan.tests.iter().map(|test| Column::new(view, signature, test)).collect();
        let zoned = columns.iter().any(|column| column.zones.is_some());
        let local = (rows.start - first) as usize..(rows.end - first) as usize;
        let mut at = local.start;
        while at < local.end {
            // Where there are zones, block by block; all rows at once otherwise.
            let end = if zoned { local.end.min((at / ZONE_ROWS + 1) * ZONE_ROWS) } else { local.end };
            scratch.any.clear();
            scratch.any.resize(end - at, 0);
            for anchor in &self.anchors {
                if !columns.iter().zip(anchor).any(|(column, values)| column.excludes(at..end, values)) {
                    scratch.all.clear();
                    scratch.all.resize(end - at, 1);
                    for (column, values) in columns.iter().zip(anchor) {
                        column.narrow(at..end, values, &mut scratch.all);
                    }
                    scratch.any.iter_mut().zip(&scratch.all).for_each(|(any, all)| *any |= all);
                }
            }
            held.extend((first + at as u32..).zip(&scratch.any).filter(|(_, held)| **held == 1).map(|(row, _)| row));
            at = end;
        }
    }
}

/// Buffers of [`FlatView::refine`]: one mark per row.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    any: Vec<u8>,
    all: Vec<u8>,
}

/// One test with its column.
struct Column<'a> {
    op: CompareOp,
    values: &'a [Value],
    /// For columns of numbers.
    zones: Option<&'a [Zone]>,
}

impl<'a> Column<'a> {
    fn new(view: &View<'a>, signature: &Signature, test: &ColumnTest) -> Column<'a> {
        let values = view.column(signature, test.slot);
        let is_string = values.first().is_some_and(|value| value.as_string().is_some());
        let zones = if is_string { None } else { view.zones(signature, test.slot) };
        Column { op: test.op, values, zones }
    }

    /// Whether no row of a block can pass, which is seen without looking at each.
    fn excludes(&self, rows: Range<usize>, seen: &[Seen]) -> bool {
        if let Some(zones) = self.zones {
            let [low, high] = zones[rows.start / ZONE_ROWS];
            return !seen.iter().any(|seen| {
                let value = seen.number;
                match self.op {
                    CompareOp::Equal => low <= value && value <= high,
                    CompareOp::NotEqual => !(low == value && value == high),
                    CompareOp::Less => value < high,
                    CompareOp::LessEqual => value <= high,
                    CompareOp::Greater => value > low,
                    CompareOp::GreaterEqual => value >= low,
                }
            });
        }
        // Rows of a run usually share the constant of their access predicate: most anchors fail on it at once.
        let column = &self.values[rows];
        let first = column[0];
        self.op == CompareOp::Equal
            && first == column[column.len() - 1]
            && !seen.iter().any(|seen| passes(self.op, seen, first))
            && column.iter().all(|value| *value == first)
    }

    fn narrow(&self, rows: Range<usize>, seen: &[Seen], held: &mut [u8]) {
        let column = &self.values[rows];
        match seen {
            [seen] => narrow(self.op, seen, column, held),
            _ => {
                for (held, constant) in held.iter_mut().zip(column) {
                    *held &= u8::from(seen.iter().any(|seen| passes(self.op, seen, *constant)));
                }
            }
        }
    }
}

/// One value against a whole column.
fn narrow(op: CompareOp, seen: &Seen, column: &[Value], held: &mut [u8]) {
    let number = seen.number;
    let rows = held.iter_mut().zip(column);
    if column.first().is_some_and(|value| value.as_string().is_some()) {
        rows.for_each(|(held, constant)| *held &= u8::from(passes(op, seen, *constant)));
        return;
    }
    match op {
        CompareOp::Equal => rows.for_each(|(held, constant)| *held &= u8::from(number == constant.as_number())),
        CompareOp::NotEqual => rows.for_each(|(held, constant)| *held &= u8::from(number != constant.as_number())),
        CompareOp::Less => rows.for_each(|(held, constant)| *held &= u8::from(number < constant.as_number())),
        CompareOp::LessEqual => rows.for_each(|(held, constant)| *held &= u8::from(number <= constant.as_number())),
        CompareOp::Greater => rows.for_each(|(held, constant)| *held &= u8::from(number > constant.as_number())),
        CompareOp::GreaterEqual => rows.for_each(|(held, constant)| *held &= u8::from(number >= constant.as_number())),
    }
}

fn passes(op: CompareOp, seen: &Seen, constant: Value) -> bool {
    match constant.as_string() {
        // Columns of strings are only compared with `=` and `!=`.
        Some(string) => (seen.string == Some(string)) == (op == CompareOp::Equal),
        None => compare_numbers(op, seen.number, constant.as_number()),
    }
}

/// Replaces nodes by what a chain of forward steps without predicates selects from them, each once, in order.
fn select(query: &Query<'_>, first: u32, document: &Document, symbols: &DocumentSymbols, nodes: &mut Vec<NodeId>) {
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
        let mut next = Vec::new();
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
        *nodes = next;
    }
}
