//! Errors of the index.

use std::path::{Path, PathBuf};

/// An index file that cannot be used.
#[derive(Clone, Debug, thiserror::Error)]
#[error("index file '{}' {reason}", path.display())]
pub struct IndexFormatError {
    path: PathBuf,
    reason: String,
}

impl IndexFormatError {
    pub(super) fn new(path: &Path, reason: String) -> Self {
        IndexFormatError { path: path.to_owned(), reason }
    }
}

/// A population that outgrew what one segment can number.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the population is too large for one index: {what} exceeds {limit}")]
pub struct CapacityError {
    /// What there is too much of.
    pub what: &'static str,
    /// The most that fits.
    pub limit: u64,
}
