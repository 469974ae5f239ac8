//! The XPush matcher answers as the naive one, whatever its options and however little memory it has.

mod support;

use proptest::prelude::*;
use sardonyx_core::document::{Document, Limits, parse_str};
use sardonyx_core::index::{Population, SegmentBuilder, Snapshot};
use sardonyx_core::matcher::{Matches, SiblingOrder, XPush, XPushSettings, naive};
use sardonyx_core::xpath::parser::{Parser, StaticContext};

const NAMESPACES: [(&str, &str); 1] = [("p", "urn:p")];

fn builder<'a>(queries: impl IntoIterator<Item = (String, &'a str)>) -> SegmentBuilder {
    let mut builder = SegmentBuilder::default();
    let mut parser = Parser::default();
    for (number, (id, query)) in queries.into_iter().enumerate() {
        let ignore_namespaces = query.contains("p:") && number % 3 == 0;
        let context = StaticContext { namespaces: &NAMESPACES, ignore_namespaces, ..StaticContext::default() };
        let parsed = parser.parse(query, &context, builder.symbols()).expect(query);
        let stream = (number % 5 == 4).then_some("S");
        builder.insert(&id, stream, parsed.cells(), parsed.root, parsed.constants()).expect("fits");
    }
    builder
}

fn population(queries: &[&str]) -> Population {
    let population = Population::default();
    let numbered = queries.iter().enumerate().map(|(number, query)| (format!("s{number}"), *query));
    population.register(builder(numbered)).expect("fits");
    population
}

fn read(text: &str) -> Document {
    parse_str(text, &Limits { depth: 60_000, ..Limits::default() }).expect(text)
}

fn sorted(matches: &Matches) -> Vec<(u32, u32)> {
    assert!(matches.failures.is_empty());
    let mut found: Vec<(u32, u32)> = matches.iter().collect();
    found.sort_unstable();
    let count = found.len();
    found.dedup();
    assert_eq!(found.len(), count, "a subscription occurs once");
    found
}

/// All combinations of options, with much memory and with none.
fn all_matchers() -> Vec<XPush> {
    let mut matchers = Vec::new();
    for bits in 0..64u32 {
        let on = |bit: u32| bits >> bit & 1 == 1;
        let chains = vec![vec!["a", "b", "c", "d"], vec!["{urn:p}a", "a"]];
        matchers.push(XPush::new(XPushSettings {
            top_down: on(0),
            early: on(1),
            order: on(2).then(|| SiblingOrder::new(chains)),
            training: on(3),
            precompute_values: on(4),
            store_bytes: if on(5) { 0 } else { 1 << 24 },
            ..XPushSettings::default()
        }));
    }
    matchers
}

fn matched(xpush: &XPush, snapshot: &Snapshot, document: &Document, stream: Option<&str>) -> Vec<(u32, u32)> {
    let mut worker = xpush.worker(snapshot);
    let found = sorted(&xpush.match_document(&mut worker, snapshot, document, stream));
    xpush.give_back(worker);
    found
}

fn name_all(snapshot: &Snapshot, found: &[(u32, u32)]) -> Vec<String> {
    let name =
        |(segment, number): &(u32, u32)| snapshot.segments[*segment as usize].segment.ids().get(*number).to_owned();
    let mut names: Vec<String> = found.iter().map(name).collect();
    names.sort_unstable();
    names
}

fn agree(matchers: &[XPush], population: &Population, documents: &[&Document], queries: &[&str]) {
    let snapshot = population.snapshot();
    for document in documents {
        for stream in [None, Some("S"), Some("T")] {
            let wanted = sorted(&naive::match_document(&snapshot, document, stream, u64::MAX));
            for xpush in matchers {
                let found = matched(xpush, &snapshot, document, stream);
                assert_eq!(
                    name_all(&snapshot, &found),
                    name_all(&snapshot, &wanted),
                    "{queries:?} on {} with {:?}",
                    support::picture(document),
                    xpush.settings()
                );
            }
        }
    }
}

fn check(queries: &[&str], documents: &[&str]) {
    let population = population(queries);
    let trees: Vec<Document> = documents.iter().map(|text| read(text)).collect();
    agree(&all_matchers(), &population, &trees.iter().collect::<Vec<_>>(), queries);
}

