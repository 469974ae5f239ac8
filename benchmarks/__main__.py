"""Run the benchmarks: `python -m benchmarks [--full] [--only NAME] [--output FOLDER]`."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from benchmarks.measure import Figure, machine, write

BENCHMARKS = ("matching", "latency", "spark_throughput")


@click.command()
@click.option("--full", is_flag=True, help="Full sizes instead of sizes that take minutes.")
@click.option("--only", type=click.Choice(BENCHMARKS), multiple=True, help="Run these files only.")
@click.option("--output", type=click.Path(path_type=Path), default=Path(__file__).parent / "results", show_default=True)
def main(full: bool, only: tuple[str, ...], output: Path) -> None:
    """Measure Sardonyx beside its peers and write JSON, a Markdown page and plots."""
    console = Console()
    about = machine()
    figures: list[Figure] = []
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        for name in only or BENCHMARKS:
            progress.add_task(name, total=None)
            for figure in import_module(f"benchmarks.{name}").run(full):
                figures.append(figure)
                progress.console.print(f"{figure.benchmark}: {figure.name}: {figure.value:,.3f} {figure.unit}")
    shown = Table("benchmark", "figure", "value", "bar", "", title="Benchmarks")
    for figure in figures:
        bar = "" if figure.bar is None else f"{'≥' if figure.at_least else '≤'} {figure.bar:g}"
        verdict = {None: "", True: "[green]reached[/]", False: "[red]missed[/]"}[figure.reached]
        shown.add_row(figure.benchmark, figure.name, f"{figure.value:,.3f} {figure.unit}", bar, verdict)
    console.print(shown)
    console.print(f"written to {write(figures, output, about)}")


if __name__ == "__main__":
    main()
