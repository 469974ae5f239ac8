//! A population of transformations: who asked for what, each different plan once.

use super::gates::{Gate, NONE};
use super::plan::{
    Compiled, ConditionId, ConditionKind, Constant, Operators, PathId, Piece, StreamId, Trigger, compile, is_plain,
    listed,
};
use super::schema::ElementGraph;
use super::walk::PathAutomaton;
use crate::xquery::ast::{CompareOp, Module};
use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashTable};
use smallvec::SmallVec;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of a plan.
pub type PlanId = u32;
/// Prefixes and URIs given with a query.
pub type Namespaces = Arc<[(String, String)]>;
/// Number of a subscription.
pub type SubscriberId = u32;

/// What plans share (VLDB 2003 §4, §5): each strategy everything that those before it share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Strategy {
    /// Nothing: every query as it is, by the exact evaluator. The oracle of the others.
    Naive,
    /// The paths of `for` clauses.
    For,
    /// And those of `where` clauses.
    ForWhere,
    /// And those of `return` clauses.
    ForWhereReturn,
    /// And joins, selections, groups, and whole plans.
    #[default]
    Shared,
}

impl Strategy {
    /// All of them.
    pub const ALL: [Strategy; 5] =
        [Strategy::Naive, Strategy::For, Strategy::ForWhere, Strategy::ForWhereReturn, Strategy::Shared];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Strategy::Naive => "naive",
            Strategy::For => "F",
            Strategy::ForWhere => "FW",
            Strategy::ForWhereReturn => "FWR",
            Strategy::Shared => "shared",
        }
    }
}

/// A plan, and for whom it is.
#[derive(Debug)]
pub struct Plan {
    /// The template.
    pub piece: Piece,
    /// Whether it is a constructed element that has a result only where it selects something.
    pub is_selecting: bool,
    /// Of these one has to happen before it can give anything.
    pub triggers: Box<[Trigger]>,
    /// Whether the template can be written at once.
    pub is_plain: bool,
    /// Streams whose nodes its groups list.
    pub lists: Box<[StreamId]>,
    /// The query, where the strategy evaluates it as it is.
    pub module: Option<Arc<Module>>,
    /// The subscriptions.
    pub subscribers: SmallVec<[SubscriberId; 4]>,
    /// How many of them are told of empty results.
    told_empty: u32,
}

impl Plan {
    /// Whether any subscription is told of empty results.
    pub fn tells_empty(&self) -> bool {
        self.told_empty > 0
    }
}

/// A subscription.
#[derive(Clone, Debug)]
pub struct Subscriber {
    /// Its id.
    pub id: Arc<str>,
    /// The query as given.
    pub query: Arc<str>,
    /// The namespaces given with it.
    pub namespaces: Namespaces,
    /// The stream it reads; none: all.
    pub stream: Option<Arc<str>>,
    /// Whether it is told of empty results.
    pub notify_empty: bool,
    plan: PlanId,
}

impl Subscriber {
    /// Its plan.
    pub fn plan(&self) -> PlanId {
        self.plan
    }
}

/// What is given to register a transformation.
#[derive(Clone, Debug)]
pub struct Registration {
    /// Its id; one that is known already is replaced.
    pub id: Arc<str>,
    /// The query as given.
    pub query: Arc<str>,
    /// The namespaces given with it.
    pub namespaces: Namespaces,
    /// The stream it reads; none: all.
    pub stream: Option<Arc<str>>,
    /// Whether it is told of empty results.
    pub notify_empty: bool,
    /// The query, parsed.
    pub module: Module,
}

/// The constants that a stream's nodes are compared with for equality.
#[derive(Debug, Default)]
pub struct Selection {
    /// By the number of the text.
    pub texts: HashMap<u32, ConditionId, FixedState>,
    /// By the bits of the number.
    pub numbers: HashMap<u64, ConditionId, FixedState>,
}

/// A plan that waits for a condition.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) plan: PlanId,
    /// Another condition on the same bindings without which it gives nothing; [`NONE`] if there is none.
    pub(super) other: ConditionId,
}

