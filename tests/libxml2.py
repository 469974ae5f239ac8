"""libxml2 (through lxml) as the oracle, with the document node as context, and the places where it leaves the
recommendations.

lxml evaluates a relative path of `ElementTree.xpath` at the root element. Everything here is therefore evaluated inside
a predicate of `/self::node()`: there the context is the document node, position and size are 1.

The deviations of libxml2 2.14 are all in this file, each with its reason. Some are undone by sending libxml2 a document
and an expression that mean the same (`mapped`), the others are predicates over one pair that are as narrow as they can
be made (`deviates`); pairs that they name are not compared.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from xml.parsers import expat

from lxml import etree

from tests.generators.documents import ENTITIES
from tests.generators.syntax import Expression, Path, Step, walk

CAPTURE_URI = "urn:sardonyx:capture"
_captured: list[Any] = []


def _capture(_context: Any, value: Any) -> bool:
    _captured.append(value)
    return False


etree.FunctionNamespace(CAPTURE_URI)["capture"] = _capture


class _Nothing(etree.Resolver):
    def resolve(self, *_requested: Any) -> Any:
        """Nothing outside the document is ever read."""
        return self.resolve_string("", _requested[-1])  # type: ignore[call-arg]


def parser(**options: Any) -> etree.XMLParser:
    """A parser with the settings of the contract: internal subset honoured, nothing loaded, no size limits."""
    made = etree.XMLParser(attribute_defaults=True, huge_tree=True, no_network=True, **options)
    made.resolvers.add(_Nothing())
    return made


def parse(payload: bytes) -> Any:
    """The tree of a document; raises `lxml.etree.XMLSyntaxError`.

    A namespace name that is no URI reference is no error of well-formedness (Namespaces in XML, 2.2 and 7); libxml2
    warns, and lxml refuses on that warning. Expat then says whether there is anything else.
    """
    strict = parser()
    try:
        return etree.fromstring(payload, strict).getroottree()
    except etree.XMLSyntaxError as error:
        if not all(entry.type_name.startswith("WAR_NS_URI") for entry in strict.error_log):
            raise
        try:
            expat.ParserCreate(namespace_separator="\x01").Parse(payload, True)
        except expat.ExpatError:
            raise error from None
    return etree.fromstring(payload, parser(recover=True)).getroottree()


@dataclass(frozen=True)
class Node:
    """A selected node in a form that can be compared: its place, its string-value, and an element's line."""

    place: tuple[Any, ...]
    value: str
    line: int | None


class Oracle:
    """One parsed document, many expressions."""

    def __init__(self, payload: bytes, namespaces: Mapping[str, str] | None = None) -> None:
        """`namespaces`: the prefixes of the expressions."""
        self.tree = parse(payload)
        bound = {prefix: uri for prefix, uri in (namespaces or {}).items() if prefix}
        self._evaluate = etree.XPathDocumentEvaluator(
            self.tree, namespaces=bound | {"capture": CAPTURE_URI}, smart_strings=True
        )

    def boolean(self, expression: str) -> bool:
        """boolean() of the expression at the document node."""
        return bool(self._evaluate(f"boolean(/self::node()[boolean({expression})])"))

    def absolute(self, expression: str) -> Any:
        """The value of an expression that does not depend on the context node."""
        return self._evaluate(expression)

    def value(self, expression: str) -> Any:
        """The value of the expression at the document node: lxml leaves the document node out of a node-set."""
        _captured.clear()
        self._evaluate(f"/self::node()[capture:capture({expression})]")
        value = _captured.pop()
        return str(value) if isinstance(value, str) else value

    def selects_document(self, nodes: str) -> bool:
        """Whether a node-set contains the document node."""
        return bool(self._evaluate(f"boolean(/self::node()[boolean(({nodes})[not(..)][self::node()][count(.|/)=1])])"))

    def nodes(self, expression: str) -> list[Node]:
        """The nodes of a node-set in document order, without the document node and without namespace nodes."""
        return [self._node(item) for item in self.value(expression) if not isinstance(item, tuple)]

    @staticmethod
    def _node(item: Any) -> Node:
        if isinstance(item, str):
            owner = item.getparent()  # type: ignore[attr-defined]
            kind = item.attrname if item.is_attribute else item.is_tail  # type: ignore[attr-defined]
            return Node((owner, kind), str(item), None)
        value = item.text or "" if callable(item.tag) else item.xpath("string()")
        return Node((item,), str(value), item.sourceline)


# --- deviations undone by mapping -------------------------------------------------------------------------------------

