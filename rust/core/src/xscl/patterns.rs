//! Blocks: paths whose steps bind variables, taken apart into pattern nodes.

use super::ast::NodeAt;
use super::error::{Outcome, XsclError, XsclErrorKind};
use super::lexer::Kind;
use super::parser::{Parser, Piece};

/// A block being read.
#[derive(Debug)]
pub(super) struct OpenBlock {
    pub(super) stream: Option<Box<str>>,
    pub(super) nodes: Vec<OpenNode>,
}

/// A pattern node whose path may grow.
#[derive(Debug)]
pub(super) struct OpenNode {
    pub(super) parent: Option<u16>,
    pub(super) path: String,
    pub(super) variable: Option<String>,
    /// How many nodes it hangs from, with itself.
    depth: usize,
    /// Where it is in the query.
    pub(super) offset: usize,
}

/// A range of tokens: the first, and the one behind the last.
type Range = (usize, usize);

/// A step as read.
struct Step<'t> {
    head: Range,
    /// Its variable, and where it is named.
    variable: Option<(&'t str, usize)>,
    conditions: Vec<Condition>,
    /// Whether a condition looks at positions, so that their order matters.
    is_positional: bool,
}

/// `[…]`
struct Condition {
    whole: Range,
    /// What binds nothing, with whether it is a number; one that is not split is `whole` itself.
    plain: Vec<(Range, bool)>,
    /// Patterns that bind variables.
    patterns: Vec<Range>,
}

const AND_ALONE: &str = "variables can be bound in paths that are joined by `and` alone";

impl<'t> Parser<'t> {
    /// A stream and a pattern.
    pub(super) fn block(&mut self) -> Outcome<()> {
        let offset = self.offset();
        let Ok(_) = u16::try_from(self.blocks.len() + 1) else {
            return Err(self.error(XsclErrorKind::Limit, "more than 65,535 blocks", offset));
        };
        let stream = match self.kind() {
            Kind::Slash | Kind::SlashSlash => None,
            Kind::Name | Kind::Literal => Some(self.stream_name()?),
            _ => {
                return Err(
                    self.unexpected("a block, which is a path from / or // with or without a stream before it,")
                );
            }
        };
        if !matches!(self.kind(), Kind::Slash | Kind::SlashSlash) {
            return Err(self.unexpected("/ or // after the name of a stream"));
        }
        self.blocks.push(OpenBlock { stream, nodes: Vec::new() });
        let text = self.text().to_owned();
        self.at += 1;
        self.steps(None, text)
    }

    /// Steps, the first behind the slash that ends `text`; `parent` is the node that they start from.
    fn steps(&mut self, mut parent: Option<u16>, mut text: String) -> Outcome<()> {
        let block = (self.blocks.len() - 1) as u16;
        let mut offset = self.offset();
        loop {
            let step = self.step()?;
            self.push_step(&step, &mut text);
            if step.variable.is_some() || step.binds() {
                let name = step.variable.map(|(name, _)| name);
                let node = self.add_node(block, parent, std::mem::take(&mut text), name, offset)?;
                if let Some((name, offset)) = step.variable
                    && self.variables.insert(name, NodeAt { block, node }).is_some()
                {
                    let message = format!("the variable {name} is bound twice");
                    return Err(self.error(XsclErrorKind::Variable, message, offset));
                }
                let after = self.at;
                for (from, to) in step.conditions.iter().flat_map(|condition| &condition.patterns) {
                    self.nested(|parser| parser.pattern(node, *from, *to))?;
                }
                self.at = after;
                parent = Some(node);
                text.push('.');
            }
            if !matches!(self.kind(), Kind::Slash | Kind::SlashSlash) {
                break;
            }
            text.push_str(self.text());
            self.at += 1;
            if matches!(&*text, "./" | ".//") {
                offset = self.offset();
            }
        }
        match parent {
            None => self.add_node(block, None, text, None, offset).map(|_| ()),
            // Nothing follows the last node.
            Some(_) if text == "." => Ok(()),
            // What follows binds nothing: it only has to be there.
            Some(node) => {
                self.count_path(text.len() + 2, offset)?;
                let path = &mut self.blocks[usize::from(block)].nodes[usize::from(node)].path;
                path.extend(["[", &text, "]"]);
                Ok(())
            }
        }
    }

