//! The core function library (§4).

use super::number::{is_space, round};
use super::value::{NodeRef, Nodes};
use super::{Context, EvaluateError, Run};
use crate::document::{NodeKind, XML_URI};
use crate::xpath::ast::{ExprId, Function, ListId};
use crate::xpath::semantics::Type;
use hashbrown::HashMap;
use std::borrow::Cow;

impl<'r> Run<'r, '_> {
    fn argument(&self, arguments: ListId, number: usize) -> Option<ExprId> {
        self.query.list(arguments).nth(number)
    }

    /// A string argument; the parser has seen to it that it is there.
    fn text(&mut self, arguments: ListId, number: usize, context: Context) -> Result<Cow<'r, str>, EvaluateError> {
        match self.argument(arguments, number) {
            Some(argument) => self.string(argument, context),
            None => self.string_of(context.node).map(Cow::Borrowed),
        }
    }

    /// The node that a node-set argument names first, or the context node if there is no argument.
    fn first_node(&mut self, arguments: ListId, context: Context) -> Result<Option<NodeRef>, EvaluateError> {
        match self.argument(arguments, 0) {
            Some(argument) => Ok(self.nodes(argument, context)?.first().copied()),
            None => Ok(Some(context.node)),
        }
    }

    pub(super) fn boolean_call(
        &mut self,
        function: Function,
        arguments: ListId,
        context: Context,
    ) -> Result<bool, EvaluateError> {
        Ok(match function {
            Function::True => true,
            Function::Boolean | Function::Not => {
                let argument = match self.argument(arguments, 0) {
                    Some(argument) => self.boolean(argument, context)?,
                    None => false,
                };
                argument == (function == Function::Boolean)
            }
            Function::StartsWith | Function::Contains => {
                let text = self.text(arguments, 0, context)?;
                let part = self.text(arguments, 1, context)?;
                if function == Function::StartsWith {
                    self.charge_text(part.len())?;
                    text.starts_with(&*part)
                } else {
                    self.find(&text, &part)?.is_some()
                }
            }
            Function::Lang => {
                let wanted = self.text(arguments, 0, context)?;
                self.language(context.node)?.is_some_and(|language| is_language(language, &wanted))
            }
            _ => false,
        })
    }

    fn find(&mut self, text: &str, part: &str) -> Result<Option<usize>, EvaluateError> {
        self.charge_text(text.len() + part.len())?;
        Ok(memchr::memmem::find(text.as_bytes(), part.as_bytes()))
    }

    /// The value of the nearest `xml:lang` attribute.
    fn language(&mut self, node: NodeRef) -> Result<Option<&'r str>, EvaluateError> {
        let document = self.document;
        let mut at = node.id();
        loop {
            let mut visited = 1;
            for attribute in document.attributes(at) {
                visited += 1;
                let name = document.name(attribute);
                if &*name.local == "lang" && &*name.uri == XML_URI {
                    return Ok(Some(document.string_value(attribute)));
                }
            }
            self.charge(visited)?;
            if at == 0 {
                return Ok(None);
            }
            at = document.node(at).parent;
        }
    }

    pub(super) fn number_call(
        &mut self,
        function: Function,
        arguments: ListId,
        context: Context,
    ) -> Result<f64, EvaluateError> {
        Ok(match (function, self.argument(arguments, 0)) {
            (Function::Last, _) => context.size as f64,
            (Function::Position, _) => context.position as f64,
            (Function::Count, Some(argument)) => self.nodes(argument, context)?.len() as f64,
            (Function::Sum, Some(argument)) => {
                let mut sum = 0.0;
                for &node in self.nodes(argument, context)?.iter() {
                    sum += self.number_of(node)?;
                }
                sum
            }
            (Function::StringLength, _) => {
                let text = self.text(arguments, 0, context)?;
                self.charge_text(text.len())?;
                text.chars().count() as f64
            }
            (Function::Number, Some(argument)) => self.number(argument, context)?,
            (Function::Number, None) => self.number_of(context.node)?,
            (Function::Floor, Some(argument)) => self.number(argument, context)?.floor(),
            (Function::Ceiling, Some(argument)) => self.number(argument, context)?.ceil(),
            (Function::Round, Some(argument)) => round(self.number(argument, context)?),
            _ => f64::NAN,
        })
    }

    pub(super) fn string_call(
        &mut self,
        function: Function,
        arguments: ListId,
        context: Context,
    ) -> Result<Cow<'r, str>, EvaluateError> {
        match function {
            Function::String => self.text(arguments, 0, context),
            Function::LocalName | Function::NamespaceUri | Function::Name => {
                let Some(node) = self.first_node(arguments, context)? else { return Ok(Cow::Borrowed("")) };
                self.name_of(function, node)
            }
            Function::Concat => {
                let mut joined = String::new();
                for argument in self.query.list(arguments) {
                    let text = self.string(argument, context)?;
                    self.charge_text(text.len())?;
                    joined.push_str(&text);
                }
                Ok(Cow::Owned(joined))
            }
            Function::SubstringBefore | Function::SubstringAfter => {
                let text = self.text(arguments, 0, context)?;
                let part = self.text(arguments, 1, context)?;
                Ok(match self.find(&text, &part)? {
                    None => Cow::Borrowed(""),
                    Some(at) if function == Function::SubstringBefore => slice(text, 0, at),
                    Some(at) => {
                        let end = text.len();
                        slice(text, at + part.len(), end)
                    }
                })
            }
            Function::Substring => {
                let text = self.text(arguments, 0, context)?;
                let first = match self.argument(arguments, 1) {
                    Some(argument) => round(self.number(argument, context)?),
                    None => f64::NAN,
                };
                let end = match self.argument(arguments, 2) {
                    Some(argument) => first + round(self.number(argument, context)?),
                    None => f64::INFINITY,
                };
                self.charge_text(text.len())?;
                let (from, to) = substring(&text, first, end);
                Ok(slice(text, from, to))
            }
            Function::NormalizeSpace => {
                let text = self.text(arguments, 0, context)?;
                self.charge_text(text.len())?;
                Ok(normalize_space(text))
            }
            Function::Translate => {
                let text = self.text(arguments, 0, context)?;
                let from = self.text(arguments, 1, context)?;
                let to = self.text(arguments, 2, context)?;
                self.charge_text(text.len() + from.len())?;
                Ok(Cow::Owned(translate(&text, &from, &to)))
            }
            _ => Ok(Cow::Borrowed("")),
        }
    }

    fn name_of(&mut self, function: Function, node: NodeRef) -> Result<Cow<'r, str>, EvaluateError> {
        let document = self.document;
        if let Some(number) = node.namespace_number() {
            let prefix = self.namespaces(node.id())?.get(number).map_or("", |(prefix, _)| *prefix);
            return Ok(Cow::Borrowed(if function == Function::NamespaceUri { "" } else { prefix }));
        }
        let name = document.name(node.id());
        Ok(match function {
            Function::NamespaceUri if document.node(node.id()).kind == NodeKind::ProcessingInstruction => {
                Cow::Borrowed("")
            }
            Function::NamespaceUri => Cow::Borrowed(&*name.uri),
            Function::Name if !name.prefix.is_empty() => Cow::Owned(name.qualified()),
            _ => Cow::Borrowed(&*name.local),
        })
    }

    /// `id()`: elements with an attribute that the DTD declares to be of type ID.
    pub(super) fn id_call(&mut self, arguments: ListId, context: Context) -> Result<Vec<NodeRef>, EvaluateError> {
        let Some(argument) = self.argument(arguments, 0) else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        if self.type_of(argument) == Type::NodeSet {
            let nodes: Nodes<'r> = self.nodes(argument, context)?;
            for &node in nodes.iter() {
                let text = self.string_of(node)?;
                self.elements_with_ids(text, &mut found)?;
            }
        } else {
            let text = self.string(argument, context)?;
            self.elements_with_ids(&text, &mut found)?;
        }
        super::axes::in_order(&mut found);
        Ok(found)
    }

    fn elements_with_ids(&mut self, text: &str, found: &mut Vec<NodeRef>) -> Result<(), EvaluateError> {
        self.charge_text(text.len())?;
        let document = self.evaluator.document;
        if self.evaluator.ids.is_none() {
            self.charge(document.len() as u64)?;
            let mut ids = HashMap::default();
            for (number, node) in document.nodes().iter().enumerate() {
                if node.is_id {
                    // Of several elements with one ID only the first has it (§5.2.1).
                    ids.entry(document.string_value(number as u32)).or_insert(node.parent);
                }
            }
            self.evaluator.ids = Some(ids);
        }
        for word in text.split([' ', '\t', '\n', '\r']).filter(|word| !word.is_empty()) {
            if let Some(element) = self.evaluator.ids.as_ref().and_then(|ids| ids.get(word)) {
                found.push(NodeRef::tree(*element));
            }
        }
        Ok(())
    }
}

