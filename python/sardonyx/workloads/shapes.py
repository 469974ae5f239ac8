"""What documents and queries shall look like: the parameters of the literature, with their usual values.

Those of documents are named after IBM's XML generator, with which YFilter, XPush and others made their documents; those
of queries follow Diao et al., "Path sharing and predicate evaluation for high-performance XML filtering" (TODS 2003,
section 6), and Gupta and Suciu, "Stream processing of XPath queries with predicates" (SIGMOD 2003, section 7); those of
transformations Diao and Franklin, "Query processing for high-volume XML message brokering" (VLDB 2003, section 6);
those of joins and their documents Hong et al., "Massively multi-query join processing in publish/subscribe systems"
(SIGMOD 2007, section 6).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Protocol, Self

from sardonyx.errors import SettingsError

__all__ = ["DocumentShape", "FeedShape", "JoinShape", "PathShape", "QueryShape", "TransformationShape", "TreeShape"]


class PathShape(Protocol):
    """The parameters that paths are written by, see `QueryShape`."""

    @property
    def wildcard(self) -> float:
        """P(*)."""

    @property
    def descendant(self) -> float:
        """P(//)."""

    @property
    def skip(self) -> float:
        """Share of these that leave a step out."""


def _check(shape: Any, name: str, least: float, most: float, whole: bool = False) -> None:
    value = getattr(shape, name)
    kinds = (int,) if whole else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds) or not least <= value <= most:
        kind = "a whole number" if whole else "a number"
        raise SettingsError(f"{name} is {value!r}; it must be {kind} between {least:g} and {most:g}")


class _Shape:
    """What all of them have in common."""

    __slots__ = ()

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> Self:
        """The shape with some parameters set by name; raises `SettingsError` for unknown names and bad values."""
        known = [item.name for item in fields(cls)]  # type: ignore[arg-type]  # all children are dataclasses
        if unknown := [name for name in values if name not in known]:
            raise SettingsError(f"unknown parameter {unknown[0]!r}; the parameters are {', '.join(known)}")
        return cls(**values)


@dataclass(frozen=True, slots=True)
class DocumentShape(_Shape):
    """What documents look like.

    >>> DocumentShape(doc_depth=8).max_repeats
    3
    >>> DocumentShape(doc_depth=0)
    Traceback (most recent call last):
    sardonyx.errors.SettingsError: doc_depth is 0; it must be a whole number between 1 and 100
    """

    doc_depth: int = 6
    """DocDepth: most levels of elements, the root being the first. Near it the content that ends soonest is chosen."""
    max_repeats: int = 3
    """MaxRepeats: most repeats of what a content model marks with `*` or `+`."""
    max_value: int = 20
    """MaxValue: texts and attributes without values of their own are whole numbers from 1 to this."""
    value_skew: float = 0.0
    """Zipf's exponent of the values: 0 makes all equally likely, 1 the k-th value k times rarer than the first."""
    optional: float = 0.5
    """Probability that what a content model marks with `?` is there."""
    implied: float = 0.4
    """Probability that an attribute is there that need not be."""
    repeats: Mapping[str, tuple[int, int]] = field(default_factory=dict, hash=False)
    """Least and most repeats by the name of the repeated element, instead of `max_repeats`."""

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        _check(self, "doc_depth", 1, 100, whole=True)
        _check(self, "max_repeats", 1, 10_000, whole=True)
        _check(self, "max_value", 1, 10**9, whole=True)
        _check(self, "value_skew", 0, 10)
        if self.value_skew and self.max_value > 10**6:
            raise SettingsError(f"max_value is {self.max_value}; with a value_skew it must be at most 1000000")
        _check(self, "optional", 0, 1)
        _check(self, "implied", 0, 1)
        if not isinstance(self.repeats, Mapping):
            raise SettingsError(f"repeats is {self.repeats!r}; it must map names of elements to [least, most]")
        for name, bounds in self.repeats.items():
            match bounds:
                case [int(least), int(most)] if 0 <= least <= most:
                    pass
                case _:
                    raise SettingsError(f"repeats of {name!r} is {bounds!r}; it must be [least, most], whole numbers")


