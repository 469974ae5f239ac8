//! Conditions, decided for all bindings of a stream at once where that can be done without errors.

use super::gates::WORD;
use super::{Execution, Verdict};
use crate::document::NodeId;
use crate::transform::bits::Bits;
use crate::transform::compare::satisfies;
use crate::transform::evaluate::{Focus, Outcome};
use crate::transform::plan::{ConditionId, ConditionKind, Constant, Residue, StreamId};
use crate::transform::value::{Item, Sequence};
use crate::xquery::ast::CompareOp;
use std::ops::Range;

impl<'a> Execution<'a> {
    /// Keeps the bindings for which a condition holds; others are not judged.
    pub(super) fn restrict(&mut self, id: ConditionId, bindings: &mut Bits) -> Outcome<()> {
        if bindings.is_empty() {
            return Ok(());
        }
        let condition = self.operators.condition(id);
        match &condition.kind {
            ConditionKind::And(members) => {
                for member in members {
                    self.restrict(*member, bindings)?;
                }
                Ok(())
            }
            ConditionKind::Or(members) => {
                let mut open = bindings.clone();
                for member in members {
                    let mut held = open.clone();
                    self.restrict(*member, &mut held)?;
                    open.subtract(&held);
                }
                bindings.subtract(&open);
                Ok(())
            }
            ConditionKind::Not(inner) => {
                let mut held = bindings.clone();
                self.restrict(*inner, &mut held)?;
                bindings.subtract(&held);
                Ok(())
            }
            ConditionKind::Lifted(inner) => {
                let base = self.operators.condition(*inner).base;
                let mut above = Bits::none(self.count(base));
                for binding in bindings.iter() {
                    above.insert(self.parent_of(condition.base, binding as u32) as usize);
                }
                self.restrict(*inner, &mut above)?;
                let parent = |binding: usize| self.parent_of(condition.base, binding as u32) as usize;
                let gone: Vec<usize> = bindings.iter().filter(|binding| !above.contains(parent(*binding))).collect();
                for binding in gone {
                    bindings.remove(binding);
                }
                Ok(())
            }
            ConditionKind::Residue => match &condition.residue {
                Some(residue) => self.judge(residue, condition.base, bindings),
                None => Ok(()),
            },
            kind => {
                if self.verdict(id).stamp != self.worker.work {
                    self.decide(id, condition.base, kind)?;
                }
                let verdict = self.verdict(id);
                match &verdict.unsure {
                    None => bindings.keep(&verdict.holds),
                    Some(unsure) => {
                        let mut sure = bindings.clone();
                        sure.subtract(unsure);
                        sure.keep(&verdict.holds);
                        let mut rest = bindings.clone();
                        rest.keep(unsure);
                        if let Some(residue) = &condition.residue {
                            self.judge(residue, condition.base, &mut rest)?;
                        }
                        sure.add(&rest);
                        *bindings = sure;
                    }
                }
                Ok(())
            }
        }
    }

    /// Keeps the bindings for which the evaluator finds an expression true.
    fn judge(&mut self, residue: &'a Residue, base: StreamId, bindings: &mut Bits) -> Outcome<()> {
        let mut gone = Vec::new();
        for binding in bindings.iter() {
            self.bind_levels(base, binding as u32, residue.slots);
            if !self.evaluator.truth(&residue.expr, &Focus::node(0))? {
                gone.push(binding);
            }
        }
        for binding in gone {
            bindings.remove(binding);
        }
        Ok(())
    }

    /// Binds the variables of the levels down to a stream to a binding of it and those above.
    pub(super) fn bind_levels(&mut self, base: StreamId, binding: u32, slots: u32) {
        let mut level = self.operators.stream(base).level;
        self.evaluator.reserve(slots.max(level + 1));
        let (mut stream, mut binding) = (base, binding);
        loop {
            let node = self.binding_node(stream, binding);
            self.evaluator.bind(level, Sequence::from_iter([Item::Node(node)]));
            match self.operators.stream(stream).parent {
                Some(parent) => {
                    binding = self.parent_of(stream, binding);
                    stream = parent;
                    level -= 1;
                }
                None => return,
            }
        }
    }

