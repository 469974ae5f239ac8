"""Every error of Sardonyx, as one tree.

    SardonyxError
    ├── DocumentError                 a document can not be processed
    │   ├── NotWellFormedError        it is not well-formed XML with namespaces
    │   ├── EncodingError             its bytes are not what its encoding says, or the encoding is unknown
    │   ├── LimitError                it exceeds one of the limits in `Limits`
    │   ├── DoctypeForbiddenError     it has a DOCTYPE and the settings forbid any
    │   ├── UnreadEntityError         it needs the text of an external entity, which is never loaded
    │   ├── MissingPayloadError       there is no payload at all, or it could not be read
    │   ├── LateDocumentError         its timestamp is before the watermark of joins
    │   ├── TimestampError            its timestamp can not be read from it as its stream declares
    │   └── StateLimitError           the state of joins has no room for it
    ├── SubscriptionError             a subscription can not be registered
    │   ├── QuerySyntaxError          its query is no expression of its language
    │   ├── QueryTypeError            its query has unknown functions, wrong arguments, types or variables
    │   ├── UnboundPrefixError        its query uses a prefix that no namespace is bound to
    │   ├── QueryLimitError           its query exceeds one of the limits in `Limits`
    │   ├── UnsupportedError          its language, or what its query uses of it or of later ones, is not available
    │   ├── InvalidFieldError         one of its other fields is missing or malformed
    │   ├── CycleError                its results would come back to it as documents
    │   └── UnknownSubscriptionError  there is no subscription of this id
    ├── EvaluationError               an accepted query can not be evaluated on an accepted document
    │   ├── CostLimitError            evaluating it costs more than `Limits.cost_limit`
    │   └── DynamicError              a transformation meets values that it can not work with
    ├── SubscriptionFileError         a file of subscriptions can not be read as a whole
    ├── IndexFormatError              a saved index is foreign, truncated or damaged
    ├── CapacityError                 more subscriptions than one index can number
    ├── InternalError                 a fault of Sardonyx itself, to be reported
    ├── SettingsError                 a setting is unknown or out of range
    ├── WorkloadError                 documents or queries for tests can not be generated as asked for
    └── MissingExtraError             an optional dependency is not installed

Each error has a `kind` (a stable word for programs), a `message`, and where known the position (`line` and `column`
from 1, `offset` in bytes from 0), the `document_id` and the `subscription_id`. The core raises these classes through
`from_core`, and nothing else builds them from core errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

__all__ = [
    "KINDS",
    "CapacityError",
    "CostLimitError",
    "CycleError",
    "DoctypeForbiddenError",
    "DocumentError",
    "DynamicError",
    "EncodingError",
    "EvaluationError",
    "IndexFormatError",
    "InternalError",
    "InvalidFieldError",
    "LateDocumentError",
    "LimitError",
    "MissingExtraError",
    "MissingPayloadError",
    "NotWellFormedError",
    "QueryLimitError",
    "QuerySyntaxError",
    "QueryTypeError",
    "SardonyxError",
    "SettingsError",
    "StateLimitError",
    "SubscriptionError",
    "SubscriptionFileError",
    "TimestampError",
    "UnboundPrefixError",
    "UnknownSubscriptionError",
    "UnreadEntityError",
    "UnsupportedError",
    "WorkloadError",
    "from_core",
]


class SardonyxError(Exception):
    """The root of all errors: what was given, what is needed, and where.

    >>> error = QuerySyntaxError("expected a step", column=7, subscription_id="s1")
    >>> str(error)
    "subscription 's1': column 7: expected a step"
    >>> error.kind
    'query_syntax'
    """

    kinds: ClassVar[tuple[str, ...]] = ("error",)
    """The kinds of errors of this class; the first is that of an error that names none."""

    def __init__(
        self,
        message: str,
        *,
        kind: str | None = None,
        line: int | None = None,
        column: int | None = None,
        offset: int | None = None,
        document_id: str | None = None,
        subscription_id: str | None = None,
    ) -> None:
        """Positions count from 1 (`line`, `column`) and in bytes from 0 (`offset`)."""
        super().__init__(message)
        self.kind = self.kinds[0] if kind is None else kind
        self.message = message
        self.line = line
        self.column = column
        self.offset = offset
        self.document_id = document_id
        self.subscription_id = subscription_id

    def __str__(self) -> str:
        """The message, preceded by what it is about and where."""
        parts = []
        if self.document_id is not None:
            parts.append(f"document {self.document_id!r}: ")
        if self.subscription_id is not None:
            parts.append(f"subscription {self.subscription_id!r}: ")
        if self.line is not None and self.column is not None:
            parts.append(f"line {self.line}, column {self.column}: ")
        elif self.line is not None:
            parts.append(f"line {self.line}: ")
        elif self.column is not None:
            parts.append(f"column {self.column}: ")
        elif self.offset is not None:
            parts.append(f"byte {self.offset}: ")
        return "".join(parts) + self.message

    def fields(self) -> dict[str, Any]:
        """Everything it says, as keyword arguments (without the message)."""
        return {
            "kind": self.kind,
            "line": self.line,
            "column": self.column,
            "offset": self.offset,
            "document_id": self.document_id,
            "subscription_id": self.subscription_id,
        }

    def __reduce__(self) -> tuple[Any, ...]:
        """Errors travel between processes (Spark's workers) with all their fields."""
        return _rebuild, (type(self), self.message, self.fields())


def _rebuild(cls: type[SardonyxError], message: str, fields: dict[str, Any]) -> SardonyxError:
    return cls(message, **fields)


class DocumentError(SardonyxError):
    """A document can not be processed."""

    kinds = ("document",)


class NotWellFormedError(DocumentError):
    """A document is not well-formed XML 1.0 with namespaces."""

    kinds = ("not_well_formed",)


class EncodingError(DocumentError):
    """The bytes of a document are not what its encoding says, or the encoding is unknown."""

    kinds = ("encoding",)


class LimitError(DocumentError):
    """A document exceeds a limit; the message names the limit, its value and the setting to change."""

    kinds = ("limit",)


class DoctypeForbiddenError(DocumentError):
    """A document has a DOCTYPE and `Limits.doctype` is `"forbid"`."""

    kinds = ("doctype_forbidden",)


class UnreadEntityError(DocumentError):
    """A document needs the text of an entity that lies outside it; nothing outside is ever loaded."""

    kinds = ("unread_entity",)


class MissingPayloadError(DocumentError):
    """A document has no payload (null), or its payload could not be read."""

    kinds = ("missing_payload",)


class LateDocumentError(DocumentError):
    """A document's timestamp is before the watermark: it joins nothing. Filters and transformations heard of it."""

    kinds = ("late_document",)


class TimestampError(DocumentError):
    """What the declaration of its stream takes for a document's timestamp is none; it joins nothing."""

    kinds = ("timestamp",)


class StateLimitError(DocumentError):
    """The state of joins would exceed `JoinSettings.state_bytes` with a document: it joins nothing and is not kept."""

    kinds = ("state_limit",)


class SubscriptionError(SardonyxError):
    """A subscription can not be registered."""

    kinds: ClassVar[tuple[str, ...]] = ("subscription",)


class QuerySyntaxError(SubscriptionError):
    """The text of a query is no expression of its language."""

    kinds = ("query_syntax",)


class QueryTypeError(SubscriptionError):
    """A query calls a function that its language does not have, or wrongly, or uses a variable that nothing binds."""

    kinds = ("query_type", "unknown_function", "wrong_arguments", "variable")


class UnboundPrefixError(SubscriptionError):
    """A query uses a prefix that its subscription binds to no namespace."""

    kinds = ("unbound_prefix",)


class QueryLimitError(SubscriptionError):
    """A query exceeds `Limits.query_bytes`, `query_depth` or `query_parts`."""

    kinds = ("query_limit",)


class UnsupportedError(SubscriptionError):
    """A subscription asks for a language, or a query for a part of its language or of a later one, not available."""

    kinds = ("unsupported", "not_xpath_1")


class InvalidFieldError(SubscriptionError):
    """A field of a subscription is missing or malformed."""

    kinds = ("invalid_field",)


class CycleError(SubscriptionError):
    """A join publishes on a stream that leads to one which it reads itself."""

    kinds = ("cycle",)


class UnknownSubscriptionError(SubscriptionError):
    """There is no subscription of this id."""

    kinds = ("unknown_subscription",)


class EvaluationError(SardonyxError):
    """A query that was accepted can not be evaluated on a document that was accepted."""

    kinds = ("evaluation",)


class CostLimitError(EvaluationError):
    """Evaluating a query costs more than `Limits.cost_limit`."""

    kinds = ("cost_limit",)


class DynamicError(EvaluationError):
    """A transformation meets values that it can not work with; the message starts with the W3C's code for it.

    >>> from sardonyx import Broker
    >>> broker = Broker()
    >>> broker.register("sum", "for $a in /a return 1 + $a", language="xquery")
    >>> broker.transform("<a>one</a>")
    Traceback (most recent call last):
        ...
    sardonyx.errors.DynamicError: ...
    """

    kinds = ("dynamic_error",)


class SubscriptionFileError(SardonyxError):
    """A file of subscriptions can not be read as a whole; the message names the file."""

    kinds = ("subscription_file",)


class IndexFormatError(SardonyxError):
    """A saved index is foreign, truncated or damaged, can not be opened, or has a format of another version."""

    kinds = ("index_format",)


class CapacityError(SardonyxError):
    """A population is larger than one index can number."""

    kinds = ("capacity",)


class InternalError(SardonyxError):
    """A fault of the core itself, which was caught at its border; please report it."""

    kinds = ("internal",)


class SettingsError(SardonyxError):
    """A setting is unknown or out of range."""

    kinds = ("settings",)


class WorkloadError(SardonyxError):
    """Documents or queries can not be generated as asked for, from the DTD or the samples that were given."""

    kinds = ("workload",)


class MissingExtraError(SardonyxError):
    """An optional dependency is not installed; the message names the extra to install."""

    kinds = ("missing_extra",)


def _all_classes(root: type[SardonyxError]) -> list[type[SardonyxError]]:
    found = [root]
    for child in root.__subclasses__():
        found.extend(_all_classes(child))
    return found


KINDS: Mapping[str, type[SardonyxError]] = {kind: cls for cls in _all_classes(SardonyxError) for kind in cls.kinds}
"""Every kind of error, with its class."""


def from_core(kind: str, fields: Mapping[str, Any]) -> SardonyxError:
    """The error for what the core says: the one mapping from its kinds to these classes.

    `fields` holds `message` and any of `line`, `column`, `offset`, `document_id`, `subscription_id`; a `kind` among
    them is ignored in favour of the argument. A kind not in `KINDS` gives a plain `SardonyxError` that keeps it.

    >>> error = from_core("not_well_formed", {"message": "no closing tag", "line": 3, "column": 1, "offset": 40})
    >>> type(error).__name__, error.line
    ('NotWellFormedError', 3)
    """
    known = ("line", "column", "offset", "document_id", "subscription_id")
    details = {name: fields[name] for name in known if name in fields}
    return KINDS.get(kind, SardonyxError)(str(fields.get("message", kind)), kind=kind, **details)
