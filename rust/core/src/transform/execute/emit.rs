//! Templates filled in.

use super::Execution;
use crate::transform::bits::Bits;
use crate::transform::construct::Builder;
use crate::transform::evaluate::{Focus, Outcome, Tuple, sort_tuples};
use crate::transform::plan::{ContentPart, Loop, Piece, StartTag, StreamId, TextPart};
use crate::transform::population::Strategy;
use crate::transform::value::{AttributeName, Item, Sequence, Text};
use crate::xquery::ast::{ElementConstructor, Expr, Part};
use smallvec::SmallVec;
use std::ops::Range;

impl<'a> Execution<'a> {
    /// As [`Self::emit`], for a query that is evaluated as it is.
    pub(super) fn emit_plainly(&mut self, expr: &'a Expr, builder: &mut Builder<'a>) -> Outcome<bool> {
        match expr {
            Expr::Element(element) => self.emit_element_plainly(element, builder),
            Expr::Sequence(members) => {
                let mut selected = false;
                for member in members {
                    selected |= self.emit_plainly(member, builder)?;
                }
                Ok(selected)
            }
            _ => {
                let before = builder.item_count();
                self.evaluator.emit(expr, &Focus::node(0), builder)?;
                Ok(matches!(expr, Expr::Flwor(_) | Expr::Path(_)) && builder.item_count() > before)
            }
        }
    }

    fn emit_element_plainly(&mut self, element: &'a ElementConstructor, builder: &mut Builder<'a>) -> Outcome<bool> {
        let mut selected = false;
        self.evaluator.open_element(element, &Focus::node(0), builder)?;
        for part in &element.content {
            match part {
                Part::Text(text) => builder.text(Text::Borrowed(text)),
                Part::Expr(expr) => {
                    builder.boundary();
                    selected |= self.emit_plainly(expr, builder)?;
                    builder.boundary();
                }
            }
        }
        builder.end();
        Ok(selected)
    }

    /// Fills in a template; gives whether a piece outside of any loop that selects from the document gave something.
    pub(super) fn emit(&mut self, piece: &'a Piece, builder: &mut Builder<'a>) -> Outcome<bool> {
        let mut selected = false;
        let before = builder.item_count();
        match piece {
            Piece::Element(element) => {
                self.open(&element.tag, builder)?;
                for part in &element.content {
                    match part {
                        ContentPart::Text(text) => builder.text(Text::Borrowed(text)),
                        ContentPart::Piece(piece) => {
                            builder.boundary();
                            selected |= self.emit(piece, builder)?;
                            builder.boundary();
                        }
                    }
                }
                builder.end();
                return Ok(selected);
            }
            Piece::Sequence(pieces) => {
                for piece in pieces {
                    selected |= self.emit(piece, builder)?;
                }
                return Ok(selected);
            }
            Piece::Nodes(stream) => {
                let nodes = self.current(*stream)?;
                self.evaluator.charge(2 * nodes.len() as u64)?;
                for at in nodes {
                    builder.node(self.node_at(at))?;
                }
            }
            Piece::Loop(own) => {
                let depth = self.chain.len();
                for binding in self.selected(own)? {
                    self.enter(own.stream, binding, depth);
                    self.evaluator.charge(1)?;
                    self.emit(&own.body, builder)?;
                }
                self.leave(depth);
            }
            Piece::Residue(residue) => {
                self.bind_current(residue.slots);
                self.evaluator.emit(&residue.expr, &Focus::node(0), builder)?;
            }
        }
        Ok(Self::is_selecting(piece) && builder.item_count() > before)
    }

    /// Begins an element, attributes included.
    fn open(&mut self, tag: &'a StartTag, builder: &mut Builder<'a>) -> Outcome<()> {
        self.evaluator.charge(4)?;
        builder.start(&tag.name, &tag.namespaces);
        for (name, parts) in &tag.attributes {
            let value = match &parts[..] {
                [] => Text::Borrowed(""),
                [TextPart::Text(text)] => Text::Borrowed(text),
                parts => self.attribute_text(parts)?.into(),
            };
            builder.attribute(AttributeName::Constructed(name), value)?;
        }
        Ok(())
    }

    pub(super) fn attribute_text(&mut self, parts: &'a [TextPart]) -> Outcome<String> {
        let mut text = String::new();
        for part in parts {
            match part {
                TextPart::Text(literal) => text.push_str(literal),
                TextPart::Nodes(stream) => {
                    for (at, place) in self.current(*stream)?.enumerate() {
                        if at > 0 {
                            text.push(' ');
                        }
                        text.push_str(self.document.string_value(self.node_at(place)));
                    }
                }
                TextPart::Residue(residue) => {
                    self.bind_current(residue.slots);
                    self.evaluator.join_into(&residue.expr, &Focus::node(0), &mut text)?;
                }
            }
        }
        self.evaluator.charge(1 + text.len() as u64 / 16)?;
        Ok(text)
    }

