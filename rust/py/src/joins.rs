//! The joins of an index, beside its filters and transformations, and the state that they need.

use crate::arrow::{Row, chunks, rows, strings};
use crate::document::borrow;
use crate::errors::{Failed, Fields, arrow_error, malformed, work};
use crate::index::Index;
use crate::joins_explained::tables;
use crate::matches::ErrorTable;
use crate::registration::Refused;
use arrow_array::builder::{
    Int64Builder, LargeBinaryBuilder, LargeStringBuilder, ListBuilder, StringBuilder, UInt32Builder,
};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt32Type};
use arrow_array::{Array, ArrayRef, Int64Array, LargeBinaryArray, RecordBatch, StringArray, UInt32Array};
use arrow_schema::{ArrowError, DataType};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict, PyMapping};
use pyo3_arrow::PyRecordBatch;
use pyo3_arrow::input::{AnyArray, AnyRecordBatch};
use sardonyx_core::document::Limits;
use sardonyx_core::join::publish::{Failure, Message, Outcome, Refusal, publish, units};
use sardonyx_core::join::results::hexadecimal;
use sardonyx_core::join::saved::{encode_witnesses, message, restore, save};
use sardonyx_core::join::state::{Settings, State};
use sardonyx_core::join::store::{decode, encode};
use sardonyx_core::join::time::Clocks;
use sardonyx_core::join::witnesses::{Published, UnitWitness};
use sardonyx_core::join::{Population, RegisterError, Registration};
use sardonyx_core::matcher::{DocumentInput, process_documents};
use sardonyx_core::xpath::parser::QueryLimits;
use sardonyx_core::xquery::parser::StaticContext;
use sardonyx_core::xscl::parser::parse;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};

/// A join as it is given.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unparsed<'b> {
    pub(crate) row: u64,
    pub(crate) id: &'b str,
    pub(crate) query: &'b str,
    pub(crate) namespaces: &'b [(&'b str, &'b str)],
    pub(crate) stream: Option<&'b str>,
}

/// A population of joins that changes while documents are published.
#[derive(Debug)]
pub(crate) struct Joins {
    population: RwLock<Population>,
    limits: QueryLimits,
}

impl Joins {
    /// No joins yet.
    pub(crate) fn new(limits: QueryLimits, cost_limit: u64) -> Joins {
        Joins { population: RwLock::new(Population::new(limits, cost_limit)), limits }
    }

    /// The current population.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Population> {
        self.population.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers joins; gives row, id and reason of those refused, and the ids of the others.
    pub(crate) fn register<'b>(&self, unparsed: &[Unparsed<'b>]) -> (Refused, Vec<&'b str>) {
        let mut refused = Vec::new();
        let mut rows: BTreeMap<Arc<str>, u64> = BTreeMap::new();
        let mut registrations = Vec::with_capacity(unparsed.len());
        for given in unparsed {
            let context = StaticContext { namespaces: given.namespaces, limits: self.limits };
            match parse(given.query, &context) {
                Ok(parsed) => {
                    let id: Arc<str> = given.id.into();
                    rows.insert(id.clone(), given.row);
                    let namespaces = given.namespaces.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned()));
                    registrations.push(Registration {
                        id,
                        query: given.query.into(),
                        namespaces: namespaces.collect(),
                        stream: given.stream.map(Into::into),
                        parsed,
                    });
                }
                Err(error) => refused.push((given.row, Some(given.id.to_owned()), error.into())),
            }
        }
        let failed = self.write().register(registrations);
        for (id, error) in failed {
            if let Some(row) = rows.remove(&id) {
                refused.push((row, Some(id.to_string()), error.into()));
            }
        }
        let accepted = unparsed.iter().map(|given| given.id).filter(|id| rows.contains_key(*id)).collect();
        (refused, accepted)
    }

    /// Removes those of these ids that are joins.
    pub(crate) fn forget<'i>(&self, ids: impl IntoIterator<Item = &'i str>) {
        if !self.read().is_empty() {
            self.unregister(ids);
        }
    }

    /// Removes joins; gives the ids that were not there.
    pub(crate) fn unregister<'i>(&self, ids: impl IntoIterator<Item = &'i str>) -> Vec<String> {
        let ids: Vec<&str> = ids.into_iter().collect();
        if self.read().is_empty() {
            return ids.into_iter().map(str::to_owned).collect();
        }
        self.write().unregister(ids)
    }

    /// As bytes for a file.
    pub(crate) fn encode(&self) -> Vec<u8> {
        encode(&self.read())
    }

    /// Registers what a file carries.
    pub(crate) fn restore(&self, bytes: &[u8]) -> Result<(), Failed> {
        let wrong = |reason: String| Failed::Core(Fields::new("index_format", reason));
        let registrations = decode(bytes, self.limits).map_err(wrong)?;
        if registrations.is_empty() {
            return Ok(());
        }
        match self.write().register(registrations).first() {
            Some((id, error)) => Err(wrong(format!("the join {id:?} can not be registered: {error}"))),
            None => Ok(()),
        }
    }

    pub(crate) fn write(&self) -> std::sync::RwLockWriteGuard<'_, Population> {
        self.population.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl From<RegisterError> for Fields {
    fn from(error: RegisterError) -> Fields {
        match error {
            RegisterError::Path(error) => error.into(),
            cycle @ RegisterError::Cycle { .. } => Fields::new("cycle", cycle.to_string()),
        }
    }
}

