//! `Index`: a population of subscriptions and its matchers.

mod matching;

use crate::arrow::{chunks, rows, strings, to_pyarrow};
use crate::attachment;
use crate::document::{borrow, namespaces, node_list};
use crate::errors::{Failed, Fields, work};
use crate::joins::Joins;
use crate::joins_explained::{self, Given, explained, explanation_dict};
use crate::memory;
use crate::parsers::Parsers;
use crate::registration::{self, Columns, One};
use crate::settings::{AllLimits, Payload, xpush_settings};
use crate::transformations::{Graph, Transformations};
use arrow_array::{Array, StringArray};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyMapping};
use pyo3_arrow::PyRecordBatch;
use pyo3_arrow::input::{AnyArray, AnyRecordBatch};
use sardonyx_core::index::Population;
use sardonyx_core::index::groups::largest_groups;
use sardonyx_core::index::image::Section;
use sardonyx_core::index::memory::Memory;
use sardonyx_core::matcher::{Inverted, Matcher, Matchers, Settings, XPush, XPushSettings};
use sardonyx_core::transform::execute::GroupResult;
use sardonyx_core::transform::explain;
use sardonyx_core::transform::population::Strategy;
use sardonyx_core::transform::results::Form;
use sardonyx_core::xpath::display::query_text;
use sardonyx_core::xpath::parser::{Parser, QueryLimits, StaticContext};
use sardonyx_core::xpath::symbols::Symbols;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

/// Parses a filter.
#[pyfunction]
#[pyo3(signature = (query, namespaces=None, ignore_namespaces=false, limits=None))]
pub(crate) fn check(
    py: Python<'_>,
    query: &str,
    namespaces: Option<&Bound<'_, PyMapping>>,
    ignore_namespaces: bool,
    limits: Option<&Bound<'_, PyMapping>>,
) -> PyResult<String> {
    let pairs = self::namespaces(namespaces)?;
    let limits = AllLimits::read(limits)?.query;
    work(py, || {
        let pairs = borrow(&pairs);
        let mut symbols = Symbols::default();
        let mut parser = Parser::default();
        let parsed =
            parser.parse(query, &StaticContext { namespaces: &pairs, ignore_namespaces, limits }, &mut symbols)?;
        let constants: Vec<_> = parsed.constants().iter().map(|constant| constant.as_ref()).collect();
        Ok(query_text(parsed.query(), &constants, &symbols, Some(&pairs)))
    })
}

/// A population of subscriptions; immutable generations behind a mutable handle.
#[pyclass(frozen, module = "sardonyx._core")]
#[derive(Debug)]
pub(crate) struct Index {
    population: Population,
    transformations: Transformations,
    joins: Joins,
    matchers: Matchers,
    limits: AllLimits,
    parsers: Parsers,
    content_hash: Option<String>,
    documents: AtomicU64,
}

/// Registering this many rows at once frees enough memory to be worth giving back.
const LARGE_BATCH: usize = 10_000;

fn matcher_named(name: &str) -> PyResult<Matcher> {
    match name {
        "inverted" => Ok(Matcher::Inverted),
        "xpush" => Ok(Matcher::XPush),
        "naive" => Ok(Matcher::Naive),
        other => {
            Err(PyValueError::new_err(format!("matcher is {other:?}; it must be \"inverted\", \"xpush\" or \"naive\"")))
        }
    }
}

fn strategy_named(name: &str) -> PyResult<Strategy> {
    Strategy::ALL.into_iter().find(|strategy| strategy.name() == name).ok_or_else(|| {
        let names = Strategy::ALL.map(|strategy| format!("{:?}", strategy.name())).join(", ");
        PyValueError::new_err(format!("strategy is {name:?}; it must be one of {names}"))
    })
}

fn matchers(cost_limit: Option<u64>, xpush: XPushSettings) -> Matchers {
    let defaults = Settings::default();
    let cost_limit = cost_limit.unwrap_or(defaults.cost_limit);
    Matchers {
        inverted: Inverted::new(Settings { cost_limit, ..defaults }),
        xpush: XPush::new(XPushSettings { cost_limit, ..xpush }),
    }
}

/// The population, which has its new segments prepared for the matcher that it is for as a rule.
fn prepared(population: Population, matchers: &Matchers) -> Population {
    population.prepare_by(matchers.inverted.preparation());
    population
}

