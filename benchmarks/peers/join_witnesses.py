"""Generated joins and documents as the numbers that the peers take: descriptions of queries, bindings and values.

It reads the one form that the generator writes, with lxml and without the core, so that what the peers answer checks
parsing, reduction and matching too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import pyarrow as pa
from lxml import etree

from sardonyx.joins.reference import JoinQuery

__all__ = ["Witnesses"]

_QUERY = re.compile(r"/(?P<root>\w+)(?P<left>\S+) (?P<operator>FOLLOWED BY|JOIN)\{(?P<equalities>.+), (?P<window>INF|\d+ s)\} /\w+(?P<right>\S+)")  # fmt: skip # noqa: E501
_CONDITION = re.compile(r"\[(?:(?P<above>\w+)(?P<several>(?:\[[^]]+\])+)|(?P<one>[^][]+))\]")
_LEAF = re.compile(r"([\w/]+)->(\w+)")
_EQUALITY = re.compile(r"(a\d+) = (b\d+)")

Block = tuple[list[tuple[int, int]], dict[str, int]]
"""The nodes of a block, and the place of each variable."""


class Witnesses:
    """Numbers for the pattern nodes of some queries; the operand of a node has the number of its definition."""

    def __init__(self, queries: Iterable[str]) -> None:
        """Takes the queries apart; `described` are they then, numbered from 0."""
        self._definitions: dict[tuple[int, str], int] = {}
        self._blocks: dict[tuple[str, str], Block] = {}
        self.described = [self._described(number, query) for number, query in enumerate(queries)]

    def _described(self, number: int, query: str) -> JoinQuery:
        form = _QUERY.fullmatch(query)
        assert form is not None, f"not of the generated form: {query}"
        left, left_places = self._block(form["root"], form["left"])
        right, right_places = self._block(form["root"], form["right"])
        equalities = [
            (left_places[a], left[left_places[a]][0], right_places[b], right[right_places[b]][0])
            for a, b in _EQUALITY.findall(form["equalities"])
        ]
        return JoinQuery(
            query=number,
            template=0,
            operator="JOIN" if form["operator"] == "JOIN" else "FOLLOWED BY",
            window_us=None if form["window"] == "INF" else int(form["window"][:-2]) * 1_000_000,
            left=left,
            right=right,
            equalities=equalities,
        )

    def _block(self, root: str, conditions: str) -> Block:
        known = self._blocks.get((root, conditions))
        if known is not None:
            return known
        nodes = [(self._definition(-1, root), -1)]
        places: dict[str, int] = {}

        def add(parent: int, path: str) -> int:
            nodes.append((self._definition(nodes[parent][0], path), parent))
            return len(nodes) - 1

        for condition in _CONDITION.finditer(conditions):
            parent = add(0, condition["above"]) if condition["above"] else 0
            for path, variable in _LEAF.findall(condition["several"] or condition["one"]):
                places[variable] = add(parent, path)
        self._blocks[root, conditions] = (nodes, places)
        return nodes, places

    def _definition(self, parent: int, path: str) -> int:
        return self._definitions.setdefault((parent, path), len(self._definitions))

    def of(self, documents: Sequence[bytes]) -> tuple[pa.Table, pa.Table]:
        """The tables of bindings and of values of documents."""
        bindings: list[tuple[int, int, int, int]] = []
        values: list[tuple[int, int, int, str]] = []
        for document, text in enumerate(documents):
            root = etree.fromstring(text)
            numbers = {element: number for number, element in enumerate(root.iter())}
            found: dict[int, list[etree._Element]] = {}
            # A definition has a larger number than the one that it hangs from.
            for (parent, path), definition in self._definitions.items():
                if parent < 0:
                    found[definition] = [root] if root.tag == path else []
                    bindings += [(document, definition, -1, numbers[element]) for element in found[definition]]
                    continue
                found[definition] = []
                for above in found[parent]:
                    for element in above.iterfind(path):
                        found[definition].append(element)
                        bindings.append((document, definition, numbers[above], numbers[element]))
                        if not len(element):
                            values.append((document, numbers[element], definition, element.text or ""))
        return (
            _table(bindings, ("document", "definition", "parent", "node")),
            _table(values, ("document", "node", "operand", "value")),
        )


def _table(rows: Sequence[tuple[int | str, ...]], names: Sequence[str]) -> pa.Table:
    return pa.table({name: [row[place] for row in rows] for place, name in enumerate(names)})
