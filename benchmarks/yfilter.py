"""Filtering NITF documents: the workloads of YFilter (Diao et al., TODS 2003, section 6), time by number of queries."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.data import distinct_paths, nested_queries, nitf_documents, predicate_queries, random_paths
from benchmarks.measure import Figure, median_ms
from benchmarks.peers.lxml_loop import LxmlLoop
from benchmarks.peers.parsers import PARSERS
from benchmarks.peers.saxon_loop import SaxonLoop
from benchmarks.population import bare_parse_ms, time_population

__all__ = ["run"]

_AXIS = "queries"
_YFILTER_MS = {"random paths": 7.0, "distinct paths": 19.0, "two predicates": 86.0, "one nested path": 12.0}
"""YFilter 1.0 (Java) on two cores of a present machine, 500 documents, the largest number of queries."""


def _curve(
    kind: str, sizes: list[int], queries: list[str], documents: list[bytes], bars: tuple[float, float | None]
) -> Iterator[Figure]:
    name = f"YFilter, {kind}"
    for size in sizes:
        timing = time_population(queries[:size], documents)
        largest = size == sizes[-1] and size >= 100_000
        details = {"matches_per_document": timing.matches, **timing.broker.stats()}
        warm_bar, cold_bar = bars if largest else (None, None)
        yield Figure(name, "warm", timing.warm_ms, "ms/document", details=details, at=size, axis=_AXIS)
        # The aims are of a machine with two processors.
        yield Figure(name, "warm, all processors", timing.all_ms, "ms/document", warm_bar, at=size, axis=_AXIS)
        yield Figure(name, "cold, all processors", timing.cold_ms, "ms/document", cold_bar, at=size, axis=_AXIS)
        if largest:
            yield Figure(name, "YFilter 1.0, recorded, against ours", _YFILTER_MS[kind] / timing.warm_ms, "times")


def _beside_loops(queries: list[str], documents: list[bytes]) -> Iterator[Figure]:
    name = "YFilter, distinct paths"
    for peer, label, count in ((LxmlLoop, "lxml, compiled loop", 10_000), (SaxonLoop, "Saxon, compiled loop", 200)):
        own_queries, sample = queries[:count], documents[:20]
        timing = time_population(own_queries, documents)
        loop = peer(own_queries)
        for document in sample:
            own = {int(match) - 1 for match in timing.broker.match(document)}
            if own != set(loop.match(document)):
                raise AssertionError(f"{label} answers otherwise")
        theirs = median_ms(lambda: [loop.match(document) for document in sample], 3, len(sample))  # noqa: B023
        yield Figure(name, label, theirs, "ms/document", at=count, axis=_AXIS)
        bar = 200.0 if peer is LxmlLoop else None
        yield Figure(name, f"{label}, against ours at {count:,}", theirs / timing.warm_ms, "times", bar, at_least=True)


def run(full: bool) -> Iterator[Figure]:
    """Curves by number of queries, beside loops over compiled queries and bare parsers."""
    documents = nitf_documents()
    sizes = [1_000, 10_000, 100_000]
    distinct = distinct_paths(153_928)
    yield from _curve("distinct paths", [*sizes, 153_928], distinct, documents, (0.3, 3.0))
    yield Figure("YFilter, distinct paths", "our bare parse", bare_parse_ms(documents), "ms/document")
    for label, parse in PARSERS.items():
        theirs = median_ms(lambda: [parse(document) for document in documents], 3, len(documents))  # noqa: B023
        yield Figure("YFilter, distinct paths", f"{label}, bare parse", theirs, "ms/document")
    yield from _beside_loops(distinct, documents)
    yield from _curve("random paths", [*sizes, 500_000], random_paths(500_000), documents, (0.3, 3.0))
    for predicates in (1, 2, 4) if full else (2,):
        kind = "two predicates" if predicates == 2 else f"{predicates} predicates"
        counts = sizes if predicates == 2 else sizes[:2]
        queries = predicate_queries(counts[-1], documents, predicates)
        yield from _curve(kind, counts, queries, documents, (0.8, None))
    yield from _curve("one nested path", sizes, nested_queries(sizes[-1], documents), documents, (0.3, None))
