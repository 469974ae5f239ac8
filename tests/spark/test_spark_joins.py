"""Joins on Spark are as defined: in streams, however they are cut and begun again, and over DataFrames."""

from __future__ import annotations

import dataclasses
import json
import os
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")
from join_support import Told, apply, batches_of, documents_of, expected, merged
from spark_support import config, drop
from tests import join_runs
from tests.generators.joins import Action, Scenario, scenario
from tests.property.profiles import PAIRS, SEED

from sardonyx import Broker, Document, Subscription
from sardonyx.config import BrokerSettings, JoinSettings
from sardonyx.errors import SettingsError
from sardonyx.spark import (
    JoinStream,
    Progress,
    SinkConfig,
    SourceConfig,
    dead_letters,
    join,
    joining,
    match,
    notifications,
    publish_generation,
    read_dead_letters,
    read_notifications,
    run_pipeline,
    sink_totals,
    statistics,
)

SCENARIOS = PAIRS // 300
LATENESS_US = 45_000_000
MOST = 500_000


@cache
def _scenarios() -> tuple[Scenario, join_runs.Outcome]:
    made = merged([scenario(seed, 1_000_000) for seed in range(SEED, SEED + SCENARIOS)], LATENESS_US)
    return made, expected(made, MOST)


def test_random_scenarios_in_a_stream_that_is_begun_again_are_as_defined(spark, tmp_path):
    made, told = _scenarios()
    assert SCENARIOS < 60 or min(sum(map(len, told.late)), sum(told.repetitions), len(told.told)) > 5
    batches = batches_of(made)
    source, store, checkpoint = (tmp_path / name for name in ("in", "store", "checkpoint"))
    source.mkdir()
    broker, found, refused = Broker(), Told(), []
    settings = JoinSettings(lateness_us=LATENESS_US)

    def run(numbers: range) -> None:
        for number in numbers:
            place = source / f"{number:03}.parquet"
            pq.write_table(pa.Table.from_batches([documents_of(batches[number][1])]), place)
            os.utime(place, (1_700_000_000 + number,) * 2)
        stream = JoinStream(store, checkpoint, joins=settings, snapshot_batches=2)

        def on_batch(batch: Any, batch_id: int) -> None:
            refused.extend(apply(broker, batches[batch_id][0]))
            publish_generation(broker, store)
            with stream.joined(batch, batch_id) as joined:
                found.rows[batch_id] = joined.results.toArrow()

        documents = spark.readStream.schema(
            "document_id string, payload string, stream string, timestamp timestamp"
        ).option("maxFilesPerTrigger", 1)
        writer = documents.parquet(str(source)).writeStream.foreachBatch(on_batch)
        query = writer.option("checkpointLocation", checkpoint.as_uri()).trigger(availableNow=True).start()
        try:
            assert query.awaitTermination(200)
            assert query.exception() is None
        finally:
            query.stop()

    half = len(batches) // 2
    run(range(half))
    run(range(half, len(batches)))
    outcome = found.outcome()
    outcome.refused = refused
    assert told.difference(outcome) is None
    assert len(set(outcome.ids)) == len(outcome.ids)


def test_random_scenarios_over_a_dataframe_are_as_defined(spark, tmp_path, monkeypatch):
    """All documents in any order, in many chunks: nothing is late, and what is registered at the end always was."""
    made, _ = _scenarios()
    before = [action for action in made.actions if not action.messages]
    told = expected(
        dataclasses.replace(made, actions=(*before, Action("publish", messages=tuple(made.messages)))), MOST
    )
    broker = Broker()
    refused = apply(broker, before)
    monkeypatch.setattr(joining, "CHUNK_DOCUMENTS", 100)
    documents = documents_of(sorted(made.messages, key=lambda message: message.xml))
    frame = spark.createDataFrame(pa.Table.from_batches([documents]))
    results = join(frame, broker, joins=JoinSettings(lateness_us=5), index_directory=tmp_path).toArrow()
    outcome = Told({0: results}).outcome()
    outcome.refused = refused
    assert told.difference(outcome) is None
    assert any(told.repetitions)


SUBSCRIPTIONS = [
    {"id": "orders", "query": "/order"},
    {"id": "seen", "query": "<seen>{//sku}</seen>", "language": "xquery", "stream": "shipped"},
    {"id": "pairs", "query": "/result[order]"},
    {
        "id": "shipped",
        "language": "xscl",
        "query": "FROM S//order->o[sku->a] FOLLOWED BY{a = b, 10 s} S//ship->s[sku->b] PUBLISH shipped",
    },
    {"id": "billed", "language": "xscl", "query": "shipped//order->o[sku->a] JOIN{a = b, 10 s} S//bill->x[sku->b]"},
]
START = datetime(2026, 5, 1, tzinfo=UTC)


