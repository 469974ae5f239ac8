"""Templates of joins: as many as the literature counts, the same for isomorphic graphs and for no others."""

from __future__ import annotations

import itertools
import random
import time

import pytest

from sardonyx.joins.templates import JoinGraph, canonical, reduced

FLAT = (-1, 0, 0, 0, 0)
"""A root with four leaves: as many as 4 equalities can compare."""
COMPLEX = (-1, 0, 1, 1, 1, 0, 5, 5, 0, 8)
"""A root, elements below it with 3, 2 and 1 leaves: 3 equalities can lie below one, two or three of them."""


def leaves(parents: tuple[int, ...]) -> list[int]:
    return [node for node in range(len(parents)) if node not in parents]


def templates(parents: tuple[int, ...], equalities: int) -> set[JoinGraph]:
    """Those of all queries with so many equalities over documents of one form."""
    pairs = list(itertools.product(leaves(parents), repeat=2))
    chosen = itertools.combinations(pairs, equalities)
    # Many queries differ in names only; the reduced graph is the same then.
    distinct = {reduced(JoinGraph(parents, parents, equalities)) for equalities in chosen}
    return {canonical(graph).graph for graph in distinct}


def shuffled(graph: JoinGraph, seed: int) -> JoinGraph:
    """The same graph with its nodes and equalities in another order."""
    draw = random.Random(seed)
    sides = []
    for parents in (graph.left, graph.right):
        order = [0]
        while len(order) < len(parents):
            order.append(draw.choice([n for n, p in enumerate(parents) if n not in order and p in order]))
        place = {node: at for at, node in enumerate(order)}
        sides.append((tuple(place.get(parents[node], -1) for node in order), place))
    (left, places), (right, other) = sides
    pairs = [(places[a], other[b]) for a, b in graph.equalities]
    draw.shuffle(pairs)
    return JoinGraph(left, right, tuple(pairs))


def drawn(seed: int, most: int = 4) -> JoinGraph:
    draw = random.Random(seed)
    sides = [(-1, *(draw.randrange(node) for node in range(1, draw.randint(1, 6)))) for _ in range(2)]
    count = draw.randint(1, most)
    pairs = tuple((draw.randrange(len(sides[0])), draw.randrange(len(sides[1]))) for _ in range(count))
    return reduced(JoinGraph(sides[0], sides[1], pairs))


def are_isomorphic(one: JoinGraph, other: JoinGraph) -> bool:
    """By trying every way to map nodes on nodes."""

    def maps(parents: tuple[int, ...], onto: tuple[int, ...]) -> list[tuple[int, ...]]:
        if len(parents) != len(onto):
            return []
        ways = itertools.permutations(range(len(parents)))
        return [
            way
            for way in ways
            if all(onto[way[n]] == (way[p] if p >= 0 else -1) for n, p in enumerate(parents))
        ]  # fmt: skip

    wanted = sorted(other.equalities)
    return any(
        sorted((left[a], right[b]) for a, b in one.equalities) == wanted
        for left in maps(one.left, other.left)
        for right in maps(one.right, other.right)
    )


class TestCounts:
    @pytest.mark.parametrize(("equalities", "count"), [(1, 1), (2, 3), (3, 6), (4, 16)])
    def test_two_levels(self, equalities: int, count: int) -> None:
        assert len(templates(FLAT, equalities)) == count

    @pytest.mark.parametrize(("equalities", "count"), [(1, 1), (2, 3), (3, 16)])
    def test_three_levels(self, equalities: int, count: int) -> None:
        assert len(templates(COMPLEX, equalities)) == count


