//! Transformations as bytes.

use super::population::{Population, Registration};
use crate::index::stored::{self, Stored};
use crate::xpath::parser::QueryLimits;
use crate::xquery::parser::{StaticContext, parse};

/// The subscriptions of a population.
pub fn encode(population: &Population) -> Vec<u8> {
    let given = population.subscribers().map(|subscriber| Stored {
        id: subscriber.id.clone(),
        query: subscriber.query.clone(),
        namespaces: subscriber.namespaces.clone(),
        stream: subscriber.stream.clone(),
        notify_empty: subscriber.notify_empty,
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
        let module = parse(&given.query, &StaticContext { namespaces: &given.pairs(), limits })
            .map_err(|error| format!("the transformation {:?} can not be read: {error}", given.id))?;
        let Stored { id, query, namespaces, stream, notify_empty } = given;
        Ok(Registration { id, query, namespaces, stream, notify_empty, module })
    };
    given.into_iter().map(register).collect()
}
