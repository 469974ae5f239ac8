//! XQuery: the parser of the subset that transformations are written in (docs/xquery.md is the contract).

pub mod ast;
