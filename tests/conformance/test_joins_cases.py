"""Joins by example: the corpus and the shared cases, told by a broker and by the definition."""

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from sardonyx import Broker, Document, errors
from sardonyx.model import Notification
from tests import join_cases, join_runs
from tests.join_cases import Case, Row, Step
from tests.join_queries import Subscription
from tests.join_reader import read
from tests.joins import Definition, canonical
from tests.shared_data import needs_cases

CASES = join_cases.load()
CASE_COUNT = 76
REFUSED_COUNT = 63
SHARED_CASES = {"join-window-boundary", "join-equal-timestamps", "join-late-events", "join-restart-mid-window"}
WAYS = ("as written", "restarted", "together", "together turned round", "together shuffled")


class _Told:
    """What a broker said in the course of a case."""

    def __init__(self) -> None:
        self.notifications: list[Notification] = []
        self.late: list[str] = []
        self.failed: list[str] = []
        self.repetitions = 0

    def add(self, report: Any) -> None:
        self.notifications += report.notifications
        self.late += [letter.document_id for letter in report.dead_letters if letter.kind == "late_document"]
        self.failed += [letter.document_id for letter in report.dead_letters if letter.kind != "late_document"]
        self.repetitions += report.repetitions

    def pairs(self, subscription_id: str) -> Counter[Any]:
        """The documents of a subscription's notifications, with how often."""
        known = {one.notification_id: one for one in self.notifications}

        def name(document_id: str) -> Any:
            made = known.get(document_id)
            return document_id if made is None else (made.subscription_id, *map(name, made.documents))

        return Counter(
            tuple(map(name, one.documents or (one.document_id,)))
            for one in self.notifications
            if one.subscription_id == subscription_id
        )

    def results(self, subscription_id: str) -> list[str]:
        """The results of a subscription, in canonical form."""
        return sorted(_canonical(one.result) for one in self.notifications if one.subscription_id == subscription_id)


def _canonical(result: str | None) -> str:
    assert result is not None
    return canonical(f"<results>{result}</results>")


def _register(broker: Broker, row: Row, case: Case) -> None:
    broker.register(row.id, row.query, language=row.language, namespaces=case.namespaces or None, stream=row.stream)


def _play(case: Case, way: str, folder: Path) -> _Told:
    broker = Broker(join_runs.settings(case.lateness_us))
    told, rows = _Told(), dict[str, Row]()
    for number, step in enumerate(_steps(case, way)):
        if step.restart or (way == "restarted" and number):
            broker = _restarted(broker, rows, case, folder / "state")
        for row in step.register:
            _register(broker, row, case)
            rows.pop(row.id, None)
            rows[row.id] = row
        if number == 0:
            _refuse(broker, case)
        if step.unregister:
            broker.unregister(step.unregister)
            del rows[step.unregister]
        documents = list(map(join_runs.document, step.messages))
        if len(documents) == 1:
            told.add(broker.publish(documents[0]))
        elif documents:
            told.add(broker.publish_many(documents, together=True))
    return told


def _steps(case: Case, way: str) -> Sequence[Step]:
    if not way.startswith("together"):
        return case.steps
    messages = [message for step in case.steps for message in step.messages]
    if way.endswith("turned round"):
        messages.reverse()
    elif way.endswith("shuffled"):
        Random(case.name).shuffle(messages)
    return [case.steps[0], Step(tuple(messages))]


def _restarted(broker: Broker, rows: dict[str, Row], case: Case, path: Path) -> Broker:
    broker.save_state(path)
    fresh = Broker(broker.settings)
    for row in rows.values():
        _register(fresh, row, case)
    fresh.restore_state(path)
    return fresh


def _refuse(broker: Broker, case: Case) -> None:
    """Registers what has to be refused, which must leave no trace."""
    accepted, misplaced = [], []
    for refusal in case.refused:
        try:
            _register(broker, refusal.row, case)
        except errors.SubscriptionError as error:
            for key in ("kind", "line", "column"):
                wanted, found = getattr(refusal, key), getattr(error, key)
                if wanted is not None and wanted != found:
                    misplaced.append(f"{refusal.row.query}: {key} {wanted}, not {found}: {error}")
        else:
            accepted.append(refusal.row.query)
            broker.unregister(refusal.row.id)
    assert accepted == [], "refused"
    assert misplaced == []


def _expected(documents: Any) -> Any:
    """The ids of a notification's documents as a case writes them, with a list for each that is itself a result."""
    return tuple(each if isinstance(each, str) else (each[0], *_expected(each[1:])) for each in documents)


def _check(case: Case, told: _Told) -> None:
    for key, documents in case.notifications.items():
        assert told.pairs(key) == Counter(map(_expected, documents)), (key, case.rule)
    for key, results in case.results.items():
        assert told.results(key) == sorted(map(_canonical, results)), (key, case.rule)
    assert (told.late, told.failed, told.repetitions) == (case.late, case.failed, case.repetitions), case.rule
    ids = [one.notification_id for one in told.notifications]
    assert len(set(ids)) == len(ids)