impl From<&Refusal> for Fields {
    fn from(refusal: &Refusal) -> Fields {
        let kind = match refusal {
            Refusal::Late { .. } => "late_document",
            Refusal::Full(_) => "state_limit",
        };
        Fields::new(kind, refusal.to_string())
    }
}

/// What was published and may still join.
#[pyclass(frozen, module = "sardonyx._core")]
#[derive(Debug)]
pub(crate) struct JoinState {
    state: Mutex<State>,
    clocks: Clocks,
}

/// A document taken apart: its timestamp, its units, and subscriptions that failed on it.
type Taken = (Result<i64, String>, Vec<UnitWitness<'static>>, Vec<Failure>);

/// The columns of published documents.
struct Columns {
    payloads: Vec<ArrayRef>,
    /// Those given as text, which are null among the payloads.
    texts: Vec<ArrayRef>,
    ids: Vec<StringArray>,
    streams: Option<Vec<StringArray>>,
    times: Vec<Int64Array>,
}

impl Columns {
    fn new(
        payloads: AnyArray,
        ids: AnyArray,
        times: AnyArray,
        streams: Option<AnyArray>,
        texts: Option<AnyArray>,
    ) -> PyResult<Columns> {
        let text = |array: AnyArray, name: &str| -> PyResult<Vec<StringArray>> {
            chunks(array)?.iter().map(|chunk| strings(chunk, name)).collect()
        };
        let times = chunks(times)?
            .iter()
            .map(|chunk| match chunk.data_type() {
                DataType::Int64 => Ok(chunk.as_primitive::<Int64Type>().clone()),
                other => Err(PyTypeError::new_err(format!("timestamps must be int64 microseconds, not {other}"))),
            })
            .collect::<PyResult<Vec<_>>>()?;
        let streams = streams.map(|array| text(array, "streams")).transpose()?;
        let texts = texts.map(chunks).transpose()?.unwrap_or_default();
        let columns = Columns { payloads: chunks(payloads)?, texts, ids: text(ids, "ids")?, streams, times };
        let count: usize = columns.payloads.iter().map(|chunk| chunk.len()).sum();
        let lengths = [
            columns.ids.iter().map(Array::len).sum::<usize>(),
            columns.times.iter().map(Array::len).sum(),
            columns.streams.as_ref().map_or(count, |streams| streams.iter().map(Array::len).sum()),
            if columns.texts.is_empty() { count } else { columns.texts.iter().map(|chunk| chunk.len()).sum() },
        ];
        if lengths != [count; 4] || u32::try_from(count).is_err() {
            let [ids, times, streams, texts] = lengths;
            let message =
                format!("{count} payloads, {ids} ids, {times} timestamps, {streams} streams and {texts} texts");
            return Err(PyValueError::new_err(message));
        }
        Ok(columns)
    }

    /// The streams: one for each document, or none.
    fn streams(&self) -> Vec<Option<&str>> {
        self.streams.iter().flatten().flat_map(|chunk| chunk.iter()).collect()
    }

    fn rows(&self) -> PyResult<Vec<Row<'_>>> {
        let streams = self.streams();
        let mut documents = rows(&self.payloads, &streams)?;
        for (document, text) in documents.iter_mut().zip(rows(&self.texts, &streams)?) {
            if matches!(document, Row::Missing) {
                *document = text;
            }
        }
        Ok(documents)
    }
}