#[test]
fn values_compare_as_the_recommendation_says() {
    check(
        &[
            "/r/a = 'x'",
            "/r/a != 'x'",
            "/r/a = ''",
            "/r/a != ''",
            "/r/a = 5",
            "/r/a != 5",
            "/r/a < 5",
            "/r/a <= 5",
            "/r/a > 5",
            "/r/a >= 5",
            "5 < /r/a",
            "/r/a < '5'",
            "/r/a < 'x'",
            "not(/r/a < 'x')",
            "/r/a = '5'",
            "/r/a >= 0",
            "/r/a <= 0",
            "/r/a = 0",
            "/r/a = -0.0",
            "not(/r/a != 5)",
            "/r/@k = 'v'",
            "/r/@k != 'v'",
            "contains(/r/@k, 'v')",
            "contains(/r/@k, '')",
            "contains(/r/@none, '')",
            "contains(/r/a, 'x')",
            "not(contains(/r/a, 'x'))",
            "/r[contains(., 'xy')]",
            "/r/a[starts-with(., 'x')]",
            "/r/a[not(starts-with(., 'x'))]",
            "starts-with(/r/a, '')",
            "/r/a/text() = 'x'",
            "/r[. = 'xy5']",
            ". = 'xy5'",
            "not(. = 'xy5')",
            "'x'",
            "''",
            "0",
            "1",
            "true()",
            "false()",
            "not(false())",
            "/r/a = true()",
            "/r/a = /r/b",
            "count(/r/a) > 1",
            "string(/r/a) = 'x'",
            "/r/a[2]",
            "/r/a[last()] = '5'",
            "/r/a[. > 1 or . = 'x']",
        ],
        &[
            "<r/>",
            "<r k=''><a/></r>",
            "<r k='v'><a>x</a></r>",
            "<r k='w'><a>x</a><a>5</a></r>",
            "<r><a>5</a><a>x</a></r>",
            "<r>x<a>y</a>5</r>",
            "<r><a>-0</a><a> 5 </a></r>",
            "<r><a>4.9</a></r>",
            "<r><a>5.1</a><b>5.1</b></r>",
            "<r><a>x<b>y</b></a></r>",
            "<r><a><!--c-->x<?t v?>y</a></r>",
            "<r><a>NaN</a></r>",
        ],
    );
}

#[test]
fn paths_reach_what_they_should() {
    check(
        &[
            "/",
            "/*",
            "/r",
            "//a",
            "//a/b",
            "//a//b",
            "/r//b",
            "/r/*/b",
            "//*[b]",
            "//a[b]/c",
            "//a[b and c]",
            "//a[b or d]",
            "//a[not(b)]",
            "not(//a)",
            "//a[not(b) and not(c)]",
            "//@k",
            "//a/@k",
            "//a[@k]/b[@k]",
            "//@*",
            "//text()",
            "//a/text()",
            "//b/text() = 'x'",
            "/r/a/node()",
            "//comment()",
            "//processing-instruction()",
            "//processing-instruction('t')",
            "//a[self::a]",
            "//*[self::b]",
            "//*[self::*]/c",
            "/self::node()",
            "/self::a",
            "//a | //d",
            "(//a | //b) = 'x'",
            "//p:a",
            "//p:*",
            "//p:a/a",
            "//a/..",
            "//b/ancestor::a",
            "//a/following-sibling::b",
            "//a[/r/b]",
            "/r[a[b[c]]]",
            "//a[.//c]",
            "//a[.//b = 'x']",
            "descendant-or-self::node()/@k",
            "//a/descendant-or-self::*",
            "//a[b = 'x' and c = 'y']",
            "/r/a[@k = '1' and b = 'x']",
            "//node()",
            "//a/self::node()[b]",
            "//c/parent::a",
            "/r/a[1]/b",
            "//a[not(b = 'x')]",
            "//a[b != 'x' or not(@k)]",
            "/r/a and /r/b",
            "/r/a and not(/r/d)",
            "//a[text()]",
            "//a[position() = 1]",
        ],
        &[
            "<r/>",
            "<a/>",
            "<r><a/></r>",
            "<r><a><b/></a></r>",
            "<r><a k='1'><b>x</b><c>y</c></a><b/></r>",
            "<r><b/><a><c/><b>x</b></a><d/></r>",
            "<r><a><a><b k='2'>x</b></a></a></r>",
            "<a><b><c/></b><c>y</c></a>",
            "<r xmlns:q='urn:p'><q:a><a/></q:a></r>",
            "<r xmlns='urn:p'><a k='1'/></r>",
            "<r><!--c--><?t x?><?u y?>z</r>",
            "<r>t<a>u<b>x</b>v</a></r>",
            "<r><c><a/><b/></c><d><b/><a/></d></r>",
            "<r><a><b><c>x</c></b></a></r>",
        ],
    );
}

