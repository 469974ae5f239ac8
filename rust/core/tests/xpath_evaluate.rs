//! The evaluator: axes, positions, comparisons, functions, costs.

mod xpath_common;

use proptest::prelude::*;
use sardonyx_core::document::Document;
use sardonyx_core::xpath::ast::{Constant, ConstantRef};
use sardonyx_core::xpath::clauses::{Clause, explain_clauses};
use sardonyx_core::xpath::evaluate::{EvaluateError, Evaluator, NodeRef, Value};
use sardonyx_core::xpath::parser::{Parser, StaticContext};
use sardonyx_core::xpath::symbols::{DocumentSymbols, Symbols};
use std::time::Instant;
use xpath_common::{names, read, string, value, value_at};

fn joined(document: &Document, text: &str) -> String {
    names(document, text).join(" ")
}

fn truth(document: &Document, text: &str) -> bool {
    value(document, text).to_boolean()
}

/// Nodes: / a @i @j b c text d e comment f ?pi
const TREE: &[u8] = b"<a i='1' j='2'><b><c>x</c></b><d k='3'><e/><!--n--></d><f/><?pi data?></a>";

#[test]
fn every_axis_from_elements() {
    let document = read(TREE);
    for (text, expected) in [
        ("/a/d/child::node()", "e comment"),
        ("/a/descendant::*", "b c d e f"),
        ("/descendant-or-self::node()", "/ a b c text(x) d e comment f ?pi"),
        ("//e/ancestor::node()", "/ a d"),
        ("//e/ancestor-or-self::*", "a d e"),
        ("/a/d/following::node()", "f ?pi"),
        ("/a/d/preceding::node()", "b c text(x)"),
        ("/a/d/following-sibling::node()", "f ?pi"),
        ("/a/d/preceding-sibling::node()", "b"),
        ("/a/attribute::node()", "@i @j"),
        ("//c/parent::node()", "b"),
        ("//c/self::c", "c"),
        ("//c/self::d", ""),
        ("/parent::node()", ""),
        ("/following::node() | /preceding::node() | /following-sibling::node() | /ancestor::node()", ""),
        ("//processing-instruction('pi') | //processing-instruction('other')", "?pi"),
        ("//comment()", "comment"),
        ("//b/.. | //f", "a f"),
    ] {
        assert_eq!(joined(&document, text), expected, "{text}");
    }
}

#[test]
fn axes_from_attributes() {
    let document = read(TREE);
    for (text, expected) in [
        // An attribute comes before its element's children and is no ancestor of anything.
        ("/a/@i/following::node()", "b c text(x) d e comment f ?pi"),
        ("/a/d/@k/following::node()", "e comment f ?pi"),
        ("/a/d/@k/preceding::node()", "b c text(x)"),
        ("/a/d/@k/ancestor::node()", "/ a d"),
        ("/a/d/@k/ancestor-or-self::node()", "/ a d @k"),
        ("/a/d/@k/..", "d"),
        ("/a/@i/following-sibling::node() | /a/@j/preceding-sibling::node()", ""),
        ("/a/@i/descendant-or-self::node()", "@i"),
        ("/a/@i/self::node()", "@i"),
        ("/a/@i/self::*", ""),
        ("/a/@i/child::node() | /a/@i/descendant::node() | /a/@i/@*", ""),
        ("//@*", "@i @j @k"),
        ("/a/@text()", ""),
        ("(//e | //@*)[1]", "@i"),
        ("//node()/@*/ancestor-or-self::node()[1]", "@i @j @k"),
    ] {
        assert_eq!(joined(&document, text), expected, "{text}");
    }
}