#[pymethods]
impl JoinState {
    #[new]
    #[pyo3(signature = (*, lateness_us, state_bytes, memory_bytes, results, cost_limit, timestamps=None, namespaces=None))]
    #[allow(clippy::too_many_arguments)] // they are Python's
    fn new(
        py: Python<'_>,
        lateness_us: i64,
        state_bytes: usize,
        memory_bytes: usize,
        results: bool,
        cost_limit: u64,
        timestamps: Option<BTreeMap<String, String>>,
        namespaces: Option<&Bound<'_, PyMapping>>,
    ) -> PyResult<JoinState> {
        let settings = Settings { lateness_us, state_bytes, memory_bytes, results, cost_limit };
        let pairs = crate::document::namespaces(namespaces)?;
        let mut clocks = Clocks::default();
        for (stream, text) in timestamps.unwrap_or_default() {
            clocks.declare(&stream, &text, &borrow(&pairs)).map_err(|error| {
                let mut fields = Fields::from(error);
                fields.message = format!("the timestamp of stream {stream:?}: {}", fields.message);
                fields.kind = "settings".into();
                fields.raise(py)
            })?;
        }
        Ok(JoinState { state: Mutex::new(State::new(settings)), clocks })
    }

    /// Publishes documents; each is a batch of its own unless they are published `together`.
    #[pyo3(signature = (index, payloads, ids, timestamps_us, streams=None, texts=None, together=false, threads=1))]
    #[allow(clippy::too_many_arguments)] // they are Python's
    fn publish<'py>(
        &self,
        py: Python<'py>,
        index: &Index,
        payloads: AnyArray,
        ids: AnyArray,
        timestamps_us: AnyArray,
        streams: Option<AnyArray>,
        texts: Option<AnyArray>,
        together: bool,
        threads: usize,
    ) -> PyResult<Bound<'py, PyDict>> {
        let columns = Columns::new(payloads, ids, timestamps_us, streams, texts)?;
        let (tables, repetitions) =
            self.taken_apart(py, index, &columns, threads, |population, messages, mut errors| {
                let outcome = self.hear_all(population, messages, together, false, &mut errors);
                outcome_tables(outcome, errors)
            })?;
        outcome_dict(py, tables, repetitions)
    }

    /// Publishes documents and only counts what they join with.
    #[pyo3(signature = (index, payloads, ids, timestamps_us, streams=None, texts=None, together=false, threads=1))]
    #[allow(clippy::too_many_arguments)] // they are Python's
    fn count<'py>(
        &self,
        py: Python<'py>,
        index: &Index,
        payloads: AnyArray,
        ids: AnyArray,
        timestamps_us: AnyArray,
        streams: Option<AnyArray>,
        texts: Option<AnyArray>,
        together: bool,
        threads: usize,
    ) -> PyResult<Bound<'py, PyDict>> {
        let columns = Columns::new(payloads, ids, timestamps_us, streams, texts)?;
        let (errors, outcome) =
            self.taken_apart(py, index, &columns, threads, |population, messages, mut errors| {
                let outcome = self.hear_all(population, messages, together, true, &mut errors);
                Ok((errors.finish().map_err(arrow_error)?, outcome))
            })?;
        let dict = PyDict::new(py);
        dict.set_item("pairs", outcome.pairs)?;
        dict.set_item("notifications", outcome.count)?;
        dict.set_item("repetitions", outcome.repetitions)?;
        dict.set_item("errors", PyRecordBatch::new(errors).into_pyarrow(py)?)?;
        Ok(dict)
    }

    /// Stage 1 alone: takes documents apart, and keeps nothing.
    #[pyo3(signature = (index, payloads, ids, timestamps_us, streams=None, texts=None, threads=1))]
    #[allow(clippy::too_many_arguments)] // they are Python's
    fn witnesses<'py>(
        &self,
        py: Python<'py>,
        index: &Index,
        payloads: AnyArray,
        ids: AnyArray,
        timestamps_us: AnyArray,
        streams: Option<AnyArray>,
        texts: Option<AnyArray>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyDict>> {
        let columns = Columns::new(payloads, ids, timestamps_us, streams, texts)?;
        let tables = self.taken_apart(py, index, &columns, threads, |_, messages, errors| {
            Ok([witness_table(&messages).map_err(arrow_error)?, errors.finish().map_err(arrow_error)?])
        })?;
        table_dict(py, ["witnesses", "errors"], tables)
    }

    /// Stage 1 alone, as the tables of the literature: what each document binds, and the values of it.
    #[pyo3(signature = (index, payloads, ids, timestamps_us, streams=None))]
    fn witness_tables<'py>(
        &self,
        py: Python<'py>,
        index: &Index,
        payloads: AnyArray,
        ids: AnyArray,
        timestamps_us: AnyArray,
        streams: Option<AnyArray>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let columns = Columns::new(payloads, ids, timestamps_us, streams, None)?;
        let found = self.taken_apart(py, index, &columns, 1, |_, messages, _| {
            let documents = messages.iter().map(|message| (message.number, message.witnesses.as_slice()));
            tables(documents).map_err(arrow_error)
        })?;
        table_dict(py, ["bindings", "values"], found)
    }

    /// Stage 2 alone: joins documents that were taken apart by `witnesses` with the same index.
    #[pyo3(signature = (index, table, together=true))]
    fn hear<'py>(
        &self,
        py: Python<'py>,
        index: &Index,
        table: AnyRecordBatch,
        together: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        let (batches, _) = table.into_table()?.into_inner();
        let rows = batches.iter().map(WitnessRows::new).collect::<PyResult<Vec<_>>>()?;
        let (tables, repetitions) = work(py, || {
            let mut errors = ErrorTable::default();
            let population = index.join_population().read();
            let mut messages = Vec::new();
            for rows in &rows {
                rows.messages(&population, &mut messages)?;
            }
            let outcome = self.hear_all(&population, messages, together, false, &mut errors);
            outcome_tables(outcome, errors)
        })?;
        outcome_dict(py, tables, repetitions)
    }

    /// The state and what it means, as bytes; `restore` takes them.
    fn save<'py>(&self, py: Python<'py>, index: &Index) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = work(py, || Ok(save(&self.lock(), &index.join_population().read())))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Goes on where a saved state was.
    fn restore(&self, py: Python<'_>, index: &Index, saved: PyBackedBytes) -> PyResult<()> {
        work(py, || {
            let mut state = self.lock();
            let mut fresh = State::new(*state.settings());
            restore(&mut fresh, &mut index.join_population().write(), &saved).map_err(malformed)?;
            *state = fresh;
            Ok(())
        })
    }

    /// Counters and sizes.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let state = self.lock();
        let dict = PyDict::new(py);
        let counters = state.counters();
        let [documents, units, values, classes] = state.sizes();
        let decisions = state.decisions();
        let (sets, decided) = decisions.counts();
        for (name, count) in [
            ("join_documents", counters.documents),
            ("join_late_documents", counters.late),
            ("join_repetitions", counters.repetitions),
            ("join_expired_units", counters.expired),
            ("join_pairs", counters.pairs),
            ("join_proofs", counters.proofs),
            ("join_state_documents", documents as u64),
            ("join_state_units", units as u64),
            ("join_state_values", values as u64),
            ("join_state_classes", classes as u64),
            ("join_state_bytes", state.memory_bytes() as u64),
            ("join_sets", sets as u64),
            ("join_decisions", decided as u64),
            ("join_decision_bytes", decisions.memory_bytes() as u64),
            ("join_decision_hits", decisions.hits),
            ("join_decision_misses", decisions.misses),
            ("join_decision_clears", decisions.clears),
        ] {
            dict.set_item(name, count)?;
        }
        Ok(dict)
    }

    /// The watermark in microseconds; None before the first document.
    #[getter]
    fn watermark_us(&self) -> Option<i64> {
        self.lock().watermark()
    }
}

