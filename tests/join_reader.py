"""Reads correct XSCL into structures, so that cases written as text can be put to the definition of joins.

It is for the texts of tests: it finds no errors, and of a constructor it takes only the variables that it uses.
"""

import re
from collections.abc import Mapping
from decimal import Decimal

from tests.join_queries import Block, Content, Element, Equality, Operand, Operator, Pattern, Query, Step
from tests.join_text import UNITS_US

NAME = r"[^\W\d](?:[\w.]|-(?!>))*"
TEST = rf"(?:[a-z-]+::)?(?:@?(?:{NAME}:)?(?:{NAME}(?![\w(])|\*)|(?:text|node|comment)\(\))"
BINDS = re.compile(r"->|\b(?:AS|as)\s")
WORDS = ("and", "or", "div", "mod")


def read(text: str, namespaces: Mapping[str, str] | None = None) -> Query:
    """The structure of a query."""
    return _Reader(text, dict(namespaces or {})).query()


def window_us(text: str) -> int | None:
    """A window in microseconds."""
    if text == "INF":
        return None
    if text.startswith("P"):
        parts = re.fullmatch(r"P(?:([\d.]+)W)?(?:([\d.]+)D)?(?:T(?:([\d.]+)H)?(?:([\d.]+)M)?(?:([\d.]+)S)?)?", text)
        assert parts, text
        units = (7 * UNITS_US["d"], UNITS_US["d"], UNITS_US["h"], UNITS_US["min"], UNITS_US["s"])
        return sum(int(Decimal(part) * unit) for part, unit in zip(parts.groups(), units, strict=True) if part)
    parts = re.fullmatch(r"([\d.]+)\s*([a-z]*)", text)
    assert parts, text
    return int(Decimal(parts[1]) * UNITS_US[parts[2] or "s"])


class _Reader:
    def __init__(self, text: str, namespaces: dict[str, str]) -> None:
        self.text = re.sub(r"\(:.*?:\)", lambda found: " " * len(found[0]), text, flags=re.DOTALL)
        self.namespaces = namespaces
        self.at = 0

    # --- tokens

    def find(self, pattern: str) -> str | None:
        """What matches at this place, after white space, which is then passed."""
        found = re.compile(rf"\s*({pattern})").match(self.text, self.at)
        if found is None:
            return None
        self.at = found.end()
        return found[1]

    def word(self, word: str) -> bool:
        return self.find(rf"(?:{word.upper()}|{word.lower()})(?![\w.\-/])") is not None

    def need(self, pattern: str) -> str:
        found = self.find(pattern)
        assert found is not None, f"{pattern} at {self.text[self.at :]!r}"
        return found

    def up_to(self, end: str) -> str:
        """The text up to a closing bracket, which is passed too."""
        depth, start, quote = 0, self.at, ""
        while depth or quote or self.text[self.at] != end:
            sign = self.text[self.at]
            if quote:
                quote = "" if sign == quote else quote
            elif sign in "'\"":
                quote = sign
            elif sign in "[({":
                depth += 1
            elif sign in "])}":
                depth -= 1
            self.at += 1
        self.at += 1
        return self.text[start : self.at - 1]

    # --- the grammar

    def query(self) -> Query:
        select = None
        if self.word("select") and self.find(r"\*") is None:
            constructor = re.compile(r"(.*>)\s*(?=(?:FROM|from)\b)", re.DOTALL).match(self.text, self.at)
            assert constructor, self.text
            used = sorted(set(re.findall(rf"\$({NAME})", constructor[1])))
            inner = set(re.findall(rf"(?:for|let)\s+\$({NAME})", constructor[1]))
            select = Element("r", content=tuple(Content("string", name) for name in used if name not in inner))
            self.at = constructor.end()
        self.word("from")
        blocks, operators = [self.block()], []
        while kind := ("JOIN" if self.word("join") else "FOLLOWED BY" if self.word("followed") else ""):
            if kind != "JOIN":
                assert self.word("by"), self.text
            operators.append(self.operator(kind))
            blocks.append(self.block())
        publish = self.stream() if self.word("publish") else None
        assert not self.text[self.at :].strip(), self.text[self.at :]
        return Query(tuple(blocks), tuple(operators), select, publish, self.namespaces)

    def stream(self) -> str | None:
        found = self.find(rf"\"[^\"]*\"|'[^']*'|{NAME}")
        return found.strip("\"'") if found else None

    def block(self) -> Block:
        return Block(self.stream(), self.path("//?"))

    def path(self, separator: str) -> tuple[Step, ...]:
        steps = []
        found: str | None = self.need(separator)
        while found is not None:
            steps.append(self.step("//" if found.endswith("//") else "/"))
            found = self.find("//?")
        return tuple(steps)

    def step(self, separator: str) -> Step:
        test = self.need(TEST).replace("attribute::", "@").replace("child::", "")
        variable: str | None = None
        predicates: list[tuple[Pattern | str, ...]] = []
        while True:
            if self.find("->") is not None or self.word("as"):
                variable = self.need(NAME)
            elif self.find(r"\[") is not None:
                predicates.append(self.predicate(self.up_to("]")))
            else:
                return Step(separator, test, tuple(predicates), variable)

    def predicate(self, text: str) -> tuple[Pattern | str, ...]:
        if not BINDS.search(text):
            return (self.plain(text),)
        return tuple(
            Pattern(_Reader(part, self.namespaces).path(r"\.//?|(?=[^/.])")) if BINDS.search(part) else self.plain(part)
            for part in _conjuncts(text)
        )

    def plain(self, text: str) -> str:
        """A condition with "~" before the names to which a default namespace applies."""
        if "" not in self.namespaces:
            return text.strip()

        def marked(found: re.Match[str]) -> str:
            return found[0] if found[0].startswith(("'", '"')) or found[0] in WORDS else f"~{found[0]}"

        pattern = rf"'[^']*'|\"[^\"]*\"|(?<![@:\w.\-]){NAME}(?![\w.\-]*\s*(?:\(|:))"
        return re.sub(pattern, marked, text.strip())

    def operator(self, kind: str) -> Operator:
        self.need(r"\{")
        equalities, window = self.up_to("}").rsplit(",", 1)
        made = tuple(self.equality(part) for part in _conjuncts(equalities))
        return Operator(kind, made, window_us(window.strip()))

    def equality(self, text: str) -> Equality:
        reader = _Reader(text, self.namespaces)
        left = reader.operand()
        reader.need("=")
        return Equality(left, reader.operand())

    def operand(self) -> Operand:
        normals = []
        while normal := self.find(r"(?:normalize-space|lower-case)\s*\("):
            normals.append(normal.rstrip("( "))
        variable = self.need(rf"\$?{NAME}").removeprefix("$")
        path = self.path("//?") if self.text[self.at : self.at + 1] == "/" else ()
        for _ in normals:
            self.need(r"\)")
        return Operand(variable, path, tuple(normals))


def _conjuncts(text: str) -> list[str]:
    """The parts between `and` outside of brackets and quotes."""
    parts, start, depth, quote = [], 0, 0, ""
    for at, sign in enumerate(text):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"":
            quote = sign
        elif sign in "[(":
            depth += 1
        elif sign in "])":
            depth -= 1
        elif depth == 0 and re.match(r"\s(?:and|AND)\s", text[at:]):
            parts.append(text[start:at])
            start = at + 5
    return [*parts, text[start:]]