#[test]
fn namespace_nodes_follow_their_element_and_precede_its_attributes() {
    let document = read(b"<a xmlns='urn:d' xmlns:p='urn:p' k='1'><b xmlns='' xmlns:p='urn:q'><c/></b></a>");
    for (text, expected) in [
        ("/*/namespace::node()", "xmlns: xmlns:p xmlns:xml"),
        ("//b/namespace::*", "xmlns:p xmlns:xml"),
        ("/*/namespace::p", "xmlns:p"),
        ("/*/namespace::node()/..", "a"),
        ("/*/namespace::p/following::*", "b c"),
        ("//b/namespace::p/following::*", "c"),
        ("//b/namespace::p/preceding::node()", ""),
        ("//b/namespace::p/ancestor::*", "a b"),
        ("//b/namespace::p/ancestor-or-self::node()", "/ a b xmlns:p"),
        ("(/*/@k | /*/namespace::p | /* | //c)", "a xmlns:p @k c"),
        ("/*/namespace::p | /*/namespace::*[2]", "xmlns:p"),
        ("/*/namespace::*/self::*", ""),
        ("/*/namespace::*/namespace::*", ""),
        ("/*/@k/namespace::* | /namespace::*", ""),
        ("//namespace::*[. = 'urn:q']", "xmlns:p xmlns:p"),
    ] {
        assert_eq!(joined(&document, text), expected, "{text}");
    }
    assert_eq!(string(&document, "/*/namespace::p"), "urn:p");
    assert_eq!(string(&document, "//c/namespace::p"), "urn:q");
    assert_eq!(string(&document, "name(/*/namespace::p)"), "p");
    assert_eq!(string(&document, "local-name(/*/namespace::p)"), "p");
    assert_eq!(string(&document, "namespace-uri(/*/namespace::p)"), "");
    assert_eq!(value(&document, "count(//namespace::*)"), Value::Number(7.0));
    let context = StaticContext { namespaces: &[("x", "urn:d")], ..StaticContext::default() };
    assert_eq!(value_at(&document, "/*/namespace::x:p", &context, NodeRef::ROOT).unwrap(), Value::Nodes(vec![]));
}

#[test]
fn positions_count_along_the_axis() {
    let document = read(b"<r><a n='1'/><a n='2'/><a n='3'><b n='4'/><b n='5'/></a><a n='6'/></r>");
    let numbers = |text: &str| {
        let Value::Nodes(nodes) = value(&document, text) else { panic!("{text}") };
        nodes.iter().map(|node| document.string_value(node.id() + 1).to_string()).collect::<Vec<_>>().join(" ")
    };
    for (text, expected) in [
        ("/r/a[1]", "1"),
        ("/r/a[last()]", "6"),
        ("/r/a[position() mod 2 = 0]", "2 6"),
        ("/r/a[6 = @n]/preceding-sibling::a[1]", "3"),
        ("/r/a[6 = @n]/preceding-sibling::a[last()]", "1"),
        ("(/r/a[6 = @n]/preceding-sibling::a)[1]", "1"),
        ("/r/a[6 = @n]/preceding::*[1]", "5"),
        ("/r/a[6 = @n]/preceding::*[position() < 3]", "4 5"),
        ("//b[2]/ancestor::a[1]", "3"),
        ("//a[1]", "1"),
        ("/descendant::b[2]", "5"),
        ("//b[1]", "4"),
        ("/r/*/following-sibling::*[1]", "2 3 6"),
        ("/r/a[@n > 1][1]", "2"),
        ("/r/a[1][@n > 1]", ""),
        ("/r/a[position() > 1][position() > 1]", "3 6"),
        ("/r/a[count(*) + 1]", "1 3"),
        ("/r/a[1.5]", ""),
        ("/r/a[0]", ""),
        ("/r/a[-1]", ""),
        ("/r/a[0 div 0]", ""),
        ("/r/a['1']", "1 2 3 6"),
        ("(//b | /r/a[1])[2]", "4"),
        ("/r/a[last() - 1]/b[last()]", "5"),
        ("/r/a[not(position() = last())]", "1 2 3"),
        ("//*[@n = 5]/preceding-sibling::*[last()]/following-sibling::*[1]", "5"),
    ] {
        assert_eq!(numbers(text), expected, "{text}");
    }
}