#[test]
fn shared_parts_of_filters_are_reported_where_they_belong() {
    // The edge `b[x = 1]` is one state: alone it makes the first filter true below `a`, but not below `c`.
    check(
        &[
            "/r/a/b[x = 1]",
            "/r/c[b[x = 1] and y]",
            "//b[x = 1]/..",
            "/r/d//b[x = 1]",
            "/r/d[b[x = 1] or z]",
            "//a[@k and .//b]",
            "//a[@k and b = 1 and c = 1]",
        ],
        &[
            "<a k='1'><a><b/></a></a>",
            "<a><a k='1'><b>1</b><c>1</c></a></a>",
            "<a k='1'><c>1</c><b>1</b></a>",
            "<r><c><b><x>1</x></b></c></r>",
            "<r><a><b><x>1</x></b></a></r>",
            "<r><c><b><x>1</x></b><y/></c></r>",
            "<r><d><e><b><x>1</x></b></e></d></r>",
            "<r><d><b><x>1</x></b></d></r>",
        ],
    );
}

#[test]
fn deep_documents() {
    let depth = 10_000;
    let open: String = (0..depth).map(|level| if level % 2 == 0 { "<a>" } else { "<b>" }).collect();
    let close: String = (0..depth).rev().map(|level| if level % 2 == 0 { "</a>" } else { "</b>" }).collect();
    let document = read(&format!("{open}<c k='1'>x</c>{close}"));
    let queries =
        ["//c[@k = 1]", "//a//b//c = 'x'", "//a[not(.//d)]", "//a/b/a[b]", "//a[.//c = 'x']", "not(//b[c])", "//b/c"];
    let population = population(&queries);
    for (store_bytes, early) in [(1 << 20, false), (1 << 20, true), (64 << 20, false), (64 << 20, true)] {
        let settings = XPushSettings { store_bytes, early, ..XPushSettings::default() };
        agree(&[XPush::new(settings)], &population, &[&document], &queries);
    }
}

/// Children are united some at a time: none is lost, whether they come in the order of siblings or not.
#[test]
fn many_siblings() {
    let queries: Vec<String> = (0..140)
        .flat_map(|number| {
            let other = (number * 7 + 3) % 140;
            [
                format!("/r[a = {number} and b = {other}]"),
                format!("/r[b = {number} and not(a = {other})]"),
                format!("//s[a = {number} and c = {other}]/b"),
                format!("/r[.//a[@k = {number}] or c = {number}]"),
            ]
        })
        .collect();
    let queries: Vec<&str> = queries.iter().map(String::as_str).collect();
    let inside = |count: usize, ordered: bool| -> String {
        let name =
            |number: usize| if ordered { "abc".as_bytes()[3 * number / count] } else { b"abc"[number % 3] } as char;
        (0..count).map(|number| format!("<{0} k='{number}'>{number}</{0}>", name(number))).collect()
    };
    let documents: Vec<String> = [1, 31, 32, 33, 63, 64, 65, 66, 130]
        .into_iter()
        .flat_map(|count| [true, false].map(|ordered| inside(count, ordered)))
        .map(|children| format!("<r>{children}<s>{children}</s></r>"))
        .collect();
    check(&queries, &documents.iter().map(String::as_str).collect::<Vec<_>>());
}

