//! What the joins of an index are, and why documents do or do not satisfy one: for people, tests and benchmarks.

use crate::errors::{Failed, Fields};
use crate::settings::Payload;
use arrow_array::builder::{Int64Builder, StringBuilder, UInt32Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::ArrowError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use sardonyx_core::document::{Document, Limits};
use sardonyx_core::join::Population;
use sardonyx_core::join::explain::{Candidate, Explanation, explain};
use sardonyx_core::join::parts::{DefinitionId, SourceKind};
use sardonyx_core::join::witnesses::UnitWitness;
use sardonyx_core::xscl::ast::OperatorKind;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A document as it is given to be explained: payload, stream, id and timestamp in microseconds.
pub(crate) type Given = (Payload, Option<String>, String, i64);

/// Explains a join, with one document for each block or none.
pub(crate) fn explained(
    population: &Population,
    id: &str,
    given: &[Given],
    limits: &Limits,
) -> Result<(Arc<str>, Explanation), Failed> {
    let Some(subscription) = population.find(id) else {
        return Err(Failed::Core(Fields::new("unknown_subscription", "no such join is registered")));
    };
    let blocks = subscription.steps.len() + usize::from(population.queries()[subscription.steps[0]].key.left.is_some());
    if !given.is_empty() && given.len() != blocks {
        let message = format!("the join has {blocks} blocks; one document for each is needed, not {}", given.len());
        return Err(Failed::Core(Fields::new("invalid_field", message)));
    }
    let documents =
        given.iter().map(|(payload, ..)| payload.parse(limits)).collect::<Result<Vec<Document>, Failed>>()?;
    let candidates: Vec<Candidate<'_>> = given
        .iter()
        .zip(&documents)
        .map(|((_, stream, id, time), document)| Candidate { document, stream: stream.as_deref(), id, time: *time })
        .collect();
    Ok((subscription.query.clone(), explain(population, subscription, &candidates)))
}

/// An explanation as a dictionary.
pub(crate) fn explanation_dict<'py>(
    py: Python<'py>,
    query: &str,
    explanation: &Explanation,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("query", query)?;
    dict.set_item("joined", explanation.joined)?;
    let lines = explanation
        .lines
        .iter()
        .map(|line| {
            let entry = PyDict::new(py);
            entry.set_item("text", &line.text)?;
            entry.set_item("held", line.held)?;
            entry.set_item("depth", line.depth)?;
            entry.set_item("reason", &line.reason)?;
            Ok(entry)
        })
        .collect::<PyResult<Vec<_>>>()?;
    dict.set_item("lines", lines)?;
    Ok(dict)
}

/// The distinct queries of two blocks: what `sardonyx.joins.reference` evaluates.
pub(crate) fn queries<'py>(py: Python<'py>, population: &Population) -> PyResult<Bound<'py, PyList>> {
    let parts = population.parts();
    let list = PyList::empty(py);
    for (id, query) in population.queries().iter() {
        let key = &query.key;
        let is_pattern = |source: u32| matches!(parts.sources[source].kind, SourceKind::Pattern { .. });
        if !is_pattern(key.right) || !key.left.is_some_and(is_pattern) {
            continue;
        }
        let nodes = |side: &[DefinitionId]| -> Vec<(u32, i64)> {
            let place = |id: &u32| side.iter().position(|other| other == id).map_or(-1, |at| at as i64);
            side.iter().map(|id| (*id, parts.definitions[*id].key.parent.map_or(-1, |parent| place(&parent)))).collect()
        };
        let place = |side: &[DefinitionId], operand: u32| {
            let definition = parts.operands[operand].definition;
            side.iter().position(|other| *other == definition).unwrap_or_default()
        };
        let equalities: Vec<(usize, u32, usize, u32)> = key
            .edges
            .iter()
            .map(|edge| &parts.edges[*edge])
            .map(|edge| {
                (place(&query.left.nodes, edge.left), edge.left, place(&query.right.nodes, edge.right), edge.right)
            })
            .collect();
        let dict = PyDict::new(py);
        dict.set_item("query", id)?;
        dict.set_item("template", 0)?;
        let operator = match key.kind {
            OperatorKind::Join => "JOIN",
            OperatorKind::FollowedBy => "FOLLOWED BY",
        };
        dict.set_item("operator", operator)?;
        dict.set_item("window_us", (key.window < i64::MAX).then_some(key.window))?;
        dict.set_item("left", nodes(&query.left.nodes))?;
        dict.set_item("right", nodes(&query.right.nodes))?;
        dict.set_item("equalities", equalities)?;
        let names = query.subscriptions.iter().map(|number| &*population.subscriptions()[*number].id);
        dict.set_item("subscriptions", names.collect::<Vec<_>>())?;
        list.append(dict)?;
    }
    Ok(list)
}

/// Witnesses as the paper's tables RbinW and RdocW: `document`, `definition`, `parent` (a node; -1 for roots), `node`;
/// and `document`, `node`, `operand`, `value`.
pub(crate) fn tables<'m>(
    documents: impl Iterator<Item = (u32, &'m [UnitWitness<'m>])>,
) -> Result<[RecordBatch; 2], ArrowError> {
    let mut bindings: BTreeSet<(u32, u32, i64, u32)> = BTreeSet::new();
    let mut values: BTreeSet<(u32, u32, u32, &str)> = BTreeSet::new();
    for (number, units) in documents {
        for unit in units {
            for (place, binding) in (0_u32..).zip(&unit.bindings) {
                let parent = if place == 0 { -1 } else { i64::from(unit.bindings[binding.parent as usize].node) };
                bindings.insert((number, binding.definition, parent, binding.node));
            }
            for value in &unit.values {
                values.insert((number, unit.bindings[value.binding as usize].node, value.operand, &value.value));
            }
        }
    }
    let mut columns = [UInt32Builder::new(), UInt32Builder::new(), UInt32Builder::new()];
    let mut parents = Int64Builder::new();
    for (document, definition, parent, node) in bindings {
        [document, definition, node].iter().zip(&mut columns).for_each(|(value, column)| column.append_value(*value));
        parents.append_value(parent);
    }
    let [mut a, mut b, mut c] = columns;
    let first: Vec<(&str, ArrayRef)> = vec![
        ("document", Arc::new(a.finish())),
        ("definition", Arc::new(b.finish())),
        ("parent", Arc::new(parents.finish())),
        ("node", Arc::new(c.finish())),
    ];
    let mut columns = [UInt32Builder::new(), UInt32Builder::new(), UInt32Builder::new()];
    let mut texts = StringBuilder::new();
    for (document, node, operand, value) in values {
        [document, node, operand].iter().zip(&mut columns).for_each(|(value, column)| column.append_value(*value));
        texts.append_value(value);
    }
    let [mut a, mut b, mut c] = columns;
    let second: Vec<(&str, ArrayRef)> = vec![
        ("document", Arc::new(a.finish())),
        ("node", Arc::new(b.finish())),
        ("operand", Arc::new(c.finish())),
        ("value", Arc::new(texts.finish())),
    ];
    Ok([RecordBatch::try_from_iter(first)?, RecordBatch::try_from_iter(second)?])
}