#[test]
fn comparisons_follow_section_3_4() {
    let document = read(b"<r><a>1</a><a>2</a><b>2</b><b>3</b><n>x</n><e/><t>1.0</t></r>");
    for (text, expected) in [
        ("/r/a = /r/b", true),
        ("/r/a != /r/a", true),
        ("/r/n != /r/n", false),
        ("/r/a = /r/t", false),
        ("/r/a[1] = /r/t", false),
        ("/r/a[1] + 0 = /r/t", true),
        ("/r/a < /r/b", true),
        ("/r/b < /r/a", false),
        ("/r/b <= /r/a", true),
        ("/r/a >= /r/b", true),
        ("/r/a > /r/b", false),
        ("/r/n < /r/b", false),
        ("/r/x = /r/x", false),
        ("/r/x != 1", false),
        ("/r/x = ''", false),
        ("/r/e = ''", true),
        ("/r/e = 0", false),
        ("/r/e != 0", true),
        ("/r/x = false()", true),
        ("/r/a = true()", true),
        ("/r/e > false()", true),
        ("/r/x >= true()", false),
        ("true() = 'x'", true),
        ("true() = 2", true),
        ("true() < 2", true),
        ("'10' < '9'", false),
        ("'a' < 'b'", false),
        ("'1.0' = 1", true),
        ("'1.0' = '1'", false),
        ("0 div 0 = 0 div 0", false),
        ("0 div 0 != 0 div 0", true),
        ("-0 = 0", true),
        ("1 div -0 < 0", true),
        ("3 < /r/b", false),
        ("2 < /r/b", true),
        ("/r/a = 2 and /r/a = 1", true),
    ] {
        assert_eq!(truth(&document, text), expected, "{text}");
    }
}

#[test]
fn functions() {
    let document = read(
        "<!DOCTYPE r [<!ATTLIST e id ID #IMPLIED>]><r xmlns:p='urn:p' xml:id='xr'><e id='one'>été</e><e id='two'>\
         <f id='one'/></e><p:g> a \t b </p:g><ids>two one</ids><?t d?></r>"
            .as_bytes(),
    );
    for (text, expected) in [
        ("id('one')", "été"),
        ("count(id('one two'))", "2"),
        ("count(id(/r/ids))", "2"),
        ("count(id('none'))", "0"),
        ("count(id('xr'))", "0"),
        ("count(//f[@id='one'])", "1"),
        ("string-length(//e[1])", "3"),
        ("string-length('\u{1F600}')", "1"),
        ("name(/r/*[3])", "p:g"),
        ("local-name(/r/*[3])", "g"),
        ("namespace-uri(/r/*[3])", "urn:p"),
        ("name(//processing-instruction())", "t"),
        ("name(//text())", ""),
        ("name(/)", ""),
        ("normalize-space(/r/*[3])", "a b"),
        ("concat(1, true(), 'x', /r/none)", "1truex"),
        ("substring('motor car', 6)", " car"),
        ("substring('metadata', 4, 3)", "ada"),
        ("substring('123456', 2, 0 div 0)", ""),
        ("substring('été', 2, 1)", "t"),
        ("substring-before('1999/04/01', '/')", "1999"),
        ("substring-after('1999/04/01', '/')", "04/01"),
        ("substring-after('1999/04/01', '')", "1999/04/01"),
        ("substring-before('abc', '')", ""),
        ("substring-after('abc', 'x')", ""),
        ("translate('bar', 'abc', 'AB')", "BAr"),
        ("translate('x', 'x', '')", ""),
        ("contains('abc', '')", "true"),
        ("starts-with('abc', '')", "true"),
        ("starts-with('', 'a')", "false"),
        ("boolean(0 div 0)", "false"),
        ("boolean('false')", "true"),
        ("not('')", "true"),
        ("number(true())", "1"),
        ("number('1e3')", "NaN"),
        ("number('')", "NaN"),
        ("sum(//none)", "0"),
        ("sum(//e)", "NaN"),
        ("floor(-1.5)", "-2"),
        ("ceiling(-0.5)", "0"),
        ("1 div ceiling(-0.5)", "-Infinity"),
        ("1 div round(-0.2)", "-Infinity"),
        ("round(2.5)", "3"),
        ("round(-2.5)", "-2"),
        ("5 mod -2", "1"),
        ("-5 mod 2", "-1"),
        ("1.5 mod 0.5", "0"),
        ("1 mod 0", "NaN"),
        ("6 div 4", "1.5"),
        ("1 div 3", "0.3333333333333333"),
        ("100000000000000000000000 * 10", "1000000000000000000000000"),
        ("0.000001", "0.000001"),
        ("-(2)", "-2"),
        ("--2", "2"),
        ("2 - - 2", "4"),
        ("last() + position()", "2"),
    ] {
        assert_eq!(string(&document, text), expected, "{text}");
    }
}

