"""Subscriptions as Arrow tables: the shape in which a population reaches the core.

Columns: `subscription_id` and `query` (strings; the core refuses a row without them), `namespaces` (string: a JSON
object, or null), `ignore_namespaces` (bool), `stream` (string or null), `language` (string; null is `xpath`) and
`notify_empty` (bool). Every way of registering many subscriptions ends here, and what is wrong with a row of such a
table is for the core to say: whoever registers a few at a time beside a thread that matches should not keep the
interpreter busy with it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sardonyx.errors import InvalidFieldError, SardonyxError, SubscriptionError
from sardonyx.model import DeadLetter, Subscription

__all__ = [
    "SCHEMA",
    "Defaults",
    "SubscriptionBatch",
    "from_records",
    "from_table",
    "is_ready",
    "is_unicode",
    "subscription_of",
]

SCHEMA = pa.schema(
    [
        pa.field("subscription_id", pa.string()),
        pa.field("query", pa.string()),
        pa.field("namespaces", pa.string()),
        pa.field("ignore_namespaces", pa.bool_()),
        pa.field("stream", pa.string()),
        pa.field("language", pa.string()),
        pa.field("notify_empty", pa.bool_()),
    ]
)
"""The columns that the core reads."""

_TYPES = {**{item.name: item.type for item in SCHEMA}, "id": pa.string()}

FIELDS = ("id", "query", "language", "namespaces", "stream", "ignore_namespaces", "notify_empty")
"""The fields of a subscription, as files and mappings name them; `subscription_id` is accepted for `id`."""


@dataclass(frozen=True, slots=True)
class Defaults:
    """What a subscription gets where it says nothing itself."""

    namespaces: Mapping[str, str] | None = None
    """Prefixes and URIs for subscriptions without any."""
    stream: str | None = None
    """The stream of subscriptions without one."""
    ignore_namespaces: bool = False
    """For filters that do not say; transformations and joins always compare whole names."""


@dataclass(frozen=True, slots=True)
class SubscriptionBatch:
    """A part of a population, ready for the core."""

    table: pa.Table
    """The rows, with the columns of `SCHEMA`; those that say nothing may be absent, `id` is as good as the first."""
    rejected: tuple[DeadLetter, ...] = ()
    """What was refused on the way."""
    locate: Callable[[int], str] | None = None
    """Where a row of the table came from, as `FILE:LINE`."""


def subscription_of(record: object) -> Subscription:
    """The subscription that a mapping, a tuple in the order of `FIELDS`, or a `Subscription` describes.

    >>> subscription_of({"id": 7, "query": "/a"}).id
    '7'
    >>> subscription_of(("s1", "/a")).query
    '/a'
    """
    if isinstance(record, Subscription):
        return record
    if isinstance(record, Mapping):
        values = dict(record)
        if "subscription_id" in values and "id" not in values:
            values["id"] = values.pop("subscription_id")
    elif isinstance(record, tuple | list) and 2 <= len(record) <= len(FIELDS):
        # A pair is (id, query); longer tuples go on with the other fields, in their order.
        values = dict(zip(FIELDS, record, strict=False))
    else:
        raise InvalidFieldError(f"{type(record).__name__} is no subscription; give a Subscription, mapping or tuple")
    unknown = [str(name) for name in values if name not in FIELDS]
    if unknown:
        raise InvalidFieldError(
            f"unknown field {unknown[0]!r}; the fields are {', '.join(FIELDS)}", subscription_id=_name(values.get("id"))
        )
    kept = {name: value for name, value in values.items() if value is not None}
    kept.setdefault("id", None)
    kept.setdefault("query", None)
    return Subscription(**{**kept, "id": _name(kept["id"])})


def _name(value: object) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def check(subscription: Subscription) -> Subscription:
    """The subscription again if its fields have the right types; what they say is checked by the core."""
    name = subscription.id if isinstance(subscription.id, str) else None

    def refuse(message: str) -> InvalidFieldError:
        return InvalidFieldError(message, subscription_id=name)

    if not isinstance(subscription.id, str) or not subscription.id:
        raise refuse(f"id is {subscription.id!r}; it must be a string of at least one character")
    if not isinstance(subscription.query, str):
        raise refuse(f"query is {subscription.query!r}; it must be a string")
    if not isinstance(subscription.language, str):
        raise refuse(f"language is {subscription.language!r}; it must be a string")
    if subscription.namespaces is not None and not _is_prefix_map(subscription.namespaces):
        raise refuse(f"namespaces is {subscription.namespaces!r}; it must map prefixes to URIs, all of them strings")
    if subscription.stream is not None and not isinstance(subscription.stream, str):
        raise refuse(f"stream is {subscription.stream!r}; it must be a string")
    for flag in ("ignore_namespaces", "notify_empty"):
        if not isinstance(getattr(subscription, flag), bool):
            raise refuse(f"{flag} is {getattr(subscription, flag)!r}; it must be true or false")
    for text in (subscription.id, subscription.query, subscription.language, subscription.stream or ""):
        if not text.isascii() and not is_unicode(text):
            raise refuse("id, query, language and stream must be text without lone surrogates")
    return subscription


def _is_prefix_map(value: object) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(text, str) and is_unicode(text) for pair in value.items() for text in pair
    )


def is_unicode(text: str) -> bool:
    """Whether a text has no lone surrogates, which neither Arrow nor XML can hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def from_records(records: Iterable[tuple[object, str | None]], defaults: Defaults | None = None) -> SubscriptionBatch:
    """A batch of subscriptions, mappings or tuples, each with the place it came from (or None)."""
    accepted: list[Subscription] = []
    places: list[str | None] = []
    rejected: list[DeadLetter] = []
    for record, place in records:
        try:
            accepted.append(check(record if isinstance(record, Subscription) else subscription_of(record)))
            places.append(place)
        except SubscriptionError as error:
            rejected.append(DeadLetter.of(error, source=place))
    table = pa.table(
        [
            pa.array([s.id for s in accepted], pa.string()),
            pa.array([s.query for s in accepted], pa.string()),
            pa.array([json_of(s.namespaces) for s in accepted], pa.string()),
            pa.array([s.ignore_namespaces for s in accepted], pa.bool_()),
            pa.array([s.stream for s in accepted], pa.string()),
            pa.array([None if s.language == "xpath" else s.language for s in accepted], pa.string()),
            pa.array([s.notify_empty for s in accepted], pa.bool_()),
        ],
        schema=SCHEMA,
    )
    located = any(place is not None for place in places)
    return SubscriptionBatch(
        table=apply_defaults(table, defaults),
        rejected=tuple(rejected),
        locate=(lambda row: places[row] or "") if located else None,
    )


