"""Subscription populations as an index meets them: rows that differ only in constants, and some that fit no index."""

from dataclasses import dataclass
from pathlib import Path

from tests.generators.documents import VALUES
from tests.generators.expressions import NAMESPACES, Expressions, literal
from tests.generators.pick import Pick
from tests.generators.syntax import Expression, Token

_LINES = (Path(__file__).parent / "forms.txt").read_text(encoding="utf-8").splitlines()
FORMS = tuple(line for line in _LINES if not line.startswith("#"))
ELEMENTS = ("a", "b", "c", "d")
ATTRIBUTES = ("a", "b", "c", "k")
NUMBERS = ("7", "0", "1", "2", "10", "-1", "7.5", "-0")
REFUSED = (
    "//a[",
    "/zz:a",
    "//a[@k=]",
    "foo(1)",
    "//*:a",
    "1e3 +",
    "",
    "a b",
    "$x",
    "//a[position(1)]",
    "for $x in //a return $x",
)


@dataclass(frozen=True)
class Subscription:
    """One row of a registration batch."""

    subscription_id: str
    query: Expression
    stream: str | None = None
    ignore_namespaces: bool = False
    refused: bool = False


def form(pick: Pick) -> Expression:
    """One of the forms with drawn names and constants."""
    numbers = sorted((pick.of(NUMBERS), pick.of(NUMBERS)), key=float)
    text = pick.of(FORMS).format(
        n=pick.of(ELEMENTS),
        m=pick.of(ELEMENTS),
        t=pick.of(ATTRIBUTES),
        s=literal(pick.of(VALUES)).text(),
        u=literal(pick.of(VALUES)).text(),
        i=numbers[0],
        j=numbers[1],
    )
    return Token("boolean", text)


def query(pick: Pick) -> Expression:
    """Mostly a form, sometimes any expression."""
    return Expressions(pick).any(2) if pick.chance(20) else form(pick)


def subscription(pick: Pick, ids: int) -> Subscription:
    """A subscription with one of `ids` ids; a few are not XPath."""
    subscription_id = f"s{pick.below(ids)}"
    if pick.chance(5):
        return Subscription(subscription_id, Token("boolean", pick.of(REFUSED)), refused=True)
    stream = pick.of(("S", "T")) if pick.chance(15) else None
    return Subscription(subscription_id, query(pick), stream, pick.chance(5))


__all__ = ["NAMESPACES", "Subscription", "form", "query", "subscription"]
