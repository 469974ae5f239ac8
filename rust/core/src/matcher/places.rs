//! Where in a document postings were hit, and joins of these places.
//!
//! What is joined and why that decides is said in the index, where joins are made.

use super::bits::{BitSet, Word, numbers};
use crate::document::{Document, NodeId};
use crate::predicates::joins::{Input, Operand, undecided};
use crate::predicates::{FIRST_GUARDS, Guard, GuardList, Posting};
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use std::ops::Range;

/// Number of a list of nodes.
pub(super) type ListId = u32;

/// The end of a chain.
const END: u32 = u32::MAX;

/// Nodes that one decision may look at; with more, verification comes to an end earlier if it ends at the first nodes.
const BUDGET: usize = 4096;

/// The nodes at which postings were hit, of those for which it matters.
///
/// Many postings are hit by the same nodes: those of one state of the path automaton, or of one value in a state. Which
/// postings that are is noted down when that [`Source`] is first met, as words: they are neighbours as a rule. If a
/// document meets it, there is a list of its nodes. Most of these nobody asks for; [`Located`] is where to look one up.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// The postings of all sources, until these are forgotten.
    words: Vec<Word>,
    lists: Vec<List>,
    nodes: Vec<(NodeId, u32)>,
}

/// Where the postings that are hit together are noted down; empty if nobody asks for their nodes.
pub(super) type Source = Range<u32>;

#[derive(Debug)]
struct List {
    source: Source,
    first: u32,
    count: u32,
}

impl Places {
    /// Forgets the document before.
    pub(super) fn clear(&mut self) {
        self.lists.clear();
        self.nodes.clear();
    }

    /// A new source; neighbours had better follow each other.
    pub(super) fn source(&mut self, postings: &[Posting]) -> Source {
        let start = self.words.len();
        for posting in postings {
            Word::append(&mut self.words, start, *posting);
        }
        start as u32..self.words.len() as u32
    }

    /// Forgets all sources, but for those that the document met.
    pub(super) fn forget(&mut self) {
        let words = std::mem::take(&mut self.words);
        for List { source, .. } in &mut self.lists {
            let start = self.words.len() as u32;
            self.words.extend_from_slice(&words[source.start as usize..source.end as usize]);
            *source = start..self.words.len() as u32;
        }
    }

    /// A new list, for the nodes of this source.
    pub(super) fn list(&mut self, source: &Source) -> ListId {
        self.lists.push(List { source: source.clone(), first: END, count: 0 });
        (self.lists.len() - 1) as ListId
    }

    /// Adds a node to a list.
    #[inline]
    pub(super) fn add(&mut self, list: ListId, node: NodeId) {
        let list = &mut self.lists[list as usize];
        self.nodes.push((node, list.first));
        list.first = (self.nodes.len() - 1) as u32;
        list.count += 1;
    }

    /// Bytes of the sources.
    pub(super) fn source_bytes(&self) -> usize {
        self.words.len() * size_of::<Word>()
    }

    /// Bytes of the lists.
    pub(super) fn memory_bytes(&self) -> usize {
        self.lists.capacity() * size_of::<List>() + self.nodes.capacity() * 8
    }
}

/// The lists of the postings that somebody asks for.
///
/// Few postings of many: a table of these fits in the processor's nearest cache, one of all postings does not.
#[derive(Debug, Default)]
pub(super) struct Located {
    wanted: BitSet,
    links: Vec<Link>,
    /// First link of each posting that has one. The state is random: documents must not choose what collides.
    first: HashMap<Posting, u32, RandomState>,
}

#[derive(Debug)]
struct Link {
    list: ListId,
    next: u32,
}

impl Located {
    /// Forgets everything.
    pub(super) fn clear(&mut self, posting_count: usize) {
        self.links.clear();
        self.first.clear();
        self.wanted.clear();
        self.wanted.reserve(posting_count);
    }

    /// Asks for the lists of the postings that the joins of a run need.
    pub(super) fn want(&mut self, operands: &Operands<'_>) {
        let inputs = operands.joins().flat_map(|(_, inputs)| inputs);
        self.want_all(inputs.filter_map(|input| match input.operand() {
            Operand::Posting(number) => Some(operands.posting(number)),
            Operand::Join(_) => None,
        }));
    }

    /// Asks for the lists of some postings.
    #[inline]
    pub(super) fn want_all(&mut self, postings: impl IntoIterator<Item = Posting>) {
        for posting in postings {
            self.wanted.insert(posting);
        }
    }

