"""Joins: the experiments of Hong et al., SIGMOD 2007, section 6, redrawn with their axes; the sizes are ours.

The engine's times include parsing and finding witnesses, those of peers are of joining alone; all are processor time of
one thread. Peers are the paper's SQL on SQLite, and one query after the other: by the same SQL, by a loop in Python, by
an engine for each query.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import combinations, product
from multiprocessing import get_context
from typing import Any

import pyarrow as pa

from benchmarks.joining import Engine, EngineEach, Joining, PairTimes, Peer, draw, register, time_pairs
from benchmarks.measure import Figure, resident_bytes
from benchmarks.peers.join_loop import JoinLoop
from sardonyx.joins.reference import JoinReference
from sardonyx.joins.templates import JoinGraph, canonical, reduced

__all__ = ["FULL", "REDUCED", "Sizes", "figures", "run"]

_NAME = "joins"
_FLAT = "two levels, 6 leaves"
_COMPLEX = "three levels, 16 leaves"
_PIECE = 5_000
"""Items that are published at once."""
_RATE_BAR, _GROWTH_BAR, _RATIO_BAR = 5_000.0, 1.5, 1_000.0
_CHANNELS_ALONE = "{a2 = b2, "
_STAMP = re.compile(rb"<timestamp>([^<]+)Z<")


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured."""

    queries: tuple[int, ...]
    """Numbers of queries over documents of two levels."""
    deep_queries: tuple[int, ...]
    """Numbers of queries over documents of three levels."""
    sql: int
    """Most queries that SQL with templates is given over these documents."""
    varied: int
    """Queries where something else than their number varies."""
    items: int
    """Items of feeds."""
    feed_queries: tuple[int, ...]
    """Numbers of queries over items; growth is told from the last two."""
    sql_items: int
    """Items that SQL is given."""
    sql_feed_queries: tuple[int, ...]
    """Numbers of queries that SQL is given with them."""
    alone: int = 500
    """Queries that are evaluated one after the other, to tell from what all would take."""
    each: int = 50
    """Queries that have an engine of their own."""
    pairs: int = 50
    value_joins: tuple[int, ...] = (1, 2, 3, 4)
    leaves: tuple[int, ...] = (2, 4, 6, 10, 20)
    skews: tuple[float, ...] = (0.0, 0.4, 0.8, 1.2, 1.6)
    views: tuple[int, ...] = (4, 16, 64, 256, 1024)
    """Bounds of the views in kibibytes."""


REDUCED = Sizes(
    queries=(10, 100, 1_000, 10_000, 100_000),
    deep_queries=(10, 100, 1_000, 10_000),
    sql=10_000,
    varied=1_000,
    items=20_000,
    feed_queries=(1_000, 10_000, 100_000),
    sql_items=300,
    sql_feed_queries=(10, 1_000),
)
FULL = Sizes(
    queries=(10, 100, 1_000, 10_000, 100_000),
    deep_queries=(10, 100, 1_000, 10_000, 100_000),
    sql=100_000,
    varied=10_000,
    items=225_000,
    feed_queries=(10, 100, 1_000, 10_000, 100_000),
    sql_items=2_000,
    sql_feed_queries=(10, 100, 1_000, 10_000, 100_000),
    views=(64, 256, 1024, 4096),
)


def _sql(sharing: Any, **options: Any) -> Callable[[Any], JoinReference]:
    return partial(JoinReference, sharing=sharing, **options)


def _tables() -> Iterator[Figure]:
    """Table 3: how many templates all queries of a form have."""
    flat, deep = (-1, 0, 0, 0, 0), (-1, 0, 1, 1, 1, 0, 5, 5, 0, 8)
    for label, parents, most in (("two levels", flat, 4), ("three levels", deep, 3)):
        leaves = [node for node in range(len(parents)) if node not in parents]
        for count in range(1, most + 1):
            chosen = combinations(list(product(leaves, repeat=2)), count)
            graphs = {reduced(JoinGraph(parents, parents, pairs)) for pairs in chosen}
            found = len({canonical(graph).graph for graph in graphs})
            about = "templates of all queries with so many equalities"
            yield Figure(f"{_NAME}, table 3", label, found, "templates", at=count, axis="equalities", about=about)


