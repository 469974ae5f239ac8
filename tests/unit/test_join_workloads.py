"""Workloads of joins: documents and queries have the form and the shares that their parameters say."""

from __future__ import annotations

import itertools
import re
import sys
from collections import Counter
from pathlib import Path

import pytest
from lxml import etree

from sardonyx.errors import SettingsError, WorkloadError
from sardonyx.workloads import DocumentShape, FeedShape, JoinShape, TreeShape, documents, joins, load
from sardonyx.workloads.files import write

JOIN_SETS = ["join-flat", "join-complex", "join-feeds"]
FORM = re.compile(r"(\S+) (FOLLOWED BY|JOIN)\{(.+), (INF|\d+ s)\} (\S+)")


def parts(query: str) -> tuple[str, str, list[tuple[int, int]], str, str]:
    """Left block, operator, equalities as numbers of leaves, window and right block."""
    form = FORM.fullmatch(query)
    assert form is not None, query
    left, operator, equalities, window, right = form.groups()
    pairs = re.findall(r"a(\d+) = b(\d+)", equalities)
    assert equalities.count("=") == len(pairs)
    return left, operator, [(int(a), int(b)) for a, b in pairs], window, right


class TestDocuments:
    def test_two_levels(self) -> None:
        for document in documents("join-flat", TreeShape(leaves=4, values=3), 50):
            root = etree.fromstring(document)
            assert [child.tag for child in root] == ["l1", "l2", "l3", "l4"]
            assert all(child.text in {f"{child.tag}-{value}" for value in (1, 2, 3)} for child in root)
        assert len(set(documents("join-flat", TreeShape(values=1), 20))) == 1

    def test_three_levels(self) -> None:
        root = etree.fromstring(next(documents("join-complex")))
        assert [child.tag for child in root] == ["m1", "m2", "m3", "m4"]
        assert [leaf.tag for leaf in root.iterfind("*/*")] == [f"l{number}" for number in range(1, 17)]

    def test_items_of_feeds(self) -> None:
        items = [etree.fromstring(item) for item in documents("join-feeds", count=4_000)]
        assert {tuple(leaf.tag for leaf in item) for item in items} == {
            ("link", "channel", "title", "timestamp", "description")
        }
        columns = {name: [item.findtext(name) for item in items] for name in ("link", "channel", "title", "timestamp")}
        assert columns["timestamp"] == sorted(columns["timestamp"])  # type: ignore[type-var]
        assert 0.97 < len(set(columns["title"])) / 4_000 < 0.99
        assert 0.98 < len(set(columns["link"])) / 4_000 < 1
        channels = Counter(columns["channel"])
        assert 300 < len(channels) <= 418
        assert channels.most_common(1)[0][1] > 10 * channels.most_common(50)[-1][1]
        assert all(item.findtext("link", "").startswith(item.findtext("channel", "?")) for item in items)

    def test_items_without_repeats(self) -> None:
        items = list(documents("join-feeds", FeedShape(repeats=0, channels=3, seconds=0), 500))
        assert len({etree.fromstring(item).findtext("link") for item in items}) == 500
        assert len({etree.fromstring(item).findtext("timestamp") for item in items}) == 1

    @pytest.mark.parametrize("name", JOIN_SETS)
    def test_no_extra_is_needed(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "lxml", None)
        workload = load(name, documents=2, subscriptions=2)
        assert (len(list(workload.documents)), len(list(workload.subscriptions))) == (2, 2)


