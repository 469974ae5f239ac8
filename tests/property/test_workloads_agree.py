"""At the size of the benchmarks: all matchers give the same answers, and those of `naive` on a million pairs."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from itertools import islice

import pyarrow as pa
import pytest

from sardonyx import Broker, workloads
from tests.shared_data import DATA, needs_data

pytestmark = needs_data

YFILTER = DATA / "yfilter-1.0"
SETS = ["distinct paths", "random paths", "predicates", "nested", "stock", "psd"]


def articles(count: int) -> list[bytes]:
    paths = sorted((YFILTER / "docs-500").glob("*.xml"))
    assert len(paths) == 500
    return [path.read_bytes() for path in paths[:: 500 // count]]


def recorded_paths(name: str, count: int) -> list[str]:
    with gzip.open(YFILTER / "benchmark_simple_paths" / name, "rt", encoding="utf-8") as lines:
        return [line.strip() for line in islice(lines, count)]


def workload(name: str) -> tuple[list[bytes], list[str]]:
    if name == "distinct paths":
        return articles(50), recorded_paths("queries-153928-d.txt.gz", 40_000)
    if name == "random paths":
        return articles(50), recorded_paths("queries-500000.txt.gz", 40_000)
    if name == "stock":
        made = workloads.load("stock", documents=100, subscriptions=40_000, notifications=4_000)
    elif name == "psd":
        made = workloads.load("psd", documents=50, subscriptions=20_000, kind="bushy-1.15")
    else:
        made = workloads.load("nitf", samples=articles(50), subscriptions=40_000, kind=name)
    return list(made.documents), list(made.subscriptions)


def pairs(broker: Broker, documents: list[bytes]) -> Iterator[tuple[int, str]]:
    for number, found in enumerate(broker.match_batch(pa.array(documents, pa.binary())).ids()):
        for name in found:
            yield number, name


def population(queries: list[str], matcher: str, every: int = 1) -> Broker:
    broker = Broker(matcher=matcher)
    numbers = range(0, len(queries), every)
    table = pa.table({"id": [str(number) for number in numbers], "query": [queries[number] for number in numbers]})
    assert not broker.register_many(table).rejected
    return broker


@pytest.mark.slow
@pytest.mark.parametrize("name", SETS)
def test_matchers_agree_on_whole_workloads(name: str) -> None:
    documents, queries = workload(name)
    found = set(pairs(population(queries, "inverted"), documents))
    assert found
    assert set(pairs(population(queries, "xpush"), documents)) == found
    # Every tenth subscription by the exact evaluator: with all sets together more than a million pairs.
    every = 10
    exact = set(pairs(population(queries, "naive", every), documents))
    assert exact == {(document, query) for document, query in found if int(query) % every == 0}
