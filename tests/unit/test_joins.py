"""What a broker says of joins: dead letters, streams, results off, explanations, files."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sardonyx import Broker, Document
from sardonyx.config import BrokerSettings, JoinSettings
from sardonyx.errors import IndexFormatError, InvalidFieldError, QuerySyntaxError, SettingsError
from sardonyx.explanation import JoinExplanation

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
SHIPPED = "S//order->o[sku->a] FOLLOWED BY{a = b, 10} S//ship->s[sku->b]"


def order(name: str, sku: str = "K", seconds: float = 0) -> Document:
    return Document(name, f"<order><sku>{sku}</sku></order>", "S", NOON + timedelta(seconds=seconds))


def ship(name: str, sku: str = "K", seconds: float = 0) -> Document:
    return Document(name, f"<ship><sku>{sku}</sku></ship>".encode(), "S", NOON + timedelta(seconds=seconds))


def joining(**settings: object) -> Broker:
    broker = Broker(BrokerSettings(joins=JoinSettings(**settings)))  # type: ignore[arg-type]
    broker.register("shipped", SHIPPED, language="xscl")
    return broker


def test_late_documents_are_dead_letters_that_filters_hear_all_the_same() -> None:
    broker = joining()
    broker.register("ships", "//ship")
    broker.publish(order("o"))
    report = broker.publish(ship("s", seconds=-1))
    assert [letter.kind for letter in report.dead_letters] == ["late_document"]
    assert [one.subscription_id for one in report] == ["ships"]


def test_a_full_state_refuses_loudly_and_goes_on() -> None:
    broker = joining(state_bytes=2_000)
    kinds = [
        letter.kind
        for number in range(20)
        for letter in broker.publish(order(f"o{number}", f"K{number}", number / 100)).dead_letters
    ]
    assert kinds and set(kinds) == {"state_limit"} and len(kinds) < 20
    assert broker.stats()["join_state_bytes"] <= 2_000
    assert [x.kind for x in broker.publish(ship("s", "K0", 9)).dead_letters] == ["state_limit"]
    # What has no room moves the watermark all the same, so there is room when the window has passed.
    broker.publish(Document("tick", "<tick/>", "S", NOON + timedelta(seconds=30)))
    broker.publish(order("late", "K", 31))
    assert [one.documents for one in broker.publish(ship("t", "K", 32))] == [("late", "t")]


def test_streams_declare_where_their_time_is() -> None:
    broker = joining(timestamps={"S": "/*/@at"})
    texts = [
        "<order at='2026-05-01T12:00:00Z'><sku>K</sku></order>",
        "<ship at='Fri, 01 May 2026 12:00:09 GMT'><sku>K</sku></ship>",
    ]
    reports = [broker.publish(Document(str(at), text, "S")) for at, text in enumerate(texts)]
    assert [one.documents for one in reports[1]] == [("0", "1")]
    assert [x.kind for x in broker.publish(Document("2", "<ship at='soon'/>", "S")).dead_letters] == ["timestamp"]
    with pytest.raises(SettingsError, match='stream "S"'):
        joining(timestamps={"S": "/*["})


def test_results_can_be_left_out() -> None:
    broker = joining(results=False)
    broker.publish(order("o"))
    (one,) = broker.publish(ship("s", seconds=1))
    assert (one.result, one.documents, one.document_id) == (None, ("o", "s"), "s")


def test_an_explanation_says_what_is_wrong() -> None:
    broker = joining()
    said = broker.explain("shipped", order("o"), ship("s", "L", 30))
    assert isinstance(said, JoinExplanation) and not said.matched
    assert [line.held for line in said.lines] == [True, True, False, False]
    assert 'left has "K", right has "L"' in str(said) and "30000000 us" in str(said)
    assert broker.explain("shipped", order("o"), ship("s", seconds=1)).matched
    with pytest.raises(InvalidFieldError, match="2 blocks"):
        broker.explain("shipped", order("o"))


def test_saved_subscriptions_and_states_go_on(tmp_path: Path) -> None:
    broker = joining()
    broker.register("other", "//a")
    broker.publish(order("o"))
    broker.save(tmp_path / "index.sdx")
    broker.save_state(tmp_path / "state")
    again = Broker.load(tmp_path / "index.sdx", BrokerSettings())
    again.restore_state(tmp_path / "state")
    assert sorted(again.ids()) == ["other", "shipped"]
    assert [one.documents for one in again.publish(ship("s", seconds=1))] == [("o", "s")]
    saved = (tmp_path / "state").read_bytes()
    for length in (0, 7, len(saved) // 2, len(saved) - 1):
        (tmp_path / "cut").write_bytes(saved[:length])
        with pytest.raises(IndexFormatError):
            again.restore_state(tmp_path / "cut")


def test_an_id_is_of_one_language() -> None:
    broker = joining()
    broker.register("shipped", "//order")
    assert broker.stats()["joins"] == 0 and len(broker) == 1
    broker.register("shipped", SHIPPED, language="xscl")
    assert broker.match("<order/>") == [] and len(broker) == 1
    with pytest.raises(QuerySyntaxError) as caught:
        broker.register("wrong", "S//a->x JOIN{x = , 1}", language="xscl")
    assert (caught.value.line, caught.value.subscription_id) == (1, "wrong")
    assert broker.unregister(["shipped", "wrong"]) == ["wrong"]
