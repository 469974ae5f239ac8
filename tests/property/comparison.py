"""Compares the exact evaluator with libxml2 on one document and many expressions."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from lxml import etree

from sardonyx import _core, errors
from tests import engine, libxml2
from tests.generators.documents import Document
from tests.generators.expressions import NAMESPACES
from tests.generators.reduce import reduce_pair
from tests.generators.syntax import Expression

REFUSALS = (errors.NotWellFormedError, errors.EncodingError, errors.LimitError)


@dataclass
class Outcome:
    """What a comparison found: pairs compared, pairs left out by reason, and disagreements."""

    pairs: int
    left_out: int
    failures: list[str]


def expected_value(oracle: libxml2.Oracle, expression: Expression) -> Any:
    """libxml2's value in the form of `Document.evaluate`: node-sets as string-values in document order."""
    text = libxml2.mapped(expression.text())
    value = oracle.value(text)
    if not isinstance(value, list):
        return value
    values = [node.value for node in oracle.nodes(text)]
    values.extend(item[1] for item in value if isinstance(item, tuple))
    if oracle.selects_document(text):
        values.insert(0, oracle.value("string(/)"))
    return values


def same(found: Any, expected: Any, has_namespace_nodes: bool) -> bool:
    """Equality of XPath values; NaN equals itself here, and namespace nodes have no order of their own."""
    if isinstance(expected, list):
        if not isinstance(found, list):
            return False
        values = [libxml2.mapped(node["value"]) for node in found]
        return sorted(values) == sorted(expected) if has_namespace_nodes else values == expected
    if type(found) is not type(expected):
        return False
    if isinstance(expected, float) and math.isnan(expected):
        return math.isnan(found)
    return bool(libxml2.mapped(found) == expected if isinstance(found, str) else found == expected)


def disagreement(text: str, expression: Expression, encoding: str = "utf-8") -> str | None:
    """How the exact evaluator and libxml2 differ over one pair, or None."""
    if libxml2.deviates(expression, text):
        return None
    oracle = libxml2.Oracle(libxml2.mapped(text).encode(encoding), NAMESPACES)
    document = _core.Document.parse(text.encode(encoding))
    return _compare(oracle, document, expression)


def _compare(oracle: libxml2.Oracle, document: Any, expression: Expression) -> str | None:
    try:
        expected = expected_value(oracle, expression)
    except etree.XPathError as error:
        return f"libxml2 cannot evaluate: {error}"
    try:
        found = document.evaluate(expression.text(), NAMESPACES)
    except errors.SubscriptionError as error:
        return f"refused: {error}"
    if same(found, expected, "namespace" in expression.text()):
        return None
    return f"evaluates to {found!r:.300}, libxml2 to {expected!r:.300}"


def compare(document: Document, expressions: Iterable[Expression]) -> Outcome:
    """Compare values and, through an index and the naive matcher, booleans; failing pairs are cut down first."""
    kept, left_out, failures = [], 0, []
    for expression in expressions:
        if libxml2.deviates(expression, document.text):
            left_out += 1
        else:
            kept.append(expression)
    oracle = libxml2.Oracle(libxml2.mapped(document.text).encode(document.encoding), NAMESPACES)
    parsed = _core.Document.parse(document.payload)
    for expression in kept:
        if _compare(oracle, parsed, expression):
            failures.append(report(document, expression))
    if not failures:
        index = engine.index([expression.text() for expression in kept], NAMESPACES)
        expected = [str(i) for i, e in enumerate(kept) if oracle.boolean(libxml2.mapped(e.text()))]
        for matcher in ("naive", "inverted"):
            found = index.match(document.payload, matcher=matcher)
            for position in sorted(set(found) ^ set(expected), key=int):
                verb = "matches" if position in found else "misses"
                failures.append(f"{matcher} {verb} {kept[int(position)].text()} on {document.text}")
    return Outcome(len(kept), left_out, failures)


def report(document: Document, expression: Expression) -> str:
    """The failing pair, cut down, with both answers."""
    text, shorter = document.text, expression
    if document.encoding == "utf-8" and disagreement(text, shorter):
        text, shorter = reduce_pair(text, shorter, lambda t, e: disagreement(t, e) is not None)
    return f"{shorter.text()} on {text}: {disagreement(text, shorter, document.encoding)}"
