"""Joins by SQL: hand-made tables, and random ones against a program that takes one query after the other."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from benchmarks.peers.join_loop import JoinLoop
from benchmarks.peers.join_witnesses import Witnesses

from sardonyx import Broker, BrokerSettings, Document
from sardonyx.config import JoinSettings
from sardonyx.joins.reference import JoinQuery, JoinReference, Match
from sardonyx.joins.session import JoinSession
from sardonyx.joins.slices import Slices
from sardonyx.joins.statements import Sharing, conjunctive_query
from sardonyx.joins.templates import JoinGraph
from sardonyx.workloads import load
from tests.property.profiles import PAIRS, SEED

SHARINGS: tuple[Sharing, ...] = ("none", "templates", "views")
Binding = tuple[int, int, int, int]
Value = tuple[int, int, int, str]


def tables(bindings: Sequence[Binding], values: Sequence[Value]) -> tuple[pa.Table, pa.Table]:
    """The witnesses of documents as tables."""

    def table(rows: Sequence[tuple[Any, ...]], *names: str) -> pa.Table:
        return pa.table({name: [row[place] for row in rows] for place, name in enumerate(names)})

    return (
        table(bindings, "document", "definition", "parent", "node"),
        table(values, "document", "node", "operand", "value"),
    )


def query(
    equalities: Sequence[tuple[int, int, int, int]],
    left: Sequence[tuple[int, int]] = ((0, -1), (1, 0), (2, 0)),
    right: Sequence[tuple[int, int]] = ((0, -1), (1, 0), (2, 0)),
    number: int = 1,
    operator: Any = "JOIN",
    window_us: int | None = None,
) -> JoinQuery:
    """A query over definition 0 with 1 and 2 below it, or other blocks; operand 10 is of definition 1."""
    return JoinQuery(
        query=number, template=0, operator=operator, window_us=window_us, left=left, right=right, equalities=equalities
    )


def flat(*documents: dict[int, str]) -> tuple[pa.Table, pa.Table]:
    """Documents with node 1 for definition 0 and a node below it for each further definition, by their values."""
    bindings: list[Binding] = []
    values: list[Value] = []
    for document, leaves in enumerate(documents):
        bindings.append((document, 0, -1, 1))
        for definition, value in leaves.items():
            bindings.append((document, definition, 1, 1 + definition))
            values.append((document, 1 + definition, 10 * definition, value))
    return tables(bindings, values)


def joined(queries: list[JoinQuery], documents: Sequence[tuple[int, Any]], *witnesses: pa.Table) -> list[Match]:
    """What all ways of sharing find, which has to be the same."""
    answers = [JoinReference(queries, sharing=sharing).publish(documents, *witnesses) for sharing in SHARINGS]
    answers.append(JoinLoop(queries).publish(documents, *witnesses))
    assert all(answer == answers[0] for answer in answers), answers
    return answers[0]


class TestOnePair:
    def test_all_equalities_have_to_hold(self) -> None:
        both = query([(1, 10, 1, 10), (2, 20, 2, 20)])
        crossed = query([(1, 10, 1, 20)], [(0, -1), (1, 0)], [(0, -1), (2, 0)], number=2)
        documents = [(0, "a"), (5, "b"), (9, "c")]
        witnesses = flat({1: "x", 2: "y"}, {1: "x", 2: "y"}, {1: "x", 2: "x"})
        assert joined([both, crossed], documents, *witnesses) == [
            Match(1, 0, 1, 1, 1),
            Match(1, 1, 0, 1, 1),
            Match(2, 0, 2, 1, 1),
            Match(2, 1, 2, 1, 1),
        ]

    @pytest.mark.parametrize(
        ("operator", "window_us", "times", "pairs"),
        [
            ("FOLLOWED BY", 10, (0, 10), [(0, 1)]),
            ("FOLLOWED BY", 10, (0, 11), []),
            ("FOLLOWED BY", 10, (0, 0), []),
            ("FOLLOWED BY", 10, (5, 0), [(1, 0)]),
            ("FOLLOWED BY", None, (0, 10**15), [(0, 1)]),
            ("JOIN", 10, (0, 10), [(0, 1), (1, 0)]),
            ("JOIN", 10, (10, 0), [(0, 1), (1, 0)]),
            ("JOIN", 10, (0, 11), []),
            ("JOIN", 0, (3, 3), [(0, 1), (1, 0)]),
            ("JOIN", None, (-(10**15), 10**15), [(0, 1), (1, 0)]),
        ],
    )
    def test_windows(
        self, operator: str, window_us: int | None, times: tuple[int, int], pairs: list[tuple[int, int]]
    ) -> None:
        one = query([(1, 10, 1, 10)], [(0, -1), (1, 0)], [(0, -1), (1, 0)], operator=operator, window_us=window_us)
        found = joined([one], list(zip(times, "ab", strict=True)), *flat({1: "x"}, {1: "x"}))
        assert [match[1:3] for match in found] == pairs

    def test_documents_of_one_identity_are_not_joined(self) -> None:
        one = query([(1, 10, 1, 10)], [(0, -1), (1, 0)], [(0, -1), (1, 0)])
        found = joined([one], [(0, "a"), (1, "a"), (2, "b")], *flat({1: "x"}, {1: "x"}, {1: "x"}))
        assert {match[1:3] for match in found} == {(0, 2), (2, 0), (1, 2), (2, 1)}

    def test_nodes_have_to_hang_together(self) -> None:
        """Two nodes of one definition: their leaves must not be taken from both."""
        one = query([(1, 10, 1, 10), (2, 20, 2, 20)])
        bindings = [
            (0, 0, -1, 1), (0, 1, 1, 2), (0, 2, 1, 3), (0, 0, -1, 4), (0, 1, 4, 5), (0, 2, 4, 6),
            (1, 0, -1, 1), (1, 1, 1, 2), (1, 2, 1, 3),
        ]  # fmt: skip
        values = [(0, 2, 10, "x"), (0, 3, 20, "z"), (0, 5, 10, "z"), (0, 6, 20, "y"), (1, 2, 10, "x"), (1, 3, 20, "y")]
        assert joined([one], [(0, "a"), (1, "b")], *tables(bindings, values)) == []
        values[1] = (0, 3, 20, "y")
        assert joined([one], [(0, "a"), (1, "b")], *tables(bindings, values)) == [
            Match(1, 0, 1, 1, 1),
            Match(1, 1, 0, 1, 1),
        ]

    def test_a_node_with_several_roots_above(self) -> None:
        one = query([(1, 10, 1, 10)], [(0, -1), (1, 0)], [(0, -1), (1, 0)], operator="FOLLOWED BY")
        bindings = [(0, 0, -1, 1), (0, 0, -1, 2), (0, 1, 1, 3), (0, 1, 2, 3), (1, 0, -1, 1), (1, 1, 1, 2)]
        values = [(0, 3, 10, "x"), (1, 2, 10, "x")]
        assert joined([one], [(0, "a"), (1, "b")], *tables(bindings, values)) == [
            Match(1, 0, 1, 1, 1),
            Match(1, 0, 1, 2, 1),
        ]

    def test_a_choice_of_leaves_is_no_further_match(self) -> None:
        one = query([(1, 10, 1, 10)], [(0, -1), (1, 0)], [(0, -1), (1, 0)], operator="FOLLOWED BY")
        bindings = [(0, 0, -1, 1), (0, 1, 1, 2), (0, 1, 1, 3), (1, 0, -1, 1), (1, 1, 1, 2)]
        values = [(0, 2, 10, "x"), (0, 3, 10, "x"), (1, 2, 10, "x")]
        assert joined([one], [(0, "a"), (1, "b")], *tables(bindings, values)) == [Match(1, 0, 1, 1, 1)]

    def test_roots_and_nodes_above_others_are_compared(self) -> None:
        chain = [(0, -1), (1, 0)]
        one = query([(0, 0, 0, 0), (1, 10, 1, 10)], chain, chain, operator="FOLLOWED BY")
        bindings = [(0, 0, -1, 1), (0, 1, 1, 2), (1, 0, -1, 1), (1, 1, 1, 2)]
        values = [(0, 1, 0, "all"), (0, 2, 10, "x"), (1, 1, 0, "all"), (1, 2, 10, "x")]
        assert len(joined([one], [(0, "a"), (1, "b")], *tables(bindings, values))) == 1
        values[2] = (1, 1, 0, "else")
        assert joined([one], [(0, "a"), (1, "b")], *tables(bindings, values)) == []

    def test_two_functions_of_one_node(self) -> None:
        block = [(0, -1), (1, 0)]
        one = query([(1, 10, 1, 10), (1, 11, 1, 11)], block, block, operator="FOLLOWED BY")
        bindings = [(0, 0, -1, 1), (0, 1, 1, 2), (1, 0, -1, 1), (1, 1, 1, 2)]
        values = [(0, 2, 10, "X"), (0, 2, 11, "x"), (1, 2, 10, "X"), (1, 2, 11, "x")]
        assert len(joined([one], [(0, "a"), (1, "b")], *tables(bindings, values))) == 1
        values[2] = (1, 2, 10, "x")
        assert joined([one], [(0, "a"), (1, "b")], *tables(bindings, values)) == []


def population(draw: random.Random) -> tuple[list[JoinQuery], list[int]]:
    """Queries over random trees of definitions; the parent of each definition is given too."""
    parents = [-1, -1]
    parents += [draw.randrange(definition) for definition in range(2, draw.randint(4, 9))]

    def root(definition: int) -> int:
        return definition if parents[definition] < 0 else root(parents[definition])

    queries = []
    for number in range(draw.randint(1, 12)):
        roots = [draw.randrange(2), draw.randrange(2)]
        within = [[d for d in range(len(parents)) if root(d) == each] for each in roots]
        pairs = [(draw.choice(within[0]), draw.choice(within[1])) for _ in range(draw.randint(1, 3))]
        blocks = []
        for side in (0, 1):
            used = {roots[side]}
            for pair in pairs:
                definition = pair[side]
                while definition not in used:
                    used.add(definition)
                    definition = parents[definition]
            order = sorted(used)
            blocks.append([(d, order.index(parents[d]) if parents[d] >= 0 else -1) for d in order])
        places = [{d: place for place, (d, _) in enumerate(block)} for block in blocks]
        equalities = [
            (places[0][a], 10 * a + draw.randrange(2), places[1][b], 10 * b + draw.randrange(2)) for a, b in pairs
        ]
        operator = draw.choice(["JOIN", "FOLLOWED BY"])
        window = draw.choice([None, 0, 1, 3])
        queries.append(query(equalities, blocks[0], blocks[1], number, operator, window))
    return queries, parents


def witnesses(draw: random.Random, parents: list[int], documents: int) -> tuple[pa.Table, pa.Table]:
    """Nodes of each definition that hang from one or two of its parent's, and values of few letters."""
    bindings: list[Binding] = []
    values: list[Value] = []
    for document in range(documents):
        nodes: list[list[int]] = []
        for definition, parent in enumerate(parents):
            above = [-1] if parent < 0 else nodes[parent]
            nodes.append([10 * definition + place + 1 for place in range(draw.randint(0, 2))] if above else [])
            for node in nodes[-1]:
                hangs_from = draw.sample(above, draw.randint(1, min(2, len(above))))
                bindings += [(document, definition, parent, node) for parent in hangs_from]
                values += [(document, node, 10 * definition + kind, draw.choice("xy")) for kind in (0, 1)]
    return tables(bindings, values)


