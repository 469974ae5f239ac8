"""The broker: a population of subscriptions, and what documents mean to it.

The work is the core's; what is here gives it types, turns refusals into dead letters and
carries batches across the border.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, Literal, get_args, overload

import pyarrow as pa

from sardonyx import _core, durable, payloads, tabular
from sardonyx.config import BrokerSettings, MatcherName
from sardonyx.errors import SettingsError, UnknownSubscriptionError, from_core
from sardonyx.explanation import Explanation, JoinExplanation, PlanExplanation
from sardonyx.joins.session import JoinSession, to_microseconds
from sardonyx.model import DeadLetter, Document, MatchedNode, Notification, Subscription
from sardonyx.reports import MatchReport, MatchResult, PublishReport, RegisterReport
from sardonyx.tabular import Defaults, SubscriptionBatch

__all__ = ["Broker"]

_PUBLISH_DOCUMENTS = 1024
"""How many documents `publish_many` gathers at a time; enough to keep all threads at work, little to hold."""


def _processors() -> int:
    """Processors that this process may use; not every system knows the restriction."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Broker:
    """A population of subscriptions that says which of them a document satisfies.

    All methods may be called from several threads; matching sees one generation of the population and never waits for
    registration or compaction.

    >>> broker = Broker()
    >>> broker.register("big-orders", "/order[@total > 100]")
    >>> broker.register("books", "//item[@kind = 'book']")
    >>> broker.match("<order total='250'><item kind='book'/></order>")
    ['big-orders', 'books']
    >>> broker.match("<order total='20'><item kind='pen'/></order>")
    []
    """

    def __init__(self, settings: BrokerSettings | None = None, matcher: MatcherName | None = None) -> None:
        """An empty broker. `matcher` overrides the settings' one."""
        settings = BrokerSettings() if settings is None else settings
        limits = settings.limits
        index = _core.Index(
            limits.for_core(), limits.cost_limit, settings.xpush.for_core(), settings.strategy, settings.elements
        )
        self._adopt(index, settings, matcher)

    def _adopt(self, index: _core.Index, settings: BrokerSettings, matcher: MatcherName | None) -> None:
        self._index = index
        self._settings = settings
        self._session = JoinSession(settings.joins, settings.limits.cost_limit)
        self._hears_joins = False
        self._matcher: MatcherName = settings.matcher if matcher is None else matcher
        if self._matcher not in get_args(MatcherName):
            raise SettingsError(f"matcher is {matcher!r}; it must be one of {', '.join(get_args(MatcherName))}")

    @classmethod
    def load(cls, path: str | os.PathLike[str], settings: BrokerSettings | None = None, verify: bool = True) -> Broker:
        """A broker over a saved index, which is mapped into memory rather than read; see `save`.

        `verify` checks the whole file's hash first. Raises `IndexFormatError` for a file that is foreign, truncated or
        damaged, or can not be opened.
        """
        settings = BrokerSettings() if settings is None else settings
        limits = settings.limits
        broker = cls.__new__(cls)
        index = _core.Index.load(
            os.fspath(path),
            verify,
            limits.cost_limit,
            limits.for_core(),
            settings.xpush.for_core(),
            settings.strategy,
            settings.elements,
        )
        broker._adopt(index, settings, None)
        return broker

    @property
    def settings(self) -> BrokerSettings:
        """The settings it was made with."""
        return self._settings

    @property
    def index(self) -> _core.Index:
        """The index of the core, for code that carries it to other processes (`sardonyx.spark`)."""
        return self._index

    @property
    def generation(self) -> int:
        """Number of the current generation; every change of the population makes a new one."""
        return self._index.generation

    def __len__(self) -> int:
        """How many subscriptions there are."""
        return len(self._index)

    def __contains__(self, subscription_id: object) -> bool:
        """Whether a subscription of this id is registered."""
        return isinstance(subscription_id, str) and subscription_id in self._index

    def __repr__(self) -> str:
        """Size, generation and matcher."""
        return f"<Broker: {len(self)} subscriptions, generation {self.generation}, matcher {self._matcher}>"

    def ids(self) -> list[str]:
        """The ids of all subscriptions."""
        return [str(name) for name in pa.array(self._index.ids()).to_pylist()]

    def register(
        self,
        subscription: Subscription | str,
        query: str | None = None,
        *,
        language: str = "xpath",
        namespaces: Mapping[str, str] | None = None,
        stream: str | None = None,
        ignore_namespaces: bool = False,
        notify_empty: bool = False,
    ) -> None:
        """Register one subscription, given whole or by its id, query and options; one of the same id is replaced.

        Raises `SubscriptionError` (`QuerySyntaxError`, `UnboundPrefixError`, ...). Many are better registered with
        `register_many`: each call makes a generation.

        >>> broker = Broker()
        >>> broker.register(Subscription("entries", "/a:feed/a:entry", namespaces={"a": "http://www.w3.org/2005/Atom"}))
        >>> broker.register("late", "/order[", stream="orders")
        Traceback (most recent call last):
            ...
        sardonyx.errors.QuerySyntaxError: ...
        """
        if isinstance(subscription, str):
            if query is None:
                raise TypeError("register(id, query): the query is missing")
            subscription = Subscription(
                subscription, query, language, namespaces, stream, ignore_namespaces, notify_empty
            )
        elif query is not None:
            raise TypeError("register(subscription): the query is part of the subscription")
        checked = tabular.check(subscription)
        # Not as a table of one row: that would take longer than all the rest.
        fields = self._index.register_one(
            checked.id,
            checked.query,
            tabular.json_of(checked.namespaces),
            checked.ignore_namespaces,
            checked.stream,
            checked.language,
            checked.notify_empty,
        )
        if fields is not None:
            raise from_core(fields["kind"], {**fields, "subscription_id": checked.id})

    def register_many(
        self,
        subscriptions: Any,
        *,
        defaults: Defaults | None = None,
        on_progress: Callable[[int], None] | None = None,
    ) -> RegisterReport:
        """Register many subscriptions; what is refused is reported and stops nothing.

        `subscriptions`: an iterable of `Subscription`, mappings, or tuples `(id, query, ...)`; or an Arrow table,
        record batch, reader, or anything with `__arrow_c_stream__`, with the columns `id` (or `subscription_id`),
        `query` and optionally `language`, `namespaces` (JSON text or map), `stream`, `ignore_namespaces`,
        `notify_empty`; or what `sardonyx.subscriptions.read` gives. `on_progress` is told the number of subscriptions
        handled so far.

        >>> broker = Broker()
        >>> report = broker.register_many([("1", "/a"), ("2", "/b["), {"id": "3", "query": "//c"}])
        >>> report.registered, [letter.subscription_id for letter in report.rejected]
        (2, ['2'])
        """
        started = time.perf_counter()
        registered = 0
        rejected: list[DeadLetter] = []
        handled = 0
        for batch in self._batches(subscriptions, defaults):
            refused = self._index.register(batch.table) if batch.table.num_rows else []
            registered += batch.table.num_rows - len(refused)
            letters = list(batch.rejected)
            for row, name, fields in refused:
                error = from_core(fields["kind"], {**fields, "subscription_id": name})
                letters.append(tabular.rejection(batch, row, error))
            rejected.extend(letters)
            handled += batch.table.num_rows + len(batch.rejected)
            if on_progress is not None:
                on_progress(handled)
        return RegisterReport(registered, tuple(rejected), time.perf_counter() - started, self.generation)

    def _batches(self, subscriptions: Any, defaults: Defaults | None) -> Iterator[SubscriptionBatch]:
        rows = self._settings.register_rows
        if hasattr(subscriptions, "__arrow_c_stream__") or hasattr(subscriptions, "__arrow_c_array__"):
            if isinstance(subscriptions, pa.Table):
                table = subscriptions
            elif isinstance(subscriptions, pa.RecordBatch):
                table = pa.Table.from_batches([subscriptions])
            elif hasattr(subscriptions, "__arrow_c_stream__"):
                table = pa.table(subscriptions)
            else:
                table = pa.Table.from_batches([pa.record_batch(subscriptions)])
            is_ready = defaults is None and tabular.is_ready(table.schema)
            for start in range(0, table.num_rows, rows):
                part = table.slice(start, rows)
                yield SubscriptionBatch(part) if is_ready else tabular.from_table(part, defaults)
            return
        if isinstance(subscriptions, str | bytes | Mapping):
            raise TypeError("register_many needs an iterable of subscriptions, or an Arrow table")
        items = iter(subscriptions)
        while chunk := list(islice(items, rows)):
            records: list[tuple[object, str | None]] = []
            for item in chunk:
                if isinstance(item, SubscriptionBatch):
                    if records:
                        yield tabular.from_records(records, defaults)
                        records = []
                    yield item
                else:
                    records.append((item, None))
            if records:
                yield tabular.from_records(records, defaults)

    def unregister(self, subscription_ids: str | Iterable[str]) -> list[str]:
        """Remove one or many subscriptions, as one generation; returns the ids that were not there.

        >>> broker = Broker()
        >>> broker.register("1", "/a")
        >>> broker.unregister(["1", "2"])
        ['2']
        """
        names = [subscription_ids] if isinstance(subscription_ids, str) else list(subscription_ids)
        return self._index.unregister(names)

    def compact(self) -> None:
        """Merge all that registrations and removals left in pieces, and wait for it.

        Matching, registering and unregistering go on meanwhile in other threads; the population and its generation stay
        the same. Small pieces are merged in the background as they come, so this is only for the smallest index.

        >>> broker = Broker()
        >>> broker.register("1", "/a")
        >>> broker.register("2", "/b")
        >>> broker.unregister("1")
        []
        >>> broker.compact()
        >>> broker.stats()["segments"], broker.stats()["tombstones"]
        (1, 0)
        """
        self._index.compact()

    def transform(self, document: Document | bytes | str) -> dict[str, str]:
        """What the transformations make of a document: XML text by subscription id, in the order of the ids.

        A subscription that selects nothing of the document has no entry, unless it has `notify_empty`. Raises
        `DocumentError`, and `DynamicError` or `CostLimitError` if one of the transformations fails (`match_batch`
        reports that one and answers for all others).

        >>> broker = Broker()
        >>> query = "<cheap>{for $i in /shop/item where $i/price < 10 return $i/name}</cheap>"
        >>> broker.register("cheap", query, language="xquery")
        >>> broker.transform("<shop><item><name>pen</name><price>5</price></item></shop>")
        {'cheap': '<cheap><name>pen</name></cheap>'}
        >>> broker.transform("<shop><item><name>pen</name><price>50</price></item></shop>")
        {}
        """
        payload, stream, name = payloads.single(document)
        with payloads.named(name):
            return dict(self._index.transform(payload, stream))

    @overload
    def match(self, document: Document | bytes | str, nodes: Literal[False] = False) -> list[str]: ...
    @overload
    def match(self, document: Document | bytes | str, nodes: Literal[True]) -> list[MatchResult]: ...
    def match(self, document: Document | bytes | str, nodes: bool = False) -> list[str] | list[MatchResult]:
        """The ids of the subscriptions that a document satisfies, sorted; `transform` gives the results of some.

        With `nodes` each comes with the nodes that its query selected (at most `BrokerSettings.node_limit`). Raises
        `DocumentError` for a document that can not be processed, and `CostLimitError` if a query costs too much on it
        (`match_batch` reports that query and answers for all others).

        >>> broker = Broker()
        >>> broker.register("cheap", "/shop/item[price < 10]")
        >>> broker.match("<shop><item><price>5</price></item></shop>", nodes=True)[0].nodes[0].path
        '/shop/item'
        """
        payload, stream, name = payloads.single(document)
        with payloads.named(name):
            if not nodes:
                return self._index.match(payload, stream, self._matcher)
            found = self._index.match_nodes(payload, stream, self._matcher, self._settings.node_limit)
        return [MatchResult(who, tuple(MatchedNode(**node) for node in selected)) for who, selected in found]

    def match_batch(
        self, documents: Any, *, streams: Sequence[str | None] | None = None, threads: int | None = None
    ) -> MatchReport:
        """Match many documents at once, on several threads and outside the interpreter's lock.

        `documents`: a sequence of `Document`, bytes or text, or an Arrow array or chunked array of binary or string
        type. A document that can not be processed is a row of the report's `errors`. `streams` names each document's
        stream, where the documents do not say it themselves.

        >>> broker = Broker()
        >>> broker.register("1", "/a")
        >>> report = broker.match_batch([b"<a/>", b"<b/>", b"<a>"])
        >>> report.ids(), report.errors["document"].to_pylist()
        ([['1'], [], []], [2])
        """
        started = time.perf_counter()
        workers = threads or self._settings.threads or _processors()
        batch = payloads.many(documents, streams)
        parts = [
            (part.start, self._index.match_batch(part.payloads, part.streams, workers, self._matcher))
            for part in batch.parts
        ]
        matches, errors = payloads.collect(parts, batch.unreadable)
        return MatchReport(
            matches=matches,
            errors=errors,
            documents=batch.documents,
            payload_bytes=batch.payload_bytes,
            seconds=time.perf_counter() - started,
            threads=workers,
        )

    def publish(
        self, document: Document, *, timestamp: datetime | None = None, stream: str | None = None
    ) -> PublishReport:
        """Match one document, join it with earlier ones and make the notifications.

        A bad document becomes a dead letter, not an exception. Notifications of transformations and joins hold the
        `result`. `timestamp` and `stream` override the document's.

        >>> broker = Broker()
        >>> broker.register("1", "/a")
        >>> [n.subscription_id for n in broker.publish(Document("m1", b"<a/>"))]
        ['1']
        >>> broker.publish(Document("m2", b"<a>")).dead_letters[0].kind
        'not_well_formed'
        >>> query = "//order->o[sku->a] FOLLOWED BY{a = b, 1 h} //ship->s[sku->b]"
        >>> broker.register("shipped", query, language="xscl")
        >>> noon = datetime(2026, 5, 1, 12)
        >>> len(broker.publish(Document("o1", "<order><sku>K</sku></order>"), timestamp=noon))
        0
        >>> report = broker.publish(Document("s1", "<ship><sku>K</sku></ship>"), timestamp=noon.replace(minute=30))
        >>> report.notifications[0].documents, report.notifications[0].result
        (('o1', 's1'), '<result><order><sku>K</sku></order><ship><sku>K</sku></ship></result>')
        """
        if timestamp is not None:
            document = replace(document, timestamp=timestamp)
        if stream is not None:
            document = replace(document, stream=stream)
        return self.publish_many([document], threads=1)

    def publish_many(
        self, documents: Iterable[Document], *, threads: int | None = None, together: bool = False
    ) -> PublishReport:
        """As `publish`, for many documents, in batches on several threads.

        For joins each document is a batch of its own, as if published alone; with `together` all are one batch, whose
        documents do not make each other late.
        """
        notifications: list[Notification] = []
        letters: list[DeadLetter] = []
        count = repetitions = 0
        items = iter(documents)
        while chunk := list(items if together else islice(items, _PUBLISH_DOCUMENTS)):
            count += len(chunk)
            self._notify(chunk, threads, notifications, letters)
            # From the first document on that is published while there is a join.
            self._hears_joins = self._hears_joins or self._index.joins > 0
            if self._hears_joins:
                workers = threads or self._settings.threads or _processors()
                joined = self._session.publish(self._index, chunk, together, workers)
                notifications.extend(joined.notifications)
                letters.extend(joined.dead_letters)
                repetitions += joined.repetitions
                if joined.derived:
                    self._notify(joined.derived, threads, notifications, letters)
        return PublishReport(tuple(notifications), tuple(letters), count, repetitions)

    def _notify(
        self,
        documents: Sequence[Document],
        threads: int | None,
        notifications: list[Notification],
        letters: list[DeadLetter],
    ) -> None:
        """Match documents, and add what filters and transformations have to say."""
        report = self.match_batch(documents, threads=threads)
        names = [document.document_id for document in documents]
        for name, found, results in zip(names, report.ids(), report.results(), strict=True):
            notifications.extend(Notification.of(name, who, results.get(who)) for who in found)
        letters.extend(report.dead_letters(names))

    def explain(
        self, subscription_id: str, document: Document | bytes | str, *others: Document | bytes | str
    ) -> Explanation | PlanExplanation | JoinExplanation:
        """Why a document does or does not satisfy a subscription; `print` the answer.

        A join needs one document for each block, in their order (`JoinExplanation`). Documents without a timestamp
        count as a second after the one before.

        Of a filter it shows which parts hold, of a transformation the plan and the result
        (`sardonyx.explanation.PlanExplanation`). Raises `UnknownSubscriptionError` and `DocumentError`.

        >>> broker = Broker()
        >>> broker.register("big", "/order[@total > 100]")
        >>> broker.explain("big", "<order total='20'/>").matched
        False
        """
        known = self._index.get(subscription_id)
        if known is None:
            raise UnknownSubscriptionError("no such subscription is registered", subscription_id=subscription_id)
        if known["language"] == "xscl":
            return self._explain_join(subscription_id, [document, *others])
        payload, stream, name = payloads.single(document)
        with payloads.named(name):
            if known["language"] == "xquery":
                said = self._index.explain_transformation(subscription_id, payload, stream)
                return PlanExplanation.from_core(subscription_id, known["stream"] in (None, stream), said)
            return Explanation.from_core(subscription_id, self._index.explain(subscription_id, payload, stream))

    def _explain_join(self, subscription_id: str, documents: Sequence[Document | bytes | str]) -> JoinExplanation:
        given = []
        before = 0
        for number, document in enumerate(documents):
            payload, stream, name = payloads.single(document)
            moment = document.timestamp if isinstance(document, Document) else None
            before = before + 1_000_000 if moment is None else to_microseconds(moment)
            given.append((payload, stream, f"document {number + 1}" if name is None else name, before))
        said = self._index.explain_join(subscription_id, given)
        return JoinExplanation.from_core(subscription_id, said, self._session.state.stats())

    def groups(self, document: Document | bytes | str) -> dict[str, list[list[list[str]]]]:
        """What transformations select from a document, before any XML is constructed: groups of lists by subscription.

        A group belongs to one binding of the outermost `for`; its lists hold the XML text of the nodes (for attributes
        the value) of each path that is returned, in the order of the query. Transformations that have nothing, or that
        fail on the document, are left out. Raises `DocumentError`.

        >>> broker = Broker()
        >>> broker.register("t", "<r>{for $i in //i return <x>{$i/a}{$i/b}</x>}</r>", language="xquery")
        >>> broker.groups("<d><i><a>1</a><a>2</a></i><i><b>3</b></i></d>")
        {'t': [[['<a>1</a>', '<a>2</a>'], []], [[], ['<b>3</b>']]]}
        """
        payload, stream, name = payloads.single(document)
        with payloads.named(name):
            return dict(self._index.transformation_groups(payload, stream))

    def save(self, path: str | os.PathLike[str]) -> str:
        """Write the current generation to one file, atomically; returns the content's hash in hexadecimal digits.

        >>> import tempfile, pathlib
        >>> broker = Broker()
        >>> broker.register("1", "/a")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     hash = broker.save(pathlib.Path(folder) / "one.sdx")
        ...     Broker.load(pathlib.Path(folder) / "one.sdx").match("<a/>")
        ['1']
        """
        return self._index.save(os.fspath(path))

    def save_state(self, path: str | os.PathLike[str]) -> None:
        """Write the state of joins to a file, atomically: what was published and may still join, and the watermark.

        `restore_state` goes on with it in a broker that has the same subscriptions, registered again or loaded.
        """
        durable.write_bytes(Path(path), self._session.state.save(self._index))

    def restore_state(self, path: str | os.PathLike[str]) -> None:
        """Go on where `save_state` was called, in place of the own state of joins.

        Subscriptions that were registered there with the same query join what was published then; others join what is
        published from now on. Raises `IndexFormatError` for a file that is no saved state.

        >>> import tempfile, pathlib
        >>> query = "//order->o[sku->a] JOIN{a = b, 1 h} //ship->s[sku->b]"
        >>> one, two = Broker(), Broker()
        >>> one.register("shipped", query, language="xscl")
        >>> two.register("shipped", query, language="xscl")
        >>> len(one.publish(Document("o1", "<order><sku>K</sku></order>")))
        0
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     one.save_state(pathlib.Path(folder) / "joins.state")
        ...     two.restore_state(pathlib.Path(folder) / "joins.state")
        >>> len(two.publish(Document("s1", "<ship><sku>K</sku></ship>")))
        1
        """
        with open(path, "rb") as file:
            saved = file.read()
        self._session.state.restore(self._index, saved)
        self._hears_joins = self._session.state.watermark_us is not None

    def stats(self) -> dict[str, int]:
        """Counters and sizes of the index; docs/index-at-scale.md describes each.

        Names that end in `_bytes` are bytes: `index_bytes` in all, of it `mapped_bytes` in files and `heap_bytes` in
        memory of this process, and each part's `part_..._bytes`; `tombstone_bytes` and `cache_bytes` besides. Others
        count: `subscriptions`, `rows`, `signatures`, `segments`, `tombstones`, ...; what the matcher `xpush` did is in
        `xpush_states`, `xpush_lookups`, `xpush_hits` and others (docs/xpush.md).

        >>> broker = Broker()
        >>> broker.register("1", "/a[@b = 'c']")
        >>> stats = broker.stats()
        >>> parts = sum(size for name, size in stats.items() if name.startswith("part_"))
        >>> parts == stats["index_bytes"] == stats["heap_bytes"] + stats["mapped_bytes"]
        True
        """
        return {**self._index.stats(), **self._session.state.stats()}
