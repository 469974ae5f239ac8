//! Plans: what the queries of a population have in common, once.
//!
//! After Diao and Franklin, "Query Processing for High-Volume XML Message Brokering" (VLDB 2003). A `for` clause, a
//! path of a `where` clause and a path of a `return` clause are *streams* of nodes, each below the stream of the
//! variable that it starts from; conditions are decided for whole streams; what a query returns is a template with
//! streams in it. Streams and conditions are interned: those of equal meaning are one, whichever queries they came
//! from.

mod compile;
mod conditions;
pub mod rewrite;
mod streams;

pub use compile::{Compiled, Trigger, compile};
pub use conditions::{Condition, ConditionId, ConditionKind, Constant};
pub use streams::{PathId, Route, Stream, StreamId};

use super::schema::ElementGraph;
use crate::paths::LinearPath;
use crate::xpath::symbols::Symbols;
use crate::xquery::ast::{ExactName, Expr, OrderKey, Slot};
use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashSet, HashTable};
use std::sync::Arc;

/// An expression that only the evaluator can do, and the variables it needs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Residue {
    /// The expression; variables below the level of its place are levels, the outermost 0.
    pub expr: Expr,
    /// How many variables evaluating it takes.
    pub slots: Slot,
}

/// What a query returns: the template that the message factory fills in.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Piece {
    /// A constructed element.
    Element(Box<ElementPiece>),
    /// Several pieces after each other.
    Sequence(Vec<Piece>),
    /// The nodes of a stream that belong to the current binding.
    Nodes(StreamId),
    /// For each binding of a stream that satisfies a condition: a piece.
    Loop(Box<Loop>),
    /// Whatever else.
    Residue(Arc<Residue>),
}

/// A constructed element of a template.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ElementPiece {
    /// Its name.
    pub name: ExactName,
    /// Namespaces it declares.
    pub namespaces: Vec<(Box<str>, Box<str>)>,
    /// Attributes with the parts of their values.
    pub attributes: Vec<(ExactName, Vec<TextPart>)>,
    /// Content.
    pub content: Vec<ContentPart>,
}

/// A part of an attribute's value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TextPart {
    /// Literal text.
    Text(Box<str>),
    /// The string-values of a stream's nodes, separated by spaces.
    Nodes(StreamId),
    /// Whatever else, atomised.
    Residue(Arc<Residue>),
}

/// A part of an element's content.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ContentPart {
    /// Literal text.
    Text(Box<str>),
    /// An enclosed expression or a nested constructor.
    Piece(Piece),
}

/// A FLWR expression over one stream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Loop {
    /// The bindings of its innermost variable.
    pub stream: StreamId,
    /// Which of them count.
    pub condition: Option<ConditionId>,
    /// `order by`
    pub order: Vec<OrderKey>,
    /// Variables that evaluating the keys takes.
    pub order_slots: Slot,
    /// What is returned for each; equal ones are one, since queries often differ in their conditions alone.
    pub body: Arc<Piece>,
}

/// Everything that plans share.
#[derive(Debug, Default)]
pub struct Operators {
    /// Name tests of all paths.
    pub symbols: Symbols,
    paths: Vec<LinearPath>,
    path_numbers: HashMap<Vec<crate::paths::Edge>, PathId, FixedState>,
    streams: Vec<Stream>,
    /// By parent and steps: looking one up copies nothing.
    stream_numbers: HashTable<StreamId>,
    conditions: Vec<Condition>,
    condition_numbers: HashTable<ConditionId>,
    hasher: FixedState,
    bodies: HashSet<Arc<Piece>, FixedState>,
    graph: Option<Arc<ElementGraph>>,
}

impl Operators {
    /// No operators yet; `graph` is the element graph of the DTD that documents are thought to follow.
    pub fn new(graph: Option<Arc<ElementGraph>>) -> Operators {
        Operators { graph, ..Operators::default() }
    }

    /// The element graph of the DTD.
    pub fn graph(&self) -> Option<&Arc<ElementGraph>> {
        self.graph.as_ref()
    }

    /// A stream.
    #[inline]
    pub fn stream(&self, id: StreamId) -> &Stream {
        &self.streams[id as usize]
    }

    /// The one copy of a template.
    fn intern_body(&mut self, body: Piece) -> Arc<Piece> {
        self.bodies.get_or_insert_with(&body, |body| Arc::new(body.clone())).clone()
    }

    /// All streams.
    pub fn streams(&self) -> &[Stream] {
        &self.streams
    }

    /// A condition.
    #[inline]
    pub fn condition(&self, id: ConditionId) -> &Condition {
        &self.conditions[id as usize]
    }

    /// All conditions.
    pub fn conditions(&self) -> &[Condition] {
        &self.conditions
    }

    /// The paths that the shared path matcher has to find.
    pub fn paths(&self) -> &[LinearPath] {
        &self.paths
    }
}
