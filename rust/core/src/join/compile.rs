//! From a parsed join to queries over shared parts.

use super::parts::{DefinitionId, DefinitionKey, OperandId, Parts, SourceId, SourceKind};
use super::paths::{PathId, Paths, join};
use super::query::{Held, Output, QueryKey, Side};
use super::reduce::{Reduced, reduce};
use crate::xpath::error::XPathError;
use crate::xpath::parser::StaticContext;
use crate::xscl::ast::{JoinQuery, NodeAt, Normal, Operator, OperatorKind, Select};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::sync::Arc;

/// The path of the root of what a query found.
pub(super) const NO_PATH: u32 = u32::MAX;

/// A step before it is known whether another query is the same.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) key: QueryKey,
    pub(super) left: Side,
    pub(super) right: Side,
    pub(super) repeats: bool,
    pub(super) held: Held,
    /// Definitions that documents have to be searched for.
    pub(super) wanted: Vec<DefinitionId>,
}

/// The blocks of one subscription, reduced.
pub(super) struct Blocks<'q> {
    query: &'q JoinQuery,
    reduced: Vec<Reduced>,
    used: Vec<Vec<bool>>,
    stream: Option<&'q Arc<str>>,
}

/// Where the nodes left of an operator are found: their definitions, by block and pattern node.
pub(super) type Known = HashMap<NodeAt, DefinitionId, FixedState>;

/// A side of an operator while it is made: its source, and the definitions of its nodes.
pub(super) struct Unit {
    pub(super) source: SourceId,
    pub(super) known: Known,
}

impl<'q> Blocks<'q> {
    /// Reduces the blocks of a query to the nodes that it compares or gives out.
    pub(super) fn new(query: &'q JoinQuery, stream: Option<&'q Arc<str>>) -> Blocks<'q> {
        let mut used: Vec<Vec<bool>> = query.blocks.iter().map(|block| vec![false; block.nodes.len()]).collect();
        let mut mark = |at: NodeAt| used[usize::from(at.block)][usize::from(at.node)] = true;
        for equality in query.operators.iter().flat_map(|operator| &operator.equalities) {
            mark(equality.left.at);
            mark(equality.right.at);
        }
        outputs(query).into_iter().for_each(mark);
        let reduced = query.blocks.iter().zip(&used).map(|(block, used)| reduce(block, used)).collect();
        Blocks { query, reduced, used, stream }
    }

    /// The source of a block and the definitions of its nodes.
    pub(super) fn unit(
        &self,
        number: usize,
        parts: &mut Parts,
        paths: &mut Paths,
        context: &StaticContext<'_>,
        held: &mut Held,
    ) -> Result<Unit, XPathError> {
        let reduced = &self.reduced[number];
        let stream = self.query.blocks[number].stream.as_deref().map(Arc::from).or_else(|| self.stream.cloned());
        let root = paths.intern(&reduced.nodes[0].path, context)?;
        // Parsed before anything is counted: what fails leaves nothing behind.
        let mut ways: Vec<(PathId, PathId)> = Vec::with_capacity(reduced.nodes.len());
        let mut whole: Vec<String> = Vec::with_capacity(reduced.nodes.len());
        for node in &reduced.nodes {
            whole.push(match node.parent {
                None => node.path.clone(),
                Some(parent) => join(&whole[usize::from(parent)], &node.path),
            });
            ways.push((paths.intern(&node.path, context)?, paths.intern(&whole[whole.len() - 1], context)?));
        }
        let (source, _) = parts.source(SourceKind::Pattern { stream, path: root });
        held.sources.push(source);
        let mut definitions: Vec<DefinitionId> = Vec::with_capacity(reduced.nodes.len());
        let mut keys: Vec<(DefinitionKey, bool)> = Vec::with_capacity(reduced.nodes.len());
        for (place, (node, (path, from_root))) in reduced.nodes.iter().zip(ways).enumerate() {
            let parent = node.parent.map(|parent| definitions[usize::from(parent)]);
            let mut key = DefinitionKey { parent, source, path, copy: 0 };
            let is_path = self.is_path(number, place);
            // Equal paths in equalities are one node, however they are spelled; variables are each their own.
            if is_path && let Some(known) = keys.iter().position(|other| *other == (key.clone(), true)) {
                definitions.push(definitions[known]);
                keys.push((key, false));
                continue;
            }
            while keys.iter().any(|(other, _)| *other == key) {
                key.copy += 1;
            }
            definitions.push(parts.definition(key.clone(), Some(from_root)));
            held.definitions.push(definitions[place]);
            keys.push((key, is_path));
        }
        let known = (0_u16..)
            .zip(&reduced.places)
            .filter_map(|(node, place)| {
                Some((NodeAt { block: number as u16, node }, definitions[usize::from((*place)?)]))
            })
            .collect();
        Ok(Unit { source, known })
    }

    /// Whether a node that matters was made of a path in an equality: it has no variable, and nothing hangs from it.
    fn is_path(&self, block: usize, place: usize) -> bool {
        let nodes = &self.query.blocks[block].nodes;
        let own = self.reduced[block].places.iter().position(|other| other.map(usize::from) == Some(place));
        own.is_some_and(|own| {
            own > 0
                && nodes[own].variable.is_none()
                && nodes.iter().all(|node| node.parent.map(usize::from) != Some(own))
        })
    }

    /// The nodes left of operator `number + 1` that are looked at later: what step `number` has to give out.
    pub(super) fn needed_after(&self, number: usize) -> Vec<NodeAt> {
        let later = self.query.operators[number + 1..].iter().flat_map(|operator| &operator.equalities);
        let left = later.map(|equality| equality.left.at);
        let mut needed: Vec<NodeAt> = left
            .chain(outputs(self.query))
            .filter(|at| usize::from(at.block) <= number + 1 && self.used[usize::from(at.block)][usize::from(at.node)])
            .collect();
        needed.sort_unstable();
        needed.dedup();
        needed
    }

    /// The nodes that the whole query gives out, in order.
    pub(super) fn outputs(&self) -> Vec<NodeAt> {
        outputs(self.query)
    }
}

