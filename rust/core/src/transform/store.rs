//! Transformations as bytes: what was registered, as given. Opening parses it again.

use super::population::{Population, Registration};
use crate::xpath::parser::QueryLimits;
use crate::xquery::parser::{StaticContext, parse};
use std::sync::Arc;

/// The subscriptions of a population.
pub fn encode(population: &Population) -> Vec<u8> {
    let mut out = Vec::new();
    if population.is_empty() {
        return out;
    }
    out.extend((population.len() as u64).to_le_bytes());
    for subscriber in population.subscribers() {
        put(&mut out, &subscriber.id);
        put(&mut out, &subscriber.query);
        out.extend((subscriber.namespaces.len() as u64).to_le_bytes());
        for (prefix, uri) in subscriber.namespaces.iter() {
            put(&mut out, prefix);
            put(&mut out, uri);
        }
        let flags = u8::from(subscriber.notify_empty) | u8::from(subscriber.stream.is_some()) << 1;
        out.push(flags);
        if let Some(stream) = &subscriber.stream {
            put(&mut out, stream);
        }
    }
    out
}

pub(crate) fn put(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

/// The registrations that [`encode`] wrote.
///
/// # Errors
/// What is wrong, for bytes that it did not write.
pub fn decode(bytes: &[u8], limits: QueryLimits) -> Result<Vec<Registration>, String> {
    let mut reader = Reader { bytes };
    let mut registrations = Vec::new();
    if bytes.is_empty() {
        return Ok(registrations);
    }
    for _ in 0..reader.number()? {
        let id: Arc<str> = reader.text()?.into();
        let query: Arc<str> = reader.text()?.into();
        let mut namespaces = Vec::new();
        for _ in 0..reader.number()? {
            namespaces.push((reader.text()?.to_owned(), reader.text()?.to_owned()));
        }
        let flags = reader.take(1)?[0];
        let stream = if flags & 2 == 0 { None } else { Some(reader.text()?.into()) };
        let borrowed: Vec<(&str, &str)> = namespaces.iter().map(|(prefix, uri)| (&**prefix, &**uri)).collect();
        let module = parse(&query, &StaticContext { namespaces: &borrowed, limits })
            .map_err(|error| format!("the transformation {id:?} can not be read: {error}"))?;
        let namespaces = namespaces.into();
        registrations.push(Registration { id, query, namespaces, stream, notify_empty: flags & 1 != 0, module });
    }
    Ok(registrations)
}

/// Reads what [`put`] wrote.
pub(crate) struct Reader<'b> {
    pub(crate) bytes: &'b [u8],
}

impl<'b> Reader<'b> {
    pub(crate) fn take(&mut self, count: usize) -> Result<&'b [u8], String> {
        let (taken, rest) = self.bytes.split_at_checked(count).ok_or("the bytes are cut off")?;
        self.bytes = rest;
        Ok(taken)
    }

    pub(crate) fn number(&mut self) -> Result<usize, String> {
        let bytes = self.take(8)?.try_into().map_err(|_| "the bytes are cut off")?;
        usize::try_from(u64::from_le_bytes(bytes)).map_err(|error| error.to_string())
    }

    pub(crate) fn text(&mut self) -> Result<&'b str, String> {
        let length = self.number()?;
        std::str::from_utf8(self.take(length)?).map_err(|error| error.to_string())
    }
}
