//! Joins as bytes: what was registered, as given. Opening parses it again.

use super::population::{Population, Registration};
use crate::transform::store::{Reader, put};
use crate::xpath::parser::QueryLimits;
use crate::xquery::parser::StaticContext;
use crate::xscl::parser::parse;
use std::sync::Arc;

/// The subscriptions of a population.
pub fn encode(population: &Population) -> Vec<u8> {
    let mut out = Vec::new();
    if population.is_empty() {
        return out;
    }
    out.extend((population.len() as u64).to_le_bytes());
    for (_, subscription) in population.subscriptions().iter() {
        put(&mut out, &subscription.id);
        put(&mut out, &subscription.query);
        out.extend((subscription.namespaces.len() as u64).to_le_bytes());
        for (prefix, uri) in subscription.namespaces.iter() {
            put(&mut out, prefix);
            put(&mut out, uri);
        }
        out.push(u8::from(subscription.stream.is_some()));
        if let Some(stream) = &subscription.stream {
            put(&mut out, stream);
        }
    }
    out
}

/// The registrations that [`encode`] wrote.
///
/// # Errors
/// What is wrong, for bytes that it did not write.
pub fn decode(bytes: &[u8], limits: QueryLimits) -> Result<Vec<Registration>, String> {
    let mut registrations = Vec::new();
    if bytes.is_empty() {
        return Ok(registrations);
    }
    let mut reader = Reader { bytes };
    for _ in 0..reader.number()? {
        let id: Arc<str> = reader.text()?.into();
        let query: Arc<str> = reader.text()?.into();
        let mut namespaces = Vec::new();
        for _ in 0..reader.number()? {
            namespaces.push((reader.text()?.to_owned(), reader.text()?.to_owned()));
        }
        let stream = if reader.take(1)?[0] == 0 { None } else { Some(reader.text()?.into()) };
        let borrowed: Vec<(&str, &str)> = namespaces.iter().map(|(prefix, uri)| (&**prefix, &**uri)).collect();
        let parsed = parse(&query, &StaticContext { namespaces: &borrowed, limits })
            .map_err(|error| format!("the join {id:?} can not be read: {error}"))?;
        let namespaces = namespaces.into();
        registrations.push(Registration { id, query, namespaces, stream, parsed });
    }
    Ok(registrations)
}
