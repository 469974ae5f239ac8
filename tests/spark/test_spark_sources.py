"""Sources: ids, odd names, lines that are no JSON, Parquet, big files in flat memory."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
from spark_support import config, drop, sink_pairs

from sardonyx.spark import SinkConfig, SourceConfig, read_dead_letters, read_documents, run_pipeline, stream_documents

NAMES = ["a.xml", "with space.xml", "plus+percent%20.xml", "é-ünï.xml", "deep/er/b.xml"]


def ids(frame) -> list[str]:
    return sorted(row.document_id for row in frame.select("document_id").collect())


def drain(spark, source: SourceConfig, root: Path):
    query = (
        stream_documents(spark, source)
        .writeStream.format("parquet")
        .option("checkpointLocation", str(root / "cp"))
        .trigger(availableNow=True)
        .start(str(root / "drained"))
    )
    try:
        assert query.awaitTermination(120)
        assert query.exception() is None
    finally:
        query.stop()
    return spark.read.parquet(str(root / "drained"))


def test_ids_are_paths_relative_to_the_source_in_batch_and_stream(spark, tmp_path):
    root = tmp_path / "in [x] (y)+.z"
    for name in NAMES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("<a/>")
    pattern = str(root).replace("[", r"\[").replace("]", r"\]")
    source = SourceConfig("files", str(tmp_path), max_files_per_trigger=2)
    expected = sorted(f"{root.name}/{name}" for name in NAMES)
    assert ids(read_documents(spark, source)) == expected
    assert ids(drain(spark, source, tmp_path.with_name(tmp_path.name + "-stream"))) == expected
    assert ids(read_documents(spark, SourceConfig("files", f"{pattern}/a.xml"))) == ["a.xml"]
    assert ids(read_documents(spark, SourceConfig("files", f"{tmp_path}/in*", glob="*.xml"))) == expected
    assert ids(read_documents(spark, SourceConfig("files", str(tmp_path), glob="b.*"))) == [
        f"{root.name}/deep/er/b.xml"
    ]
    assert ids(read_documents(spark, SourceConfig("files", os.path.relpath(tmp_path)))) == expected


def test_json_lines_that_are_no_documents_are_dead_letters(spark, tmp_path):
    lines = [
        json.dumps({"document_id": "m1", "payload": "<a/>", "timestamp": "2026-01-01T00:00:00Z"}),
        json.dumps({"payload": "<a/>"}),
        "{not json",
        json.dumps({"document_id": "m2"}),
        json.dumps({"document_id": "m3", "payload": "<a"}),
    ]
    drop(tmp_path / "in", "lines one.jsonl", "\n".join(lines) + "\n")
    (tmp_path / "subscriptions.txt").write_text("/a\n")
    stream = config(tmp_path, source=SourceConfig("jsonl", str(tmp_path / "in")))
    summary = run_pipeline(stream, spark=spark)
    assert (summary.documents, summary.matched_documents, summary.dead_letters) == (5, 2, 3)
    found = {document for document, _ in sink_pairs(spark, tmp_path / "out")}
    assert "m1" in found
    assert any(name.startswith("lines one.jsonl#") for name in found)
    letters = {row.kind: row.document_id for row in read_dead_letters(spark, tmp_path / "out").collect()}
    assert letters.keys() == {"source_format", "missing_payload", "not_well_formed"}
    batch = config(tmp_path, source=stream.source, checkpoint=None, sink=SinkConfig("jsonl", str(tmp_path / "again")))
    run_pipeline(batch, spark=spark)
    assert sink_pairs(spark, tmp_path / "again") == sink_pairs(spark, tmp_path / "out")


def test_parquet_with_string_payloads_and_partitions(spark, tmp_path):
    rows = [("m1", "<a/>", "left"), ("m2", "<a/>", "right"), ("m3", "<a", "left")]
    frame = spark.createDataFrame(rows, "document_id string, payload string, stream string")
    frame.write.partitionBy("stream").parquet(str(tmp_path / "in"))
    (tmp_path / "subscriptions.jsonl").write_text('{"id": "s", "query": "/a", "stream": "left"}\n')
    stream = config(
        tmp_path,
        source=SourceConfig("parquet", str(tmp_path / "in")),
        subscriptions=str(tmp_path / "subscriptions.jsonl"),
    )
    assert run_pipeline(stream, spark=spark).documents == 3
    assert sink_pairs(spark, tmp_path / "out") == {("m1", "s")}


RECORDS = b"""<?xml version="1.0"?>
<!-- head -->
<f:feed xmlns:f="urn:f" xmlns="urn:d" xmlns:x='urn:x?a=1&amp;b'>
  <skip><f:item>inner</f:item></skip>
  <f:item a="1"><x:b>  <![CDATA[<&]]]]><![CDATA[>]]> &amp;&#233;\r\n</x:b></f:item>
  <f:item/>
  <f:item xmlns:f="urn:f"><f:item>nested</f:item></f:item>
