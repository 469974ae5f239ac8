//! The document type declaration: what the internal subset declares (XML 1.0 §2.8, §3.2 to §4.2).
//!
//! Everything in it is checked for well-formedness; general entities and attribute types and defaults are kept.
//! Nothing outside the document is ever read.

mod cursor;
mod declarations;
mod subset;

use hashbrown::HashMap;

pub(super) use subset::parse;

type Map<V> = HashMap<Box<str>, V, foldhash::fast::RandomState>;

/// A general entity.
#[derive(Debug)]
pub(super) enum Entity {
    /// Its replacement text is known.
    Internal(Box<str>),
    /// A parsed entity outside the document.
    External,
    /// An entity of a notation.
    Unparsed,
}

/// An attribute as a DTD declares it.
#[derive(Debug)]
pub(super) struct AttributeDeclaration {
    /// Name as written.
    pub(super) name: Box<str>,
    /// Whether its type is another than CDATA.
    pub(super) tokenized: bool,
    /// Whether its type is ID.
    pub(super) is_id: bool,
    /// Its normalised default value.
    pub(super) default: Option<Box<str>>,
}

/// What a document type declaration says.
#[derive(Debug, Default)]
pub(super) struct Dtd {
    entities: Map<Entity>,
    attributes: Map<Vec<AttributeDeclaration>>,
    /// Whether declarations may lie in an external subset or parameter entity.
    unread: bool,
    standalone: bool,
}

impl Dtd {
    /// The general entity of a name.
    pub(super) fn entity(&self, name: &str) -> Option<&Entity> {
        self.entities.get(name)
    }

    /// The name and text of an internal entity.
    pub(super) fn internal(&self, name: &str) -> Option<(&str, &str)> {
        match self.entities.get_key_value(name) {
            Some((name, Entity::Internal(text))) => Some((name, text)),
            _ => None,
        }
    }

    /// The attributes declared for an element, by its name as written.
    pub(super) fn attributes(&self, element: &str) -> &[AttributeDeclaration] {
        self.attributes.get(element).map_or(&[], Vec::as_slice)
    }

    /// Whether any attribute is declared at all.
    pub(super) fn has_attributes(&self) -> bool {
        !self.attributes.is_empty()
    }

    /// Whether an entity that is not declared here may be declared where nothing is read. A standalone document
    /// says that it is not.
    pub(super) fn is_unread(&self) -> bool {
        self.unread && !self.standalone
    }
}
