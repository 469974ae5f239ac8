//! Stage 1: the witnesses of a document, for all blocks at once.
//!
//! The definitions are filters of a shared index, so a document meets only those that it has nodes for; their nodes
//! are then found from parent to child, each definition once however many blocks share it. What comes out are *units*:
//! a root's node, the nodes bound below it with their parents (RbinW of SIGMOD 2007, section 3) and the values that
//! are compared (RdocW).

use super::parts::{DefinitionId, OperandId, SourceId, SourceKind};
use super::population::{Population, Worker};
use crate::document::{Document, NodeId, NodeKind, Serializer};
use crate::xpath::ast::ConstantRef;
use crate::xpath::evaluate::{EvaluateError, Evaluator, NodeRef, Value};
use crate::xpath::symbols::DocumentSymbols;
use crate::xscl::ast::Normal;
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::borrow::Cow;
use std::sync::Arc;

/// A node bound to a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The definition.
    pub definition: DefinitionId,
    /// The place among the unit's bindings of the node that it was found from; of the root its own.
    pub parent: u32,
    /// The node.
    pub node: NodeId,
}

/// A value that is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witness<'d> {
    /// Of which operand.
    pub operand: OperandId,
    /// The place of the binding whose value it is.
    pub binding: u32,
    /// The value, after the operand's function.
    pub value: Cow<'d, str>,
}

/// What a document has for one source: a root's node and everything bound below it.
#[derive(Clone, Debug)]
pub struct UnitWitness<'d> {
    /// The source.
    pub source: SourceId,
    /// The bindings, the root first and parents before children.
    pub bindings: Vec<Binding>,
    /// The values, by operand.
    pub values: Vec<Witness<'d>>,
    /// The XML text of the root, if it was asked for.
    pub text: Option<RootText>,
}

/// The XML text of a root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootText {
    /// An element's text; of any other node the text of an element around it.
    pub xml: Arc<str>,
    /// Whether there is an element around it. An attribute is its attribute, and its value its content too.
    pub is_wrapped: bool,
}

impl RootText {
    fn new(document: &Document, node: NodeId) -> RootText {
        let kind = document.node(node).kind;
        let mut serializer = Serializer::default();
        match kind {
            NodeKind::Element => serializer.copy(document, node),
            NodeKind::Attribute => {
                let name = document.name(node);
                let value = document.string_value(node);
                serializer.start("", "a", "");
                serializer.attribute(&name.prefix, &name.local, &name.uri, value);
                serializer.text(value);
                serializer.end();
            }
            _ => {
                serializer.start("", "t", "");
                serializer.copy(document, node);
                serializer.end();
            }
        }
        RootText { xml: serializer.into_text().into(), is_wrapped: kind != NodeKind::Element }
    }

    /// What a copy of the root is in the content of an element.
    pub fn content(&self) -> &str {
        if !self.is_wrapped {
            return &self.xml;
        }
        let start = self.xml.find('>').map_or(0, |at| at + 1);
        self.xml.rfind("</").filter(|end| *end >= start).map_or("", |end| &self.xml[start..end])
    }
}

impl UnitWitness<'_> {
    /// The same without borrowing from the document.
    pub fn into_owned(self) -> UnitWitness<'static> {
        let owned = |witness: Witness<'_>| Witness {
            operand: witness.operand,
            binding: witness.binding,
            value: Cow::Owned(witness.value.into_owned()),
        };
        UnitWitness {
            source: self.source,
            bindings: self.bindings,
            values: self.values.into_iter().map(owned).collect(),
            text: self.text,
        }
    }
}

/// What [`witnesses`] found.
#[derive(Debug, Default)]
pub struct Witnesses<'d> {
    /// The units.
    pub units: Vec<UnitWitness<'d>>,
    /// Sources whose paths cost too much.
    pub failures: Vec<(SourceId, EvaluateError)>,
}

/// A document as it was published.
#[derive(Clone, Copy, Debug)]
pub struct Published<'a> {
    /// The document.
    pub document: &'a Document,
    /// Its stream.
    pub stream: Option<&'a str>,
    /// Whether it is a result on a derived stream.
    pub is_derived: bool,
}

/// The witnesses of a document; `texts` asks for the XML text of roots.
pub fn witnesses<'d>(
    population: &Population,
    worker: &mut Worker,
    published: Published<'d>,
    texts: bool,
) -> Witnesses<'d> {
    let mut found = Witnesses::default();
    let by_source = wanted(population, worker, published, &mut found.failures);
    if by_source.is_empty() {
        return found;
    }
    let document = published.document;
    let symbols = DocumentSymbols::new(document, |test| population.paths().symbols().find(test));
    let mut search = Search {
        population,
        document,
        evaluator: Evaluator::new(document, &symbols, population.cost_limit()),
        remembered: HashMap::default(),
        shares: by_source.len() > 1,
    };
    for (source, definitions) in by_source {
        match search.units(source, &definitions) {
            Ok(units) => found.units.extend(units),
            Err(error) => found.failures.push((source, error)),
        }
    }
    if texts {
        for unit in &mut found.units {
            unit.text = Some(RootText::new(document, unit.bindings[0].node));
        }
    }
    found
}

