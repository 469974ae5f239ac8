"""`sardonyx demo`: the whole way, over real alerts that come with the package."""

from __future__ import annotations

import tempfile
from collections import Counter
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import click
import yaml
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sardonyx.cli import common
from sardonyx.cli.run import described, load_spark, shown
from sardonyx.model import DeadLetter, Document
from sardonyx.subscriptions import open_broker

_EXPLAINED = ("bright-bursts", "Fermi-GBM_Flt_Pos_2014-04-25T00_19_51.97_420077994_75-013.xml")
"""The subscription and the alert that the demonstration explains."""

_SENT = "/*/Who/Date"
"""Where an alert says when it was sent."""

_RESULT_CHARACTERS = 300
"""Length of the longest result that is shown as an example."""


@click.command()
@click.option("--keep", type=click.Path(file_okay=False, path_type=Path), metavar="FOLDER",
              help="Keep the pipeline's results in this folder.  [default: a temporary one]")  # fmt: skip
def demo(keep: Path | None) -> None:
    """Run the Spark pipeline over 100 astronomical alerts and 38 subscriptions, and show what came of it.

    The alerts are messages that satellites sent in 2014 and 2018; one was cut off on purpose and one subscription has a
    mistake, to show dead letters. Three subscriptions are transformations, which make small reports of alerts, and one
    is a join, of alerts about the same burst. Needs the extra: pip install 'sardonyx[spark]'.

    \b
    Examples:
      sardonyx demo
      sardonyx demo --keep results/
    """
    out = common.console()
    with common.failures(), as_file(files("sardonyx") / "demo") as data, tempfile.TemporaryDirectory() as scratch:
        spark = load_spark()
        results = keep if keep is not None else Path(scratch) / "results"
        config = spark.PipelineConfig.from_mapping(
            {
                "source": {"kind": "files", "path": str(data / "alerts"), "glob": "*.xml", "stream": "alerts"},
                "joins": {"timestamps": {"alerts": _SENT}},
                "subscriptions": str(data / "subscriptions.yaml"),
                "sink": {"kind": "parquet", "path": str(results)},
            }
        )
        _head(out, "1. The pipeline: alerts -> Spark -> notifications")
        with shown() as on_progress:
            summary = spark.run_pipeline(config, on_progress=on_progress)
        out.print(described(summary, config))
        session = spark.local_session()
        notifications = spark.read_notifications(session, results).toArrow().to_pylist()
        letters = spark.read_dead_letters(session, results).toArrow().to_pylist()
        _head(out, "2. Who hears what")
        _show_notifications(out, data, notifications)
        _head(out, "3. What transformations made of alerts, and a join of two: one result of each")
        _show_results(out, notifications)
        _head(out, "4. What could not be processed, and why")
        out.print(common.refusals("Dead letters", [_letter(row) for row in letters]))
        _head(out, "5. Why: one subscription and one alert, explained")
        _explain(out, data)
        _head(out, "6. Where to go from here")
        _next_steps(out, data, results if keep is not None else None)


def _head(out: Console, title: str) -> None:
    out.print(Text(f"\n{title}", "bold"))


def _letter(row: dict[str, Any]) -> DeadLetter:
    document = row["document_id"]
    return DeadLetter(
        kind=row["kind"],
        message=row["message"],
        document_id=None if document is None else _name(document),
        subscription_id=row["subscription_id"],
        line=row["line"],
        column=row["column"],
        offset=row["offset"],
    )


def _name(document_id: str) -> str:
    return document_id.rsplit("/", 1)[-1]


def _show_notifications(out: Console, data: Path, rows: list[dict[str, Any]]) -> None:
    counts = Counter(row["subscription_id"] for row in rows)
    examples = {
        row["subscription_id"]: _name(row["document_id"])
        for row in sorted(rows, key=lambda r: r["document_id"], reverse=True)
    }
    table = Table(border_style="dim", header_style="bold")
    table.add_column("subscription", style="green", no_wrap=True)
    table.add_column("alerts", justify="right")
    table.add_column("wants", overflow="fold", ratio=1)
    table.add_column("for example", overflow="ellipsis", no_wrap=True, style="dim", max_width=34)
    for entry in yaml.safe_load((data / "subscriptions.yaml").read_text(encoding="utf-8"))["subscriptions"]:
        name = entry["id"]
        table.add_row(name, str(counts[name]), Text(entry["description"]), Text(examples.get(name, "")))
    out.print(table)


def _show_results(out: Console, rows: list[dict[str, Any]]) -> None:
    table = Table(border_style="dim", header_style="bold", show_lines=True)
    table.add_column("subscription", style="green", no_wrap=True)
    table.add_column("result", overflow="fold", ratio=1)
    table.add_column("of the alert", overflow="ellipsis", no_wrap=True, style="dim", max_width=34)
    made = [row for row in rows if row["result"] is not None and len(row["result"]) <= _RESULT_CHARACTERS]
    # The longest says most; of equally long ones the last by name.
    best = {row["subscription_id"]: row for row in sorted(made, key=lambda r: (len(r["result"]), r["document_id"]))}
    for name, row in sorted(best.items()):
        # In results ">" is followed by "<" only between tags.
        table.add_row(name, Text(row["result"].replace("><", ">\n<")), Text(_name(row["document_id"])))
    out.print(table)


def _explain(out: Console, data: Path) -> None:
    broker, _report = open_broker(data / "subscriptions.yaml")
    subscription, alert = _EXPLAINED
    out.print(broker.explain(subscription, Document(alert, (data / "alerts" / alert).read_bytes())))


def _next_steps(out: Console, data: Path, results: Path | None) -> None:
    same = f"-s {data / 'subscriptions.yaml'} --timestamp {_SENT} {data / 'alerts'}"
    steps = [
        ("the same without Spark", f"sardonyx match {same}"),
        ("as JSON lines", f"sardonyx match --json {same}"),
        (
            "any other pair",
            f"sardonyx explain -s {data / 'subscriptions.yaml'} --id taurus {data / 'alerts' / _EXPLAINED[1]}",
        ),
        ("your own pipeline", "sardonyx run --help"),
    ]
    if results is not None:
        steps.append(("the results", str(results)))
    for what, command in steps:
        out.print(Text.assemble((f"{what}:\n", "dim"), f"  {command}"), soft_wrap=True)