/// Garbage below this is not worth starting again for.
const MIN_GARBAGE: usize = 1_000;

static AUTOMATA: AtomicU64 = AtomicU64::new(0);

/// The population.
#[derive(Debug)]
pub struct Population {
    strategy: Strategy,
    operators: Operators,
    plans: Vec<Plan>,
    /// By template.
    plan_numbers: HashTable<PlanId>,
    subscribers: Vec<Option<Subscriber>>,
    free: Vec<SubscriberId>,
    by_id: HashTable<SubscriberId>,
    hasher: FixedState,
    /// Namespaces and stream of the last registration.
    last: (Namespaces, Option<Arc<str>>),
    pub(super) by_path: Vec<Vec<PlanId>>,
    /// By condition.
    pub(super) by_condition: Vec<Vec<Waiting>>,
    pub(super) always: Vec<PlanId>,
    /// For each path, the streams with constants whose nodes it leads to.
    selected: Vec<Vec<StreamId>>,
    /// By stream.
    selections: Vec<Option<Box<Selection>>>,
    /// By plan.
    gates: Vec<Gate>,
    constants: HashMap<Box<str>, u32, FixedState>,
    /// Conditions before this number are in the selections.
    indexed: usize,
    dead_plans: usize,
    automaton: (u64, PathAutomaton),
}

impl Population {
    /// An empty population.
    ///
    /// `graph`: the element graph of the DTD that documents are thought to follow; those that do not are transformed
    /// as well.
    pub fn new(strategy: Strategy, graph: Option<Arc<ElementGraph>>) -> Population {
        Population {
            strategy,
            operators: Operators::new(graph),
            plans: Vec::new(),
            plan_numbers: HashTable::new(),
            subscribers: Vec::new(),
            free: Vec::new(),
            by_id: HashTable::new(),
            hasher: FixedState::default(),
            last: Default::default(),
            by_path: Vec::new(),
            by_condition: Vec::new(),
            always: Vec::new(),
            selected: Vec::new(),
            selections: Vec::new(),
            gates: Vec::new(),
            constants: HashMap::default(),
            indexed: 0,
            dead_plans: 0,
            automaton: (AUTOMATA.fetch_add(1, Ordering::Relaxed), PathAutomaton::default()),
        }
    }

    /// What it shares.
    pub fn strategy(&self) -> Strategy {
        self.strategy
    }

    /// Its operators.
    pub fn operators(&self) -> &Operators {
        &self.operators
    }

    /// Number of subscriptions.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// Number of plans, those without subscriptions included.
    pub fn plan_count(&self) -> usize {
        self.plans.len()
    }

    /// Number of plans that some subscription wants.
    pub fn live_plan_count(&self) -> usize {
        self.plans.len() - self.dead_plans
    }

    /// A plan.
    pub fn plan(&self, id: PlanId) -> &Plan {
        &self.plans[id as usize]
    }

    /// A subscription by its number.
    pub fn subscriber(&self, id: SubscriberId) -> Option<&Subscriber> {
        self.subscribers.get(id as usize).and_then(Option::as_ref)
    }

    /// A subscription by its id.
    pub fn find(&self, id: &str) -> Option<&Subscriber> {
        let is_same = |number: &SubscriberId| self.subscriber(*number).is_some_and(|known| *known.id == *id);
        self.by_id.find(self.hasher.hash_one(id), is_same).and_then(|number| self.subscriber(*number))
    }

    /// All subscriptions, in the order of their numbers.
    pub fn subscribers(&self) -> impl Iterator<Item = &Subscriber> {
        self.subscribers.iter().flatten()
    }

    /// The path automaton and its number.
    pub fn automaton(&self) -> (u64, &PathAutomaton) {
        (self.automaton.0, &self.automaton.1)
    }

    /// The streams with constants whose nodes a path leads to.
    pub(super) fn selections_of(&self, path: PathId) -> &[StreamId] {
        self.selected.get(path as usize).map_or(&[], |streams| streams)
    }

