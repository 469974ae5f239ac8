//! The element constructor of a join (docs/xscl.md): XQuery over variables that the join binds.
//!
//! Which variables these are is known only after the constructor, where the blocks are. So it is read twice: once to
//! find where it ends and what it uses, once with these as its first variables.

use super::ast::{Axis, Expr, Module, Name, Slot};
use super::error::{XQueryError, XQueryErrorKind};
use super::parser::{Parsed, Parser, StaticContext};

/// A constructor in a larger text.
#[derive(Debug)]
pub(crate) struct Constructor {
    /// Its expression; the slots 0, 1, ... are `variables`.
    pub(crate) module: Module,
    /// Where it ends.
    pub(crate) end: usize,
    /// The variables that it uses and does not bind, in the order of their first uses, with the places of these.
    pub(crate) variables: Vec<(Box<str>, usize)>,
}

/// Reads the element constructor that begins at `start`.
///
/// # Errors
/// If there is none of the subset, or it looks at more than its variables' nodes and what is below them. Places are
/// those of the whole text, which the caller has checked for its length and for characters that XML forbids.
pub(crate) fn parse_constructor<'t>(
    text: &'t str,
    start: usize,
    context: &StaticContext<'t>,
) -> Result<Constructor, XQueryError> {
    let (_, first) = read(text, start, context, &[])?;
    let names: Vec<Name> = first.free.iter().map(|(name, _)| name.clone()).collect();
    let (body, second) = read(text, start, context, &names)?;
    let module = Module { body, slots: second.constructed.len() as Slot };
    let variables = first.free.into_iter().map(|(name, offset)| (name.local, offset)).collect();
    Ok(Constructor { module, end: second.at, variables })
}

fn read<'t>(
    text: &'t str,
    start: usize,
    context: &StaticContext<'t>,
    variables: &[Name],
) -> Parsed<(Expr, Parser<'t>)> {
    let mut parser = Parser::new(text, context);
    parser.at = start;
    parser.in_join = true;
    for name in variables {
        parser.bind(name.clone(), false)?;
    }
    let body = parser.nested(Parser::direct_constructor)?;
    Ok((body, parser))
}

/// Whether an axis leads to nodes that are not below a node.
pub(super) fn leaves_subtree(axis: Axis) -> bool {
    !matches!(axis, Axis::Attribute | Axis::Child | Axis::Descendant | Axis::DescendantOrSelf | Axis::SelfAxis)
}

impl Parser<'_> {
    /// Notes a variable that the join has to bind.
    pub(super) fn free_variable(&mut self, name: Name, offset: usize) -> Parsed<Expr> {
        if !self.free.iter().any(|(known, _)| *known == name) {
            self.check_scope(self.variables.len().max(self.free.len()))?;
            self.free.push((name, offset));
        }
        // It has no slot in this reading; what is read is thrown away.
        Ok(Expr::Variable(Slot::MAX))
    }

    /// Refuses what is neither a variable's node nor below one.
    pub(super) fn refuse_in_join(&self, what: &str, offset: usize) -> Parsed<()> {
        if !self.in_join {
            return Ok(());
        }
        let message =
            format!("{what}: the constructor of a join sees the nodes of its variables and what is below them");
        Err(self.error_at(XQueryErrorKind::Unsupported, message, offset))
    }

    /// Refuses to use the context item where nothing has chosen one: a join has no document of its own.
    pub(super) fn check_focus(&self, what: &str, offset: usize) -> Parsed<()> {
        if self.has_focus { Ok(()) } else { self.refuse_in_join(what, offset) }
    }
}