#[pymethods]
impl Index {
    #[new]
    #[pyo3(signature = (limits=None, cost_limit=None, xpush=None, strategy="shared", elements=None))]
    fn new(
        limits: Option<&Bound<'_, PyMapping>>,
        cost_limit: Option<u64>,
        xpush: Option<&Bound<'_, PyMapping>>,
        strategy: &str,
        elements: Option<Graph>,
    ) -> PyResult<Index> {
        let matchers = matchers(cost_limit, xpush_settings(xpush)?);
        let cost_limit = matchers.inverted.settings().cost_limit;
        let limits = AllLimits::read(limits)?;
        Ok(Index {
            population: prepared(Population::default(), &matchers),
            transformations: Transformations::new(strategy_named(strategy)?, elements, cost_limit),
            joins: Joins::new(limits.query, cost_limit),
            matchers,
            parsers: Parsers::new(limits.document.clone()),
            limits,
            content_hash: None,
            documents: AtomicU64::new(0),
        })
    }

    #[staticmethod]
    #[pyo3(signature = (path, verify=true, cost_limit=None, limits=None, xpush=None, strategy="shared", elements=None))]
    #[allow(clippy::too_many_arguments)] // they are Python's, all but one with a default
    fn load(
        py: Python<'_>,
        path: PathBuf,
        verify: bool,
        cost_limit: Option<u64>,
        limits: Option<&Bound<'_, PyMapping>>,
        xpush: Option<&Bound<'_, PyMapping>>,
        strategy: &str,
        elements: Option<Graph>,
    ) -> PyResult<Index> {
        let limits = AllLimits::read(limits)?;
        let xpush = xpush_settings(xpush)?;
        let strategy = strategy_named(strategy)?;
        work(py, || {
            let population = Population::open(&path, verify)?;
            let snapshot = population.snapshot();
            let image = snapshot.segments[0].segment.image();
            let hash = image.checksum();
            let matchers = matchers(cost_limit, xpush);
            let cost_limit = matchers.inverted.settings().cost_limit;
            let transformations = Transformations::new(strategy, elements, cost_limit);
            let (first, second) = attachment::split(image.section(Section::Attachment))?;
            transformations.restore(first, limits.query)?;
            let joins = Joins::new(limits.query, cost_limit);
            joins.restore(second)?;
            Ok(Index {
                population: prepared(population, &matchers),
                transformations,
                joins,
                matchers,
                parsers: Parsers::new(limits.document.clone()),
                limits,
                content_hash: Some(format!("{hash:032x}")),
                documents: AtomicU64::new(0),
            })
        })
    }

    #[getter]
    fn generation(&self) -> u64 {
        self.population.snapshot().generation + self.transformations.changes() + self.joins.read().version()
    }

    #[getter]
    fn joins(&self) -> usize {
        self.joins.read().len()
    }

    #[getter]
    fn content_hash(&self) -> Option<&str> {
        self.content_hash.as_deref()
    }

    fn __len__(&self) -> usize {
        self.population.snapshot().len() + self.transformations.read().len() + self.joins.read().len()
    }

    fn __contains__(&self, subscription_id: &str) -> bool {
        self.population.snapshot().find(subscription_id).is_some()
            || self.transformations.read().find(subscription_id).is_some()
            || self.joins.read().find(subscription_id).is_some()
    }

