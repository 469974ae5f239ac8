"""Documents generated from a grammar: valid, of bounded depth, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sardonyx.errors import WorkloadError
from sardonyx.workloads.draws import Draws
from sardonyx.workloads.dtd import Attribute, Element, Grammar, Particle
from sardonyx.workloads.shapes import DocumentShape
from sardonyx.workloads.values import Values, escaped

__all__ = ["generate"]

_TRIES = 50
"""Documents that are drawn until one has an ID for the references that its attributes must hold."""


def generate(
    grammar: Grammar, shape: DocumentShape, draws: Draws, pools: Mapping[str, Any] | None = None
) -> Iterator[bytes]:
    """Documents without end, valid for the grammar and no deeper than the shape says.

    Raises `WorkloadError` where the grammar has no document of so few levels, or requires attributes that can not be
    made up (the names of unparsed entities).
    """
    needed = grammar.heights[grammar.root]
    if needed > shape.doc_depth:
        raise WorkloadError(
            f"{grammar.source}: the shortest {grammar.root!r} has {needed} levels; doc_depth is {shape.doc_depth}"
        )
    values = Values(shape, pools or {})
    while True:
        for _ in range(_TRIES):
            text = _Document(grammar, shape, draws, values).text()
            if text is not None:
                break
        else:
            raise WorkloadError(
                f"{grammar.source}: an attribute must refer to an ID, and {_TRIES} documents had none; "
                "try more max_repeats or a higher probability of implied attributes"
            )
        yield text


class _Document:
    """One document while it is written."""

    def __init__(self, grammar: Grammar, shape: DocumentShape, draws: Draws, values: Values) -> None:
        self._elements = grammar.elements
        self._heights = grammar.heights
        self._root = grammar.root
        self._shape = shape
        self._draws = draws
        self._values = values
        self._out: list[str] = []
        self._ids = 0
        self._references: list[tuple[int, Attribute]] = []

    def text(self) -> bytes | None:
        """The document, or None if it has references and no ID that they could name."""
        self._element(self._root, "", self._shape.doc_depth)
        for place, attribute in self._references:
            # Where the attribute was to be written, there is room for it; only now all IDs are known.
            if self._ids:
                count = 1 if attribute.kind == "idref" else self._draws.between(1, self._shape.max_repeats)
                names = " ".join(f"i{self._draws.between(1, self._ids)}" for _ in range(count))
                self._out[place] = f' {attribute.name}="{names}"'
            elif attribute.need == "required":
                return None
        return "".join(self._out).encode()

    def _element(self, name: str, parent: str, levels: int) -> None:
        """Write an element that may have so many levels, its own included."""
        element = self._elements[name]
        out = self._out
        out.append(f"<{name}")
        for attribute in element.attributes:
            self._attribute(element, attribute)
        content = element.content
        if content is None:
            out.append("/>")
            return
        out.append(">")
        start = len(out)
        if content.kind == "text":
            out.append(self._values.at(parent, name)(self._draws))
        elif element.mixed:
            self._mixed(content, name, parent, levels - 1)
        else:
            self._particle(content, name, levels - 1)
        if len(out) == start:
            out[-1] = "/>"
        else:
            out.append(f"</{name}>")

    def _particle(self, particle: Particle, parent: str, levels: int) -> None:
        for _ in range(self._times(particle, levels)):
            if particle.kind == "element":
                self._element(particle.name, parent, levels)
            elif particle.kind == "sequence":
                for part in particle.parts:
                    self._particle(part, parent, levels)
            else:
                self._particle(self._choice(particle.parts, levels), parent, levels)

    def _times(self, particle: Particle, levels: int) -> int:
        """How often a particle occurs; not at all where it may be left out and would go too deep."""
        occurs = particle.occurs
        if occurs == "once":
            return 1
        if particle.height > levels:
            return 1 if occurs == "plus" else 0
        if occurs == "opt":
            least, most = self._shape.repeats.get(particle.name, (0, 1))
            if (least, most) == (0, 1):
                return int(self._draws.chance(self._shape.optional))
            return min(1, most)
        least, most = self._shape.repeats.get(particle.name, (0, self._shape.max_repeats))
        if occurs == "plus":
            least, most = max(1, least), max(1, most)
        return self._draws.between(least, most)

    def _choice(self, parts: tuple[Particle, ...], levels: int) -> Particle:
        """One alternative: of those that fit into the levels, which at least one does."""
        fitting = [part for part in parts if part.needed <= levels]
        return self._draws.pick(fitting)

    def _mixed(self, content: Particle, name: str, parent: str, levels: int) -> None:
        """Text and children in any order, up to `max_repeats` of them; a text comes first if there is a pool for it."""
        write_text = self._values.at(parent, name)
        last_was_text = self._values.known(parent, name)
        if last_was_text:
            self._out.append(write_text(self._draws))
        fitting = [part for part in content.parts if part.needed <= levels]
        for _ in range(self._draws.between(0, self._shape.max_repeats)):
            part = self._draws.pick(fitting)
            if part.kind == "element":
                self._particle(part, name, levels)
            elif not last_was_text:
                self._out.append(write_text(self._draws))
            last_was_text = part.kind == "text"

    def _attribute(self, element: Element, attribute: Attribute) -> None:
        is_namespace = attribute.name == "xmlns" or attribute.name.startswith("xmlns:")
        if attribute.need != "required" and not is_namespace and not self._draws.chance(self._shape.implied):
            return
        if attribute.kind in ("idref", "idrefs"):
            self._references.append((len(self._out), attribute))
            self._out.append("")
            return
        value = self._value(element, attribute)
        if value is not None:
            self._out.append(f' {attribute.name}="{value}"')

    def _value(self, element: Element, attribute: Attribute) -> str | None:
        """The value of an attribute, or None where none can be made up and none is required."""
        draws = self._draws
        if attribute.need == "fixed":
            return escaped(attribute.default or "")
        if attribute.values:
            return draws.pick(attribute.values)
        if attribute.kind == "id":
            self._ids += 1
            return f"i{self._ids}"
        if attribute.kind in ("entity", "entities"):
            if attribute.need == "required":
                raise WorkloadError(
                    f"attribute {attribute.name!r} of {element.name!r} must name an unparsed entity, which generated "
                    "documents do not declare"
                )
            return None
        draw: Callable[[Draws], str] = self._values.at(element.name, f"@{attribute.name}")
        if attribute.kind == "nmtokens" and not self._values.known(element.name, f"@{attribute.name}"):
            return " ".join(draw(draws) for _ in range(draws.between(1, self._shape.max_repeats)))
        return draw(draws)
