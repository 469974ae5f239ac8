"""lxml: every query compiled once, then evaluated one after the other on each parsed document."""

from __future__ import annotations

from lxml import etree

__all__ = ["LxmlLoop"]


class LxmlLoop:
    """The obvious way without an index."""

    def __init__(self, queries: list[str]) -> None:
        """Compiles the queries."""
        self._queries = [etree.XPath(query) for query in queries]

    def match(self, document: bytes) -> list[int]:
        """Numbers of the queries that the document satisfies."""
        tree = etree.ElementTree(etree.fromstring(document))
        return [number for number, query in enumerate(self._queries) if query(tree)]
