//! The XPath 1.0 suites of Jaxen and libxml2, and the XPath cases distilled from complaints.
#![allow(clippy::print_stdout)] // what was excluded, and why, belongs in the test's output

mod xpath_common;

use sardonyx_core::document::{Document, NodeKind};
use sardonyx_core::xpath::evaluate::{NodeRef, Value};
use sardonyx_core::xpath::parser::StaticContext;
use std::fs;
use xpath_common::{name, read, shared, value_at};

/// Assertions of Jaxen's suite outside XPath 1.0, by what they contain.
const JAXEN_EXCLUSIONS: &[(&str, &str)] = &[
    ("$", "variables: filters have none"),
    ("evaluate(", "a Jaxen extension function"),
    ("document(", "an XSLT function"),
    ("upper-case(", "a Jaxen extension function"),
    ("lower-case(", "a Jaxen extension function"),
    ("ends-with(", "a Jaxen extension function"),
];

struct Tally {
    passed: usize,
    excluded: Vec<String>,
    failed: Vec<String>,
}

impl Tally {
    fn new() -> Self {
        Tally { passed: 0, excluded: Vec::new(), failed: Vec::new() }
    }

    fn check(&mut self, holds: bool, message: impl FnOnce() -> String) {
        if holds {
            self.passed += 1;
        } else {
            self.failed.push(message());
        }
    }

    fn finish(self, suite: &str, least: usize) {
        for line in &self.excluded {
            println!("excluded from {suite}: {line}");
        }
        println!("{suite}: {} passed, {} excluded, {} failed", self.passed, self.excluded.len(), self.failed.len());
        assert!(self.failed.is_empty(), "{}", self.failed.join("\n"));
        assert!(self.passed >= least, "{suite}: only {} assertions found", self.passed);
    }
}

fn attribute<'d>(document: &'d Document, element: u32, local: &str) -> Option<&'d str> {
    document
        .attributes(element)
        .find(|id| &*document.name(*id).local == local && document.name(*id).uri.is_empty())
        .map(|id| document.string_value(id))
}

fn elements<'d>(document: &'d Document, parent: u32) -> impl Iterator<Item = u32> + 'd {
    document.children(parent).filter(|id| document.node(*id).kind == NodeKind::Element)
}

fn text_of(document: &Document, value: &Value) -> String {
    match value {
        Value::Nodes(nodes) => nodes.first().map_or(String::new(), |node| {
            if node.is_namespace() { name(document, *node) } else { document.string_value(node.id()).into() }
        }),
        other => other.to_text().unwrap_or_default(),
    }
}

/// One `test` or `valueOf` of Jaxen's suite, at one node.
fn jaxen_assertion(
    tally: &mut Tally,
    suite: (&Document, u32),
    target: &Document,
    context: &StaticContext<'_>,
    node: NodeRef,
    at: &str,
) {
    let (tests, element) = suite;
    let select = attribute(tests, element, "select").unwrap_or_default();
    if let Some((_, reason)) = JAXEN_EXCLUSIONS.iter().find(|(part, _)| select.contains(part))
        && !select.contains("'$foobar'")
    {
        tally.excluded.push(format!("{select}: {reason}"));
        return;
    }
    let found = value_at(target, select, context, node);
    if attribute(tests, element, "exception") == Some("true") {
        tally.check(found.is_err(), || format!("{at}: {select} was accepted"));
        return;
    }
    let value = match found {
        Ok(value) => value,
        Err(error) => {
            tally.failed.push(format!("{at}: {select}: {error}"));
            return;
        }
    };
    if &*tests.name(element).local == "valueOf" {
        let (got, expected) = (text_of(target, &value), tests.string_value(element));
        tally.check(got == expected, || format!("{at}: {select} is {got:?}, not {expected:?}"));
        return;
    }
    let nodes = match value {
        Value::Nodes(nodes) => nodes,
        _ => Vec::new(),
    };
    if let Some(count) = attribute(tests, element, "count") {
        let expected: usize = count.parse().unwrap();
        tally.check(nodes.len() == expected, || format!("{at}: {select} selects {} nodes, not {count}", nodes.len()));
    }
    for inner in elements(tests, element) {
        match nodes.first() {
            Some(node) => jaxen_assertion(tally, (tests, inner), target, context, *node, at),
            None => tally.failed.push(format!("{at}: {select} selects nothing")),
        }
    }
}

