//! All strategies of transformations give what evaluating each query by itself gives.

use proptest::prelude::*;
use sardonyx_core::document::{Document, Limits, parse as read};
use sardonyx_core::transform::execute::Worker;
use sardonyx_core::transform::population::{Population, Registration, Strategy};
use sardonyx_core::transform::results::{Form, profile, transform_document};
use sardonyx_core::transform::schema::ElementGraph;
use sardonyx_core::xquery::parser::{StaticContext, parse};
use std::collections::BTreeMap;
use std::sync::Arc;

const COST_LIMIT: u64 = 10_000_000;

/// Choices that a seed makes.
struct Draws(u64);

impl Draws {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % end
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<'c>(&mut self, choices: &[&'c str]) -> &'c str {
        choices[self.below(choices.len())]
    }

    fn element(&mut self, depth: usize, out: &mut String) {
        let name = self.pick(&["a", "b", "c"]);
        out.push_str(&format!("<{name}"));
        if self.chance(40) {
            out.push_str(&format!(" k='{}'", self.value()));
        }
        out.push('>');
        if depth == 0 || self.chance(30) {
            out.push_str(&self.value());
        } else {
            for _ in 0..self.below(5) {
                self.element(depth - 1, out);
            }
        }
        out.push_str(&format!("</{name}>"));
    }

    fn value(&mut self) -> String {
        self.pick(&["1", "2", "3", "1", "2", "3", "01", "-0", "0", "x"]).to_owned()
    }

    fn document(&mut self) -> String {
        let mut text = "<a>".to_owned();
        for _ in 0..self.below(8) {
            self.element(4, &mut text);
        }
        text + "</a>"
    }

    /// A path below something.
    fn path(&mut self) -> String {
        let mut text = String::new();
        for _ in 0..=self.below(2) {
            text.push_str(self.pick(&["/", "/", "/", "//"]));
            text.push_str(self.pick(&["a", "b", "c", "*"]));
            if self.chance(8) {
                text.push_str(self.pick(&["/..", "/following-sibling::c", "/preceding-sibling::*", "/ancestor::b"]));
            }
            if self.chance(5) {
                text.push_str(self.pick(&["[1]", "[b]", "[. = '1']", "[@k = '2']"]));
            }
        }
        if self.chance(20) {
            text.push_str("/@k");
        }
        text
    }

    /// A condition; those that compare numbers may meet texts that are none.
    fn condition(&mut self, variable: &str, depth: usize) -> (String, bool) {
        let path = format!("{variable}{}", self.path());
        let constant = self.pick(&["1", "2", "3"]);
        let sure = |text: String| (text, false);
        match self.below(if depth == 0 { 8 } else { 11 }) {
            0..=3 => sure(format!("{path} = '{constant}'")),
            4 => (format!("{path} = {constant}"), true),
            5 => sure(format!("{path} {} '{constant}'", self.pick(&["<", ">=", "!="]))),
            6 => sure(format!("count({path}) {} {constant}", self.pick(&["=", "<", ">="]))),
            7 => sure(format!("exists({path})")),
            8 => {
                let (inner, may_fail) = self.condition(variable, depth - 1);
                (format!("not({inner})"), may_fail)
            }
            choice => {
                let (a, first) = self.condition(variable, depth - 1);
                let (b, second) = self.condition(variable, depth - 1);
                (format!("({a} {} {b})", if choice == 9 { "or" } else { "and" }), first || second)
            }
        }
    }

    /// A query, and whether it may fail.
    fn query(&mut self) -> (String, bool) {
        let mut may_fail = false;
        let outer = self.pick(&["$v", "$other"]);
        let mut text = format!("<r>{{for {outer} in {}", self.path());
        let mut inner = outer;
        if self.chance(20) {
            inner = "$w";
            text.push_str(&format!(" for $w in {outer}{}", self.path()));
        }
        if self.chance(10) {
            text.push_str(&format!(" let $l := {inner}{}", self.path()));
        }
        let mut word = "where";
        for _ in 0..self.below(4) {
            let variable = if self.chance(70) { inner } else { outer };
            let (condition, fails) = self.condition(variable, 1);
            may_fail |= fails;
            text.push_str(&format!(" {word} {condition}"));
            word = "and";
        }
        if self.chance(10) {
            text.push_str(&format!(" order by string({inner}/@k)"));
        }
        let content: String = (0..self.below(3)).map(|_| format!("{{{inner}{}}}", self.path())).collect();
        text.push_str(&match self.below(4) {
            0 => format!(" return {inner}{}}}</r>", self.path()),
            _ => format!(" return <i>{content}</i>}}</r>"),
        });
        (text, may_fail)
    }
}

