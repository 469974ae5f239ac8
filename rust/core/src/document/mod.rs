//! Documents: from bytes to a flat, read-only tree.
//!
//! The tree is in document order: a node's id is its pre-order number, an element's attributes come right after it,
//! and everything inside it is the id range up to its last descendant.
//!
//! [`parse`] reads bytes in any encoding, [`parse_str`] text; [`Parser`] does the same and keeps its scratch memory
//! between documents. [`Splitter`] cuts a large file into record documents.

mod attributes;
mod canonical;
pub(crate) mod chars;
mod declaration;
mod dtd;
mod elements;
mod encoding;
mod error;
mod expansion;
mod limits;
mod location;
mod markup;
mod names;
mod reader;
mod serialize;
mod splitter;
mod tree;

pub use canonical::canonical;
pub use encoding::decode;
pub use error::{DocumentError, DocumentErrorKind};
pub use limits::{Doctype, Limits};
pub use location::{Locator, position_of};
pub use reader::{Parser, parse, parse_str};
pub use serialize::{Serializer, push_escaped_attribute, push_escaped_text, serialize};
pub use splitter::{Record, Splitter, SplitterError, SplitterErrorKind};
pub(crate) use tree::is_same;
pub use tree::{Document, Name, NameParts, Node, NodeId, NodeKind, Scope, TreeBuilder, XML_URI, XMLNS_URI};
