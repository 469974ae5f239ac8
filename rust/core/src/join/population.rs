//! A population of joins: who asked for what, each different query once.

use super::compile::{Blocks, Compiled, found, pair, single};
use super::parts::{DefinitionId, OperandId, Parts, QueryId, SourceId, SourceKind};
use super::paths::Paths;
use super::query::{Held, Output, Query, Shape, Subscription, SubscriptionId};
use super::slab::Slab;
use super::trie::SetTrie;
use crate::document::Document;
use crate::index;
use crate::index::SegmentBuilder;
use crate::index::Snapshot;
use crate::matcher::{self, Inverted, Matches, Settings};
use crate::xpath::error::XPathError;
use crate::xpath::parser::{QueryLimits, StaticContext};
use crate::xscl::ast::{JoinQuery, NodeAt, OperatorKind, Select};
use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashSet};
use std::sync::Arc;

/// What is given to register a join.
#[derive(Debug)]
pub struct Registration {
    /// Its id; one that is known already is replaced.
    pub id: Arc<str>,
    /// The query as given.
    pub query: Arc<str>,
    /// The namespaces given with it.
    pub namespaces: Arc<[(String, String)]>,
    /// The stream of blocks that name none.
    pub stream: Option<Arc<str>>,
    /// The query, parsed.
    pub parsed: JoinQuery,
}

/// Why a join that could be parsed can not be registered.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    /// A path that is longer or deeper than the limits allow once it is put together.
    #[error("{0}")]
    Path(#[from] XPathError),
    /// Its results would come back to it.
    #[error(
        "PUBLISH {stream} closes a cycle: what is published on {stream} leads to {reads}, which this subscription reads"
    )]
    Cycle {
        /// The stream that it publishes.
        stream: Arc<str>,
        /// The stream that it reads.
        reads: Arc<str>,
    },
}

/// What one thread needs to take documents apart; caches belong to the snapshot, which merging may replace meanwhile.
#[derive(Debug)]
pub struct Worker {
    pub(super) snapshot: Arc<Snapshot>,
    caches: matcher::Worker,
}

/// The population.
#[derive(Debug)]
pub struct Population {
    limits: QueryLimits,
    parts: Parts,
    paths: Paths,
    queries: Slab<Query>,
    query_ids: HashMap<super::query::QueryKey, QueryId, FixedState>,
    trie: SetTrie,
    joins: usize,
    publishers: usize,
    subscriptions: Slab<Subscription>,
    ids: HashMap<Arc<str>, SubscriptionId, FixedState>,
    version: u64,
    /// The definitions as filters, by which a document finds those that it has nodes for.
    filters: index::Population,
    matcher: Inverted,
}

impl Population {
    /// An empty population; queries within these limits, conditions that cost up to `cost_limit` on a document.
    pub fn new(limits: QueryLimits, cost_limit: u64) -> Population {
        Population {
            limits,
            parts: Parts::default(),
            paths: Paths::default(),
            queries: Slab::default(),
            query_ids: HashMap::default(),
            trie: SetTrie::default(),
            joins: 0,
            publishers: 0,
            subscriptions: Slab::default(),
            ids: HashMap::default(),
            version: 0,
            filters: index::Population::default(),
            matcher: Inverted::new(Settings { cost_limit, ..Settings::default() }),
        }
    }

    /// What patterns and queries are made of.
    pub fn parts(&self) -> &Parts {
        &self.parts
    }

    /// The compiled paths.
    pub fn paths(&self) -> &Paths {
        &self.paths
    }

    /// The queries.
    pub fn queries(&self) -> &Slab<Query> {
        &self.queries
    }

    /// Queries by the set of their edges.
    pub fn trie(&self) -> &SetTrie {
        &self.trie
    }

    /// Whether any query has the operator `JOIN`.
    pub fn has_joins(&self) -> bool {
        self.joins > 0
    }

    /// The subscriptions.
    pub fn subscriptions(&self) -> &Slab<Subscription> {
        &self.subscriptions
    }

