"""Reads the corpus of transformations, `corpus/xquery.yaml`, described in `corpus/README.md`."""

from dataclasses import dataclass, field
from typing import Any

import yaml

from tests.corpus_cases import TRANSFORMATIONS

STATIC = ("XPST", "XQST")
"""Codes of errors that are found without a document: such a query is refused."""


@dataclass(frozen=True)
class Case:
    """A document, and the result or error of each query on it."""

    name: str
    rule: str
    document: str
    results: dict[str, Any]
    namespaces: dict[str, str] = field(default_factory=dict)
    scopes: str = ""

    def expected(self, query: str) -> tuple[str | None, str | None]:
        """The result, or the code of the error."""
        entry = self.results[query]
        return (None, entry["error"]) if isinstance(entry, dict) else (entry, None)


def load() -> list[Case]:
    """Every case; a name that occurs twice is an error."""
    # Every scalar stays the text that was written: results are texts, "1.0" and "true" too.
    cases = [Case(**entry) for entry in yaml.load(TRANSFORMATIONS.read_text(encoding="utf-8"), yaml.BaseLoader)]
    assert len({case.name for case in cases}) == len(cases), "names of cases are unique"
    return cases
