"""`sardonyx run`: the Spark pipeline, from a YAML file or from options."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import yaml
from rich.live import Live
from rich.table import Table

from sardonyx.cli import codes, common
from sardonyx.errors import MissingExtraError, SettingsError
from sardonyx.joins.session import from_microseconds

if TYPE_CHECKING:
    from sardonyx.spark import PipelineConfig, Progress, Summary


def load_spark() -> Any:
    """The Spark part of the package; raises `MissingExtraError` where PySpark is not installed."""
    try:
        import pyspark  # noqa: F401  the part loads it lazily, and here is the place to say what is missing

        from sardonyx import spark
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"this needs {error.name}, which is not installed: pip install 'sardonyx[spark]'"
        ) from None
    return spark


@click.command()
@click.option(
    "--config",
    "config_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A pipeline as YAML; options given beside it outrank it.",
)
@click.option("--source", metavar="PATH", help="Documents: a file, a folder or a pattern.")
@click.option(
    "--source-kind",
    type=click.Choice(["files", "records", "parquet", "jsonl"]),
    help="How to read them.  [default: files]",
)
@click.option("--record", metavar="NAME", help="Name of the element that is one document, for --source-kind records.")
@click.option("--stream", metavar="NAME", help="The stream of documents that say none, for subscriptions to a stream.")
@click.option("-s", "--subscriptions", metavar="PATH", help="A subscriptions file or folder, or a saved index.")
@click.option("--sink", metavar="PATH", help="Folder for the results.  [default: print them]")
@click.option(
    "--sink-kind",
    type=click.Choice(["parquet", "jsonl", "console"]),
    help="How to write them.  [default: parquet with --sink, else console]",
)
@click.option(
    "--checkpoint",
    metavar="PATH",
    help="Folder of the stream's progress. Without one the pipeline runs once over what is there.",
)
@click.option(
    "--trigger",
    metavar="WHEN",
    help="For streams: once, available_now, or seconds between batches.  [default: available_now]",
)
@click.option("--cores", type=click.IntRange(1), help="Tasks at once, in a local session.  [default: 2]")
@click.option("--json", "as_json", is_flag=True, help="Progress and summary as JSON lines on standard output.")
@click.pass_context
def run(
    context: click.Context,
    config_file: Path | None,
    source: str | None,
    source_kind: str | None,
    record: str | None,
    stream: str | None,
    subscriptions: str | None,
    sink: str | None,
    sink_kind: str | None,
    checkpoint: str | None,
    trigger: str | None,
    cores: int | None,
    as_json: bool,
) -> None:
    """Run the Spark pipeline: documents from a source, against subscriptions, to a sink.

    With a checkpoint it is a stream: it goes on where it stopped, takes up changed subscriptions between batches, and
    after a crash neither loses nor doubles a notification. Needs the extra: pip install 'sardonyx[spark]'.

    \b
    Examples:
      sardonyx run --config pipeline.yaml
      sardonyx run --source inbox/ -s alerts.yaml --sink results/
      sardonyx run --source inbox/ -s alerts.yaml --sink results/ --checkpoint state/ --trigger 5
      sardonyx run --source dump.xml --source-kind records --record article -s queries.txt --sink out/

    \b
    A pipeline as YAML (docs/settings.md has all settings):
      source: {kind: files, path: inbox}
      subscriptions: alerts.yaml
      sink: {kind: parquet, path: results}
      checkpoint: state
      trigger: available_now
    """
    flags: dict[str, Any] = {
        "source": {"path": source, "kind": source_kind, "record": record, "stream": stream},
        "sink": {"path": sink, "kind": sink_kind},
        "subscriptions": subscriptions,
        "checkpoint": checkpoint,
        "trigger": trigger,
        "cores": cores,
    }
    with common.failures():
        settings = merged(_read(config_file) if config_file is not None else {}, flags)
        spark = load_spark()
        config = spark.PipelineConfig.from_mapping(settings)
        with shown(as_json) as on_progress:
            summary = spark.run_pipeline(config, on_progress=on_progress)
    if as_json:
        click.echo(json.dumps({"summary": asdict(summary)}))
    else:
        common.console().print(described(summary, config))
    if summary.interrupted:
        context.exit(codes.INTERRUPTED)
    refused = summary.dead_letters + summary.unjoined_documents + summary.refused_subscriptions
    context.exit(codes.REFUSED if refused else codes.FOUND)


def _read(path: Path) -> dict[str, Any]:
    try:
        value = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is not YAML: {error}") from error
    if not isinstance(value, dict):
        raise SettingsError(f"{path} must hold a mapping of settings")
    return value


def merged(settings: dict[str, Any], flags: dict[str, Any]) -> dict[str, Any]:
    """The settings of a file, overridden by the options that were given, with the kinds that they imply."""
    result = dict(settings)
    for name, value in flags.items():
        if isinstance(value, dict):
            given = {key: item for key, item in value.items() if item is not None}
            base = result.get(name) or {}
            if not isinstance(base, dict):
                raise SettingsError(f"{name} must be a mapping")
            if given or base:
                result[name] = {**base, **given}
        elif value is not None:
            result[name] = value
    result.setdefault("sink", {})
    if isinstance(result.get("source"), dict):
        result["source"].setdefault("kind", "files")
    if isinstance(result["sink"], dict):
        result["sink"].setdefault("kind", "parquet" if result["sink"].get("path") else "console")
    if isinstance(result.get("trigger"), str) and result["trigger"] not in ("once", "available_now"):
        try:
            result["trigger"] = float(result["trigger"])
        except ValueError:
            raise SettingsError(
                f"trigger is {result['trigger']!r}; it must be once, available_now or a number of seconds"
            ) from None
    return result


@contextmanager
def shown(as_json: bool = False) -> Iterator[Callable[[Progress], None]]:
    """A function for `run_pipeline`'s progress: a live table on a terminal, a line a batch elsewhere."""
    out = common.console(stderr=True)
    if as_json:
        yield lambda progress: click.echo(json.dumps({"progress": asdict(progress)}))
    elif out.is_terminal:
        with Live(console=out, transient=True, refresh_per_second=4) as live:
            live.update("starting Spark ...")

            def show(progress: Progress) -> None:
                live.update(progress_table(progress))
                if progress.warning is not None:
                    out.print(f"warning: {progress.warning}", style="yellow")

            yield show
    else:
        yield lambda progress: out.print(progress_line(progress))


