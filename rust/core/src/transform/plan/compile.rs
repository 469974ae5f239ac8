//! From a query to its plan.

use super::rewrite::{Meanings, Rewriter, size};
use super::{
    Condition, ConditionId, ConditionKind, Constant, ContentPart, ElementPiece, Loop, Operators, PathId, Piece,
    Residue, StartTag, StreamId, TextPart,
};
use crate::transform::evaluate::may_be_positional;
use crate::transform::value::decimal_to_double;
use crate::xquery::ast::{
    Clause, CompareOp, Comparison, Double, ElementConstructor, Expr, Flwor, Function, Literal, Module, OrderKey, Part,
    Path, Slot, Step,
};
use std::sync::Arc;

/// Largest `let` that is put where its variable is used.
const MAX_INLINED: usize = 32;

/// Most steps of a path that is interned as it is.
const MAX_PLAIN: usize = 100;

/// What has to happen before a plan can give anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Trigger {
    /// A condition holds for some binding.
    Condition(ConditionId),
    /// A path leads to some node.
    Path(PathId),
    /// Nothing: every document may give something.
    Always,
}

/// A compiled query.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The template.
    pub piece: Piece,
    /// Whether it is a constructed element around paths or FLWR expressions: then it has a result only if one of these
    /// gives something. All others have a result if that is not empty.
    pub is_selecting: bool,
    /// Of these one has to happen.
    pub triggers: Vec<Trigger>,
}

/// Compiles a query.
pub fn compile(module: &Module, operators: &mut Operators) -> Compiled {
    let mut compiler = Compiler { operators, meanings: Meanings::default(), chain: Vec::new() };
    let piece = compiler
        .piece(&module.body)
        .unwrap_or_else(|| Piece::Residue(Arc::new(Residue { expr: module.body.clone(), slots: module.slots })));
    let mut triggers = Vec::new();
    let is_selecting = match &piece {
        Piece::Element(_) => compiler.triggers(&piece, &mut triggers),
        Piece::Sequence(members) => {
            for member in members {
                let gives_anyway = matches!(member, Piece::Element(_)) || !compiler.triggers(member, &mut triggers);
                if gives_anyway {
                    triggers.push(Trigger::Always);
                }
            }
            false
        }
        piece => {
            if !compiler.triggers(piece, &mut triggers) {
                triggers.push(Trigger::Always);
            }
            false
        }
    };
    let is_wrapper = matches!(piece, Piece::Element(_));
    if (is_wrapper && !is_selecting) || triggers.contains(&Trigger::Always) {
        triggers = vec![Trigger::Always];
    }
    triggers.sort_unstable_by_key(|trigger| match trigger {
        Trigger::Condition(id) => (0, *id),
        Trigger::Path(id) => (1, *id),
        Trigger::Always => (2, 0),
    });
    triggers.dedup();
    Compiled { piece, is_selecting, triggers }
}

struct Compiler<'o> {
    operators: &'o mut Operators,
    meanings: Meanings,
    /// The streams of the variables in scope, outermost first: a variable's level is its place here.
    chain: Vec<StreamId>,
}

