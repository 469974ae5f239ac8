//! Queries: what subscriptions ask of pairs of units, equal ones once.

use super::parts::{DefinitionId, EdgeId, OperandId, SourceId};
use crate::xquery::ast::Module;
use crate::xscl::ast::OperatorKind;
use std::sync::Arc;

/// Number of a subscription.
pub type SubscriptionId = u32;

/// What makes two queries the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct QueryKey {
    /// The operator; of a query of one block it does not matter.
    pub kind: OperatorKind,
    /// Its window in microseconds; `i64::MAX` has no end.
    pub window: i64,
    /// What must be equal, sorted.
    pub edges: Box<[EdgeId]>,
    /// The source left of the operator; None in a query of one block.
    pub left: Option<SourceId>,
    /// The source right of it.
    pub right: SourceId,
    /// The nodes that are given out.
    pub outputs: Box<[Output]>,
}

/// A node that a query gives out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Output {
    /// Whether it is of the unit left of the operator.
    pub is_left: bool,
    /// Which.
    pub definition: DefinitionId,
}

/// One side of a query.
#[derive(Debug, Default)]
pub struct Side {
    /// The pattern nodes that it needs, the root first and parents before children.
    pub nodes: Box<[DefinitionId]>,
    /// Slots of those among them that must have exactly one node in a unit for the edges alone to decide, sorted.
    pub sensitive: Box<[u32]>,
}

/// A query.
#[derive(Debug)]
pub struct Query {
    /// What it asks.
    pub key: QueryKey,
    /// What it needs left of the operator.
    pub left: Side,
    /// What it needs right of it.
    pub right: Side,
    /// Whether several pairs of units may give the same nodes out.
    pub repeats: bool,
    /// Whether all nodes given out are roots, of which a unit has exactly one.
    pub gives_roots: bool,
    /// The version since which it is there.
    pub since: u64,
    /// The subscriptions that it is the last step of.
    pub subscriptions: Vec<SubscriptionId>,
    /// The source that it is left of another operator.
    pub found: Option<SourceId>,
    pub(super) held: Held,
    pub(super) users: u32,
}

/// The parts that a query uses.
#[derive(Debug, Default)]
pub(super) struct Held {
    pub(super) edges: Vec<EdgeId>,
    pub(super) operands: Vec<OperandId>,
    pub(super) definitions: Vec<DefinitionId>,
    pub(super) sources: Vec<SourceId>,
}

/// What a notification holds.
#[derive(Debug)]
pub enum Shape {
    /// The roots of the blocks.
    Roots,
    /// A constructed element.
    Constructed {
        /// The constructor; its first variables are the nodes given out.
        module: Arc<Module>,
        /// For each node given out the number of its block.
        blocks: Box<[u16]>,
    },
}

/// A join subscription.
#[derive(Debug)]
pub struct Subscription {
    /// Its id.
    pub id: Arc<str>,
    /// The query as given.
    pub query: Arc<str>,
    /// The namespaces given with it.
    pub namespaces: Arc<[(String, String)]>,
    /// The stream of its blocks that name none.
    pub stream: Option<Arc<str>>,
    /// Its steps, left to right; what the last one finds are its results.
    pub steps: Box<[u32]>,
    /// What its notifications hold.
    pub shape: Shape,
    /// The stream on which its results are published.
    pub publish: Option<Arc<str>>,
    /// The version since which it is there.
    pub since: u64,
    /// The streams that its blocks name.
    pub reads: Box<[Arc<str>]>,
}

impl Subscription {
    /// What it asks, as it was given: equal for equal subscriptions.
    pub fn identity(&self) -> Vec<u8> {
        format!("{:?}", (&self.query, &self.namespaces, &self.stream)).into_bytes()
    }

    /// The number of the query whose results it gets.
    pub fn last_step(&self) -> u32 {
        self.steps[self.steps.len() - 1]
    }
}
