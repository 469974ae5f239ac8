//! What the XPath tests share: documents, one-off evaluation, the shared folder.
#![allow(dead_code)] // each test binary uses a part
#![allow(clippy::print_stderr)] // why a test was skipped

use sardonyx_core::document::{self, Document, Limits};
use sardonyx_core::xpath::ast::{Constant, ConstantRef};
use sardonyx_core::xpath::error::XPathError;
use sardonyx_core::xpath::evaluate::{Evaluator, NodeRef, Value};
use sardonyx_core::xpath::parser::{Parser, StaticContext};
use sardonyx_core::xpath::symbols::{DocumentSymbols, Symbols};
use std::path::PathBuf;

/// No limit on costs.
pub(crate) const UNLIMITED: u64 = u64::MAX;

/// A path in the shared folder; `None`, with the reason printed, where the folder is absent.
pub(crate) fn shared(path: &str) -> Option<PathBuf> {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared"));
    if !root.is_dir() {
        eprintln!("skipped: {} is not there", root.display());
        return None;
    }
    Some(root.join(path))
}

/// Reads a document without tight limits.
pub(crate) fn read(bytes: &[u8]) -> Document {
    let limits = Limits { depth: 60_000, nodes: 64 << 20, ..Limits::default() };
    document::parse(bytes, &limits).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(bytes)))
}

/// The value of an expression at a node.
pub(crate) fn value_at(
    document: &Document,
    text: &str,
    context: &StaticContext<'_>,
    node: NodeRef,
) -> Result<Value, XPathError> {
    let mut symbols = Symbols::default();
    let mut parser = Parser::default();
    let parsed = parser.parse(text, context, &mut symbols)?;
    let constants: Vec<ConstantRef<'_>> = parsed.constants().iter().map(Constant::as_ref).collect();
    let tests = DocumentSymbols::new(document, |test| symbols.find(test));
    let value = Evaluator::new(document, &tests, UNLIMITED).value(parsed.query(), &constants, node);
    Ok(value.expect("there is no cost limit"))
}

/// The value of an expression at the document node, without namespaces.
pub(crate) fn value(document: &Document, text: &str) -> Value {
    value_at(document, text, &StaticContext::default(), NodeRef::ROOT).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// `string()` of an expression.
pub(crate) fn string(document: &Document, text: &str) -> String {
    match value(document, &format!("string({text})")) {
        Value::String(text) => text,
        other => panic!("{text}: {other:?}"),
    }
}

/// The nodes of an expression, each as a word: element, attribute and namespace names, or a node kind.
pub(crate) fn names(document: &Document, text: &str) -> Vec<String> {
    match value(document, text) {
        Value::Nodes(nodes) => nodes.into_iter().map(|node| name(document, node)).collect(),
        other => panic!("{text}: {other:?}"),
    }
}

/// A node as a word.
pub(crate) fn name(document: &Document, node: NodeRef) -> String {
    use sardonyx_core::document::NodeKind;
    if let Some(number) = node.namespace_number() {
        return format!("xmlns:{}", document.namespaces(node.id())[number].0);
    }
    let name = document.name(node.id()).qualified();
    match document.node(node.id()).kind {
        NodeKind::Root => "/".into(),
        NodeKind::Element => name,
        NodeKind::Attribute => format!("@{name}"),
        NodeKind::Text => format!("text({})", document.string_value(node.id())),
        NodeKind::Comment => "comment".into(),
        NodeKind::ProcessingInstruction => format!("?{name}"),
    }
}
