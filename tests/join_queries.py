"""Joins as structures: what a query of XSCL says, before it is written as text.

Names of elements are written with a "~" before them inside plain conditions and relative paths of constructors, so
that a default namespace can be put in for libxml2, which knows none.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property


@dataclass(frozen=True)
class Step:
    """A step: "/" or "//" before it, its node test, what its predicates ask for, and the variable bound to its node.

    Each predicate is a tuple of conjuncts: patterns that bind variables, and XPath texts that bind none.
    """

    separator: str
    test: str
    predicates: "tuple[tuple[Pattern | str, ...], ...]" = ()
    variable: str | None = None

    @property
    def binds(self) -> bool:
        """Whether the step or one of its predicates binds a variable."""
        return self.variable is not None or self.has_pattern

    @property
    def has_pattern(self) -> bool:
        """Whether one of its predicates binds a variable."""
        return any(not isinstance(conjunct, str) for predicate in self.predicates for conjunct in predicate)


@dataclass(frozen=True)
class Pattern:
    """A relative path inside a predicate that binds at least one variable."""

    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Block:
    """A pattern on the documents of one stream."""

    stream: str | None
    steps: tuple[Step, ...]

    @property
    def counts(self) -> bool:
        """Whether a condition in it asks for positions, so that what stands before it may not be moved."""
        return any(
            isinstance(conjunct, str) and (conjunct.isdigit() or "position()" in conjunct or "last()" in conjunct)
            for step in steps_of(self.steps)
            for predicate in step.predicates
            for conjunct in predicate
        )

    @property
    def root(self) -> int:
        """The number of the step whose node is the root: the first that binds something, or else the last."""
        return next((at for at, step in enumerate(self.steps) if step.binds), len(self.steps) - 1)


@dataclass(frozen=True)
class Operand:
    """A side of an equality: a variable, perhaps a path below it, and the normals around it, the outermost first."""

    variable: str
    path: tuple[Step, ...] = ()
    normals: tuple[str, ...] = ()

    @cached_property
    def name(self) -> str:
        """The name of the node that it stands for: its variable's, or one for its path below that variable."""
        return f"{self.variable}{self.path}" if self.path else self.variable


@dataclass(frozen=True)
class Equality:
    """Two operands whose string-values have to be equal."""

    left: Operand
    right: Operand


@dataclass(frozen=True)
class Operator:
    """JOIN or FOLLOWED BY, with its equalities and its window in microseconds; None is no end."""

    kind: str
    equalities: tuple[Equality, ...]
    window_us: int | None


@dataclass(frozen=True)
class Content:
    """Something in a constructor: a copy of nodes, their text or their number; or text as it is."""

    kind: str  # copy, string, count, text
    variable: str = ""
    path: str = ""
    text: str = ""


@dataclass(frozen=True)
class Element:
    """A constructed element; its attributes are (name, variable) pairs."""

    name: str
    attributes: tuple[tuple[str, str], ...] = ()
    content: "tuple[Content | Element, ...]" = ()

    def variables(self) -> set[str]:
        """The variables that it uses."""
        found = {variable for _, variable in self.attributes}
        for part in self.content:
            found |= part.variables() if isinstance(part, Element) else {part.variable} - {""}
        return found


@dataclass(frozen=True)
class Query:
    """A query of XSCL; `select` None is `SELECT *`."""

    blocks: tuple[Block, ...]
    operators: tuple[Operator, ...] = ()
    select: Element | None = None
    publish: str | None = None
    namespaces: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Subscription:
    """A query under an id, with the stream that its blocks hear if they name none."""

    id: str
    query: Query
    stream: str | None = None


@dataclass(frozen=True)
class Message:
    """A published document."""

    id: str
    stream: str | None
    timestamp_us: int
    xml: str
    derived: bool = False

    @property
    def key(self) -> tuple[str | None, str, int]:
        """What makes it a repetition of another one."""
        return self.stream, self.id, self.timestamp_us


def steps_of(steps: tuple[Step, ...]) -> Iterator[Step]:
    """All steps of a path and of the patterns in its predicates."""
    for step in steps:
        yield step
        for predicate in step.predicates:
            for conjunct in predicate:
                if not isinstance(conjunct, str):
                    yield from steps_of(conjunct.steps)


def variables_of(steps: tuple[Step, ...]) -> list[str]:
    """The variables that a path binds, also inside predicates."""
    return [step.variable for step in steps_of(steps) if step.variable is not None]
