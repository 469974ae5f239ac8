"""Bare parsing: megabytes a second of our parser beside others, over documents of several kinds."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.data import alerts, nitf_documents
from benchmarks.measure import Figure, median_ms
from benchmarks.peers.parsers import PARSERS
from benchmarks.population import bare_parse_ms
from sardonyx.workloads import load

__all__ = ["run"]


def run(full: bool) -> Iterator[Figure]:
    """Articles, alerts, protein entries and quotes."""
    count = 5_000 if full else 1_000
    kinds = {
        "articles": nitf_documents(),
        "alerts": alerts(),
        "protein entries": list(load("psd", documents=count, subscriptions=1).documents),
        "quotes": list(load("stock", documents=10 * count, subscriptions=1_000).documents),
    }
    for kind, documents in kinds.items():
        name = f"bare parse, {kind}"
        size = sum(map(len, documents)) / len(documents)
        own = size / bare_parse_ms(documents) / 1000
        yield Figure(name, "Sardonyx", own, "MB/s", details={"bytes_per_document": size})
        for label, parse in PARSERS.items():
            theirs = size / median_ms(lambda: [parse(each) for each in documents], 3, len(documents)) / 1000  # noqa: B023
            yield Figure(name, label, theirs, "MB/s")
            yield Figure(name, f"ours against {label}", own / theirs, "times")