    /// Adds a pattern node.
    pub(super) fn add_node(
        &mut self,
        block: u16,
        parent: Option<u16>,
        path: String,
        variable: Option<&str>,
        offset: usize,
    ) -> Outcome<u16> {
        self.count_path(path.len(), offset)?;
        let nodes = &self.blocks[usize::from(block)].nodes;
        let depth = 1 + parent.map_or(0, |parent| nodes[usize::from(parent)].depth);
        self.check_depth(depth, offset)?;
        let Ok(number) = u16::try_from(nodes.len()) else {
            return Err(self.error(XsclErrorKind::Limit, "more than 65,536 nodes in one block", offset));
        };
        let node = OpenNode { parent, path, variable: variable.map(str::to_owned), depth, offset };
        self.blocks[usize::from(block)].nodes.push(node);
        Ok(number)
    }

    /// A path that binds nothing after a variable, relative to its node; empty if there is none.
    pub(super) fn plain_path(&mut self) -> Outcome<String> {
        let mut text = String::new();
        while matches!(self.kind(), Kind::Slash | Kind::SlashSlash) {
            if text.is_empty() {
                text.push('.');
            }
            text.push_str(self.text());
            self.at += 1;
            let from = self.at;
            let step = self.step()?;
            if step.variable.is_some() || step.binds() {
                let what = "a path in an equality binds no variables: bind them in the block";
                return Err(self.refused_bind(what, from, self.at));
            }
            self.push_step(&step, &mut text);
        }
        Ok(text)
    }

    /// A pattern in a condition.
    fn pattern(&mut self, parent: u16, from: usize, to: usize) -> Outcome<()> {
        self.at = from;
        let mut text = "./".to_owned();
        let is_call = self.kind() == Kind::Name && self.kind_after() == Kind::Open && !is_node_type(self.text());
        match self.kind() {
            Kind::Dot if matches!(self.kind_after(), Kind::Slash | Kind::SlashSlash) => {
                self.at += 1;
                text.truncate(1);
                text.push_str(self.text());
                self.at += 1;
            }
            Kind::Name if is_call => {
                let what = format!("a variable is bound in the function call {}(): {AND_ALONE}", self.text());
                return Err(self.refused_bind(&what, from, to));
            }
            Kind::Open => {
                let what = format!("a variable is bound in parentheses: {AND_ALONE}");
                return Err(self.refused_bind(&what, from, to));
            }
            Kind::Slash | Kind::SlashSlash => {
                let message = "a condition that binds a variable starts from its step: write .// or ./ or a name";
                return Err(self.error(XsclErrorKind::Unsupported, message, self.offset()));
            }
            Kind::Name | Kind::Star | Kind::At | Kind::Dot | Kind::DotDot => {}
            _ => {
                let what = format!("a variable is bound in a condition that is no path: {AND_ALONE}");
                return Err(self.refused_bind(&what, from, to));
            }
        }
        self.steps(Some(parent), text)?;
        if self.at < to {
            let found: String = self.text().chars().take(20).collect();
            let message = format!("found {found:?} behind a path that binds a variable: {AND_ALONE}");
            return Err(self.error(XsclErrorKind::Unsupported, message, self.offset()));
        }
        Ok(())
    }

    /// A refusal of the first variable that is bound in these tokens.
    fn refused_bind(&self, message: &str, from: usize, to: usize) -> XsclError {
        let is_bind = |number: &usize| matches!(self.token(*number).kind, Kind::Arrow | Kind::As);
        let at = (from..to).find(is_bind).unwrap_or(from);
        self.error(XsclErrorKind::Unsupported, message, self.token(at).start)
    }

