"""Documents on their way through the joins of an index, and what they join with, as values of Python."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from sardonyx import _core
from sardonyx.config import JoinSettings
from sardonyx.model import DeadLetter, Document, Notification
from sardonyx.tabular import is_unicode

__all__ = ["JoinSession", "Joined", "from_microseconds", "to_microseconds"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_microseconds(moment: datetime) -> int:
    """A moment as microseconds since 1970 in UTC; one without a zone is UTC.

    >>> to_microseconds(datetime(1970, 1, 1, 0, 0, 1))
    1000000
    """
    return ((moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND


def from_microseconds(us: int) -> datetime:
    """The moment of microseconds since 1970, in UTC; `OverflowError` beyond the years 1 to 9999.

    >>> from_microseconds(1_000_000).isoformat()
    '1970-01-01T00:00:01+00:00'
    """
    return _EPOCH + us * _MICROSECOND


@dataclass(frozen=True, slots=True)
class Joined:
    """What documents joined with."""

    notifications: tuple[Notification, ...]
    """The notifications."""
    derived: tuple[Document, ...]
    """Results that are documents of derived streams; joins have heard them already."""
    dead_letters: tuple[DeadLetter, ...]
    """Documents that joins could not hear, and subscriptions that failed on one."""
    repetitions: int
    """Documents heard before."""


class JoinSession:
    """The state of the joins of one broker: what was published and may still join."""

    def __init__(self, settings: JoinSettings, cost_limit: int) -> None:
        """An empty state."""
        self._settings = settings
        self.state = _core.JoinState(cost_limit=cost_limit, **settings.for_core())
        self._arrival = 0

    def _timestamp(self, document: Document) -> int | None:
        if document.timestamp is not None:
            return to_microseconds(document.timestamp)
        if document.stream is not None and document.stream in (self._settings.timestamps or {}):
            return None
        # Clocks are set back at times; documents that come later are not earlier.
        self._arrival = max(self._arrival, time.time_ns() // 1000)
        return self._arrival

    def publish(self, index: _core.Index, documents: Sequence[Document], together: bool, threads: int) -> Joined:
        """Let the joins of an index hear documents, each as a batch of its own or all `together`.

        What is wrong with a document altogether (not well-formed, ...) is not reported here but where it is matched.
        """
        payloads: list[bytes | None] = [d.payload if not isinstance(d.payload, str) else None for d in documents]
        texts = [d.payload if isinstance(d.payload, str) and is_unicode(d.payload) else None for d in documents]
        said = self.state.publish(
            index,
            pa.array(payloads, pa.large_binary()),
            pa.array([d.document_id for d in documents], pa.string()),
            pa.array([self._timestamp(d) for d in documents], pa.int64()),
            pa.array([d.stream for d in documents], pa.string()),
            pa.array(texts, pa.large_string()) if any(text is not None for text in texts) else None,
            together,
            threads,
        )
        derived = [
            Document(row["document_id"], row["payload"], row["stream"], from_microseconds(row["timestamp_us"]))
            for row in said["derived"].to_pylist()
        ]
        letters = [
            DeadLetter(document_id=documents[error.pop("document")].document_id, **error)
            for error in said["errors"].to_pylist()
            if error["kind"] in _OWN_KINDS or error["subscription_id"] is not None
        ]
        return Joined(tuple(_notifications(said["notifications"])), tuple(derived), tuple(letters), said["repetitions"])


_OWN_KINDS = ("late_document", "state_limit", "timestamp")
"""What is wrong with documents for joins alone; what else is wrong with them is reported where they are matched."""


def _notifications(table: pa.RecordBatch) -> list[Notification]:
    return [
        Notification(
            document_id=row["document_ids"][-1],
            subscription_id=row["subscription_id"],
            notification_id=row["notification_id"],
            result=row["result"],
            documents=tuple(row["document_ids"]),
        )
        for row in table.to_pylist()
    ]
