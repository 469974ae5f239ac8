"""Reads the corpus: data files of cases, described in `corpus/README.md`."""

import base64
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

CORPUS = Path(__file__).parent / "corpus"
TRANSFORMATIONS = CORPUS / "xquery.yaml"
JOINS = CORPUS / "joins.yaml"
"""Cases of other forms, which `xquery_cases` and `join_cases` read."""


@dataclass(frozen=True)
class Case:
    """One case: documents, and what each query does with them."""

    kind: str
    name: str
    rule: str
    documents: list[bytes]
    errors: list[str | None]
    namespaces: dict[str, str] = field(default_factory=dict)
    limits: dict[str, int | str] | None = None
    matches: dict[str, str] = field(default_factory=dict)
    nodes: dict[str, list[list[str]]] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    libxml2: str | None = None

    @property
    def accepted(self) -> list[bytes]:
        """The documents that have to be read."""
        return [payload for payload, error in zip(self.documents, self.errors, strict=True) if error is None]


def payload(entry: Any) -> bytes:
    """The bytes of a document as cases write it: a text, base64, or pieces (text, repeat) with `{i}` counting."""
    if isinstance(entry, str):
        return entry.encode()
    if "base64" in entry:
        return base64.b64decode(entry["base64"])
    if "pieces" in entry:
        parts = []
        for text, repeat in entry["pieces"]:
            counted = "{i}" in text
            parts.append("".join(text.replace("{i}", str(i)) for i in range(repeat)) if counted else text * repeat)
        return "".join(parts).encode()
    return str(entry["xml"]).encode(entry.get("encoding", "utf-8"))


def load() -> list[Case]:
    """Every case of the corpus but transformations and joins; a name that occurs twice is an error."""
    cases = []
    for path in sorted(set(CORPUS.glob("*.yaml")) - {TRANSFORMATIONS, JOINS}):
        for entry in yaml.safe_load(path.read_text(encoding="utf-8")):
            listed = entry.pop("documents")
            errors = [item.get("error") if isinstance(item, dict) else None for item in listed]
            cases.append(Case(path.stem, documents=[payload(item) for item in listed], errors=errors, **entry))
    names = [case.name for case in cases]
    assert len(names) == len(set(names)), "names of cases are unique"
    for case in cases:
        for query, signs in case.matches.items():
            assert len(signs) == len(case.accepted), (case.name, query)
            assert set(signs) <= {"+", "-"}, (case.name, query)
    return cases
