//! What the tests of documents share.
#![allow(dead_code)] // each test file is a crate of its own and uses a part

use std::path::{Path, PathBuf};

use sardonyx_core::document::{Document, DocumentError, Limits, NodeKind, parse_str};

#[allow(clippy::print_stderr)] // a skipped test must say so
/// A folder or file of the shared test data, or `None` with a reason on the standard error stream.
pub(crate) fn shared(name: &str) -> Option<PathBuf> {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")).join(name);
    if path.exists() {
        return Some(path);
    }
    eprintln!("skipped: no test data at {}", path.display());
    None
}

/// All files below a folder whose names end in `ending`, sorted.
pub(crate) fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Reads a text with default limits.
pub(crate) fn read(text: &str) -> Result<Document, DocumentError> {
    parse_str(text, &Limits::default())
}

/// A one-line picture of a tree: `a{k=v}(text, b())`, expanded names as `uri|local`.
pub(crate) fn picture(document: &Document) -> String {
    let mut out = String::new();
    draw(document, 0, &mut out);
    out
}

fn draw(document: &Document, id: u32, out: &mut String) {
    let value = document.string_value(id);
    let name = || {
        let name = document.name(id);
        if name.uri.is_empty() { name.local.to_string() } else { format!("{}|{}", name.uri, name.local) }
    };
    match document.node(id).kind {
        NodeKind::Text => *out += &format!("{value:?}"),
        NodeKind::Comment => *out += &format!("!{value:?}"),
        NodeKind::ProcessingInstruction => *out += &format!("?{} {value:?}", name()),
        NodeKind::Attribute => *out += &format!("{}={value:?}", name()),
        NodeKind::Root | NodeKind::Element => {
            *out += &name();
            let attributes: Vec<u32> = document.attributes(id).collect();
            if !attributes.is_empty() {
                out.push('{');
                separated(document, &attributes, out);
                out.push('}');
            }
            out.push('(');
            separated(document, &document.children(id).collect::<Vec<_>>(), out);
            out.push(')');
        }
    }
}

fn separated(document: &Document, ids: &[u32], out: &mut String) {
    for (index, id) in ids.iter().enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        draw(document, *id, out);
    }
}
