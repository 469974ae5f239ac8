//! Reading documents: the tree that comes out, and what is refused, case by case.

mod support;

use sardonyx_core::document::{DocumentErrorKind, Limits, Locator, NodeKind, Parser, parse, parse_str, serialize};
use std::collections::HashSet;
use support::{picture, read};

fn tree(text: &str) -> String {
    picture(&read(text).unwrap_or_else(|error| panic!("{text}: {error}")))
}

#[test]
fn trees_hold_what_the_text_says() {
    for (text, expected) in [
        ("<a/>", r#"(a())"#),
        ("<a x='1' y=\"2\">t<b/>u</a>", r#"(a{x="1", y="2"}("t", b(), "u"))"#),
        ("<?p  d ?><!--c--><a/><!--e-->", r#"(?p "d ", !"c", a(), !"e")"#),
        ("<a>x<![CDATA[<&]]>y&amp;z&#65;</a>", r#"(a("x<&y&zA"))"#),
        ("<a><![CDATA[]]></a>", "(a())"),
        ("<a>x<![CDATA[]]>y</a>", r#"(a("xy"))"#),
        ("<a>x<!--c-->y</a>", r#"(a("x", !"c", "y"))"#),
        ("<a>p\r\nq\rr&#13;\n</a>", r#"(a("p\nq\nr\r\n"))"#),
        ("<a k='p\r\nq\tr&#10;&#9;s'/>", r#"(a{k="p q r\n\ts"}())"#),
        ("<a k='&lt;>\"'/>", r#"(a{k="<>\""}())"#),
        ("<a xmlns='u' xmlns:p='v' p:k='1' k='2'><p:b/><c xmlns=''/></a>", r#"(u|a{v|k="1", k="2"}(v|b(), c()))"#),
        ("<a xml:lang='en'/>", r#"(a{http://www.w3.org/XML/1998/namespace|lang="en"}())"#),
        ("<a xmlns:x='u'><x:b/><x:b xmlns:x='v'/><x:b/></a>", "(a(u|b(), v|b(), u|b()))"),
        ("<a><?x?><?y \r\n z\r\n?></a>", r#"(a(?x "", ?y "z\n"))"#),
        ("<!DOCTYPE a [<!ENTITY e '<b>x</b>y'>]><a>1&e;2</a>", r#"(a("1", b("x"), "y2"))"#),
        ("<!DOCTYPE a [<!ENTITY e 'p\r\nq&#13;\n'>]><a k='&e;'>&e;</a>", r#"(a{k="p q  "}("p\nq\r\n"))"#),
        ("<!DOCTYPE a [<!ENTITY e '&#xFEFF;x'>]><a>&e;</a>", r#"(a("\u{feff}x"))"#),
        ("<!DOCTYPE a [<!ATTLIST a k NMTOKENS #IMPLIED>]><a k='  p \n q  '/>", r#"(a{k="p q"}())"#),
        ("<!DOCTYPE a [<!ATTLIST a k CDATA 'd' l (x|y) ' y '>]><a/>", r#"(a{k="d", l="y"}())"#),
        ("<!DOCTYPE a [<!ATTLIST a xmlns CDATA 'u' xmlns:p CDATA #FIXED 'v'>]><a><p:b/></a>", "(u|a(v|b()))"),
        ("<!DOCTYPE a [<!ENTITY % p '<!ENTITY e \"x\">'>%p;<!ENTITY e 'y'>]><a>&e;</a>", r#"(a("x"))"#),
        ("<?xml version='1.7'?><a/>", "(a())"),
        ("\u{FEFF}<a/>", "(a())"),
    ] {
        assert_eq!(tree(text), expected, "{text}");
    }
}

#[test]
fn identifiers_are_marked() {
    let document = read("<!DOCTYPE a [<!ATTLIST a i ID #IMPLIED j CDATA #IMPLIED>]><a i=' x ' j='y'/>").unwrap();
    let ids: Vec<&str> =
        document.attributes(1).filter(|at| document.node(*at).is_id).map(|at| document.string_value(at)).collect();
    assert_eq!(ids, ["x"]);
}

#[test]
fn what_is_not_well_formed_is_refused_where_it_is() {
    for (text, line, column, part) in [
        ("", 1, 1, "no element"),
        (" \n", 2, 1, "no element"),
        ("<a/><b/>", 1, 5, "second document element"),
        ("<a/>x", 1, 5, "outside"),
        ("<a/>&#32;", 1, 5, "outside"),
        ("<a/><![CDATA[]]>", 1, 5, "outside"),
        ("x<a/>", 1, 1, "outside"),
        ("<a>\n<b>\r\n</a></b>", 3, 1, "'</b>' expected"),
        ("<a>", 1, 4, "'</a>' expected"),
        ("</a>", 1, 1, "no start tag"),
        ("<a></a\u{e9}>", 1, 4, "'</a>' expected"),
        ("<a></a x='1'>", 1, 4, "'>' expected"),
        ("<a", 1, 3, "not closed"),
        ("<a k='1'", 1, 9, "not closed"),
        ("<a k='1", 1, 7, "not closed"),
        ("<a / >", 1, 4, "qualified name"),
        ("<a b=c/>", 1, 6, "quoted"),
        ("<a b/>", 1, 5, "'='"),
        ("<a b='1'c='2'/>", 1, 9, "white space"),
        ("<a b='1' b='2'/>", 1, 10, "twice"),
        ("<a b='<'/>", 1, 7, "'&lt;'"),
        ("<a b='&'/>", 1, 4, "'&amp;'"),
        ("<1a/>", 1, 2, "qualified name"),
        ("< a/>", 1, 2, "qualified name"),
        ("<a:b:c xmlns:a='u'/>", 1, 2, "qualified name"),
        ("<a>]]></a>", 1, 4, "']]&gt;'"),
        ("<a>&</a>", 1, 4, "'&amp;'"),
        ("<a>&amp</a>", 1, 4, "';'"),
        ("<a>&#x110000;</a>", 1, 4, "no legal character"),
        ("<a>&nbsp;</a>", 1, 4, "not declared"),
        ("<a>&a:b;</a>", 1, 4, "name of an entity"),
        ("<a>\u{1}</a>", 1, 4, "U+0001"),
        ("<a><!-- -- --></a>", 1, 9, "'--'"),
        ("<a><!-- ---></a>", 1, 9, "comment"),
        ("<a><!-- ", 1, 4, "'-->'"),
        ("<a><?xml x?></a>", 1, 4, "XML declaration"),
        ("<a><?XmL?></a>", 1, 4, "XML declaration"),
        ("<a><?p:q?></a>", 1, 4, "colon"),
        (" <?xml version='1.0'?><a/>", 1, 2, "XML declaration"),
        ("<?xml version='1.0' encoding='UTF-8' standalone='maybe'?><a/>", 1, 56, "'yes' or 'no'"),
        ("<a><!DOCTYPE a></a>", 1, 4, "'<!DOCTYPE'"),
        ("<!doctype a><a/>", 1, 1, "'<!DOCTYPE'"),
        ("<!DOCTYPE a><!DOCTYPE a><a/>", 1, 13, "second"),
        ("<![CDATA[x]]><a/>", 1, 1, "outside"),
        ("<a><![CDATA[x</a>", 1, 4, "']]>'"),
        ("<p:a/>", 1, 1, "'p' is not declared"),
        ("<a p:k='1'/>", 1, 4, "'p' is not declared"),
        ("<a xmlns:p=''/>", 1, 4, "no namespace"),
        ("<a xmlns:xmlns='u'/>", 1, 4, "'xmlns'"),
        ("<a xmlns:xml='u'/>", 1, 4, "'xml'"),
        ("<a xmlns:p='http://www.w3.org/XML/1998/namespace'/>", 1, 4, "'xml'"),
        ("<a xmlns='http://www.w3.org/2000/xmlns/'/>", 1, 4, "may not be declared"),
        ("<xmlns:a/>", 1, 1, "reserved"),
        ("<a xmlns:p='u' xmlns:q='u' p:k='' q:k=''/>", 1, 1, "two attributes"),
        ("<!DOCTYPE a [<!ENTITY e '<b>'>]><a>&e;</b></a>", 1, 36, "ends inside"),
        ("<!DOCTYPE a [<!ENTITY e '</a>'>]><a>&e;", 1, 37, "in the entity"),
        ("<!DOCTYPE a [<!ENTITY e '&e;'>]><a>&e;</a>", 1, 36, "contains itself"),
        ("<!DOCTYPE a [<!ENTITY e '&f;'><!ENTITY f '&e;'>]><a k='&e;'/>", 1, 53, "contains itself"),
        ("<!DOCTYPE a [<!ENTITY e '&#60;b'>]><a k='&e;'/>", 1, 39, "'<' found"),
        ("<!DOCTYPE a [<!ENTITY % e '%e;'>]><a/>", 1, 27, "parameter"),
        ("<!DOCTYPE a [<!ENTITY e SYSTEM 'x' NDATA n>]><a>&e;</a>", 1, 49, "unparsed"),
        ("<!DOCTYPE a [<!ENTITY lt 'x'>]><a/>", 1, 26, "predefined"),
        ("<!DOCTYPE a [<!ELEMENT a (b,c|d)>]><a/>", 1, 30, "separator"),
        ("<!DOCTYPE a [<!ELEMENT a (#PCDATA|b)>]><a/>", 1, 37, "'*'"),
        ("<!DOCTYPE a [<!ATTLIST a k TEXT 'x'>]><a/>", 1, 28, "type"),
        ("<!DOCTYPE a [<![INCLUDE[]]>]><a/>", 1, 14, "conditional"),
        ("<!DOCTYPE a [<!ATTLIST a k CDATA '<'>]><a/>", 1, 37, "'<' found"),
        // What the tokenizer alone would let pass, or would report elsewhere.
        ("\u{FEFF}\u{FEFF}<a/>", 1, 1, "outside"),
        ("<?xml?><a/>", 1, 1, "XML declaration"),
        ("<?xml version='1.0'", 1, 1, "not closed"),
        ("<!DOCTYPE>", 1, 10, "white space"),
        ("<!DOCTYPE a [", 1, 14, "']'"),
        ("<!ELEMENT a ANY><a/>", 1, 1, "'<!DOCTYPE'"),
        ("<a k='1><b c='2'/></a>", 1, 9, "'&lt;'"),
        ("<a b='1'/ >", 1, 9, "white space"),
        ("<a></a\"></a>", 1, 4, "not closed"),
        ("<a><!--></a>", 1, 4, "'-->'"),
        ("<a>\u{e9}<b", 1, 7, "not closed"),
    ] {
        let error = read(text).err().unwrap_or_else(|| panic!("accepted: {text}"));
        assert_eq!(error.kind, DocumentErrorKind::NotWellFormed, "{text}: {error}");
        assert_eq!((error.line, error.column), (line, column), "{text}: {error}");
        assert!(error.message.contains(part), "{text}: {error}");
    }
}

#[test]
fn texts_outside_the_document_are_an_error_of_their_own() {
    for text in [
        "<!DOCTYPE a [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><a>&e;</a>",
        "<!DOCTYPE a [<!ENTITY e SYSTEM 'http://127.0.0.1/'>]><a>&e;</a>",
        "<!DOCTYPE a SYSTEM 'x.dtd'><a>&e;</a>",
        "<!DOCTYPE a [<!ENTITY % p SYSTEM 'x'>%p;<!ENTITY e 'y'>]><a>&e;</a>",
    ] {
        assert_eq!(read(text).unwrap_err().kind, DocumentErrorKind::UnreadEntity, "{text}");
    }
    // In attribute values they are not well formed (§3.1, No External Entity References).
    let text = "<!DOCTYPE a [<!ENTITY e SYSTEM 'http://127.0.0.1/'>]><a k='&e;'/>";
    assert_eq!(read(text).unwrap_err().kind, DocumentErrorKind::NotWellFormed);
    // A standalone document says that nothing outside matters.
    let text = "<?xml version='1.0' standalone='yes'?><!DOCTYPE a SYSTEM 'x.dtd'><a>&e;</a>";
    assert_eq!(read(text).unwrap_err().kind, DocumentErrorKind::NotWellFormed);
    assert!(read("<!DOCTYPE a SYSTEM 'x.dtd' [<!ENTITY e SYSTEM 'y'>]><a/>").is_ok());
}

#[test]
fn each_limit_has_its_error() {
    let limits = || Limits { entity_floor_bytes: 0, ..Limits::default() };
    let entities = "<!DOCTYPE a [<!ENTITY e 'xxxxxxxxxx'><!ENTITY f '&e;&e;'><!ENTITY g '&f;&f;'>]>";
    let cases = [
        ("document_bytes", Limits { document_bytes: 3, ..limits() }, "<a/>".to_string()),
        ("depth", Limits { depth: 2, ..limits() }, "<a><a><a/></a></a>".into()),
        ("attributes", Limits { attributes: 1, ..limits() }, "<a b='' c=''/>".into()),
        ("attributes", Limits { attributes: 1, ..limits() }, "<a xmlns='u' c=''/>".into()),
        ("name_bytes", Limits { name_bytes: 3, ..limits() }, "<abcd/>".into()),
        ("name_bytes", Limits { name_bytes: 3, ..limits() }, "<a abcd=''/>".into()),
        ("text_bytes", Limits { text_bytes: 3, ..limits() }, "<a>ab<![CDATA[cd]]></a>".into()),
        ("text_bytes", Limits { text_bytes: 3, ..limits() }, "<a k='abcd'/>".into()),
        ("text_bytes", Limits { text_bytes: 3, ..limits() }, "<a k='&lt;bcd'/>".into()),
        ("text_bytes", Limits { text_bytes: 3, ..limits() }, "<a><!--abcd--></a>".into()),
        ("text_bytes", Limits { text_bytes: 3, ..limits() }, "<a><?p abcd?></a>".into()),
        ("nodes", Limits { nodes: 3, ..limits() }, "<a><b/>x<c/></a>".into()),
        ("entity_amplification", Limits { entity_amplification: 0, ..limits() }, format!("{entities}<a>&e;</a>")),
        ("entity_bytes", Limits { entity_bytes: 20, ..limits() }, format!("{entities}<a>&e;&e;&e;</a>")),
        ("entity_depth", Limits { entity_depth: 2, ..limits() }, format!("{entities}<a>&g;</a>")),
        ("entity_depth", Limits { entity_depth: 2, ..limits() }, format!("{entities}<a k='&g;'/>")),
    ];
    for (setting, limits, text) in cases {
        let error = parse_str(&text, &limits).err().unwrap_or_else(|| panic!("{setting}: accepted {text}"));
        assert_eq!((error.kind, error.setting), (DocumentErrorKind::Limit, Some(setting)), "{error}");
        assert!(error.message.contains(setting), "{error}");
        assert!(error.line > 0, "{error}");
    }
    let text = "<a><a><b c='abc'>abc</b></a></a>";
    let exact = Limits { document_bytes: text.len(), depth: 3, attributes: 1, nodes: 6, text_bytes: 3, ..limits() };
    assert!(parse_str(text, &exact).is_ok());
}

#[test]
fn a_deep_document_is_read_where_the_limit_allows() {
    let text = "<x>".repeat(60_000) + &"</x>".repeat(60_000);
    let document = parse_str(&text, &Limits { depth: 65_534, ..Limits::default() }).unwrap();
    assert_eq!(document.len(), 60_001);
    assert_eq!(read(&text).unwrap_err().setting, Some("depth"));
    assert_eq!(serialize(&document, 0).len(), text.len() - 3);
}

#[test]
fn a_parser_is_used_again_after_an_error() {
    let mut parser = sardonyx_core::document::Parser::new(Limits::default());
    assert!(parser.parse(b"<p:a xmlns:p='u' k='1'><b>").is_err());
    assert_eq!(picture(&parser.parse(b"<p:a xmlns:p='v' k='2'/>").unwrap()), r#"(v|a{k="2"}())"#);
    assert!(parser.parse(b"<p:a k='1'/>").is_err());
}

#[test]
fn places_are_named() {
    let text = "<a xmlns:p='u'>\r\nx<b k='1'/>\ry<b>z</b><p:c/><!--c--><?t d?></a>";
    let document = read(text).unwrap();
    let paths: Vec<String> = {
        let mut locator = Locator::new(&document, "");
        (0..document.len() as u32).map(|id| locator.path(id)).collect()
    };
    let expected = [
        "/",
        "/a",
        "/a/text()[1]",
        "/a/b[1]",
        "/a/b[1]/@k",
        "/a/text()[2]",
        "/a/b[2]",
        "/a/b[2]/text()",
        "/a/p:c",
        "/a/comment()",
        "/a/processing-instruction('t')",
    ];
    assert_eq!(paths, expected);
    let lines: Vec<usize> = [1, 3, 4, 6].map(|id| Locator::new(&document, text).line(id)).into();
    assert_eq!(lines, [1, 2, 2, 3]);
    assert_eq!(&text[document.node(4).offset as usize..][..5], "k='1'");
}

#[test]
fn parts_are_serialized_on_their_own() {
    let document =
        read("<a xmlns='u' xmlns:p='v'><p:b k='&lt;&quot;&#10;' p:l=''>x&amp;&gt;&#13;<c xmlns=''/></p:b></a>")
            .unwrap();
    let of = |local: &str| {
        let id = (0..document.len() as u32).find(|id| &*document.name(*id).local == local).unwrap();
        serialize(&document, id)
    };
    assert_eq!(
        of("b"),
        "<p:b xmlns=\"u\" xmlns:p=\"v\" k=\"&lt;&quot;&#10;\" p:l=\"\">x&amp;&gt;&#13;<c xmlns=\"\"/></p:b>"
    );
    assert_eq!(of("c"), "<c xmlns:p=\"v\"/>");
    assert_eq!(of("k"), "k=\"&lt;&quot;&#10;\"");
    let whole = serialize(&document, 0);
    assert_eq!(picture(&read(&whole).unwrap()), picture(&document));
}

#[test]
fn text_input_ignores_the_declared_encoding() {
    let text = "<?xml version='1.0' encoding='x-unknown'?><a>é</a>";
    assert_eq!(tree(text), r#"(a("é"))"#);
    assert_eq!(parse(text.as_bytes(), &Limits::default()).unwrap_err().kind, DocumentErrorKind::Encoding);
}

#[test]
fn entity_nodes_carry_the_offset_of_the_reference() {
    let text = "<!DOCTYPE a [<!ENTITY e '<b k=\"1\">x</b>'>]><a>&e;</a>";
    let document = read(text).unwrap();
    let at = text.rfind("&e;").unwrap() as u32;
    for (id, node) in document.nodes().iter().enumerate().skip(2) {
        assert_eq!(node.offset, at, "node {id}");
    }
    assert_eq!(document.node(1).kind, NodeKind::Element);
}

/// Names that mean the same have one number, whatever role, scope or instruction they came with, and others do not.
#[test]
fn names_have_one_number_each() {
    let sources = [
        r#"<?a x?><a a="1" xmlns:p="u"><p:a p:a="2"/><a/></a>"#,
        r#"<a a="1"><b xmlns="v" b="1" a="3"><a/><c xmlns=""><a/><b/></c><b/></b><?b y?><b/></a>"#,
        r#"<a><a a="1"/><?a x?><b/><?c y?><c c="1"/></a>"#,
        r#"<p:a xmlns:p="u" xmlns:q="u"><q:a/><p:a xmlns:p="w" a="1" p:a="2"/><p:a/></p:a>"#,
        r#"<a xmlns="v" a="1"><b xmlns="w" b="1"/><b/><b xmlns="w"/></a>"#,
    ];
    let mut parser = Parser::new(Limits::default());
    for source in sources.iter().chain(&sources) {
        let document = parser.parse_str(source).unwrap();
        let names = document.names();
        let known: HashSet<_> = names.iter().collect();
        assert_eq!(known.len(), names.len(), "{source}: {names:?}");
        let tree = roxmltree::Document::parse(source).unwrap();
        let mut expected: Vec<(String, String)> = Vec::new();
        for node in tree.descendants() {
            let name = |tag: roxmltree::ExpandedName<'_, '_>| {
                (tag.namespace().unwrap_or("").to_owned(), tag.name().to_owned())
            };
            if node.is_element() {
                expected.push(name(node.tag_name()));
            }
            expected.extend(
                node.attributes()
                    .map(|attribute| (attribute.namespace().unwrap_or("").to_owned(), attribute.name().to_owned())),
            );
            expected.extend(node.pi().map(|instruction| (String::new(), instruction.target.to_owned())));
        }
        let found: Vec<(String, String)> = (0..document.len() as u32)
            .filter(|node| document.node(*node).name != 0)
            .map(|node| (document.name(node).uri.to_string(), document.name(node).local.to_string()))
            .collect();
        assert_eq!(found, expected, "{source}");
    }
}