class TestQueries:
    @pytest.mark.parametrize("name", JOIN_SETS)
    def test_blocks_bind_exactly_what_is_compared(self, name: str) -> None:
        workload = load(name, documents=1, subscriptions=300)
        document = etree.fromstring(next(iter(workload.documents)))
        order = [node.tag for node in document.iter() if not len(node)]
        for query in workload.subscriptions:
            left, _, pairs, window, right = parts(query)
            assert window == "INF"
            assert len(set(pairs)) == len(pairs) >= 1
            for block, prefix, used in ((left, "a", {a for a, _ in pairs}), (right, "b", {b for _, b in pairs})):
                bound = re.findall(rf"(\w+)->{prefix}(\d+)", block)
                assert [int(number) for _, number in bound] == sorted(used)
                assert all(order[int(number) - 1] == leaf for leaf, number in bound)
                # As plain XPath the block holds in a document of the set.
                assert document.getroottree().xpath(re.sub(r"->\w+", "", block))

    def test_leaves_below_one_element_share_it(self) -> None:
        shape = JoinShape(value_joins=3, least_value_joins=3)
        blocks = [block for query in joins("join-complex", shape, 300) for block in parts(query)[::4]]
        for block in blocks:
            middles = re.findall(r"m\d", block)
            assert len(set(middles)) == len(middles)
        assert any(re.search(r"\[m\d\[l\d+->a\d+\]\[l\d+", block) for block in blocks)

    @pytest.mark.parametrize(("least", "most"), [(1, 1), (1, 4), (3, 3)])
    def test_the_number_of_equalities(self, least: int, most: int) -> None:
        shape = JoinShape(least_value_joins=least, value_joins=most)
        counts = Counter(len(parts(query)[2]) for query in joins("join-flat", shape, 800))
        assert sorted(counts) == list(range(least, most + 1))
        assert min(counts.values()) > 0.8 * 800 / len(counts)

    def test_leaves_after_zipf(self) -> None:
        def share(zipf: float) -> float:
            shape = JoinShape(zipf=zipf, value_joins=1, same_name=0)
            made = [parts(query)[2][0] for query in joins("join-flat", shape, 2_000)]
            return sum(left == 1 for left, _ in made) / len(made)

        assert share(0) == pytest.approx(1 / 6, abs=0.03)
        assert share(1.6) == pytest.approx(1 / sum(rank**-1.6 for rank in range(1, 7)), abs=0.03)

    def test_names(self) -> None:
        def share(same_name: float) -> float:
            pairs = [
                pair
                for query in joins("join-complex", JoinShape(same_name=same_name, value_joins=2), 800)
                for pair in parts(query)[2]
            ]
            return sum(left == right for left, right in pairs) / len(pairs)

        assert share(1) == 1
        assert 0.5 < share(0.5) < 0.65
        assert share(0) < 0.15

    def test_operators_and_windows(self) -> None:
        shape = JoinShape(followed_by=0.25, window=9)
        made = [parts(query) for query in joins("join-flat", shape, 1_000)]
        assert 0.2 < sum(operator == "FOLLOWED BY" for _, operator, *_ in made) / 1_000 < 0.3
        assert {window for *_, window, _ in made} == {f"{seconds} s" for seconds in range(1, 10)}
        assert {operator for _, operator, *_ in map(parts, joins("join-flat", count=100))} == {"FOLLOWED BY"}

    def test_every_pair_of_leaves_can_be_asked_for(self) -> None:
        workload = load(
            "join-flat", subscriptions=5, document_shape={"leaves": 2},
            query_shape={"value_joins": 4, "least_value_joins": 4, "zipf": 9, "same_name": 1},
        )  # fmt: skip
        assert {tuple(parts(query)[2]) for query in workload.subscriptions} == {((1, 1), (1, 2), (2, 1), (2, 2))}

    def test_distinct(self) -> None:
        shape = JoinShape(value_joins=1, distinct=True)
        assert len(set(joins("join-feeds", shape, 25))) == 25
        with pytest.raises(WorkloadError, match="only 25 distinct joins of this shape; try more leaves"):
            list(joins("join-feeds", shape, 26))


class TestSets:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"dtd": "a.dtd"}, "takes no dtd"),
            ({"samples": [b"<r/>"]}, "takes no samples"),
            ({"records": 3}, "takes no records"),
            ({"kind": "flwr"}, "it has joins, windows"),
            ({"document_shape": {"doc_depth": 3}}, "unknown parameter 'doc_depth'"),
            ({"document_shape": {"leaves": 0}}, "leaves is 0"),
            ({"query_shape": {"value_joins": 0}}, "value_joins is 0"),
            ({"query_shape": {"value_joins": 3, "least_value_joins": 4}}, "least_value_joins is 4"),
            ({"query_shape": {"window": 0}}, "window is 0"),
            ({"query_shape": {"distinct": 1}}, "distinct is 1"),
        ],
    )
    def test_what_does_not_apply_is_said(self, options: dict[str, object], words: str) -> None:
        with pytest.raises(SettingsError, match=words):
            load("join-flat", **options)  # type: ignore[arg-type]

    def test_too_many_equalities(self) -> None:
        with pytest.raises(SettingsError, match="with 5 leaves it must be at most 25"):
            next(joins("join-feeds", JoinShape(value_joins=26)))

    def test_shapes_of_other_sets(self) -> None:
        with pytest.raises(SettingsError, match="TreeShape or a FeedShape"):
            next(documents("join-flat", DocumentShape()))
        with pytest.raises(SettingsError, match="of a DocumentShape"):
            next(documents("bib", TreeShape()))
        with pytest.raises(SettingsError, match="'bib' has no joins"):
            joins("bib")

    def test_they_are_written_with_their_language(self, tmp_path: Path) -> None:
        workload = load("join-flat", documents=3, subscriptions=4)
        done = write(workload, tmp_path / "new")
        assert done.subscriptions.suffix == ".jsonl"
        assert done.subscriptions.read_text().count('"language": "xscl"') == 4
        with pytest.raises(SettingsError, match="the queries are xscl, and txt holds XPath"):
            write(workload, tmp_path / "other", "xml", "txt")

    def test_they_are_made_one_at_a_time(self) -> None:
        workload = load("join-feeds", documents=10**12, subscriptions=10**12)
        assert len(list(itertools.islice(workload.documents, 3))) == 3
        assert len(list(itertools.islice(workload.subscriptions, 3))) == 3