def _ways(case: Case) -> Sequence[str]:
    return WAYS if case.is_free else WAYS[:2]


def test_count() -> None:
    """The corpus was found and read, and every subscription of a case has its expectation."""
    assert len(CASES) == CASE_COUNT
    assert sum(len(case.refused) for case in CASES) == REFUSED_COUNT
    for case in CASES:
        assert {row.id for row in case.rows} >= set(case.notifications), case.name
        assert case.name.endswith(("-spelling", "refused-syntax")) or {row.id for row in case.rows} == set(
            case.notifications
        ), case.name


@pytest.mark.parametrize(("case", "way"), [(case, way) for case in CASES for way in _ways(case)], ids=str)
def test_case(case: Case, way: str, tmp_path: Path) -> None:
    """What the case says, one by one, with a restart before every step, and in one batch in several orders."""
    _check(case, _play(case, way, tmp_path))


def _defined(case: Case) -> dict[str, Counter[Any]] | None:
    """What the definition says; None where it can not, because constructed results are heard again."""
    definition = Definition(case.lateness_us)
    for step in case.steps:
        for row in step.register:
            if row.language == "xscl":
                query = read(row.query, case.namespaces)
                if query.publish is not None and query.select is not None:
                    return None
                definition.register(Subscription(row.id, query, row.stream))
        if step.unregister:
            definition.unregister(step.unregister)
        if step.messages:
            definition.publish(step.messages)
    told: dict[str, Counter[Any]] = {row.id: Counter() for row in case.rows if row.language == "xscl"}
    for one in definition.notifications():
        told[one.subscription_id][tuple(map(_named, one.documents))] += 1
    return told


def _named(document: Any) -> Any:
    return document if isinstance(document, str) else (document[0], *map(_named, document[1]))


@pytest.mark.parametrize("case", [case for case in CASES if not case.failed], ids=lambda case: case.name)
def test_definition_agrees(case: Case) -> None:
    """The cases and the definition were not made from each other, and say the same."""
    told = _defined(case)
    if told is None:
        assert case.name == "join-constructed-derived"
        return
    for key, counter in told.items():
        assert counter == Counter(map(_expected, case.notifications[key])), (key, case.rule)


@needs_cases
def test_shared_count() -> None:
    """All shared cases of joins were found; the one on the growth of state is a test of its own below."""
    assert {case.name for case in join_cases.shared()} == SHARED_CASES


@needs_cases
@pytest.mark.parametrize(("case", "way"), [(case, way) for case in join_cases.shared() for way in _ways(case)], ids=str)
def test_shared_case(case: Case, way: str, tmp_path: Path) -> None:
    """The pairs that the case says, in every cut, in both orders, and through a restart before every document."""
    _check(case, _play(case, way, tmp_path))


@needs_cases
def test_shared_case_replayed(tmp_path: Path) -> None:
    """After a crash before the commit, the same state and the same document give the same notification again."""
    case = next(case for case in join_cases.shared() if case.name == "join-restart-mid-window")
    first, second = (join_runs.document(message) for step in case.steps for message in step.messages)
    broker = Broker(join_runs.settings(0))
    rows = {row.id: row for row in case.rows}
    for row in rows.values():
        _register(broker, row, case)
    assert broker.publish(first).notifications == ()
    broker.save_state(tmp_path / "committed")
    told = broker.publish(second).notifications
    assert [one.documents for one in told] == [("o1", "s1")]
    broker.save_state(tmp_path / "after")
    for file, expected in (("committed", told), ("after", ())):
        fresh = Broker(broker.settings)
        for row in rows.values():
            _register(fresh, row, case)
        fresh.restore_state(tmp_path / file)
        assert fresh.publish(second).notifications == expected, file
        late = fresh.publish(Document("o0", "<order><sku>K</sku></order>", "S", join_runs.timestamp(2_999_999)))
        assert [letter.kind for letter in late.dead_letters] == ["late_document"], "the watermark does not go back"


@needs_cases
@pytest.mark.slow
def test_shared_case_of_growth() -> None:
    """100,000 orders and no ship at all: the state holds those of one window."""
    broker = Broker(join_runs.settings(0))
    broker.register("q", "S//order->o[.//sku->a] JOIN{a=b, 10} S//ship->s[.//sku->b]", language="xscl")
    units, started = [], time.process_time()
    for start in range(0, 100_000, 5_000):
        report = broker.publish_many(
            Document(f"o{at}", f"<order><sku>K{at}</sku></order>", "S", join_runs.timestamp(at * 1_000_000))
            for at in range(start, start + 5_000)
        )
        assert (report.notifications, report.dead_letters) == ((), ())
        units.append(broker.stats()["join_state_units"])
    assert max(units) <= 110
    assert len(set(units)) == 1
    assert time.process_time() - started < 100
