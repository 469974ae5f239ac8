"""Scenarios of joins played: by the definition, and by a broker in several ways, with outcomes that can be compared."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from sardonyx import Broker, Document, errors
from sardonyx.config import BrokerSettings, JoinSettings
from sardonyx.model import Notification
from tests import join_queries
from tests.generators.joins import Action, Scenario
from tests.join_queries import Message
from tests.joins import Definition, Material, RefusedError, canonical

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass
class Outcome:
    """What each action of a scenario gave, and the ids of all notifications."""

    told: list[Counter[Any]] = field(default_factory=list)
    late: list[list[str]] = field(default_factory=list)
    repetitions: list[int] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)

    def difference(self, other: "Outcome") -> str | None:
        """What another outcome has more or less, in words."""
        if self.refused != other.refused:
            return f"refused {self.refused} and {other.refused}"
        for number, (mine, theirs) in enumerate(zip(self.told, other.told, strict=True)):
            if mine != theirs:
                return f"action {number}: missing {dict(mine - theirs)}, too many {dict(theirs - mine)}"
        if self.late != other.late:
            return f"late {self.late} and {other.late}"
        return (
            None if self.repetitions == other.repetitions else f"{self.repetitions} and {other.repetitions} repetitions"
        )


def timestamp(time_us: int) -> datetime:
    """Microseconds since 1970 as a `datetime`."""
    return EPOCH + timedelta(microseconds=time_us)


def document(message: Message) -> Document:
    """A message as a broker takes it."""
    return Document(message.id, message.xml, message.stream, timestamp(message.timestamp_us))


def subscribed(subscription: join_queries.Subscription, text: str) -> dict[str, Any]:
    """The arguments with which a subscription is registered."""
    return {
        "subscription_id": subscription.id,
        "query": text,
        "namespaces": dict(subscription.query.namespaces) or None,
        "stream": subscription.stream,
    }


def expected(scenario: Scenario, material: Material | None = None, most: int = 20_000) -> Outcome:
    """What the definition says."""
    definition = Definition(scenario.lateness_us, material, most)
    outcome = Outcome()
    action_of: list[int] = []
    for number, action in enumerate(scenario.actions):
        late: list[str] = []
        repetitions = 0
        if action.subscription is not None:
            try:
                definition.register(action.subscription)
            except RefusedError:
                outcome.refused.append(action.subscription.id)
        elif action.kind == "unregister":
            definition.unregister(action.name)
        for batch in batches(scenario, action):
            report = definition.publish(batch)
            late += report.late
            repetitions += report.repetitions
            action_of.append(number)
        outcome.late.append(sorted(late))
        outcome.repetitions.append(repetitions)
        outcome.told.append(Counter())
    for one in definition.notifications():
        outcome.told[action_of[one.batch]][one.signature] += 1
    return outcome


def batches(scenario: Scenario, action: Action) -> list[tuple[Message, ...]]:
    """The documents of an action as they are judged."""
    if not action.messages:
        return []
    return [action.messages] if scenario.together else [(message,) for message in action.messages]


def settings(lateness_us: int, **options: Any) -> BrokerSettings:
    """The settings of a broker with that lateness."""
    return BrokerSettings(joins=JoinSettings(lateness_us=lateness_us, **options))


def played(scenario: Scenario, restart: Path | None = None, shuffled: bool = False) -> Outcome:
    """What a broker says; with `restart` its state goes through that file and a fresh broker in the middle."""
    # A few documents at a time are done before another thread is awake; some scenarios use several all the same.
    threads = 2 if scenario.seed % 5 == 0 else 1
    broker = Broker(replace(settings(scenario.lateness_us), threads=threads))
    outcome = Outcome()
    random = Random(scenario.seed)
    registered: dict[str, dict[str, Any]] = {}
    reports: list[list[Notification]] = []
    first: range = range(0)
    if scenario.seed % 3:  # what is registered first is registered at once
        first = range(next((at for at, one in enumerate(scenario.actions) if one.subscription is None), 0))
        rows = [subscribed(one.subscription, one.text) for one in scenario.actions[: len(first)] if one.subscription]
        outcome.refused = register_many(broker, rows)
        registered = {row["subscription_id"]: row for row in rows if row["subscription_id"] not in outcome.refused}
    for number, action in enumerate(scenario.actions):
        if restart is not None and registered and number >= len(scenario.actions) // 2:
            broker, restart = restarted(broker, registered, restart), None
        late: list[str] = []
        repetitions = 0
        told: list[Notification] = []
        if number in first:
            pass
        elif action.subscription is not None:
            row = subscribed(action.subscription, action.text)
            try:
                register(broker, row)
                registered.pop(action.subscription.id, None)
                registered[action.subscription.id] = row
            except errors.CycleError:
                outcome.refused.append(action.subscription.id)
        elif action.kind == "unregister":
            if action.name in registered:
                broker.unregister(action.name)
                del registered[action.name]
        elif action.messages:
            documents = [document(message) for message in action.messages]
            if shuffled and scenario.together:
                random.shuffle(documents)
            for report in published(broker, documents, scenario.together, random):
                unexpected = [letter for letter in report.dead_letters if letter.kind != "late_document"]
                assert unexpected == [], unexpected
                late += [letter.document_id for letter in report.dead_letters]
                repetitions += report.repetitions
                told += report.notifications
        outcome.late.append(sorted(late))
        outcome.repetitions.append(repetitions)
        reports.append(told)
    known = {one.notification_id: one for told in reports for one in told}
    outcome.ids = [one.notification_id for told in reports for one in told]
    outcome.told = [Counter(signature(one, known) for one in told) for told in reports]
    return outcome


def register(broker: Broker, row: dict[str, Any]) -> None:
    """Register one join."""
    broker.register(
        row["subscription_id"], row["query"], language="xscl", namespaces=row["namespaces"], stream=row["stream"]
    )


def register_many(broker: Broker, rows: Sequence[dict[str, Any]]) -> list[str]:
    """Register joins at once; the ids of those that close a cycle, which nothing else may be refused for."""
    report = broker.register_many(
        {
            "id": row["subscription_id"],
            "language": "xscl",
            **{key: row[key] for key in ("query", "namespaces", "stream")},
        }
        for row in rows
    )
    assert {letter.kind for letter in report.rejected} <= set(errors.CycleError.kinds), report.rejected
    return [letter.subscription_id or "" for letter in report.rejected]


def published(broker: Broker, documents: Sequence[Document], together: bool, random: Random) -> Iterable[Any]:
    """The reports of publishing documents, as one batch or each for itself in one of the two ways."""
    if together:
        return [broker.publish_many(documents, together=True)]
    if random.random() < 0.5:
        return [broker.publish_many(documents)]
    return [broker.publish(one) for one in documents]


def restarted(broker: Broker, registered: dict[str, dict[str, Any]], path: Path) -> Broker:
    """A fresh broker with the same subscriptions and the state that the other one saved."""
    broker.save_state(path)
    fresh = Broker(broker.settings)
    assert register_many(fresh, list(registered.values())) == []
    fresh.restore_state(path)
    return fresh


def signature(one: Notification, known: dict[str, Notification]) -> Any:
    """A notification as `tests.joins.Notification.signature` writes it: ids of derived documents are resolved."""
    documents = tuple(signature(known[name], known) if name in known else name for name in one.documents)
    assert one.document_id == one.documents[-1]
    assert one.result is not None
    return one.subscription_id, documents, canonical(one.result)
