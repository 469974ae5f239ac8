"""Documents on their way to the core: single ones and batches, bytes and text, with nothing copied twice."""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sardonyx.errors import DocumentError, EncodingError
from sardonyx.model import Document
from sardonyx.reports import ERRORS_SCHEMA, MATCHES_SCHEMA

__all__ = ["Batch", "Part", "collect", "many", "named", "single"]


@dataclass(frozen=True, slots=True)
class Part:
    """A run of documents of one type."""

    start: int
    """Row of its first document in the batch."""
    payloads: pa.Array
    """The documents."""
    streams: pa.Array | None
    """Their streams."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch of documents, as runs that the core can read."""

    parts: tuple[Part, ...]
    """The runs, in order."""
    documents: int
    """How many documents there are."""
    payload_bytes: int
    """Their size in bytes."""
    unreadable: dict[int, EncodingError]
    """Rows whose text is not Unicode (lone surrogates), which Arrow can not hold; they are null in the parts."""


def single(document: Document | bytes | str) -> tuple[bytes | str, str | None, str | None]:
    """Payload, stream and id of a document; raises `EncodingError` for text that is not Unicode."""
    if isinstance(document, Document):
        payload, stream, name = document.payload, document.stream, document.document_id
    else:
        payload, stream, name = document, None, None
    if isinstance(payload, str):
        try:
            payload.encode()
        except UnicodeEncodeError as error:
            raise _not_unicode(error, name) from None
        return payload, stream, name
    _kind(payload)
    return bytes(payload), stream, name


def _not_unicode(error: UnicodeEncodeError, document_id: str | None = None) -> EncodingError:
    return EncodingError(
        f"character {error.start} of the text is a lone surrogate, which no XML document can hold",
        document_id=document_id,
    )


@contextmanager
def named(document_id: str | None) -> Iterator[None]:
    """Errors of the block say which document they are about."""
    try:
        yield
    except DocumentError as error:
        error.document_id = document_id
        raise


def many(documents: Any, streams: Sequence[str | None] | None = None) -> Batch:
    """The batch for a sequence of documents or an Arrow array; raises `TypeError` for anything else."""
    if hasattr(documents, "__arrow_c_array__") or hasattr(documents, "__arrow_c_stream__"):
        return _from_arrow(documents, streams)
    if isinstance(documents, str | bytes | Document):
        raise TypeError("match_batch needs a sequence of documents; use match for a single one")
    items = list(documents)
    if streams is None:
        streams = [item.stream if isinstance(item, Document) else None for item in items]
    elif len(streams) != len(items):
        raise ValueError(f"there are {len(items)} documents and {len(streams)} streams")
    payloads = [item.payload if isinstance(item, Document) else item for item in items]
    unreadable: dict[int, EncodingError] = {}
    parts: list[Part] = []
    start = 0
    for kind, group in groupby(payloads, key=_kind):
        run = list(group)
        if kind is str:
            for row, text in enumerate(run):
                assert isinstance(text, str)
                try:
                    text.encode()
                except UnicodeEncodeError as error:
                    unreadable[start + row] = _not_unicode(error)
                    run[row] = None
        array = pa.array(run, pa.string() if kind is str else pa.binary())
        parts.extend(_parts(array, start, streams))
        start += len(run)
    size = sum(part.payloads.nbytes for part in parts)
    return Batch(tuple(parts), len(items), size, unreadable)


def _kind(payload: object) -> type[Any]:
    if isinstance(payload, str):
        return str
    if payload is None or isinstance(payload, bytes | bytearray | memoryview):
        return bytes
    raise TypeError(f"a document must be Document, bytes or str, not {type(payload).__name__}")


def _from_arrow(documents: Any, streams: Sequence[str | None] | None) -> Batch:
    array = documents if isinstance(documents, pa.Array | pa.ChunkedArray) else None
    if array is None:
        array = pa.chunked_array(documents) if hasattr(documents, "__arrow_c_stream__") else pa.array(documents)
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if pa.types.is_null(array.type):
        array = array.cast(pa.binary())
    kinds = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_string, pa.types.is_large_string)
    if not any(kind(array.type) for kind in kinds):
        raise TypeError(f"documents must have a binary or string type, not {array.type}")
    parts = _parts(array, 0, streams)
    return Batch(tuple(parts), len(array), sum(part.payloads.nbytes for part in parts), {})


def _parts(array: pa.Array | pa.ChunkedArray, start: int, streams: Sequence[str | None] | None) -> list[Part]:
    # pa.array gives a chunked array by itself when a run has more bytes than one array's offsets can count.
    parts = []
    for chunk in array.chunks if isinstance(array, pa.ChunkedArray) else [array]:
        if len(chunk):
            here = None if streams is None else streams[start : start + len(chunk)]
            named_streams = None if here is None or all(name is None for name in here) else pa.array(here, pa.string())
            parts.append(Part(start, chunk, named_streams))
        start += len(chunk)
    return parts


def collect(
    parts: Sequence[tuple[int, tuple[Any, Any]]], unreadable: dict[int, EncodingError]
) -> tuple[pa.Table, pa.Table]:
    """The tables of matches and errors, from what the core says of each part; rows are counted over the whole batch."""
    matches = [_shift(found, start, MATCHES_SCHEMA) for start, (found, _) in parts]
    errors = [_shift(failed, start, ERRORS_SCHEMA) for start, (_, failed) in parts]
    table = pa.Table.from_batches(matches, MATCHES_SCHEMA).unify_dictionaries()
    failures = pa.Table.from_batches(errors, ERRORS_SCHEMA)
    if unreadable:
        rows = failures.to_pylist()
        for row in rows:
            error = unreadable.get(row["document"])
            if error is not None:
                row.update(kind=error.kind, message=error.message)
        failures = pa.Table.from_pylist(rows, ERRORS_SCHEMA)
    return table, failures


def _shift(said: Any, start: int, schema: pa.Schema) -> pa.RecordBatch:
    batch = said if isinstance(said, pa.RecordBatch) else pa.record_batch(said)
    # The core gives no results where there is no transformation.
    given = batch.schema.names
    columns = [
        batch.column(item.name).cast(item.type) if item.name in given else _no_results(batch.num_rows, item.type)
        for item in schema
    ]
    if start:
        columns[0] = pc.add(columns[0], pa.scalar(start, pa.uint32()))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


_zeros = pa.py_buffer(b"")


def _no_results(count: int, dictionary_type: pa.DictionaryType) -> pa.DictionaryArray:
    """Nulls that take no memory: keys and validity are zeros, which the system has one page of until it is written to.

    A hundred million matches would otherwise come with 400 MB of nothing.
    """
    global _zeros
    zeros = _zeros
    if zeros.size < 4 * count:
        private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        _zeros = zeros = pa.py_buffer(mmap.mmap(-1, 4 * count, flags=private, prot=mmap.PROT_READ))
    nothing = pa.array([], dictionary_type.value_type)
    return pa.DictionaryArray.from_buffers(dictionary_type, count, [zeros, zeros], nothing)
