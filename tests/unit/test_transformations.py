"""Transformations in Python: registered, answered, published, saved and explained."""

from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pytest

from sardonyx import Broker, BrokerSettings, Document, Limits, Subscription
from sardonyx import _core as core
from sardonyx.config import StrategyName
from sardonyx.errors import (
    CostLimitError,
    DynamicError,
    NotWellFormedError,
    QuerySyntaxError,
    QueryTypeError,
    SettingsError,
    UnboundPrefixError,
    UnsupportedError,
)
from sardonyx.explanation import PlanExplanation
from sardonyx.reports import MATCHES_SCHEMA

SHOP = "<shop><item><name>pen</name><price>5</price></item><item><name>ink</name><price>50</price></item></shop>"
CHEAP = "<cheap>{for $i in /shop/item where $i/price < 10 return $i/name}</cheap>"


@pytest.fixture
def broker() -> Broker:
    made = Broker()
    made.register("cheap", CHEAP, language="xquery")
    made.register("dear", "//price[. > 10]")
    return made


def test_results_stand_beside_matches(broker: Broker) -> None:
    assert broker.match(SHOP) == ["cheap", "dear"]
    assert broker.transform(SHOP) == {"cheap": "<cheap><name>pen</name></cheap>"}
    assert broker.match("<shop/>") == []
    assert broker.transform("<shop/>") == {}
    found = broker.match(SHOP, nodes=True)
    assert [(result.subscription_id, len(result.nodes)) for result in found] == [("cheap", 0), ("dear", 1)]


@pytest.mark.parametrize("threads", [1, 3])
def test_batches_have_results(broker: Broker, threads: int) -> None:
    report = broker.match_batch([SHOP, "<shop/>", "<shop>", SHOP.encode()], threads=threads)
    assert report.matches.schema == MATCHES_SCHEMA
    assert report.ids() == [["cheap", "dear"], [], [], ["cheap", "dear"]]
    one = {"cheap": "<cheap><name>pen</name></cheap>"}
    assert report.results() == [one, {}, {}, one]
    rows = report.matches.to_pylist()
    assert [row["result"] for row in rows if row["subscription_id"] == "dear"] == [None, None]
    assert report.errors["document"].to_pylist() == [2]


def test_batches_without_transformations_have_no_results() -> None:
    broker = Broker()
    broker.register("a", "/a")
    report = broker.match_batch([b"<a/>", "<a/>", b"<b/>"])
    assert report.matches.schema == MATCHES_SCHEMA
    assert report.matches["result"].null_count == report.matches.num_rows == 2
    assert report.results() == [{}, {}, {}]
    assert broker.match_batch([]).results() == []


def test_publishing_hands_results_over(broker: Broker) -> None:
    report = broker.publish_many([Document("m1", SHOP), Document("m2", b"<shop/>")])
    assert [(n.document_id, n.subscription_id, n.result) for n in report] == [
        ("m1", "cheap", "<cheap><name>pen</name></cheap>"),
        ("m1", "dear", None),
    ]


def test_who_is_told_of_empty_results() -> None:
    broker = Broker()
    query = "for $n in //name return $n"
    broker.register("some", query, language="xquery")
    broker.register(Subscription("always", query, "xquery", notify_empty=True))
    broker.register("constant", "<seen/>", language="xquery")
    assert broker.transform("<a/>") == {"always": "", "constant": "<seen/>"}
    assert broker.transform("<name/>") == {"always": "<name/>", "constant": "<seen/>", "some": "<name/>"}


def test_ways_to_register_notify_empty() -> None:
    rows = [{"id": "x", "query": "//n", "language": "xquery", "notify_empty": True}]
    for given in (rows, pa.Table.from_pylist(rows), [("x", "//n", "xquery", None, None, False, True)]):
        broker = Broker()
        assert broker.register_many(given).rejected == ()
        assert broker.transform("<a/>") == {"x": ""}


def test_streams_and_namespaces() -> None:
    broker = Broker()
    broker.register("n", "<r>{/p:a/p:b}</r>", language="xquery", namespaces={"p": "urn:p"}, stream="news")
    text = "<a xmlns='urn:p'><b/></a>"
    assert broker.transform(text) == {}
    assert broker.transform(Document("d", text, stream="sport")) == {}
    assert broker.transform(Document("d", text, stream="news")) == {"n": '<r><b xmlns="urn:p"/></r>'}


def test_an_id_is_one_subscription_whatever_its_language(broker: Broker) -> None:
    broker.register("cheap", "/shop")
    assert (len(broker), broker.transform(SHOP), broker.match(SHOP)) == (2, {}, ["cheap", "dear"])
    broker.register("dear", CHEAP, language="xquery")
    assert (len(broker), list(broker.transform(SHOP))) == (2, ["dear"])
    assert broker.unregister(["dear", "nobody"]) == ["nobody"]
    assert (broker.ids(), "dear" in broker) == (["cheap"], False)


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("for $a in", QuerySyntaxError),
        ("", QuerySyntaxError),
        ("<a>{1}</b>", QuerySyntaxError),
        ("/p:a", UnboundPrefixError),
        ("$nothing", QueryTypeError),
        ("frobnicate(/a)", QueryTypeError),
        ("declare function local:f() { 1 }; local:f()", UnsupportedError),
    ],
)
def test_refusals_say_where(query: str, error: type[Exception]) -> None:
    with pytest.raises(error) as caught:
        Broker().register("t", query, language="xquery")
    assert caught.value.subscription_id == "t"  # type: ignore[attr-defined]
    assert caught.value.line == 1  # type: ignore[attr-defined]


