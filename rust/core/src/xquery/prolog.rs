//! The prolog (XQuery 1.0 §4): what concerns names and white space.

use super::parser::{Parsed, Parser};

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
        loop {
            self.skip();
            let start = self.at;
            let word = self.peek_name();
            self.at += word.len();
            self.skip();
            match word {
                "declare" if !self.peek_name().is_empty() => self.declaration(start)?,
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
                if matches!(prefix, "xml" | "xmlns") {
                    return Err(self.error_at(
                        super::error::XQueryErrorKind::Syntax,
                        format!("the prefix {prefix:?} can not be declared"),
                        offset,
                    ));
                }
                self.namespaces.push((prefix.into(), uri.trim().into()));
            }
            "default" if self.keyword("element") => {
                self.expect_keyword("namespace")?;
                let uri = self.string_literal()?;
                self.namespaces.push(("".into(), uri.trim().into()));
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
