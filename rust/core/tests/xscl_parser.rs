//! The parser of joins: normal form, refusals with their places, limits, hostile texts.

mod xpath_common;

use proptest::prelude::*;
use sardonyx_core::document::Document;
use sardonyx_core::xpath::evaluate::{NodeRef, Value};
use sardonyx_core::xpath::parser::{QueryLimits, StaticContext as XPathContext};
use sardonyx_core::xquery::ast::Expr;
use sardonyx_core::xquery::parser::StaticContext;
use sardonyx_core::xscl::ast::{Block, JoinQuery, Normal, Operand, OperatorKind, Select};
use sardonyx_core::xscl::error::{XsclError, XsclErrorKind as Kind};
use sardonyx_core::xscl::parser::parse;
use std::fmt::Write as _;
use std::time::{Duration, Instant};
use xpath_common::{read, value_at};

const NAMESPACES: &[(&str, &str)] = &[("p", "urn:p"), ("", "urn:d")];

const EXAMPLE: &str = "SELECT *
FROM S//book->b[.//author->a][.//title->t]
     FOLLOWED BY{a = c AND t = u, 7 d}
     S//blog->x[.//author->c][.//title->u]
PUBLISH reviews
";

fn context() -> StaticContext<'static> {
    StaticContext { namespaces: NAMESPACES, limits: QueryLimits::default() }
}