impl JoinState {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes documents apart without the interpreter's lock, and does something with them.
    fn taken_apart<'c, T: Send>(
        &self,
        py: Python<'_>,
        index: &Index,
        columns: &'c Columns,
        threads: usize,
        then: impl FnOnce(&Population, Vec<Message<'c>>, ErrorTable) -> Result<T, Failed> + Send,
    ) -> PyResult<T> {
        work(py, || {
            let rows = columns.rows()?;
            let mut errors = ErrorTable::default();
            let population = index.join_population().read();
            let messages = self.messages(&population, index, columns, &rows, threads, &mut errors);
            then(&population, messages, errors)
        })
    }

    /// Documents taken apart; what is wrong with some is an error.
    fn messages<'c>(
        &self,
        population: &Population,
        index: &Index,
        columns: &'c Columns,
        rows: &[Row<'_>],
        threads: usize,
        errors: &mut ErrorTable,
    ) -> Vec<Message<'c>> {
        let times: Vec<Option<i64>> = columns.times.iter().flat_map(|chunk| chunk.iter()).collect();
        let ids: Vec<Option<&str>> = columns.ids.iter().flat_map(|chunk| chunk.iter()).collect();
        let streams = columns.streams();
        let results = self.lock().settings().results;
        let taken = self.take_apart(population, index.document_limits(), rows, threads, results, errors);
        let mut messages = Vec::with_capacity(taken.len());
        for (number, (declared, witnesses, failures)) in taken {
            let at = number as usize;
            let time = match (times[at], declared) {
                (Some(time), _) | (None, Ok(time)) => time,
                (None, Err(reason)) => {
                    errors.add(number, None, &Fields::new("timestamp", reason));
                    continue;
                }
            };
            for failure in failures {
                errors.add(number, Some(&failure.subscription_id), &Fields::from(failure.error));
            }
            let stream = streams.get(at).copied().flatten();
            messages.push(Message { number, stream, id: ids[at].unwrap_or_default(), time, witnesses });
        }
        messages
    }

    /// Stage 2.
    fn hear_all(
        &self,
        population: &Population,
        messages: Vec<Message<'_>>,
        together: bool,
        counts_only: bool,
        errors: &mut ErrorTable,
    ) -> Outcome {
        let mut total = Outcome::default();
        let mut state = self.lock();
        if together {
            merge(&mut total, publish(population, &mut state, messages, counts_only), errors);
        } else {
            for message in messages {
                merge(&mut total, publish(population, &mut state, vec![message], counts_only), errors);
            }
        }
        total
    }

    /// Stage 1, on several threads; what can not be read is an error.
    fn take_apart(
        &self,
        population: &Population,
        limits: &Limits,
        rows: &[Row<'_>],
        threads: usize,
        results: bool,
        errors: &mut ErrorTable,
    ) -> Vec<(u32, Taken)> {
        let mut present: Vec<DocumentInput<'_>> = Vec::with_capacity(rows.len());
        let mut numbers: Vec<u32> = Vec::with_capacity(rows.len());
        for (number, row) in (0_u32..).zip(rows) {
            match row {
                Row::Present(input) => {
                    present.push(*input);
                    numbers.push(number);
                }
                other => other.refuse(number, errors),
            }
        }
        let outcomes = process_documents(
            &present,
            limits,
            threads,
            || population.worker(),
            |worker, document, stream| -> Taken {
                let declared = self.clocks.read(document, stream, population.cost_limit());
                let declared = declared.unwrap_or_else(|| Err("the document has no timestamp".into()));
                let mut failures = Vec::new();
                let published = Published { document, stream, is_derived: false };
                let found = units(population, worker, published, results, |failure| failures.push(failure));
                (declared, found.into_iter().map(UnitWitness::into_owned).collect(), failures)
            },
            |worker| population.give_back(worker),
        );
        let mut taken = Vec::with_capacity(outcomes.len());
        for (number, outcome) in numbers.into_iter().zip(outcomes) {
            match outcome {
                Ok(parts) => taken.push((number, parts)),
                Err(error) => errors.add(number, None, &error.into()),
            }
        }
        taken
    }
}

