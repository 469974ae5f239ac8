//! Subscriptions as bytes, as they were given: those that a file carries beside its filters. Opening parses them again.

use super::bytes::{Read, Reader, Writer};
use std::sync::Arc;

const NOTIFY_EMPTY: u8 = 1;
const HAS_STREAM: u8 = 2;

/// A subscription as it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Its id.
    pub id: Arc<str>,
    /// Its query.
    pub query: Arc<str>,
    /// The namespaces given with it.
    pub namespaces: Arc<[(String, String)]>,
    /// Its stream.
    pub stream: Option<Arc<str>>,
    /// Whether it is told of empty results.
    pub notify_empty: bool,
}

impl Stored {
    /// Its namespaces as parsing takes them.
    pub fn pairs(&self) -> Vec<(&str, &str)> {
        self.namespaces.iter().map(|(prefix, uri)| (&**prefix, &**uri)).collect()
    }
}

/// So many subscriptions as bytes; none are no bytes.
pub fn encode(count: usize, subscriptions: impl Iterator<Item = Stored>) -> Vec<u8> {
    let mut out = Writer::default();
    if count == 0 {
        return out.bytes;
    }
    out.length(count);
    for given in subscriptions {
        out.block(given.id.as_bytes());
        out.block(given.query.as_bytes());
        out.length(given.namespaces.len());
        for (prefix, uri) in given.namespaces.iter() {
            out.block(prefix.as_bytes());
            out.block(uri.as_bytes());
        }
        let notify_empty = if given.notify_empty { NOTIFY_EMPTY } else { 0 };
        out.bytes.push(notify_empty | if given.stream.is_some() { HAS_STREAM } else { 0 });
        if let Some(stream) = &given.stream {
            out.block(stream.as_bytes());
        }
    }
    out.bytes
}

/// The subscriptions that [`encode`] wrote.
///
/// # Errors
/// For bytes that it did not write.
pub fn decode(bytes: &[u8]) -> Read<Vec<Stored>> {
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    Reader::new(bytes).list(|reader| {
        let (id, query) = (reader.text()?.into(), reader.text()?.into());
        let namespaces = reader.list(|reader| Ok((reader.text()?.to_owned(), reader.text()?.to_owned())))?;
        let flags = reader.take(1)?[0];
        let stream = if flags & HAS_STREAM == 0 { None } else { Some(reader.text()?.into()) };
        Ok(Stored { id, query, namespaces: namespaces.into(), stream, notify_empty: flags & NOTIFY_EMPTY != 0 })
    })
}
