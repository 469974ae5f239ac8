"""The public surface gives the core's answers: one by one, in batches, published, explained, saved and loaded."""

from pathlib import Path

import pytest

from sardonyx import Broker, BrokerSettings, Document, Limits
from tests import engine
from tests.generators import documents, populations
from tests.generators.expressions import NAMESPACES
from tests.generators.pick import RandomPick
from tests.property.profiles import PROFILE, SEED


@pytest.mark.parametrize("matcher", engine.MATCHERS)
def test_same_answers(matcher: str, tmp_path: Path) -> None:
    """`match`, `match_batch`, `publish_many`, `explain` and a loaded broker agree with the index."""
    for round_ in range(max(3, PROFILE.populations // 5)):
        pick = RandomPick(SEED + 33_000 + round_)
        queries = {f"q{at}": populations.query(pick).text() for at in range(60)}
        payloads = [documents.generate(pick, 15).payload for _ in range(12)]
        broker = Broker(matcher=matcher)  # type: ignore[arg-type]
        rows = [{"id": key, "query": text, "namespaces": NAMESPACES} for key, text in queries.items()]
        assert not broker.register_many([*rows, {"id": "bad", "query": "//a["}]).rejected[1:]
        index = engine.index(list(queries.values()), NAMESPACES)
        expected = [sorted(f"q{key}" for key in index.match(payload)) for payload in payloads]
        assert [broker.match(payload) for payload in payloads] == expected
        assert broker.match_batch(payloads, threads=2).ids() == expected
        messages = [Document(str(at), payload) for at, payload in enumerate(payloads)]
        published = [(note.document_id, note.subscription_id) for note in broker.publish_many(messages)]
        assert sorted(published) == sorted((str(at), key) for at, ids in enumerate(expected) for key in ids)
        broker.save(tmp_path / "broker")
        assert [Broker.load(tmp_path / "broker").match(payload) for payload in payloads] == expected
        for key in list(queries)[:15]:
            explanation = broker.explain(key, payloads[0])
            assert explanation.matched == (key in expected[0]), queries[key]
            assert explanation.candidate or not explanation.matched, f"a match is a candidate: {queries[key]}"


def test_costly_subscriptions_disturb_no_other() -> None:
    """One that exceeds the cost limit on a document is an error of its own; the others are answered."""
    broker = Broker(BrokerSettings(limits=Limits(cost_limit=20_000)))
    costly = "count(//x[count(//x[count(//x) > count(preceding::x)]) > 1]) > 5"
    broker.register_many([("cheap", "//x"), ("costly", costly), ("other", "//x[@k='1']")])
    large = b"<r>" + b"<x k='1'/>" * 400 + b"</r>"
    report = broker.match_batch([b"<x/>", large, b"<x k='1'/>"])
    assert report.ids()[1] == ["cheap", "other"]
    errors = report.errors.to_pylist()
    assert [(row["document"], row["subscription_id"]) for row in errors] == [(1, "costly")]
    assert report.ids()[2] == ["cheap", "other"]
