"""The two extensions: `ignore_namespaces`, and a default element namespace in the prefix map."""

import re

import pytest
from lxml import etree

from sardonyx import _core
from tests import engine, libxml2
from tests.generators import documents
from tests.generators.documents import Document
from tests.generators.expressions import Expressions
from tests.generators.pick import RandomPick
from tests.property.comparison import same
from tests.property.profiles import PROFILE, SEED


def without_namespaces(text: str) -> str:
    """The document with no declarations and no prefixes; only for documents without look-alikes in text."""
    text = re.sub(r"\s+xmlns(:\w+)?=(\"[^\"]*\"|'[^']*')", "", text)
    text = re.sub(r"(</?)[pq]:", r"\1", text)
    return re.sub(r"(\s)[pq]:(\w+=)", r"\1\2", text)


def test_ignoring_namespaces_is_stripping_them() -> None:
    """An expression that ignores namespaces answers as it does on the document without any."""
    compared = 0
    for round_ in range(PROFILE.populations * 8):
        pick = RandomPick(SEED + 50_000 + round_)
        document = documents.generate(pick)
        if "<!DOCTYPE" in document.text:
            continue  # declarations are for names as written, so stripping prefixes changes what they say
        plain = without_namespaces(document.text)
        try:
            oracle = libxml2.Oracle(libxml2.mapped(plain).encode(document.encoding))
        except etree.XMLSyntaxError:
            continue  # two attributes became one
        generator = Expressions(pick, namespaces=False)
        expressions = [generator.any(2) for _ in range(20)]
        kept = [
            e
            for e in expressions
            if not libxml2.deviates(e, document.text) and not re.search(r"namespace-uri|name\(", e.text())
        ]
        rows = [{"subscription_id": str(at), "query": e.text(), "ignore_namespaces": True} for at, e in enumerate(kept)]
        index = _core.Index()
        assert index.register(engine.table(rows)) == []
        expected = [str(at) for at, e in enumerate(kept) if oracle.boolean(libxml2.mapped(e.text()))]
        for matcher in engine.MATCHERS:
            found = index.match(document.payload, matcher=matcher)
            wrong = [kept[int(at)].text() for at in set(found) ^ set(expected)]
            assert wrong == [], f"{matcher} on {document.text}"
        parsed = _core.Document.parse(document.payload)
        for e in kept:
            value = oracle.value(libxml2.mapped(e.text()))
            if not isinstance(value, list):
                assert same(parsed.evaluate(e.text(), {}, True), value, False), f"{e.text()} on {document.text}"
        compared += len(kept)
    assert compared > 500


DEFAULT = {"": "urn:1", "q": "urn:2"}


@pytest.mark.parametrize(
    ("query", "matches"),
    [
        ("/a", True),
        ("/a/b", False),
        ("/a/q:b", True),
        ("//c", False),
        ("/a/@k", True),
        ("/a/@k='1'", True),
        ("//*[@k]", True),
        ("//d", True),
        ("/a/descendant::d", True),
        ("//d[../@k]", True),
        ("//*[local-name()='c'][namespace-uri()='']", True),
        ("/a[d]/d[not(c)]", True),
        ("/a/attribute::k", True),
        ("/a/self::a", True),
        ("/a/@k/self::k", False),
    ],
)
def test_default_element_namespace(query: str, matches: bool) -> None:
    """Unprefixed element names are in the default namespace, attribute names in none."""
    payload = b'<a xmlns="urn:1" k="1"><b xmlns="urn:2"/><c xmlns=""/><d/></a>'
    index = engine.index([query], DEFAULT)
    assert index.match(payload) == (["0"] if matches else [])
    assert index.match(payload, matcher="naive") == (["0"] if matches else [])


def test_default_namespace_by_renaming() -> None:
    """With a default namespace an expression answers as with the prefix written at each element name."""
    wide = Document('<a xmlns="urn:1"><a k="7"><b>x</b></a><b/><c xmlns=""><a/></c></a>')
    pairs = [
        ("//a[@k=7]/b", "//p:a[@k=7]/p:b"),
        ("count(//a)=2", "count(//p:a)=2"),
        ("//b[not(..='x')]", "//p:b[not(..='x')]"),
        ("/a/b | /a/a", "/p:a/p:b | /p:a/p:a"),
        ("//c", "//p:c"),
        ("//a/ancestor::a", "//p:a/ancestor::p:a"),
    ]
    for short, full in pairs:
        parsed = _core.Document.parse(wide.payload)
        assert parsed.evaluate(short, {"": "urn:1"}) == parsed.evaluate(full, {"p": "urn:1"}), short
