"""Saxon: every query compiled once, then evaluated one after the other on each parsed document."""

from __future__ import annotations

from saxonche import PySaxonProcessor

__all__ = ["SaxonLoop"]


class SaxonLoop:
    """XPath 3.1 without an index; the queries are in what it shares with XPath 1.0."""

    def __init__(self, queries: list[str]) -> None:
        """Starts the processor; it compiles a query when it first sees it."""
        self._queries = queries
        self._processor = PySaxonProcessor(license=False)
        self._xpath = self._processor.new_xpath_processor()
        self._xpath.set_caching(True)

    def match(self, document: bytes) -> list[int]:
        """Numbers of the queries that the document satisfies."""
        tree = self._processor.parse_xml(xml_text=document.decode("utf-8"))
        self._xpath.set_context(xdm_item=tree)
        return [number for number, query in enumerate(self._queries) if self._xpath.effective_boolean_value(query)]