fn outputs(query: &JoinQuery) -> Vec<NodeAt> {
    match &query.select {
        Select::Roots => (0..query.blocks.len() as u16).map(|block| NodeAt { block, node: 0 }).collect(),
        Select::Construct { variables, .. } => variables.clone(),
    }
}

/// What an operator left of another gives out, as a source; `given` are its nodes in the order of its outputs.
pub(super) fn found(query: u32, given: &[NodeAt], parts: &mut Parts, held: &mut Held) -> Unit {
    let (source, _) = parts.source(SourceKind::Found(query));
    held.sources.push(source);
    let root = parts.definition(DefinitionKey { parent: None, source, path: NO_PATH, copy: 0 }, None);
    held.definitions.push(root);
    let mut known = Known::default();
    for (place, at) in given.iter().enumerate() {
        let key = DefinitionKey { parent: Some(root), source, path: place as u32, copy: 0 };
        let definition = parts.definition(key, None);
        held.definitions.push(definition);
        known.insert(*at, definition);
    }
    Unit { source, known }
}

/// The operand of a definition; of what a query found, also those of the nodes that it was found with.
pub(super) fn operand(
    definition: DefinitionId,
    normal: Normal,
    parts: &mut Parts,
    outputs_of: &dyn Fn(u32) -> Vec<Output>,
    held: &mut Held,
) -> OperandId {
    let operand = parts.operand(definition, normal);
    held.operands.push(operand);
    let key = parts.definitions[definition].key.clone();
    if let SourceKind::Found(query) = parts.sources[key.source].kind {
        let origin = outputs_of(query)[key.path as usize];
        self::operand(origin.definition, normal, parts, outputs_of, held);
    }
    operand
}