    /// How many subscriptions there are.
    pub fn len(&self) -> usize {
        self.subscriptions.count()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A subscription by its id.
    pub fn find(&self, id: &str) -> Option<&Subscription> {
        self.ids.get(id).map(|number| &self.subscriptions[*number])
    }

    /// Whether any subscription publishes its results.
    pub fn publishes(&self) -> bool {
        self.publishers > 0
    }

    /// The ids of the subscriptions that a query is a step of.
    pub fn askers(&self, query: QueryId) -> Vec<Arc<str>> {
        let all = self.subscriptions.iter().map(|(_, subscription)| subscription);
        all.filter(|subscription| subscription.steps.contains(&query)).map(|asker| asker.id.clone()).collect()
    }

    /// The ids of the subscriptions that read a source.
    pub fn readers(&self, source: SourceId) -> Vec<Arc<str>> {
        let reads = |query: &QueryId| {
            let key = &self.queries[*query].key;
            key.right == source || key.left == Some(source)
        };
        let all = self.subscriptions.iter().map(|(_, subscription)| subscription);
        all.filter(|subscription| subscription.steps.iter().any(reads)).map(|reader| reader.id.clone()).collect()
    }

    /// Number of the state of the population: each change makes a new one.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// What taking documents apart needs; one for each thread.
    pub fn worker(&self) -> Worker {
        let snapshot = self.filters.snapshot();
        Worker { caches: self.matcher.worker(&snapshot), snapshot }
    }

    /// Takes it back.
    pub fn give_back(&self, worker: Worker) {
        self.matcher.give_back(worker.caches);
    }

    /// The definitions as filters: those that a document satisfies.
    pub(super) fn satisfied(&self, worker: &mut Worker, document: &Document, stream: Option<&str>) -> Matches {
        self.matcher.match_document(&mut worker.caches, &worker.snapshot, document, stream)
    }

    /// The most that evaluating a path may cost.
    pub fn cost_limit(&self) -> u64 {
        self.matcher.settings().cost_limit
    }

    /// Adds subscriptions as one change; an id that is there is replaced. Gives the refused ones.
    ///
    /// # Panics
    /// If there are more different pattern nodes than one index can number.
    pub fn register(
        &mut self,
        registrations: impl IntoIterator<Item = Registration>,
    ) -> Vec<(Arc<str>, RegisterError)> {
        self.version += 1;
        let mut wanted: Vec<DefinitionId> = Vec::new();
        let mut refused = Vec::new();
        for registration in registrations {
            let id = registration.id.clone();
            if let Err(error) = self.insert(registration, &mut wanted) {
                refused.push((id, error));
            }
        }
        self.list(wanted);
        refused
    }

    /// Removes subscriptions as one change; gives the ids that were not there.
    pub fn unregister<'i>(&mut self, ids: impl IntoIterator<Item = &'i str>) -> Vec<String> {
        self.version += 1;
        ids.into_iter().filter(|id| !self.remove(id)).map(str::to_owned).collect()
    }

    /// Goes on where another population was: its version, and since when it had each subscription (None: it had not).
    pub(super) fn adopt(&mut self, version: u64, since: impl Fn(&Subscription) -> Option<u64>) {
        self.version = self.version.max(version) + 1;
        let numbers: Vec<SubscriptionId> = self.subscriptions.iter().map(|(number, _)| number).collect();
        let mut earliest: HashMap<QueryId, u64, FixedState> = HashMap::default();
        for number in numbers {
            let subscription = &mut self.subscriptions[number];
            subscription.since = since(subscription).unwrap_or(self.version);
            for step in &subscription.steps {
                let known = earliest.entry(*step).or_insert(subscription.since);
                *known = subscription.since.min(*known);
            }
        }
        let queries: Vec<QueryId> = self.queries.iter().map(|(id, _)| id).collect();
        for id in queries {
            self.queries[id].since = earliest.get(&id).copied().unwrap_or(self.version);
        }
    }

    fn insert(&mut self, registration: Registration, wanted: &mut Vec<DefinitionId>) -> Result<(), RegisterError> {
        let Registration { id, query, namespaces, stream, parsed } = registration;
        let mut reads: Vec<Arc<str>> = parsed
            .blocks
            .iter()
            .filter_map(|block| block.stream.as_deref().map(Arc::from).or_else(|| stream.clone()))
            .collect();
        reads.sort_unstable();
        reads.dedup();
        let publish: Option<Arc<str>> = parsed.publish.as_deref().map(Arc::from);
        if let Some(stream) = &publish {
            self.check_cycle(&id, stream, &reads)?;
        }
        let steps = self.steps(&parsed, stream.as_ref(), &namespaces, wanted)?;
        self.remove(&id);
        let shape = match parsed.select {
            Select::Roots => Shape::Roots,
            Select::Construct { module, variables } => {
                Shape::Constructed { module: module.into(), blocks: variables.iter().map(|at| at.block).collect() }
            }
        };
        let last = steps[steps.len() - 1];
        self.publishers += usize::from(publish.is_some());
        let subscription = Subscription {
            id: id.clone(),
            query,
            namespaces,
            stream,
            steps: steps.into(),
            shape,
            publish,
            since: self.version,
            reads: reads.into(),
        };
        let number = self.subscriptions.insert(subscription);
        self.queries[last].subscriptions.push(number);
        self.ids.insert(id, number);
        Ok(())
    }

