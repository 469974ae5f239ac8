//! Plans on one document.
//!
//! Streams and conditions are computed when a plan first asks for them and kept for the others: that is the sharing.
//! The strategies that share less forget them after each plan.

mod conditions;
mod emit;
mod gates;
mod groups;
mod selections;
mod streams;
mod text;

pub use groups::{Group, GroupResult};

use super::bits::Bits;
use super::construct::{Builder, write};
use super::error::TransformError;
use super::evaluate::{Evaluator, Outcome};
use super::plan::{ConditionId, Operators, PathId, Piece, StreamId};
use super::population::{Plan, PlanId, Population, Strategy};
use super::value::Event;
use super::walk::Walk;
use crate::document::{Document, NodeId, Serializer};
use crate::xpath::symbols::DocumentSymbols;
use std::ops::Range;

/// Bytes that the path cache of one worker may use.
const PATH_CACHE_BYTES: usize = 64 << 20;

/// The nodes of a stream in one document.
#[derive(Clone, Debug, Default)]
struct Nodes {
    /// Work for which they were computed.
    stamp: u64,
    /// The nodes, by binding of the stream above.
    nodes: Range<u32>,
    /// Where the nodes of each binding above start, relative; one more at the end. Empty for a stream from the document.
    starts: Range<u32>,
    /// For each node, the binding above that it belongs to. Empty for a stream from the document.
    parents: Range<u32>,
}

/// What a condition says in one document.
#[derive(Clone, Debug, Default)]
struct Verdict {
    stamp: u64,
    /// Bindings for which it holds.
    holds: Bits,
    /// Bindings that only the evaluator can judge.
    unsure: Option<Bits>,
}

/// Texts and numbers of the document's nodes, found when first asked for.
#[derive(Debug, Default)]
struct Values {
    stamps: Vec<u64>,
    /// The number of the text among the population's constants, or none.
    texts: Vec<Option<u32>>,
    number_stamps: Vec<u64>,
    /// The number that the text stands for, if it stands for one.
    numbers: Vec<Option<f64>>,
}

/// The caches of one thread; they fit one population and one state of it, and are brought up to date on the way.
#[derive(Debug)]
pub struct Worker {
    walk: Walk,
    /// The automaton that the walk belongs to.
    automaton: u64,
    symbols: DocumentSymbols,
    streams: Vec<Nodes>,
    verdicts: Vec<Verdict>,
    /// Verdicts that fit into one word, with the work for which they hold.
    words: Vec<(u64, u64)>,
    /// Whether the document has texts that are no numbers where numbers are needed.
    is_unsure: bool,
    /// Work for which a stream's values were looked up among the constants.
    probed: Vec<u64>,
    /// For such a stream, the bindings of which a text is no number.
    not_numeric: Vec<Option<Bits>>,
    arena: Vec<u32>,
    /// Nodes of a path, and which path in which document that is.
    path_nodes: Vec<NodeId>,
    path_of_nodes: (PathId, u64),
    hits: Vec<selections::Hit>,
    held: Vec<ConditionId>,
    /// For each node, the document in which it was copied, and where its text is in `copied`.
    copies: Vec<(u64, u32, u32)>,
    copied: String,
    text: String,
    values: Values,
    /// For each node of the document, its place in the list that is being joined, with a stamp.
    places: Vec<(u64, u32)>,
    place_stamp: u64,
    /// The stream whose bindings the places are, for which work, and whether each binds another node.
    placed: (StreamId, u64, bool),
    joined: streams::Joined,
    candidates: Vec<PlanId>,
    /// Documents so far.
    document: u64,
    /// Units of work so far: what carries the number of an earlier one is out of date.
    work: u64,
    /// The number of the work that streams from the document belong to.
    shared_work: u64,
}

