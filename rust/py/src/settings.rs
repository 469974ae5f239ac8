//! Settings as Python gives them: a mapping of the names in `sardonyx.config.Limits`.

use crate::errors::{Failed, Fields};
use pyo3::prelude::*;
use pyo3::types::PyMapping;
use sardonyx_core::document::{Doctype, Document, Limits, Parser};
use sardonyx_core::matcher::{SiblingOrder, XPushSettings};
use sardonyx_core::xpath::parser::QueryLimits;

/// Limits on documents and on queries.
#[derive(Clone, Debug, Default)]
pub(crate) struct AllLimits {
    pub(crate) document: Limits,
    pub(crate) query: QueryLimits,
}

impl AllLimits {
    /// Reads a mapping; names that are missing keep their defaults, unknown ones are refused.
    pub(crate) fn read(given: Option<&Bound<'_, PyMapping>>) -> PyResult<AllLimits> {
        let mut limits = AllLimits::default();
        let Some(given) = given else { return Ok(limits) };
        for item in given.items()?.iter() {
            let (name, value): (String, Bound<'_, PyAny>) = item.extract()?;
            let (document, query) = (&mut limits.document, &mut limits.query);
            let place = match name.as_str() {
                "document_bytes" => &mut document.document_bytes,
                "depth" => &mut document.depth,
                "attributes" => &mut document.attributes,
                "name_bytes" => &mut document.name_bytes,
                "text_bytes" => &mut document.text_bytes,
                "nodes" => &mut document.nodes,
                "entity_amplification" => &mut document.entity_amplification,
                "entity_floor_bytes" => &mut document.entity_floor_bytes,
                "entity_bytes" => &mut document.entity_bytes,
                "entity_depth" => &mut document.entity_depth,
                "query_bytes" => &mut query.length_bytes,
                "query_depth" => &mut query.depth,
                "query_parts" => &mut query.cells,
                "doctype" => {
                    document.doctype = match value.extract::<String>()?.as_str() {
                        "allow" => Doctype::Allow,
                        "forbid" => Doctype::Forbid,
                        other => {
                            let message = format!("doctype is {other:?}; it must be \"allow\" or \"forbid\"");
                            return Err(Fields::new("settings", message).raise(given.py()));
                        }
                    };
                    continue;
                }
                _ => return Err(Fields::new("settings", format!("there is no limit {name:?}")).raise(given.py())),
            };
            *place = value.extract()?;
        }
        Ok(limits)
    }
}

/// Reads the options of the XPush matcher, named as in `sardonyx.config.XPushSettings`; those that are missing keep their
/// defaults, unknown ones are refused.
pub(crate) fn xpush_settings(given: Option<&Bound<'_, PyMapping>>) -> PyResult<XPushSettings> {
    let mut settings = XPushSettings::default();
    let Some(given) = given else { return Ok(settings) };
    for item in given.items()?.iter() {
        let (name, value): (String, Bound<'_, PyAny>) = item.extract()?;
        let switch = match name.as_str() {
            "top_down" => &mut settings.top_down,
            "early" => &mut settings.early,
            "training" => &mut settings.training,
            "precompute_values" => &mut settings.precompute_values,
            "order" => {
                let chains: Option<Vec<Vec<String>>> = value.extract()?;
                settings.order = chains.map(|chains| {
                    SiblingOrder::new(chains.iter().map(|chain| chain.iter().map(String::as_str).collect()))
                });
                continue;
            }
            "store_bytes" => {
                settings.store_bytes = value.extract()?;
                continue;
            }
            _ => {
                let message = format!("there is no option {name:?} of the matcher xpush");
                return Err(Fields::new("settings", message).raise(given.py()));
            }
        };
        *switch = value.extract()?;
    }
    Ok(settings)
}

/// A document as Python gives it.
#[derive(Debug)]
pub(crate) enum Payload {
    Bytes(pyo3::pybacked::PyBackedBytes),
    Text(pyo3::pybacked::PyBackedStr),
}

impl<'a, 'py> FromPyObject<'a, 'py> for Payload {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(text) = object.extract::<pyo3::pybacked::PyBackedStr>() {
            return Ok(Payload::Text(text));
        }
        match object.extract::<pyo3::pybacked::PyBackedBytes>() {
            Ok(bytes) => Ok(Payload::Bytes(bytes)),
            Err(_) => Err(pyo3::exceptions::PyTypeError::new_err(format!(
                "a payload is bytes or str, not {}",
                object.get_type().name()?
            ))),
        }
    }
}

impl Payload {
    /// Parses it.
    pub(crate) fn parse(&self, limits: &Limits) -> Result<Document, Failed> {
        self.parse_with(&mut Parser::new(limits.clone()))
    }

    /// Parses it with a parser that may have read others before.
    pub(crate) fn parse_with(&self, parser: &mut Parser) -> Result<Document, Failed> {
        Ok(match self {
            Payload::Bytes(bytes) => parser.parse(bytes)?,
            Payload::Text(text) => parser.parse_str(text)?,
        })
    }

    /// Its length in bytes.
    pub(crate) fn len(&self) -> usize {
        match self {
            Payload::Bytes(bytes) => bytes.len(),
            Payload::Text(text) => text.len(),
        }
    }

    /// Its decoded text, for positions.
    pub(crate) fn text(&self) -> Result<std::borrow::Cow<'_, str>, Failed> {
        Ok(match self {
            Payload::Bytes(bytes) => sardonyx_core::document::decode(bytes)?,
            Payload::Text(text) => std::borrow::Cow::Borrowed(text.strip_prefix('\u{FEFF}').unwrap_or(text)),
        })
    }
}
