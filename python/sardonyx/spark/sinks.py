"""Where results go: a folder per batch, whole or absent, replaced when the batch is replayed.

Layout of a folder sink:

    _sardonyx.json                        whose batches these are (a checkpoint's id), and their format
    batch_id=N/_manifest.json             counts and generation of batch N
    batch_id=N/outcome=notification/      rows of `schemas.RESULTS`, and likewise dead_letter, batch
    refused/generation=N.jsonl            subscriptions that generation N had to refuse
    .lock                                 held by the one pipeline that writes here

A batch is written under a name that readers ignore, forced to the disk and renamed: what has the name `batch_id=N` is
complete. Local and mounted file systems only, for the sake of that rename.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol, TextIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import LongType, StructField, StructType

from sardonyx.spark._files import file_lock, fsync_path, fsync_tree, read_json, write_json
from sardonyx.spark.config import SinkConfig
from sardonyx.spark.errors import SinkError
from sardonyx.spark.population import Population, refused_table
from sardonyx.spark.progress import BatchCounts
from sardonyx.spark.schemas import (
    BATCH,
    DEAD_LETTER,
    DEAD_LETTERS,
    NOTIFICATION,
    NOTIFICATIONS,
    OUTCOMES,
    RESULTS,
    RESULTS_ARROW,
)

__all__ = ["ConsoleSink", "FolderSink", "Sink", "open_sink", "read_dead_letters", "read_notifications", "sink_totals"]

CONSOLE_ROWS = 20
"""Rows of each outcome that the console shows of a batch."""
CONSOLE_CHARACTERS = 500
"""Characters of a result that the console shows."""


class Sink(Protocol):
    """Takes the results of one batch at a time."""

    def write(self, results: DataFrame, batch_id: int, generation: int) -> BatchCounts:
        """Store a batch, in place of an earlier one of this id; returns what it held."""

    def write_refused(self, population: Population) -> None:
        """Store the subscriptions that a generation had to refuse."""


@contextlib.contextmanager
def open_sink(config: SinkConfig, run_id: str | None) -> Iterator[Sink]:
    """A sink for one run. `run_id` names the checkpoint whose batches go there; None for a run without one.

    Raises `SinkError` if another pipeline is writing there, or has.
    """
    if config.path is None:
        yield ConsoleSink()
        return
    root = Path(config.path).absolute()
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(file_lock(root / ".lock", wait=False))
        except BlockingIOError as error:
            raise SinkError(
                f"{root} is being written by another pipeline; give each pipeline a sink of its own"
            ) from error
        owner = {"run": run_id, "format": config.kind}
        found = read_json(root / "_sardonyx.json")
        if found is not None and found != owner and any(root.glob("batch_id=*")):
            whose = "another checkpoint" if found["run"] else "a run without checkpoint"
            raise SinkError(
                f"{root} holds {found['format']} batches of {whose}, which this run would mix with its own; use an "
                "empty folder, or the checkpoint that belongs to it"
            )
        write_json(root / "_sardonyx.json", owner)
        _tidy(root)
        yield FolderSink(root, config.kind)


class FolderSink:
    """A folder per batch, as Parquet or JSON lines."""

    def __init__(self, root: Path, kind: str) -> None:
        """Use `open_sink`, which takes the lock."""
        self._root = root
        self._format = {"parquet": "parquet", "jsonl": "json"}[kind]

    def write(self, results: DataFrame, batch_id: int, generation: int) -> BatchCounts:
        """One pass over the documents: all outcomes in one job, then one rename."""
        aside = self._root / f".inflight-{batch_id}-{uuid.uuid4().hex}"
        try:
            results.write.partitionBy("outcome").format(self._format).save(aside.as_uri())
            counts = self._counts(aside)
            write_json(
                aside / "_manifest.json", {"batch_id": batch_id, "generation": generation, "counts": asdict(counts)}
            )
            fsync_tree(aside)
            final = self._root / f"batch_id={batch_id}"
            former = self._root / f".replaced-{batch_id}-{uuid.uuid4().hex}"
            if final.exists():
                final.rename(former)
            aside.rename(final)
            fsync_path(self._root)
            shutil.rmtree(former, ignore_errors=True)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
        return counts

    def write_refused(self, population: Population) -> None:
        """One file per generation, replaced whole."""
        if not population.refused:
            return
        folder = self._root / "refused"
        folder.mkdir(exist_ok=True)
        aside = folder / f".{uuid.uuid4().hex}"
        rows = refused_table(population.refused, population.generation.number).to_pylist()
        aside.write_text("".join(json.dumps(_without_nulls(row)) + "\n" for row in rows), encoding="utf-8")
        fsync_path(aside)
        aside.rename(folder / f"generation={population.generation.number}.jsonl")
        fsync_path(folder)

    def _counts(self, folder: Path) -> BatchCounts:
        tasks = folder / f"outcome={BATCH}"
        if not tasks.exists():
            return BatchCounts()
        return _sum(ds.dataset(tasks, schema=RESULTS_ARROW, format=self._format).to_table())


class ConsoleSink:
    """Prints the results: for looking at, as a whole batch passes through the driver."""

    def __init__(self, out: TextIO | None = None) -> None:
        """Print to `out`, by default standard output."""
        self._out = out

    def write(self, results: DataFrame, batch_id: int, generation: int) -> BatchCounts:
        """Print some rows of each outcome."""
        table = results.toArrow()
        counts = _sum(table.filter(pc.equal(table["outcome"], BATCH)))
        self._print(f"batch {batch_id}, generation {generation}: {counts.documents} documents")
        for outcome in OUTCOMES[:2]:
            rows = table.filter(pc.equal(table["outcome"], outcome))
            for row in rows.slice(0, CONSOLE_ROWS).to_pylist():
                if row["result"] is not None and len(row["result"]) > CONSOLE_CHARACTERS:
                    row["result"] = f"{row['result'][:CONSOLE_CHARACTERS]} ... ({len(row['result']):,} characters)"
                self._print("  " + json.dumps(_without_nulls(row), ensure_ascii=False))
            if rows.num_rows > CONSOLE_ROWS:
                self._print(f"  ... and {rows.num_rows - CONSOLE_ROWS} more of outcome {outcome}")
        return counts

    def write_refused(self, population: Population) -> None:
        """Print them."""
        for letter in population.refused:
            self._print(f"refused: {letter}")

    def _print(self, line: str) -> None:
        print(line, file=self._out)


def read_notifications(spark: SparkSession, path: str | Path) -> DataFrame:
    """The notifications in a folder sink: `schemas.NOTIFICATIONS` and `batch_id`; complete batches only."""
    return _read(spark, Path(path), NOTIFICATION, NOTIFICATIONS)


def read_dead_letters(spark: SparkSession, path: str | Path) -> DataFrame:
    """The dead letters in a folder sink: `schemas.DEAD_LETTERS` and `batch_id`, null for refused subscriptions."""
    letters = _read(spark, Path(path), DEAD_LETTER, DEAD_LETTERS)
    refused = Path(path).absolute() / "refused"
    if not refused.exists():
        return letters
    rows = spark.read.schema(RESULTS).json(refused.as_uri()).withColumn("batch_id", sf.lit(None).cast("bigint"))
    return letters.unionByName(rows.select(*letters.columns))


def sink_totals(path: str | Path) -> BatchCounts:
    """What all complete batches of a folder sink held together."""
    total = BatchCounts()
    for manifest in Path(path).glob("batch_id=*/_manifest.json"):
        found = read_json(manifest)
        if found is not None:
            total += BatchCounts(**found["counts"])
    return total


def _read(spark: SparkSession, path: Path, outcome: str, schema: StructType) -> DataFrame:
    root = path.absolute()
    owner = read_json(root / "_sardonyx.json")
    if owner is None:
        raise SinkError(f"{path} is not a sink of a pipeline: it has no _sardonyx.json")
    wanted = StructType([*schema.fields, StructField("batch_id", LongType(), nullable=True)])
    if not any(root.glob(f"batch_id=*/outcome={outcome}")):
        return spark.createDataFrame([], wanted)
    kind = {"parquet": "parquet", "jsonl": "json"}[owner["format"]]
    reader = spark.read.schema(wanted).option("basePath", root.as_uri()).format(kind)
    return reader.load(f"{root.as_uri()}/batch_id=*/outcome={outcome}").select(*wanted.fieldNames())


def _sum(tasks: pa.Table) -> BatchCounts:
    names = (
        "documents",
        "matched_documents",
        "dead_letters",
        "notifications",
        "undecided_pairs",
        "unjoined_documents",
        "repetitions",
        "payload_bytes",
    )
    sums: dict[str, Any] = {name: pc.sum(tasks[name]).as_py() or 0 for name in names}
    return BatchCounts(**sums, oldest_timestamp_us=pc.min(tasks["oldest_timestamp_us"]).as_py())


def _without_nulls(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None}


def _tidy(root: Path) -> None:
    """Remove what a killed run left: halves of batches, and former versions of batches (put back if nothing newer)."""
    for folder in root.glob(".inflight-*"):
        shutil.rmtree(folder, ignore_errors=True)
    for folder in root.glob(".replaced-*"):
        final = root / f"batch_id={folder.name.split('-')[1]}"
        if final.exists():
            shutil.rmtree(folder, ignore_errors=True)
        else:
            folder.rename(final)
