"""How things are timed and written down."""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Figure", "in_turns_ms", "machine", "median_ms", "median_ratio", "resident_bytes", "write"]


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number with its bar, if it has one."""

    benchmark: str
    name: str
    value: float
    unit: str
    bar: float | None = None
    """The value that has to be reached."""
    at_least: bool = False
    """Whether the bar is a lower bound."""
    details: dict[str, Any] = field(default_factory=dict)
    at: float | None = None
    """Where on the horizontal axis it belongs, for figures that make a curve; `name` is the curve then."""
    axis: str = ""
    """What the horizontal axis counts."""
    about: str = ""
    """What it shows, in words for the page."""

    @property
    def reached(self) -> bool | None:
        """Whether the bar is reached; None without one."""
        if self.bar is None:
            return None
        return self.value >= self.bar if self.at_least else self.value <= self.bar


def median_ms(work: Callable[[], object], rounds: int, per: int = 1) -> float:
    """Median wall time of `work`, in milliseconds per item if it handles `per` items."""
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        work()
        times.append((time.perf_counter() - began) * 1000 / per)
    return statistics.median(times)


def in_turns_ms(works: Sequence[Callable[[], object]], rounds: int, per: int = 1) -> list[list[float]]:
    """Wall times of each of the works, as `median_ms` has them, but in turns.

    What is compared is so measured side by side: the speed of a machine that others use, too, changes within seconds.
    """
    times: list[list[float]] = [[] for _ in works]
    for _ in range(rounds):
        for work, own in zip(works, times, strict=True):
            own.append(median_ms(work, 1, per))
    return times


def median_ratio(times: Sequence[float], others: Sequence[float]) -> float:
    """Median of the ratios of times that were measured in turns."""
    return statistics.median(time / other for time, other in zip(times, others, strict=True))


def resident_bytes() -> int:
    """Resident memory of this process, in bytes."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def machine() -> dict[str, Any]:
    """What the numbers were measured on."""
    model = next(
        (
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text(encoding="ascii").splitlines()
            if line.startswith("model name")
        ),
        platform.processor(),
    )
    return {
        "processor": model,
        "cores": len(os.sched_getaffinity(0)),
        "load_before": os.getloadavg()[0],
        "python": platform.python_version(),
        "system": platform.system(),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }


def _label(figure: Figure) -> str:
    return figure.name if figure.at is None else f"{figure.name}, {figure.at:,g} {figure.axis}"


def _row(figure: Figure) -> str:
    bar = "" if figure.bar is None else f"{'≥' if figure.at_least else '≤'} {figure.bar:g}"
    verdict = {None: "", True: "reached", False: "**missed**"}[figure.reached]
    return f"| {figure.benchmark} | {_label(figure)} | {figure.value:,.3f} {figure.unit} | {bar} | {verdict} |"


def write(figures: list[Figure], failures: dict[str, str], folder: Path, about: dict[str, Any]) -> Path:
    """Write `results.json`, `results.md` and a plot per benchmark; returns the page. `failures`: why what broke off."""
    folder.mkdir(parents=True, exist_ok=True)
    entries = [{**asdict(figure), "reached": figure.reached} for figure in figures]
    content = {"machine": about, "figures": entries, "failures": failures}
    (folder / "results.json").write_text(json.dumps(content, indent=1), encoding="utf-8")
    lines = ["# Benchmark results", "", ", ".join(f"{name}: {value}" for name, value in about.items()), ""]
    lines += [f"- **{name} broke off**: {reason}" for name, reason in failures.items()]
    # Ratios travel between machines, absolute numbers do not.
    ratios = [figure for figure in figures if figure.unit == "times"]
    others = [figure for figure in figures if figure.unit != "times"]
    for title, some in (("Ratios", ratios), ("Absolute numbers", others)):
        lines += [f"## {title}", "", "| benchmark | figure | value | bar | |", "|---|---|---|---|---|"]
        lines += [*map(_row, some), ""]
    said = dict.fromkeys((figure.benchmark, figure.about) for figure in figures if figure.about)
    if said:
        lines += ["## In words", "", *(f"- {benchmark}: {about}." for benchmark, about in said), ""]
    for benchmark in dict.fromkeys(figure.benchmark for figure in figures):
        lines.append(f"![{benchmark}]({_plot(benchmark, figures, folder)})")
    page = folder / "results.md"
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return page


def _plot(benchmark: str, figures: list[Figure], folder: Path) -> str:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    own = [figure for figure in figures if figure.benchmark == benchmark]
    curves = [figure for figure in own if figure.at is not None]
    name = f"{benchmark.replace(' ', '-').replace(',', '').replace('/', '-')}.png"
    if curves:
        drawing, axes = pyplot.subplots(figsize=(9, 5))
        for curve in dict.fromkeys(figure.name for figure in curves):
            points = sorted((figure.at or 0, figure.value) for figure in curves if figure.name == curve)
            axes.plot([at for at, _ in points], [value for _, value in points], marker="o", label=curve)
        for figure in own:
            if figure.at is None and figure.unit == curves[0].unit:
                axes.axhline(figure.value, linestyle="--", linewidth=0.8, label=figure.name)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel(curves[0].axis)
        axes.set_ylabel(curves[0].unit)
        axes.legend(fontsize="small")
        axes.set_title(benchmark)
        drawing.tight_layout()
        drawing.savefig(folder / name)
        pyplot.close(drawing)
        return name
    drawing, axes = pyplot.subplots(figsize=(9, 0.6 * len(own) + 1.2))
    axes.barh([f"{figure.name} ({figure.unit})" for figure in own], [figure.value for figure in own], color="#345d7e")
    for place, figure in enumerate(own):
        if figure.bar is not None:
            axes.plot([figure.bar, figure.bar], [place - 0.4, place + 0.4], color="#b3402a")
    axes.set_xscale("log")
    axes.invert_yaxis()
    axes.set_title(f"{benchmark} (line: the bar to reach)")
    drawing.tight_layout()
    drawing.savefig(folder / name)
    pyplot.close(drawing)
    return name