impl Default for Worker {
    fn default() -> Self {
        Worker {
            walk: Walk::new(PATH_CACHE_BYTES),
            automaton: u64::MAX,
            symbols: DocumentSymbols::default(),
            streams: Vec::new(),
            verdicts: Vec::new(),
            words: Vec::new(),
            is_unsure: false,
            probed: Vec::new(),
            not_numeric: Vec::new(),
            arena: Vec::new(),
            path_nodes: Vec::new(),
            path_of_nodes: (0, 0),
            hits: Vec::new(),
            held: Vec::new(),
            copies: Vec::new(),
            copied: String::new(),
            text: String::new(),
            values: Values::default(),
            places: Vec::new(),
            place_stamp: 0,
            placed: (0, 0, false),
            joined: streams::Joined::default(),
            candidates: Vec::new(),
            document: 0,
            work: 0,
            shared_work: 0,
        }
    }
}

/// One document and one population.
#[derive(Debug)]
pub struct Execution<'a> {
    population: &'a Population,
    operators: &'a Operators,
    document: &'a Document,
    worker: &'a mut Worker,
    evaluator: Evaluator<'a>,
    strategy: Strategy,
    /// Whether the document agrees with the DTD, once that was asked.
    agrees: Option<bool>,
    /// The streams of the loops around, outermost first, and the current binding of each.
    chain: Vec<StreamId>,
    positions: Vec<u32>,
}

