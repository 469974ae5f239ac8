//! The index: a population of subscriptions as a table.
//!
//! Subscriptions that differ only in constants share a *signature*; its constants are columns, its rows are what
//! subscriptions point to. Each row hangs on one access predicate ([`access`]). A [`Segment`] is immutable and lies in
//! one buffer, in memory or in a mapped file ([`image`]); a [`Population`] is a few segments and the subscriptions
//! removed from them.

pub mod access;
mod builder;
pub mod bulk;
pub mod bytes;
mod choice;
mod columns;
mod error;
mod freeze;
pub mod groups;
pub mod image;
mod joins;
mod map;
pub mod memory;
mod merging;
pub(crate) mod parallel;
mod pattern;
mod population;
mod postings;
mod priority;
mod rows;
mod segment;
mod snapshot;
pub mod stored;
mod templates;
mod zones;

pub use builder::SegmentBuilder;
pub use columns::{Comparand, Comparands, Half, Value};
pub use error::{CapacityError, IndexFormatError};
pub use population::Population;
pub use segment::{ANY_STREAM, Filter, Segment, Signature, View};
pub use snapshot::{Generation, Removed, Snapshot, SnapshotSegment};
pub use zones::{ZONE_ROWS, Zones};
