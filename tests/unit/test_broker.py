"""The broker: every way of registering and matching, and what each does with what is bad."""

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from sardonyx import Broker, BrokerSettings, Document, Subscription, XPushSettings
from sardonyx.errors import (
    EncodingError,
    IndexFormatError,
    InvalidFieldError,
    NotWellFormedError,
    QuerySyntaxError,
    UnknownSubscriptionError,
    UnsupportedError,
)
from sardonyx.model import notification_id
from sardonyx.tabular import Defaults
from tests import engine


@pytest.fixture
def broker() -> Broker:
    made = Broker()
    report = made.register_many([("a", "/a"), ("b", "//b"), ("s", "/a", "xpath", None, "news")])
    assert (report.registered, report.rejected) == (3, ())
    return made


def test_register_replaces_and_unregister_removes(broker: Broker) -> None:
    before = broker.generation
    broker.register("a", "/z")
    assert (len(broker), broker.match("<a/>")) == (3, [])
    assert broker.match("<z/>") == ["a"]
    assert broker.unregister(["a", "nobody"]) == ["nobody"]
    assert broker.unregister("b") == []
    assert broker.generation > before
    assert ("a" in broker, "s" in broker, 7 in broker) == (False, True, False)
    broker.compact()
    assert broker.ids() == ["s"]


def test_register_raises_what_is_wrong(broker: Broker) -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        broker.register("x", "/a[")
    assert caught.value.subscription_id == "x"
    with pytest.raises(UnsupportedError, match="'sql' is not available; there are 'xpath'"):
        broker.register("x", "select 1", language="sql")
    with pytest.raises(QuerySyntaxError):
        broker.register("x", "for $a in", language="xquery")
    with pytest.raises(InvalidFieldError, match="is for filters"):
        broker.register("x", "//a", language="xquery", ignore_namespaces=True)
    with pytest.raises(InvalidFieldError, match="id is 7"):
        broker.register(Subscription(7, "/a"))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="query is missing"):
        broker.register("x")
    with pytest.raises(TypeError, match="part of the subscription"):
        broker.register(Subscription("x", "/a"), "/b")
    assert len(broker) == 3


BAD_AND_GOOD = [
    ("1", "/a"),
    ("2", "/a["),
    ("3", "let $x := 1 return $x", "sql"),
    ("4", None),
    (None, "/a"),
    ("6", "//b"),
    ("", "/a"),
]


def as_mappings() -> list[dict[str, Any]]:
    return [dict(zip(("id", "query", "language"), row, strict=False)) for row in BAD_AND_GOOD]


def as_table(key: str = "id") -> pa.Table:
    return pa.table(
        {
            key: [row[0] for row in BAD_AND_GOOD],
            "query": [row[1] for row in BAD_AND_GOOD],
            "language": [row[2] if len(row) > 2 else None for row in BAD_AND_GOOD],
        }
    )