fn merge(total: &mut Outcome, outcome: Outcome, errors: &mut ErrorTable) {
    for (number, refusal) in &outcome.refused {
        errors.add(*number, None, &refusal.into());
    }
    for failure in &outcome.failures {
        errors.add(failure.number, Some(&failure.subscription_id), &Fields::from(failure.error.clone()));
    }
    total.notifications.extend(outcome.notifications);
    total.derived.extend(outcome.derived);
    total.repetitions += outcome.repetitions;
    total.pairs += outcome.pairs;
    total.count += outcome.count;
}

/// Notifications, derived documents and errors, and how many documents were repetitions.
type Tables = ([RecordBatch; 3], u64);

fn outcome_tables(outcome: Outcome, errors: ErrorTable) -> Result<Tables, Failed> {
    let notifications = notification_table(&outcome).map_err(arrow_error)?;
    let derived = derived_table(&outcome).map_err(arrow_error)?;
    Ok(([notifications, derived, errors.finish().map_err(arrow_error)?], outcome.repetitions))
}

fn outcome_dict<'py>(py: Python<'py>, tables: [RecordBatch; 3], repetitions: u64) -> PyResult<Bound<'py, PyDict>> {
    let dict = table_dict(py, ["notifications", "derived", "errors"], tables)?;
    dict.set_item("repetitions", repetitions)?;
    Ok(dict)
}

