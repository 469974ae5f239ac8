//! Arrow columns as strings and bytes, whatever their width.

use crate::errors::Fields;
use crate::matches::ErrorTable;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, GenericStringArray, OffsetSizeTrait, StringArray};
use arrow_schema::{DataType, Field};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3_arrow::PyArray;
use pyo3_arrow::input::AnyArray;
use sardonyx_core::matcher::DocumentInput;
use std::sync::Arc;

/// A column of strings; other string layouts (large, view, dictionary) are converted.
pub(crate) fn strings(column: &ArrayRef, what: &str) -> PyResult<StringArray> {
    let is_text = |kind: &DataType| matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    let fits = match column.data_type() {
        DataType::Dictionary(_, value) => is_text(value),
        DataType::Null => true,
        kind => is_text(kind),
    };
    if !fits {
        return Err(PyTypeError::new_err(format!("{what} must be a string column, not {}", column.data_type())));
    }
    // Producers such as Spark do not check their strings; Rust relies on it.
    column
        .to_data()
        .validate_full()
        .map_err(|error| PyValueError::new_err(format!("{what} holds strings that are not UTF-8: {error}")))?;
    let cast = arrow_cast::cast(column, &DataType::Utf8).map_err(|error| PyTypeError::new_err(error.to_string()))?;
    Ok(cast.as_string::<i32>().clone())
}

/// The chunks of an array given through the Arrow C data interface.
pub(crate) fn chunks(array: AnyArray) -> PyResult<Vec<ArrayRef>> {
    Ok(array.into_chunked_array()?.into_inner().0)
}

/// A string array as a `pyarrow.Array`.
pub(crate) fn to_pyarrow(py: Python<'_>, array: StringArray, name: &str) -> PyResult<Py<PyAny>> {
    let array = PyArray::new(Arc::new(array), Arc::new(Field::new(name, DataType::Utf8, false)));
    Ok(py.import("pyarrow")?.call_method1("array", (Py::new(py, array)?,))?.unbind())
}

/// What a row of documents holds.
#[derive(Clone, Copy)]
pub(crate) enum Row<'a> {
    /// A document.
    Present(DocumentInput<'a>),
    /// Null.
    Missing,
    /// A string that is not UTF-8; the offset of the first byte that does not fit.
    NotUtf8(usize),
}

impl Row<'_> {
    /// Reports a document that can not be read.
    pub(crate) fn refuse(&self, number: u32, errors: &mut ErrorTable) {
        match self {
            Row::Present(_) => {}
            Row::Missing => errors.add(number, None, &Fields::new("missing_payload", "the payload is null")),
            Row::NotUtf8(offset) => {
                let fields = Fields::new("encoding", format!("the string is not UTF-8 at byte {offset}"));
                errors.add(number, None, &Fields { offset: Some(*offset as u64), ..fields });
            }
        }
    }
}

/// A chunk of documents, borrowed. Strings are taken as bytes: producers such as Spark do not check them.
pub(crate) enum Payloads<'a> {
    Binary(&'a arrow_array::BinaryArray),
    LargeBinary(&'a arrow_array::LargeBinaryArray),
    BinaryView(&'a arrow_array::BinaryViewArray),
    Text(&'a StringArray),
    LargeText(&'a arrow_array::LargeStringArray),
    TextView(&'a arrow_array::StringViewArray),
    /// Nulls only.
    Nothing,
}

impl<'a> Payloads<'a> {
    /// Looks at a chunk.
    pub(crate) fn new(chunk: &'a ArrayRef) -> PyResult<Payloads<'a>> {
        Ok(match chunk.data_type() {
            DataType::Binary => Payloads::Binary(chunk.as_binary()),
            DataType::LargeBinary => Payloads::LargeBinary(chunk.as_binary()),
            DataType::BinaryView => Payloads::BinaryView(chunk.as_binary_view()),
            DataType::Utf8 => Payloads::Text(chunk.as_string()),
            DataType::LargeUtf8 => Payloads::LargeText(chunk.as_string()),
            DataType::Utf8View => {
                // The values of a view lie in several places; they are checked together.
                let checked = chunk.to_data().validate_full();
                checked.map_err(|error| PyValueError::new_err(format!("payloads are not UTF-8: {error}")))?;
                Payloads::TextView(chunk.as_string_view())
            }
            DataType::Null => Payloads::Nothing,
            other => {
                return Err(PyTypeError::new_err(format!("payloads must be a binary or string column, not {other}")));
            }
        })
    }

    /// The document in a row.
    pub(crate) fn get(&self, row: usize, stream: Option<&'a str>) -> Row<'a> {
        let binary = |bytes: &'a [u8]| Row::Present(DocumentInput::Bytes(bytes, stream));
        let text = |bytes: &'a [u8]| match std::str::from_utf8(bytes) {
            Ok(text) => Row::Present(DocumentInput::Text(text, stream)),
            Err(error) => Row::NotUtf8(error.valid_up_to()),
        };
        match *self {
            Payloads::Binary(array) if array.is_valid(row) => binary(array.value(row)),
            Payloads::LargeBinary(array) if array.is_valid(row) => binary(array.value(row)),
            Payloads::BinaryView(array) if array.is_valid(row) => binary(array.value(row)),
            Payloads::Text(array) if array.is_valid(row) => text(bytes_of(array, row)),
            Payloads::LargeText(array) if array.is_valid(row) => text(bytes_of(array, row)),
            Payloads::TextView(array) if array.is_valid(row) => text(array.value(row).as_bytes()),
            _ => Row::Missing,
        }
    }
}

/// The documents of chunks; `streams` has one for each, or none.
pub(crate) fn rows<'a>(payloads: &'a [ArrayRef], streams: &[Option<&'a str>]) -> PyResult<Vec<Row<'a>>> {
    let mut rows = Vec::with_capacity(payloads.iter().map(|chunk| chunk.len()).sum());
    for chunk in payloads {
        let payloads = Payloads::new(chunk)?;
        for row in 0..chunk.len() {
            rows.push(payloads.get(row, streams.get(rows.len()).copied().flatten()));
        }
    }
    Ok(rows)
}

/// The bytes of a string, not taken for UTF-8.
fn bytes_of<O: OffsetSizeTrait>(array: &GenericStringArray<O>, row: usize) -> &[u8] {
    let offsets = array.value_offsets();
    &array.value_data()[offsets[row].as_usize()..offsets[row + 1].as_usize()]
}
