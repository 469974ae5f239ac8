"""Scenarios of joins played through what Spark's driver keeps: with and without Spark, and many at once."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from tests import join_runs
from tests.generators.joins import Action, Scenario
from tests.join_queries import Message
from tests.join_text import to_text

from sardonyx import Broker, Limits, errors
from sardonyx.config import JoinSettings
from sardonyx.model import Notification
from sardonyx.spark.join_results import rows_of_joins
from sardonyx.spark.join_state import DurableJoins
from sardonyx.spark.join_task import JoinTask
from sardonyx.spark.progress import JoinProgress
from sardonyx.spark.schemas import BATCH, DEAD_LETTER, JOINING_ARROW, NOTIFICATION, RESULTS_ARROW, WITNESSES
from sardonyx.spark.versions import pin, publish_generation, unpin
from sardonyx.spark.worker import MatchTask

LIMITS = Limits()


@dataclass
class Told:
    """What batches gave, by their numbers; a batch that is given again takes the place of what it gave before."""

    rows: dict[int, pa.Table] = field(default_factory=dict)

    def of(self, outcome: str, batch: int) -> list[dict[str, Any]]:
        table = self.rows[batch]
        found: list[dict[str, Any]] = table.filter(pc.equal(table["outcome"], outcome)).to_pylist()
        return found

    def outcome(self) -> join_runs.Outcome:
        """As `tests.join_runs` writes it, an entry a batch."""
        numbers = sorted(self.rows)
        made = {
            number: [
                Notification(
                    row["document_id"],
                    row["subscription_id"],
                    row["notification_id"],
                    row["result"],
                    tuple(row["document_ids"]),
                )
                for row in self.of(NOTIFICATION, number)
                if row["document_ids"] is not None
            ]
            for number in numbers
        }
        known = {one.notification_id: one for told in made.values() for one in told}
        return join_runs.Outcome(
            told=[Counter(join_runs.signature(one, known) for one in made[number]) for number in numbers],
            late=[sorted(row["document_id"] for row in self.of(DEAD_LETTER, number)) for number in numbers],
            repetitions=[sum(row["repetitions"] or 0 for row in self.of(BATCH, number)) for number in numbers],
            ids=[one.notification_id for number in numbers for one in made[number]],
        )


def batches_of(scenario: Scenario) -> list[tuple[list[Action], tuple[Message, ...]]]:
    """The batches of documents, each with what is registered and unregistered before it."""
    found: list[tuple[list[Action], tuple[Message, ...]]] = []
    before: list[Action] = []
    for action in scenario.actions:
        if action.messages:
            found.append((before, action.messages))
            before = []
        else:
            before.append(action)
    return found


def expected(scenario: Scenario, most: int = 20_000) -> join_runs.Outcome:
    """What the definition says of each batch of documents; raises `TooManyError` beyond `most` combinations."""
    outcome = join_runs.expected(scenario, most=most)
    published = [number for number, action in enumerate(scenario.actions) if action.messages]
    for name in ("told", "late", "repetitions"):
        setattr(outcome, name, [getattr(outcome, name)[number] for number in published])
    return outcome


def apply(broker: Broker, actions: Iterable[Action]) -> list[str]:
    """Register and unregister; gives what was refused."""
    refused = []
    for action in actions:
        if action.subscription is None:
            broker.unregister(action.name)
            continue
        try:
            join_runs.register(broker, join_runs.subscribed(action.subscription, action.text))
        except errors.SubscriptionError:
            refused.append(action.subscription.id)
    return refused


def documents_of(messages: Sequence[Message]) -> pa.RecordBatch:
    """Documents as Spark hands them to a worker."""
    return pa.record_batch(
        {
            "document_id": pa.array([message.id for message in messages], pa.string()),
            "payload": pa.array([message.xml for message in messages], pa.string()),
            "stream": pa.array([message.stream for message in messages], pa.string()),
            "timestamp": pa.array([message.timestamp_us for message in messages], pa.timestamp("us", tz="UTC")),
        }
    )


class Driver:
    """What a stream does with each micro-batch, without Spark: the tasks run here."""

    def __init__(self, folder: Path, settings: JoinSettings, snapshot_batches: int = 3) -> None:
        self.store, self.checkpoint = folder / "store", folder / "checkpoint"
        self.settings = settings
        self.snapshot_batches = snapshot_batches
        self.told = Told()
        self.restart()

    def restart(self) -> None:
        """Forget everything that is not on disk."""
        self.joins = DurableJoins(self.store, self.checkpoint, self.settings, LIMITS, self.snapshot_batches)

    @property
    def progress(self) -> JoinProgress:
        """What joins keep after the last batch."""
        assert self.joins._engine is not None
        return self.joins._engine.progress

    def publish(self, broker: Broker) -> None:
        publish_generation(broker, self.store)

    def batch(self, number: int, documents: pa.RecordBatch) -> None:
        generation = pin(self.store, self.checkpoint, number)
        matching = MatchTask(generation.reference(), LIMITS.for_core(), LIMITS.cost_limit)
        if not generation.joins and not self.joins.started:
            self.told.rows[number] = RESULTS_ARROW.empty_table()
            return
        task = JoinTask(matching, {"cost_limit": LIMITS.cost_limit, **self.settings.for_core()}, 0)
        rows = pa.Table.from_batches(task([documents]), JOINING_ARROW)
        taken_apart = pc.equal(rows["outcome"], WITNESSES)
        _, witnesses, said = self.joins.hear(number, generation, lambda: rows.filter(taken_apart))
        added = pa.Table.from_batches(rows_of_joins(said, witnesses, matching), RESULTS_ARROW)
        others = rows.filter(pc.invert(taken_apart)).select(RESULTS_ARROW.names)
        self.told.rows[number] = pa.concat_tables([others, added])
        unpin(self.checkpoint, self.joins.oldest_batch or 0)


def merged(scenarios: Sequence[Scenario], lateness_us: int) -> Scenario:
    """Many scenarios as one, in which their batches come together, one or a few of each at a time.

    Streams and names are their own; blocks that hear every stream hear one of their scenario's instead.
    """
    changes: defaultdict[int, list[Action]] = defaultdict(list)
    messages: defaultdict[int, list[Message]] = defaultdict(list)
    for number, scenario in enumerate(scenarios):
        own = Own(f"x{number}-", sorted({m.stream or "none" for m in scenario.messages}))
        random = Random(number)
        at = 0
        for action in map(own.action, scenario.actions):
            if action.messages:
                messages[at] += action.messages
                at += random.random() < 0.5
            else:
                changes[at].append(action)
    made: list[Action] = []
    for at in sorted(messages):
        made += [*changes[at], Action("publish", messages=tuple(messages[at]))]
    return Scenario(0, lateness_us, True, tuple(made))


@dataclass(frozen=True)
class Own:
    """Gives names and streams of one scenario a prefix."""

    prefix: str
    streams: list[str]

    def stream(self, name: str | None) -> str:
        return f"{self.prefix}{name or 'none'}"

    def action(self, action: Action) -> Action:
        if action.messages:
            return replace(action, messages=tuple(map(self.message, action.messages)))
        if action.subscription is None:
            return replace(action, name=self.prefix + action.name)
        subscription = action.subscription
        heard = subscription.stream or self.streams[len(action.text) % len(self.streams)]
        query = subscription.query
        blocks = tuple(
            block if block.stream is None else replace(block, stream=self.stream(block.stream))
            for block in query.blocks
        )
        publish = None if query.publish is None else self.stream(query.publish)
        query = replace(query, blocks=blocks, publish=publish)
        own = replace(subscription, id=self.prefix + subscription.id, stream=self.stream(heard), query=query)
        return replace(action, subscription=own, text=to_text(query))

    def message(self, message: Message) -> Message:
        return replace(message, id=self.prefix + message.id, stream=self.stream(message.stream))
