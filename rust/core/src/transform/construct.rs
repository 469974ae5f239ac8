//! The message factory: what constructors make, and its XML text.
//!
//! Content is a list of events, so that a constructed element inside another is its events and a copied node is one
//! event; nothing is copied before the text is written.

use super::error::TransformError;
use super::value::{Atomic, AttributeName, Event, Fragment, Item, Text};
use crate::document::{Document, NodeId, NodeKind, Serializer, XML_URI};
use crate::xquery::ast::ExactName;
use foldhash::fast::FixedState;
use hashbrown::HashSet;
use std::rc::Rc;

/// Attributes that are compared one by one.
const FEW: usize = 16;

/// An element under construction.
#[derive(Debug)]
struct Open<'a> {
    attributes: Vec<AttributeName<'a>>,
    /// Local parts and URIs of the attributes, once there are many.
    names: HashSet<(&'a str, &'a str), FixedState>,
    /// Whether anything but attributes was added.
    has_content: bool,
}

/// Collects content by the rules of XQuery 1.0 §3.7.1.3.
#[derive(Debug)]
pub struct Builder<'a> {
    document: &'a Document,
    events: Vec<Event<'a>>,
    open: Vec<Open<'a>>,
    /// Whether the last item of the current enclosed expression was an atomic value.
    after_atomic: bool,
    /// How many items were added, those without text included.
    items: usize,
}

impl<'a> Builder<'a> {
    /// An empty sequence of content.
    pub fn new(document: &'a Document) -> Builder<'a> {
        Builder { document, events: Vec::new(), open: Vec::new(), after_atomic: false, items: 0 }
    }

    /// What was collected.
    pub fn into_events(self) -> Vec<Event<'a>> {
        self.events
    }

    /// How many events were collected.
    pub fn event_count(&self) -> usize {
        self.events.len()
    }

    /// How many items were added, be they nothing but an empty text.
    pub fn item_count(&self) -> usize {
        self.items
    }

    /// Begins or ends an enclosed expression: atomic values on both sides are not joined by a space.
    pub fn boundary(&mut self) {
        self.after_atomic = false;
    }

    fn content(&mut self, event: Event<'a>) {
        self.items += 1;
        if let Some(open) = self.open.last_mut() {
            open.has_content = true;
        }
        self.events.push(event);
    }

    /// Opens an element.
    pub fn start(&mut self, name: &'a ExactName, namespaces: &'a [(Box<str>, Box<str>)]) {
        self.boundary();
        self.content(Event::Start(name, namespaces));
        self.open.push(Open { attributes: Vec::new(), names: HashSet::default(), has_content: false });
    }

    /// Closes the innermost element.
    pub fn end(&mut self) {
        self.open.pop();
        self.events.push(Event::End);
        self.boundary();
    }

    /// Adds an attribute.
    ///
    /// # Errors
    /// `XQTY0024` after other content, `XQDY0025` for a second one of the same name.
    pub fn attribute(&mut self, name: AttributeName<'a>, value: Text<'a>) -> Result<(), TransformError> {
        self.boundary();
        let document = self.document;
        let (_, local, uri) = parts(document, name);
        // A constructed xml:id is a name without white space around it.
        let is_padded = |text: &str| text.starts_with(' ') || text.ends_with(' ') || text.contains("  ");
        let value = match name {
            AttributeName::Constructed(_) if local == "id" && uri == XML_URI && is_padded(value.as_str()) => {
                value.as_str().split_ascii_whitespace().collect::<Vec<_>>().join(" ").into()
            }
            _ => value,
        };
        if let Some(open) = self.open.last_mut() {
            if open.has_content {
                let message = format!("the attribute {local} comes after other content of its element");
                return Err(TransformError::dynamic("XQTY0024", message));
            }
            // Most elements have a handful of attributes; the others do not make it quadratic.
            let is_known = if open.attributes.len() < FEW {
                open.attributes.iter().any(|other| {
                    let (_, other_local, other_uri) = parts(document, *other);
                    (other_local, other_uri) == (local, uri)
                })
            } else {
                let behind = &open.attributes[open.names.len()..];
                open.names.extend(behind.iter().map(|other| {
                    let (_, other_local, other_uri) = parts(document, *other);
                    (other_local, other_uri)
                }));
                open.names.contains(&(local, uri))
            };
            if is_known {
                return Err(TransformError::dynamic("XQDY0025", format!("two attributes are named {local}")));
            }
            open.attributes.push(name);
        }
        self.items += 1;
        self.events.push(Event::Attribute(name, value));
        Ok(())
    }

