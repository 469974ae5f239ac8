"""One population of transformations over some parsed documents: what it takes and what it gives."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal

import pyarrow as pa

from sardonyx import _core
from sardonyx.config import StrategyName
from sardonyx.workloads import load

__all__ = ["Measured", "Transformations", "build", "draw", "measure", "transformation_table"]

_SAMPLES = 200
"""The first documents of a workload, which its queries are drawn from; what is measured are documents after them."""

_ENDLESS = 1_000_000_000
"""Queries of a workload of which only some are taken."""


@dataclass(frozen=True, slots=True)
class Transformations:
    """Queries and documents that they were not drawn from."""

    queries: list[str]
    documents: list[bytes]
    parsed: list[_core.Document] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Measured:
    """Means per document, one thread, parsing left out."""

    ms: float
    path_ms: float
    """Of it, finding the nodes of all paths."""
    candidates: float
    """Plans that were looked at."""
    results: float
    """Plans with a result."""
    groups: float
    """Groups of all results; none where text was made."""
    text_bytes: float
    """Size of all results; none where groups were made."""


def draw(
    name: str, count: int, documents: int, *, max_value: int | None = None, element: str = "", **shape: float
) -> Transformations:
    """So many transformations and documents of a set.

    `max_value`: the range of the values of the documents; `element`: the name of what all variables stand for; `shape`:
    parameters of the queries that differ from the set's.
    """
    given: Mapping[str, Any] = {} if max_value is None else {"max_value": max_value}
    most = _ENDLESS if element else count
    workload = load(name, documents=_SAMPLES + documents, subscriptions=most, document_shape=given, query_shape=shape)
    texts = list(islice(workload.documents, _SAMPLES, None))
    queries = (query for query in workload.subscriptions if not element or f"/{element} where " in query)
    return Transformations(list(islice(queries, count)), texts, [_core.Document.parse(text) for text in texts])


def transformation_table(queries: list[str]) -> pa.Table:
    """Transformations as the core registers them, numbered from 1."""
    ids = [str(number) for number in range(1, len(queries) + 1)]
    return pa.table({"subscription_id": ids, "query": queries, "language": ["xquery"] * len(ids)})


def build(queries: list[str], strategy: StrategyName = "shared") -> _core.Index:
    """An index of the transformations; every one of them has to be accepted."""
    index = _core.Index(strategy=strategy)
    refused = index.register(transformation_table(queries))
    assert not refused, refused[:3]
    return index


def measure(
    index: _core.Index, documents: list[_core.Document], form: Literal["groups", "text"] = "groups", rounds: int = 3
) -> Measured:
    """Transform the documents again and again after a first time that fills the caches; the median counts."""
    index.profile_transformations(documents, form, 1)  # type: ignore[attr-defined]
    passes = [index.profile_transformations(documents, form, 1) for _ in range(rounds)]  # type: ignore[attr-defined]
    assert not passes[0]["failures"], "transformations failed"
    count = len(documents)
    return Measured(
        statistics.median(each["seconds"] for each in passes) * 1000 / count,
        statistics.median(each["path_seconds"] for each in passes) * 1000 / count,
        *(passes[0][name] / count for name in ("candidates", "results", "groups", "text_bytes")),
    )
