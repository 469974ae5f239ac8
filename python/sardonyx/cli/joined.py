"""Joins among the documents of `sardonyx match`, heard in the order in which they are named."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from sardonyx import _core
from sardonyx.broker import Broker
from sardonyx.config import BrokerSettings, JoinSettings
from sardonyx.errors import TimestampError
from sardonyx.joins.session import Joined, JoinSession, from_microseconds
from sardonyx.model import DeadLetter, Document

_NEVER_LATE_US = 10**17
"""More than three thousand years."""


class Joiner:
    """Hears documents; those of one command line are never late for each other."""

    def __init__(
        self, broker: Broker, settings: BrokerSettings, timestamp: str | None, namespaces: Mapping[str, str]
    ) -> None:
        """`timestamp`: the XPath of when a document happened; without one each happens just after the one before."""
        self._index = broker.index
        self._settings = settings
        cost_limit = settings.limits.cost_limit
        self._session = JoinSession(JoinSettings(lateness_us=_NEVER_LATE_US), cost_limit)
        self._now_us = time.time_ns() // 1000
        self._clock: _core.JoinState | None = None
        if timestamp is not None:
            declared = JoinSettings(timestamps={"": timestamp}, namespaces=namespaces)
            self._clock = _core.JoinState(cost_limit=cost_limit, **declared.for_core())

    def hear(self, documents: Sequence[Document]) -> Joined:
        """What documents join with, among them and with those before; also why some can not be heard."""
        letters: list[DeadLetter] = []
        dated = list(self._arriving(documents) if self._clock is None else self._saying(documents, letters))
        joined = self._session.publish(self._index, dated, False, self._settings.threads or 1)
        return replace(joined, dead_letters=(*letters, *joined.dead_letters))

    def _arriving(self, documents: Sequence[Document]) -> Iterator[Document]:
        for document in documents:
            self._now_us += 1
            yield replace(document, timestamp=from_microseconds(self._now_us))

    def _saying(self, documents: Sequence[Document], letters: list[DeadLetter]) -> Iterator[Document]:
        assert self._clock is not None
        limits = self._settings.limits
        count = len(documents)
        said = self._clock.witnesses(
            _core.Index(limits.for_core(), limits.cost_limit),
            pa.array([document.payload for document in documents], pa.binary()),
            pa.array([document.document_id for document in documents], pa.string()),
            pa.nulls(count, pa.int64()),
            pa.repeat("", count),
        )
        for error in said["errors"].to_pylist():
            if error["kind"] in TimestampError.kinds:
                name = documents[error["document"]].document_id
                letters.append(DeadLetter(error["kind"], error["message"], document_id=name))
        for row in said["witnesses"].select(["document", "timestamp_us"]).to_pylist():
            yield replace(documents[row["document"]], timestamp=from_microseconds(row["timestamp_us"]))
