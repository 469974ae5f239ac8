"""Sample documents, as what queries are drawn from: elements, their values, and which values occur where."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from typing import Any

from sardonyx.errors import WorkloadError
from sardonyx.workloads.dtd import load_lxml

__all__ = ["Fact", "Node", "Pool", "Samples"]

_LONGEST_VALUE = 40
_NUMBER = re.compile(r"-?\d{1,12}(\.\d{1,6})?")
_XML = "http://www.w3.org/XML/1998/namespace"


class Fact:
    """A value of an element: the attribute it stands in (empty: the element's text) and its pool."""

    __slots__ = ("attribute", "pool", "value")

    def __init__(self, attribute: str, value: str, pool: Pool) -> None:
        self.attribute = attribute
        self.value = value
        self.pool = pool


class Node:
    """An element of a sample."""

    __slots__ = ("children", "end", "facts", "name", "number", "opaque", "parent")

    def __init__(self, name: str, parent: Node | None, number: int) -> None:
        self.name = name
        self.parent = parent
        self.number = number
        """Its place among the elements of all samples, in document order."""
        self.end = number + 1
        """The place after its last descendant."""
        self.children: list[Node] = []
        self.facts: list[Fact] = []
        """Its values, as far as queries can compare with them."""
        self.opaque = False
        """Whether it has other values, or text among its children."""

    def chain(self) -> list[Node]:
        """The elements from the root to this one."""
        nodes = [self]
        while (parent := nodes[-1].parent) is not None:
            nodes.append(parent)
        return nodes[::-1]


class Pool:
    """The values that occur in the texts, or in one attribute, of the elements of one name."""

    __slots__ = ("_numbers", "counts", "partial", "texts")

    def __init__(self) -> None:
        self.texts: list[str] = []
        """The values, in the order of their first occurrence."""
        self.counts: Counter[str] = Counter()
        """How often each occurs."""
        self.partial = False
        """Whether there are others, with which queries can not compare."""
        self._numbers: tuple[list[float], list[str]] | None = None

    def add(self, text: str) -> None:
        """Take up an occurrence of a value."""
        self.counts[text] += 1
        if self.counts[text] == 1:
            self.texts.append(text)

    def numbers(self) -> tuple[list[float], list[str]]:
        """Those of the values that are numbers, in ascending order, with their texts."""
        if self._numbers is None:
            pairs = sorted((float(text), text) for text in self.texts if is_number(text))
            self._numbers = [number for number, _ in pairs], [text for _, text in pairs]
        return self._numbers


def is_number(text: str) -> bool:
    """Whether a text is a number that XPath 1.0 writes alike."""
    return _NUMBER.fullmatch(text) is not None


def _usable(text: str) -> bool:
    """Whether a value can be compared with in one line of a query."""
    return (
        0 < len(text) <= _LONGEST_VALUE
        and text.isprintable()
        and text == text.strip()
        and not ('"' in text and "'" in text)
    )


class Samples:
    """Sample documents; raises `WorkloadError` for one that is not well-formed and where there is none.

    >>> samples = Samples([b"<order id='7'><item>pen</item><item>ink</item></order>"])
    >>> [(node.name, [fact.value for fact in node.facts]) for node in samples.nodes]
    [('order', ['7']), ('item', ['pen']), ('item', ['ink'])]
    """

    def __init__(self, documents: Iterable[bytes]) -> None:
        etree = load_lxml()
        self.nodes: list[Node] = []
        """All elements, document by document, in document order."""
        self.levels: list[int] = []
        """The level of each of them, from 1."""
        self.namespaces: dict[str, str] = {}
        """The prefixes that the names have, and their URIs."""
        self._prefixes: dict[str, str] = {_XML: "xml"}
        self._pools: dict[tuple[str, str], Pool] = {}
        self._numeric: dict[tuple[str, str], bool] = {}
        parser = etree.XMLParser(resolve_entities="internal", no_network=True, load_dtd=False)
        for number, document in enumerate(documents, 1):
            try:
                root = etree.fromstring(document, parser)
            except etree.XMLSyntaxError as error:
                raise WorkloadError(f"sample {number} is not well-formed: {error}") from None
            self._add(root)
        if not self.nodes:
            raise WorkloadError("there is no sample document to draw queries from")
        self.roots = [node for node in self.nodes if node.parent is None]
        self._holders = [node.number for node in self.nodes if node.facts]
        counts = Counter(node.name for node in self.nodes)
        self.ranks = {name: rank for rank, name in enumerate(sorted(counts, key=lambda name: (-counts[name], name)))}
        """Names by how common they are, the commonest first."""

    def holders(self, node: Node) -> tuple[int, int]:
        """Which descendants of an element have values: a range of what `holder` numbers."""
        return bisect_left(self._holders, node.number + 1), bisect_left(self._holders, node.end)

    def holder(self, place: int) -> Node:
        """The element with values at this place."""
        return self.nodes[self._holders[place]]

    def are_numbers(self, name: str, attribute: str) -> bool:
        """Whether all texts of the elements of a name are numbers, or all values of an attribute of any elements."""
        found = self._numeric.get((name, attribute))
        if found is None:
            pools = (
                [pool for key, pool in self._pools.items() if key[1] == attribute]
                if attribute
                else [self._pools[name, attribute]]
            )
            found = all(not pool.partial and all(map(is_number, pool.texts)) for pool in pools)
            self._numeric[name, attribute] = found
        return found

    def _add(self, root: Any) -> None:
        stack: list[Node] = []
        for element in root.iter("*"):
            # The stack holds the element before this one and those around it.
            level = sum(1 for _ in element.iterancestors()) + 1
            del stack[level - 1 :]
            node = Node(self._name(element.tag, element.nsmap), stack[-1] if stack else None, len(self.nodes))
            if stack:
                stack[-1].children.append(node)
            for above in stack:
                above.end = node.number + 1
            stack.append(node)
            self.nodes.append(node)
            self.levels.append(level)
            for name, value in element.attrib.items():
                self._fact(node, self._name(name, element.nsmap), value)
            if len(element):
                node.opaque = True
                self._pool(node, "").partial = True
            elif element.text:
                self._fact(node, "", element.text)
            else:
                self._pool(node, "").partial = True

    def _fact(self, node: Node, attribute: str, value: str) -> None:
        pool = self._pool(node, attribute)
        if not _usable(value):
            node.opaque = True
            pool.partial = True
            return
        pool.add(value)
        node.facts.append(Fact(attribute, value, pool))

    def _pool(self, node: Node, attribute: str) -> Pool:
        return self._pools.setdefault((node.name, attribute), Pool())

    def _name(self, tag: str, bound: dict[str | None, str]) -> str:
        if tag[0] != "{":
            return tag
        uri, _, local = tag[1:].partition("}")
        prefix = self._prefixes.get(uri)
        if prefix is None:
            wanted = next((name for name, value in bound.items() if value == uri and name), None)
            number = 1
            while wanted is None or wanted in self.namespaces:
                wanted = f"ns{number}"
                number += 1
            prefix = self._prefixes[uri] = wanted
            self.namespaces[prefix] = uri
        return f"{prefix}:{local}"
