"""Every kind of error that users can meet, brought about by an example."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sardonyx import Broker, BrokerSettings, Limits, Subscription
from sardonyx.cli.run import load_spark
from sardonyx.errors import KINDS, SardonyxError
from sardonyx.subscriptions import read
from sardonyx.workloads import load

EXAMPLES: dict[str, Callable[[Path], object]] = {
    "not_well_formed": lambda _: Broker().match("<a><b></a>"),
    "encoding": lambda _: Broker().match(b"<?xml version='1.0' encoding='utf-8'?><a>\xff</a>"),
    "limit": lambda _: Broker(BrokerSettings(limits=Limits(depth=2))).match("<a><b><c/></b></a>"),
    "doctype_forbidden": lambda _: Broker(BrokerSettings(limits=Limits(doctype="forbid"))).match("<!DOCTYPE a><a/>"),
    "unread_entity": lambda _: Broker().match("<!DOCTYPE a [<!ENTITY e SYSTEM 'e.xml'>]><a>&e;</a>"),
    "query_syntax": lambda _: Broker().register("s", "/a["),
    "query_type": lambda _: Broker().register("s", "count('x')"),
    "unknown_function": lambda _: Broker().register("s", "frobnicate(/a)"),
    "wrong_arguments": lambda _: Broker().register("s", "contains('a')"),
    "variable": lambda _: Broker().register("s", "/a[. = $x]"),
    "not_xpath_1": lambda _: Broker().register("s", "for $x in /a return $x"),
    "unbound_prefix": lambda _: Broker().register("s", "/p:a"),
    "query_limit": lambda _: Broker(BrokerSettings(limits=Limits(query_bytes=10))).register("s", "/a/b/c/d/e/f/g"),
    "unsupported": lambda _: Broker().register("s", "select 1", language="sql"),
    "cycle": lambda _: Broker().register("s", "S//a->x PUBLISH S", language="xscl"),
    "invalid_field": lambda _: Broker().register(Subscription("", "/a")),
    "unknown_subscription": lambda _: Broker().explain("nobody", "<a/>"),
    "dynamic_error": lambda _: transformation("for $x in /a return $x + 1").transform("<a>one</a>"),
    "index_format": lambda folder: Broker.load(written(folder / "x.sdx", b"no index at all")),
    "subscription_file": lambda folder: list(read(written(folder / "x.yaml", b"{}"))),
    "settings": lambda _: Limits(depth=0),
    "workload": lambda _: load("nitf"),
}
"""An example for each kind."""

ELSEWHERE = {
    "error": "the root's own word, for kinds that are not in the table",
    "document": "a base: its children are raised",
    "subscription": "a base: its children are raised",
    "evaluation": "a base: its children are raised",
    "missing_payload": "only rows of a batch have no payload: see test_broker",
    "missing_extra": "see test_the_missing_extra_is_named below",
    "cost_limit": "see test_cost_limit below",
    "capacity": "four thousand million subscriptions would be needed",
    "late_document": "only documents of joins: see test_joins",
    "state_limit": "only documents of joins: see test_joins",
    "timestamp": "only documents of joins: see test_joins",
    "internal": "an example would be a bug",
    "generation": "of pipelines: see the tests of Spark",
    "sink": "of pipelines: see the tests of Spark",
    "pipeline": "of pipelines: see the tests of Spark",
}
"""Kinds without an example here, and why."""


def transformation(query: str) -> Broker:
    broker = Broker()
    broker.register("s", query, language="xquery")
    return broker


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def test_no_kind_is_forgotten() -> None:
    assert set(EXAMPLES) | set(ELSEWHERE) >= set(KINDS)
    assert not set(EXAMPLES) & set(ELSEWHERE)


@pytest.mark.parametrize("kind", sorted(EXAMPLES))
def test_example(kind: str, tmp_path: Path) -> None:
    with pytest.raises(SardonyxError) as caught:
        EXAMPLES[kind](tmp_path)
    assert caught.value.kind == kind
    assert type(caught.value) is KINDS[kind]
    assert caught.value.message


@pytest.mark.parametrize("kind", ["not_well_formed", "query_syntax", "unbound_prefix"])
def test_positions_are_given(kind: str, tmp_path: Path) -> None:
    with pytest.raises(SardonyxError) as caught:
        EXAMPLES[kind](tmp_path)
    assert caught.value.line == 1
    assert caught.value.column is not None
    assert caught.value.offset is not None


def test_cost_limit() -> None:
    """A query that is dear on a document is refused for that document alone."""
    broker = Broker(BrokerSettings(limits=Limits(cost_limit=1000)))
    broker.register("dear", "//a[count(preceding-sibling::a) + count(following-sibling::a) = 7]")
    broker.register("cheap", "/a")
    small, large = "<a/>", "<a>" + "<a/>" * 300 + "</a>"
    assert broker.match(small) == ["cheap"]
    with pytest.raises(SardonyxError) as caught:
        broker.match(large)
    assert caught.value.kind == "cost_limit"
    report = broker.match_batch([small, large])
    assert report.errors.select(["document", "subscription_id", "kind"]).to_pylist() == [
        {"document": 1, "subscription_id": "dear", "kind": "cost_limit"}
    ]
    assert report.ids() == [["cheap"], ["cheap"]]


def test_the_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(SardonyxError, match=r"pip install 'sardonyx\[spark\]'") as caught:
        load_spark()
    assert caught.value.kind == "missing_extra"
