"""Subscription populations as an index meets them: many rows that differ only in constants, and some that fit no index."""

from dataclasses import dataclass

from tests.generators.documents import VALUES
from tests.generators.expressions import NAMESPACES, Expressions, literal
from tests.generators.pick import Pick
from tests.generators.syntax import Expression, Token

# {n} element name, {m} another, {t} attribute name, {s} string literal, {u} another, {i} number, {j} another
FORMS = (
    "//{n}[@{t}={s}]", "/{n}/{m}[@{t}={s}]", "//{n}[{m}={s}]", "/{n}[{m}={s}]/{m}", "//{n}[@{t}={i}]", "//{n}[{m}>{i}]",
    "//{n}[@{t}<{i}]", "//{n}[@{t}>={i} and @{t}<{j}]", "//{n}[{i}<=@{t}]", "//{n}[{i}>{m}]", "//{n}[contains(@{t},{s})]",
    "//{n}[contains({m},{s})]", "//{n}[starts-with(@{t},{s})]", "//{n}[starts-with(.,{s})]", "//{n}[.={s}]",
    "//{n}[text()={s}]", "//{n}[{m}/text()={s}]", "/{n}/{m}={s}", "{s}=//{n}/@{t}", "//{n}[@{t}={s} and {m}={u}]",
    "//{n}[@{t}={s}][{m}={u}]", "//{n}[@{t}={s}]/{m}[@{t}={u}]", "//{n}[@{t}={s}]//{m}[.={u}]", "//*[@{t}={s}]",
    "/*/*[@*={s}]", "//@{t}[.={s}]", "//{n}/@{t}", "//{n}//{m}", "/{n}/*/{m}", "//{n}/*//@{t}", "/*/{n}//{m}/@*", "//{n}",
    "/{n}", "//{n}[{m}]", "//{n}[{m}/{n}]/{m}", "//{n}[@{t}={s} or @{t}={u}]", "//{n}[{m}={s} or @{t}={i}]",
    "//{n}[not(@{t}={s})]", "not(//{n}[@{t}={s}])", "not(//{n})", "//{n}[@{t}!={s}]", "//{n}[{m}!={i}]", "count(//{n})>{i}",
    "count(//{n}[@{t}={s}])={i}", "string(//{n})={s}", "normalize-space(//{n})={s}", "number(//{n}/@{t})={i}",
    "string-length(//{n}/@{t})={i}", "//p:{n}[@{t}={s}]", "//p:{n}[@p:{t}={s}]", "//p:*/{n}[.={s}]", "//{n}[2]",
    "//{n}[{i}]", "//{n}[position()=2][@{t}={s}]", "//{n}[last()][{m}={s}]", "//{n}[@{t}={s} and @{t}={s}]",
    "//{n}={s} and //{m}={u}", "//{n}={s} or //{m}={u}", "//{n}/@{t}={s} and not(//{m}={u})", "//{n}[../@{t}={s}]",
    "//{n}[following-sibling::{m}={s}]", "//{n}[ancestor::{m}[@{t}={s}]]", "//{n}/parent::*[@{t}={s}]", "(//{n})[2]={s}",
    "(//{n}|//{m})[@{t}={s}]", "//{n}[@{t}={s}]|//{m}[@{t}={u}]", "//comment()[.={s}]", "//{n}[{m}={s}]/@{t}>{i}",
    "//{n}/{m}=//{m}/@{t}", "//{n}[{m}=../@{t}]", "//{n}[sum({m})>{i}]", "//{n}[translate(@{t},{s},{u})={u}]",
    "boolean(//{n}[@{t}={s}])", "//{n}[boolean(@{t}={s})]", "//{n}[true()]", "//{n}[@{t}={s}=true()]",
    "//{n}[concat(@{t},{s})={u}]", "//{n}[substring(@{t},1,1)={s}]", "//{n}[lang({s})]", "//{n}[@{t}][@{t}={s}]",
    "//{n}[@{t}*2={i}]", "//{n}[@{t}+1>{i}]", "//{n}[-@{t}<{i}]", "/{n}[{m}[@{t}={s}]]", "//{n}[.//{m}={s}]",
    "//{n}[*={s}]", "//{n}[*/@{t}={s}]", "/descendant::{n}[@{t}={s}]", "/{n}/descendant-or-self::{m}[@{t}={s}]",
    "//{n}[string(@{t})={s}]", "//{n}[@{t}='']", "//{n}[string(@{t})='']", "//{n}[not({m})]", "//{n}[starts-with(@{t},'')]",
    "/", "true()", "false()", "{s}", "{i}", "/*", "//node()", "//text()[.={s}]", "//processing-instruction()={s}",
    "//{n}[name()={s}]", "//*[local-name()={s}]", "//*[namespace-uri()='urn:1'][@{t}={s}]", "{n}/{m}={s}", ".//{n}[@{t}={s}]",
)  # fmt: skip
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
