//! Steps: axes, node tests and predicates (§2.1 to §2.4).

use super::{Part, Predicates, Run};
use crate::document::XML_URI;
use crate::xpath::ast::{Axis, CompareOp, Expr, Function, NONE, NodeTest};
use crate::xpath::error::{XPathError, XPathErrorKind};
use crate::xpath::lexer::Token;
use crate::xpath::semantics::Type;
use crate::xpath::symbols::NameTest;

/// The axis of a name.
pub(crate) fn axis_named(name: &str) -> Option<Axis> {
    Some(match name {
        "ancestor" => Axis::Ancestor,
        "ancestor-or-self" => Axis::AncestorOrSelf,
        "attribute" => Axis::Attribute,
        "child" => Axis::Child,
        "descendant" => Axis::Descendant,
        "descendant-or-self" => Axis::DescendantOrSelf,
        "following" => Axis::Following,
        "following-sibling" => Axis::FollowingSibling,
        "namespace" => Axis::Namespace,
        "parent" => Axis::Parent,
        "preceding" => Axis::Preceding,
        "preceding-sibling" => Axis::PrecedingSibling,
        "self" => Axis::SelfAxis,
        _ => return None,
    })
}

pub(super) fn is_node_type(name: &str) -> bool {
    matches!(name, "node" | "text" | "comment" | "processing-instruction")
}

/// Node types of later versions.
pub(super) fn is_later_node_type(name: &str) -> bool {
    matches!(
        name,
        "element" | "attribute" | "document-node" | "item" | "schema-element" | "schema-attribute" | "namespace-node"
    )
}

/// Whether a predicate looks at the context position or size.
pub(super) fn counts_positions(predicate: Part) -> bool {
    predicate.positional || predicate.kind == Type::Number
}

impl<'r> Run<'r> {
    /// One step; returns the height of its predicates.
    pub(super) fn step(&mut self, base: usize) -> Result<usize, XPathError> {
        let shorthand = match self.token {
            Token::Dot => Some((Axis::SelfAxis, "self::node()")),
            Token::DotDot => Some((Axis::Parent, "parent::node()")),
            _ => None,
        };
        if let Some((axis, long)) = shorthand {
            self.advance()?;
            if self.token == Token::OpenBracket {
                let message = format!("a predicate cannot follow `.` or `..`; write `{long}[…]`");
                return Err(self.error(XPathErrorKind::Syntax, message));
            }
            self.push_step(base, axis, NodeTest::Node, Predicates::default());
            return Ok(0);
        }
        let axis = match self.token {
            Token::At => {
                self.advance()?;
                Axis::Attribute
            }
            Token::AxisName(name) => {
                let Some(axis) = axis_named(name) else {
                    return Err(self.error(XPathErrorKind::Syntax, format!("`{name}` is not an axis of XPath 1.0")));
                };
                self.advance()?;
                self.expect(Token::ColonColon, "`::`")?;
                axis
            }
            _ => Axis::Child,
        };
        let before = self.parser.predicates.len();
        let test = self.node_test(axis)?;
        let mut predicates = self.predicates()?;
        // A test on a namespace node's prefix was turned into a predicate, which comes first.
        predicates.count = self.parser.predicates.len() - before;
        self.push_step(base, axis, test, predicates);
        Ok(predicates.height.max(usize::from(axis == Axis::Namespace) * 2))
    }

    pub(super) fn node_test(&mut self, axis: Axis) -> Result<NodeTest, XPathError> {
        let test = match self.token {
            Token::Star => NodeTest::Any,
            Token::PrefixStar(_) if self.context.ignore_namespaces => NodeTest::Any,
            Token::PrefixStar(prefix) => {
                let uri = self.namespace(prefix)?;
                if axis == Axis::Namespace {
                    self.namespace_test(None);
                    NodeTest::Any
                } else {
                    NodeTest::Name(self.symbols.intern(NameTest::Namespace(uri)))
                }
            }
            Token::Name(prefix, local) => self.name_test(axis, prefix, local)?,
            Token::CallName("", name) if is_node_type(name) => return self.node_type(name),
            Token::CallName(prefix, local) => return Err(self.not_a_node_type(prefix, local)),
            _ => return Err(self.unexpected("a name, `*` or a node type")),
        };
        let named = self.token;
        self.advance()?;
        if let (Token::Name("", word @ ("for" | "some" | "every" | "let")), Token::Variable) = (named, self.token) {
            let message = format!("`{word} $…` is XPath 2.0 or later");
            return Err(self.error(XPathErrorKind::NotXPath1, message));
        }
        Ok(test)
    }

