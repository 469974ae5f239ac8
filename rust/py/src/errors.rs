//! The one place where errors of the core become Python exceptions, by `sardonyx.errors.from_core`.

use arrow_schema::ArrowError;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sardonyx_core::document::DocumentError;
use sardonyx_core::index::bytes::Malformed;
use sardonyx_core::index::{CapacityError, IndexFormatError};
use sardonyx_core::transform::error::TransformError;
use sardonyx_core::xpath::error::{XPathError, XPathErrorKind};
use sardonyx_core::xpath::evaluate::EvaluateError;
use sardonyx_core::xquery::error::{XQueryError, XQueryErrorKind};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What every error says; the keyword arguments of the Python classes.
#[derive(Clone, Debug)]
pub(crate) struct Fields {
    pub(crate) kind: String,
    pub(crate) message: String,
    pub(crate) line: Option<u64>,
    pub(crate) column: Option<u64>,
    pub(crate) offset: Option<u64>,
}

impl Fields {
    /// An error without a position.
    pub(crate) fn new(kind: &str, message: impl Into<String>) -> Fields {
        Fields { kind: kind.into(), message: message.into(), line: None, column: None, offset: None }
    }

    /// An error at a line, a column and a byte offset.
    fn at(kind: &str, message: String, (line, column, offset): (u64, u64, usize)) -> Fields {
        Fields { line: Some(line), column: Some(column), offset: Some(offset as u64), ..Fields::new(kind, message) }
    }

    /// As a Python dictionary (`ErrorFields` of the stub).
    pub(crate) fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("kind", &self.kind)?;
        dict.set_item("message", &self.message)?;
        dict.set_item("line", self.line)?;
        dict.set_item("column", self.column)?;
        dict.set_item("offset", self.offset)?;
        Ok(dict)
    }

    /// As the exception to raise.
    pub(crate) fn raise(&self, py: Python<'_>) -> PyErr {
        let made = (|| {
            let fields = self.to_dict(py)?;
            py.import("sardonyx.errors")?.call_method1("from_core", (&self.kind, fields))
        })();
        match made {
            Ok(exception) => PyErr::from_value(exception),
            Err(error) => error,
        }
    }
}

impl From<DocumentError> for Fields {
    fn from(error: DocumentError) -> Fields {
        let place = (error.line as u64, error.column as u64, error.offset);
        Fields::at(error.kind.as_str(), error.message, place)
    }
}

impl From<XPathError> for Fields {
    fn from(error: XPathError) -> Fields {
        let kind = match error.kind {
            XPathErrorKind::Syntax => "query_syntax",
            XPathErrorKind::Type => "query_type",
            XPathErrorKind::Limit => "query_limit",
            other => other.name(),
        };
        Fields::at(kind, error.message, (error.line.into(), error.column.into(), error.offset))
    }
}

impl From<EvaluateError> for Fields {
    fn from(error: EvaluateError) -> Fields {
        Fields::new("cost_limit", error.to_string())
    }
}

impl From<XQueryError> for Fields {
    fn from(error: XQueryError) -> Fields {
        let kind = match error.kind {
            XQueryErrorKind::Syntax => "query_syntax",
            XQueryErrorKind::UnboundPrefix => "unbound_prefix",
            XQueryErrorKind::UnknownFunction => "unknown_function",
            XQueryErrorKind::WrongArguments => "wrong_arguments",
            XQueryErrorKind::Type => "query_type",
            XQueryErrorKind::Variable => "variable",
            XQueryErrorKind::Unsupported => "unsupported",
            XQueryErrorKind::Limit => "query_limit",
        };
        Fields::at(kind, error.message, (error.line.into(), error.column.into(), error.offset))
    }
}

impl From<TransformError> for Fields {
    fn from(error: TransformError) -> Fields {
        let kind = match error {
            TransformError::Dynamic { .. } => "dynamic_error",
            TransformError::CostLimit { .. } => "cost_limit",
        };
        Fields::new(kind, error.to_string())
    }
}

impl From<IndexFormatError> for Fields {
    fn from(error: IndexFormatError) -> Fields {
        Fields::new("index_format", error.to_string())
    }
}

impl From<CapacityError> for Fields {
    fn from(error: CapacityError) -> Fields {
        Fields::new("capacity", error.to_string())
    }
}

/// Saved bytes that are not what they should be.
pub(crate) fn malformed(error: Malformed) -> Failed {
    Failed::Core(Fields::new("index_format", error.to_string()))
}

/// A fault in making Arrow of answers.
pub(crate) fn arrow_error(error: ArrowError) -> Failed {
    Failed::Python(PyValueError::new_err(error.to_string()))
}

/// What can go wrong in work done without the GIL.
#[derive(Debug)]
pub(crate) enum Failed {
    /// An error of the core.
    Core(Fields),
    /// An error that is a Python exception already.
    Python(PyErr),
    /// An error of the file system.
    File(std::io::Error),
}

impl<T: Into<Fields>> From<T> for Failed {
    fn from(error: T) -> Failed {
        Failed::Core(error.into())
    }
}

impl From<PyErr> for Failed {
    fn from(error: PyErr) -> Failed {
        Failed::Python(error)
    }
}

impl From<std::io::Error> for Failed {
    fn from(error: std::io::Error) -> Failed {
        Failed::File(error)
    }
}

/// Runs work without the GIL. No panic crosses the border: one is reported as an error of kind `internal`.
pub(crate) fn work<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T, Failed> + Send) -> PyResult<T> {
    let outcome = py.detach(|| catch_unwind(AssertUnwindSafe(work)));
    match outcome {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(Failed::Core(fields))) => Err(fields.raise(py)),
        Ok(Err(Failed::Python(error))) => Err(error),
        Ok(Err(Failed::File(error))) => Err(error.into()),
        Err(panic) => {
            let said = panic
                .downcast_ref::<String>()
                .cloned()
                .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
                .unwrap_or_default();
            Err(Fields::new("internal", format!("internal error of the core, please report it: {said}")).raise(py))
        }
    }
}
