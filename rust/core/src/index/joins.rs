//! Compiles tree patterns to joins of nodes.

use super::access::Atom;
use super::pattern::Pattern;
use crate::paths::{Edge, LinearPath};
use crate::predicates::FIRST_GUARDS;
use crate::predicates::joins::{Input, Operand, Purpose, join_head};

/// The joins that decide a pattern by the nodes at which its leaves were found.
///
/// Behind a leaf of the branch `/a/b` and the path `/a/b/c/d` lies, two steps up, a `/a/b`: the steps between them are
/// single elements, so whatever the path begins with has to end there. Where the steps begin with a gap, `/a/b//c/d`,
/// any element further up may be the `/a/b`. Gaps that come later are made first ones by a join of its own at the step
/// before: `/a/b/c//d` is found where a `/a/b/c` has a `//d`. A join that only has inputs with gaps needs
/// to know its own nodes, too: they become a further operand, a *place*.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Joins {
    /// See [`join_head`] and [`Input`].
    pub(super) words: Vec<u32>,
    /// The paths of further operands, behind access and guards.
    pub(super) places: Vec<LinearPath>,
    first_place: usize,
    count: usize,
}

impl Joins {
    /// The joins of a pattern all leaves of which are either the access or a guard; `None` if there is none, or if it
    /// is too large.
    pub(super) fn new(pattern: &Pattern, access: &Atom, guards: &[Atom]) -> Option<Joins> {
        let mut joins = Joins { first_place: guards.len().max(FIRST_GUARDS) + 1, ..Joins::default() };
        let operand = |atom: &Atom| {
            let guard = || guards.iter().position(|guard| guard == atom).map(|at| at + 1);
            if atom == access { Some(0) } else { guard() }.map(Operand::Posting)
        };
        // What is known of the branches below: numbers of their joins.
        let mut done: Vec<(usize, usize)> = Vec::new();
        for (number, branch) in pattern.branches().rev() {
            let start = branch.path.edges.len();
            let mut inputs = Vec::new();
            for leaf in pattern.leaves.iter().filter(|leaf| leaf.branch == number) {
                inputs.push(joins.input(operand(&leaf.atom)?, start, &leaf.atom.path)?);
            }
            for (below, join) in &done {
                let below = pattern.branch(*below);
                if below.above == number {
                    inputs.push(joins.input(Operand::Join(*join), start, &below.path)?);
                }
            }
            // Its number among the branches, from 1; that of the document is 0.
            let above = pattern.branches().take_while(|(known, _)| *known <= branch.above).count();
            let join = joins.join(inputs, &branch.path, Purpose::Branch(above as u32))?;
            done.push((number, join));
        }
        (joins.count > 0).then_some(joins)
    }

    /// What leads from an operand with this path up to the branch of its first `start` edges.
    fn input(&mut self, operand: Operand, start: usize, path: &LinearPath) -> Option<Input> {
        let edges = &path.edges[start..];
        let levels = |edges: &[Edge]| edges.iter().filter(|edge| **edge != Edge::GAP).count();
        match edges.iter().rposition(|edge| *edge == Edge::GAP) {
            None => Input::new(operand, levels(edges), false),
            Some(0) => Input::new(operand, levels(edges), true),
            Some(gap) => {
                let inner = path.prefix(start + gap);
                let input = Input::new(operand, levels(&edges[gap..]), true)?;
                let join = self.join(vec![input], &inner, Purpose::Part)?;
                self.input(Operand::Join(join), start, &inner)
            }
        }
    }

    /// Adds a join at this path; its number.
    fn join(&mut self, mut inputs: Vec<Input>, path: &LinearPath, purpose: Purpose) -> Option<usize> {
        if inputs.iter().all(|input| input.has_gap()) {
            let known = self.places.iter().position(|place| place == path);
            let place = known.unwrap_or(self.places.len());
            if known.is_none() {
                self.places.push(path.clone());
            }
            inputs.push(Input::new(Operand::Posting(self.first_place + place), 0, false)?);
        }
        // Operands come in the order in which they fail.
        inputs.sort_by_key(|input| match input.operand() {
            Operand::Posting(number) => (input.has_gap(), 0, number),
            Operand::Join(number) => (input.has_gap(), 1, number),
        });
        self.words.push(join_head(inputs.len(), purpose)?);
        self.words.extend(inputs.iter().map(|input| input.word()));
        self.count += 1;
        Some(self.count - 1)
    }
}