fn parsed(text: &str) -> JoinQuery {
    parse(text, &context()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refusal(text: &str) -> XsclError {
    match parse(text, &context()) {
        Ok(query) => panic!("{text} was accepted: {}", shown(&query)),
        Err(error) => error,
    }
}

fn operand(operand: Operand) -> String {
    let at = format!("{}.{}", operand.at.block, operand.at.node);
    match operand.normal {
        Normal::Exact => at,
        Normal::Spaces => format!("spaces({at})"),
        Normal::Lower => format!("lower({at})"),
        Normal::SpacesLower => format!("spaces-lower({at})"),
    }
}

/// A block on one line: for each node its parent, its path, its variable.
fn shown_block(block: &Block) -> String {
    let mut text = block.stream.as_deref().map_or("-".to_owned(), str::to_owned);
    for node in &block.nodes {
        let parent = node.parent.map_or(String::new(), |parent| format!("{parent}:"));
        let variable = node.variable.as_deref().map_or(String::new(), |name| format!("->{name}"));
        write!(text, " | {parent}{}{variable}", node.path).expect("a string");
    }
    text
}

/// A query, one clause on a line.
fn shown(query: &JoinQuery) -> String {
    let mut text = match &query.select {
        Select::Roots => "*".to_owned(),
        Select::Construct { module, variables } => {
            let nodes: Vec<String> = variables.iter().map(|at| format!("{}.{}", at.block, at.node)).collect();
            format!("<> {} of {}", nodes.join(" "), module.slots)
        }
    };
    for (number, block) in query.blocks.iter().enumerate() {
        if number > 0 {
            let operator = &query.operators[number - 1];
            let kind = if operator.kind == OperatorKind::Join { "JOIN" } else { "FOLLOWED BY" };
            let equalities = operator.equalities.iter();
            let equalities: Vec<String> = equalities
                .map(|equality| format!("{} = {}", operand(equality.left), operand(equality.right)))
                .collect();
            write!(text, "\n{kind} {} in {:?}", equalities.join(", "), operator.window_us).expect("a string");
        }
        write!(text, "\n{}", shown_block(block)).expect("a string");
    }
    if let Some(name) = &query.publish {
        write!(text, "\nPUBLISH {name}").expect("a string");
    }
    text
}

#[test]
fn the_example_is_in_normal_form() {
    assert_eq!(
        shown(&parsed(EXAMPLE)),
        "*
S | //book->b | 0:.//author->a | 0:.//title->t
FOLLOWED BY 0.1 = 1.1, 0.2 = 1.2 in Some(604800000000)
S | //blog->x | 0:.//author->c | 0:.//title->u
PUBLISH reviews"
    );
}

#[test]
fn one_meaning_can_be_written_in_several_ways() {
    for group in [
        &[
            "SELECT * FROM S//a->x JOIN{x = y, 1 s} S//b->y",
            "S//a->x JOIN{x = y, 1 s} S//b->y",
            "FROM S//a->x JOIN{x = y, 1 s} S//b->y",
            "select*from S//a->x join{x=y,1s}S//b->y",
            "select * from 'S'//a AS x join { $x = $y , 1000 ms } \"S\" // b as y",
            "(:a(:b:)c:) SELECT (:'a:) * (:{:)FROM(:\":) S (::) // a -> (:x:) x JOIN{x (:,:) = y, 1 (:d:) s}S//b->y(::)",
            "S//a->x JOIN{y = x, PT1S} S//b->y",
        ][..],
        &["//a->x[b->y][c]", "//a[b->y][c]->x", "//a[b->y]->x[c]", "//a->x[./b->y and c]", "//a AS x[c and ./b->y]"],
        &["/a/b->x/@c->y", "/a/b->x[@c->y]", "/a/b->x[./@c->y]"],
        &["//a->x//b->y", "//a->x[.//b->y]"],
        &["//a->x[ b = 'p  q'  (: r :) or c ]", "//a->x[b = 'p  q' or c]"],
    ] {
        for text in group {
            assert_eq!(shown(&parsed(text)), shown(&parsed(group[0])), "{text} against {}", group[0]);
        }
    }
}

#[test]
fn blocks_become_pattern_nodes() {
    for (text, wanted) in [
        ("//a", "- | //a"),
        ("/a/b[c = 1]//d", "- | /a/b[c = 1]//d"),
        ("S/a/b->x", "S | /a/b->x"),
        ("'my stream'/a", "my stream | /a"),
        // The first step with a variable or a binding condition is the root.
        ("/a/b[c->x]/d->y", "- | /a/b | 0:./c->x | 0:./d->y"),
        ("/a/b->w/c/d->y[e->z]", "- | /a/b->w | 0:./c/d->y | 1:./e->z"),
        ("//a[b[c->x]->y]/d[1]/e->z", "- | //a | 0:./b->y | 1:./c->x | 0:./d[1]/e->z"),
        // What follows the last variable has to be there.
        ("//a->x/b//c", "- | //a[./b//c]->x"),
        ("//a[b->x]//c[2]", "- | //a[.//c[2]] | 0:./b->x"),
        ("//a[b->x/c/@d]", "- | //a | 0:./b[./c/@d]->x"),
        // Steps.
        ("//p:a->x[@p:b->y][p:*->z]", "- | //p:a->x | 0:./@p:b->y | 0:./p:*->z"),
        ("//*->x[@*->y][text()->z]", "- | //*->x | 0:./@*->y | 0:./text()->z"),
        (
            "/descendant :: a->x[self::node()->y][attribute::b->z]/descendant-or-self::*->w",
            "- | /descendant::a->x | 0:./self::node()->y | 0:./attribute::b->z | 0:./descendant-or-self::*->w",
        ),
        ("//a-b->x-y[c.d->v.w]", "- | //a-b->x-y | 0:./c.d->v.w"),
        ("//été->très", "- | //été->très"),
        // Words are names where names may stand.
        ("AS//and AS as[or->and][AS AS AS]", "AS | //and->as | 0:./or->and | 0:./AS->AS"),
        ("JOIN/FOLLOWED->BY[PUBLISH->JOIN and and->FROM]", "JOIN | /FOLLOWED->BY | 0:./PUBLISH->JOIN | 0:./and->FROM"),
        ("//SELECT[as = 1 and as->x]", "- | //SELECT[as = 1] | 0:./as->x"),
        // Conditions that bind nothing are any XPath, in their order.
        (
            "//a->x[b/..//c[last()] or not(d)][count(e) > 2]['->y']",
            "- | //a[b/..//c[last()] or not(d)][count(e) > 2]['->y']->x",
        ),
        ("//a[b = 1 and c->x and (d or e)][f]", "- | //a[b = 1 and (d or e)][f] | 0:./c->x"),
    ] {
        assert_eq!(shown(&parsed(text)), format!("*\n{wanted}"), "{text}");
    }
}

#[test]
fn positions_count_what_binding_conditions_leave() {
    for (text, wanted) in [
        ("//a[2]->x", "//a[2]->x"),
        ("//a[b->y][2]->x", "//a[b][2]->x | 0:./b->y"),
        ("//a[2][b->y]", "//a[2][b] | 0:./b->y"),
        ("//a[b AS y and c][last()]", "//a[b and c][last()] | 0:./b->y"),
        ("//a[b->y and position() < 3][c]", "//a[b and position() < 3][c] | 0:./b->y"),
        ("//a[b[c->z][1]->y][last() - 1]", "//a[b[c][1]][last() - 1] | 0:./b[c][1]->y | 1:./c->z"),
        ("//a[.//b->y/c->z/d][1]", "//a[.//b/c/d][1] | 0:.//b->y | 1:./c[./d]->z"),
        // Positions of other steps do not matter.
        ("//a[b->y][c[1]]", "//a[c[1]] | 0:./b->y"),
        ("//a[b->y][count(c[last()]) = 1]", "//a[count(c[last()]) = 1] | 0:./b->y"),
        // In a conjunction a number is a truth value.
        ("//a[2 and b->y]", "//a[boolean(2)] | 0:./b->y"),
        ("//a[count(c) and b->y]", "//a[boolean(count(c))] | 0:./b->y"),
        ("//a[2 and b->y and 0]", "//a[2 and 0] | 0:./b->y"),
        ("//a[last() and b->y]", "//a[last() and b] | 0:./b->y"),
    ] {
        assert_eq!(shown(&parsed(text)), format!("*\n- | {wanted}"), "{text}");
    }
}

#[test]
fn a_block_has_a_witness_where_its_xpath_holds() {
    let document = read(
        b"<r><a i='1'><b>1</b><c/></a><a><c><d/></c></a><a i='2'><b>2</b><b><d>3</d></b><a><b/><c/></a></a><d><a/></d></r>",
    );
    let context = XPathContext::default();
    // Whether a witness with this node exists, below it.
    fn holds(document: &Document, context: &XPathContext<'_>, block: &Block, number: u16, at: NodeRef) -> bool {
        block.nodes.iter().enumerate().filter(|(_, node)| node.parent == Some(number)).all(|(child, node)| {
            let Ok(Value::Nodes(found)) = value_at(document, &node.path, context, at) else { panic!("{}", node.path) };
            found.iter().any(|next| holds(document, context, block, child as u16, *next))
        })
    }
    let steps = ["a", "b", "c", "d", "*", "@i", "a[1]", "b[2]", "c[last()]", "a[position() > 1]"];
    let conditions = [
        "",
        "[b->?]",
        "[c->?][1]",
        "[2][b->?]",
        "[.//d->? and b]",
        "[b->? and c][last()]",
        "[b[d->?][1]]",
        "[1 and @i->?]",
    ];
    let (mut count, mut found) = (0, 0);
    for first in steps {
        for (one, two) in conditions.iter().flat_map(|one| conditions.map(|two| (one, two))) {
            for last in ["", "/b", "//d->?", "/c[1]->?[d->?]"] {
                let mut text = format!("//{first}{one}{two}{last}");
                let plain = text.replace("->?", "");
                let mut variable = 0;
                while let Some(at) = text.find('?') {
                    text.replace_range(at..at + 1, &format!("v{variable}"));
                    variable += 1;
                }
                let query = parse(&text, &StaticContext::default()).unwrap_or_else(|error| panic!("{text}: {error}"));
                let block = &query.blocks[0];
                let value = |path: &str| match value_at(&document, path, &context, NodeRef::ROOT) {
                    Ok(Value::Nodes(found)) => found,
                    other => panic!("{path}: {other:?}"),
                };
                let has_witness =
                    value(&block.nodes[0].path).iter().any(|root| holds(&document, &context, block, 0, *root));
                assert_eq!(has_witness, !value(&plain).is_empty(), "{text}: {}", shown_block(block));
                count += 1;
                found += usize::from(has_witness);
            }
        }
    }
    assert!(found > count / 10 && found < count, "{found} of {count}");
}

#[test]
fn equalities_name_nodes() {
    for (operator, wanted) in [
        ("a = c", "0.1 = 1.1"),
        ("c = a", "0.1 = 1.1"),
        ("$c=$a and a=d", "0.1 = 1.1, 0.1 = 1.2"),
        ("normalize-space(a) = c", "spaces(0.1) = 1.1"),
        ("normalize-space(normalize-space($a)) = lower-case(lower-case(c))", "spaces(0.1) = lower(1.1)"),
        (
            "lower-case(normalize-space(a)) = normalize-space(lower-case(normalize-space(c)))",
            "spaces-lower(0.1) = spaces-lower(1.1)",
        ),
    ] {
        let query = parsed(&format!("/r->b[a->a] JOIN{{{operator}, INF}} /s->x[c->c][d->d]"));
        assert_eq!(
            shown(&query),
            format!("*\n- | /r->b | 0:./a->a\nJOIN {wanted} in None\n- | /s->x | 0:./c->c | 0:./d->d"),
            "{operator}"
        );
    }
}

#[test]
fn paths_in_equalities_become_pattern_nodes() {
    let query = parsed(
        "/r->a[n->n] JOIN{a/i = b and a/i = b//j[k = 1]/@l AND lower-case($a // i) = b AND a/n = b/i, 1}
         /s->b FOLLOWED BY{a/i = c/i AND n/i = c, INF} /t->c",
    );
    assert_eq!(
        shown(&query),
        "*
- | /r->a | 0:./n->n | 0:./i | 0:.//i | 0:./n | 1:./i
JOIN 0.2 = 1.0, 0.2 = 1.1, lower(0.3) = 1.0, 0.4 = 1.2 in Some(1000000)
- | /s->b | 0:.//j[k = 1]/@l | 0:./i
FOLLOWED BY 0.2 = 2.1, 0.5 = 2.0 in None
- | /t->c | 0:./i"
    );
    // A node of the block is another one, though it has the same path: its conditions hold of it.
    let query = parsed("/r->a[i[k->k]] JOIN{a/i = b, 1} /s->b");
    assert_eq!(shown_block(&query.blocks[0]), "- | /r->a | 0:./i | 1:./k->k | 0:./i");
    // A chain compares with any block to the left.
    let query = parsed("/a->a JOIN{a = b, 1} /b->b JOIN{c = a AND b = c, 2} /c->c");
    assert_eq!(query.operators[1].equalities[0].left.at.block, 0);
    assert_eq!(query.operators[1].equalities[1].left.at.block, 1);
}

#[test]
fn windows_are_exact() {
    for (window, micros) in [
        ("0", 0),
        ("1 us", 1),
        ("1us", 1),
        ("2.5 ms", 2_500),
        ("0.000001", 1),
        (".5", 500_000),
        ("7.", 7_000_000),
        ("0.1 s", 100_000),
        ("0000000000000000000000000001.50000000000000000000000000 min", 90_000_000),
        ("1.5 h", 5_400_000_000),
        ("7 d", 604_800_000_000),
        ("0.0001220703125 d", 10_546_875),
        ("9223372036854775807 us", i64::MAX),
        ("9223372036854.775807", i64::MAX),
        ("P7D", 604_800_000_000),
        ("P1W", 604_800_000_000),
        ("P1W2DT3H4M5.000006S", 788_645_000_006),
        ("PT1H30M", 5_400_000_000),
        ("PT0S", 0),
        ("PT0.25S", 250_000),
        ("PT36H", 129_600_000_000),
    ] {
        let query = parsed(&format!("/a->a JOIN{{a = b, {window}}} /b->b"));
        assert_eq!(query.operators[0].window_us, Some(micros), "{window}");
    }
    for infinite in ["INF", "inf"] {
        let query = parsed(&format!("/a->a JOIN{{a = b, {infinite}}} /b->b"));
        assert_eq!(query.operators[0].window_us, None);
    }
    let form = "a window is a number with one of the units";
    for (window, kind, fragment) in [
        ("", Kind::Syntax, "found \"}\" where a window such as 7 d or INF is expected"),
        ("-1 s", Kind::Syntax, "can not be negative"),
        ("-P1D", Kind::Syntax, "can not be negative"),
        ("+1", Kind::Syntax, "where a window"),
        ("0.5 us", Kind::Syntax, "finer than a microsecond"),
        ("0.0000001", Kind::Syntax, "finer than a microsecond"),
        ("0.0000000000000000000000000000000000000000000000000001 d", Kind::Syntax, "finer than a microsecond"),
        ("PT0.0000001S", Kind::Syntax, "finer than a microsecond"),
        ("9223372036854775808 us", Kind::Limit, "write INF"),
        ("99999999999999999999999999999999999999999999999999999 us", Kind::Limit, "write INF"),
        ("106751992 d", Kind::Limit, "write INF"),
        ("P99999999999999999999999W", Kind::Limit, "write INF"),
        ("P106751991DT99999999H", Kind::Limit, "write INF"),
        ("1 D", Kind::Syntax, "\"D\" is no unit of time"),
        ("1 month", Kind::Syntax, "units are us, ms, s, min, h and d"),
        ("1e3", Kind::Syntax, "\"e3\" is no unit of time"),
        ("P1M", Kind::Syntax, "no fixed length"),
        ("P1Y", Kind::Syntax, "no fixed length"),
        ("P1Y2D", Kind::Syntax, "no fixed length"),
        ("P", Kind::Syntax, form),
        ("PT", Kind::Syntax, form),
        ("P1DT", Kind::Syntax, form),
        ("P1H", Kind::Syntax, form),
        ("PT1D", Kind::Syntax, form),
        ("PT1M1H", Kind::Syntax, form),
        ("PT1H1H", Kind::Syntax, form),
        ("P1.5D", Kind::Syntax, form),
        ("PT.5S", Kind::Syntax, form),
        ("PT1.S", Kind::Syntax, form),
        ("PT1.2.3S", Kind::Syntax, form),
        ("PT1", Kind::Syntax, form),
        ("PTé", Kind::Syntax, form),
        ("7days", Kind::Syntax, "\"days\" is no unit of time"),
        ("forever", Kind::Syntax, form),
        ("'7 d'", Kind::Syntax, "where a window"),
        ("7 d 2 h", Kind::Syntax, "where } is expected"),
    ] {
        let error = refusal(&format!("/a->a JOIN{{a = b, {window}}} /b->b"));
        assert_eq!(error.kind, kind, "{window}: {error}");
        assert!(error.message.contains(fragment), "{window}: {error}");
    }
}

#[test]
fn constructors_use_variables_of_all_blocks() {
    let select = |constructor: &str| {
        let text = format!("SELECT {constructor} FROM S//a->x[b->y] JOIN{{x = z, 1}} S//c->z PUBLISH n");
        shown(&parsed(&text)).lines().next().expect("a line").to_owned()
    };
    for (constructor, wanted) in [
        ("<r/>", "<>  of 0"),
        ("<r>{$z}{$x, $z}</r>", "<> 1.0 0.0 of 2"),
        ("<r>a word FROM the text {{FROM}} 'don''t {$y}</r>", "<> 0.1 of 1"),
        ("<r k='FROM {$z/@k}'><![CDATA[</r> FROM ]]><!-- FROM --><?p FROM?>{string($y)}</r>", "<> 1.0 0.1 of 2"),
        ("<r>{for $q in $y//d[. = $z/e] let $x := 1 where $q/@k return ($x, $q/string())}</r>", "<> 0.1 1.0 of 4"),
        ("<r>{for $x in $x return $x}</r>", "<> 0.0 of 2"),
        ("<r>{(: FROM :) $x/descendant-or-self::*[position() = last()][name() = 'd']}</r>", "<> 0.0 of 1"),
        ("<r a='{$z}' xmlns:q='urn:q' b='{$y}'/>", "<> 1.0 0.1 of 2"),
    ] {
        assert_eq!(select(constructor), wanted, "{constructor}");
    }
    // The slots are in the order of first use.
    let query = parsed("SELECT <r>{$y}{$x}</r> FROM //a->x[b->y]");
    let Select::Construct { module, .. } = query.select else { panic!("no constructor") };
    let Expr::Element(element) = &module.body else { panic!("no element") };
    let text = format!("{:?}", element.content);
    assert!(text.find("Variable(0)") < text.find("Variable(1)"), "{text}");
    assert!(text.contains("Variable(1)"), "{text}");
}

#[test]
fn constructors_see_variables_alone() {
    let alone = "the constructor of a join sees the nodes of its variables";
    for (constructor, kind, column, fragment) in [
        ("<r>{$q}</r>", Kind::Variable, 12, "nothing binds the variable q"),
        ("<r>{$doc}</r>", Kind::Variable, 12, "nothing binds the variable doc"),
        ("<r>{$p:x}</r>", Kind::Variable, 12, "nothing binds the variable $x"),
        ("<r>{/a}</r>", Kind::Unsupported, 12, alone),
        ("<r>{//a}</r>", Kind::Unsupported, 12, alone),
        ("<r>{/}</r>", Kind::Unsupported, 12, alone),
        ("<r>{$x[/a]}</r>", Kind::Unsupported, 15, alone),
        ("<r>{doc('u')}</r>", Kind::Unsupported, 12, "doc(): the constructor"),
        ("<r>{document('u')/a}</r>", Kind::Unsupported, 12, alone),
        ("<r>{a}</r>", Kind::Unsupported, 12, "a path that starts from no variable"),
        ("<r>{@a}</r>", Kind::Unsupported, 12, alone),
        ("<r>{.}</r>", Kind::Unsupported, 12, "the context item"),
        ("<r>{($x, a)}</r>", Kind::Unsupported, 17, alone),
        ("<r>{string()}</r>", Kind::Unsupported, 12, "string() without argument"),
        ("<r>{position()}</r>", Kind::Unsupported, 12, "position() without argument"),
        ("<r>{root($x)}</r>", Kind::Unsupported, 12, "root()"),
        ("<r>{$x/root()}</r>", Kind::Unsupported, 15, "root()"),
        ("<r>{$x/..}</r>", Kind::Unsupported, 15, "the axis parent"),
        ("<r>{$x[../a]}</r>", Kind::Unsupported, 15, "the axis parent"),
        ("<r>{$x/ancestor::a}</r>", Kind::Unsupported, 15, "the axis ancestor"),
        ("<r>{$x/following-sibling::a}</r>", Kind::Unsupported, 15, "the axis following-sibling"),
        ("<r>{$x/preceding::a}</r>", Kind::Unsupported, 15, "the axis preceding"),
        ("<r>{$x]</r>", Kind::Syntax, 14, "found \"]\" where \"}\" is expected"),
        ("<r>", Kind::Syntax, 8, "this element does not end"),
        ("<r></s>", Kind::Syntax, 13, "</s> where </r> is expected"),
        ("<r/>, <s/>", Kind::Syntax, 12, "where FROM is expected"),
        ("<r/>{$x}", Kind::Syntax, 12, "where FROM is expected"),
        ("<!-- c -->", Kind::Syntax, 8, "* or an element constructor"),
        ("element r {}", Kind::Syntax, 8, "* or an element constructor"),
        ("$x", Kind::Syntax, 8, "* or an element constructor"),
        ("x, y", Kind::Syntax, 8, "* or an element constructor"),
        ("", Kind::Syntax, 9, "* or an element constructor"),
    ] {
        let error = refusal(&format!("SELECT {constructor} FROM //a->x"));
        assert_eq!(error.kind, kind, "{constructor}: {error}");
        assert!(error.message.contains(fragment), "{constructor}: {error}");
        assert_eq!((error.line, error.column), (1, column), "{constructor}: {error}");
    }
}

#[test]
fn refusals_say_where_and_why() {
    let and = "joined by `and` alone";
    let mut wrong = Vec::new();
    for (text, kind, line, column, fragment) in [
        ("", Kind::Syntax, 1, 1, "the query ends where a block"),
        ("  (: a :) ", Kind::Syntax, 1, 11, "the query ends where a block"),
        ("//a (: b", Kind::Syntax, 1, 5, "this comment does not end"),
        ("//a['b]", Kind::Syntax, 1, 5, "this string literal does not end"),
        ("//a[b", Kind::Syntax, 1, 4, "this [ is not closed"),
        ("//a[(b]", Kind::Syntax, 1, 7, "found ] before the ( is closed"),
        ("//a]", Kind::Syntax, 1, 4, "this ] closes nothing"),
        ("//a\u{1}", Kind::Syntax, 1, 4, "none of XML"),
        // Blocks.
        ("a", Kind::Syntax, 1, 2, "/ or // after the name of a stream"),
        ("a[b]", Kind::Syntax, 1, 2, "/ or // after the name of a stream"),
        ("a:b//c", Kind::Syntax, 1, 1, "which has no colon"),
        ("''//c", Kind::Syntax, 1, 1, "the name of a stream is empty"),
        ("*//c", Kind::Syntax, 1, 1, "where a block"),
        ("SELECT * //a", Kind::Syntax, 1, 10, "where FROM is expected"),
        ("SELECT * FROM", Kind::Syntax, 1, 14, "the query ends where a block"),
        ("Select * From //a", Kind::Syntax, 1, 8, "/ or // after the name of a stream"),
        ("//a JOIN", Kind::Syntax, 1, 9, "where { is expected"),
        ("//a FOLLOWED {x = y, 1} //b", Kind::Syntax, 1, 14, "where BY is expected"),
        ("//a S//b", Kind::Syntax, 1, 5, "JOIN, FOLLOWED BY"),
        ("//a, //b", Kind::Syntax, 1, 4, "where JOIN, FOLLOWED BY, PUBLISH or the end is expected"),
        ("//a | //b", Kind::Syntax, 1, 5, "JOIN, FOLLOWED BY"),
        ("//a PUBLISH", Kind::Syntax, 1, 12, "the name of a stream"),
        ("//a PUBLISH p:q", Kind::Syntax, 1, 13, "which has no colon"),
        ("//a PUBLISH ''", Kind::Syntax, 1, 13, "the name of a stream is empty"),
        ("//a PUBLISH n JOIN", Kind::Syntax, 1, 15, "or the end is expected"),
        // Steps.
        ("//", Kind::Syntax, 1, 3, "where a step is expected"),
        ("/a/", Kind::Syntax, 1, 4, "where a step is expected"),
        ("//a->", Kind::Syntax, 1, 6, "the name of a variable"),
        ("//a->1", Kind::Syntax, 1, 6, "the name of a variable"),
        ("//a->$x", Kind::Syntax, 1, 6, "the name of a variable"),
        ("//a->p:x", Kind::Syntax, 1, 6, "which has no colon"),
        ("//a->x->y", Kind::Syntax, 1, 7, "has a variable already"),
        ("//a->x[b] AS y", Kind::Syntax, 1, 11, "has a variable already"),
        ("//a->x[b->x]", Kind::Variable, 1, 11, "the variable x is bound twice"),
        ("//a->x JOIN{x = y, 1}\n //b->y[c->x]", Kind::Variable, 2, 12, "the variable x is bound twice"),
        ("//../a->x", Kind::Unsupported, 1, 3, "go down alone"),
        ("//a->x/.", Kind::Unsupported, 1, 8, "write self::node()"),
        ("//a[.->x]", Kind::Unsupported, 1, 5, "write self::node()"),
        ("//a/parent::b->x", Kind::Unsupported, 1, 5, "the axis parent: steps of a pattern have"),
        ("//a[following-sibling::b->x]", Kind::Unsupported, 1, 5, "the axis following-sibling"),
        ("//a/foo::b", Kind::Unsupported, 1, 5, "the axis foo"),
        ("//a/comment()->x", Kind::Unsupported, 1, 5, "node types of a pattern are text() and node()"),
        ("//a/@text()", Kind::Unsupported, 1, 6, "node types of a pattern"),
        ("//a/text(b)", Kind::Syntax, 1, 10, "where ) is expected"),
        ("//q:a->x", Kind::UnboundPrefix, 1, 3, "the prefix `q` is not bound"),
        ("//a[b]/q:a->x", Kind::UnboundPrefix, 1, 8, "the prefix `q` is not bound"),
        ("//a/5", Kind::Syntax, 1, 5, "found \"5\" where a step is expected"),
        // Conditions.
        ("//a[]", Kind::Syntax, 1, 5, "found \"]\" where a condition is expected"),
        ("//a[b->x and]", Kind::Syntax, 1, 13, "found \"]\" where a condition is expected"),
        ("//a[b->x and and->y and and c]", Kind::Syntax, 1, 29, "an operator"),
        ("//a\n  [b = ]", Kind::Syntax, 2, 8, "the expression ends where"),
        ("//a->x[(: é :) b = q:c\n]", Kind::UnboundPrefix, 1, 20, "the prefix `q`"),
        ("//é[(: é\n :) foo(b)]", Kind::UnknownFunction, 2, 5, "foo() is not an XPath 1.0 function"),
        ("//a[count(1)]", Kind::Type, 1, 11, "takes a node-set"),
        ("//a[count()]", Kind::WrongArguments, 1, 5, "count()"),
        ("//a[b eq c]", Kind::Unsupported, 1, 7, "later XPath version"),
        ("//a->x[b = $x]", Kind::Variable, 1, 12, "compare them in the equalities"),
        ("//a[b->x = c]", Kind::Unsupported, 1, 10, and),
        ("//a[c = b->x]", Kind::Unsupported, 1, 7, and),
        ("//a['c' = b->x]", Kind::Unsupported, 1, 12, and),
        ("//a[b->x or c]", Kind::Unsupported, 1, 6, and),
        ("//a[b and c or d->x]", Kind::Unsupported, 1, 17, and),
        ("//a[(b->x)]", Kind::Unsupported, 1, 7, "in parentheses"),
        ("//a[b and (c->x and d)]", Kind::Unsupported, 1, 13, and),
        ("//a[not(b->x)]", Kind::Unsupported, 1, 10, "in the function call not()"),
        ("//a[count(b->x) = 1]", Kind::Unsupported, 1, 12, "in the function call count()"),
        ("//a[b[c or not(d->x)]]", Kind::Unsupported, 1, 17, and),
        ("//a[-b->x]", Kind::Unsupported, 1, 7, and),
        ("//a[b->x | c->y]", Kind::Unsupported, 1, 10, and),
        ("//a[b->x AND c]", Kind::Unsupported, 1, 10, and),
        ("//a[/b->x]", Kind::Unsupported, 1, 5, "starts from its step"),
        ("//a[//b->x]", Kind::Unsupported, 1, 5, "starts from its step"),
        ("//a[../b->x]", Kind::Unsupported, 1, 5, "go down alone"),
        ("//a[b/c[d = e->x]]", Kind::Unsupported, 1, 11, and),
        // Equalities.
        ("//a->x JOIN{x = y} //b->y", Kind::Syntax, 1, 18, "AND, or a comma and a window,"),
        ("//a->x JOIN{, 1} //b->y", Kind::Syntax, 1, 13, "where a variable is expected"),
        ("//a->x JOIN{x, 1} //b->y", Kind::Syntax, 1, 14, "a join compares with = alone"),
        ("//a->x JOIN{x != y, 1} //b->y", Kind::Syntax, 1, 15, "a join compares with = alone"),
        ("//a->x JOIN{x = 'y', 1} //b->y", Kind::Syntax, 1, 17, "where a variable is expected"),
        ("//a->x JOIN{x = y or x = y, 1} //b->y", Kind::Syntax, 1, 19, "AND, or a comma"),
        ("//a->x JOIN{upper-case(x) = y, 1} //b->y", Kind::Unsupported, 1, 13, "not upper-case()"),
        ("//a->x JOIN{lower-case(x = y), 1} //b->y", Kind::Syntax, 1, 26, "where ) is expected"),
        ("//a->x JOIN{x = z, 1} //b->y", Kind::Variable, 1, 17, "nothing binds the variable z"),
        ("//a->x JOIN{\nx/b = c/d, 1} //b->y", Kind::Variable, 2, 7, "nothing binds the variable c"),
        ("//a->x[b->z] JOIN{x = z, 1} //b->y", Kind::Variable, 1, 19, "of blocks left of the operator"),
        ("//a->x JOIN{y = z, 1} //b->y[c->z]", Kind::Variable, 1, 13, "of blocks right of the operator"),
        (
            "//a->x JOIN{x = z, 1} //b->y JOIN{x = z, 1} //c->z",
            Kind::Variable,
            1,
            17,
            "bound behind the block right of this operator",
        ),
        ("//a->x JOIN{x/b->z = y, 1} //b->y", Kind::Unsupported, 1, 16, "bind them in the block"),
        ("//a->x JOIN{x/b[c->z] = y, 1} //b->y", Kind::Unsupported, 1, 18, "bind them in the block"),
        ("//a->x JOIN{x/.. = y, 1} //b->y", Kind::Unsupported, 1, 15, "go down alone"),
        ("//a->x JOIN{x/q:b = y, 1} //b->y", Kind::UnboundPrefix, 1, 15, "the prefix `q`"),
        ("//a->x JOIN{x = y, 1 //b->y", Kind::Syntax, 1, 12, "this { is not closed"),
    ] {
        let error = refusal(text);
        if (error.kind, error.line, error.column) != (kind, line, column) || !error.message.contains(fragment) {
            wrong.push(format!("{text}: {:?} {error}", error.kind));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The error within a second, in a thread with a small stack.
fn quickly(text: String) -> Result<String, XsclError> {
    let shown: String = text.chars().take(60).collect();
    let run = move || {
        let start = Instant::now();
        let outcome = parse(&text, &context()).map(|query| format!("{} blocks", query.blocks.len()));
        (outcome, start.elapsed())
    };
    let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(run).expect("a thread");
    let (outcome, elapsed) = thread.join().expect("no panic");
    assert!(elapsed < Duration::from_secs(5), "{shown}...: {elapsed:?}");
    outcome
}

#[test]
fn hostile_texts_cost_little() {
    const MIB: usize = 1 << 20;
    for text in [
        "[".repeat(MIB),
        "(:".repeat(MIB / 2),
        format!("//a{}", "[a".repeat(MIB / 4)),
        format!("//a{}->x{}", "[a".repeat(100_000), "]".repeat(100_000)),
        format!("//a{}->x{}", "[a".repeat(300), "]".repeat(300)),
        format!("//a->x0{}", (1..400).map(|number| format!("/b->x{number}")).collect::<String>()),
        format!("//a{}", "[1]".repeat(300_000)),
        format!("//a[{}a{}]", "(".repeat(1000), ")".repeat(1000)),
        "//a:b:c:".repeat(MIB / 8),
        "é:".repeat(MIB / 3),
        "/a->x JOIN{".repeat(MIB / 16),
        format!("/a->x JOIN{{{}x", "lower-case(".repeat(90_000)),
        format!("SELECT {}", "<a>".repeat(MIB / 4)),
        format!("SELECT <a>{}", "{".repeat(MIB / 2)),
        format!("SELECT <a>{}", "{<a b='".repeat(MIB / 8)),
        format!("//a{}", "->x".repeat(50_000)),
        format!("//a[{}", "'".repeat(MIB - 10)),
        format!("/a{}", "->a/a AS ".repeat(50_000)),
        // Every level would repeat what is in it.
        {
            let literal = "x".repeat(MIB / 2);
            format!("//a{}[b->x][c = '{literal}']{}", "[a".repeat(150), "][1]".repeat(150))
        },
    ] {
        assert!(quickly(text).is_err());
    }
    // Large, and right.
    for text in [
        format!("//a->x{}", " (: ':) ".repeat(MIB / 16)),
        format!("//a[b = '{}']->x", "[".repeat(MIB - 100)),
        format!("//a{}", (0..30_000).map(|number| format!("[b->x{number}]")).collect::<String>()),
        format!("//a->x JOIN{{{}x = y, 1}} //b->y", "x = y AND ".repeat(50_000)),
        format!("//a->x JOIN{{{}x = y, 1}} //b->y", "x/c = y//d AND ".repeat(30_000)),
        format!("//a{}->x", "/a".repeat(100_000)),
        format!("//a[{}b->x]", "b and ".repeat(60_000)),
        format!(
            "//a->x0{}",
            (1..20_000).map(|number| format!(" JOIN{{x0 = x{number}, 1}} //a->x{number}")).collect::<String>()
        ),
    ] {
        let shown: String = text.chars().take(60).collect();
        if let Err(error) = quickly(text) {
            panic!("{shown}...: {error}");
        }
    }
}

#[test]
fn limits_of_the_context_hold() {
    let limited = |text: &str, limits| {
        let error = parse(text, &StaticContext { namespaces: NAMESPACES, limits }).map(|query| shown(&query));
        let error = error.expect_err("larger than the limit");
        assert_eq!(error.kind, Kind::Limit, "{text}: {error}");
        error.message
    };
    let limits = QueryLimits::default();
    let message = limited(EXAMPLE, QueryLimits { length_bytes: EXAMPLE.len() - 1, ..limits });
    assert!(message.contains("query_bytes"), "{message}");
    let message = limited(EXAMPLE, QueryLimits { cells: 30, ..limits });
    assert!(message.contains("query_parts"), "{message}");
    let message = limited("//a[b[c[d->x]]]", QueryLimits { depth: 2, ..limits });
    assert!(message.contains("query_depth"), "{message}");
    let message = limited("//a->a/b->b/c->c/d->d", QueryLimits { depth: 3, ..limits });
    assert!(message.contains("query_depth"), "{message}");
    limited("//a[(((b)))]", QueryLimits { depth: 3, ..limits });
    limited("SELECT <a><b><c/></b></a> FROM //a", QueryLimits { depth: 2, ..limits });
    assert!(
        parse(
            EXAMPLE,
            &StaticContext { namespaces: &[], limits: QueryLimits { length_bytes: EXAMPLE.len(), ..limits } }
        )
        .is_ok()
    );
}

/// Texts from which the ones below are made.
const SEEDS: &[&str] = &[
    EXAMPLE,
    "SELECT <r a='{$x}'>FROM {for $q in $y return <s>{$q/@k}</s>}</r> FROM 'S'/a/b->x[@k->y and p:c[2] and d][last()] PUBLISH n",
    "//a AS x[.//b->y (: é :)][not(c) or d = 'e'] join{normalize-space($x/f//g) = lower-case(z), PT1H30.5M} S//*->z/text()->t",
    "/a->a[b[c->c][1]] JOIN{a = d/e AND c = d, 1.5 min} //d->d FOLLOWED BY{d = f, INF} T//f->f/descendant::g[@h->h]",
];

const PIECES: &[&str] = &[
    "->",
    "->v",
    " AS w",
    "[",
    "]",
    "(",
    ")",
    "{",
    "}",
    "/",
    "//",
    ".",
    "..",
    "@",
    "*",
    "::",
    ",",
    "=",
    "$",
    "(:",
    ":)",
    "'",
    "\"",
    "and ",
    " or ",
    " AND ",
    "JOIN{",
    "FOLLOWED BY{",
    "SELECT ",
    "FROM ",
    "PUBLISH ",
    "é",
    "\u{1F600}",
    "1",
    "P1D",
    "-",
    "<",
    ">",
    "text()",
    "not(",
    "position()",
    "&",
    "",
    " ",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    /// Whatever is done to a query, it is parsed or refused at a place in it; a parsed one keeps what its tree promises.
    #[test]
    fn nothing_panics(
        seed in 0..SEEDS.len(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0_usize..6), 1..6),
    ) {
        let mut text: Vec<char> = SEEDS[seed].chars().collect();
        for (place, piece, removed) in edits {
            let at = place.index(text.len() + 1);
            let end = (at + removed).min(text.len());
            text.splice(at..end, piece.get(PIECES).chars());
        }
        let text: String = text.into_iter().collect();
        match parse(&text, &context()) {
            Ok(query) => {
                prop_assert_eq!(query.operators.len() + 1, query.blocks.len());
                for block in &query.blocks {
                    for (number, node) in block.nodes.iter().enumerate() {
                        prop_assert_eq!(node.parent.is_none(), number == 0);
                        prop_assert!(node.parent.is_none_or(|parent| usize::from(parent) < number));
                        let start = if number == 0 { "/" } else { "./" };
                        prop_assert!(node.path.starts_with(start), "{}", node.path);
                    }
                }
                for (number, operator) in query.operators.iter().enumerate() {
                    prop_assert!(!operator.equalities.is_empty());
                    for equality in &operator.equalities {
                        prop_assert!(usize::from(equality.left.at.block) <= number);
                        prop_assert_eq!(usize::from(equality.right.at.block), number + 1);
                    }
                }
            }
            Err(error) => prop_assert!(text.is_char_boundary(error.offset) && !error.message.is_empty()),
        }
    }
}