fn table_dict<'py, const N: usize>(
    py: Python<'py>,
    names: [&str; N],
    tables: [RecordBatch; N],
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, table) in names.into_iter().zip(tables) {
        dict.set_item(name, PyRecordBatch::new(table).into_pyarrow(py)?)?;
    }
    Ok(dict)
}

/// Rows of a table of witnesses.
struct WitnessRows {
    documents: UInt32Array,
    ids: StringArray,
    streams: StringArray,
    times: Int64Array,
    witnesses: LargeBinaryArray,
}

impl WitnessRows {
    fn new(batch: &RecordBatch) -> PyResult<WitnessRows> {
        let column = |name: &str| {
            let missing = || PyValueError::new_err(format!("the table of witnesses has no column {name:?}"));
            batch.column_by_name(name).ok_or_else(missing)
        };
        let typed = |name: &str, kind: DataType| -> PyResult<ArrayRef> {
            let column = column(name)?;
            if column.data_type() == &kind {
                return Ok(column.clone());
            }
            Err(PyTypeError::new_err(format!("column {name:?} must be {kind}, not {}", column.data_type())))
        };
        Ok(WitnessRows {
            documents: typed("document", DataType::UInt32)?.as_primitive::<UInt32Type>().clone(),
            ids: strings(column("document_id")?, "document_id")?,
            streams: strings(column("stream")?, "stream")?,
            times: typed("timestamp_us", DataType::Int64)?.as_primitive::<Int64Type>().clone(),
            witnesses: typed("witnesses", DataType::LargeBinary)?.as_binary::<i64>().clone(),
        })
    }

