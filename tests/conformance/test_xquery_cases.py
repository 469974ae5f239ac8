"""Transformations by example: the corpus, and the shared cases that hold XQuery; each is Saxon's answer as well."""

import contextlib
import json
from collections.abc import Mapping
from typing import Any

import pytest

from sardonyx import errors
from tests import engine, saxon, xquery_cases
from tests.corpus_cases import payload
from tests.engine import Outcome
from tests.shared_data import CASES as SHARED
from tests.shared_data import needs_cases
from tests.xquery_cases import STATIC, Case

CASES = xquery_cases.load()
CASE_COUNT = 70
RESULT_COUNT = 606

# Shared cases with XQuery in them, and how many queries; the last two are not for one document without a clock.
SHARED_QUERIES = {
    "axis-union-order": 2, "xq-untyped-comparison": 4, "xq-order-by-untyped": 4, "xq-content-spacing": 7,
    "ns-qname-in-content": 1, "sub-now-evaluated-late": 1,
}  # fmt: skip
OTHER_FUNCTIONS = {"ns-qname-in-content", "sub-now-evaluated-late"}


def _outcome(query: str, document: str | bytes, namespaces: Mapping[str, str] | None = None) -> Outcome:
    """What the engine says; a refused query is the error "refused"."""
    try:
        return engine.evaluate(query, document, namespaces)
    except errors.SubscriptionError as raised:
        return Outcome(error="refused", message=str(raised))


def _agree(outcome: Outcome, text: str | None, error: str | None, scopes: bool) -> bool:
    if text is not None:
        return outcome.text is not None and saxon.same(outcome.text, text, scopes)
    assert error is not None
    if outcome.error == "refused":
        return True  # also what could only ever fail may be refused at once
    return outcome.error == error and not error.startswith(STATIC)


def _wrong(case: Case, oracle: bool) -> list[str]:
    wrong = []
    for query in case.results:
        text, error = case.expected(query)
        if oracle:
            outcome = saxon.run(query, case.document, case.namespaces)
            right = outcome.error == error if error else _agree(outcome, text, error, bool(case.scopes))
        else:
            outcome = _outcome(query, case.document, case.namespaces)
            right = _agree(outcome, text, error, bool(case.scopes))
        if not right:
            wrong.append(f"{query}\n  expected {text if error is None else error!r}\n  found {outcome}")
    return wrong


def test_count() -> None:
    """The corpus was found and read."""
    assert len(CASES) == CASE_COUNT
    assert sum(len(case.results) for case in CASES) == RESULT_COUNT


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_saxon_agrees(case: Case) -> None:
    """Every expectation is Saxon's answer."""
    assert _wrong(case, oracle=True) == [], case.rule


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: Case) -> None:
    """Every query gives what the case says."""
    assert _wrong(case, oracle=False) == [], case.rule


@pytest.mark.parametrize("strategy", engine.STRATEGIES)
def test_corpus_registered_together(strategy: str) -> None:
    """The whole corpus as one population: every document gives each query its own result, whatever runs beside it."""
    rows, expected = [], {}
    for number, case in enumerate(CASES):
        for at, query in enumerate(case.results):
            text, error = case.expected(query)
            key = f"{number:03}-{at:03}"
            if error is None:
                expected[key] = text
                rows.append(
                    {"subscription_id": key, "query": query, "namespaces": case.namespaces, "notify_empty": True}
                )
    subject = engine.transformations(rows, strategy=strategy)
    wrong = []
    for number, case in enumerate(CASES):
        found = dict(engine.transformed(subject, case.document.encode())[0])
        for key, text in expected.items():
            if key.startswith(f"{number:03}-") and not saxon.same(found.get(key, "absent"), text or ""):
                wrong.append((case.name, list(case.results)[int(key[4:])], text, found.get(key)))
    assert wrong == []


def _shared() -> list[dict[str, Any]]:
    """The shared cases with at least one subscription in XQuery."""
    if not SHARED.is_file():
        return []
    cases = json.loads(SHARED.read_text(encoding="utf-8"))
    return [case for case in cases if any(entry["lang"] == "xquery" for entry in case["subscriptions"])]


def _expectations(case: dict[str, Any]) -> list[tuple[dict[str, Any], bytes, str]]:
    return [
        (entry, payload(document), expected["results"][at])
        for document, expected in zip(case["documents"], case["expected"]["per_document"], strict=True)
        for at, entry in enumerate(case["subscriptions"])
        if entry["lang"] == "xquery"
    ]


@needs_cases
def test_shared_count() -> None:
    """All shared cases with XQuery were found."""
    found = {case["id"]: sum(entry["lang"] == "xquery" for entry in case["subscriptions"]) for case in _shared()}
    assert found == SHARED_QUERIES


@needs_cases
@pytest.mark.parametrize(
    "case", [case for case in _shared() if case["id"] not in OTHER_FUNCTIONS], ids=lambda c: c["id"]
)
@pytest.mark.parametrize("evaluate", [saxon.run, _outcome], ids=["saxon", "engine"])
def test_shared_case(case: dict[str, Any], evaluate: Any) -> None:
    """The results that the case says, from Saxon and from the engine."""
    for entry, document, expected in _expectations(case):
        outcome = evaluate(entry["text"], document, entry["namespaces"])
        assert outcome.text is not None, (entry["text"], outcome)
        assert saxon.same(outcome.text, expected), entry["text"]


