"""Run the benchmarks: `python -m benchmarks [--full] [--only NAME] [--output FOLDER]`.

What is done is written after each benchmark: one that fails, or Ctrl-C, loses nothing of the others.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from benchmarks.measure import Figure, machine, write

BENCHMARKS = {
    "yfilter": "paths and predicates over NITF articles (Diao et al. 2003), beside lxml, Saxon and parsers",
    "stock": "a million subscriptions to quotes (Tian et al. 2004), beside mokaccino",
    "registration": "registering, memory by subscription, opening a saved index",
    "xpush": "bushy queries over protein entries (Gupta and Suciu 2003): states, hits and options of the XPush machine",
    "transformations": "FLWR expressions (Diao and Franklin 2003): what sharing brings; beside Saxon",
    "joins": "joins of pairs of documents (Hong et al. 2007): queries, equalities, leaves, feeds; beside their SQL",
    "parsing": "bare parsing, beside expat and libxml2",
    "latency": "matching while another thread registers",
    "spark_throughput": "Spark from end to end, beside the same work in process and xpath_boolean",
    "spark_joins": "joins in micro-batches on Spark, beside its own stream-stream join over the same rows",
}


@click.command()
@click.option("--full", is_flag=True, help="Full sizes instead of sizes that take minutes.")
@click.option("--only", type=click.Choice(list(BENCHMARKS)), multiple=True, help="Run these only.")
@click.option("--output", type=click.Path(path_type=Path), default=Path(__file__).parent / "results", show_default=True)
def main(full: bool, only: tuple[str, ...], output: Path) -> None:
    """Measure Sardonyx beside its peers and write JSON, a Markdown page and plots.

    Without --only all run; what each measures is in docs/benchmarks.md.
    """
    console = Console()
    about = machine()
    figures: list[Figure] = []
    failures: dict[str, str] = {}
    page = output / "results.md"
    names = only or tuple(BENCHMARKS)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=len(names))
        try:
            for name in names:
                progress.update(task, description=f"{name}: {BENCHMARKS[name]}")
                try:
                    for figure in import_module(f"benchmarks.{name}").run(full):
                        figures.append(figure)
                        progress.console.print(f"{figure.benchmark}: {figure.name}: {figure.value:,.3f} {figure.unit}")
                except Exception as error:
                    failures[name] = f"{type(error).__name__}: {error}"
                    progress.console.print(f"[red]{name} broke off[/]: {failures[name]}")
                page = write(figures, failures, output, about)
                progress.advance(task)
        except KeyboardInterrupt:
            page = write(figures, {**failures, "all": "stopped by hand"}, output, about)
    shown = Table("benchmark", "figure", "value", "bar", "", title="Benchmarks")
    for figure in figures:
        bar = "" if figure.bar is None else f"{'≥' if figure.at_least else '≤'} {figure.bar:g}"
        verdict = {None: "", True: "[green]reached[/]", False: "[red]missed[/]"}[figure.reached]
        shown.add_row(figure.benchmark, figure.name, f"{figure.value:,.3f} {figure.unit}", bar, verdict)
    console.print(shown)
    console.print(f"written to {page}")
    if failures:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
