"""The exact columns of everything that flows through Spark, as Spark and as Arrow schemas.

Results are one table with a discriminator (`outcome`), because one pass over the documents gives notifications, dead
letters and counts together; the narrower schemas are what `notifications`, `dead_letters` and `statistics` select of
it.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

__all__ = [
    "BATCH",
    "DEAD_LETTER",
    "DEAD_LETTERS",
    "DOCUMENTS",
    "JOINING",
    "JOINING_ARROW",
    "NOTIFICATION",
    "NOTIFICATIONS",
    "OUTCOMES",
    "RESULTS",
    "RESULTS_ARROW",
    "STATISTICS",
    "WITNESSES",
]

NOTIFICATION = "notification"
"""`outcome` of a row that says that a document satisfies a subscription."""
DEAD_LETTER = "dead_letter"
"""`outcome` of a row that says why a document or a subscription could not be processed."""
BATCH = "batch"
"""`outcome` of a row with the counts of one task."""
WITNESSES = "witnesses"
"""`outcome` of a row of `JOINING` with what a document has to join with; never among results."""
OUTCOMES = (NOTIFICATION, DEAD_LETTER, BATCH)
"""All values of `outcome` in results."""

_STRING, _LONG = StringType(), LongType()


def _struct(*columns: tuple[str, DataType]) -> StructType:
    return StructType([StructField(name, kind, nullable=True) for name, kind in columns])


DOCUMENTS = _struct(
    ("document_id", _STRING),
    ("payload", BinaryType()),
    ("stream", _STRING),
    ("timestamp", TimestampType()),
    ("source_error", _STRING),
)
"""Documents as the sources give them.

`payload` may be a string in DataFrames of your own; `stream` and `timestamp` are optional. `source_error` is optional
too: JSON with `kind`, `message`, `line`, `column`, `offset` of a document that its source could not read, which `match`
turns into a dead letter."""

RESULTS = _struct(
    ("outcome", _STRING),
    ("document_id", _STRING),
    ("subscription_id", _STRING),
    ("notification_id", _STRING),
    ("result", _STRING),
    ("document_ids", ArrayType(_STRING)),
    ("generation", _LONG),
    ("kind", _STRING),
    ("message", _STRING),
    ("line", _LONG),
    ("column", _LONG),
    ("offset", _LONG),
    ("documents", _LONG),
    ("matched_documents", _LONG),
    ("notifications", _LONG),
    ("dead_letters", _LONG),
    ("undecided_pairs", _LONG),
    ("unjoined_documents", _LONG),
    ("repetitions", _LONG),
    ("payload_bytes", _LONG),
    ("oldest_timestamp_us", _LONG),
)
"""What `match` gives: one row per notification, per dead letter, and per task (`outcome` says which)."""

_ARROW_TYPES = {
    _STRING: pa.string(),
    _LONG: pa.int64(),
    BinaryType(): pa.binary(),
    ArrayType(_STRING): pa.list_(pa.field("element", pa.string())),
}


def _arrow(schema: StructType) -> pa.Schema:
    return pa.schema([(field.name, _ARROW_TYPES[field.dataType]) for field in schema.fields])


RESULTS_ARROW = _arrow(RESULTS)
"""`RESULTS` as Arrow; Spark accepts nothing that differs from it."""

JOINING = StructType(
    [*RESULTS.fields, *_struct(("stream", _STRING), ("timestamp_us", _LONG), ("witnesses", BinaryType()))]
)
"""`RESULTS` and, of each document that could be read, a row of outcome `WITNESSES`, for joins."""

JOINING_ARROW = _arrow(JOINING)
"""`JOINING` as Arrow."""


def _select(*names: str) -> StructType:
    return StructType([RESULTS[name] for name in names])


NOTIFICATIONS = _select("document_id", "subscription_id", "notification_id", "result", "document_ids", "generation")
"""One row per document and satisfied subscription. `notification_id` is `sardonyx.model.notification_id`; `result` is
the XML text that a transformation or a join made, and null for filters; `document_ids` are the documents that a join
brought together, of which `document_id` is the last, and null for others."""

DEAD_LETTERS = _select("document_id", "subscription_id", "kind", "message", "line", "column", "offset", "generation")
"""One row per document, refused subscription, or pair of both (a query that costs too much on a document, or fails on
it), with the reason; lines and columns from 1, offsets in bytes from 0."""

STATISTICS = _select(
    "generation",
    "documents",
    "matched_documents",
    "notifications",
    "dead_letters",
    "undecided_pairs",
    "unjoined_documents",
    "repetitions",
    "payload_bytes",
    "oldest_timestamp_us",
)
"""One row per task: documents seen (dead letters included), how many matched anything, notifications and dead letters
made of them, their size, and the oldest `timestamp` in microseconds since 1970 UTC (null where there is none). With
joins there are further rows with what these add: notifications, documents that joins could not hear, repetitions."""
