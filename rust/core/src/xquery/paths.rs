//! Paths, steps and primary expressions (XQuery 1.0 §3.1, §3.2).

use super::ast::{Axis, Expr, Function, NodeTest, Step};
use super::error::XQueryErrorKind;
use super::joined::leaves_subtree;
use super::parser::{FN_URI, Parsed, Parser, XS_URI};
use crate::xpath::parser::steps::axis_named;

/// What one step of a path is.
enum Part {
    Axis(Axis, NodeTest, Vec<Expr>),
    Expr(Expr),
}

/// Functions of XQuery 1.0 that are not in the subset.
const OTHER_FUNCTIONS: &[&str] = &[
    "adjust-date-to-timezone",
    "adjust-dateTime-to-timezone",
    "adjust-time-to-timezone",
    "base-uri",
    "codepoint-equal",
    "codepoints-to-string",
    "collection",
    "current-date",
    "current-dateTime",
    "current-time",
    "dateTime",
    "day-from-date",
    "day-from-dateTime",
    "days-from-duration",
    "deep-equal",
    "default-collation",
    "doc-available",
    "document-uri",
    "encode-for-uri",
    "error",
    "escape-html-uri",
    "hours-from-dateTime",
    "hours-from-duration",
    "hours-from-time",
    "id",
    "idref",
    "implicit-timezone",
    "in-scope-prefixes",
    "insert-before",
    "iri-to-uri",
    "lang",
    "local-name-from-QName",
    "matches",
    "minutes-from-dateTime",
    "minutes-from-duration",
    "minutes-from-time",
    "month-from-date",
    "month-from-dateTime",
    "months-from-duration",
    "namespace-uri-for-prefix",
    "namespace-uri-from-QName",
    "nilled",
    "node-name",
    "normalize-unicode",
    "prefix-from-QName",
    "QName",
    "remove",
    "replace",
    "resolve-QName",
    "resolve-uri",
    "round-half-to-even",
    "seconds-from-dateTime",
    "seconds-from-duration",
    "seconds-from-time",
    "static-base-uri",
    "string-to-codepoints",
    "timezone-from-date",
    "timezone-from-dateTime",
    "timezone-from-time",
    "tokenize",
    "trace",
    "year-from-date",
    "year-from-dateTime",
    "years-from-duration",
];

fn any_descendant() -> Step {
    Step::Axis { axis: Axis::DescendantOrSelf, test: NodeTest::Node, predicates: Vec::new() }
}

impl<'t> Parser<'t> {
    pub(super) fn path(&mut self) -> Parsed<Expr> {
        self.skip();
        let start_offset = self.at;
        let mut steps = Vec::new();
        let mut start = Expr::Root;
        if self.byte(0) == b'/' {
            self.refuse_in_join("a path from the document", start_offset)?;
            self.refuse_constructed(&Expr::Context, start_offset)?;
        }
        if self.rest().starts_with("//") {
            self.at += 2;
            steps.push(any_descendant());
        } else if self.byte(0) == b'/' {
            self.at += 1;
            self.skip();
            if !self.begins_step() {
                return Ok(Expr::Root);
            }
        } else {
            match self.step()? {
                Part::Axis(axis, test, predicates) => {
                    start = Expr::Context;
                    self.check_focus("a path that starts from no variable", start_offset)?;
                    self.refuse_constructed(&start, start_offset)?;
                    steps.push(Step::Axis { axis, test, predicates });
                }
                Part::Expr(expr) => start = expr,
            }
            self.skip();
            if self.byte(0) != b'/' {
                return Ok(Self::path_of(start, steps));
            }
            self.refuse_constructed(&start, start_offset)?;
            if steps.is_empty() {
                self.deepen(1)?;
            }
            self.at += 1;
            if self.byte(0) == b'/' {
                self.at += 1;
                steps.push(any_descendant());
            }
        }
        // Steps see nodes of the document, whatever is around.
        let around = std::mem::replace(&mut self.in_constructed, false);
        let had_focus = std::mem::replace(&mut self.has_focus, true);
        let read = self.more_steps(&mut steps);
        self.in_constructed = around;
        self.has_focus = had_focus;
        read?;
        Ok(Self::path_of(start, steps))
    }