def _spread(queries: Sequence[str], count: int) -> Sequence[str]:
    """So many queries from everywhere among all, or all of them."""
    return queries if len(queries) <= count else queries[:: len(queries) // count][:count]


def _alone(
    distinct: Sequence[str], document: bytes, count: int, make: Callable[[Sequence[str]], Joining]
) -> tuple[float, float]:
    """Milliseconds a document that all queries take one after the other, told from `count` of them; and for one."""
    some = _spread(distinct, count)
    ms = time_pairs(make(some), document, 4).later_ms
    return ms / len(some) * len(distinct), ms / len(some)


def _rate(title: str, label: str, ms: float, at: float, axis: str, about: str, **details: Any) -> Figure:
    return Figure(title, label, 1000 / ms, "pairs/s", at=at, axis=axis, about=about, details=details)


def _by_number(name: str, label: str, numbers: str, kind: str, counts: Sequence[int], sizes: Sizes) -> Iterator[Figure]:
    """Throughput of pairs by number of queries, with all peers."""
    title = f"{_NAME}, {numbers}, {label}, {kind}"
    about = (
        f"pairs of documents a second by number of queries, where the two agree in all leaves ({label}) and with no "
        "others; first pair: with nothing remembered; one query at a time is told from some of the queries"
    )
    all_drawn = draw(name, counts[-1], 1, kind=kind, document_shape={"values": 1})
    document = all_drawn.documents[0]
    for count in counts:
        queries = all_drawn.queries[:count]
        distinct = list(dict.fromkeys(queries))
        index = register(queries)
        ours = time_pairs(Engine(index), document, sizes.pairs)
        told = partial(_rate, title, at=count, axis="queries", about=about, distinct=len(distinct), found=ours.found)
        yield told("Sardonyx", ours.later_ms)
        yield told("Sardonyx, first pair", ours.first_ms)
        if count <= sizes.sql:
            for sharing, curve in (("templates", "SQL"), ("views", "SQL, views")):
                peer = Peer(distinct, _sql(sharing))
                times = time_pairs(peer, document, 4)
                if times.found != ours.found:
                    raise AssertionError(f"{curve} finds {times.found}, the engine {ours.found}")
                assert isinstance(peer.peer, JoinReference)
                yield told(curve, times.later_ms, templates=peer.peer.template_count)
        alone = {
            "SQL": _alone(distinct, document, sizes.alone, lambda some: Peer(some, _sql("none"))),
            "loop": _alone(distinct, document, sizes.alone, lambda some: Peer(some, JoinLoop)),
            "Sardonyx": _alone(distinct, document, sizes.each, EngineEach),
        }
        for curve, (ms, _) in alone.items():
            yield told(f"{curve}, one query at a time", ms)
        if count == counts[-1]:
            yield from _ratios(title, ours, {curve: ms for curve, (ms, _) in alone.items()}, count, len(distinct))


def _ratios(title: str, ours: PairTimes, alone: dict[str, float], count: int, distinct: int) -> Iterator[Figure]:
    details = {"queries": count, "distinct": distinct, "found": ours.found}
    for curve, ms in alone.items():
        bar = _RATIO_BAR if curve == "SQL" and count >= 100_000 else None
        name = f"{curve}, one query at a time, against ours, {count:,} queries ({distinct:,} distinct)"
        yield Figure(title, name, ms / ours.later_ms, "times", bar, at_least=True, details=details)
        yield Figure(title, f"{name}, first pair", ms / ours.first_ms, "times", details=details)


def _varied(name: str, numbers: str, what: str, values: Sequence[float], sizes: Sizes) -> Iterator[Figure]:
    """Throughput of pairs by the number of equalities, of leaves, or by the skew of their choice."""
    label = _FLAT.partition(",")[0] if name == "join-flat" else _COMPLEX.partition(",")[0]
    axis = {"value_joins": "most equalities of a query", "leaves": "leaves", "zipf": "Zipf's exponent of leaves"}[what]
    title = f"{_NAME}, {numbers}, {label}, {what.replace('_', ' ')}"
    about = f"pairs of documents a second for {sizes.varied:,} queries over documents of {label}, by {axis}"
    for value in values:
        shape = {"values": 1, **({"leaves": value} if what == "leaves" else {})}
        asked = {} if what == "leaves" else {what: value}
        drawn = draw(name, sizes.varied, 1, document_shape=shape, **asked)
        ours = time_pairs(Engine(register(drawn.queries)), drawn.documents[0], sizes.pairs)
        told = partial(_rate, title, at=value, axis=axis, about=about, distinct=len(drawn.distinct), found=ours.found)
        yield told("Sardonyx", ours.later_ms)
        yield told("Sardonyx, first pair", ours.first_ms)
        for sharing, curve in (("templates", "SQL"), ("views", "SQL, views")):
            peer = Peer(drawn.distinct, _sql(sharing))
            times = time_pairs(peer, drawn.documents[0], 4)
            if times.found != ours.found:
                raise AssertionError(f"{curve} finds {times.found}, the engine {ours.found}")
            assert isinstance(peer.peer, JoinReference)
            yield told(curve, times.later_ms, templates=peer.peer.template_count)


def _times(items: Sequence[bytes]) -> pa.Array:
    """The time stamps of items in microseconds."""
    stamps = [_STAMP.search(item) for item in items]
    assert all(stamps), "an item has no time stamp"
    moments = [datetime.fromisoformat(f"{stamp[1].decode()}+00:00") for stamp in stamps if stamp]
    return pa.array([int(moment.timestamp()) * 1_000_000 for moment in moments], pa.int64())


def _run_feeds(queries: list[str], items: list[bytes]) -> dict[str, float]:
    """All items against all queries: seconds, what is found, and memory."""
    index = register(queries)
    pieces = [pa.array(items[at : at + _PIECE], pa.binary()) for at in range(0, len(items), _PIECE)]
    times = [_times(items[at : at + _PIECE]) for at in range(0, len(items), _PIECE)]
    engine = Engine(index)
    before = resident_bytes()
    seconds: list[float] = []
    pairs = found = 0
    for piece, stamps in zip(pieces, times, strict=True):
        counted = engine.count(piece, stamps)
        seconds.append(counted.seconds)
        pairs, found = pairs + counted.pairs, found + counted.found
    return {
        "seconds": sum(seconds),
        "last_rate": len(pieces[-1]) / seconds[-1],
        "pairs": pairs,
        "found": found,
        "state_bytes": float(engine.state.stats()["join_state_bytes"]),
        "grown_bytes": resident_bytes() - before,
    }


def _feeds(sizes: Sizes) -> Iterator[Figure]:
    """Figure 14: items a second by number of queries, unlimited windows."""
    title = f"{_NAME}, figure 14, {sizes.items:,} items of feeds"
    about = (
        "items a second by number of queries with unlimited windows, on one thread, parsing included; results are "
        "counted by distinct query and pair, and no text is made"
    )
    drawn = draw("join-feeds", sizes.feed_queries[-1], sizes.items)

    def apart(queries: list[str]) -> dict[str, float]:
        # In a process of its own: memory that others gave back would hide what is taken.
        with get_context("spawn").Pool(1) as alone:
            return {**alone.apply(_run_feeds, (queries, drawn.documents)), "distinct": len(set(queries))}

    runs: dict[int, dict[str, float]] = {}
    for count in sizes.feed_queries:
        run = runs[count] = apart(drawn.queries[:count])
        bar = _RATE_BAR if count >= 100_000 and sizes.items >= 225_000 else None
        place: dict[str, Any] = {"at": count, "axis": "queries", "about": about, "details": run}
        yield Figure(title, "Sardonyx", sizes.items / run["seconds"], "items/s", bar, at_least=True, **place)
    fewer, most = sizes.feed_queries[-2:]
    # Nearly all results are of equal channels alone: whether it is they that take the time.
    run = apart([query for query in drawn.queries if _CHANNELS_ALONE not in query])
    name = f"{most:,} queries less those for equal channels alone"
    yield Figure(title, name, sizes.items / run["seconds"], "items/s", details=run)
    run = runs[most]
    growth = run["seconds"] / runs[fewer]["seconds"]
    for name, value, unit, bar in (
        (f"time of an item, {most:,} queries against {fewer:,}", growth, "times", _GROWTH_BAR),
        (f"state, {most:,} queries", run["state_bytes"] / sizes.items, "bytes/item", None),
        (f"growth of the process, {most:,} queries", run["grown_bytes"] / sizes.items, "bytes/item", None),
        (f"the last items, {most:,} queries", run["last_rate"], "items/s", None),
        (f"results, {most:,} queries", run["found"] / sizes.items, "an item", None),
    ):
        yield Figure(title, name, value, unit, bar, details=run)


def _feeds_by_sql(sizes: Sizes) -> Iterator[Figure]:
    """Figures 15 and 16: views or not, by number of queries and by the room of their cache, over a few items."""
    drawn = draw("join-feeds", sizes.sql_feed_queries[-1], sizes.sql_items)
    title = f"{_NAME}, figure 15, {sizes.sql_items:,} items of feeds"
    about = "items a second by number of queries, against SQL with and without materialised views"

    def rate(joining: Joining) -> tuple[float, int]:
        heard = [joining.hear(item) for item in drawn.documents]
        return len(heard) / sum(each.seconds for each in heard), sum(each.found for each in heard)

    for count in sizes.sql_feed_queries:
        queries = drawn.queries[:count]
        distinct = list(dict.fromkeys(queries))
        runs: dict[str, Joining] = {
            "Sardonyx": Engine(register(queries)),
            "SQL": Peer(distinct, _sql("templates")),
            "SQL, views": Peer(distinct, _sql("views")),
        }
        counted = {curve: rate(joining) for curve, joining in runs.items()}
        if len({found for _, found in counted.values()}) != 1:
            raise AssertionError(f"results differ: {counted}")
        for curve, (items, found) in counted.items():
            details = {"distinct": len(distinct), "found": found}
            yield Figure(title, curve, items, "items/s", at=count, axis="queries", about=about, details=details)
    about = f"items a second of SQL with views for {len(distinct):,} distinct queries, by the room for slices"
    for kibibytes in sizes.views:
        peer = Peer(distinct, _sql("views", view_bytes=kibibytes * 1024))
        items, _ = rate(peer)
        assert isinstance(peer.peer, JoinReference)
        views = peer.peer.views
        details = {"hits": views.hits, "misses": views.misses, "evictions": views.evictions}
        place: dict[str, Any] = {"at": kibibytes, "axis": "KiB of slices", "details": details}
        yield Figure(f"{_NAME}, figure 16, view cache", "SQL, views", items, "items/s", about=about, **place)
        share = views.hits / (views.hits + views.misses) * 100
        name = f"{_NAME}, figure 16, hits of the view cache"
        yield Figure(name, "SQL, views", share, "% of values", about=about, **place)


def figures(sizes: Sizes) -> Iterator[Figure]:
    """All of it, in these sizes."""
    yield from _tables()
    yield from _by_number("join-flat", _FLAT, "figures 8-10", "joins", sizes.queries, sizes)
    yield from _by_number("join-flat", _FLAT, "figures 8-10", "windows", sizes.queries, sizes)
    yield from _varied("join-flat", "figures 8-10", "value_joins", sizes.value_joins, sizes)
    yield from _varied("join-flat", "figures 8-10", "leaves", sizes.leaves, sizes)
    yield from _varied("join-flat", "figures 8-10", "zipf", sizes.skews, sizes)
    yield from _by_number("join-complex", _COMPLEX, "figures 11-13", "joins", sizes.deep_queries, sizes)
    yield from _varied("join-complex", "figures 11-13", "value_joins", sizes.value_joins[:3], sizes)
    yield from _varied("join-complex", "figures 11-13", "zipf", sizes.skews, sizes)
    yield from _feeds(sizes)
    yield from _feeds_by_sql(sizes)


def run(full: bool) -> Iterator[Figure]:
    """Figures 8 to 16 and table 3."""
    yield from figures(FULL if full else REDUCED)
