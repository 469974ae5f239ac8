//! Matchers: which subscriptions of a population does a document satisfy?
//!
//! [`Inverted`] is the one to use; [`XPush`] is faster where documents repeat themselves; [`naive`] evaluates every
//! expression with the exact evaluator and is the oracle of all others. All answer with [`Matches`].

mod batch;
mod bits;
mod columns;
mod inverted;
mod judge;
mod lists;
pub mod naive;
mod pairs;
mod places;
mod postings;
mod probes;
mod reached;
mod recent;
mod results;
mod verify;
mod xpush;

pub use batch::{
    DocumentInput, DocumentOutcome, Matcher, Matchers, MatchersWorker, match_documents, process_documents,
};
pub use inverted::{Inverted, InvertedStatistics, Settings, Worker};
pub use judge::RowCounts;
pub use results::{Failure, Matches};
pub use xpush::{Settings as XPushSettings, SiblingOrder, XPush, XPushStatistics, XPushWorker};