    fn more_steps(&mut self, steps: &mut Vec<Step>) -> Parsed<()> {
        loop {
            self.node()?;
            self.skip();
            let offset = self.at;
            // Steps stand side by side: each is measured by itself.
            let reach = std::mem::replace(&mut self.reach, self.depth);
            let step = self.step()?;
            if matches!(step, Part::Expr(_)) {
                self.deepen(1)?;
            }
            self.reach = self.reach.max(reach);
            match step {
                Part::Axis(axis, test, predicates) => steps.push(Step::Axis { axis, test, predicates }),
                Part::Expr(Expr::Context) => {
                    steps.push(Step::Axis { axis: Axis::SelfAxis, test: NodeTest::Node, predicates: Vec::new() });
                }
                Part::Expr(expr) => steps.push(Step::Expr(expr)),
            }
            self.skip();
            if self.byte(0) != b'/' {
                return Ok(());
            }
            if let Some(Step::Expr(expr)) = steps.last() {
                self.refuse_constructed(expr, offset)?;
            }
            self.at += 1;
            if self.byte(0) == b'/' {
                self.at += 1;
                steps.push(any_descendant());
            }
        }
    }

    /// Whether a step comes next, after a slash that may also stand alone.
    fn begins_step(&self) -> bool {
        match self.byte(0) {
            b'@' | b'.' | b'*' | b'$' | b'(' | b'"' | b'\'' | b'0'..=b'9' => true,
            b'<' => self.byte(1).is_ascii_alphabetic() || matches!(self.byte(1), b'_' | b'!' | b'?'),
            _ => !self.peek_name().is_empty(),
        }
    }

    fn predicates(&mut self, in_constructed: bool) -> Parsed<Vec<Expr>> {
        let mut predicates = Vec::new();
        while self.take("[") {
            let around = std::mem::replace(&mut self.in_constructed, in_constructed);
            let had_focus = std::mem::replace(&mut self.has_focus, true);
            let predicate = self.expression();
            self.in_constructed = around;
            self.has_focus = had_focus;
            predicates.push(predicate?);
            self.expect("]")?;
            self.node()?;
        }
        Ok(predicates)
    }

    fn step(&mut self) -> Parsed<Part> {
        self.skip();
        let start = self.at;
        match self.byte(0) {
            b'@' => {
                self.at += 1;
                self.skip();
                let test = self.node_test(Axis::Attribute)?;
                return Ok(Part::Axis(Axis::Attribute, test, self.predicates(false)?));
            }
            b'.' if self.byte(1) == b'.' => {
                self.refuse_in_join("the axis parent", start)?;
                self.at += 2;
                return Ok(Part::Axis(Axis::Parent, NodeTest::Node, self.predicates(false)?));
            }
            b'*' => {
                let test = self.node_test(Axis::Child)?;
                return Ok(Part::Axis(Axis::Child, test, self.predicates(false)?));
            }
            _ => {}
        }
        let word = self.peek_name();
        if !word.is_empty() {
            let after = start + word.len();
            self.at = after;
            self.skip();
            if self.rest().starts_with("::") {
                let axis = self.axis(word, start)?;
                self.at += 2;
                self.skip();
                let test = self.node_test(axis)?;
                return Ok(Part::Axis(axis, test, self.predicates(false)?));
            }
            let is_kind = matches!(
                word,
                "node"
                    | "text"
                    | "comment"
                    | "processing-instruction"
                    | "element"
                    | "attribute"
                    | "document-node"
                    | "schema-element"
                    | "schema-attribute"
            );
            let is_call = self.byte(0) == b'(' && self.byte(1) != b':';
            self.at = start;
            if !(is_kind && is_call) {
                if let Some(made) = self.computed_constructor()? {
                    return self.with_predicates(made);
                }
                if let Some(call) = self.call()? {
                    return self.with_predicates(call);
                }
            }
            let axis = if is_kind && is_call && word == "attribute" { Axis::Attribute } else { Axis::Child };
            let test = self.node_test(axis)?;
            return Ok(Part::Axis(axis, test, self.predicates(false)?));
        }
        let primary = self.primary()?;
        self.with_predicates(primary)
    }

