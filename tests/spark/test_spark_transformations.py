"""Transformations on Spark: the same results as in process, in a batch, in a stream, and after a restart."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

pytest.importorskip("pyspark")
from spark_support import config, drop

from sardonyx import Broker, Document, Subscription
from sardonyx.errors import SettingsError
from sardonyx.model import notification_id
from sardonyx.spark import (
    SinkConfig,
    dead_letters,
    match,
    notifications,
    read_dead_letters,
    read_notifications,
    run_pipeline,
    transform,
    worker,
)
from sardonyx.spark.worker import IndexReference, MatchTask

SUBSCRIPTIONS = [
    Subscription("head", "<head>{for $h in /nitf/body/body.head/hedline return $h/*}</head>", "xquery"),
    Subscription("lines", "for $p in //body.content//p[position() <= 2] return <line>{string($p)}</line>", "xquery"),
    Subscription("items", "<items>{for $i in //item order by $i/title return <item>{$i/title}{$i/link}</item>}</items>",
                 "xquery"),
    Subscription("size", "<size n='{count(//*)}'/>", "xquery"),
    Subscription("told", "<t>{for $x in //nothing return $x}</t>", "xquery", notify_empty=True),
    Subscription("untold", "<t>{for $x in //nothing return $x}</t>", "xquery"),
    Subscription("dear", "for $x in (//hedline | //item/title) where $x > 100 return $x", "xquery"),
    Subscription("nitf", "/nitf"),
    Subscription("rss", "/rss/channel[item]"),
]  # fmt: skip

Rows = set[tuple[str, str, str | None]]


def _documents(shared: Path) -> dict[str, bytes]:
    nitf = sorted((shared / "data/yfilter-1.0/docs-500").glob("*.xml"))[:12]
    feeds = sorted((shared / "data/docs/feeds-smallweb").iterdir())[:6]
    assert (len(nitf), len(feeds)) == (12, 6)
    return {path.name: path.read_bytes() for path in [*nitf, *feeds]}


def _expected(documents: dict[str, bytes]) -> Rows:
    broker = Broker()
    assert not broker.register_many(SUBSCRIPTIONS).rejected
    report = broker.publish_many(Document(name, payload) for name, payload in documents.items())
    rows = {(item.document_id, item.subscription_id, item.result) for item in report.notifications}
    assert {"head", "items", "size", "told", "nitf", "rss"} <= {who for _, who, _ in rows}
    assert "untold" not in {who for _, who, _ in rows}
    return rows


def _failing(documents: dict[str, bytes]) -> set[str]:
    """Those for which "dear" compares words with a number."""
    broker = Broker()
    broker.register_many(SUBSCRIPTIONS)
    letters = broker.publish_many(Document(name, payload) for name, payload in documents.items()).dead_letters
    assert len(letters) > 5
    assert {(letter.subscription_id, letter.kind) for letter in letters} == {("dear", "dynamic_error")}
    return {letter.document_id for letter in letters}


def _letters(frame) -> set[tuple[str, str, str]]:
    return {(Path(row.document_id).name, row.subscription_id, row.kind) for row in frame.collect()}


def _rows(frame) -> Rows:
    table = frame.select("document_id", "subscription_id", "result").toArrow()
    rows = list(zip(*(table[name].to_pylist() for name in table.column_names), strict=True))
    assert len(rows) == len(set(rows))
    return {(Path(name).name, who, result) for name, who, result in rows}


def test_a_batch_gives_the_results_of_the_broker(spark, shared):
    documents = _documents(shared)
    expected = _expected(documents)
    frame = spark.createDataFrame(list(documents.items()), "document_id string, payload binary").repartition(3)
    assert _rows(notifications(match(frame, SUBSCRIPTIONS))) == expected
    assert _rows(transform(frame, SUBSCRIPTIONS)) == {row for row in expected if row[2] is not None}


def test_a_stream_with_a_batch_replayed_gives_what_one_run_gives(spark, shared, tmp_path):
    documents = _documents(shared)
    population = tmp_path / "subscriptions.jsonl"
    lines = [json.dumps(dataclasses.asdict(item)) for item in SUBSCRIPTIONS]
    population.write_text("\n".join(lines), encoding="utf-8")
    base = config(tmp_path)
    settings = dataclasses.replace(
        base, subscriptions=str(population), source=dataclasses.replace(base.source, max_files_per_trigger=5)
    )
    names = list(documents)
    for name in names[:10]:
        drop(tmp_path / "in", name, documents[name])
    assert run_pipeline(settings, spark=spark).batches == 2
    part = _rows(read_notifications(spark, tmp_path / "out"))
    # As if it had been killed after the results of a batch and before the word that it is done: the batch runs again.
    for path in (tmp_path / "checkpoint" / "commits").glob("*1*"):
        path.unlink()
    for name in names[10:]:
        drop(tmp_path / "in", name, documents[name])
    summary = run_pipeline(settings, spark=spark)
    assert (summary.batches, summary.documents) == (3, 13)
    stream = read_notifications(spark, tmp_path / "out")
    whole = _rows(stream)
    assert part < whole == _expected(documents)
    assert all(row.notification_id == notification_id(row.document_id, row.subscription_id) for row in stream.collect())

    once = dataclasses.replace(settings, checkpoint=None, sink=SinkConfig("jsonl", str(tmp_path / "once")))
    run_pipeline(once, spark=spark)
    assert _rows(read_notifications(spark, tmp_path / "once")) == whole
    letters = [_letters(read_dead_letters(spark, tmp_path / name)) for name in ("out", "once")]
    assert letters[0] == letters[1] == {(name, "dear", "dynamic_error") for name in _failing(documents)}


def test_what_fails_on_a_document_is_a_dead_letter_of_the_pair(spark):
    frame = spark.createDataFrame([("m1", "<a>one</a>"), ("m2", "<a>1</a>")], "document_id string, payload string")
    subscriptions = [Subscription("sum", "for $a in /a return $a + 1", "xquery"), Subscription("a", "/a")]
    results = match(frame, subscriptions).cache()
    assert _rows(notifications(results)) == {("m1", "a", None), ("m2", "a", None), ("m2", "sum", "2")}
    (letter,) = dead_letters(results).collect()
    assert (letter.document_id, letter.subscription_id, letter.kind) == ("m1", "sum", "dynamic_error")
    assert letter.message.startswith("FORG0001")
    results.unpersist()


def test_subscriptions_of_a_dataframe_say_their_language(spark):
    documents = spark.createDataFrame([("m1", "<a><b/></a>"), ("m2", "<c/>")], "document_id string, payload string")
    query = "<found>{for $b in //b return $b}</found>"
    frame = spark.createDataFrame(
        [
            ("filter", "//b", None, None),
            ("some", query, "xquery", False),
            ("always", query, "xquery", True),
            ("wrong", "for $b in", "xquery", None),
        ],
        "subscription_id string, query string, language string, notify_empty boolean",
    )
    results = match(documents, frame, output_bytes=1).cache()
    found = "<found><b/></found>"
    assert _rows(notifications(results)) == {
        ("m1", "filter", None),
        ("m1", "some", found),
        ("m1", "always", found),
        ("m2", "always", "<found/>"),
    }
    assert [(row.subscription_id, row.kind) for row in dead_letters(results).collect()] == [("wrong", "query_syntax")]
    results.unpersist()
    with pytest.raises(SettingsError, match="output_bytes is 0"):
        match(documents, frame, output_bytes=0)


@pytest.mark.parametrize("size", [0, 1, 10, 10_000])
def test_batches_of_results_are_bounded_in_bytes(size):
    """Parts reach beyond the bound by one row at most; nothing is lost, the order is kept."""
    texts = ["x" * (size if n % 3 else 0) for n in range(100)]
    keys = pa.array([None if n % 7 == 0 else n for n in range(100)], pa.uint32())
    results = pa.DictionaryArray.from_arrays(keys, pa.array(texts, pa.large_string()))
    matches = pa.record_batch({"document": pa.array(range(100), pa.uint32()), "result": results})
    parts = list(worker.parts_of(matches, "result", 5 * worker.ROW_BYTES))
    assert pa.Table.from_batches(parts).column("document").to_pylist() == list(range(100))
    for part in parts:
        sizes = [worker.ROW_BYTES + len(text or "") for text in part.column("result").to_pylist()]
        assert sum(sizes[:-1]) < 5 * worker.ROW_BYTES
    assert list(worker.parts_of(matches.slice(0, 0), "result", 1)) == []


def test_a_task_asks_the_core_for_no_more_than_it_can_hand_on(tmp_path):
    """Whatever results weigh, in however many portions and parts: the same rows, and batches near the bound."""
    broker = Broker()
    broker.register("all", "<all>{//b}</all>", language="xquery")
    broker.register("two", "for $b in //b return ($b, $b)", language="xquery")
    broker.register("bad", "for $b in //b where $b/@n > 5 return $b", language="xquery")
    broker.register("filter", "/a")
    part = f"<b n='no'>{'x' * 50}</b>"
    texts = [f"<a>{part * (n % 40)}</a>" for n in range(300)]
    documents = pa.record_batch({"document_id": [str(n) for n in range(300)], "payload": texts})
    saved = tmp_path / "index.sdx"
    reference = IndexReference(str(saved), broker.save(saved), 1)
    whole = pa.Table.from_batches(MatchTask(reference)([documents]))
    batches = list(MatchTask(reference, output_bytes=20_000)([documents.slice(0, 100), documents.slice(100)]))
    order = [("outcome", "ascending"), ("document_id", "ascending"), ("subscription_id", "ascending")]
    assert pa.Table.from_batches(batches).sort_by(order) == whole.sort_by(order)
    assert len(batches) > 30
    assert max(pc.sum(pc.binary_length(batch.column("result"))).as_py() or 0 for batch in batches) < 25_000


@pytest.mark.parametrize(
    ("documents", "asked", "given", "expected"),
    [(16, 16, 0, 32), (16, 16, 1000, 16), (16, 16, 250, 32), (16, 16, 10**9, 1), (3, 16, 30, 32), (3, 16, 300, 10)],
)
def test_the_next_portion_follows_from_the_last(documents, asked, given, expected):
    assert worker.next_portion(documents, asked, given, 1000) == expected
