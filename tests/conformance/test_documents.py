"""Real documents: read or refused exactly as libxml2 does, with the same nodes and string-values."""

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from sardonyx import _core, errors
from tests import libxml2
from tests.shared_data import DATA, needs_data

pytestmark = needs_data

# Where the answers differ, and why the recommendation is on our side: path below docs/ to the reason.
REFUSED_BY_US_ONLY: dict[str, str] = {}
REFUSED_BY_LIBXML2_ONLY: dict[str, str] = {}

COUNTS = {
    "elements": "count(//*)",
    "attributes": "count(//@*)",
    # libxml2 keeps an empty text node for an empty CDATA section, and counts the text of entity declarations as part
    # of the root's string-value: so texts are not empty, and the document element stands for the root.
    "texts": "count(//text()[. != ''])",
    "comments": "count(//comment())",
    "instructions": "count(//processing-instruction())",
    "levels": "count(//*[not(*)]/ancestor::*)",
    "namespaced": "count(//*[namespace-uri()])",
    "length": "string-length(/*)",
    "normalised": "string-length(normalize-space(/*))",
}


@cache
def folders() -> list[Path]:
    """The folders of documents."""
    return sorted(path for path in (DATA / "docs").iterdir() if path.is_dir()) if DATA.is_dir() else []


def documents(folder: Path) -> list[Path]:
    """The files of a folder, notices included: these have to be refused."""
    return sorted(path for path in folder.rglob("*") if path.is_file())


def name(path: Path) -> str:
    """The path below docs/."""
    return path.relative_to(DATA / "docs").as_posix()


def _libxml2(payload: bytes) -> Any:
    try:
        return libxml2.Oracle(payload)
    except etree.XMLSyntaxError:
        return None


def _ours(payload: bytes) -> Any:
    try:
        return _core.Document.parse(payload)
    except errors.DocumentError:
        return None


def test_count() -> None:
    """All documents were found."""
    assert sum(len(documents(folder)) for folder in folders()) == 1490


@pytest.mark.parametrize("folder", folders(), ids=lambda folder: str(folder.name))
def test_as_libxml2(folder: Path) -> None:
    """Both read it, with equal counts and string-values, or both refuse it."""
    ours_only, theirs_only, differing = [], [], []
    for path in documents(folder):
        payload = path.read_bytes()
        theirs, ours = _libxml2(payload), _ours(payload)
        if ours is None and theirs is not None and name(path) not in REFUSED_BY_US_ONLY:
            ours_only.append(name(path))
        if theirs is None and ours is not None and name(path) not in REFUSED_BY_LIBXML2_ONLY:
            theirs_only.append(name(path))
        if ours is None or theirs is None:
            continue
        for what, expression in COUNTS.items():
            found, expected = ours.evaluate(expression), theirs.absolute(expression)
            if found != expected:
                differing.append(f"{name(path)}: {what} {found}, libxml2 {expected}")
        if ours.evaluate("string(/*)") != theirs.absolute("string(/*)"):
            differing.append(f"{name(path)}: string-value")
        differing.extend(
            f"{name(path)}: values of {what}"
            for what in ("//@*", "//*")
            if [node["value"] for node in ours.evaluate(what)] != [node.value for node in theirs.nodes(what)]
        )
    assert (ours_only, theirs_only, differing) == ([], [], [])
