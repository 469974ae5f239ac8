//! What patterns and queries are made of, each different part once: sources, definitions, operands, edges.
//!
//! A *source* is the root of a pattern on a stream; a document has one *unit* for each node that it selects. A
//! *definition* is a pattern node below it, a path from its parent's node. An *operand* is a definition's value under a
//! function, and an *edge* is an equality of two operands, one left and one right of an operator. Queries share all of
//! these, so a document is taken apart once for all of them.

use super::paths::PathId;
use super::slab::Slab;
use crate::xscl::ast::Normal;
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Number of a source.
pub type SourceId = u32;
/// Number of a definition.
pub type DefinitionId = u32;
/// Number of an operand.
pub type OperandId = u32;
/// Number of an edge.
pub type EdgeId = u32;
/// Number of a query.
pub type QueryId = u32;

/// Where units come from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SourceKind {
    /// Nodes that a path selects in the documents of a stream (none: all but derived ones).
    Pattern {
        /// The stream.
        stream: Option<Arc<str>>,
        /// The path.
        path: PathId,
    },
    /// What a query finds, left of another operator.
    Found(QueryId),
}

/// A source.
#[derive(Debug)]
pub struct Source {
    /// What it is.
    pub kind: SourceKind,
    /// Its definitions, the root first and parents before children.
    pub definitions: Vec<DefinitionId>,
    slots: u32,
    free_slots: Vec<u32>,
    /// Queries of one block that read it.
    pub singles: Vec<QueryId>,
    /// Windows of the queries that have it left of an operator, and how often.
    pub left: BTreeMap<i64, u32>,
    /// The same for `JOIN`s that have it right.
    pub right: BTreeMap<i64, u32>,
    /// How many `FOLLOWED BY`s have it right.
    pub followers: u32,
    users: u32,
}

impl Source {
    /// The last watermark at which a unit of this time may find a partner; None: there is no end.
    pub fn needed_until(&self, time: i64) -> Option<i64> {
        let window = self.left.last_key_value().into_iter().chain(self.right.last_key_value()).map(|(w, _)| *w).max();
        match window {
            Some(i64::MAX) => None,
            Some(window) => Some(time.saturating_add(window)),
            None => Some(time.saturating_sub(1)),
        }
    }

    /// Whether its units can find a partner that comes after them.
    pub fn is_kept(&self) -> bool {
        !self.left.is_empty() || !self.right.is_empty() || self.followers > 0
    }
}

/// A pattern node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DefinitionKey {
    /// The definition that its path starts from; None for the root of a source.
    pub parent: Option<DefinitionId>,
    /// The source.
    pub source: SourceId,
    /// Its path; of what a query found, the place among its nodes.
    pub path: PathId,
    /// Which of several variables with this path in one pattern.
    pub copy: u16,
}

/// A definition.
#[derive(Debug)]
pub struct Definition {
    /// What it is.
    pub key: DefinitionKey,
    /// Its number among the definitions of its source. It is given to another when this one is gone, which harms
    /// nothing: queries look only at units that came after them.
    pub slot: u32,
    /// Its operands.
    pub operands: Vec<OperandId>,
    /// Its path from the root of a document; None for what a query found.
    pub from_root: Option<PathId>,
    /// Whether it is one of the filters by which a document finds the definitions that it has nodes for.
    pub is_listed: bool,
    users: u32,
}

/// An operand.
#[derive(Debug)]
pub struct Operand {
    /// Whose value.
    pub definition: DefinitionId,
    /// Under which function.
    pub normal: Normal,
    /// Edges that it is left in, by the operand right in them.
    pub as_left: HashMap<OperandId, EdgeId, FixedState>,
    /// Edges that it is right in, by the operand left in them.
    pub as_right: HashMap<OperandId, EdgeId, FixedState>,
    users: u32,
}

impl Operand {
    /// Whether values of it are looked up: else they only travel along.
    pub fn is_joined(&self) -> bool {
        !self.as_left.is_empty() || !self.as_right.is_empty()
    }
}

/// An edge.
#[derive(Debug)]
pub struct Edge {
    /// The operand left of the operator.
    pub left: OperandId,
    /// The operand right of it.
    pub right: OperandId,
    users: u32,
}

