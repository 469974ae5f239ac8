"""Latency of matching while another thread registers: does the one disturb the other, and is it the index that does?"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa

from benchmarks.data import nitf_documents, table, two_predicate_queries
from benchmarks.measure import Figure
from sardonyx import Broker

__all__ = ["run"]

_RATIO_BAR = 3.0
"""How much slower the slowest hundredth of the matches may become."""
_TURNS = 4
"""Matching alone and beside a registration in turns, so that both see the same machine."""
_CYCLE = 200_000
"""Ids of the registering thread; after so many it replaces its own, so that the population stops growing."""


def _quantiles_ms(times: list[float]) -> tuple[float, float]:
    """Median and 99th percentile."""
    ordered = sorted(times)
    return ordered[len(ordered) // 2] * 1000, ordered[int(len(ordered) * 0.99)] * 1000


def _match_for(broker: Broker, documents: list[bytes], seconds: float) -> list[float]:
    """Seconds of each match, one document after the other, on this thread."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for document in documents:
            began = time.perf_counter()
            broker.match(document)
            times.append(time.perf_counter() - began)
    return times


def _quote_query(number: int) -> str:
    return f'/stock[symbol="S{number % 5000}" and price>={number % 977} and volume<={number * 7 % 100_003}]'


def _batches(rows: int) -> list[pa.Table]:
    """Subscriptions to quotes, in tables."""
    made = []
    for start in range(0, _CYCLE, rows):
        numbers = range(start, start + rows)
        columns = {"id": [f"new-{number}" for number in numbers], "query": list(map(_quote_query, numbers))}
        made.append(pa.table(columns))
    return made


def _settled() -> None:
    """Wait until nothing is merged any more: the one broker's work must not disturb the other."""

    def is_merging(thread: Path) -> bool:
        try:
            return "sardonyx-merge" in thread.read_text(encoding="ascii")
        except OSError:  # it has ended
            return False

    while any(map(is_merging, Path("/proc/self/task").glob("*/comm"))):
        time.sleep(0.01)


def _one_by_one(broker: Broker) -> Iterator[Callable[[], int]]:
    number = 0
    while True:

        def register(number: int = number) -> int:
            broker.register(f"new-{number % _CYCLE}", _quote_query(number))
            return 1

        yield register
        number += 1


def _in_batches(broker: Broker, batches: list[pa.Table]) -> Iterator[Callable[[], int]]:
    while True:
        for batch in batches:
            yield lambda batch=batch: broker.register_many(batch).registered  # type: ignore[misc]


def _beside(
    broker: Broker, documents: list[bytes], seconds: float, steps: Iterator[Callable[[], int]]
) -> tuple[list[float], list[float], int]:
    """Match on this thread while another one registers: times of matches and of registrations, subscriptions."""
    stop = threading.Event()
    registered = 0
    registrations: list[float] = []

    def register() -> None:
        nonlocal registered
        for step in steps:
            if stop.is_set():
                return
            began = time.perf_counter()
            registered += step()
            registrations.append(time.perf_counter() - began)

    writer = threading.Thread(target=register)
    writer.start()
    times = _match_for(broker, documents, seconds)
    stop.set()
    writer.join()
    return times, registrations, registered


def _measure(workload: str, population: pa.Table, documents: list[bytes], seconds: float) -> Iterator[Figure]:
    for name, rows in (("one by one", 1), ("1,000 at once", 1_000), ("10,000 at once", 10_000), ("100,000", 100_000)):
        quiet, broker = Broker(), Broker()
        for each in (quiet, broker):
            each.register_many(population)
            _match_for(each, documents, seconds / 4)
        steps = _one_by_one(broker) if rows == 1 else _in_batches(broker, _batches(rows))
        alone: list[float] = []
        elsewhere: list[float] = []
        times: list[float] = []
        registrations: list[float] = []
        total = 0
        for _ in range(_TURNS):
            _settled()
            alone += _match_for(quiet, documents, seconds / _TURNS)
            # What two threads in one interpreter cost each other, whatever the other one does to the index.
            elsewhere += _beside(quiet, documents, seconds / _TURNS / 2, steps)[0]
            matched, registered, count = _beside(broker, documents, seconds / _TURNS, steps)
            times += matched
            registrations += registered
            total += count
        idle_half, idle = _quantiles_ms(alone)
        _, other = _quantiles_ms(elsewhere)
        busy_half, busy = _quantiles_ms(times)
        register_half, register = _quantiles_ms(registrations)
        title = f"latency, {workload}, registering {name}"
        details = {
            "matches": len(times),
            "match_max_ms": max(times) * 1000,
            "register_max_ms": max(registrations) * 1000,
            "cores": len(os.sched_getaffinity(0)),
            "segments": broker.stats()["segments"],
        }
        yield Figure(title, "match, idle, median", idle_half, "ms")
        yield Figure(title, "match, idle, 99th percentile", idle, "ms")
        yield Figure(title, "match, registering, median", busy_half, "ms")
        yield Figure(title, "match, registering, 99th percentile", busy, "ms", details=details)
        yield Figure(title, "99th percentile, registering against idle", busy / idle, "times", _RATIO_BAR)
        name = "99th percentile, registering with another broker against idle"
        yield Figure(title, name, other / idle, "times")
        yield Figure(title, "registering meanwhile", total / sum(registrations), "subscriptions/s")
        yield Figure(title, "register, median", register_half, "ms")
        yield Figure(title, "register, 99th percentile", register, "ms")


def run(full: bool) -> Iterator[Figure]:
    """Articles (milliseconds a match) and quotes (microseconds), alone and while another thread registers."""
    seconds = 30.0 if full else 4.0
    articles = nitf_documents()
    yield from _measure("articles", table(two_predicate_queries(100_000, articles)), articles, seconds)
    quotes = [
        f"<stock><symbol>S{n * 7 % 5000}</symbol><price>{n * 3 % 977}</price><volume>{n * 90}</volume></stock>".encode()
        for n in range(500)
    ]
    population = table([_quote_query(number) for number in range(100_000)])
    yield from _measure("quotes", population, quotes, seconds)
