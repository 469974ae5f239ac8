"""Join graphs and templates: which joins have the same form, so that one evaluation serves all of them.

A join graph has a tree of pattern nodes for each of the two blocks, and an edge for each equality between them.
Reduced, it keeps the nodes that are compared and those where ways to compared nodes part. Two joins are of one
*template* if their reduced graphs are isomorphic, roots on roots and left on left (Hong et al., SIGMOD 2007,
section 4).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = ["Canonical", "JoinGraph", "canonical", "reduced"]

_MOST_VISITS = 300_000
"""Looks at a node after which only the first way is gone on with.

Graphs of up to 6 equalities need fewer even if no symmetry is seen: their 6! ways have less than 2,000 places to refine
at, with at most 24 nodes and 6 rounds each.
"""

Colours = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class JoinGraph:
    """Two trees, each as the parents of its nodes, and the equalities between them."""

    left: tuple[int, ...]
    """The parent of each node of the left block, -1 for the root; parents come before their children."""
    right: tuple[int, ...]
    """The same for the right block."""
    equalities: tuple[tuple[int, int], ...]
    """A node of the left and one of the right block each; two functions of the same nodes give an equality twice."""

    def __post_init__(self) -> None:
        """Refuse what is no such graph."""
        for parents in (self.left, self.right):
            if not parents or parents[0] != -1:
                raise ValueError(f"the first node of {parents} is no root")
            if any(not 0 <= parent < node for node, parent in enumerate(parents) if node):
                raise ValueError(f"in {parents} a parent does not come before its child")
        if not self.equalities:
            raise ValueError("a join without equalities has no template")
        for left, right in self.equalities:
            if not (0 <= left < len(self.left) and 0 <= right < len(self.right)):
                raise ValueError(f"the equality of {left} and {right} is of nodes that there are not")


@dataclass(frozen=True, slots=True)
class Canonical:
    """A join graph in the one form that all isomorphic ones have, and where its nodes were before."""

    graph: JoinGraph
    """The form. Graphs of more than 6 equalities that are very symmetric may have several."""
    left: tuple[int, ...]
    """For each node of the left block in the form: which one it is in the given graph."""
    right: tuple[int, ...]
    """The same for the right block."""
    equalities: tuple[int, ...]
    """For each equality in the form: which one it is in the given graph."""


def reduced(graph: JoinGraph) -> JoinGraph:
    """The graph without nodes below which nothing is compared, and without those that only lie on the way to one other.

    >>> reduced(JoinGraph((-1, 0, 1, 1), (-1, 0), ((3, 1),)))
    JoinGraph(left=(-1,), right=(-1,), equalities=((0, 0),))
    """
    left, left_places = _reduced_tree(graph.left, {left for left, _ in graph.equalities})
    right, right_places = _reduced_tree(graph.right, {right for _, right in graph.equalities})
    return JoinGraph(left, right, tuple((left_places[a], right_places[b]) for a, b in graph.equalities))


def _reduced_tree(parents: tuple[int, ...], compared: set[int]) -> tuple[tuple[int, ...], dict[int, int]]:
    """The parents of the nodes that stay, and their new numbers by old ones."""
    wanted = set(compared)
    branches: Counter[int] = Counter()
    for node in range(len(parents) - 1, 0, -1):
        if node in wanted:
            wanted.add(parents[node])
            branches[parents[node]] += 1
    places: dict[int, int] = {}
    nearest: dict[int, int] = {-1: -1}
    stay: list[int] = []
    for node, parent in enumerate(parents):
        nearest[node] = nearest[parent]
        if node in compared or (node in wanted and branches[node] > 1):
            places[node] = nearest[node] = len(stay)
            stay.append(nearest[parent])
    return tuple(stay), places


def canonical(graph: JoinGraph) -> Canonical:
    """The form of a graph that does not depend on the order of its nodes and equalities.

    >>> one = JoinGraph((-1, 0, 0), (-1, 0, 0), ((1, 1), (1, 2)))
    >>> other = JoinGraph((-1, 0, 0), (-1, 0, 0), ((2, 2), (2, 1)))
    >>> canonical(one).graph == canonical(other).graph
    True
    """
    return _Search(graph).found()


class _Search:
    """Individualisation and refinement: nodes get colours by what is around them, then one of several alike is chosen.

    Every choice among nodes of one colour is tried, save those that a symmetry found before maps to one tried already;
    the smallest of the graphs that come out is the form.
    """

    def __init__(self, graph: JoinGraph) -> None:
        self._graph = graph
        self._split = len(graph.left)
        count = self._split + len(graph.right)
        self._parents = [*graph.left, *(parent + self._split if parent >= 0 else -1 for parent in graph.right)]
        self._children: list[list[int]] = [[] for _ in range(count)]
        for node, parent in enumerate(self._parents):
            if parent >= 0:
                self._children[parent].append(node)
        self._partners: list[list[int]] = [[] for _ in range(count)]
        for left, right in graph.equalities:
            self._partners[left].append(right + self._split)
            self._partners[right + self._split].append(left)
        self._visits = 0
        self._best: tuple[JoinGraph, list[int]] | None = None
        self._symmetries: list[list[int]] = []

    def found(self) -> Canonical:
        """The form."""
        # Nodes begin with the colours of their sides and levels, so that left comes before right and parents before
        # children in every form.
        levels = self._levels()
        ranks = {level: rank for rank, level in enumerate(sorted(set(levels)))}
        self._explore(tuple(ranks[level] for level in levels), [])
        assert self._best is not None
        form, order = self._best
        places = {node: place for place, node in enumerate(order)}
        given = sorted(
            range(len(self._graph.equalities)),
            key=lambda at: (places[self._graph.equalities[at][0]], places[self._graph.equalities[at][1] + self._split]),
        )
        left = tuple(order[: self._split])
        right = tuple(node - self._split for node in order[self._split :])
        return Canonical(form, left, right, tuple(given))

    def _levels(self) -> list[tuple[bool, int]]:
        levels: list[tuple[bool, int]] = []
        for node, parent in enumerate(self._parents):
            levels.append((node >= self._split, levels[parent][1] + 1 if parent >= 0 else 0))
        return levels

    def _refined(self, colours: Colours) -> Colours:
        """The coarsest finer colours in which nodes of one colour have around them the same colours as often."""
        kinds = len(set(colours))
        while True:
            self._visits += len(colours)
            signatures = [
                (
                    colour,
                    colours[self._parents[node]] if self._parents[node] >= 0 else -1,
                    tuple(sorted(colours[child] for child in self._children[node])),
                    tuple(sorted(colours[partner] for partner in self._partners[node])),
                )
                for node, colour in enumerate(colours)
            ]
            ranks = {signature: rank for rank, signature in enumerate(sorted(set(signatures)))}
            colours = tuple(ranks[signature] for signature in signatures)
            if len(ranks) == kinds:
                return colours
            kinds = len(ranks)

    def _explore(self, colours: Colours, chosen: list[int]) -> None:
        colours = self._refined(colours)
        sizes = Counter(colours)
        open_colour = min((colour for colour, size in sizes.items() if size > 1), default=None)
        if open_colour is None:
            self._compare(colours)
            return
        tried: list[int] = []
        for node in (node for node, colour in enumerate(colours) if colour == open_colour):
            if tried and (self._visits >= _MOST_VISITS or self._is_reached(node, tried, chosen)):
                continue
            tried.append(node)
            # The node comes before the others of its colour, and every colour keeps its place among the others.
            self._explore(tuple(2 * colour + (at != node) for at, colour in enumerate(colours)), [*chosen, node])

    def _is_reached(self, node: int, tried: Iterable[int], chosen: Sequence[int]) -> bool:
        """Whether symmetries that leave the chosen nodes where they are map one of the tried nodes to this one."""
        symmetries = [each for each in self._symmetries if all(each[fixed] == fixed for fixed in chosen)]
        reached = set(tried)
        rest = list(reached)
        while rest:
            at = rest.pop()
            new = {symmetry[at] for symmetry in symmetries} - reached
            reached |= new
            rest += new
        return node in reached

    def _compare(self, colours: Colours) -> None:
        """Take the graph in the order of the colours, all of which differ, if it is the smallest so far."""
        order = sorted(range(len(colours)), key=colours.__getitem__)
        form = self._ordered(order)
        if self._best is None or _key(form) < _key(self._best[0]):
            self._best = (form, order)
        elif form == self._best[0]:
            symmetry = [0] * len(order)
            for before, after in zip(self._best[1], order, strict=True):
                symmetry[before] = after
            self._symmetries.append(symmetry)

    def _ordered(self, order: list[int]) -> JoinGraph:
        places = {node: place for place, node in enumerate(order)}
        split = self._split
        left = tuple(places[self._parents[node]] if self._parents[node] >= 0 else -1 for node in order[:split])
        right = tuple(places[self._parents[node]] - split if self._parents[node] >= 0 else -1 for node in order[split:])
        equalities = sorted((places[a], places[b + split] - split) for a, b in self._graph.equalities)
        return JoinGraph(left, right, tuple(equalities))


def _key(graph: JoinGraph) -> tuple[tuple[int, ...], tuple[int, ...], tuple[tuple[int, int], ...]]:
    return (graph.left, graph.right, graph.equalities)
