"""What joins need of Spark's Python workers: each document taken apart into witnesses, beside what matching says of it.

A row goes to the driver for every document that could be read, also for one without witnesses: the watermark, and with
it who is late, depends on all of them. Its bytes stay in the worker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sardonyx import _core
from sardonyx.spark.schemas import BATCH, DEAD_LETTER, JOINING_ARROW, WITNESSES
from sardonyx.spark.worker import FIRST_DOCUMENTS, LETTER, MatchTask, cached_index, next_portion, rows_of, unreadable

__all__ = ["JoinTask"]


@dataclass(frozen=True, slots=True)
class JoinTask:
    """The function for `mapInArrow`: documents as for `MatchTask` in, rows of `JOINING` out."""

    match: MatchTask
    """What filters and transformations do with the same documents."""
    state: Mapping[str, Any]
    """The arguments of `_core.JoinState`; nothing is kept in it here."""
    arrival_us: int
    """The timestamp of documents that have none, and whose stream declares none."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Match all batches of one task and take their documents apart."""
        index = cached_index(self.match.index, self.match.limits, self.match.cost_limit)
        state = _core.JoinState(**self.state)
        for batch in batches:
            for rows in self.match([batch]):
                yield _widened(rows)
            documents, _ = unreadable(batch)
            start, portion = 0, FIRST_DOCUMENTS
            while start < documents.num_rows:
                part = documents.slice(start, portion)
                given = 0
                for rows in self._taken_apart(index, state, part):
                    given += rows.nbytes
                    yield rows
                start += part.num_rows
                portion = next_portion(part.num_rows, portion, given, self.match.output_bytes)

    def _taken_apart(
        self, index: _core.Index, state: _core.JoinState, documents: pa.RecordBatch
    ) -> Iterator[pa.RecordBatch]:
        names = documents.schema.names
        streams = documents.column("stream") if "stream" in names else pa.nulls(documents.num_rows, pa.string())
        said = state.witnesses(
            index,
            documents.column("payload"),
            documents.column("document_id").cast(pa.string()),
            self._timestamps(documents, streams),
            streams,
            threads=1,
        )
        generation = self.match.index.generation
        found = said["witnesses"]
        columns = {name: found.column(name) for name in ("document_id", "stream", "timestamp_us", "witnesses")}
        yield rows_of(WITNESSES, generation, JOINING_ARROW, **columns)
        # What is wrong with a document altogether has been said where it was matched.
        errors = said["errors"]
        undated = pc.equal(errors.column("kind"), "timestamp")
        own = errors.filter(pc.or_(undated, pc.is_valid(errors.column("subscription_id"))))
        if own.num_rows == 0:
            return
        ids = documents.column("document_id").take(own.column("document"))
        letters = {name: own.column(name) for name in LETTER}
        yield rows_of(DEAD_LETTER, generation, JOINING_ARROW, document_id=ids, **letters)
        count = pc.sum(undated).as_py()
        counts = {"unjoined_documents": count, "undecided_pairs": own.num_rows - count}
        columns = {name: pa.array([value], pa.int64()) for name, value in counts.items()}
        yield rows_of(BATCH, generation, JOINING_ARROW, **columns)

    def _timestamps(self, documents: pa.RecordBatch, streams: pa.Array) -> pa.Array:
        """Given, or null where the document itself says it, or when it arrived."""
        given = pa.nulls(documents.num_rows, pa.int64())
        if "timestamp" in documents.schema.names:
            given = documents.column("timestamp").cast(pa.int64())
        declared = pa.array(list(self.state["timestamps"] or ()), pa.string())
        arrival = pa.scalar(self.arrival_us, pa.int64())
        says_itself = pc.is_in(streams.cast(pa.string()), declared)
        return pc.coalesce(given, pc.if_else(says_itself, pa.scalar(None, pa.int64()), arrival))


def _widened(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows of `RESULTS` as rows of `JOINING`."""
    missing = JOINING_ARROW.names[rows.num_columns :]
    columns = [pa.nulls(rows.num_rows, JOINING_ARROW.field(name).type) for name in missing]
    return pa.record_batch([*rows.columns, *columns], schema=JOINING_ARROW)