fn population(queries: &[String], strategy: Strategy, graph: Option<Arc<ElementGraph>>) -> Population {
    let mut population = Population::new(strategy, graph);
    for (part, queries) in queries.chunks(7).enumerate() {
        population.register(queries.iter().enumerate().map(|(at, query)| Registration {
            id: (part * 7 + at).to_string().into(),
            query: query.as_str().into(),
            namespaces: [].into(),
            stream: None,
            notify_empty: at == 3,
            module: parse(query, &StaticContext::default()).unwrap_or_else(|error| panic!("{query}: {error}")),
        }));
    }
    population
}

/// What each query gives: its text, or nothing where it fails.
fn answers(population: &Population, worker: &mut Worker, document: &Document) -> BTreeMap<usize, Option<String>> {
    let transformed = transform_document(population, worker, document, COST_LIMIT);
    let number = |subscriber| population.subscriber(subscriber).unwrap().id.parse().unwrap();
    let given = transformed.recipients(population, None);
    let mut answers: BTreeMap<usize, Option<String>> =
        given.map(|(subscriber, at)| (number(subscriber), Some(transformed.results[at].text.clone()))).collect();
    for (plan, _) in &transformed.failures {
        answers.extend(population.plan(*plan).subscribers.iter().map(|subscriber| (number(*subscriber), None)));
    }
    answers
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 40 } else { 200 }))]

    #[test]
    fn all_strategies_agree(seed in any::<u64>(), has_graph in any::<bool>()) {
        let mut draws = Draws(seed);
        let drawn: Vec<(String, bool)> = (0..60).map(|_| draws.query()).collect();
        let queries: Vec<String> = drawn.iter().map(|(query, _)| query.clone()).collect();
        let graph = has_graph.then(|| {
            let children = vec!["a", "b"];
            Arc::new(ElementGraph::new([("a", children.clone()), ("b", vec!["c"]), ("c", Vec::new())]))
        });
        let texts: Vec<String> = (0..6).map(|_| draws.document()).collect();
        let documents: Vec<Document> =
            texts.iter().map(|text| read(text.as_bytes(), &Limits::default()).unwrap()).collect();
        let naive = population(&queries, Strategy::Naive, None);
        let mut worker = Worker::default();
        let right: Vec<_> = documents.iter().map(|document| answers(&naive, &mut worker, document)).collect();
        let mut counted = None;
        for strategy in Strategy::ALL {
            let shared = population(&queries, strategy, graph.clone());
            let mut worker = Worker::default();
            for _ in 0..2 {
                for ((document, text), right) in documents.iter().zip(&texts).zip(&right) {
                    let found = answers(&shared, &mut worker, document);
                    for (number, (query, may_fail)) in drawn.iter().enumerate() {
                        let (right, found) = (right.get(&number), found.get(&number));
                        // Which of several evaluations fails first is free.
                        let is_free = *may_fail && (right == Some(&None) || found == Some(&None));
                        prop_assert!(is_free || right == found, "{query}\n{text}\n{strategy:?}\n{right:?}\n{found:?}");
                    }
                }
            }
            let refs: Vec<&Document> = documents.iter().collect();
            let sure: Vec<String> = drawn.iter().filter(|(_, fails)| !fails).map(|(query, _)| query.clone()).collect();
            let sure = population(&sure, strategy, graph.clone());
            let measured = profile(&sure, &mut Worker::default(), &refs, Form::Groups, COST_LIMIT);
            prop_assert_eq!(measured.failures, 0);
            if strategy > Strategy::Naive {
                prop_assert_eq!(*counted.get_or_insert(measured.results), measured.results, "{:?}", strategy);
            }
        }
    }
}
