"""What the core says of joins, as rows of results; documents that joins make are matched on the way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sardonyx.spark.schemas import BATCH, DEAD_LETTER, NOTIFICATION
from sardonyx.spark.worker import LETTER, MatchTask, parts_of, rows_of

__all__ = ["rows_of_joins"]


def rows_of_joins(said: dict[str, Any], witnesses: pa.Table, task: MatchTask) -> Iterator[pa.RecordBatch]:
    """Rows of `RESULTS` for what joins said of a batch; the counts come last.

    `witnesses` is the table that was heard, in which documents are numbered by row. `task` matches the documents that
    are results of joins: filters and transformations hear them as any others.
    """
    generation = task.index.generation
    notifications, errors = said["notifications"], said["errors"]
    for part in parts_of(notifications, "result", task.output_bytes):
        ids = part.column("document_ids")
        # Every notification is of one document at least; offsets of a slice do not start at 0.
        last = pc.subtract(ids.offsets[1:], 1)
        columns = {name: part.column(name) for name in ("subscription_id", "notification_id", "result", "document_ids")}
        yield rows_of(NOTIFICATION, generation, document_id=ids.values.take(last), **columns)
    for part in parts_of(errors, "message", task.output_bytes):
        columns = {name: part.column(name) for name in LETTER}
        document_ids = witnesses["document_id"].take(part.column("document")).combine_chunks()
        yield rows_of(DEAD_LETTER, generation, document_id=document_ids, **columns)
    undecided = pc.sum(pc.is_valid(errors.column("subscription_id"))).as_py() or 0
    counts = {
        "notifications": notifications.num_rows,
        "undecided_pairs": undecided,
        "unjoined_documents": errors.num_rows - undecided,
        "repetitions": said["repetitions"],
    }
    derived = said["derived"]
    if derived.num_rows:
        for rows in task([derived.select(["document_id", "payload", "stream"])]):
            if rows.column("outcome")[0].as_py() == BATCH:
                # They are no documents of the source.
                for name in ("notifications", "undecided_pairs"):
                    counts[name] += rows.column(name)[0].as_py()
            else:
                yield rows
    yield rows_of(BATCH, generation, **{name: pa.array([value], pa.int64()) for name, value in counts.items()})