@pytest.mark.parametrize("seed", range(SEED, SEED + PAIRS // 100))
def test_random_populations(seed: int) -> None:
    draw = random.Random(seed)
    queries, parents = population(draw)
    references = [JoinReference(queries, sharing=sharing) for sharing in SHARINGS]
    references.append(JoinReference(queries, sharing="views", view_bytes=400))
    loop = JoinLoop(queries)
    identity = iter(range(100))
    for _ in range(3):
        documents = [(draw.randrange(6), draw.choice([next(identity), 0])) for _ in range(3)]
        tables = witnesses(draw, parents, 3)
        expected = loop.publish(documents, *tables)
        for reference in references:
            assert reference.publish(documents, *tables) == expected
    assert len({reference.template_count for reference in references}) == 1


def test_random_populations_match_somewhere() -> None:
    found = 0
    for seed in range(40):
        draw = random.Random(seed)
        queries, parents = population(draw)
        found += len(JoinLoop(queries).publish([(0, 0), (1, 1), (2, 2)], *witnesses(draw, parents, 3)))
    assert found > 100


class TestTemplates:
    def test_queries_of_one_form_are_one_statement(self) -> None:
        leaf = [(0, -1), (1, 0)]
        other = [(0, -1), (2, 0)]
        queries = [
            query([(1, 10, 1, 20)], leaf, other, number=1),
            query([(1, 20, 1, 20)], other, other, number=2),
            query([(1, 10, 1, 10), (2, 20, 2, 20)], number=3),
            query([(1, 10, 2, 20), (2, 20, 1, 10)], number=4),
            query([(1, 10, 1, 10), (1, 10, 2, 20)], leaf, number=5),
        ]
        assert JoinReference(queries).template_count == 3

    def test_too_many_tables_are_refused(self) -> None:
        star = (-1, *[0] * 20)
        graph = JoinGraph(star, star, tuple((node, node) for node in range(1, 21)))
        with pytest.raises(ValueError, match="joins 84 tables; SQLite joins 64 at most"):
            conjunctive_query(graph, 0, new_is_right=True, sharing="templates")
        assert conjunctive_query(graph, 0, new_is_right=True, sharing="views")

    def test_contradictions_are_refused(self) -> None:
        one = query([(1, 10, 1, 10)], [(0, -1), (1, 0)], [(0, -1), (1, 0)])
        with pytest.raises(ValueError, match="2 hangs from 1, in another one 0"):
            chain = [(0, -1), (1, 0), (2, 1)]
            JoinReference([query([(1, 10, 1, 10), (2, 20, 2, 20)]), query([(2, 20, 2, 20)], chain, chain)])
        with pytest.raises(ValueError, match="10 is of 2, in another one 1"):
            JoinReference([one, query([(1, 10, 1, 10)], [(0, -1), (2, 0)], [(0, -1), (1, 0)])])
        with pytest.raises(ValueError, match="not compared"):
            JoinReference([query([(1, 10, 1, 10)])])


class TestViews:
    def test_slices_are_kept_within_their_bound(self) -> None:
        one = query([(1, 10, 1, 10)], [(0, -1), (1, 0)], [(0, -1), (1, 0)])
        wide, narrow = (JoinReference([one], sharing="views", view_bytes=size) for size in (10_000, 200))
        for number in range(20):
            witnesses = flat({1: f"v{number % 5}"})
            assert wide.publish([(number, number)], *witnesses) == narrow.publish([(number, number)], *witnesses)
        assert (wide.views.hits, wide.views.misses, wide.views.evictions) == (15, 5, 0)
        assert narrow.views.evictions > 10
        assert narrow.views.bytes <= 200 < wide.views.bytes

    def test_what_is_used_stays(self) -> None:
        slices = Slices(most_bytes=300)
        for value in ("often", "b", "c", "often", "d", "often", "e"):
            if not slices.use(value):
                slices.grew(value, 1)
            list(slices.evicted())
        assert slices.use("often")
        assert not slices.use("b")

    def test_after_a_failure_they_begin_anew(self) -> None:
        one = query([(1, 10, 1, 10)], [(0, -1), (1, 0)], [(0, -1), (1, 0)])
        reference = JoinReference([one], sharing="views")
        reference.publish([(0, "a")], *flat({1: "x"}))
        bindings, values = tables([(0, 0, -1, 1), (0, 1, 1, 2), (0, 1, 1, 2)], [(0, 2, 10, "x")])
        with pytest.raises(Exception, match="UNIQUE"):
            reference.publish([(1, "b")], bindings, values)
        assert reference.publish([(2, "c")], *flat({1: "x"})) == [Match(1, 0, 1, 1, 1), Match(1, 1, 0, 1, 1)]


@pytest.mark.parametrize("name", ["join-flat", "join-complex", "join-feeds"])
@pytest.mark.parametrize("sharing", ["templates", "views"])
def test_the_broker_finds_the_same(name: str, sharing: Sharing) -> None:
    """Generated joins over documents that come in any order, some of them at the same time."""
    kind = {"join-feeds": {"channels": 3, "repeats": 0.3}}.get(name, {"values": 2})
    shape = {"window": 20, "followed_by": 0.5, "value_joins": 3}
    workload = load(name, documents=25, subscriptions=150, document_shape=kind, query_shape=shape, seed=3)
    queries = list(dict.fromkeys(workload.subscriptions))
    witnesses = Witnesses(queries)
    draw = random.Random(3)
    seconds = [draw.randrange(60) for _ in workload.documents]

    broker = Broker(BrokerSettings(joins=JoinSettings(lateness_us=60_000_000, results=False)))
    rows = [{"id": str(number), "query": query, "language": "xscl"} for number, query in enumerate(queries)]
    assert broker.register_many(rows).rejected == ()
    start = datetime(2026, 1, 1, tzinfo=UTC)
    published = [
        Document(str(number), payload, timestamp=start + timedelta(seconds=second))
        for number, (payload, second) in enumerate(zip(workload.documents, seconds, strict=True))
    ]
    report = broker.publish_many(published)
    assert not report.dead_letters
    ours = sorted((int(found.subscription_id), *map(int, found.documents)) for found in report.notifications)

    reference = JoinReference(witnesses.described, sharing=sharing)
    times = [(second * 1_000_000, number) for number, second in enumerate(seconds)]
    theirs = reference.publish(times, *witnesses.of(list(workload.documents)))
    assert ours == [found[:3] for found in theirs]
    assert len(ours) > 100

    # And with the queries and witnesses as the core sees them.
    described = broker.index.join_queries()
    ids = pa.array([str(number) for number in range(len(published))])
    moments = pa.array([time for time, _ in times], pa.int64())
    state = JoinSession(JoinSettings(), 10**6).state
    seen = state.witness_tables(broker.index, pa.array(list(workload.documents)), ids, moments)
    found = JoinReference(described, sharing=sharing).publish(times, seen["bindings"], seen["values"])
    names = {each["query"]: int(*each["subscriptions"]) for each in described}
    assert sorted((names[match.query], *match[1:3]) for match in found) == ours