/// All parts of a population, counted by those that use them.
#[derive(Debug, Default)]
pub struct Parts {
    /// The sources.
    pub sources: Slab<Source>,
    /// The definitions.
    pub definitions: Slab<Definition>,
    /// The operands.
    pub operands: Slab<Operand>,
    /// The edges.
    pub edges: Slab<Edge>,
    source_ids: HashMap<SourceKind, SourceId, FixedState>,
    definition_ids: HashMap<DefinitionKey, DefinitionId, FixedState>,
    operand_ids: HashMap<(DefinitionId, Normal), OperandId, FixedState>,
}

impl Parts {
    /// The source of this kind, one more user counted; and whether it is new.
    pub fn source(&mut self, kind: SourceKind) -> (SourceId, bool) {
        if let Some(id) = self.source_ids.get(&kind) {
            self.sources[*id].users += 1;
            return (*id, false);
        }
        let id = self.sources.insert(Source {
            kind: kind.clone(),
            definitions: Vec::new(),
            slots: 0,
            free_slots: Vec::new(),
            singles: Vec::new(),
            left: BTreeMap::new(),
            right: BTreeMap::new(),
            followers: 0,
            users: 1,
        });
        self.source_ids.insert(kind, id);
        (id, true)
    }

    /// The definition of this key, one more user counted.
    pub fn definition(&mut self, key: DefinitionKey, from_root: Option<PathId>) -> DefinitionId {
        if let Some(id) = self.definition_ids.get(&key) {
            self.definitions[*id].users += 1;
            return *id;
        }
        let source = &mut self.sources[key.source];
        let slot = source.free_slots.pop().unwrap_or_else(|| {
            source.slots += 1;
            source.slots - 1
        });
        let id = self.definitions.insert(Definition {
            key: key.clone(),
            slot,
            operands: Vec::new(),
            from_root,
            is_listed: false,
            users: 1,
        });
        self.sources[key.source].definitions.push(id);
        self.definition_ids.insert(key, id);
        id
    }

    /// The operand, one more user counted.
    pub fn operand(&mut self, definition: DefinitionId, normal: Normal) -> OperandId {
        if let Some(id) = self.operand_ids.get(&(definition, normal)) {
            self.operands[*id].users += 1;
            return *id;
        }
        let id = self.operands.insert(Operand {
            definition,
            normal,
            as_left: HashMap::default(),
            as_right: HashMap::default(),
            users: 1,
        });
        self.definitions[definition].operands.push(id);
        self.operand_ids.insert((definition, normal), id);
        id
    }

    /// The edge between two operands, one more user counted.
    pub fn edge(&mut self, left: OperandId, right: OperandId) -> EdgeId {
        if let Some(id) = self.operands[left].as_left.get(&right) {
            self.edges[*id].users += 1;
            return *id;
        }
        let id = self.edges.insert(Edge { left, right, users: 1 });
        self.operands[left].as_left.insert(right, id);
        self.operands[right].as_right.insert(left, id);
        id
    }

    /// One user less of an edge.
    pub fn drop_edge(&mut self, id: EdgeId) {
        let edge = &mut self.edges[id];
        edge.users -= 1;
        if edge.users == 0 {
            let (left, right) = (edge.left, edge.right);
            self.edges.remove(id);
            self.operands[left].as_left.remove(&right);
            self.operands[right].as_right.remove(&left);
        }
    }

    /// One user less of an operand.
    pub fn drop_operand(&mut self, id: OperandId) {
        let operand = &mut self.operands[id];
        operand.users -= 1;
        if operand.users == 0 {
            let (definition, normal) = (operand.definition, operand.normal);
            self.operands.remove(id);
            self.operand_ids.remove(&(definition, normal));
            self.definitions[definition].operands.retain(|other| *other != id);
        }
    }

    /// One user less of a definition; whether it was the last, and it was listed.
    pub fn drop_definition(&mut self, id: DefinitionId) -> bool {
        let definition = &mut self.definitions[id];
        definition.users -= 1;
        if definition.users > 0 {
            return false;
        }
        let was_listed = definition.is_listed;
        let key = definition.key.clone();
        let source = &mut self.sources[key.source];
        source.free_slots.push(definition.slot);
        source.definitions.retain(|other| *other != id);
        self.definitions.remove(id);
        self.definition_ids.remove(&key);
        was_listed
    }

    /// One user less of a source.
    pub fn drop_source(&mut self, id: SourceId) {
        let source = &mut self.sources[id];
        source.users -= 1;
        if source.users == 0 {
            let kind = source.kind.clone();
            self.sources.remove(id);
            self.source_ids.remove(&kind);
        }
    }
}
