"""Compares the exact evaluator with libxml2 on one document and many expressions."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from lxml import etree

from sardonyx import _core, errors
from tests import engine, libxml2, reference, reference_tree
from tests.generators.documents import Document
from tests.generators.expressions import NAMESPACES
from tests.generators.reduce import reduce_pair
from tests.generators.syntax import Expression
from tests.reference_tree import Node


@dataclass
class Outcome:
    """What a comparison found: pairs compared, how many of them with the reference only, and disagreements."""

    pairs: int
    judged: int
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


def same(found: Any, expected: Any, has_namespace_nodes: bool, mapping: Callable[[str], str] = libxml2.mapped) -> bool:
    """Equality of XPath values; NaN equals itself here, and namespace nodes have no order of their own."""
    if isinstance(expected, list):
        if not isinstance(found, list):
            return False
        values = [mapping(node["value"]) for node in found]
        return sorted(values) == sorted(expected) if has_namespace_nodes else values == expected
    if type(found) is not type(expected):
        return False
    if isinstance(expected, float) and math.isnan(expected):
        return math.isnan(found)
    return bool(mapping(found) == expected if isinstance(found, str) else found == expected)


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
    listed = list(expressions)
    kept = [expression for expression in listed if not libxml2.deviates(expression, document.text)]
    oracle = libxml2.Oracle(libxml2.mapped(document.text).encode(document.encoding), NAMESPACES)
    parsed = _core.Document.parse(document.payload)
    failures = [report(document, expression) for expression in kept if _compare(oracle, parsed, expression)]
    if len(kept) < len(listed):
        root = reference_tree.build(libxml2.parse(libxml2.written_out(document.text).encode(document.encoding)))
        failures.extend(_judged(root, parsed, set(listed) - set(kept), document))
    if not failures:
        index = engine.index([expression.text() for expression in kept], NAMESPACES)
        expected = [str(i) for i, e in enumerate(kept) if oracle.boolean(libxml2.mapped(e.text()))]
        for matcher in engine.MATCHERS:
            found = index.match(document.payload, matcher=matcher)
            for position in sorted(set(found) ^ set(expected), key=int):
                verb = "matches" if position in found else "misses"
                failures.append(f"{matcher} {verb} {kept[int(position)].text()} on {document.text}")
    return Outcome(len(listed), len(listed) - len(kept), failures)


def _judged(root: Node, parsed: Any, expressions: Iterable[Expression], document: Document) -> Iterator[str]:
    """Pairs where libxml2 is known to deviate, judged by the reference evaluator."""
    for expression in sorted(expressions, key=lambda e: e.text()):
        if libxml2.deviates(expression, document.text) == libxml2.NAMESPACE_ORDER:
            continue  # left to the implementation
        expected: Any = reference.evaluate(expression, reference.Context(root))
        if isinstance(expected, list):
            expected = [node.string_value for node in expected]
        found = parsed.evaluate(expression.text(), NAMESPACES)
        if not same(found, expected, "namespace" in expression.text(), mapping=str):
            yield (
                f"{expression.text()} on {document.text}: evaluates to {found!r:.300}, "
                f"by the recommendation to {expected!r:.300}"
            )


def report(document: Document, expression: Expression) -> str:
    """The failing pair, cut down, with both answers."""
    text, shorter = document.text, expression
    if document.encoding == "utf-8" and disagreement(text, shorter):
        text, shorter = reduce_pair(text, shorter, lambda t, e: disagreement(t, e) is not None)
    return f"{shorter.text()} on {text}: {disagreement(text, shorter, document.encoding)}"
