"""Transformations on Spark: the same results as in process, in a batch, in a stream, and after a restart."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
from pathlib import Path

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")
from spark_support import config, drop

from sardonyx import Broker, Document, Subscription
from sardonyx.spark import Progress, dead_letters, match, notifications, read_notifications, run_pipeline, transform
from sardonyx.spark import worker as spark_worker

SUBSCRIPTIONS = [
    Subscription("head", "<head>{for $h in /nitf/body/body.head/hedline return $h/*}</head>", "xquery"),
    Subscription("lines", "for $p in //body.content//p[position() <= 2] return <line>{string($p)}</line>", "xquery"),
    Subscription("items", "<items>{for $i in //item order by $i/title return <item>{$i/title}{$i/link}</item>}</items>",
                 "xquery"),
    Subscription("size", "<size n='{count(//*)}'/>", "xquery"),
    Subscription("told", "<t>{for $x in //nothing return $x}</t>", "xquery", notify_empty=True),
    Subscription("untold", "<t>{for $x in //nothing return $x}</t>", "xquery"),
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


def test_a_stream_gives_them_too_and_goes_on_after_an_interruption(spark, shared, tmp_path):
    documents = _documents(shared)
    for name, payload in documents.items():
        drop(tmp_path / "in", name, payload)
    population = tmp_path / "subscriptions.jsonl"
    lines = [json.dumps(dataclasses.asdict(item)) for item in SUBSCRIPTIONS]
    population.write_text("\n".join(lines), encoding="utf-8")
    base = config(tmp_path)
    settings = dataclasses.replace(
        base, subscriptions=str(population), source=dataclasses.replace(base.source, max_files_per_trigger=5)
    )

    def interrupt(progress: Progress) -> None:
        if progress.batch_id == 1:
            os.kill(os.getpid(), signal.SIGINT)

    assert run_pipeline(dataclasses.replace(settings, trigger=0), interrupt, spark=spark).interrupted
    part = _rows(read_notifications(spark, tmp_path / "out"))
    run_pipeline(settings, spark=spark)
    whole = _rows(read_notifications(spark, tmp_path / "out"))
    assert part < whole == _expected(documents)


def test_what_fails_on_a_document_is_a_dead_letter_of_the_pair(spark):
    frame = spark.createDataFrame([("m1", "<a>one</a>"), ("m2", "<a>1</a>")], "document_id string, payload string")
    subscriptions = [Subscription("sum", "for $a in /a return $a + 1", "xquery"), Subscription("a", "/a")]
    results = match(frame, subscriptions).cache()
    assert _rows(notifications(results)) == {("m1", "a", None), ("m2", "a", None), ("m2", "sum", "2")}
    (letter,) = dead_letters(results).collect()
    assert (letter.document_id, letter.subscription_id, letter.kind) == ("m1", "sum", "dynamic_error")
    assert letter.message.startswith("FORG0001")
    results.unpersist()


@pytest.mark.parametrize("size", [0, 1, 10, 10_000])
def test_batches_of_results_are_bounded_in_bytes(monkeypatch, size):
    """Parts hold at most so many bytes, unless a single result is larger; nothing is lost, the order is kept."""
    monkeypatch.setattr(spark_worker, "OUTPUT_BYTES", 100)
    monkeypatch.setattr(spark_worker, "OUTPUT_ROWS", 30)
    texts = ["x" * (size if n % 3 else 0) for n in range(100)]
    keys = pa.array([None if n % 7 == 0 else n for n in range(100)], pa.uint32())
    results = pa.DictionaryArray.from_arrays(keys, pa.array(texts, pa.large_string()))
    ids = pa.array([str(n) for n in range(100)]).dictionary_encode()
    matches = pa.record_batch(
        {"document": pa.array(range(100), pa.uint32()), "subscription_id": ids, "result": results}
    )
    parts = list(spark_worker._parts(matches))
    assert pa.Table.from_batches(parts).column("document").to_pylist() == list(range(100))
    assert all(part.num_rows <= 30 for part in parts)
    for part in parts:
        sizes = [len(text or "") for text in part.column("result").to_pylist()]
        assert sum(sizes) <= 100 or sum(1 for size in sizes if size) == 1