class OnlyStream:
    """Something that is known by its Arrow interface alone."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


WAYS = {
    "tuples": lambda: iter(BAD_AND_GOOD),
    "mappings": as_mappings,
    "table": as_table,
    "table with subscription_id": lambda: as_table("subscription_id"),
    "record batch": lambda: as_table().to_batches()[0],
    "reader": lambda: as_table().to_reader(),
    "anything with a stream": lambda: OnlyStream(as_table()),
}


@pytest.mark.parametrize("rows", [1, 2, 250_000])
@pytest.mark.parametrize("way", WAYS)
def test_bad_subscriptions_never_spoil_a_batch(way: str, rows: int) -> None:
    broker = Broker(BrokerSettings(register_rows=rows))
    handled: list[int] = []
    report = broker.register_many(WAYS[way](), on_progress=handled.append)
    assert report.registered == len(broker) == 2
    assert sorted((letter.subscription_id or "", letter.kind) for letter in report.rejected) == [
        ("", "invalid_field"),
        ("", "invalid_field"),
        ("2", "query_syntax"),
        ("3", "unsupported"),
        ("4", "invalid_field"),
    ]
    assert handled[-1] == len(BAD_AND_GOOD)
    assert broker.match("<a><b/></a>") == ["1", "6"]


def test_a_table_with_little_more_than_ids_and_queries() -> None:
    """Where nothing is said of languages, and where it contradicts the rest; refused ids that are empty are none."""
    broker = Broker()
    few = pa.table({"id": ["1", None, "", "4", "5"], "query": ["/a", "/a", "/a", None, "/a["]})
    letters = broker.register_many(few).rejected
    assert [letter.subscription_id for letter in letters] == [None, None, "4", "5"]
    assert [letter.message for letter in letters[:3]] == ["id and query must both be given"] * 3
    queries = ["/a", "<r>{for $a in /a return $a}</r>", "/a[x->v] JOIN{v=w, 1 s} /b[y->w]"]
    ignoring = {"id": ["6", "7", "8"], "query": queries, "ignore_namespaces": [True] * 3}
    letters = broker.register_many(pa.table({**ignoring, "language": [None, "xquery", "xscl"]})).rejected
    assert [(letter.subscription_id, letter.kind) for letter in letters] == [
        ("7", "invalid_field"),
        ("8", "invalid_field"),
    ]
    assert all("ignore_namespaces is for filters" in letter.message for letter in letters)
    contradiction = {"id": "9", "query": queries[1], "language": "xquery", "ignore_namespaces": True}
    for given in ([contradiction], pa.Table.from_pylist([contradiction])):
        letters = broker.register_many(given, defaults=Defaults(ignore_namespaces=True)).rejected
        assert [(letter.subscription_id, letter.kind) for letter in letters] == [("9", "invalid_field")]
    assert broker.match("<a/>") == ["1", "6"]


def test_namespaces_reach_the_core_in_every_shape() -> None:
    document = "<p:a xmlns:p='urn:p'/>"
    shapes = {
        "json": pa.array(['{"q": "urn:p"}']),
        "map": pa.array([[("q", "urn:p")]], pa.map_(pa.string(), pa.string())),
        "struct": pa.array([{"q": "urn:p"}]),
    }
    for name, column in shapes.items():
        broker = Broker()
        table = pa.table({"id": [name], "query": ["/q:a"], "namespaces": column})
        assert broker.register_many(table).rejected == ()
        assert broker.match(document) == [name]
    broker = Broker()
    broker.register("mapping", "/q:a", namespaces={"q": "urn:p"})
    broker.register("any", "/a", ignore_namespaces=True)
    broker.register("none", "/a")
    assert broker.match(document) == ["any", "mapping"]


@pytest.mark.parametrize(
    "table",
    [
        pa.table({"id": ["1"]}),
        pa.table({"query": ["/a"]}),
        pa.table({"id": [1.5], "query": ["/a"]}),
        pa.table({"id": ["1"], "query": [["/a"]]}),
        pa.table({"id": ["1"], "query": ["/a"], "ignore_namespaces": ["perhaps"]}),
        pa.table({"id": ["1"], "query": ["/a"], "notify_empty": ["perhaps"]}),
    ],
)
def test_tables_that_can_not_be_read_are_refused(table: pa.Table) -> None:
    with pytest.raises(InvalidFieldError):
        Broker().register_many(table)


def test_single_subscriptions_are_no_population() -> None:
    for wrong in ("/a", b"/a", {"id": "1", "query": "/a"}):
        with pytest.raises(TypeError):
            Broker().register_many(wrong)


def test_match_hears_streams_and_names_documents(broker: Broker) -> None:
    assert broker.match("<a/>") == ["a"]
    assert broker.match(Document("d", "<a/>", stream="news")) == ["a", "s"]
    assert broker.match(Document("d", "<a/>", stream="sport")) == ["a"]
    with pytest.raises(NotWellFormedError) as caught:
        broker.match(Document("d", b"<a>"))
    assert caught.value.document_id == "d"
    with pytest.raises(TypeError):
        broker.match(7)  # type: ignore[arg-type]


def test_match_gives_nodes(broker: Broker) -> None:
    broker.register("count", "count(//b) = 2")
    found = broker.match("<a>\n<b>x</b><b/></a>", nodes=True)
    assert [result.subscription_id for result in found] == ["a", "b", "count"]
    nodes = found[1].nodes
    assert [(node.path, node.line, node.value) for node in nodes] == [("/a/b[1]", 2, "x"), ("/a/b[2]", 2, "")]
    assert found[2].nodes == ()


def test_node_limit() -> None:
    broker = Broker(BrokerSettings(node_limit=3))
    broker.register("b", "//b")
    assert len(broker.match("<a>" + "<b/>" * 10 + "</a>", nodes=True)[0].nodes) == 3


DOCUMENTS = [b"<a/>", b"<a>", b"<c><b/></c>", b"<c/>"]
BATCHES: dict[str, Any] = {
    "bytes": DOCUMENTS,
    "text": [text.decode() for text in DOCUMENTS],
    "mixed": [b"<a/>", "<a>", bytearray(b"<c><b/></c>"), "<c/>"],
    "documents": [Document(str(row), text) for row, text in enumerate(DOCUMENTS)],
    "binary array": pa.array(DOCUMENTS),
    "large binary array": pa.array(DOCUMENTS, pa.large_binary()),
    "string array": pa.array([text.decode() for text in DOCUMENTS]),
    "large string array": pa.array([text.decode() for text in DOCUMENTS], pa.large_string()),
    "dictionary array": pa.array([text.decode() for text in DOCUMENTS]).dictionary_encode(),
    "chunked array": pa.chunked_array([DOCUMENTS[:1], [], DOCUMENTS[1:]], pa.binary()),
    "sliced array": pa.array([b"<z/>", *DOCUMENTS, b"<z/>"]).slice(1, 4),
}


@pytest.mark.parametrize("threads", [None, 1, 3])
@pytest.mark.parametrize("shape", BATCHES)
def test_match_batch_takes_every_shape(broker: Broker, shape: str, threads: int | None) -> None:
    report = broker.match_batch(BATCHES[shape], threads=threads)
    assert report.ids() == [["a"], [], ["b"], []]
    assert report.errors["document"].to_pylist() == [1]
    assert report.errors["kind"].to_pylist() == ["not_well_formed"]
    assert report.documents == 4
    assert report.payload_bytes >= sum(map(len, DOCUMENTS))
    letters = report.dead_letters(["w", "x", "y", "z"])
    assert [(letter.document_id, letter.kind, letter.line) for letter in letters] == [("x", "not_well_formed", 1)]
    assert report.dead_letters()[0].document_id == "1"


def test_match_batch_of_nothing(broker: Broker) -> None:
    for nothing in ([], pa.array([], pa.binary()), pa.chunked_array([], pa.binary())):
        report = broker.match_batch(nothing)
        assert (report.ids(), report.matches.num_rows, report.errors.num_rows) == ([], 0, 0)


def test_filters_have_no_results(broker: Broker, tmp_path: Path) -> None:
    """Nulls that share their memory are nulls like others, also beside real results and when more are asked for."""
    few = broker.match_batch([b"<a/>"] * 2).matches["result"]
    broker.register("t", "<t>{/a/text()}</t>", language="xquery")
    mixed = broker.match_batch(pa.chunked_array([[b"<z/>", b"<b/>"], [b"<a>1</a>"], [b"<b/>"] * 9_000])).matches
    mixed.validate(full=True)
    assert mixed["result"].null_count == mixed.num_rows - 1 == 9_002
    assert (few.to_pylist(), few.null_count) == ([None, None], 2)
    parquet.write_table(mixed, tmp_path / "matches.parquet")
    assert parquet.read_table(tmp_path / "matches.parquet")["result"].drop_null().to_pylist() == ["<t>1</t>"]


def test_missing_payloads_and_lone_surrogates_are_errors_of_their_own(broker: Broker) -> None:
    report = broker.match_batch([None, "<a/>", "<a>\ud800</a>", b"<a/>"])
    assert report.ids() == [[], ["a"], [], ["a"]]
    assert report.errors.select(["document", "kind"]).to_pylist() == [
        {"document": 0, "kind": "missing_payload"},
        {"document": 2, "kind": "encoding"},
    ]
    with pytest.raises(EncodingError):
        broker.match("<a>\ud800</a>")


def test_match_batch_streams(broker: Broker) -> None:
    assert broker.match_batch([b"<a/>"] * 3, streams=["news", None, "x"]).ids() == [["a", "s"], ["a"], ["a"]]
    chunked = pa.chunked_array([[b"<a/>"], [b"<a/>"]])
    assert broker.match_batch(chunked, streams=[None, "news"]).ids() == [["a"], ["a", "s"]]
    with pytest.raises(ValueError, match="2 documents and 1 streams"):
        broker.match_batch([b"<a/>"] * 2, streams=["news"])


def test_match_batch_refuses_what_is_no_batch(broker: Broker) -> None:
    for wrong in (b"<a/>", "<a/>", Document("d", "<a/>"), [7], pa.array([1])):
        with pytest.raises(TypeError):
            broker.match_batch(wrong)


def test_publish_makes_notifications_and_dead_letters(broker: Broker) -> None:
    report = broker.publish_many(Document(f"d{row}", text) for row, text in enumerate(DOCUMENTS))
    assert [(n.document_id, n.subscription_id) for n in report] == [("d0", "a"), ("d2", "b")]
    assert report.notifications[0].notification_id == notification_id("d0", "a")
    assert (len(report), report.documents) == (2, 4)
    assert [letter.document_id for letter in report.dead_letters] == ["d1"]
    assert broker.publish(Document("m", b"<a/>")).notifications[0].document_id == "m"


def test_explain(broker: Broker) -> None:
    explanation = broker.explain("b", "<a><b>x</b></a>")
    assert explanation.matched
    assert "matches" in str(explanation)
    assert not broker.explain("b", "<a/>").matched
    with pytest.raises(UnknownSubscriptionError):
        broker.explain("nobody", "<a/>")


def test_save_and_load(broker: Broker, tmp_path: Any) -> None:
    path = tmp_path / "a.sdx"
    digest = broker.save(path)
    assert digest == broker.save(tmp_path / "again.sdx")
    loaded = Broker.load(path, BrokerSettings(matcher="naive"))
    assert loaded.ids() == broker.ids()
    assert loaded.match(Document("d", "<a><b/></a>", stream="news")) == ["a", "b", "s"]
    loaded.register("later", "/a")
    assert len(loaded) == 4
    with pytest.raises(IndexFormatError):
        Broker.load(tmp_path / "missing.sdx")


def test_stats_and_repr(broker: Broker) -> None:
    assert broker.stats()["subscriptions"] == 3
    assert repr(broker).startswith("<Broker: 3 subscriptions")


def test_the_matchers_agree() -> None:
    queries = [("1", "/a"), ("2", "//b[. = 'x']"), ("3", "not(//c)"), ("4", "count(//b) > 1")]
    found = []
    for matcher in engine.MATCHERS:
        broker = Broker(matcher=matcher)
        broker.register_many(queries)
        found.append(broker.match_batch([b"<a><b>x</b></a>", b"<c><b/><b/></c>"]).ids())
    assert found == [[["1", "2", "3"], ["4"]]] * len(engine.MATCHERS)


def test_statistics_of_the_xpush_machine() -> None:
    broker = Broker(matcher="xpush")
    broker.register_many([("1", "/a[b = 'x']"), ("2", "//b[2]")])
    assert broker.match_batch([b"<a><b>x</b></a>"] * 4, threads=1).ids() == [["1"]] * 4
    stats = broker.stats()
    assert stats["xpush_states"] > 1
    assert stats["xpush_state_members"] >= stats["xpush_states"] - 1
    assert 0 < stats["xpush_hits"] < stats["xpush_lookups"]
    assert stats["xpush_inexact_rows"] == 1
    assert stats["xpush_verified_rows"] == 4
    assert stats["xpush_clears"] == 0


@pytest.mark.parametrize(
    "options",
    [
        XPushSettings(top_down=False),
        XPushSettings(early=True),
        XPushSettings(order=(("b", "c"),)),
        XPushSettings(training=True),
        XPushSettings(precompute_values=True),
        XPushSettings(store_bytes=0),
    ],
)
def test_options_of_the_xpush_machine_change_no_answer(options: XPushSettings) -> None:
    broker = Broker(BrokerSettings(matcher="xpush", xpush=options))
    broker.register_many([("1", "/a[b = 'x' and c > 1]"), ("2", "//b[. != 'x']"), ("3", "not(//c)")])
    documents = [b"<a><b>x</b><c>2</c></a>", b"<a><c>2</c><b>x</b></a>", b"<a><b>y</b></a>"] * 3
    assert broker.match_batch(documents).ids() == [["1"], ["1"], ["2", "3"]] * 3


def test_threads_match_while_others_register() -> None:
    """Every match sees one whole generation: both subscriptions of a pair or none."""
    broker = Broker()
    stop = threading.Event()
    seen: list[list[str]] = []

    def match() -> None:
        while not stop.is_set():
            seen.append(broker.match("<a/>"))

    readers = [threading.Thread(target=match) for _ in range(2)]
    for reader in readers:
        reader.start()
    for round_ in range(50):
        broker.register_many([("x", "/a"), ("y", "/a")])
        if round_ % 2:
            broker.unregister(["x", "y"])
    stop.set()
    for reader in readers:
        reader.join()
    assert {tuple(sorted(ids)) for ids in seen} <= {(), ("x", "y")}
    assert seen


def test_very_many_matches_of_several_segments() -> None:
    """So many rows that several threads write them; ids removed meanwhile and segments of many sizes."""
    broker = Broker()
    for part, count in enumerate((700, 5, 300)):
        ids = [f"{part}-{number}" for number in range(count)]
        queries = [f"/r/a[. >= {number % 10}]" for number in range(count)]
        broker.register_many(pa.table({"id": ids, "query": queries}))
    broker.unregister(["0-3", "1-2", "2-299"])
    documents = [f"<r><a>{number % 11 - 1}</a></r>".encode() for number in range(700)]
    expected = [broker.match(document) for document in documents[:11]]
    assert len({len(found) for found in expected}) == 11, "each value satisfies more"
    for threads in (1, 2, 3):
        report = broker.match_batch(documents, threads=threads)
        assert report.matches.num_rows > 2 * 131_072
        assert report.ids() == [expected[number % 11] for number in range(700)]


def test_matches_are_few_some_or_most_of_the_population() -> None:
    """The dictionary of the ids is made in one of three ways, by the number of rows and that of subscriptions."""
    broker = Broker()
    size, far = 3_000, 100_000
    for part in range(2):
        ids = [f"{part}-{number}" for number in range(size)]
        queries = [f"/r/a[. > {number if number % 100 else far}]" for number in range(size)]
        broker.register_many(pa.table({"id": ids, "query": queries}))
    for values in ([2], [150, 3], [2 * size], [far + 1, 1, 50], [0]):
        documents = [f"<r><a>{value}</a></r>".encode() for value in values]
        report = broker.match_batch(documents)
        expected = [
            sorted(f"{part}-{n}" for part in range(2) for n in range(size) if value > (n if n % 100 else far))
            for value in values
        ]
        assert report.ids() == expected
