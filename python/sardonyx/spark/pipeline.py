"""`run_pipeline`: source, subscriptions and sink put together, as one batch or as a stream.

A stream runs `foreachBatch`: take up changed subscriptions, pin a generation to the batch, match and join, write
idempotently under the batch's id. Everything that decides a batch's answers is on disk before it is answered, so that a
replay repeats them.
"""

from __future__ import annotations

import contextlib
import queue
import signal
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from types import FrameType
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from sardonyx.errors import SardonyxError
from sardonyx.spark._files import read_json, write_json
from sardonyx.spark.config import PipelineConfig
from sardonyx.spark.errors import PipelineError
from sardonyx.spark.joining import JoinStream, join
from sardonyx.spark.matching import match
from sardonyx.spark.population import Population
from sardonyx.spark.progress import BatchCounts, JoinProgress, Progress, Summary
from sardonyx.spark.session import local_session
from sardonyx.spark.sinks import Sink, open_sink
from sardonyx.spark.sources import empty_documents, read_documents, stream_documents
from sardonyx.spark.versions import clean, pin, unpin
from sardonyx.spark.watch import FollowedSubscriptions

__all__ = ["run_pipeline"]

POLL_S = 0.2
"""How often the caller's thread looks for progress, the end and Ctrl-C."""
STOP_S = 30.0
"""How long a batch in flight may take to notice that the stream was stopped."""


def run_pipeline(
    config: PipelineConfig,
    on_progress: Callable[[Progress], None] | None = None,
    spark: SparkSession | None = None,
) -> Summary:
    """Run a pipeline to its end: of the documents, or of the caller's patience.

    Without a checkpoint: one batch over the documents that are there. With one: a stream that goes on where it was
    left; Ctrl-C (or SIGTERM) ends it and is reported in the summary, as is what was done until then. `on_progress` is
    called in the caller's thread after each batch. `spark`: the session to use; by default `local_session`, left
    running.

    Raises `SettingsError`, `SinkError`, `GenerationError` and the errors of reading subscriptions; `PipelineError` with
    the cause chained when Spark gives up.
    """
    session = spark or local_session(config.cores, settings=config.spark)
    run = _Run(config, session, on_progress)
    with _stop_signals(run.stop):
        if config.checkpoint is None:
            with tempfile.TemporaryDirectory(prefix="sardonyx-index-") as directory:
                return run.batch(directory)
        return run.stream(Path(config.checkpoint).absolute())


