//! The naive matcher: every expression, one after the other, by the exact evaluator. The oracle of all others.

use super::results::Matches;
use crate::document::Document;
use crate::index::Snapshot;
use crate::xpath::ast::Query;
use crate::xpath::evaluate::Evaluator;
use crate::xpath::symbols::DocumentSymbols;

/// Matches one document; `cost_limit` bounds each evaluation, see [`Evaluator`].
pub fn match_document(snapshot: &Snapshot, document: &Document, stream: Option<&str>, cost_limit: u64) -> Matches {
    let mut matches = Matches::default();
    for (number, part) in snapshot.segments.iter().enumerate() {
        let segment = &*part.segment;
        let symbols = DocumentSymbols::new(document, |test| segment.symbols().find(test));
        let view = segment.view();
        let (mut cells, mut constants) = (Vec::new(), Vec::new());
        let mut satisfied = Vec::new();
        for signature in 0..view.signature_count() {
            let signature = view.signature(signature);
            let root = view.query(&signature).extract(&mut cells);
            let query = Query { cells: &cells, root };
            for row in signature.rows.clone() {
                view.constants(&signature, row, &mut constants);
                let subscriptions = view.subscriptions_of(row);
                match Evaluator::new(document, &symbols, cost_limit).boolean(query, &constants) {
                    Ok(true) => satisfied.push(subscriptions),
                    Ok(false) => {}
                    Err(error) => matches.fail(snapshot, number, stream, subscriptions, &error),
                }
            }
        }
        matches.add(snapshot, number, stream, satisfied);
    }
    matches
}
