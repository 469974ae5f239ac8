"""Generations: published whole, pinned for good, one per micro-batch."""

from __future__ import annotations

import itertools
import shutil
import threading

import pytest

pytest.importorskip("pyspark")
from spark_support import config, drop, orders, sink_pairs

from sardonyx import Broker
from sardonyx.errors import IndexFormatError
from sardonyx.spark import GenerationError, current, match, notifications, pin, publish_generation, run_pipeline
from sardonyx.spark.versions import clean, unpin
from sardonyx.spark.worker import CACHED_GENERATIONS, cached_index


def broker(*queries: str) -> Broker:
    made = Broker()
    made.register_many([(str(number), query) for number, query in enumerate(queries)])
    return made


def test_publishing_moves_the_pointer_and_counts_up(tmp_path):
    with pytest.raises(GenerationError, match="no published index"):
        current(tmp_path)
    first = publish_generation(broker("/a"), tmp_path)
    second = publish_generation(broker("/b"), tmp_path)
    assert second.number > first.number
    assert current(tmp_path) == second
    assert publish_generation(broker("/b"), tmp_path) == second
    assert Broker.load(first.path).match("<a/>") == ["0"]
    assert Broker.load(second.path).match("<a/>") == []
    assert sorted(path.name for path in tmp_path.glob("*.sdx")) == sorted(
        path.rsplit("/", 1)[1] for path in (first.path, second.path)
    )


def test_pins_hold_and_cleaning_respects_them(tmp_path):
    store, checkpoint = tmp_path / "store", tmp_path / "checkpoint"
    published = [publish_generation(broker(f"/a{number}"), store) for number in range(2)]
    assert pin(store, checkpoint, 7) == published[1]
    published += [publish_generation(broker(f"/b{number}"), store) for number in range(4)]
    assert pin(store, checkpoint, 7) == published[1]
    assert pin(store, checkpoint, 8) == published[5]
    assert len(clean(store, keep=2)) == 3
    remaining = [generation for generation in published if shutil.os.path.exists(generation.path)]
    assert remaining == [published[1], published[4], published[5]]
    assert pin(store, checkpoint, 7) == published[1]
    unpin(checkpoint, 8)
    assert len(clean(store, keep=2)) == 1
    assert pin(store, checkpoint, 7) == published[5]


def test_pins_of_a_deleted_checkpoint_do_not_count(tmp_path):
    store, checkpoint = tmp_path / "store", tmp_path / "checkpoint"
    first = publish_generation(broker("/a"), store)
    assert pin(store, checkpoint, 0) == first
    for number in range(3):
        publish_generation(broker(f"/b{number}"), store)
    shutil.rmtree(checkpoint)
    assert len(clean(store, keep=2)) == 2
    assert not shutil.os.path.exists(first.path)


def test_a_pinned_file_that_is_gone_is_an_error_not_another_answer(tmp_path):
    store, checkpoint = tmp_path / "store", tmp_path / "checkpoint"
    first = publish_generation(broker("/a"), store)
    pin(store, checkpoint, 0)
    publish_generation(broker("/b"), store)
    shutil.os.unlink(first.path)
    with pytest.raises(GenerationError, match="batch 0 is pinned"):
        pin(store, checkpoint, 0)


def test_pinning_and_cleaning_race_without_losing_a_pinned_file(tmp_path):
    store = tmp_path / "store"
    publish_generation(broker("/start"), store)
    stop = threading.Event()
    failures: list[BaseException] = []

    def publisher() -> None:
        for number in itertools.count():
            if stop.is_set():
                return
            publish_generation(broker(f"/x{number}"), store)
            clean(store, keep=1)

    def pinner(name: str) -> None:
        try:
            for batch in range(40):
                chosen = pin(store, tmp_path / name, batch)
                assert shutil.os.path.exists(chosen.path)
                assert pin(store, tmp_path / name, batch) == chosen
                unpin(tmp_path / name, batch - 3)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=pinner, args=(f"checkpoint{number}",)) for number in range(2)]
    noise = threading.Thread(target=publisher)
    for thread in [noise, *threads]:
        thread.start()
    for thread in threads:
        thread.join(60)
    stop.set()
    noise.join(60)
    assert not failures
    assert not any(thread.is_alive() for thread in [noise, *threads])


def test_a_worker_keeps_two_generations_and_is_safe_in_threads(tmp_path):
    from sardonyx.spark import worker

    made = [publish_generation(broker(f"/a{number}"), tmp_path).reference() for number in range(3)]
    worker._CACHE.clear()
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(cached_index(made[0]))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(index) for index in found}) == 1
    for reference in made:
        cached_index(reference)
    assert len(worker._CACHE) == CACHED_GENERATIONS
    assert cached_index(made[1]) is cached_index(made[1])
    worker._CACHE.clear()


