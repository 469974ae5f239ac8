//! Conditions: the parts of `where` clauses, each decided for all bindings of a stream.

use super::{Operators, Residue, StreamId};
use crate::xquery::ast::{CompareOp, Double};
use std::hash::BuildHasher;
use std::sync::Arc;

/// Number of a condition.
pub type ConditionId = u32;

/// A constant that nodes are compared with.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Constant {
    /// A string: texts are compared by code points.
    String(Box<str>),
    /// A number: texts have to be numbers.
    Number(Double),
}

/// A condition on the bindings of a stream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Condition {
    /// The stream whose bindings it judges.
    pub base: StreamId,
    /// What it asks.
    pub kind: ConditionKind,
    /// The same as an expression, for bindings that the short way can not judge.
    pub residue: Option<Arc<Residue>>,
}

/// What a condition asks of a binding.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ConditionKind {
    /// Whether the stream below has a node for it.
    Exists(StreamId),
    /// Whether some node of the stream below compares so with a constant.
    Compare(StreamId, CompareOp, Constant),
    /// Whether some node of one stream below compares so with some node of another, both as text.
    CompareStreams(StreamId, CompareOp, StreamId),
    /// Whether the only node of the stream below, or the empty text, contains a text.
    Contains(StreamId, Box<str>),
    /// Whether the only node of the stream below, or the empty text, starts with a text.
    StartsWith(StreamId, Box<str>),
    /// Whether the number of nodes of the stream below compares so with a number.
    Count(StreamId, CompareOp, i64),
    /// Whether a condition does not hold.
    Not(ConditionId),
    /// Whether all hold, judged from left to right.
    And(Box<[ConditionId]>),
    /// Whether one holds, judged from left to right.
    Or(Box<[ConditionId]>),
    /// Whether a condition on the binding of the stream above holds.
    Lifted(ConditionId),
    /// Whatever the evaluator says.
    Residue,
}

impl Condition {
    /// The streams that it looks at.
    pub fn streams(&self) -> Vec<StreamId> {
        match self.kind {
            ConditionKind::Exists(stream)
            | ConditionKind::Compare(stream, ..)
            | ConditionKind::Contains(stream, _)
            | ConditionKind::StartsWith(stream, _)
            | ConditionKind::Count(stream, ..) => vec![stream],
            ConditionKind::CompareStreams(a, _, b) => vec![a, b],
            _ => Vec::new(),
        }
    }
}

impl Operators {
    /// The number of a condition, equal ones being one.
    pub fn intern_condition(&mut self, condition: Condition) -> ConditionId {
        let hash = self.hasher.hash_one(&condition);
        let conditions = &self.conditions;
        if let Some(id) = self.condition_numbers.find(hash, |id| conditions[*id as usize] == condition) {
            return *id;
        }
        let id = self.conditions.len() as ConditionId;
        self.conditions.push(condition);
        let (conditions, hasher) = (&self.conditions, &self.hasher);
        self.condition_numbers.insert_unique(hash, id, |id| hasher.hash_one(&conditions[*id as usize]));
        id
    }

    /// The conjuncts of a condition.
    pub(super) fn conjuncts<'c>(&'c self, condition: &'c ConditionId) -> &'c [ConditionId] {
        match &self.condition(*condition).kind {
            ConditionKind::And(members) => members,
            _ => std::slice::from_ref(condition),
        }
    }
}
