"""Workloads for tests and benchmarks: documents of a DTD, queries that fit them, and sets known from the literature.

- `load` gives a ready-made workload by name: `stock`, `nitf`, `bib`, `book`, `psd`, `nasa`, `feeds`,
  and `bib-flwr`, `book-flwr`, `nitf-flwr` with transformations;
- `documents` generates valid documents from a DTD, shaped by `DocumentShape`;
- `queries` draws filters from documents, shaped by `QueryShape`, and `transformations` FLWR expressions, shaped by
  `TransformationShape`.

The same seed gives the same bytes on every machine. Everything but `stock` needs lxml: pip install
'sardonyx[workloads]'.

>>> from sardonyx import Broker
>>> workload = load("stock", documents=200, subscriptions=1000, notifications=500)
>>> broker = Broker()
>>> broker.register_many(workload.batches()).registered
1000
>>> 400 < sum(map(len, broker.match_batch(list(workload.documents)).ids())) < 600
True
"""

from sardonyx.workloads import stock
from sardonyx.workloads.sets import SETS, Stream, Workload, describe, documents, load, queries, transformations
from sardonyx.workloads.shapes import DocumentShape, QueryShape, TransformationShape

__all__ = [
    "SETS",
    "DocumentShape",
    "QueryShape",
    "Stream",
    "TransformationShape",
    "Workload",
    "describe",
    "documents",
    "load",
    "queries",
    "stock",
    "transformations",
]
