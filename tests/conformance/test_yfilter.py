"""The YFilter 1.0 regression suite: every query against every answered document, and the recorded answer nodes."""

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from tests import engine
from tests.shared_data import DATA, needs_data

pytestmark = needs_data

SUITE = DATA / "yfilter-1.0"
QUERY_COUNTS = {"simple_paths": 200, "simple_predicates": 1000, "nested_paths": 1000}
DOCUMENT_COUNT = 100


@cache
def documents() -> list[Path]:
    """The answered documents; the K-th in lexicographic order belongs to `outputK.txt`."""
    return sorted((SUITE / "docs-100").iterdir(), key=lambda path: path.name)


@cache
def queries(group: str) -> list[str]:
    """The queries of a group; query n is number n - 1 here."""
    return (SUITE / group / "queries.txt").read_text().splitlines()


def answers(group: str, position: int) -> dict[int, str]:
    """Query number (from 0) to the recorded answer elements, of the document at `position` (from 0)."""
    text = (SUITE / group / "expected" / f"output{position + 1}.txt").read_text()
    blocks = re.split(r"^Q(\d+):\n", text, flags=re.MULTILINE)[1:]
    return {int(number) - 1: block for number, block in zip(blocks[::2], blocks[1::2], strict=True)}


def shape(element: Any) -> tuple[Any, ...]:
    """An element without the white space around its children, as the answer files write it."""
    texts = [element.text, *(child.tail for child in element)]
    children = tuple(shape(child) for child in element if isinstance(child.tag, str))
    return (element.tag, dict(element.attrib), tuple((text or "").strip() for text in texts), children)


@pytest.mark.parametrize("matcher", engine.MATCHERS)
@pytest.mark.parametrize("group", sorted(QUERY_COUNTS))
def test_every_pair(group: str, matcher: str) -> None:
    """Which queries match which document is what YFilter answered, for every pair."""
    assert len(queries(group)) == QUERY_COUNTS[group]
    assert len(documents()) == DOCUMENT_COUNT
    index = engine.index(queries(group))
    pairs = 0
    for position, path in enumerate(documents()):
        found = {int(subscription_id) for subscription_id in index.match(path.read_bytes(), matcher=matcher)}
        assert found == set(answers(group, position)), path.name
        pairs += len(queries(group))
    assert pairs == QUERY_COUNTS[group] * DOCUMENT_COUNT


@pytest.mark.parametrize("group", sorted(QUERY_COUNTS))
def test_answer_nodes(group: str) -> None:
    """The nodes that a match selected are the recorded elements, in document order."""
    index = engine.index(queries(group))
    compared = 0
    for position, path in enumerate(documents()):
        tree: Any = etree.parse(str(path))
        recorded = answers(group, position)
        found = index.match_nodes(path.read_bytes(), node_limit=100_000)
        assert sorted(int(subscription_id) for subscription_id, _ in found) == sorted(recorded)
        for subscription_id, nodes in found:
            elements = [tree.xpath(node["path"]) for node in nodes]
            assert all(len(hits) == 1 for hits in elements), "a path names one node"
            expected = etree.fromstring(f"<answers>{recorded[int(subscription_id)]}</answers>")
            assert [shape(hits[0]) for hits in elements] == [shape(element) for element in expected]
            assert [node["value"] for node in nodes] == [hits[0].xpath("string()") for hits in elements]
            assert [node["line"] for node in nodes] == [hits[0].sourceline for hits in elements]
            compared += 1
    assert compared > 1000
