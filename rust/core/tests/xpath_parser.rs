//! The parser: canonical forms, refusals, limits.

mod xpath_common;

use proptest::prelude::*;
use sardonyx_core::xpath::ast::{Cell, Constant, ConstantRef};
use sardonyx_core::xpath::display::query_text;
use sardonyx_core::xpath::error::{XPathError, XPathErrorKind};
use sardonyx_core::xpath::parser::{Parser, QueryLimits, StaticContext};
use sardonyx_core::xpath::symbols::Symbols;

const NAMESPACES: &[(&str, &str)] = &[("p", "urn:p"), ("q", "urn:q")];

fn context() -> StaticContext<'static> {
    StaticContext { namespaces: NAMESPACES, ..StaticContext::default() }
}

/// Cells, constants and canonical text, with a symbol table shared by all expressions of a test.
fn parse_with(
    symbols: &mut Symbols,
    context: &StaticContext<'_>,
    text: &str,
) -> Result<(Vec<Cell>, Vec<Constant>, String), XPathError> {
    let mut parser = Parser::default();
    let parsed = parser.parse(text, context, symbols)?;
    let constants: Vec<ConstantRef<'_>> = parsed.constants().iter().map(Constant::as_ref).collect();
    let prefixes = (!context.ignore_namespaces).then_some(context.namespaces);
    let shown = query_text(parsed.query(), &constants, symbols, prefixes);
    Ok((parsed.cells().to_vec(), parsed.constants().to_vec(), shown))
}

fn canonical(text: &str) -> String {
    parse_with(&mut Symbols::default(), &context(), text).unwrap_or_else(|error| panic!("{text}: {error}")).2
}

fn refusal(text: &str) -> XPathError {
    match parse_with(&mut Symbols::default(), &context(), text) {
        Ok((.., shown)) => panic!("{text} was accepted as {shown}"),
        Err(error) => error,
    }
}