    /// Refuses results that would lead back to a stream that the subscription reads.
    fn check_cycle(&self, id: &str, stream: &Arc<str>, reads: &[Arc<str>]) -> Result<(), RegisterError> {
        let mut reached: HashSet<Arc<str>, FixedState> = HashSet::default();
        let mut open = vec![stream.clone()];
        while let Some(at) = open.pop() {
            if reads.contains(&at) {
                return Err(RegisterError::Cycle { stream: stream.clone(), reads: at });
            }
            if reached.insert(at.clone()) {
                let readers = self.subscriptions.iter().map(|(_, other)| other);
                let next = readers.filter(|other| &*other.id != id && other.reads.contains(&at));
                open.extend(next.filter_map(|other| other.publish.clone()));
            }
        }
        Ok(())
    }

    fn steps(
        &mut self,
        parsed: &JoinQuery,
        stream: Option<&Arc<str>>,
        namespaces: &Arc<[(String, String)]>,
        wanted: &mut Vec<DefinitionId>,
    ) -> Result<Vec<QueryId>, XPathError> {
        let borrowed: Vec<(&str, &str)> = namespaces.iter().map(|(prefix, uri)| (&**prefix, &**uri)).collect();
        // The pieces were within the limits; put together they may be longer.
        let limits = QueryLimits { length_bytes: usize::MAX, cells: usize::MAX, ..self.limits };
        let context = StaticContext { namespaces: &borrowed, ignore_namespaces: false, limits };
        let blocks = Blocks::new(parsed, stream);
        let mut held: Vec<Held> = Vec::new();
        let mut units = Vec::new();
        for number in 0..parsed.blocks.len() {
            let mut own = Held::default();
            match blocks.unit(number, &mut self.parts, &mut self.paths, &context, &mut own) {
                Ok(unit) => units.push(unit),
                Err(error) => {
                    held.into_iter().for_each(|held| self.drop_parts(held));
                    return Err(error);
                }
            }
            held.push(own);
        }
        let mut held = held.into_iter();
        let mut units = units.into_iter();
        let (Some(mut left), Some(mut own)) = (units.next(), held.next()) else { return Ok(Vec::new()) };
        let mut steps = Vec::new();
        if parsed.operators.is_empty() {
            let compiled = single(&left, &blocks.outputs(), &self.parts, own);
            steps.push(self.step(compiled, wanted));
            return Ok(steps);
        }
        for (number, (operator, (right, more))) in parsed.operators.iter().zip(units.zip(held)).enumerate() {
            let is_last = number + 1 == parsed.operators.len();
            let given: Vec<NodeAt> = if is_last { blocks.outputs() } else { blocks.needed_after(number) };
            own.sources.extend(more.sources);
            own.definitions.extend(more.definitions);
            let queries = &self.queries;
            let outputs_of = |query: QueryId| -> Vec<Output> { queries[query].key.outputs.to_vec() };
            let compiled =
                pair(operator, &left, &right, &given, &mut self.parts, &outputs_of, std::mem::take(&mut own));
            let query = self.step(compiled, wanted);
            steps.push(query);
            if !is_last {
                left = found(query, &given, &mut self.parts, &mut own);
                self.queries[query].found = Some(left.source);
            }
        }
        Ok(steps)
    }

