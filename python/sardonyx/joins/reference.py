"""Joins by SQL: the relational formulation of Hong et al. (SIGMOD 2007) on SQLite, for tests and comparisons.

The join state is in tables of bindings (*Rbin*) and values (*Rdoc*), as is the document that has just arrived. Queries
of one template are rows of its table (*RT*), and one conjunctive query finds what all of them join. With view
materialisation bindings and values are joined beforehand, value by value, for the values of the document at hand; such
slices are kept for the documents to come.

It takes queries and witnesses as numbers and has no part in parsing, in late documents, or in expiry.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypedDict

import pyarrow as pa

from sardonyx.joins.slices import Slices, ViewStats
from sardonyx.joins.statements import Sharing, conjunctive_query, fixed, insert_row, template_table
from sardonyx.joins.templates import Canonical, JoinGraph, canonical

__all__ = ["JoinQuery", "JoinReference", "Match"]

_UNBOUNDED_US = 2**62
"""The difference that stands for an unlimited window."""


class JoinQuery(TypedDict):
    """A join of two blocks as the core describes it: the nodes that are compared, or lie where ways to them part."""

    query: int
    """Its number."""
    template: int
    """The template that the core has it in; the reference finds its own."""
    operator: Literal["JOIN", "FOLLOWED BY"]
    """Its operator."""
    window_us: int | None
    """Its window in microseconds; None: unlimited."""
    left: Sequence[tuple[int, int]]
    """The nodes of the left block, root first: definition, and place of the parent or -1."""
    right: Sequence[tuple[int, int]]
    """Those of the right block."""
    equalities: Sequence[tuple[int, int, int, int]]
    """Place in the left block, operand there, place in the right block, operand there."""


class Match(NamedTuple):
    """A query that joins two documents, with the nodes of the roots of its blocks."""

    query: int
    left_document: int
    right_document: int
    left_node: int
    right_node: int


@dataclass(slots=True)
class _Template:
    """What queries of one form have in common."""

    number: int
    graph: JoinGraph
    queries: list[int] = field(default_factory=list)
    least_us: int = _UNBOUNDED_US
    """The least that the right document may be later, over all queries."""
    most_us: int = -_UNBOUNDED_US
    """The most."""


class _Arrived(NamedTuple):
    """The document at hand."""

    number: int
    timestamp_us: int
    identity: int


class JoinReference:
    """The queries, and a join state that grows with every document.

    `sharing` is what the queries share; see `Sharing`. `view_bytes` bounds the slices of the views.

    >>> query = JoinQuery(query=7, template=0, operator="FOLLOWED BY", window_us=None, left=[(0, -1), (1, 0)],
    ...                   right=[(0, -1), (1, 0)], equalities=[(1, 5, 1, 5)])
    >>> places = {"parent": [-1, 1, -1, 1], "node": [1, 2, 1, 3]}
    >>> bindings = pa.table({"document": [0, 0, 1, 1], "definition": [0, 1, 0, 1], **places})
    >>> values = pa.table({"document": [0, 1], "node": [2, 3], "operand": [5, 5], "value": ["x", "x"]})
    >>> reference = JoinReference([query])
    >>> reference.publish([(0, "first"), (1, "second")], bindings, values)
    [Match(query=7, left_document=0, right_document=1, left_node=1, right_node=1)]
    """

    def __init__(
        self, queries: Iterable[JoinQuery], *, sharing: Sharing = "templates", view_bytes: int = 64 * 1024 * 1024
    ) -> None:
        self._sharing: Sharing = sharing
        self._slices = Slices(view_bytes)
        self._database = sqlite3.connect(":memory:", cached_statements=1024)
        self._identities: dict[Hashable, int] = {}
        self._span: tuple[int, int] | None = None
        self._templates: dict[JoinGraph, _Template] = {}
        self._run(*fixed("schema"))
        self._load(queries)
        self._statements = [
            (each, is_right, conjunctive_query(each.graph, each.number, new_is_right=is_right, sharing=sharing))
            for each in self._templates.values()
            for is_right in (True, False)
        ]
        self._database.commit()

    @property
    def template_count(self) -> int:
        """How many templates the queries have."""
        return len(self._templates)

    @property
    def views(self) -> ViewStats:
        """How the cache of slices does."""
        return self._slices.stats

    def _run(self, *statements: str) -> None:
        for statement in statements:
            self._database.execute(statement)

    def _load(self, queries: Iterable[JoinQuery]) -> None:
        """Fill the tables of the templates, and those of definitions and operands."""
        definitions: dict[int, int] = {}
        operands: dict[int, int] = {}
        forms: dict[JoinGraph, Canonical] = {}
        rows: dict[JoinGraph, list[tuple[int, ...]]] = defaultdict(list)
        for query in queries:
            for block in (query["left"], query["right"]):
                for definition, parent in block:
                    above = block[parent][0] if parent >= 0 else -1
                    _learn(definitions, definition, above, "hangs from", query)
            graph = _graph(query)
            form = forms.get(graph)
            if form is None:
                form = forms[graph] = canonical(graph)
            flat: list[int] = []
            for place in form.equalities:
                left, left_operand, right, right_operand = query["equalities"][place]
                _learn(operands, left_operand, query["left"][left][0], "is of", query)
                _learn(operands, right_operand, query["right"][right][0], "is of", query)
                flat += [left_operand, right_operand]
            rows[form.graph].append((query["query"], *flat, *_bounds(query)))
        for number, (graph, own) in enumerate(rows.items()):
            template = self._templates[graph] = _Template(number, graph)
            template.queries = [row[0] for row in own]
            template.least_us, template.most_us = min(row[-2] for row in own), max(row[-1] for row in own)
            self._run(*template_table(number, len(graph.equalities)))
            self._database.executemany(insert_row(number, len(graph.equalities)), own)
        self._database.executemany("INSERT INTO definition VALUES (?, ?)", definitions.items())
        self._database.executemany("INSERT INTO operand VALUES (?, ?)", operands.items())

    def publish(self, documents: Sequence[tuple[int, Hashable]], bindings: pa.Table, values: pa.Table) -> list[Match]:
        """What documents join with each other and with those before, in order; later they are among those.

        `documents`: the time stamp in microseconds and the identity (stream and id) of each. Column `document` of the
        witnesses counts them from 0; in what is found they are counted on from one call to the next. Documents of one
        identity are never joined.
        """
        bound = _by_document(bindings, "definition", "parent", "node")
        valued = _by_document(values, "node", "operand", "value")
        found: list[Match] = []
        try:
            for place, (timestamp_us, identity) in enumerate(documents):
                known = self._identities.setdefault(identity, len(self._identities))
                arrived = _Arrived(self._number(), timestamp_us, known)
                self._take(arrived, bound[place], valued[place])
                found += self._joined(arrived)
                self._keep(arrived)
        except BaseException:
            # Which slices there are is known outside of the database, so they begin anew.
            self._database.rollback()
            self._database.execute("DELETE FROM r_l")
            self._slices.clear()
            raise
        finally:
            self._database.commit()
        return sorted(found)

    def _number(self) -> int:
        """The number of the next document."""
        (number,) = self._database.execute("SELECT ifnull(max(document), -1) + 1 FROM document").fetchone()
        return int(number)

    def _take(self, arrived: _Arrived, bindings: Sequence[tuple[Any, ...]], values: Sequence[tuple[Any, ...]]) -> None:
        """Fill the tables of the document that has arrived, and make the slices for its values."""
        take = self._database.executemany
        names = ("document", "definition", "parent", "node")
        take(fixed("take_binding")[0], [dict(zip(names, (arrived.number, *row), strict=True)) for row in bindings])
        names = ("document", "node", "operand", "value")
        take(fixed("take_value")[0], [dict(zip(names, (arrived.number, *row), strict=True)) for row in values])
        if self._sharing != "views":
            return
        self._run(*fixed("pair_new"))
        for (value,) in self._database.execute("SELECT DISTINCT value FROM w_doc ORDER BY value").fetchall():
            if not self._slices.use(value):
                made = self._database.execute(fixed("make_slice")[0], {"value": value})
                self._slices.grew(value, made.rowcount)

    def _joined(self, arrived: _Arrived) -> Iterator[Match]:
        """What the document joins with those before it."""
        if self._span is None:
            return
        first, last = (arrived.timestamp_us - time for time in self._span)
        asked = {"timestamp_us": arrived.timestamp_us, "identity": arrived.identity}
        for template, new_is_right, statement in self._statements:
            # How much later the right document is, at least and at most.
            later = (last, first) if new_is_right else (-first, -last)
            if later[1] < template.least_us or later[0] > template.most_us:
                continue
            alone: Iterable[dict[str, int]] = [{}]
            if self._sharing == "none":
                alone = ({"query": query} for query in template.queries)
            for restriction in alone:
                for query, document, left, right in self._database.execute(statement, {**asked, **restriction}):
                    pair = (document, arrived.number) if new_is_right else (arrived.number, document)
                    yield Match(query, pair[0], pair[1], left, right)

    def _keep(self, arrived: _Arrived) -> None:
        """Make the document one of those before."""
        self._database.execute("INSERT INTO document VALUES (?, ?, ?)", arrived)
        if self._sharing == "views":
            rows = self._database.execute("SELECT value, count(*) FROM w_l GROUP BY value ORDER BY value").fetchall()
            self._run(*fixed("keep_slices"))
            for value, count in rows:
                self._slices.grew(value, count)
            for value in self._slices.evicted():
                self._database.execute("DELETE FROM r_l WHERE value = ?", (value,))
        self._run(*fixed("keep"))
        oldest, newest = self._span or (arrived.timestamp_us, arrived.timestamp_us)
        self._span = (min(oldest, arrived.timestamp_us), max(newest, arrived.timestamp_us))


def _graph(query: JoinQuery) -> JoinGraph:
    """The join graph of a query; every leaf of it has to be compared."""
    pairs = tuple((left, right) for left, _, right, _ in query["equalities"])
    graph = JoinGraph(
        tuple(parent for _, parent in query["left"]), tuple(parent for _, parent in query["right"]), pairs
    )
    for side, parents in enumerate((graph.left, graph.right)):
        compared = {pair[side] for pair in pairs}
        for node in range(len(parents)):
            if node not in compared and node not in parents:
                raise ValueError(f"query {query['query']} has a node that is not compared and nothing hangs from")
    return graph


def _learn(known: dict[int, int], number: int, other: int, how: str, query: JoinQuery) -> None:
    """Note what a definition hangs from, or an operand is of: it is the same in all queries."""
    if known.setdefault(number, other) != other:
        raise ValueError(f"in query {query['query']} {number} {how} {other}, in another one {known[number]}")


def _bounds(query: JoinQuery) -> tuple[int, int]:
    """The least and the most microseconds that the right document may be later."""
    window = query["window_us"]
    most = _UNBOUNDED_US if window is None else window
    return (1, most) if query["operator"] == "FOLLOWED BY" else (-most, most)


def _by_document(table: pa.Table, *names: str) -> defaultdict[int, list[tuple[Any, ...]]]:
    """The rows of a table of witnesses by document."""
    rows: defaultdict[int, list[tuple[Any, ...]]] = defaultdict(list)
    columns = [table.column(name).to_pylist() for name in names]
    for document, *row in zip(table.column("document").to_pylist(), *columns, strict=True):
        rows[document].append(tuple(row))
    return rows
