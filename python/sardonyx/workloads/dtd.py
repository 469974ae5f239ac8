"""DTDs, as grammars that documents are generated from. lxml reads them; nothing is loaded over the network."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from sardonyx.errors import MissingExtraError, WorkloadError

__all__ = ["Attribute", "Element", "Grammar", "Particle", "element_graph", "load_lxml", "read"]

NEVER = 1_000_000
"""The height of an element that no finite document can hold."""


def load_lxml() -> Any:
    """`lxml.etree`; raises `MissingExtraError` where it is not installed."""
    try:
        from lxml import etree
    except ModuleNotFoundError:
        raise MissingExtraError("this needs lxml, which is not installed: pip install 'sardonyx[workloads]'") from None
    return etree


@dataclass(slots=True)
class Particle:
    """A part of a content model."""

    kind: Literal["element", "text", "sequence", "choice"]
    occurs: Literal["once", "opt", "mult", "plus"]
    name: str
    """Of an element, else empty."""
    parts: tuple[Particle, ...]
    """Of a sequence or choice."""
    height: int = NEVER
    """Levels of elements that one occurrence needs at the least."""

    @property
    def needed(self) -> int:
        """Levels of elements that it needs at the least, where it may also be absent."""
        return 0 if self.occurs in ("opt", "mult") else self.height


@dataclass(frozen=True, slots=True)
class Attribute:
    """A declared attribute."""

    name: str
    kind: str
    """The type of XML 1.0 in lower case, such as `cdata`, `id`, `nmtokens`, `enumeration`."""
    need: Literal["required", "implied", "fixed", "none"]
    default: str | None
    values: tuple[str, ...]
    """Of an enumeration."""


@dataclass(frozen=True, slots=True)
class Element:
    """A declared element."""

    name: str
    content: Particle | None
    """None: nothing. An element declared ANY is given text only."""
    mixed: bool
    """Whether text may stand between its children, in any order."""
    attributes: tuple[Attribute, ...]


@dataclass(frozen=True, slots=True)
class Grammar:
    """The elements of a DTD, and the one that documents start with."""

    source: str
    """Where it was read from."""
    root: str
    elements: dict[str, Element]
    heights: dict[str, int]
    """Levels of elements that each element needs at the least, its own included."""


def read(path: str | os.PathLike[str], root: str | None = None) -> Grammar:
    """The grammar of a DTD file, for documents that start with `root`.

    Without a `root`, it is the first declared element that no other one contains. Raises `WorkloadError` where the
    DTD can not be read, uses undeclared elements or has no such root, and `MissingExtraError` without lxml.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "list.dtd")
    ...     _ = file.write_text("<!ELEMENT list (item+)> <!ELEMENT item (#PCDATA | list)*>")
    ...     grammar = read(file)
    >>> grammar.root, grammar.heights
    ('list', {'list': 2, 'item': 1})
    """
    etree = load_lxml()
    source = os.fspath(path)
    try:
        with open(source, "rb") as file:
            declared = etree.DTD(file)
    except OSError as error:
        raise WorkloadError(f"{source}: the DTD can not be read: {error.strerror or error}") from None
    except (etree.DTDParseError, etree.XMLSyntaxError) as error:
        said = next(iter(error.error_log), None)
        where = "" if said is None else f"line {said.line}, column {said.column}: "
        raise WorkloadError(f"{source} is not a DTD: {where}{error if said is None else said.message}") from None
    names: dict[str, list[str]] = {}
    for item in declared.iterelements():
        names.setdefault(item.name, []).append(_qualified(item))
    try:
        elements = {element.name: element for element in (_element(item, names) for item in declared.iterelements())}
    except WorkloadError as error:
        raise WorkloadError(f"{source}: {error.message}") from None
    if not elements:
        raise WorkloadError(f"{source} declares no element")
    contained: set[str] = set()
    for element in elements.values():
        contained.update(child for child in _children(element.content) if child != element.name)
    if root is None:
        root = next((name for name in elements if name not in contained), next(iter(elements)))
    elif root not in elements:
        raise WorkloadError(f"{source} declares no element {root!r}; it declares {', '.join(sorted(elements))}")
    heights = _heights(elements)
    if heights[root] >= NEVER:
        raise WorkloadError(f"{source}: {root!r} requires itself inside itself, so that no document can end")
    return Grammar(source, root, elements, heights)


def element_graph(path: str | os.PathLike[str]) -> dict[str, list[str]]:
    """The elements that each element of a DTD file may contain, for `BrokerSettings.elements`.

    Raises as `read`.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "list.dtd")
    ...     _ = file.write_text("<!ELEMENT list (item+)> <!ELEMENT item (#PCDATA | list)*>")
    ...     element_graph(file)
    {'list': ['item'], 'item': ['list']}
    """
    elements = read(path).elements
    return {name: sorted(set(_children(element.content))) for name, element in elements.items()}


def _qualified(declared: Any) -> str:
    return f"{declared.prefix}:{declared.name}" if declared.prefix else str(declared.name)


def _element(declared: Any, names: dict[str, list[str]]) -> Element:
    attributes = tuple(
        Attribute(
            _qualified(item),
            item.type,
            item.default if item.default in ("required", "implied", "fixed") else "none",
            # libxml2 keeps an ampersand of a default value as a reference.
            None if item.default_value is None else item.default_value.replace("&#38;", "&"),
            tuple(item.values()),
        )
        for item in declared.iterattributes()
    )
    mixed = declared.type in ("mixed", "any")
    content: Particle | None = None
    if declared.type == "any":
        content = Particle("text", "once", "", ())
    elif declared.type != "empty":
        content = _particle(declared.content, names)
    # In a fixed order, because lxml's is that of libxml2's lists.
    return Element(_qualified(declared), content, mixed, tuple(sorted(attributes, key=lambda item: item.name)))


_KINDS: dict[str, Literal["element", "text", "sequence", "choice"]] = {
    "element": "element",
    "pcdata": "text",
    "seq": "sequence",
    "or": "choice",
}


def _particle(content: Any, names: dict[str, list[str]]) -> Particle:
    kind = _KINDS[content.type]
    name = ""
    parts: tuple[Particle, ...] = ()
    if kind == "element":
        # lxml tells the local name of a child only, so that its prefix has to be found among the declared elements.
        match names.get(content.name, []):
            case [name]:
                pass
            case []:
                raise WorkloadError(f"a content model names {content.name!r}, which is not declared")
            case several:
                raise WorkloadError(
                    f"content models can not tell {' from '.join(several)}, which differ in prefix only"
                )
    elif kind in ("sequence", "choice"):
        parts = tuple(_particle(part, names) for part in _flat(content, content.type))
    return Particle(kind, content.occur, name, parts)


def _flat(content: Any, kind: str) -> Iterator[Any]:
    """The parts of a group, which libxml2 keeps as pairs of a part and the rest."""
    rest = content
    while True:
        yield rest.left
        rest = rest.right
        if rest is None:
            return
        if rest.type != kind or rest.occur != "once":
            yield rest
            return


def _children(particle: Particle | None) -> Iterator[str]:
    if particle is None:
        return
    if particle.kind == "element":
        yield particle.name
    for part in particle.parts:
        yield from _children(part)


def _heights(elements: dict[str, Element]) -> dict[str, int]:
    """The least levels of each element: a fixed point, reached from above; also writes those of the particles."""
    heights = dict.fromkeys(elements, NEVER)
    changed = True
    while changed:
        changed = False
        for name, element in elements.items():
            below = 0
            if element.content is not None:
                _measure(element.content, heights)
                below = element.content.needed
            if min(below + 1, NEVER) < heights[name]:
                heights[name] = below + 1
                changed = True
    return heights


def _measure(particle: Particle, heights: dict[str, int]) -> None:
    for part in particle.parts:
        _measure(part, heights)
    needs = [part.needed for part in particle.parts]
    match particle.kind:
        case "element":
            particle.height = heights[particle.name]
        case "text":
            particle.height = 0
        case "sequence":
            particle.height = max(needs)
        case "choice":
            particle.height = min(needs)
