//! Joins as bytes.

use super::population::{Population, Registration};
use crate::index::stored::{self, Stored};
use crate::xpath::parser::QueryLimits;
use crate::xquery::parser::StaticContext;
use crate::xscl::parser::parse;

/// The subscriptions of a population.
pub fn encode(population: &Population) -> Vec<u8> {
    let given = population.subscriptions().iter().map(|(_, subscription)| Stored {
        id: subscription.id.clone(),
        query: subscription.query.clone(),
        namespaces: subscription.namespaces.clone(),
        stream: subscription.stream.clone(),
        notify_empty: false,
    });
    stored::encode(population.len(), given)
}

/// The registrations that [`encode`] wrote.
///
/// # Errors
/// What is wrong, for bytes that it did not write.
pub fn decode(bytes: &[u8], limits: QueryLimits) -> Result<Vec<Registration>, String> {
    let given = stored::decode(bytes).map_err(|error| error.to_string())?;
    let register = |given: Stored| {
        let parsed = parse(&given.query, &StaticContext { namespaces: &given.pairs(), limits })
            .map_err(|error| format!("the join {:?} can not be read: {error}", given.id))?;
        let Stored { id, query, namespaces, stream, .. } = given;
        Ok(Registration { id, query, namespaces, stream, parsed })
    };
    given.into_iter().map(register).collect()
}
