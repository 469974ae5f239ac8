//! Parsing in bulk: the other processors parse, and this one takes what is parsed in the order in which it was given.

use super::population::Registration;
use crate::index::parallel::processors;
use crate::xpath::parser::QueryLimits;
use crate::xquery::error::XQueryError;
use crate::xquery::parser::{StaticContext, parse};
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
const PART: usize = 50;
const THREAD: usize = 250;
/// Parts of each thread that may wait. What is parsed takes more memory than what is kept of it.
const AHEAD: usize = 4;

/// Parses transformations on the other processors while `take` takes them, in the order given.
pub fn parse_all<'b, T>(
    unparsed: &[Unparsed<'b>],
    limits: QueryLimits,
    take: impl FnOnce(&mut dyn Iterator<Item = Parsed<'b>>) -> T,
) -> T {
    let others = (processors() - 1).min(unparsed.len() / THREAD);
    if others == 0 {
        return take(&mut unparsed.iter().map(|given| parse_one(given, limits)));
    }
    std::thread::scope(|scope| {
        // Each thread has every so-manieth part, so that none runs far ahead of the others.
        let receivers: Vec<Receiver<Vec<Parsed<'b>>>> = (0..others)
            .map(|first| {
                let (sender, receiver) = sync_channel(AHEAD);
                scope.spawn(move || {
                    for part in unparsed.chunks(PART).skip(first).step_by(others) {
                        let parsed = part.iter().map(|given| parse_one(given, limits)).collect();
                        // Nobody receives any more if taking ended early.
                        if sender.send(parsed).is_err() {
                            return;
                        }
                    }
                });
                receiver
            })
            .collect();
        // A thread that has no more has sent all parts, or panicked, which the scope tells of.
        take(&mut receivers.iter().cycle().map_while(|receiver| receiver.recv().ok()).flatten())
    })
}

fn parse_one<'b>(given: &Unparsed<'b>, limits: QueryLimits) -> Parsed<'b> {
    let context = StaticContext { namespaces: given.namespaces, limits };
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
