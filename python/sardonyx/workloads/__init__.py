"""Workloads for tests and benchmarks: documents of a DTD, queries that fit them, and sets known from the literature.

- `load` gives a ready-made workload by name: `stock`, `nitf`, `bib`, `book`, `psd`, `nasa`, `feeds`,
  `bib-flwr`, `book-flwr`, `nitf-flwr` with transformations, and `join-flat`, `join-complex`, `join-feeds` with joins;
- `documents` generates valid documents from a DTD, shaped by `DocumentShape`, and those of joins, shaped by `TreeShape`
  and `FeedShape`;
- `queries` draws filters from documents, shaped by `QueryShape`, `transformations` FLWR expressions, shaped by
  `TransformationShape`, and `joins` joins of pairs of documents, shaped by `JoinShape`.

The same seed gives the same bytes on every machine. Everything but `stock` and the sets with joins needs lxml:
pip install 'sardonyx[workloads]'.

>>> from sardonyx import Broker
>>> workload = load("stock", documents=200, subscriptions=1000, notifications=500)
>>> broker = Broker()
>>> broker.register_many(workload.batches()).registered
1000
>>> 400 < sum(map(len, broker.match_batch(list(workload.documents)).ids())) < 600
True
"""

from sardonyx.workloads import stock
from sardonyx.workloads.sets import SETS, Stream, Workload, describe, documents, joins, load, queries, transformations
from sardonyx.workloads.shapes import (
    DocumentShape,
    FeedShape,
    JoinShape,
    QueryShape,
    TransformationShape,
    TreeShape,
)

__all__ = [
    "SETS",
    "DocumentShape",
    "FeedShape",
    "JoinShape",
    "QueryShape",
    "Stream",
    "TransformationShape",
    "TreeShape",
    "Workload",
    "describe",
    "documents",
    "joins",
    "load",
    "queries",
    "stock",
    "transformations",
]
