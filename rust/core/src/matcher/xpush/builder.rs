//! Builds the automaton: equal states get one number.

use super::automaton::{Automaton, Connective, Group, INEXACT, Lists, Reach, State, Test};
use crate::xpath::ast::CompareOp;
use crate::xpath::symbols::Symbol;
use foldhash::fast::FixedState;
use hashbrown::HashTable;
use std::hash::BuildHasher;

/// A state that is always true (a conjunction of nothing).
pub(super) const TRUE: State = 0;
/// A state that is never true (a disjunction of nothing).
pub(super) const FALSE: State = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Node {
    Edge(Reach, Symbol, State),
    Equal(u32),
    Contains(u32),
    StartsWith(u32),
    Number(CompareOp, u64),
    Name(Symbol),
    /// Connective, and where its operands are.
    Inner(Connective, u32, u32),
}

/// Which states to look at when a state changes, see [`Automaton::watchers`].
fn watchers(automaton: &Automaton) -> Lists {
    let mut pairs = Vec::new();
    for number in 0..automaton.connectives.len() as u32 {
        let state = automaton.first_inner() + number;
        let operands = automaton.operands.get(number);
        let base = automaton.base(state);
        // What every change of the state needs: all operands that hold it where it is.
        let holding = match (automaton.connectives[number as usize], base) {
            (Connective::And, false) => Some(false),
            (Connective::Or, true) => Some(true),
            _ => None,
        };
        match holding {
            None => pairs.extend(operands.iter().map(|operand| (*operand, state))),
            Some(truth) => {
                let holders = operands.iter().filter(|operand| automaton.base(**operand) == truth);
                let rarest = holders.min_by_key(|operand| automaton.consumers.get(**operand).len());
                pairs.extend(rarest.map(|operand| (*operand, state)));
            }
        }
    }
    Lists::of_pairs(automaton.state_count() as usize, pairs.iter().copied())
}

/// States under construction, numbered as they come: operands and targets before what uses them.
#[derive(Debug)]
pub(super) struct AutomatonBuilder {
    nodes: Vec<Node>,
    operands: Vec<State>,
    numbers: HashTable<State>,
    hasher: FixedState,
    rows: Vec<(State, u32)>,
    inexact_rows: u32,
    unfiltered_rows: u32,
}

impl Default for AutomatonBuilder {
    fn default() -> Self {
        let mut builder = AutomatonBuilder {
            nodes: Vec::new(),
            operands: Vec::new(),
            numbers: HashTable::new(),
            hasher: FixedState::default(),
            rows: Vec::new(),
            inexact_rows: 0,
            unfiltered_rows: 0,
        };
        builder.inner(Connective::And, &[]);
        builder.inner(Connective::Or, &[]);
        builder
    }
}

impl AutomatonBuilder {
    /// "Some node that `reach` and the name test lead to satisfies `target`."
    pub(super) fn edge(&mut self, reach: Reach, symbol: Symbol, target: State) -> State {
        if target == FALSE { FALSE } else { self.leaf(Node::Edge(reach, symbol, target)) }
    }

    pub(super) fn test(&mut self, test: Test) -> State {
        self.leaf(match test {
            Test::Equal(string) => Node::Equal(string),
            Test::Contains(string) => Node::Contains(string),
            Test::StartsWith(string) => Node::StartsWith(string),
            // Zero has one sign here, as comparisons see it.
            Test::Number(op, number) => Node::Number(op, (number + 0.0).to_bits()),
        })
    }

    /// "The node is an element that passes this name test."
    pub(super) fn name(&mut self, symbol: Symbol) -> State {
        self.leaf(Node::Name(symbol))
    }

    pub(super) fn not(&mut self, operand: State) -> State {
        match self.nodes[operand as usize] {
            _ if operand == TRUE => FALSE,
            _ if operand == FALSE => TRUE,
            Node::Inner(Connective::Not, start, _) => self.operands[start as usize],
            _ => self.inner(Connective::Not, &[operand]),
        }
    }

    pub(super) fn and(&mut self, operands: &[State]) -> State {
        self.combine(Connective::And, operands, TRUE, FALSE)
    }

    pub(super) fn or(&mut self, operands: &[State]) -> State {
        self.combine(Connective::Or, operands, FALSE, TRUE)
    }

    /// `neutral` changes nothing, `decisive` decides alone; operands of the same connective are taken in.
    fn combine(&mut self, connective: Connective, operands: &[State], neutral: State, decisive: State) -> State {
        let mut all: Vec<State> = Vec::with_capacity(operands.len());
        for operand in operands {
            match self.nodes[*operand as usize] {
                _ if *operand == neutral => {}
                _ if *operand == decisive => return decisive,
                Node::Inner(own, start, length) if own == connective => {
                    all.extend_from_slice(&self.operands[start as usize..(start + length) as usize]);
                }
                _ => all.push(*operand),
            }
        }
        all.sort_unstable();
        all.dedup();
        match all[..] {
            [] => neutral,
            [only] => only,
            _ => self.inner(connective, &all),
        }
    }

    fn leaf(&mut self, node: Node) -> State {
        let hash = self.hasher.hash_one(node);
        let nodes = &self.nodes;
        if let Some(known) = self.numbers.find(hash, |at| nodes[*at as usize] == node) {
            return *known;
        }
        self.add(node, hash)
    }

