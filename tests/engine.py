"""The compiled core as the tests drive it: batches in and out."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import pyarrow as pa

from sardonyx import _core, errors
from sardonyx.config import MatcherName

Row = Mapping[str, Any]

MATCHERS: tuple[MatcherName, ...] = get_args(MatcherName)
"""All matchers; every one gives the same answers."""


def table(rows: Iterable[Row], as_stream: bool = False) -> Any:
    """A registration batch from dicts with `subscription_id`, `query` and optional columns."""
    listed = list(rows)
    columns = {
        "subscription_id": pa.array([row["subscription_id"] for row in listed], pa.string()),
        "query": pa.array([row["query"] for row in listed], pa.string()),
        "namespaces": pa.array(
            [json.dumps(row["namespaces"]) if row.get("namespaces") else None for row in listed], pa.string()
        ),
        "ignore_namespaces": pa.array([bool(row.get("ignore_namespaces", False)) for row in listed], pa.bool_()),
        "stream": pa.array([row.get("stream") for row in listed], pa.string()),
    }
    return pa.table(columns) if as_stream else pa.record_batch(columns)


def index(queries: Sequence[str], namespaces: Mapping[str, str] | None = None, **options: Any) -> Any:
    """An index of queries under the ids "0", "1", …; every one of them has to be accepted."""
    made = _core.Index(**options)
    rows = [{"subscription_id": str(i), "query": q, "namespaces": namespaces} for i, q in enumerate(queries)]
    refused = made.register(table(rows))
    assert refused == [], [(queries[row], fields) for row, _, fields in refused]
    return made


def match_batch(index: Any, payloads: Sequence[bytes | None], **options: Any) -> tuple[list[list[str]], dict[int, Any]]:
    """Ids per document, and the error fields per failed document."""
    matches, errors = index.match_batch(pa.array(payloads, pa.binary()), **options)
    found: list[list[str]] = [[] for _ in payloads]
    batch = pa.record_batch(matches)
    rows = batch.column("document").to_pylist()
    assert rows == sorted(rows), "matches are ordered by row"
    for row, subscription_id in zip(rows, batch.column("subscription_id").to_pylist(), strict=True):
        found[row].append(subscription_id)
    return found, {fields.pop("document"): fields for fields in pa.record_batch(errors).to_pylist()}


STRATEGIES = ("shared", "F", "FW", "FWR", "naive")
"""All strategies of transformations; every one gives the same results."""


@dataclass(frozen=True)
class Outcome:
    """What a query gave: its result as text, or the code of its error."""

    text: str | None = None
    error: str | None = None
    message: str = ""


def evaluate(query: str, payload: bytes | str, namespaces: Mapping[str, str] | None = None) -> Outcome:
    """The exact evaluator on one query and one document; a query that is refused raises."""
    try:
        return Outcome(text=_core.evaluate_xquery(query, payload, namespaces))
    except errors.EvaluationError as raised:
        if raised.kind != "dynamic_error":
            raise
        code, _, rest = raised.message.partition(":")
        return Outcome(error=code.split()[0], message=rest.strip() or raised.message)


def transformation_table(rows: Iterable[Row]) -> Any:
    """A registration batch of transformations: `subscription_id`, `query` and optional columns."""
    listed = list(rows)
    columns = {
        "subscription_id": pa.array([row["subscription_id"] for row in listed], pa.string()),
        "query": pa.array([row["query"] for row in listed], pa.string()),
        "namespaces": pa.array(
            [json.dumps(row["namespaces"]) if row.get("namespaces") else None for row in listed], pa.string()
        ),
        "stream": pa.array([row.get("stream") for row in listed], pa.string()),
        "language": pa.array(["xquery"] * len(listed), pa.string()),
        "notify_empty": pa.array([bool(row.get("notify_empty", False)) for row in listed], pa.bool_()),
    }
    return pa.record_batch(columns)


def transformations(rows: Iterable[Row] = (), **options: Any) -> Any:
    """An index of these transformations; every one of them has to be accepted."""
    made = _core.Index(**options)
    listed = list(rows)
    if listed:
        refused = made.register(transformation_table(listed))
        assert refused == [], [(listed[row]["query"], fields) for row, _, fields in refused]
    return made


def transformed(index: Any, payload: bytes, stream: str | None = None) -> tuple[list[tuple[str, str]], dict[str, str]]:
    """The results on one document, sorted by id, and the ids that failed on it with the kinds of their errors."""
    streams = pa.array([stream], pa.string()) if stream is not None else None
    matches, failed = index.match_batch(pa.array([payload], pa.binary()), streams)
    found = pa.record_batch(matches).to_pylist()
    kinds = {row["subscription_id"]: row["kind"] for row in pa.record_batch(failed).to_pylist()}
    return sorted((row["subscription_id"], row["result"]) for row in found), kinds