def json_of(namespaces: Mapping[str, str] | None) -> str | None:
    """Prefixes and URIs as the column `namespaces` has them.

    >>> json_of({"a": "urn:a"})
    '{"a": "urn:a"}'
    """
    return None if namespaces is None else json.dumps(dict(namespaces))


def apply_defaults(table: pa.Table, defaults: Defaults | None) -> pa.Table:
    """The table with the defaults filled in where a row says nothing; a false `ignore_namespaces` says nothing."""
    if defaults is None or defaults == Defaults():
        return table
    columns = {name: table.column(name) for name in table.column_names}
    if defaults.namespaces is not None:
        columns["namespaces"] = pc.fill_null(columns["namespaces"], json_of(defaults.namespaces))
    if defaults.stream is not None:
        columns["stream"] = pc.fill_null(columns["stream"], defaults.stream)
    if defaults.ignore_namespaces:
        filters = pc.equal(pc.fill_null(columns["language"], "xpath"), "xpath")
        # What a row says itself stays, so that the core refuses it where it contradicts the language.
        columns["ignore_namespaces"] = pc.or_(columns["ignore_namespaces"], filters)
    return pa.table(columns, schema=SCHEMA)


def from_table(
    table: pa.Table, defaults: Defaults | None = None, locate: Callable[[int], str] | None = None
) -> SubscriptionBatch:
    """A batch from any table that has `id` (or `subscription_id`) and `query`; other columns than `FIELDS` are ignored.

    Raises `InvalidFieldError` when a column is missing or has a type that can not be read.
    """
    columns = _with_absent(_read_columns(table), table.num_rows)
    return SubscriptionBatch(table=apply_defaults(pa.table(columns), defaults), locate=locate)