impl<'a> Execution<'a> {
    /// Gets a worker ready for a document: finds the nodes of all paths.
    pub fn new(
        population: &'a Population,
        worker: &'a mut Worker,
        document: &'a Document,
        cost_limit: u64,
    ) -> Execution<'a> {
        let operators = population.operators();
        let (number, automaton) = population.automaton();
        if worker.automaton != number {
            worker.walk = Walk::new(PATH_CACHE_BYTES);
            worker.automaton = number;
        }
        worker.document += 1;
        worker.work += 1;
        worker.shared_work = worker.work;
        worker.arena.clear();
        worker.copied.clear();
        worker.streams.resize_with(operators.streams().len(), Nodes::default);
        worker.probed.resize(operators.streams().len(), 0);
        worker.not_numeric.resize(operators.streams().len(), None);
        worker.verdicts.resize_with(operators.conditions().len(), Verdict::default);
        worker.words.resize(operators.conditions().len(), (0, 0));
        worker.is_unsure = false;
        if worker.places.len() < document.len() {
            worker.places.resize(document.len(), (0, 0));
            worker.copies.resize(document.len(), (0, 0, 0));
            worker.values.stamps.resize(document.len(), 0);
            worker.values.texts.resize(document.len(), None);
            worker.values.number_stamps.resize(document.len(), 0);
            worker.values.numbers.resize(document.len(), None);
        }
        worker.symbols.fill(document, |test| operators.symbols.find(test));
        worker.walk.walk(automaton, document, &worker.symbols);
        Execution {
            population,
            operators,
            document,
            worker,
            evaluator: Evaluator::new(document, cost_limit),
            strategy: population.strategy(),
            agrees: None,
            chain: Vec::new(),
            positions: Vec::new(),
        }
    }

    /// The plans that may give something, each once, in the order of their numbers.
    pub fn candidates(&mut self) -> Vec<PlanId> {
        let mut candidates = std::mem::take(&mut self.worker.candidates);
        candidates.clear();
        if self.strategy == Strategy::Naive {
            candidates.extend(0..self.population.plan_count() as PlanId);
        } else {
            self.find_candidates(&mut candidates);
        }
        candidates
    }

    /// Gives the list of candidates back, to be used again.
    pub fn recycle(&mut self, candidates: Vec<PlanId>) {
        self.worker.candidates = candidates;
    }

    /// What a plan gives as content, and whether the document has something for it; none if there is nothing to tell
    /// of.
    ///
    /// `tell_empty`: an empty result is to be told of too.
    ///
    /// # Errors
    /// A dynamic error, or more cost than the limit.
    pub fn events(&mut self, plan: &'a Plan, tell_empty: bool) -> Outcome<Option<(Vec<Event<'a>>, bool)>> {
        self.begin();
        let mut builder = Builder::new(self.document);
        let selected = match (&plan.module, self.strategy) {
            (Some(module), Strategy::Naive | Strategy::For) => {
                self.evaluator.restart(module.slots);
                self.emit_plainly(&module.body, &mut builder)?
            }
            _ => self.emit(&plan.piece, &mut builder)?,
        };
        let is_something = if plan.is_selecting { selected } else { builder.item_count() > 0 };
        Ok((is_something || tell_empty).then(|| (builder.into_events(), is_something)))
    }

    /// Whether the document has nothing for a plan, as far as that shows at once. If not, the plan has to be asked.
    ///
    /// # Errors
    /// More cost than the limit.
    pub fn is_closed(&mut self, plan: PlanId) -> Outcome<bool> {
        Ok(self.passage(plan)? == gates::Passage::Closed)
    }

    /// What a plan gives as XML text, and whether the document has something for it; see [`Self::events`].
    ///
    /// # Errors
    /// A dynamic error, or more cost than the limit.
    pub fn text(&mut self, plan: &'a Plan, tell_empty: bool) -> Outcome<Option<(String, bool)>> {
        if plan.is_plain && self.strategy > Strategy::For {
            self.begin();
            // One copy of a known size is cheaper than a string that grows.
            let mut serializer = Serializer::reusing(std::mem::take(&mut self.worker.text));
            let written = self.write_plain(&plan.piece, &mut serializer);
            self.worker.text = serializer.into_text();
            let written = written?;
            let is_something = if plan.is_selecting { written.selected } else { written.any };
            return Ok((is_something || tell_empty).then(|| (self.worker.text.clone(), is_something)));
        }
        let Some((events, is_something)) = self.events(plan, tell_empty)? else { return Ok(None) };
        let mut serializer = Serializer::default();
        write(self.document, &events, &mut serializer)?;
        Ok(Some((serializer.into_text(), is_something)))
    }

    /// Starts the work for one plan.
    fn begin(&mut self) {
        self.evaluator.restart(0);
        self.chain.clear();
        self.positions.clear();
        if self.strategy != Strategy::Shared {
            self.worker.work += 1;
        }
    }

    /// The nodes of a stream, all bindings together.
    fn all_nodes(&mut self, stream: StreamId) -> Outcome<Range<u32>> {
        self.compute(stream)?;
        Ok(self.worker.streams[stream as usize].nodes.clone())
    }

    #[inline]
    fn node_at(&self, at: u32) -> NodeId {
        self.worker.arena[at as usize]
    }

    /// How many bindings a stream has; it has been computed.
    fn count(&self, stream: StreamId) -> usize {
        self.worker.streams[stream as usize].nodes.len()
    }

    /// The nodes of a computed stream that belong to a binding of the stream above.
    #[inline]
    fn nodes_of(&self, stream: StreamId, binding: u32) -> Range<u32> {
        let nodes = &self.worker.streams[stream as usize];
        let start = self.worker.arena[(nodes.starts.start + binding) as usize];
        let end = self.worker.arena[(nodes.starts.start + binding + 1) as usize];
        nodes.nodes.start + start..nodes.nodes.start + end
    }

    /// The binding of the stream above that a binding of a computed stream belongs to.
    #[inline]
    fn parent_of(&self, stream: StreamId, binding: u32) -> u32 {
        self.worker.arena[(self.worker.streams[stream as usize].parents.start + binding) as usize]
    }

    /// The node of a binding of a computed stream.
    #[inline]
    fn binding_node(&self, stream: StreamId, binding: u32) -> NodeId {
        self.worker.arena[(self.worker.streams[stream as usize].nodes.start + binding) as usize]
    }

    fn too_large() -> TransformError {
        TransformError::dynamic("SDX0001", "the streams of one document have more than 2^32 nodes")
    }

    /// The condition's verdict, computed before.
    fn verdict(&self, condition: ConditionId) -> &Verdict {
        &self.worker.verdicts[condition as usize]
    }

    /// Whether a piece is one whose results say that the document has something for the query.
    fn is_selecting(piece: &Piece) -> bool {
        match piece {
            Piece::Nodes(_) | Piece::Loop(_) => true,
            Piece::Residue(residue) => {
                matches!(residue.expr, crate::xquery::ast::Expr::Flwor(_) | crate::xquery::ast::Expr::Path(_))
            }
            Piece::Element(_) | Piece::Sequence(_) => false,
        }
    }
}
