"""Cuts a failing (document, expression) pair down, for the report of a volume test."""

from collections.abc import Callable, Iterator

from lxml import etree

from tests import libxml2
from tests.generators.syntax import Expression

Fails = Callable[[str, Expression], bool]


def smaller(expression: Expression) -> Iterator[Expression]:
    """Expressions with one cut somewhere; types are kept below the top, where any type may stand."""
    yield from expression.children()
    yield from _cuts(expression)


def _cuts(expression: Expression) -> Iterator[Expression]:
    yield from expression.simpler()
    children = expression.children()
    for at, child in enumerate(children):
        for shorter in (*(c for c in child.children() if c.kind == child.kind), *_cuts(child)):
            yield expression.with_children((*children[:at], shorter, *children[at + 1 :]))


def smaller_documents(text: str) -> Iterator[str]:
    """Documents without one element, attribute or text."""
    payload = text.encode()
    count = sum(1 for _ in libxml2.parse(payload).getroot().iter())
    for position in range(count):
        for cut in ("drop", "unwrap", "text", "tail", "attributes", "declarations"):
            tree = libxml2.parse(payload)
            node = list(tree.getroot().iter())[position]
            parent = node.getparent()
            if cut == "drop" and parent is not None:
                parent.remove(node)
            elif cut == "unwrap" and parent is not None and isinstance(node.tag, str):
                for child in node:
                    parent.insert(parent.index(node), child)
                parent.remove(node)
            elif cut == "text" and node.text and isinstance(node.tag, str):
                node.text = None
            elif cut == "tail" and node.tail:
                node.tail = None
            elif cut == "declarations" and position == 0:
                etree.cleanup_namespaces(tree)
            elif cut == "attributes" and isinstance(node.tag, str) and len(node.attrib):
                del node.attrib[node.attrib.keys()[-1]]
            else:
                continue
            yield etree.tostring(tree.getroot(), encoding="unicode", with_tail=False)


def reduce_pair(text: str, expression: Expression, fails: Fails, rounds: int = 200) -> tuple[str, Expression]:
    """A pair that still fails and has no failing pair one cut below it (within `rounds` cuts)."""
    for _ in range(rounds):
        better = next(
            (
                (text, e)
                for e in smaller(expression)
                if len(e.text()) < len(expression.text()) and _safe(fails, text, e)
            ),
            None,
        ) or next(
            ((t, expression) for t in smaller_documents(text) if len(t) < len(text) and _safe(fails, t, expression)),
            None,
        )
        if better is None:
            break
        text, expression = better
    return text, expression


def _safe(fails: Fails, text: str, expression: Expression) -> bool:
    try:
        return fails(text, expression)
    except (etree.LxmlError, ValueError):
        return False
