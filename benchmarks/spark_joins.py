"""Joins in Spark's micro-batches, against a bare stream-stream join of Spark's over the same witness rows."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.joining import draw
from benchmarks.measure import Figure
from sardonyx import Broker
from sardonyx.config import JoinSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["run"]

BATCH = 10_000
"""Items of a micro-batch."""
WINDOW_BATCHES = 1.5
"""How many micro-batches the window of the joins spans."""
LEAVES = ("link", "title")
"""The elements of an item that joins compare: each with that of the same name, so that a bare join can do it too."""
STORES = {
    "HDFS-backed state": "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
    "RocksDB state": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
}
WARM_UP = 2
"""Batches that are not counted."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What a micro-batch took, and what was kept after it."""

    seconds: float
    pairs: int
    state_rows: int
    state_bytes: int


def run(full: bool) -> Iterator[Figure]:
    """Rows a second of each way, and what it keeps from batch to batch."""
    from sardonyx.spark import local_session

    spark = local_session(cores=len(os.sched_getaffinity(0)), driver_memory="4g")
    try:
        with tempfile.TemporaryDirectory() as folder:
            yield from _compare(spark, Path(folder), 12 if full else 5)
    finally:
        spark.stop()


def _compare(spark: SparkSession, folder: Path, batches: int) -> Iterator[Figure]:
    items = draw("join-feeds", 1, batches * BATCH).documents
    moments = pc.strptime(pc.extract_regex(pa.array([item.decode() for item in items]), _MOMENT).field(0), _ISO, "us")
    moments = moments.cast(pa.timestamp("us", tz="UTC"))
    span_us = (moments[-1].value - moments[0].value) / batches
    window_us = round(WINDOW_BATCHES * span_us)
    for number in range(batches):
        _write(folder, number, items[number * BATCH : (number + 1) * BATCH], moments.slice(number * BATCH, BATCH))
    ways = {"Sardonyx": _ours(spark, folder, window_us)}
    for name, store in STORES.items():
        spark.conf.set("spark.sql.streaming.stateStore.providerClass", store)
        ways[f"stream-stream join, {name}"] = _theirs(spark, folder, window_us)
    pairs = {name: sum(batch.pairs for batch in way) for name, way in ways.items()}
    if len(set(pairs.values())) > 1:
        raise AssertionError(f"the ways do not agree on the number of pairs: {pairs}")
    title = f"Spark, joins of feeds, batches of {BATCH:,} items"
    about = f"Witness rows ({len(LEAVES)} of an item) a second; ours includes parsing, theirs gets rows ready made."
    for name, way in ways.items():
        counted = way[WARM_UP:]
        rate = len(LEAVES) * BATCH * len(counted) / sum(batch.seconds for batch in counted)
        details = {
            "pairs": pairs[name],
            "seconds": [batch.seconds for batch in way],
            "state_rows": [batch.state_rows for batch in way],
            "state_bytes": [batch.state_bytes for batch in way],
        }
        yield Figure(title, name, rate, "rows/s", details=details, about=about)
        for number, batch in enumerate(way):
            state = f"{title}, what is kept"
            axis = "micro-batch"
            yield Figure(state, name, batch.state_bytes / 1e6, "MB", at=number, axis=axis, about="After each batch.")
    kept = [batch.state_bytes for batch in ways["Sardonyx"][WARM_UP:]]
    yield Figure(title, "state after the last batch, against the smallest since the window passed",
                 kept[-1] / min(kept), "times", 1.25)  # fmt: skip


_ISO = "%Y-%m-%dT%H:%M:%SZ"
_MOMENT = "<timestamp>(?P<moment>[^<]*)</timestamp>"


