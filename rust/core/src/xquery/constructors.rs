//! Constructors (XQuery 1.0 §3.7).

use super::ast::{ElementConstructor, ExactName, Expr, Name, Part};
use super::error::XQueryErrorKind;
use super::literals::line_ends;
use super::parser::{Parsed, Parser};
use crate::document::{XML_URI, XMLNS_URI};
use foldhash::fast::FixedState;
use hashbrown::HashSet;
use std::borrow::Cow;

/// Attributes that are compared one by one.
const FEW: usize = 16;

/// Namespace declarations among the attributes of an element: prefix and URI.
type Declared = Vec<(Box<str>, Box<str>)>;

/// An attribute before its prefix is resolved: prefix, local part, place, value.
type RawAttribute<'t> = (&'t str, &'t str, usize, Vec<Part>);

impl<'t> Parser<'t> {
    /// What begins with `<`.
    pub(super) fn direct_constructor(&mut self) -> Parsed<Expr> {
        if self.rest().starts_with("<!--") {
            return self.direct_comment();
        }
        if self.byte(1) == b'?' {
            return self.direct_instruction();
        }
        let start = self.at;
        self.at += 1;
        if self.peek_name().is_empty() {
            return Err(self.unexpected("the name of an element"));
        }
        let name = self.qname("the name of an element")?;
        let scope = self.namespaces.len();
        let made = self.element(name, start);
        self.namespaces.truncate(scope);
        made
    }

    fn element(&mut self, name: (&'t str, &'t str), start: usize) -> Parsed<Expr> {
        self.node()?;
        let scope = self.namespaces.len();
        let mut declared = Declared::new();
        let first = self.at;
        let (slots, variables) = (self.constructed.len(), self.variables.len());
        let attributes = loop {
            self.declare(&declared);
            let (attributes, found, is_late) = self.attributes()?;
            self.namespaces.truncate(scope);
            if found == declared || !is_late {
                declared = found;
                break attributes;
            }
            // A declaration holds for enclosed expressions before it: these are read again.
            declared = found;
            self.at = first;
            self.constructed.truncate(slots);
            self.variables.truncate(variables);
        };
        self.check_scope(self.namespaces.len() + declared.len())?;
        self.declare(&declared);
        let element_name = self.resolve(name, true, start + 1)?;
        let mut resolved: Vec<(ExactName, Vec<Part>)> = Vec::with_capacity(attributes.len());
        let mut names: HashSet<Name, FixedState> = HashSet::default();
        for (prefix, local, offset, parts) in attributes {
            let attribute = self.resolve((prefix, local), false, offset)?;
            // Most elements have a handful of attributes; the others do not make it quadratic.
            let is_known = if resolved.len() < FEW {
                resolved.iter().any(|(known, _)| known.0 == attribute)
            } else {
                names.extend(resolved.iter().skip(names.len()).map(|(known, _)| known.0.clone()));
                names.contains(&attribute)
            };
            if is_known {
                let message = format!("two attributes are named {local}");
                return Err(self.error_at(XQueryErrorKind::Type, message, offset));
            }
            resolved.push((ExactName(attribute), parts));
        }
        let content = if self.rest().starts_with("/>") {
            self.at += 2;
            Vec::new()
        } else if self.byte(0) == b'>' {
            self.at += 1;
            let content = self.content(start)?;
            let offset = self.at;
            let end = self.qname("the name of the element that ends")?;
            if end != name {
                let shown = |(prefix, local): (&str, &str)| {
                    if prefix.is_empty() { local.to_owned() } else { format!("{prefix}:{local}") }
                };
                let message = format!("</{}> where </{}> is expected", shown(end), shown(name));
                return Err(self.error_at(XQueryErrorKind::Syntax, message, offset));
            }
            self.white_space();
            if self.byte(0) != b'>' {
                return Err(self.unexpected("\">\""));
            }
            self.at += 1;
            content
        } else {
            return Err(self.unexpected("an attribute, \">\" or \"/>\""));
        };
        Ok(Expr::Element(Box::new(ElementConstructor {
            name: ExactName(element_name),
            namespaces: declared,
            attributes: resolved,
            content,
        })))
    }

    fn declare(&mut self, declared: &Declared) {
        let owned = |text: &str| Cow::Owned(text.to_owned());
        self.namespaces.extend(declared.iter().map(|(prefix, uri)| (owned(prefix), owned(uri))));
    }

