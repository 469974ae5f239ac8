//! From what was found to notifications: their names and, if asked for, their XML.

use super::query::{Shape, Subscription};
use super::state::Found;
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
    let texts = found.documents.iter().map(|document| document.text.as_deref().unwrap_or_default());
    match &subscription.shape {
        Shape::Roots => {
            let mut out = String::with_capacity(texts.clone().map(str::len).sum::<usize>() + 20);
            out.push('<');
            out.push_str(RESULT);
            out.push('>');
            texts.for_each(|text| out.push_str(text));
            out.push_str("</");
            out.push_str(RESULT);
            out.push('>');
            Ok(out)
        }
        Shape::Constructed { module, blocks } => {
            let mut source = String::from("<r>");
            texts.for_each(|text| source.push_str(text));
            source.push_str("</r>");
            // Texts of the state were within the limits when they came; together they may be beyond.
            let limits = Limits {
                document_bytes: usize::MAX,
                depth: Limits::default().depth.max(u16::MAX as usize - 1),
                nodes: u32::MAX as usize - 1,
                text_bytes: usize::MAX,
                attributes: usize::MAX,
                name_bytes: usize::MAX,
                ..Limits::default()
            };
            let document = Parser::new(limits).parse_str(&source).map_err(|error| {
                TransformError::dynamic(
                    "SDXJ0001",
                    format!("what the state keeps of a document can not be read: {error}"),
                )
            })?;
            let roots: Vec<NodeId> = document.children(document.root_element()).collect();
            let nodes = found.nodes.iter().zip(blocks).map(|(node, block)| {
                let block = usize::from(*block);
                roots[block] + (node - found.documents[block].root)
            });
            constructed(module, &document, nodes, cost_limit)
        }
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