class TestReduced:
    @pytest.mark.parametrize(
        ("graph", "expected"),
        [
            # A root with one way down is left out, as is what lies between.
            (JoinGraph((-1, 0, 1), (-1,), ((2, 0),)), JoinGraph((-1,), (-1,), ((0, 0),))),
            # A node that is compared stays, also above others.
            (JoinGraph((-1, 0, 1), (-1,), ((2, 0), (1, 0))), JoinGraph((-1, 0), (-1,), ((1, 0), (0, 0)))),
            # Ways part in the element, not in the root.
            (
                JoinGraph((-1, 0, 1, 1, 0), (-1, 0, 0), ((2, 1), (3, 2))),
                JoinGraph((-1, 0, 0), (-1, 0, 0), ((1, 1), (2, 2))),
            ),
            # Ways part in both.
            (
                JoinGraph((-1, 0, 1, 1, 0, 4), (-1,), ((2, 0), (3, 0), (5, 0))),
                JoinGraph((-1, 0, 1, 1, 0), (-1,), ((2, 0), (3, 0), (4, 0))),
            ),
        ],
    )
    def test_what_stays(self, graph: JoinGraph, expected: JoinGraph) -> None:
        assert reduced(graph) == expected
        assert reduced(expected) == expected

    @pytest.mark.parametrize(
        ("left", "right", "equalities", "words"),
        [
            ((0,), (-1,), ((0, 0),), "no root"),
            ((), (-1,), ((0, 0),), "no root"),
            ((-1, 2, 0), (-1,), ((0, 0),), "does not come before"),
            ((-1, -1), (-1,), ((0, 0),), "does not come before"),
            ((-1,), (-1,), (), "without equalities"),
            ((-1,), (-1,), ((0, 1),), "that there are not"),
        ],
    )
    def test_what_is_no_graph(
        self, left: tuple[int, ...], right: tuple[int, ...], equalities: tuple[tuple[int, int], ...], words: str
    ) -> None:
        with pytest.raises(ValueError, match=words):
            JoinGraph(left, right, equalities)


class TestCanonical:
    @pytest.mark.parametrize("seed", range(150))
    def test_order_does_not_matter(self, seed: int) -> None:
        graph = drawn(seed, most=6)
        assert canonical(shuffled(graph, seed)).graph == canonical(graph).graph

    def test_equal_exactly_if_isomorphic(self) -> None:
        graphs = [drawn(seed) for seed in range(60)]
        forms = [canonical(graph).graph for graph in graphs]
        same = 0
        for (one, form), (other, other_form) in itertools.combinations(zip(graphs, forms, strict=True), 2):
            assert (form == other_form) == are_isomorphic(one, other), (one, other)
            same += form == other_form
        assert same > 20

    @pytest.mark.parametrize("seed", range(50))
    def test_it_says_where_the_nodes_were(self, seed: int) -> None:
        graph = drawn(seed, most=6)
        made = canonical(graph)
        for parents, form, order in (
            (graph.left, made.graph.left, made.left),
            (graph.right, made.graph.right, made.right),
        ):
            assert sorted(order) == list(range(len(parents)))
            assert [order[parent] if parent >= 0 else -1 for parent in form] == [parents[node] for node in order]
        assert sorted(made.equalities) == list(range(len(graph.equalities)))
        for place, (left, right) in zip(made.equalities, made.graph.equalities, strict=True):
            assert graph.equalities[place] == (made.left[left], made.right[right])

    def test_left_is_not_right(self) -> None:
        one, other = JoinGraph((-1, 0, 0), (-1,), ((1, 0), (2, 0))), JoinGraph((-1,), (-1, 0, 0), ((0, 1), (0, 2)))
        assert canonical(one).graph != canonical(other).graph

    def test_symmetric_graphs_of_six_equalities(self) -> None:
        star = (-1, *[0] * 6)
        paired = (-1, 0, 0, 0, 1, 1, 2, 2, 3, 3)
        for left, right in itertools.product((star, paired), repeat=2):
            ways = [zip(leaves(left), other, strict=True) for other in itertools.permutations(leaves(right))]
            graphs = [JoinGraph(left, right, tuple(way)) for way in ways[::37]]
            forms = {canonical(graph).graph for graph in graphs}
            # Pairs against pairs: their halves meet in three, two and one, or no pairs.
            assert len(forms) == (3 if left == right == paired else 1)

    def test_work_is_bounded(self) -> None:
        star = (-1, *[0] * 60)
        graph = JoinGraph(star, star, tuple((node, node) for node in range(1, 61)))
        began = time.process_time()
        assert canonical(graph) == canonical(graph)
        assert time.process_time() - began < 30