    fn white_space(&mut self) -> bool {
        let start = self.at;
        while matches!(self.byte(0), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
        self.at > start
    }

    /// The attributes of a start tag, its namespace declarations, and whether one of these comes after an enclosed
    /// expression.
    fn attributes(&mut self) -> Parsed<(Vec<RawAttribute<'t>>, Declared, bool)> {
        let mut attributes: Vec<RawAttribute<'t>> = Vec::new();
        let mut declared = Declared::new();
        let mut has_enclosed = false;
        let mut is_late = false;
        loop {
            let spaced = self.white_space();
            if matches!(self.byte(0), b'>' | b'/') {
                return Ok((attributes, declared, is_late));
            }
            if !spaced {
                return Err(self.unexpected("white space, \">\" or \"/>\""));
            }
            self.node()?;
            self.check_scope(attributes.len().max(declared.len()))?;
            let offset = self.at;
            let (prefix, local) = self.qname("an attribute, \">\" or \"/>\"")?;
            self.white_space();
            if self.byte(0) != b'=' {
                return Err(self.unexpected("\"=\""));
            }
            self.at += 1;
            self.white_space();
            let parts = self.attribute_value()?;
            let declares = if prefix == "xmlns" {
                Some(local)
            } else if prefix.is_empty() && local == "xmlns" {
                Some("")
            } else {
                None
            };
            let Some(declares) = declares else {
                has_enclosed |= parts.iter().any(|part| matches!(part, Part::Expr(_)));
                attributes.push((prefix, local, offset, parts));
                continue;
            };
            let uri: Box<str> = match &parts[..] {
                [] => "".into(),
                [Part::Text(uri)] => uri.clone(),
                _ => {
                    let message = "a namespace declaration must be literal";
                    return Err(self.error_at(XQueryErrorKind::Syntax, message, offset));
                }
            };
            let wrong = match declares {
                "xmlns" => Some("the prefix xmlns can not be declared"),
                "xml" if *uri != *XML_URI => Some("the prefix xml can not be bound to another namespace"),
                other if other != "xml" && *uri == *XML_URI => Some("the XML namespace has the prefix xml alone"),
                _ if *uri == *XMLNS_URI => Some("the namespace of namespace declarations can not be declared"),
                other if !other.is_empty() && uri.is_empty() => Some("a prefix can not be unbound"),
                other if declared.iter().any(|(known, _)| **known == *other) => Some("a prefix is declared twice"),
                _ => None,
            };
            if let Some(message) = wrong {
                return Err(self.error_at(XQueryErrorKind::Syntax, message, offset));
            }
            is_late |= has_enclosed;
            declared.push((declares.into(), uri));
        }
    }

    fn attribute_value(&mut self) -> Parsed<Vec<Part>> {
        let quote = self.byte(0);
        if !matches!(quote, b'"' | b'\'') {
            return Err(self.unexpected("a quoted value"));
        }
        let start = self.at;
        self.at += 1;
        let mut parts = Vec::new();
        let mut text = String::new();
        loop {
            let rest = self.rest();
            let special =
                |byte: &u8| matches!(byte, b'&' | b'{' | b'}' | b'<' | b'\t' | b'\n' | b'\r') || *byte == quote;
            let Some(stop) = rest.as_bytes().iter().position(special) else {
                return Err(self.error_at(XQueryErrorKind::Syntax, "this value does not end", start));
            };
            text.push_str(&rest[..stop]);
            self.at += stop;
            match (self.byte(0), self.byte(1)) {
                (b'&', _) => text.push(self.reference()?),
                (b'{', b'{') | (b'}', b'}') => {
                    text.push(self.byte(0) as char);
                    self.at += 2;
                }
                (b'{', _) => {
                    if !text.is_empty() {
                        parts.push(Part::Text(std::mem::take(&mut text).into()));
                    }
                    parts.push(Part::Expr(self.enclosed()?));
                }
                (b'}', _) => return Err(self.syntax("a single } in a value; write }}")),
                (b'<', _) => return Err(self.syntax("a < in a value; write &lt;")),
                (b'\r', b'\n') => {
                    text.push(' ');
                    self.at += 2;
                }
                (b'\t' | b'\n' | b'\r', _) => {
                    text.push(' ');
                    self.at += 1;
                }
                (_, next) if next == quote => {
                    text.push(quote as char);
                    self.at += 2;
                }
                _ => {
                    self.at += 1;
                    if !text.is_empty() {
                        parts.push(Part::Text(text.into()));
                    }
                    return Ok(parts);
                }
            }
        }
    }

    /// `{…}`
    fn enclosed(&mut self) -> Parsed<Expr> {
        self.at += 1;
        if self.take("}") {
            return Ok(Expr::Sequence(Vec::new()));
        }
        let expr = self.expression()?;
        self.expect("}")?;
        Ok(expr)
    }

    /// Content up to and with `</`.
    fn content(&mut self, start: usize) -> Parsed<Vec<Part>> {
        let mut parts = Vec::new();
        let mut text = String::new();
        // Whether the text so far is white space as written.
        let mut is_blank = true;
        loop {
            let rest = self.rest();
            let special = |byte: &u8| matches!(byte, b'&' | b'{' | b'}' | b'<' | b'\r');
            let Some(stop) = rest.as_bytes().iter().position(special) else {
                return Err(self.error_at(XQueryErrorKind::Syntax, "this element does not end", start));
            };
            is_blank &= rest[..stop].bytes().all(|byte| matches!(byte, b' ' | b'\t' | b'\n'));
            text.push_str(&rest[..stop]);
            self.at += stop;
            match (self.byte(0), self.byte(1)) {
                (b'&', _) => {
                    text.push(self.reference()?);
                    is_blank = false;
                    continue;
                }
                (b'{', b'{') | (b'}', b'}') => {
                    text.push(self.byte(0) as char);
                    self.at += 2;
                    is_blank = false;
                    continue;
                }
                (b'\r', next) => {
                    text.push('\n');
                    self.at += if next == b'\n' { 2 } else { 1 };
                    continue;
                }
                (b'}', _) => return Err(self.syntax("a single } in content; write }}")),
                _ => {}
            }
            if let Some(inside) = self.rest().strip_prefix("<![CDATA[") {
                let Some(length) = inside.find("]]>") else {
                    return Err(self.syntax("this CDATA section does not end"));
                };
                text.push_str(&line_ends(&inside[..length]));
                self.at += 9 + length + 3;
                is_blank = false;
                continue;
            }
            if !text.is_empty() && (!is_blank || self.preserve_space) {
                parts.push(Part::Text(std::mem::take(&mut text).into()));
            }
            text.clear();
            is_blank = true;
            self.node()?;
            if self.rest().starts_with("</") {
                self.at += 2;
                return Ok(parts);
            }
            parts.push(Part::Expr(if self.byte(0) == b'{' {
                self.enclosed()?
            } else {
                self.nested(Self::direct_constructor)?
            }));
        }
    }

    fn direct_comment(&mut self) -> Parsed<Expr> {
        let inside = &self.rest()[4..];
        let Some(length) = inside.find("--") else { return Err(self.syntax("this comment does not end")) };
        if !inside[length..].starts_with("-->") {
            self.at += 4 + length;
            return Err(self.syntax("-- in a comment"));
        }
        self.at += 4 + length + 3;
        Ok(Expr::Comment((*line_ends(&inside[..length])).into()))
    }

    fn direct_instruction(&mut self) -> Parsed<Expr> {
        let start = self.at;
        self.at += 2;
        let target = self.ncname("the target of a processing instruction")?;
        if target.eq_ignore_ascii_case("xml") {
            let message = "a processing instruction can not have the target xml";
            return Err(self.error_at(XQueryErrorKind::Syntax, message, start));
        }
        let spaced = self.white_space();
        let Some(length) = self.rest().find("?>") else {
            return Err(self.error_at(XQueryErrorKind::Syntax, "this processing instruction does not end", start));
        };
        if !spaced && length > 0 {
            return Err(self.unexpected("white space or \"?>\""));
        }
        let data = line_ends(&self.rest()[..length]);
        self.at += length + 2;
        Ok(Expr::ProcessingInstruction(target.into(), (*data).into()))
    }

    /// `element name {…}` and the like, if one comes next.
    pub(super) fn computed_constructor(&mut self) -> Parsed<Option<Expr>> {
        let start = self.at;
        let word = self.peek_name();
        if !matches!(
            word,
            "element"
                | "attribute"
                | "text"
                | "comment"
                | "document"
                | "processing-instruction"
                | "ordered"
                | "unordered"
                | "validate"
                | "namespace"
                | "map"
                | "array"
        ) {
            return Ok(None);
        }
        self.at += word.len();
        self.skip();
        let offset = self.at;
        let name = if self.peek_name().is_empty() { None } else { Some(self.qname("a name")?) };
        self.skip();
        let is_braced = self.byte(0) == b'{';
        match (word, name) {
            _ if !is_braced => {
                self.at = start;
                return Ok(None);
            }
            ("element" | "attribute", Some(name)) => {
                let is_element = word == "element";
                if name == ("", "xmlns") && !is_element {
                    let message = "an attribute can not be named xmlns";
                    return Err(self.error_at(XQueryErrorKind::Type, message, offset));
                }
                let name = ExactName(self.resolve(name, is_element, offset)?);
                let content = Box::new(self.nested(Self::enclosed)?);
                self.node()?;
                return Ok(Some(if is_element {
                    Expr::ComputedElement(name, content)
                } else {
                    Expr::ComputedAttribute(name, content)
                }));
            }
            ("text", None) => {
                let content = self.nested(Self::enclosed)?;
                self.node()?;
                return Ok(Some(Expr::ComputedText(Box::new(content))));
            }
            // Any order will do, the document's too.
            ("ordered" | "unordered", None) => return self.nested(Self::enclosed).map(Some),
            ("element" | "attribute", None) => {
                return Err(self.unsupported(&format!("a computed name of an {word}"), start));
            }
            ("comment" | "document" | "map" | "array", None)
            | ("validate", None | Some(("", "lax" | "strict")))
            | ("processing-instruction" | "namespace", _) => {
                return Err(self.unsupported(&format!("{word} {{…}}"), start));
            }
            _ => {}
        }
        self.at = start;
        Ok(None)
    }
}
