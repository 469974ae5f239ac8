//! XSCL: the parser of joins (docs/xscl.md is the contract).
//!
//! The `lexer` splits what follows `SELECT` into tokens, the `parser` reads clauses, `patterns` the blocks, `operators`
//! the equalities and `window` the windows. Pieces of XPath are given to the XPath parser, the constructor to that of
//! XQuery.

pub mod ast;
pub mod error;
mod lexer;
mod operators;
pub mod parser;
mod patterns;
mod window;
