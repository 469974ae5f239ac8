//! The document type declaration as a whole, parameter entities and entity declarations.

use std::rc::Rc;

use super::super::chars::{character_reference, is_ncname, predefined, push_normalised};
use super::super::error::{DocumentError, DocumentErrorKind};
use super::super::expansion::{Expansion, expand_value, split_reference, tokenize};
use super::super::limits::{Doctype, Limits};
use super::super::markup::{check_comment, split_instruction};
use super::cursor::Cursor;
use super::declarations::{self, AttributeType, Default};
use super::{AttributeDeclaration, Dtd, Entity, Map};

/// A text that is being read: the document itself, or a parameter entity in it.
struct Piece<'a> {
    text: Text<'a>,
    at: usize,
    name: Box<str>,
    reference: Option<usize>,
}

enum Text<'a> {
    Document(&'a str),
    Entity(Rc<str>),
}

struct Subset<'s> {
    dtd: Dtd,
    /// Parameter entities; `None` for external ones.
    parameters: Map<Option<Rc<str>>>,
    /// Set after a parameter entity that is not read: what comes later may be overridden by it (§5.1).
    ignoring: bool,
    expansion: &'s mut Expansion,
    limits: &'s Limits,
}

/// Reads the declaration that starts at byte `at` of the document; returns it and the offset after it.
pub(in super::super) fn parse(
    source: &str,
    at: usize,
    standalone: bool,
    limits: &Limits,
    expansion: &mut Expansion,
) -> Result<(Dtd, usize), DocumentError> {
    if limits.doctype == Doctype::Forbid {
        let message = "a document type declaration found, which the setting doctype forbids";
        return Err(DocumentError::new(DocumentErrorKind::DoctypeForbidden, at, message));
    }
    let mut cursor = Cursor { text: source, at, reference: None, name_bytes: limits.name_bytes };
    cursor.expect("<!DOCTYPE")?;
    cursor.space()?;
    cursor.qname()?;
    let mut dtd = Dtd { standalone, ..Dtd::default() };
    if cursor.skip_space() {
        dtd.unread = cursor.external_id(false)?;
        cursor.skip_space();
    }
    if cursor.take("[") {
        let mut subset = Subset { dtd, parameters: Map::default(), ignoring: false, expansion, limits };
        cursor.at = subset.read(source, cursor.at)?;
        dtd = subset.dtd;
    }
    cursor.end()?;
    Ok((dtd, cursor.at))
}

