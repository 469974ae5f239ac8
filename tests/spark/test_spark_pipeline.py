"""Pipelines: progress, interruption, lost workers, killed drivers."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
from spark_support import config, drop, orders, pipeline_process, sink_pairs, wait_until

from sardonyx.model import notification_id
from sardonyx.spark import PipelineError, Progress, read_notifications, run_pipeline, sink_totals


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "subscriptions.txt").write_text("/order\n/order[n mod 2 = 0]\n")
    return tmp_path


def expected(count: int) -> set[tuple[str, str]]:
    return {(f"{n:03}.xml", s) for n in range(count) for s in ("1", "2") if s == "1" or n % 2 == 0}


def test_progress_of_each_batch_and_its_sum(spark, folder):
    orders(folder / "in", range(5))
    drop(folder / "in", "zz.xml", "no xml")
    seen: list[Progress] = []
    threads = set()

    def note(progress: Progress) -> None:
        seen.append(progress)
        threads.add(threading.current_thread())

    summary = run_pipeline(config(folder), note, spark=spark)
    assert [progress.batch_id for progress in seen] == [0, 1, 2]
    assert threads == {threading.current_thread()}
    assert seen[-1].total == summary.counts
    assert sum(progress.counts.documents for progress in seen) == 6
    assert all(progress.documents_per_s > 0 and progress.mb_per_s > 0 for progress in seen)
    assert all(0 < progress.lag_s < 300 for progress in seen)
    assert (summary.dead_letters, summary.interrupted) == (1, False)
    assert run_pipeline(config(folder), spark=spark).documents == 0


@pytest.mark.parametrize(("trigger", "batches"), [("once", 1), ("available_now", 3)])
def test_triggers_that_end(spark, folder, trigger, batches):
    orders(folder / "in", range(6))
    assert run_pipeline(config(folder, trigger=trigger), spark=spark).batches == batches
    assert sink_pairs(spark, folder / "out") == expected(6)


def test_ctrl_c_ends_a_stream_and_it_goes_on_later(spark, folder):
    orders(folder / "in", range(4))

    def interrupt(progress: Progress) -> None:
        if progress.batch_id == 1:
            os.kill(os.getpid(), signal.SIGINT)

    former = signal.getsignal(signal.SIGINT)
    summary = run_pipeline(config(folder, trigger=0), interrupt, spark=spark)
    assert signal.getsignal(signal.SIGINT) is former
    assert summary.interrupted
    assert not spark.streams.active
    orders(folder / "in", range(4, 7))
    run_pipeline(config(folder), spark=spark)
    assert sink_pairs(spark, folder / "out") == expected(7)


def test_ctrl_c_ends_a_batch_and_leaves_no_half_of_it(spark, folder):
    orders(folder / "in", range(4))
    slow = f"<order><n>1</n>{'<x><y/></x>' * 200}</order>"
    drop(folder / "in", "slow.xml", slow)
    (folder / "subscriptions.txt").write_text(
        "".join(f"/order[count(//*[count(//*) > {n}]) > 1]\n" for n in range(3000))
    )
    timer = threading.Timer(3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    started = time.monotonic()
    summary = run_pipeline(config(folder, checkpoint=None, matcher="naive"), spark=spark)
    timer.cancel()
    assert time.monotonic() - started < 60
    if summary.interrupted and summary.batches == 0:
        assert not list((folder / "out").glob("batch_id=*"))
        assert not list((folder / "out").glob(".inflight*"))


def test_an_error_of_the_listener_stops_the_stream_and_reaches_the_caller(spark, folder):
    orders(folder / "in", range(4))

    def fail(progress: Progress) -> None:
        raise ZeroDivisionError("listener")

    with pytest.raises(ZeroDivisionError):
        run_pipeline(config(folder, trigger=0), fail, spark=spark)
    assert not spark.streams.active
    run_pipeline(config(folder), spark=spark)
    assert sink_pairs(spark, folder / "out") == expected(4)


def test_what_spark_gives_up_on_is_a_pipeline_error(spark, folder):
    orders(folder / "in", range(2))
    run_pipeline(config(folder), spark=spark)
    orders(folder / "in", range(2, 4))
    (folder / "checkpoint" / "offsets" / "1").write_text("no offsets")
    with pytest.raises(PipelineError, match="the stream failed"):
        run_pipeline(config(folder), spark=spark)


def _workers() -> list[int]:
    """Python workers of this process's JVM: children of the daemon."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = place.read_bytes().split(b"\0")
            parent = int(place.with_name("stat").read_text().rsplit(")", 1)[1].split()[1])
        except (OSError, ValueError, IndexError):
            continue
        if b"pyspark.daemon" in words:
            found.append((int(place.parent.name), parent))
    daemons = {pid for pid, _ in found}
    return [pid for pid, parent in found if parent in daemons and _descends(parent, os.getpid())]


