"""Quotes against up to a million subscriptions (Tian et al., SIGMOD 2004, section 5.1): time by notifications."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator

import pyarrow as pa

from benchmarks.measure import Figure, in_turns_ms, median_ratio
from benchmarks.peers.mokaccino_percolator import MokaccinoPercolator
from sardonyx import Broker
from sardonyx.workloads import Workload, load

__all__ = ["run"]

_MESSAGES = 10_000
_AXIS = "notifications"
_RECORDED = "Tian et al. report 26 to 504 s at up to 100,000 notifications and 161 to 2,369 s at a million"


def _broker(workload: Workload) -> Broker:
    broker = Broker()
    report = broker.register_many(workload.batches())
    assert not report.rejected, report.rejected[:3]
    # They came in several batches; merging goes on in the background until there are few segments.
    broker.compact()
    return broker


def _beside_mokaccino() -> Iterator[Figure]:
    workload = load("stock", documents=_MESSAGES, subscriptions=10_000, notifications=10_000)
    documents = list(workload.documents)
    broker, peer = _broker(workload), MokaccinoPercolator(list(workload.subscriptions))
    own_ids = [sorted(int(match) - 1 for match in found) for found in broker.match_batch(documents[:500]).ids()]
    fields = [peer.fields(document) for document in documents]
    if own_ids != [sorted(peer.match(each)) for each in fields[:500]]:
        raise AssertionError("mokaccino answers otherwise")
    payloads = pa.array(documents, pa.binary())
    own, peers = in_turns_ms(
        [lambda: broker.match_batch(payloads, threads=1), lambda: [peer.match(each) for each in fields]], 5
    )
    name = "stock beside mokaccino, 10,000 subscriptions, 10,000 notifications"
    yield Figure(name, "Sardonyx, XML parsed", statistics.median(own) / 1000, "s")
    yield Figure(name, "mokaccino, fields given", statistics.median(peers) / 1000, "s")
    yield Figure(name, "mokaccino against ours", median_ratio(peers, own), "times")


def run(full: bool) -> Iterator[Figure]:
    """10,000 messages; the subscriptions and the notifications vary."""
    sizes = (10_000, 100_000, 1_000_000) if full else (10_000, 1_000_000)
    for notifications in (1_000, 10_000, 100_000, 1_000_000):
        matching: list[Callable[[], pa.Table]] = []
        for subscriptions in sizes:
            workload = load("stock", documents=_MESSAGES, subscriptions=subscriptions, notifications=notifications)
            broker, payloads = _broker(workload), pa.array(list(workload.documents), pa.binary())
            matching.append(lambda broker=broker, payloads=payloads: broker.match_batch(payloads, threads=1).matches)  # type: ignore[misc]
        found = [work().num_rows for work in matching]
        times = in_turns_ms(matching, 9)
        for subscriptions, rows, own in zip(sizes, found, times, strict=True):
            bar = (2.0 if notifications == 1_000_000 else 1.0) if subscriptions == 1_000_000 else None
            details = {"found": rows, "recorded": _RECORDED}
            name, total = f"{subscriptions:,} subscriptions", statistics.median(own) / 1000
            yield Figure("stock, 10,000 messages", name, total, "s", bar, details=details, at=notifications, axis=_AXIS)
        name = f"a million subscriptions against 10,000, {notifications:,} notifications"
        yield Figure("stock, 10,000 messages", name, median_ratio(times[-1], times[0]), "times", 1.3)
    yield from _beside_mokaccino()
