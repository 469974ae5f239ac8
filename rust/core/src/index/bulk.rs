//! Registering in bulk: one thread parses while another collects. The additional one leaves its processor to matching.

use super::builder::SegmentBuilder;
use super::error::CapacityError;
use super::priority::work_in_background;
use crate::xpath::ast::{Cell, Constant, ExprId};
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
    rows: Vec<ParsedRow<'a>>,
}

struct ParsedRow<'a> {
    id: &'a str,
    stream: Option<&'a str>,
    root: ExprId,
    cells_end: usize,
    constants_end: usize,
}

/// What a bulk registration made: a builder, and the rows that were refused, with the reason.
pub type Built = (SegmentBuilder, Vec<(u64, XPathError)>);

/// Parses and collects subscriptions; of several with one id the last wins.
///
/// # Errors
/// If one segment cannot number that many. What a filter does wrong is in the second part of the result.
pub fn build<'a>(registrations: impl Iterator<Item = Registration<'a>> + Send) -> Result<Built, CapacityError> {
    let mut source =
        Source { registrations, parser: Parser::default(), symbols: Symbols::default(), refused: Vec::new() };
    let mut builder = SegmentBuilder::default();
    let first = source.chunk();
    collect(&mut builder, &first)?;
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
                collected = collect(&mut builder, &chunk);
                if collected.is_err() {
                    break;
                }
            }
            let source = parsing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            collected.map(|()| source)
        });
        source = parsed?;
    }
    *builder.symbols() = source.symbols;
    Ok((builder, source.refused))
}

fn collect(builder: &mut SegmentBuilder, chunk: &Chunk<'_>) -> Result<(), CapacityError> {
    let (mut cells, mut constants) = (0, 0);
    for row in &chunk.rows {
        let (own_cells, own_constants) =
            (&chunk.cells[cells..row.cells_end], &chunk.constants[constants..row.constants_end]);
        builder.insert(row.id, row.stream, own_cells, row.root, own_constants)?;
        (cells, constants) = (row.cells_end, row.constants_end);
    }
    Ok(())
}

/// The parsing side.
struct Source<I> {
    registrations: I,
    parser: Parser,
    symbols: Symbols,
    refused: Vec<(u64, XPathError)>,
}

impl<'a, I: Iterator<Item = Registration<'a>>> Source<I> {
    /// Parses the next [`CHUNK`] rows; with the refused ones they are fewer only at the end.
    fn chunk(&mut self) -> Chunk<'a> {
        let mut chunk = Chunk::default();
        for registration in self.registrations.by_ref().take(CHUNK) {
            match self.parser.parse(registration.query, &registration.context, &mut self.symbols) {
                Ok(parsed) => {
                    chunk.cells.extend_from_slice(parsed.cells());
                    chunk.constants.extend_from_slice(parsed.constants());
                    chunk.rows.push(ParsedRow {
                        id: registration.id,
                        stream: registration.stream,
                        root: parsed.root,
                        cells_end: chunk.cells.len(),
                        constants_end: chunk.constants.len(),
                    });
                }
                Err(error) => self.refused.push((registration.row, error)),
            }
        }
        chunk
    }
}
