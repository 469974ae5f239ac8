"""Values: frozen, equal by content, with ids that are the same everywhere."""

import dataclasses
import hashlib
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sardonyx import DeadLetter, Document, MatchedNode, Notification, Subscription
from sardonyx.errors import NotWellFormedError
from sardonyx.model import notification_id

VALUES = [
    Subscription("s", "/a", namespaces={"p": "urn:p"}),
    Document("d", b"<a/>"),
    Notification.of("d", "s"),
    MatchedNode("/a[1]", 1, ""),
    DeadLetter("limit", "too deep", document_id="d"),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_values_are_frozen_small_hashable_and_travel(value: object) -> None:
    name = dataclasses.fields(value)[0].name  # type: ignore[arg-type]
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(value, name, "x")
    assert not hasattr(value, "__dict__")
    assert hash(value) == hash(dataclasses.replace(value))  # type: ignore[type-var]
    assert pickle.loads(pickle.dumps(value)) == value


def test_notification_id_is_what_the_description_says() -> None:
    """Written out once more, so that other implementations have something to be compared with."""
    expected = hashlib.blake2b(
        (3).to_bytes(8, "little") + "dé".encode() + (1).to_bytes(8, "little") + b"s" + (0).to_bytes(8, "little"),
        digest_size=16,
    ).hexdigest()
    assert notification_id("dé", "s") == expected
    assert len(expected) == 32


def test_notification_ids_differ_where_anything_differs() -> None:
    ids = [notification_id(*key) for key in [("a", "bc"), ("ab", "c"), ("abc", ""), ("", "abc")]]
    ids += [notification_id("a", "bc", 1), notification_id("a", "bc", 256)]
    assert len(set(ids)) == len(ids)


@given(st.text(st.characters()), st.text(st.characters()), st.integers(0, 2**64 - 1))
def test_any_text_has_an_id(document: str, subscription: str, position: int) -> None:
    assert notification_id(document, subscription, position) == notification_id(document, subscription, position)


def test_file_names_that_are_no_text_have_an_id() -> None:
    assert notification_id("caf\udce9.xml", "s") != notification_id("caf\udcea.xml", "s")


def test_dead_letter_says_all_that_the_error_says() -> None:
    error = NotWellFormedError("no closing tag", line=3, column=1, offset=40, document_id="m7")
    letter = DeadLetter.of(error, source="inbox")
    assert letter == DeadLetter("not_well_formed", "no closing tag", "m7", None, 3, 1, 40, "inbox")
    assert letter.error() == {
        "kind": "not_well_formed",
        "message": "no closing tag",
        "line": 3,
        "column": 1,
        "source": "inbox",
    }
    assert str(letter) == "inbox: document 'm7': line 3, column 1: no closing tag [not_well_formed]"
