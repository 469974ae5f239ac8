"""The data model of XPath 1.0 (section 5), built from lxml's tree, for the reference evaluator."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

XML_NAMESPACE = "http://www.w3.org/XML/1998/namespace"


@dataclass(eq=False)
class Node:
    """A node of any of the seven kinds: root, element, attribute, namespace, text, comment, instruction."""

    kind: str
    parent: "Node | None"
    uri: str = ""
    local: str = ""
    prefix: str = ""
    value: str = ""
    order: int = 0
    children: list["Node"] = field(default_factory=list)
    attributes: list["Node"] = field(default_factory=list)
    namespaces: list["Node"] = field(default_factory=list)
    identifier: str = ""

    @cached_property
    def descendants(self) -> list["Node"]:
        """The descendants in document order."""
        return [node for child in self.children for node in (child, *child.descendants)]

    @cached_property
    def ancestors(self) -> list["Node"]:
        """The ancestors, nearest first."""
        return [] if self.parent is None else [self.parent, *self.parent.ancestors]

    @property
    def root(self) -> "Node":
        """The root of the document."""
        return self.ancestors[-1] if self.ancestors else self

    @cached_property
    def string_value(self) -> str:
        """The string-value (5.1 to 5.7)."""
        if self.kind in ("root", "element"):
            return "".join(child.string_value for child in self.children if child.kind in ("element", "text"))
        return self.value

    @property
    def name(self) -> str:
        """The QName as name() gives it."""
        return f"{self.prefix}:{self.local}" if self.prefix else self.local


class _Builder:
    def __init__(self, with_identifiers: bool) -> None:
        self._order = 0
        self._with_identifiers = with_identifiers

    def node(self, kind: str, parent: Node | None, **fields: Any) -> Node:
        self._order += 1
        return Node(kind, parent, order=self._order, **fields)

    def content(self, parent: Node, item: Any) -> None:
        """One lxml node, without its tail."""
        if not isinstance(item.tag, str):
            if hasattr(item, "target"):
                made = self.node("instruction", parent, local=item.target, value=item.text or "")
            else:
                made = self.node("comment", parent, value=item.text or "")
            parent.children.append(made)
            return
        uri, local = self._split(item.tag)
        element = self.node("element", parent, uri=uri, local=local, prefix=item.prefix or "")
        parent.children.append(element)
        scope = {prefix or "": uri for prefix, uri in item.nsmap.items() if uri} | {"xml": XML_NAMESPACE}
        element.namespaces = [self.node("namespace", element, local=p, value=uri) for p, uri in sorted(scope.items())]
        by_uri = {uri: prefix for prefix, uri in scope.items() if prefix}
        for name, value in item.attrib.items():
            uri, local = self._split(name)
            attribute = self.node("attribute", element, uri=uri, local=local, value=value, prefix=by_uri.get(uri, ""))
            element.attributes.append(attribute)
            if self._with_identifiers and name == "id" and element.name in ("a", "b", "c", "d"):
                element.identifier = value
        self.text(element, item.text)
        for child in item:
            self.content(element, child)
            self.text(element, child.tail)

    def text(self, parent: Node, value: str | None) -> None:
        if value:
            parent.children.append(self.node("text", parent, value=value))

    @staticmethod
    def _split(name: str) -> tuple[str, str]:
        if name.startswith("{"):
            uri, _, local = name[1:].partition("}")
            return uri, local
        return "", name


def build(tree: Any) -> Node:
    """The root node of a parsed document; `id` is an ID where the generators' subset declares it."""
    builder = _Builder(bool(tree.docinfo.internalDTD))
    root = builder.node("root", None)
    element = tree.getroot()
    for item in reversed(list(element.itersiblings(preceding=True))):
        builder.content(root, item)
    builder.content(root, element)
    for item in element.itersiblings():
        builder.content(root, item)
    return root
