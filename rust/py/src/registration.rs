//! Batches of subscriptions, from columns to the populations of an index.

use crate::arrow::strings;
use crate::document::borrow;
use crate::errors::{Failed, Fields};
use crate::index::Index;
use crate::joins;
use crate::transformations::CHUNK;
use arrow_array::cast::AsArray;
use arrow_array::{Array, BooleanArray, RecordBatch, StringArray};
use arrow_schema::DataType;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use sardonyx_core::index::bulk::{Registration, build};
use sardonyx_core::transform::bulk::{Unparsed, parse_all};
use sardonyx_core::xpath::parser::StaticContext;
use std::collections::HashMap;
use std::sync::Arc;

/// Refused rows: row, subscription id if there is one, error.
pub(crate) type Refused = Vec<(u64, Option<String>, Fields)>;

/// The columns of a batch of subscriptions.
pub(crate) struct Columns {
    pub(crate) ids: StringArray,
    queries: StringArray,
    namespaces: Option<StringArray>,
    ignore_namespaces: Option<BooleanArray>,
    streams: Option<StringArray>,
    languages: Option<StringArray>,
    notify_empty: Option<BooleanArray>,
}

/// One subscription, by the names of the columns.
pub(crate) struct One<'a> {
    pub(crate) subscription_id: &'a str,
    pub(crate) query: &'a str,
    pub(crate) namespaces: Option<&'a str>,
    pub(crate) ignore_namespaces: bool,
    pub(crate) stream: Option<&'a str>,
    pub(crate) language: Option<&'a str>,
    pub(crate) notify_empty: bool,
}

impl Columns {
    /// Columns with one row.
    pub(crate) fn one(row: &One<'_>) -> Columns {
        let text = |value: Option<&str>| value.map(|value| StringArray::from(vec![value]));
        Columns {
            ids: StringArray::from(vec![row.subscription_id]),
            queries: StringArray::from(vec![row.query]),
            namespaces: text(row.namespaces),
            ignore_namespaces: Some(BooleanArray::from(vec![row.ignore_namespaces])),
            streams: text(row.stream),
            languages: text(row.language),
            notify_empty: Some(BooleanArray::from(vec![row.notify_empty])),
        }
    }

    /// Finds the columns of a batch.
    pub(crate) fn new(batch: &RecordBatch) -> PyResult<Columns> {
        let needed = |name: &str| {
            let column = batch.column_by_name(name).ok_or_else(|| {
                let fields = batch.schema_ref().fields();
                let given: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
                PyValueError::new_err(format!("the table has no column {name:?}; it has {given:?}"))
            })?;
            strings(column, name)
        };
        let optional = |name: &str| batch.column_by_name(name).map(|column| strings(column, name)).transpose();
        let flags = |name: &str| match batch.column_by_name(name) {
            Some(column) if column.data_type() == &DataType::Boolean => Ok(Some(column.as_boolean().clone())),
            Some(column) if column.data_type() != &DataType::Null => {
                Err(PyTypeError::new_err(format!("{name} must be a boolean column, not {}", column.data_type())))
            }
            _ => Ok(None),
        };
        let id = if batch.column_by_name("subscription_id").is_none() { "id" } else { "subscription_id" };
        Ok(Columns {
            ids: needed(id)?,
            queries: needed("query")?,
            namespaces: optional("namespaces")?,
            ignore_namespaces: flags("ignore_namespaces")?,
            streams: optional("stream")?,
            languages: optional("language")?,
            notify_empty: flags("notify_empty")?,
        })
    }
}

fn flag(column: &Option<BooleanArray>, row: usize) -> bool {
    column.as_ref().is_some_and(|column| column.is_valid(row) && column.value(row))
}

fn field(column: &Option<StringArray>, row: usize) -> Option<&str> {
    column.as_ref().filter(|column| column.is_valid(row)).map(|column| column.value(row))
}

/// Languages of subscriptions.
enum Language {
    XPath,
    XQuery,
    Xscl,
}

/// Why a field of a subscription is refused.
fn invalid(message: impl Into<String>) -> Fields {
    Fields::new("invalid_field", message)
}

impl Columns {
    fn id(&self, row: usize) -> Option<&str> {
        Some(self.ids.value(row)).filter(|id| self.ids.is_valid(row) && !id.is_empty())
    }

    /// The id, query and language of a row, or why it is refused.
    fn required(&self, row: usize) -> Result<(&str, &str, Language), Fields> {
        let query = Some(self.queries.value(row)).filter(|_| self.queries.is_valid(row));
        let (Some(id), Some(query)) = (self.id(row), query) else {
            return Err(invalid("id and query must both be given"));
        };
        let language = match field(&self.languages, row) {
            None | Some("xpath") => return Ok((id, query, Language::XPath)),
            Some("xquery") => Language::XQuery,
            Some("xscl") => Language::Xscl,
            Some(other) => {
                let message = format!(
                    "the language '{other}' is not available; there are 'xpath' (filters), 'xquery' (transformations) \
                     and 'xscl' (joins)"
                );
                return Err(Fields::new("unsupported", message));
            }
        };
        if flag(&self.ignore_namespaces, row) {
            return Err(invalid("ignore_namespaces is for filters; transformations and joins compare whole names"));
        }
        Ok((id, query, language))
    }
}

/// Namespace maps by their JSON text: most subscriptions of a population share a few.
struct NamespaceMaps<'a>(HashMap<&'a str, Result<Pairs, Fields>>);

type Pairs = Vec<(String, String)>;
/// A map as parsing takes it, or why there is none.
type BorrowedPairs<'m> = Result<Vec<(&'m str, &'m str)>, &'m Fields>;

