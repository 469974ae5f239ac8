//! A cache of names as written, so that the hot path neither validates nor allocates.
//!
//! Entries outlive a document: a stream of messages uses few names, and a name stays valid. What depends on the
//! document (the number of the resolved name) carries the parse number and the namespace scope it was made for.

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::chars::qname_colon;
use super::tree::{Name, is_same};

/// What a name means as an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// An ordinary name.
    Plain,
    /// `xmlns`.
    DefaultNamespace,
    /// `xmlns:prefix`.
    Namespace,
}

/// A resolved name: for which parse and scope, and its number in the document.
#[derive(Clone, Copy, Debug)]
struct Resolved {
    parse: u32,
    scope: u32,
    name: u32,
}

const UNRESOLVED: Resolved = Resolved { parse: 0, scope: 0, name: 0 };

#[derive(Debug)]
struct Entry {
    start: u32,
    end: u32,
    /// The name in the namespaces that it had last, as an attribute without prefix and otherwise; shared with the
    /// documents.
    names: [Name; 2],
    role: Role,
    /// The last element that had this name as an attribute.
    seen: u64,
    element: Resolved,
    attribute: Resolved,
}

/// The names of the documents read so far by one parser.
#[derive(Debug, Default)]
pub(super) struct NameCache {
    text: String,
    entries: Vec<Entry>,
    table: HashTable<u32>,
    /// Seeded at random, so that names cannot be chosen to collide; nothing depends on the order of the table.
    hasher: RandomState,
    parse: u32,
}

/// The hash of a name alone, without the mark that a text in a tuple gets.
#[inline]
fn hash_of(state: &RandomState, name: &str) -> u64 {
    let mut hasher = state.build_hasher();
    hasher.write(name.as_bytes());
    hasher.finish()
}

/// Names kept beyond one document, in bytes; above it the cache starts afresh.
const KEPT_BYTES: usize = 256 << 10;

impl NameCache {
    /// Starts a document.
    pub(super) fn begin(&mut self) {
        if self.text.len() > KEPT_BYTES || self.parse == u32::MAX {
            self.text.clear();
            self.entries.clear();
            self.table.clear();
            self.parse = 0;
        }
        self.parse += 1;
    }

    /// The entry of a qualified name; `None` if the text is not one.
    #[inline]
    pub(super) fn entry(&mut self, name: &str) -> Option<u32> {
        let hash = hash_of(&self.hasher, name);
        if let Some(at) = self.table.find(hash, |at| self.text(*at) == name) {
            return Some(*at);
        }
        self.add(name, hash)
    }

    #[cold]
    fn add(&mut self, name: &str, hash: u64) -> Option<u32> {
        let colon = qname_colon(name)?;
        let role = match (name, colon) {
            ("xmlns", _) => Role::DefaultNamespace,
            (_, Some(5)) if name.starts_with("xmlns") => Role::Namespace,
            _ => Role::Plain,
        };
        let start = u32::try_from(self.text.len()).ok()?;
        self.text.push_str(name);
        let name = Name::new(&name[..colon.unwrap_or(0)], &name[colon.map_or(0, |at| at + 1)..], "");
        let at = self.entries.len() as u32;
        self.entries.push(Entry {
            start,
            end: self.text.len() as u32,
            names: [name.clone(), name],
            role,
            seen: 0,
            element: UNRESOLVED,
            attribute: UNRESOLVED,
        });
        let (hasher, text, entries) = (&self.hasher, &self.text, &self.entries);
        self.table.insert_unique(hash, at, |at| {
            let entry = &entries[*at as usize];
            hash_of(hasher, &text[entry.start as usize..entry.end as usize])
        });
        Some(at)
    }

    /// The name as written.
    #[inline]
    pub(super) fn text(&self, at: u32) -> &str {
        let entry = &self.entries[at as usize];
        &self.text[entry.start as usize..entry.end as usize]
    }

    /// The prefix, empty if none.
    pub(super) fn prefix(&self, at: u32) -> &str {
        &self.entries[at as usize].names[0].prefix
    }

    /// The local part.
    pub(super) fn local(&self, at: u32) -> &str {
        &self.entries[at as usize].names[0].local
    }

    /// The name in a namespace; `use_default` unless it is an attribute without prefix.
    pub(super) fn name(&mut self, at: u32, use_default: bool, uri: &str) -> &Name {
        let name = &mut self.entries[at as usize].names[usize::from(use_default)];
        if !is_same(&name.uri, uri) {
            *name = Name::new(&name.prefix, &name.local, uri);
        }
        name
    }

    /// A number that the name has in this document, in whichever role and scope.
    pub(super) fn number(&self, at: u32) -> Option<u32> {
        let entry = &self.entries[at as usize];
        let known = [entry.element, entry.attribute].into_iter().find(|known| known.parse == self.parse);
        known.map(|known| known.name)
    }

    /// Whether the name has a prefix.
    pub(super) fn has_prefix(&self, at: u32) -> bool {
        !self.prefix(at).is_empty()
    }

    /// What the name means as an attribute.
    pub(super) fn role(&self, at: u32) -> Role {
        self.entries[at as usize].role
    }

    /// Marks the name as an attribute of an element; false if that element had it already.
    pub(super) fn mark(&mut self, at: u32, element: u64) -> bool {
        std::mem::replace(&mut self.entries[at as usize].seen, element) != element
    }

    /// Whether the element has this attribute.
    pub(super) fn is_marked(&self, at: u32, element: u64) -> bool {
        self.entries[at as usize].seen == element
    }

    /// The number of the name as an element in a scope, if it was resolved there last.
    #[inline]
    pub(super) fn element(&self, at: u32, scope: u32) -> Option<u32> {
        self.valid(self.entries[at as usize].element, scope)
    }

    /// The number of the name as an attribute in a scope, if it was resolved there last.
    #[inline]
    pub(super) fn attribute(&self, at: u32, scope: u32) -> Option<u32> {
        self.valid(self.entries[at as usize].attribute, scope)
    }

    fn valid(&self, found: Resolved, scope: u32) -> Option<u32> {
        (found.parse == self.parse && found.scope == scope).then_some(found.name)
    }

    /// Keeps the number of an element name.
    pub(super) fn set_element(&mut self, at: u32, scope: u32, name: u32) {
        self.entries[at as usize].element = Resolved { parse: self.parse, scope, name };
    }

    /// Keeps the number of an attribute name.
    pub(super) fn set_attribute(&mut self, at: u32, scope: u32, name: u32) {
        self.entries[at as usize].attribute = Resolved { parse: self.parse, scope, name };
    }
}