    /// The nodes of a stream that belong to the current binding.
    pub(super) fn current(&mut self, stream: StreamId) -> Outcome<Range<u32>> {
        self.compute_for_output(stream)?;
        let entry = self.operators.stream(stream);
        Ok(match entry.parent {
            None => self.worker.streams[stream as usize].nodes.clone(),
            Some(parent) => {
                let level = self.operators.stream(parent).level as usize;
                self.nodes_of(stream, self.positions[level])
            }
        })
    }

    /// Under the strategies that share no paths of `return` clauses, these are followed from each binding.
    fn compute_for_output(&mut self, stream: StreamId) -> Outcome<()> {
        if self.strategy < Strategy::ForWhereReturn {
            let strategy = std::mem::replace(&mut self.strategy, Strategy::For);
            let outcome = self.compute(stream);
            self.strategy = strategy;
            return outcome;
        }
        self.compute(stream)
    }

    /// The bindings of a loop that count, in the order in which they are returned.
    pub(super) fn selected(&mut self, own: &'a Loop) -> Outcome<Vec<u32>> {
        let mut selected = Vec::new();
        self.select(own, &mut selected)?;
        Ok(selected)
    }

    /// Appends the bindings of a loop that count, in the order in which they are returned.
    pub(super) fn select(&mut self, own: &'a Loop, selected: &mut Vec<u32>) -> Outcome<()> {
        let (from, to) = self.bindings(own.stream)?;
        if own.conditions.is_empty() {
            selected.extend(from..to);
            return self.sort(own, selected, to - from);
        }
        let count = self.count(own.stream);
        let mut bits = Bits::range(count, from as usize, to as usize);
        for condition in &own.conditions {
            self.restrict(*condition, &mut bits)?;
        }
        let before = selected.len();
        selected.extend(bits.iter().map(|binding| binding as u32));
        self.sort(own, selected, (selected.len() - before) as u32)
    }

    /// Puts the last `count` bindings in the order that a loop asks for.
    fn sort(&mut self, own: &'a Loop, selected: &mut Vec<u32>, count: u32) -> Outcome<()> {
        if own.order.is_empty() {
            return Ok(());
        }
        let mut tuples = Vec::with_capacity(count as usize);
        for binding in selected.drain(selected.len() - count as usize..) {
            self.bind_levels(own.stream, binding, own.order_slots);
            let keys = self.evaluator.keys(&own.order, &Focus::node(0))?;
            tuples.push(Tuple { keys, payload: binding });
        }
        self.evaluator.charge(u64::from(count) * 8)?;
        sort_tuples(&own.order, &mut tuples)?;
        selected.extend(tuples.into_iter().map(|tuple| tuple.payload));
        Ok(())
    }

    /// The bindings of a stream below the current binding, as a range.
    fn bindings(&mut self, stream: StreamId) -> Outcome<(u32, u32)> {
        let nodes = self.all_nodes(stream)?;
        let Some(innermost) = self.chain.last().copied() else { return Ok((0, nodes.len() as u32)) };
        if stream == innermost {
            let at = self.positions[self.positions.len() - 1];
            return Ok((at, at + 1));
        }
        let Some(parent) = self.operators.stream(stream).parent else { return Ok((0, 0)) };
        let (from, to) = self.bindings(parent)?;
        if from >= to {
            return Ok((0, 0));
        }
        let start = self.worker.streams[stream as usize].nodes.start;
        let first = self.nodes_of(stream, from).start - start;
        let last = self.nodes_of(stream, to - 1).end - start;
        Ok((first, last))
    }

    /// Makes a binding of a loop's stream current, and those above it down to `depth`.
    pub(super) fn enter(&mut self, stream: StreamId, binding: u32, depth: usize) {
        self.leave(depth);
        let (mut stream, mut binding) = (stream, binding);
        let mut entered: SmallVec<[(StreamId, u32); 4]> = SmallVec::new();
        while self.operators.stream(stream).level as usize >= depth {
            entered.push((stream, binding));
            match self.operators.stream(stream).parent {
                Some(parent) => {
                    binding = self.parent_of(stream, binding);
                    stream = parent;
                }
                None => break,
            }
        }
        for (stream, binding) in entered.into_iter().rev() {
            self.chain.push(stream);
            self.positions.push(binding);
        }
    }

    pub(super) fn leave(&mut self, depth: usize) {
        self.chain.truncate(depth);
        self.positions.truncate(depth);
    }

    /// Binds the variables of the loops around to their current bindings.
    pub(super) fn bind_current(&mut self, slots: u32) {
        self.evaluator.reserve(slots.max(self.chain.len() as u32));
        for level in 0..self.chain.len() {
            let node = self.binding_node(self.chain[level], self.positions[level]);
            self.evaluator.bind(level as u32, Sequence::from_iter([Item::Node(node)]));
        }
    }
}