#[test]
fn extensions_change_name_tests_only() {
    let document = read(b"<d:a xmlns:d='urn:d' xmlns='urn:e'><b k='1' d:k='2'/><c xmlns=''/></d:a>");
    let count = |context: &StaticContext<'_>, text: &str| match value_at(&document, text, context, NodeRef::ROOT) {
        Ok(Value::Nodes(nodes)) => nodes.len(),
        other => panic!("{text}: {other:?}"),
    };
    let plain = StaticContext { namespaces: &[("x", "urn:d"), ("y", "urn:e")], ..StaticContext::default() };
    assert_eq!((count(&plain, "/a"), count(&plain, "/x:a/y:b"), count(&plain, "//c")), (0, 1, 1));
    assert_eq!((count(&plain, "//x:*"), count(&plain, "//@k"), count(&plain, "//@x:*")), (1, 1, 1));
    let default = StaticContext { namespaces: &[("", "urn:e"), ("x", "urn:d")], ..StaticContext::default() };
    assert_eq!((count(&default, "/x:a/b"), count(&default, "//c"), count(&default, "//@k")), (1, 0, 1));
    assert_eq!(count(&default, "//*"), 3);
    let ignoring = StaticContext { ignore_namespaces: true, ..StaticContext::default() };
    assert_eq!((count(&ignoring, "/a/b"), count(&ignoring, "/z:a/z:c"), count(&ignoring, "//@k")), (1, 1, 2));
    assert_eq!((count(&ignoring, "//z:*"), count(&ignoring, "/*/namespace::d")), (3, 1));
}

/// Evaluates with a cost limit; also tells the cost.
fn with_limit(document: &Document, text: &str, limit: u64) -> (Result<bool, EvaluateError>, u64) {
    let mut symbols = Symbols::default();
    let mut parser = Parser::default();
    let parsed = parser.parse(text, &StaticContext::default(), &mut symbols).unwrap();
    let constants: Vec<ConstantRef<'_>> = parsed.constants().iter().map(Constant::as_ref).collect();
    let tests = DocumentSymbols::new(document, |test| symbols.find(test));
    let mut evaluator = Evaluator::new(document, &tests, limit);
    (evaluator.boolean(parsed.query(), &constants), evaluator.cost())
}

