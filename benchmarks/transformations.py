"""Transformations: the experiments of Diao and Franklin, VLDB 2003, section 6, redrawn with their axes.

All times leave parsing out and are those of one thread. Unless text is named they end with groups: which bindings count
and which nodes belong to them, before the message factory writes XML.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any, Literal

from lxml import etree

from benchmarks.measure import Figure, median_ms, resident_bytes
from benchmarks.peers.saxon_transformations import SaxonTransformations
from benchmarks.plans import Measured, Transformations, build, draw, measure, transformation_table
from sardonyx import _core
from sardonyx.config import StrategyName

__all__ = ["FULL", "REDUCED", "Sizes", "figures", "run"]

_PATHS: tuple[StrategyName, ...] = ("F", "FW", "FWR")
_AXIS = "queries"
_NAME = "transformations"
_BOOK_BARS = {50_000: 3.0}
_BIB_BARS = {40_000: 3.0}
_PLAN_BARS = {100_000: 6.0}
"""Milliseconds a document to reach, by number of queries."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured."""

    documents: int
    bib: tuple[int, ...]
    book: tuple[int, ...]
    plans: tuple[int, ...]
    """Numbers of unique plans of the last curve."""
    varied: int
    """Queries where something else than their number varies."""
    registered: int
    beside: int = 1_000
    """Queries that peers are given."""
    ranges: tuple[int, ...] = (10, 20, 50, 100, 200)
    predicates: tuple[int, ...] = (1, 2, 3, 4)
    returns: tuple[int, ...] = (1, 2, 3, 4)
    rounds: int = 3


REDUCED = Sizes(40, (1_000, 3_000, 10_000), (1_000, 3_000, 10_000), (5_000, 10_000, 20_000), 3_000, 20_000)
FULL = Sizes(
    100,
    (1_000, 5_000, 10_000, 20_000, 40_000),
    (1_000, 5_000, 10_000, 25_000, 50_000),
    (10_000, 25_000, 50_000, 100_000),
    20_000,
    100_000,
)

Times = dict[tuple[str, int], float]
"""Milliseconds a document by strategy and number of queries."""


def _details(index: _core.Index, measured: Measured) -> dict[str, float]:
    stats = index.stats()
    held = {name: float(stats[name]) for name in ("plans", "plan_paths", "plan_streams", "plan_conditions")}
    return {**held, "candidates": measured.candidates, "results": measured.results, "groups": measured.groups}


def _strategies(
    drawn: Transformations, strategies: tuple[StrategyName, ...], sizes: Sizes
) -> dict[StrategyName, tuple[Measured, dict[str, float]]]:
    """Each strategy on the same queries and documents; all have to find the same."""
    found = {}
    for strategy in strategies:
        index = build(drawn.queries, strategy)
        measured = measure(index, drawn.parsed, rounds=sizes.rounds)
        found[strategy] = (measured, _details(index, measured))
    if len({(measured.results, measured.groups) for measured, _ in found.values()}) != 1:
        raise AssertionError(f"the strategies find different results: {found}")
    return found


def _by_number(
    name: str, label: str, counts: tuple[int, ...], bars: dict[int, float], sizes: Sizes
) -> Iterator[Figure]:
    """Figures 7 or 8, and 9: what the sharing of paths, and of the work after it, brings by number of queries."""
    what = label.partition(", ")[2]
    about = f"time by number of queries over {what} documents, by which clauses share their paths: F, FW, FWR"
    shared_about = "one plan after the other (FWR) against shared post-processing, by number of queries"
    times: Times = {}
    drawn = draw(name, counts[-1], sizes.documents)
    for count in counts:
        part = Transformations(drawn.queries[:count], drawn.documents, drawn.parsed)
        for strategy, (measured, details) in _strategies(part, (*_PATHS, "shared"), sizes).items():
            times[strategy, count] = ms = measured.ms
            place: dict[str, Any] = {"at": count, "axis": _AXIS, "details": details}
            if strategy in _PATHS:
                yield Figure(f"{_NAME}, {label}", strategy, ms, "ms/document", about=about, **place)
            if strategy in ("FWR", "shared"):
                bar = bars.get(count) if strategy == "shared" else None
                title = f"{_NAME}, figure 9"
                yield Figure(title, f"{what}, {strategy}", ms, "ms/document", bar, about=shared_about, **place)
    yield from _orderings(what, counts[-1], times)
    yield from _breakdown(what, drawn, sizes)