#[test]
fn jaxen_suite() {
    let Some(root) = shared("data/suites/xpath10-jaxen") else { return };
    let tests = read(&fs::read(root.join("xml/test/tests.xml")).unwrap());
    let mut tally = Tally::new();
    for document_element in elements(&tests, tests.root_element()) {
        let url = attribute(&tests, document_element, "url").unwrap();
        let target = read(&fs::read(root.join(url)).unwrap());
        for context_element in elements(&tests, document_element) {
            let select = attribute(&tests, context_element, "select").unwrap();
            let namespaces = tests.namespaces(context_element);
            let context = StaticContext { namespaces: &namespaces, ..StaticContext::default() };
            let Ok(Value::Nodes(nodes)) = value_at(&target, select, &context, NodeRef::ROOT) else {
                panic!("{url}: {select}")
            };
            assert!(!nodes.is_empty(), "{url}: {select} selects nothing");
            for node in nodes {
                for element in elements(&tests, context_element) {
                    jaxen_assertion(&mut tally, (&tests, element), &target, &context, node, url);
                }
            }
        }
    }
    tally.finish("Jaxen", 200);
}

/// The lines that libxml2 prints for a value, without attributes and text.
fn printed(document: &Document, value: &Value) -> Vec<String> {
    let Value::Nodes(nodes) = value else { return vec![text_of(document, value)] };
    nodes
        .iter()
        .map(|node| {
            let shown = name(document, *node);
            let id = node.id();
            if let Some(number) = node.namespace_number() {
                let (prefix, uri) = document.namespaces(id)[number];
                return format!("namespace {prefix} href={uri}");
            }
            match document.node(id).kind {
                NodeKind::Root => "/".into(),
                NodeKind::Element => {
                    let attributes: Vec<String> = document
                        .attributes(id)
                        .map(|attribute| {
                            format!("{}={}", document.name(attribute).local, document.string_value(attribute))
                        })
                        .collect();
                    ["ELEMENT ".to_string() + &shown].into_iter().chain(attributes).collect::<Vec<_>>().join(" ")
                }
                NodeKind::Attribute => format!("ATTRIBUTE {}={}", &shown[1..], document.string_value(id)),
                NodeKind::Text => "TEXT".into(),
                NodeKind::Comment => "COMMENT".into(),
                NodeKind::ProcessingInstruction => format!("PI {}", &shown[1..]),
            }
        })
        .collect()
}

/// The same lines from a result file's block.
fn expected_lines(block: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut attribute: Option<String> = None;
    let mut element = false;
    for line in block.lines().filter(|line| !line.starts_with("Object is") && !line.starts_with("Set contains")) {
        let unnumbered = line.trim_start_matches(|found: char| found.is_ascii_digit());
        if unnumbered.len() < line.len() && unnumbered.starts_with(' ') {
            let shown = unnumbered.trim();
            element = shown.starts_with("ELEMENT");
            attribute = None;
            lines.push(match shown {
                "CDATA_SECTION" => "TEXT".into(),
                shown if shown.starts_with("ELEMENT #") => format!("ELEMENT {}", unescape(&shown[8..])),
                shown => shown.to_string(),
            });
            if shown.starts_with("ATTRIBUTE ") {
                attribute = Some(String::new());
            }
        } else if let Some(name) = line.trim().strip_prefix("ATTRIBUTE ") {
            attribute = Some(format!(" {name}"));
        } else if let Some(content) = line.trim_start().strip_prefix("content=") {
            if let (Some(name), Some(last)) = (attribute.take(), lines.last_mut()) {
                last.push_str(&format!("{name}={content}"));
            }
        } else if !element && !line.trim().is_empty() && !line.trim().starts_with("TEXT") {
            lines.push(line.trim().to_string());
        }
    }
    lines
}