def is_ready(schema: pa.Schema) -> bool:
    """Whether the core reads such tables as they are: columns of `SCHEMA` alone, some absent, `id` for the first.

    >>> is_ready(pa.schema({"id": pa.string(), "query": pa.string()})), is_ready(pa.schema({"query": pa.string()}))
    (True, False)
    """
    names = set(schema.names)
    return (
        len(names) == len(schema.names)
        and ("id" in names) != ("subscription_id" in names)
        and "query" in names
        and all(_TYPES.get(name) == type_ for name, type_ in zip(schema.names, schema.types, strict=True))
    )


def _read_columns(table: pa.Table) -> dict[str, pa.ChunkedArray]:
    """The columns of `SCHEMA` that are given."""
    names = table.column_names
    key = "subscription_id" if "subscription_id" in names else "id"
    for needed in (key, "query"):
        if names.count(needed) != 1:
            raise InvalidFieldError(
                f"there must be one column {needed!r}; the columns are {', '.join(map(repr, names)) or 'none'}"
            )
    readers = {
        "namespaces": _prefix_maps,
        "ignore_namespaces": _flags,
        "stream": _text,
        "language": _text,
        "notify_empty": _flags,
    }
    given = {name: read(table, name) for name, read in readers.items() if name in names}
    return {"subscription_id": _text(table, key), "query": _text(table, "query"), **given}


def _with_absent(given: Mapping[str, pa.ChunkedArray], rows: int) -> dict[str, pa.ChunkedArray]:
    """All columns of `SCHEMA`: those that are not given say nothing."""
    nothing: dict[pa.DataType, pa.Array] = {
        pa.string(): pa.nulls(rows, pa.string()),
        pa.bool_(): pa.repeat(False, rows),
    }
    return {item.name: given.get(item.name, pa.chunked_array([nothing[item.type]])) for item in SCHEMA}


def _text(table: pa.Table, name: str) -> pa.ChunkedArray:
    column = table.column(name)
    if pa.types.is_string(column.type):
        return column
    if pa.types.is_floating(column.type) or pa.types.is_nested(column.type) or pa.types.is_boolean(column.type):
        raise InvalidFieldError(f"column {name!r} has type {column.type}; it must hold strings")
    try:
        return column.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidFieldError(
            f"column {name!r} has type {column.type} and can not be read as text: {error}"
        ) from None


def _flags(table: pa.Table, name: str) -> pa.ChunkedArray:
    column = table.column(name)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = pc.if_else(pc.equal(column, ""), None, column)
    try:
        return pc.fill_null(column.cast(pa.bool_()), False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidFieldError(f"column {name!r} must hold true or false: {error}") from None


def _prefix_maps(table: pa.Table, name: str) -> pa.ChunkedArray:
    column = table.column(name)
    if pa.types.is_map(column.type) or pa.types.is_struct(column.type):
        is_map = pa.types.is_map(column.type)
        texts = []
        for value in column.to_pylist():
            pairs = value if value is None or is_map else [(k, v) for k, v in value.items() if v is not None]
            texts.append(None if pairs is None else json.dumps(dict(pairs)))
        return pa.chunked_array([pa.array(texts, pa.string())])
    text = _text(table, name)
    return pc.if_else(pc.equal(text, ""), None, text)


def rejection(batch: SubscriptionBatch, row: int, error: SardonyxError) -> DeadLetter:
    """The dead letter for a row of a batch that the core refused."""
    letter = DeadLetter.of(error)
    return letter if batch.locate is None else replace(letter, source=batch.locate(row))
