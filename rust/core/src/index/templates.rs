//! Templates: expressions that differ only in their literals are parsed once.
//!
//! Subscriptions in bulk come from few forms. A scan splits a text into its literals and what is around them; where
//! that was parsed before, the literals are the constants of the new expression, and parsing is skipped. The scan cuts
//! literals exactly as the lexer does, so two texts with the same surroundings have the same tokens but for the
//! literals. Only what parsed without error and with precisely these literals as its constants becomes a template.

use crate::xpath::ast::{Constant, ConstantRef};
use crate::xpath::parser::StaticContext;
use foldhash::fast::FixedState;
use hashbrown::HashMap;

/// Number of a template.
pub(super) type TemplateId = u32;

/// Different namespaces and options that are kept apart; expressions with yet others are parsed.
const MAX_CONTEXTS: usize = 16;
/// Texts after which it is judged whether looking up pays.
const TRIAL: u32 = 4096;

const STRING: u8 = 1;
const NUMBER: u8 = 2;

struct Template {
    id: TemplateId,
    /// Which numbers a sign in the text negates.
    negated: Box<[bool]>,
}

/// The templates met so far.
#[derive(Default)]
pub(super) struct Templates<'a> {
    contexts: Vec<StaticContext<'a>>,
    known: HashMap<Box<[u8]>, Template, FixedState>,
    /// The surroundings of the last text, literals replaced by their kind.
    key: Vec<u8>,
    /// The literals of the last text; once found, its constants.
    pub(super) literals: Vec<ConstantRef<'a>>,
    hits: u32,
    misses: u32,
}

impl<'a> Templates<'a> {
    /// The template of a text, if there is one; its constants are in [`Self::literals`] then.
    pub(super) fn find(&mut self, text: &'a str, context: &StaticContext<'a>) -> Option<TemplateId> {
        self.key.clear();
        let rare = self.misses > TRIAL && self.hits < self.misses;
        if rare || text.len() > context.limits.length_bytes {
            return None;
        }
        let number = self.contexts.iter().position(|known| known == context).or_else(|| {
            let room = self.contexts.len() < MAX_CONTEXTS;
            room.then(|| self.contexts.push(*context));
            room.then(|| self.contexts.len() - 1)
        })?;
        if !self.split(text) {
            self.key.clear();
            return None;
        }
        self.key.push(number as u8);
        let Some(template) = self.known.get(&*self.key) else {
            self.misses += 1;
            return None;
        };
        self.hits += 1;
        for (literal, _) in self.literals.iter_mut().zip(&template.negated).filter(|(_, negated)| **negated) {
            if let ConstantRef::Number(number) = literal {
                *number = -*number;
            }
        }
        Some(template.id)
    }

    /// Makes the text that was not found before a template, if its literals are its constants.
    pub(super) fn learn(&mut self, constants: &[Constant]) -> Option<TemplateId> {
        if self.key.is_empty() || constants.len() != self.literals.len() {
            return None;
        }
        let mut negated = Vec::with_capacity(constants.len());
        for (literal, constant) in self.literals.iter().zip(constants) {
            negated.push(match (*literal, constant.as_ref()) {
                (ConstantRef::String(a), ConstantRef::String(b)) if a == b => false,
                // The sign of zero does not tell whether there was one.
                (ConstantRef::Number(a), ConstantRef::Number(b)) if a == b && a != 0.0 => false,
                (ConstantRef::Number(a), ConstantRef::Number(b)) if a == -b && a != 0.0 => true,
                _ => return None,
            });
        }
        let id = self.known.len() as TemplateId;
        self.known.insert(self.key.as_slice().into(), Template { id, negated: negated.into() });
        Some(id)
    }

    /// Splits a text into key and literals; false if it has characters that keys use.
    fn split(&mut self, text: &'a str) -> bool {
        self.literals.clear();
        let bytes = text.as_bytes();
        let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
        let digits = |mut at: usize| {
            while byte(at).is_ascii_digit() {
                at += 1;
            }
            at
        };
        let mut at = 0;
        while at < bytes.len() {
            let start = at;
            match bytes[at] {
                quote @ (b'"' | b'\'') => {
                    let Some(length) = memchr::memchr(quote, &bytes[at + 1..]) else { return false };
                    self.literals.push(ConstantRef::String(&text[at + 1..at + 1 + length]));
                    self.key.push(STRING);
                    at += length + 2;
                }
                first if first.is_ascii_digit() || (first == b'.' && byte(at + 1).is_ascii_digit()) => {
                    at = digits(at);
                    if byte(at) == b'.' {
                        at = digits(at + 1);
                    }
                    self.literals.push(ConstantRef::Number(text[start..at].parse().unwrap_or(f64::NAN)));
                    self.key.push(NUMBER);
                }
                first if starts_name(first) => {
                    while at < bytes.len() && continues_name(bytes[at]) {
                        at += 1;
                    }
                    self.key.extend_from_slice(&bytes[start..at]);
                }
                STRING | NUMBER => return false,
                b'.' if byte(at + 1) == b'.' => {
                    at += 2;
                    self.key.extend_from_slice(b"..");
                }
                other => {
                    self.key.push(other);
                    at += 1;
                }
            }
        }
        true
    }
}

fn starts_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

fn continues_name(byte: u8) -> bool {
    starts_name(byte) || byte.is_ascii_digit() || byte == b'-' || byte == b'.'
}