/// The definitions that a document has nodes for and those above them, by source; parents come first.
fn wanted(
    population: &Population,
    worker: &mut Worker,
    published: Published<'_>,
    failures: &mut Vec<(SourceId, EvaluateError)>,
) -> Vec<(SourceId, Vec<DefinitionId>)> {
    let parts = population.parts();
    let matches = population.satisfied(worker, published.document, published.stream);
    let snapshot = &worker.snapshot;
    // Filters are named by the numbers of their definitions.
    let definition = |segment: usize, number: u32| -> Option<DefinitionId> {
        let id = snapshot.segments[segment].segment.ids().get(number).parse().ok()?;
        let source = parts.definitions.get(id)?.key.source;
        let SourceKind::Pattern { stream, .. } = &parts.sources[source].kind else { return None };
        (!published.is_derived || stream.is_some()).then_some(id)
    };
    for failure in &matches.failures {
        if let Some(id) = definition(failure.segment, failure.subscription) {
            failures.push((parts.definitions[id].key.source, failure.error));
        }
    }
    let mut wanted: Vec<(SourceId, usize, DefinitionId)> = Vec::new();
    for id in matches.iter().filter_map(|(segment, number)| definition(segment as usize, number)) {
        let way: Vec<DefinitionId> = std::iter::successors(Some(id), |at| parts.definitions[*at].key.parent).collect();
        let source = parts.definitions[id].key.source;
        wanted.extend(way.iter().rev().enumerate().map(|(depth, id)| (source, depth, *id)));
    }
    wanted.sort_unstable();
    wanted.dedup();
    let mut by_source: Vec<(SourceId, Vec<DefinitionId>)> = Vec::new();
    for (source, _, id) in wanted {
        match by_source.last_mut() {
            Some((last, definitions)) if *last == source => definitions.push(id),
            _ => by_source.push((source, vec![id])),
        }
    }
    by_source
}

struct Search<'s, 'd> {
    population: &'s Population,
    document: &'d Document,
    evaluator: Evaluator<'s>,
    /// Nodes by path and the node that it starts from.
    remembered: HashMap<(u32, NodeRef), Vec<NodeRef>, FixedState>,
    /// Whether several sources may ask for the same.
    shares: bool,
}

impl<'d> Search<'_, 'd> {
    fn nodes(
        &mut self,
        path: u32,
        constants: &[ConstantRef<'_>],
        from: NodeRef,
    ) -> Result<Vec<NodeRef>, EvaluateError> {
        if self.shares
            && let Some(known) = self.remembered.get(&(path, from))
        {
            return Ok(known.clone());
        }
        let query = self.population.paths().get(path).query();
        let nodes = match self.evaluator.value(query, constants, from)? {
            Value::Nodes(nodes) => nodes,
            _ => Vec::new(),
        };
        if self.shares {
            self.remembered.insert((path, from), nodes.clone());
        }
        Ok(nodes)
    }

    fn units(&mut self, source: SourceId, definitions: &[DefinitionId]) -> Result<Vec<UnitWitness<'d>>, EvaluateError> {
        let population = self.population;
        let parts = population.parts();
        let paths: Vec<(u32, Vec<ConstantRef<'_>>)> = definitions
            .iter()
            .map(|id| parts.definitions[*id].key.path)
            .map(|path| (path, population.paths().get(path).constants()))
            .collect();
        let roots = self.nodes(paths[0].0, &paths[0].1, NodeRef::ROOT)?;
        let mut units = Vec::with_capacity(roots.len());
        for root in roots {
            let mut bindings = vec![Binding { definition: definitions[0], parent: 0, node: root.id() }];
            // Where the bindings of each definition are.
            let mut ranges = vec![(definitions[0], 0..1_usize)];
            for (id, (path, constants)) in definitions.iter().zip(&paths).skip(1) {
                let parent = parts.definitions[*id].key.parent;
                let above =
                    ranges.iter().find(|(other, _)| Some(*other) == parent).map_or(0..0, |(_, range)| range.clone());
                let start = bindings.len();
                for place in above {
                    let from = NodeRef::tree(bindings[place].node);
                    let nodes = self.nodes(*path, constants, from)?;
                    let bound = nodes.iter().filter(|node| !node.is_namespace());
                    bindings.extend(bound.map(|node| Binding {
                        definition: *id,
                        parent: place as u32,
                        node: node.id(),
                    }));
                }
                ranges.push((*id, start..bindings.len()));
            }
            let mut values = Vec::with_capacity(bindings.len());
            for (id, range) in &ranges {
                for operand in &parts.definitions[*id].operands {
                    let normal = parts.operands[*operand].normal;
                    values.extend(range.clone().map(|place| Witness {
                        operand: *operand,
                        binding: place as u32,
                        value: normalized(self.document.string_value(bindings[place].node), normal),
                    }));
                }
            }
            values.sort_by_key(|witness| witness.operand);
            units.push(UnitWitness { source, bindings, values, text: None });
        }
        Ok(units)
    }
}

/// A value under a function.
pub fn normalized(text: &str, normal: Normal) -> Cow<'_, str> {
    let spaces = |text: &str| -> String {
        let mut words = text.split([' ', '\t', '\r', '\n']).filter(|word| !word.is_empty());
        let mut out = String::with_capacity(text.len());
        out.push_str(words.next().unwrap_or_default());
        words.for_each(|word| {
            out.push(' ');
            out.push_str(word);
        });
        out
    };
    match normal {
        Normal::Exact => Cow::Borrowed(text),
        Normal::Spaces => Cow::Owned(spaces(text)),
        Normal::Lower => Cow::Owned(text.to_lowercase()),
        Normal::SpacesLower => Cow::Owned(spaces(text).to_lowercase()),
    }
}