    /// Adds literal or computed text.
    pub fn text(&mut self, text: Text<'a>) {
        self.boundary();
        self.items += 1;
        if !text.as_str().is_empty() {
            self.content(Event::Text(text));
        }
    }

    /// Adds a comment.
    pub fn comment(&mut self, text: &'a str) {
        self.boundary();
        self.content(Event::Comment(text));
    }

    /// Adds a processing instruction.
    pub fn processing_instruction(&mut self, target: &'a str, data: &'a str) {
        self.boundary();
        self.content(Event::ProcessingInstruction(target, data));
    }

    /// Adds an atomic value: neighbours are joined by one space.
    pub fn atomic(&mut self, value: &Atomic<'a>) {
        let text = value.to_text();
        self.items += 1;
        if self.after_atomic {
            self.content(Event::Text(Text::Borrowed(" ")));
        }
        if !text.as_str().is_empty() {
            self.content(Event::Text(text));
        }
        self.after_atomic = true;
    }

    /// Adds a copy of a node of the document.
    ///
    /// # Errors
    /// Those of [`Self::attribute`], for attributes.
    pub fn node(&mut self, node: NodeId) -> Result<(), TransformError> {
        self.boundary();
        match self.document.node(node).kind {
            NodeKind::Attribute => {
                let value = Text::Borrowed(self.document.string_value(node));
                self.attribute(AttributeName::Source(node), value)?;
            }
            NodeKind::Root => {
                for child in self.document.children(node) {
                    self.content(Event::Copy(child));
                }
            }
            _ => self.content(Event::Copy(node)),
        }
        Ok(())
    }

    /// Adds an item.
    ///
    /// # Errors
    /// Those of [`Self::attribute`], for attributes.
    pub fn item(&mut self, item: &Item<'a>) -> Result<(), TransformError> {
        match item {
            Item::Atomic(value) => self.atomic(value),
            Item::Node(node) => self.node(*node)?,
            Item::Constructed(fragment) => {
                self.boundary();
                self.items += 1;
                match fragment.events() {
                    [Event::Attribute(name, value)] => self.attribute(*name, value.clone())?,
                    events => {
                        if let Some(open) = self.open.last_mut() {
                            open.has_content |= !events.is_empty();
                        }
                        self.events.extend_from_slice(events);
                    }
                }
            }
        }
        Ok(())
    }
}

/// Prefix, local part and URI of an attribute.
fn parts<'a>(document: &'a Document, name: AttributeName<'a>) -> (&'a str, &'a str, &'a str) {
    match name {
        AttributeName::Constructed(ExactName(name)) => (&name.prefix, &name.local, &name.uri),
        AttributeName::Source(node) => {
            let name = document.name(node);
            (&name.prefix, &name.local, &name.uri)
        }
    }
}

/// The XML text of a sequence of content.
///
/// # Errors
/// `SENR0001` for an attribute that belongs to no element.
pub fn write<'a>(
    document: &'a Document,
    events: &'a [Event<'a>],
    serializer: &mut Serializer<'a>,
) -> Result<(), TransformError> {
    let mut depth = 0usize;
    for event in events {
        match event {
            Event::Start(ExactName(name), namespaces) => {
                let declared = namespaces.iter().map(|(prefix, uri)| (&**prefix, &**uri));
                serializer.start_with(&name.prefix, &name.local, &name.uri, declared);
                depth += 1;
            }
            Event::End => {
                serializer.end();
                depth -= 1;
            }
            Event::Attribute(name, value) => {
                let (prefix, local, uri) = parts(document, *name);
                if depth == 0 {
                    let message = format!("the attribute {local} belongs to no element of the result");
                    return Err(TransformError::dynamic("SENR0001", message));
                }
                serializer.attribute(prefix, local, uri, value.as_str());
            }
            Event::Text(text) => serializer.text(text.as_str()),
            Event::Copy(node) => serializer.copy(document, *node),
            Event::Comment(text) => serializer.comment(text),
            Event::ProcessingInstruction(target, data) => serializer.processing_instruction(target, data),
        }
    }
    Ok(())
}

/// A constructed node as an item.
pub fn constructed(events: Vec<Event<'_>>) -> Item<'_> {
    Item::Constructed(Rc::new(Fragment::new(events)))
}