def test_an_index_replaced_under_a_query_is_an_error(spark, tmp_path):
    from pyspark.errors import PySparkException

    path = tmp_path / "some.index"
    broker("/a").save(path)
    documents = spark.createDataFrame([("m1", "<b/>")], "document_id string, payload string")
    results = notifications(match(documents, path))
    assert results.count() == 0
    broker("/b").save(path)
    assert notifications(match(documents, path)).count() == 1
    # The first query's closure still names the former content; workers that hold it may answer, no other may.
    fresh = notifications(match(documents, path))
    broker("/c").save(path)
    try:
        assert fresh.count() == 1
    except PySparkException as error:
        assert "holds another index" in str(error)  # noqa: PT017  either outcome is right, silence is not
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(IndexFormatError):
        match(documents, path)


def test_every_micro_batch_has_one_generation_while_others_are_published(spark, tmp_path):
    store = tmp_path / "store"
    publish_generation(broker("/order", "/never"), store)
    stop = threading.Event()

    def publish() -> None:
        for number in itertools.count():
            if stop.wait(0.02):
                return
            publish_generation(broker("/order", f"/never{number}"), store)
            clean(store, keep=1)

    orders(tmp_path / "in", range(48))
    stream = config(tmp_path, subscriptions=str(store))
    stream = _with_source(stream, max_files_per_trigger=8)
    noise = threading.Thread(target=publish)
    noise.start()
    seen: list[int] = []
    try:
        # Six files make six tasks: many workers and partitions of one batch have to agree.
        spark.conf.set("spark.sql.files.maxPartitionBytes", "64")
        spark.conf.set("spark.sql.files.openCostInBytes", "64")
        summary = run_pipeline(stream, lambda progress: seen.append(progress.generation), spark=spark)
    finally:
        stop.set()
        noise.join(30)
        spark.conf.unset("spark.sql.files.maxPartitionBytes")
        spark.conf.unset("spark.sql.files.openCostInBytes")
    assert summary.batches == 6
    assert (summary.documents, summary.notifications) == (48, 48)
    rows = (
        spark.read.parquet(str(tmp_path / "out")).groupBy("batch_id").agg({"generation": "min", "document_id": "count"})
    )
    low = {row.batch_id: row["min(generation)"] for row in rows.collect()}
    rows = spark.read.parquet(str(tmp_path / "out")).groupBy("batch_id").agg({"generation": "max"})
    assert {row.batch_id: row["max(generation)"] for row in rows.collect()} == low
    assert [low[batch] for batch in range(6)] == seen
    assert len(set(seen)) > 1, "the publisher was too slow for this test to mean anything"


def test_a_replayed_batch_gives_the_answers_of_its_pin(spark, tmp_path):
    store = tmp_path / "store"
    publish_generation(broker("/order[n < 2]"), store)
    orders(tmp_path / "in", range(4))
    stream = config(tmp_path, subscriptions=str(store))
    run_pipeline(stream, spark=spark)
    before = sink_pairs(spark, tmp_path / "out")
    assert before == {("000.xml", "0"), ("001.xml", "0")}

    # The crash after the sink's rename and before Spark's commit, seen from the disk.
    (tmp_path / "checkpoint" / "commits" / "1").unlink()
    (tmp_path / "checkpoint" / "commits" / ".1.crc").unlink(missing_ok=True)
    publish_generation(broker("/order"), store)
    orders(tmp_path / "in", [4])
    summary = run_pipeline(stream, spark=spark)
    assert summary.batches == 2
    assert len(summary.generations) == 2
    assert sink_pairs(spark, tmp_path / "out") == before | {("004.xml", "0")}


def test_a_changed_file_takes_effect_with_the_next_batch_and_a_broken_one_does_not(spark, tmp_path):
    orders(tmp_path / "in", range(6))
    file = tmp_path / "subscriptions.jsonl"
    file.write_text('{"id": "first", "query": "/order"}\n')
    warnings: list[str | None] = []

    def change(progress) -> None:
        warnings.append(progress.warning)

    stream = config(tmp_path, subscriptions=str(file))
    run_pipeline(_with_source(stream, max_files_per_trigger=6), change, spark=spark)
    orders(tmp_path / "in", range(6, 8))
    drop(tmp_path, "subscriptions.jsonl", '{"id": "second", "query": "/order"}\n{"id": "bad", "query": "/["}\n')
    summary = run_pipeline(stream, change, spark=spark)
    assert summary.refused_subscriptions == 1
    orders(tmp_path / "in", range(8, 10))
    file.unlink()
    run_pipeline(stream, change, spark=spark)
    assert sink_pairs(spark, tmp_path / "out") == {
        *((f"{number:03}.xml", "first") for number in range(6)),
        *((f"{number:03}.xml", "second") for number in range(6, 10)),
    }
    assert warnings[:2] == [None, None]
    assert "can not be read" in warnings[2]


def _with_source(settings, **changes):
    import dataclasses

    return dataclasses.replace(settings, source=dataclasses.replace(settings.source, **changes))
