"""What commands share: options, consoles, subscriptions and documents named on the command line."""

from __future__ import annotations

import functools
import glob
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from sardonyx.broker import Broker
from sardonyx.config import BrokerSettings, Limits, MatcherName
from sardonyx.errors import MissingPayloadError, SardonyxError
from sardonyx.explanation import printable
from sardonyx.model import DeadLetter, Document
from sardonyx.reports import RegisterReport
from sardonyx.subscriptions import open_broker
from sardonyx.tabular import Defaults

SOURCES = click.Path(exists=True, path_type=Path)
"""An option for files or folders of subscriptions."""


def pairs(what: str) -> Callable[[click.Context, click.Parameter, tuple[str, ...]], dict[str, str]]:
    """A callback for options that are given as NAME=VALUE, with what such a pair is called."""

    def parse(_context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
        pairs = {}
        for value in values:
            name, equals, rest = value.partition("=")
            if not equals:
                raise click.BadParameter(f"{value!r} is not {what}", param=parameter)
            pairs[name] = rest
        return pairs

    return parse


def subscription_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say which subscriptions to use and how to read and bound them."""
    options = [
        click.option(
            "-s", "--subscriptions", "sources", type=SOURCES, multiple=True, required=True,
            help="Subscriptions: .txt (an XPath a line), .xq (one XQuery), .csv, .jsonl, .yaml, .parquet, a folder of "
            "these, or a saved index. May be repeated.",
        ),
        click.option(
            "-n", "--namespace", "namespaces", multiple=True, callback=pairs("PREFIX=URI"), metavar="PREFIX=URI",
            help="Bind a prefix for subscriptions that bring no namespaces of their own. An empty PREFIX names the "
            "namespace of unprefixed elements. May be repeated.",
        ),
        click.option("--ignore-namespaces", is_flag=True, help="Let all filters compare local names only."),
        click.option(
            "--limit", "limits", multiple=True, callback=pairs("NAME=VALUE"), metavar="NAME=VALUE",
            help="Change a limit on documents or queries, such as depth=2000 or doctype=forbid; docs/settings.md lists "
            "them. May be repeated.",
        ),
    ]  # fmt: skip
    return functools.reduce(lambda wrapped, option: option(wrapped), reversed(options), command)


def settings_from(
    limits: dict[str, str], matcher: MatcherName = "inverted", threads: int | None = None
) -> BrokerSettings:
    """The settings that the options give; raises `SettingsError`."""
    kinds = {item.name: str(item.type) for item in fields(Limits)}
    values: dict[str, Any] = {}
    for name, text in limits.items():
        number = kinds.get(name) == "int" and text.lstrip("-").replace("_", "").isdigit()
        values[name] = int(text) if number else text
    return BrokerSettings.from_mapping({"limits": values, "matcher": matcher, "threads": threads})


@dataclass(frozen=True, slots=True)
class Population:
    """What `-s` and its companions gave."""

    broker: Broker
    """The subscriptions."""
    report: RegisterReport
    """What was refused."""


def load_population(
    sources: Iterable[Path], namespaces: dict[str, str], ignore_namespaces: bool, settings: BrokerSettings
) -> Population:
    """The broker for the options of `subscription_options`, with a bar on a terminal while a long one loads."""
    defaults = Defaults(namespaces or None, None, ignore_namespaces)
    with progress("subscriptions") as advance:
        broker, report = open_broker(sources, settings, defaults=defaults, on_progress=advance)
    return Population(broker, report)


@contextmanager
def failures() -> Iterator[None]:
    """Errors of the library end a command with their message and the code for "not done"."""
    try:
        yield
    except SardonyxError as error:
        raise click.ClickException(str(error)) from error
    except BrokenPipeError:
        raise
    except OSError as error:
        raise click.ClickException(str(error)) from error


def console(stderr: bool = False) -> Console:
    """A console; where the output is no terminal it is wide, so that rows stay on one line for other programs."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else 240
    return Console(stderr=stderr, width=width, highlight=False)


@contextmanager
def progress(what: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """A progress bar on stderr, only on a terminal; gives a function that takes how many are done."""
    out = console(stderr=True)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=out, transient=True, disable=not out.is_terminal) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.update(task, completed=done)


def expand(names: Iterable[str]) -> list[str]:
    """The documents that arguments name, as given: files, the regular files below folders, patterns, `-`.

    Hidden files (names that start with a dot) are left out of folders. Raises `click.UsageError` for a name of nothing.
    """
    found: list[str] = []
    for name in names:
        if name == "-" or os.path.isfile(name):
            found.append(name)
        elif os.path.isdir(name):
            inside = []
            for folder, folders, files in os.walk(name):
                folders[:] = [sub for sub in folders if not sub.startswith(".")]
                inside += [os.path.join(folder, file) for file in files if not file.startswith(".")]
            found += sorted(path for path in inside if os.path.isfile(path))
        elif os.path.exists(name):
            found.append(name)  # a pipe such as /dev/fd/63
        else:
            matching = sorted(path for path in glob.glob(name, recursive=True) if os.path.isfile(path))
            if not matching:
                raise click.UsageError(f"no such document: {name}")
            found += matching
    return found


def read_document(name: str, stream: str | None, limits: Limits) -> Document | DeadLetter:
    """One named document, or the dead letter that says why it could not be read.

    At most one byte more than `document_bytes` is read: enough for the core to refuse it, whatever the file's size.
    """
    most = limits.document_bytes + 1
    try:
        if name == "-":
            return Document(name, sys.stdin.buffer.read(most), stream)
        with open(name, "rb") as file:
            return Document(name, file.read(most), stream)
    except OSError as error:
        return DeadLetter.of(MissingPayloadError(str(error), document_id=name))


def refusals(title: str, letters: Iterable[DeadLetter]) -> Table:
    """Dead letters as a table."""
    table = Table(title=title, title_justify="left", title_style="bold red", border_style="dim")
    for heading in ("what", "where", "kind", "why"):
        table.add_column(heading, overflow="fold")
    for letter in letters:
        place = letter.source or ""
        if letter.line is not None or letter.column is not None:
            position = ":".join(str(number) for number in (letter.line, letter.column) if number is not None)
            place = f"{place} at {position}" if place else position
        what = " on ".join(name for name in (letter.subscription_id, letter.document_id) if name is not None)
        table.add_row(*(Text(printable(cell)) for cell in (what, place, letter.kind, letter.message)))
    return table


def counted(number: int, word: str) -> str:
    """A number with its word in the right form: `1 dead letter`, `1,200 documents`."""
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"