impl Subset<'_> {
    /// Reads declarations up to the bracket that closes the subset; returns the offset after it.
    fn read(&mut self, source: &str, at: usize) -> Result<usize, DocumentError> {
        let mut open = vec![Piece { text: Text::Document(source), at, name: "".into(), reference: None }];
        while let Some(piece) = open.last_mut() {
            let entity;
            let text = match &piece.text {
                Text::Document(text) => *text,
                Text::Entity(text) => {
                    entity = Rc::clone(text);
                    &*entity
                }
            };
            let mut cursor =
                Cursor { text, at: piece.at, reference: piece.reference, name_bytes: self.limits.name_bytes };
            cursor.skip_space();
            match cursor.peek() {
                None if piece.reference.is_some() => {
                    open.pop();
                }
                Some(b']') if piece.reference.is_none() => return Ok(cursor.at + 1),
                Some(b'%') => {
                    let offset = cursor.offset();
                    cursor.at += 1;
                    let name = cursor.ncname()?;
                    cursor.expect(";")?;
                    piece.at = cursor.at;
                    self.enter(name, offset, &mut open)?;
                }
                Some(b'<') => {
                    self.declaration(&mut cursor)?;
                    piece.at = cursor.at;
                }
                _ => return Err(cursor.expected("a declaration or ']'")),
            }
        }
        Err(DocumentError::malformed(at, "the internal subset is not closed: ']' expected"))
    }

    /// Opens a parameter entity, if its text is known.
    fn enter(&mut self, name: &str, offset: usize, open: &mut Vec<Piece<'_>>) -> Result<(), DocumentError> {
        let Some(Some(text)) = self.parameters.get(name) else {
            // Undeclared is fatal only where the document says that it stands alone (§4.1, Entity Declared).
            if !self.parameters.contains_key(name) && self.dtd.standalone {
                return Err(DocumentError::malformed(
                    offset,
                    format!("the parameter entity '%{name};' is not declared"),
                ));
            }
            self.dtd.unread = true;
            self.ignoring = !self.dtd.standalone;
            return Ok(());
        };
        if open.iter().any(|piece| &*piece.name == name) {
            return Err(DocumentError::malformed(offset, format!("the parameter entity '%{name};' contains itself")));
        }
        self.expansion.check_depth(open.len() - 1, offset)?;
        self.expansion.spend(text.len(), offset)?;
        let text = Text::Entity(Rc::clone(text));
        open.push(Piece { text, at: 0, name: name.into(), reference: Some(offset) });
        Ok(())
    }

    fn declaration(&mut self, cursor: &mut Cursor<'_>) -> Result<(), DocumentError> {
        if cursor.take("<!ENTITY") {
            self.entity(cursor)
        } else if cursor.take("<!ATTLIST") {
            self.attributes(cursor)
        } else if cursor.take("<!ELEMENT") {
            declarations::element(cursor)
        } else if cursor.take("<!NOTATION") {
            declarations::notation(cursor)
        } else if cursor.take("<!--") {
            let start = cursor.at;
            let inside = cursor.until("-->", "the comment")?;
            check_comment(inside)
                .map_err(|(at, message)| DocumentError::malformed(cursor.reference.unwrap_or(start + at), message))
        } else if cursor.take("<?") {
            let offset = cursor.offset();
            let inside = cursor.until("?>", "the processing instruction")?;
            split_instruction(inside).map(|_| ()).map_err(|message| DocumentError::malformed(offset, message))
        } else if cursor.rest().starts_with("<![") {
            Err(cursor.error("a conditional section found, which only an external subset may have"))
        } else {
            Err(cursor.error("a declaration (ELEMENT, ATTLIST, ENTITY, NOTATION), comment or instruction expected"))
        }
    }

    fn entity(&mut self, cursor: &mut Cursor<'_>) -> Result<(), DocumentError> {
        cursor.space()?;
        let parameter = cursor.take("%");
        if parameter {
            cursor.space()?;
        }
        let name = cursor.ncname()?;
        cursor.space()?;
        let offset = cursor.offset();
        if cursor.external_id(false)? {
            let spaced = cursor.skip_space();
            let unparsed = !parameter && spaced && cursor.take("NDATA");
            if unparsed {
                cursor.space()?;
                cursor.ncname()?;
            }
            check_predefined(name, parameter, None, offset)?;
            if !self.ignoring {
                if parameter {
                    self.parameters.entry(name.into()).or_insert(None);
                } else {
                    let entity = if unparsed { Entity::Unparsed } else { Entity::External };
                    self.dtd.entities.entry(name.into()).or_insert(entity);
                }
            }
            return cursor.end();
        }
        let literal = cursor.quoted("a quoted entity value, SYSTEM or PUBLIC")?;
        let text = replacement_text(literal, cursor.reference.is_none(), offset)?;
        check_predefined(name, parameter, Some(&text), offset)?;
        if !self.ignoring {
            // The first declaration binds (§4.2).
            if parameter {
                self.parameters.entry(name.into()).or_insert_with(|| Some(text.into()));
            } else {
                self.dtd.entities.entry(name.into()).or_insert_with(|| Entity::Internal(text.into()));
            }
        }
        cursor.end()
    }

    fn attributes(&mut self, cursor: &mut Cursor<'_>) -> Result<(), DocumentError> {
        let mut buffer = String::new();
        declarations::attributes(cursor, |cursor, element, name, kind, default| {
            let default = match default {
                Default::None => None,
                Default::Value(raw) => {
                    buffer.clear();
                    let literal = cursor.reference.is_none();
                    let dtd = Some(&self.dtd);
                    expand_value(raw, literal, dtd, self.expansion, cursor.offset(), &mut buffer)?;
                    let text = if kind == AttributeType::Character { buffer.clone() } else { tokenize(&buffer) };
                    Some(text.into_boxed_str())
                }
            };
            if self.ignoring {
                return Ok(());
            }
            let declared = self.dtd.attributes.entry(element.into()).or_default();
            // The first declaration of an attribute binds (§3.3).
            if declared.iter().all(|other| &*other.name != name) {
                if declared.len() >= self.limits.attributes {
                    let (limit, given) = (self.limits.attributes, declared.len() + 1);
                    let what = "attributes declared for one element";
                    return Err(DocumentError::limit(cursor.offset(), "attributes", limit, given, what));
                }
                declared.push(AttributeDeclaration {
                    name: name.into(),
                    tokenized: kind != AttributeType::Character,
                    is_id: kind == AttributeType::Id,
                    default,
                });
            }
            Ok(())
        })
    }
}

/// The replacement text of an entity (§4.5): character references are resolved, general entities stay references,
/// parameter entities may not occur in the internal subset.
fn replacement_text(literal: &str, in_document: bool, offset: usize) -> Result<String, DocumentError> {
    let mut text = String::with_capacity(literal.len());
    let mut rest = literal;
    while let Some(at) = rest.bytes().position(|b| matches!(b, b'&' | b'%')) {
        push_literal(&mut text, &rest[..at], in_document);
        if rest.as_bytes()[at] == b'%' {
            let message = "'%' found in an entity value: the internal subset may not use parameter entities there";
            return Err(DocumentError::malformed(offset, message));
        }
        let (body, after) = split_reference(&rest[at + 1..], offset)?;
        if body.starts_with('#') {
            match character_reference(body) {
                Some(c) => text.push(c),
                None => {
                    return Err(DocumentError::malformed(offset, format!("'&{body};' refers to no legal character")));
                }
            }
        } else if is_ncname(body) {
            text.push_str(&rest[at..at + body.len() + 2]);
        } else {
            return Err(DocumentError::malformed(offset, format!("'&{body};' found, the name of an entity expected")));
        }
        rest = after;
    }
    push_literal(&mut text, rest, in_document);
    Ok(text)
}

fn push_literal(text: &mut String, literal: &str, in_document: bool) {
    if in_document { push_normalised(text, literal) } else { text.push_str(literal) }
}

/// A document may declare the predefined entities, but only to mean what they mean (§4.6).
fn check_predefined(name: &str, parameter: bool, text: Option<&str>, offset: usize) -> Result<(), DocumentError> {
    let Some(c) = predefined(name).filter(|_| !parameter) else { return Ok(()) };
    let reference = |text: &str| {
        let body = text.strip_prefix('&').and_then(|body| body.strip_suffix(';'));
        body.and_then(character_reference) == Some(c)
    };
    let escaped = text.is_some_and(reference);
    let plain = !matches!(c, '<' | '&') && text.is_some_and(|text| text.chars().eq([c]));
    if escaped || plain {
        return Ok(());
    }
    Err(DocumentError::malformed(offset, format!("the predefined entity '&{name};' is declared to be something else")))
}
