"""Ready-made workloads: documents and subscriptions that fit each other, by the name of a set.

A set is a YAML file in `data/`: its DTDs, the shape of its documents, kinds of queries, and pools of values. `stock` is
made by formula instead, see `stock`, and the documents of joins by `join_generator`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import as_file, files
from itertools import islice
from pathlib import Path
from typing import Any, Generic, TypeVar

import pyarrow as pa
import yaml

from sardonyx.errors import SettingsError, WorkloadError
from sardonyx.tabular import Defaults, SubscriptionBatch, from_table
from sardonyx.workloads import (
    document_generator,
    dtd,
    join_generator,
    query_generator,
    stock,
    transformation_generator,
)
from sardonyx.workloads.draws import Draws
from sardonyx.workloads.samples import Samples
from sardonyx.workloads.shapes import (
    DocumentShape,
    FeedShape,
    JoinShape,
    QueryShape,
    TransformationShape,
    TreeShape,
)
from sardonyx.workloads.values import Values

__all__ = [
    "SETS",
    "SetDescription",
    "Stream",
    "Workload",
    "describe",
    "documents",
    "joins",
    "load",
    "queries",
    "transformations",
]

SETS = (
    "stock",
    "nitf",
    "bib",
    "book",
    "psd",
    "nasa",
    "feeds",
    "bib-flwr",
    "book-flwr",
    "nitf-flwr",
    "join-flat",
    "join-complex",
    "join-feeds",
)
"""The names of the ready-made sets."""

_SAMPLES = 200
"""Generated documents that queries are drawn from: the first ones of the workload."""

T = TypeVar("T")
Source = str | os.PathLike[str]
"""The name of a set, or a DTD file."""


class Stream(Generic[T]):
    """A known number of items that are generated anew whenever it is iterated.

    >>> stream = Stream(2, lambda: iter("abc"))
    >>> len(stream), list(stream), list(stream)
    (2, ['a', 'b'], ['a', 'b'])
    """

    def __init__(self, count: int, generate: Callable[[], Iterator[T]]) -> None:
        self._count = count
        self._generate = generate

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[T]:
        return islice(self._generate(), self._count)


@dataclass(frozen=True, slots=True)
class Workload:
    """Documents and subscriptions that fit each other."""

    name: str
    """The set, or the DTD that it was made from."""
    documents: Stream[bytes]
    """The documents."""
    subscriptions: Stream[str]
    """The queries; as subscriptions they are numbered from 1."""
    namespaces: Callable[[], Mapping[str, str]]
    """The prefixes of the queries and their URIs."""
    notifications: float | None = None
    """Expected notifications of all documents together, where that is known."""
    parameters: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """What it was made with."""
    language: str = "xpath"
    """The language of all queries: `xpath`, `xquery` where they are transformations, `xscl` where they are joins."""

    def batches(self, rows: int = 100_000) -> Iterator[SubscriptionBatch]:
        """The subscriptions as `Broker.register_many` takes them, so many rows at a time.

        >>> from sardonyx import Broker
        >>> broker = Broker()
        >>> workload = load("stock", documents=100, subscriptions=1000, notifications=500)
        >>> broker.register_many(workload.batches()).registered
        1000
        """
        defaults = Defaults(dict(self.namespaces()) or None)
        queries = iter(self.subscriptions)
        first = 1
        while chunk := list(islice(queries, rows)):
            ids = [str(number) for number in range(first, first + len(chunk))]
            yield from_table(pa.table({"id": ids, "query": chunk, "language": [self.language] * len(ids)}), defaults)
            first += len(chunk)


@dataclass(frozen=True, slots=True)
class SetDescription:
    """What the data file of a set says."""

    name: str
    about: str
    """What it is, in a line."""
    source: str
    """Where its form comes from."""
    dtds: tuple[str, ...] = ()
    """Its DTDs, beside the data file; with several, each document draws one of them. None: the caller has it."""
    documents: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Parameters of `DocumentShape`; of `TreeShape` or `FeedShape` where the queries are joins."""
    records: tuple[str, ...] = ()
    """Elements that `records` counts."""
    queries: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: {"default": {}}, hash=False)
    """Parameters of `QueryShape`, `TransformationShape` or `JoinShape` by kind of queries, the usual one first."""
    values: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Pools of values; see `values`."""
    language: str = "xpath"
    """The language of its queries: `xpath`, `xquery` or `xscl`."""

    def shape(
        self, kind: str, changes: Mapping[str, Any] | None = None
    ) -> QueryShape | TransformationShape | JoinShape:
        """What queries of a kind look like, with some parameters changed."""
        values = {**self.queries[kind], **(changes or {})}
        if self.language == "xscl":
            return JoinShape.from_mapping(values)
        return (TransformationShape if self.language == "xquery" else QueryShape).from_mapping(values)

    def leaf_shape(self, changes: Mapping[str, Any] | None = None) -> TreeShape | FeedShape:
        """What the documents of joins look like, with some parameters changed."""
        values = {**self.documents, **(changes or {})}
        return FeedShape.from_mapping(values) if "channels" in self.documents else TreeShape.from_mapping(values)

    def kind(self, name: str | None) -> str:
        """The kind of queries of this name, or the usual one; raises `SettingsError` for an unknown one."""
        kinds = list(self.queries)
        if name is not None and name not in kinds:
            raise SettingsError(f"{self.name} has no queries of kind {name!r}; it has {', '.join(kinds)}")
        return name or kinds[0]


def describe(name: str) -> SetDescription:
    """The description of a set; raises `SettingsError` for an unknown name.

    >>> describe("psd").about
    'Entries of a protein sequence database, with the bushy queries of XPush; not recursive, 7 levels'
    """
    if name == "stock":
        about = "Flat stock messages; subscriptions with one equality and four comparisons; expected notifications"
        source = "Tian et al., SIGMOD 2004, section 5.1"
        return SetDescription("stock", about, source, queries={"ranges": {}})
    if name not in SETS:
        raise SettingsError(f"there is no set {name!r}; the sets are {', '.join(SETS)}; a DTD is a file NAME.dtd")
    text = (files("sardonyx.workloads") / "data" / f"{name}.yaml").read_text(encoding="utf-8")
    said: dict[str, Any] = yaml.safe_load(text)
    said["dtds"] = tuple(said.get("dtds", ()))
    said["records"] = tuple(said.get("records", ()))
    return SetDescription(name, **said)


def _described(source: Source) -> tuple[SetDescription, list[Path]]:
    """A set's description, or an empty one, and the DTD file where `source` names one."""
    path = Path(source)
    if path.suffix.lower() == ".dtd":
        return SetDescription(path.stem, f"Documents of {path.name}", str(path)), [path]
    return describe(str(source)), []


