//! The W3C XML conformance suite: what a non-validating, namespace-aware reader must accept and refuse.

mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sardonyx_core::document::{Document, DocumentErrorKind, Limits, NodeKind, canonical, parse};
use support::shared;

/// The catalogues, each beside the documents it names.
const CATALOGUES: [&str; 8] = [
    "xmltest/xmltest.xml",
    "sun/sun-valid.xml",
    "sun/sun-invalid.xml",
    "sun/sun-not-wf.xml",
    "sun/sun-error.xml",
    "eduni/namespaces/1.0/rmt-ns10.xml",
    "eduni/namespaces/errata-1e/errata1e.xml",
    "eduni/misc/ht-bh.xml",
];

/// Documents that are not well-formed only because of what an external subset or entity says, which is never read.
const FAULT_IS_OUTSIDE: [&str; 11] = [
    "not-wf-not-sa-001", // a conditional section without end, in the external subset
    "not-wf-not-sa-003", // a fault in the external subset
    "not-wf-not-sa-004",
    "not-wf-not-sa-006",
    "not-wf-not-sa-007",
    "not-wf-not-sa-008",
    "not-wf-not-sa-009",
    "cond01", // a keyword of a conditional section, in the external subset
    "cond02",
    "decl01", // an XML declaration at the wrong place of an external parameter entity
    "dtd07",  // a text declaration without encoding, in the external subset
];

struct Case {
    id: String,
    kind: String,
    entities: String,
    /// Whether the case is about documents that follow Namespaces in XML.
    namespaces: bool,
    /// Whether the case holds for the fifth edition, which allows more names than the ones before.
    edition: bool,
    path: PathBuf,
    output: Option<PathBuf>,
}

fn suite() -> Option<PathBuf> {
    shared("data/suites/xmlconf")
}

/// A catalogue is a fragment or a document; wrapped in an element it is read by the reader under test.
fn catalogue(path: &Path) -> Vec<Case> {
    let text = std::fs::read_to_string(path).expect("catalogue");
    let start = text.find("?>").map_or(0, |at| at + 2);
    let wrapped = format!("<all>{}</all>", &text[start..]);
    let document: Document = parse(wrapped.as_bytes(), &Limits::default()).expect("catalogue is well-formed");
    let folder = path.parent().expect("folder");
    let mut cases = Vec::new();
    for (id, node) in (0..).zip(document.nodes()) {
        if node.kind != NodeKind::Element || &*document.name(id).local != "TEST" {
            continue;
        }
        let attributes: BTreeMap<&str, &str> =
            document.attributes(id).map(|at| (&*document.name(at).local, document.string_value(at))).collect();
        cases.push(Case {
            id: attributes["ID"].into(),
            kind: attributes["TYPE"].into(),
            entities: attributes.get("ENTITIES").copied().unwrap_or("none").into(),
            namespaces: attributes.get("NAMESPACE") != Some(&"no"),
            edition: attributes.get("EDITION").is_none_or(|editions| editions.contains('5')),
            path: folder.join(attributes["URI"]),
            output: attributes.get("OUTPUT").map(|output| folder.join(output)),
        });
    }
    cases
}

fn cases() -> Vec<Case> {
    let Some(suite) = suite() else { return Vec::new() };
    let cases: Vec<Case> = CATALOGUES.iter().flat_map(|name| catalogue(&suite.join(name))).collect();
    assert!(cases.len() > 500, "only {} cases found", cases.len());
    cases
}

fn outcome(case: &Case) -> Result<Document, sardonyx_core::document::DocumentError> {
    parse(&std::fs::read(&case.path).unwrap_or_else(|e| panic!("{}: {e}", case.path.display())), &Limits::default())
}

#[test]
fn well_formed_documents_are_accepted() {
    let (mut accepted, mut wrong) = (0, Vec::new());
    for case in cases().iter().filter(|case| case.kind == "valid" || case.kind == "invalid") {
        match outcome(case) {
            Ok(_) => accepted += 1,
            Err(error) if error.kind == DocumentErrorKind::UnreadEntity && case.entities != "none" => {}
            Err(_) if !case.namespaces => {}
            Err(error) => wrong.push(format!("{} ({}): {error}", case.id, case.path.display())),
        }
    }
    assert!(suite().is_none() || accepted >= 276, "only {accepted} accepted");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn documents_that_are_not_well_formed_are_refused() {
    let (mut refused, mut accepted) = (0, Vec::new());
    for case in cases().iter().filter(|case| case.kind == "not-wf" && case.edition) {
        match outcome(case) {
            Err(error) => {
                assert!((error.line, error.column) >= (1, 1), "{}: no position", case.id);
                refused += 1;
            }
            Ok(_) => accepted.push(case.id.clone()),
        }
    }
    if suite().is_some() {
        assert!(refused >= 271, "only {refused} refused");
        assert_eq!(accepted, FAULT_IS_OUTSIDE);
    }
}

/// The suite's outputs may begin with a DOCTYPE that lists notations (its second form); the rest is the first form.
fn without_notations(output: &[u8]) -> &[u8] {
    if !output.starts_with(b"<!DOCTYPE") {
        return output;
    }
    let end = output.windows(3).position(|bytes| bytes == b"]>\n").expect("end of the DOCTYPE");
    &output[end + 3..]
}

#[test]
fn canonical_forms_are_as_given() {
    let (mut equal, mut wrong) = (0, Vec::new());
    for case in cases() {
        let (Some(output), Ok(document)) = (&case.output, outcome(&case)) else { continue };
        let expected = std::fs::read(output).unwrap_or_else(|e| panic!("{}: {e}", output.display()));
        let found = canonical(&document);
        if found == without_notations(&expected) {
            equal += 1;
        } else if case.entities == "none" {
            wrong.push(format!("{}\n  found {}", case.id, String::from_utf8_lossy(&found)));
        }
    }
    assert!(suite().is_none() || equal >= 146, "only {equal} equal");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
