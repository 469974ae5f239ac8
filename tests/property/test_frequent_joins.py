"""Values that hundreds of documents have: joins found and counted, against their definition."""

from collections.abc import Hashable, Iterator
from functools import cache
from random import Random

import pyarrow as pa
import pytest

from sardonyx import Broker, _core
from sardonyx.config import BrokerSettings, JoinSettings
from tests import join_runs
from tests.generators.joins import Action, Scenario
from tests.join_queries import Block, Equality, Message, Operand, Operator, Pattern, Query, Step, Subscription
from tests.join_text import to_text
from tests.joins import Material
from tests.property.profiles import PAIRS, SEED

SCENARIOS = max(PAIRS // 10_000, 8)
DOCUMENTS = 220
SECOND_US = 1_000_000
VALUES = {"kind": 1, "channel": 2, "place": 3, "day": 20, "title": 150}
"""How many values leaves have: few means that a value has a long list of documents."""
WINDOWS = (None, None, None, 40 * SECOND_US, 400 * SECOND_US)


def _block(letter: str, names: list[str]) -> Block:
    """An item bound to a variable, and leaves bound to it and their numbers."""
    leaves = [(Pattern((Step("//", name, variable=f"{letter}{at}"),)),) for at, name in enumerate(names)]
    return Block("S", (Step("//", "item", tuple(leaves), letter),))


def _query(random: Random, several: bool, others: set[Hashable]) -> Query:
    """A query over one stream that compares one to three leaves, mostly with themselves; unlike the others."""
    # Frequent ones first, so that often one query asks for more than another one does.
    names = list(VALUES) if random.random() < 0.6 else random.sample(list(VALUES), len(VALUES))
    names = names[: random.choice((1, 1, 2, 2, 3))]
    partners = [random.choice(list(VALUES)) if random.random() < 0.15 else name for name in names]
    equalities = tuple(Equality(Operand(f"l{at}"), Operand(f"r{at}")) for at in range(len(names)))
    kind = random.choice(("JOIN", "FOLLOWED BY", "FOLLOWED BY"))
    operator = Operator(kind, equalities, random.choice(WINDOWS))
    meaning = frozenset(zip(names, partners, strict=True)), kind, operator.window_us
    if meaning in others:  # equal queries are counted once
        return _query(random, several, others)
    others.add(meaning)
    blocks, operators = [_block("l", names), _block("r", partners)], [operator]
    if several:  # what two documents gave is joined with a third one
        blocks.append(_block("x", ["title"]))
        third = Equality(Operand(random.choice(("l0", "r0"))), Operand("x0"))
        operators.append(Operator("FOLLOWED BY", (third,), None))
    return Query(tuple(blocks), tuple(operators))


def _document(random: Random, irregular: bool) -> str:
    leaves = []
    for name, count in VALUES.items():
        repeated = random.choice((0, 2)) if irregular and random.random() < 0.1 else 1
        # One vocabulary, so that leaves of different names agree too.
        leaves += [f"<{name}>v{min(random.randrange(count), random.randrange(count))}</{name}>"] * repeated
    return f"<item>{''.join(leaves)}</item>"


def _messages(random: Random, irregular: bool) -> Iterator[Message]:
    at, renamed = 0, random.choice((0, 0.1))
    steps, back = random.choice(((1,), (0, 1, 1, 2), (0, 0, 3))), random.choice((0, 0, 3))
    for number in range(DOCUMENTS):
        at += random.choice(steps) * SECOND_US
        # Two documents of one name are not joined.
        name = f"m{number - random.randint(1, 9)}" if random.random() < renamed else f"m{number}"
        yield Message(name, "S", at - random.randint(0, back) * SECOND_US, _document(random, irregular))


def _registered(random: Random, number: int, several: bool, others: set[Hashable]) -> Action:
    query = _query(random, several, others)
    return Action("register", Subscription(f"q{number}", query, "S"), to_text(query, random))


@cache
def _scenario(seed: int) -> Scenario:
    """Queries, a few of which come and go in the midst of many documents."""
    random = Random(seed)
    count, irregular = random.randint(1, 6), random.random() < 0.5
    several = random.random() < 0.2
    others: set[Hashable] = set()
    messages = list(_messages(random, irregular))
    actions = [_registered(random, number, several and number == 0, others) for number in range(count)]
    for start in range(0, DOCUMENTS, 20):
        actions.append(Action("publish", messages=tuple(messages[start : start + 20])))
        if random.random() < 0.08:
            actions.append(Action("unregister", name=f"q{random.randrange(count)}"))
        if random.random() < 0.12:
            actions.append(_registered(random, random.randrange(count), False, others))
    lateness_us = random.choice((0, 5 * SECOND_US, 10**12))
    return Scenario(seed, lateness_us, random.random() < 0.3, tuple(actions))


@cache
def _expected(seed: int) -> join_runs.Outcome:
    return join_runs.expected(_scenario(seed), Material(), most=2_000_000)


def _counted(scenario: Scenario) -> list[int]:
    """How many results each action has, if they are only counted."""
    settings = JoinSettings(lateness_us=scenario.lateness_us, results=False)
    state = _core.JoinState(cost_limit=BrokerSettings().limits.cost_limit, **settings.for_core())
    broker = Broker()
    counts = []
    for action in scenario.actions:
        counts.append(0)
        if action.subscription is not None:
            join_runs.register(broker, join_runs.subscribed(action.subscription, action.text))
        elif action.kind == "unregister":
            broker.unregister(action.name)
        else:
            found = state.count(
                broker._index,
                pa.array([one.xml.encode() for one in action.messages], pa.binary()),
                pa.array([one.id for one in action.messages], pa.string()),
                pa.array([one.timestamp_us for one in action.messages], pa.int64()),
                streams=pa.array([one.stream for one in action.messages], pa.string()),
                together=scenario.together,
            )
            counts[-1] = found["notifications"]
    return counts


SEEDS = range(SEED, SEED + SCENARIOS)


def test_material() -> None:
    """Most scenarios have many results, and some have a few only."""
    totals = [sum(counter.total() for counter in _expected(seed).told) for seed in SEEDS]
    assert sum(total > 1_000 for total in totals) > len(totals) // 3
    assert max(totals) > 20_000


@pytest.mark.parametrize("seed", SEEDS)
def test_found(seed: int) -> None:
    """Notifications are those of the definition."""
    difference = _expected(seed).difference(join_runs.played(_scenario(seed)))
    assert difference is None, f"{str(difference)[:2_000]}\n{str(_scenario(seed))[:4_000]}"


@pytest.mark.parametrize("seed", SEEDS)
def test_counted(seed: int) -> None:
    """Where results are only counted there are as many."""
    scenario = _scenario(seed)
    told = [counter.total() for counter in _expected(seed).told]
    assert _counted(scenario) == told, str(scenario)[:4_000]


def test_values_that_no_join_asked_for_then() -> None:
    """A document that came before any join asked for a value of it is not among those that are counted for it."""
    same = Operator("FOLLOWED BY", (Equality(Operand("l0"), Operand("r0")),), None)
    first, second = (Query((_block("l", [name]), _block("r", [name])), (same,)) for name in ("title", "kind"))
    messages = [
        Message(f"m{number}", "S", number * SECOND_US, f"<item><title>t{number % 30}</title><kind>v</kind></item>")
        for number in range(DOCUMENTS)
    ]
    half = DOCUMENTS // 2
    actions = (
        Action("register", Subscription("q0", first, "S"), to_text(first)),
        Action("publish", messages=tuple(messages[:half])),
        Action("register", Subscription("q1", second, "S"), to_text(second)),
        *(Action("publish", messages=(one,)) for one in messages[half:]),
    )
    scenario = Scenario(0, 0, False, actions)
    assert _counted(scenario) == [counter.total() for counter in join_runs.expected(scenario, most=2_000_000).told]
