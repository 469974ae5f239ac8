"""The shared cases, distilled from public complaints: each by both matchers, scenarios step by step."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from sardonyx import _core, errors
from tests import engine
from tests.corpus_cases import payload
from tests.shared_data import CASES, needs_cases

pytestmark = needs_cases

KINDS = {
    "namespaces": 6, "text": 6, "comparison": 6, "axes": 6, "encoding": 2, "characters": 2, "dtd": 1, "security": 1,
    "limits": 2, "well-formedness": 3, "stored-queries": 5, "feeds": 1,
}  # fmt: skip
REFUSALS = {
    "not-well-formed": (errors.NotWellFormedError, errors.EncodingError),
    "limit": (errors.LimitError,),
}
SCENARIOS = {"sub-delete", "sub-replace", "sub-now-evaluated-late", "sub-overlapping-same-owner", "ns-bad-subscription"}

# What a case allows besides its expected answer, where Sardonyx took that way: (case, document) to the error.
ALTERNATIVES = {("lim-deep-nesting", 0): "limit", ("lim-deep-nesting", 1): "limit"}


def _cases() -> list[dict[str, Any]]:
    if not CASES.is_file():
        return []
    return [case for case in json.loads(CASES.read_text(encoding="utf-8")) if case["kind"] in KINDS]


def _case(name: str) -> dict[str, Any]:
    return next(case for case in _cases() if case["id"] == name)


def _index(case: dict[str, Any]) -> Any:
    """The case's XPath subscriptions under their positions."""
    rows = [
        {"subscription_id": str(at), "query": entry["text"], "namespaces": entry["namespaces"]}
        for at, entry in enumerate(case["subscriptions"])
        if entry["lang"] == "xpath"
    ]
    index = _core.Index()
    assert index.register(engine.table(rows)) == []
    return index


def test_count() -> None:
    """All cases of these kinds were found; the other kinds are not XPath alone and are tested elsewhere."""
    assert Counter(case["kind"] for case in _cases()) == KINDS


@pytest.mark.parametrize("matcher", engine.MATCHERS)
@pytest.mark.parametrize(
    "case", [case for case in _cases() if case["id"] not in SCENARIOS], ids=lambda case: str(case["id"])
)
def test_case(case: dict[str, Any], matcher: Any) -> None:
    """Every document of the case, with a good one after each to see that nothing is left over."""
    index = _index(case)
    good = _core.Index()
    good.register(engine.table([{"subscription_id": "g", "query": "/good"}]))
    assert len(case["expected"]["per_document"]) == len(case["documents"])
    for position, (entry, expected) in enumerate(zip(case["documents"], case["expected"]["per_document"], strict=True)):
        document = payload(entry)
        error = ALTERNATIVES.get((case["id"], position)) or expected.get("error")
        if error is not None:
            with pytest.raises(REFUSALS[error]):
                index.match(document, matcher=matcher)
        else:
            wanted = [
                str(at)
                for at, result in enumerate(expected["results"])
                if result is True and case["subscriptions"][at]["lang"] == "xpath"
            ]
            assert index.match(document, matcher=matcher) == sorted(wanted), (
                f"document {position}: {case['expected']['rule']}"
            )
        assert good.match(b"<good/>", matcher=matcher) == ["g"]


def test_bad_subscriptions() -> None:
    """Each bad one is refused with a reason; the good one matches both documents; nesting does not crash."""
    case = _case("ns-bad-subscription")
    texts = [entry["text"] for entry in case["subscriptions"] if entry["lang"] == "xpath"]
    texts.append("(" * 5000 + "1" + ")" * 5000)
    index = _core.Index()
    refused = index.register(engine.table({"subscription_id": str(at), "query": q} for at, q in enumerate(texts)))
    outcomes = ["error" if at in {row for row, _, _ in refused} else "ok" for at in range(len(texts))]
    assert outcomes == case["expected"]["per_document"][0]["registration"]
    for document in case["documents"]:
        assert index.match(payload(document)) == ["3"]