@needs_cases
def test_shared_refusals() -> None:
    """What needs a clock or other functions is refused with a reason, not answered wrongly."""
    for case in _shared():
        if case["id"] in OTHER_FUNCTIONS:
            for entry in case["subscriptions"]:
                if entry["lang"] == "xquery":
                    with pytest.raises(errors.SubscriptionError):
                        engine.evaluate(entry["text"], b"<r/>", entry["namespaces"])


OTHER_FEATURES = (
    'for $a in doc("a.xml")//x, $b in doc("b.xml")//x where $a = $b return $a',
    "doc(//a)",
    'collection("c")',
    "declare function local:f() { 1 }; local:f()",
    "declare variable $x := 1; $x",
    'import module namespace m = "urn:m"; 1',
    "<a><b/></a>/b",
    "let $a := <a><b/></a> return $a/b",
    "for $x as xs:integer in 1 return $x",
    "1 instance of xs:integer",
    "'1' cast as xs:integer",
    "typeswitch (1) case xs:integer return 1 default return 2",
    "validate { /r }",
    "element { name(/*) } { 1 }",
    "//a/namespace::*",
    "for $a in //a group by $k := $a/@k return $k",
    "//a ! name(.)",
    "'a' || 'b'",
    "current-dateTime()",
    "matches('a', 'b')",
    "xs:date('2000-01-01')",
    "for $a in //a order by $a collation 'urn:c' return $a",
)


@pytest.mark.parametrize("query", OTHER_FEATURES)
def test_other_features_are_refused(query: str) -> None:
    """XQuery beyond the language of transformations is refused as that, with the feature named, not misread."""
    with pytest.raises(errors.UnsupportedError) as raised:
        engine.evaluate(query, b"<r><a/></r>")
    assert raised.value.message
    subject = engine.transformations()
    refused = subject.register(engine.transformation_table([{"subscription_id": "x", "query": query}]))
    assert [(row, key, fields["kind"]) for row, key, fields in refused] == [(0, "x", raised.value.kind)]


DEEP = 20_000
NESTED = (
    "(" * DEEP + "1" + ")" * DEEP,
    "<a>" * DEEP + "</a>" * DEEP,
    "<a>{" * DEEP + "1" + "}</a>" * DEEP,
    "element a {" * DEEP + "}" * DEEP,
    "for $a in //a return " * DEEP + "1",
    "let $a := //a return " * DEEP + "1",
    "some $a in //a satisfies " * DEEP + "1",
    "if (1) then " * DEEP + "1" + " else 2" * DEEP,
    "//a[" * DEEP + "1" + "]" * DEEP,
    "//a" + "[1]" * DEEP,
    "/a" * DEEP,
    "a/(" * DEEP + "b" + ")" * DEEP,
    "-" * DEEP + "1",
    "1" + "+1" * DEEP,
    "1" + ",1" * DEEP,
    "//a" + "|//a" * DEEP,
    "//a" + " or //a" * DEEP,
    "not(" * DEEP + "1" + ")" * DEEP,
    "(:" * DEEP + ":)" * DEEP + "1",
    "'" + "x" * DEEP + "'",
    "<a" + " " * DEEP + "/>",
    "<a " + " ".join(f"k{at}='{at}'" for at in range(DEEP)) + "/>",
)


@pytest.mark.parametrize("query", NESTED, ids=lambda query: query[:12])
def test_deep_or_long_queries(query: str) -> None:
    """Any shape of nesting is an error or an answer, never a crash, alone and registered."""
    document = b"<a><a/></a>"
    try:
        alone = engine.evaluate(query, document).text
    except errors.SardonyxError:
        alone = None
    for strategy in engine.STRATEGIES:
        subject = engine.transformations([{"subscription_id": "ok", "query": "<o/>"}], strategy=strategy)
        subject.register(engine.transformation_table([{"subscription_id": "deep", "query": query}]))
        found = dict(engine.transformed(subject, document)[0])
        assert found.pop("ok") == "<o/>"
        assert found.get("deep") == (alone or None)


_DOUBLED = [f"$v{at + 1} := {{0}}($v{at}, $v{at})" for at in range(50)]
COSTLY = (
    "count(for $a in //*, $b in //*, $c in //*, $d in //* return 1)",
    "<o>{for $a in //*, $b in //*, $c in //* return <p>{$a, $b, $c}</p>}</o>",
    "some $a in //*, $b in //*, $c in //*, $d in //* satisfies $a = 'nowhere'",
    "count((1 to 1000000000)[. mod 2 = 0])",
    "sum(for $a in 1 to 100000 return count(1 to 100000))",
    f"let $v0 := 'xxxxxxxx', {', '.join(_DOUBLED).format('concat')} return string-length($v50)",
    f"let $v0 := //*, {', '.join(_DOUBLED).format('')} return count($v50)",
    "//*[count(//*[count(//*[count(//*) > count(preceding::*)]) > 1]) > 5]",
)


@pytest.mark.slow
@pytest.mark.parametrize("query", COSTLY, ids=lambda query: query[:24])
@pytest.mark.timeout(60)
def test_costly_queries(query: str) -> None:
    """What would take ages or all memory is an error of its own, or answered by a short cut, and disturbs no other."""
    document = b"<r>" + b"<x k='1'>y</x>" * 600 + b"</r>"
    with contextlib.suppress(errors.EvaluationError):
        engine.evaluate(query, document)
    subject = engine.transformations([{"subscription_id": "ok", "query": "<o>{count(//x)}</o>"}])
    subject.register(engine.transformation_table([{"subscription_id": "costly", "query": query}]))
    assert dict(engine.transformed(subject, document)[0])["ok"] == "<o>600</o>"