def _figures(progress: Progress) -> list[tuple[str, str]]:
    return [
        ("batch", str(progress.batch_id)),
        ("documents", f"{progress.total.documents:,}"),
        ("documents/s", f"{progress.documents_per_s:,.0f}"),
        ("MB/s", f"{progress.mb_per_s:,.2f}"),
        ("notifications", f"{progress.total.notifications:,}"),
        ("dead letters", f"{progress.total.dead_letters:,}"),
        ("lag", "-" if progress.lag_s is None else f"{progress.lag_s:,.1f} s"),
        *(_join_figures(progress) if progress.joins is not None else ()),
    ]


def _join_figures(progress: Progress) -> list[tuple[str, str]]:
    joins = progress.joins
    assert joins is not None
    watermark = "-" if joins.watermark_us is None else _moment(joins.watermark_us)
    return [
        ("not joined", f"{progress.total.unjoined_documents:,}"),
        ("join state", f"{joins.state_documents:,} documents, {joins.state_bytes / 1e6:,.1f} MB"),
        ("watermark", watermark),
    ]


def _moment(us: int) -> str:
    """A timestamp as text; those that the calendar does not reach as a number."""
    try:
        return f"{from_microseconds(us):%Y-%m-%d %H:%M:%S}"
    except OverflowError:
        return f"{us:,} us"


def progress_line(progress: Progress) -> str:
    """A batch in one line."""
    line = ", ".join(f"{name} {value}" for name, value in _figures(progress))
    return line if progress.warning is None else f"{line}; warning: {progress.warning}"


def progress_table(progress: Progress) -> Table:
    """A batch as a table of one row."""
    table = Table(border_style="dim")
    for name, _value in _figures(progress):
        table.add_column(name, justify="right")
    table.add_row(*(value for _name, value in _figures(progress)))
    return table


def described(summary: Summary, config: PipelineConfig) -> str:
    """What a run did, in a few lines."""
    counted = common.counted
    unjoined = summary.unjoined_documents
    late = f"\n{counted(unjoined, 'document')} that joins could not hear" if unjoined else ""
    where = f" in {config.sink.path}" if config.sink.path else ""
    return (
        f"{counted(summary.documents, 'document')} in {summary.batches:,} batch{'' if summary.batches == 1 else 'es'} "
        f"and {summary.duration_s:.1f} s: {summary.matched_documents:,} matched, "
        f"{summary.unmatched_documents:,} did not\n"
        f"{counted(summary.notifications, 'notification')}, {counted(summary.dead_letters, 'dead letter')}, "
        f"{counted(summary.refused_subscriptions, 'refused subscription')}{where}{late}"
    )