/// `#E6#96` and so on: bytes outside ASCII as libxml2 prints them.
fn unescape(text: &str) -> String {
    let bytes: Vec<u8> = text.split('#').skip(1).map(|hex| u8::from_str_radix(hex, 16).unwrap()).collect();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn libxml2_suite() {
    let Some(root) = shared("data/suites/xpath10-libxml2") else { return };
    let mut documents: Vec<String> = fs::read_dir(root.join("docs"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    documents.sort_by_key(|name| std::cmp::Reverse(name.len()));
    let mut tally = Tally::new();
    let mut files: Vec<_> = fs::read_dir(root.join("tests")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for file in files {
        let test = file.file_name().unwrap().to_str().unwrap().to_string();
        let Some(document) = documents.iter().find(|document| test.starts_with(document.as_str())) else {
            panic!("{test} has no document")
        };
        let target = read(&fs::read(root.join("docs").join(document)).unwrap());
        // libxml2's runner evaluates at the document element.
        let node = NodeRef::tree(target.root_element());
        let results = fs::read_to_string(root.join("result/tests").join(&test)).unwrap();
        for block in results.split("\n========================\n").filter(|block| !block.trim().is_empty()) {
            let (first, rest) = block.split_once('\n').unwrap();
            let expression = first.strip_prefix("Expression: ").unwrap_or_else(|| panic!("{test}: {first}"));
            let expression =
                if expression.contains('#') { format!("/{}", unescape(&expression[1..])) } else { expression.into() };
            match value_at(&target, &expression, &StaticContext::default(), node) {
                Ok(value) => {
                    let (mut got, mut expected) = (printed(&target, &value), expected_lines(rest));
                    if expected.iter().any(|line| line.starts_with("namespace ")) {
                        // The order of an element's namespace nodes is implementation-dependent (§5).
                        got.sort();
                        expected.sort();
                    }
                    tally.check(got == expected, || format!("{test}: {expression}: {got:?}, not {expected:?}"));
                }
                Err(error) => tally.failed.push(format!("{test}: {expression}: {error}")),
            }
        }
    }
    tally.finish("libxml2", 80);
}

/// The bytes of a case's document, which is text, base64 or a list of repeated pieces.
fn case_document(document: &serde_json::Value) -> Vec<u8> {
    if let Some(text) = document.as_str() {
        return text.as_bytes().to_vec();
    }
    if let Some(encoded) = document["base64"].as_str() {
        return decode_base64(encoded);
    }
    let pieces = document["pieces"].as_array().unwrap();
    pieces
        .iter()
        .map(|piece| piece[0].as_str().unwrap().repeat(piece[1].as_u64().unwrap() as usize))
        .collect::<String>()
        .into_bytes()
}

fn decode_base64(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bits = 0_u32;
    let mut count = 0;
    let mut bytes = Vec::new();
    for digit in text.bytes().filter(|byte| *byte != b'=') {
        bits = bits << 6 | DIGITS.iter().position(|known| *known == digit).unwrap() as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    bytes
}

#[test]
fn cases_from_complaints() {
    let Some(path) = shared("cases/cases-dev.json") else { return };
    let mut tally = Tally::new();
    let cases: serde_json::Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    for case in cases.as_array().unwrap() {
        let id = case["id"].as_str().unwrap();
        let subscriptions = case["subscriptions"].as_array().unwrap();
        if subscriptions.iter().all(|subscription| subscription["lang"] != "xpath") {
            continue;
        }
        let Some(per_document) = case["expected"]["per_document"].as_array() else {
            tally.excluded.push(format!("{id}: about delivery, not about the value of an expression"));
            continue;
        };
        for (number, expected) in per_document.iter().enumerate() {
            if expected["accept"] == false {
                continue; // a document that must be refused: no matter of XPath
            }
            let document = read(&case_document(&case["documents"][number]));
            for (index, subscription) in subscriptions.iter().enumerate() {
                if subscription["lang"] != "xpath" {
                    continue;
                }
                let text = subscription["text"].as_str().unwrap();
                let namespaces: Vec<(&str, &str)> = subscription["namespaces"]
                    .as_object()
                    .map(|map| map.iter().map(|(prefix, uri)| (prefix.as_str(), uri.as_str().unwrap())).collect())
                    .unwrap_or_default();
                let context = StaticContext { namespaces: &namespaces, ..StaticContext::default() };
                let found = value_at(&document, text, &context, NodeRef::ROOT);
                let at = format!("{id}, document {number}");
                match (&expected["registration"], &expected["results"], found) {
                    (serde_json::Value::Array(expected), _, found) => {
                        let accepted = expected[index] == "ok";
                        tally.check(found.is_ok() == accepted, || format!("{at}: {text}: accepted is not {accepted}"));
                    }
                    (_, results, Ok(value)) => {
                        let (got, expected) = (value.to_boolean(), &results[index]);
                        tally.check(*expected == got, || format!("{at}: {text} is {got}, not {expected}"));
                    }
                    (_, _, Err(error)) => tally.failed.push(format!("{at}: {text}: {error}")),
                }
            }
        }
    }
    tally.finish("cases", 200);
}
