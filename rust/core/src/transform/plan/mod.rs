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
mod template;

pub use compile::{Compiled, Trigger, compile};
pub use conditions::{Condition, ConditionId, ConditionKind, Constant};
pub use streams::{PathId, Route, Stream, StreamId};
pub use template::{is_plain, listed};

use super::schema::ElementGraph;
use crate::paths::LinearPath;
use crate::xpath::symbols::Symbols;
use crate::xquery::ast::{ExactName, Expr, OrderKey, Slot};
use foldhash::fast::FixedState;
use hashbrown::hash_table::Entry;
use hashbrown::{HashMap, HashTable};
use std::hash::{BuildHasher, Hash, Hasher};
use std::ops::Deref;
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
    /// How it starts; equal ones are one.
    pub tag: Shared<StartTag>,
    /// Content.
    pub content: Box<[ContentPart]>,
}

/// The start of a constructed element.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StartTag {
    /// Its name.
    pub name: ExactName,
    /// Namespaces it declares.
    pub namespaces: Vec<(Box<str>, Box<str>)>,
    /// Attributes with the parts of their values.
    pub attributes: Vec<(ExactName, Vec<TextPart>)>,
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
    /// Which of them count: those for which all of these hold, judged from left to right.
    pub conditions: Box<[ConditionId]>,
    /// `order by`
    pub order: Box<[OrderKey]>,
    /// Variables that evaluating the keys takes.
    pub order_slots: Slot,
    /// What is returned for each; equal ones are one, since queries often differ in their conditions alone.
    pub body: Shared<Piece>,
}

/// A part of templates of which equal ones are one, so that its place in memory says which it is.
#[derive(Debug)]
pub struct Shared<T>(Arc<T>);

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Shared<T> {
        Shared(self.0.clone())
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> PartialEq for Shared<T> {
    fn eq(&self, other: &Shared<T>) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T> Eq for Shared<T> {}

impl<T> Hash for Shared<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
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
    bodies: HashTable<Shared<Piece>>,
    tags: HashTable<Shared<StartTag>>,
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

    fn intern_body(&mut self, body: Piece) -> Shared<Piece> {
        intern(&mut self.bodies, &self.hasher, body)
    }

    fn intern_tag(&mut self, tag: StartTag) -> Shared<StartTag> {
        intern(&mut self.tags, &self.hasher, tag)
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

/// The one copy of something.
fn intern<T: Eq + Hash>(known: &mut HashTable<Shared<T>>, hasher: &FixedState, new: T) -> Shared<T> {
    let hash = hasher.hash_one(&new);
    match known.entry(hash, |known| **known == new, |known| hasher.hash_one(&**known)) {
        Entry::Occupied(known) => known.get().clone(),
        Entry::Vacant(place) => place.insert(Shared(Arc::new(new))).get().clone(),
    }
}