def _write(folder: Path, number: int, items: list[bytes], moments: pa.Array) -> None:
    """A batch of items, and the rows that a bare join gets of it; files are read in the order of their times."""
    ids = pa.array([f"{number}-{row}" for row in range(len(items))])
    texts = pa.array([item.decode() for item in items])
    values = [pc.extract_regex(texts, f"<{leaf}>(?P<value>[^<]*)</{leaf}>").field(0) for leaf in LEAVES]
    tables = {
        "items": {"document_id": ids, "payload": pa.array(items, pa.binary()), "timestamp": moments},
        "rows": {
            "document_id": pa.concat_arrays([ids] * len(LEAVES)),
            "leaf": pa.array([leaf for leaf in LEAVES for _ in items]),
            "value": pa.concat_arrays(values),
            "ts": pa.concat_arrays([moments] * len(LEAVES)),
        },
    }
    for name, columns in tables.items():
        (folder / name).mkdir(exist_ok=True)
        place = folder / name / f"{number:04}.parquet"
        pq.write_table(pa.table(columns), place, compression="none")
        os.utime(place, (1_700_000_000 + number,) * 2)


def _stream(spark: SparkSession, place: Path) -> DataFrame:
    schema = spark.read.parquet(str(place)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(place))


def _run(documents: DataFrame, checkpoint: Path, on_batch: Any) -> Any:
    writer = documents.writeStream.foreachBatch(on_batch).option("checkpointLocation", checkpoint.as_uri())
    query = writer.trigger(availableNow=True).start()
    try:
        query.awaitTermination()
        return query.recentProgress
    finally:
        query.stop()


def _ours(spark: SparkSession, folder: Path, window_us: int) -> list[Batch]:
    """All of it: parsing, witnesses to the driver and to the disk, joins, results to the JVM."""
    from sardonyx.spark import JoinStream, publish_generation

    broker = Broker()
    for leaf in LEAVES:
        query = f"/item->x[{leaf}->a] FOLLOWED BY{{a = b, {window_us} us}} /item->y[{leaf}->b]"
        broker.register(leaf, query, language="xscl")
    publish_generation(broker, folder / "generations")
    stream = JoinStream(folder / "generations", folder / "ours", joins=JoinSettings(results=False))
    made: list[Batch] = []

    def on_batch(batch: DataFrame, batch_id: int) -> None:
        began = time.perf_counter()
        with stream.joined(batch, batch_id) as joined:
            joined.results.write.format("noop").mode("overwrite").save()
            seconds = time.perf_counter() - began
            pairs = joined.results.where("outcome = 'notification'").count()
            made.append(Batch(seconds, pairs, joined.joins.state_units, joined.joins.state_bytes))

    _run(_stream(spark, folder / "items"), folder / "ours", on_batch)
    return made


def _theirs(spark: SparkSession, folder: Path, window_us: int) -> list[Batch]:
    """Equal leaves of two items within the window, and nothing else."""
    from pyspark.sql import functions as sf

    def side(name: str) -> DataFrame:
        return _stream(spark, folder / "rows").withWatermark("ts", "0 seconds").alias(name)

    window = f"interval {window_us // 1_000_000} seconds {window_us % 1_000_000} microseconds"
    condition = f"a.leaf = b.leaf AND a.value = b.value AND b.ts > a.ts AND b.ts <= a.ts + {window}"
    joined = side("a").join(side("b"), sf.expr(condition)).select(
        sf.col("a.document_id").alias("first"), sf.col("b.document_id").alias("second"), "b.leaf", "b.ts"
    )  # fmt: skip
    pairs: dict[int, int] = {}

    def on_batch(batch: DataFrame, batch_id: int) -> None:
        pairs[batch_id] = batch.count()

    with tempfile.TemporaryDirectory() as checkpoint:
        progress = _run(joined, Path(checkpoint), on_batch)
    made = []
    for one in progress:
        if one["numInputRows"] == 0:
            # After the last file Spark runs once more, to let go of what the watermark has passed.
            continue
        (state,) = one["stateOperators"]
        seconds = one["durationMs"]["addBatch"] / 1000
        made.append(Batch(seconds, pairs[one["batchId"]], state["numRowsTotal"], state["memoryUsedBytes"]))
    return made
