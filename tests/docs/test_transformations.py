"""The examples of docs/transformations.md and docs/xquery.md do what the pages say."""

import doctest
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sardonyx import Broker, _core
from sardonyx.errors import DynamicError, SubscriptionError

DOCS = Path(__file__).parents[2] / "docs"


def section(heading: str) -> str:
    return (DOCS / "xquery.md").read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]


def rows(text: str, *columns: str) -> Iterator[list[str]]:
    """Cells of a page's tables, from those columns whose heads are given."""
    places: list[int] | None = None
    for line in text.splitlines():
        if not line.startswith("|"):
            places = None
        elif not line.startswith("|---"):
            cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            if places is None:
                places = [cells.index(name) for name in columns]
            else:
                yield [cells[place] for place in places]


def examples() -> Iterator[tuple[str, str, str]]:
    """Documents, queries and what they give."""
    ordinary = '<a k="1"><b>1</b><b>07</b><c>x</c><e/></a>'
    assert ordinary in section("Values of nodes")
    prefixed = '<q:a xmlns:q="urn:q"><b/></q:a>'
    assert prefixed in section("Namespaces")
    for heading in ("Values of nodes", "Numbers", "Constructed content", "Namespaces"):
        document = prefixed if heading == "Namespaces" else ordinary
        for example, gives in rows(section(heading), "example", "gives"):
            queries = example.strip("`").split("`, `")
            yield document, ", ".join(f"({query})" for query in queries) if queries[1:] else queries[0], gives


def test_pycon_examples() -> None:
    blocks = re.findall(r"```pycon\n(.*?)```", (DOCS / "transformations.md").read_text(), re.DOTALL)
    assert len(blocks) >= 6
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "transformations.md", None, 0)
    output: list[str] = []
    doctest.DocTestRunner().run(test, out=output.append)
    assert "".join(output) == ""


def test_tables_of_xquery_are_found() -> None:
    assert len(list(examples())) > 45


@pytest.mark.parametrize(("document", "query", "said"), list(examples()))
def test_what_queries_give(document: str, query: str, said: str) -> None:
    broker = Broker()
    broker.register("q", query, language="xquery", notify_empty=True)
    error = re.fullmatch(r"error `(\w+)`", said)
    if error is None:
        assert _core.evaluate_xquery(query, document) == said.strip("`")
        assert broker.transform(document) == {"q": said.strip("`")}
        return
    with pytest.raises(DynamicError, match=f"^{error[1]}: "):
        _core.evaluate_xquery(query, document)
    with pytest.raises(DynamicError, match=error[1]):
        broker.transform(document)


REFUSED = [
    *rows(section("Rules that are checked when a query is registered"), "kind of error", "example"),
    *(["`unsupported`", example] for (example,) in rows(section("What is not available"), "example")),
]


@pytest.mark.parametrize(("kind", "query"), [(kind.strip("`"), query.strip("`")) for kind, query in REFUSED])
def test_refusals(kind: str, query: str) -> None:
    with pytest.raises(SubscriptionError) as caught:
        Broker().register("q", query, language="xquery")
    assert caught.value.kind == kind


def test_functions_take_the_arguments_that_the_page_says() -> None:
    calls = re.findall(r"`([\w:-]+)\(([^)]*)\)`", section("Functions"))
    number = re.search(r"(\d+) functions", (DOCS / "xquery.md").read_text())
    assert number is not None
    assert len({name for name, _ in calls}) == len(calls) == int(number[1])
    for name, parameters in calls:
        given = [one for one in parameters.split(", ") if one and one != "..."]
        least = sum(not one.endswith("?") for one in given)
        for count in range(least, len(given) + 1):
            _register(f"count(//a/{name}({', '.join(['.'] * count)}))")
        for wrong in [least - 1, *([] if parameters.endswith("...") else [len(given) + 1])]:
            if wrong >= 0:
                with pytest.raises(SubscriptionError) as caught:
                    _register(f"{name}({', '.join(['1'] * wrong)})")
                assert caught.value.kind == "wrong_arguments"


def _register(query: str) -> None:
    Broker().register("q", query, language="xquery")
