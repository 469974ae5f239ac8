//! Plans in words.

use super::plan::{
    ConditionId, ConditionKind, Constant, ContentPart, Operators, Piece, Route, StreamId, TextPart, Trigger,
};
use super::population::{PlanId, Population, Strategy};
use crate::xpath::ast::Axis;
use crate::xpath::display::{axis_name, compare_sign};
use crate::xquery::ast::{CompareOp, Expr, NodeTest, Step};
use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashSet};

/// One operator of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its name in the paper, or the name of the clause.
    pub operator: &'static str,
    /// What it works on.
    pub detail: String,
    /// How deep it stands.
    pub depth: usize,
    /// How many other plans use the same.
    pub shared_with: usize,
    /// Why it is done in this way.
    pub why: String,
}

/// How many plans use each operator.
#[derive(Debug, Default)]
struct Uses {
    streams: HashMap<StreamId, usize, FixedState>,
    conditions: HashMap<ConditionId, usize, FixedState>,
}

/// The operators of a plan, outermost first.
pub fn explain(population: &Population, plan: PlanId) -> Vec<Line> {
    let operators = population.operators();
    let mut uses = Uses::default();
    if population.strategy() == Strategy::Shared {
        for id in 0..population.plan_count() as PlanId {
            let plan = population.plan(id);
            if !plan.subscribers.is_empty() {
                let (mut streams, mut conditions) = (HashSet::default(), HashSet::default());
                collect(&plan.piece, &mut streams, &mut conditions);
                for stream in streams {
                    *uses.streams.entry(stream).or_default() += 1;
                }
                for condition in conditions {
                    *uses.conditions.entry(condition).or_default() += 1;
                }
            }
        }
    }
    let mut explainer = Explainer { population, operators, uses, lines: Vec::new() };
    explainer.piece(&population.plan(plan).piece, 0);
    explainer.lines
}

/// What has to happen before a plan is looked at, in words.
pub fn triggers(population: &Population, plan: PlanId) -> Vec<String> {
    let operators = population.operators();
    let told = |trigger: &Trigger| match trigger {
        Trigger::Always => "every document".to_owned(),
        Trigger::Path(path) => {
            format!("a node at {}", operators.paths()[*path as usize].text(&operators.symbols))
        }
        Trigger::Condition(condition) => condition_text(operators, *condition),
    };
    population.plan(plan).triggers.iter().map(told).collect()
}

fn collect(
    piece: &Piece,
    streams: &mut HashSet<StreamId, FixedState>,
    conditions: &mut HashSet<ConditionId, FixedState>,
) {
    match piece {
        Piece::Element(element) => {
            for part in element.tag.attributes.iter().flat_map(|(_, parts)| parts) {
                if let TextPart::Nodes(stream) = part {
                    streams.insert(*stream);
                }
            }
            for part in &element.content {
                if let ContentPart::Piece(piece) = part {
                    collect(piece, streams, conditions);
                }
            }
        }
        Piece::Sequence(pieces) => pieces.iter().for_each(|piece| collect(piece, streams, conditions)),
        Piece::Nodes(stream) => {
            streams.insert(*stream);
        }
        Piece::Loop(own) => {
            streams.insert(own.stream);
            conditions.extend(&own.conditions);
            collect(&own.body, streams, conditions);
        }
        Piece::Residue(_) => {}
    }
}

struct Explainer<'p> {
    population: &'p Population,
    operators: &'p Operators,
    uses: Uses,
    lines: Vec<Line>,
}

