//! FLWOR and quantified expressions (XQuery 1.0 §3.8, §3.11).

use super::{Evaluator, Focus, KEEPING, Outcome};
use crate::transform::compare;
use crate::transform::construct::Builder;
use crate::transform::value::{Atomic, Sequence, single};
use crate::xquery::ast::{Clause, Expr, Flwor, OrderKey, Slot};
use std::cmp::Ordering;

/// What is done for each tuple of variables.
type Each<'e, 'a> = dyn FnMut(&mut Evaluator<'a>) -> Outcome<()> + 'e;

/// The values of one tuple's keys, and what they sort.
#[derive(Clone, Debug)]
pub struct Tuple<'a, T> {
    /// A value per key, none for an empty sequence.
    pub keys: Vec<Option<Atomic<'a>>>,
    /// What is sorted.
    pub payload: T,
}

/// Values of the variables of a tuple.
type Values<'a> = Vec<(Slot, Sequence<'a>)>;

impl<'a> Evaluator<'a> {
    pub(super) fn flwor(&mut self, flwor: &'a Flwor, focus: &Focus<'a>) -> Outcome<Sequence<'a>> {
        let mut all = Sequence::new();
        self.tuples(&flwor.clauses, 0, focus, &mut |evaluator| {
            let value = evaluator.value(&flwor.result, focus)?;
            evaluator.charge(KEEPING * value.len() as u64)?;
            all.extend(value);
            Ok(())
        })?;
        Ok(all)
    }

    pub(super) fn emit_flwor(&mut self, flwor: &'a Flwor, focus: &Focus<'a>, builder: &mut Builder<'a>) -> Outcome<()> {
        self.tuples(&flwor.clauses, 0, focus, &mut |evaluator| evaluator.emit(&flwor.result, focus, builder))
    }

    /// Runs `each` for every tuple that the clauses from `from` on let through.
    fn tuples(
        &mut self,
        clauses: &'a [Clause],
        from: usize,
        focus: &Focus<'a>,
        each: &mut Each<'_, 'a>,
    ) -> Outcome<()> {
        let Some(clause) = clauses.get(from) else { return each(self) };
        match clause {
            Clause::Let { slot, value } => {
                let value = self.value(value, focus)?;
                self.bind(*slot, value);
                self.tuples(clauses, from + 1, focus, each)
            }
            Clause::Where(condition) => {
                if self.truth(condition, focus)? {
                    self.tuples(clauses, from + 1, focus, each)?;
                }
                Ok(())
            }
            Clause::For { slot, position, sequence } => {
                // An `order by` further on has to see all tuples of all clauses before it.
                if let Some(order) = (from..clauses.len()).find(|at| matches!(clauses[*at], Clause::OrderBy(_))) {
                    return self.ordered(clauses, from, order, focus, each);
                }
                self.each_item(*slot, *position, sequence, focus, &mut |evaluator| {
                    evaluator.tuples(clauses, from + 1, focus, each)
                })
            }
            // One tuple is in order.
            Clause::OrderBy(_) => self.tuples(clauses, from + 1, focus, each),
        }
    }

    fn each_item(
        &mut self,
        slot: Slot,
        position: Option<Slot>,
        sequence: &'a Expr,
        focus: &Focus<'a>,
        each: &mut Each<'_, 'a>,
    ) -> Outcome<()> {
        let items = self.value(sequence, focus)?;
        for (at, item) in items.into_iter().enumerate() {
            self.charge(1)?;
            self.bind(slot, Sequence::from_iter([item]));
            if let Some(position) = position {
                self.bind(position, single(Atomic::Integer(at as i64 + 1)));
            }
            each(self)?;
        }
        Ok(())
    }

    /// Collects the tuples of the clauses before number `order`, sorts them and goes on behind it.
    fn ordered(
        &mut self,
        clauses: &'a [Clause],
        from: usize,
        order: usize,
        focus: &Focus<'a>,
        each: &mut Each<'_, 'a>,
    ) -> Outcome<()> {
        let Clause::OrderBy(keys) = &clauses[order] else { return Ok(()) };
        let bound: Vec<Slot> = clauses[..order].iter().flat_map(bound_slots).collect();
        let mut tuples: Vec<Tuple<'a, Values<'a>>> = Vec::new();
        self.tuples(&clauses[..order], from, focus, &mut |evaluator| {
            let mut values = Vec::with_capacity(bound.len());
            for slot in &bound {
                let value = evaluator.slots[*slot as usize].clone();
                evaluator.charge(KEEPING * (1 + value.len() as u64))?;
                values.push((*slot, value));
            }
            let keys = evaluator.keys(keys, focus)?;
            tuples.push(Tuple { keys, payload: values });
            Ok(())
        })?;
        self.charge(tuples.len() as u64 * (1 + u64::from(tuples.len().max(1).ilog2())))?;
        sort_tuples(keys, &mut tuples)?;
        for tuple in tuples {
            for (slot, value) in tuple.payload {
                self.bind(slot, value);
            }
            self.tuples(clauses, order + 1, focus, each)?;
        }
        Ok(())
    }

    /// The values of the keys of `order by`.
    ///
    /// # Errors
    /// A dynamic error, or more cost than the limit.
    pub fn keys(&mut self, keys: &'a [OrderKey], focus: &Focus<'a>) -> Outcome<Vec<Option<Atomic<'a>>>> {
        keys.iter().map(|key| self.atomized_one(&key.key, focus, "a key of order by")).collect()
    }

    /// Whether any choice of items makes the condition `wanted`.
    pub(super) fn quantified(
        &mut self,
        bindings: &'a [(Slot, Expr)],
        satisfies: &'a Expr,
        wanted: bool,
        focus: &Focus<'a>,
    ) -> Outcome<bool> {
        let Some(((slot, sequence), rest)) = bindings.split_first() else {
            return Ok(self.truth(satisfies, focus)? == wanted);
        };
        for item in self.value(sequence, focus)? {
            self.charge(1)?;
            self.bind(*slot, Sequence::from_iter([item]));
            if self.quantified(rest, satisfies, wanted, focus)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn bound_slots(clause: &Clause) -> Vec<Slot> {
    match clause {
        Clause::For { slot, position, .. } => std::iter::once(*slot).chain(*position).collect(),
        Clause::Let { slot, .. } => vec![*slot],
        _ => Vec::new(),
    }
}

/// Sorts tuples by their keys; ties stay as they are.
///
/// # Errors
/// `XPTY0004` for keys of types that do not compare.
pub fn sort_tuples<T>(keys: &[OrderKey], tuples: &mut [Tuple<'_, T>]) -> Outcome<()> {
    // Values that compare with one compare with each other, so sorting can not fail half-way.
    for at in 0..keys.len() {
        let mut values = tuples.iter().filter_map(|tuple| tuple.keys[at].as_ref());
        if let Some(first) = values.next() {
            for value in values {
                compare::order(first, value)?;
            }
        }
    }
    tuples.sort_by(|a, b| key_order(keys, &a.keys, &b.keys));
    Ok(())
}

/// The order of two tuples: empty before NaN before everything else, or, with `empty greatest`, the other way round.
fn key_order(keys: &[OrderKey], a: &[Option<Atomic<'_>>], b: &[Option<Atomic<'_>>]) -> Ordering {
    for ((key, a), b) in keys.iter().zip(a).zip(b) {
        let rank = |value: &Option<Atomic<'_>>| match value {
            None => 0,
            Some(Atomic::Double(value)) if value.is_nan() => 1,
            Some(_) => 2,
        };
        let (rank_a, rank_b) = (rank(a), rank(b));
        let order = if rank_a < 2 || rank_b < 2 {
            if key.empty_greatest { rank_b.cmp(&rank_a) } else { rank_a.cmp(&rank_b) }
        } else {
            match (a, b) {
                (Some(a), Some(b)) => compare::order(a, b).ok().flatten().unwrap_or(Ordering::Equal),
                _ => Ordering::Equal,
            }
        };
        let order = if key.descending { order.reverse() } else { order };
        if order != Ordering::Equal {
            return order;
        }
    }
    Ordering::Equal
}