/// A part of a string, without copying if it is borrowed.
fn slice(text: Cow<'_, str>, from: usize, to: usize) -> Cow<'_, str> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(&text[from..to]),
        Cow::Owned(mut text) => {
            text.truncate(to);
            text.drain(..from);
            Cow::Owned(text)
        }
    }
}

/// Byte range of the characters whose positions p (from 1) have first <= p < end; NaN admits none.
fn substring(text: &str, first: f64, end: f64) -> (usize, usize) {
    let inside = |position: usize| {
        let position = position as f64;
        position >= first && position < end
    };
    let mut from = None;
    for (number, (at, _)) in text.char_indices().enumerate() {
        match (inside(number + 1), from) {
            (true, None) => from = Some(at),
            (false, Some(from)) => return (from, at),
            _ => {}
        }
    }
    (from.unwrap_or(text.len()), text.len())
}

fn normalize_space(text: Cow<'_, str>) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let normal = bytes.first().is_none_or(|byte| !is_space(*byte))
        && bytes.last().is_none_or(|byte| !is_space(*byte))
        && bytes.windows(2).all(|pair| !(is_space(pair[0]) && is_space(pair[1])))
        && !bytes.iter().any(|byte| matches!(byte, b'\t' | b'\n' | b'\r'));
    if normal {
        return text;
    }
    let mut normal = String::with_capacity(text.len());
    for word in text.split([' ', '\t', '\n', '\r']).filter(|word| !word.is_empty()) {
        if !normal.is_empty() {
            normal.push(' ');
        }
        normal.push_str(word);
    }
    Cow::Owned(normal)
}

