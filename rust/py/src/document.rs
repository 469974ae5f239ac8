//! `Document`: a parsed document.

use crate::errors::{Failed, work};
use crate::settings::{AllLimits, Payload};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyMapping};
use sardonyx_core::document as core;
use sardonyx_core::xpath::evaluate::{Evaluator, NodeRef, Value};
use sardonyx_core::xpath::parser::{Parser, StaticContext};
use sardonyx_core::xpath::symbols::{DocumentSymbols, Symbols};

/// Prefixes and URIs of a mapping.
pub(crate) fn namespaces(given: Option<&Bound<'_, PyMapping>>) -> PyResult<Vec<(String, String)>> {
    given.map_or(Ok(Vec::new()), |mapping| mapping.items()?.iter().map(|item| item.extract()).collect())
}

/// Borrows owned pairs.
pub(crate) fn borrow(pairs: &[(String, String)]) -> Vec<(&str, &str)> {
    pairs.iter().map(|(prefix, uri)| (prefix.as_str(), uri.as_str())).collect()
}

/// A node that an expression selected, as Python sees it.
#[derive(Debug)]
pub(crate) struct MatchedNode {
    path: String,
    line: u64,
    value: String,
}

impl MatchedNode {
    /// Describes a node.
    pub(crate) fn new(document: &core::Document, node: NodeRef, locator: &mut core::Locator<'_>) -> MatchedNode {
        let line = locator.line(node.id()) as u64;
        let path = locator.path(node.id());
        match node.namespace_number() {
            Some(number) => {
                let (prefix, uri) = document.namespaces(node.id())[number];
                MatchedNode { path: format!("{path}/namespace::{prefix}"), line, value: uri.to_owned() }
            }
            None => MatchedNode { path, line, value: document.string_value(node.id()).to_owned() },
        }
    }

    /// As a dictionary.
    pub(crate) fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("path", &self.path)?;
        dict.set_item("line", self.line)?;
        dict.set_item("value", &self.value)?;
        Ok(dict)
    }
}

/// Several nodes as a list of dictionaries.
pub(crate) fn node_list<'py>(py: Python<'py>, nodes: &[MatchedNode]) -> PyResult<Bound<'py, PyList>> {
    let dicts = nodes.iter().map(|node| node.to_dict(py)).collect::<PyResult<Vec<_>>>()?;
    PyList::new(py, dicts)
}

enum Outcome {
    Nodes(Vec<MatchedNode>),
    Other(Value),
}

/// A parsed document, read-only.
#[pyclass(frozen, module = "sardonyx._core")]
#[derive(Debug)]
pub(crate) struct Document {
    tree: core::Document,
    payload: Payload,
}

impl Document {
    /// The parsed document.
    pub(crate) fn parsed(&self) -> &core::Document {
        &self.tree
    }
}

#[pymethods]
impl Document {
    #[staticmethod]
    #[pyo3(signature = (payload, limits=None))]
    fn parse(py: Python<'_>, payload: Payload, limits: Option<&Bound<'_, PyMapping>>) -> PyResult<Document> {
        let limits = AllLimits::read(limits)?;
        let tree = work(py, || payload.parse(&limits.document))?;
        Ok(Document { tree, payload })
    }

    #[getter]
    fn node_count(&self) -> usize {
        self.tree.len()
    }

    #[getter]
    fn memory_bytes(&self) -> usize {
        self.tree.memory_bytes()
    }

    fn canonical(&self, py: Python<'_>) -> PyResult<Vec<u8>> {
        work(py, || Ok(core::canonical(&self.tree)))
    }

    fn serialize(&self, py: Python<'_>) -> PyResult<String> {
        work(py, || Ok(core::serialize(&self.tree, 0)))
    }

    #[pyo3(signature = (expression, namespaces=None, ignore_namespaces=false, cost_limit=None, context=None))]
    fn evaluate<'py>(
        &self,
        py: Python<'py>,
        expression: &str,
        namespaces: Option<&Bound<'py, PyMapping>>,
        ignore_namespaces: bool,
        cost_limit: Option<u64>,
        context: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let pairs = self::namespaces(namespaces)?;
        let outcome = work(py, || {
            let pairs = borrow(&pairs);
            let statics = StaticContext { namespaces: &pairs, ignore_namespaces, ..StaticContext::default() };
            let cost_limit = cost_limit.unwrap_or(sardonyx_core::matcher::Settings::default().cost_limit);
            let node = match context {
                None => NodeRef::ROOT,
                Some(path) => match self.value(path, &statics, cost_limit, NodeRef::ROOT)? {
                    Value::Nodes(nodes) if !nodes.is_empty() => nodes[0],
                    _ => {
                        let message = format!("the context {path:?} selects no node");
                        return Err(Failed::Core(crate::errors::Fields::new("query_type", message)));
                    }
                },
            };
            let mut locator = core::Locator::new(&self.tree, &self.payload.text()?);
            Ok(match self.value(expression, &statics, cost_limit, node)? {
                Value::Nodes(nodes) => Outcome::Nodes(
                    nodes.into_iter().map(|node| MatchedNode::new(&self.tree, node, &mut locator)).collect(),
                ),
                other => Outcome::Other(other),
            })
        })?;
        Ok(match outcome {
            Outcome::Nodes(nodes) => node_list(py, &nodes)?.into_any(),
            Outcome::Other(Value::Boolean(value)) => pyo3::types::PyBool::new(py, value).to_owned().into_any(),
            Outcome::Other(Value::Number(value)) => value.into_pyobject(py)?.into_any(),
            Outcome::Other(Value::String(value)) => value.into_pyobject(py)?.into_any(),
            Outcome::Other(Value::Nodes(_)) => PyList::empty(py).into_any(),
        })
    }
}

impl Document {
    fn value(
        &self,
        expression: &str,
        statics: &StaticContext<'_>,
        cost_limit: u64,
        node: NodeRef,
    ) -> Result<Value, Failed> {
        let mut symbols = Symbols::default();
        let mut parser = Parser::default();
        let parsed = parser.parse(expression, statics, &mut symbols)?;
        let names = DocumentSymbols::new(&self.tree, |test| symbols.find(test));
        let constants: Vec<_> = parsed.constants().iter().map(|constant| constant.as_ref()).collect();
        Ok(Evaluator::new(&self.tree, &names, cost_limit).value(parsed.query(), &constants, node)?)
    }
}
