//! Transformations: what of a document a subscription wants, in which shape.

pub mod compare;
pub mod construct;
pub mod error;
pub mod evaluate;
pub mod plan;
pub mod value;