def test_a_failing_transformation_spoils_no_other(broker: Broker) -> None:
    broker.register("sum", "for $n in //name return $n + 1", language="xquery")
    with pytest.raises(DynamicError, match="FORG0001"):
        broker.transform(SHOP)
    with pytest.raises(DynamicError, match="sum"):
        broker.match(SHOP)
    report = broker.publish_many([Document("m1", SHOP)])
    assert [n.subscription_id for n in report] == ["cheap", "dear"]
    (letter,) = report.dead_letters
    assert (letter.document_id, letter.subscription_id, letter.kind) == ("m1", "sum", "dynamic_error")
    assert letter.message.startswith("FORG0001: ")


def test_bad_documents_are_named(broker: Broker) -> None:
    with pytest.raises(NotWellFormedError) as caught:
        broker.transform(Document("d", b"<a>"))
    assert caught.value.document_id == "d"


def test_the_cost_is_bounded() -> None:
    broker = Broker(BrokerSettings(limits=Limits(cost_limit=1000)))
    broker.register("square", "for $a in //a, $b in //a where $a/@k = $b/@k return 1", language="xquery")
    document = "<r>" + "<a k='1'/>" * 200 + "</r>"
    with pytest.raises(CostLimitError):
        broker.transform(document)
    assert broker.match_batch([document]).errors["kind"].to_pylist() == ["cost_limit"]


@pytest.mark.parametrize("strategy", get_args(StrategyName))
def test_strategies_change_no_answer(strategy: StrategyName, tmp_path: Path) -> None:
    settings = BrokerSettings(strategy=strategy)
    broker = Broker(settings)
    queries = [
        CHEAP,
        "for $i in //item where $i/name = 'ink' order by $i/price return <i n='{$i/name}'>{$i/price/text()}</i>",
        "<n>{count(//item)}</n>",
        "for $i in //item let $p := $i/price where $p > 10 and $i/name return ($i/name, sum($p))",
    ]
    broker.register_many([(str(number), query, "xquery") for number, query in enumerate(queries)])
    expected = {str(number): core.evaluate_xquery(query, SHOP) for number, query in enumerate(queries)}
    assert broker.transform(SHOP) == expected
    broker.save(tmp_path / "t.sdx")
    loaded = Broker.load(tmp_path / "t.sdx", settings)
    assert loaded.transform(SHOP) == expected
    assert loaded.stats()["transformations"] == len(queries)


def test_unknown_strategies_are_refused() -> None:
    with pytest.raises(SettingsError, match="it must be one of naive, F, FW, FWR, shared"):
        BrokerSettings(strategy="everything")  # type: ignore[arg-type]


SAID: dict[str, Any] = {
    "query": CHEAP,
    "strategy": "shared",
    "triggers": ["/shop/item", "/shop/item/price"],
    "plan": [
        {"operator": "construct", "detail": "<cheap>", "depth": 0, "shared_with": 0, "why": ""},
        {"operator": "for", "detail": "/shop/item", "depth": 1, "shared_with": 3, "why": "in document order"},
        {"operator": "where", "detail": "price < 10", "depth": 2, "shared_with": 1, "why": ""},
    ],
    "result": "<cheap>\n<name>pen\u009b</name>\n</cheap>",
    "matched": True,
    "error": None,
}


def test_plans_are_shown() -> None:
    explanation = PlanExplanation.from_core("cheap", True, SAID)
    assert [operator.depth for operator in explanation.plan] == [0, 1, 2]
    text = str(explanation)
    for part in (
        "subscription cheap  gives a result",
        CHEAP,
        "for /shop/item  shared with 3 other plans  in document order",
        "where price < 10  shared with 1 other plan",
        "strategy shared, woken by /shop/item or /shop/item/price",
        "<name>pen\\x9b</name>\n</cheap>",
    ):
        assert part in text
    assert text.index("construct") < text.index("for /shop") < text.index("where price")


def test_plans_without_result_are_shown() -> None:
    nothing = PlanExplanation.from_core("c", False, {**SAID, "result": None, "matched": False, "triggers": []})
    assert "gives no result" in str(nothing)
    assert "does not hear" in str(nothing)
    assert "woken by every document" in str(nothing)
    failed = PlanExplanation.from_core("c", True, {**SAID, "result": None, "matched": False, "error": "FORG0001: x"})
    assert "fails" in str(failed)
    assert "error FORG0001: x" in str(failed)
    long = PlanExplanation.from_core("c", True, {**SAID, "result": "y" * 5000})
    assert "... and 3,000 characters more" in str(long)


def test_explain(broker: Broker) -> None:
    explanation = broker.explain("cheap", Document("d", SHOP))
    assert isinstance(explanation, PlanExplanation)
    assert (explanation.matched, explanation.stream_matched, explanation.error) == (True, True, None)
    assert explanation.result == "<cheap><name>pen</name></cheap>"
    assert explanation.plan
    assert "gives a result" in str(explanation)
    nothing = broker.explain("cheap", "<shop/>")
    assert (nothing.matched, "gives no result" in str(nothing)) == (False, True)
    with pytest.raises(NotWellFormedError):
        broker.explain("cheap", "<a>")
