"""What runs in Spark's Python workers: Arrow batches of documents in, Arrow batches of results out.

The closure that travels holds a path, a content hash, a generation and the limits; the index itself is memory-mapped by
each worker and kept in a module-level table, because workers are reused from task to task and from micro-batch to
micro-batch (and replaced when idle: loading has to be cheap).
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sardonyx import _core
from sardonyx.spark.errors import GenerationError
from sardonyx.spark.schemas import BATCH, DEAD_LETTER, NOTIFICATION, RESULTS_ARROW

__all__ = [
    "FIRST_DOCUMENTS",
    "LETTER",
    "OUTPUT_BYTES",
    "IndexReference",
    "MatchTask",
    "cached_index",
    "next_portion",
    "parts_of",
    "rows_of",
    "unreadable",
]

CACHED_GENERATIONS = 2
"""Indexes kept by one worker: the current one, and the former for tasks still running or replayed with it."""

OUTPUT_BYTES = 16 * 1024 * 1024
"""Bytes of results that a task gathers by default before it hands them on."""

ROW_BYTES = 256
"""What a row of results weighs beside its text: ids and constants. A popular document can have a million rows."""

FIRST_DOCUMENTS = 16
"""Documents of a task's first call of the core; what they gave says how many the next call may be about."""

_COUNTED = ("documents", "matched_documents", "notifications", "dead_letters", "undecided_pairs", "payload_bytes")

LETTER = ("subscription_id", "kind", "message", "line", "column", "offset")
"""The columns of dead letters that the core fills."""

_CACHE: OrderedDict[tuple[str, str], _core.Index] = OrderedDict()
_LOCK = threading.Lock()


@dataclass(frozen=True, slots=True)
class IndexReference:
    """Which index a task matches against."""

    path: str
    """The saved index, readable under this path on every worker."""
    content_hash: str
    """What `Index.save` said of it; the key of the worker's cache."""
    generation: int
    """The number stamped on every result."""


def cached_index(
    reference: IndexReference, limits: Mapping[str, int | str] | None = None, cost_limit: int | None = None
) -> _core.Index:
    """The index of this process, loaded by memory map on first use; raises `IndexFormatError`.

    The driver has verified the file; a worker only compares the content hash in its head with the one asked for, so
    that a file replaced under a running query is an error and never another answer.
    """
    key = (reference.content_hash, json.dumps([dict(limits or {}), cost_limit], sort_keys=True))
    with _LOCK:
        index = _CACHE.get(key)
        if index is None:
            index = _core.Index.load(reference.path, verify=False, cost_limit=cost_limit, limits=limits)
            if index.content_hash != reference.content_hash:
                raise GenerationError(
                    f"{reference.path} holds another index ({index.content_hash}) than this query began with "
                    f"({reference.content_hash}); publish new generations instead of replacing the file"
                )
            _CACHE[key] = index
        _CACHE.move_to_end(key)
        while len(_CACHE) > CACHED_GENERATIONS:
            _CACHE.popitem(last=False)
        return index