</f:feed>
"""


def test_records_keep_namespaces_and_bytes(spark, tmp_path):
    etree = pytest.importorskip("lxml.etree")
    drop(tmp_path / "in", "feed.xml", RECORDS)
    source = SourceConfig("records", str(tmp_path / "in"), record="f:item")
    rows = read_documents(spark, source).orderBy("document_id").collect()
    payloads = {row.document_id: bytes(row.payload) for row in rows}
    assert all(row.source_error is None for row in rows)
    whole = etree.fromstring(RECORDS)
    expected = [item for item in whole.iter("{urn:f}item") if not list(item.iterancestors("{urn:f}item"))]
    assert list(payloads) == [f"feed.xml#{number}" for number in range(len(expected))]
    for item, payload in zip(expected, payloads.values(), strict=True):
        root = etree.fromstring(payload)
        assert root.tag == item.tag
        assert {**item.nsmap} == {**root.nsmap}
        assert etree.tostring(root, method="c14n", exclusive=True) == etree.tostring(
            item, method="c14n", exclusive=True, with_tail=False
        )
    assert b"<![CDATA[<&]]]]><![CDATA[>]]> &amp;&#233;" in b"".join(payloads.values())
    streamed = drain(spark, source, tmp_path).orderBy("document_id").collect()
    assert {row.document_id: bytes(row.payload) for row in streamed} == payloads


def test_a_broken_large_file_loses_no_record_before_the_fault(spark, tmp_path):
    good = "".join(f"<r><n>{number}</n></r>" for number in range(100))
    drop(tmp_path / "in", "good.xml", f"<all>{good}</all>")
    drop(tmp_path / "in", "cut.xml", f"<all>{good}<r><n>")
    (tmp_path / "subscriptions.txt").write_text("/r\n")
    stream = config(tmp_path, source=SourceConfig("records", str(tmp_path / "in"), record="r", max_files_per_trigger=1))
    summary = run_pipeline(stream, spark=spark)
    assert (summary.documents, summary.matched_documents, summary.dead_letters) == (201, 200, 1)
    letters = read_dead_letters(spark, tmp_path / "out").collect()
    assert [row.document_id for row in letters] == ["cut.xml#100"]


def _children(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [int(child) for child in task.read_text().split()]
        except OSError:
            continue
    return found + [deeper for child in found for deeper in _children(child)]


def _resident_mb(pid: int) -> float:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    except (OSError, IndexError):
        return 0.0


def test_a_large_file_is_split_in_flat_memory(spark, tmp_path):
    """300 MB through workers that may grow by a fraction of it."""
    if not Path(f"/proc/{os.getpid()}/task").exists():
        pytest.skip("memory of processes is read from /proc")
    record = f"<r>{'<v>some text to carry</v>' * 400}</r>\n".encode()
    count = 300_000_000 // len(record)
    path = tmp_path / "in" / "big.xml"
    path.parent.mkdir()
    with open(path, "wb") as file:
        file.write(b"<all>\n")
        file.writelines(record * 100 for _ in range(count // 100))
        file.write(b"</all>\n")
    (tmp_path / "subscriptions.txt").write_text("/r[v = 'nothing']\n")
    peak: dict[int, float] = {}
    stop = threading.Event()

    def sample() -> None:
        while not stop.wait(0.1):
            for pid in [os.getpid(), *_children(os.getpid())]:
                command = Path(f"/proc/{pid}/cmdline")
                try:
                    if b"python" in command.read_bytes().split(b"\0")[0]:
                        peak[pid] = max(peak.get(pid, 0.0), _resident_mb(pid))
                except OSError:
                    continue

    before = _resident_mb(os.getpid())
    watcher = threading.Thread(target=sample)
    watcher.start()
    started = time.monotonic()
    try:
        settings = config(tmp_path, source=SourceConfig("records", str(tmp_path / "in"), record="r"), checkpoint=None)
        summary = run_pipeline(settings, spark=spark)
    finally:
        stop.set()
        watcher.join()
    assert summary.documents == summary.unmatched_documents == count // 100 * 100
    assert time.monotonic() - started < 120
    driver = peak.pop(os.getpid())
    assert driver < before + 60
    assert peak, "no worker was seen"
    assert max(peak.values()) < 420, peak


@pytest.mark.parametrize(("kind", "count"), [("files", 25), ("records", 5)])
def test_empty_files_are_documents_too(spark, tmp_path, kind, count):
    """Spark's file sources leave them out. More than ten batches make Spark compact its log of files."""
    for number in range(count):
        drop(tmp_path / "in", f"{number:02} é.xml", "" if number % 3 == 0 else "<all><r/></all>")
    drop(tmp_path / "in" / "_hidden", "x.xml", "")
    drop(tmp_path / "in", "other.txt", "")
    (tmp_path / "subscriptions.txt").write_text("/*\n")
    source = SourceConfig(
        kind, f"{tmp_path}/i?", record="r" if kind == "records" else None, glob="*.{xml,rss}", max_files_per_trigger=2
    )
    stream = config(tmp_path, source=source)
    summary = run_pipeline(stream, spark=spark)
    empty = len(range(0, count, 3))
    assert summary.batches == (count + 1) // 2
    assert (summary.documents, summary.matched_documents, summary.dead_letters) == (count, count - empty, empty)
    letters = {row.document_id for row in read_dead_letters(spark, tmp_path / "out").collect()}
    end = "#0" if kind == "records" else ""
    assert letters == {f"in/{number:02} é.xml{end}" for number in range(0, count, 3)}
    again = config(tmp_path, source=source, checkpoint=None, sink=SinkConfig("parquet", str(tmp_path / "batch")))
    assert run_pipeline(again, spark=spark).counts == summary.counts
    assert {row.document_id for row in read_dead_letters(spark, tmp_path / "batch").collect()} == letters
