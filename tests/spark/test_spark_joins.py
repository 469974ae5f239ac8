"""Joins on Spark are as defined: in streams, however they are cut and begun again, and over DataFrames."""

from __future__ import annotations

import dataclasses
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

from sardonyx import Broker, Document, Subscription
from sardonyx.config import BrokerSettings, JoinSettings
from sardonyx.errors import SettingsError
from sardonyx.spark import (
    JoinStream,
    Progress,
    SourceConfig,
    dead_letters,
    join,
    match,
    notifications,
    publish_generation,
    read_dead_letters,
    read_notifications,
    run_pipeline,
    sink_totals,
    statistics,
)
from tests import join_runs
from tests.generators.joins import Scenario, scenario
from tests.property.profiles import PAIRS, SEED

SCENARIOS = PAIRS // 200
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


