"""Values of texts and attributes: whole numbers, or pools that a set describes.

A pool is one of

- a list of texts: one of them;
- `format: "A{:05d}"` with `parts: [[1, 30000], [x, y, z]]`: the format filled with a draw from each part, which is a
  range of whole numbers or a list of texts;
- `words: [...]` with `count: [3, 8]`: so many of the words, in any order.

Pools are found by `parent/child`, `element/@attribute`, then `child` or `@attribute`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sardonyx.errors import SettingsError
from sardonyx.workloads.draws import Draws
from sardonyx.workloads.shapes import DocumentShape

__all__ = ["Values", "escaped"]

Draw = Callable[[Draws], str]


def escaped(text: str) -> str:
    """The text as XML content or attribute value between double quotes.

    >>> escaped('a < "b" & c')
    'a &lt; &quot;b&quot; &amp; c'
    """
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


class Values:
    """Draws values for places of a document, ready to be written.

    >>> values = Values(DocumentShape(), {"year": {"format": "{}", "parts": [[1960, 2001]]}})
    >>> 1960 <= int(values.at("book", "year")(Draws(1, "example"))) <= 2001
    True
    """

    def __init__(self, shape: DocumentShape, pools: Mapping[str, Any]) -> None:
        self._shape = shape
        self._pools = {name: self._pool(name, spec) for name, spec in pools.items()}
        self._found: dict[tuple[str, str], Draw] = {}

    def at(self, parent: str, name: str) -> Draw:
        """What draws the values of element `name` below `parent`, or of attribute `@name` of element `parent`."""
        draw = self._found.get((parent, name))
        if draw is None:
            draw = self._pools.get(f"{parent}/{name}") or self._pools.get(name) or self.number
            self._found[parent, name] = draw
        return draw

    def known(self, parent: str, name: str) -> bool:
        """Whether there is a pool for this place."""
        return f"{parent}/{name}" in self._pools or name in self._pools

    def number(self, draws: Draws) -> str:
        """A whole number from 1 to `max_value`."""
        return str(draws.rank(self._shape.max_value, self._shape.value_skew) + 1)

    def _pool(self, name: str, spec: Any) -> Draw:
        skew = self._shape.value_skew
        match spec:
            case [_, *_]:
                texts = [escaped(str(text)) for text in spec]
                return lambda draws: draws.pick(texts, skew)
            case {"format": str(layout), "parts": list(parts)}:
                layout = escaped(layout)
                drawn = [self._part(part) for part in parts]
                return lambda draws: layout.format(*[draw(draws) for draw in drawn])
            case {"words": [_, *_] as words, "count": [int(least), int(most)]}:
                texts = [escaped(str(word)) for word in words]
                return lambda draws: " ".join(draws.pick(texts, skew) for _ in range(draws.between(least, most)))
        raise SettingsError(f"the values of {name!r} are {spec!r}; they must be a list, a format with parts or words")

    def _part(self, part: Any) -> Callable[[Draws], Any]:
        match part:
            case [int(least), int(most)]:
                return lambda draws: draws.between(least, most)
            case [str(), *_]:
                texts = [escaped(str(text)) for text in part]
                return lambda draws: draws.pick(texts, self._shape.value_skew)
        raise SettingsError(f"a part of a format is {part!r}; it must be a range [least, most] or a list of texts")
