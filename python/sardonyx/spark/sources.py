"""Where documents come from: files of one document, large files of many records, Parquet, JSON lines.

Each source exists for a batch and for a stream and gives the columns of `schemas.DOCUMENTS`. Streams are Spark's own
file streams, which keep the list of files seen in the checkpoint and honour `max_files_per_trigger` and every
trigger.

The id of a document is the file's path relative to the source's path (its part without wildcards), and for records
`path#number`, counted from 0: it stays the same when the whole tree moves, and it is the same in a batch and in a
stream.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Collection
from pathlib import Path
from urllib.parse import urlsplit

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.readwriter import DataStreamReader
from pyspark.sql.types import StructType

from sardonyx.config import Limits
from sardonyx.errors import SettingsError
from sardonyx.spark.config import SourceConfig
from sardonyx.spark.empties import empty_files, empty_files_of_batch
from sardonyx.spark.records import SplitTask
from sardonyx.spark.schemas import DOCUMENTS

__all__ = ["empty_documents", "read_documents", "stream_documents"]

_BINARY_FILE = "path string, modificationTime timestamp, length bigint, content binary"
_JSON_COLUMNS = "document_id string, payload string, stream string, timestamp timestamp, _corrupt_record string"

_WILDCARD = re.compile(r"(?<!\\)[*?\[{]")


def read_documents(
    spark: SparkSession, source: SourceConfig, limits: Limits | None = None, dated: Collection[str] = ()
) -> DataFrame:
    """All documents of a source, as a DataFrame.

    `dated`: streams whose documents say in their text when they happened; they do not get the time of their file.
    """
    return _documents(spark, source, limits or Limits(), dated, streaming=False)


def stream_documents(
    spark: SparkSession, source: SourceConfig, limits: Limits | None = None, dated: Collection[str] = ()
) -> DataFrame:
    """The documents of a source as they arrive, as a streaming DataFrame; `dated` as for `read_documents`.

    Files have to appear whole: write them under a name that starts with a dot, then rename. A file that is changed
    after it was seen is not read again. Spark passes over files without content: `empty_documents` gives those of a
    micro-batch, and `run_pipeline` adds them.
    """
    return _documents(spark, source, limits or Limits(), dated, streaming=True)


def _documents(
    spark: SparkSession, source: SourceConfig, limits: Limits, dated: Collection[str], *, streaming: bool
) -> DataFrame:
    if source.kind == "parquet":
        reader = _reader(spark, source, streaming, _parquet_schema(spark, source))
        return _in_stream(reader.format("parquet").load(_located(source)), source)
    if source.kind == "jsonl":
        return _json_lines(spark, source, dated, streaming)
    files = _recursive(_reader(spark, source, streaming, _BINARY_FILE)).format("binaryFile").load(_located(source))
    if not streaming and (paths := sorted(empty_files(_located(source), source.glob))):
        files = files.unionByName(_empties(spark, paths))
    return _of_files(files, source, limits, dated)


def empty_documents(
    spark: SparkSession,
    source: SourceConfig,
    checkpoint: Path,
    batch_id: int,
    limits: Limits | None = None,
    dated: Collection[str] = (),
) -> DataFrame | None:
    """The documents of a micro-batch that have no content, and so are missing in the stream; None if there are none."""
    if source.kind not in ("files", "records"):
        return None
    paths = empty_files_of_batch(checkpoint, batch_id)
    return _of_files(_empties(spark, paths), source, limits or Limits(), dated) if paths else None


def _empties(spark: SparkSession, paths: list[str]) -> DataFrame:
    """Empty files as the `binaryFile` source would give them."""
    rows = [(f"file:{path}", os.stat(path).st_mtime, 0, b"") for path in paths]
    frame = spark.createDataFrame(rows, "path string, seconds double, length bigint, content binary")
    return frame.select("path", sf.col("seconds").cast("timestamp").alias("modificationTime"), "length", "content")


def _of_files(files: DataFrame, source: SourceConfig, limits: Limits, dated: Collection[str]) -> DataFrame:
    name, timestamp = _relative(sf.col("path"), source), sf.col("modificationTime").alias("timestamp")
    if source.stream in dated:
        timestamp = sf.lit(None).cast("timestamp").alias("timestamp")
    if source.kind == "files":
        documents = files.select(name.alias("document_id"), sf.col("content").alias("payload"), timestamp)
        return _in_stream(documents, source)
    if urlsplit(source.path).scheme not in ("", "file"):
        raise SettingsError(f"records are split by the workers from local or mounted files, not from {source.path}")
    assert source.record is not None, "SourceConfig checks it"
    task = SplitTask(source.record, limits.for_core(), source.batch_bytes)
    located = files.select(sf.col("path"), name.alias("name"), timestamp)
    return _in_stream(located.mapInArrow(task, DOCUMENTS), source)


def _in_stream(documents: DataFrame, source: SourceConfig) -> DataFrame:
    """Documents with the stream that the source says, where they say none."""
    if source.stream is None:
        return documents
    named = sf.lit(source.stream)
    own = sf.col("stream") if "stream" in documents.columns else sf.lit(None)
    return documents.withColumn("stream", sf.coalesce(own.cast("string"), named))


def _reader(
    spark: SparkSession, source: SourceConfig, streaming: bool, schema: StructType | str
) -> DataFrameReader | DataStreamReader:
    reader: DataFrameReader | DataStreamReader = (spark.readStream if streaming else spark.read).schema(schema)
    if source.glob is not None:
        reader = reader.option("pathGlobFilter", source.glob)
    if streaming and source.max_files_per_trigger is not None:
        reader = reader.option("maxFilesPerTrigger", source.max_files_per_trigger)
    return reader


def _recursive(reader: DataFrameReader | DataStreamReader) -> DataFrameReader | DataStreamReader:
    """Look into all folders below the path. Not for Parquet, where it would switch partition columns off."""
    return reader.option("recursiveFileLookup", "true")


def _located(source: SourceConfig) -> str:
    """The path as the JVM needs it: its working directory need not be ours."""
    return source.path if urlsplit(source.path).scheme else os.path.abspath(source.path)


def _parquet_schema(spark: SparkSession, source: SourceConfig) -> StructType:
    """The columns of what lies there already; those of `DOCUMENTS` where nothing does."""
    reader = spark.read if source.glob is None else spark.read.option("pathGlobFilter", source.glob)
    try:
        return reader.parquet(_located(source)).schema
    except AnalysisException:
        return DOCUMENTS


def _json_lines(spark: SparkSession, source: SourceConfig, dated: Collection[str], streaming: bool) -> DataFrame:
    """Lines that are not JSON, or lack an id, keep a stable id (file and hash of the line) and become dead letters."""
    lines = _recursive(_reader(spark, source, streaming, _JSON_COLUMNS)).format("json").load(_located(source))
    broken = sf.col("_corrupt_record").isNotNull()
    text = sf.coalesce(sf.col("_corrupt_record"), sf.col("payload"), sf.lit(""))
    encoded = sf.replace(sf.col("_metadata.file_path"), sf.lit("+"), sf.lit("%2B"))
    name = _relative(sf.url_decode(encoded), source)
    stand_in = sf.concat(name, sf.lit("#"), sf.substring(sf.sha2(text, 256), 1, 16))
    message = "the line is not a JSON object of a document"
    reason = sf.to_json(sf.struct(sf.lit("source_format").alias("kind"), sf.lit(message).alias("message")))
    stream = sf.coalesce(sf.col("stream"), sf.lit(source.stream))
    of_file = sf.when(~sf.coalesce(stream.isin(*dated), sf.lit(False)), sf.col("_metadata.file_modification_time"))
    return lines.select(
        sf.when(broken, stand_in).otherwise(sf.coalesce(sf.col("document_id"), stand_in)).alias("document_id"),
        sf.col("payload"),
        stream.alias("stream"),
        sf.coalesce(sf.col("timestamp"), of_file).alias("timestamp"),
        sf.when(broken, reason).alias("source_error"),
    )


def _relative(path: Column, source: SourceConfig) -> Column:
    """A file's path relative to the source's path; the last part of it if it is that path itself."""
    pattern = f"^(?:[a-z0-9]+:(?://)?)?{re.escape(_root(source.path))}(?:/+|$)"
    inner = sf.regexp_replace(path, pattern, "")
    return sf.when(inner == "", sf.element_at(sf.split(path, "/"), -1)).otherwise(inner)


def _root(path: str) -> str:
    """The absolute path, without scheme, wildcards and what follows them."""
    parts = urlsplit(path)
    whole = f"{parts.netloc}{parts.path}" if parts.scheme else os.path.abspath(path)
    fixed = itertools.takewhile(lambda step: not _WILDCARD.search(step), whole.split("/"))
    return re.sub(r"\\(.)", r"\1", "/".join(fixed)).rstrip("/")
