//! Results as a sequence of groups, each a list of the nodes of every path that is returned (VLDB 2003 §2.3): the form
//! before any XML is written.

use super::Execution;
use super::gates::Passage;
use crate::document::{NodeKind, Serializer};
use crate::transform::construct::{Builder, write};
use crate::transform::evaluate::{Focus, Outcome};
use crate::transform::gates::NONE;
use crate::transform::plan::{ContentPart, Loop, Piece};
use crate::transform::population::{Plan, PlanId};

/// The lists of one binding: the XML text of each node of each path.
pub type Group = Vec<Vec<String>>;

/// The groups of one query on one document, in order.
pub type GroupResult = Vec<Group>;

impl<'a> Execution<'a> {
    /// The groups of a plan in place: the bindings that count are appended, and the streams that list their nodes are
    /// computed. Gives whether there is anything to tell of.
    ///
    /// # Errors
    /// A dynamic error, or more cost than the limit.
    pub fn group_in_place(&mut self, id: PlanId, bindings: &mut Vec<u32>) -> Outcome<bool> {
        match self.passage(id)? {
            Passage::Closed => return Ok(false),
            Passage::Open(bits) => {
                for list in self.population.gate(id).lists {
                    if list == NONE {
                        break;
                    }
                    self.compute(list)?;
                }
                let mut rest = bits;
                while rest != 0 {
                    bindings.push(rest.trailing_zeros());
                    rest &= rest - 1;
                }
                return Ok(true);
            }
            Passage::Unknown => {}
        }
        self.begin();
        let plan = self.population.plan(id);
        let any = self.group_piece(&plan.piece, plan, bindings)?;
        Ok(any || (matches!(plan.piece, Piece::Element(_)) && !plan.is_selecting))
    }

    fn group_piece(&mut self, piece: &'a Piece, plan: &'a Plan, bindings: &mut Vec<u32>) -> Outcome<bool> {
        let mut any = false;
        match piece {
            Piece::Element(element) => {
                for part in &element.content {
                    if let ContentPart::Piece(piece) = part {
                        any |= self.group_piece(piece, plan, bindings)?;
                    }
                }
            }
            Piece::Sequence(pieces) => {
                for piece in pieces {
                    any |= self.group_piece(piece, plan, bindings)?;
                }
            }
            Piece::Loop(own) => {
                let first = bindings.len();
                self.select(own, bindings)?;
                if bindings.len() > first {
                    for stream in &plan.lists {
                        self.compute(*stream)?;
                    }
                    any = matches!(*own.body, Piece::Element(_)) || {
                        let selected = bindings[first..].to_vec();
                        self.any_gives(own, &selected)?
                    };
                }
            }
            piece => any = self.gives(piece)? && (Self::is_selecting(piece) || !plan.is_selecting),
        }
        Ok(any)
    }

    fn any_gives(&mut self, own: &'a Loop, selected: &[u32]) -> Outcome<bool> {
        if matches!(*own.body, Piece::Element(_)) {
            return Ok(!selected.is_empty());
        }
        let depth = self.chain.len();
        for binding in selected {
            self.enter(own.stream, *binding, depth);
            if self.gives(&own.body)? {
                self.leave(depth);
                return Ok(true);
            }
        }
        self.leave(depth);
        Ok(false)
    }

    /// Whether a piece gives anything.
    fn gives(&mut self, piece: &'a Piece) -> Outcome<bool> {
        match piece {
            Piece::Element(_) => Ok(true),
            Piece::Sequence(pieces) => {
                for piece in pieces {
                    if self.gives(piece)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Piece::Nodes(stream) => Ok(!self.current(*stream)?.is_empty()),
            Piece::Loop(own) => {
                let selected = self.selected(own)?;
                self.any_gives(own, &selected)
            }
            Piece::Residue(residue) => {
                self.bind_current(residue.slots);
                let mut builder = Builder::new(self.document);
                self.evaluator.emit(&residue.expr, &Focus::node(0), &mut builder)?;
                Ok(builder.item_count() > 0)
            }
        }
    }

    /// The groups of a plan, written out: none if there is nothing to tell of.
    ///
    /// # Errors
    /// A dynamic error, or more cost than the limit.
    pub fn groups(&mut self, id: PlanId) -> Outcome<Option<GroupResult>> {
        let mut bindings = Vec::new();
        if !self.group_in_place(id, &mut bindings)? {
            return Ok(None);
        }
        self.begin();
        let plan = self.population.plan(id);
        let mut groups = GroupResult::new();
        for piece in top(&plan.piece) {
            match piece {
                Piece::Loop(own) => {
                    for binding in self.selected(own)? {
                        self.enter(own.stream, binding, 0);
                        let mut group = Group::new();
                        self.lists(&own.body, &mut group)?;
                        groups.push(group);
                    }
                    self.leave(0);
                }
                piece => {
                    let mut group = Group::new();
                    self.lists(piece, &mut group)?;
                    groups.push(group);
                }
            }
        }
        Ok(Some(groups))
    }

    /// Adds a list for each path, in the order of the template; an inner loop adds to the lists of its paths.
    fn lists(&mut self, piece: &'a Piece, group: &mut Group) -> Outcome<()> {
        match piece {
            Piece::Element(element) => {
                for part in &element.content {
                    if let ContentPart::Piece(piece) = part {
                        self.lists(piece, group)?;
                    }
                }
            }
            Piece::Sequence(pieces) => {
                for piece in pieces {
                    self.lists(piece, group)?;
                }
            }
            Piece::Nodes(stream) => {
                let nodes = self.current(*stream)?;
                group.push(nodes.map(|at| self.node_text(at)).collect());
            }
            Piece::Loop(own) => {
                let first = group.len();
                let depth = self.chain.len();
                for binding in self.selected(own)? {
                    self.enter(own.stream, binding, depth);
                    let mut inner = Group::new();
                    self.lists(&own.body, &mut inner)?;
                    for (at, list) in inner.into_iter().enumerate() {
                        match group.get_mut(first + at) {
                            Some(known) => known.extend(list),
                            None => group.push(list),
                        }
                    }
                }
                self.leave(depth);
            }
            Piece::Residue(residue) => {
                self.bind_current(residue.slots);
                let mut builder = Builder::new(self.document);
                self.evaluator.emit(&residue.expr, &Focus::node(0), &mut builder)?;
                let events = builder.into_events();
                let mut serializer = Serializer::default();
                write(self.document, &events, &mut serializer)?;
                group.push(vec![serializer.into_text()]);
            }
        }
        Ok(())
    }

    fn node_text(&self, at: u32) -> String {
        let node = self.node_at(at);
        match self.document.node(node).kind {
            NodeKind::Attribute => self.document.string_value(node).to_owned(),
            _ => crate::document::serialize(self.document, node),
        }
    }
}

/// The pieces of a template that groups come from: those outside any loop, in order.
fn top(piece: &Piece) -> Vec<&Piece> {
    match piece {
        Piece::Element(element) => element
            .content
            .iter()
            .flat_map(|part| match part {
                ContentPart::Text(_) => Vec::new(),
                ContentPart::Piece(piece) => top(piece),
            })
            .collect(),
        Piece::Sequence(pieces) => pieces.iter().flat_map(top).collect(),
        piece => vec![piece],
    }
}
