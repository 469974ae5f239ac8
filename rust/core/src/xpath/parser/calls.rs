//! Primary expressions (§3.1, §3.2): literals, parentheses, function calls.

use super::{Part, Run};
use crate::xpath::ast::{Expr, Function};
use crate::xpath::error::{XPathError, XPathErrorKind};
use crate::xpath::lexer::Token;
use crate::xpath::semantics::{self, Type};

impl Run<'_> {
    pub(super) fn primary(&mut self) -> Result<Part, XPathError> {
        let leaf = |id, kind| Part { id, height: 1, kind, positional: false };
        match self.token {
            Token::Literal(value) => {
                self.advance()?;
                Ok(leaf(self.parser.builder.string(value), Type::String))
            }
            Token::Number(digits) => {
                self.advance()?;
                let value = digits.parse().unwrap_or(f64::NAN);
                Ok(leaf(self.parser.builder.number(value), Type::Number))
            }
            Token::Open => {
                self.advance()?;
                if self.token == Token::Close {
                    return Err(self.error(XPathErrorKind::NotXPath1, "the empty sequence `()` is XPath 2.0"));
                }
                let part = self.expression()?;
                if self.token == Token::Comma {
                    return Err(self.error(XPathErrorKind::NotXPath1, "a sequence `(a, b)` is XPath 2.0; use `a | b`"));
                }
                self.expect(Token::Close, "an operator or `)`")?;
                Ok(part)
            }
            Token::CallName(prefix, local) => self.call(prefix, local),
            _ => Err(self.unexpected("an expression")),
        }
    }

    pub(super) fn call(&mut self, prefix: &str, local: &str) -> Result<Part, XPathError> {
        let at = self.at;
        if prefix.is_empty() && matches!(local, "if" | "typeswitch" | "switch" | "function" | "map" | "array") {
            let message = format!("`{local} (…)` is not XPath 1.0");
            return Err(self.error(XPathErrorKind::NotXPath1, message));
        }
        let Some(signature) = semantics::function_named(local).filter(|_| prefix.is_empty()) else {
            return Err(self.unknown_function(prefix, local));
        };
        self.advance()?;
        self.expect(Token::Open, "`(`")?;
        let base = self.parser.operands.len();
        let mut part = Part {
            id: 0,
            height: 0,
            kind: signature.result,
            positional: matches!(signature.function, Function::Position | Function::Last),
        };
        while self.token != Token::Close {
            let argument_at = self.at;
            let argument = self.expression()?;
            if signature.node_sets && argument.kind != Type::NodeSet {
                let message = format!("{}() takes a node-set; this is a {}", signature.name, argument.kind.name());
                return Err(self.error_at(XPathErrorKind::Type, message, argument_at));
            }
            self.parser.operands.push(argument.id);
            part.height = part.height.max(argument.height);
            part.positional |= argument.positional;
            match self.token {
                Token::Comma => {
                    self.advance()?;
                    if self.token == Token::Close {
                        return Err(self.unexpected("an argument"));
                    }
                }
                Token::Close => {}
                _ => return Err(self.unexpected("an operator, `,` or `)`")),
            }
        }
        let count = self.parser.operands.len() - base;
        if count < signature.least || count > signature.most {
            return Err(self.error_at(XPathErrorKind::WrongArguments, wrong_arguments(signature, count), at));
        }
        self.advance()?;
        let list = self.parser.builder.list(&self.parser.operands[base..]);
        self.parser.operands.truncate(base);
        part.id = self.parser.builder.expr(Expr::Call(signature.function, list));
        part.height = self.check_height(part.height + 1)?;
        Ok(part)
    }

    pub(super) fn unknown_function(&self, prefix: &str, local: &str) -> XPathError {
        let shown = if prefix.is_empty() { local.to_string() } else { format!("{prefix}:{local}") };
        let nearest = semantics::function_names().find(|name| name.eq_ignore_ascii_case(local));
        let advice = match nearest {
            Some(name) => format!("; did you mean {name}()?"),
            None => format!("; the core functions are {}", semantics::function_names().collect::<Vec<_>>().join(", ")),
        };
        self.error(XPathErrorKind::UnknownFunction, format!("{shown}() is not an XPath 1.0 function{advice}"))
    }
}

fn wrong_arguments(signature: &semantics::Signature, count: usize) -> String {
    let expected = match (signature.least, signature.most) {
        (least, usize::MAX) => format!("at least {least}"),
        (least, most) if least == most => least.to_string(),
        (least, most) => format!("{least} to {most}"),
    };
    format!("{}() takes {expected} arguments; found {count}", signature.name)
}
