"""Atomic predicates: comparisons with a value that hold, or do not hold, where they are wanted."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection

from sardonyx.workloads.draws import Draws
from sardonyx.workloads.samples import Fact, Pool, is_number

__all__ = ["literal", "refuted", "satisfied"]

_TRIES = 8


def literal(text: str) -> str:
    """A text as an XPath literal; it must not hold both kinds of quotes.

    >>> print(literal("plain"), literal('say "so"'))
    "plain" 'say "so"'
    """
    return f'"{text}"' if '"' not in text else f"'{text}'"


def satisfied(subject: str, fact: Fact, equality: float, draws: Draws) -> str:
    """A comparison of `subject` (an XPath) that holds where it selects the fact."""
    value, pool = fact.value, fact.pool
    if equality >= 1.0 or draws.chance(equality):
        return f"{subject}={literal(value)}"
    if is_number(value):
        numbers, texts = pool.numbers()
        match draws.pick(("<", "<=", ">", ">=", "!=")):
            case "<" | "<=" as sign:
                first = bisect_right(numbers, float(value)) if sign == "<" else bisect_left(numbers, float(value))
                if first < len(texts):
                    return f"{subject}{sign}{texts[draws.between(first, len(texts) - 1)]}"
                return f"{subject}<={value}"
            case ">" | ">=" as sign:
                end = bisect_left(numbers, float(value)) if sign == ">" else bisect_right(numbers, float(value))
                if end > 0:
                    return f"{subject}{sign}{texts[draws.below(end)]}"
                return f"{subject}>={value}"
            case _:
                other = draws.below(len(texts))
                if numbers[other] != float(value):
                    return f"{subject}!={texts[other]}"
                return f"{subject}={literal(value)}"
    if draws.chance(0.5):
        return _contains(subject, draws.pick(value.split()))
    other_text = _any(pool, draws)
    return f"{subject}={literal(value)}" if other_text == value else f"{subject}!={literal(other_text)}"


def refuted(subject: str, fact: Fact, present: Collection[str], equality: float, draws: Draws) -> str | None:
    """A comparison of `subject` that holds for none of the values `present`, or None where none was found."""
    for _ in range(_TRIES):
        constant = _any(fact.pool, draws)
        if draws.chance(equality):
            if constant not in present:
                return f"{subject}={literal(constant)}"
        elif is_number(constant):
            if not all(map(is_number, present)):
                continue
            values, bound = [float(value) for value in present], float(constant)
            match draws.pick(("<", "<=", ">", ">=")):
                case "<" if min(values) >= bound:
                    return f"{subject}<{constant}"
                case "<=" if min(values) > bound:
                    return f"{subject}<={constant}"
                case ">" if max(values) <= bound:
                    return f"{subject}>{constant}"
                case ">=" if max(values) < bound:
                    return f"{subject}>={constant}"
        else:
            word = draws.pick(constant.split())
            if not any(word in value for value in present):
                return _contains(subject, word)
    return None


def _contains(subject: str, word: str) -> str:
    """A test for a part of a text: `contains` looks at the first node of a path only, so it goes into brackets."""
    if subject == "text()" or subject.startswith("@"):
        return f"contains({subject},{literal(word)})"
    return f"{subject}[contains(.,{literal(word)})]"


def _any(pool: Pool, draws: Draws) -> str:
    return draws.pick(pool.texts)
