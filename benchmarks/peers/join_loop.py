"""Joins one query after the other, in plain Python over the same witnesses: what a hand-written program would do.

Values of old documents are in a dictionary, so a query looks up the values of its first equality and checks the rest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from sardonyx.joins.reference import JoinQuery, Match

__all__ = ["JoinLoop"]


@dataclass(slots=True)
class _Document:
    number: int
    timestamp_us: int
    identity: Hashable
    parents: dict[tuple[int, int], list[int]] = field(default_factory=lambda: defaultdict(list))
    """By definition and node."""
    values: dict[int, list[tuple[int, str]]] = field(default_factory=lambda: defaultdict(list))
    """Nodes and values by operand."""


class JoinLoop:
    """The queries and all documents so far."""

    def __init__(self, queries: Sequence[JoinQuery]) -> None:
        """Nothing is prepared."""
        self._queries = queries
        self._documents: list[_Document] = []
        self._index: dict[tuple[int, str], list[tuple[_Document, int]]] = defaultdict(list)

    def publish(self, documents: Sequence[tuple[int, Hashable]], bindings: pa.Table, values: pa.Table) -> list[Match]:
        """As `JoinReference.publish`."""
        first = len(self._documents)
        new = [_Document(first + place, *document) for place, document in enumerate(documents)]
        for row in bindings.to_pylist():
            new[row["document"]].parents[row["definition"], row["node"]].append(row["parent"])
        for row in values.to_pylist():
            new[row["document"]].values[row["operand"]].append((row["node"], row["value"]))
        return sorted(match for document in new for match in self.arrive(document))

    def arrive(self, document: _Document) -> set[Match]:
        """What one document joins with those before it, which it becomes one of."""
        found = {match for query in self._queries for match in self._joined(query, document)}
        self._documents.append(document)
        for operand, nodes in document.values.items():
            for node, value in nodes:
                self._index[operand, value].append((document, node))
        return found

    def _joined(self, query: JoinQuery, new: _Document) -> Iterator[Match]:
        _, left_operand, _, right_operand = query["equalities"][0]
        for new_is_right in (True, False):
            new_operand, old_operand = (right_operand, left_operand) if new_is_right else (left_operand, right_operand)
            candidates = {
                old.number: old
                for _, value in new.values.get(new_operand, ())
                for old, _ in self._index.get((old_operand, value), ())
            }
            for old in candidates.values():
                left, right = (old, new) if new_is_right else (new, old)
                if old.identity != new.identity and _is_in_time(query, right.timestamp_us - left.timestamp_us):
                    for left_root, right_root in _roots(query, left, right):
                        yield Match(query["query"], left.number, right.number, left_root, right_root)


def _is_in_time(query: JoinQuery, later_us: int) -> bool:
    window = query["window_us"]
    if query["operator"] == "FOLLOWED BY":
        return later_us > 0 and (window is None or later_us <= window)
    return window is None or abs(later_us) <= window


def _roots(query: JoinQuery, left: _Document, right: _Document) -> set[tuple[int, int]]:
    """The roots of all choices of nodes that fulfil the query in two documents."""
    choices: list[tuple[dict[int, int], dict[int, int]]] = [({}, {})]
    for left_place, left_operand, right_place, right_operand in query["equalities"]:
        choices = [
            ({**chosen, left_place: node}, {**other, right_place: partner})
            for chosen, other in choices
            for node, value in left.values.get(left_operand, ())
            if chosen.get(left_place, node) == node
            for partner, same in right.values.get(right_operand, ())
            if same == value and other.get(right_place, partner) == partner
        ]
    return {
        (left_root, right_root)
        for chosen, other in choices
        for left_root in _embedded(query["left"], chosen, left)
        for right_root in _embedded(query["right"], other, right)
    }


def _embedded(block: Sequence[tuple[int, int]], chosen: dict[int, int], document: _Document) -> set[int]:
    """The nodes of the root from which the chosen nodes hang as the block says."""
    options: list[set[int] | None] = [{chosen[place]} if place in chosen else None for place in range(len(block))]
    for place in range(len(block) - 1, -1, -1):
        definition, above = block[place]
        reached = {parent for node in options[place] or () for parent in document.parents.get((definition, node), ())}
        if above < 0:
            return {node for node in options[place] or () if document.parents.get((definition, node))}
        held = options[above]
        options[above] = reached if held is None else held & reached
    return set()
