"""Transformations drawn from samples: FLWR expressions around an element of a sample, with conditions that hold there.

So every transformation has a result for at least one sample. The parameters are those of `TransformationShape`; its
docstring says where they come from. No query meets an error: only what is a number everywhere is compared as a number
or added up, and what is ordered by is one value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from sardonyx.workloads.comparisons import satisfied
from sardonyx.workloads.draws import Draws
from sardonyx.workloads.query_generator import path_text, repeated, way
from sardonyx.workloads.samples import Node, Samples, is_number
from sardonyx.workloads.shapes import TransformationShape

__all__ = ["generate"]

_TRIES = 16
"""Draws of a path until it is short enough and not there yet."""


def generate(samples: Samples, shape: TransformationShape, draws: Draws) -> Iterator[str]:
    """Transformations without end; raises `WorkloadError` when the samples give no further one of this shape.

    >>> samples = Samples([b"<order id='7'><item>pen</item></order>"])
    >>> shape = TransformationShape(predicates=1, returns=1, wildcard=0, descendant=0)
    >>> print(next(generate(samples, shape, Draws(1, "example"))))
    <result>{for $v in /order where $v/item="pen" return <item>{$v/item}</item>}</result>
    """
    return repeated(_Writer(samples, shape, draws).query, "transformations", shape.distinct)


class _Writer:
    """Draws one transformation after the other."""

    def __init__(self, samples: Samples, shape: TransformationShape, draws: Draws) -> None:
        self._samples = samples
        self._shape = shape
        self._draws = draws
        pairs = zip(samples.nodes, samples.levels, strict=True)
        self._able = [node for node, level in pairs if node.children and level < shape.depth]

    def query(self) -> str | None:
        """A transformation, or None where no element was found that has enough below it."""
        shape, draws = self._shape, self._draws
        predicates, returns = draws.around(shape.predicates), max(1, draws.around(shape.returns))
        is_ordered, is_nested = draws.chance(shape.order_by), draws.chance(shape.nested)
        for _ in range(_TRIES if self._able else 0):
            node = draws.pick(self._able)
            chain = node.chain()
            levels = shape.depth - len(chain)
            source = path_text(chain, shape, draws)
            comparisons = self._several(predicates, lambda: self._comparison("$v", node, levels))  # noqa: B023
            paths = self._several(returns, lambda: self._returned("$v", node, levels))  # noqa: B023
            nested = self._nested(node, levels) if is_nested else ""
            if comparisons is None or paths is None or nested is None:
                continue
            where = f" where {' and '.join(comparisons)}" if comparisons else ""
            order = f" order by {self._key(node)}" if is_ordered else ""
            content = "".join(f"{{{path}}}" for path in (*paths, nested) if path)
            return f"<result>{{for $v in {source}{where}{order} return <item>{content}</item>}}</result>"
        return None

    def _several(self, count: int, draw: Callable[[], str | None]) -> list[str] | None:
        """So many different texts, or None where there are not so many."""
        found: list[str] = []
        for _ in range(count):
            for _ in range(_TRIES):
                text = draw()
                if text is not None and text not in found:
                    found.append(text)
                    break
            else:
                return None
        return found

    def _path(self, variable: str, steps: Sequence[Node], keep_end: bool = False) -> str:
        """A path down from a variable; `keep_end`: its last step is no `*`."""
        fixed = (len(steps) - 1,) if keep_end else ()
        return variable + path_text(steps, self._shape, self._draws, fixed)

    def _comparison(self, variable: str, node: Node, levels: int) -> str | None:
        """A comparison that holds for a value at or below the element; None where the one drawn is too deep."""
        draws = self._draws
        first, end = self._samples.holders(node)
        start = first - 1 if node.facts else first
        if start == end:
            return None
        place = draws.between(start, end - 1)
        holder = node if place < first else self._samples.holder(place)
        steps = [] if holder is node else way(node, holder)
        if len(steps) > levels:
            return None
        fact = draws.pick(holder.facts)
        equality = self._shape.equality
        if equality < 1 and is_number(fact.value) and not self._samples.are_numbers(holder.name, fact.attribute):
            equality = 1.0
        subject = self._path(variable, steps, keep_end=equality < 1)
        if fact.attribute:
            subject += f"/@{fact.attribute}"
        return satisfied(subject, fact, equality, draws).replace("&", "&amp;")

    def _returned(self, variable: str, node: Node, levels: int) -> str | None:
        """A path to a descendant of the element, perhaps in an aggregate; None where the one drawn is too deep."""
        draws = self._draws
        below = self._samples.nodes[draws.between(node.number + 1, node.end - 1)]
        steps = way(node, below)
        if len(steps) > levels:
            return None
        if not draws.chance(self._shape.aggregates):
            return self._path(variable, steps)
        choices = ("count", "sum", "min", "max", "avg") if self._samples.are_numbers(below.name, "") else ("count",)
        return f"{draws.pick(choices)}({self._path(variable, steps, keep_end=True)})"

    def _key(self, node: Node) -> str:
        """What to order by: an attribute, or the first child of a name."""
        keys = [f"@{fact.attribute}" for fact in node.facts if fact.attribute]
        keys += dict.fromkeys(f"{child.name}[1]" for child in node.children)
        return f"$v/{self._draws.pick(keys)}{' descending' if self._draws.chance(0.5) else ''}"

    def _nested(self, node: Node, levels: int) -> str | None:
        """A FLWR expression over descendants of the element; None where none was found that has enough below it."""
        for _ in range(_TRIES):
            below = self._samples.nodes[self._draws.between(node.number + 1, node.end - 1)]
            steps = way(node, below)
            left = levels - len(steps)
            if not below.children or left < 1:
                continue
            source = self._path("$v", steps)
            comparison, path = self._comparison("$w", below, left), self._returned("$w", below, left)
            if comparison is not None and path is not None:
                return f"for $w in {source} where {comparison} return <part>{{{path}}}</part>"
        return None