#[test]
fn spelled_variants_have_equal_cells() {
    for group in [
        &["/a/b", " / a / b ", "/child::a/child::b", "/./a/./b", "/a/b/.", "(/a/b)", "(/a)/b", "/(a)/b"][..7],
        &["//a", "/descendant::a", "/descendant-or-self::node()/a", "//./a", "//descendant::a", "/.//a"],
        &[".//a", "descendant::a", "./descendant-or-self::node()/child::a"],
        &["a", "./a", "child::a", "((a))", "./././a"],
        &["//@k", "//attribute::k", "/descendant-or-self::node()/@k"],
        &[
            "a[@k = '9']",
            "a[attribute::k=\"9\"]",
            "a['9' = @k]",
            "(a)[@k='9']",
            "a/.[@k='9']",
            "a/self::node()[@k='9']",
        ][..4],
        &["a[@k='9']", "a/self::node()[@k='9']"],
        &["a[3 > b]", "a[b < 3]"],
        &["a or b or c", "(a or b) or c", "a or (b or c)", "((a) or ((b) or c))"],
        &["a and b and c and d", "(a and b) and (c and d)", "a and (b and (c and d))"],
        &["a | b | c", "a | (b | c)"],
        &["a[-3 = b]", "a[b = -3]", "a[b = - 3]"],
        &["(a[b])[c]", "a[b][c]"],
        &["..", "parent::node()"],
        &["/", "/.", "(/)", "/self::node()"],
        &[".", "self::node()", "./.", "(.)"],
        &["(//a)[1]/b", "((//a)[1])/b", "(//a)[1]/./b"],
        &["namespace::p", "namespace::*[local-name() = 'p']"],
    ] {
        let mut symbols = Symbols::default();
        let first = parse_with(&mut symbols, &context(), group[0]).unwrap();
        for text in group {
            let other = parse_with(&mut symbols, &context(), text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(other, first, "{text} against {}", group[0]);
        }
    }
}

#[test]
fn different_meanings_keep_different_cells() {
    for (a, b) in [
        ("//a[1]", "/descendant::a[1]"),
        ("//a[last()]", "(//a)[last()]"),
        ("//a[position() = 2]", "/descendant::a[position() = 2]"),
        ("(a/b)[1]", "a/b[1]"),
        ("a - b", "a-b"),
        ("--a", "a"),
        ("a = b = c", "a = (b = c)"),
        ("1 - 2 - 3", "1 - (2 - 3)"),
        ("a/self::node()[1]", "a[1]"),
    ] {
        let mut symbols = Symbols::default();
        let (left, right) = (parse_with(&mut symbols, &context(), a), parse_with(&mut symbols, &context(), b));
        assert_ne!(left.unwrap().0, right.unwrap().0, "{a} against {b}");
    }
}

#[test]
fn constants_are_slots_in_order_of_appearance() {
    let (cells, constants, _) = parse_with(&mut Symbols::default(), &context(), "a[@k='x' and b > 2]").unwrap();
    assert_eq!(constants, [Constant::String("x".into()), Constant::Number(2.0)]);
    let mut symbols = Symbols::default();
    let first = parse_with(&mut symbols, &context(), "a[@k='x' and b > 2]").unwrap();
    let second = parse_with(&mut symbols, &context(), "a[@k='other' and b > -17.5]").unwrap();
    assert_eq!(first.0, second.0);
    assert_eq!(cells.len(), first.0.len());
}

#[test]
fn canonical_text() {
    for (text, expected) in [
        ("/child::a//b[ 2 ]/attribute::c", "/a//b[2]/@c"),
        ("descendant::a", ".//a"),
        ("//a[1]", "//a[1]"),
        ("/descendant::a[1]", "/descendant::a[1]"),
        ("//.", "//."),
        (".//.", ".//."),
        ("a/..//b", "a/..//b"),
        ("//@k", "//@k"),
        ("//..", "//.."),
        ("(a|b)[1]/c", "(a | b)[1]/c"),
        ("id('x')/a", "id(\"x\")/a"),
        ("id('x')//a[2]", "id(\"x\")//a[2]"),
        ("(a | b)/c", "(a | b)/c"),
        ("(1 + 2) * 3 - -4", "(1 + 2) * 3 - -4"),
        ("-(a | b)", "-a | b"),
        ("-(a + b)", "-(a + b)"),
        ("1 = (2 = 3)", "1 = (2 = 3)"),
        ("'say \"x\"' = a", "a = 'say \"x\"'"),
        ("p:a/p:*/@q:k", "p:a/p:*/@q:k"),
        ("processing-instruction('x')", "processing-instruction(\"x\")"),
        ("ancestor::node()/following-sibling::text()", "ancestor::node()/following-sibling::text()"),
        ("concat('a', substring(b, 2))", "concat(\"a\", substring(b, 2))"),
        ("@xml:lang", "@xml:lang"),
    ] {
        assert_eq!(canonical(text), expected);
    }
    let mut symbols = Symbols::default();
    let default = StaticContext { namespaces: &[("", "urn:d")], ..StaticContext::default() };
    assert_eq!(parse_with(&mut symbols, &default, "/a/@k").unwrap().2, "/a/@k");
    let ignoring = StaticContext { ignore_namespaces: true, ..StaticContext::default() };
    assert_eq!(parse_with(&mut symbols, &ignoring, "/x:a/y:*/@z:k").unwrap().2, "/a/*/@k");
    let mut parser = Parser::default();
    let query = parser.parse("/p:a/b", &context(), &mut symbols).unwrap();
    assert_eq!(query_text(query.query(), &[], &symbols, None), "/Q{urn:p}a/b");
}

#[test]
fn refusals_say_what_and_where() {
    use XPathErrorKind::*;
    for (text, kind, column, part) in [
        ("", Syntax, 1, "empty"),
        (" \n ", Syntax, 2, "empty"),
        ("//a[", Syntax, 5, "ends"),
        ("/a/", Syntax, 4, "ends"),
        ("a b", Syntax, 3, "`b`"),
        ("a]", Syntax, 2, "`]`"),
        ("(a", Syntax, 3, "`)`"),
        ("'abc", Syntax, 1, "no end"),
        ("a[]", Syntax, 3, "expression"),
        (".[a]", Syntax, 2, "self::node()[…]"),
        ("1e3", Syntax, 2, "`e3`"),
        ("foo::a", Syntax, 1, "axis"),
        ("a ; b", Syntax, 3, "';'"),
        ("p:", Syntax, 3, "local name"),
        ("x:a", UnboundPrefix, 1, "`x`"),
        ("@x:*", UnboundPrefix, 2, "`x`"),
        ("matches(a, 'x')", UnknownFunction, 1, "matches()"),
        ("Count(a)", UnknownFunction, 1, "count()"),
        ("p:count(a)", UnknownFunction, 1, "p:count()"),
        ("contains(a)", WrongArguments, 1, "takes 2 arguments; found 1"),
        ("true(1)", WrongArguments, 1, "takes 0"),
        ("concat('a')", WrongArguments, 1, "at least 2"),
        ("substring('a',1,2,3)", WrongArguments, 1, "2 to 3"),
        ("count('x')", Type, 7, "node-set"),
        ("sum(1)", Type, 5, "number"),
        ("'a'/b", Type, 1, "string"),
        ("'a'[1]", Type, 1, "string"),
        ("'a'|b", Type, 1, "string"),
        ("a|1", Type, 3, "number"),
        ("(1 + 2)[1]", Type, 1, "number"),
        ("$x", Variable, 1, "variable"),
        ("a[@k = $x]", Variable, 8, "variable"),
        ("//*:X", NotXPath1, 3, "local-name()"),
        ("for $x in a return $x", NotXPath1, 5, "XPath 2.0"),
        ("some $x in a satisfies $x", NotXPath1, 6, "XPath 2.0"),
        ("if (a) then b else c", NotXPath1, 1, "if"),
        ("a eq 1", NotXPath1, 3, "`eq`"),
        ("1 to 3", NotXPath1, 3, "`to`"),
        ("a intersect b", NotXPath1, 3, "`intersect`"),
        ("a << b", NotXPath1, 3, "`<<`"),
        ("a || b", NotXPath1, 3, "`||`"),
        ("a ! b", NotXPath1, 3, "`!`"),
        ("(a, b)", NotXPath1, 3, "sequence"),
        ("()", NotXPath1, 2, "empty sequence"),
        ("a/string()", NotXPath1, 3, "string("),
        ("a (: comment :)", NotXPath1, 3, "comment"),
        ("element(a)", NotXPath1, 1, "element()"),
        ("Q{urn:x}a", NotXPath1, 1, "XPath 3.0"),
    ] {
        let error = refusal(text);
        assert_eq!(error.kind, kind, "{text}: {error}");
        let line_column = if text == " \n " { (2, 2) } else { (1, column) };
        assert_eq!((error.line, error.column), line_column, "{text}: {error}");
        assert!(error.message.contains(part), "{text}: {error}");
    }
    let error = refusal("//a[é =\n  'x' ++ 1]");
    assert_eq!((error.line, error.column, error.offset), (2, 8, 16));
}

#[test]
fn limits_are_errors_not_crashes() {
    let deep = |count: usize| format!("{}a{}", "(".repeat(count), ")".repeat(count));
    assert_eq!(refusal(&deep(5_000)).kind, XPathErrorKind::Limit);
    assert_eq!(refusal(&deep(500_000)).kind, XPathErrorKind::Limit);
    assert_eq!(refusal(&"a[".repeat(5_000)).kind, XPathErrorKind::Limit);
    assert_eq!(refusal(&"not(".repeat(5_000)).kind, XPathErrorKind::Limit);
    assert_eq!(refusal(&format!("1{}", " + 1".repeat(5_000))).kind, XPathErrorKind::Limit);
    assert_eq!(refusal(&format!("1{}", " = 1".repeat(5_000))).kind, XPathErrorKind::Limit);
    assert_eq!(canonical(&deep(100)), "a");
    assert_eq!(canonical(&format!("{}a", "-".repeat(5_001))), "-a");
    // Chains of `or`, `and` and `|` are as shallow as they are long.
    let long = (0..20_000).map(|number| format!("@id = '{number}'")).collect::<Vec<_>>().join(" or ");
    assert!(canonical(&format!("//a[{long}]")).len() > long.len());
    canonical(&vec!["a"; 10_000].join("|"));
    canonical(&vec!["a"; 10_000].join("/"));

    let limited = |limits: QueryLimits, text: &str| {
        let context = StaticContext { limits, ..StaticContext::default() };
        parse_with(&mut Symbols::default(), &context, text).unwrap_err()
    };
    let error = limited(QueryLimits { length_bytes: 3, ..QueryLimits::default() }, "/a/b");
    assert!(error.kind == XPathErrorKind::Limit && error.message.contains("length_bytes"));
    let error = limited(QueryLimits { depth: 2, ..QueryLimits::default() }, "a[b[c[d]]]");
    assert!(error.kind == XPathErrorKind::Limit && error.message.contains("(depth)"));
    let error = limited(QueryLimits { cells: 3, ..QueryLimits::default() }, "a/b/c/d");
    assert!(error.kind == XPathErrorKind::Limit && error.message.contains("(cells)"));
}

#[test]
fn the_deepest_expressions_fit_a_small_stack() {
    let worker = std::thread::Builder::new().stack_size(1 << 20).spawn(|| {
        let document = xpath_common::read(b"<a><a><a/></a></a>");
        for text in [
            format!("{}a{}", "a[".repeat(190), "]".repeat(190)),
            format!("{}a{}", "not(".repeat(190), ")".repeat(190)),
            format!("{}1{}", "1 + (".repeat(150), ")".repeat(150)),
            format!("{}a{}", "a[1 = 1 + -count(".repeat(35), ")]".repeat(35)),
        ] {
            xpath_common::value(&document, &text);
            canonical(&text);
        }
    });
    worker.unwrap().join().unwrap();
}

fn expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("a".to_string()),
        Just(".".to_string()),
        Just("..".to_string()),
        Just("/".to_string()),
        Just("@k".to_string()),
        Just("//b".to_string()),
        Just(".//p:c".to_string()),
        Just("'x'".to_string()),
        Just("2".to_string()),
        Just("position()".to_string()),
        Just("text()".to_string()),
        Just("*".to_string()),
    ];
    leaf.prop_recursive(5, 40, 3, |inner| {
        let pair = (inner.clone(), inner.clone());
        prop_oneof![
            (
                pair.clone(),
                prop::sample::select(vec!["or", "and", "=", "!=", "<", ">=", "+", "-", "*", "div", "|", "/", "//"])
            )
                .prop_map(|((a, b), op)| format!("{a} {op} {b}")),
            pair.clone().prop_map(|(a, b)| format!("{a}[{b}]")),
            inner.clone().prop_map(|a| format!("({a})")),
            inner.clone().prop_map(|a| format!("-{a}")),
            inner.clone().prop_map(|a| format!("not({a})")),
            inner.clone().prop_map(|a| format!("count({a})")),
            pair.clone().prop_map(|(a, b)| format!("contains({a}, {b})")),
            (
                prop::sample::select(vec![
                    "ancestor",
                    "descendant",
                    "self",
                    "following",
                    "preceding-sibling",
                    "descendant-or-self"
                ]),
                inner
            )
                .prop_map(|(axis, a)| format!("{axis}::{a}")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn canonical_text_parses_to_the_same_cells(text in expression()) {
        let mut symbols = Symbols::default();
        if let Ok(first) = parse_with(&mut symbols, &context(), &text) {
            let again = parse_with(&mut symbols, &context(), &first.2);
            prop_assert_eq!(again.as_ref().ok(), Some(&first), "{} as {}: {:?}", text, first.2, again.as_ref().err());
        }
    }

    #[test]
    fn nothing_makes_the_parser_panic(text in "[-a-z0-9 @*:/\\[\\]().,'\"$|+=!<>é]{0,40}") {
        let _ = parse_with(&mut Symbols::default(), &context(), &text);
    }
}

#[test]
fn signs_in_parentheses_count_with_those_outside() {
    for (text, canonical) in [("-(-a)", "--a"), ("--(-a)", "-a"), ("-(-(-(-a)))", "--a"), ("-(--a)", "-a")] {
        let mut symbols = Symbols::default();
        let parsed = parse_with(&mut symbols, &context(), text).expect(text);
        assert_eq!(parsed.2, canonical);
        assert_eq!(parse_with(&mut symbols, &context(), canonical).expect(canonical), parsed);
    }
}
