//! XQuery: the parser of the subset that transformations are written in (docs/xquery.md is the contract).

pub mod ast;
mod constructors;
pub mod error;
mod expressions;
pub(crate) mod joined;
mod literals;
pub mod parser;
mod paths;
mod prolog;
