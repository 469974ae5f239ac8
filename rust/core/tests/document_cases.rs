//! The cases distilled from public complaints, as far as they are about reading documents; and two small suites.

mod support;

use sardonyx_core::document::{DocumentErrorKind, Limits, parse};
use serde_json::Value;
use support::{files, shared};

/// Kinds of cases whose expectations are about the document alone.
const KINDS: [&str; 6] = ["encoding", "characters", "dtd", "security", "limits", "well-formedness"];

fn base64(text: &str) -> Vec<u8> {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut out, mut bits, mut count) = (Vec::new(), 0u32, 0);
    for digit in text.bytes().filter_map(|byte| ALPHABET.iter().position(|b| *b == byte)) {
        bits = bits << 6 | digit as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    out
}

fn bytes(document: &Value) -> Vec<u8> {
    if let Some(text) = document.as_str() {
        return text.as_bytes().to_vec();
    }
    if let Some(text) = document["base64"].as_str() {
        return base64(text);
    }
    let mut out = String::new();
    for piece in document["pieces"].as_array().expect("pieces") {
        let (text, repeat) = (piece[0].as_str().expect("text"), piece[1].as_u64().expect("repeat"));
        for count in 0..repeat {
            out += &text.replace("{i}", &count.to_string());
        }
    }
    out.into_bytes()
}

#[test]
fn complaints_are_answered() {
    let Some(path) = shared("cases/cases-dev.json") else { return };
    let cases: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let mut seen = 0;
    for case in cases.as_array().unwrap().iter().filter(|case| KINDS.contains(&case["kind"].as_str().unwrap())) {
        let documents = case["documents"].as_array().unwrap();
        let expected = case["expected"]["per_document"].as_array().unwrap();
        for (number, (document, expected)) in documents.iter().zip(expected).enumerate() {
            let place = format!("{} document {}", case["id"], number + 1);
            let outcome = parse(&bytes(document), &Limits::default());
            seen += 1;
            let kind = outcome.as_ref().err().map(|error| error.kind);
            match (expected["accept"].as_bool().unwrap(), expected["error"].as_str()) {
                // The case allows a limit error for deep documents; the default limit is 1,024 levels.
                (true, _) if case["id"] == "lim-deep-nesting" && number < 2 => {
                    assert_eq!(kind, Some(DocumentErrorKind::Limit), "{place}");
                }
                (true, _) => assert_eq!(kind, None, "{place}: {:?}", outcome.err()),
                (false, Some("limit")) => assert_eq!(kind, Some(DocumentErrorKind::Limit), "{place}"),
                (false, _) => {
                    let refused = matches!(kind, Some(DocumentErrorKind::NotWellFormed | DocumentErrorKind::Encoding));
                    assert!(refused, "{place}: {kind:?}");
                }
            }
        }
    }
    assert!(seen > 50, "only {seen} documents");
}

#[test]
fn namespace_errors_are_refused() {
    let Some(folder) = shared("data/suites/namespaces-libxml2/test/namespaces") else { return };
    let paths: Vec<_> = files(&folder, ".xml").into_iter().filter(|path| !path.ends_with("err_0.xml")).collect();
    assert!(paths.len() >= 11);
    for path in paths.iter().filter(|path| path.to_string_lossy().contains("err_")) {
        let error = parse(&std::fs::read(path).unwrap(), &Limits::default()).unwrap_err();
        assert_eq!(error.kind, DocumentErrorKind::NotWellFormed, "{}: {error}", path.display());
    }
    // The first file only has an attribute whose name begins with xmlns.
    assert!(parse(&std::fs::read(folder.join("err_0.xml")).unwrap(), &Limits::default()).is_ok());
}

#[test]
fn the_tree_suite_agrees_on_what_is_an_error() {
    let Some(folder) = shared("data/suites/roxmltree-ast") else { return };
    let paths = files(&folder, ".xml");
    assert!(paths.len() >= 40);
    for path in paths {
        let expected = std::fs::read_to_string(path.with_extension("yaml")).unwrap();
        let outcome = parse(&std::fs::read(&path).unwrap(), &Limits::default());
        assert_eq!(outcome.is_err(), expected.starts_with("error"), "{}: {:?}", path.display(), outcome.err());
        let Ok(document) = outcome else { continue };
        // Elements and text nodes, in document order, are lines of the expected tree.
        let elements = expected.lines().filter(|line| line.trim_start().starts_with("- Element:")).count();
        let texts = expected.lines().filter(|line| line.trim_start().starts_with("- Text:")).count();
        let count = |kind| document.nodes().iter().filter(|node| node.kind == kind).count();
        assert_eq!(count(sardonyx_core::document::NodeKind::Element), elements, "{}", path.display());
        assert_eq!(count(sardonyx_core::document::NodeKind::Text), texts, "{}", path.display());
    }
}

/// The documents of the collection that may not be read.
const REFUSED: [&str; 3] = [
    "dblp-fragment.xml",         // uses entities of an external DTD
    "AtomSpecialCharacters.xml", // has control characters
    "7ef13a42fa7e177a.xml",      // begins with '<?xml?xml'
];

/// All other documents are accepted, and come back from their own serialization.
#[test]
fn real_documents_are_read() {
    let Some(folder) = shared("data/docs") else { return };
    let mut read = 0;
    for path in files(&folder, ".xml") {
        let input = std::fs::read(&path).unwrap();
        match parse(&input, &Limits::default()) {
            Ok(document) => {
                let text = sardonyx_core::document::serialize(&document, 0);
                let again = parse(text.as_bytes(), &Limits::default()).unwrap_or_else(|e| panic!("{path:?}: {e}"));
                assert_eq!(again.len(), document.len(), "{}", path.display());
                assert_eq!(again.string_value(0), document.string_value(0), "{}", path.display());
                read += 1;
            }
            Err(error) => {
                let name = path.file_name().unwrap().to_string_lossy();
                assert!(REFUSED.contains(&&*name), "{}: {error}", path.display());
            }
        }
    }
    assert!(read > 1300, "only {read} read");
}
