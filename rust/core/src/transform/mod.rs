//! Transformations: what of a document a subscription wants, in which shape.

mod bits;
pub mod bulk;
pub mod compare;
pub mod construct;
pub mod error;
pub mod evaluate;
pub mod execute;
pub mod explain;
mod gates;
pub mod plan;
pub mod population;
pub mod results;
pub mod schema;
pub mod store;
pub mod value;
pub mod walk;
