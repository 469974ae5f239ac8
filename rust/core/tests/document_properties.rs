//! Properties: what is written is read back, and no input makes the reader panic.

mod support;

use proptest::prelude::*;
use sardonyx_core::document::{Document, Limits, Splitter, TreeBuilder, canonical, parse, parse_str, serialize};
use support::{files, picture, shared};

/// A piece of content, from which a tree is built.
#[derive(Clone, Debug)]
enum Piece {
    Element { name: usize, attributes: Vec<(usize, String)>, content: Vec<Piece> },
    Text(String),
    Comment(String),
    Instruction(String),
}

/// Prefix, local part, URI. One prefix always means one URI here, so that the tree can be declared at its root.
const NAMES: [(&str, &str, &str); 5] = [
    ("", "a", ""),
    ("", "b-1", ""),
    ("p", "a", "urn:p"),
    ("q", "é", "urn:q&<\""),
    ("xml", "id", "http://www.w3.org/XML/1998/namespace"),
];

fn text() -> impl Strategy<Value = String> {
    proptest::string::string_regex("[ -~\t\n\r\u{80}-\u{2FF}\u{D7FF}\u{E000}\u{FFFD}\u{1F600}]{0,12}").unwrap()
}

fn piece() -> impl Strategy<Value = Piece> {
    let leaf = prop_oneof![
        text().prop_map(Piece::Text),
        text().prop_map(|t| Piece::Comment(t.replace(['-', '\r'], ""))),
        text().prop_map(|t| Piece::Instruction(t.replace(['?', '\r'], "").trim_start().into())),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        let attributes = prop::collection::vec((0..NAMES.len(), text()), 0..4);
        (0..NAMES.len() - 1, attributes, prop::collection::vec(inner, 0..6))
            .prop_map(|(name, attributes, content)| Piece::Element { name, attributes, content })
    })
}

fn build(content: &[Piece]) -> Document {
    let mut builder = TreeBuilder::default();
    let mut scope = builder.scope();
    for (prefix, _, uri) in NAMES.iter().filter(|(prefix, ..)| !matches!(*prefix, "" | "xml")) {
        scope = builder.declare(scope, prefix, uri);
    }
    let root = builder.intern("", "root", "");
    builder.start_element(root, scope, 0);
    add(&mut builder, scope, content);
    builder.end_element();
    builder.finish()
}

fn add(builder: &mut TreeBuilder, scope: u32, content: &[Piece]) {
    for piece in content {
        match piece {
            Piece::Text(text) => builder.text(text, 0),
            Piece::Comment(text) => builder.comment(text, 0),
            Piece::Instruction(text) => {
                let target = builder.intern("", "target", "");
                builder.processing_instruction(target, text, 0);
            }
            Piece::Element { name, attributes, content } => {
                let name = builder.intern(NAMES[*name].0, NAMES[*name].1, NAMES[*name].2);
                builder.start_element(name, scope, 0);
                for (index, (name, value)) in attributes.iter().enumerate() {
                    if attributes[..index].iter().all(|(other, _)| other != name) {
                        let name = builder.intern(NAMES[*name].0, NAMES[*name].1, NAMES[*name].2);
                        builder.attribute(name, value, false, 0);
                    }
                }
                add(builder, scope, content);
                builder.end_element();
            }
        }
    }
}

/// Pieces of markup, put together at random: far more often nearly well-formed than random bytes are.
fn soup() -> impl Strategy<Value = String> {
    let parts = [
        "<a>",
        "</a>",
        "<b c='d'",
        ">",
        "/>",
        "<!--",
        "-->",
        "<![CDATA[",
        "]]>",
        "<?p",
        "?>",
        "&amp;",
        "&#65;",
        "&e;",
        "%p;",
        "<!DOCTYPE a [",
        "]>",
        "<!ENTITY e '",
        "<!ENTITY % p \"",
        "'>",
        "\">",
        "<!ATTLIST a b CDATA '",
        "<!ELEMENT a (",
        ")",
        "xmlns='u' ",
        " xmlns:p='v'",
        "<p:a ",
        "</p:a>",
        "\r\n",
        " ",
        "é",
        "x",
        "\"",
        "'",
        "<",
        "&",
        "\u{FEFF}",
        "<?xml version='1.0'?>",
    ];
    prop::collection::vec(prop::sample::select(parts.to_vec()), 0..24).prop_map(|parts| parts.concat())
}

fn survives(input: &[u8]) {
    if let Ok(document) = parse(input, &Limits::default()) {
        let again = parse_str(&serialize(&document, 0), &Limits::default()).expect("serialized text is well-formed");
        assert_eq!(picture(&again), picture(&document));
        assert_eq!(canonical(&again), canonical(&document));
        assert!(Splitter::new(input, "a", Limits::default()).count() < 1000);
    } else {
        let _ = Splitter::new(input, "a", Limits::default()).count();
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(content in prop::collection::vec(piece(), 0..6)) {
        let document = build(&content);
        let text = serialize(&document, 0);
        let again = parse_str(&text, &Limits::default()).map_err(|e| TestCaseError::fail(format!("{text}: {e}")))?;
        prop_assert_eq!(picture(&again), picture(&document));
        prop_assert_eq!(canonical(&again), canonical(&document));
    }

    #[test]
    fn random_bytes_do_no_harm(input in prop::collection::vec(any::<u8>(), 0..200)) {
        survives(&input);
    }

    #[test]
    fn random_markup_does_no_harm(input in soup()) {
        survives(input.as_bytes());
    }

    #[test]
    fn changed_documents_do_no_harm(
        seed in any::<prop::sample::Index>(),
        places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3u8), 1..4),
    ) {
        let Some(folder) = shared("data/docs/maven-pom") else { return Ok(()) };
        let paths = files(&folder, ".xml");
        let mut input = std::fs::read(seed.get(&paths)).expect("document");
        for (place, byte, change) in places {
            let at = place.index(input.len());
            match change {
                0 => input[at] = byte,
                1 => input.insert(at, byte),
                _ => input.truncate(at.max(1)),
            }
        }
        survives(&input);
    }

    /// Cutting a document into its parts gives what serializing them gives.
    #[test]
    fn records_are_the_elements(content in prop::collection::vec(piece(), 0..6)) {
        let document = build(&content);
        let text = serialize(&document, 0);
        let outermost = document.children(1).flat_map(|id| outermost(&document, id)).collect::<Vec<_>>();
        let records: Vec<_> = Splitter::new(text.as_bytes(), "b-1", Limits::default()).map(Result::unwrap).collect();
        prop_assert_eq!(records.len(), outermost.len());
        for (record, id) in records.iter().zip(outermost) {
            let expected = parse_str(&serialize(&document, id), &Limits::default()).unwrap();
            prop_assert_eq!(picture(&parse(&record.payload, &Limits::default()).unwrap()), picture(&expected));
        }
    }
}

fn outermost(document: &Document, id: u32) -> Vec<u32> {
    if &*document.name(id).local == "b-1" {
        return vec![id];
    }
    document.children(id).flat_map(|child| outermost(document, child)).collect()
}
