//! Why a transformation of one document gave up.

use crate::xpath::evaluate::EvaluateError;
use std::fmt;

/// An error while a query is evaluated on a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransformError {
    /// The recommendation says that this is an error.
    Dynamic {
        /// Its code in the recommendation, such as `FORG0001`.
        code: &'static str,
        /// What went wrong.
        message: String,
    },
    /// It would have cost more than this many units (a node visited, a value compared, 16 bytes of text).
    CostLimit {
        /// The limit.
        limit: u64,
    },
}

impl TransformError {
    /// A dynamic error.
    pub fn dynamic(code: &'static str, message: impl Into<String>) -> TransformError {
        TransformError::Dynamic { code, message: message.into() }
    }
}

impl From<EvaluateError> for TransformError {
    fn from(error: EvaluateError) -> TransformError {
        let EvaluateError::CostLimit { limit } = error;
        TransformError::CostLimit { limit }
    }
}

impl fmt::Display for TransformError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TransformError::Dynamic { code, message } => write!(f, "{code}: {message}"),
            TransformError::CostLimit { limit } => {
                write!(f, "the evaluation costs more than {limit} units, the limit (cost_limit)")
            }
        }
    }
}

impl std::error::Error for TransformError {}
