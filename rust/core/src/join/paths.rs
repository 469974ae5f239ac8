//! The paths of pattern nodes, compiled once each.

use crate::xpath::ast::{Cell, Constant, ConstantRef, ExprId, Query};
use crate::xpath::display::query_text;
use crate::xpath::error::XPathError;
use crate::xpath::parser::{Parser, StaticContext};
use crate::xpath::symbols::Symbols;
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::sync::Arc;

/// Number of a path.
pub type PathId = u32;

/// A compiled path.
#[derive(Debug)]
pub struct CompiledPath {
    cells: Box<[Cell]>,
    root: ExprId,
    constants: Box<[Constant]>,
    /// Its canonical text with the prefixes of [`Paths::prefixes`]: equal paths have equal ones.
    pub text: Arc<str>,
}

impl CompiledPath {
    /// The expression.
    pub fn query(&self) -> Query<'_> {
        Query { cells: &self.cells, root: self.root }
    }

    /// Its cells, its root and its constants.
    pub fn parts(&self) -> (&[Cell], ExprId, &[Constant]) {
        (&self.cells, self.root, &self.constants)
    }

    /// Its constants.
    pub fn constants(&self) -> Vec<ConstantRef<'_>> {
        self.constants.iter().map(Constant::as_ref).collect()
    }
}

/// Prefixes and their namespaces.
type Bindings = Vec<(Box<str>, Box<str>)>;

/// All paths of a population. They stay when nothing uses them any more.
#[derive(Debug, Default)]
pub struct Paths {
    parser: Parser,
    symbols: Symbols,
    compiled: Vec<CompiledPath>,
    by_text: HashMap<Arc<str>, PathId, FixedState>,
    /// As written, together with the namespaces it was written with: most are met many times.
    as_written: HashMap<(u32, Box<str>), PathId, FixedState>,
    contexts: HashMap<Bindings, u32, FixedState>,
    /// A prefix for each namespace that subscriptions have named.
    prefixes: Vec<(String, String)>,
}

impl Paths {
    /// The number of a path.
    ///
    /// # Errors
    /// If it is no XPath 1.0 expression that the context admits.
    pub fn intern(&mut self, text: &str, context: &StaticContext<'_>) -> Result<PathId, XPathError> {
        let namespaces: Bindings =
            context.namespaces.iter().map(|(prefix, uri)| ((*prefix).into(), (*uri).into())).collect();
        let next = self.contexts.len() as u32;
        let known = *self.contexts.entry(namespaces).or_insert(next);
        if known == next {
            for (_, uri) in context.namespaces {
                if self.prefixes.iter().all(|(_, other)| other != uri) {
                    self.prefixes.push((format!("n{}", self.prefixes.len()), (*uri).into()));
                }
            }
        }
        let key = (known, Box::from(text));
        if let Some(known) = self.as_written.get(&key) {
            return Ok(*known);
        }
        let parsed = self.parser.parse(text, context, &mut self.symbols)?;
        let constants: Vec<ConstantRef<'_>> = parsed.constants().iter().map(Constant::as_ref).collect();
        let prefixes: Vec<(&str, &str)> = self.prefixes.iter().map(|(prefix, uri)| (&**prefix, &**uri)).collect();
        let canonical: Arc<str> = query_text(parsed.query(), &constants, &self.symbols, Some(&prefixes)).into();
        let compiled = &mut self.compiled;
        let id = *self.by_text.entry(canonical.clone()).or_insert_with(|| {
            compiled.push(CompiledPath {
                cells: parsed.cells().into(),
                root: parsed.root,
                constants: parsed.constants().into(),
                text: canonical,
            });
            compiled.len() as PathId - 1
        });
        self.as_written.insert(key, id);
        Ok(id)
    }

    /// A path.
    pub fn get(&self, id: PathId) -> &CompiledPath {
        &self.compiled[id as usize]
    }

    /// The name tests of all paths.
    pub fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    /// A path's text with namespaces in place of prefixes: the same in every population.
    pub fn full_text(&self, id: PathId) -> String {
        let path = self.get(id);
        query_text(path.query(), &path.constants(), &self.symbols, None)
    }

    /// The prefixes in canonical texts, and their namespaces.
    pub fn prefixes(&self) -> &[(String, String)] {
        &self.prefixes
    }
}

/// The path from where `above` starts to where `below` leads, which starts from the nodes of `above`.
pub fn join(above: &str, below: &str) -> String {
    match below.strip_prefix('.') {
        Some(rest) if rest.starts_with('/') => format!("{above}{rest}"),
        _ => format!("{above}/{below}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_paths_are_one_whatever_their_prefixes() {
        let mut paths = Paths::default();
        let context = |namespaces| StaticContext { namespaces, ..StaticContext::default() };
        let a = paths.intern(".//a:x[@k = 'v']/text()", &context(&[("a", "urn:a")])).unwrap();
        let b = paths.intern("descendant::b:x [ @k='v' ]/text()", &context(&[("b", "urn:a")])).unwrap();
        let c = paths.intern(".//b:x[@k = 'v']/text()", &context(&[("b", "urn:b")])).unwrap();
        assert_eq!((a == b, a == c), (true, false));
        let text = &paths.get(a).text;
        assert_eq!(&**text, ".//n0:x[@k = 'v']/text()");
        assert_eq!(join("/r", text), "/r//n0:x[@k = 'v']/text()");
        assert_eq!(join("/r", "@k"), "/r/@k");
    }
}
