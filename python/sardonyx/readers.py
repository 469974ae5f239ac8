"""Readers of subscription files, one a format: from a file to batches that know which line each row came from.

A file that can not be understood as a whole raises `SubscriptionFileError`; a single bad row becomes a dead letter.
Text formats are UTF-8, with or without byte order mark, and may be gzipped.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import yaml

from sardonyx.errors import InvalidFieldError, SubscriptionFileError
from sardonyx.model import DeadLetter, Subscription
from sardonyx.tabular import SCHEMA, Defaults, SubscriptionBatch, apply_defaults, from_records, from_table

__all__ = ["READERS", "reader_for"]

Reader = Callable[[Path, Defaults | None, str], Iterator[SubscriptionBatch]]
"""Reads a file; the last argument is its path within the folder that is read, for ids that the reader makes itself."""

_YAML_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
        if path.suffix == ".gz":
            data = gzip.decompress(data)
    except (OSError, EOFError) as error:
        raise SubscriptionFileError(f"{path}: {error}") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SubscriptionFileError(f"{path}:{line}: not UTF-8: {error.reason}") from None


def read_lines(path: Path, defaults: Defaults | None, within: str) -> Iterator[SubscriptionBatch]:
    """`.txt`: one XPath a line, its id is the line's number from 1; blank lines are skipped but counted."""
    id_prefix = f"{within}:" if within else ""
    # Only line feeds end a line: str.splitlines would also cut at characters that queries may hold.
    lines = [line.strip(" \t\r") for line in _text(path).split("\n")]
    numbers = [number for number, line in enumerate(lines, 1) if line]
    queries = [line for line in lines if line]
    count = len(queries)
    table = pa.table(
        [
            pa.array([f"{id_prefix}{number}" for number in numbers], pa.string()),
            pa.array(queries, pa.string()),
            pa.nulls(count, pa.string()),
            pa.repeat(False, count),
            pa.nulls(count, pa.string()),
            pa.nulls(count, pa.string()),
            pa.repeat(False, count),
        ],
        schema=SCHEMA,
    )
    yield SubscriptionBatch(apply_defaults(table, defaults), locate=lambda row: f"{path}:{numbers[row]}")


def read_query(path: Path, defaults: Defaults | None, within: str) -> Iterator[SubscriptionBatch]:
    """`.xq`: the whole file is one XQuery, its id is the file's name (in a folder its path) without the suffix."""
    name = Path(within) if within else Path(path.name)
    for _ in name.suffixes[-2:] if name.suffix == ".gz" else name.suffixes[-1:]:
        name = name.with_suffix("")
    yield from_records([(Subscription(name.as_posix(), _text(path), "xquery"), str(path))], defaults)


def read_csv(path: Path, defaults: Defaults | None, _within: str) -> Iterator[SubscriptionBatch]:
    """`.csv`: a header with at least `id` and `query`, RFC 4180 quoting; other columns are ignored."""
    text = _text(path)
    header = next(csv.reader(io.StringIO(text)), [])
    odd: list[tuple[int, str]] = []

    def refuse(row: Any) -> str:
        odd.append((row.number, f"{row.actual_columns} values where the header has {row.expected_columns}"))
        return "skip"

    try:
        table = pyarrow.csv.read_csv(
            pa.py_buffer(text.encode()),
            # One thread, because only then rows with a wrong number of values are numbered.
            read_options=pyarrow.csv.ReadOptions(
                use_threads=False, block_size=max(1 << 20, min(len(text) * 4, 1 << 30))
            ),
            parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True, invalid_row_handler=refuse),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(header, pa.string()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=True,
            ),
        )
    except pa.ArrowInvalid as error:
        raise SubscriptionFileError(f"{path}: {error}") from None
    starts: list[int] = []

    def line_of(record: int) -> int:
        # Only wanted for refused rows, so the exact answer is computed when first asked for.
        if not starts:
            starts.extend(_record_lines(text))
        return starts[record]

    records = _record_numbers(table.num_rows, [number for number, _ in odd])
    try:
        batch = from_table(table, defaults, locate=lambda row: f"{path}:{line_of(records(row))}")
    except InvalidFieldError as error:
        raise SubscriptionFileError(f"{path}: {error.message}") from None
    letters = tuple(
        DeadLetter(kind="invalid_field", message=message, source=f"{path}:{line_of(number - 1)}")
        for number, message in odd
    )
    yield SubscriptionBatch(batch.table, letters, batch.locate)


def _record_lines(text: str) -> list[int]:
    """The line on which each record of a CSV text starts, the header being record 0."""
    reader = csv.reader(io.StringIO(text, newline=""))
    starts = []
    before = 0
    for record in reader:
        if record:
            starts.append(before + 1)
        before = reader.line_num
    return starts


def _record_numbers(rows: int, skipped: list[int]) -> Callable[[int], int]:
    """From a row of the table to the record of the file (header: 0), given the records (from 1: header) left out."""
    if not skipped:
        return lambda row: row + 1
    left_out = {number - 1 for number in skipped}
    kept = [record for record in range(1, rows + len(left_out) + 1) if record not in left_out]
    return lambda row: kept[row]