def _descends(pid: int, ancestor: int) -> bool:
    while pid > 1:
        if pid == ancestor:
            return True
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
        except (OSError, ValueError, IndexError):
            return False
    return False


def test_a_worker_killed_in_mid_stream_costs_nothing_but_time(spark, folder):
    if not Path("/proc/self/stat").exists():
        pytest.skip("workers are found in /proc")
    orders(folder / "in", range(20))
    begun = threading.Event()
    killed: list[int] = []

    def kill() -> None:
        # Three losses, for the fourth of one task would end the query, as on a cluster.
        assert begun.wait(120)
        while len(killed) < 3:
            for pid in _workers()[:1]:
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
            time.sleep(0.3)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    summary = run_pipeline(config(folder), lambda _: begun.set(), spark=spark)
    killer.join(30)
    assert len(killed) == 3
    assert (summary.documents, summary.dead_letters) == (20, 0)
    assert sink_pairs(spark, folder / "out") == expected(20)


@pytest.mark.parametrize("moment", [1, 4])
def test_a_killed_driver_goes_on_from_its_checkpoint(spark, folder, moment):
    """kill -9 of driver and JVM once `moment` batches lie in the sink; nothing is lost, nothing doubled."""
    orders(folder / "in", range(16))
    subscriptions = [
        {"id": "1", "query": "/order"},
        {"id": "2", "query": "/order[n mod 2 = 0]"},
        {"id": "report", "query": "<seen>{/order/n}</seen>", "language": "xquery"},
    ]
    (folder / "subscriptions.jsonl").write_text("".join(json.dumps(item) + "\n" for item in subscriptions))
    settings = config(folder, subscriptions=str(folder / "subscriptions.jsonl"))
    process = pipeline_process(settings)
    try:
        wait_until(
            lambda: len(list((folder / "out").glob("batch_id=*"))) >= moment or process.poll() is not None,
            240,
            "batches",
        )
        time.sleep(0.05 * moment)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=30)
    done = len(list((folder / "out").glob("batch_id=*")))
    assert done < 8, "the process was too fast to be killed in mid-stream"

    summary = run_pipeline(settings, spark=spark)
    assert summary.documents >= 16 - 2 * done
    assert sink_pairs(spark, folder / "out") == expected(16) | {(f"{n:03}.xml", "report") for n in range(16)}
    assert sink_totals(folder / "out").documents == 16
    rows = read_notifications(spark, folder / "out").collect()
    made = {row.document_id: row.result for row in rows if row.result is not None}
    assert made == {f"{n:03}.xml": f"<seen><n>{n}</n></seen>" for n in range(16)}
    assert all(row.notification_id == notification_id(row.document_id, row.subscription_id) for row in rows)
    assert not list((folder / "out").glob(".inflight*"))


def test_ctrl_c_in_a_process_of_its_own(folder):
    """The signal goes to driver and workers alike, as a terminal sends it; the summary is still printed."""
    orders(folder / "in", range(6))
    settings = dataclasses.replace(config(folder), trigger=0.0)
    process = pipeline_process(settings)
    try:
        wait_until(
            lambda: len(list((folder / "out").glob("batch_id=*"))) >= 3 or process.poll() is not None, 240, "batches"
        )
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, err
    assert json.loads(out.splitlines()[-1]) == {"documents": 6, "interrupted": True}
    assert "Traceback" not in err