def _line(name: str, sku: str, seconds: float) -> str:
    moment = (START + timedelta(seconds=seconds)).isoformat()
    payload = f"<{name}><sku>{sku}</sku></{name}>"
    return json.dumps({"document_id": f"{name}-{sku}", "payload": payload, "stream": "S", "timestamp": moment}) + "\n"


def _drop(folder: Path, number: int, *documents: tuple[str, str, float]) -> None:
    drop(folder, f"{number:03}.jsonl", "".join(_line(*document) for document in documents))
    os.utime(folder / f"{number:03}.jsonl", (1_700_000_000 + number,) * 2)


def _subscribe(folder: Path, *more: dict[str, str]) -> None:
    lines = "".join(json.dumps(item) + "\n" for item in (*SUBSCRIPTIONS, *more))
    drop(folder, "subscriptions.jsonl", lines)


def _joins(spark: Any, folder: Path) -> dict[tuple[str, tuple[str, ...]], str]:
    """The notifications of joins in a sink, by subscription and documents: ids of derived ones are resolved."""
    rows = read_notifications(spark, folder / "out").where("document_ids IS NOT NULL").collect()
    assert len({row.notification_id for row in rows}) == len(rows)
    names = {row.notification_id: "+".join(row.document_ids) for row in rows}
    assert all(row.document_id == row.document_ids[-1] for row in rows)
    return {
        (row.subscription_id, tuple(names.get(name, name) for name in row.document_ids)): row.result for row in rows
    }


def test_a_pipeline_joins_beside_filters_and_transformations(spark, tmp_path):
    """Late documents, derived streams, a replay, new subscriptions in mid-stream, and a state that shrinks."""
    stream = config(
        tmp_path,
        source=SourceConfig("jsonl", str(tmp_path / "in"), max_files_per_trigger=1),
        subscriptions=str(tmp_path / "subscriptions.jsonl"),
        sink=SinkConfig("jsonl", str(tmp_path / "out")),
        joins=JoinSettings(lateness_us=1_000_000),
    )
    _subscribe(tmp_path)
    _drop(tmp_path / "in", 0, *(("order", f"A{number}", number / 100) for number in range(100)), ("note", "A0", 0))
    _drop(tmp_path / "in", 1, ("ship", "A1", 4), ("ship", "A2", 4))
    _drop(tmp_path / "in", 2, ("bill", "A2", 5), ("ship", "A3", 2.5), ("note", "A0", 0))
    seen: list[Progress] = []
    summary = run_pipeline(stream, seen.append, spark=spark)
    first = {
        ("shipped", ("order-A1", "ship-A1")),
        ("shipped", ("order-A2", "ship-A2")),
        ("billed", ("order-A2+ship-A2", "bill-A2")),
    }
    made = _joins(spark, tmp_path)
    assert set(made) == first
    assert made["shipped", ("order-A1", "ship-A1")] == (
        "<result><order><sku>A1</sku></order><ship><sku>A1</sku></ship></result>"
    )
    letters = {(row.document_id, row.kind) for row in read_dead_letters(spark, tmp_path / "out").collect()}
    assert letters == {("ship-A3", "late_document"), ("note-A0", "late_document")}
    counts = summary.counts
    assert (counts.documents, counts.matched_documents, counts.dead_letters) == (106, 100, 0)
    assert (counts.unjoined_documents, counts.notifications) == (2, 100 + 3 + 2 * 2)
    assert sink_totals(tmp_path / "out") == counts
    rows = read_notifications(spark, tmp_path / "out").where("subscription_id IN ('seen', 'pairs')").collect()
    shipped = [key for key in made if key[0] == "shipped"]
    assert sorted(row.result or "" for row in rows) == [
        "", "", *(f"<seen><sku>{sku}</sku><sku>{sku}</sku></seen>" for sku in ("A1", "A2"))
    ]  # fmt: skip
    assert len(shipped) == 2
    assert [progress.joins.watermark_us for progress in seen] == [
        _us(0.99 - 1), _us(4 - 1), _us(5 - 1)
    ]  # fmt: skip

    # The crash after the sink's rename and before Spark's commit; new subscriptions wait for documents to come.
    for path in (tmp_path / "checkpoint" / "commits").glob("*2*"):
        path.unlink()
    before = read_notifications(spark, tmp_path / "out").toArrow().sort_by("notification_id")
    _subscribe(tmp_path, {**SUBSCRIPTIONS[3], "id": "again", "query": SUBSCRIPTIONS[3]["query"].partition(" PUB")[0]})
    assert run_pipeline(stream, seen.append, spark=spark).batches == 1
    assert read_notifications(spark, tmp_path / "out").toArrow().sort_by("notification_id") == before
    assert seen[-1].joins == seen[-2].joins

    _drop(tmp_path / "in", 3, ("ship", "A4", 6), ("order", "B", 6))
    _drop(tmp_path / "in", 4, ("ship", "B", 7), ("tick", "", 30))
    run_pipeline(stream, seen.append, spark=spark)
    assert set(_joins(spark, tmp_path)) == first | {
        ("shipped", ("order-A4", "ship-A4")),
        ("shipped", ("order-B", "ship-B")),
        ("again", ("order-B", "ship-B")),
    }
    states = [progress.joins for progress in seen]
    assert states[0].state_documents >= 100
    assert states[-1].state_documents <= 5
    assert states[-1].state_bytes < states[0].state_bytes / 4
    assert states[-1].watermark_us == _us(29)