def _grammars(description: SetDescription, paths: list[Path], root: str | None) -> list[dtd.Grammar]:
    if paths:
        return [dtd.read(path, root) for path in paths]
    if not description.dtds:
        raise WorkloadError(
            f"the DTD of {description.name} is not part of this package: name the file of it (dtd), or sample documents"
        )
    grammars = []
    for name in description.dtds:
        with as_file(files("sardonyx.workloads") / "data" / name) as path:
            grammars.append(dtd.read(path, root))
    return grammars


def _generated(
    grammars: list[dtd.Grammar], shape: DocumentShape, pools: Mapping[str, Any], seed: int
) -> Iterator[bytes]:
    draws = Draws(seed, "documents")
    streams = [document_generator.generate(grammar, shape, draws, pools) for grammar in grammars]
    while True:
        yield next(streams[0] if len(streams) == 1 else draws.pick(streams))


def _leafy(description: SetDescription, shape: TreeShape | FeedShape, seed: int) -> Iterator[bytes]:
    """The documents of joins."""
    draws = Draws(seed, "documents")
    if isinstance(shape, TreeShape):
        return join_generator.trees(shape, draws)
    return join_generator.feed_items(shape, Values(DocumentShape(), description.values), draws)


def documents(
    source: Source,
    shape: DocumentShape | TreeShape | FeedShape | None = None,
    count: int = 1000,
    seed: int = 1,
    *,
    root: str | None = None,
) -> Iterator[bytes]:
    """Documents of a set or a DTD file, valid for its DTD.

    Without a `shape` they have the set's own; `TreeShape` and `FeedShape` are those of the sets with joins. Raises
    `SettingsError` for an unknown set, `WorkloadError` for a DTD that can not be read or has no such documents, and
    `MissingExtraError` without lxml.

    >>> print(next(documents("bib", DocumentShape(doc_depth=4, max_repeats=1), seed=5)).decode())
    <bib><book year="1988"><title>Programming Streams Queries</title><author><last>Stevens</last>...
    """
    if source == "stock":
        return stock.messages(stock.calibrate(messages=count), seed)
    description, paths = _described(source)
    if description.language == "xscl":
        shape = description.leaf_shape() if shape is None else shape
        if isinstance(shape, DocumentShape):
            raise SettingsError(f"the documents of {description.name} are of a TreeShape or a FeedShape")
        return islice(_leafy(description, shape, seed), count)
    grammars = _grammars(description, paths, root)
    shape = shape if shape is not None else DocumentShape.from_mapping(description.documents)
    if not isinstance(shape, DocumentShape):
        raise SettingsError(f"the documents of {description.name} are of a DocumentShape")
    return islice(_generated(grammars, shape, description.values, seed), count)