    fn with_predicates(&mut self, primary: Expr) -> Parsed<Part> {
        let is_constructed = self.may_construct(&primary);
        let predicates = self.predicates(is_constructed)?;
        self.skip();
        match self.byte(0) {
            b'(' if self.byte(1) != b':' => return Err(self.unsupported("calls of function items", self.at)),
            b'?' => return Err(self.unsupported("lookups", self.at)),
            _ => {}
        }
        if predicates.is_empty() {
            return Ok(Part::Expr(primary));
        }
        self.deepen(1)?;
        Ok(Part::Expr(Expr::Filter(Box::new(primary), predicates)))
    }

    fn axis(&self, word: &str, start: usize) -> Parsed<Axis> {
        match axis_named(word) {
            Some(Axis::Namespace) => Err(self.unsupported("the namespace axis", start)),
            Some(axis) => {
                if leaves_subtree(axis) {
                    self.refuse_in_join(&format!("the axis {word}"), start)?;
                }
                Ok(axis)
            }
            None => Err(self.error_at(XQueryErrorKind::Syntax, format!("there is no axis {word:?}"), start)),
        }
    }

    fn node_test(&mut self, axis: Axis) -> Parsed<NodeTest> {
        let is_element = axis != Axis::Attribute;
        let start = self.at;
        if self.byte(0) == b'*' {
            self.at += 1;
            if self.byte(0) == b':' && self.byte(1) != b':' {
                self.at += 1;
                return Ok(NodeTest::Local(self.ncname("a local name")?.into()));
            }
            return Ok(NodeTest::Any);
        }
        let word = self.ncname("a step")?;
        if self.rest().starts_with(":*") {
            self.at += 2;
            return Ok(NodeTest::Namespace(self.bound(word, start)?.into()));
        }
        let after = self.at;
        self.skip();
        if self.byte(0) == b'(' && self.byte(1) != b':' {
            self.at += 1;
            let test = match word {
                "node" => NodeTest::Node,
                "text" => NodeTest::Text,
                "comment" => NodeTest::Comment,
                "processing-instruction" => {
                    self.skip();
                    let target = match self.byte(0) {
                        b'"' | b'\'' => Some(self.string_literal()?.trim().into()),
                        b')' => None,
                        _ => Some(self.ncname("a target")?.into()),
                    };
                    NodeTest::ProcessingInstruction(target)
                }
                "element" | "attribute" => {
                    self.skip();
                    let offset = self.at;
                    let name = match self.byte(0) {
                        b')' => None,
                        b'*' => {
                            self.at += 1;
                            None
                        }
                        _ => {
                            let name = self.qname("a name")?;
                            Some(self.resolve(name, word == "element", offset)?)
                        }
                    };
                    self.skip();
                    if self.byte(0) == b',' {
                        return Err(self.unsupported("tests of types", offset));
                    }
                    if word == "element" { NodeTest::Element(name) } else { NodeTest::Attribute(name) }
                }
                "document-node" => {
                    self.skip();
                    if self.byte(0) != b')' {
                        return Err(self.unsupported("document-node() with a test", start));
                    }
                    NodeTest::Document
                }
                "schema-element" | "schema-attribute" => return Err(self.unsupported("schema types", start)),
                _ => {
                    self.at = start;
                    return Err(self.unexpected("a node test"));
                }
            };
            self.expect(")")?;
            return Ok(test);
        }
        self.at = after;
        let name = if self.byte(0) == b':' && self.byte(1) != b':' && self.byte(1) != b'=' {
            self.at += 1;
            (word, self.ncname("a local name")?)
        } else {
            ("", word)
        };
        Ok(NodeTest::Name(self.resolve(name, is_element, start)?))
    }