    /// The constants that a stream's nodes are compared with for equality.
    #[inline]
    pub(super) fn selection(&self, stream: StreamId) -> Option<&Selection> {
        self.selections.get(stream as usize).and_then(Option::as_deref)
    }

    /// How many constants a stream's nodes are compared with for equality.
    pub(super) fn constants_of(&self, stream: StreamId) -> usize {
        self.selection(stream).map_or(0, |selection| selection.texts.len() + selection.numbers.len())
    }

    /// The gate of a plan.
    #[inline]
    pub(super) fn gate(&self, plan: PlanId) -> Gate {
        self.gates[plan as usize]
    }

    /// The number of a text among the constants.
    pub(super) fn constant(&self, text: &str) -> Option<u32> {
        self.constants.get(text).copied()
    }

    /// Registers transformations; one of a known id replaces the former.
    pub fn register(&mut self, registrations: impl IntoIterator<Item = Registration>) {
        for registration in registrations {
            self.remove(&registration.id);
            self.add(registration);
        }
        self.refresh();
    }

    /// Removes subscriptions; gives the ids that were not there.
    pub fn unregister<'i>(&mut self, ids: impl IntoIterator<Item = &'i str>) -> Vec<String> {
        ids.into_iter().filter(|id| !self.remove(id)).map(str::to_owned).collect()
    }

    /// Whether so many plans have no subscription any more that starting again pays.
    pub fn is_mostly_garbage(&self) -> bool {
        self.dead_plans > MIN_GARBAGE.max(self.live_plan_count())
    }

    fn add(&mut self, registration: Registration) {
        let Registration { id, query, namespaces, stream, notify_empty, module } = registration;
        let (namespaces, stream) = self.shared(namespaces, stream);
        let compiled = compile(&module, &mut self.operators);
        let plan = self.plan_of(compiled, module);
        let hash = self.hasher.hash_one(&*id);
        let subscriber = Subscriber { id, query, namespaces, stream, notify_empty, plan };
        let number = match self.free.pop() {
            Some(number) => {
                self.subscribers[number as usize] = Some(subscriber);
                number
            }
            None => {
                grow(&mut self.subscribers);
                self.subscribers.push(Some(subscriber));
                (self.subscribers.len() - 1) as SubscriberId
            }
        };
        let (subscribers, hasher) = (&self.subscribers, &self.hasher);
        let rehash = |number: &SubscriberId| {
            hasher.hash_one(subscribers[*number as usize].as_ref().map_or("", |subscriber| &*subscriber.id))
        };
        self.by_id.insert_unique(hash, number, rehash);
        let plan_entry = &mut self.plans[plan as usize];
        if plan_entry.subscribers.is_empty() {
            self.dead_plans -= 1;
        }
        plan_entry.subscribers.push(number);
        if notify_empty {
            plan_entry.told_empty += 1;
            if plan_entry.told_empty == 1 {
                self.always.push(plan);
            }
        }
    }

    /// What most subscriptions that come after each other have in common, once.
    fn shared(&mut self, namespaces: Namespaces, stream: Option<Arc<str>>) -> (Namespaces, Option<Arc<str>>) {
        if self.last.0 != namespaces {
            self.last.0 = namespaces;
        }
        if self.last.1 != stream {
            self.last.1 = stream;
        }
        self.last.clone()
    }

    /// The plan of a compiled query, known or new.
    fn plan_of(&mut self, compiled: Compiled, module: Module) -> PlanId {
        let Compiled { piece, is_selecting, triggers } = compiled;
        let hash = self.hasher.hash_one(&piece);
        if let Some(plan) = self.plan_numbers.find(hash, |plan| self.plans[*plan as usize].piece == piece) {
            return *plan;
        }
        let id = self.plans.len() as PlanId;
        let lists = listed(&piece);
        let gate = Gate::new(&piece, &lists, &self.operators);
        grow(&mut self.gates);
        self.gates.push(gate);
        for trigger in &triggers {
            match trigger {
                Trigger::Always => self.always.push(id),
                Trigger::Path(path) => {
                    let path = *path as usize;
                    if self.by_path.len() <= path {
                        self.by_path.resize_with(path + 1, Vec::new);
                    }
                    self.by_path[path].push(id);
                }
                Trigger::Condition(condition) => {
                    let other = gate.beside(*condition).unwrap_or(NONE);
                    let condition = *condition as usize;
                    if self.by_condition.len() <= condition {
                        self.by_condition.resize_with(condition + 1, Vec::new);
                    }
                    self.by_condition[condition].push(Waiting { plan: id, other });
                }
            }
        }
        let as_it_is = matches!(self.strategy, Strategy::Naive | Strategy::For);
        grow(&mut self.plans);
        self.plans.push(Plan {
            lists: lists.into(),
            is_plain: is_plain(&piece, &self.operators),
            piece,
            is_selecting,
            triggers: triggers.into(),
            module: as_it_is.then(|| Arc::new(module)),
            subscribers: SmallVec::new(),
            told_empty: 0,
        });
        self.dead_plans += 1;
        let (plans, hasher) = (&self.plans, &self.hasher);
        self.plan_numbers.insert_unique(hash, id, |plan| hasher.hash_one(&plans[*plan as usize].piece));
        id
    }

    fn remove(&mut self, id: &str) -> bool {
        let subscribers = &self.subscribers;
        let is_same =
            |number: &SubscriberId| subscribers[*number as usize].as_ref().is_some_and(|known| *known.id == *id);
        let Ok(place) = self.by_id.find_entry(self.hasher.hash_one(id), is_same) else { return false };
        let (number, _) = place.remove();
        let Some(subscriber) = self.subscribers[number as usize].take() else { return false };
        self.free.push(number);
        let plan_entry = &mut self.plans[subscriber.plan as usize];
        if let Some(at) = plan_entry.subscribers.iter().position(|known| *known == number) {
            plan_entry.subscribers.swap_remove(at);
        }
        if plan_entry.subscribers.is_empty() {
            self.dead_plans += 1;
        }
        if subscriber.notify_empty {
            plan_entry.told_empty -= 1;
            if plan_entry.told_empty == 0 && !plan_entry.triggers.contains(&Trigger::Always) {
                self.always.retain(|known| *known != subscriber.plan);
            }
        }
        true
    }

    /// Brings the selections and the path automaton up to date with the operators.
    fn refresh(&mut self) {
        for id in self.indexed..self.operators.conditions().len() {
            let ConditionKind::Compare(stream, CompareOp::Equal, constant) = &self.operators.condition(id as u32).kind
            else {
                continue;
            };
            let at = *stream as usize;
            if self.selections.len() <= at {
                self.selections.resize_with(at + 1, || None);
            }
            let selection = self.selections[at].get_or_insert_with(|| {
                if let Some(path) = self.operators.stream(*stream).necessary_path() {
                    let path = path as usize;
                    if self.selected.len() <= path {
                        self.selected.resize_with(path + 1, Vec::new);
                    }
                    self.selected[path].push(*stream);
                }
                Box::default()
            });
            match constant {
                Constant::String(text) => {
                    let next = self.constants.len() as u32;
                    let text = *self.constants.entry(text.clone()).or_insert(next);
                    selection.texts.insert(text, id as ConditionId);
                }
                Constant::Number(number) => {
                    selection.numbers.insert((number.0 + 0.0).to_bits(), id as ConditionId);
                }
            }
        }
        self.indexed = self.operators.conditions().len();
        if self.automaton.1.path_count() != self.operators.paths().len() {
            let number = AUTOMATA.fetch_add(1, Ordering::Relaxed);
            self.automaton = (number, PathAutomaton::new(&self.operators));
        }
    }
}

/// Makes room for one more, and a quarter more of what is long: doubling would leave much of it empty.
fn grow<T>(list: &mut Vec<T>) {
    if list.len() == list.capacity() {
        list.reserve_exact((list.len() / 4).max(16));
    }
}