impl Explainer<'_> {
    fn line(
        &mut self,
        operator: &'static str,
        detail: String,
        depth: usize,
        shared_with: usize,
        why: impl Into<String>,
    ) {
        self.lines.push(Line { operator, detail, depth, shared_with, why: why.into() });
    }

    fn sharing(&self, stream: StreamId) -> usize {
        self.uses.streams.get(&stream).map_or(0, |count| count - 1)
    }

    fn piece(&mut self, piece: &Piece, depth: usize) {
        match piece {
            Piece::Element(element) => {
                self.line("construct", format!("<{}>", element.tag.name.0.local), depth, 0, "");
                for (name, parts) in &element.tag.attributes {
                    for part in parts {
                        match part {
                            TextPart::Text(_) => {}
                            TextPart::Nodes(stream) => self.listed(*stream, depth + 1, Some(&name.0.local)),
                            TextPart::Residue(_) => {
                                let detail = format!("@{}", name.0.local);
                                self.line("evaluate", detail, depth + 1, 0, RESIDUE);
                            }
                        }
                    }
                }
                for part in &element.content {
                    if let ContentPart::Piece(piece) = part {
                        self.piece(piece, depth + 1);
                    }
                }
            }
            Piece::Sequence(pieces) if pieces.is_empty() => self.line("construct", "()".to_owned(), depth, 0, ""),
            Piece::Sequence(pieces) => pieces.iter().for_each(|piece| self.piece(piece, depth)),
            Piece::Nodes(stream) => self.listed(*stream, depth, None),
            Piece::Loop(own) => {
                let (operator, why) = self.join(own.stream);
                let operator = if self.operators.stream(own.stream).parent.is_none() { "for" } else { operator };
                self.line(operator, stream_text(self.operators, own.stream), depth, self.sharing(own.stream), why);
                for condition in &own.conditions {
                    self.condition(*condition, depth + 1);
                }
                if !own.order.is_empty() {
                    self.line("order by", format!("{} keys", own.order.len()), depth + 1, 0, "keys by the evaluator");
                }
                self.line("group-by", stream_text(self.operators, own.stream), depth + 1, 0, "");
                self.piece(&own.body, depth + 1);
            }
            Piece::Residue(residue) => {
                let what = match &residue.expr {
                    Expr::Flwor(_) => "a FLWR expression",
                    Expr::Path(_) => "a path",
                    Expr::Call(function, _) => function.name(),
                    _ => "an expression",
                };
                self.line("evaluate", what.to_owned(), depth, 0, RESIDUE);
            }
        }
    }

    fn listed(&mut self, stream: StreamId, depth: usize, attribute: Option<&str>) {
        let (_, why) = self.join(stream);
        let mut detail = stream_text(self.operators, stream);
        if let Some(attribute) = attribute {
            detail = format!("@{attribute} = {detail}");
        }
        self.line("outer-join-select", detail, depth, self.sharing(stream), why);
    }

    fn condition(&mut self, id: ConditionId, depth: usize) {
        let condition = self.operators.condition(id);
        let shared = self.uses.conditions.get(&id).map_or(0, |count| count - 1);
        let text = condition_text(self.operators, id);
        let (operator, why) = match &condition.kind {
            ConditionKind::Compare(stream, CompareOp::Equal, _) => {
                let constants = self.population.constants_of(*stream);
                let (_, how) = self.join(*stream);
                ("shared selection", format!("an index of {constants} constants at this path; {how}"))
            }
            ConditionKind::Exists(stream)
            | ConditionKind::Compare(stream, ..)
            | ConditionKind::Contains(stream, _)
            | ConditionKind::StartsWith(stream, _)
            | ConditionKind::Count(stream, ..)
            | ConditionKind::CompareStreams(stream, ..) => ("semi-join", self.join(*stream).1),
            ConditionKind::Residue => ("where", RESIDUE.to_owned()),
            _ => ("where", "decided for all bindings at once from its parts".to_owned()),
        };
        self.line(operator, text, depth, shared, why);
    }

    /// How the nodes of a stream come to their bindings.
    fn join(&self, id: StreamId) -> (&'static str, String) {
        let stream = self.operators.stream(id);
        let nests = stream.parent.is_some_and(|parent| {
            self.operators
                .stream(parent)
                .linear
                .as_ref()
                .is_none_or(|path| path.edges.iter().any(|edge| edge.kind() == crate::paths::EdgeKind::Gap))
        });
        let order = if nests {
            "by a table: bindings may contain each other, since their path has a // or is no plain path"
        } else {
            "by merging: without // in their path bindings do not contain each other, so both sides are in order"
        };
        match &stream.route {
            Route::Matched(_) => {
                ("path", "delivered by the shared path matcher, each node once and in order".to_owned())
            }
            Route::Climbed(_, levels) => ("join", format!("joined with the binding {levels} levels above, {order}")),
            Route::Traced(_, _, Some(levels)) => (
                "join",
                format!("the // is superfluous by the DTD: joined with the binding {levels} levels above, {order}"),
            ),
            Route::Traced(..) => {
                ("join", format!("joined with all bindings above from which its // leads here, {order}"))
            }
            Route::Navigated(_) => (
                "evaluate",
                "followed by the evaluator: predicates or axes that the path matcher does not know".to_owned(),
            ),
        }
    }
}