    fn step(&mut self) -> Outcome<Step<'t>> {
        let from = self.at;
        self.head()?;
        let head = (from, self.at);
        self.piece(from, self.at)?;
        let mut step = Step { head, variable: None, conditions: Vec::new(), is_positional: false };
        loop {
            match self.kind() {
                Kind::Arrow | Kind::As => {
                    if step.variable.is_some() {
                        let message = "this step has a variable already";
                        return Err(self.error(XsclErrorKind::Syntax, message, self.offset()));
                    }
                    self.at += 1;
                    let offset = self.offset();
                    step.variable = Some((self.plain_name("the name of a variable")?, offset));
                }
                Kind::OpenBracket => {
                    let condition = self.condition(&mut step.is_positional)?;
                    step.conditions.push(condition);
                }
                _ => return Ok(step),
            }
        }
    }

    /// Axis and node test.
    fn head(&mut self) -> Outcome<()> {
        let is_short = self.kind() == Kind::At;
        if is_short {
            self.at += 1;
        } else if self.kind() == Kind::Name && self.kind_after() == Kind::ColonColon {
            let axis = self.text();
            if !matches!(axis, "child" | "descendant" | "descendant-or-self" | "self" | "attribute") {
                let message = format!(
                    "the axis {axis}: steps of a pattern have child, descendant, descendant-or-self, self and \
                     attribute; all axes can be used in conditions that bind nothing"
                );
                return Err(self.error(XsclErrorKind::Unsupported, message, self.offset()));
            }
            self.at += 2;
        }
        match self.kind() {
            Kind::Star => self.at += 1,
            Kind::Name if self.kind_after() == Kind::Open => {
                if is_short || !is_node_type(self.text()) {
                    let message = format!("{}(): the node types of a pattern are text() and node()", self.text());
                    return Err(self.error(XsclErrorKind::Unsupported, message, self.offset()));
                }
                self.at += 2;
                self.expect(Kind::Close, ")")?;
            }
            Kind::Name => self.at += 1,
            Kind::Dot | Kind::DotDot => {
                let message = "`.` and `..` are no steps of a pattern: write self::node(), or go down alone";
                return Err(self.error(XsclErrorKind::Unsupported, message, self.offset()));
            }
            _ => return Err(self.unexpected("a step")),
        }
        Ok(())
    }

    /// A condition in brackets; what binds variables in it is left for later.
    fn condition(&mut self, is_positional: &mut bool) -> Outcome<Condition> {
        let (from, to) = (self.at + 1, self.token(self.at).partner);
        self.at = to + 1;
        let mut condition = Condition { whole: (from, to), plain: Vec::new(), patterns: Vec::new() };
        if !self.has_bind((from, to)) {
            let piece = self.plain(from, to)?;
            *is_positional |= piece.is_number || piece.uses_position;
            condition.plain.push(((from, to), false));
            return Ok(condition);
        }
        let mut start = from;
        let mut at = from;
        while at <= to {
            let token = self.token(at);
            match token.kind {
                Kind::Open | Kind::OpenBracket | Kind::OpenBrace => at = token.partner,
                Kind::Or => {
                    let what = format!("a variable is bound in a condition with `or`: {AND_ALONE}");
                    return Err(self.refused_bind(&what, from, to));
                }
                _ if at < to && token.kind != Kind::And => {}
                _ if self.has_bind((start, at)) => {
                    condition.patterns.push((start, at));
                    start = at + 1;
                }
                _ => {
                    let piece = self.plain(start, at)?;
                    *is_positional |= piece.uses_position;
                    condition.plain.push(((start, at), piece.is_number));
                    start = at + 1;
                }
            }
            at += 1;
        }
        Ok(condition)
    }

    fn has_bind(&self, (from, to): Range) -> bool {
        self.token(from).binds < self.token(to).binds
    }

    /// Checks an expression that binds nothing.
    fn plain(&mut self, from: usize, to: usize) -> Outcome<Piece> {
        if from == to {
            self.at = from;
            return Err(self.unexpected("a condition"));
        }
        self.piece(from, to)
    }

    /// Adds a step to the text of a path.
    fn push_step(&self, step: &Step<'_>, text: &mut String) {
        let (from, to) = step.head;
        text.extend((from..to).map(|number| self.text_of(number)));
        for condition in &step.conditions {
            let before = text.len();
            text.push('[');
            if step.is_positional {
                // Positions count what is left by all conditions before them.
                self.render(condition.whole.0, condition.whole.1, text);
            } else {
                for (number, (range, _)) in condition.plain.iter().enumerate() {
                    text.push_str(if number == 0 { "" } else { " and " });
                    self.render(range.0, range.1, text);
                }
            }
            match &condition.plain[..] {
                _ if step.is_positional => text.push(']'),
                [] => text.truncate(before),
                // A number in a conjunction is a truth value, alone it would be a position.
                [(_, true)] => {
                    text.insert_str(before + 1, "boolean(");
                    text.push_str(")]");
                }
                _ => text.push(']'),
            }
        }
    }
}

impl Step<'_> {
    fn binds(&self) -> bool {
        self.conditions.iter().any(|condition| !condition.patterns.is_empty())
    }
}

fn is_node_type(name: &str) -> bool {
    matches!(name, "text" | "node")
}
