//! Documents made to hurt: refused or read within bounds.

mod support;

use std::time::{Duration, Instant};

use sardonyx_core::document::{Doctype, Document, DocumentError, DocumentErrorKind, Limits, parse};
use support::{files, shared};

/// Reads a document, which must not take long.
fn bounded(input: &[u8], limits: &Limits) -> Result<Document, DocumentError> {
    let start = Instant::now();
    let outcome = parse(input, limits);
    assert!(start.elapsed() < Duration::from_secs(1), "took {:?}", start.elapsed());
    if let Ok(document) = &outcome {
        assert!(document.memory_bytes() < 64 << 20, "{} bytes", document.memory_bytes());
    }
    outcome
}

#[test]
fn known_attacks_are_refused_or_bounded() {
    let Some(folder) = shared("data/suites/entity-attacks-defusedxml") else { return };
    let paths = files(&folder, ".xml");
    assert!(paths.len() >= 10);
    for path in paths {
        let outcome = bounded(&std::fs::read(&path).unwrap(), &Limits::default());
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let expected = match name.as_str() {
            "cyclic.xml" => Some(DocumentErrorKind::NotWellFormed),
            "external.xml" | "external_file.xml" => Some(DocumentErrorKind::UnreadEntity),
            "quadratic.xml" => Some(DocumentErrorKind::Limit),
            // Small expansions and declarations without entities are honest.
            _ => None,
        };
        assert_eq!(outcome.err().map(|error| error.kind), expected, "{name}");
    }
}

#[test]
fn a_document_type_can_be_forbidden() {
    let limits = Limits { doctype: Doctype::Forbid, ..Limits::default() };
    let error = parse(b"<!DOCTYPE a [<!ENTITY e 'x'>]><a/>", &limits).unwrap_err();
    assert_eq!(error.kind, DocumentErrorKind::DoctypeForbidden);
    assert!(parse(b"<a/>", &limits).is_ok());
}

/// Entities that each use the one before ten times.
fn laughs(kind: &str, levels: usize) -> String {
    let mut text = format!("<!DOCTYPE r [<!ENTITY {kind}e0 \"lollollol\">");
    for level in 1..=levels {
        let before = format!("&e{};", level - 1).repeat(10);
        text += &format!("<!ENTITY e{level} \"{before}\">");
    }
    text
}

#[test]
fn expansion_is_bounded_wherever_it_happens() {
    let bomb = laughs("", 9);
    let long = "x".repeat(50_000);
    for text in [
        format!("{bomb}]><r>&e9;</r>"),
        format!("{bomb}]><r v='&e9;'/>"),
        format!("{bomb}<!ATTLIST r v CDATA '&e9;'>]><r/>"),
        format!("<!DOCTYPE r [<!ENTITY a '{long}'>]><r>{}</r>", "&a;".repeat(20_000)),
        format!("<!DOCTYPE r [<!ENTITY a '{long}'>]><r v='{}'/>", "&a;".repeat(20_000)),
        // A default value in every element.
        format!("<!DOCTYPE r [<!ATTLIST b v CDATA '{long}'>]><r>{}</r>", "<b/>".repeat(20_000)),
        // Many attributes with short defaults.
        format!(
            "<!DOCTYPE r [<!ATTLIST b {}>]><r>{}</r>",
            (0..900).map(|n| format!("a{n} CDATA '' ")).collect::<String>(),
            "<b/>".repeat(20_000)
        ),
        // Empty elements from entities.
        format!("<!DOCTYPE r [<!ENTITY a '{}'>]><r>{}</r>", "<b/>".repeat(10_000), "&a;".repeat(20_000)),
        format!("<!DOCTYPE r [<!ENTITY % p '{}'>{}]><r/>", " ".repeat(50_000), "%p;".repeat(20_000)),
    ] {
        let error = bounded(text.as_bytes(), &Limits::default()).unwrap_err();
        assert_eq!(error.kind, DocumentErrorKind::Limit, "{error}");
    }
    assert!(bounded(format!("{}]><r>&e3;</r>", laughs("", 3)).as_bytes(), &Limits::default()).is_ok());
}

#[test]
fn long_inputs_cost_linear_time() {
    let limits = Limits { attributes: 100_000, depth: 60_000, ..Limits::default() };
    let many = |n: usize, part: &dyn Fn(usize) -> String| (0..n).map(part).collect::<String>();
    for text in [
        format!("<a {}/>", many(50_000, &|n| format!("a{n}='' "))),
        format!("<a xmlns:p='u' {}/>", many(50_000, &|n| format!("p:a{n}='' "))),
        format!("<a>{}", "<".repeat(100_000)),
        format!("<a>{}", "&".repeat(100_000)),
        format!("<a>{}</a>", "<!---->".repeat(100_000)),
        format!("<a>{}", "<!--".repeat(100_000)),
        format!("<a>{}</a>", "]]".repeat(500_000)),
        format!("<a b='{}'/>", "&lt;".repeat(100_000)),
        format!("<!DOCTYPE a [<!ELEMENT a {}", "(".repeat(500_000)),
        format!("<!DOCTYPE a [<!ENTITY e '{}'>]><a>&e;</a>", "<b>".repeat(50_000)),
        "<x>".repeat(50_000) + &"</x>".repeat(50_000),
        "\r".repeat(1_000_000),
    ] {
        // Accepted or not is not the point here.
        let _ = bounded(text.as_bytes(), &limits);
    }
}

#[test]
fn a_million_siblings_are_read() {
    let text = format!("<r>{}<k>1</k></r>", "<u>x</u>".repeat(1_000_000));
    let document = parse(text.as_bytes(), &Limits::default()).unwrap();
    assert_eq!(document.len(), 2_000_004);
}