class _Run:
    """One call of `run_pipeline`."""

    def __init__(
        self, config: PipelineConfig, spark: SparkSession, on_progress: Callable[[Progress], None] | None
    ) -> None:
        self._config = config
        self._options: dict[str, Any] = {
            "limits": config.limits,
            "matcher": config.matcher,
            "output_bytes": config.output_bytes,
        }
        self._dated = tuple(config.joins.timestamps or ())
        self._spark = spark
        self._on_progress = on_progress
        self._started = time.monotonic()
        self._progress: queue.SimpleQueue[Progress] = queue.SimpleQueue()
        self._total = BatchCounts()
        self._batches = 0
        self._generations: list[int] = []
        self._refused = 0
        self._failure: SardonyxError | None = None
        self._busy = threading.Lock()
        self.stop = threading.Event()

    def batch(self, directory: str) -> Summary:
        """Everything that is there, once; in a thread, because a thread that waits for Spark hears no signals."""
        config = self._config
        followed = FollowedSubscriptions(config.subscriptions, directory, config.limits)
        population, warning = followed.refresh()
        tag = f"sardonyx-{uuid.uuid4().hex}"
        with open_sink(config.sink, None) as sink, self._explained("the batch"), ThreadPoolExecutor(1) as executor:

            def work() -> None:
                self._spark.addTag(tag)
                started = time.monotonic()
                documents = read_documents(self._spark, config.source, config.limits, self._dated)
                if population.generation.joins:
                    options = {**self._options, "joins": config.joins, "index_directory": directory}
                    results = join(documents, population, **options)
                else:
                    results = match(documents, population, **self._options)
                self._write(sink, results, 0, population, started, warning)

            job = executor.submit(work)
            while not wait([job], POLL_S).done:
                if self.stop.is_set():
                    self._spark.interruptTag(tag)
            job.result()
        return self._finish()

    def stream(self, checkpoint: Path) -> Summary:
        """What arrives, batch by batch."""
        config = self._config
        checkpoint.mkdir(parents=True, exist_ok=True)
        followed = FollowedSubscriptions(config.subscriptions, checkpoint / "sardonyx-index", config.limits)
        followed.refresh()
        joins = JoinStream(
            followed.directory,
            checkpoint,
            joins=config.joins,
            snapshot_batches=config.snapshot_batches,
            **self._options,
        )
        with open_sink(config.sink, _run_id(checkpoint)) as sink, self._explained("the stream"):

            def on_batch(batch: DataFrame, batch_id: int) -> None:
                with self._busy, self._remembered():
                    started = time.monotonic()
                    _, warning = followed.refresh()
                    population = followed.population(pin(followed.directory, checkpoint, batch_id))
                    session = batch.sparkSession
                    empty = empty_documents(session, config.source, checkpoint, batch_id, config.limits, self._dated)
                    documents = batch if empty is None else batch.unionByName(empty)
                    if population.generation.joins or joins.started:
                        with joins.joined(documents, batch_id) as joined:
                            self._write(sink, joined.results, batch_id, population, started, warning, joined.joins)
                    else:
                        results = match(documents, population, **self._options)
                        self._write(sink, results, batch_id, population, started, warning)
                    needed = batch_id if joins.oldest_batch is None else joins.oldest_batch
                    unpin(checkpoint, min(needed, batch_id - config.retain_batches + 1))
                    if followed.owned:
                        clean(followed.directory)

            documents = stream_documents(self._spark, config.source, config.limits, self._dated)
            writer = documents.writeStream.foreachBatch(on_batch).option("checkpointLocation", checkpoint.as_uri())
            query = writer.trigger(**_trigger(config)).start()
            try:
                while not self.stop.is_set() and not query.awaitTermination(POLL_S):  # type: ignore[arg-type]
                    self._report()
            finally:
                query.stop()
                if self._busy.acquire(timeout=STOP_S):
                    self._busy.release()
        return self._finish()

    def _write(
        self,
        sink: Sink,
        results: DataFrame,
        batch_id: int,
        population: Population,
        started: float,
        warning: str | None,
        joins: JoinProgress | None = None,
    ) -> None:
        number = population.generation.number
        if number not in self._generations:
            sink.write_refused(population)
            self._generations.append(number)
            self._refused = len(population.refused)
        counts = sink.write(results, batch_id, number)
        self._total += counts
        self._batches += 1
        oldest_us = counts.oldest_timestamp_us
        lag_s = None if oldest_us is None else time.time() - oldest_us / 1e6
        duration_s = time.monotonic() - started
        self._progress.put(Progress(batch_id, number, counts, self._total, duration_s, lag_s, joins, warning))

    def _report(self) -> None:
        while not self._progress.empty():
            progress = self._progress.get()
            if self._on_progress is not None:
                self._on_progress(progress)

    def _finish(self) -> Summary:
        self._report()
        return Summary(
            self._total,
            self._batches,
            self._refused,
            tuple(self._generations),
            time.monotonic() - self._started,
            self.stop.is_set(),
        )

    @contextlib.contextmanager
    def _remembered(self) -> Iterator[None]:
        """Keep our own errors, which Spark would only hand back as text."""
        try:
            yield
        except SardonyxError as error:
            self._failure = error
            raise

    @contextlib.contextmanager
    def _explained(self, what: str) -> Iterator[None]:
        """Turn Spark's errors into ours; those of work that was stopped on purpose are none."""
        try:
            yield
        except (PySparkException, Py4JError) as error:
            if self.stop.is_set():
                return
            if self._failure is not None:
                raise self._failure from error
            first = next(iter(str(error).splitlines()), type(error).__name__)
            raise PipelineError(f"{what} failed: {first}") from error


def _trigger(config: PipelineConfig) -> dict[str, Any]:
    if config.trigger == "once":
        return {"once": True}
    if config.trigger == "available_now":
        return {"availableNow": True}
    return {"processingTime": f"{round(float(config.trigger) * 1000)} milliseconds"}


def _run_id(checkpoint: Path) -> str:
    """The name of this checkpoint, made when it is first used: by it a sink knows its own."""
    place = checkpoint / "sardonyx-run.json"
    found = read_json(place)
    if found is None:
        found = {"run": uuid.uuid4().hex}
        write_json(place, found)
    return str(found["run"])


@contextlib.contextmanager
def _stop_signals(stop: threading.Event) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM set the event. Only the main thread may do so; elsewhere signals stay as they are."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def note(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    former = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
