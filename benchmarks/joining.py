"""One population of joins: the engine and peers over the same documents, and how long they take.

All of it is work of one thread, told in processor time, as other work on the machine comes and goes meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from benchmarks.peers.join_witnesses import Witnesses
from sardonyx import Broker, BrokerSettings, _core
from sardonyx.config import JoinSettings
from sardonyx.joins.reference import JoinQuery, Match
from sardonyx.workloads import load

__all__ = [
    "Counted",
    "Engine",
    "EngineEach",
    "Heard",
    "Joining",
    "Joins",
    "PairTimes",
    "Peer",
    "draw",
    "register",
    "time_pairs",
]

_STATE_BYTES = 16 * 1024**3
_SECOND_US = 1_000_000


@dataclass(frozen=True, slots=True)
class Joins:
    """Queries and documents that fit each other."""

    queries: list[str]
    """As registered, some of them perhaps alike."""
    distinct: list[str]
    """Those of which no two are alike: peers are given these only, as the engine evaluates equal ones once."""
    documents: list[bytes]


def draw(
    name: str,
    count: int,
    documents: int,
    *,
    kind: str | None = None,
    document_shape: dict[str, Any] | None = None,
    **shape: Any,
) -> Joins:
    """So many joins and documents of a set; `shape`: parameters of the queries that differ from the set's."""
    workload = load(
        name,
        documents=documents,
        subscriptions=count,
        kind=kind,
        document_shape=document_shape,
        query_shape=shape,
    )
    queries = list(workload.subscriptions)
    return Joins(queries, list(dict.fromkeys(queries)), list(workload.documents))


def register(queries: Sequence[str]) -> _core.Index:
    """The index of queries, all of which have to be accepted."""
    broker = Broker()
    ids = [str(number) for number in range(len(queries))]
    report = broker.register_many(pa.table({"id": ids, "query": list(queries), "language": ["xscl"] * len(ids)}))
    assert not report.rejected, report.rejected[:3]
    return broker.index


class Heard(NamedTuple):
    """What became of a document."""

    found: int
    """How often queries join it with those before."""
    seconds: float


class Counted(NamedTuple):
    """What became of several documents."""

    pairs: int
    """Pairs of documents that any query joins."""
    found: int
    """How often queries do."""
    seconds: float


class Joining(Protocol):
    """What hears documents one after the other."""

    def hear(self, document: bytes) -> Heard:
        """Join a document, a second later than the one before, with those before."""

    def hear_pairs(self, documents: Sequence[bytes]) -> Heard:
        """Join documents of which every second one joins with the one before; `seconds` are those of all pairs."""


class Engine:
    """The core over an index: its times are of parsing, of finding witnesses, and of joining."""

    def __init__(self, index: _core.Index) -> None:
        """An empty state."""
        settings = JoinSettings(results=False, state_bytes=_STATE_BYTES)
        self.state = _core.JoinState(cost_limit=BrokerSettings().limits.cost_limit, **settings.for_core())
        self._index = index
        self._heard = 0

    def count(self, documents: pa.Array, times_us: pa.Array) -> Counted:
        """Join documents with each other and with those before."""
        first = self._heard
        self._heard += len(documents)
        ids = pa.array([str(number) for number in range(first, self._heard)], pa.string())
        began = time.process_time()
        counted = self.state.count(self._index, documents, ids, times_us)
        seconds = time.process_time() - began
        assert not counted["errors"].num_rows, counted["errors"].to_pylist()[:3]
        return Counted(counted["pairs"], counted["notifications"], seconds)

    def hear(self, document: bytes) -> Heard:
        """Join a document with those before."""
        payloads, times = pa.array([document], pa.binary()), pa.array([self._heard * _SECOND_US], pa.int64())
        _, found, seconds = self.count(payloads, times)
        return Heard(found, seconds)

    def hear_pairs(self, documents: Sequence[bytes]) -> Heard:
        """Join pairs in one call, as a call costs more than a pair; the first ones of pairs are counted in."""
        times = [number * _SECOND_US for number in range(self._heard, self._heard + len(documents))]
        _, found, seconds = self.count(pa.array(documents, pa.binary()), pa.array(times, pa.int64()))
        return Heard(found, seconds)


class EngineEach:
    """The core with an index and a state for each query: what it does without anything shared."""

    def __init__(self, queries: Sequence[str]) -> None:
        """Registers each query alone."""
        self._engines = [Engine(register([query])) for query in queries]

    def hear(self, document: bytes) -> Heard:
        """Join a document with those before, for each query."""
        return _sum(engine.hear(document) for engine in self._engines)

    def hear_pairs(self, documents: Sequence[bytes]) -> Heard:
        """Join pairs, for each query."""
        return _sum(engine.hear_pairs(documents) for engine in self._engines)


class _Publishes(Protocol):
    """`JoinReference` or `JoinLoop`."""

    def publish(self, documents: Sequence[tuple[int, Hashable]], bindings: pa.Table, values: pa.Table) -> list[Match]:
        """What documents join with."""


class Peer:
    """A peer over some queries: its times are of joining alone, as it is given the witnesses."""

    def __init__(self, queries: Sequence[str], make: Callable[[list[JoinQuery]], _Publishes]) -> None:
        """An empty state."""
        self._witnesses = Witnesses(queries)
        self.peer = make(self._witnesses.described)
        self._heard = 0

    def hear(self, document: bytes) -> Heard:
        """Join a document with those before."""
        bindings, values = self._witnesses.of([document])
        at = (self._heard * _SECOND_US, self._heard)
        self._heard += 1
        began = time.process_time()
        found = self.peer.publish([at], bindings, values)
        return Heard(len(found), time.process_time() - began)

    def hear_pairs(self, documents: Sequence[bytes]) -> Heard:
        """Join pairs; only the second ones of pairs are counted in."""
        heard = [self.hear(document) for document in documents]
        return _sum(heard[1::2])


def _sum(heard: Iterable[Heard]) -> Heard:
    found, seconds = zip(*heard, strict=True)
    return Heard(sum(found), sum(seconds))


@dataclass(frozen=True, slots=True)
class PairTimes:
    """The second document of a pair."""

    found: int
    """How often queries join the two."""
    first_ms: float
    """Of the first pair of all: nothing is remembered, and nothing in caches."""
    later_ms: float
    """Of pairs that agree in the same leaves as pairs before, in other values."""


def time_pairs(joining: Joining, document: bytes, pairs: int) -> PairTimes:
    """Join pairs of documents that agree in all leaves; no document agrees with one of another pair.

    `document` is one whose leaves have only one value each, which ends in 1.
    """
    first, *later = [document.replace(b"-1<", b"-%d<" % number) for number in range(1, pairs + 1)]
    joining.hear(first)
    began = joining.hear(first)
    went_on = joining.hear_pairs([text for text in later for _ in range(2)])
    if went_on.found != began.found * len(later):
        raise AssertionError(f"equal pairs were joined differently: {began} and {went_on}, {len(later)} pairs")
    return PairTimes(began.found, began.seconds * 1000, went_on.seconds * 1000 / len(later))
