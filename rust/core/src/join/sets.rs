//! What is decided once for each set of edges that hold between two units, instead of for each pair of units.
//!
//! Which queries two units satisfy depends on the edges that hold between them, and on which pattern nodes have several
//! nodes in them: their *classes*. Both repeat from pair to pair, so that hundreds of thousands of queries are decided
//! by a look-up. (The paper evaluates a relational query for each template; this goes further, and any template will do.)

use super::parts::{EdgeId, QueryId, SourceId};
use super::population::Population;
use crate::xscl::ast::OperatorKind;
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::sync::Arc;

/// Number of a set of edges.
pub type SetId = u32;
/// Number of a class; never used twice.
pub type ClassId = u32;

/// The set without edges.
pub const EMPTY: SetId = 0;

/// A query that two units may satisfy.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// Its window.
    pub window: i64,
    /// The query.
    pub query: QueryId,
    /// The version since which it is there.
    pub since: u64,
    /// Whether the edges alone do not decide it: which nodes hold them has to be looked at.
    pub needs_proof: bool,
}

/// The queries that a set of edges leads to, by operator and, within, from the longest window to the shortest.
#[derive(Debug, Default)]
pub struct Decided {
    /// `FOLLOWED BY`
    pub followed: Vec<Candidate>,
    /// `JOIN`
    pub joined: Vec<Candidate>,
    /// The largest `since`.
    pub newest: u64,
    /// Whether each of them is satisfied by any pair within its window and tells subscriptions only, each once.
    pub is_plain: bool,
}

impl Decided {
    /// How many queries hold where the right unit comes so much later, from the front of either list.
    #[inline]
    pub fn within(&self, after: i64) -> (usize, usize) {
        let apart = after.saturating_abs();
        let longer = |candidates: &[Candidate]| candidates.partition_point(|candidate| candidate.window >= apart);
        (if after > 0 { longer(&self.followed) } else { 0 }, longer(&self.joined))
    }
}

/// How much later the right one of two units comes, of which one stands at `time`, and is left or not.
#[inline]
pub fn later(time: i64, is_left: bool, other: i64) -> i64 {
    if is_left { other.saturating_sub(time) } else { time.saturating_sub(other) }
}

/// What a class is: the source of its units, and slots of definitions that have not exactly one node, sorted.
pub type ClassKey = (SourceId, Box<[u32]>);

/// The classes of the units in the state.
#[derive(Debug, Default)]
pub struct Classes {
    ids: HashMap<Arc<ClassKey>, (ClassId, u32), FixedState>,
    keys: HashMap<ClassId, Arc<ClassKey>, FixedState>,
    next: ClassId,
}

impl Classes {
    /// The class, one more user counted.
    pub fn acquire(&mut self, key: ClassKey) -> ClassId {
        if let Some((id, users)) = self.ids.get_mut(&key) {
            *users += 1;
            return *id;
        }
        let (id, key) = (self.next, Arc::new(key));
        self.next += 1;
        self.ids.insert(key.clone(), (id, 1));
        self.keys.insert(id, key);
        id
    }

    /// One user less.
    pub fn release(&mut self, id: ClassId) {
        let key = self.keys[&id].clone();
        if let Some((_, users)) = self.ids.get_mut(&key) {
            *users -= 1;
            if *users == 0 {
                self.ids.remove(&key);
                self.keys.remove(&id);
            }
        }
    }

    /// How many classes there are.
    pub fn count(&self) -> usize {
        self.ids.len()
    }
}

/// What was decided.
#[derive(Debug)]
pub struct Decisions {
    sets: Vec<Arc<[EdgeId]>>,
    set_ids: HashMap<Arc<[EdgeId]>, SetId, FixedState>,
    with_edge: HashMap<(SetId, EdgeId), SetId, FixedState>,
    wanted: HashMap<SetId, usize, FixedState>,
    decided: HashMap<(SetId, ClassId, ClassId), Arc<Decided>, FixedState>,
    bytes: usize,
    version: u64,
    /// How often a pair was decided by what is remembered, and how often not.
    pub hits: u64,
    /// The latter.
    pub misses: u64,
    /// How often everything was forgotten to stay within the limit.
    pub clears: u64,
}

impl Default for Decisions {
    fn default() -> Decisions {
        let mut decisions = Decisions {
            sets: Vec::new(),
            set_ids: HashMap::default(),
            with_edge: HashMap::default(),
            wanted: HashMap::default(),
            decided: HashMap::default(),
            bytes: 0,
            version: 0,
            hits: 0,
            misses: 0,
            clears: 0,
        };
        decisions.forget();
        decisions
    }
}

