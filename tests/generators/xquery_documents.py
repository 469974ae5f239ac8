"""Documents for transformations: bibliographies and books with what makes results differ, and vocabularies of them.

Values are repeated, missing, empty, numeric and not; sections nest; text is mixed; some documents use namespaces.
Without namespaces the documents are valid against `BIB_DTD` and `BOOK_DTD`, whose claims plans may rely on.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from lxml import etree

from tests.generators.pick import Pick

BIB_DTD = """
<!ELEMENT bib (book*)>
<!ELEMENT book (title, (author+ | editor+)?, publisher?, price*, note?)>
<!ATTLIST book year CDATA #IMPLIED lang CDATA #IMPLIED>
<!ELEMENT author (last, first?)>
<!ELEMENT editor (last, first, affiliation?)>
<!ATTLIST author id CDATA #IMPLIED>
<!ELEMENT title (#PCDATA)>
<!ELEMENT last (#PCDATA)>
<!ELEMENT first (#PCDATA)>
<!ELEMENT affiliation (#PCDATA)>
<!ELEMENT publisher (#PCDATA)>
<!ELEMENT price (#PCDATA)>
<!ATTLIST price currency CDATA #IMPLIED>
<!ELEMENT note (#PCDATA | em | title)*>
<!ELEMENT em (#PCDATA)>
"""
BOOK_DTD = """
<!ELEMENT book (title, author+, section+)>
<!ELEMENT title (#PCDATA)>
<!ELEMENT author (#PCDATA)>
<!ELEMENT section (title, (p | figure | section)*)>
<!ATTLIST section id CDATA #IMPLIED difficulty CDATA #IMPLIED>
<!ELEMENT p (#PCDATA | em)*>
<!ELEMENT em (#PCDATA)>
<!ELEMENT figure (title?, image)>
<!ATTLIST figure width CDATA #REQUIRED height CDATA #REQUIRED>
<!ELEMENT image EMPTY>
<!ATTLIST image source CDATA #REQUIRED>
"""
NAMESPACES = {"b": "urn:bib", "p": "urn:people"}

NUMBERS = ("65.95", "39.95", "10", "9", "100", "39.950", "0", "7.5", "1000", "-1")
ODD_NUMBERS = ("", "n/a", " 7 ", "1e2", "-0", "007", "INF", "+7", ".5")
YEARS = ("1994", "1999", "2000", "1994", "0", "2003")
TITLES = ("Data", "Data on the Web", "Streams", "XML & more", "a < b", "", "données", "Data", "it's", 'say "x"')
LAST = ("Diao", "Franklin", "Suciu", "Diao", "Altinel", "O'Neil", "")
FIRST = ("Y.", "Michael", "Dan", "A", "")
PUBLISHERS = ("Addison-Wesley", "Springer", "VLDB", "Data")
WORDS = ("web", "data", " ", "streams ", "x", "&", "\n", "10")
RARE = 3  # what occurs in fewer than one document of so many is not asked for
LONG = 40
LEVELS = ("easy", "hard", "10", "9", "")


@dataclass
class _Writer:
    pick: Pick
    clean: bool
    pretty: bool
    name: Callable[[str], str] = str
    root_attributes: str = ""
    out: list[str] = field(default_factory=list)

    def gap(self) -> None:
        """White space or another thing without meaning between elements."""
        if self.pretty:
            self.out.append("\n ")
        if self.pick.chance(3):
            self.out.append(self.pick.of(("<!--note-->", "<?go on?>", "<!---->", "<?go?>")))

    def element(self, name: str, content: Callable[[], None] | str, **attributes: str | None) -> None:
        self.gap()
        shown = self.name(name)
        given = "".join(f" {key}={quoteattr(value)}" for key, value in attributes.items() if value is not None)
        self.out.append(f"<{shown}{given}{self.root_attributes}>")
        self.root_attributes = ""
        if isinstance(content, str):
            self.out.append(f"<![CDATA[{content}]]>" if content and self.pick.chance(4) else escape(content))
        else:
            content()
            if self.pretty:
                self.out.append("\n")
        self.out.append(f"</{shown}>")

    def maybe(self, percent: int, values: Sequence[str]) -> str | None:
        return self.pick.of(values) if self.pick.chance(percent) else None

    def number(self) -> str:
        return self.pick.of(NUMBERS if self.clean or self.pick.chance(60) else ODD_NUMBERS)

    def mixed(self, *inline: str) -> None:
        """Text with elements in it."""
        pretty, self.pretty = self.pretty, False
        for _ in range(self.pick.below(5)):
            if self.pick.chance(60):
                self.out.append(escape(self.pick.of(WORDS)))
            else:
                self.element(self.pick.of(inline), self.pick.of(TITLES))
        self.pretty = pretty

    def person(self, kind: str) -> None:
        def parts() -> None:
            self.element("last", self.pick.of(LAST))
            if kind == "editor" or self.pick.chance(80):
                self.element("first", self.pick.of(FIRST))
            if kind == "editor" and self.pick.chance(50):
                self.element("affiliation", self.pick.of(PUBLISHERS))

        self.element(kind, parts, id=self.maybe(30, ("1", "2", "3")) if kind == "author" else None)

    def bib_book(self) -> None:
        pick = self.pick

        def parts() -> None:
            self.element("title", pick.of(TITLES))
            people = pick.below(4)
            kind = "author" if pick.chance(80) else "editor"
            for _ in range(people):
                self.person(kind)
            if pick.chance(80):
                self.element("publisher", pick.of(PUBLISHERS))
            for _ in range(pick.of((1, 1, 1, 0, 2, 3))):
                self.element("price", self.number(), currency=self.maybe(40, ("EUR", "USD")))
            if pick.chance(30):
                self.element("note", lambda: self.mixed("em", "title"))

        self.element("book", parts, year=self.maybe(85, YEARS), lang=self.maybe(20, ("en", "fr")))

    def section(self, depth: int) -> None:
        pick = self.pick

        def parts() -> None:
            self.element("title", pick.of(TITLES))
            while pick.chance(65):
                choice = pick.below(10)
                if choice < 4:
                    self.element("p", lambda: self.mixed("em"))
                elif choice < 6:
                    self.figure()
                elif depth < 4:
                    self.section(depth + 1)

        difficulty = self.maybe(40, LEVELS)
        self.element("section", parts, id=self.maybe(60, ("s1", "s2", "s3", "10")), difficulty=difficulty)

    def figure(self) -> None:
        def parts() -> None:
            if self.pick.chance(70):
                self.element("title", self.pick.of(TITLES))
            self.element("image", "", source=self.pick.of(("a.gif", "b.gif")))

        self.element("figure", parts, width=self.number(), height=self.number())


def bib(pick: Pick, clean: bool = True) -> bytes:
    """A bibliography; `clean`: prices are numbers."""
    writer = _Writer(pick, clean, pick.chance(50))
    _bib(writer)
    return "".join(writer.out).lstrip().encode()


def _bib(writer: _Writer) -> None:
    count = writer.pick.of((4, 2, 6, 3, 5, 1, 8, 3, 4, 0))

    def books() -> None:
        for _ in range(count):
            writer.bib_book()

    writer.element("bib", books)


def book(pick: Pick, clean: bool = True) -> bytes:
    """A book of nested sections; `clean`: sizes are numbers."""
    writer = _Writer(pick, clean, pick.chance(50))

    def parts() -> None:
        writer.element("title", pick.of(TITLES))
        for _ in range(1 + pick.below(2)):
            writer.element("author", pick.of(LAST))
        for _ in range(1 + pick.below(3)):
            writer.section(0)

    writer.element("book", parts)
    return "".join(writer.out).lstrip().encode()


def namespaced(pick: Pick, clean: bool = True) -> bytes:
    """A bibliography in namespaces: books in `urn:bib`, people in `urn:people`, prefixes as it happens to be."""
    own, people = pick.of((("", "p"), ("b", "p"), ("x", "b"), ("", "q")))

    def name(local: str) -> str:
        prefix = people if local in {"author", "editor", "last", "first", "affiliation"} else own
        return f"{prefix}:{local}" if prefix else local

    declared = f' xmlns{":" + own if own else ""}="urn:bib" xmlns:{people}="urn:people"'
    declared += pick.of(("", ' xmlns:u="urn:unused"', ' xml:lang="en"', f' {people}:k="7" xmlns:v="urn:value"'))
    writer = _Writer(pick, clean, pick.chance(50), name, declared)
    _bib(writer)
    return "".join(writer.out).lstrip().encode()


@dataclass
class Vocabulary:
    """What occurs in some documents, by element name: the names that queries about them use.

    Names are as a query writes them, with the prefixes of `namespaces`. The document node is named "".
    """

    namespaces: Mapping[str, str]
    children: dict[str, list[str]] = field(default_factory=dict)
    attributes: dict[str, list[str]] = field(default_factory=dict)
    values: dict[str, list[str]] = field(default_factory=dict)
    attribute_values: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    single: set[tuple[str, str]] = field(default_factory=set)  # (parent, child): never more than one
    inner: set[str] = field(default_factory=set)
    _routes: dict[str, dict[str, list[str]]] = field(default_factory=dict)

    @staticmethod
    def of(payloads: Sequence[bytes], namespaces: Mapping[str, str] | None = None) -> "Vocabulary":
        """The vocabulary of documents."""
        made = Vocabulary(namespaces or {})
        repeated: set[tuple[str, str]] = set()
        seen_in: Counter[tuple[str, str]] = Counter()
        prefixes = {uri: prefix for prefix, uri in made.namespaces.items()}
        for payload in payloads:
            root = etree.fromstring(payload)
            _add(made.children, "", made._name(root, prefixes))
            made.single.add(("", made._name(root, prefixes)))
            found: set[tuple[str, str]] = set()
            for element in root.iter(etree.Element):
                found |= made._read(element, prefixes, repeated)
            seen_in.update(found)
        made.single -= repeated
        for name, listed in made.children.items():
            if name:
                listed[:] = [child for child in listed if seen_in[name, child] * RARE >= len(payloads)]
        return made

    @staticmethod
    def _name(node: Any, prefixes: Mapping[str, str]) -> str:
        name = etree.QName(node)
        return f"{prefixes[name.namespace]}:{name.localname}" if name.namespace in prefixes else name.localname

    def _read(self, element: Any, prefixes: Mapping[str, str], repeated: set[tuple[str, str]]) -> set[tuple[str, str]]:
        name = self._name(element, prefixes)
        self.children.setdefault(name, [])
        seen: set[tuple[str, str]] = set()
        for child in element.iterchildren(etree.Element):
            pair = (name, self._name(child, prefixes))
            _add(self.children, *pair)
            (repeated if pair in seen else self.single).add(pair)
            seen.add(pair)
        for key, value in element.attrib.items():
            if not key.startswith("{"):
                _add(self.attributes, name, key)
                self.attribute_values.setdefault((name, key), []).append(value)
        value = "".join(element.itertext(etree.Element))
        if len(element) or len(value) > LONG:
            self.inner.add(name)
        else:
            self.values.setdefault(name, []).append(value)
        return seen

    def routes(self, start: str) -> dict[str, list[str]]:
        """A shortest way of child steps to everything below an element; to itself where it nests."""
        if start not in self._routes:
            found: dict[str, list[str]] = {}
            waiting: list[tuple[str, list[str]]] = [(start, [])]
            while waiting:
                name, way = waiting.pop(0)
                for child in self.children.get(name, ()):
                    if child not in found:
                        found[child] = [*way, child]
                        waiting.append((child, found[child]))
            self._routes[start] = found
        return self._routes[start]

    def leaves(self, start: str) -> list[tuple[str, str]]:
        """Where values are, at and below an element: (element, attribute), or (element, "") for its text."""
        names = [*([start] if start else []), *self.routes(start)]
        found = [(name, "") for name in names if name in self.values]
        return [*found, *((name, key) for name in names for key in self.attributes.get(name, ()))]

    def values_of(self, leaf: tuple[str, str]) -> list[str]:
        """The values of a leaf."""
        return self.attribute_values[leaf] if leaf[1] else self.values[leaf[0]]


def _add(table: dict[str, list[str]], key: str, value: str) -> None:
    listed = table.setdefault(key, [])
    if value not in listed:
        listed.append(value)