fn translate(text: &str, from: &str, to: &str) -> String {
    let mut replacements: HashMap<char, Option<char>, foldhash::fast::FixedState> = HashMap::default();
    let mut to = to.chars();
    for found in from.chars() {
        let replacement = to.next();
        replacements.entry(found).or_insert(replacement);
    }
    text.chars()
        .filter_map(|found| match replacements.get(&found) {
            Some(replacement) => *replacement,
            None => Some(found),
        })
        .collect()
}

/// Whether a language is the wanted one or a sublanguage of it, ignoring case.
fn is_language(language: &str, wanted: &str) -> bool {
    let (language, wanted) = (language.as_bytes(), wanted.as_bytes());
    language.len() >= wanted.len()
        && language[..wanted.len()].eq_ignore_ascii_case(wanted)
        && (language.len() == wanted.len() || language[wanted.len()] == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn substrings_follow_the_examples_of_the_recommendation() {
        let part = |first: f64, length: f64| {
            let first = round(first);
            let (from, to) = substring("12345", first, first + round(length));
            "12345"[from..to].to_string()
        };
        assert_eq!(part(1.5, 2.6), "234");
        assert_eq!(part(0.0, 3.0), "12");
        assert_eq!(part(f64::NAN, 3.0), "");
        assert_eq!(part(1.0, f64::NAN), "");
        assert_eq!(part(-42.0, f64::INFINITY), "12345");
        assert_eq!(part(f64::NEG_INFINITY, f64::INFINITY), "");
        assert_eq!(substring("é1", 2.0, f64::INFINITY), (2, 3));
    }

    #[test]
    fn only_xml_space_is_normalised() {
        assert_eq!(normalize_space(" a \t\n b\r".into()), "a b");
        assert_eq!(normalize_space("a\u{a0} b".into()), "a\u{a0} b");
        assert_eq!(normalize_space("a\tb".into()), "a b");
        assert_eq!(normalize_space("\u{2003}".into()), "\u{2003}");
    }

    #[test]
    fn translate_keeps_the_first_of_repeated_characters() {
        assert_eq!(translate("bar", "abc", "ABC"), "BAr");
        assert_eq!(translate("--aaa--", "abc-", "ABC"), "AAA");
        assert_eq!(translate("aa", "aa", "xy"), "xx");
    }

    #[test]
    fn languages_match_whole_parts() {
        assert!(is_language("en-GB", "EN"));
        assert!(is_language("en", "en"));
        assert!(!is_language("eng", "en"));
        assert!(!is_language("", "en"));
    }
}
