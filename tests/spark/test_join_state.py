"""What the driver keeps of joins, without Spark: restarts, crashes between any two steps, other generations."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")
from join_support import Driver, apply, batches_of, documents_of, expected
from tests import join_runs
from tests.generators.joins import Scenario, scenario
from tests.join_queries import Message
from tests.joins import TooManyError
from tests.property.profiles import PAIRS, SEED

from sardonyx import Broker
from sardonyx.config import JoinSettings
from sardonyx.spark import JoinStateError, join_state
from sardonyx.spark.join_state import JoinEngine

SCENARIOS = PAIRS // 400


@pytest.fixture(autouse=True)
def _no_power_cuts(monkeypatch):
    """Forcing files to the disk takes most of the time, and tells nothing here."""
    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)


def driver_of(made: Scenario, folder: Path) -> Driver:
    return Driver(folder, JoinSettings(lateness_us=made.lateness_us), Random(made.seed).choice((1, 2, 3, 100)))


def play(made: Scenario, driver: Driver, restarts: float) -> join_runs.Outcome:
    """All batches; that share of them begins in a process of its own."""
    broker, refused, random = Broker(), [], Random(made.seed)
    driver.publish(broker)
    for number, (actions, messages) in enumerate(batches_of(made)):
        refused += apply(broker, actions)
        if actions:
            driver.publish(broker)
        if random.random() < restarts:
            driver.restart()
        driver.batch(number, documents_of(messages))
    outcome = driver.told.outcome()
    outcome.refused = refused
    return outcome


def test_random_scenarios_with_restarts_are_as_defined(tmp_path):
    compared = 0
    for seed in range(SEED, SEED + SCENARIOS):
        made = replace(scenario(seed), together=True)
        try:
            told = expected(made)
        except TooManyError:
            continue
        found = play(made, driver_of(made, tmp_path / str(seed)), Random(seed).choice((0.0, 0.3, 1.0)))
        assert told.difference(found) is None, f"{made}\n=> {told.difference(found)}"
        assert len(set(found.ids)) == len(found.ids)
        compared += len(found.ids)
    assert compared > SCENARIOS


class CrashError(Exception):
    """The process dies."""


class Steps:
    """Counts the steps of a driver, and dies at one of them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.at: int | None = None
        self.count = 0
        self.on = False
        monkeypatch.setattr(join_state, "write_bytes", self.around(self.half_written(join_state.write_bytes)))
        monkeypatch.setattr(JoinEngine, "hear", self.around(JoinEngine.hear))
        monkeypatch.setattr(Path, "unlink", self.around(Path.unlink))

    @contextmanager
    def counted(self) -> Iterator[None]:
        self.on = True
        try:
            yield
        finally:
            self.on = False

    def step(self) -> None:
        self.count += self.on
        if self.on and self.count == self.at:
            raise CrashError

    def around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **named: Any) -> Any:
            self.step()
            given = call(*arguments, **named)
            self.step()
            return given

        return wrapped

    def half_written(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(path: Path, data: bytes) -> None:
            path.parent.mkdir(parents=True, exist_ok=True)
            half = path.with_name(f".{path.name}-half")
            half.write_bytes(data[: len(data) // 2])
            self.step()
            call(path, data)

        return wrapped


SHIPPED = "S//order->o[sku->a] FOLLOWED BY{a = b, 10 s} S//ship->s[sku->b] PUBLISH shipped"
BILLED = "shipped//order->o[sku->a] JOIN{a = b, 10 s} S//bill->x[sku->b]"
LATER = "S//order->o[sku->a] JOIN{a = b, INF} S//ship->s[sku->b]"
CHANGES = {0: [("shipped", SHIPPED), ("billed", BILLED)], 2: [("later", LATER)]}
BATCHES = (
    (("order", "A", 0), ("order", "B", 1), ("tick", "", 5)),
    (("ship", "A", 6), ("order", "C", 6)),
    (("order", "E", 1), ("ship", "B", 7), ("bill", "B", 7), ("ship", "C", 8), ("order", "C", 6)),
    (("bill", "A", 9), ("order", "D", 11), ("ship", "D", 12)),
    (("bill", "C", 15), ("ship", "D", 13), ("tick", "", 30)),
    (("bill", "C", 31), ("ship", "D", 31)),
)
"""What is published, with the seconds; a name and its seconds make the id."""


def test_a_crash_between_any_two_steps_changes_nothing(tmp_path, monkeypatch):
    steps = Steps(monkeypatch)
    told, _ = _until_after_a_crash(tmp_path / "never", steps)
    assert [sum(counter.values()) for counter in told.told] == [0, 1, 3, 3, 3, 1]
    assert told.late == [[], [], ["orderE1"], [], [], []]
    assert told.repetitions == [0, 0, 1, 0, 0, 0]
    for crash in itertools.count(1):
        steps.at = crash
        found, crashed = _until_after_a_crash(tmp_path / str(crash), steps)
        if not crashed:
            break
        count = len(found.told)
        part = join_runs.Outcome(told.told[:count], told.late[:count], told.repetitions[:count])
        assert part.difference(found) is None, f"crash at step {crash}: {part.difference(found)}"
        assert found.ids == told.ids[: len(found.ids)]
    assert crash > 7 * len(BATCHES)


def _until_after_a_crash(folder: Path, steps: Steps) -> tuple[join_runs.Outcome, bool]:
    """Play the batches, and if it crashes that batch again and one more."""
    driver, broker = Driver(folder, JoinSettings(lateness_us=2_000_000), 2), Broker()
    crashed: int | None = None
    watermarks: list[int] = []
    steps.count = 0
    for number, batch in enumerate(BATCHES):
        if crashed is not None and number > crashed + 1:
            break
        for name, query in CHANGES.get(number, ()):
            broker.register(name, query, language="xscl")
            driver.publish(broker)
        documents = documents_of([_message(*one) for one in batch])
        try:
            with steps.counted():
                driver.batch(number, documents)
                # What comes after the results are in the sink, and before Spark notes that the batch is done.
                steps.step()
        except CrashError:
            crashed = number
            driver.restart()
            driver.batch(number, documents)
        watermarks.append(driver.progress.watermark_us or 0)
    assert watermarks == sorted(watermarks)
    return driver.told.outcome(), crashed is not None


def _message(name: str, sku: str, seconds: int) -> Message:
    xml = f"<{name}><sku>{sku}</sku></{name}>"
    return Message(f"{name}{sku}{seconds}", "S", seconds * 1_000_000, xml)


def test_files_are_dropped_and_a_state_that_can_not_be_had_again_is_an_error(tmp_path):
    driver = Driver(tmp_path, JoinSettings(), 3)
    broker = Broker()
    broker.register("q", "//order->o[.//sku->a] JOIN{a = b, 3 s} //ship->s[.//sku->b]", language="xscl")
    driver.publish(broker)
    made = [_order(number) for number in range(20)]
    for number, documents in enumerate(made):
        driver.batch(number, documents)
    folder = driver.checkpoint / join_state.FOLDER
    names = sorted(path.name for path in folder.iterdir())
    assert names == sorted([*(f"batch-{number}.arrow" for number in range(15, 20)), "state-15.bin", "state-18.bin"])
    assert driver.joins.oldest_batch == 15

    # Replays go back as far as the older of the two states, and later states are forgotten then.
    driver.restart()
    before = driver.told.rows[17]
    driver.batch(17, made[17])
    assert driver.told.rows[17].equals(before)
    assert not (folder / "state-18.bin").exists()
    driver.restart()
    with pytest.raises(JoinStateError, match="before batch 14"):
        driver.batch(14, made[14])
    (folder / "batch-16.arrow").unlink()
    driver.restart()
    with pytest.raises(JoinStateError, match="batch 16 is missing"):
        driver.batch(18, made[18])


def test_a_batch_of_other_documents_is_not_the_batch_that_was_written(tmp_path):
    """After a power cut Spark may have forgotten a batch, and make another one of the same number."""
    driver = Driver(tmp_path, JoinSettings(), 3)
    broker = Broker()
    broker.register("q", "//order->o[.//sku->a]", language="xscl")
    driver.publish(broker)
    driver.batch(0, _order(0))
    driver.restart()
    driver.batch(0, _order(5))
    assert [row["document_id"] for row in driver.told.of("notification", 0)] == ["o5"]


def test_settings_may_change_between_runs_and_a_replay_uses_its_own(tmp_path):
    driver = Driver(tmp_path, JoinSettings(lateness_us=10_000_000), 3)
    broker = Broker()
    broker.register("q", "//order->o[.//sku->a]", language="xscl")
    driver.publish(broker)
    driver.batch(0, _order(10))
    driver.batch(1, _order(5))
    assert driver.told.outcome().late == [[], []]
    driver.settings = JoinSettings()
    driver.restart()
    driver.batch(1, _order(5))
    driver.batch(2, _order(6))
    assert driver.told.outcome().late == [[], [], ["o6"]]


def _order(number: int) -> pa.RecordBatch:
    return documents_of([Message(f"o{number}", "S", number * 1_000_000, f"<order><sku>K{number}</sku></order>")])
