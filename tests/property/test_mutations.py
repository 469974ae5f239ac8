"""Damaged documents: read or refused as libxml2 does, and never a crash."""

import re

from lxml import etree

from sardonyx import _core, errors
from tests import libxml2
from tests.generators import documents
from tests.generators.pick import Pick, RandomPick
from tests.property.profiles import PAIRS, SEED

FRAGMENTS = (
    "<", ">", "/>", "</a>", "<a>", "&", "&amp;", "&#65;", "&#x0;", ";", '"', "'", "=", " ", "xmlns:p=''", "xmlns=''",
    "p:", ":", "<!--", "-->", "--", "<![CDATA[", "]]>", "]", "<?", "?>", "<?xml version='1.0'?>", "<!DOCTYPE a>", "%",
    "\u0000", "\uFFFE", "\r", "é", "k='1'", "<!ENTITY e 'x'>", "&e;", "xml:lang=''", "xmlns:xml='u'", "-", "#", "!",
    "[",
)  # fmt: skip


def mutate(pick: Pick, text: str) -> str:
    """The text with a few characters dropped, doubled, swapped or fragments put in."""
    for _ in range(1 + pick.below(3)):
        at = pick.below(len(text) + 1)
        length = 1 + pick.below(6)
        choice = pick.below(5)
        if choice == 0:
            text = text[:at] + text[at + length :]
        elif choice == 1:
            text = text[: at + length] + text[at:]
        elif choice == 2:
            other = pick.below(len(text) + 1)
            text = text[:at] + text[other : other + length] + text[at:]
        else:
            text = text[:at] + pick.of(FRAGMENTS) + text[at:]
    return text


def verdict(payload: bytes) -> str | None:
    """libxml2's verdict: the string-value of the document element, or None for a refusal."""
    try:
        return str(libxml2.parse(payload).xpath("string(/*)"))
    except etree.XMLSyntaxError:
        return None


def test_mutated_documents() -> None:
    """Verdict and string-value are libxml2's."""
    wrong = []
    refused = 0
    for seed in range(SEED, SEED + max(500, PAIRS // 5)):
        pick = RandomPick(seed)
        text = mutate(pick, documents.generate(pick, 4).text)
        if "<!DOCTYPE" in text and (documents.SUBSET not in text or re.search("id=(''|\"\")", text)):
            continue  # in declarations libxml2 takes names that are no QNames, and it refuses values that are not valid
        payload = text.encode("utf-8")
        expected = verdict(payload)
        try:
            found = _core.Document.parse(payload).evaluate("string(/*)")
        except errors.DocumentError:
            found = None
        refused += found is None
        if found != expected:
            wrong.append(f"{text!r}: {found!r}, libxml2 {expected!r}")
    assert wrong == [], f"{len(wrong)} differ:\n" + "\n".join(sorted(wrong, key=len)[:40])
    assert refused > 100


def test_mutated_bytes_never_crash() -> None:
    """Bytes changed at random are an answer or a `DocumentError`."""
    for seed in range(SEED, SEED + max(500, PAIRS // 10)):
        pick = RandomPick(seed)
        payload = bytearray(documents.generate(pick, 6).payload)
        for _ in range(1 + pick.below(4)):
            payload[pick.below(len(payload))] = pick.below(256)
        try:
            document = _core.Document.parse(bytes(payload))
        except errors.DocumentError:
            continue
        assert document.canonical()
        assert document.evaluate("count(//node()) >= 1")
