"""All matchers against the naive one, over populations that change in every way an index can change."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sardonyx import _core
from tests import engine, libxml2, strategies
from tests.generators import documents, populations
from tests.generators.documents import Document
from tests.generators.expressions import NAMESPACES
from tests.generators.pick import Pick, RandomPick
from tests.generators.populations import Subscription
from tests.property.profiles import PROFILE, SEED, property_settings

STREAMS = (None, "S", "T", "U")


class Population:
    """An index beside a plain model of what it has to hold."""

    def __init__(self, folder: Path) -> None:
        """`folder` is for saved indexes."""
        self.index: Any = _core.Index(xpush={"store_bytes": 0})
        self.live: dict[str, Subscription] = {}
        self._folder = folder

    def register(self, batch: list[Subscription], as_stream: bool) -> None:
        """Register a batch; the last of several rows with one id wins, refused rows leave the id as it was."""
        rows = [
            {
                "subscription_id": row.subscription_id,
                "query": row.query.text(),
                "namespaces": NAMESPACES,
                "stream": row.stream,
                "ignore_namespaces": row.ignore_namespaces,
            }
            for row in batch
        ]
        before = self.index.generation
        refused = self.index.register(engine.table(rows, as_stream))
        expected = [(at, row.subscription_id) for at, row in enumerate(batch) if row.refused]
        assert [(at, key) for at, key, _ in refused] == expected, refused
        accepted = [row for row in batch if not row.refused]
        self.live.update({row.subscription_id: row for row in accepted})
        if accepted:
            assert self.index.generation == before + 1, "one batch is one generation"

    def unregister(self, ids: list[str]) -> None:
        """Remove ids; the unknown ones come back."""
        before = self.index.generation
        missing = self.index.unregister(ids)
        assert sorted(set(missing)) == sorted(set(ids) - set(self.live))
        known = set(ids) & set(self.live)
        for subscription_id in known:
            del self.live[subscription_id]
        if known:
            assert self.index.generation == before + 1

    def compact(self) -> None:
        """Merge segments: no answer changes."""
        before = self.index.generation
        self.index.compact()
        assert self.index.generation >= before

    def reopen(self, verify: bool) -> None:
        """Save and load: the file is the population."""
        path = str(self._folder / "population.index")
        digest = self.index.save(path)
        assert digest == self.index.save(str(self._folder / "again.index")), "saving is deterministic"
        self.index = _core.Index.load(path, verify=verify)
        assert self.index.content_hash == digest

    def step(self, pick: Pick, ids: int, batch: int) -> None:
        """One random change."""
        choice = pick.below(10)
        if choice < 6:
            size = 1 + pick.below(batch)
            self.register([populations.subscription(pick, ids) for _ in range(size)], pick.chance(50))
        elif choice < 8:
            self.unregister(sorted({f"s{pick.below(ids + 2)}" for _ in range(1 + pick.below(max(1, batch // 3)))}))
        elif choice == 8:
            self.compact()
        else:
            self.reopen(pick.chance(50))

    def check_contents(self) -> None:
        """Length, membership and ids are the model's."""
        import pyarrow as pa

        assert len(self.index) == len(self.live)
        assert sorted(pa.array(self.index.ids()).to_pylist()) == sorted(self.live)
        for subscription_id in list(self.live)[:5]:
            assert subscription_id in self.index
            assert self.index.get(subscription_id)["stream"] == self.live[subscription_id].stream
        assert "none" not in self.index
        assert self.index.get("none") is None

    def check(self, document: Document, stream: str | None) -> int:
        """All matchers give the model's answer; returns how many subscriptions matched."""
        naive = self.index.match(document.payload, stream=stream, matcher="naive")
        where = f"on {document.text} (stream {stream})"
        for matcher in ("xpush", "inverted"):
            found = self.index.match(document.payload, stream=stream, matcher=matcher)
            for subscription_id in sorted(set(found) ^ set(naive)):
                verb = "misses" if subscription_id in naive else "wrongly matches"
                pytest.fail(f"{matcher} {verb} {self.live[subscription_id].query.text()} {where}")
            assert found == naive, f"order {where}"
        assert found == sorted(set(found)), "ids are sorted and occur once"
        oracle = libxml2.Oracle(libxml2.mapped(document.text).encode(document.encoding), NAMESPACES)
        for subscription_id, row in self.live.items():
            if row.ignore_namespaces or libxml2.deviates(row.query, document.text):
                continue
            if row.stream is not None and stream is None:
                continue
            expected = row.stream in (None, stream) and oracle.boolean(libxml2.mapped(row.query.text()))
            assert (subscription_id in found) == expected, f"{row.query.text()} {where}"
        return len(found)


@property_settings
@given(st.lists(strategies.subscriptions(), max_size=12), strategies.documents())
def test_small_populations(batch: list[Subscription], document: Document) -> None:
    """A population registered at once."""
    population = Population(Path())
    population.register(batch, as_stream=False)
    population.check(document, None)
    population.check(document, "S")


@pytest.mark.parametrize("ids", [8, 60, 400])
def test_changing_populations(ids: int, tmp_path: Path) -> None:
    """Random orders of register, replace, unregister, compact and save + load; every answer after every change."""
    matched = 0
    for round_ in range(PROFILE.populations):
        pick = RandomPick(SEED * 1_000_003 + round_ * 1000 + ids)
        population = Population(tmp_path)
        messages = [documents.generate(pick) for _ in range(3)]
        for _ in range(8):
            population.step(pick, ids, batch=max(2, ids // 3))
            population.check_contents()
            for message in messages:
                matched += population.check(message, pick.of(STREAMS))
    assert matched > 0


def test_stable_generation_while_reading(tmp_path: Path) -> None:
    """Matching changes nothing, and a saved generation does not follow later changes."""
    population = Population(tmp_path)
    pick = RandomPick(SEED)
    population.register([Subscription("a", populations.form(pick)), Subscription("b", populations.form(pick))], False)
    path = str(tmp_path / "one.index")
    population.index.save(path)
    population.unregister(["a"])
    message = documents.generate(pick)
    generation = population.index.generation
    for _ in range(3):
        population.check(message, None)
    assert population.index.generation == generation
    older = _core.Index.load(path)
    assert len(older) == 2
    assert len(population.index) == 1