@dataclass(frozen=True, slots=True)
class MatchTask:
    """The function for `mapInArrow`: columns `document_id`, `payload` and optionally `stream`, `timestamp`,
    `source_error` in, rows of `RESULTS` out.
    """

    index: IndexReference
    limits: Mapping[str, int | str] | None = None
    cost_limit: int | None = None
    matcher: _core.Matcher = "inverted"
    output_bytes: int = OUTPUT_BYTES

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Match all batches of one task; the counts come last."""
        counts = dict.fromkeys(_COUNTED, 0)
        oldest: int | None = None
        index = cached_index(self.index, self.limits, self.cost_limit)
        portion = FIRST_DOCUMENTS
        for batch in batches:
            usable, letters = unreadable(batch)
            stamps = [stamp for stamp in (oldest, _oldest_us(batch)) if stamp is not None]
            oldest = min(stamps, default=None)
            counts["documents"] += batch.num_rows
            counts["dead_letters"] += batch.num_rows - usable.num_rows
            counts["payload_bytes"] += pc.sum(pc.binary_length(batch.column("payload"))).as_py() or 0
            start = 0
            while start < usable.num_rows:
                documents = usable.slice(start, portion)
                matches, errors = self._match(index, documents)
                start += documents.num_rows
                portion = next_portion(documents.num_rows, portion, matches.nbytes + errors.nbytes, self.output_bytes)
                counts["matched_documents"] += pc.count_distinct(matches.column("document")).as_py()
                counts["notifications"] += matches.num_rows
                undecided = pc.sum(pc.is_valid(errors.column("subscription_id"))).as_py() or 0
                counts["undecided_pairs"] += undecided
                counts["dead_letters"] += errors.num_rows - undecided
                yield from self._notifications(documents, matches)
                yield from self._dead_letters(documents, errors)
            if letters is not None:
                yield rows_of(DEAD_LETTER, self.index.generation, **letters)
        if counts["documents"]:
            row = {name: pa.array([value], pa.int64()) for name, value in counts.items()}
            yield rows_of(BATCH, self.index.generation, oldest_timestamp_us=pa.array([oldest], pa.int64()), **row)

    def _match(self, index: _core.Index, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        streams = batch.column("stream") if "stream" in batch.schema.names else None
        matches, errors = index.match_batch(batch.column("payload"), streams, threads=1, matcher=self.matcher)
        return pa.record_batch(matches), pa.record_batch(errors)

    def _notifications(self, documents: pa.RecordBatch, matches: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        for part in parts_of(matches, "result", self.output_bytes):
            document_ids = documents.column("document_id").take(part.column("document")).cast(pa.string())
            columns = {name: part.column(name).dictionary_decode() for name in part.schema.names[1:]}
            ids = pa.array(_core.notification_ids(document_ids, columns["subscription_id"]))
            yield rows_of(NOTIFICATION, self.index.generation, document_id=document_ids, notification_id=ids, **columns)

    def _dead_letters(self, documents: pa.RecordBatch, errors: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        for part in parts_of(errors, "message", self.output_bytes):
            columns = {name: part.column(name) for name in LETTER}
            document_ids = documents.column("document_id").take(part.column("document"))
            yield rows_of(DEAD_LETTER, self.index.generation, document_id=document_ids, **columns)


def next_portion(documents: int, asked: int, given_bytes: int, wanted_bytes: int) -> int:
    """How many documents to hand to the core at once, so that what it gives stays near `wanted_bytes`.

    The core answers for all of them before it returns. The portion at most doubles, so that a few documents without
    results do not open the door for many with large ones.
    """
    fitting = documents * wanted_bytes // max(given_bytes, 1)
    return max(1, min(fitting, 2 * asked))


def parts_of(rows: pa.RecordBatch, text: str, wanted_bytes: int) -> Iterator[pa.RecordBatch]:
    """Rows in parts of about `wanted_bytes` each, or of one row where that alone is larger.

    `text` names the column whose length varies (it may be absent): results are a dictionary, in which one long text
    may stand for a million rows.
    """
    weights = pa.repeat(pa.scalar(ROW_BYTES, pa.int64()), rows.num_rows)
    if text in rows.schema.names:
        column = rows.column(text)
        lengths = (
            pc.binary_length(column.dictionary).take(column.indices)
            if pa.types.is_dictionary(column.type)
            else pc.binary_length(column)
        )
        weights = pc.add(weights, lengths.fill_null(0).cast(pa.int64()))
    ends = pc.cumulative_sum(weights)
    # The rows that begin within the same stretch of `wanted_bytes` make a part; the last of them may reach beyond it.
    stretches = pc.divide(pc.subtract(ends, weights), pa.scalar(wanted_bytes, pa.int64()))
    start = 0
    for end in pc.run_end_encode(stretches).run_ends.to_pylist():
        yield rows.slice(start, end - start)
        start = end


def rows_of(outcome: str, generation: int, schema: pa.Schema = RESULTS_ARROW, **columns: pa.Array) -> pa.RecordBatch:
    """A batch of `RESULTS`, or of a schema that has its columns: what is given, the constants, and nulls elsewhere."""
    count = len(next(iter(columns.values())))
    arrays = []
    for field in schema:
        if field.name == "outcome":
            arrays.append(pa.repeat(outcome, count))
        elif field.name == "generation":
            arrays.append(pa.repeat(pa.scalar(generation, pa.int64()), count))
        elif field.name in columns:
            arrays.append(columns[field.name].cast(field.type))
        else:
            arrays.append(pa.nulls(count, field.type))
    return pa.record_batch(arrays, schema=schema)


def _oldest_us(batch: pa.RecordBatch) -> int | None:
    if "timestamp" not in batch.schema.names:
        return None
    oldest: int | None = pc.min(batch.column("timestamp").cast(pa.int64())).as_py()
    return oldest


def unreadable(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, dict[str, pa.Array] | None]:
    """Split off the rows that can not be matched at all, with their reasons as columns of dead letters."""
    texts = [name for name in ("document_id", "payload", "stream") if name in batch.schema.names]
    broken = {name: rows for name in texts if (rows := _not_utf8(batch.column(name))) is not None}
    bad = pc.is_null(batch.column("document_id"))
    for rows in broken.values():
        bad = pc.or_(bad, rows)
    if "source_error" in batch.schema.names:
        bad = pc.or_(bad, pc.is_valid(batch.column("source_error")))
    if not pc.any(bad).as_py():
        return batch, None
    letters = [_reason(batch.slice(row, 1), broken, row) for row, is_bad in enumerate(bad.to_pylist()) if is_bad]
    columns = {
        field.name: pa.array([letter.get(field.name) for letter in letters], field.type)
        for field in RESULTS_ARROW
        if field.name in ("document_id", "kind", "message", "line", "column", "offset")
    }
    return batch.filter(pc.invert(bad)), columns


def _not_utf8(column: pa.Array) -> pa.Array | None:
    """Which strings of a column are not UTF-8, which Spark does not check and the core relies on; None if all are."""
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return None
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return pa.array(
            [value is not None and not _is_utf8(value) for value in column.cast(pa.large_binary()).to_pylist()]
        )
    return None


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _reason(row: pa.RecordBatch, broken: Mapping[str, pa.Array], position: int) -> dict[str, Any]:
    """Why one row is a dead letter, and its id as far as it can be shown."""
    raw = row.column("document_id").cast(pa.large_binary())[0].as_py()
    document_id = None if raw is None else raw.decode("utf-8", "replace")
    if "source_error" in row.schema.names and row.column("source_error")[0].is_valid:
        return {**json.loads(row.column("source_error")[0].as_py()), "document_id": document_id}
    if document_id is None:
        return {"kind": "missing_document_id", "message": "the document has no document_id"}
    name = next(name for name, rows in broken.items() if rows[position].as_py())
    return {"kind": "encoding", "message": f"the string in column {name} is not UTF-8", "document_id": document_id}
