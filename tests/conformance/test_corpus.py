"""The corpus: small cases by kind of fault, answered by every matcher and, where it follows the rules, by libxml2."""

from typing import Any

import pytest
from lxml import etree

from sardonyx import _core, errors
from tests import engine, libxml2
from tests.corpus_cases import Case, load

CASES = load()
CASE_COUNT = 110
ERRORS: dict[str, tuple[type[Exception], ...]] = {
    "not_well_formed": (errors.NotWellFormedError,),
    "encoding": (errors.EncodingError, errors.NotWellFormedError),
    "limit": (errors.LimitError,),
    "refused": (errors.DocumentError,),
}


def test_count() -> None:
    """Every file of the corpus was found and read."""
    assert len(CASES) == CASE_COUNT


@pytest.fixture(params=CASES, ids=[case.name for case in CASES])
def case(request: pytest.FixtureRequest) -> Case:
    """Each case in turn."""
    found: Case = request.param
    return found


def _index(case: Case) -> Any:
    return engine.index(list(case.matches), case.namespaces, limits=case.limits)


def _expected(case: Case, position: int) -> list[str]:
    return [query for query, signs in case.matches.items() if signs[position] == "+"]


def _failures(case: Case, matcher: str) -> list[str]:
    failures: list[str] = []
    index, queries = _index(case), list(case.matches)
    for position, payload in enumerate(case.accepted):
        found = [queries[int(subscription_id)] for subscription_id in index.match(payload, matcher=matcher)]
        wrong = set(found) ^ set(_expected(case, position))
        failures.extend(f"document {position}: {query}" for query in sorted(wrong))
    return failures


@pytest.mark.parametrize("matcher", engine.MATCHERS)
def test_matches(case: Case, matcher: str) -> None:
    """Each document satisfies exactly the queries that the case says."""
    assert _failures(case, matcher) == [], case.rule


def test_refused_documents(case: Case) -> None:
    """Documents that break a rule are refused with the right error, alone and beside others in a batch."""
    index = engine.index(["/*", "not(/*)"], limits=case.limits)
    wrong = []
    for position, (payload, error) in enumerate(zip(case.documents, case.errors, strict=True)):
        try:
            _core.Document.parse(payload, case.limits)
        except errors.DocumentError as raised:
            if error is None or not isinstance(raised, ERRORS[error]):
                wrong.append(f"document {position}: {type(raised).__name__}: {raised}")
        else:
            if error is not None:
                wrong.append(f"document {position}: accepted")
    assert wrong == [], case.rule
    found, failed = engine.match_batch(index, case.documents)
    assert sorted(failed) == [position for position, error in enumerate(case.errors) if error]
    assert [ids for ids, error in zip(found, case.errors, strict=True) if error is None] == [["0"]] * len(case.accepted)


@pytest.mark.parametrize("case", [case for case in CASES if case.nodes], ids=lambda case: case.name)
def test_nodes(case: Case) -> None:
    """The selected nodes, in document order."""
    queries = list(case.nodes)
    index = engine.index(queries, case.namespaces, limits=case.limits)
    for position, payload in enumerate(case.accepted):
        found = {queries[int(key)]: [node["value"] for node in nodes] for key, nodes in index.match_nodes(payload)}
        assert found == {query: values[position] for query, values in case.nodes.items() if values[position]}


@pytest.mark.parametrize("case", [case for case in CASES if case.refused], ids=lambda case: case.name)
def test_refused_queries(case: Case) -> None:
    """Registration refuses each with a position or reason of its own, and registers the good ones."""
    good = list(case.matches)
    # One of the queries is empty, which an id must not be.
    rows = [{"subscription_id": f"bad {q}", "query": q, "namespaces": case.namespaces} for q in case.refused]
    rows.extend({"subscription_id": f"good {q}", "query": q, "namespaces": case.namespaces} for q in good)
    index = _core.Index()
    refused = index.register(engine.table(rows))
    assert [(row, key) for row, key, _ in refused] == [(row, f"bad {q}") for row, q in enumerate(case.refused)]
    assert all(fields["message"] and fields["kind"] != "invalid_field" for _, _, fields in refused)
    assert len(index) == len(good)
    for position, payload in enumerate(case.accepted):
        assert set(index.match(payload)) == {f"good {query}" for query in _expected(case, position)}
    for query in case.refused:
        with pytest.raises(errors.SubscriptionError):
            _core.check(query, case.namespaces)


@pytest.mark.parametrize("case", [case for case in CASES if case.libxml2 is None], ids=lambda case: case.name)
def test_libxml2_agrees(case: Case) -> None:
    """The expected answers are libxml2's as well, unless the case says why not."""
    wrong = []
    for payload, error in zip(case.documents, case.errors, strict=True):
        if error is not None:
            with pytest.raises(etree.XMLSyntaxError):
                libxml2.parse(payload)
    for position, payload in enumerate(case.accepted):
        oracle = libxml2.Oracle(payload, case.namespaces)
        for query, signs in case.matches.items():
            if oracle.boolean(query) != (signs[position] == "+"):
                wrong.append(f"document {position}: {query}")
        for query, values in case.nodes.items():
            assert [node.value for node in oracle.nodes(query)] == values[position]
    assert wrong == [], case.rule