#[test]
fn memory_is_bounded_and_counted() {
    let queries: Vec<String> = (0..500).map(|number| format!("//a[b = '{number}' and @k > {number}]")).collect();
    let population = population(&queries.iter().map(String::as_str).collect::<Vec<_>>());
    let documents: Vec<Document> = (0..300)
        .map(|number| read(&format!("<r><a k='{}'><b>{number}</b><b>{}</b></a></r>", number + 1, number / 2)))
        .collect();
    let small = XPush::new(XPushSettings { store_bytes: 200_000, ..XPushSettings::default() });
    let large = XPush::new(XPushSettings::default());
    agree(&[small, large], &population, &documents.iter().collect::<Vec<_>>(), &[]);
    let snapshot = population.snapshot();
    for (capacity, clears) in [(200_000, true), (64 << 20, false)] {
        let xpush = XPush::new(XPushSettings { store_bytes: capacity, ..XPushSettings::default() });
        for document in documents.iter().chain(&documents) {
            matched(&xpush, &snapshot, document, None);
        }
        let statistics = xpush.statistics();
        assert_eq!(statistics.clears > 0, clears, "{statistics:?}");
        assert!(statistics.states > 1 && statistics.transitions > 0 && statistics.automaton_states > 1000);
        assert!(statistics.hits < statistics.lookups);
        if !clears {
            // The second round found everything.
            assert!(statistics.hits * 2 > statistics.lookups, "{statistics:?}");
        }
    }
}

#[test]
fn rows_outside_of_the_fragment_are_counted() {
    let queries = ["//a[2]", "count(//a) = 1", "//a", "contains(//a, 'x')", "//a[b]/.."];
    let population = population(&queries);
    let xpush = XPush::default();
    matched(&xpush, &population.snapshot(), &read("<r><a/></r>"), None);
    let statistics = xpush.statistics();
    assert_eq!(statistics.inexact_rows, 4);
    assert_eq!(statistics.unfiltered_rows, 1); // the count
    assert_eq!(statistics.verified_rows, 2); // the count, and the a that may be a second one
}

#[test]
fn order_of_siblings() {
    let order = SiblingOrder::new([vec!["a", "b", "c"], vec!["{urn:p}x", "c"]]);
    for (text, holds) in [
        ("<r><a/><a/><b/><c/></r>", true),
        ("<r><b/><a/></r>", false),
        ("<r><a><c/></a><a><b/></a></r>", true),
        ("<r><c/><x xmlns='urn:p'/></r>", false),
        ("<r><c/><x/></r>", true),
        ("<r><b><a/></b><a/></r>", false),
        ("<r><d/><a/><d/><c/><d/></r>", true),
    ] {
        assert_eq!(order.holds(&read(text)), holds, "{text}");
    }
    let settings = XPushSettings { order: Some(order), ..XPushSettings::default() };
    let xpush = XPush::new(settings);
    let population = population(&["/r[a = 1 and c = 2]"]);
    for text in ["<r><a>1</a><c>2</c></r>", "<r><c>2</c><a>1</a></r>"] {
        assert_eq!(matched(&xpush, &population.snapshot(), &read(text), None).len(), 1, "{text}");
    }
    assert_eq!(xpush.statistics().unordered_documents, 1);
}

#[test]
fn populations_change() {
    let population = Population::default();
    let matchers = all_matchers();
    let documents = [read("<r><a k='1'>x</a><a k='2'>y</a><b>7</b></r>"), read("<r><b>5</b></r>")];
    let documents: Vec<&Document> = documents.iter().collect();
    let queries = ["//a[@k='1']", "//a[@k=2]", "/r/b > 6", "/r/b < 6", "//a[contains(., 'x')]", "not(//c)", "//a[2]"];
    for (number, query) in queries.iter().enumerate() {
        population.register(builder([(format!("s{number}"), *query)])).expect("fits");
        agree(&matchers, &population, &documents, &queries);
    }
    population.unregister(["s0", "s3"]);
    agree(&matchers, &population, &documents, &queries);
    population.register(builder([("s1".to_owned(), "//nothing"), ("s0".to_owned(), "/r")])).expect("fits");
    agree(&matchers, &population, &documents, &queries);
    population.compact().expect("fits");
    agree(&matchers, &population, &documents, &queries);
}

fn step() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => prop::sample::select(vec!["a", "b", "c", "d", "*", "p:a"]).prop_map(str::to_owned),
        1 => prop::sample::select(vec!["self::a", "node()", ".", "p:*", "descendant::b"]).prop_map(str::to_owned),
        1 => Just("..".to_owned()),
    ]
}

