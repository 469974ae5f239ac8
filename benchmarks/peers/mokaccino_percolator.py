"""mokaccino: a percolator over flat documents; it gets the fields, not XML."""

from __future__ import annotations

import re

from lxml import etree
from mokaccino import Document, Percolator, Query

__all__ = ["MokaccinoPercolator"]

_CONDITION = re.compile(r'(\w+)(>=|<=|=)"?(\w+)"?')


class MokaccinoPercolator:
    """Subscriptions of the set `stock` as percolator queries."""

    def __init__(self, subscriptions: list[str]) -> None:
        """Translates the subscriptions."""
        self._percolator = Percolator()
        for number, text in enumerate(subscriptions):
            self._percolator.add_query_id(Query.from_and(list(map(_condition, _CONDITION.findall(text)))), number)

    @staticmethod
    def fields(document: bytes) -> Document:
        """A message as the percolator wants it."""
        flat = Document()
        for element in etree.fromstring(document):
            flat.add_value(element.tag, element.text or "")
        return flat

    def match(self, document: Document) -> list[int]:
        """Numbers of the subscriptions that the message satisfies."""
        return [int(number) for number in self._percolator.percolate_list(document)]


def _condition(parts: tuple[str, str, str]) -> Query:
    name, operator, value = parts
    if operator == ">=":
        return Query.from_kge(name, int(value))
    if operator == "<=":
        return Query.from_kle(name, int(value))
    return Query.from_kv(name, value)
