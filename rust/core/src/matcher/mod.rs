//! Matchers: which subscriptions of a population does a document satisfy?
//!
//! [`Inverted`] is the one to use; [`naive`] evaluates every expression with the exact evaluator and is the oracle of
//! all others. Both answer with [`Matches`].

mod batch;
mod bits;
mod columns;
mod inverted;
mod lists;
pub mod naive;
mod postings;
mod results;
mod verify;

pub use batch::{DocumentInput, DocumentOutcome, Matcher, match_documents};
pub use inverted::{Inverted, InvertedStatistics, RowCounts, Settings, Worker};
pub use results::{Failure, Matches};
