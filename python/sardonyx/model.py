"""The words of Sardonyx as values: document, subscription, notification, dead letter.

All are frozen and small; they hold what was given and check nothing of it, which is the work of
registering and matching.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sardonyx.errors import SardonyxError

__all__ = ["DeadLetter", "Document", "MatchedNode", "Notification", "Subscription", "notification_id"]


@dataclass(frozen=True, slots=True)
class Subscription:
    """A standing query: which documents its owner wants to hear of, and in XQuery what of them.

    >>> Subscription("long-grb", "//Param[@name='Burst_Signif'][@value > 20]")
    Subscription(id='long-grb', query="//Param[@name='Burst_Signif'][@value > 20]", language='xpath', \
namespaces=None, stream=None, ignore_namespaces=False, notify_empty=False)
    """

    id: str
    """The caller's name for it; registering an id again replaces the former subscription."""
    query: str
    """The text of the query."""
    language: str = "xpath"
    """The language of the query: `xpath` (a filter in XPath 1.0), `xquery` (a transformation) or `xscl` (a join)."""
    namespaces: Mapping[str, str] | None = field(default=None, hash=False)
    """Prefixes of the query and their URIs; the key `""` is a default namespace for unprefixed element names."""
    stream: str | None = None
    """Hear only documents of this stream; None: of every stream."""
    ignore_namespaces: bool = False
    """Compare local names only; filters alone can."""
    notify_empty: bool = False
    """Notify of every document, also where the transformation selects nothing; filters do not look at it."""


@dataclass(frozen=True, slots=True)
class Document:
    """One published XML message.

    >>> Document("m1", b"<order total='12'/>", stream="orders").stream
    'orders'
    """

    document_id: str
    """The publisher's name for it."""
    payload: bytes | str
    """The XML: bytes in whatever encoding it declares, or text already decoded."""
    stream: str | None = None
    """The stream it belongs to."""
    timestamp: datetime | None = None
    """When it happened, in UTC if it has no zone; for joins. None: as its stream declares, or when it arrives."""


@dataclass(frozen=True, slots=True)
class MatchedNode:
    """A node of a document that a query selected."""

    path: str
    """Where it is, as an XPath location such as `/order/item[2]/@sku`."""
    line: int
    """The line on which it starts, from 1."""
    value: str
    """Its string-value."""


@dataclass(frozen=True, slots=True)
class Notification:
    """The news that a document satisfies a subscription, or that several together do."""

    document_id: str
    """The document."""
    subscription_id: str
    """The subscription."""
    notification_id: str
    """A stable name of this piece of news: delivering it twice can be told from two pieces of news."""
    result: str | None = None
    """What a transformation or a join made of its documents, as XML text; None for filters."""
    documents: tuple[str, ...] = ()
    """The ids of the documents that a join brought together, one for each block; `document_id` is the last of them."""

    @classmethod
    def of(cls, document_id: str, subscription_id: str, result: str | None = None, position: int = 0) -> Notification:
        """The notification with its computed `notification_id`; `position` numbers a subscription's results from 0.

        >>> Notification.of("m1", "s1").notification_id
        '26755900aa8442d395e377d8cdde78de'
        """
        return cls(document_id, subscription_id, notification_id(document_id, subscription_id, position), result)


def notification_id(document_id: str, subscription_id: str, position: int = 0) -> str:
    """A hash of document, subscription and result position that is equal in every process and on every machine.

    BLAKE2b with 128 bits, as 32 hexadecimal digits, over the UTF-8 of both ids, each preceded by its length in bytes,
    and the position; lengths and position are 8 bytes, little endian. The lengths keep ("a", "bc") and ("ab", "c")
    apart. Lone surrogates, which ids made from file names can hold, are encoded as if they were characters.
    """
    digest = hashlib.blake2b(digest_size=16)
    for text in (document_id, subscription_id):
        data = text.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    digest.update(position.to_bytes(8, "little"))
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A document or a subscription that could not be processed, with its reason.

    >>> from sardonyx.errors import NotWellFormedError
    >>> print(DeadLetter.of(NotWellFormedError("no closing tag", line=3, column=1, document_id="m7")))
    document 'm7': line 3, column 1: no closing tag [not_well_formed]
    """

    kind: str
    """The kind of the error, one of `sardonyx.errors.KINDS`."""
    message: str
    """What is wrong."""
    document_id: str | None = None
    """The document, if it is about one."""
    subscription_id: str | None = None
    """The subscription, if it is about one."""
    line: int | None = None
    """Line of the fault in the document or query, from 1."""
    column: int | None = None
    """Column of the fault in characters, from 1."""
    offset: int | None = None
    """Offset of the fault in bytes, from 0."""
    source: str | None = None
    """Where a subscription was read from, as `FILE:LINE`."""

    @classmethod
    def of(cls, error: SardonyxError, source: str | None = None) -> DeadLetter:
        """The dead letter that says what an error says."""
        return cls(
            kind=error.kind,
            message=error.message,
            document_id=error.document_id,
            subscription_id=error.subscription_id,
            line=error.line,
            column=error.column,
            offset=error.offset,
            source=source,
        )

    def error(self) -> dict[str, Any]:
        """The reason alone, as plain data: `kind`, `message`, `line`, `column`, and `source` if there is one."""
        reason: dict[str, Any] = {
            "kind": self.kind,
            "message": self.message,
            "line": self.line,
            "column": self.column,
        }
        if self.source is not None:
            reason["source"] = self.source
        return reason

    def __str__(self) -> str:
        """One line for people."""
        error = SardonyxError(
            self.message,
            line=self.line,
            column=self.column,
            offset=self.offset,
            document_id=self.document_id,
            subscription_id=self.subscription_id,
        )
        where = "" if self.source is None else f"{self.source}: "
        return f"{where}{error} [{self.kind}]"
