"""The W3C's QT3 suite: its cases over at most one document, and whether an outcome is what they expect."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lxml import etree

from tests import saxon
from tests.engine import Outcome
from tests.shared_data import DATA

ROOT = DATA / "suites" / "qt3"
_NAMESPACE = "{http://www.w3.org/2010/09/qt-fots-catalog}"
NO_DOCUMENT = b"<no-document/>"
FREE_ATTRIBUTE = "SENR0001"  # an attribute can not be serialised, but counted and asked for its value
_OWN = re.compile(r"declare\s+(?:variable|function)|\bimport\s+module")

Evaluate = Callable[[str, bytes, dict[str, str]], Outcome]


class RefusedError(Exception):
    """The evaluator under test does not accept the query; the argument says which feature it lacks."""


@dataclass(frozen=True)
class Case:
    """A case: a query, its document and what it has to give. `outside`: why it is no case for one untyped document."""

    test_set: str
    name: str
    query: str
    expected: Any
    folder: Path
    payload: bytes = NO_DOCUMENT
    namespaces: dict[str, str] = field(default_factory=dict)
    outside: str | None = None


def sets() -> list[str]:
    """The test sets that are there, as `folder/name`."""
    return sorted(f"{path.parent.name}/{path.stem}" for part in ("app", "prod") for path in (ROOT / part).glob("*.xml"))


def _tag(name: str) -> str:
    return _NAMESPACE + name


def cases(test_set: str) -> Iterator[Case]:
    """The cases of a set."""
    path = ROOT / f"{test_set}.xml"
    tree = etree.parse(str(path)).getroot()
    catalog = etree.parse(str(ROOT / "catalog.xml"))
    known: dict[Any, Any] = {found.get("name"): (found, ROOT) for found in catalog.iter(_tag("environment"))}
    known.update({found.get("name"): (found, path.parent) for found in tree.findall(_tag("environment"))})
    general = tree.findall(_tag("dependency"))
    for case in tree.findall(_tag("test-case")):
        yield _case(test_set, case, path.parent, known, [*general, *case.findall(_tag("dependency"))])


def _case(test_set: str, case: Any, folder: Path, known: dict[Any, Any], dependencies: list[Any]) -> Case:
    test = case.find(_tag("test"))
    file = test.get("file")
    absent = file is not None and not (folder / file).is_file()
    query = (folder / file).read_text(encoding="utf-8") if file and not absent else test.text or ""
    environment = case.find(_tag("environment"))
    base = folder
    if environment is not None and environment.get("ref"):
        environment, base = known[environment.get("ref")]
    payload, outside = NO_DOCUMENT, "file not there" if absent else _outside(dependencies)
    namespaces = {}
    sources = [] if environment is None else environment.findall(_tag("source"))
    if environment is not None:
        namespaces = {found.get("prefix"): found.get("uri") for found in environment.findall(_tag("namespace"))}
        if environment.find(_tag("schema")) is not None:
            outside = outside or "schema"
    used = [found for found in sources if found.get("role") == "." or _uses(query, found.get("role", ""))]
    if len(used) > 1:
        outside = outside or "several documents"
    elif used and not (base / used[0].get("file")).is_file():
        outside = outside or "file not there"
    elif used:
        payload = (base / used[0].get("file")).read_bytes()
        role = used[0].get("role")
        if role != ".":
            query = re.sub(rf"declare\s+variable\s+\{role}\b[^;]*;", "", query)
            query = re.sub(rf"\{role}\b", "$doc", query)
    elif not outside and "XPDY0002" in {found.get("code") for found in case.iter(_tag("error"))}:
        outside = "absent context"
    if _OWN.search(query):
        outside = outside or "own variables and functions"
    expected = case.find(_tag("result"))[0]
    return Case(test_set, case.get("name"), query, expected, folder, payload, namespaces, outside)


def _uses(query: str, role: str) -> bool:
    return role.startswith("$") and re.search(rf"\{role}\b", query) is not None


def _outside(dependencies: list[Any]) -> str | None:
    for found in dependencies:
        kind, value = found.get("type"), found.get("value")
        if kind == "spec" and not {"XQ10", "XQ10+"} & set(value.split()):
            return "later or other language"
        if kind == "feature" and found.get("satisfied") != "false":
            return str(value)
    return None


def meets(case: Case, outcome: Outcome, evaluate: Evaluate, expected: Any = None) -> bool:
    """Whether an outcome is as expected; counting and string values are asked from the same evaluator."""
    assertion = case.expected if expected is None else expected
    kind = etree.QName(assertion).localname
    if kind in {"any-of", "all-of"}:
        found = (meets(case, outcome, evaluate, inner) for inner in assertion)
        return any(found) if kind == "any-of" else all(found)
    if kind == "error":
        return outcome.error is not None and assertion.get("code") in {outcome.error, "*"}
    if outcome.text is None and outcome.error != FREE_ATTRIBUTE:
        return False
    return _holds(case, kind, assertion, outcome.text or "", evaluate)


def _holds(case: Case, kind: str, assertion: Any, text: str, evaluate: Evaluate) -> bool:
    value = assertion.text or ""

    def asked(wrapper: str) -> str | None:
        version, prolog, body = saxon.parts(case.query)
        return evaluate(f"{version}{prolog}{wrapper.format(body)}", case.payload, case.namespaces).text

    if kind in {"assert-true", "assert-false"}:
        return text == kind.removeprefix("assert-")
    if kind == "assert-xml":
        file = assertion.get("file")
        wanted = (case.folder / file).read_text(encoding="utf-8") if file else value
        return saxon.same(text, re.sub(r"^<\?xml.*?\?>\s*", "", wanted)) or _equal_but_edges(text, wanted)
    if kind == "assert-empty":
        return text == "" and asked("empty((\n{}\n))") == "true"
    if kind == "assert-count":
        return asked("count((\n{}\n))") == value.strip()
    if kind == "assert-string-value":
        found = asked('string-join(for $qt3-item in (\n{}\n) return string($qt3-item), " ")')
        if assertion.get("normalize-space") in {"true", "1"}:
            return found is not None and " ".join(found.split()) == " ".join(value.split())
        return found is not None and _text(found) == value
    if kind in {"assert-eq", "assert-deep-eq"}:
        return saxon.run(value, NO_DOCUMENT).text == text
    if kind == "assert-permutation":
        return sorted((saxon.run(value, NO_DOCUMENT).text or "").split()) == sorted(text.split())
    assert kind in {"assert", "assert-type"}, kind
    return saxon.same(text, saxon.run(case.query, case.payload, case.namespaces).text or "")


def _text(serialised: str) -> str:
    """What a serialised string says."""
    return str(etree.fromstring(f"<s>{serialised}</s>").text or "")


def _equal_but_edges(text: str, wanted: str) -> bool:
    """White space around the whole expected result does not count."""
    return saxon.same(text.strip(), wanted.strip())