impl Decisions {
    fn forget(&mut self) {
        self.sets = vec![Arc::from([])];
        self.set_ids = HashMap::default();
        self.set_ids.insert(Arc::from([]), EMPTY);
        self.with_edge = HashMap::default();
        self.wanted = HashMap::default();
        self.decided = HashMap::default();
        self.bytes = 0;
    }

    /// Forgets what is of another version of the population, and everything if it takes more than `limit` bytes.
    /// Numbers of sets from before are void after it.
    pub fn renew(&mut self, version: u64, limit: usize) {
        if self.version != version {
            self.version = version;
            self.forget();
        } else if self.bytes > limit {
            self.clears += 1;
            self.forget();
        }
    }

    /// The set with one more edge.
    #[inline]
    pub fn with(&mut self, set: SetId, edge: EdgeId) -> SetId {
        match self.with_edge.get(&(set, edge)) {
            Some(known) => *known,
            None => self.add(set, edge),
        }
    }

    fn add(&mut self, set: SetId, edge: EdgeId) -> SetId {
        let mut edges = self.sets[set as usize].to_vec();
        let larger = match edges.binary_search(&edge) {
            Ok(_) => set,
            Err(place) => {
                edges.insert(place, edge);
                let edges: Arc<[EdgeId]> = edges.into();
                match self.set_ids.get(&edges) {
                    Some(known) => *known,
                    None => {
                        let id = self.sets.len() as SetId;
                        self.bytes += edges.len() * size_of::<EdgeId>() + 96;
                        self.sets.push(edges.clone());
                        self.set_ids.insert(edges, id);
                        id
                    }
                }
            }
        };
        self.bytes += 16;
        self.with_edge.insert((set, edge), larger);
        larger
    }

    /// How many queries a set of edges leads to.
    pub fn wanted(&mut self, population: &Population, set: SetId) -> usize {
        let (sets, bytes) = (&self.sets, &mut self.bytes);
        *self.wanted.entry(set).or_insert_with(|| {
            *bytes += 16;
            population.trie().subsets(&sets[set as usize]).len()
        })
    }

    /// The queries that a set of edges leads to between units of two classes.
    pub fn decide(
        &mut self,
        population: &Population,
        classes: &Classes,
        set: SetId,
        left: ClassId,
        right: ClassId,
    ) -> Arc<Decided> {
        if let Some(known) = self.decided.get(&(set, left, right)) {
            self.hits += 1;
            return known.clone();
        }
        self.misses += 1;
        let (left_key, right_key) = (&classes.keys[&left], &classes.keys[&right]);
        let mut decided = Decided { is_plain: true, ..Decided::default() };
        for id in population.trie().subsets(&self.sets[set as usize]) {
            let query = &population.queries()[id];
            let needs_proof = share(&query.left.sensitive, &left_key.1) || share(&query.right.sensitive, &right_key.1);
            let candidate = Candidate { window: query.key.window, query: id, since: query.since, needs_proof };
            decided.newest = decided.newest.max(query.since);
            let publishes =
                || query.subscriptions.iter().any(|number| population.subscriptions()[*number].publish.is_some());
            decided.is_plain &=
                !needs_proof && query.gives_roots && !query.repeats && query.found.is_none() && !publishes();
            match query.key.kind {
                OperatorKind::FollowedBy => decided.followed.push(candidate),
                OperatorKind::Join => decided.joined.push(candidate),
            }
        }
        let order = |candidate: &Candidate| (std::cmp::Reverse(candidate.window), candidate.query);
        decided.followed.sort_unstable_by_key(order);
        decided.joined.sort_unstable_by_key(order);
        self.bytes += (decided.followed.len() + decided.joined.len()) * size_of::<Candidate>() + 160;
        let decided = Arc::new(decided);
        self.decided.insert((set, left, right), decided.clone());
        decided
    }

    /// How many sets and decisions are remembered.
    pub fn counts(&self) -> (usize, usize) {
        (self.sets.len(), self.decided.len())
    }

    /// What is remembered takes.
    pub fn memory_bytes(&self) -> usize {
        self.bytes
    }
}

/// Whether two sorted lists have a member in common.
fn share(a: &[u32], b: &[u32]) -> bool {
    !b.is_empty() && a.iter().any(|slot| b.binary_search(slot).is_ok())
}
