"""Helpers of the Spark tests: small pipelines, recorded answers, processes to kill."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from sardonyx.spark import PipelineConfig, SinkConfig, SourceConfig, read_notifications

Pairs = set[tuple[str, str]]


def pairs(frame: Any) -> Pairs:
    """(document_id, subscription_id) of a DataFrame of notifications, which must hold each only once."""
    table = frame.select("document_id", "subscription_id").toArrow()
    rows = list(zip(table["document_id"].to_pylist(), table["subscription_id"].to_pylist(), strict=True))
    assert len(rows) == len(set(rows)), "a notification appears twice"
    return set(rows)


def sink_pairs(spark: Any, path: Path) -> Pairs:
    return pairs(read_notifications(spark, path))


def config(root: Path, **changes: Any) -> PipelineConfig:
    """Files in `root/in`, subscriptions in `root/subscriptions.txt`, a stream to `root/out`."""
    base = PipelineConfig(
        source=SourceConfig("files", str(root / "in"), max_files_per_trigger=2),
        subscriptions=str(root / "subscriptions.txt"),
        sink=SinkConfig("parquet", str(root / "out")),
        checkpoint=str(root / "checkpoint"),
    )
    return dataclasses.replace(base, **changes)


def drop(folder: Path, name: str, content: str | bytes) -> None:
    """Let a file appear whole."""
    folder.mkdir(parents=True, exist_ok=True)
    aside = folder / f".{name}"
    aside.write_bytes(content.encode() if isinstance(content, str) else content)
    aside.rename(folder / name)


def orders(folder: Path, numbers: Iterable[int]) -> None:
    for number in numbers:
        drop(folder, f"{number:03}.xml", f"<order><n>{number}</n></order>")


def recorded_answers(folder: Path, documents: list[Path]) -> Pairs:
    """What YFilter answered: block `Qn:` in the answer file of the K-th document in the order of names."""
    found: Pairs = set()
    for position, document in enumerate(sorted(documents, key=lambda path: path.name), 1):
        text = (folder / "expected" / f"output{position}.txt").read_text(encoding="utf-8")
        found.update((document.name, number) for number in re.findall(r"^Q(\d+):", text, re.MULTILINE))
    return found


def wait_until(condition: Callable[[], bool], timeout_s: float, what: str) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"waited {timeout_s} s for {what}"
        time.sleep(0.05)


_PROGRAM = """
import json, sys
from sardonyx.spark import PipelineConfig, run_pipeline
summary = run_pipeline(PipelineConfig.from_mapping(json.loads(sys.argv[1])))
print(json.dumps({"documents": summary.documents, "interrupted": summary.interrupted}))
"""


def pipeline_process(settings: PipelineConfig) -> subprocess.Popen[str]:
    """A pipeline in a process group of its own, driver and JVM together."""
    value = dataclasses.asdict(settings)
    return subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, json.dumps(value)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=os.environ,
    )
