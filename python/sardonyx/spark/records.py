"""Splitting large files into one document per record element, in the workers and in flat memory.

Spark lists the files (once, in a stream's checkpoint) and hands their paths to this task; the payloads never pass
through the driver, and a file is read as a stream whose batches are bounded in bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sardonyx import _core
from sardonyx.errors import SardonyxError

__all__ = ["SplitTask"]


@dataclass(frozen=True, slots=True)
class SplitTask:
    """The function for `mapInArrow`: the columns `path`, `name` (what the records are named after) and `timestamp` of
    each file in, documents out.
    """

    record: str
    limits: Mapping[str, int | str]
    batch_bytes: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The records of all files of one task, in order; a fault ends its file with one row that says so."""
        for batch in batches:
            for row in range(batch.num_rows):
                path, name = (batch.column(column)[row].as_py() for column in ("path", "name"))
                yield from self._file(path, name, batch.column("timestamp").slice(row, 1))

    def _file(self, path: str, name: str, timestamp: pa.Array) -> Iterator[pa.RecordBatch]:
        count = 0
        try:
            splitter = _core.Splitter(
                path.removeprefix("file:"), self.record, batch_bytes=self.batch_bytes, limits=self.limits
            )
            for item in splitter:
                records = pa.record_batch(item)
                numbers = records.column("record").cast(pa.string())
                ids = pc.binary_join_element_wise(pa.scalar(name), numbers, "#")
                yield _documents(ids, records.column("payload"), timestamp)
                count += records.num_rows
        except (SardonyxError, OSError) as error:
            yield _documents(pa.array([f"{name}#{count}"]), pa.nulls(1, pa.binary()), timestamp, _reason(error))


def _documents(ids: pa.Array, payloads: pa.Array, timestamp: pa.Array, reason: str | None = None) -> pa.RecordBatch:
    count = len(ids)
    return pa.record_batch(
        {
            "document_id": ids,
            "payload": payloads,
            "stream": pa.nulls(count, pa.string()),
            "timestamp": pa.repeat(timestamp[0], count),
            "source_error": pa.repeat(pa.scalar(reason, pa.string()), count),
        }
    )


def _reason(error: SardonyxError | OSError) -> str:
    fields: dict[str, Any] = {"kind": "source", "message": str(error)}
    if isinstance(error, SardonyxError):
        fields = {
            "kind": error.kind,
            "message": error.message,
            "line": error.line,
            "column": error.column,
            "offset": error.offset,
        }
    return json.dumps(fields)
