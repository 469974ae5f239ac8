//! The W3C XML conformance suite: what a non-validating, namespace-aware reader must accept and refuse.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sardonyx_core::document::{Document, DocumentErrorKind, Limits, NodeKind, canonical, parse};

/// The catalogues, each beside the documents it names.
const CATALOGUES: [&str; 6] = [
    "xmltest/xmltest.xml",
    "sun/sun-valid.xml",
    "sun/sun-invalid.xml",
    "sun/sun-not-wf.xml",
    "sun/sun-error.xml",
    "eduni/namespaces/1.0/rmt-ns10.xml",
];

struct Case {
    id: String,
    kind: String,
    entities: String,
    namespaces: bool,
    path: PathBuf,
    output: Option<PathBuf>,
}

fn suite() -> Option<PathBuf> {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/suites/xmlconf"));
    if path.is_dir() {
        return Some(path.to_owned());
    }
    eprintln!("skipped: the conformance suite is not at {}", path.display());
    None
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
    eprintln!("{accepted} accepted");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn documents_that_are_not_well_formed_are_refused() {
    let (mut refused, mut wrong) = (0, Vec::new());
    for case in cases().iter().filter(|case| case.kind == "not-wf") {
        match outcome(case) {
            Err(_) => refused += 1,
            Ok(_) => wrong.push(format!("{} ({}) {}", case.id, case.path.display(), case.entities)),
        }
    }
    eprintln!("{refused} refused");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn canonical_forms_are_as_given() {
    let (mut equal, mut wrong) = (0, Vec::new());
    for case in cases() {
        let (Some(output), Ok(document)) = (&case.output, outcome(&case)) else { continue };
        let expected = std::fs::read(output).unwrap_or_else(|e| panic!("{}: {e}", output.display()));
        let found = canonical(&document);
        if found == expected {
            equal += 1;
        } else {
            wrong.push(format!(
                "{}\n  expected {}\n  found    {}",
                case.id,
                String::from_utf8_lossy(&expected),
                String::from_utf8_lossy(&found)
            ));
        }
    }
    eprintln!("{equal} equal");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
