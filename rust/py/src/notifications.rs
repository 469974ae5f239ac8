//! Stable ids of notifications, in bulk.

use crate::arrow::{chunks, strings, to_pyarrow};
use crate::errors::work;
use arrow_array::{Array, StringArray};
use blake2::digest::consts::U16;
use blake2::{Blake2b, Digest};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3_arrow::input::AnyArray;
use std::fmt::Write as _;

/// BLAKE2b-128 over the length-prefixed parts, in lower-case hexadecimal.
fn notification_id(document_id: &str, subscription_id: &str, position: u64, into: &mut String) {
    let mut hash = Blake2b::<U16>::new();
    for part in [document_id, subscription_id] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.update(position.to_le_bytes());
    for byte in hash.finalize() {
        write!(into, "{byte:02x}").expect("writing to a string cannot fail");
    }
}

fn column(array: AnyArray, what: &str) -> PyResult<Vec<StringArray>> {
    chunks(array)?.iter().map(|chunk| strings(chunk, what)).collect()
}

/// The notification id of each pair of document and subscription, with result position 0.
#[pyfunction]
pub(crate) fn notification_ids(
    py: Python<'_>,
    document_ids: AnyArray,
    subscription_ids: AnyArray,
) -> PyResult<Py<PyAny>> {
    let (documents, subscriptions) =
        (column(document_ids, "document_ids")?, column(subscription_ids, "subscription_ids")?);
    let length = |columns: &[StringArray]| columns.iter().map(Array::len).sum::<usize>();
    if length(&documents) != length(&subscriptions) {
        return Err(PyValueError::new_err(format!(
            "{} document ids and {} subscription ids; there must be one for each",
            length(&documents),
            length(&subscriptions)
        )));
    }
    let ids = work(py, || {
        let documents = documents.iter().flat_map(|chunk| chunk.iter());
        let subscriptions = subscriptions.iter().flat_map(|chunk| chunk.iter());
        let mut id = String::with_capacity(32);
        Ok(documents
            .zip(subscriptions)
            .map(|(document, subscription)| {
                id.clear();
                notification_id(document.unwrap_or(""), subscription.unwrap_or(""), 0, &mut id);
                Some(id.clone())
            })
            .collect::<StringArray>())
    })?;
    to_pyarrow(py, ids, "notification_id")
}