impl Compiler<'_> {
    fn levels(&self) -> Slot {
        self.chain.len() as Slot
    }

    fn canonical(&self, expr: &Expr) -> Option<(Expr, Slot)> {
        Rewriter::new(&self.meanings, self.levels(), Expr::Root).rewrite(expr)
    }

    fn residue(&self, expr: &Expr) -> Option<Arc<Residue>> {
        self.canonical(expr).map(|(expr, slots)| Arc::new(Residue { expr, slots }))
    }

    /// The level that a path starts from, none for the document, and its steps, if its canonical form says no more.
    fn plain<'e>(&self, expr: &'e Expr) -> Option<(Option<Slot>, &'e [Step])> {
        let (start, steps) = match expr {
            Expr::Path(path) => (&path.start, &path.steps[..]),
            Expr::Variable(_) => (expr, &[][..]),
            _ => return None,
        };
        let level = match start {
            Expr::Root | Expr::Context => None,
            Expr::Variable(slot) => match self.meanings.get(slot)? {
                Expr::Variable(level) => Some(*level),
                _ => return None,
            },
            _ => return None,
        };
        let is_plain = |step: &Step| matches!(step, Step::Axis { predicates, .. } if predicates.is_empty());
        (steps.len() <= MAX_PLAIN && steps.iter().all(is_plain)).then_some((level, steps))
    }

    /// The stream of steps from a level.
    fn intern(&mut self, level: Option<Slot>, steps: &[Step]) -> Option<StreamId> {
        let parent = match level {
            Some(level) => Some(*self.chain.get(level as usize)?),
            None => None,
        };
        Some(self.operators.intern_stream(parent, steps))
    }

    /// The template of an expression.
    fn piece(&mut self, expr: &Expr) -> Option<Piece> {
        match expr {
            Expr::Element(element) => self.element(element),
            Expr::Sequence(members) => {
                members.iter().map(|member| self.piece(member)).collect::<Option<_>>().map(Piece::Sequence)
            }
            Expr::Flwor(flwor) => {
                let depth = self.chain.len();
                let made = self.try_loop(flwor);
                self.chain.truncate(depth);
                match made {
                    Some(made) => Some(Piece::Loop(Box::new(made))),
                    None => self.residue(expr).map(Piece::Residue),
                }
            }
            Expr::Path(_) | Expr::Variable(_) => {
                if let Some((level, steps)) = self.plain(expr) {
                    return self.intern(level, steps).map(Piece::Nodes);
                }
                let (canonical, slots) = self.canonical(expr)?;
                Some(match self.stream(&canonical) {
                    Some(stream) => Piece::Nodes(stream),
                    None => Piece::Residue(Arc::new(Residue { expr: canonical, slots })),
                })
            }
            _ => self.residue(expr).map(Piece::Residue),
        }
    }

    fn element(&mut self, element: &ElementConstructor) -> Option<Piece> {
        let mut attributes = Vec::with_capacity(element.attributes.len());
        for (name, parts) in &element.attributes {
            let mut made = Vec::with_capacity(parts.len());
            for part in parts {
                made.push(match part {
                    Part::Text(text) => TextPart::Text(text.clone()),
                    Part::Expr(expr) => {
                        let (canonical, slots) = self.canonical(expr)?;
                        match self.stream(&canonical) {
                            Some(stream) => TextPart::Nodes(stream),
                            None => TextPart::Residue(Arc::new(Residue { expr: canonical, slots })),
                        }
                    }
                });
            }
            attributes.push((name.clone(), made));
        }
        let mut content = Vec::with_capacity(element.content.len());
        for part in &element.content {
            content.push(match part {
                Part::Text(text) => ContentPart::Text(text.clone()),
                Part::Expr(expr) => ContentPart::Piece(self.piece(expr)?),
            });
        }
        let tag = StartTag { name: element.name.clone(), namespaces: element.namespaces.clone(), attributes };
        let tag = self.operators.intern_tag(tag);
        Some(Piece::Element(Box::new(ElementPiece { tag, content: content.into() })))
    }

    /// The stream of a canonical expression, if it is one.
    fn stream(&mut self, expr: &Expr) -> Option<StreamId> {
        let (start, steps) = match expr {
            Expr::Path(path) => (&path.start, &path.steps[..]),
            Expr::Variable(_) => (expr, &[][..]),
            _ => return None,
        };
        let streamable = |step: &Step| match step {
            Step::Axis { predicates, .. } => predicates.iter().all(is_closed),
            Step::Expr(_) => false,
        };
        if !steps.iter().all(streamable) {
            return None;
        }
        let parent = match start {
            Expr::Root => None,
            Expr::Variable(level) => Some(*self.chain.get(*level as usize)?),
            _ => return None,
        };
        Some(self.operators.intern_stream(parent, steps))
    }

    /// A FLWR expression whose variables run one below the other. Leaves its streams on the chain.
    fn try_loop(&mut self, flwor: &Flwor) -> Option<Loop> {
        let depth = self.chain.len();
        let mut conditions = Vec::new();
        let mut order: Option<Vec<OrderKey>> = None;
        let mut order_slots = 0;
        for clause in &flwor.clauses {
            if order.is_some() {
                return None;
            }
            match clause {
                Clause::For { slot, position: None, sequence } => {
                    if let Some((level, steps)) = self.plain(sequence)
                        && level == self.levels().checked_sub(1)
                    {
                        let stream = self.intern(level, steps)?;
                        self.enter(*slot, stream);
                        continue;
                    }
                    let (sequence, _) = self.canonical(sequence)?;
                    self.bind(*slot, sequence, &mut conditions)?;
                }
                Clause::For { .. } => return None,
                Clause::Let { slot, value } => {
                    let (value, slots) = self.canonical(value)?;
                    if slots > self.levels() || size(&value) > MAX_INLINED {
                        return None;
                    }
                    self.meanings.insert(*slot, value);
                }
                Clause::Where(condition) => {
                    self.filter(condition, &mut conditions)?;
                }
                Clause::OrderBy(keys) => {
                    let mut made = Vec::with_capacity(keys.len());
                    for key in keys {
                        let (expr, slots) = self.canonical(&key.key)?;
                        order_slots = order_slots.max(slots);
                        made.push(OrderKey { key: expr, ..key.clone() });
                    }
                    order = Some(made);
                }
            }
        }
        if self.chain.len() == depth {
            return None;
        }
        let stream = *self.chain.last()?;
        let mut lifted = Vec::with_capacity(conditions.len());
        for condition in conditions {
            let condition = self.lift(condition, stream);
            lifted.extend_from_slice(self.operators.conjuncts(&condition));
        }
        let body = self.piece(&flwor.result)?;
        let body = self.operators.intern_body(body);
        Some(Loop { stream, conditions: lifted.into(), order: order.unwrap_or_default().into(), order_slots, body })
    }

    /// Binds a variable of a `for` clause. Predicates of its last step that are not about positions are conditions.
    fn bind(&mut self, slot: Slot, sequence: Expr, conditions: &mut Vec<ConditionId>) -> Option<()> {
        let (start, mut steps) = match sequence {
            Expr::Path(path) => (path.start, path.steps),
            variable @ Expr::Variable(_) => (variable, Vec::new()),
            _ => return None,
        };
        let innermost = self.levels().checked_sub(1);
        match start {
            Expr::Root if innermost.is_none() => {}
            Expr::Variable(level) if Some(level) == innermost => {}
            _ => return None,
        }
        let mut moved = Vec::new();
        if let Some(Step::Axis { predicates, .. }) = steps.last_mut()
            && !predicates.iter().any(may_be_positional)
        {
            moved = std::mem::take(predicates);
        }
        let path = Expr::Path(Box::new(Path { start: start.clone(), steps }));
        let path = match path {
            Expr::Path(path) if path.steps.is_empty() => start,
            path => path,
        };
        let stream = self.stream(&path)?;
        let level = self.enter(slot, stream);
        for predicate in moved {
            // Levels mean themselves here: the predicate is canonical but for its context item.
            let levels: Meanings = (0..=level).map(|level| (level, Expr::Variable(level))).collect();
            let context = Expr::Variable(level);
            let (predicate, slots) = Rewriter::new(&levels, level + 1, context).rewrite(&predicate)?;
            self.conjuncts(&predicate, slots, conditions);
        }
        Some(())
    }

    /// Makes a stream that of the innermost variable; gives its level.
    fn enter(&mut self, slot: Slot, stream: StreamId) -> Slot {
        let level = self.levels();
        self.chain.push(stream);
        self.meanings.insert(slot, Expr::Variable(level));
        level
    }

    /// Adds the conditions of a `where` clause.
    fn filter(&mut self, condition: &Expr, conditions: &mut Vec<ConditionId>) -> Option<()> {
        if let Expr::And(a, b) = condition {
            self.filter(a, conditions)?;
            return self.filter(b, conditions);
        }
        if let Some(id) = self.plain_comparison(condition) {
            conditions.push(id);
            return Some(());
        }
        let (condition, slots) = self.canonical(condition)?;
        self.conjuncts(&condition, slots, conditions);
        Some(())
    }

    /// A comparison of a path below a variable with a string, as most conditions are: it needs no canonical form.
    fn plain_comparison(&mut self, condition: &Expr) -> Option<ConditionId> {
        let Expr::Compare(Comparison::General(op), a, b) = condition else { return None };
        let (op, path, text) = match (&**a, &**b) {
            (path, Expr::Literal(Literal::String(text))) => (*op, path, text),
            (Expr::Literal(Literal::String(text)), path) => (op.mirrored(), path, text),
            _ => return None,
        };
        let (level, steps) = self.plain(path)?;
        let base = *self.chain.get(level? as usize)?;
        let stream = self.intern(level, steps)?;
        let kind = ConditionKind::Compare(stream, op, Constant::String(text.clone()));
        Some(self.operators.intern_condition(Condition { base, kind, residue: None }))
    }

    fn conjuncts(&mut self, condition: &Expr, slots: Slot, conditions: &mut Vec<ConditionId>) {
        match condition {
            Expr::And(a, b) => {
                self.conjuncts(a, slots, conditions);
                self.conjuncts(b, slots, conditions);
            }
            _ => conditions.push(self.condition(condition, slots)),
        }
    }

    /// A condition on an outer variable as one on the innermost.
    fn lift(&mut self, mut id: ConditionId, stream: StreamId) -> ConditionId {
        let base = self.operators.condition(id).base;
        if base == stream {
            return id;
        }
        if let Some(parent) = self.operators.stream(stream).parent {
            id = self.lift(id, parent);
            id = self.operators.intern_condition(Condition {
                base: stream,
                kind: ConditionKind::Lifted(id),
                residue: None,
            });
        }
        id
    }

    /// A canonical condition, on the outermost variable that it can be judged by.
    fn condition(&mut self, expr: &Expr, slots: Slot) -> ConditionId {
        let innermost = self.chain[self.chain.len() - 1];
        let made = match expr {
            Expr::And(..) | Expr::Or(..) => {
                let mut members = Vec::new();
                let is_and = matches!(expr, Expr::And(..));
                self.members(expr, is_and, slots, &mut members);
                let members = members.into_iter().map(|id| self.lift(id, innermost)).collect();
                let kind = if is_and { ConditionKind::And(members) } else { ConditionKind::Or(members) };
                Some((innermost, kind))
            }
            Expr::Call(Function::Not, arguments) => {
                let inner = self.condition(&arguments[0], slots);
                Some((self.operators.condition(inner).base, ConditionKind::Not(inner)))
            }
            Expr::Call(Function::Empty, arguments) => self.below(&arguments[0]).map(|(base, stream)| {
                let exists = Condition { base, kind: ConditionKind::Exists(stream), residue: None };
                (base, ConditionKind::Not(self.operators.intern_condition(exists)))
            }),
            Expr::Call(Function::Boolean, arguments) => return self.condition(&arguments[0], slots),
            Expr::Call(Function::Exists, arguments) => {
                self.below(&arguments[0]).map(|(base, stream)| (base, ConditionKind::Exists(stream)))
            }
            Expr::Path(_) => self.below(expr).map(|(base, stream)| (base, ConditionKind::Exists(stream))),
            Expr::Call(function @ (Function::Contains | Function::StartsWith), arguments) => {
                match (self.below(&arguments[0]), &arguments[1]) {
                    (Some((base, stream)), Expr::Literal(Literal::String(text))) => Some((
                        base,
                        if *function == Function::Contains {
                            ConditionKind::Contains(stream, text.clone())
                        } else {
                            ConditionKind::StartsWith(stream, text.clone())
                        },
                    )),
                    _ => None,
                }
            }
            Expr::Compare(Comparison::General(op), a, b) => {
                self.comparison(*op, a, b).or_else(|| self.comparison(op.mirrored(), b, a))
            }
            _ => None,
        };
        let (base, kind) = made.unwrap_or((innermost, ConditionKind::Residue));
        let needs_residue = matches!(
            kind,
            ConditionKind::Compare(_, _, Constant::Number(_))
                | ConditionKind::Contains(..)
                | ConditionKind::StartsWith(..)
                | ConditionKind::Residue
        );
        let residue = needs_residue.then(|| Arc::new(Residue { expr: expr.clone(), slots }));
        self.operators.intern_condition(Condition { base, kind, residue })
    }

    fn members(&mut self, expr: &Expr, is_and: bool, slots: Slot, members: &mut Vec<ConditionId>) {
        match expr {
            Expr::And(a, b) if is_and => {
                self.members(a, is_and, slots, members);
                self.members(b, is_and, slots, members);
            }
            Expr::Or(a, b) if !is_and => {
                self.members(a, is_and, slots, members);
                self.members(b, is_and, slots, members);
            }
            _ => members.push(self.condition(expr, slots)),
        }
    }

    fn comparison(&mut self, op: CompareOp, a: &Expr, b: &Expr) -> Option<(StreamId, ConditionKind)> {
        if let (Expr::Call(Function::Count, arguments), Expr::Literal(Literal::Integer(number))) = (a, b) {
            let (base, stream) = self.below(&arguments[0])?;
            return Some((base, ConditionKind::Count(stream, op, *number)));
        }
        let (base, stream) = self.below(a)?;
        let constant = match b {
            Expr::Literal(Literal::String(text)) => Constant::String(text.clone()),
            Expr::Literal(Literal::Integer(value)) => Constant::Number(Double(*value as f64)),
            Expr::Literal(Literal::Decimal(value)) => Constant::Number(Double(decimal_to_double(*value))),
            Expr::Literal(Literal::Double(value)) => Constant::Number(*value),
            _ => {
                let (other_base, other) = self.below(b)?;
                return (base == other_base).then_some((base, ConditionKind::CompareStreams(stream, op, other)));
            }
        };
        Some((base, ConditionKind::Compare(stream, op, constant)))
    }

    /// The stream of a canonical path that starts from a variable, with that variable's stream.
    fn below(&mut self, expr: &Expr) -> Option<(StreamId, StreamId)> {
        let expr = match expr {
            Expr::Call(Function::Data, arguments) => &arguments[0],
            expr => expr,
        };
        let stream = self.stream(expr)?;
        self.operators.stream(stream).parent.map(|base| (base, stream))
    }

    /// Adds what has to happen before a piece gives anything; false if it selects nothing from the document.
    fn triggers(&mut self, piece: &Piece, triggers: &mut Vec<Trigger>) -> bool {
        match piece {
            Piece::Element(element) => element.content.iter().fold(false, |any, part| match part {
                ContentPart::Text(_) => any,
                ContentPart::Piece(piece) => self.triggers(piece, triggers) || any,
            }),
            Piece::Sequence(pieces) => {
                let mut any = false;
                for piece in pieces {
                    any |= self.triggers(piece, triggers);
                }
                any
            }
            Piece::Nodes(stream) => {
                triggers.push(self.existence(*stream));
                true
            }
            Piece::Loop(own) => {
                let trigger = own.conditions.iter().find_map(|condition| self.access(*condition));
                triggers.push(trigger.unwrap_or_else(|| self.existence(own.stream)));
                true
            }
            Piece::Residue(residue) => {
                let first = match &residue.expr {
                    Expr::Flwor(flwor) => flwor.clauses.iter().find_map(|clause| match clause {
                        Clause::For { sequence, .. } => Some(sequence),
                        _ => None,
                    }),
                    path @ Expr::Path(_) => Some(path),
                    _ => return false,
                };
                let stream = first.cloned().and_then(|path| self.skeleton(&path));
                triggers.push(stream.map_or(Trigger::Always, |stream| self.existence(stream)));
                true
            }
        }
    }

    /// A stream without whose nodes a path from the document gives nothing: its axis steps without predicates.
    fn skeleton(&mut self, expr: &Expr) -> Option<StreamId> {
        let Expr::Path(path) = expr else { return None };
        if path.start != Expr::Root {
            return None;
        }
        let steps: Vec<Step> = path
            .steps
            .iter()
            .map_while(|step| match step {
                Step::Axis { axis, test, .. } => {
                    Some(Step::Axis { axis: *axis, test: test.clone(), predicates: Vec::new() })
                }
                Step::Expr(_) => None,
            })
            .collect();
        (!steps.is_empty()).then(|| self.operators.intern_stream(None, &steps))
    }

    fn existence(&self, stream: StreamId) -> Trigger {
        let mut at = Some(stream);
        while let Some(id) = at {
            let stream = self.operators.stream(id);
            if let Some(path) = stream.necessary_path() {
                return Trigger::Path(path);
            }
            at = stream.parent;
        }
        Trigger::Always
    }

    /// The most selective conjunct: an equality with a constant.
    fn access(&self, condition: ConditionId) -> Option<Trigger> {
        match &self.operators.condition(condition).kind {
            ConditionKind::And(members) => members.iter().find_map(|member| self.access(*member)),
            ConditionKind::Lifted(inner) => self.access(*inner),
            ConditionKind::Compare(stream, CompareOp::Equal, _)
                if self.operators.stream(*stream).necessary_path().is_some() =>
            {
                Some(Trigger::Condition(condition))
            }
            _ => None,
        }
    }
}

/// Whether an expression mentions no variable; only what predicates are mostly made of is looked into.
fn is_closed(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(_) | Expr::Root | Expr::Context => true,
        Expr::Path(path) => {
            is_closed(&path.start)
                && path.steps.iter().all(|step| match step {
                    Step::Axis { predicates, .. } => predicates.iter().all(is_closed),
                    Step::Expr(expr) => is_closed(expr),
                })
        }
        Expr::Compare(_, a, b)
        | Expr::And(a, b)
        | Expr::Or(a, b)
        | Expr::Arithmetic(_, a, b)
        | Expr::Combine(_, a, b)
        | Expr::Range(a, b) => is_closed(a) && is_closed(b),
        Expr::Negate(a) => is_closed(a),
        Expr::Call(_, members) | Expr::Sequence(members) => members.iter().all(is_closed),
        Expr::Filter(primary, predicates) => is_closed(primary) && predicates.iter().all(is_closed),
        _ => false,
    }
}
