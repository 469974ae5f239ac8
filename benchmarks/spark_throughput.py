"""Spark from parquet to notifications, against the same rows made in process by one thread."""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.data import alerts, distinct_paths, nitf_documents, table
from benchmarks.measure import Figure, median_ms
from benchmarks.plans import transformation_table
from sardonyx import Broker, open_broker
from sardonyx.workloads import load

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["run"]

_FILES = 8


def run(full: bool) -> Iterator[Figure]:
    """Few notifications a document (alerts, subscriptions of the demonstration), many (NITF paths), and results."""
    from sardonyx.spark import local_session

    megabytes = 400 if full else 110
    spark = local_session(cores=len(os.sched_getaffinity(0)))
    try:
        broker, _refused = open_broker([str(files("sardonyx") / "demo" / "subscriptions.yaml")])
        yield from _compare(spark, f"alerts, {len(broker)} subscriptions", broker, alerts(), megabytes)
        paths = Broker()
        paths.register_many(table(distinct_paths(1_000)))
        yield from _compare(spark, "NITF, 1,000 paths", paths, nitf_documents(), megabytes)
        articles = nitf_documents()
        flwr = load("nitf-flwr", samples=articles[:200], subscriptions=1_000)
        transformations = Broker()
        transformations.register_many(transformation_table(list(flwr.subscriptions)))
        yield from _compare(spark, "NITF, 1,000 transformations", transformations, articles, megabytes)
        quotes = load("stock", documents=10_000, subscriptions=1_000_000, notifications=10_000)
        stock = Broker()
        stock.register_many(quotes.batches())
        stock.compact()
        yield from _compare(spark, "quotes, 1,000,000 subscriptions", stock, list(quotes.documents), 100, 0.6)
        yield from _beside_xpath_boolean(spark, nitf_documents())
    finally:
        spark.stop()


def _compare(
    spark: SparkSession, workload: str, broker: Broker, documents: list[bytes], megabytes: int, bar: float = 0.5
) -> Iterator[Figure]:
    from sardonyx.spark import match
    from sardonyx.spark.worker import IndexReference, MatchTask

    cores = len(os.sched_getaffinity(0))
    size = sum(map(len, documents))
    copies = megabytes * 1_000_000 // size + 1
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder) / "index.sdx"
        reference = IndexReference(str(saved), broker.save(saved), 1)
        batch = pa.record_batch(
            {"document_id": [str(row) for row in range(len(documents))], "payload": pa.array(documents, pa.binary())}
        )
        parts = list(MatchTask(reference)([batch]))
        rows = sum(part.num_rows for part in parts) - 1
        text = sum(pc.sum(pc.binary_length(part.column("result"))).as_py() or 0 for part in parts)
        alone = median_ms(lambda: list(MatchTask(reference)([batch])), 7) / 1000
        data = Path(folder) / "documents"
        data.mkdir()
        for number in range(_FILES):
            part = [document for copy in range(copies) if copy % _FILES == number for document in documents]
            names = [f"{number}-{row}" for row in range(len(part))]
            columns = {"document_id": names, "payload": pa.array(part, pa.binary())}
            pq.write_table(pa.table(columns), data / f"part-{number}.parquet", compression="none")
        frame = spark.read.parquet(str(data))

        def job() -> None:
            match(frame, broker).write.format("noop").mode("overwrite").save()

        job()
        times = []
        for _ in range(3):
            began = time.perf_counter()
            job()
            times.append(time.perf_counter() - began)
    in_process = size / alone / 1e6
    through_spark = size * copies / sorted(times)[1] / 1e6 / cores
    name = f"Spark, {size * copies / 1e6:,.0f} MB: {workload}"
    details = {
        "notifications_per_document": rows / len(documents),
        "result_bytes_per_document": text / len(documents),
        "documents": len(documents) * copies,
    }
    yield Figure(name, "in process, one thread", in_process, "MB/s", details=details)
    yield Figure(name, "through Spark, per core", through_spark, "MB/s", details=details)
    yield Figure(name, "ratio", through_spark / in_process, "times", bar, at_least=True, details=details)


def _beside_xpath_boolean(spark: SparkSession, documents: list[bytes]) -> Iterator[Figure]:
    """Spark's own XPath function, one literal call for each of a few subscriptions, in the same session."""
    from sardonyx.spark import match

    queries = distinct_paths(100)
    broker = Broker()
    broker.register_many(table(queries))
    # Spark's parser would fetch the DTD that a DOCTYPE names; the documents are given without it.
    texts = [re.sub(rb"<!DOCTYPE[^>]*>", b"", document).decode() for document in documents]
    rows = [(str(number), text, text.encode()) for number, text in enumerate(texts)]
    frame = spark.createDataFrame(rows, "document_id string, text string, payload binary").repartition(2).cache()
    frame.count()
    calls = [f"xpath_boolean(text, '{query}') AS q{number}" for number, query in enumerate(queries)]

    def theirs() -> None:
        frame.selectExpr("document_id", *calls).write.format("noop").mode("overwrite").save()

    def ours() -> None:
        match(frame.select("document_id", "payload"), broker).write.format("noop").mode("overwrite").save()

    ours()
    own, other = median_ms(ours, 3) / 1000, median_ms(theirs, 1) / 1000
    name = "Spark, 500 articles, 100 paths"
    yield Figure(name, "Sardonyx", own, "s")
    yield Figure(name, "xpath_boolean", other, "s")
    yield Figure(name, "xpath_boolean against ours", other / own, "times")
