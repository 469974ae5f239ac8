"""Workloads on disk: a folder with documents and subscriptions in forms that the commands and pipelines read."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, is_dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from sardonyx.errors import SettingsError
from sardonyx.workloads.sets import Stream, Workload

__all__ = ["DocumentsAs", "SubscriptionsAs", "Written", "write"]

DocumentsAs = Literal["xml", "jsonl", "parquet"]
"""A folder of files, a JSON object a line, or one Parquet file; the last two with `document_id` and `payload`."""
SubscriptionsAs = Literal["txt", "csv", "jsonl", "parquet"]
"""The formats of `sardonyx.subscriptions.read`; `txt` is an XPath a line and can not hold prefixes."""
Progress = Callable[[int], None]
T = TypeVar("T")

_ROWS = 10_000
"""Rows of a table that are held at a time."""
_TOLD = 256
"""Items after which the progress is told."""


@dataclass(frozen=True, slots=True)
class Written:
    """What was written."""

    documents: Path
    """The folder or file of the documents."""
    subscriptions: Path
    """The file of the subscriptions."""
    document_count: int
    """How many documents there are."""
    document_bytes: int
    """Their size together."""
    subscription_count: int
    """How many subscriptions there are."""


def write(
    workload: Workload,
    folder: str | os.PathLike[str],
    documents_as: DocumentsAs = "xml",
    subscriptions_as: SubscriptionsAs | None = None,
    *,
    on_progress: Progress | None = None,
) -> Written:
    """Write a workload into a new folder, which appears only when all is written.

    It holds the documents, the subscriptions and `workload.json`, which says how they were made. Without
    `subscriptions_as` the subscriptions are `txt`, or `jsonl` where their queries have prefixes or are no filters.
    `on_progress` is told the number of documents and subscriptions written so far. Raises `SettingsError` where the
    folder exists and is not empty, and for prefixes and other queries than filters in `txt`.

    >>> import tempfile
    >>> from sardonyx.workloads import load
    >>> with tempfile.TemporaryDirectory() as place:
    ...     written = write(load("stock", documents=3, subscriptions=2, notifications=1), f"{place}/stock")
    ...     sorted(file.name for file in written.documents.iterdir()), written.subscriptions.read_text().count("\\n")
    (['1.xml', '2.xml', '3.xml'], 2)
    """
    target = Path(folder)
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise SettingsError(f"{target} exists already; a workload needs a new folder")
    aside = target.absolute().parent / f".{target.name}.{os.getpid()}.partial"
    aside.mkdir(parents=True)
    try:
        names, size = _write_documents(_Told(workload.documents, 0, on_progress), aside, documents_as)
        namespaces = dict(workload.namespaces())
        if subscriptions_as == "txt" and namespaces:
            raise SettingsError(
                f"the queries have the prefixes {', '.join(namespaces)}, which txt can not bind; use csv, jsonl or "
                "parquet"
            )
        if subscriptions_as == "txt" and workload.language != "xpath":
            raise SettingsError(f"the queries are {workload.language}, and txt holds XPath; use csv, jsonl or parquet")
        fields: dict[str, Any] = {"language": workload.language} if workload.language != "xpath" else {}
        if namespaces:
            fields["namespaces"] = namespaces
        form = subscriptions_as or ("jsonl" if fields else "txt")
        subscriptions = aside / f"subscriptions.{form}"
        queries = _Told(workload.subscriptions, len(workload.documents), on_progress)
        _write_subscriptions(queries, subscriptions, fields, form)
        (aside / "workload.json").write_text(_description(workload, namespaces), encoding="utf-8")
        os.replace(aside, target)
    except BaseException:
        # Also for Ctrl-C: nothing half-written stays.
        shutil.rmtree(aside, ignore_errors=True)
        raise
    return Written(
        target / names, target / subscriptions.name, len(workload.documents), size, len(workload.subscriptions)
    )


def _description(workload: Workload, namespaces: dict[str, str]) -> str:
    parameters = {
        name: asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
        for name, value in workload.parameters.items()
    }
    said = {
        "set": workload.name,
        "documents": len(workload.documents),
        "subscriptions": len(workload.subscriptions),
        "expected_notifications": workload.notifications,
        "namespaces": namespaces,
        "parameters": parameters,
    }
    return json.dumps(said, indent=2) + "\n"


class _Told(Generic[T]):
    """Items that are counted on their way, in front of which others were."""

    def __init__(self, items: Stream[T], before: int, on_progress: Progress | None) -> None:
        self.items = items
        self._before = before
        self._on_progress = on_progress

    def __iter__(self) -> Iterator[T]:
        if self._on_progress is None:
            yield from self.items
            return
        for done, item in enumerate(self.items, self._before + 1):
            yield item
            if done % _TOLD == 0:
                self._on_progress(done)

    def chunks(self) -> Iterator[tuple[int, list[T]]]:
        """Lists of the items, each with the number of its first one, from 1."""
        iterator = iter(self)
        first = 1
        while chunk := list(islice(iterator, _ROWS)):
            yield first, chunk
            first += len(chunk)


def _write_documents(documents: _Told[bytes], folder: Path, form: DocumentsAs) -> tuple[str, int]:
    """Write documents that are numbered from 1; gives the name of what was written and the size of the documents."""
    name = "documents" if form == "xml" else f"documents.{form}"
    path = folder / name
    size = 0
    if form == "xml":
        path.mkdir()
        width = len(str(len(documents.items)))
        for number, document in enumerate(documents, 1):
            (path / f"{number:0{width}}.xml").write_bytes(document)
            size += len(document)
    elif form == "jsonl":
        with open(path, "w", encoding="utf-8") as file:
            for number, document in enumerate(documents, 1):
                row = {"document_id": str(number), "payload": _text(document, number)}
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
                size += len(document)
    else:
        schema = pa.schema([pa.field("document_id", pa.string(), False), pa.field("payload", pa.binary(), False)])
        with pyarrow.parquet.ParquetWriter(path, schema) as writer:
            for first, chunk in documents.chunks():
                writer.write_table(pa.table([_ids(first, chunk), chunk], schema=schema))
                size += sum(map(len, chunk))
    return name, size


def _text(document: bytes, number: int) -> str:
    try:
        return document.decode()
    except UnicodeDecodeError:
        raise SettingsError(f"document {number} is not UTF-8, which jsonl needs; use xml or parquet") from None


def _ids(first: int, chunk: list[T]) -> list[str]:
    return [str(number) for number in range(first, first + len(chunk))]


def _write_subscriptions(queries: _Told[str], path: Path, fields: dict[str, Any], form: SubscriptionsAs) -> None:
    """Write the queries, numbered from 1; `fields` are the same for all of them."""
    if form in ("txt", "jsonl"):
        with open(path, "w", encoding="utf-8") as file:
            if form == "txt":
                file.writelines(f"{query}\n" for query in queries)
                return
            for number, query in enumerate(queries, 1):
                row = {"id": str(number), "query": query, **fields}
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
        return
    schema = pa.schema([pa.field(name, pa.string(), False) for name in ("id", "query", *fields)])
    same = [value if isinstance(value, str) else json.dumps(value) for value in fields.values()]
    open_writer = pyarrow.csv.CSVWriter if form == "csv" else pyarrow.parquet.ParquetWriter
    with open_writer(path, schema) as writer:
        for first, chunk in queries.chunks():
            columns = [_ids(first, chunk), chunk, *([text] * len(chunk) for text in same)]
            writer.write_table(pa.table(columns, schema=schema))
