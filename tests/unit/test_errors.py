"""The tree of errors: drawn truly, every kind with an example, and fit to travel."""

import pickle
import re

import pytest

from sardonyx import errors
from sardonyx.errors import KINDS, SardonyxError, from_core

BASES = {"SardonyxError", "DocumentError", "SubscriptionError", "EvaluationError"}


def own_classes() -> dict[str, type[SardonyxError]]:
    return {
        name: value
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, SardonyxError)
    }


def drawn_tree() -> dict[str, str | None]:
    """Class to parent, from the drawing at the top of the module."""
    parents: dict[str, str | None] = {}
    stack: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").splitlines():
        found = re.match(r"^ {4}([│├└─ ]*)(\w+Error)\b", line)
        if not found:
            continue
        depth, name = len(found[1]) // 4, found[2]
        stack = [entry for entry in stack if entry[0] < depth]
        parents[name] = stack[-1][1] if stack else None
        stack.append((depth, name))
    return parents


def test_the_drawing_is_the_tree() -> None:
    drawn = drawn_tree()
    assert len(drawn) > 15
    real = {name: cls.__bases__[0].__name__ for name, cls in own_classes().items()}
    real["SardonyxError"] = None  # type: ignore[assignment]
    assert drawn == real


def test_all_names_every_class() -> None:
    assert set(errors.__all__) == {*own_classes(), "KINDS", "from_core"}


def test_every_kind_belongs_to_one_class() -> None:
    kinds = [kind for cls in own_classes().values() for kind in vars(cls)["kinds"]]
    assert len(kinds) == len(set(kinds))
    assert {kind: KINDS[kind] for kind in kinds} == {
        kind: cls for cls in own_classes().values() for kind in vars(cls)["kinds"]
    }
    assert all(re.fullmatch(r"[a-z][a-z_0-9]*", kind) for kind in kinds)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_the_core_s_words_become_the_class_and_keep_everything(kind: str) -> None:
    fields = {"kind": kind, "message": "m", "line": 2, "column": 3, "offset": 4, "subscription_id": "s"}
    error = from_core(kind, fields)
    assert type(error) is KINDS[kind]
    assert error.fields() == {
        "kind": kind,
        "line": 2,
        "column": 3,
        "offset": 4,
        "document_id": None,
        "subscription_id": "s",
    }
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert (again.message, again.fields(), str(again)) == (error.message, error.fields(), str(error))


def test_an_unknown_kind_is_kept() -> None:
    error = from_core("not_invented_yet", {"message": "m"})
    assert type(error) is SardonyxError
    assert error.kind == "not_invented_yet"


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, "m"),
        ({"line": 1}, "line 1: m"),
        ({"line": 1, "column": 2, "offset": 1}, "line 1, column 2: m"),
        ({"offset": 7}, "byte 7: m"),
        ({"document_id": "d", "subscription_id": "s", "column": 2}, "document 'd': subscription 's': column 2: m"),
    ],
)
def test_the_text_says_what_and_where(fields: dict[str, object], text: str) -> None:
    assert str(SardonyxError("m", **fields)) == text  # type: ignore[arg-type]