    fn register<'py>(&self, py: Python<'py>, table: AnyRecordBatch) -> PyResult<Bound<'py, PyList>> {
        let (batches, _) = table.into_table()?.into_inner();
        let refused = work(py, || {
            let columns = batches.iter().map(Columns::new).collect::<PyResult<Vec<_>>>()?;
            let refused = registration::register(self, &columns)?;
            if columns.iter().map(|columns| columns.ids.len()).sum::<usize>() >= LARGE_BATCH {
                memory::give_back();
            }
            Ok(refused)
        })?;
        let rows = refused
            .iter()
            .map(|(row, id, fields)| Ok((*row, id, fields.to_dict(py)?)))
            .collect::<PyResult<Vec<_>>>()?;
        PyList::new(py, rows)
    }

    #[pyo3(signature = (
        subscription_id, query, namespaces=None, ignore_namespaces=false, stream=None, language=None, notify_empty=false
    ))]
    #[allow(clippy::too_many_arguments)] // the fields of a subscription
    fn register_one<'py>(
        &self,
        py: Python<'py>,
        subscription_id: &str,
        query: &str,
        namespaces: Option<&str>,
        ignore_namespaces: bool,
        stream: Option<&str>,
        language: Option<&str>,
        notify_empty: bool,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let row = One { subscription_id, query, namespaces, ignore_namespaces, stream, language, notify_empty };
        let refused = work(py, || registration::register(self, &[Columns::one(&row)]))?;
        refused.first().map(|(_, _, fields)| fields.to_dict(py)).transpose()
    }

    fn unregister(&self, py: Python<'_>, subscription_ids: Vec<String>) -> PyResult<Vec<String>> {
        work(py, || {
            let missing = self.population.unregister(subscription_ids.iter().map(String::as_str));
            if missing.is_empty() {
                return Ok(Vec::new());
            }
            let missing = self.transformations.unregister(missing, self.limits.query)?;
            Ok(self.joins.unregister(missing.iter().map(String::as_str)))
        })
    }

    fn get<'py>(&self, py: Python<'py>, subscription_id: &str) -> PyResult<Option<Bound<'py, PyDict>>> {
        if let Some(subscriber) = self.transformations.read().find(subscription_id) {
            let dict = PyDict::new(py);
            dict.set_item("query", &*subscriber.query)?;
            dict.set_item("stream", subscriber.stream.as_deref())?;
            dict.set_item("language", "xquery")?;
            return Ok(Some(dict));
        }
        if let Some(subscription) = self.joins.read().find(subscription_id) {
            let dict = PyDict::new(py);
            dict.set_item("query", &*subscription.query)?;
            dict.set_item("stream", subscription.stream.as_deref())?;
            dict.set_item("language", "xscl")?;
            return Ok(Some(dict));
        }
        let snapshot = self.population.snapshot();
        let Some((number, subscription)) = snapshot.find(subscription_id) else { return Ok(None) };
        let segment = &snapshot.segments[number].segment;
        let filter = segment.view().filter(subscription);
        let dict = PyDict::new(py);
        dict.set_item("query", query_text(filter.query(), &filter.constants, segment.symbols(), None))?;
        let stream = segment.stream_of(subscription).checked_sub(1).map(|at| &*segment.streams()[at as usize]);
        dict.set_item("stream", stream)?;
        dict.set_item("language", "xpath")?;
        Ok(Some(dict))
    }

    fn ids(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let ids = work(py, || {
            let snapshot = self.population.snapshot();
            let live = snapshot.segments.iter().flat_map(|part| {
                let names = part.segment.ids();
                part.live().map(move |subscription| Some(names.get(subscription)))
            });
            let transformations = self.transformations.read();
            let others = transformations.subscribers().map(|subscriber| Some(&*subscriber.id));
            let joins = self.joins.read();
            let joins = joins.subscriptions().iter().map(|(_, subscription)| Some(&*subscription.id));
            Ok(live.chain(others).chain(joins).collect::<StringArray>())
        })?;
        to_pyarrow(py, ids, "subscription_id")
    }

    fn compact(&self, py: Python<'_>) -> PyResult<()> {
        work(py, || {
            self.population.compact()?;
            memory::give_back();
            Ok(())
        })
    }

    #[pyo3(signature = (payload, stream=None, matcher="inverted"))]
    fn r#match(&self, py: Python<'_>, payload: Payload, stream: Option<&str>, matcher: &str) -> PyResult<Vec<String>> {
        let matcher = matcher_named(matcher)?;
        work(py, || {
            let snapshot = self.population.snapshot();
            let document = self.parsers.parse(&payload)?;
            let matches = self.match_one(&snapshot, &document, stream, matcher)?;
            let mut ids: Vec<String> = matches
                .iter()
                .map(|(segment, number)| snapshot.segments[segment as usize].segment.ids().get(number).to_owned())
                .collect();
            ids.extend(self.transform_one(&document, stream)?.into_iter().map(|(id, _)| id));
            ids.sort_unstable();
            Ok(ids)
        })
    }

    #[pyo3(signature = (payload, stream=None))]
    fn transform(&self, py: Python<'_>, payload: Payload, stream: Option<&str>) -> PyResult<Vec<(String, String)>> {
        work(py, || {
            let document = self.parsers.parse(&payload)?;
            let mut results = self.transform_one(&document, stream)?;
            results.sort_unstable();
            Ok(results)
        })
    }

    #[pyo3(signature = (payload, stream=None, matcher="inverted", node_limit=1000))]
    fn match_nodes<'py>(
        &self,
        py: Python<'py>,
        payload: Payload,
        stream: Option<&str>,
        matcher: &str,
        node_limit: usize,
    ) -> PyResult<Bound<'py, PyList>> {
        let matcher = matcher_named(matcher)?;
        let mut found = work(py, || {
            let snapshot = self.population.snapshot();
            let document = self.parsers.parse(&payload)?;
            let source = payload.text()?;
            let matches = self.match_one(&snapshot, &document, stream, matcher)?;
            let mut found = self.selected_nodes(&snapshot, &document, &source, &matches, node_limit)?;
            found.extend(self.transform_one(&document, stream)?.into_iter().map(|(id, _)| (id, Vec::new())));
            Ok(found)
        })?;
        found.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let rows = found.iter().map(|(id, nodes)| Ok((id, node_list(py, nodes)?))).collect::<PyResult<Vec<_>>>()?;
        PyList::new(py, rows)
    }

    #[pyo3(signature = (payloads, streams=None, threads=1, matcher="inverted"))]
    fn match_batch<'py>(
        &self,
        py: Python<'py>,
        payloads: AnyArray,
        streams: Option<AnyArray>,
        threads: usize,
        matcher: &str,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let matcher = matcher_named(matcher)?;
        let payloads = chunks(payloads)?;
        let streams = streams.map(chunks).transpose()?;
        let count: usize = payloads.iter().map(|chunk| chunk.len()).sum();
        if u32::try_from(count).is_err() {
            return Err(PyValueError::new_err(format!("{count} documents in one batch; at most 4294967295 fit")));
        }
        let (matches, errors) = work(py, || {
            let texts = streams.iter().flatten().map(|chunk| strings(chunk, "streams"));
            let texts = texts.collect::<PyResult<Vec<_>>>()?;
            let names: Vec<Option<&str>> = texts.iter().flat_map(|chunk| chunk.iter()).collect();
            if streams.is_some() && names.len() != count {
                let message = format!("{count} payloads and {} streams", names.len());
                return Err(PyValueError::new_err(message).into());
            }
            self.match_inputs(&rows(&payloads, &names)?, threads, matcher)
        })?;
        Ok((PyRecordBatch::new(matches).into_pyarrow(py)?, PyRecordBatch::new(errors).into_pyarrow(py)?))
    }

    #[pyo3(signature = (subscription_id, payload, stream=None))]
    fn explain<'py>(
        &self,
        py: Python<'py>,
        subscription_id: &str,
        payload: Payload,
        stream: Option<&str>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let explained = work(py, || {
            let snapshot = self.population.snapshot();
            let document = self.parsers.parse(&payload)?;
            let source = payload.text()?;
            crate::explain::explain(&snapshot, &self.matchers.inverted, subscription_id, &document, &source, stream)
        })?;
        explained.to_dict(py)
    }

    #[pyo3(signature = (subscription_id, documents))]
    fn explain_join<'py>(
        &self,
        py: Python<'py>,
        subscription_id: &str,
        documents: Vec<Given>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let (query, explanation) =
            work(py, || explained(&self.joins.read(), subscription_id, &documents, &self.limits.document))?;
        explanation_dict(py, &query, &explanation)
    }

    fn join_queries<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        joins_explained::queries(py, &self.joins.read())
    }

    #[pyo3(signature = (subscription_id, payload=None, stream=None))]
    fn explain_transformation<'py>(
        &self,
        py: Python<'py>,
        subscription_id: &str,
        payload: Option<Payload>,
        stream: Option<&str>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let (query, strategy, lines, triggers, outcome) = work(py, || {
            let population = self.transformations.read();
            let Some(subscriber) = population.find(subscription_id) else {
                return Err(Failed::Core(Fields::new("unknown_subscription", "no such transformation is registered")));
            };
            let outcome = match payload {
                None => None,
                Some(payload) => {
                    let document = self.parsers.parse(&payload)?;
                    let reads = subscriber.stream.as_deref().is_none_or(|own| Some(own) == stream);
                    let mut worker = self.transformations.pool().take();
                    let transformed = self.transformations.transform(&population, &mut worker, &document);
                    self.transformations.pool().give_back(worker);
                    let own = |plan: u32| plan == subscriber.plan();
                    let error = transformed.failures.iter().find(|(plan, _)| own(*plan));
                    let result = transformed
                        .results
                        .iter()
                        .find(|result| own(result.plan) && reads && (!result.is_empty || subscriber.notify_empty));
                    Some((result.map(|result| result.text.clone()), error.map(|(_, error)| error.to_string())))
                }
            };
            let strategy = population.strategy().name();
            let lines = explain::explain(&population, subscriber.plan());
            Ok((subscriber.query.clone(), strategy, lines, explain::triggers(&population, subscriber.plan()), outcome))
        })?;
        let dict = PyDict::new(py);
        dict.set_item("query", &*query)?;
        dict.set_item("strategy", strategy)?;
        dict.set_item("triggers", triggers)?;
        let plan = lines
            .iter()
            .map(|line| {
                let entry = PyDict::new(py);
                entry.set_item("operator", line.operator)?;
                entry.set_item("detail", &line.detail)?;
                entry.set_item("depth", line.depth)?;
                entry.set_item("shared_with", line.shared_with)?;
                entry.set_item("why", &line.why)?;
                Ok(entry)
            })
            .collect::<PyResult<Vec<_>>>()?;
        dict.set_item("plan", plan)?;
        let (result, error) = outcome.unwrap_or_default();
        dict.set_item("matched", result.is_some())?;
        dict.set_item("result", result)?;
        dict.set_item("error", error)?;
        Ok(dict)
    }

    #[pyo3(signature = (payload, stream=None))]
    fn transformation_groups(
        &self,
        py: Python<'_>,
        payload: Payload,
        stream: Option<&str>,
    ) -> PyResult<Vec<(String, GroupResult)>> {
        work(py, || {
            let document = self.parsers.parse(&payload)?;
            Ok(self.transformations.groups(&document, stream))
        })
    }

    #[pyo3(signature = (documents, form="groups", passes=1))]
    fn profile_transformations<'py>(
        &self,
        py: Python<'py>,
        documents: Vec<Py<crate::document::Document>>,
        form: &str,
        passes: usize,
    ) -> PyResult<Bound<'py, PyDict>> {
        let form = match form {
            "groups" => Form::Groups,
            "text" => Form::Text,
            other => {
                return Err(PyValueError::new_err(format!("form is {other:?}; it must be \"groups\" or \"text\"")));
            }
        };
        let profile = work(py, || {
            let parsed: Vec<&sardonyx_core::document::Document> =
                documents.iter().map(|document| document.get().parsed()).collect();
            Ok(self.transformations.profile(&parsed, form, passes))
        })?;
        let dict = PyDict::new(py);
        dict.set_item("seconds", profile.seconds)?;
        dict.set_item("path_seconds", profile.path_seconds)?;
        for (name, count) in [
            ("candidates", profile.candidates),
            ("results", profile.results),
            ("groups", profile.groups),
            ("text_bytes", profile.text_bytes),
            ("failures", profile.failures),
        ] {
            dict.set_item(name, count)?;
        }
        Ok(dict)
    }

    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<String> {
        let checksum = work(py, || {
            let attached = attachment::joined(&self.transformations.encode(), &self.joins.encode());
            Ok(self.population.save(&path, &attached)?)
        })?;
        Ok(format!("{checksum:032x}"))
    }

    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let snapshot = self.population.snapshot();
        let caches = self.matchers.inverted.statistics();
        let machines = self.matchers.xpush.statistics();
        let sum = |count: &dyn Fn(&sardonyx_core::index::SnapshotSegment) -> usize| -> usize {
            snapshot.segments.iter().map(count).sum()
        };
        let dict = PyDict::new(py);
        dict.set_item(
            "generation",
            snapshot.generation + self.transformations.changes() + self.joins.read().version(),
        )?;
        {
            let transformations = self.transformations.read();
            dict.set_item("subscriptions", snapshot.len() + transformations.len() + self.joins.read().len())?;
            dict.set_item("joins", self.joins.read().len())?;
            dict.set_item("transformations", transformations.len())?;
            dict.set_item("plans", transformations.live_plan_count())?;
            dict.set_item("plan_streams", transformations.operators().streams().len())?;
            dict.set_item("plan_conditions", transformations.operators().conditions().len())?;
            dict.set_item("plan_paths", transformations.operators().paths().len())?;
        }
        dict.set_item("rows", sum(&|part| part.segment.view().row_count() as usize))?;
        dict.set_item("signatures", sum(&|part| part.segment.view().signature_count() as usize))?;
        dict.set_item("paths", sum(&|part| part.segment.trie().len()))?;
        dict.set_item("postings", sum(&|part| part.segment.predicates().posting_count()))?;
        dict.set_item("always_candidates", sum(&|part| part.segment.always_row_count() as usize))?;
        dict.set_item("segments", snapshot.segments.len())?;
        let memory = Memory::of(&snapshot);
        dict.set_item("tombstones", sum(&|part| part.removed.count() as usize))?;
        dict.set_item("index_bytes", memory.images())?;
        dict.set_item("mapped_bytes", memory.mapped)?;
        dict.set_item("heap_bytes", memory.heap)?;
        dict.set_item("tombstone_bytes", memory.tombstones)?;
        dict.set_item("cache_bytes", caches.cache_bytes)?;
        dict.set_item("path_states", caches.path_states)?;
        dict.set_item("path_cache_clears", caches.path_cache_clears)?;
        dict.set_item("candidate_rows", caches.rows.candidates)?;
        dict.set_item("guarded_runs", caches.rows.guarded)?;
        dict.set_item("decided_rows", caches.rows.decided)?;
        dict.set_item("columnar_rows", caches.rows.columnar)?;
        dict.set_item("verified_rows", caches.rows.verified)?;
        for (name, size) in [
            ("states", machines.states),
            ("state_members", machines.state_members),
            ("top_down_states", machines.top_down_states),
            ("value_states", machines.value_states),
            ("transitions", machines.transitions),
            ("store_bytes", machines.store_bytes),
            ("automaton_states", machines.automaton_states),
            ("automaton_bytes", machines.automaton_bytes),
            ("inexact_rows", machines.inexact_rows),
            ("unfiltered_rows", machines.unfiltered_rows),
        ] {
            dict.set_item(format!("xpush_{name}"), size)?;
        }
        for (name, count) in [
            ("lookups", machines.lookups),
            ("hits", machines.hits),
            ("clears", machines.clears),
            ("verified_rows", machines.verified_rows),
            ("early_rows", machines.early_rows),
            ("unordered_documents", machines.unordered_documents),
        ] {
            dict.set_item(format!("xpush_{name}"), count)?;
        }
        dict.set_item("documents", self.documents.load(Ordering::Relaxed))?;
        dict.set_item("part_layout_bytes", memory.layout)?;
        for (name, bytes) in memory.sections {
            dict.set_item(format!("part_{name}_bytes"), bytes)?;
        }
        Ok(dict)
    }

    fn groups<'py>(&self, py: Python<'py>, limit: usize) -> PyResult<Bound<'py, PyList>> {
        let groups = work(py, || Ok(largest_groups(&self.population.snapshot(), limit)))?;
        let rows = groups
            .into_iter()
            .map(|group| {
                let dict = PyDict::new(py);
                dict.set_item("rows", group.rows)?;
                dict.set_item("subscriptions", group.subscriptions)?;
                dict.set_item("constants", group.constants)?;
                dict.set_item("query", group.query)?;
                dict.set_item("access", group.access)?;
                Ok(dict)
            })
            .collect::<PyResult<Vec<_>>>()?;
        PyList::new(py, rows)
    }
}

impl Index {
    /// Its filters.
    pub(crate) fn filters(&self) -> &Population {
        &self.population
    }

    /// Its transformations.
    pub(crate) fn transformations(&self) -> &Transformations {
        &self.transformations
    }

    /// Its joins.
    pub(crate) fn join_population(&self) -> &Joins {
        &self.joins
    }

    /// Bounds of queries.
    pub(crate) fn query_limits(&self) -> QueryLimits {
        self.limits.query
    }

    /// Bounds of documents.
    pub(crate) fn document_limits(&self) -> &sardonyx_core::document::Limits {
        &self.limits.document
    }
}
