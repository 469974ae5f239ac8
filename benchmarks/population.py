"""One population over some documents: cold, warm, and how much it is."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from benchmarks.data import table
from benchmarks.measure import median_ms
from sardonyx import Broker

__all__ = ["Timing", "bare_parse", "bare_parse_ms", "time_population"]


@dataclass(frozen=True, slots=True)
class Timing:
    """What was measured of one population, parsing included."""

    cold_ms: float
    """Milliseconds a document in the first pass, with empty caches and a thread for each processor."""
    warm_ms: float
    """The same in later passes with one thread: the median."""
    all_ms: float
    """The same with a thread for each processor, which is what `match_batch` does unless it is told otherwise."""
    matches: float
    """Subscriptions that a document satisfies on average."""
    broker: Broker


def time_population(queries: list[str], documents: list[bytes], rounds: int = 5) -> Timing:
    """Register the queries and match the documents, again and again."""
    broker = Broker()
    report = broker.register_many(table(queries))
    assert not report.rejected, report.rejected[:3]
    payloads = pa.array(documents, pa.binary())
    began = time.perf_counter()
    matches = broker.match_batch(payloads).matches.num_rows
    cold = (time.perf_counter() - began) * 1000 / len(documents)
    warm = median_ms(lambda: broker.match_batch(payloads, threads=1), rounds, len(documents))
    together = median_ms(lambda: broker.match_batch(payloads), rounds, len(documents))
    return Timing(cold, warm, together, matches / len(documents), broker)


def bare_parse(documents: list[bytes]) -> Callable[[], object]:
    """The work of our parser alone: matching against nobody."""
    broker = Broker()
    payloads = pa.array(documents, pa.binary())
    return lambda: broker.match_batch(payloads, threads=1)


def bare_parse_ms(documents: list[bytes], rounds: int = 5) -> float:
    """Milliseconds a document of our parser alone."""
    return median_ms(bare_parse(documents), rounds, len(documents))