fn path() -> impl Strategy<Value = String> {
    let last = prop_oneof![6 => Just(""), 2 => Just("/@k"), 1 => Just("/@*"), 1 => Just("/text()")];
    (prop::collection::vec((prop::bool::weighted(0.25), step()), 1..3), last).prop_map(|(steps, last)| {
        let mut text = String::new();
        for (number, (deep, step)) in steps.iter().enumerate() {
            text += match (number, deep) {
                (0, false) => "",
                (0, true) => ".//",
                (_, false) => "/",
                (_, true) => "//",
            };
            text += step;
        }
        text + last
    })
}

fn condition() -> impl Strategy<Value = String> {
    let constant = prop::sample::select(vec!["'x'", "'y'", "''", "1", "2", "'1'", "'xy'"]);
    let op = prop::sample::select(vec!["=", "!=", "<", "<=", ">", ">="]);
    let atom = prop_oneof![
        2 => path(),
        4 => (path(), op, constant).prop_map(|(path, op, constant)| format!("{path} {op} {constant}")),
        1 => (path(), prop::sample::select(vec!["'x'", "'1'", "''"]))
            .prop_map(|(path, text)| format!("contains({path}, {text})")),
        1 => Just("starts-with(., 'x')".to_owned()),
        1 => Just("@k = '1'".to_owned()),
        1 => Just("position() = 2".to_owned()),
        1 => Just("count(a) = 1".to_owned()),
    ];
    atom.prop_recursive(3, 8, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} and {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} or {b})")),
            inner.clone().prop_map(|a| format!("not({a})")),
            (step(), inner).prop_map(|(step, a)| if step == "." || step == ".." { a } else { format!("{step}[{a}]") }),
        ]
    })
}

fn query() -> impl Strategy<Value = String> {
    let start = prop::sample::select(vec!["//a", "/r", "//*", "/r/a", "//b", "/r//c", "//p:a"]);
    prop_oneof![
        6 => (start.clone(), condition()).prop_map(|(start, inner)| format!("{start}[{inner}]")),
        3 => (start, condition(), path())
            .prop_map(|(start, inner, rest)| format!("{start}[{inner}]/{}", rest.trim_start_matches(".//"))),
        2 => condition(),
    ]
}

fn element() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec!["a", "b", "c", "d", "p:a", "p:b"]);
    let text = prop::sample::select(vec!["", "x", "y", "1", "2", "1.5", "xy"]);
    let attribute = prop::sample::select(vec!["", " k='1'", " k='x' l='2'", " p:k='1'"]);
    let leaf = (name.clone(), attribute.clone(), text.clone())
        .prop_map(|(name, attribute, text)| format!("<{name}{attribute}>{text}</{name}>"));
    leaf.prop_recursive(4, 24, 4, move |inner| {
        (name.clone(), attribute.clone(), prop::collection::vec(inner, 0..4), text.clone()).prop_map(
            |(name, attribute, children, text)| format!("<{name}{attribute}>{}{text}</{name}>", children.concat()),
        )
    })
}

fn document() -> impl Strategy<Value = String> {
    prop::collection::vec(element(), 0..4).prop_map(|children| format!("<r xmlns:p='urn:p'>{}</r>", children.concat()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn random_populations(
        queries in prop::collection::vec(query(), 1..20),
        documents in prop::collection::vec(document(), 1..5),
    ) {
        let queries: Vec<&str> = queries.iter().map(String::as_str).collect();
        let documents: Vec<&str> = documents.iter().map(String::as_str).collect();
        check(&queries, &documents);
    }

    #[test]
    fn random_changes(
        changes in prop::collection::vec((0..10u32, prop::collection::vec((0..12u32, query()), 1..5)), 1..8),
        text in document(),
    ) {
        let population = Population::default();
        let tree = read(&text);
        let matchers: Vec<XPush> = all_matchers().into_iter().step_by(7).collect();
        for (kind, rows) in &changes {
            match kind {
                0..6 => {
                    let named = rows.iter().map(|(id, query)| (format!("s{id}"), query.as_str()));
                    population.register(builder(named)).expect("fits");
                }
                6..9 => {
                    let ids: Vec<String> = rows.iter().map(|(id, _)| format!("s{id}")).collect();
                    population.unregister(ids.iter().map(String::as_str));
                }
                _ => {
                    population.compact().expect("fits");
                }
            }
            agree(&matchers, &population, &[&tree], &[]);
        }
    }
}
