"""Joins of pairs of documents, and documents for them: of two levels, of three levels, or items of feeds.

A query has two blocks over the same leaves, and equalities between them; the parameters are those of `JoinShape`.
Leaves are numbered in the order of the documents, and the first ones are preferred.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby

from sardonyx.errors import SettingsError
from sardonyx.workloads.draws import Draws
from sardonyx.workloads.query_generator import repeated
from sardonyx.workloads.shapes import FeedShape, JoinShape, TreeShape
from sardonyx.workloads.values import Values

__all__ = ["feed_items", "generate", "root_and_leaves", "trees"]

Leaf = tuple[str, ...]
"""The names on the way from the root, which is left out, to a leaf: one or two."""
Pairs = frozenset[tuple[int, int]]
"""The equalities of a query: numbers of a leaf of the left block and of one of the right block."""

_FEED_LEAVES: Sequence[Leaf] = (("link",), ("channel",), ("title",), ("timestamp",), ("description",))
_RECENT = 1_000
"""Items back to which an item may be repeated."""
_TRIES = 16
"""Draws of an equality until it is one that the query does not have yet."""
_START = datetime(2007, 1, 1, tzinfo=UTC)


def root_and_leaves(shape: TreeShape | FeedShape) -> tuple[str, Sequence[Leaf]]:
    """The root of documents of this shape, and their leaves in order."""
    return ("r", shape.names()) if isinstance(shape, TreeShape) else ("item", _FEED_LEAVES)


def trees(shape: TreeShape, draws: Draws) -> Iterator[bytes]:
    """Documents of two or three levels, without end.

    >>> print(next(trees(TreeShape(leaves=2), Draws(1, "example"))).decode())
    <r><l1>l1-10</l1><l2>l2-18</l2></r>
    >>> print(next(trees(TreeShape(middles=2, leaves=1), Draws(1, "example"))).decode())
    <r><m1><l1>l1-10</l1></m1><m2><l2>l2-18</l2></m2></r>
    """
    names = shape.names()
    content = ""
    for above, below in groupby(names, lambda leaf: leaf[:-1]):
        inner = "".join(f"<{leaf}>{leaf}-{{}}</{leaf}>" for *_, leaf in below)
        content += f"<{above[0]}>{inner}</{above[0]}>" if above else inner
    layout = f"<r>{content}</r>"
    while True:
        yield layout.format(*[draws.between(1, shape.values) for _ in names]).encode()


def feed_items(shape: FeedShape, values: Values, draws: Draws) -> Iterator[bytes]:
    """Items of feeds, without end, in the order of their time stamps. `values`: of titles and descriptions.

    >>> from sardonyx.workloads.shapes import DocumentShape
    >>> values = Values(DocumentShape(), {"title": ["News"], "description": ["More"]})
    >>> print(next(feed_items(FeedShape(), values, Draws(1, "example"))).decode())
    <item><link>http://channel183.example/1</link><channel>http://channel183.example/</channel><title>News</title>...
    """
    titles, prose = values.at("item", "title"), values.at("item", "description")
    recent: deque[tuple[str, str, str, str]] = deque(maxlen=_RECENT)
    now = _START
    number = 0
    while True:
        number += 1
        now += timedelta(seconds=draws.between(0, 2 * shape.seconds))
        channel = f"http://channel{draws.rank(shape.channels, shape.channel_skew) + 1}.example/"
        item = (f"{channel}{number}", channel, titles(draws), prose(draws))
        kind = draws.random()
        if recent and kind < 2 * shape.repeats:
            old = draws.pick(recent)
            item = old if kind < shape.repeats else (*item[:2], *old[2:])
        recent.append(item)
        link, channel, title, description = item
        yield (
            f"<item><link>{link}</link><channel>{channel}</channel><title>{title}</title>"
            f"<timestamp>{now:%Y-%m-%dT%H:%M:%SZ}</timestamp><description>{description}</description></item>"
        ).encode()


def generate(root: str, leaves: Sequence[Leaf], shape: JoinShape, draws: Draws) -> Iterator[str]:
    """Queries without end; raises `WorkloadError` when the leaves give no further one of this shape.

    >>> queries = generate("r", [("l1",), ("l2",)], JoinShape(value_joins=2), Draws(4, "example"))
    >>> print(next(queries))
    /r[l2->a2] FOLLOWED BY{a2 = b2, INF} /r[l2->b2]
    """
    if shape.value_joins > len(leaves) ** 2:
        raise SettingsError(
            f"value_joins is {shape.value_joins}; with {len(leaves)} leaves it must be at most {len(leaves) ** 2}"
        )

    def query() -> str:
        return _text(root, leaves, _pairs(len(leaves), shape, draws), shape, draws)

    return repeated(query, "joins", shape.distinct, "more leaves, more value joins or a window")


def _pairs(leaves: int, shape: JoinShape, draws: Draws) -> Pairs:
    """So many different equalities."""
    count = draws.between(shape.least_value_joins, shape.value_joins)
    chosen: set[tuple[int, int]] = set()
    while len(chosen) < count:
        for _ in range(_TRIES):
            left = draws.rank(leaves, shape.zipf)
            right = left if draws.chance(shape.same_name) else draws.rank(leaves, shape.zipf)
            if (left, right) not in chosen:
                break
        else:
            # With few leaves or much skew what is left is rare: the first of it is taken.
            left, right = next(
                (left, right) for left in range(leaves) for right in range(leaves) if (left, right) not in chosen
            )
        chosen.add((left, right))
    return frozenset(chosen)


def _text(root: str, leaves: Sequence[Leaf], pairs: Pairs, shape: JoinShape, draws: Draws) -> str:
    """The query with these equalities, in the language XSCL."""
    operator = "FOLLOWED BY" if draws.chance(shape.followed_by) else "JOIN"
    window = "INF" if shape.window is None else f"{draws.between(1, shape.window)} s"
    equalities = " AND ".join(f"a{left + 1} = b{right + 1}" for left, right in sorted(pairs))
    first = _block(root, leaves, "a", {left for left, _ in pairs})
    second = _block(root, leaves, "b", {right for _, right in pairs})
    return f"{first} {operator}{{{equalities}, {window}}} {second}"


def _block(root: str, leaves: Sequence[Leaf], prefix: str, used: Iterable[int]) -> str:
    """A pattern that binds these leaves; leaves with the same element above them share it."""
    text = f"/{root}"
    for above, group in groupby(sorted(used), lambda leaf: leaves[leaf][:-1]):
        bound = [f"{leaves[leaf][-1]}->{prefix}{leaf + 1}" for leaf in group]
        if not above:
            text += "".join(f"[{leaf}]" for leaf in bound)
        elif len(bound) == 1:
            text += f"[{above[0]}/{bound[0]}]"
        else:
            text += f"[{above[0]}{''.join(f'[{leaf}]' for leaf in bound)}]"
    return text
