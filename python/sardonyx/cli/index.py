"""`sardonyx index`: saved populations."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.table import Table
from rich.text import Text

from sardonyx.broker import Broker
from sardonyx.cli import codes, common, plots

if TYPE_CHECKING:
    from sardonyx._core import Group

_GROUPS_SHOWN = 10
"""Groups that `index info` lists; a drawing shows all."""


@click.group()
def index() -> None:
    """Build and look at saved indexes: populations that are opened in milliseconds, however large.

    \b
    Examples:
      sardonyx index build -s queries.txt.gz -o queries.sdx
      sardonyx index info queries.sdx
    """


@index.command()
@common.subscription_options
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False, path_type=Path), help="File to write.")
@click.option("--json", "as_json", is_flag=True, help="JSON lines instead of tables.")
@click.pass_context
def build(
    context: click.Context,
    sources: tuple[Path, ...],
    namespaces: dict[str, str],
    ignore_namespaces: bool,
    limits: dict[str, str],
    output: Path,
    as_json: bool,
) -> None:
    """Compile subscriptions into one file, which every command takes for -s and Spark's workers map into memory.

    Refused subscriptions are reported (exit code 3) and left out. The file is replaced as a whole or not at all.

    \b
    Examples:
      sardonyx index build -s queries.txt.gz -o queries.sdx
      sardonyx index build -s base.sdx -s more.jsonl -o new.sdx
    """
    with common.failures():
        settings = common.settings_from(limits)
        population = common.load_population(sources, namespaces, ignore_namespaces, settings)
        population.broker.compact()
        digest = population.broker.save(output)
        size = os.path.getsize(output)
    report = population.report
    if as_json:
        for letter in report.rejected:
            click.echo(json.dumps({"subscription": letter.subscription_id, "error": letter.error()}))
        summary = {"index": str(output), "subscriptions": len(population.broker), "bytes": size, "hash": digest}
        click.echo(json.dumps(summary))
    else:
        if report.rejected:
            common.console(stderr=True).print(common.refusals("Refused subscriptions", report.rejected))
        common.console().print(
            f"{len(population.broker):,} subscriptions in {report.seconds:.2f} s, {len(report.rejected):,} refused: "
            f"{output}, {size:,} bytes, hash {digest}"
        )
    context.exit(codes.REFUSED if report.rejected else codes.FOUND)


def _drawable(_context: click.Context, parameter: click.Parameter, plot: Path | None) -> Path | None:
    if plot is not None and plot.suffix not in (".png", ".svg"):
        raise click.BadParameter(f"{str(plot)!r} must end in .png or .svg", param=parameter)
    return plot


@index.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of tables.")
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    callback=_drawable,
    metavar="FILE",
    help="Draw groups and parts to a .png or .svg file as well. Needs the extra: pip install 'sardonyx[plots]'.",
)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE")
def info(file: Path, as_json: bool, plot: Path | None) -> None:
    """Say what a saved index holds; its content is verified first.

    Shows counts, the bytes of each part, and the largest groups: subscriptions that differ in constants only, with the
    condition that leads from a document to them (of the first one, as an example).

    \b
    Examples:
      sardonyx index info queries.sdx
      sardonyx index info queries.sdx --json --plot queries.svg
    """
    with common.failures():
        if plot is not None:
            plots.need_matplotlib()
        broker = Broker.load(file)
        # A file has no state of joins, which is what these are about.
        stats = {name: value for name, value in broker.stats().items() if not name.startswith("join_")}
        facts = {"index": str(file), "bytes": os.path.getsize(file), **stats}
        groups = broker.index.groups(_GROUPS_SHOWN)
        if plot is not None:
            rows = [group["rows"] for group in broker.index.groups(broker.stats()["signatures"])]
            plots.draw_index(plot, file.name, rows, parts_of(facts), len(broker))
    if as_json:
        click.echo(json.dumps({**facts, "groups": groups}))
        return
    out = common.console()
    out.print(_facts_table(facts), _parts_table(facts, len(broker)), _groups_table(groups))


def parts_of(facts: Mapping[str, Any]) -> dict[str, int]:
    """The bytes of each part of an index that has any, largest first, from the statistics of a broker.

    >>> parts_of({"subscriptions": 2, "part_cells_bytes": 8, "part_columns_bytes": 16, "part_streams_bytes": 0})
    {'columns': 16, 'cells': 8}
    """
    sizes = {
        name.removeprefix("part_").removesuffix("_bytes"): int(size)
        for name, size in facts.items()
        if name.startswith("part_") and size
    }
    return dict(sorted(sizes.items(), key=lambda part: -part[1]))


def _facts_table(facts: Mapping[str, Any]) -> Table:
    table = Table(border_style="dim", show_header=False)
    table.add_column(style="bold")
    table.add_column(justify="right", overflow="fold")
    for name, value in facts.items():
        if not name.startswith("part_"):
            table.add_row(name.replace("_", " "), f"{value:,}" if isinstance(value, int) else str(value))
    return table


def _parts_table(facts: Mapping[str, Any], subscriptions: int) -> Table:
    table = Table(border_style="dim", title="Parts", title_justify="left")
    table.add_column("part")
    for heading in ("bytes", "share", "bytes per subscription"):
        table.add_column(heading, justify="right")
    for name, size in parts_of(facts).items():
        share, each = size / facts["index_bytes"], size / max(subscriptions, 1)
        table.add_row(name.replace("_", " "), f"{size:,}", f"{share:.1%}", f"{each:,.2f}")
    return table


def _groups_table(groups: Sequence[Group]) -> Table:
    table = Table(border_style="dim", title="Largest groups", title_justify="left")
    for heading in ("rows", "subscriptions", "constants"):
        table.add_column(heading, justify="right")
    table.add_column("query, for example", overflow="fold")
    table.add_column("reached by", overflow="fold")
    for group in groups:
        access = " or ".join(group["access"]) or "every document"
        counts = (group["rows"], group["subscriptions"], group["constants"])
        table.add_row(*(f"{count:,}" for count in counts), Text(group["query"]), Text(access))
    return table