def _us(seconds: float) -> int:
    return round((START.timestamp() + seconds) * 1_000_000)


VOEVENT = {"v": "http://www.ivoa.net/xml/VOEvent/v2.0"}
SAME_TRIGGER = """
    SELECT <news of="{$a}">{$x/Date}{$y/Date}</news>
    FROM /v:VOEvent[Who->x and .//Param[@name = 'TrigID']/@value->a]
         FOLLOWED BY{a = b, 1 d}
         /v:VOEvent[Who->y and .//Param[@name = 'TrigID']/@value->b]
"""


def test_alerts_about_one_trigger_are_those_that_a_broker_finds(spark, shared, tmp_path):
    """Real alerts, which say in their text when they were sent: in a stream, at once, and in process."""
    folder = shared / "data" / "docs" / "voevent-followups"
    settings = JoinSettings(timestamps={"alerts": "/*/Who/Date"}, lateness_us=10**15)
    subscriptions = [
        Subscription("same-trigger", SAME_TRIGGER, "xscl", VOEVENT, "alerts"),
        Subscription("alerts", "/v:VOEvent", namespaces=VOEVENT),
    ]
    broker = Broker(BrokerSettings(joins=settings))
    assert not broker.register_many(subscriptions).rejected
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    report = broker.publish_many(
        [Document(str(path.relative_to(folder)), path.read_bytes(), "alerts") for path in files], together=True
    )
    told = {(one.notification_id, one.documents or None, one.result) for one in report}
    assert len([one for one in report if one.documents]) > 50
    broker.save(tmp_path / "index.sdx")
    stream = config(
        tmp_path,
        source=SourceConfig("files", str(folder), stream="alerts", max_files_per_trigger=70),
        subscriptions=str(tmp_path / "index.sdx"),
        joins=settings,
    )
    batch = dataclasses.replace(stream, checkpoint=None, sink=SinkConfig("parquet", str(tmp_path / "batch")))
    for settings_of_run, name in ((stream, "out"), (batch, "batch")):
        summary = run_pipeline(settings_of_run, spark=spark)
        assert summary.unjoined_documents == len([one for one in report.dead_letters if one.kind == "timestamp"])
        rows = read_notifications(spark, tmp_path / name).collect()
        found = {(row.notification_id, row.document_ids and tuple(row.document_ids), row.result) for row in rows}
        assert found == told


def test_match_leaves_joins_out_and_says_so(spark):
    documents = spark.createDataFrame([("o", "<order/>")], "document_id string, payload string")
    with pytest.warns(UserWarning, match="1 subscriptions are joins"):
        results = match(documents, [("a", "/order"), Subscription("j", "//order->o", "xscl")])
    assert [row.subscription_id for row in notifications(results).collect()] == ["a"]


def test_a_mistake_in_the_settings_is_told_before_anything_runs(spark, tmp_path):
    settings = JoinSettings(timestamps={"S": "//["})
    with pytest.raises(SettingsError, match="timestamp of stream"):
        JoinStream(tmp_path, tmp_path, joins=settings)
    documents = spark.createDataFrame([("o", "<order/>")], "document_id string, payload string")
    with pytest.raises(SettingsError, match="timestamp of stream"):
        join(documents, [Subscription("j", "//order->o", "xscl")], joins=settings)


def test_documents_without_a_timestamp_have_arrived_or_say_it(spark):
    documents = spark.createDataFrame(
        [
            ("now", "<order/>", None, None),
            ("says", "<order at='2020-01-01T00:00:00Z'/>", "S", None),
            ("silent", "<order/>", "S", None),
            ("broken", "<order", "S", None),
            ("given", "<order/>", "S", START),
        ],
        "document_id string, payload string, stream string, timestamp timestamp",
    )
    settings = JoinSettings(timestamps={"S": "/order/@at"})
    query = "FROM //order->o JOIN{o = p, INF} //order->p"
    results = join(documents, [Subscription("j", query, "xscl")], joins=settings).cache()
    found = {tuple(row.document_ids) for row in notifications(results).collect()}
    names = ("now", "says", "given")
    assert found == {(one, other) for one in names for other in names if one != other}
    assert {(row.document_id, row.kind) for row in dead_letters(results).collect()} == {
        ("silent", "timestamp"),
        ("broken", "not_well_formed"),
    }
    counts = [row.unjoined_documents or 0 for row in statistics(results).collect()]
    assert sum(counts) == 1
