"""The settings of a broker: frozen objects, given once.

Every setting says its unit, its default and why the default is what it is; `docs/settings.md` is made from this file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any, Literal

from sardonyx.errors import SettingsError

__all__ = ["BrokerSettings", "DoctypePolicy", "Limits", "MatcherName", "describe"]

DoctypePolicy = Literal["allow", "forbid"]
"""What to do with a DOCTYPE: read its internal subset within limits, or refuse the document."""

MatcherName = Literal["inverted", "naive"]
"""What answers which subscriptions a document satisfies: the shared index, or every query in turn (the oracle)."""

_LARGEST = 2**63 - 1


def _setting(default: Any, unit: str, doc: str, least: int = 1, most: int = _LARGEST) -> Any:
    return field(default=default, metadata={"unit": unit, "doc": doc, "least": least, "most": most})


def _choice(default: str, doc: str, *choices: str) -> Any:
    return field(default=default, metadata={"unit": " or ".join(choices), "doc": doc, "choices": choices})


def _check(settings: Any) -> None:
    for item in fields(settings):
        value = getattr(settings, item.name)
        choices = item.metadata.get("choices")
        if choices is not None:
            if value not in choices:
                raise SettingsError(f"{item.name} is {value!r}; it must be one of {', '.join(choices)}")
        elif "least" in item.metadata:
            if value is None and item.default is None:
                continue
            if not isinstance(value, int) or isinstance(value, bool):
                raise SettingsError(f"{item.name} is {value!r}; it must be a whole number of {item.metadata['unit']}")
            if not item.metadata["least"] <= value <= item.metadata["most"]:
                raise SettingsError(
                    f"{item.name} is {value}; it must be between {item.metadata['least']} and {item.metadata['most']}"
                )


@dataclass(frozen=True, slots=True)
class Limits:
    """What a document and a query may cost; beyond it they become dead letters and never a crash.

    >>> Limits(depth=64).depth
    64
    >>> Limits(depth=0)
    Traceback (most recent call last):
        ...
    sardonyx.errors.SettingsError: depth is 0; it must be between 1 and 65534
    """

    document_bytes: int = _setting(
        64 * 1024 * 1024, "bytes", "Size of one document. Its tree takes a few times as much.", most=2**31 - 1
    )
    depth: int = _setting(1024, "levels", "Nesting of elements.", most=65_534)
    attributes: int = _setting(1024, "attributes", "Attributes of one element, namespace declarations included.")
    name_bytes: int = _setting(4096, "bytes", "Length of one name, its prefix included.")
    text_bytes: int = _setting(
        16 * 1024 * 1024, "bytes", "Length of one text node, attribute value, comment or processing instruction."
    )
    nodes: int = _setting(8 * 1024 * 1024, "nodes", "Nodes of one document, attributes included.", most=2**31 - 1)
    entity_amplification: int = _setting(
        10, "times the document's bytes", "What entities and default attributes may add, as a multiple of the document."
    )
    entity_floor_bytes: int = _setting(
        256 * 1024,
        "bytes",
        "What entities and default attributes may always add, so that the multiple hits no small honest document.",
        least=0,
    )
    entity_bytes: int = _setting(
        16 * 1024 * 1024,
        "bytes",
        "What entities and default attributes may add in all, whatever the multiple.",
        least=0,
    )
    entity_depth: int = _setting(32, "levels", "Nesting of entities in entities.", most=1024)
    doctype: DoctypePolicy = _choice(  # noqa: RUF009  it makes a field
        "allow",
        "Whether a document may have a DOCTYPE. Its internal subset is read within the limits; external subsets and "
        "entities are never loaded.",
        "allow",
        "forbid",
    )
    query_bytes: int = _setting(1024 * 1024, "bytes", "Length of one query.")
    query_depth: int = _setting(200, "levels", "Nesting of one query: parentheses, predicates, arguments.", most=1000)
    query_parts: int = _setting(
        256 * 1024, "parts", "Steps, operators, literals and calls of one query.", most=2**31 - 1
    )
    cost_limit: int = _setting(
        50_000_000,
        "node visits",
        "Work to evaluate one query on one document. A query that needs more fails for it with `cost_limit`.",
    )

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        _check(self)

    def for_core(self) -> dict[str, int | str]:
        """The limits as the core takes them, `cost_limit` apart."""
        return {item.name: getattr(self, item.name) for item in fields(self) if item.name != "cost_limit"}


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """How a broker works.

    >>> BrokerSettings(threads=2, limits=Limits(doctype="forbid")).limits.doctype
    'forbid'
    """

    limits: Limits = field(
        default_factory=Limits, metadata={"unit": "", "doc": "What a document and a query may cost: see `Limits`."}
    )
    matcher: MatcherName = _choice(  # noqa: RUF009  it makes a field
        "inverted",
        "What answers which subscriptions a document satisfies: the shared index, or each query in turn. Both give the "
        "same answers; `naive` is the slow one that is plainly right.",
        "inverted",
        "naive",
    )
    threads: int | None = _setting(
        None, "threads", "Threads of one `match_batch`. None: as many as the process may use processors.", most=1024
    )
    node_limit: int = _setting(
        1000, "nodes", "Nodes that `match(nodes=True)` reports of one subscription.", most=10_000_000
    )
    register_rows: int = _setting(
        250_000,
        "subscriptions",
        "How many subscriptions `register_many` hands to the core at a time: each such batch is one generation.",
        most=4_000_000,
    )

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        if not isinstance(self.limits, Limits):
            raise SettingsError(f"limits is {self.limits!r}; it must be a Limits")
        _check(self)

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any]) -> BrokerSettings:
        """Settings from plain data, such as a part of a YAML file; unknown names are refused.

        >>> BrokerSettings.from_mapping({"threads": 4, "limits": {"depth": 100}}).limits.depth
        100
        """
        values = dict(mapping)
        limits = values.pop("limits", {})
        if isinstance(limits, Mapping):
            limits = Limits(**_known(Limits, limits))
        return cls(limits=limits, **_known(cls, values))


def _known(cls: type[Any], mapping: Mapping[str, Any]) -> dict[str, Any]:
    names = [item.name for item in fields(cls)]
    for name in mapping:
        if name not in names:
            raise SettingsError(f"unknown setting {name!r}; {cls.__name__} has {', '.join(names)}")
    return dict(mapping)


def describe(cls: type[Any]) -> list[tuple[str, Any, str, str]]:
    """Name, default, unit and description of every setting of `Limits` or `BrokerSettings`."""

    def default(item: Field[Any]) -> Any:
        return item.default if item.name != "limits" else "Limits()"

    return [(item.name, default(item), item.metadata["unit"], item.metadata["doc"]) for item in fields(cls)]