# XPath 1.0 has no exponents (section 3.7, Number): "1e3" is NaN. libxml2 reads 1000, and "7e" as 7. Another letter in
# the same places, in document and expression, keeps comparisons as they were.
_EXPONENT = re.compile(r"(?<=[0-9.])[eE](?=[-+0-9'\"<])")


def mapped(text: str) -> str:
    """The document or expression as libxml2 has to see it, so that it answers by the recommendation.

    Entities are written out: libxml2 leaves the default namespace out of their elements (Namespaces in XML 6.2), and
    counts the text of used declarations as part of the string-value of the root (XPath 5.1 names text nodes only).
    """
    return _EXPONENT.sub("Q", written_out(text))


def written_out(document: str) -> str:
    """The document with the generators' entities replaced by what they stand for."""
    for reference, content in ENTITIES.items():
        document = document.replace(reference, content)
    return document


NAMESPACE_ORDER = "order of namespace nodes"

# --- deviations left out ----------------------------------------------------------------------------------------------


def deviates(expression: Expression, document: str) -> str | None:
    """Why libxml2's answer for this pair is not the recommendation's, or None."""
    for reason, holds in _DEVIATIONS.items():
        if holds(expression, document):
            return reason
    return None


def _may_be_attribute(step: Step, before: bool) -> bool:
    if step.axis in ("attribute", "namespace"):
        return True
    return before and step.axis in ("self", "ancestor-or-self", "descendant-or-self")


def _following_from_attribute(expression: Expression, _document: str) -> bool:
    """XPath 2.2: following:: holds all nodes after the context node in document order that are not its descendants.

    An element's children come after its attributes (5) and are no descendants of an attribute, so they are on the
    attribute's following axis; libxml2 goes on after the element instead.
    """

    def visit(expr: Expression, attribute: bool) -> tuple[bool, bool]:
        """(deviates, may select attributes) with a context that may be an attribute."""
        if not isinstance(expr, Path):
            parts = [visit(child, attribute) for child in expr.children()]
            return any(part[0] for part in parts), any(part[1] for part in parts)
        current = attribute
        if expr.base is not None:
            bad, current = visit(expr.base, attribute)
            if bad or any(visit(predicate, current)[0] for predicate in expr.base_predicates):
                return True, current
        for position, step in enumerate(expr.steps):
            if position == 0 and expr.base is None and step.separator:
                current = False
            if step.axis in ("following", "preceding") and current:
                return True, current
            current = _may_be_attribute(step, current)
            if any(visit(predicate, current)[0] for predicate in step.predicates):
                return True, current
        return False, current

    return visit(expression, False)[0]


def _undeclared_default_node(expression: Expression, document: str) -> bool:
    """XPath 5.4: xmlns="" makes no namespace node; libxml2 delivers one with an empty value."""
    if not re.search(r"xmlns=(\"\"|'')", document):
        return False
    return any(isinstance(e, Path) and any(s.axis == "namespace" for s in e.steps) for e in walk(expression))


def _first_child_of_the_root(expression: Expression, document: str) -> bool:
    """XPath 2.2: preceding:: holds all nodes before but ancestors; libxml2 never reaches the root's first child.

    That shows where the first child is a comment or an instruction, or where one follows the document element.
    """
    if not re.search(r"(^|\]>|\?>)<(!--|\?(?!xml ))|(-->|\?>)$", document):
        return False
    return any(isinstance(e, Path) and any(s.axis == "preceding" for s in e.steps) for e in walk(expression))


def _mapped_letters(expression: Expression, document: str) -> bool:
    """No deviation, but where the mapping of exponents shows: functions that take strings apart."""
    text = expression.text()
    if not re.search(r"translate|substring", text):
        return False
    return mapped(text) != text or _EXPONENT.search(document) is not None


def _order_of_namespace_nodes(expression: Expression, _document: str) -> bool:
    """XPath 5: the relative order of an element's namespace nodes is left to the implementation.

    It shows where one of several is picked, by a position or by a conversion to string.
    """
    return any(
        step.axis == "namespace" and step.head.endswith(("*", "node()"))
        for inner in walk(expression)
        if isinstance(inner, Path)
        for step in inner.steps
    )


_DEVIATIONS = {
    NAMESPACE_ORDER: _order_of_namespace_nodes,
    "first child of the root on preceding": _first_child_of_the_root,
    "the mapping shows": _mapped_letters,
    "following from an attribute": _following_from_attribute,
    "namespace node of an undeclared default": _undeclared_default_node,
}
