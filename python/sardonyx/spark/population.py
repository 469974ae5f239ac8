"""From whatever holds subscriptions to one saved index that all workers can map.

Accepted are a `Broker`, an index of the core, a DataFrame of subscriptions, everything that `Broker.register_many`
takes, a subscriptions file or folder, a saved index, and a directory of published generations. What is not saved yet
is published into a directory of its own.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from sardonyx import _core
from sardonyx import subscriptions as subscription_files
from sardonyx.broker import Broker
from sardonyx.config import BrokerSettings, Limits
from sardonyx.model import DeadLetter
from sardonyx.spark.schemas import DEAD_LETTER, RESULTS, RESULTS_ARROW
from sardonyx.spark.versions import Generation, current, is_published, publish_generation

__all__ = ["Population", "build_index", "prepare", "refused_table", "temporary_directory"]


@dataclass(frozen=True, slots=True)
class Population:
    """Subscriptions ready for `match`: a generation on disk, and what was refused on the way to it."""

    generation: Generation
    """The saved index."""
    refused: tuple[DeadLetter, ...] = ()
    """The subscriptions that could not be registered; all others are in the index."""

    def refused_rows(self, spark: SparkSession) -> DataFrame:
        """The refused subscriptions as rows of `RESULTS`: `outcome` "dead_letter" and no `document_id`."""
        return spark.createDataFrame(refused_table(self.refused, self.generation.number), schema=RESULTS)


def refused_table(letters: Sequence[DeadLetter], generation: int) -> pa.Table:
    """Refused subscriptions as an Arrow table of `RESULTS`."""
    rows = [
        {
            "outcome": DEAD_LETTER,
            "subscription_id": letter.subscription_id,
            "generation": generation,
            "kind": letter.kind,
            "message": letter.message if letter.source is None else f"{letter.source}: {letter.message}",
            "line": letter.line,
            "column": letter.column,
            "offset": letter.offset,
        }
        for letter in letters
    ]
    return pa.Table.from_pylist(rows, schema=RESULTS_ARROW)


def prepare(subscriptions: Any, directory: str | Path | None = None, limits: Limits | None = None) -> Population:
    """Make an index of any accepted kind of subscriptions and save it under `directory`.

    `directory` has to be readable under the same path on every worker; by default it is a temporary one, which serves
    local sessions and goes with the process. A saved index and a published generation are used where they lie. Raises
    `SubscriptionFileError`, `IndexFormatError` or `GenerationError`; single subscriptions that can not be registered
    are in `Population.refused`.
    """
    if isinstance(subscriptions, Population):
        return subscriptions
    if isinstance(subscriptions, Generation):
        return Population(subscriptions)
    if isinstance(subscriptions, str | Path):
        path = Path(subscriptions)
        if is_published(path):
            return Population(current(path))
        if subscription_files.is_index(path):
            return Population(_open_saved(path))
    index, refused = build_index(subscriptions, limits)
    generation = publish_generation(index, directory if directory is not None else temporary_directory())
    return Population(generation, refused)


def build_index(
    subscriptions: Any, limits: Limits | None = None
) -> tuple[Broker | _core.Index, tuple[DeadLetter, ...]]:
    """An index in memory of anything that is not saved yet, and the subscriptions that were refused."""
    if isinstance(subscriptions, _core.Index | Broker):
        return subscriptions, ()
    settings = BrokerSettings(limits=limits or Limits())
    if isinstance(subscriptions, str | Path):
        broker, report = subscription_files.open_broker(subscriptions, settings)
        return broker, report.rejected
    if isinstance(subscriptions, DataFrame) or _is_connect_frame(subscriptions):
        subscriptions = subscriptions.toArrow()
    broker = Broker(settings)
    return broker, broker.register_many(subscriptions).rejected


def _open_saved(path: Path) -> Generation:
    index = _core.Index.load(str(path))
    assert index.content_hash is not None, "a loaded index knows its hash"
    return Generation(
        index.generation, index.content_hash, str(path.resolve()), len(index), joins=index.stats()["joins"]
    )


def _is_connect_frame(value: Any) -> bool:
    """Whether it is a DataFrame of Spark Connect, whose class exists only where the `connect` extra is installed."""
    return type(value).__module__.startswith("pyspark.sql.connect.")


def temporary_directory(root: Path | None = None) -> str:
    """A folder that goes with this process."""
    path = tempfile.mkdtemp(prefix="sardonyx-", dir=root)
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path
