//! Why a document does or does not satisfy a subscription.

use crate::document::{MatchedNode, node_list};
use crate::errors::{Failed, Fields};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use sardonyx_core::document::{Document, Locator};
use sardonyx_core::index::access::Atom;
use sardonyx_core::index::{Filter, Snapshot};
use sardonyx_core::matcher::Inverted;
use sardonyx_core::xpath::clauses::{Clause, explain_clauses};
use sardonyx_core::xpath::display::query_text;
use sardonyx_core::xpath::evaluate::Evaluator;
use sardonyx_core::xpath::symbols::DocumentSymbols;

/// Nodes shown per clause.
const NODES_SHOWN: usize = 5;

/// An explanation, ready for Python.
#[derive(Debug)]
pub(crate) struct Explained {
    matched: bool,
    query: String,
    access: Vec<String>,
    candidate: bool,
    stream_matched: bool,
    clauses: Vec<(Clause, Vec<MatchedNode>)>,
}

/// Explains one subscription on one document; `source` is the document's decoded text.
pub(crate) fn explain(
    snapshot: &Snapshot,
    inverted: &Inverted,
    subscription_id: &str,
    document: &Document,
    source: &str,
    stream: Option<&str>,
) -> Result<Explained, Failed> {
    let Some((number, subscription)) = snapshot.find(subscription_id) else {
        return Err(Fields::new("unknown_subscription", format!("there is no subscription {subscription_id:?}")).into());
    };
    let segment = &snapshot.segments[number].segment;
    let filter = segment.view().filter(subscription);
    let query = filter.query();
    let Filter { row, signature, constants, .. } = &filter;
    let symbols = DocumentSymbols::new(document, |test| segment.symbols().find(test));
    let cost_limit = inverted.settings().cost_limit;
    let mut evaluator = Evaluator::new(document, &symbols, cost_limit);
    let held = evaluator.boolean(query, constants)?;
    let clauses = explain_clauses(&mut evaluator, query, constants, segment.symbols(), None)?;
    let access = segment.view().access(signature, constants);
    let atoms: Vec<Atom> = access.map(|access| access.atoms.into_vec()).unwrap_or_default();
    let wanted = segment.stream_of(subscription);
    let stream_matched = wanted == sardonyx_core::index::ANY_STREAM
        || stream.and_then(|name| segment.stream_number(name)) == Some(wanted);
    let mut locator = Locator::new(document, source);
    Ok(Explained {
        matched: held && stream_matched,
        query: query_text(query, constants, segment.symbols(), None),
        access: if atoms.is_empty() {
            vec!["none: every document is checked".to_owned()]
        } else {
            atoms.iter().map(|atom| atom.text(segment.symbols(), constants)).collect()
        },
        candidate: inverted.is_candidate(segment, document, *row),
        stream_matched,
        clauses: clauses
            .into_iter()
            .map(|clause| {
                let shown = clause.nodes.iter().take(NODES_SHOWN);
                let nodes = shown.map(|node| MatchedNode::new(document, *node, &mut locator)).collect();
                (clause, nodes)
            })
            .collect(),
    })
}

impl Explained {
    /// As a dictionary.
    pub(crate) fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("matched", self.matched)?;
        dict.set_item("query", &self.query)?;
        dict.set_item("access", &self.access)?;
        dict.set_item("candidate", self.candidate)?;
        dict.set_item("stream_matched", self.stream_matched)?;
        let clauses = PyList::empty(py);
        for (clause, nodes) in &self.clauses {
            let entry = PyDict::new(py);
            entry.set_item("clause", &clause.text)?;
            entry.set_item("held", clause.held)?;
            entry.set_item("depth", clause.depth)?;
            entry.set_item("nodes", node_list(py, nodes)?)?;
            entry.set_item("reason", &clause.reason)?;
            clauses.append(entry)?;
        }
        dict.set_item("clauses", clauses)?;
        Ok(dict)
    }
}