def queries(
    source: Source | Iterable[bytes], shape: QueryShape | None = None, count: int = 10_000, seed: int = 1
) -> Iterator[str]:
    """Queries over a set, a DTD file, or sample documents; each is true of at least one of the samples.

    For a set or a DTD the samples are the first 200 documents that `documents` gives for the same seed. Raises as it
    does, and `WorkloadError` where the samples do not give so many distinct queries.

    >>> list(queries([b"<order id='7'><item>pen</item></order>"], QueryShape(predicates=1, wildcard=0), count=2))
    ['/order[@id="7"]/item', '/order/item[text()="pen"]']
    """
    if source == "stock":
        return stock.subscriptions(stock.calibrate(subscriptions=count), seed)
    if isinstance(source, str | os.PathLike):
        description, _ = _described(source)
        samples = Samples(documents(source, None, _SAMPLES, seed))
        if shape is None and description.language == "xpath":
            shape = QueryShape.from_mapping(description.queries[description.kind(None)])
    else:
        samples = Samples(source)
    return islice(query_generator.generate(samples, shape or QueryShape(), Draws(seed, "queries")), count)


def transformations(
    source: Source | Iterable[bytes], shape: TransformationShape | None = None, count: int = 10_000, seed: int = 1
) -> Iterator[str]:
    """Transformations over a set, a DTD file, or sample documents, as `queries` gives filters.

    >>> shape = TransformationShape(predicates=1, returns=1, wildcard=0, descendant=0)
    >>> list(transformations([b"<order id='7'><item>pen</item></order>"], shape, count=1, seed=3))
    ['<result>{for $v in /order where $v/@id="7" return <item>{$v/item}</item>}</result>']
    """
    if isinstance(source, str | os.PathLike):
        if source != "stock" and shape is None:
            description, _ = _described(source)
            if description.language == "xquery":
                shape = TransformationShape.from_mapping(description.queries[description.kind(None)])
        source = documents(source, None, _SAMPLES, seed)
    shape = shape or TransformationShape()
    return islice(transformation_generator.generate(Samples(source), shape, Draws(seed, "queries")), count)


def joins(source: str, shape: JoinShape | None = None, count: int = 10_000, seed: int = 1) -> Iterator[str]:
    """Joins over the documents of a set that has joins.

    >>> next(joins("join-feeds", JoinShape(value_joins=1, window=3600), seed=2))
    '/item[channel->a2] FOLLOWED BY{a2 = b2, 866 s} /item[channel->b2]'
    """
    description = describe(source)
    if description.language != "xscl":
        raise SettingsError(f"the set {source!r} has no joins")
    root, leaves = join_generator.root_and_leaves(description.leaf_shape())
    shape = shape or JoinShape.from_mapping(description.queries[description.kind(None)])
    return islice(join_generator.generate(root, leaves, shape, Draws(seed, "queries")), count)


