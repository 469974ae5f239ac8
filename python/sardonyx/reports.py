"""What registering, matching and publishing many at once give back: answers, refusals, counts and time together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from sardonyx.model import DeadLetter, MatchedNode, Notification

__all__ = ["ERRORS_SCHEMA", "MATCHES_SCHEMA", "MatchReport", "MatchResult", "PublishReport", "RegisterReport"]

MATCHES_SCHEMA = pa.schema(
    [
        ("document", pa.uint32()),
        ("subscription_id", pa.dictionary(pa.uint32(), pa.string())),
        ("result", pa.dictionary(pa.uint32(), pa.large_string())),
    ]
)
"""Columns of `MatchReport.matches`. Results are a dictionary because equal queries of many subscribers share them."""

ERRORS_SCHEMA = pa.schema(
    [
        ("document", pa.uint32()),
        ("subscription_id", pa.string()),
        ("kind", pa.string()),
        ("message", pa.string()),
        ("line", pa.uint64()),
        ("column", pa.uint64()),
        ("offset", pa.uint64()),
    ]
)
"""Columns of `MatchReport.errors`."""


@dataclass(frozen=True, slots=True)
class RegisterReport:
    """What `register_many` did."""

    registered: int
    """Subscriptions accepted; of several with one id all are counted and the last one stays."""
    rejected: tuple[DeadLetter, ...]
    """Subscriptions refused, with the reasons."""
    seconds: float
    """Time it took."""
    generation: int
    """Generation of the index that holds them."""


@dataclass(frozen=True, slots=True)
class MatchResult:
    """A subscription that a document satisfies, with what its query selected."""

    subscription_id: str
    """The subscription."""
    nodes: tuple[MatchedNode, ...]
    """The nodes, in document order; none for transformations, and where the value is a boolean, number or string."""


@dataclass(frozen=True, slots=True)
class MatchReport:
    """What `match_batch` found; the tables are Arrow, so they go on to Parquet, pandas or Spark without copies."""

    matches: pa.Table
    """One row a match: `document` (row of the input, from 0), `subscription_id` and `result`; ordered by document only.

    Ids are a dictionary, which may hold ids that match nothing: all of them, where there are about as many matches.
    `result` is the XML text that a transformation made, and null for filters.
    """
    errors: pa.Table
    """One row a document that could not be processed, and one a subscription that could not be evaluated on a document.

    Columns: `document`, `subscription_id` (null where the whole document failed), `kind`, `message`, `line`, `column`,
    `offset`.
    """
    documents: int
    """Documents given."""
    payload_bytes: int
    """Their size in bytes (text counted as UTF-8)."""
    seconds: float
    """Time it took."""
    threads: int
    """Threads that it could use."""

    def ids(self) -> list[list[str]]:
        """For each document the ids of the subscriptions that it satisfies, sorted."""
        found: list[list[str]] = [[] for _ in range(self.documents)]
        for batch in self.matches.to_batches():
            rows, column, _results = batch.columns
            # Ids come as strings once and as numbers often: a million matches make no million strings.
            ids = column.dictionary.to_pylist()
            for row, number in zip(rows.to_pylist(), column.indices.to_pylist(), strict=True):
                found[row].append(ids[number])
        for names in found:
            names.sort()
        return found

    def results(self) -> list[dict[str, str]]:
        """For each document what the transformations made of it: XML text by subscription id, in the order of the ids.

        >>> from sardonyx import Broker
        >>> broker = Broker()
        >>> broker.register("titles", "<titles>{//title}</titles>", language="xquery")
        >>> broker.register("all", "//title")
        >>> broker.match_batch([b"<book><title>Emma</title></book>", b"<cd/>"]).results()
        [{'titles': '<titles><title>Emma</title></titles>'}, {}]
        """
        found: list[dict[str, str]] = [{} for _ in range(self.documents)]
        made = self.matches.filter(pc.is_valid(self.matches["result"]))
        for batch in made.to_batches():
            rows, ids, texts = batch.columns
            names, contents = ids.dictionary.to_pylist(), texts.dictionary.to_pylist()
            keys = zip(rows.to_pylist(), ids.indices.to_pylist(), texts.indices.to_pylist(), strict=True)
            for row, name, content in keys:
                found[row][names[name]] = contents[content]
        return [dict(sorted(texts.items())) for texts in found]

    def dead_letters(self, document_ids: Sequence[str] | None = None) -> list[DeadLetter]:
        """The errors as dead letters; documents are named by `document_ids`, or by their row."""
        letters = []
        for error in self.errors.to_pylist():
            row = error.pop("document")
            letters.append(DeadLetter(document_id=str(row) if document_ids is None else document_ids[row], **error))
        return letters


@dataclass(frozen=True, slots=True)
class PublishReport:
    """What `publish` and `publish_many` found. Iterating gives the notifications."""

    notifications: tuple[Notification, ...]
    """One for each document and subscription it satisfies, in the order of the documents; then those of joins."""
    dead_letters: tuple[DeadLetter, ...]
    """Documents that could not be processed, and subscriptions that could not be evaluated on one."""
    documents: int
    """Documents given."""
    repetitions: int = 0
    """Documents that joins have heard before, with this stream, id and timestamp."""

    def __iter__(self) -> Iterator[Notification]:
        """The notifications."""
        return iter(self.notifications)

    def __len__(self) -> int:
        """How many notifications there are."""
        return len(self.notifications)