def _orderings(what: str, count: int, times: Times) -> Iterator[Figure]:
    """Whether the orderings that the paper reports hold here, at the largest number of queries."""
    title = f"{_NAME}, orderings"
    for slow, fast in (("F", "FW"), ("F", "FWR"), ("FWR", "shared")):
        ratio = times[slow, count] / times[fast, count]
        verdict = "holds" if ratio >= 1 else "does not hold"
        about = (
            f"that {slow} is slower than {fast} {verdict} for {count:,} queries over {what} documents "
            f"({times[slow, count]:.3g} and {times[fast, count]:.3g} ms)"
        )
        yield Figure(title, f"{what}, {slow} against {fast}", ratio, "times", 1.0, at_least=True, about=about)


def _breakdown(what: str, drawn: Transformations, sizes: Sizes) -> Iterator[Figure]:
    """Tables 2 to 5: where the time of shared processing goes, and how much is left to do after sharing."""
    count = len(drawn.queries)
    title = f"{_NAME}, tables 2-5, {what}, {count:,} queries"
    index = build(drawn.queries)
    groups = measure(index, drawn.parsed, rounds=sizes.rounds)
    text = measure(index, drawn.parsed, "text", sizes.rounds)
    about = (
        "time by phase, and what is shared: distinct paths, streams (paths below a variable), conditions and plans; "
        "text is what writing XML takes longer than listing groups"
    )
    details = _details(index, groups)
    phases = {
        "path matching": groups.path_ms,
        "selections, joins and groups": groups.ms - groups.path_ms,
        "text": max(0.0, text.ms - groups.ms),
    }
    for phase, ms in phases.items():
        yield Figure(title, phase, ms, "ms/document", about=about, details=details)
    yield Figure(title, "all results as text, against groups", text.ms / groups.ms, "times", 3.0, about=about)
    for name in ("plan_paths", "plan_streams", "plan_conditions", "plans"):
        yield Figure(title, name.replace("plan_", ""), details[name], "in the population", about=about)
    for name in ("candidates", "results", "groups"):
        yield Figure(title, name, details[name], "a document", about=about)
    yield Figure(title, "size of all results", text.text_bytes / 1000, "kB/document", about=about)


def _by_selectivity(sizes: Sizes) -> Iterator[Figure]:
    """Figure 10: shared and separate work after the paths, by how many of the queries have a result."""
    about = (
        f"FWR against shared post-processing for {sizes.varied:,} queries over Bib documents, by the share of queries "
        "with a result in a document, which follows from the range that all values are drawn from"
    )
    for most in sizes.ranges:
        drawn = draw("bib-flwr", sizes.varied, sizes.documents, max_value=most)
        for strategy, (measured, details) in _strategies(drawn, ("FWR", "shared"), sizes).items():
            at = round(measured.results / sizes.varied * 100, 3)
            said: dict[str, Any] = {**details, "range": float(most)}
            yield Figure(
                f"{_NAME}, figure 10", strategy, measured.ms, "ms/document", at=at, axis="% of queries with a result",
                details=said, about=about,
            )  # fmt: skip


def _by_shape(parameter: Literal["predicates", "returns"], values: tuple[int, ...], sizes: Sizes) -> Iterator[Figure]:
    """Figure 11: time by the number of comparisons, or of return paths, of a query."""
    what = {"predicates": "comparisons of a query", "returns": "return paths of a query"}[parameter]
    about = (
        f"FWR against shared post-processing for {sizes.varied:,} queries over the books of Bib documents, by the "
        f"number of {what}"
    )
    for value in values:
        drawn = draw("bib-flwr", sizes.varied, sizes.documents, element="book", **{parameter: value})
        for strategy, (measured, details) in _strategies(drawn, ("FWR", "shared"), sizes).items():
            title = f"{_NAME}, figure 11, {parameter}"
            place: dict[str, Any] = {"at": value, "axis": what, "details": details}
            yield Figure(title, strategy, measured.ms, "ms/document", about=about, **place)


def _scalability(sizes: Sizes) -> Iterator[Figure]:
    """Figure 12: shared processing up to very many plans of which no two are the same."""
    title = f"{_NAME}, figure 12"
    about = "shared processing over Book documents by number of plans, no two of which are the same"
    drawn = draw("book-flwr", sizes.plans[-1], sizes.documents)
    for count in sizes.plans:
        index = build(drawn.queries[:count])
        place: dict[str, Any] = {"at": index.stats()["plans"], "axis": "unique plans", "about": about}
        for form in ("groups", "text"):
            measured = measure(index, drawn.parsed, form, sizes.rounds)
            bar = _PLAN_BARS.get(count) if form == "groups" else None
            details = _details(index, measured)
            yield Figure(title, form, measured.ms, "ms/document", bar, details=details, **place)