def test_deeply_nested_subscriptions() -> None:
    """Any shape of nesting is an error or an answer, never a crash."""
    depth = 20_000
    shapes = [
        "(" * depth + "1" + ")" * depth,
        "//a[" * depth + "1" + "]" * depth,
        "not(" * depth + "1" + ")" * depth,
        "-" * depth + "1",
        "/a" * depth,
        "1" + "+1" * depth,
        "//a" + " or //a" * depth,
        "//a" + "|//a" * depth,
        "//a" + "[1]" * depth,
        "(//a)" + "[1]" * depth,
        "concat('x'" + ",'x'" * depth + ")",
        "a" * depth,
        "'" + "x" * depth + "'",
        "1" * depth,
    ]
    index = _core.Index()
    index.register(engine.table({"subscription_id": str(at), "query": text} for at, text in enumerate(shapes)))
    found = index.match(b"<a><a/></a>")
    assert found == index.match(b"<a><a/></a>", matcher="naive")
    assert {"12"} <= set(found), "a long literal is harmless"


def test_delete(tmp_path: Path) -> None:
    """Deleting one of three equal ones leaves the other two, also after a restart."""
    case = _case("sub-delete")
    document = payload(case["documents"][0])
    rows = [{"subscription_id": str(at), "query": s["text"]} for at, s in enumerate(case["subscriptions"], 1)]
    index = _core.Index()
    index.register(engine.table(rows))
    seen: list[list[Any]] = [[1, [int(key) for key in index.match(document)]]]
    assert index.unregister(["2"]) == []
    seen.append([3, [int(key) for key in index.match(document)]])
    index.save(str(tmp_path / "saved"))
    index = _core.Index.load(str(tmp_path / "saved"))
    seen.append([4, [int(key) for key in index.match(document)]])
    index.unregister(["1"])
    seen.append([5, [int(key) for key in index.match(document)]])
    assert seen == case["expected"]["deliveries"]
    index.compact()
    assert index.match(document) == ["3"]


def test_replace() -> None:
    """One version of an id is active at any moment, within a batch the last one."""
    case = _case("sub-replace")
    documents = [payload(document) for document in case["documents"]]
    first, second = (entry["text"] for entry in case["subscriptions"])
    index = _core.Index()

    def put(*texts: str) -> None:
        assert index.register(engine.table({"subscription_id": "S", "query": text} for text in texts)) == []

    put(first)
    seen = [[1, index.match(documents[0])]]
    put(second)
    seen.append([2, index.match(documents[0])])
    seen.append([3, index.match(documents[1])])
    seen.append([4, index.match(documents[2])])
    index.unregister(["S"])
    put(first)
    seen.append([5, index.match(documents[0])])
    assert seen == case["expected"]["deliveries"]
    put(first, second, first, second)
    assert (index.match(documents[0]), index.match(documents[1])) == ([], ["S"])
    assert len(index) == 1


def test_overlapping() -> None:
    """One entry per (document, subscription), the selected nodes inside it in document order."""
    case = _case("sub-overlapping-same-owner")
    rows = [{"subscription_id": str(at), "query": s["text"]} for at, s in enumerate(case["subscriptions"], 1)]
    index = _core.Index()
    index.register(engine.table(rows))
    document = payload(case["documents"][0])
    assert [[1, [int(key) for key in index.match(document)]]] == case["expected"]["deliveries"]
    assert [[node["path"] for node in nodes] for _, nodes in index.match_nodes(document)] == [
        ["/r/a[1]", "/r/a[2]", "/r/a[3]"]
    ] * 2


def test_clock_functions_are_no_filters() -> None:
    """XPath 1.0 has no clock: the query of `sub-now-evaluated-late` is refused as a filter, not frozen."""
    text = _case("sub-now-evaluated-late")["subscriptions"][0]["text"]
    with pytest.raises(errors.SubscriptionError):
        _core.check(text)
