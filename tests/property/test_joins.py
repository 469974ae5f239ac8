"""Joins in process against their definition, on random scenarios, however the documents are handed over."""

import time
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from sardonyx import Broker, Document, errors
from tests import join_runs
from tests.generators.joins import Scenario, reduced, scenario
from tests.joins import TooManyError
from tests.property.profiles import PAIRS, SEED

SCENARIOS = min(PAIRS // 10, 2_000 + PAIRS // 100)
SHOWN = 3
WINDOW_S = 10
STREAMING = 20_000

GROWING = "S//order->o[.//sku->a] {} {{a = b, 10}} S//ship->s[.//sku->b]"


@cache
def _expected(seed: int) -> tuple[Scenario, join_runs.Outcome] | None:
    made = scenario(seed)
    try:
        return made, join_runs.expected(made)
    except TooManyError:
        return None


def _fault(made: Scenario, told: join_runs.Outcome, restart: Path | None, shuffled: bool) -> str | None:
    try:
        found = join_runs.played(made, restart, shuffled)
    except (errors.SardonyxError, AssertionError) as error:
        return f"{type(error).__name__}: {error}"
    if len(set(found.ids)) != len(found.ids):
        return "two notifications have one id"
    return told.difference(found)


WAYS = {"as it is": (False, False), "restarted": (True, False), "shuffled": (False, True), "both": (True, True)}
"""How scenarios are played: through a restart in the middle, and with batches in another order of arrival."""


def _report(made: Scenario, restart: Path | None, shuffled: bool) -> str:
    """The smallest scenario found that fails in the same way of playing it."""
    kind: list[str] = []

    def fails(one: Scenario) -> bool:
        try:
            fault = _fault(one, join_runs.expected(one), restart, shuffled)
        except (AssertionError, TooManyError, StopIteration, KeyError):
            return False  # it makes no sense any longer
        kind[:] = [fault] if fault else kind
        return fault is not None

    smallest = reduced(made, fails)
    fails(smallest)
    return f"{smallest}\n=> {''.join(kind)}"


def test_material() -> None:
    """The scenarios have what is to be tested: joins of every kind, and much that just does not join."""
    found: Counter[str] = Counter()
    for seed in range(SEED, SEED + 400):
        entry = _expected(seed)
        found["too many"] += entry is None
        if entry is None:
            continue
        made, told = entry
        lengths = {len(documents) for counter in told.told for _, documents, _ in counter}
        found["joined"] += bool(lengths)
        found.update(f"chain of {length}" for length in lengths)
        found["derived"] += any(
            not isinstance(name, str) for counter in told.told for _, documents, _ in counter for name in documents
        )
        found["several"] += any(count > 1 for counter in told.told for count in counter.values())
        found["late"] += any(told.late)
        found["repeated"] += any(told.repetitions)
        found["refused"] += bool(told.refused)
        found["together"] += made.together
        texts = [action.text for action in made.actions if action.text]
        found["selecting"] += any("<out" in text for text in texts)
        found["normals"] += any("normalize-space" in text for text in texts)
        found["without stream"] += any(message.stream is None for message in made.messages)
    least = {
        "joined": 200, "chain of 1": 60, "chain of 2": 120, "chain of 3": 12, "chain of 4": 3, "derived": 10,
        "late": 120, "several": 25, "repeated": 100, "refused": 4, "together": 150, "selecting": 100, "normals": 100,
        "without stream": 80,
    }  # fmt: skip
    assert {name: found[name] for name, count in least.items() if found[name] < count} == {}, found
    assert found["too many"] < 8


@pytest.mark.parametrize("way", WAYS)
def test_agrees_with_definition(way: str, tmp_path: Path) -> None:
    """The same notifications with every call, the same late documents and repetitions, and the same results."""
    restarted, shuffled = WAYS[way]
    restart = tmp_path / "state" if restarted else None
    failures = []
    for seed in range(SEED + list(WAYS).index(way), SEED + SCENARIOS, len(WAYS)):
        entry = _expected(seed)
        if entry is None:
            continue
        made, told = entry
        fault = _fault(made, told, restart, shuffled)
        if fault is not None:
            failures.append(made)
    if failures:
        failures.sort(key=lambda made: len(str(made)))
        shown = "\n\n".join(_report(made, restart, shuffled) for made in failures[:SHOWN])
        pytest.fail(f"{len(failures)} scenarios differ: {[made.seed for made in failures[:20]]}\n\n{shown}")


def test_ids_are_stable(tmp_path: Path) -> None:
    """The same notifications have the same ids in another order of arrival, after a restart and in another process."""
    compared = 0
    for seed in range(SEED, SEED + SCENARIOS // 20):
        made = scenario(seed)
        first = join_runs.played(made)
        assert join_runs.played(made).ids == first.ids, "also in the same order"
        for restart, shuffled in ((tmp_path / "state", False), (None, True)):
            again = join_runs.played(made, restart, shuffled)
            assert sorted(again.ids) == sorted(first.ids), seed
        compared += len(first.ids)
    assert compared > SCENARIOS // 20


def test_cuts_into_batches_change_nothing() -> None:
    """Where nothing is late, any cuts into batches give the same notifications."""
    for seed in range(SEED, SEED + SCENARIOS // 20):
        made = replace(scenario(seed), lateness_us=10**15)
        population = [action for action in made.actions if action.subscription is not None]
        publishing = [action for action in made.actions if action.messages]
        ids = set()
        for together in (True, False):
            for size in (1, 3, 100):
                cut = tuple(
                    replace(publishing[0], messages=tuple(made.messages[at : at + size]))
                    for at in range(0, len(made.messages), size)
                )
                outcome = join_runs.played(replace(made, together=together, actions=(*population, *cut)))
                ids.add(tuple(sorted(outcome.ids)))
        assert len(ids) == 1, seed


@pytest.mark.parametrize("operator", ["JOIN", "FOLLOWED BY"])
def test_state_is_bounded(operator: str) -> None:
    """State holds what one window needs, not what the stream has brought, also if the other side is silent."""
    broker = Broker(join_runs.settings(0))
    broker.register("q", GROWING.format(operator), language="xscl")
    units, started = [], time.process_time()
    for start in range(0, STREAMING, 1_000):
        broker.publish_many(
            Document(f"o{at}", f"<order><sku>K{at}</sku></order>", "S", join_runs.timestamp(at * 1_000_000))
            for at in range(start, start + 1_000)
        )
        units.append(broker.stats()["join_state_units"])
    assert max(units) <= 10 * (WINDOW_S + 1), "a few units for each document of the window"
    assert units[-1] == units[1]
    assert time.process_time() - started < 20
    # A silent end: one document of another stream moves the watermark, and nothing is needed any longer.
    broker.publish(Document("w", "<tick/>", "T", join_runs.timestamp(STREAMING * 1_000_000 + 60_000_000)))
    assert broker.stats()["join_state_units"] <= 10


def test_state_without_end() -> None:
    """A window without end keeps everything that could still join, and nothing of documents that could not."""
    broker = Broker(join_runs.settings(0))
    broker.register("q", GROWING.format("FOLLOWED BY").replace("10}", "INF}"), language="xscl")

    def publish(name: str, text: str, at: int) -> int:
        broker.publish(Document(f"{name}{at}", f"<{name}>{text}</{name}>", "S", join_runs.timestamp(at)))
        return int(broker.stats()["join_state_units"])

    before = publish("order", "<sku>K</sku>", 0)
    after = [publish("order", "<none/>", at) for at in range(1, 50)]
    assert max(after) <= before + 5
    assert publish("order", "<sku>K</sku>", 60) > before
    found = broker.publish(Document("s", "<ship><sku>K</sku></ship>", "S", join_runs.timestamp(10**15)))
    assert sorted(one.documents for one in found.notifications) == [("order0", "s"), ("order60", "s")]
