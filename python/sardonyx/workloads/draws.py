"""Draws that are the same on every machine and with every version of Python: all of them are made of `random()`.

Of Python's generator only `random()` is promised to give the same numbers for the same seed in later versions.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from typing import TypeVar

__all__ = ["Draws"]

T = TypeVar("T")


@lru_cache(maxsize=4096)
def _shares(ranks: int, skew: float) -> tuple[float, ...]:
    """Running sums of the weights 1/rank^skew."""
    return tuple(accumulate(rank**-skew for rank in range(1, ranks + 1)))


class Draws:
    """A stream of random choices that a seed and a purpose determine.

    >>> draws = Draws(1, "documents")
    >>> [draws.between(1, 6) for _ in range(5)]
    [6, 1, 5, 3, 5]
    >>> draws.pick(["red", "green", "blue"])
    'red'
    """

    __slots__ = ("random",)

    def __init__(self, seed: int, purpose: str) -> None:
        self.random = random.Random(f"{purpose} {seed}").random  # noqa: S311  nothing secret is made of it

    def below(self, bound: int) -> int:
        """A number from 0 to `bound` - 1, all equally likely."""
        return int(self.random() * bound)

    def between(self, least: int, most: int) -> int:
        """A number from `least` to `most`, both included."""
        return least + int(self.random() * (most - least + 1))

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self.random() < probability

    def around(self, mean: float) -> int:
        """One of the two whole numbers around `mean`, so that the mean of many draws is `mean`."""
        return int(mean + self.random())

    def rank(self, ranks: int, skew: float = 0.0) -> int:
        """A number from 0 to `ranks` - 1: the k-th with a weight of 1/k^`skew` (Zipf's distribution)."""
        if skew == 0.0:
            return int(self.random() * ranks)
        shares = _shares(ranks, skew)
        return min(bisect_right(shares, self.random() * shares[-1]), ranks - 1)

    def pick(self, choices: Sequence[T], skew: float = 0.0) -> T:
        """One of several, the first ones preferred where there is a `skew`."""
        return choices[self.rank(len(choices), skew)]