@dataclass(frozen=True, slots=True)
class QueryShape(_Shape):
    """What queries look like: a path to an element of a sample, with conditions that hold there.

    >>> QueryShape(predicates=1.15, wildcard=0.1).depth
    6
    """

    depth: int = 6
    """Most levels of elements that the path of a query goes down."""
    wildcard: float = 0.1
    """P(*): probability that the name of a step is `*`, if no condition stands on it."""
    descendant: float = 0.2
    """P(//): probability that a step is left out and `//` reaches over it, if it is not the last one and no condition
    stands on it."""
    skip: float = 1.0
    """Share of these `//` that do leave the step out; the others stand before it, where `/` would do as well."""
    predicates: float = 0.0
    """Mean number of atomic predicates (comparisons with a value) of a query; see `Draws.around`."""
    branches: float = 0.0
    """Share of the predicates that look at a value below a step (`[a/b = 1]`) instead of at the step's own: 1 makes
    the bushy trees of XPush."""
    nested_paths: int = 0
    """Nested paths (`[a/b]`) of a query."""
    conjunction: float = 0.0
    """Probability that two conditions on one step are joined by `and`; without a connective each has its brackets."""
    disjunction: float = 0.0
    """Probability that two conditions on one step are joined by `or`."""
    negation: float = 0.0
    """Probability that a predicate says what does not hold (`not(a = 1)`)."""
    equality: float = 1.0
    """Share of `=` among the comparisons; the others are `<`, `<=`, `>`, `>=` and `!=` for numbers, `!=` and
    `contains` for other texts."""
    even_values: bool = False
    """Whether all values are equally likely to be compared with, instead of each as often as it occurs: most
    predicates then hold in few documents."""
    zipf: float | None = None
    """Zipf's exponent of the choice of a name on the way down from the root, where 0 makes all names equally likely;
    None makes every element of the samples equally likely instead."""
    distinct: bool = True
    """Whether all queries differ."""

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        _check(self, "depth", 1, 1000, whole=True)
        for name in (
            "wildcard",
            "descendant",
            "skip",
            "branches",
            "conjunction",
            "disjunction",
            "negation",
            "equality",
        ):
            _check(self, name, 0, 1)
        _check(self, "predicates", 0, 1000)
        _check(self, "nested_paths", 0, 1000, whole=True)
        if self.conjunction + self.disjunction > 1:
            raise SettingsError(
                f"conjunction and disjunction are {self.conjunction:g} and {self.disjunction:g}; "
                "together they must be at most 1"
            )
        for name in ("distinct", "even_values"):
            if not isinstance(getattr(self, name), bool):
                raise SettingsError(f"{name} is {getattr(self, name)!r}; it must be true or false")
        if self.zipf is not None:
            _check(self, "zipf", 0, 10)


@dataclass(frozen=True, slots=True)
class TransformationShape(_Shape):
    """What transformations look like: FLWR expressions, each with a result for at least one of the samples.

    `for` binds a variable by an absolute path to an element of a sample, `where` compares relative paths from there
    with constants, `return` constructs an element around what further relative paths select. How many documents satisfy
    a comparison is a matter of the range of their values (`DocumentShape.max_value`).

    >>> TransformationShape(predicates=1, returns=3).depth
    6
    """

    depth: int = 6
    """Most levels of elements that the absolute path and a relative path go down together."""
    wildcard: float = 0.1
    """P(*): probability that the name of a step is `*`."""
    descendant: float = 0.2
    """P(//): probability that a step is left out and `//` reaches over it, if it is not the last one."""
    skip: float = 1.0
    """Share of these `//` that do leave the step out; the others stand before it, where `/` would do as well."""
    predicates: float = 2.0
    """Mean number of comparisons in the `where` clause; see `Draws.around`."""
    returns: float = 2.0
    """Mean number of paths in the `return` clause; at least one is drawn."""
    equality: float = 1.0
    """Share of `=` among the comparisons; the others are those of `QueryShape`, where all values of a place are numbers
    or none is compared as one."""
    order_by: float = 0.0
    """Share of queries with `order by`: an attribute or a child of the element."""
    nested: float = 0.0
    """Share of queries with a FLWR expression in the `return` clause, over elements below and with one comparison."""
    aggregates: float = 0.0
    """Share of return paths in an aggregate: `count`, and `sum`, `min`, `max`, `avg` where all values are numbers."""
    distinct: bool = True
    """Whether all queries differ."""

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        _check(self, "depth", 2, 1000, whole=True)
        for name in ("wildcard", "descendant", "skip", "equality", "order_by", "nested", "aggregates"):
            _check(self, name, 0, 1)
        _check(self, "predicates", 0, 100)
        _check(self, "returns", 1, 100)
        if not isinstance(self.distinct, bool):
            raise SettingsError(f"distinct is {self.distinct!r}; it must be true or false")