/// A query of one operator.
pub(super) fn pair(
    operator: &Operator,
    left: &Unit,
    right: &Unit,
    given: &[NodeAt],
    parts: &mut Parts,
    outputs_of: &dyn Fn(u32) -> Vec<Output>,
    mut held: Held,
) -> Compiled {
    let mut wanted = Vec::new();
    for equality in &operator.equalities {
        let sides = [(left, equality.left), (right, equality.right)];
        let [a, b] = sides.map(|(unit, side)| {
            let definition = unit.known[&side.at];
            wanted.push(definition);
            operand(definition, side.normal, parts, outputs_of, &mut held)
        });
        held.edges.push(parts.edge(a, b));
    }
    let mut edges = held.edges.clone();
    edges.sort_unstable();
    edges.dedup();
    let compared = |is_left: bool| -> Vec<DefinitionId> {
        let edges = edges.iter().map(|edge| &parts.edges[*edge]);
        edges.map(|edge| parts.operands[if is_left { edge.left } else { edge.right }].definition).collect()
    };
    let outputs: Box<[Output]> = given
        .iter()
        .map(|at| match left.known.get(at) {
            Some(definition) => Output { is_left: true, definition: *definition },
            None => Output { is_left: false, definition: right.known[at] },
        })
        .collect();
    wanted.extend(
        outputs.iter().map(|output| output.definition).filter(|id| parts.definitions[*id].key.parent.is_some()),
    );
    let sides = [(true, left), (false, right)].map(|(is_left, unit)| {
        let given = outputs.iter().filter(|output| output.is_left == is_left).map(|output| output.definition);
        side(unit.source, &compared(is_left), &given.collect::<Vec<_>>(), parts)
    });
    let repeats = [(true, left), (false, right)]
        .iter()
        .any(|(is_left, unit)| !tells_apart(unit.source, *is_left, &outputs, parts));
    let [left_side, right_side] = sides;
    let key = QueryKey {
        kind: operator.kind,
        window: operator.window_us.unwrap_or(i64::MAX),
        edges: edges.into(),
        left: Some(left.source),
        right: right.source,
        outputs,
    };
    Compiled { key, left: left_side, right: right_side, repeats, held, wanted }
}

/// A query of one block.
pub(super) fn single(unit: &Unit, given: &[NodeAt], parts: &Parts, held: Held) -> Compiled {
    let outputs: Box<[Output]> = given.iter().map(|at| Output { is_left: false, definition: unit.known[at] }).collect();
    let definitions: Vec<DefinitionId> = outputs.iter().map(|output| output.definition).collect();
    let root = parts.sources[unit.source].definitions[0];
    let wanted = definitions.iter().copied().chain([root]).collect();
    let repeats = !tells_apart(unit.source, false, &outputs, parts);
    let right = side(unit.source, &[], &definitions, parts);
    let key =
        QueryKey { kind: OperatorKind::Join, window: 0, edges: [].into(), left: None, right: unit.source, outputs };
    Compiled { key, left: Side::default(), right, repeats, held, wanted }
}

/// The nodes that a query needs of a source.
fn side(source: SourceId, compared: &[DefinitionId], given: &[DefinitionId], parts: &Parts) -> Side {
    let mut nodes: Vec<DefinitionId> = Vec::new();
    let mut sensitive: Vec<u32> = Vec::new();
    for id in compared.iter().chain(given) {
        let mut way = vec![*id];
        while let Some(parent) = parts.definitions[way[way.len() - 1]].key.parent {
            way.push(parent);
        }
        // Between the root and the node: others may hang from it too.
        sensitive.extend(way[1..].iter().map(|above| parts.definitions[*above].slot));
        way.reverse();
        nodes.extend(way);
    }
    nodes.push(parts.sources[source].definitions[0]);
    let depth = |id: &DefinitionId| std::iter::successors(Some(*id), |at| parts.definitions[*at].key.parent).count();
    nodes.sort_unstable_by_key(|id| (depth(id), *id));
    nodes.dedup();
    sensitive.extend(given.iter().map(|id| parts.definitions[*id].slot));
    for id in compared {
        if compared.iter().filter(|other| *other == id).count() > 1 {
            sensitive.push(parts.definitions[*id].slot);
        }
    }
    sensitive.sort_unstable();
    sensitive.dedup();
    Side { nodes: nodes.into(), sensitive: sensitive.into() }
}

/// Whether different units of a source always differ in the nodes given out (or in their documents).
fn tells_apart(source: SourceId, is_left: bool, outputs: &[Output], parts: &Parts) -> bool {
    let given = |id: &DefinitionId| outputs.iter().any(|output| output.is_left == is_left && output.definition == *id);
    let definitions = &parts.sources[source].definitions;
    match parts.sources[source].kind {
        SourceKind::Pattern { .. } => given(&definitions[0]),
        SourceKind::Found(_) => definitions[1..].iter().all(given),
    }
}
