"""Sardonyx on Apache Spark: the same subscriptions and answers, for DataFrames and streams.

Needs the extra `sardonyx[spark]`. `match` and `join` are the whole of it; `run_pipeline` puts sources and sinks around:

    from sardonyx.spark import local_session, match, notifications

    spark = local_session()
    documents = spark.createDataFrame([("m1", "<order total='12'/>")], "document_id string, payload string")
    notifications(match(documents, "subscriptions.yaml")).show()

Names load on first use, so that a worker process imports only what it runs.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sardonyx.spark.config import PipelineConfig, SinkConfig, SourceConfig
    from sardonyx.spark.errors import GenerationError, JoinStateError, PipelineError, SinkError
    from sardonyx.spark.joining import JoinedBatch, JoinStream, join
    from sardonyx.spark.matching import dead_letters, match, notifications, statistics, transform
    from sardonyx.spark.pipeline import run_pipeline
    from sardonyx.spark.population import Population, prepare
    from sardonyx.spark.progress import JoinProgress, Progress, Summary
    from sardonyx.spark.session import local_session
    from sardonyx.spark.sinks import read_dead_letters, read_notifications, sink_totals
    from sardonyx.spark.sources import read_documents, stream_documents
    from sardonyx.spark.versions import Generation, current, pin, publish_generation

_PLACES = {
    "Generation": "versions",
    "GenerationError": "errors",
    "JoinProgress": "progress",
    "JoinStateError": "errors",
    "JoinStream": "joining",
    "JoinedBatch": "joining",
    "PipelineConfig": "config",
    "PipelineError": "errors",
    "Population": "population",
    "Progress": "progress",
    "SinkConfig": "config",
    "SinkError": "errors",
    "SourceConfig": "config",
    "Summary": "progress",
    "current": "versions",
    "dead_letters": "matching",
    "join": "joining",
    "local_session": "session",
    "match": "matching",
    "notifications": "matching",
    "pin": "versions",
    "prepare": "population",
    "publish_generation": "versions",
    "read_dead_letters": "sinks",
    "read_documents": "sources",
    "read_notifications": "sinks",
    "run_pipeline": "pipeline",
    "sink_totals": "sinks",
    "statistics": "matching",
    "stream_documents": "sources",
    "transform": "matching",
}

__all__ = [
    "Generation",
    "GenerationError",
    "JoinProgress",
    "JoinStateError",
    "JoinStream",
    "JoinedBatch",
    "PipelineConfig",
    "PipelineError",
    "Population",
    "Progress",
    "SinkConfig",
    "SinkError",
    "SourceConfig",
    "Summary",
    "current",
    "dead_letters",
    "join",
    "local_session",
    "match",
    "notifications",
    "pin",
    "prepare",
    "publish_generation",
    "read_dead_letters",
    "read_documents",
    "read_notifications",
    "run_pipeline",
    "sink_totals",
    "statistics",
    "stream_documents",
    "transform",
]


def __getattr__(name: str) -> Any:
    """Load a public name; raises `MissingExtraError` where PySpark or PyArrow is not installed."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = importlib.import_module(f"{__name__}.{_PLACES[name]}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"pyspark", "pyarrow", "pandas", "yaml"}:
            raise
        from sardonyx.errors import MissingExtraError

        raise MissingExtraError(
            f"sardonyx.spark needs {error.name}, which is not installed: pip install 'sardonyx[spark]'"
        ) from error
    return getattr(module, name)


def __dir__() -> list[str]:
    return sorted(__all__)
