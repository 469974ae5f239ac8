"""Queries drawn from samples: each is the path to an element of a sample, with conditions that hold there.

So every query, and every predicate of it by itself, is true of at least one sample. The parameters are those of
`QueryShape`; its docstring says where they come from.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence

from sardonyx.errors import WorkloadError
from sardonyx.workloads.comparisons import refuted, satisfied
from sardonyx.workloads.draws import Draws
from sardonyx.workloads.samples import Fact, Node, Samples
from sardonyx.workloads.shapes import PathShape, QueryShape

__all__ = ["generate", "path_text", "repeated", "way"]

_FRUITLESS = 2_000
"""Draws in a row without a new query after which there are taken to be no more."""
_TRIES = 8
"""Draws of a condition until it is one that its step does not have yet."""
_RARE_TRIES = 200
"""The same where frequent values are mostly passed over."""


def generate(samples: Samples, shape: QueryShape, draws: Draws) -> Iterator[str]:
    """Queries without end; raises `WorkloadError` when the samples give no further one of this shape.

    >>> samples = Samples([b"<order id='7'><item>pen</item></order>"])
    >>> queries = generate(samples, QueryShape(predicates=1, wildcard=0), Draws(1, "example"))
    >>> print(next(queries), next(queries))
    /order[@id="7"] /order[@id="7"]/item
    """
    return repeated(_Writer(samples, shape, draws).query, "queries", shape.distinct)


def repeated(
    draw: Callable[[], str | None],
    what: str,
    distinct: bool,
    advice: str = "more samples, more depth or other probabilities",
) -> Iterator[str]:
    """What is drawn again and again; None is left out, and what came before where all are to be `distinct`.

    Raises `WorkloadError` when there is nothing new for long; `what` says in it what is drawn, `advice` what to try.
    """
    seen: set[str] = set()
    count = 0
    fruitless = 0
    while True:
        query = draw()
        if query is None or query in seen:
            fruitless += 1
            if fruitless > _FRUITLESS:
                raise WorkloadError(
                    f"there are only {count} {'distinct ' if distinct else ''}{what} of this shape; try {advice}"
                )
            continue
        fruitless = 0
        count += 1
        if distinct:
            seen.add(query)
        yield query


def path_text(
    chain: Sequence[Node],
    shape: PathShape,
    draws: Draws,
    fixed: Container[int] = (),
    suffix: Callable[[int], str] | None = None,
) -> str:
    """A chain of elements as a path; the steps with a `fixed` number are neither left out nor made `*`.

    `suffix` gives what stands behind such a step, if anything does.
    """
    out = []
    gap = False
    last = len(chain) - 1
    for number, node in enumerate(chain):
        is_fixed = number in fixed
        if draws.chance(shape.descendant):
            if not draws.chance(shape.skip):
                gap = True
            elif not is_fixed and number < last:
                gap = True
                continue
        name = "*" if not is_fixed and draws.chance(shape.wildcard) else node.name
        out.append(("//" if gap else "/") + name)
        if is_fixed and suffix is not None:
            out.append(suffix(number))
        gap = False
    return "".join(out)


class _Writer:
    """Draws one query after the other."""

    def __init__(self, samples: Samples, shape: QueryShape, draws: Draws) -> None:
        self._samples = samples
        self._shape = shape
        self._draws = draws
        self._ends = [node for node, level in zip(samples.nodes, samples.levels, strict=True) if level <= shape.depth]
        self._groups: dict[int, list[list[Node]]] = {}

    def query(self) -> str | None:
        """A query, or None where the chosen element has too few values for the predicates."""
        shape, draws = self._shape, self._draws
        chain = self._walk().chain() if shape.zipf is not None else draws.pick(self._ends).chain()
        conditions: list[list[str]] = [[] for _ in chain]
        for _ in range(draws.around(shape.predicates)):
            if not self._add_predicate(chain, conditions):
                return None
        for _ in range(shape.nested_paths):
            if not self._add_nested_path(chain, conditions):
                return None
        return self._path(chain, conditions)

    def _walk(self) -> Node:
        """An element reached from a root by choosing names; the level at which to stop is drawn first."""
        draws, skew = self._draws, self._shape.zipf or 0.0
        node = draws.pick(self._samples.roots)
        for _ in range(draws.below(self._shape.depth)):
            groups = self._groups.get(node.number)
            if groups is None:
                by_name: dict[str, list[Node]] = {}
                for child in node.children:
                    by_name.setdefault(child.name, []).append(child)
                groups = [by_name[name] for name in sorted(by_name, key=self._samples.ranks.__getitem__)]
                self._groups[node.number] = groups
            if not groups:
                break
            node = draws.pick(draws.pick(groups, skew))
        return node

    def _path(self, chain: Sequence[Node], conditions: Sequence[Sequence[str]] = ()) -> str:
        """The chain as a path; steps with conditions are neither left out nor made `*`."""
        fixed = [number for number, here in enumerate(conditions) if here]
        return path_text(chain, self._shape, self._draws, fixed, lambda number: self._brackets(conditions[number]))

    def _below(self, nodes: Sequence[Node]) -> str:
        """A chain of descendants as a relative path."""
        path = self._path(nodes)
        return f".{path}" if path.startswith("//") else path[1:]

    def _brackets(self, conditions: Sequence[str]) -> str:
        shape = self._shape
        text = f"[{conditions[0]}"
        for condition in conditions[1:]:
            draw = self._draws.random()
            if draw < shape.conjunction:
                text += f" and {condition}"
            elif draw < shape.conjunction + shape.disjunction:
                text += f" or {condition}"
            else:
                text += f"][{condition}"
        return text + "]"

    def _add_predicate(self, chain: Sequence[Node], conditions: Sequence[list[str]]) -> bool:
        """Draw a predicate for one of the steps; False where the steps have no further one."""
        draws = self._draws
        for _ in range(_RARE_TRIES if self._shape.even_values else _TRIES):
            branch = draws.chance(self._shape.branches)
            if branch:
                able = [number for number, node in enumerate(chain) if len(range(*self._samples.holders(node)))]
            else:
                able = [number for number, node in enumerate(chain) if node.facts]
            if not able:
                continue
            place = draws.pick(able)
            condition = self._branch(chain[place]) if branch else self._own(chain[place])
            if condition is not None and condition not in conditions[place]:
                conditions[place].append(condition)
                return True
        return False

    def _fact(self, node: Node) -> Fact | None:
        """One of an element's values; None for most of the occurrences of a frequent one, where that is asked for."""
        fact = self._draws.pick(node.facts)
        if self._shape.even_values and not self._draws.chance(1 / fact.pool.counts[fact.value]):
            return None
        return fact

    def _own(self, node: Node) -> str | None:
        """A predicate on an attribute or the text of the step's element."""
        fact = self._fact(node)
        if fact is None:
            return None
        subject = f"@{fact.attribute}" if fact.attribute else "text()"
        return self._atomic(subject, subject, fact, [node])

    def _branch(self, node: Node) -> str | None:
        """A predicate on an attribute or the text of a descendant of the step's element."""
        first, end = self._samples.holders(node)
        holder = self._samples.holder(self._draws.between(first, end - 1))
        steps = way(node, holder)
        fact = self._fact(holder)
        if fact is None:
            return None
        tail = f"/@{fact.attribute}" if fact.attribute else ""
        exact = "/".join(step.name for step in steps) + tail
        reached = [node]
        if self._shape.negation:
            for step in steps:
                reached = [child for above in reached for child in above.children if child.name == step.name]
        return self._atomic(self._below(steps) + tail, exact, fact, reached)

    def _atomic(self, subject: str, exact: str, fact: Fact, reached: Sequence[Node]) -> str:
        """A comparison that holds, or `not()` of one that does not; `exact` selects from the elements `reached`."""
        equality, draws = self._shape.equality, self._draws
        if draws.chance(self._shape.negation) and not any(node.opaque for node in reached):
            present = {other.value for node in reached for other in node.facts if other.attribute == fact.attribute}
            comparison = refuted(exact, fact, present, equality, draws)
            if comparison is not None:
                return f"not({comparison})"
        return satisfied(subject, fact, equality, draws)

    def _add_nested_path(self, chain: Sequence[Node], conditions: Sequence[list[str]]) -> bool:
        """Draw a path to a descendant of one of the steps, within the depth; False where there is no further one."""
        draws = self._draws
        able = [number for number, node in enumerate(chain) if node.children and number + 1 < self._shape.depth]
        if not able:
            return False
        for _ in range(_TRIES):
            place = draws.pick(able)
            node = chain[place]
            below = self._samples.nodes[draws.between(node.number + 1, node.end - 1)]
            condition = self._below(way(node, below)[: self._shape.depth - place - 1])
            if condition not in conditions[place]:
                conditions[place].append(condition)
                return True
        return False


def way(above: Node, below: Node) -> list[Node]:
    """The elements from below the one down to the other."""
    nodes = [below]
    while (parent := nodes[-1].parent) is not above:
        assert parent is not None, "the elements must be one below the other"
        nodes.append(parent)
    return nodes[::-1]