    pub(super) fn name_test(&mut self, axis: Axis, prefix: &str, local: &str) -> Result<NodeTest, XPathError> {
        let uri = if self.context.ignore_namespaces {
            None
        } else if !prefix.is_empty() {
            Some(self.namespace(prefix)?)
        } else if matches!(axis, Axis::Attribute | Axis::Namespace) {
            Some("")
        } else {
            Some(self.context.namespaces.iter().find(|(prefix, _)| prefix.is_empty()).map_or("", |(_, uri)| uri))
        };
        if axis == Axis::Namespace {
            self.namespace_test((uri.unwrap_or("").is_empty()).then_some(local));
            return Ok(NodeTest::Any);
        }
        Ok(NodeTest::Name(self.symbols.intern(match uri {
            Some(uri) => NameTest::Expanded(uri, local),
            None => NameTest::Local(local),
        })))
    }

    /// `namespace::p` as `namespace::*[local-name() = 'p']`; a namespace node's name is in no namespace, so that a
    /// prefixed test holds for none: `[false()]`. The prefixes of documents thus need no symbols.
    pub(super) fn namespace_test(&mut self, prefix: Option<&str>) {
        let builder = &mut self.parser.builder;
        let predicate = match prefix {
            Some(prefix) => {
                let name = builder.expr(Expr::Call(Function::LocalName, NONE));
                let constant = builder.string(prefix);
                builder.expr(Expr::Compare(CompareOp::Equal, name, constant))
            }
            None => builder.expr(Expr::Call(Function::False, NONE)),
        };
        self.parser.predicates.push(predicate);
    }

    pub(super) fn namespace(&self, prefix: &str) -> Result<&'r str, XPathError> {
        if let Some((_, uri)) = self.context.namespaces.iter().find(|(bound, _)| *bound == prefix) {
            if !uri.is_empty() {
                return Ok(uri);
            }
            let message = format!("the prefix `{prefix}` is bound to no namespace; only the default can be empty");
            return Err(self.error(XPathErrorKind::UnboundPrefix, message));
        }
        if prefix == "xml" {
            return Ok(XML_URI);
        }
        let message = format!("the prefix `{prefix}` is not bound to a namespace");
        Err(self.error(XPathErrorKind::UnboundPrefix, message))
    }

    pub(super) fn node_type(&mut self, name: &str) -> Result<NodeTest, XPathError> {
        self.advance()?;
        self.expect(Token::Open, "`(`")?;
        let test = match (name, self.token) {
            ("processing-instruction", Token::Literal(target)) => {
                self.advance()?;
                NodeTest::ProcessingInstructionNamed(self.symbols.intern(NameTest::Expanded("", target)))
            }
            ("processing-instruction", _) => NodeTest::ProcessingInstruction,
            ("text", _) => NodeTest::Text,
            ("comment", _) => NodeTest::Comment,
            _ => NodeTest::Node,
        };
        let expected = if test == NodeTest::ProcessingInstruction { "a target in quotes or `)`" } else { "`)`" };
        self.expect(Token::Close, expected)?;
        Ok(test)
    }

    pub(super) fn not_a_node_type(&self, prefix: &str, local: &str) -> XPathError {
        if prefix.is_empty() && is_later_node_type(local) {
            let message = format!("the node test `{local}()` is XPath 2.0 or later");
            return self.error(XPathErrorKind::NotXPath1, message);
        }
        let message =
            format!("found the call `{local}(`; a step is a name, `*` or a node type (calls as steps are XPath 2.0)");
        self.error(XPathErrorKind::NotXPath1, message)
    }

    pub(super) fn predicates(&mut self) -> Result<Predicates, XPathError> {
        let mut found = Predicates::default();
        while self.token == Token::OpenBracket {
            let part = self.predicate()?;
            self.parser.predicates.push(part.id);
            found.count += 1;
            found.positional |= counts_positions(part);
            found.height = found.height.max(part.height);
        }
        Ok(found)
    }

    pub(super) fn predicate(&mut self) -> Result<Part, XPathError> {
        self.advance()?;
        if self.token == Token::CloseBracket {
            return Err(self.unexpected("an expression"));
        }
        let part = self.expression()?;
        self.expect(Token::CloseBracket, "an operator or `]`")?;
        Ok(part)
    }
}
