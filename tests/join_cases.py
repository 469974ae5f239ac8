"""Reads the corpus of joins, `corpus/joins.yaml`, described in `corpus/README.md`, and the shared cases of joins."""

import json
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import yaml

from tests.corpus_cases import JOINS
from tests.join_queries import Message
from tests.shared_data import CASES as SHARED

STREAM = "S"


@dataclass(frozen=True)
class Row:
    """A subscription as a case writes it."""

    id: str
    query: str
    stream: str | None = None
    language: str = "xscl"


@dataclass(frozen=True)
class Step:
    """What happens: a batch of documents, registrations, the end of a subscription, or a restart."""

    messages: tuple[Message, ...] = ()
    register: tuple[Row, ...] = ()
    unregister: str = ""
    restart: bool = False


@dataclass(frozen=True)
class Refusal:
    """A query that must not be registered; fields that are None are not asked for."""

    row: Row
    kind: str | None
    line: int | None
    column: int | None


@dataclass(frozen=True)
class Case:
    """Subscriptions, what happens, and what they are told of it."""

    name: str
    rule: str
    lateness_us: int
    steps: tuple[Step, ...]
    notifications: dict[str, list[Any]]
    results: dict[str, list[str]] = field(default_factory=dict)
    namespaces: dict[str, str] = field(default_factory=dict)
    late: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    repetitions: int = 0
    refused: tuple[Refusal, ...] = ()

    def __str__(self) -> str:
        """Its name."""
        return self.name

    @property
    def rows(self) -> list[Row]:
        """All subscriptions, in the order of their registration."""
        return [row for step in self.steps for row in step.register]

    @property
    def is_free(self) -> bool:
        """Whether all documents could as well come in one batch, in any order."""
        plain = all(not (step.unregister or step.restart or step.register) for step in self.steps[1:])
        return plain and not (self.late or self.failed or self.repetitions)


def microseconds(seconds: Any) -> int:
    """Seconds, as text or number, in microseconds."""
    return int(Decimal(str(seconds)) * 1_000_000)


def load() -> list[Case]:
    """Every case; a name that occurs twice is an error."""
    # Every scalar stays the text that was written: ids, times and queries such as "1" or "null".
    cases = [_case(**entry) for entry in yaml.load(JOINS.read_text(encoding="utf-8"), yaml.BaseLoader)]
    assert len({case.name for case in cases}) == len(cases), "names of cases are unique"
    return cases


def _case(
    name: str,
    rule: str,
    documents: list[dict[str, Any]],
    notifications: dict[str, list[Any]],
    subscriptions: dict[str, Any] | None = None,
    refused: list[dict[str, str]] | None = None,
    lateness: str = "0",
    repetitions: str = "0",
    **others: Any,
) -> Case:
    first = Step(register=tuple(_row(key, entry) for key, entry in (subscriptions or {}).items()))
    return Case(
        name,
        rule,
        microseconds(lateness),
        (first, *map(_step, documents)),
        notifications,
        repetitions=int(repetitions),
        refused=tuple(map(_refusal, refused or [])),
        **others,
    )


def _row(key: str, entry: Any) -> Row:
    return Row(key, entry) if isinstance(entry, str) else Row(key, **entry)


def _step(entry: dict[str, Any]) -> Step:
    if "together" in entry:
        return Step(tuple(map(_message, entry["together"])))
    if "register" in entry:
        return Step(register=tuple(_row(key, row) for key, row in entry["register"].items()))
    if "unregister" in entry:
        return Step(unregister=entry["unregister"])
    return Step(restart=True) if "restart" in entry else Step((_message(entry),))


def _message(entry: dict[str, str]) -> Message:
    return Message(entry["id"], entry.get("stream", STREAM) or None, microseconds(entry["at"]), entry["xml"])


def _refusal(entry: dict[str, str]) -> Refusal:
    place = [int(entry[key]) if key in entry else None for key in ("line", "column")]
    return Refusal(Row("refused", entry["query"], entry.get("stream")), entry.get("kind"), *place)


def shared() -> list[Case]:
    """The shared cases of joins, but for the one on the growth of state, which holds no documents."""
    if not SHARED.is_file():
        return []
    cases = []
    for entry in json.loads(SHARED.read_text(encoding="utf-8")):
        if entry["kind"] != "joins" or "pieces" in entry["documents"][0]:
            continue
        rows = tuple(Row(str(at), each["text"]) for at, each in enumerate(entry["subscriptions"], 1))
        pairs = entry["expected"]["pairs"]
        messages = [
            Message(each["id"], each["stream"], microseconds(each["time"]), each["xml"]) for each in entry["documents"]
        ]
        late = entry["id"] == "join-late-events"  # its rule says so: lateness 2, s1 is late
        cases.append(
            Case(
                entry["id"],
                entry["expected"]["rule"],
                microseconds(2 if late else 0),
                (Step(register=rows), *(Step((message,)) for message in messages)),
                pairs if isinstance(pairs, dict) else {"1": pairs},
                late=["s1"] if late else [],
            )
        )
    return cases
