"""Columns: many rows of one form, judged together, against the naive matcher."""

import random

from sardonyx import Broker
from tests.property.profiles import PROFILE, SEED

FORMS = (
    '/r/s[k="{key}" and p>={low} and p<={high} and v>{value}]',
    '/r/s[k="{key}" and @c!="{other}" and v<{value}]',
    "//s[n={number} and p<{high} and v>={low}]",
    '/r[s/k="{key}" and s/p>={low} and s/v<={high}]',
    '/r/s[k="{key}"][p>{low}][v!={value}]',
    # Nothing but constants that fit in half the bytes.
    '/r/s[k="{key}" and @c!="{other}" and p<={high}]',
)
ROWS = 600
"""Of each form: enough for zones, over few enough keys that a posting has many rows."""


def _queries(pick: random.Random) -> list[str]:
    def one(form: str) -> str:
        low = pick.randint(0, 60)
        return form.format(
            key=pick.choice("AB"),
            other=pick.choice("xyz"),
            number=pick.randint(0, 2),
            low=low,
            high=low + pick.randint(0, 50),
            value=pick.choice((pick.randint(0, 100), pick.random() * 100)),
        )

    return [one(form) for form in FORMS for _ in range(ROWS)]


def _document(pick: random.Random) -> str:
    """None to four anchors; values may be missing, there more than once, or no numbers."""

    def element(name: str) -> str:
        value = pick.choice((pick.randint(0, 100), round(pick.random() * 100, 3), "NaN", ""))
        return f"<{name}>{value}</{name}>"

    def anchor() -> str:
        keys = "".join(f"<k>{pick.choice('AABC')}</k>" for _ in range(pick.choice((0, 1, 1, 1, 2))))
        values = "".join(element(name) for name in "ppvv" if pick.random() < 0.7)
        return f'<s c="{pick.choice("xyw")}">{keys}<n>{pick.randint(0, 3)}</n>{values}</s>'

    return f"<r>{''.join(anchor() for _ in range(pick.choice((0, 1, 1, 2, 3, 4))))}</r>"


def test_columns_judge_as_the_exact_evaluator() -> None:
    """One anchor and several, with and without zones, in one segment and in two."""
    matched = {1: 0, 2: 0}
    for round_ in range(PROFILE.populations):
        pick = random.Random(SEED * 1_000_003 + round_)
        queries = _queries(pick)
        fast, naive = Broker(matcher="inverted"), Broker(matcher="naive")
        half = len(queries) // 2 if round_ % 2 else len(queries)
        pick.shuffle(queries)
        rows = [(str(number), query) for number, query in enumerate(queries)]
        for part in (rows[:half], rows[half:]):
            fast.register_many(part)
        naive.register_many(rows)
        documents = [_document(pick) for _ in range(12)]
        found = fast.match_batch(documents).ids()
        for document, own, expected in zip(documents, found, naive.match_batch(documents).ids(), strict=True):
            differ = sorted(set(own) ^ set(expected))
            assert not differ, f"{queries[int(differ[0])]} on {document}"
            matched[min(2, document.count("<s "))] = matched.get(min(2, document.count("<s ")), 0) + len(own)
        assert fast.stats()["columnar_rows"] > 0
    assert matched[1] > 0, "nothing matched with one anchor"
    assert matched[2] > 0, "nothing matched with several anchors"