#[test]
fn hard_expressions_are_cheap() {
    let nested = |depth: usize| read(format!("{}{}", "<x>".repeat(depth), "</x>".repeat(depth)).as_bytes());
    let wide = read(format!("<r>{}</r>", "<a><b>1</b></a>".repeat(2_000)).as_bytes());
    let deep = nested(2_000);
    for (document, text, units_per_node) in [
        (&deep, "count(//x//x//x) = 1998", 20),
        (&deep, "//x//x//x//x//x//x//x//x//y", 20),
        (&deep, "count(//x/ancestor::x/descendant::x/ancestor::x/descendant::x) > 0", 30),
        (&deep, "count(//x/following::x) = 0", 10),
        (&deep, "//x[not(//y)][not(//x[//y])]", 30),
        (&wide, "count(//b/following::b/preceding::b) = 1999", 20),
        (&wide, "count(//a/following-sibling::a/preceding-sibling::a) = 1999", 20),
        (&wide, "//a[b = //c] or count(//a[b = //b]) < 0", 30),
        (&wide, "//b = //b and //b != //b or //b < //b", 20),
        (&wide, "count(//a[b = sum(//b) div 2000]) = 2000", 30),
        (&wide, "//a[count(//b) = 2000]", 30),
    ] {
        let start = Instant::now();
        let (_, cost) = with_limit(document, text, u64::MAX);
        let per_node = cost / document.len() as u64;
        assert!(per_node <= units_per_node, "{text}: {per_node} units a node, {:?}", start.elapsed());
    }
    // Nested descendants: polynomial, not exponential.
    let small = nested(60);
    for text in [
        format!("//x{}", "[.//x".repeat(40) + &"]".repeat(40)),
        format!("//x{}", "[.//x[position() > 1]".repeat(30) + &"]".repeat(30)),
        format!("//x{}", "[ancestor::x[1]/descendant::x".repeat(40) + &"]".repeat(40)),
        format!("//x{}", "[count(.//x".repeat(30) + &") >= 0]".repeat(30)),
        format!("/x{}", "/descendant::x/ancestor::x".repeat(60)),
        format!("//x{}", "[following::x or ../x[preceding::x or .//x".repeat(20) + &"]]".repeat(20)),
    ] {
        let (result, cost) = with_limit(&small, &text, 50_000_000);
        assert!(result.is_ok(), "{text}: {cost}");
    }
}

#[test]
fn the_cost_limit_stops_evaluation() {
    let document = read(format!("<r>{}</r>", "<a/>".repeat(1_000)).as_bytes());
    let (result, _) = with_limit(&document, "//a[following-sibling::a[position() > last()]]", 10_000);
    assert_eq!(result, Err(EvaluateError::CostLimit { limit: 10_000 }));
    let text = "concat(//t, //t, //t, //t, //t, //t, //t, //t)";
    let long = read(format!("<t>{}</t>", "x".repeat(1 << 20)).as_bytes());
    assert!(with_limit(&long, &format!("contains({text}, 'y')"), 100_000).0.is_err());
    assert_eq!(with_limit(&document, "/r/a", 10_000).0, Ok(true));
}

fn explained(document: &Document, text: &str) -> Vec<Clause> {
    let mut symbols = Symbols::default();
    let mut parser = Parser::default();
    let parsed = parser.parse(text, &StaticContext::default(), &mut symbols).unwrap();
    let constants: Vec<ConstantRef<'_>> = parsed.constants().iter().map(Constant::as_ref).collect();
    let tests = DocumentSymbols::new(document, |test| symbols.find(test));
    let mut evaluator = Evaluator::new(document, &tests, u64::MAX);
    explain_clauses(&mut evaluator, parsed.query(), &constants, &symbols, None).unwrap()
}

