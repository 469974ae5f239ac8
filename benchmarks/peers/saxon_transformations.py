"""Saxon: the generated FLWR expressions, one after the other on each parsed document.

Its Python package compiles an XQuery again whenever it is run, but keeps compiled stylesheets; so the transformations
are given to it as stylesheets of the same meaning too, which is the faster way.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from xml.sax.saxutils import quoteattr

from saxonche import PySaxonProcessor

__all__ = ["SaxonTransformations"]

_FORM = re.compile(r"<result>\{for \$v in (\S+) where (.+) return <item>(.+)</item>\}</result>")
_STYLESHEET = """<xsl:stylesheet version="3.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
<xsl:output omit-xml-declaration="yes" indent="no"/>
<xsl:template match="/"><result><xsl:for-each select={source}><xsl:variable name="v" select="."/>
<xsl:if test={condition}><item>{content}</item></xsl:if></xsl:for-each></result></xsl:template></xsl:stylesheet>"""


def _stylesheet(query: str) -> str:
    form = _FORM.fullmatch(query)
    assert form is not None, f"not of the generated form: {query}"
    paths = re.findall(r"\{([^}]+)\}", form[3])
    content = "".join(f"<xsl:copy-of select={quoteattr(path)}/>" for path in paths)
    return _STYLESHEET.format(source=quoteattr(form[1]), condition=quoteattr(form[2]), content=content)


class SaxonTransformations:
    """The queries as compiled stylesheets, or with `as_stylesheets=False` as XQuery."""

    def __init__(self, queries: list[str], as_stylesheets: bool = True) -> None:
        """Compiles the stylesheets."""
        self._processor = PySaxonProcessor(license=False)
        self._runs: list[Callable[[Any], str]] = []
        compiler = self._processor.new_xslt30_processor()
        for query in queries:
            if as_stylesheets:
                stylesheet = compiler.compile_stylesheet(stylesheet_text=_stylesheet(query))
                self._runs.append(lambda tree, stylesheet=stylesheet: stylesheet.transform_to_string(xdm_node=tree))
            else:
                self._runs.append(self._xquery(query))

    def _xquery(self, query: str) -> Callable[[Any], str]:
        runner = self._processor.new_xquery_processor()
        runner.set_property("!omit-xml-declaration", "yes")
        runner.set_property("!indent", "no")
        runner.set_query_content(query)

        def run(tree: Any) -> str:
            runner.set_context(xdm_item=tree)
            return str(runner.run_query_to_string())

        return run

    def parse(self, document: bytes) -> Any:
        """A document as `transform` takes it."""
        return self._processor.parse_xml(xml_text=document.decode("utf-8"))

    def transform(self, tree: Any) -> list[str]:
        """The results of all queries, as XML text."""
        return [run(tree).strip() for run in self._runs]
