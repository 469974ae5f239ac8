//! Units as the state keeps them.

use super::parts::{DefinitionId, OperandId, SourceId};
use super::sets::{ClassId, SetId};
use super::values::ValueId;
use super::witnesses::{Binding, RootText};
use crate::document::NodeId;
use smallvec::SmallVec;
use std::sync::Arc;

/// Number of a document in the state.
pub type DocumentId = u32;

/// A document in the state.
#[derive(Debug)]
pub struct DocumentEntry {
    /// Its stream.
    pub stream: Option<Arc<str>>,
    /// Its id.
    pub id: Arc<str>,
    /// Its timestamp, in microseconds.
    pub time: i64,
    /// How many units are of it.
    pub units: u32,
}

impl DocumentEntry {
    /// What it takes.
    pub fn memory_bytes(&self) -> usize {
        size_of::<DocumentEntry>() + self.id.len() + 24
    }
}

/// A block's part of a unit: one of a document's unit, several of what a query found.
#[derive(Clone, Debug)]
pub struct Part {
    /// The document.
    pub document: DocumentId,
    /// The root's node.
    pub root: NodeId,
    /// The root's XML text, if results are made.
    pub text: Option<RootText>,
    /// A hash of the document's stream and id.
    pub name: u64,
}

/// What is looked at of every unit that has a value in common with a new one, kept together.
#[derive(Clone, Copy, Debug, Default)]
pub struct Head {
    /// As in the unit.
    pub time: i64,
    /// As in the unit.
    pub version: u64,
    /// As in the unit.
    pub class: ClassId,
    /// When its set of edges was last begun.
    pub stamp: u32,
    /// The edges found so far.
    pub edges: SetId,
    /// The hash of its document's name; zero if it is of several documents.
    pub name: u64,
}

/// A value of a unit.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    /// As which operand.
    pub operand: OperandId,
    /// Of which binding.
    pub binding: u32,
    /// The value.
    pub value: ValueId,
    /// Its place among the value's postings; [`NOT_POSTED`] if it has none.
    pub place: u32,
}

/// A cell without posting.
pub const NOT_POSTED: u32 = u32::MAX;

/// A unit.
#[derive(Debug)]
pub struct Unit {
    /// Its source.
    pub source: SourceId,
    /// Its class.
    pub class: ClassId,
    /// The version of the population by which its oldest document was taken apart.
    pub version: u64,
    /// The latest timestamp of its documents.
    pub time: i64,
    /// Which unit in a row it is, to tell it from another of its number.
    pub serial: u64,
    /// The blocks that it is of, left to right.
    pub parts: SmallVec<[Part; 1]>,
    /// The bindings, the root first.
    pub bindings: Box<[Binding]>,
    /// The values, by operand, then value.
    pub cells: Box<[Cell]>,
}

impl Unit {
    /// The first binding of a definition.
    pub fn binding(&self, definition: DefinitionId) -> Option<Binding> {
        self.bindings.iter().copied().find(|binding| binding.definition == definition)
    }

    /// The value of a binding as an operand.
    pub fn value(&self, operand: OperandId, binding: u32) -> Option<ValueId> {
        let from = self.cells.partition_point(|cell| cell.operand < operand);
        let own = self.cells[from..].iter().take_while(|cell| cell.operand == operand);
        own.into_iter().find(|cell| cell.binding == binding).map(|cell| cell.value)
    }

    /// What it takes, values apart.
    pub fn memory_bytes(&self) -> usize {
        let texts: usize =
            self.parts.iter().filter_map(|part| part.text.as_ref()).map(|text| text.xml.len() + 16).sum();
        let parts = if self.parts.spilled() { self.parts.len() * size_of::<Part>() } else { 0 };
        size_of::<Unit>()
            + parts
            + if self.parts.len() == 1 { texts } else { 0 }
            + self.bindings.len() * size_of::<Binding>()
            + self.cells.len() * size_of::<Cell>()
    }
}
