"""Joins on Spark: `join` for DataFrames, `JoinStream` for streams.

Documents are taken apart in the workers, in the pass that matches filters and transformations; what they have to join
with comes to the driver and is joined there, by the same core that a `Broker` uses. A DataFrame is heard in the order
of its timestamps, so nothing is late and the state holds one window; a micro-batch is heard as a whole.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from sardonyx import _core
from sardonyx.config import JoinSettings, Limits
from sardonyx.spark.join_results import rows_of_joins
from sardonyx.spark.join_state import DurableJoins, JoinEngine, witness_table
from sardonyx.spark.join_task import JoinTask
from sardonyx.spark.matching import selected
from sardonyx.spark.population import prepare, temporary_directory
from sardonyx.spark.progress import JoinProgress
from sardonyx.spark.schemas import JOINING, OUTCOMES, RESULTS, RESULTS_ARROW, WITNESSES
from sardonyx.spark.versions import Generation, pin
from sardonyx.spark.worker import OUTPUT_BYTES, MatchTask

__all__ = ["JoinStream", "JoinedBatch", "join"]

CHUNK_DOCUMENTS = 4096
"""Documents of a DataFrame that joins hear at once; what they have to join with is all that the driver holds of it."""


def join(
    documents: DataFrame,
    subscriptions: Any,
    *,
    joins: JoinSettings | None = None,
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
    """Match and join all documents of a DataFrame; the result has the columns `schemas.RESULTS`.

    Takes what `match` takes, and gives what it gives with the notifications of joins among it: those with
    `document_ids`. Results of joins that are documents of streams are matched too. Documents are heard in the order of
    their timestamps, whatever their order in the DataFrame: nothing is late, and `joins.lateness_us` plays no part.
    Those without a timestamp, whose stream declares none, have arrived now.

    It runs at once, and leaves Parquet files in a folder of `index_directory` that the result reads; with the default
    these go with the process. The driver needs memory for the state of joins, not for the documents.
    """
    limits, settings = limits or Limits(), joins or JoinSettings()
    root = Path(temporary_directory() if index_directory is None else index_directory).absolute()
    root.mkdir(parents=True, exist_ok=True)
    population = prepare(subscriptions, root, limits)
    plan = _Plan(population.generation, settings, limits, matcher, output_bytes)
    engine = JoinEngine(population.generation, replace(settings, lateness_us=0), limits)
    spark = documents.sparkSession
    scratch = Path(temporary_directory(root))
    chosen = selected(documents, document_id, payload, stream, timestamp, source_error)
    apart = chosen.mapInArrow(plan.task(), JOINING)
    apart.write.partitionBy("outcome").parquet((scratch / "apart").as_uri())
    parts = spark.read.schema(JOINING).parquet((scratch / "apart").as_uri())
    order = ("timestamp_us", "stream", "document_id")
    witnesses = parts.where(sf.col("outcome") == WITNESSES).select(*order, "witnesses").orderBy(*order)
    witnesses.write.parquet((scratch / "sorted").as_uri())
    (scratch / "joined").mkdir()
    with pq.ParquetWriter(scratch / "joined" / "results.parquet", RESULTS_ARROW) as file:
        for chunk in _chunks(scratch / "sorted"):
            for rows in rows_of_joins(engine.hear(chunk), chunk, plan.match_task()):
                file.write_batch(rows)
    results = parts.where(sf.col("outcome").isin(*OUTCOMES)).select(*RESULTS.fieldNames())
    results = results.unionByName(spark.read.schema(RESULTS).parquet((scratch / "joined").as_uri()))
    if not population.refused or population is subscriptions:
        return results
    return results.unionByName(population.refused_rows(spark))


def _chunks(folder: Path) -> Iterator[pa.Table]:
    """The witnesses that Spark sorted: its files are ranges, in the order of their names."""
    for place in sorted(folder.glob("part-*.parquet")):
        for rows in pq.ParquetFile(place).iter_batches(CHUNK_DOCUMENTS):
            if rows.num_rows:
                yield witness_table(pa.Table.from_batches([rows]))


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is the same for all documents of a batch."""

    generation: Generation
    joins: JoinSettings
    limits: Limits
    matcher: _core.Matcher
    output_bytes: int

    def match_task(self) -> MatchTask:
        """For documents that joins make."""
        limits = self.limits
        return MatchTask(
            self.generation.reference(), limits.for_core(), limits.cost_limit, self.matcher, self.output_bytes
        )

    def task(self) -> JoinTask:
        """For documents that come; those without any timestamp have arrived now."""
        state = {"cost_limit": self.limits.cost_limit, **self.joins.for_core()}
        return JoinTask(self.match_task(), state, time.time_ns() // 1000)


@dataclass(frozen=True, slots=True)
class JoinedBatch:
    """A micro-batch that has been matched and joined."""

    results: DataFrame
    """As of `match`, with what joins add; columns `schemas.RESULTS`."""
    generation: Generation
    """The generation that all of it comes from."""
    joins: JoinProgress
    """The watermark, and what joins keep after the batch."""


class JoinStream:
    """Matches and joins the micro-batches of one stream, for a `foreachBatch` of your own.

        stream = JoinStream("generations", "checkpoint", joins=JoinSettings(lateness_us=60_000_000))

        def on_batch(batch, batch_id):
            with stream.joined(batch, batch_id) as joined:
                joined.results.write.mode("overwrite").parquet(f"results/batch={batch_id}")

        documents.writeStream.foreachBatch(on_batch).option("checkpointLocation", "checkpoint").start()

    `run_pipeline` does this, with sinks and subscriptions that are followed.
    """

    def __init__(
        self,
        directory: str | Path,
        checkpoint: str | Path,
        *,
        joins: JoinSettings | None = None,
        limits: Limits | None = None,
        matcher: _core.Matcher = "inverted",
        output_bytes: int = OUTPUT_BYTES,
        snapshot_batches: int = 10,
    ) -> None:
        """`directory`: of published generations; a batch is pinned to the current one. `checkpoint`: the stream's.

        What joins keep is written below the checkpoint: what documents of a batch have to join with before the batch
        is answered, and the whole state about every `snapshot_batches` batches.
        """
        self._directory = directory
        self._checkpoint = checkpoint
        self._settings = joins or JoinSettings()
        self._limits = limits or Limits()
        self._matcher: _core.Matcher = matcher
        self._output_bytes = output_bytes
        # A mistake in the settings is told here, and not by a worker.
        _core.JoinState(cost_limit=self._limits.cost_limit, **self._settings.for_core())
        self._durable = DurableJoins(directory, checkpoint, self._settings, self._limits, snapshot_batches)

    @property
    def started(self) -> bool:
        """Whether the stream has had joins yet; from then on they have to hear every batch."""
        return self._durable.started

    @property
    def oldest_batch(self) -> int | None:
        """The first batch whose pin is still needed; None while there are no joins."""
        return self._durable.oldest_batch

    @contextlib.contextmanager
    def joined(self, batch: DataFrame, batch_id: int) -> Iterator[JoinedBatch]:
        """Match and join a batch with columns `schemas.DOCUMENTS`; `stream` and later ones may be missing.

        A batch that comes again gives the same results. They have to be written, under the id of the batch and in place
        of what was there, before the context is left.
        """
        generation = pin(self._directory, self._checkpoint, batch_id)
        plan = _Plan(generation, self._settings, self._limits, self._matcher, self._output_bytes)
        spark = batch.sparkSession
        apart = selected(batch).mapInArrow(plan.task(), JOINING).persist()
        try:
            rows = apart.where(sf.col("outcome") == WITNESSES)
            collect = rows.select("document_id", "stream", "timestamp_us", "witnesses").toArrow
            engine, witnesses, said = self._durable.hear(batch_id, generation, collect)
            added = pa.Table.from_batches(rows_of_joins(said, witnesses, plan.match_task()), RESULTS_ARROW)
            results = apart.where(sf.col("outcome") != WITNESSES).select(*RESULTS.fieldNames())
            results = results.unionByName(spark.createDataFrame(added, RESULTS))
            yield JoinedBatch(results, generation, engine.progress)
        finally:
            apart.unpersist()
