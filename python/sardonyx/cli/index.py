"""`sardonyx index`: saved populations."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click
from rich.table import Table

from sardonyx.broker import Broker
from sardonyx.cli import codes, common


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


@index.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of a table.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE")
def info(file: Path, as_json: bool) -> None:
    """Say what a saved index holds; its content is verified first.

    \b
    Example:
      sardonyx index info queries.sdx
    """
    with common.failures():
        broker = Broker.load(file)
        facts = {"index": str(file), "bytes": os.path.getsize(file), **broker.stats()}
    if as_json:
        click.echo(json.dumps(facts))
        return
    table = Table(border_style="dim", show_header=False)
    table.add_column(style="bold")
    table.add_column(justify="right", overflow="fold")
    for name, value in facts.items():
        table.add_row(name.replace("_", " "), f"{value:,}" if isinstance(value, int) else str(value))
    common.console().print(table)
