//! The Python border of Sardonyx: arguments, errors and Arrow in and out, nothing else.
//!
//! What Python sees is written down in `python/sardonyx/_core.pyi`; everything here releases the GIL while it works.

#![deny(unsafe_code)]

mod arrow;
mod attachment;
mod document;
mod errors;
mod explain;
mod index;
mod joins;
mod joins_explained;
mod matches;
mod memory;
mod notifications;
mod parsers;
mod registration;
mod settings;
mod splitter;
mod transformations;

use pyo3::prelude::*;

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<document::Document>()?;
    module.add_class::<index::Index>()?;
    module.add_class::<joins::JoinState>()?;
    module.add_class::<splitter::Splitter>()?;
    module.add_function(wrap_pyfunction!(index::check, module)?)?;
    module.add_function(wrap_pyfunction!(transformations::evaluate_xquery, module)?)?;
    module.add_function(wrap_pyfunction!(notifications::notification_ids, module)?)?;
    Ok(())
}