#[test]
fn explanations_name_the_clause_that_failed() {
    let document = read(b"<a><b id='3'/><b id='5'/><b id='7'><c/></b><b id='3'/></a>");
    let shown = |text: &str| {
        explained(&document, text)
            .iter()
            .map(|clause| {
                let mark = if clause.held { '+' } else { '-' };
                format!("{}{mark} {}: {}", "  ".repeat(clause.depth), clause.text, clause.reason)
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(
        shown("/a/b[@id = '9']/c"),
        [
            "- /a/b[@id = \"9\"]/c: predicate [@id = \"9\"] held at none of 4 nodes; values seen of @id: \"3\", \"5\", \"7\"",
            "  + /a: 1 nodes",
            "  + /a/b: 4 nodes",
            "    - [@id = \"9\"]: held at none of 4 nodes; values seen of @id: \"3\", \"5\", \"7\"",
        ]
    );
    assert_eq!(
        shown("/a/b/d/e"),
        [
            "- /a/b/d/e: no node after step 3 `/a/b/d`",
            "  + /a: 1 nodes",
            "  + /a/b: 4 nodes",
            "  - /a/b/d: no node after step 3 `/a/b/d`",
        ]
    );
    assert_eq!(
        shown("//b[c and @id = 7] and not(//x)"),
        [
            "+ //b[c and @id = 7] and not(//x): holds",
            "  + //b[c and @id = 7]: selects 1 nodes",
            "    + //b: 4 nodes",
            "      + [c and @id = 7]: held at 1 of 4 nodes",
            "        + c: selects 1 nodes",
            "        + @id = 7: held at 1 of 4 nodes; values seen of @id: \"3\", \"5\", \"7\"",
            "  + not(//x): holds",
            "    - //x: no node after step 1 `//x`",
        ]
    );
    assert_eq!(shown("count(//b) > 5")[0], "- count(//b) > 5: does not hold; values seen of count(//b): \"4\"");
    assert_eq!(explained(&document, "//b[c]")[0].nodes.len(), 1);
}

fn tree() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("<a/>".to_string()),
        Just("t".to_string()),
        Just("<b k='1'/>".into()),
        Just("<!--c-->".into())
    ];
    leaf.prop_recursive(5, 40, 4, |inner| {
        (prop::collection::vec(inner, 0..4), prop::sample::select(vec!["a", "b", "c"]), any::<bool>()).prop_map(
            |(inner, name, attribute)| {
                let attribute = if attribute { " k='2' l='3'" } else { "" };
                format!("<{name}{attribute}>{}</{name}>", inner.concat())
            },
        )
    })
}

const AXES: &[&str] = &[
    "ancestor",
    "ancestor-or-self",
    "attribute",
    "child",
    "descendant",
    "descendant-or-self",
    "following",
    "following-sibling",
    "namespace",
    "parent",
    "preceding",
    "preceding-sibling",
    "self",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// A positional predicate that is always true makes the evaluator go node by node instead of by whole sets, and
    /// one inside a predicate keeps it from remembering.
    #[test]
    fn sets_and_single_nodes_agree(inner in tree(), path in prop::collection::vec((0..13_usize, 0..5_usize), 1..4)) {
        let document = read(format!("<r>{inner}</r>").as_bytes());
        let steps = |predicate: &str| {
            path.iter()
                .map(|(axis, test)| {
                    let test = ["node()", "*", "a", "k", "text()"][*test];
                    format!("{}::{test}{predicate}", AXES[*axis])
                })
                .collect::<Vec<_>>()
        };
        let (whole, single) = (steps(""), steps("[position() > 0]"));
        for start in ["//node()", "//@*", "//namespace::*", "(//a | //@k)"] {
            let (whole, single) = (whole.join("/"), single.join("/"));
            prop_assert_eq!(
                names(&document, &format!("{start}/{whole}")), names(&document, &format!("{start}/{single}")),
                "{} {}", start, whole
            );
            prop_assert_eq!(
                names(&document, &format!("{start}[{whole}]")),
                names(&document, &format!("{start}[position() > 0 and {single}]")),
                "{} [{}]", start, whole
            );
            prop_assert_eq!(
                names(&document, &format!("//node()[{start}[{whole} = '1' or count({whole}) = 2]]")),
                names(&document, &format!("//node()[position() > 0][{start}[position() > 0 and ({single} = '1' or count({single}) = 2)]]")),
                "nested {} [{}]", start, whole
            );
        }
    }
}
