//! The prolog (XQuery 1.0 §4): what concerns names and white space.

use super::error::XQueryErrorKind;
use super::parser::{Parsed, Parser};
use crate::document::{XML_URI, XMLNS_URI};
use std::borrow::Cow;

/// What follows `declare`; any other word is an operator, and `declare` a name.
const DECLARED: &[&str] = &[
    "base-uri",
    "boundary-space",
    "construction",
    "context",
    "copy-namespaces",
    "decimal-format",
    "default",
    "function",
    "namespace",
    "option",
    "ordering",
    "updating",
    "variable",
];

impl Parser<'_> {
    pub(super) fn prolog(&mut self) -> Parsed<()> {
        let start = self.at;
        if self.keyword("xquery") {
            if !self.keyword("version") {
                self.at = start;
                return Ok(());
            }
            let offset = self.at;
            let version = self.string_literal()?;
            if !matches!(&*version, "1.0" | "3.0" | "3.1") {
                return Err(self.unsupported(&format!("XQuery version {version:?}"), offset));
            }
            if self.keyword("encoding") {
                self.string_literal()?;
            }
            self.expect(";")?;
        }
        let mut seen: Vec<(&str, Cow<'_, str>)> = Vec::new();
        loop {
            self.skip();
            let start = self.at;
            let word = self.peek_name();
            self.at += word.len();
            self.skip();
            match word {
                "declare" if DECLARED.contains(&self.peek_name()) => {
                    let what = self.peek_name();
                    let first = self.namespaces.len();
                    self.declaration(start)?;
                    let key = match self.namespaces.get(first) {
                        Some((prefix, _)) => (what, prefix.clone()),
                        // No prefix: `default order` is another declaration than `default element`.
                        None => (what, "-".into()),
                    };
                    if seen.contains(&key) {
                        let message = format!("{what} is declared twice");
                        return Err(self.error_at(XQueryErrorKind::Syntax, message, start));
                    }
                    self.check_scope(seen.len())?;
                    seen.push(key);
                }
                "import" if matches!(self.peek_name(), "module" | "schema") => {
                    return Err(self.unsupported("import", start));
                }
                "module" if self.peek_name() == "namespace" => return Err(self.unsupported("library modules", start)),
                _ => {
                    self.at = start;
                    return Ok(());
                }
            }
        }
    }

    fn declaration(&mut self, start: usize) -> Parsed<()> {
        let what = self.peek_name();
        self.at += what.len();
        match what {
            "namespace" => {
                self.skip();
                let offset = self.at;
                let prefix = self.ncname("a prefix")?;
                self.expect("=")?;
                let uri = self.string_literal()?;
                if matches!(prefix, "xml" | "xmlns") || matches!(uri.trim(), XML_URI | XMLNS_URI) {
                    let message = format!("the prefix {prefix:?} can not be declared so");
                    return Err(self.error_at(XQueryErrorKind::Syntax, message, offset));
                }
                self.namespaces.push((prefix.into(), uri.trim().to_owned().into()));
            }
            "default" if self.keyword("element") => {
                self.expect_keyword("namespace")?;
                let uri = self.string_literal()?;
                self.namespaces.push(("".into(), uri.trim().to_owned().into()));
            }
            "default" if self.keyword("order") => {
                self.expect_keyword("empty")?;
                self.empty_greatest = self.keyword("greatest");
                if !self.empty_greatest {
                    self.expect_keyword("least")?;
                }
            }
            "default" if self.keyword("function") => {
                return Err(self.unsupported("a default function namespace", start));
            }
            "default" if self.keyword("collation") => return Err(self.unsupported("collations", start)),
            "boundary-space" => {
                self.preserve_space = self.keyword("preserve");
                if !self.preserve_space {
                    self.expect_keyword("strip")?;
                }
            }
            // Without types all elements are constructed alike, and any order is an unordered one.
            "construction" if self.keyword("strip") || self.keyword("preserve") => {}
            "ordering" if self.keyword("ordered") || self.keyword("unordered") => {}
            "function" => return Err(self.unsupported("functions of one's own", start)),
            "variable" => return Err(self.unsupported("variables of the prolog", start)),
            "option" => return Err(self.unsupported("options", start)),
            "copy-namespaces" => return Err(self.unsupported("copy-namespaces", start)),
            "base-uri" => return Err(self.unsupported("base URIs", start)),
            "context" | "updating" | "decimal-format" => {
                return Err(self.unsupported(&format!("declare {what}"), start));
            }
            _ => return Err(self.unexpected("something that can be declared")),
        }
        self.expect(";")
    }
}
