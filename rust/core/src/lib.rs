//! The matching core of Sardonyx, free of Python.
//!
//! Rooms, lower ones first: [`document`] turns bytes into a flat tree, [`xpath`] parses and evaluates XPath 1.0,
//! [`xquery`] parses XQuery, [`xscl`] parses joins,
//! [`paths`] and [`predicates`] find what a document shares with many subscriptions, [`index`] keeps a population of
//! subscriptions, [`matcher`] answers which of them a document satisfies.
#![deny(unsafe_code)]

pub mod document;
pub mod index;
pub mod join;
pub mod matcher;
pub mod paths;
pub mod predicates;
pub mod transform;
pub mod xpath;
pub mod xquery;
pub mod xscl;
