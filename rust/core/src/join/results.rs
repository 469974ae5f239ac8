//! From what was found to notifications: their names and, if asked for, their XML.

use super::query::{Shape, Subscription};
use super::state::{Found, FoundDocument};
use crate::document::{Document, Limits, NodeId, Parser, Serializer};
use crate::transform::construct::{Builder, write};
use crate::transform::error::TransformError;
use crate::transform::evaluate::{Evaluator, Focus};
use crate::transform::value::Item;
use crate::xquery::ast::Module;
use blake2::{Blake2b, Digest, digest::consts::U16};
use smallvec::smallvec;
use std::sync::Arc;

/// The element around the roots of blocks.
const RESULT: &str = "result";

/// The news that documents satisfy a join.
#[derive(Clone, Debug)]
pub struct Notification {
    /// The subscription.
    pub subscription_id: Arc<str>,
    /// The ids of the documents, one for each block.
    pub documents: Vec<Arc<str>>,
    /// Its stable name.
    pub notification_id: [u8; 16],
    /// The nodes that it is about, by number in their documents.
    pub nodes: Vec<NodeId>,
    /// Its result, if results are made.
    pub result: Option<String>,
    /// The latest timestamp of its documents.
    pub time: i64,
}

/// A hash of a subscription and of what it is told of, equal in every process and on every machine.
///
/// BLAKE2b with 128 bits over the subscription's id, and for each block stream, document id and timestamp, then the
/// nodes. Texts come after their length in bytes; a document without stream has the length 2⁶⁴ − 1 for it. Numbers
/// have 8 bytes, little endian.
pub fn notification_id(subscription_id: &str, found: &Found) -> [u8; 16] {
    let mut digest = Blake2b::<U16>::new();
    let text = |digest: &mut Blake2b<U16>, text: &str| {
        digest.update((text.len() as u64).to_le_bytes());
        digest.update(text.as_bytes());
    };
    text(&mut digest, subscription_id);
    for document in &found.documents {
        match &document.stream {
            Some(stream) => text(&mut digest, stream),
            None => digest.update(u64::MAX.to_le_bytes()),
        }
        text(&mut digest, &document.id);
        digest.update(document.time.to_le_bytes());
    }
    found.nodes.iter().for_each(|node| digest.update(u64::from(*node).to_le_bytes()));
    digest.finalize().into()
}

/// A notification's name as text.
pub fn hexadecimal(id: &[u8; 16]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The XML of a notification.
///
/// # Errors
/// If a constructor fails, or costs more than the limit.
pub fn result(subscription: &Subscription, found: &Found, cost_limit: u64) -> Result<String, TransformError> {
    let texts = || found.documents.iter().filter_map(|document| document.text.as_ref());
    match &subscription.shape {
        Shape::Roots => {
            let length: usize = texts().map(|text| text.xml.len()).sum();
            let mut out = String::with_capacity(length + 2 * RESULT.len() + 5);
            out.extend(["<", RESULT, ">"]);
            texts().for_each(|text| out.push_str(text.content()));
            out.extend(["</", RESULT, ">"]);
            Ok(out)
        }
        Shape::Constructed { module, blocks } => {
            let mut source = String::from("<r>");
            texts().for_each(|text| source.push_str(&text.xml));
            source.push_str("</r>");
            let document = Parser::new(own_limits()).parse_str(&source).map_err(|error| {
                TransformError::dynamic("SDXJ0001", format!("what is kept of a document can not be read: {error}"))
            })?;
            let roots: Vec<NodeId> = document.children(document.root_element()).collect();
            let nodes = found.nodes.iter().zip(blocks).map(|(node, block)| {
                let block = usize::from(*block);
                let FoundDocument { root, text, .. } = &found.documents[block];
                // What is wrapped comes first in the element around it.
                let wrapping = u32::from(text.as_ref().is_some_and(|text| text.is_wrapped));
                roots[block] + wrapping + (node - root)
            });
            constructed(module, &document, nodes, cost_limit)
        }
    }
}

/// Limits of documents that are made here, of documents that were within theirs.
pub(super) fn own_limits() -> Limits {
    Limits {
        document_bytes: usize::MAX,
        depth: usize::from(u16::MAX) - 1,
        attributes: usize::MAX,
        name_bytes: usize::MAX,
        text_bytes: usize::MAX,
        nodes: u32::MAX as usize - 1,
        ..Limits::default()
    }
}

fn constructed(
    module: &Module,
    document: &Document,
    nodes: impl Iterator<Item = NodeId>,
    cost_limit: u64,
) -> Result<String, TransformError> {
    let mut evaluator = Evaluator::new(document, cost_limit);
    evaluator.restart(module.slots);
    for (slot, node) in (0..).zip(nodes) {
        evaluator.bind(slot, smallvec![Item::Node(node)]);
    }
    let mut builder = Builder::new(document);
    evaluator.emit(&module.body, &Focus::node(0), &mut builder)?;
    let events = builder.into_events();
    let mut serializer = Serializer::default();
    write(document, &events, &mut serializer)?;
    Ok(serializer.into_text())
}
