"""From whatever holds subscriptions to one saved index that all workers can map.

Accepted are an `Index`, a `Broker`, a DataFrame of subscriptions, `Subscription` objects, a subscriptions file, a saved
index (`*.sdx`) and a directory of published generations. What is not saved yet is published into a directory of its own.
"""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import MapType

from sardonyx import _core
from sardonyx.config import Limits
from sardonyx.errors import SettingsError, from_core
from sardonyx.model import DeadLetter, Subscription
from sardonyx.spark.schemas import DEAD_LETTER, RESULTS, RESULTS_ARROW, SUBSCRIPTIONS
from sardonyx.spark.versions import POINTER, Generation, current, publish_generation

__all__ = ["Population", "build_index", "open_saved", "prepare"]

SAVED_SUFFIX = ".sdx"


@dataclass(frozen=True, slots=True)
class Population:
    """Subscriptions ready for `match`: a generation on disk, and what was refused on the way to it."""

    generation: Generation
    """The saved index."""
    refused: tuple[DeadLetter, ...] = ()
    """The subscriptions that could not be registered; all others are in the index."""

    def refused_rows(self, spark: SparkSession) -> DataFrame:
        """The refused subscriptions as rows of `RESULTS`, `outcome` "dead_letter" and no `document_id`."""
        rows = [
            {
                "outcome": DEAD_LETTER,
                "subscription_id": letter.subscription_id,
                "generation": self.generation.number,
                "kind": letter.kind,
                "message": letter.message,
                "line": letter.line,
                "column": letter.column,
                "offset": letter.offset,
            }
            for letter in self.refused
        ]
        return spark.createDataFrame(pa.Table.from_pylist(rows, schema=RESULTS_ARROW), schema=RESULTS)


def prepare(subscriptions: Any, directory: str | Path | None = None, limits: Limits | None = None) -> Population:
    """Make an index of any accepted kind of subscriptions and save it under `directory`.

    `directory` has to be readable under the same path on every worker; by default it is a temporary one, which serves
    local sessions and goes with the process. A saved index and a published generation are used where they lie. Raises
    `SettingsError`, `SubscriptionFileError`, `IndexFormatError` or `GenerationError`; single subscriptions that can not
    be registered are in `Population.refused`.
    """
    if isinstance(subscriptions, Population):
        return subscriptions
    if isinstance(subscriptions, Generation):
        return Population(subscriptions)
    if isinstance(subscriptions, str | Path):
        path = Path(subscriptions)
        if (path / POINTER).exists() or path.is_dir():
            return Population(current(path))
        if path.suffix == SAVED_SUFFIX:
            return Population(open_saved(path))
    index, refused = build_index(subscriptions, limits)
    generation = publish_generation(index, directory if directory is not None else _temporary_directory())
    return Population(generation, refused)


def build_index(subscriptions: Any, limits: Limits | None = None) -> tuple[_core.Index, tuple[DeadLetter, ...]]:
    """An index in memory of an `Index`, `Broker`, DataFrame, file or `Subscription` objects, and what was refused."""
    if isinstance(subscriptions, _core.Index):
        return subscriptions, ()
    inner = getattr(subscriptions, "index", None)
    if isinstance(inner, _core.Index):
        return inner, ()
    limits = limits or Limits()
    index = _core.Index(limits=limits.for_core(), cost_limit=limits.cost_limit)
    if isinstance(subscriptions, DataFrame) or _is_connect_frame(subscriptions):
        table = _collect(subscriptions)
        return index, tuple(_refusal(row) for row in index.register(table))
    letters: list[DeadLetter] = []
    if isinstance(subscriptions, str | Path):
        subscriptions = _read_file(Path(subscriptions), letters)
    elif not isinstance(subscriptions, Iterable):
        raise SettingsError(
            f"subscriptions is a {type(subscriptions).__name__}; it must be an Index, a Broker, a DataFrame, "
            "Subscription objects, or the path of a subscriptions file, a saved index or a generations directory"
        )
    letters.extend(_refusal(row) for row in index.register(_table(subscriptions)))
    return index, tuple(letters)


def open_saved(path: Path) -> Generation:
    """A saved index as a generation of its own, verified; raises `IndexFormatError`."""
    index = _core.Index.load(str(path))
    return Generation(index.generation, index.content_hash, str(path.resolve()), len(index))


def _is_connect_frame(value: Any) -> bool:
    """Whether it is a DataFrame of Spark Connect, whose class exists only where the `connect` extra is installed."""
    return type(value).__module__.startswith("pyspark.sql.connect.")


def _collect(frame: DataFrame) -> pa.Table:
    """The subscriptions of a DataFrame on the driver, in the columns that the core takes."""
    for name in ("subscription_id", "query"):
        if name not in frame.columns:
            raise SettingsError(f"the subscriptions have no column {name!r}; they have {', '.join(frame.columns)}")
    columns = []
    for field in SUBSCRIPTIONS.fields:
        if field.name not in frame.columns:
            continue
        column = F.col(f"`{field.name}`")
        if isinstance(frame.schema[field.name].dataType, MapType):
            column = F.to_json(column)
        columns.append(column.cast(field.dataType).alias(field.name))
    return frame.select(*columns).toArrow()


def _table(subscriptions: Iterable[Subscription]) -> pa.Table:
    rows = [
        {
            "subscription_id": item.id,
            "query": item.query,
            "namespaces": None if item.namespaces is None else json.dumps(dict(item.namespaces)),
            "ignore_namespaces": item.ignore_namespaces,
            "stream": item.stream,
        }
        for item in subscriptions
    ]
    schema = pa.schema(
        [
            ("subscription_id", pa.string()),
            ("query", pa.string()),
            ("namespaces", pa.string()),
            ("ignore_namespaces", pa.bool_()),
            ("stream", pa.string()),
        ]
    )
    return pa.Table.from_pylist(rows, schema=schema)


def _refusal(row: tuple[int, str, Any]) -> DeadLetter:
    _, subscription_id, fields = row
    error = from_core(fields["kind"], {**fields, "subscription_id": subscription_id})
    return DeadLetter.of(error)


def _read_file(path: Path, letters: list[DeadLetter]) -> list[Subscription]:
    from sardonyx.subscriptions import read_subscriptions

    found = []
    for item in read_subscriptions(path):
        if isinstance(item, DeadLetter):
            letters.append(item)
        else:
            found.append(item)
    return found


def _temporary_directory() -> str:
    path = tempfile.mkdtemp(prefix="sardonyx-index-")
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path