    /// The query that a step is, one more user counted.
    fn step(&mut self, step: Compiled, wanted: &mut Vec<DefinitionId>) -> QueryId {
        wanted.extend(step.wanted);
        if let Some(known) = self.query_ids.get(&step.key).copied() {
            self.drop_parts(step.held);
            self.queries[known].users += 1;
            return known;
        }
        let key = step.key;
        let query = Query {
            key: key.clone(),
            left: step.left,
            right: step.right,
            repeats: step.repeats,
            gives_roots: key
                .outputs
                .iter()
                .all(|output| self.parts.definitions[output.definition].key.parent.is_none()),
            since: self.version,
            subscriptions: Vec::new(),
            found: None,
            held: step.held,
            users: 1,
        };
        let id = self.queries.insert(query);
        match key.left {
            None => self.parts.sources[key.right].singles.push(id),
            Some(left) => {
                self.trie.insert(&key.edges, id);
                *self.parts.sources[left].left.entry(key.window).or_default() += 1;
                let right = &mut self.parts.sources[key.right];
                match key.kind {
                    OperatorKind::Join => {
                        self.joins += 1;
                        *right.right.entry(key.window).or_default() += 1;
                    }
                    OperatorKind::FollowedBy => right.followers += 1,
                }
            }
        }
        self.query_ids.insert(key, id);
        id
    }

    /// Makes filters of definitions.
    fn list(&mut self, mut wanted: Vec<DefinitionId>) {
        wanted.sort_unstable();
        wanted.dedup();
        let mut builder = SegmentBuilder::default();
        *builder.symbols() = self.paths.symbols().clone();
        for id in wanted {
            // Some may have gone again with the subscription that was replaced.
            if id as usize >= self.parts.definitions.bound() || self.parts.definitions.get(id).is_none() {
                continue;
            }
            let definition = &mut self.parts.definitions[id];
            let Some(path) = definition.from_root.filter(|_| !definition.is_listed) else { continue };
            definition.is_listed = true;
            let source = definition.key.source;
            let SourceKind::Pattern { stream, .. } = &self.parts.sources[source].kind else { continue };
            let (cells, root, constants) = self.paths.get(path).parts();
            let inserted = builder.insert(&id.to_string(), stream.as_deref(), cells, root, constants);
            inserted.expect("as many pattern nodes as one index can number");
        }
        if !builder.is_empty() {
            self.filters.register(builder).expect("as many pattern nodes as one index can number");
        }
    }

    fn remove(&mut self, id: &str) -> bool {
        let Some(number) = self.ids.remove(id) else { return false };
        let Some(subscription) = self.subscriptions.remove(number) else { return false };
        self.publishers -= usize::from(subscription.publish.is_some());
        self.queries[subscription.last_step()].subscriptions.retain(|other| *other != number);
        for query in subscription.steps.iter().rev() {
            self.drop_query(*query);
        }
        true
    }

    fn drop_query(&mut self, id: QueryId) {
        self.queries[id].users -= 1;
        if self.queries[id].users > 0 {
            return;
        }
        let Some(query) = self.queries.remove(id) else { return };
        let key = query.key;
        let less = |windows: &mut std::collections::BTreeMap<i64, u32>| {
            if let Some(count) = windows.get_mut(&key.window) {
                *count -= 1;
                if *count == 0 {
                    windows.remove(&key.window);
                }
            }
        };
        match key.left {
            None => self.parts.sources[key.right].singles.retain(|other| *other != id),
            Some(left) => {
                self.trie.remove(&key.edges, id);
                less(&mut self.parts.sources[left].left);
                match key.kind {
                    OperatorKind::Join => {
                        self.joins -= 1;
                        less(&mut self.parts.sources[key.right].right);
                    }
                    OperatorKind::FollowedBy => self.parts.sources[key.right].followers -= 1,
                }
                if let SourceKind::Found(before) = self.parts.sources[left].kind {
                    // Gone with its last reader; a query before it may go on for others.
                    if self.parts.sources[left].left.is_empty() && self.queries.get(before).is_some() {
                        self.queries[before].found = None;
                    }
                }
            }
        }
        self.query_ids.remove(&key);
        self.drop_parts(query.held);
    }

    fn drop_parts(&mut self, held: Held) {
        held.edges.into_iter().for_each(|edge| self.parts.drop_edge(edge));
        held.operands.into_iter().for_each(|operand: OperandId| self.parts.drop_operand(operand));
        for definition in held.definitions.into_iter().rev() {
            if self.parts.drop_definition(definition) {
                self.filters.unregister([&*definition.to_string()]);
            }
        }
        held.sources.into_iter().for_each(|source| self.parts.drop_source(source));
    }
}
