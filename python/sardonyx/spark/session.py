"""A local Spark session for work on one machine, and for tests."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib.resources import as_file, files

from pyspark.sql import SparkSession

__all__ = ["SETTINGS", "local_session"]

SETTINGS: Mapping[str, tuple[str, str]] = {
    "spark.ui.enabled": ("false", "no web server for a local run"),
    "spark.ui.showConsoleProgress": ("false", "progress comes from the pipeline, not from bars drawn by the JVM"),
    "spark.sql.session.timeZone": ("UTC", "all times are UTC, whatever the machine's zone"),
    "spark.sql.adaptive.enabled": ("false", "matching has no shuffle to adapt, and planning is on the latency path"),
    "spark.sql.maxConcurrentOutputFileWriters": (
        "8",
        "results are written by outcome; with a writer open for each outcome no sort is needed",
    ),
    "spark.sql.streaming.minBatchesToRetain": (
        "10",
        "every batch retained keeps the index file that it was pinned to; only the last batch is ever replayed",
    ),
    "spark.sql.execution.arrow.pyspark.validateSchema.enabled": (
        "true",
        "a mistake in a column's type is named instead of read as other data",
    ),
}
"""Every setting that differs from Spark's default in a local session, with the reason."""

TASK_ATTEMPTS = 4
"""A local master gives up at the first lost worker by default; a cluster tries four times, and so do we."""


def local_session(
    cores: int = 2,
    *,
    app_name: str = "sardonyx",
    driver_memory: str = "2g",
    log_level: str = "ERROR",
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """The session of this process, started if there is none (some ten seconds).

    `cores` tasks run at once; `driver_memory` is the memory of the whole JVM; `settings` are Spark's own and override
    `SETTINGS`. Set up the workers' interpreter to be this one, and the loopback address, before the JVM starts.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    if not any(os.environ.get(name) for name in ("LC_ALL", "LC_CTYPE", "LANG")):
        # In the POSIX locale the JVM can not open files whose names are not ASCII, and reports them as missing.
        os.environ["LC_ALL"] = "C.UTF-8"
    with as_file(files("sardonyx.spark") / "log4j2.properties") as logging:
        builder = (
            SparkSession.builder.master(f"local[{cores},{TASK_ATTEMPTS}]")
            .appName(app_name)
            .config("spark.driver.memory", driver_memory)
            .config("spark.sql.shuffle.partitions", str(cores))
            .config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={logging.as_uri()}")
        )
        for name, (value, _) in SETTINGS.items():
            builder = builder.config(name, value)
        for name, value in (settings or {}).items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel(log_level)
    return session