@dataclass(frozen=True, slots=True)
class TreeShape(_Shape):
    """What the documents of `join-flat` and `join-complex` look like: a root, and leaves below it or its children.

    Each leaf has values of its own, so that leaves of different names never agree.

    >>> TreeShape(middles=3, leaves=2).names()[:3]
    (('m1', 'l1'), ('m1', 'l2'), ('m2', 'l3'))
    """

    middles: int = 0
    """Elements between the root and the leaves; 0 puts the leaves below the root (two levels instead of three)."""
    leaves: int = 6
    """Leaves below the root, or below each of the elements between."""
    values: int = 20
    """Values of a leaf, all equally likely. With 1 all documents agree in all leaves."""

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        _check(self, "middles", 0, 100, whole=True)
        _check(self, "leaves", 1, 100, whole=True)
        _check(self, "values", 1, 10**9, whole=True)

    def names(self) -> tuple[tuple[str, ...], ...]:
        """The path of each leaf below the root."""
        if not self.middles:
            return tuple((f"l{leaf}",) for leaf in range(1, self.leaves + 1))
        places = range(self.middles * self.leaves)
        return tuple((f"m{place // self.leaves + 1}", f"l{place + 1}") for place in places)


@dataclass(frozen=True, slots=True)
class FeedShape(_Shape):
    """What the items of `join-feeds` look like: few channels, and titles and addresses that hardly ever return.

    >>> FeedShape(channels=10).repeats
    0.01
    """

    channels: int = 418
    """How many channels there are."""
    channel_skew: float = 1.0
    """Zipf's exponent of the channel of an item."""
    repeats: float = 0.01
    """Share of items that repeat the address, the title and the description of one of the 1,000 before it; and, as
    often, share of those that repeat title and description at an address and in a channel of their own."""
    seconds: int = 30
    """Mean number of seconds between two items."""

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        _check(self, "channels", 1, 10**6, whole=True)
        _check(self, "channel_skew", 0, 10)
        _check(self, "repeats", 0, 0.5)
        _check(self, "seconds", 0, 10**6, whole=True)


@dataclass(frozen=True, slots=True)
class JoinShape(_Shape):
    """What joins look like: two blocks over the same documents, and equalities between leaves of them.

    >>> JoinShape(value_joins=2, least_value_joins=3)
    Traceback (most recent call last):
    sardonyx.errors.SettingsError: least_value_joins is 3; it must be a whole number between 1 and 2
    """

    value_joins: int = 4
    """Most equalities of a query."""
    least_value_joins: int = 1
    """Fewest equalities of a query; every number between is equally likely."""
    zipf: float = 0.8
    """Zipf's exponent of the choice of a leaf: 0 makes all equally likely."""
    same_name: float = 0.5
    """Share of the equalities between leaves of the same name; the leaves of the others are chosen each for itself."""
    followed_by: float = 1.0
    """Share of `FOLLOWED BY`; the others are `JOIN`."""
    window: int | None = None
    """Longest window in whole seconds, all lengths from 1 being equally likely; None: all windows are `INF`."""
    distinct: bool = False
    """Whether all queries differ."""

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        _check(self, "value_joins", 1, 100, whole=True)
        _check(self, "least_value_joins", 1, self.value_joins, whole=True)
        _check(self, "zipf", 0, 10)
        _check(self, "same_name", 0, 1)
        _check(self, "followed_by", 0, 1)
        if self.window is not None:
            _check(self, "window", 1, 10**9, whole=True)
        if not isinstance(self.distinct, bool):
            raise SettingsError(f"distinct is {self.distinct!r}; it must be true or false")
