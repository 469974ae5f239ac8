//! Registering in bulk: one thread parses while another collects. The additional one leaves its processor to matching.

use super::builder::{Form, SegmentBuilder};
use super::error::CapacityError;
use super::priority::work_in_background;
use super::templates::{TemplateId, Templates};
use crate::xpath::ast::{Cell, Constant, ConstantRef, ExprId, Query};
use crate::xpath::error::XPathError;
use crate::xpath::parser::{Parser, StaticContext};
use crate::xpath::symbols::Symbols;
use std::sync::mpsc::sync_channel;

/// A subscription to be registered.
#[derive(Clone, Copy, Debug)]
pub struct Registration<'a> {
    /// Its number in the batch, for errors.
    pub row: u64,
    /// Its id.
    pub id: &'a str,
    /// The stream it reads, `None` for every stream.
    pub stream: Option<&'a str>,
    /// Its filter.
    pub query: &'a str,
    /// What the filter's names are judged by.
    pub context: StaticContext<'a>,
}

/// Rows parsed at once; a batch of no more is parsed and collected in one thread.
const CHUNK: usize = 1024;
/// Chunks that may wait for being collected.
const WAITING: usize = 8;

/// Parsed expressions, flat.
#[derive(Default)]
struct Chunk<'a> {
    cells: Vec<Cell>,
    constants: Vec<Constant>,
    /// Constants of the expressions that a template stands for.
    literals: Vec<ConstantRef<'a>>,
    rows: Vec<ParsedRow<'a>>,
}

struct ParsedRow<'a> {
    id: &'a str,
    stream: Option<&'a str>,
    shape: Shape,
}

/// Where a row's expression is.
enum Shape {
    /// It was parsed: its root, where its cells and constants end, and the template it is from now on.
    Parsed(ExprId, usize, usize, Option<TemplateId>),
    /// It is a known template: where its literals end.
    Known(TemplateId, usize),
}

/// What a bulk registration made: a builder, and the rows that were refused, with the reason.
pub type Built = (SegmentBuilder, Vec<(u64, XPathError)>);

/// Parses and collects subscriptions; of several with one id the last wins.
///
/// # Errors
/// If one segment cannot number that many. What a filter does wrong is in the second part of the result.
pub fn build<'a>(registrations: impl Iterator<Item = Registration<'a>> + Send) -> Result<Built, CapacityError> {
    let count = registrations.size_hint().0;
    let mut source = Source {
        registrations,
        parser: Parser::default(),
        symbols: Symbols::default(),
        templates: Templates::default(),
        refused: Vec::new(),
    };
    let mut collector = Collector::default();
    collector.builder.reserve(count);
    let first = source.chunk();
    collector.collect(&first)?;
    if first.rows.len() + source.refused.len() == CHUNK {
        let parsed = std::thread::scope(|scope| {
            let (sender, receiver) = sync_channel(WAITING);
            let parsing = scope.spawn(move || {
                work_in_background();
                loop {
                    let before = source.refused.len();
                    let chunk = source.chunk();
                    let done = chunk.rows.len() + source.refused.len() - before < CHUNK;
                    // The receiver is gone if collecting failed.
                    if sender.send(chunk).is_err() || done {
                        return source;
                    }
                }
            });
            let mut collected = Ok(());
            for chunk in receiver {
                collected = collector.collect(&chunk);
                if collected.is_err() {
                    break;
                }
            }
            let source = parsing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            collected.map(|()| source)
        });
        source = parsed?;
    }
    *collector.builder.symbols() = source.symbols;
    Ok((collector.builder, source.refused))
}

/// The collecting side.
#[derive(Default)]
struct Collector {
    builder: SegmentBuilder,
    /// The forms of the templates.
    forms: Vec<Form>,
}

impl Collector {
    fn collect(&mut self, chunk: &Chunk<'_>) -> Result<(), CapacityError> {
        let (mut cells, mut constants, mut literals) = (0, 0, 0);
        for row in &chunk.rows {
            match row.shape {
                Shape::Parsed(root, cells_end, constants_end, template) => {
                    let form = self.builder.form(&Query { cells: &chunk.cells[cells..cells_end], root });
                    let own = chunk.constants[constants..constants_end].iter().map(Constant::as_ref);
                    self.builder.insert_form(row.id, row.stream, form, own)?;
                    // Templates are numbered in the order in which they are met.
                    self.forms.extend(template.map(|_| form));
                    (cells, constants) = (cells_end, constants_end);
                }
                Shape::Known(template, end) => {
                    let own = chunk.literals[literals..end].iter().copied();
                    self.builder.insert_form(row.id, row.stream, self.forms[template as usize], own)?;
                    literals = end;
                }
            }
        }
        Ok(())
    }
}

/// The parsing side.
struct Source<'a, I> {
    registrations: I,
    parser: Parser,
    symbols: Symbols,
    templates: Templates<'a>,
    refused: Vec<(u64, XPathError)>,
}

impl<'a, I: Iterator<Item = Registration<'a>>> Source<'a, I> {
    /// Parses the next [`CHUNK`] rows; with the refused ones they are fewer only at the end.
    fn chunk(&mut self) -> Chunk<'a> {
        let mut chunk = Chunk::default();
        for registration in self.registrations.by_ref().take(CHUNK) {
            let shape = if let Some(template) = self.templates.find(registration.query, &registration.context) {
                chunk.literals.extend_from_slice(&self.templates.literals);
                Shape::Known(template, chunk.literals.len())
            } else {
                match self.parser.parse(registration.query, &registration.context, &mut self.symbols) {
                    Ok(parsed) => {
                        chunk.cells.extend_from_slice(parsed.cells());
                        chunk.constants.extend_from_slice(parsed.constants());
                        let template = self.templates.learn(parsed.constants());
                        Shape::Parsed(parsed.root, chunk.cells.len(), chunk.constants.len(), template)
                    }
                    Err(error) => {
                        self.refused.push((registration.row, error));
                        continue;
                    }
                }
            };
            chunk.rows.push(ParsedRow { id: registration.id, stream: registration.stream, shape });
        }
        chunk
    }
}