def load(
    source: Source,
    *,
    documents: int | None = None,
    subscriptions: int = 10_000,
    seed: int = 1,
    kind: str | None = None,
    document_shape: Mapping[str, Any] | None = None,
    query_shape: Mapping[str, Any] | None = None,
    dtd: Source | None = None,
    root: str | None = None,
    samples: Iterable[bytes] | None = None,
    records: int | None = None,
    notifications: float | None = None,
) -> Workload:
    """A workload: documents and subscriptions of a set, or over a DTD file.

    - `documents`, `subscriptions`: how many there are; without `documents` 1,000, for `stock` 10,000, and all of the
      `samples` where the set has no DTD.
    - `kind`: which queries of the set; `describe(NAME).queries` has their names.
    - `document_shape`, `query_shape`: parameters that differ from the set's.
    - `dtd`, `root`: the DTD of `nitf`, which is not part of the package, and the element that documents start with.
    - `samples`: documents to draw queries from, instead of the first 200 generated ones; also the documents of the
      workload where there is no DTD to generate others from.
    - `records`: records (entries, items) of one document, for the sets that have them; usually 1.
    - `notifications`: expected notifications of all `stock` messages together; 10 a message if not given.

    Raises `SettingsError` for what does not exist or does not apply, and later, when items are generated, what
    `documents` and `queries` raise.

    >>> workload = load("psd", documents=3, subscriptions=5, kind="bushy-10.45", seed=2)
    >>> len(workload.documents), len(list(workload.subscriptions))
    (3, 5)
    """
    if source == "stock":
        describe("stock").kind(kind)
        _refuse("stock", document_shape=document_shape, query_shape=query_shape)
        _refuse("stock", dtd=dtd, root=root, samples=samples, records=records)
        market = stock.calibrate(10_000 if documents is None else documents, subscriptions, notifications)
        return Workload(
            name="stock",
            documents=Stream(market.messages, lambda: stock.messages(market, seed)),
            subscriptions=Stream(market.subscriptions, lambda: stock.subscriptions(market, seed)),
            namespaces=dict,
            notifications=market.notifications,
            parameters={"seed": seed, "symbols": market.symbols, "width": market.width},
        )
    if notifications is not None:
        raise SettingsError("notifications is given; only the set 'stock' takes it")
    for name, value in (("documents", documents), ("subscriptions", subscriptions)):
        if value is not None and value < 0:
            raise SettingsError(f"{name} is {value}; it must be at least 0")
    description, paths = _described(source)
    if description.language == "xscl":
        _refuse(description.name, dtd=dtd, root=root, samples=samples, records=records)
        return _load_joins(description, documents, subscriptions, seed, kind, document_shape, query_shape)
    if dtd is not None:
        paths = [Path(dtd)]
    kind = description.kind(kind)
    shape = _document_shape(description, document_shape, records)
    query = description.shape(kind, query_shape)
    given = None if samples is None else list(samples)
    if given is not None and not paths and not description.dtds:
        if documents is not None and documents > len(given):
            raise SettingsError(f"documents is {documents}; without a DTD there are only the {len(given)} samples")
        stream = Stream(len(given) if documents is None else documents, lambda: iter(given))
    else:
        grammars = _grammars(description, paths, root)
        stream = Stream(
            1000 if documents is None else documents, lambda: _generated(grammars, shape, description.values, seed)
        )

    @cache
    def drawn_from() -> Samples:
        if given is not None:
            return Samples(given)
        return Samples(islice(_generated(grammars, shape, description.values, seed), _SAMPLES))

    def drawn() -> Iterator[str]:
        draws = Draws(seed, "queries")
        if isinstance(query, TransformationShape):
            return transformation_generator.generate(drawn_from(), query, draws)
        assert isinstance(query, QueryShape)
        return query_generator.generate(drawn_from(), query, draws)

    return Workload(
        name=description.name,
        documents=stream,
        subscriptions=Stream(subscriptions, drawn),
        namespaces=lambda: drawn_from().namespaces,
        parameters={"seed": seed, "kind": kind, "documents": shape, "queries": query},
        language=description.language,
    )


def _refuse(name: str, **options: object) -> None:
    """Refuse options that a set does not take."""
    for option, given in options.items():
        if given:
            raise SettingsError(f"{option} is given; the set {name!r} takes no {option}")


def _load_joins(
    description: SetDescription,
    documents: int | None,
    subscriptions: int,
    seed: int,
    kind: str | None,
    document_shape: Mapping[str, Any] | None,
    query_shape: Mapping[str, Any] | None,
) -> Workload:
    """A workload of a set with joins."""
    kind = description.kind(kind)
    shape = description.leaf_shape(document_shape)
    query = description.shape(kind, query_shape)
    assert isinstance(query, JoinShape)
    root, leaves = join_generator.root_and_leaves(shape)
    return Workload(
        name=description.name,
        documents=Stream(1000 if documents is None else documents, lambda: _leafy(description, shape, seed)),
        subscriptions=Stream(
            subscriptions, lambda: join_generator.generate(root, leaves, query, Draws(seed, "queries"))
        ),
        namespaces=dict,
        parameters={"seed": seed, "kind": kind, "documents": shape, "queries": query},
        language=description.language,
    )


def _document_shape(
    description: SetDescription, changes: Mapping[str, Any] | None, records: int | None
) -> DocumentShape:
    """The shape of a set's documents with the changes that were asked for."""
    given = {**description.documents, **(changes or {})}
    if records is not None and not description.records:
        raise SettingsError(f"records is {records}; the documents of {description.name} do not consist of records")
    if records is not None and records < 1:
        raise SettingsError(f"records is {records}; it must be at least 1")
    if records is not None:
        given["repeats"] = {**given.get("repeats", {}), **dict.fromkeys(description.records, (records, records))}
    return DocumentShape.from_mapping(given)
