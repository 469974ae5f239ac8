"""Which values have a slice of the materialised view, within a bound of bytes; those unused for longest go first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Slices", "ViewStats"]

_ROW_BYTES = 64
"""What a row of a slice takes beside its text: seven columns and its place in the tree, roughly."""


@dataclass(slots=True)
class ViewStats:
    """How the cache of slices does."""

    hits: int = 0
    """Values of documents whose slice was there."""
    misses: int = 0
    """Values of documents whose slice had to be made."""
    evictions: int = 0
    """Slices given up for room."""
    bytes: int = 0
    """What the slices take, estimated by rows and texts."""


class Slices:
    """The values that have a slice.

    >>> slices = Slices(most_bytes=150)
    >>> slices.use("a"), slices.use("b"), slices.use("a")
    (False, False, True)
    >>> slices.grew("a", rows=1), slices.grew("b", rows=1), slices.grew("c", rows=1)
    (None, None, None)
    >>> list(slices.evicted()), slices.stats.bytes
    (['b'], 130)
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._sizes: OrderedDict[str, int] = OrderedDict()
        self.stats = ViewStats()

    def use(self, value: str) -> bool:
        """Whether there is a slice of this value; from now on there is one."""
        is_there = value in self._sizes
        if is_there:
            self.stats.hits += 1
            self._sizes.move_to_end(value)
        else:
            self.stats.misses += 1
            self._sizes[value] = 0
        return is_there

    def grew(self, value: str, rows: int) -> None:
        """So many rows were added to a slice."""
        size = rows * (_ROW_BYTES + len(value))
        self._sizes[value] = self._sizes.get(value, 0) + size
        self.stats.bytes += size

    def evicted(self) -> Iterator[str]:
        """Give up slices until the others have room; each has to be deleted."""
        while self.stats.bytes > self._most_bytes and self._sizes:
            value, size = self._sizes.popitem(last=False)
            self.stats.bytes -= size
            self.stats.evictions += 1
            yield value

    def clear(self) -> None:
        """Forget all of them."""
        self._sizes.clear()
        self.stats.bytes = 0