    fn primary(&mut self) -> Parsed<Expr> {
        self.node()?;
        match self.byte(0) {
            b'"' | b'\'' => {
                let text = self.string_literal()?;
                Ok(Expr::Literal(super::ast::Literal::String(text.into())))
            }
            b'0'..=b'9' => self.number(),
            b'.' if self.byte(1).is_ascii_digit() => self.number(),
            b'.' => {
                self.check_focus("the context item", self.at)?;
                self.at += 1;
                Ok(Expr::Context)
            }
            b'$' => {
                let start = self.at;
                let name = self.variable_name()?;
                let found = self.variables.iter().rev().find(|(known, _)| *known == name);
                match found {
                    Some((_, slot)) => Ok(Expr::Variable(*slot)),
                    None if self.in_join && name.uri.is_empty() => self.free_variable(name, start),
                    None if &*name.local == "doc" && name.uri.is_empty() => Ok(Expr::Root),
                    None => {
                        let message = format!("nothing binds the variable ${}", name.local);
                        Err(self.error_at(XQueryErrorKind::Variable, message, start))
                    }
                }
            }
            b'(' if self.byte(1) == b'#' => Err(self.unsupported("extension expressions", self.at)),
            b'(' if self.byte(1) == b':' => Err(self.syntax("this comment does not end")),
            b'(' => {
                self.at += 1;
                if self.take(")") {
                    return Ok(Expr::Sequence(Vec::new()));
                }
                let inner = self.expression()?;
                self.expect(")")?;
                Ok(inner)
            }
            b'<' => self.nested(Self::direct_constructor),
            b'%' | b'?' | b'[' | b'`' => Err(self.unsupported("syntax of a later XQuery", self.at)),
            _ => Err(self.unexpected("an expression")),
        }
    }

    /// A function call, if one comes next.
    fn call(&mut self) -> Parsed<Option<Expr>> {
        let start = self.at;
        let (prefix, local) = self.qname("a name")?;
        self.skip();
        if self.byte(0) == b'#' {
            return Err(self.unsupported("function items", start));
        }
        if self.byte(0) != b'(' || self.byte(1) == b':' {
            self.at = start;
            return Ok(None);
        }
        let uri: Box<str> = if prefix.is_empty() { FN_URI.into() } else { self.bound(prefix, start)?.into() };
        if prefix.is_empty() && local == "function" {
            return Err(self.unsupported("inline functions", start));
        }
        if prefix.is_empty() && matches!(local, "if" | "typeswitch" | "item" | "switch") {
            return Err(self.error_at(XQueryErrorKind::Syntax, format!("{local} is no function"), start));
        }
        self.at += 1;
        if *uri == *FN_URI && matches!(local, "doc" | "document") {
            return self.document_call(local, start).map(Some);
        }
        let wanted = |function: &&Function| match function.name().strip_prefix("xs:") {
            Some(kind) => *uri == *XS_URI && kind == local,
            None => *uri == *FN_URI && function.name() == local,
        };
        let Some(function) = Function::ALL.iter().find(wanted).copied() else {
            if *uri == *XS_URI || (*uri == *FN_URI && OTHER_FUNCTIONS.contains(&local)) {
                return Err(self.unsupported(&format!("the function {local}()"), start));
            }
            let message = format!("there is no function {local}()");
            return Err(self.error_at(XQueryErrorKind::UnknownFunction, message, start));
        };
        let mut arguments = Vec::new();
        if !self.take(")") {
            loop {
                arguments.push(self.nested(Self::single)?);
                if !self.take(",") {
                    break;
                }
            }
            self.expect(")")?;
        }
        self.node()?;
        let (least, most) = function.arity();
        if arguments.len() < least || arguments.len() > most {
            let needed = match (least, most) {
                (least, most) if least == most => format!("{least}"),
                (least, usize::MAX) => format!("{least} or more"),
                (least, most) => format!("{least} to {most}"),
            };
            let message = format!("{}() takes {needed} arguments, not {}", function.name(), arguments.len());
            return Err(self.error_at(XQueryErrorKind::WrongArguments, message, start));
        }
        self.check_call(function, &arguments, start)?;
        Ok(Some(Expr::Call(function, arguments)))
    }
}
