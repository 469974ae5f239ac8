"""Batches, threads, nodes and sharing: other ways to the same answers."""

import threading
from typing import Any

import pyarrow as pa
import pytest

from sardonyx import _core
from tests import engine, libxml2
from tests.generators import documents, populations
from tests.generators.expressions import NAMESPACES
from tests.generators.pick import RandomPick
from tests.generators.syntax import Expression
from tests.property.profiles import PROFILE, SEED

BROKEN = (b"<a>", b"", b"<a/><b/>", b"\xff", b"<p:a/>", None)


def _queries(pick: RandomPick, count: int) -> list[Expression]:
    return [populations.query(pick) for _ in range(count)]


@pytest.mark.parametrize("matcher", engine.MATCHERS)
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_batch_is_one_by_one(matcher: str, threads: int) -> None:
    """A batch answers as its documents do one by one; bad and missing ones are errors of their own."""
    for round_ in range(max(2, PROFILE.populations // 10)):
        pick = RandomPick(SEED + round_)
        index = engine.index([query.text() for query in _queries(pick, 80)], NAMESPACES)
        payloads: list[bytes | None] = []
        for _ in range(30):
            payloads.append(pick.of(BROKEN) if pick.chance(20) else documents.generate(pick, 15).payload)
        found, failed = engine.match_batch(index, payloads, threads=threads, matcher=matcher)
        for position, payload in enumerate(payloads):
            if payload in BROKEN:
                assert found[position] == []
                assert failed[position]["kind"] == "missing_payload" if payload is None else failed[position]["kind"]
                assert failed[position]["message"]
            else:
                assert position not in failed
                assert sorted(found[position]) == index.match(payload, matcher=matcher)


def test_batch_of_text_and_streams() -> None:
    """String documents and one stream per document."""
    rows = [
        {"subscription_id": "any", "query": "//a"},
        {"subscription_id": "s", "query": "//a", "stream": "S"},
        {"subscription_id": "t", "query": "//a", "stream": "T"},
    ]
    index = _core.Index()
    assert index.register(engine.table(rows)) == []
    payloads = pa.array(["<a/>", "<b><a/></b>", "<b/>"], pa.string())
    matches, errors = index.match_batch(payloads, pa.array(["S", "T", "S"], pa.string()))
    batch = pa.record_batch(matches)
    pairs = list(zip(batch.column("document").to_pylist(), batch.column("subscription_id").to_pylist(), strict=True))
    assert pairs == [(0, "any"), (0, "s"), (1, "any"), (1, "t")]
    assert pa.record_batch(errors).num_rows == 0
    assert index.match("<a/>", stream="S") == ["any", "s"]
    assert index.match("<a/>", stream="U") == ["any"]


def test_empty_batch_and_sliced_array() -> None:
    """No documents, and a slice of a longer array."""
    index = engine.index(["//a", "//b"])
    assert engine.match_batch(index, []) == ([], {})
    payloads = pa.array([b"<b/>", b"<a/>", None, b"<b/>"], pa.binary()).slice(1, 2)
    matches, errors = index.match_batch(payloads)
    assert pa.record_batch(matches).column("document").to_pylist() == [0]
    assert pa.record_batch(matches).column("subscription_id").to_pylist() == ["0"]
    assert pa.record_batch(errors).column("document").to_pylist() == [1]
    large, _ = index.match_batch(pa.array([b"<a/>"], pa.large_binary()))
    assert pa.record_batch(large).num_rows == 1


def test_threads_share_an_index() -> None:
    """Several threads match while another registers: each answer is that of some generation."""
    index = engine.index(["//a"])
    stop = threading.Event()
    wrong: list[Any] = []

    def read() -> None:
        while not stop.is_set():
            found = index.match(b"<a/>")
            if found not in (["0"], ["0", "extra"]):
                wrong.append(found)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for _ in range(50):
        index.register(engine.table([{"subscription_id": "extra", "query": "//a"}]))
        index.compact()
        index.unregister(["extra"])
    stop.set()
    for reader in readers:
        reader.join()
    assert wrong == []


def test_nodes_are_libxml2s() -> None:
    """The nodes of a match are libxml2's, in document order, each named by a path that leads to it."""
    compared = 0
    for round_ in range(PROFILE.populations * 2):
        pick = RandomPick(SEED + 7_000 + round_)
        document = documents.generate(pick)
        queries = [q for q in _queries(pick, 40) if not libxml2.deviates(q, document.text)]
        index = engine.index([query.text() for query in queries], NAMESPACES)
        oracle = libxml2.Oracle(libxml2.mapped(document.text).encode(document.encoding), NAMESPACES)
        found = index.match_nodes(document.payload)
        assert [key for key, _ in found] == index.match(document.payload)
        for key, nodes in found:
            text = libxml2.mapped(queries[int(key)].text())
            value = oracle.value(text)
            if not isinstance(value, list):
                assert nodes == [], text
                continue
            if "namespace" in text:
                continue
            listed = nodes[1:] if oracle.selects_document(text) else nodes
            expected = oracle.nodes(text)
            where = f"{text} on {document.text}"
            assert [libxml2.mapped(node["value"]) for node in listed] == [node.value for node in expected], where
            if "xmlns" not in document.text:  # where a path needs no prefixes
                for node, other in list(zip(listed, expected, strict=True))[:20]:
                    assert [hit.place for hit in oracle.nodes(node["path"])] == [other.place], (
                        f"{node['path']}: {where}"
                    )
            if "\n  " in document.text:
                continue  # libxml2 gives the line where a start tag ends, the contract is where it begins
            lines = [(node["line"], other.line) for node, other in zip(listed, expected, strict=True)]
            assert all(line == other for line, other in lines if other is not None), where
            compared += len(listed)
    assert compared > 100


def test_node_limit() -> None:
    """At most `node_limit` nodes, the first ones in document order."""
    index = engine.index(["//a"])
    payload = b"<r>" + b"".join(b"<a>%d</a>" % i for i in range(10)) + b"</r>"
    [(key, nodes)] = index.match_nodes(payload, node_limit=3)
    assert key == "0"
    assert [node["value"] for node in nodes] == ["0", "1", "2"]


def test_duplicates_share_a_row() -> None:
    """Equal subscriptions are stored once and still answer each under its own id."""
    rows = [{"subscription_id": f"d{i}", "query": "//a[@k='1']"} for i in range(500)]
    rows.extend({"subscription_id": f"e{i}", "query": f"//a[@k='{i}']"} for i in range(500))
    index = _core.Index()
    assert index.register(engine.table(rows)) == []
    index.compact()
    stats = index.stats()
    assert stats["subscriptions"] == 1000
    assert stats["rows"] == 500, "the duplicates and e1 are one row"
    assert stats["signatures"] == 1
    assert index.match(b"<a k='1'/>") == sorted([*(f"d{i}" for i in range(500)), "e1"])
    index.unregister(["d7", "e1"])
    assert index.match(b"<a k='1'/>") == sorted(f"d{i}" for i in range(500) if i != 7)


def test_same_condition_in_other_words_is_one_signature() -> None:
    """White space, quotes and abbreviations are no difference."""
    same = ["//a[@k='1']", '// a [ @k = "1" ]', "/descendant-or-self::node()/child::a[attribute::k='1']"]
    index = engine.index(same)
    assert index.stats()["rows"] == 1
    assert len({_core.check(text) for text in same}) == 1


def test_canonical_text_means_the_same() -> None:
    """The canonical text of an expression is one itself, a fixed point, and has the same value everywhere."""
    for round_ in range(PROFILE.populations):
        pick = RandomPick(SEED + 90_000 + round_)
        parsed = _core.Document.parse(documents.generate(pick).payload)
        for query in _queries(pick, 40):
            canonical = _core.check(query.text(), NAMESPACES)
            assert _core.check(canonical, NAMESPACES) == canonical
            assert repr(parsed.evaluate(canonical, NAMESPACES)) == repr(parsed.evaluate(query.text(), NAMESPACES))
