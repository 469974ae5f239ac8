"""`sardonyx workload`: documents and subscriptions for tests and benchmarks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import yaml
from rich.table import Table
from rich.text import Text

from sardonyx.cli import common
from sardonyx.errors import SettingsError
from sardonyx.explanation import printable
from sardonyx.workloads import SETS, describe, load
from sardonyx.workloads.files import DocumentsAs, SubscriptionsAs, write


@click.group()
def workload() -> None:
    """Generate documents and subscriptions that fit each other, for tests and benchmarks.

    \b
    Examples:
      sardonyx workload sets
      sardonyx workload make stock -o stock/ --notifications 1000000
      sardonyx match -s stock/subscriptions.txt stock/documents/
    """


@workload.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line instead of a table.")
def sets(as_json: bool) -> None:
    """List the ready-made sets with their kinds of queries.

    \b
    Example:
      sardonyx workload sets
    """
    described = [describe(name) for name in SETS]
    if as_json:
        for item in described:
            row = {"set": item.name, "about": item.about, "queries": list(item.queries), "source": item.source}
            click.echo(json.dumps(row))
        return
    table = Table(border_style="dim", header_style="bold")
    table.add_column("set", style="green", no_wrap=True)
    table.add_column("what", overflow="fold")
    table.add_column("queries", overflow="fold")
    table.add_column("form after", overflow="fold", style="dim")
    for item in described:
        table.add_row(item.name, Text(item.about), ", ".join(item.queries), Text(item.source))
    common.console().print(table)


@workload.command()
@click.argument("source", metavar="SET")
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), metavar="FOLDER",
              help="Folder to make; it appears only when all is written.")  # fmt: skip
@click.option("-d", "--documents", type=click.IntRange(0), metavar="N",
              help="How many documents.  [default: 1,000; stock: 10,000; without a DTD all samples]")  # fmt: skip
@click.option("-q", "--subscriptions", type=click.IntRange(0), default=10_000, show_default=True, metavar="N",
              help="How many subscriptions.")  # fmt: skip
@click.option("--seed", type=int, default=1, show_default=True, help="The same seed gives the same bytes everywhere.")
@click.option("--kind", metavar="NAME", help="Which queries of the set.  [default: its first kind]")
@click.option("--notifications", type=float, metavar="N",
              help="Expected notifications of all documents, for stock.  [default: 10 a document]")  # fmt: skip
@click.option("--records", type=click.IntRange(1), metavar="N", help="Records of one document, for psd, bib and feeds.")
@click.option("--doc", "document_shape", multiple=True, callback=common.pairs("NAME=VALUE"), metavar="NAME=VALUE",
              help="Change a parameter of the documents, such as doc_depth=8. May be repeated.")  # fmt: skip
@click.option("--query", "query_shape", multiple=True, callback=common.pairs("NAME=VALUE"), metavar="NAME=VALUE",
              help="Change a parameter of the queries, such as wildcard=0.3. May be repeated.")  # fmt: skip
@click.option("--dtd", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
              help="The DTD of nitf, which is not part of the package.")  # fmt: skip
@click.option(
    "--root", metavar="NAME", help="The element that documents start with.  [default: one that no other holds]"
)
@click.option("--samples", multiple=True, metavar="PATH",
              help="Documents to draw queries from: a file, a folder or a pattern. May be repeated.")  # fmt: skip
@click.option("--documents-as", type=click.Choice(["xml", "jsonl", "parquet"]), default="xml", show_default=True,
              help="A folder of files, or one file with document_id and payload.")  # fmt: skip
@click.option("--subscriptions-as", type=click.Choice(["txt", "csv", "jsonl", "parquet"]),
              help="Format of the subscriptions.  [default: txt; jsonl for prefixes and other languages]")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of a table.")
def make(
    source: str,
    output: Path,
    documents: int | None,
    subscriptions: int,
    seed: int,
    kind: str | None,
    notifications: float | None,
    records: int | None,
    document_shape: dict[str, str],
    query_shape: dict[str, str],
    dtd: Path | None,
    root: str | None,
    samples: tuple[str, ...],
    documents_as: DocumentsAs,
    subscriptions_as: SubscriptionsAs | None,
    as_json: bool,
) -> None:
    """Write documents and subscriptions of a SET into a new folder.

    SET is one of `sardonyx workload sets`, or a DTD file, whose documents and queries are then generated. The
    parameters for --doc and --query are described in docs/workloads.md. All sets but stock and those with joins need
    the extra: pip install 'sardonyx[workloads]'.

    \b
    Examples:
      sardonyx workload make stock -o stock/ -q 1000000 --notifications 1000000
      sardonyx workload make psd -o psd/ --kind bushy-10.45 -q 19139 --documents-as parquet
      sardonyx workload make nitf --dtd nitf-2-5.dtd -o nitf/ --kind nested -q 100000
      sardonyx workload make nitf --samples news/ -o nitf/ --kind predicates
      sardonyx workload make bib-flwr -o bib/ -q 40000 --doc max_value=50
      sardonyx workload make join-feeds -o feeds/ -q 100000 --query value_joins=2 --query window=86400
      sardonyx workload make order.dtd -o orders/ --doc doc_depth=8 --query predicates=2 --query wildcard=0
    """
    with common.failures():
        made = load(
            source,
            documents=documents,
            subscriptions=subscriptions,
            seed=seed,
            kind=kind,
            document_shape=_parameters(document_shape),
            query_shape=_parameters(query_shape),
            dtd=dtd,
            root=root,
            samples=[Path(name).read_bytes() for name in common.expand(samples)] if samples else None,
            records=records,
            notifications=notifications,
        )
        total = len(made.documents) + len(made.subscriptions)
        with common.progress("documents and subscriptions", total) as advance:
            written = write(made, output, documents_as, subscriptions_as, on_progress=advance)
    facts: dict[str, Any] = {
        "set": made.name,
        "documents": written.document_count,
        "document_bytes": written.document_bytes,
        "subscriptions": written.subscription_count,
        "expected_notifications": None if made.notifications is None else round(made.notifications, 3),
        "documents_in": str(written.documents),
        "subscriptions_in": str(written.subscriptions),
    }
    if as_json:
        click.echo(json.dumps(facts))
        return
    table = Table(border_style="dim", show_header=False)
    table.add_column(style="bold")
    table.add_column(justify="right", overflow="fold")
    for name, value in facts.items():
        if value is not None:
            shown = f"{value:,}" if isinstance(value, int | float) else printable(str(value))
            table.add_row(name.replace("_", " "), Text(shown))
    common.console().print(table)


def _parameters(given: dict[str, str]) -> dict[str, Any]:
    """The values of NAME=VALUE options: numbers, `true` and `false`, `null`, or `{author: [1, 4]}` for repeats."""
    try:
        return {name: yaml.safe_load(text) for name, text in given.items()}
    except yaml.YAMLError:
        raise SettingsError(f"the parameters {', '.join(given)} have a value that is neither number nor word") from None
