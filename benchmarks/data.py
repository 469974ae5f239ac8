"""The inputs: NITF documents and queries of the YFilter suite, from the shared test data."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from sardonyx.workloads import QueryShape, load, queries

__all__ = [
    "alerts",
    "distinct_paths",
    "nested_queries",
    "nitf_documents",
    "predicate_queries",
    "random_paths",
    "table",
    "two_predicate_queries",
]

TWO_PREDICATES = QueryShape(depth=1000, predicates=2, descendant=0.2, wildcard=0.1)
"""Two equalities on the way to any element: about one query in a hundred matches a document."""

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


def nitf_documents() -> list[bytes]:
    """The 500 NITF documents of the benchmark."""
    files = sorted((SHARED / "yfilter-1.0" / "docs-500").glob("*.xml"))
    if not files:
        raise SystemExit(f"the benchmark documents are not there: {SHARED / 'yfilter-1.0' / 'docs-500'}")
    return [file.read_bytes() for file in files]


def alerts() -> list[bytes]:
    """The VOEvent alerts, several hundred messages of about 4 KB."""
    return [file.read_bytes() for file in sorted((SHARED / "docs" / "voevent").rglob("*.xml"))]


def _paths(name: str, count: int) -> list[str]:
    with gzip.open(SHARED / "yfilter-1.0" / "benchmark_simple_paths" / name, "rt", encoding="utf-8") as lines:
        return [line.strip() for line, _ in zip(lines, range(count), strict=False)]


def distinct_paths(count: int) -> list[str]:
    """The first `count` of the 153,928 distinct path queries."""
    return _paths("queries-153928-d.txt.gz", count)


def random_paths(count: int) -> list[str]:
    """The first `count` of the 500,000 random path queries, of which many are equal."""
    return _paths("queries-500000.txt.gz", count)


def two_predicate_queries(count: int, documents: list[bytes]) -> list[str]:
    """`count` distinct queries with two value predicates each, drawn from the documents."""
    return predicate_queries(count, documents, 2)


def predicate_queries(count: int, documents: list[bytes], predicates: int) -> list[str]:
    """The same with another number of predicates."""
    return list(queries(documents, replace(TWO_PREDICATES, predicates=predicates), count))


def nested_queries(count: int, documents: list[bytes]) -> list[str]:
    """`count` distinct queries with one nested path each."""
    workload = load("nitf", samples=documents, subscriptions=count, kind="nested")
    return list(workload.subscriptions)


def table(texts: list[str]) -> pa.Table:
    """Subscriptions as `Broker.register_many` takes them, numbered from 1."""
    return pa.table({"id": [str(number) for number in range(1, len(texts) + 1)], "query": texts})
