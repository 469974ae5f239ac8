"""Populations from files: text, CSV, JSON lines, YAML, Parquet, folders of these, and saved indexes.

| file | what it holds |
|---|---|
| `.txt` | one XPath a line; the id is the line number from 1; blank lines are skipped but counted |
| `.xq`, `.xquery` | one XQuery; the id is the file's name without the suffix |
| `.csv` | a header and at least the columns `id` and `query` |
| `.jsonl`, `.ndjson` | one JSON object a line |
| `.yaml`, `.yml` | a list, or `subscriptions:` with a list and `namespaces:` for all of it |
| `.parquet` | the columns `id` (or `subscription_id`) and `query` |
| a folder | all such files below it, by path; `.txt` files give ids `PATH:LINE`, `.xq` files `PATH` without suffix |
| anything else | a saved index (`Broker.save`, `sardonyx index build`) |

Fields are `id`, `query` and optionally `language`, `namespaces`, `stream`, `ignore_namespaces`, `notify_empty`. Text
files may be gzipped (`.txt.gz`). A later subscription replaces an earlier one of the same id.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from sardonyx.broker import Broker
from sardonyx.config import BrokerSettings
from sardonyx.errors import SubscriptionFileError
from sardonyx.model import DeadLetter
from sardonyx.readers import READERS, reader_for
from sardonyx.reports import RegisterReport
from sardonyx.tabular import Defaults, SubscriptionBatch

__all__ = ["is_index", "open_broker", "read"]


def is_index(path: str | os.PathLike[str]) -> bool:
    """Whether a path is taken for a saved index: a file with none of the suffixes above."""
    path = Path(path)
    return not path.is_dir() and reader_for(path) is None


def read(path: str | os.PathLike[str], defaults: Defaults | None = None) -> Iterator[SubscriptionBatch]:
    """The subscriptions of a file or folder, for `Broker.register_many`; raises `SubscriptionFileError`.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "queries.txt")
    ...     _ = file.write_text("/a\\n\\n//b\\n")
    ...     [batch.table["subscription_id"].to_pylist() for batch in read(file)]
    [['1', '3']]
    """
    path = Path(path)
    if not path.is_dir():
        reader = reader_for(path)
        if reader is None:
            raise SubscriptionFileError(
                f"{path}: no reader for this suffix; known are {', '.join(READERS)} and folders"
            )
        yield from reader(path, defaults, "")
        return
    files = sorted(file for file in path.rglob("*") if file.is_file() and reader_for(file) is not None)
    if not files:
        raise SubscriptionFileError(f"{path}: the folder holds no subscription file ({', '.join(READERS)})")
    for file in files:
        reader = reader_for(file)
        assert reader is not None
        yield from reader(file, defaults, file.relative_to(path).as_posix())


def open_broker(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    settings: BrokerSettings | None = None,
    *,
    defaults: Defaults | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> tuple[Broker, RegisterReport]:
    """A broker with the subscriptions of one or several files, folders or a saved index, and what was refused.

    Of several paths at most one may be a saved index; its subscriptions come first. Raises `SubscriptionFileError`
    and `IndexFormatError`.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "queries.txt")
    ...     _ = file.write_text("/a\\n/b[\\n")
    ...     broker, report = open_broker(file)
    >>> broker.ids(), report.registered, report.rejected[0].subscription_id
    (['1'], 1, '2')
    """
    every = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    indexes = [path for path in every if is_index(path)]
    if len(indexes) > 1:
        raise SubscriptionFileError(f"{indexes[1]}: only one saved index can be opened at a time")
    broker = Broker.load(indexes[0], settings) if indexes else Broker(settings)
    registered = len(broker)
    rejected: list[DeadLetter] = []
    seconds = 0.0
    for path in every:
        if path in indexes:
            continue
        before = registered
        report = broker.register_many(
            read(path, defaults),
            on_progress=None if on_progress is None else (lambda done, before=before: on_progress(before + done)),  # type: ignore[misc]
        )
        registered += report.registered
        rejected.extend(report.rejected)
        seconds += report.seconds
    return broker, RegisterReport(registered, tuple(rejected), seconds, broker.generation)