def _growth(name: str, count: int, documents: int) -> tuple[float, float, float]:
    """Seconds to register for the first time in a process, growth of it by that, and after transforming too."""
    drawn = draw(name, count, documents)
    rows = transformation_table(drawn.queries)
    before = resident_bytes()
    index = _core.Index()
    began = time.perf_counter()
    index.register(rows)
    seconds = time.perf_counter() - began
    registered = resident_bytes() - before
    measure(index, drawn.parsed, "text", 1)
    return seconds, registered, resident_bytes() - before


def _registration(sizes: Sizes) -> Iterator[Figure]:
    """Registering in bulk, and the growth of a process by it."""
    count = sizes.registered
    for name, label in (("bib-flwr", "Bib"), ("book-flwr", "Book")):
        # In a process of its own: memory that others gave back would hide what is taken.
        with get_context("spawn").Pool(1) as alone:
            first, registered, used = alone.apply(_growth, (name, count, sizes.documents))
        rows = transformation_table(draw(name, count, 1).queries)
        again = median_ms(lambda: _core.Index().register(rows), sizes.rounds) / 1000  # noqa: B023
        title, unit = f"{_NAME}, registering {label}", "bytes/transformation"
        yield Figure(title, "register", count / again, "transformations/s", 50_000, at_least=True)
        yield Figure(title, "register, first time in the process", count / first, "transformations/s")
        yield Figure(title, "growth of the process", registered / count, unit, 1_500)
        yield Figure(title, "growth of the process, documents transformed", used / count, unit)


def _canonical(text: str) -> str:
    return str(etree.canonicalize(text))


def _beside_peers(sizes: Sizes) -> Iterator[Figure]:
    """Saxon one query after the other, and our own evaluator without sharing, on the same queries, to text."""
    title = f"{_NAME}, beside peers, Bib, {sizes.beside:,} queries"
    drawn = draw("bib-flwr", sizes.beside, sizes.documents)
    index = build(drawn.queries)
    sample = drawn.documents[:5]
    ours = measure(index, drawn.parsed, "text", sizes.rounds).ms
    yield Figure(title, "shared", ours, "ms/document")
    few = drawn.parsed[: len(sample)]
    naive = measure(build(drawn.queries, "naive"), few, "text", sizes.rounds).ms
    yield Figure(title, "naive", naive, "ms/document")
    yield Figure(title, "naive against shared", naive / ours, "times")
    for label, as_stylesheets in (("Saxon, compiled stylesheets", True), ("Saxon, XQuery", False)):
        peer = SaxonTransformations(drawn.queries, as_stylesheets)
        trees = [peer.parse(document) for document in sample]
        for document, tree in zip(sample, trees, strict=True):
            own = {int(key) - 1: _canonical(text) for key, text in index.transform(document)}
            theirs = dict(enumerate(map(_canonical, peer.transform(tree))))
            if own != {number: text for number, text in theirs.items() if text != "<result></result>"}:
                raise AssertionError(f"{label} answers otherwise")
        ms = median_ms(lambda: [peer.transform(tree) for tree in trees], sizes.rounds, len(trees))  # noqa: B023
        yield Figure(title, label, ms, "ms/document")
        bar = 100.0 if as_stylesheets else None
        yield Figure(title, f"{label}, against shared", ms / ours, "times", bar, at_least=True)


def figures(sizes: Sizes) -> Iterator[Figure]:
    """All of it, in these sizes."""
    yield from _registration(sizes)
    yield from _by_number("bib-flwr", "figure 7, Bib", sizes.bib, _BIB_BARS, sizes)
    yield from _by_number("book-flwr", "figure 8, Book", sizes.book, _BOOK_BARS, sizes)
    yield from _by_selectivity(sizes)
    yield from _by_shape("predicates", sizes.predicates, sizes)
    yield from _by_shape("returns", sizes.returns, sizes)
    yield from _scalability(sizes)
    yield from _beside_peers(sizes)


def run(full: bool) -> Iterator[Figure]:
    """Figures 7 to 12 and tables 2 to 5, registration, and peers."""
    yield from figures(FULL if full else REDUCED)
