//! Joins over many documents: XSCL subscriptions, after Hong et al., "Massively Multi-Query Join Processing in
//! Publish/Subscribe Systems" (SIGMOD 2007).
//!
//! A [`Population`] keeps the queries, their patterns taken apart so that all of them share what is equal. [`witnesses`]
//! (stage 1) finds in a document what any pattern binds. A [`State`] keeps what was published and may still join, and
//! says what a new document joins with (stage 2); [`publish`] makes notifications of it.

mod compile;
mod evaluate;
pub mod explain;
mod frequent;
mod names;
pub mod parts;
pub mod paths;
mod population;
mod proof;
pub mod publish;
pub mod query;
mod reduce;
pub mod results;
pub mod saved;
pub mod sets;
mod slab;
pub mod state;
pub mod store;
pub mod time;
mod trie;
mod unit;
mod values;
pub mod witnesses;

pub use population::{Population, RegisterError, Registration};
pub use slab::Slab;
pub use state::{Settings, State};