impl<'a> NamespaceMaps<'a> {
    fn new(batches: &'a [Columns]) -> NamespaceMaps<'a> {
        let mut maps = HashMap::new();
        for json in batches.iter().filter_map(|columns| columns.namespaces.as_ref()).flat_map(|column| column.iter()) {
            let Some(json) = json else { continue };
            maps.entry(json).or_insert_with(|| {
                if json.is_empty() {
                    return Ok(Vec::new());
                }
                let map: HashMap<String, String> = serde_json::from_str(json).map_err(|error| {
                    invalid(format!("namespaces must be a JSON object from prefix to URI: {error}"))
                })?;
                let mut pairs: Pairs = map.into_iter().collect();
                pairs.sort_unstable();
                Ok(pairs)
            });
        }
        NamespaceMaps(maps)
    }
}

/// Registers batches; gives the rows that were refused.
pub(crate) fn register(index: &Index, batches: &[Columns]) -> Result<Refused, Failed> {
    let (population, transformations, limits) = (index.filters(), index.transformations(), index.query_limits());
    let maps = NamespaceMaps::new(batches);
    let maps: HashMap<&str, BorrowedPairs<'_>> =
        maps.0.iter().map(|(json, map)| (*json, map.as_ref().map(|pairs| borrow(pairs)))).collect();
    let mut refused: Refused = Vec::new();
    let mut unparsed: Vec<Unparsed<'_>> = Vec::new();
    let mut joins: Vec<joins::Unparsed<'_>> = Vec::new();
    let mut registrations = Vec::with_capacity(batches.iter().map(|columns| columns.ids.len()).sum());
    let rows = batches.iter().flat_map(|columns| (0..columns.ids.len()).map(move |row| (columns, row)));
    for (number, (columns, row)) in rows.enumerate() {
        let namespaces = field(&columns.namespaces, row)
            .map_or(Ok(&[][..]), |json| maps[json].as_ref().map(Vec::as_slice).map_err(|fields| (*fields).clone()));
        let given = columns.required(row).and_then(|given| Ok((given, namespaces?)));
        let ((id, query, language), namespaces) = match given {
            Ok(given) => given,
            Err(fields) => {
                refused.push((number as u64, columns.id(row).map(str::to_owned), fields));
                continue;
            }
        };
        let stream = field(&columns.streams, row);
        let number = number as u64;
        match language {
            Language::XPath => {
                let ignore_namespaces = flag(&columns.ignore_namespaces, row);
                let context = StaticContext { namespaces, ignore_namespaces, limits };
                registrations.push(Registration { row: number, id, stream, query, context });
            }
            Language::XQuery => {
                let notify_empty = flag(&columns.notify_empty, row);
                unparsed.push(Unparsed { row: number, id, query, namespaces, stream, notify_empty });
            }
            Language::Xscl => joins.push(joins::Unparsed { row: number, id, query, namespaces, stream }),
        }
    }
    let (builder, errors) = build(registrations.iter().copied())?;
    refused.extend(errors.into_iter().map(|(row, error)| {
        // Rows ascend.
        let at = registrations.partition_point(|entry| entry.row < row);
        (row, Some(registrations[at].id.to_owned()), error.into())
    }));
    // An id is registered once, in whichever language it came last.
    if !transformations.read().is_empty() && !registrations.is_empty() {
        transformations.unregister(registrations.iter().map(|entry| entry.id), limits)?;
    }
    index.join_population().forget(registrations.iter().map(|entry| entry.id));
    if !registrations.is_empty() || (unparsed.is_empty() && joins.is_empty()) {
        population.register(builder)?;
    }
    let kinds = [registrations.is_empty(), unparsed.is_empty(), joins.is_empty()];
    if kinds.iter().filter(|is_empty| !**is_empty).count() > 1 {
        let mut last: HashMap<&str, u64> = HashMap::new();
        let rows = registrations.iter().map(|entry| (entry.id, entry.row));
        let rows = rows.chain(unparsed.iter().map(|entry| (entry.id, entry.row)));
        for (id, row) in rows.chain(joins.iter().map(|entry| (entry.id, entry.row))) {
            let known = last.entry(id).or_insert(row);
            *known = row.max(*known);
        }
        unparsed.retain(|entry| last[entry.id] == entry.row);
        joins.retain(|entry| last[entry.id] == entry.row);
    }
    // What was parsed takes more memory than what is kept of it: a few at a time.
    parse_all(&unparsed, limits, |parsed| {
        let mut parsed = parsed.peekable();
        while parsed.peek().is_some() {
            let mut ids: Vec<Arc<str>> = Vec::new();
            transformations.register(parsed.by_ref().take(CHUNK).filter_map(|parsed| match parsed {
                Ok(registration) => {
                    ids.push(registration.id.clone());
                    Some(registration)
                }
                Err((row, id, error)) => {
                    refused.push((row, Some(id.to_owned()), error.into()));
                    None
                }
            }));
            population.unregister(ids.iter().map(|id| &**id));
            index.join_population().forget(ids.iter().map(|id| &**id));
        }
    });
    if !unparsed.is_empty() {
        transformations.changed();
    }
    if !joins.is_empty() {
        let (failed, accepted) = index.join_population().register(&joins);
        refused.extend(failed);
        population.unregister(accepted.iter().copied());
        if !transformations.read().is_empty() {
            transformations.unregister(accepted, limits)?;
        }
    }
    refused.sort_by_key(|(row, _, _)| *row);
    Ok(refused)
}