const RESIDUE: &str = "by the evaluator: no operator for it";

fn stream_text(operators: &Operators, id: StreamId) -> String {
    let stream = operators.stream(id);
    let start = match stream.parent {
        None => String::new(),
        Some(parent) => format!("${}", operators.stream(parent).level + 1),
    };
    match &*stream.expr {
        Expr::Path(path) => start + &steps_text(&path.steps),
        _ if start.is_empty() => "/".to_owned(),
        _ => start,
    }
}

fn steps_text(steps: &[Step]) -> String {
    let mut text = String::new();
    let mut separator = "/";
    for step in steps {
        match step {
            Step::Axis { axis: Axis::DescendantOrSelf, test: NodeTest::Node, predicates } if predicates.is_empty() => {
                separator = "//";
                continue;
            }
            Step::Axis { axis, test, predicates } => {
                text += separator;
                match axis {
                    Axis::Child => {}
                    Axis::Attribute => text.push('@'),
                    other => text += &format!("{}::", axis_name(*other)),
                }
                text += &test_text(test);
                text += &"[…]".repeat(predicates.len());
            }
            Step::Expr(_) => text += &format!("{separator}(…)"),
        }
        separator = "/";
    }
    text
}

fn test_text(test: &NodeTest) -> String {
    let named = |name: &crate::xquery::ast::Name| {
        if name.uri.is_empty() { name.local.to_string() } else { format!("Q{{{}}}{}", name.uri, name.local) }
    };
    match test {
        NodeTest::Node => "node()".into(),
        NodeTest::Any => "*".into(),
        NodeTest::Name(name) => named(name),
        NodeTest::Namespace(uri) => format!("Q{{{uri}}}*"),
        NodeTest::Local(local) => format!("*:{local}"),
        NodeTest::Text => "text()".into(),
        NodeTest::Comment => "comment()".into(),
        NodeTest::ProcessingInstruction(target) => {
            format!("processing-instruction({})", target.as_deref().unwrap_or(""))
        }
        NodeTest::Element(name) => format!("element({})", name.as_ref().map_or(String::new(), named)),
        NodeTest::Attribute(name) => format!("attribute({})", name.as_ref().map_or(String::new(), named)),
        NodeTest::Document => "document-node()".into(),
    }
}

fn condition_text(operators: &Operators, id: ConditionId) -> String {
    let path = |stream: &StreamId| stream_text(operators, *stream);
    let several = |members: &[ConditionId], word: &str| {
        members.iter().map(|member| condition_text(operators, *member)).collect::<Vec<_>>().join(word)
    };
    match &operators.condition(id).kind {
        ConditionKind::Exists(stream) => path(stream),
        ConditionKind::Compare(stream, op, Constant::String(text)) => {
            format!("{}{}{text:?}", path(stream), compare_sign(*op))
        }
        ConditionKind::Compare(stream, op, Constant::Number(number)) => {
            format!("{}{}{}", path(stream), compare_sign(*op), number.0)
        }
        ConditionKind::CompareStreams(a, op, b) => format!("{}{}{}", path(a), compare_sign(*op), path(b)),
        ConditionKind::Contains(stream, text) => format!("contains({}, {text:?})", path(stream)),
        ConditionKind::StartsWith(stream, text) => format!("starts-with({}, {text:?})", path(stream)),
        ConditionKind::Count(stream, op, number) => format!("count({}){}{number}", path(stream), compare_sign(*op)),
        ConditionKind::Not(inner) => format!("not({})", condition_text(operators, *inner)),
        ConditionKind::And(members) => several(members, " and "),
        ConditionKind::Or(members) => format!("({})", several(members, " or ")),
        ConditionKind::Lifted(inner) => condition_text(operators, *inner),
        ConditionKind::Residue => "a condition".to_owned(),
    }
}
