//! Parsing in bulk: all processors parse, and one of them takes what is parsed in the order in which it was given.

use super::population::Registration;
use crate::xpath::parser::QueryLimits;
use crate::xquery::error::XQueryError;
use crate::xquery::parser::{StaticContext, parse};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};

/// A transformation as it is given.
#[derive(Clone, Copy, Debug)]
pub struct Unparsed<'b> {
    /// Its number in the batch, for errors.
    pub row: u64,
    /// Its id.
    pub id: &'b str,
    /// The query.
    pub query: &'b str,
    /// Prefixes and URIs.
    pub namespaces: &'b [(&'b str, &'b str)],
    /// The stream it reads; none: all.
    pub stream: Option<&'b str>,
    /// Whether it is told of empty results.
    pub notify_empty: bool,
}

/// A registration, or row, id and why there is none.
pub type Parsed<'b> = Result<Registration, (u64, &'b str, XQueryError)>;

/// Transformations that are parsed at a time, and that are worth a thread.
const PART: usize = 100;
const THREAD: usize = 250;
/// Parts that wait for those before them. What is parsed takes more memory than what is kept of it.
const AHEAD: usize = 4;

/// Parses transformations while `take` takes them, in the order given.
pub fn parse_all<'b, T>(
    unparsed: &[Unparsed<'b>],
    limits: QueryLimits,
    take: impl FnOnce(&mut dyn Iterator<Item = Parsed<'b>>) -> T,
) -> T {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let others = processors.min(unparsed.len().div_ceil(THREAD)).saturating_sub(1);
    let parts = Parts { unparsed, limits, next: AtomicUsize::new(0) };
    let (sender, received) = sync_channel(AHEAD);
    std::thread::scope(|scope| {
        for _ in 0..others {
            let (parts, sender) = (&parts, sender.clone());
            scope.spawn(move || {
                // Nobody receives any more if taking ended early.
                while let Some(part) = parts.parse_next()
                    && sender.send(part).is_ok()
                {}
            });
        }
        drop(sender);
        take(&mut InOrder { parts: &parts, received, early: BTreeMap::new(), given: 0, part: Vec::new().into_iter() })
    })
}

/// The parts of a batch, each parsed by whoever comes for it.
struct Parts<'p, 'b> {
    unparsed: &'p [Unparsed<'b>],
    limits: QueryLimits,
    next: AtomicUsize,
}

/// A part and its number.
type Numbered<'b> = (usize, Vec<Parsed<'b>>);

impl<'b> Parts<'_, 'b> {
    fn parse_next(&self) -> Option<Numbered<'b>> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let part = self.unparsed.chunks(PART).nth(number)?;
        Some((number, part.iter().map(|given| self.parse_one(given)).collect()))
    }

    fn parse_one(&self, given: &Unparsed<'b>) -> Parsed<'b> {
        let context = StaticContext { namespaces: given.namespaces, limits: self.limits };
        let module = parse(given.query, &context).map_err(|error| (given.row, given.id, error))?;
        Ok(Registration {
            id: given.id.into(),
            query: given.query.into(),
            namespaces: given.namespaces.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect(),
            stream: given.stream.map(Into::into),
            notify_empty: given.notify_empty,
            module,
        })
    }
}

/// What is parsed, in order; parses too where nothing has arrived.
struct InOrder<'p, 'b> {
    parts: &'p Parts<'p, 'b>,
    received: Receiver<Numbered<'b>>,
    /// Parts that arrived before their turn.
    early: BTreeMap<usize, Vec<Parsed<'b>>>,
    /// Parts given so far.
    given: usize,
    part: std::vec::IntoIter<Parsed<'b>>,
}

impl<'b> InOrder<'_, 'b> {
    fn next_part(&mut self) -> Option<Vec<Parsed<'b>>> {
        if self.given == self.parts.unparsed.len().div_ceil(PART) {
            return None;
        }
        loop {
            self.early.extend(self.received.try_iter());
            if let Some(part) = self.early.remove(&self.given) {
                self.given += 1;
                return Some(part);
            }
            let own = if self.early.len() < AHEAD { self.parts.parse_next() } else { None };
            // All have gone without having sent it only if one panicked, which the scope tells of.
            let (number, part) = own.or_else(|| self.received.recv().ok())?;
            self.early.insert(number, part);
        }
    }
}

impl<'b> Iterator for InOrder<'_, 'b> {
    type Item = Parsed<'b>;

    fn next(&mut self) -> Option<Parsed<'b>> {
        loop {
            if let Some(parsed) = self.part.next() {
                return Some(parsed);
            }
            self.part = self.next_part()?.into_iter();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows from 0, every seventh of which is no query.
    fn rows(queries: &[String]) -> Vec<Unparsed<'_>> {
        let given = queries.iter().map(String::as_str).zip(0..);
        let row = |(query, row)| Unparsed { row, id: query, query, namespaces: &[], stream: None, notify_empty: false };
        given.map(row).collect()
    }

    fn queries(count: usize) -> Vec<String> {
        (0..count).map(|row| if row % 7 == 3 { format!("({row}") } else { format!("//a{row}") }).collect()
    }

    #[test]
    fn in_order() {
        for count in [0, 1, PART, PART + 1, 5_000] {
            let queries = queries(count);
            let found: Vec<(String, bool)> = parse_all(&rows(&queries), QueryLimits::default(), |parsed| {
                parsed
                    .map(|parsed| match parsed {
                        Ok(registration) => (registration.query.to_string(), true),
                        Err((row, id, _)) => {
                            assert_eq!(queries[row as usize], id);
                            (id.to_owned(), false)
                        }
                    })
                    .collect()
            });
            let right: Vec<(String, bool)> =
                queries.iter().enumerate().map(|(row, query)| (query.clone(), row % 7 != 3)).collect();
            assert!(found == right, "{count}");
        }
    }

    #[test]
    fn taking_may_end_early() {
        let queries = queries(5_000);
        let taken = parse_all(&rows(&queries), QueryLimits::default(), |parsed| parsed.take(150).count());
        assert_eq!(taken, 150);
    }
}
