"""Random documents: small alphabets, so that names and values collide, and every node kind of the XPath data model."""

from dataclasses import dataclass, field
from xml.sax.saxutils import escape

from tests.generators.pick import Pick

NAMES = (*("a",) * 5, *("b",) * 5, *("c",) * 4, "d", "d", "div", "or", "text", "x-1.y", "é")
ATTRIBUTE_NAMES = ("a", "b", "c", "k")
PREFIXES = ("p", "q")
URIS = ("urn:1", "urn:2", "urn:1/")
VALUES = (
    "7", "x", "", "y", "07", "007", " 7.0 ", "7.5", "-0", "0", "NaN", "1e3", "xy", "x y", " x", "-1", "10", "2",
    "Infinity", "é", "a", "true", "&<>", "it's", "+7", "7.", ".5", "\u00a07", "🙂", "-7", "x-y", "\t7\n", "X",
)  # fmt: skip
LANGUAGES = ("en", "en-GB", "EN", "", "fr", "english")
PI_TARGETS = ("t", "u", "a")


@dataclass
class Document:
    """A generated document: its text, and the encoding in which it is sent."""

    text: str
    encoding: str = "utf-8"

    @property
    def payload(self) -> bytes:
        """The bytes that are published."""
        return self.text.encode(self.encoding)


@dataclass
class _Writer:
    pick: Pick
    out: list[str] = field(default_factory=list)
    budget: int = 40
    entities: bool = False
    identifiers: int = 0

    def attribute_text(self, value: str) -> str:
        """The value between quotes; white space other than blanks survives as references."""
        shown = escape(value, {"\t": "&#9;", "\n": "&#10;"})
        if self.pick.chance(15):
            return "'" + shown.replace("'", "&#39;") + "'"
        return '"' + shown.replace('"', "&quot;") + '"'

    def text(self) -> None:
        value = self.pick.of(VALUES)
        form = self.pick.below(20)
        if form == 19 and value:
            self.out.append("<![CDATA[" + value + "]]>")
        elif form == 18 and value != "1e3":  # written plainly, so that the oracle's mapping finds it
            self.out.append("".join(f"&#{ord(c)};" for c in value))
        elif form == 17 and self.entities:
            self.out.append(self.pick.of(("&e;", "&m;")))
        else:
            self.out.append(escape(value))

    def misc(self) -> None:
        if self.pick.chance(50):
            self.out.append(f"<!--{self.pick.of(('x', '7', '', 'a b'))}-->")
        else:
            self.out.append(f"<?{self.pick.of(PI_TARGETS)} {self.pick.of(('x', '7', ''))}?>")

    def element(self, depth: int, scope: dict[str, str], previous: str) -> None:
        """One element; `scope` maps the prefixes in scope ("" the default) to URIs."""
        pick = self.pick
        self.budget -= 1
        declared: dict[str, str] = {}
        if pick.chance(12):
            declared[""] = pick.of(("urn:1", "", "urn:2"))
        if pick.chance(12):
            declared[pick.of(PREFIXES)] = pick.of(URIS)
        scope = scope | declared
        prefixes = sorted(prefix for prefix in scope if prefix)
        name = previous if previous and pick.chance(25) else pick.of(NAMES)
        prefixed = f"{pick.of(prefixes)}:{name}" if prefixes and pick.chance(35) and ":" not in name else name
        attributes = {("xmlns:" + key if key else "xmlns"): value for key, value in declared.items()}
        expanded: set[tuple[str, str]] = set()
        while pick.chance(35) and len(expanded) < 4:
            local, prefix = pick.of(ATTRIBUTE_NAMES), ""
            if prefixes and pick.chance(25):
                prefix = pick.of(prefixes)
            key = (scope[prefix] if prefix else "", local)
            if key not in expanded:
                expanded.add(key)
                attributes[f"{prefix}:{local}" if prefix else local] = pick.of(VALUES)
        if pick.chance(8):
            attributes["xml:lang"] = pick.of(LANGUAGES)
        if self.entities and pick.chance(20):
            self.identifiers += 1
            attributes["id"] = f"k{self.identifiers}"
        gap = " " if pick.chance(93) else "\n  "
        self.out.append("<" + prefixed)
        self.out.extend(f"{gap}{key}={self.attribute_text(value)}" for key, value in attributes.items())
        start = len(self.out)
        self.out.append(">")
        while self.budget > 0 and pick.chance(92 if depth == 0 else 68 if depth < 7 else 25):
            kind = pick.below(20)
            if kind < 11 and depth < 12:
                self.element(depth + 1, scope, name)
            elif kind < 18:
                self.text()
            else:
                self.misc()
        if len(self.out) == start + 1 and pick.chance(50):
            self.out[start] = "/>"
        else:
            self.out.append(f"</{prefixed}>")


ENTITIES = {"&m;": "y<b k='7'>&e;</b>x", "&e;": "x"}
SUBSET = (
    '<!DOCTYPE r [<!ENTITY e "x"><!ENTITY m "y<b k=\'7\'>&e;</b>x"><!ATTLIST a id ID #IMPLIED dflt CDATA "7">'
    "<!ATTLIST b id ID #IMPLIED><!ATTLIST c id ID #IMPLIED><!ATTLIST d id ID #IMPLIED k NMTOKEN ' 7 '>]>"
)


def generate(pick: Pick, size: int = 40) -> Document:
    """A well-formed document of at most about `size` elements."""
    writer = _Writer(pick, budget=size)
    encoding = "utf-8"
    if pick.chance(12):
        encoding = pick.of(("utf-8", "utf-8-sig", "utf-16"))
        label = "UTF-16" if encoding == "utf-16" else "UTF-8"
        writer.out.append(f"<?xml version='1.0' encoding='{label}'?>")
    if pick.chance(10):
        writer.misc()
    if pick.chance(15):
        writer.entities = True
        writer.out.append(SUBSET)
    if pick.chance(10):
        writer.misc()
    writer.element(0, {}, "")
    if pick.chance(10):
        writer.misc()
    return Document("".join(writer.out), encoding)
