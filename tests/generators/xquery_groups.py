"""Groups of documents with their vocabulary: several documents per query, so that Saxon compiles each query once."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.generators.pick import Pick, RandomPick
from tests.generators.xquery import Brokering, Query
from tests.generators.xquery_documents import BIB_DTD, BOOK_DTD, NAMESPACES, Vocabulary, bib, book, namespaced
from tests.generators.xquery_wide import Wide
from tests.shared_data import DATA

DOCUMENTS = 8
NITF = DATA / "yfilter-1.0"
SMALL = 4_000  # bytes of a NITF document that random queries are evaluated on


@dataclass(frozen=True)
class Group:
    """Documents of one kind; `dtd` is what their elements follow (news has attribute values that it does not list)."""

    name: str
    payloads: tuple[bytes, ...]
    vocabulary: Vocabulary
    dtd: str | None = None

    def brokering(self, seed: int) -> Query:
        """A query as message brokers have them."""
        return Brokering(RandomPick(seed), self.vocabulary).query()

    def wide(self, seed: int) -> Query:
        """A query that may use everything."""
        return Wide(RandomPick(seed), self.vocabulary).query()

    def query(self, seed: int) -> Query:
        """A query of one or the other kind."""
        return self.wide(seed) if seed % 2 else self.brokering(seed)


def _made(make: Callable[[Pick, bool], bytes], seed: int, dtd: str | None = None) -> Group:
    payloads = tuple(make(RandomPick(seed * 1_000 + at), seed % 4 != 3) for at in range(DOCUMENTS))
    namespaces = NAMESPACES if make is namespaced else None
    return Group(make.__name__, payloads, Vocabulary.of(payloads, namespaces), dtd)


def nitf(seed: int) -> Group:
    """News items of the YFilter suite, mostly small ones."""
    paths = sorted((NITF / "docs-500").glob("*.xml"))
    payloads = [found for path in paths if len(found := path.read_bytes()) < SMALL]
    start = seed * DOCUMENTS % (len(payloads) - DOCUMENTS)
    chosen = tuple(payloads[start : start + DOCUMENTS])
    dtd = (NITF / "nitf-2-5.dtd").read_text(encoding="latin-1")
    return Group("nitf", chosen, Vocabulary.of(chosen), dtd)


def groups(seed: int, rounds: int) -> Iterator[Group]:
    """Groups of every kind, one after the other; news only where the shared data is."""
    for at in range(seed, seed + rounds):
        yield _made(bib, at, BIB_DTD)
        yield _made(book, at, BOOK_DTD)
        yield _made(namespaced, at)
        if NITF.is_dir():
            yield nitf(at)
