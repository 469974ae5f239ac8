"""The harness of the benchmarks: what is measured is written, drawn and judged."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import pytest
from benchmarks import joins, transformations
from benchmarks.__main__ import BENCHMARKS
from benchmarks.measure import Figure, median_ms, write
from benchmarks.population import bare_parse_ms, time_population


def test_results_are_written_and_drawn(tmp_path: Path) -> None:
    figures = [
        Figure("curve", "ours", 1.5, "ms", 2.0, at=10, axis="queries"),
        Figure("curve", "ours", 2.5, "ms", 2.0, at=100, axis="queries"),
        Figure("bars", "ratio", 3.0, "times", 2.0, at_least=True, about="how much longer theirs takes"),
    ]
    page = write(figures, {"broken": "ValueError: no"}, tmp_path, {"cores": 2}).read_text()
    assert page.index("## Ratios") < page.index("## Absolute numbers")
    assert page.count("**missed**") == 1
    assert "- bars: how much longer theirs takes.\n" in page
    assert "**broken broke off**: ValueError: no" in page
    assert [entry["reached"] for entry in json.loads((tmp_path / "results.json").read_text())["figures"]] == [
        True,
        False,
        True,
    ]
    assert {path.name for path in tmp_path.glob("*.png")} == {"curve.png", "bars.png"}


def test_populations_are_timed() -> None:
    documents = [b"<a><b/></a>", b"<a/>"]
    timing = time_population(["/a/b", "/a"], documents, rounds=1)
    assert timing.matches == 1.5
    assert min(timing.cold_ms, timing.warm_ms, timing.all_ms, bare_parse_ms(documents, 1)) > 0
    assert median_ms(lambda: None, 3) >= 0


def test_transformations_in_tiny_sizes(tmp_path: Path) -> None:
    sizes = transformations.Sizes(
        documents=5,
        bib=(20, 40),
        book=(20, 40),
        plans=(30, 60),
        varied=30,
        registered=50,
        beside=20,
        ranges=(5, 20),
        predicates=(1, 2),
        returns=(1, 3),
        rounds=1,
    )
    figures = list(transformations.figures(sizes))
    assert all(figure.value > 0 for figure in figures if figure.unit == "ms/document" and figure.name != "text")
    titles = {figure.benchmark for figure in figures}
    assert titles >= {f"transformations, figure {number}" for number in ("7, Bib", "8, Book", 9, 10, 12)}
    assert [figure.at for figure in figures if figure.benchmark.endswith("figure 12")] == [30, 30, 60, 60]
    assert {figure.name for figure in figures if figure.benchmark.endswith("7, Bib")} == {"F", "FW", "FWR"}
    page = write(figures, {}, tmp_path, {}).read_text()
    assert "that FWR is slower than shared" in page


@pytest.mark.slow
def test_joins_in_tiny_sizes(tmp_path: Path) -> None:
    sizes = joins.Sizes(
        queries=(10, 60),
        deep_queries=(60,),
        sql=60,
        varied=40,
        items=300,
        feed_queries=(20, 60),
        sql_items=30,
        sql_feed_queries=(20, 60),
        alone=20,
        each=3,
        pairs=3,
        value_joins=(1, 3),
        leaves=(2, 5),
        skews=(0, 1.6),
        views=(1, 64),
    )
    # It compares what the engine and its peers find.
    figures = list(joins.figures(sizes))
    assert all(figure.value > 0 for figure in figures if figure.unit in ("pairs/s", "items/s", "bytes/item"))
    counts = {(figure.name, figure.at): figure.value for figure in figures if figure.benchmark.endswith("table 3")}
    assert [counts["two levels", number] for number in (1, 2, 3, 4)] == [1, 3, 6, 16]
    assert [counts["three levels", number] for number in (1, 2, 3)] == [1, 3, 16]
    numbered = [figure for figure in figures if figure.benchmark == "joins, figures 8-10, two levels, 6 leaves, joins"]
    assert {figure.name for figure in numbered if figure.at == 60} == {
        "Sardonyx",
        "Sardonyx, first pair",
        "SQL",
        "SQL, views",
        "SQL, one query at a time",
        "loop, one query at a time",
        "Sardonyx, one query at a time",
    }
    page = write(figures, {}, tmp_path, {}).read_text()
    assert "time of an item, 60 queries against 20" in page


@pytest.mark.parametrize("name", sorted(BENCHMARKS))
def test_each_benchmark_can_be_loaded(name: str) -> None:
    if name == "stock":
        pytest.importorskip("mokaccino", reason="the extra bench is not installed")
    assert callable(import_module(f"benchmarks.{name}").run)
