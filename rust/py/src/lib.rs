//! The Python border of Sardonyx.
