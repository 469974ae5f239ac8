"""Spark from parquet to notifications, against the same work in process."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.data import distinct_paths, nitf_documents, table
from benchmarks.measure import Figure, median_ms
from sardonyx import Broker

__all__ = ["run"]

_FILES = 8


def run(full: bool) -> Iterator[Figure]:
    """Megabytes a second and core, in process and through Spark."""
    from sardonyx.spark import local_session, match

    cores = len(os.sched_getaffinity(0))
    documents = nitf_documents()
    size = sum(map(len, documents))
    copies = (400_000_000 if full else 110_000_000) // size + 1
    broker = Broker()
    broker.register_many(table(distinct_paths(1_000)))
    batch = pa.array(documents, pa.binary())
    broker.match_batch(batch, threads=1)
    alone = median_ms(lambda: broker.match_batch(batch, threads=1), 5) / 1000
    in_process = size / alone / 1e6
    spark = local_session(cores=cores)
    try:
        with tempfile.TemporaryDirectory() as folder:
            for number in range(_FILES):
                part = [document for copy in range(copies) if copy % _FILES == number for document in documents]
                names = [f"{number}-{row}" for row in range(len(part))]
                columns = {"document_id": names, "payload": pa.array(part, pa.binary())}
                pq.write_table(pa.table(columns), Path(folder) / f"part-{number}.parquet", compression="none")
            frame = spark.read.parquet(folder)

            def job() -> None:
                match(frame, broker).write.format("noop").mode("overwrite").save()

            job()
            times = []
            for _ in range(3):
                began = time.perf_counter()
                job()
                times.append(time.perf_counter() - began)
    finally:
        spark.stop()
    seconds = sorted(times)[1]
    through_spark = size * copies / seconds / 1e6 / cores
    name = f"Spark, {size * copies / 1e6:,.0f} MB, 1,000 paths"
    yield Figure(name, "in process, one thread", in_process, "MB/s")
    yield Figure(name, "through Spark, per core", through_spark, "MB/s")
    yield Figure(name, "ratio", through_spark / in_process, "times", 0.5, at_least=True)
