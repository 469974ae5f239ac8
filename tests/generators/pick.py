"""One source of choices for every generator: Hypothesis (small, shrinks) or a seeded random generator (fast, many)."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Protocol, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")


class Pick(Protocol):
    """What a generator may ask for."""

    def below(self, bound: int) -> int:
        """A whole number from 0 to `bound` - 1."""
        ...

    def of(self, options: Sequence[T]) -> T:
        """One of the options; the first is the simplest."""
        ...

    def chance(self, percent: int) -> bool:
        """True in about `percent` of 100 cases."""
        ...


class RandomPick:
    """Choices by a seeded random generator: a failing pair is known by its seed."""

    def __init__(self, seed: int) -> None:
        """`seed` decides everything that follows."""
        self._random = Random(seed)

    def below(self, bound: int) -> int:
        """A whole number from 0 to `bound` - 1."""
        return int(self._random.random() * bound)

    def of(self, options: Sequence[T]) -> T:
        """One of the options."""
        return options[int(self._random.random() * len(options))]

    def chance(self, percent: int) -> bool:
        """True in about `percent` of 100 cases."""
        return self._random.random() * 100 < percent


class HypothesisPick:
    """Choices drawn from Hypothesis; they shrink towards 0, the first option and False."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        """`draw` is that of a composite strategy."""
        self._draw = draw

    def below(self, bound: int) -> int:
        """A whole number from 0 to `bound` - 1."""
        return int(self._draw(st.integers(0, bound - 1)))

    def of(self, options: Sequence[T]) -> T:
        """One of the options."""
        return options[self.below(len(options))]

    def chance(self, percent: int) -> bool:
        """True in about `percent` of 100 cases."""
        return self.below(100) >= 100 - percent
