//! XPath 1.0: parser, static semantics and the exact evaluator.

pub mod ast;
pub mod clauses;
pub mod display;
pub mod error;
pub mod evaluate;
mod lexer;
pub mod parser;
pub mod semantics;
pub mod symbols;
