"""`match`: documents in, notifications and dead letters out, the same function for DataFrames and streams."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import BinaryType, StringType, StructType

from sardonyx import _core
from sardonyx.config import Limits
from sardonyx.errors import SettingsError
from sardonyx.spark.population import prepare
from sardonyx.spark.schemas import (
    BATCH,
    DEAD_LETTER,
    DEAD_LETTERS,
    NOTIFICATION,
    NOTIFICATIONS,
    RESULTS,
    STATISTICS,
)
from sardonyx.spark.worker import OUTPUT_BYTES, MatchTask

__all__ = ["dead_letters", "match", "notifications", "selected", "statistics", "transform"]


def match(
    documents: DataFrame,
    subscriptions: Any,
    *,
    document_id: str = "document_id",
    payload: str = "payload",
    stream: str = "stream",
    timestamp: str = "timestamp",
    source_error: str = "source_error",
    limits: Limits | None = None,
    matcher: _core.Matcher = "inverted",
    index_directory: str | Path | None = None,
    output_bytes: int = OUTPUT_BYTES,
) -> DataFrame:
    """Match every document against every subscription; the result has the columns `schemas.RESULTS`.

    Filters and transformations are matched alike; what a transformation made of a document is in the column `result`.
    Joins are left out: see `sardonyx.spark.join`.

    `documents` may be a DataFrame or a streaming DataFrame. The named columns are read from it: `payload` is binary
    (the document's own encoding counts) or string (already decoded); `stream`, `timestamp` and `source_error` are
    used if they exist. `subscriptions` is anything that `sardonyx.spark.prepare` accepts. A task hands its results on
    whenever it has gathered about `output_bytes` of them.

    A stream keeps the generation that it was started with; `run_pipeline` follows new ones. Subscriptions that were
    refused are rows of the result of a batch (no `document_id`); for a stream take them from `prepare`.

    The result is lazy: `notifications` and `dead_letters` of it, each written on its own, match twice. Write the result
    itself, partitioned by `outcome`, or cache it, to match once.
    """
    if output_bytes < 1:
        raise SettingsError(f"output_bytes is {output_bytes}; it must be at least 1")
    limits = limits or Limits()
    population = prepare(subscriptions, index_directory, limits)
    task = MatchTask(population.generation.reference(), limits.for_core(), limits.cost_limit, matcher, output_bytes)
    if population.generation.joins:
        warnings.warn(
            f"{population.generation.joins} subscriptions are joins, which match leaves out; sardonyx.spark.join, "
            "JoinStream and run_pipeline hear them",
            stacklevel=2,
        )
    chosen = selected(documents, document_id, payload, stream, timestamp, source_error)
    results = chosen.mapInArrow(task, RESULTS)
    if not population.refused or population is subscriptions:
        return results
    if documents.isStreaming:
        warnings.warn(
            f"{len(population.refused)} subscriptions were refused and can not be rows of a stream; "
            "call sardonyx.spark.prepare first and look at its `refused`",
            stacklevel=2,
        )
        return results
    return results.unionByName(population.refused_rows(documents.sparkSession))


def selected(
    documents: DataFrame,
    document_id: str = "document_id",
    payload: str = "payload",
    stream: str = "stream",
    timestamp: str = "timestamp",
    source_error: str = "source_error",
) -> DataFrame:
    """The columns that matching reads, under their own names; the last three where they exist."""
    columns = [sf.col(f"`{document_id}`").cast("string").alias("document_id"), _payload(documents, payload)]
    for name, role in ((stream, "stream"), (source_error, "source_error")):
        if name in documents.columns:
            columns.append(sf.col(f"`{name}`").cast("string").alias(role))
    if timestamp in documents.columns:
        columns.append(sf.col(f"`{timestamp}`").cast("timestamp").alias("timestamp"))
    return documents.select(*columns)


def transform(documents: DataFrame, subscriptions: Any, **options: Any) -> DataFrame:
    """What transformations make of documents: columns `schemas.NOTIFICATIONS`, one row per document and result.

    Takes what `match` takes, and is the same pass over the documents, of which it keeps the rows with a `result`; use
    `match` to have notifications of filters and dead letters as well.
    """
    return notifications(match(documents, subscriptions, **options)).where(sf.col("result").isNotNull())


def notifications(results: DataFrame) -> DataFrame:
    """The notifications among the results of `match`: columns `schemas.NOTIFICATIONS`."""
    return _select(results, NOTIFICATION, NOTIFICATIONS)


def dead_letters(results: DataFrame) -> DataFrame:
    """The dead letters among the results of `match`: columns `schemas.DEAD_LETTERS`."""
    return _select(results, DEAD_LETTER, DEAD_LETTERS)


def statistics(results: DataFrame) -> DataFrame:
    """The counts among the results of `match`, one row per task: columns `schemas.STATISTICS`."""
    return _select(results, BATCH, STATISTICS)


def _select(results: DataFrame, outcome: str, schema: StructType) -> DataFrame:
    return results.where(sf.col("outcome") == outcome).select(*[sf.col(f"`{name}`") for name in schema.fieldNames()])


def _payload(documents: DataFrame, name: str) -> Any:
    if name not in documents.columns:
        raise SettingsError(f"the documents have no column {name!r}; they have {', '.join(documents.columns)}")
    kind = documents.schema[name].dataType
    if not isinstance(kind, BinaryType | StringType):
        raise SettingsError(f"column {name!r} is {kind.simpleString()}; a payload is binary or string")
    return sf.col(f"`{name}`").alias("payload")