    /// Decides a condition for all bindings of its stream.
    pub(super) fn decide(&mut self, id: ConditionId, base: StreamId, kind: &'a ConditionKind) -> Outcome<()> {
        let work = self.worker.work;
        let count = self.count(base);
        let mut holds = Bits::none(count);
        let mut unsure: Option<Bits> = None;
        match kind {
            ConditionKind::Compare(stream, CompareOp::Equal, constant)
                if self.population.selection(*stream).is_some() =>
            {
                if self.worker.probed[*stream as usize] != work {
                    self.probe(*stream, &mut Vec::new())?;
                }
                if let Constant::Number(_) = constant {
                    unsure = self.worker.not_numeric[*stream as usize].clone();
                }
                let (stamp, word) = self.worker.words[id as usize];
                if stamp == work && count <= WORD {
                    holds = Bits::of_word(count, word);
                }
                let verdict = &mut self.worker.verdicts[id as usize];
                if verdict.stamp == work {
                    verdict.unsure = unsure;
                    return Ok(());
                }
            }
            ConditionKind::Exists(stream) => {
                self.each(*stream, count, |_, binding, nodes| {
                    if !nodes.is_empty() {
                        holds.insert(binding);
                    }
                })?;
            }
            ConditionKind::Count(stream, op, number) => {
                self.each(*stream, count, |_, binding, nodes| {
                    if satisfies(*op, Some((nodes.len() as i64).cmp(number))) {
                        holds.insert(binding);
                    }
                })?;
            }
            ConditionKind::Compare(stream, op, Constant::String(text)) => {
                self.each(*stream, count, |execution, binding, nodes| {
                    let text = &**text;
                    if nodes.into_iter().any(|at| satisfies(*op, Some(execution.text_at(at).cmp(text)))) {
                        holds.insert(binding);
                    }
                })?;
            }
            ConditionKind::Compare(stream, op, Constant::Number(number)) => {
                self.each(*stream, count, |execution, binding, nodes| {
                    for at in nodes {
                        let node = execution.node_at(at);
                        match execution.number(node) {
                            Some(value) if satisfies(*op, value.partial_cmp(&number.0)) => {
                                holds.insert(binding);
                                break;
                            }
                            Some(_) => {}
                            None => {
                                unsure.get_or_insert_with(|| Bits::none(count)).insert(binding);
                                break;
                            }
                        }
                    }
                })?;
            }
            ConditionKind::CompareStreams(a, op, b) => {
                self.compute(*b)?;
                self.each(*a, count, |execution, binding, nodes| {
                    let others = execution.nodes_of(*b, binding as u32);
                    let any = nodes.into_iter().any(|a| {
                        let text = execution.text_at(a);
                        others.clone().any(|b| satisfies(*op, Some(text.cmp(execution.text_at(b)))))
                    });
                    if any {
                        holds.insert(binding);
                    }
                })?;
            }
            ConditionKind::Contains(stream, part) | ConditionKind::StartsWith(stream, part) => {
                let is_contains = matches!(kind, ConditionKind::Contains(..));
                self.each(*stream, count, |execution, binding, nodes| {
                    if nodes.len() > 1 {
                        unsure.get_or_insert_with(|| Bits::none(count)).insert(binding);
                        return;
                    }
                    let text = nodes.into_iter().next().map_or("", |at| execution.text_at(at));
                    if if is_contains { text.contains(&**part) } else { text.starts_with(&**part) } {
                        holds.insert(binding);
                    }
                })?;
            }
            ConditionKind::And(_)
            | ConditionKind::Or(_)
            | ConditionKind::Not(_)
            | ConditionKind::Lifted(_)
            | ConditionKind::Residue => {}
        }
        self.worker.verdicts[id as usize] = Verdict { stamp: work, holds, unsure };
        Ok(())
    }

    /// Runs something for the nodes of a stream that belong to each binding of the stream above.
    fn each(
        &mut self,
        stream: StreamId,
        count: usize,
        mut each: impl FnMut(&mut Self, usize, Range<u32>),
    ) -> Outcome<()> {
        self.compute(stream)?;
        self.evaluator.charge((count + self.count(stream)) as u64)?;
        for binding in 0..count {
            let nodes = self.nodes_of(stream, binding as u32);
            each(self, binding, nodes);
        }
        Ok(())
    }

    fn text_at(&self, at: u32) -> &'a str {
        let node: NodeId = self.node_at(at);
        self.document.string_value(node)
    }
}