def read_parquet(path: Path, defaults: Defaults | None, _within: str) -> Iterator[SubscriptionBatch]:
    """`.parquet`: columns `id` (or `subscription_id`) and `query`; others than the known ones are ignored."""
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            start = 0
            for record_batch in file.iter_batches(batch_size=250_000):
                first = start
                table = pa.Table.from_batches([record_batch])
                yield from_table(table, defaults, locate=lambda row, first=first: f"{path}: row {first + row}")  # type: ignore[misc]
                start += record_batch.num_rows
    except (pa.ArrowException, OSError) as error:
        raise SubscriptionFileError(f"{path}: {error}") from None
    except InvalidFieldError as error:
        raise SubscriptionFileError(f"{path}: {error.message}") from None


def read_jsonl(path: Path, defaults: Defaults | None, _within: str) -> Iterator[SubscriptionBatch]:
    """`.jsonl`: one JSON object a line; blank lines are skipped. Unknown fields are refused, except `description`."""
    records: list[tuple[object, str | None]] = []
    letters: list[DeadLetter] = []
    for number, line in enumerate(_text(path).split("\n"), 1):
        if not line.strip():
            continue
        place = f"{path}:{number}"
        try:
            value = json.loads(line, object_pairs_hook=_without_duplicates)
        except (ValueError, RecursionError) as error:
            letters.append(DeadLetter(kind="invalid_field", message=f"not a JSON object: {error}", source=place))
            continue
        records.append((_described(value), place))
    batch = from_records(records, defaults)
    yield SubscriptionBatch(batch.table, batch.rejected + tuple(letters), batch.locate)


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a name occurs twice in one object")
    return value


def _described(value: object) -> object:
    """A record without its `description`, which is for readers of the file."""
    if isinstance(value, dict):
        return {name: item for name, item in value.items() if name != "description"}
    return value


def read_yaml(path: Path, defaults: Defaults | None, _within: str) -> Iterator[SubscriptionBatch]:
    """`.yaml`: a list of subscriptions, or a mapping with `subscriptions` and optionally `namespaces` for all of them.

    Scalars count as written (`id: 007` is "007"), `null` and `~` as absent. `description` is for the reader.
    """
    try:
        root = yaml.compose(_text(path), Loader=_YAML_LOADER)
        if isinstance(root, yaml.MappingNode):
            top = _yaml_mapping(root)
            if unknown := set(top) - {"subscriptions", "namespaces"}:
                raise SubscriptionFileError(f"{path}: unknown entry {min(unknown)!r} beside 'subscriptions'")
            if "namespaces" in top:
                base = defaults or Defaults()
                shared = _yaml_value(top["namespaces"])
                if not isinstance(shared, Mapping) or not all(isinstance(uri, str) for uri in shared.values()):
                    raise SubscriptionFileError(f"{path}: 'namespaces' must map prefixes to URIs")
                defaults = Defaults({**(base.namespaces or {}), **shared}, base.stream, base.ignore_namespaces)
            root = top.get("subscriptions")
        if not isinstance(root, yaml.SequenceNode):
            raise SubscriptionFileError(f"{path}: there must be a list of subscriptions")
        yield from_records(_yaml_records(path, root.value), defaults)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise SubscriptionFileError(f"{path}: {error}") from None


def _yaml_records(path: Path, nodes: Iterable[yaml.Node]) -> Iterator[tuple[object, str | None]]:
    for node in nodes:
        yield _described(_yaml_value(node)), f"{path}:{node.start_mark.line + 1}"


def _yaml_mapping(node: yaml.MappingNode) -> dict[str, yaml.Node]:
    entries: dict[str, yaml.Node] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise ValueError(f"line {key.start_mark.line + 1}: a key must be a plain word")
        if key.value in entries:
            raise ValueError(f"line {key.start_mark.line + 1}: {key.value!r} occurs twice")
        entries[key.value] = value
    return entries


def _yaml_value(node: yaml.Node, depth: int = 0) -> Any:
    """The value of a node, with scalars as their text; booleans only where a subscription can hold one."""
    if isinstance(node, yaml.ScalarNode):
        return None if node.tag == "tag:yaml.org,2002:null" else node.value
    if depth > 2:
        # Deeper than any field goes; also the end of an alias that contains itself.
        raise ValueError(f"line {node.start_mark.line + 1}: nested too deeply")
    if isinstance(node, yaml.MappingNode):
        result = {}
        for name, value in _yaml_mapping(node).items():
            plain = _yaml_value(value, depth + 1)
            if name in ("ignore_namespaces", "notify_empty") and value.tag == "tag:yaml.org,2002:bool":
                plain = plain.lower() in ("true", "yes", "on")
            result[name] = plain
        return result
    return [_yaml_value(item, depth + 1) for item in node.value]


READERS: Mapping[str, Reader] = {
    ".txt": read_lines,
    ".xq": read_query,
    ".xquery": read_query,
    ".csv": read_csv,
    ".parquet": read_parquet,
    ".jsonl": read_jsonl,
    ".ndjson": read_jsonl,
    ".yaml": read_yaml,
    ".yml": read_yaml,
}
"""The reader for each suffix; text formats also with `.gz` after it."""


def reader_for(path: Path) -> Reader | None:
    """The reader for a file by its name, or None if none is known."""
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    if suffixes and suffixes[-1] == ".gz":
        suffix = suffixes[0] if len(suffixes) == 2 else ""
        return None if suffix == ".parquet" else READERS.get(suffix)
    return READERS.get(suffixes[-1]) if suffixes else None
