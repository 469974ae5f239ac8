"""Bushy queries over protein entries: the figures 5 to 11 of Gupta and Suciu, SIGMOD 2003, section 7, redrawn.

200,000 atomic predicates in all (a tenth of that by default for the curves), 1.15 or 10.45 of them per query. Time,
states, their size and the hit ratio follow the data processed, with each option of the machine on and off.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from itertools import islice

import pyarrow as pa

from benchmarks.data import table
from benchmarks.measure import Figure, in_turns_ms, median_ms, median_ratio
from benchmarks.population import bare_parse, time_population
from sardonyx import Broker
from sardonyx.config import BrokerSettings, XPushSettings
from sardonyx.workloads import load

__all__ = ["run"]

_ATOMIC = 200_000
_ORDER = (
    ("header", "protein", "organism", "reference", "genetics", "classification", "keywords", "feature", "summary"),
    ("refinfo", "accinfo", "contents", "note"),
    ("authors", "citation", "volume", "year", "pages", "title", "xrefs"),
    ("source", "common", "formal"),
    ("feature-type", "description", "seq-spec", "status"),
)
_VARIANTS = {
    "basic": XPushSettings(top_down=False),
    "top-down": XPushSettings(),
    "top-down, order": XPushSettings(order=_ORDER),
    "top-down, early": XPushSettings(early=True),
    "top-down, early, training": XPushSettings(early=True, training=True),
    "top-down, early, values": XPushSettings(early=True, precompute_values=True),
    "all": XPushSettings(early=True, order=_ORDER, training=True, precompute_values=True),
}


def _xpush(queries: list[str], settings: XPushSettings) -> Broker:
    broker = Broker(BrokerSettings(xpush=settings), matcher="xpush")
    broker.register_many(table(queries))
    return broker


def _throughput(kind: str, queries: list[str], documents: list[bytes]) -> Iterator[Figure]:
    """The default matcher and a warmed XPush machine, beside the bare parse of the same bytes."""
    size = sum(map(len, documents)) / len(documents)
    timing = time_population(queries, documents)
    payloads = pa.array(documents, pa.binary())
    works = [bare_parse(documents), lambda: timing.broker.match_batch(payloads, threads=1)]
    parsing, matching = in_turns_ms(works, 15, len(documents))
    parse, warm = (size / statistics.median(times) / 1000 for times in (parsing, matching))
    broker = _xpush(queries, XPushSettings())
    found = broker.match_batch(payloads, threads=1).matches.num_rows / len(documents)
    if found != timing.matches:
        raise AssertionError(f"xpush finds {found} matches a document, inverted {timing.matches}")
    # Each thread has a machine of its own, so that two of them are slower here than one with all the memory.
    machine = size / median_ms(lambda: broker.match_batch(payloads, threads=1), 3, len(documents)) / 1000
    name = f"xpush, psd, {kind} predicates per query"
    details = {"queries": len(queries), "matches_per_document": timing.matches}
    yield Figure(name, "our bare parse", parse, "MB/s", details=details)
    # The aims are of a machine with two processors.
    together = size / timing.all_ms / 1000
    yield Figure(name, "inverted, warm", warm, "MB/s", details=dict(timing.broker.stats()))
    yield Figure(name, "inverted, warm, all processors", together, "MB/s", 50.0, at_least=True)
    yield Figure(name, "inverted against the bare parse", median_ratio(parsing, matching), "times", 0.5, at_least=True)
    yield Figure(name, "xpush, warm", machine, "MB/s", 20.0, at_least=True, details=dict(broker.stats()))


def _variants(kind: str, queries: list[str], documents: list[bytes], steps: int) -> Iterator[Figure]:
    """Figures 5 to 11: cold from the first document on, by megabytes processed."""
    part = len(documents) // steps
    for variant, settings in _VARIANTS.items():
        broker = _xpush(queries, settings)
        done, seconds = 0, 0.0
        before = (0, 0)
        for start in range(0, part * steps, part):
            chunk = documents[start : start + part]
            payloads = pa.array(chunk, pa.binary())
            began = time.perf_counter()
            broker.match_batch(payloads, threads=1)
            seconds += time.perf_counter() - began
            done += sum(map(len, chunk))
            stats = broker.stats()
            at = done / 1e6
            lookups, hits = stats["xpush_lookups"], stats["xpush_hits"]
            ratio = (hits - before[1]) / max(1, lookups - before[0])
            before = (lookups, hits)
            states = max(1, stats["xpush_states"])
            size = stats["xpush_state_members"] / states
            axis = "MB processed"
            title = f"xpush {kind}"
            yield Figure(f"{title}, time", variant, seconds, "s", at=at, axis=axis)
            yield Figure(f"{title}, states", variant, states, "states", at=at, axis=axis)
            yield Figure(f"{title}, average size of a state", variant, size, "members", at=at, axis=axis)
            bar = 0.9 if done >= 20e6 and variant == "top-down" else None
            yield Figure(f"{title}, hit ratio", variant, ratio, "hits/lookup", bar, at_least=True, at=at, axis=axis)


def run(full: bool) -> Iterator[Figure]:
    """Throughput at 200,000 atomic predicates, then the options; the latter at a tenth unless full."""
    for kind, mean in (("1.15", 1.15), ("10.45", 10.45)):
        count = round(_ATOMIC / mean)
        # 20 MB, behind which the hit ratio has its bar, are about 6,500 entries.
        workload = load("psd", documents=8_000, subscriptions=count, kind=f"bushy-{kind}")
        queries, documents = list(workload.subscriptions), list(workload.documents)
        yield from _throughput(kind, queries, documents[:1_000])
        few = queries if full else list(islice(queries, count // 10))
        yield from _variants(kind, few, documents if full else documents[:7_000], 8 if full else 4)