    fn inner(&mut self, connective: Connective, operands: &[State]) -> State {
        let hash = self.hasher.hash_one((connective, operands));
        let same = |at: &State| match self.nodes[*at as usize] {
            Node::Inner(own, start, length) => {
                own == connective && self.operands[start as usize..(start + length) as usize] == *operands
            }
            _ => false,
        };
        if let Some(known) = self.numbers.find(hash, same) {
            return *known;
        }
        let start = self.operands.len() as u32;
        self.operands.extend_from_slice(operands);
        self.add(Node::Inner(connective, start, operands.len() as u32), hash)
    }

    fn add(&mut self, node: Node, hash: u64) -> State {
        let number = self.nodes.len() as State;
        self.nodes.push(node);
        let (nodes, operands, hasher) = (&self.nodes, &self.operands, &self.hasher);
        self.numbers.insert_unique(hash, number, |at| match nodes[*at as usize] {
            Node::Inner(connective, start, length) => {
                hasher.hash_one((connective, &operands[start as usize..(start + length) as usize]))
            }
            leaf => hasher.hash_one(leaf),
        });
        number
    }

    /// Says which state a row's filter is, and whether that decides the filter or is only necessary for it.
    pub(super) fn row(&mut self, row: u32, state: State, exact: bool) {
        self.rows.push((state, if exact { row } else { row | INEXACT }));
        self.inexact_rows += u32::from(!exact);
        self.unfiltered_rows += u32::from(!exact && state == TRUE);
    }

    /// The finished automaton.
    pub(super) fn freeze(self) -> Automaton {
        let class = |node: &Node| match node {
            Node::Edge(reach, symbol, _) => (0, *reach, *symbol),
            Node::Inner(..) => (3, Reach::Child, 0),
            Node::Name(_) => (2, Reach::Child, 0),
            _ => (1, Reach::Child, 0),
        };
        let mut order: Vec<State> = (0..self.nodes.len() as State).collect();
        order.sort_by_key(|state| class(&self.nodes[*state as usize])); // stable: operands stay first
        let mut numbers = vec![0; order.len()];
        for (new, old) in order.iter().enumerate() {
            numbers[*old as usize] = new as State;
        }

        let mut automaton = Automaton::default();
        let mut operand_starts = vec![0];
        let mut operand_members: Vec<State> = Vec::with_capacity(self.operands.len());
        for old in &order {
            match self.nodes[*old as usize] {
                Node::Edge(reach, symbol, target) => {
                    let at = automaton.targets.len() as State;
                    match automaton.groups.last_mut() {
                        Some(group) if (group.reach, group.symbol) == (reach, symbol) => group.edges.end = at + 1,
                        _ => automaton.groups.push(Group { reach, symbol, edges: at..at + 1 }),
                    }
                    automaton.targets.push(numbers[target as usize]);
                }
                Node::Equal(string) => automaton.tests.push(Test::Equal(string)),
                Node::Contains(string) => automaton.tests.push(Test::Contains(string)),
                Node::StartsWith(string) => automaton.tests.push(Test::StartsWith(string)),
                Node::Number(op, bits) => automaton.tests.push(Test::Number(op, f64::from_bits(bits))),
                Node::Name(symbol) => automaton.names.push(symbol),
                Node::Inner(connective, start, length) => {
                    let own = &self.operands[start as usize..(start + length) as usize];
                    operand_members.extend(own.iter().map(|operand| numbers[*operand as usize]));
                    operand_starts.push(operand_members.len() as u32);
                    automaton.connectives.push(connective);
                }
            }
        }
        automaton.operands = Lists { starts: operand_starts, members: operand_members };
        self.finish(automaton, &numbers)
    }

    /// What follows from the states: reverse lists, truth without leaves, rows.
    fn finish(self, mut automaton: Automaton, numbers: &[State]) -> Automaton {
        let count = automaton.state_count() as usize;
        let first = automaton.first_inner();
        let operands = &automaton.operands;
        let uses = (0..automaton.connectives.len() as u32)
            .flat_map(|number| operands.get(number).iter().map(move |operand| (*operand, first + number)));
        automaton.consumers = Lists::of_pairs(count, uses);
        let asked = automaton.targets.iter().enumerate().map(|(edge, target)| (*target, edge as State));
        automaton.in_edges = Lists::of_pairs(count, asked);

        automaton.base = vec![0; count.div_ceil(64)];
        for number in 0..automaton.connectives.len() as u32 {
            let operands = automaton.operands.get(number);
            let holds = match automaton.connectives[number as usize] {
                Connective::And => operands.iter().all(|operand| automaton.base(*operand)),
                Connective::Or => operands.iter().any(|operand| automaton.base(*operand)),
                Connective::Not => !automaton.base(operands[0]),
            };
            let state = first + number;
            automaton.base[state as usize / 64] |= u64::from(holds) << (state % 64);
        }

        automaton.watchers = watchers(&automaton);

        let mut rows: Vec<(State, u32)> =
            self.rows.iter().map(|(state, row)| (numbers[*state as usize], *row)).collect();
        rows.sort_unstable();
        automaton.roots = rows.iter().map(|(state, _)| *state).collect();
        automaton.roots.dedup();
        let mut list = 0u32;
        let pairs: Vec<(u32, u32)> = rows
            .iter()
            .map(|(state, row)| {
                while automaton.roots[list as usize] != *state {
                    list += 1;
                }
                (list, *row)
            })
            .collect();
        automaton.root_rows = Lists::of_pairs(automaton.roots.len(), pairs.iter().copied());
        automaton.inexact_rows = self.inexact_rows;
        automaton.unfiltered_rows = self.unfiltered_rows;
        automaton
    }
}
