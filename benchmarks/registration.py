"""Registering in bulk, memory by subscription, and opening a saved index."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from benchmarks.data import nitf_documents, table, two_predicate_queries
from benchmarks.measure import Figure, median_ms, resident_bytes
from sardonyx import Broker
from sardonyx.workloads import load

__all__ = ["run"]


def _register(name: str, rows: pa.Table, documents: list[bytes], rate_bar: float, bytes_bar: float) -> Iterator[Figure]:
    before = resident_bytes()
    broker = Broker()
    began = time.perf_counter()
    report = broker.register_many(rows)
    first = time.perf_counter() - began
    assert not report.rejected, report.rejected[:3]
    broker.match_batch(documents, threads=1)
    grown = (resident_bytes() - before) / rows.num_rows
    again = median_ms(lambda: Broker().register_many(rows), 3) / 1000
    stats = broker.stats()
    kept = (stats["index_bytes"] + stats["cache_bytes"]) / rows.num_rows
    title = f"registration, {name}"
    yield Figure(title, "register", rows.num_rows / again, "subscriptions/s", rate_bar, at_least=True)
    yield Figure(title, "register, first time in the process", rows.num_rows / first, "subscriptions/s")
    yield Figure(title, "index and caches", kept, "bytes/subscription", bytes_bar, details=dict(stats))
    yield Figure(title, "growth of the process", grown, "bytes/subscription")
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder) / "index.sdx"
        broker.save(saved)
        bar = 50.0 if rows.num_rows >= 1_000_000 else None
        yield Figure(title, "open, checked", median_ms(lambda: Broker.load(saved), 5), "ms", bar)
        yield Figure(title, "open, unchecked", median_ms(lambda: Broker.load(saved, verify=False), 5), "ms")


def _one_by_one(queries: list[str]) -> Figure:
    """Each a generation of its own."""
    broker = Broker()
    began = time.perf_counter()
    for number, query in enumerate(queries):
        broker.register(str(number), query)
    rate = len(queries) / (time.perf_counter() - began)
    return Figure("registration, stock", "register one by one", rate, "subscriptions/s")


def run(full: bool) -> Iterator[Figure]:
    """A million subscriptions to quotes, a hundred thousand queries with two predicates; some one by one."""
    workload = load("stock", documents=10_000, subscriptions=1_000_000, notifications=100_000)
    rows = table(list(workload.subscriptions))
    yield from _register("stock", rows, list(workload.documents), 500_000, 150)
    yield _one_by_one(rows.column("query")[:20_000].to_pylist())
    documents = nitf_documents()
    yield from _register("two predicates", table(two_predicate_queries(100_000, documents)), documents, 150_000, 400)