    fn messages<'r>(&'r self, population: &Population, into: &mut Vec<Message<'r>>) -> Result<(), Failed> {
        for row in 0..self.documents.len() {
            let stream = self.streams.is_valid(row).then(|| self.streams.value(row));
            let (number, id, time) = (self.documents.value(row), self.ids.value(row), self.times.value(row));
            let witnesses = self.witnesses.value(row);
            into.push(message(population, number, stream, id, time, witnesses).map_err(malformed)?);
        }
        Ok(())
    }
}

fn witness_table(messages: &[Message<'_>]) -> Result<RecordBatch, ArrowError> {
    let mut witnesses = LargeBinaryBuilder::new();
    for message in messages {
        witnesses.append_value(encode_witnesses(&message.witnesses));
    }
    let columns: Vec<(&str, ArrayRef, bool)> = vec![
        ("document", Arc::new(messages.iter().map(|message| message.number).collect::<UInt32Array>()), false),
        ("document_id", Arc::new(messages.iter().map(|message| Some(message.id)).collect::<StringArray>()), false),
        ("stream", Arc::new(messages.iter().map(|message| message.stream).collect::<StringArray>()), true),
        ("timestamp_us", Arc::new(messages.iter().map(|message| message.time).collect::<Int64Array>()), false),
        ("witnesses", Arc::new(witnesses.finish()), false),
    ];
    RecordBatch::try_from_iter_with_nullable(columns)
}

fn notification_table(outcome: &Outcome) -> Result<RecordBatch, ArrowError> {
    let mut documents = UInt32Builder::new();
    let mut subscriptions = StringBuilder::new();
    let mut names = StringBuilder::new();
    let mut ids = ListBuilder::new(StringBuilder::new());
    let mut nodes = ListBuilder::new(UInt32Builder::new());
    let mut results = LargeStringBuilder::new();
    let mut times = Int64Builder::new();
    for (number, notification) in &outcome.notifications {
        documents.append_value(*number);
        subscriptions.append_value(&notification.subscription_id);
        names.append_value(hexadecimal(&notification.notification_id));
        notification.documents.iter().for_each(|id| ids.values().append_value(id));
        ids.append(true);
        notification.nodes.iter().for_each(|node| nodes.values().append_value(*node));
        nodes.append(true);
        results.append_option(notification.result.as_deref());
        times.append_value(notification.time);
    }
    let columns: Vec<(&str, ArrayRef, bool)> = vec![
        ("document", Arc::new(documents.finish()), false),
        ("subscription_id", Arc::new(subscriptions.finish()), false),
        ("notification_id", Arc::new(names.finish()), false),
        ("document_ids", Arc::new(ids.finish()), false),
        ("nodes", Arc::new(nodes.finish()), false),
        ("timestamp_us", Arc::new(times.finish()), false),
        ("result", Arc::new(results.finish()), true),
    ];
    RecordBatch::try_from_iter_with_nullable(columns)
}

fn derived_table(outcome: &Outcome) -> Result<RecordBatch, ArrowError> {
    let mut documents = UInt32Builder::new();
    let mut streams = StringBuilder::new();
    let mut ids = StringBuilder::new();
    let mut texts = LargeStringBuilder::new();
    let mut times = Int64Builder::new();
    for (number, derived) in &outcome.derived {
        documents.append_value(*number);
        streams.append_value(&derived.stream);
        ids.append_value(&derived.id);
        texts.append_value(&derived.text);
        times.append_value(derived.time);
    }
    let columns: Vec<(&str, ArrayRef, bool)> = vec![
        ("document", Arc::new(documents.finish()), false),
        ("stream", Arc::new(streams.finish()), false),
        ("document_id", Arc::new(ids.finish()), false),
        ("timestamp_us", Arc::new(times.finish()), false),
        ("payload", Arc::new(texts.finish()), false),
    ];
    RecordBatch::try_from_iter_with_nullable(columns)
}
