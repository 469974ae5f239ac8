"""Sinks: whole batches, replaced on replay, one writer."""

from __future__ import annotations

import dataclasses
import json

import pytest

pytest.importorskip("pyspark")
from spark_support import config, drop, orders, sink_pairs

from sardonyx.spark import (
    SinkConfig,
    SinkError,
    read_dead_letters,
    read_notifications,
    run_pipeline,
    sink_totals,
)
from sardonyx.spark.sinks import open_sink


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "subscriptions.txt").write_text("/order[n < 3]\n/order\n/order[\n")
    orders(tmp_path / "in", range(4))
    drop(tmp_path / "in", "bad.xml", "<order>")
    return tmp_path


EXPECTED = {(f"{n:03}.xml", s) for n in range(4) for s in ("1", "2") if s == "2" or n < 3}


@pytest.mark.parametrize("kind", ["parquet", "jsonl"])
def test_batch_and_stream_write_the_same(spark, folder, kind):
    stream = config(folder, sink=SinkConfig(kind, str(folder / "stream")))
    batch = config(folder, sink=SinkConfig(kind, str(folder / "batch")), checkpoint=None)
    for settings, batches in ((stream, 3), (batch, 1), (batch, 1)):
        summary = run_pipeline(settings, spark=spark)
        out = folder / ("stream" if settings is stream else "batch")
        assert sink_pairs(spark, out) == EXPECTED
        assert summary.batches == batches
        assert summary.documents == 5 == summary.matched_documents + summary.unmatched_documents + summary.dead_letters
        assert (summary.notifications, summary.dead_letters, summary.refused_subscriptions) == (7, 1, 1)
        letters = {(row.document_id, row.subscription_id) for row in read_dead_letters(spark, out).collect()}
        assert letters == {("bad.xml", None), (None, "3")}
        assert sink_totals(out) == summary.counts
        assert not list(out.glob(".inflight*"))
        assert not list(out.glob(".replaced*"))


def test_the_console_shows_each_outcome(spark, folder, capsys):
    summary = run_pipeline(config(folder, sink=SinkConfig("console"), checkpoint=None), spark=spark)
    shown = capsys.readouterr().out
    assert "batch 0, generation 1: 5 documents" in shown
    assert shown.count('"outcome": "notification"') == summary.notifications == 7
    assert '"kind": "not_well_formed"' in shown
    assert "refused:" in shown


def test_write_crash_restart_with_other_parallelism_replay(spark, shared, tmp_path):
    """The steps of the case `str-replay-idempotent`."""
    cases = json.loads((shared / "cases" / "cases-dev.json").read_text())
    case = next(case for case in cases if case["id"] == "str-replay-idempotent")
    (tmp_path / "subscriptions.txt").write_text(case["subscriptions"][0]["text"] + "\n")
    for number, text in enumerate(case["documents"], 1):
        drop(tmp_path / "in", f"{number}", text)
    stream = config(tmp_path)
    run_pipeline(stream, spark=spark)
    first = read_notifications(spark, tmp_path / "out").toArrow().sort_by("document_id")
    parts = len(list((tmp_path / "out" / "batch_id=0").rglob("*.parquet")))

    for path in (tmp_path / "checkpoint" / "commits").glob("*0*"):
        path.unlink()
    spark.conf.set("spark.sql.files.minPartitionNum", "1")
    try:
        replay = run_pipeline(stream, spark=spark)
    finally:
        spark.conf.unset("spark.sql.files.minPartitionNum")
    assert replay.batches == 1
    assert read_notifications(spark, tmp_path / "out").toArrow().sort_by("document_id") == first
    again = len(list((tmp_path / "out" / "batch_id=0").rglob("*.parquet")))
    assert parts != again, "the replay ran with the same parallelism"

    drop(tmp_path / "in", "1-again", case["documents"][0])
    run_pipeline(stream, spark=spark)
    rows = read_notifications(spark, tmp_path / "out").toArrow()
    assert sorted(rows["document_id"].to_pylist()) == ["1", "1-again", "2"]
    assert len(set(rows["notification_id"].to_pylist())) == 3


def test_two_pipelines_can_not_share_a_sink(spark, folder):
    stream = config(folder)
    with open_sink(stream.sink, "someone"), pytest.raises(SinkError, match="another pipeline"):
        run_pipeline(stream, spark=spark)
    run_pipeline(stream, spark=spark)
    with pytest.raises(SinkError, match="another checkpoint"):
        run_pipeline(dataclasses.replace(stream, checkpoint=str(folder / "other")), spark=spark)
    with pytest.raises(SinkError, match="another checkpoint"):
        run_pipeline(dataclasses.replace(stream, checkpoint=None), spark=spark)
    assert sink_pairs(spark, folder / "out") == EXPECTED


def test_a_reader_names_what_is_no_sink(spark, tmp_path):
    with pytest.raises(SinkError, match="not a sink"):
        read_notifications(spark, tmp_path)


def test_halves_of_a_killed_run_are_cleared_and_former_batches_put_back(spark, folder):
    stream = config(folder)
    run_pipeline(stream, spark=spark)
    out = folder / "out"
    (out / ".inflight-9-abc").mkdir()
    (out / "batch_id=1").rename(out / ".replaced-1-abc")
    assert sink_pairs(spark, out) != EXPECTED
    run_pipeline(stream, spark=spark)
    assert sink_pairs(spark, out) == EXPECTED
    assert not (out / ".inflight-9-abc").exists()
