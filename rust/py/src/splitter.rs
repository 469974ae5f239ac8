//! `Splitter`: a large file as batches of record documents.

use crate::errors::{Failed, Fields, work};
use crate::settings::AllLimits;
use arrow_array::builder::{BinaryBuilder, StringBuilder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyMapping;
use pyo3_arrow::PyRecordBatch;
use sardonyx_core::document::{self as core, SplitterError, SplitterErrorKind};
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

impl From<SplitterError> for Fields {
    fn from(error: SplitterError) -> Fields {
        let kind = match error.kind {
            SplitterErrorKind::Encoding => "encoding",
            SplitterErrorKind::NotWellFormed => "not_well_formed",
            SplitterErrorKind::Limit => "limit",
            SplitterErrorKind::DoctypeForbidden => "doctype_forbidden",
            _ => "source",
        };
        Fields { offset: Some(error.offset), ..Fields::new(kind, error.message) }
    }
}

/// Splits a large XML file into record documents.
#[pyclass(frozen, module = "sardonyx._core")]
#[derive(Debug)]
pub(crate) struct Splitter {
    state: Mutex<State>,
    batch_bytes: usize,
}

#[derive(Debug)]
struct State {
    records: core::Splitter<BufReader<File>>,
    /// What ended the splitting, to be raised after the records before it were handed out.
    failed: Option<SplitterError>,
}

#[pymethods]
impl Splitter {
    #[new]
    #[pyo3(signature = (path, record, batch_bytes=4_194_304, limits=None))]
    fn new(
        path: PathBuf,
        record: &str,
        batch_bytes: usize,
        limits: Option<&Bound<'_, PyMapping>>,
    ) -> PyResult<Splitter> {
        let limits = AllLimits::read(limits)?;
        let records = core::Splitter::new(BufReader::new(File::open(path)?), record, limits.document);
        Ok(Splitter { state: Mutex::new(State { records, failed: None }), batch_bytes })
    }

    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let batch = work(py, || self.batch())?;
        batch.map(|batch| PyRecordBatch::new(batch).into_pyarrow(py)).transpose()
    }
}

impl Splitter {
    fn batch(&self) -> Result<Option<RecordBatch>, Failed> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = state.failed.take() {
            return Err(error.into());
        }
        let (mut numbers, mut offsets) = (UInt64Builder::new(), UInt64Builder::new());
        let mut payloads = BinaryBuilder::new();
        let (mut kinds, mut messages) = (StringBuilder::new(), StringBuilder::new());
        let mut bytes = 0;
        while bytes < self.batch_bytes {
            let (number, offset) = match state.records.next() {
                None => break,
                Some(Ok(record)) => {
                    bytes += record.payload.len();
                    payloads.append_value(&record.payload);
                    kinds.append_null();
                    messages.append_null();
                    (record.number, record.offset)
                }
                Some(Err(error)) => {
                    let Some(number) = error.number else {
                        state.failed = Some(error);
                        break;
                    };
                    let offset = error.offset;
                    let fields = Fields::from(error);
                    payloads.append_null();
                    kinds.append_value(fields.kind);
                    messages.append_value(fields.message);
                    (number, offset)
                }
            };
            numbers.append_value(number - 1);
            offsets.append_value(offset);
        }
        let columns: Vec<(&str, ArrayRef, bool)> = vec![
            ("record", Arc::new(numbers.finish()), false),
            ("offset", Arc::new(offsets.finish()), false),
            ("payload", Arc::new(payloads.finish()), true),
            ("kind", Arc::new(kinds.finish()), true),
            ("message", Arc::new(messages.finish()), true),
        ];
        let batch = RecordBatch::try_from_iter_with_nullable(columns)
            .map_err(|error| Failed::Python(PyValueError::new_err(error.to_string())))?;
        match state.failed.take() {
            Some(error) if batch.num_rows() == 0 => Err(error.into()),
            failed => {
                state.failed = failed;
                Ok((batch.num_rows() > 0).then_some(batch))
            }
        }
    }
}
