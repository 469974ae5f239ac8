"""The inputs: NITF documents and queries of the YFilter suite, from the shared test data."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa

from sardonyx.workloads import QueryShape, queries

__all__ = ["alerts", "distinct_paths", "nitf_documents", "table", "two_predicate_queries"]

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


def distinct_paths(count: int) -> list[str]:
    """The first `count` of the 153,928 distinct path queries."""
    name = SHARED / "yfilter-1.0" / "benchmark_simple_paths" / "queries-153928-d.txt.gz"
    with gzip.open(name, "rt", encoding="utf-8") as lines:
        return [line.strip() for line, _ in zip(lines, range(count), strict=False)]


def two_predicate_queries(count: int, documents: list[bytes]) -> list[str]:
    """`count` distinct queries with two value predicates each, drawn from the documents."""
    return list(queries(documents, TWO_PREDICATES, count))


def table(texts: list[str]) -> pa.Table:
    """Subscriptions as `Broker.register_many` takes them, numbered from 1."""
    return pa.table({"id": [str(number) for number in range(1, len(texts) + 1)], "query": texts})
