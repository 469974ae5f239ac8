"""Matching and registering in process: the NITF workloads of YFilter (Diao et al., TODS 2003, section 6)."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pyarrow as pa

from benchmarks.data import distinct_paths, nitf_documents, table, two_predicate_queries
from benchmarks.measure import Figure, median_ms, resident_bytes
from benchmarks.peers.lxml_loop import LxmlLoop
from sardonyx import Broker

__all__ = ["run"]


def _population(name: str, queries: list[str], documents: list[bytes], bar_ms: float) -> Iterator[Figure]:
    rows = table(queries)
    before = resident_bytes()
    broker = Broker()
    began = time.perf_counter()
    report = broker.register_many(rows)
    first = time.perf_counter() - began
    assert not report.rejected, report.rejected[:3]
    broker.match(documents[0])
    grown = (resident_bytes() - before) / len(queries)
    again = median_ms(lambda: Broker().register_many(rows), 3) / 1000
    payloads = pa.array(documents, pa.binary())
    cold = time.perf_counter()
    matches = broker.match_batch(payloads, threads=1).matches.num_rows
    cold = (time.perf_counter() - cold) * 1000 / len(documents)
    warm = median_ms(lambda: broker.match_batch(payloads, threads=1), 5, len(documents))
    stats = broker.stats()
    size = {"subscriptions": len(queries), "matches_per_document": matches / len(documents)}
    yield Figure(name, "match, one thread, parsing included", warm, "ms/document", bar_ms, details=size)
    yield Figure(name, "first pass, caches empty", cold, "ms/document", details=size)
    yield Figure(name, "register", len(queries) / again, "subscriptions/s", 200_000, at_least=True, details=size)
    yield Figure(name, "register, first time in the process", len(queries) / first, "subscriptions/s", details=size)
    kept = (stats["index_bytes"] + stats["cache_bytes"]) / len(queries)
    yield Figure(name, "index and caches", kept, "bytes/subscription", 400, details=dict(stats))
    yield Figure(name, "growth of the process after registering", grown, "bytes/subscription", details=size)


def _beside_lxml(queries: list[str], documents: list[bytes]) -> Iterator[Figure]:
    broker = Broker()
    broker.register_many(table(queries))
    peer = LxmlLoop(queries)
    sample = documents[:20]
    for document in sample:
        own = {int(name) - 1 for name in broker.match(document)}
        assert own == set(peer.match(document)), "the peer answers otherwise"
    theirs = median_ms(lambda: [peer.match(document) for document in sample], 3, len(sample))
    payloads = pa.array(documents, pa.binary())
    broker.match_batch(payloads, threads=1)
    ours = median_ms(lambda: broker.match_batch(payloads, threads=1), 7, len(documents))
    name = f"beside lxml, {len(queries):,} paths"
    yield Figure(name, "Sardonyx", ours, "ms/document")
    yield Figure(name, "lxml, compiled loop", theirs, "ms/document")
    yield Figure(name, "ratio", theirs / ours, "times", 200, at_least=True)


def run(full: bool) -> Iterator[Figure]:
    """All figures of this file."""
    documents = nitf_documents()
    paths = distinct_paths(153_928 if full else 100_000)
    yield from _population(f"{len(paths):,} distinct paths", paths, documents, 1.0)
    predicates = two_predicate_queries(100_000, documents)
    yield from _population("100,000 two-predicate queries", predicates, documents, 5.0)
    yield from _beside_lxml(paths[:10_000], documents)