    /// Looks up what was asked for.
    pub(super) fn find(&mut self, places: &Places) {
        for (number, List { source, .. }) in places.lists.iter().enumerate() {
            for words in places.words[source.start as usize..source.end as usize].chunks(u64::BITS as usize) {
                // Few words hold anything, and which can not be predicted: they are found without branches.
                let holds = |word: &Word| u64::from(self.wanted.has_members_in(*word));
                let some = words.iter().enumerate().fold(0, |some, (at, word)| some | holds(word) << at);
                for at in numbers(some) {
                    for posting in self.wanted.members_in(words[at as usize]) {
                        let first = self.first.entry(posting).or_insert(END);
                        self.links.push(Link { list: number as ListId, next: *first });
                        *first = (self.links.len() - 1) as u32;
                    }
                }
            }
        }
    }

    /// Bytes in use.
    pub(super) fn memory_bytes(&self) -> usize {
        self.wanted.memory_bytes() + self.links.capacity() * size_of::<Link>() + self.first.allocation_size()
    }
}

/// A document, and where in it postings were hit.
#[derive(Clone, Copy)]
pub(super) struct Scene<'a> {
    pub(super) document: &'a Document,
    pub(super) places: &'a Places,
    pub(super) located: &'a Located,
}

impl<'a> Scene<'a> {
    fn lists_of(self, posting: Posting) -> impl Iterator<Item = &'a List> {
        let mut next = self.located.first.get(&posting).copied().unwrap_or(END);
        std::iter::from_fn(move || {
            let link = self.located.links.get(next as usize)?;
            next = link.next;
            Some(&self.places.lists[link.list as usize])
        })
    }

    fn count(self, posting: Posting) -> usize {
        self.lists_of(posting).map(|list| list.count as usize).sum()
    }

    /// Calls `visit` for the nodes of a posting until it says true.
    #[inline]
    pub(super) fn any(self, posting: Posting, mut visit: impl FnMut(NodeId) -> bool) -> bool {
        for list in self.lists_of(posting) {
            let mut next = list.first;
            while let Some((node, following)) = self.places.nodes.get(next as usize) {
                if visit(*node) {
                    return true;
                }
                next = *following;
            }
        }
        false
    }
}

/// What a run is reached by and what else it asks for.
pub(super) struct Operands<'a> {
    pub(super) access: Posting,
    pub(super) guard: &'a Guard,
    pub(super) list: GuardList<'a>,
    /// How many of the first branches are one node each.
    pub(super) unique: usize,
}

impl<'a> Operands<'a> {
    /// The joins that are left to decide, see [`undecided`].
    fn joins(&self) -> impl Iterator<Item = (bool, &'a [Input])> {
        undecided(self.list.joins, self.list.anchors.len(), self.unique)
    }

    /// Access, first guards, further guards, places.
    fn posting(&self, number: usize) -> Posting {
        let Some(number) = number.checked_sub(1) else { return self.access };
        let Some(further) = number.checked_sub(FIRST_GUARDS) else { return self.guard.first[number] };
        let Some(place) = further.checked_sub(self.list.guards.len()) else { return self.list.guards[further] };
        self.list.places[place]
    }
}

/// Decides joins. What it works with is kept between documents.
#[derive(Debug, Default)]
pub(super) struct Joiner {
    /// For each node of the document, the last number it was given; empty until they are needed.
    marks: Vec<u32>,
    /// Numbers up to this one are given away.
    last_mark: u32,
    /// Nodes of the joins of one run, and where those of each end.
    nodes: Vec<NodeId>,
    ends: Vec<usize>,
    fresh: Vec<NodeId>,
}

impl Joiner {
    /// Forgets the document before.
    pub(super) fn clear(&mut self) {
        self.marks.clear();
        self.last_mark = 0;
    }

    /// Bytes in use.
    pub(super) fn memory_bytes(&self) -> usize {
        self.marks.capacity() * 4
    }

    /// Whether all joins that are left have nodes; `None` if there are too many nodes to look at. All postings were hit.
    pub(super) fn decide(&mut self, scene: Scene<'_>, operands: &Operands<'_>) -> Option<bool> {
        self.nodes.clear();
        self.ends.clear();
        let mut budget = BUDGET;
        for (enough, inputs) in operands.joins() {
            self.fresh.clear();
            if !self.join(scene, operands, inputs, enough, &mut budget)? {
                return Some(false);
            }
            self.nodes.append(&mut self.fresh);
            self.ends.push(self.nodes.len());
        }
        Some(true)
    }

