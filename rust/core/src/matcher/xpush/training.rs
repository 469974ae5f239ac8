//! Training: documents made from the filters themselves, run before the first real one.
//!
//! For each filter a small document is made that satisfies its conjunctions, where it can: the first branch of each
//! disjunction, nothing for negations. (Gupta & Suciu, section 5: training the machine.)

use super::Settings;
use super::automaton::{Automaton, Connective, Reach, State, Test};
use super::machine::{Machine, Subject};
use super::order::SymbolOrder;
use crate::document::{Document, TreeBuilder};
use crate::index::Segment;
use crate::xpath::ast::CompareOp;
use crate::xpath::evaluate::number;
use crate::xpath::symbols::{DocumentSymbols, NO_SYMBOL, NameTest, Symbol, SymbolTable};

/// Runs the machine over a document for each filter, until its store is half full.
pub(super) fn train(machine: &mut Machine, segment: &Segment, settings: &Settings) {
    let automaton = machine.automaton.clone();
    let order = machine.order.clone();
    let mut symbols = DocumentSymbols::default();
    for root in &automaton.roots {
        if machine.store.memory_bytes() > settings.store_bytes / 2 {
            break;
        }
        let document = document_for(*root, &automaton, segment, order.as_deref());
        symbols.fill(&document, |test| segment.symbols().find(test));
        let ordered = settings.order.as_ref().is_some_and(|order| order.holds(&document));
        machine.run(segment, Subject { document: &document, symbols: &symbols, ordered });
    }
    machine.early_rows = 0;
    machine.store.counts = Default::default();
}

/// A document that satisfies a filter's state, or a part of it.
pub(super) fn document_for(
    root: State,
    automaton: &Automaton,
    segment: &Segment,
    order: Option<&SymbolOrder>,
) -> Document {
    let mut writer = Writer { automaton, segment, order, builder: TreeBuilder::default() };
    writer.content(root);
    writer.builder.finish()
}

struct Writer<'a> {
    automaton: &'a Automaton,
    segment: &'a Segment,
    order: Option<&'a SymbolOrder>,
    builder: TreeBuilder,
}

impl Writer<'_> {
    /// The content of the node that is open, so that a state may hold at it. Recursion is as deep as the filter.
    fn content(&mut self, state: State) {
        let mut leaves = Vec::new();
        self.leaves(state, &mut leaves);
        leaves.sort_unstable(); // attributes before text
        let (edges, tests): (Vec<State>, Vec<State>) =
            leaves.into_iter().partition(|leaf| *leaf < self.automaton.first_test());
        let mut children: Vec<(Symbol, State)> = Vec::new();
        for edge in edges {
            let (reach, symbol) = self.automaton.label(edge);
            let target = self.automaton.targets[edge as usize];
            match reach {
                Reach::Attribute => {
                    let name = self.name(symbol);
                    let value = self.witness(target);
                    self.builder.attribute(name, &value, false, 0);
                }
                Reach::Text => {
                    let text = self.witness(target);
                    self.builder.text(&text, 0);
                }
                Reach::Child | Reach::Descendant => children.push((symbol, target)),
                Reach::Comment | Reach::Instruction => {}
            }
        }
        for test in tests.into_iter().filter(|test| *test < self.automaton.first_name()) {
            let text = self.witness(test);
            self.builder.text(&text, 0);
        }
        if let Some(order) = self.order {
            children.sort_by_key(|(symbol, _)| order.place(*symbol));
        }
        for (symbol, target) in children {
            let name = self.name(symbol);
            let scope = self.builder.scope();
            self.builder.start_element(name, scope, 0);
            self.content(target);
            self.builder.end_element();
        }
    }

    /// The leaves that have to be true for a state.
    fn leaves(&self, state: State, into: &mut Vec<State>) {
        match self.automaton.inner(state) {
            None => into.push(state),
            Some((Connective::And, operands)) => {
                for operand in operands {
                    self.leaves(*operand, into);
                }
            }
            Some((Connective::Or, operands)) => {
                if let Some(first) = operands.first() {
                    self.leaves(*first, into);
                }
            }
            Some((Connective::Not, _)) => {}
        }
    }

    /// A string that passes the tests that a state needs, or the first of them.
    fn witness(&self, state: State) -> String {
        let mut leaves = Vec::new();
        self.leaves(state, &mut leaves);
        let (first, end) = (self.automaton.first_test(), self.automaton.first_name());
        let Some(test) = leaves.into_iter().find(|leaf| (first..end).contains(leaf)) else { return String::new() };
        match self.automaton.test(test) {
            Test::Equal(string) | Test::Contains(string) | Test::StartsWith(string) => {
                self.segment.strings().get(string).to_owned()
            }
            Test::Number(op, constant) => number::to_string(match op {
                CompareOp::Less => constant - 1.0,
                CompareOp::Greater => constant + 1.0,
                _ => constant,
            }),
        }
    }

    /// The number of a name that passes a test.
    fn name(&mut self, symbol: Symbol) -> u32 {
        if symbol == NO_SYMBOL {
            return self.builder.intern("", "any", "");
        }
        match self.segment.symbols().resolve(symbol) {
            NameTest::Expanded(uri, local) => self.builder.intern("", local, uri),
            NameTest::Local(local) => self.builder.intern("", local, ""),
            NameTest::Namespace(uri) => self.builder.intern("", "any", uri),
        }
    }
}
