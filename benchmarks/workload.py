"""Queries for the benchmarks, drawn from sample documents so that every condition is true somewhere.

Parameters follow the literature (Diao et al., TODS 2003, section 6): `descendant` is the chance that a step is reached
by `//`, `wildcard` that its name is `*`, `predicates` the number of value predicates of a query.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lxml import etree

__all__ = ["TwoPredicates", "generate"]


@dataclass(frozen=True, slots=True)
class TwoPredicates:
    """What the queries look like."""

    count: int
    predicates: int = 2
    descendant: float = 0.2
    wildcard: float = 0.1
    seed: int = 1


def _chain(element: etree._Element) -> list[etree._Element]:
    chain = [element]
    while (parent := chain[-1].getparent()) is not None:
        chain.append(parent)
    return chain[::-1]


def _query(chain: Sequence[etree._Element], options: TwoPredicates, draw: random.Random) -> str | None:
    able = [number for number, element in enumerate(chain) if element.attrib or (element.text or "").strip()]
    if len(able) < 1:
        return None
    places = [draw.choice(able) for _ in range(options.predicates)]
    steps = []
    gap = False
    for number, element in enumerate(chain):
        last = number == len(chain) - 1
        if number not in places and not last and draw.random() < options.descendant:
            gap = True  # leave this step out: `//` reaches over it
            continue
        name = "*" if number not in places and draw.random() < options.wildcard else str(element.tag)
        conditions = []
        for _ in range(places.count(number)):
            choices = [f'@{key}="{value}"' for key, value in element.attrib.items() if '"' not in value]
            text = (element.text or "").strip()
            if text and len(element) == 0 and '"' not in text and len(text) < 40:
                choices.append(f'text()="{text}"')
            if not choices:
                return None
            conditions.append(draw.choice(choices))
        steps.append(("//" if gap else "/") + name + "".join(f"[{condition}]" for condition in conditions))
        gap = False
    return "".join(steps)


def generate(documents: Sequence[bytes], options: TwoPredicates) -> Iterator[str]:
    """Distinct queries, each with its value predicates drawn from one element chain of one document."""
    draw = random.Random(options.seed)
    chains = [
        _chain(element)
        for document in documents
        for element in etree.fromstring(document).iter()
        if isinstance(element.tag, str)
    ]
    seen: set[str] = set()
    attempts = 0
    while len(seen) < options.count:
        attempts += 1
        if attempts > 200 * options.count:
            raise ValueError(f"the documents give only {len(seen)} distinct queries of this kind")
        query = _query(draw.choice(chains), options, draw)
        if query is not None and query not in seen:
            seen.add(query)
            yield query