    /// Finds the nodes of a join; whether there are any. With `enough` the first one is.
    fn join(
        &mut self,
        scene: Scene<'_>,
        operands: &Operands<'_>,
        inputs: &[Input],
        enough: bool,
        budget: &mut usize,
    ) -> Option<bool> {
        if self.marks.is_empty() || self.last_mark > u32::MAX - inputs.len() as u32 {
            self.marks.clear();
            self.marks.resize(scene.document.len(), 0);
            self.last_mark = 0;
        }
        let Joiner { marks, last_mark, nodes, ends, fresh } = self;
        let earlier = |join: usize| &nodes[join.checked_sub(1).map_or(0, |before| ends[before])..ends[join]];
        // The one with the fewest nodes begins; where there is a gap, nodes may lead to more than one branch, or to none.
        let size = |input: &Input| match input.operand() {
            Operand::Posting(number) => scene.count(operands.posting(number)),
            Operand::Join(number) => earlier(number).len(),
        };
        let mut begins = None;
        for (at, input) in inputs.iter().enumerate().filter(|(_, input)| !input.has_gap()) {
            let size = size(input);
            if begins.is_none_or(|(_, fewest)| size < fewest) {
                begins = Some((at, size));
            }
            if size <= 1 {
                break;
            }
        }
        let (begins, fewest) = begins?;
        if fewest > *budget {
            return None;
        }
        let others = (0..inputs.len()).filter(|at| *at != begins);
        for (done, at) in std::iter::once(begins).chain(others).enumerate() {
            let input = inputs[at];
            let last = done + 1 == inputs.len();
            let mut round = Round {
                document: scene.document,
                marks,
                first: done == 0,
                before: *last_mark,
                found: last.then_some(&mut *fresh),
                enough: last && enough,
                reached: false,
                budget,
                exhausted: false,
            };
            match input.operand() {
                Operand::Posting(number) => scene.any(operands.posting(number), |node| round.climb(input, node)),
                Operand::Join(number) => earlier(number).iter().any(|node| round.climb(input, *node)),
            };
            if round.exhausted {
                return None;
            }
            if !round.reached {
                return Some(false);
            }
            *last_mark += 1;
        }
        Some(true)
    }
}

/// The branches that a node may lead to: that so many levels up and, where there is a gap, all above it.
#[inline]
pub(super) fn branches(document: &Document, node: NodeId, levels: u32, has_gap: bool) -> impl Iterator<Item = NodeId> {
    let above = |node: NodeId| document.node(node).parent;
    let nearest = (0..levels).fold(node, |at, _| above(at));
    std::iter::successors(Some(nearest), move |at| (has_gap && *at != 0).then(|| above(*at)))
}

/// One input of a join: it takes nodes up to branches and marks those that all inputs before lead to.
struct Round<'a> {
    document: &'a Document,
    marks: &'a mut [u32],
    /// Whether no input was before.
    first: bool,
    /// The mark of those that the input before led to; the next one is ours.
    before: u32,
    /// If no input follows: the nodes of the join.
    found: Option<&'a mut Vec<NodeId>>,
    /// Whether to stop at the first one.
    enough: bool,
    reached: bool,
    budget: &'a mut usize,
    exhausted: bool,
}

impl Round<'_> {
    /// Takes a node up; whether to stop.
    #[inline]
    fn climb(&mut self, input: Input, node: NodeId) -> bool {
        for branch in branches(self.document, node, input.levels(), input.has_gap()) {
            let Some(left) = self.budget.checked_sub(1) else {
                self.exhausted = true;
                return true;
            };
            *self.budget = left;
            if self.meet(branch) {
                return true;
            }
        }
        false
    }

    #[inline]
    fn meet(&mut self, branch: NodeId) -> bool {
        let mark = &mut self.marks[branch as usize];
        let own = self.before + 1;
        if *mark == own || !(self.first || *mark == self.before) {
            return false;
        }
        *mark = own;
        self.reached = true;
        if let Some(found) = &mut self.found {
            found.push(branch);
        }
        self.enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_list_of_what_is_wanted_is_found_and_none_else() {
        let (postings, lists) = (5_000, 40u32);
        let holds = |list: u32, posting: Posting| posting.wrapping_mul(2_654_435_761).rotate_left(list) % 97 < 5;
        let mut places = Places::default();
        let sources: Vec<Source> = (0..lists)
            .map(|list| places.source(&(0..postings).filter(|posting| holds(list, *posting)).collect::<Vec<_>>()))
            .collect();
        let mut located = Located::default();
        for step in [1, 2, 64, 999, 5_000] {
            places.clear();
            for (number, source) in sources.iter().enumerate() {
                let list = places.list(source);
                places.add(list, number as NodeId);
            }
            located.clear(postings as usize);
            // Some of it is wanted twice.
            located.want_all((0..postings).step_by(step));
            located.want_all((0..postings).step_by(step * 3));
            located.find(&places);
            let document = crate::document::Parser::new(Default::default()).parse(b"<a/>").unwrap();
            let scene = Scene { document: &document, places: &places, located: &located };
            for posting in (0..postings).step_by(step) {
                let mut nodes = Vec::new();
                scene.any(posting, |node| {
                    nodes.push(node);
                    false
                });
                nodes.sort_unstable();
                let expected: Vec<NodeId> = (0..lists).filter(|list| holds(*list, posting)).collect();
                assert_eq!(nodes, expected, "posting {posting} of every {step}");
            }
        }
    }
}
