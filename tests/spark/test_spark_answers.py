"""Batch, stream and in-process answers are the same, and are the recorded ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
from spark_support import config, drop, pairs, recorded_answers, sink_pairs

from sardonyx import Broker, Limits, Subscription, open_broker
from sardonyx.model import notification_id
from sardonyx.spark import (
    SourceConfig,
    dead_letters,
    match,
    notifications,
    prepare,
    read_dead_letters,
    read_documents,
    read_notifications,
    run_pipeline,
    sink_totals,
    statistics,
)

SETS = ("simple_paths", "simple_predicates", "nested_paths")


@pytest.mark.parametrize("name", SETS)
def test_recorded_answers_of_three_query_sets(spark, shared, tmp_path, name):
    folder = shared / "data" / "yfilter-1.0"
    files = sorted((folder / "docs-100").glob("*.xml"))
    expected = recorded_answers(folder / name, files)
    assert len(files) == 100
    assert expected
    queries = folder / name / "queries.txt"

    broker, report = open_broker(queries)
    assert not report.rejected
    in_process = {
        (file.name, found)
        for file, ids in zip(files, broker.match_batch([f.read_bytes() for f in files]).ids(), strict=True)
        for found in ids
    }
    assert in_process == expected

    documents = read_documents(spark, SourceConfig("files", str(folder / "docs-100")))
    assert pairs(notifications(match(documents, broker))) == expected
    as_text = documents.withColumn("payload", documents.payload.cast("string"))
    assert pairs(notifications(match(as_text, queries))) == expected

    stream = config(
        tmp_path,
        source=SourceConfig("files", str(folder / "docs-100"), max_files_per_trigger=40),
        subscriptions=str(queries),
    )
    summary = run_pipeline(stream, spark=spark)
    assert summary.batches == 3
    assert sink_pairs(spark, tmp_path / "out") == expected
    assert (summary.documents, summary.notifications) == (100, len(expected))
    assert summary.matched_documents == len({document for document, _ in expected})


def test_a_plain_streaming_query_uses_the_same_function(spark, tmp_path):
    from sardonyx.spark import stream_documents

    drop(tmp_path / "in", "a.xml", "<a/>")
    drop(tmp_path / "in", "b.xml", "<b/>")
    results = match(
        stream_documents(spark, SourceConfig("files", str(tmp_path / "in"))),
        [Subscription("s", "/a | /b[1=2]"), Subscription("t", "for $b in /b return <seen>{$b}</seen>", "xquery")],
    )
    query = (
        notifications(results)
        .writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "cp"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "out"))
    )
    try:
        assert query.awaitTermination(60)
        assert query.exception() is None
    finally:
        query.stop()
    written = spark.read.parquet(str(tmp_path / "out"))
    assert pairs(written) == {("a.xml", "s"), ("b.xml", "t")}
    assert {row.result for row in written.collect()} == {None, "<seen><b/></seen>"}


def _cases(kinds: set[str]) -> list[dict]:
    path = Path(__file__).resolve().parents[3] / "shared" / "cases" / "cases-dev.json"
    if not path.exists():
        return []
    return [case for case in json.loads(path.read_text()) if case["kind"] in kinds]


@pytest.mark.parametrize(
    "case",
    [case for case in _cases({"spark", "streaming"}) if "per_document" in case["expected"]] or [None],
    ids=lambda case: case["id"] if case else "absent",
)
@pytest.mark.parametrize("payload", ["binary", "string"])
def test_cases_from_complaints(spark, tmp_path, case, payload):
    if case is None:
        pytest.skip("the shared folder with test data is not beside the checkout")
    subscriptions = [
        Subscription(str(number), item["text"], namespaces=item["namespaces"])
        for number, item in enumerate(case["subscriptions"])
    ]
    expected, refused = set(), {}
    for number, answer in enumerate(case["expected"]["per_document"]):
        if not answer["accept"]:
            refused[str(number)] = answer["error"].replace("-", "_")
        else:
            expected.update((str(number), str(place)) for place, hit in enumerate(answer["results"]) if hit)
    rows = [(str(number), text) for number, text in enumerate(case["documents"])]
    documents = spark.createDataFrame(rows, "document_id string, payload string").repartition(2)
    documents = documents.withColumn("payload", documents.payload.cast(payload))

    results = match(documents, subscriptions).cache()
    assert pairs(notifications(results)) == expected
    assert {row.document_id: row.kind for row in dead_letters(results).collect()} == refused
    results.unpersist()

    broker = Broker()
    assert not broker.register_many(subscriptions).rejected
    ids = broker.match_batch([text for _, text in rows]).ids()
    assert {(str(number), found) for number, row in enumerate(ids) for found in row} == expected

    for number, text in rows:
        drop(tmp_path / "in", number, text)
    (tmp_path / "subscriptions.jsonl").write_text(
        "".join(
            json.dumps({"id": item.id, "query": item.query, "namespaces": item.namespaces}) + "\n"
            for item in subscriptions
        )
    )
    run_pipeline(config(tmp_path, subscriptions=str(tmp_path / "subscriptions.jsonl")), spark=spark)
    assert sink_pairs(spark, tmp_path / "out") == expected
    letters = read_dead_letters(spark, tmp_path / "out").collect()
    assert {row.document_id: row.kind for row in letters} == refused


def test_columns_streams_counts_and_ids(spark):
    rows = [
        ("m1", b"<a/>", "left", 1.0),
        ("m2", b"<a/>", "right", 2.0),
        ("m3", b"<a", "left", 3.0),
        ("m4", None, "left", 4.0),
        (None, b"<a/>", "left", 5.0),
        ("m6", b"<b/>", None, 6.0),
    ]
    documents = spark.createDataFrame(rows, "key string, xml binary, topic string, seconds double")
    documents = documents.withColumn("at", documents.seconds.cast("timestamp")).repartition(2)
    subscriptions = [Subscription("all", "/a"), Subscription("left", "/a", stream="left")]
    results = match(
        documents, subscriptions, document_id="key", payload="xml", stream="topic", timestamp="at", matcher="naive"
    ).cache()
    found = notifications(results).collect()
    assert {(row.document_id, row.subscription_id) for row in found} == {("m1", "all"), ("m1", "left"), ("m2", "all")}
    assert all(row.notification_id == notification_id(row.document_id, row.subscription_id) for row in found)
    assert {(row.document_id, row.kind) for row in dead_letters(results).collect()} == {
        ("m3", "not_well_formed"),
        ("m4", "missing_payload"),
        (None, "missing_document_id"),
    }
    counts = statistics(results).groupBy().sum().collect()[0].asDict()
    assert counts["sum(documents)"] == 6
    assert counts["sum(matched_documents)"] == 2
    assert counts["sum(dead_letters)"] == 3
    assert counts["sum(notifications)"] == 3
    assert statistics(results).selectExpr("min(oldest_timestamp_us) as oldest").collect()[0].oldest == 1_000_000
    results.unpersist()


def test_text_is_already_decoded_whatever_it_declares(spark):
    text = '<?xml version="1.0" encoding="ISO-8859-1"?><a>é</a>'
    rows = [("text", text, None), ("bytes", None, text.encode("latin-1"))]
    documents = spark.createDataFrame(rows, "document_id string, t string, b binary")
    query = [Subscription("s", "/a = 'é'")]
    assert pairs(notifications(match(documents.where("t is not null"), query, payload="t"))) == {("text", "s")}
    assert pairs(notifications(match(documents.where("b is not null"), query, payload="b"))) == {("bytes", "s")}


def test_subscriptions_of_a_dataframe_and_refused_ones(spark):
    documents = spark.createDataFrame([("m1", "<p:a xmlns:p='u'/>")], "document_id string, payload string")
    frame = spark.createDataFrame(
        [("good", "/x:a", {"x": "u"}), ("bad", "/x:a[", {"x": "u"}), ("unbound", "/y:a", None)],
        "subscription_id string, query string, namespaces map<string,string>",
    )
    population = prepare(frame)
    assert sorted(letter.subscription_id for letter in population.refused) == ["bad", "unbound"]
    results = match(documents, frame)
    assert pairs(notifications(results)) == {("m1", "good")}
    letters = dead_letters(results).collect()
    assert sorted((row.subscription_id, row.document_id) for row in letters) == [("bad", None), ("unbound", None)]
    assert all(row.kind and row.message for row in letters)
    assert dead_letters(match(documents, population)).count() == 0
    assert sorted(row.subscription_id for row in population.refused_rows(spark).collect()) == ["bad", "unbound"]


def test_popular_documents_give_more_rows_than_one_batch_holds(spark):
    count = 150_000
    broker = Broker()
    broker.register_many([(str(number), f"/a[@b < {number + 1}]") for number in range(count)])
    documents = spark.createDataFrame([("m1", "<a b='0'/>"), ("m2", "<a/>")], "document_id string, payload string")
    results = match(documents, broker)
    row = statistics(results).groupBy().sum("documents", "notifications").collect()[0]
    assert tuple(row) == (2, count)
    found = notifications(results).selectExpr(
        "count(*) n", "count(distinct notification_id) ids", "count(distinct subscription_id) subscriptions"
    )
    assert tuple(found.collect()[0]) == (count, count, count)


def test_every_shared_document_is_matched_or_refused_like_libxml2(spark, shared):
    etree = pytest.importorskip("lxml.etree")
    root = shared / "data" / "docs"
    files = {str(path.relative_to(root)): path for path in root.rglob("*") if path.is_file()}
    assert len(files) > 1400
    documents = read_documents(spark, SourceConfig("files", str(root)))
    results = match(documents, [Subscription("any", "/*")]).cache()
    accepted = {row.document_id for row in notifications(results).collect()}
    refused = {row.document_id: row for row in dead_letters(results).collect()}
    counted = statistics(results).groupBy().sum("documents", "matched_documents", "dead_letters").collect()[0]
    results.unpersist()
    assert accepted | refused.keys() == files.keys()
    assert tuple(counted) == (len(files), len(accepted), len(refused))
    assert not accepted & refused.keys()

    parser = etree.XMLParser(huge_tree=True, no_network=True, load_dtd=False, resolve_entities=False)
    bad = set()
    for name, path in files.items():
        try:
            etree.fromstring(path.read_bytes(), parser)
        except etree.XMLSyntaxError:
            bad.add(name)
    differences = {name: refused[name].message if name in refused else "accepted" for name in bad ^ refused.keys()}
    assert differences.keys() == DIFFERENCES.keys(), differences


DIFFERENCES = {
    "dblp/dblp-fragment.xml": "uses entities of an external DTD, which is never loaded: libxml2 drops them, we refuse",
}
"""Documents that libxml2 judges otherwise, with the reason."""


def test_readers_give_empty_frames_for_a_sink_without_such_rows(spark, tmp_path):
    drop(tmp_path / "in", "a.xml", "<a/>")
    (tmp_path / "subscriptions.txt").write_text("/b\n")
    summary = run_pipeline(config(tmp_path), spark=spark)
    assert (summary.documents, summary.unmatched_documents, summary.notifications) == (1, 1, 0)
    assert read_notifications(spark, tmp_path / "out").count() == 0
    assert read_dead_letters(spark, tmp_path / "out").count() == 0
    assert sink_totals(tmp_path / "out").documents == 1


def test_strings_that_are_not_utf8_are_dead_letters(spark):
    documents = spark.sql(
        "SELECT 'good' AS document_id, '<a/>' AS payload, 'x' AS stream "
        "UNION ALL SELECT 'payload', cast(unhex('3C61FF2F3E') AS string), 'x' "
        "UNION ALL SELECT 'stream', '<a/>', cast(unhex('FF') AS string) "
        "UNION ALL SELECT cast(unhex('6964FF') AS string), '<a/>', 'x'"
    ).coalesce(1)
    results = match(documents, [Subscription("s", "/a")])
    assert pairs(notifications(results)) == {("good", "s")}
    letters = {row.document_id: (row.kind, row.message) for row in dead_letters(results).collect()}
    assert letters.keys() == {"payload", "stream", "id\ufffd"}
    assert {kind for kind, _ in letters.values()} == {"encoding"}


def test_a_query_beyond_the_cost_limit_is_a_dead_letter_of_its_pair(spark):
    documents = spark.createDataFrame([("m1", f"<a>{'<b/>' * 300}</a>")], "document_id string, payload string")
    subscriptions = [Subscription("dear", "count(//b[count(following::*) > 1]) > 1"), Subscription("cheap", "/a")]
    results = match(documents, subscriptions, limits=Limits(cost_limit=1000)).cache()
    assert pairs(notifications(results)) == {("m1", "cheap")}
    letters = [(row.document_id, row.subscription_id, row.kind) for row in dead_letters(results).collect()]
    assert letters == [("m1", "dear", "cost_limit")]
    counts = statistics(results).collect()[0]
    assert (counts.documents, counts.matched_documents, counts.dead_letters, counts.undecided_pairs) == (1, 1, 0, 1)
    results.unpersist()
