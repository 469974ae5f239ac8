"""The settings of a broker: frozen objects, given once.

Every setting says its unit, its default and why the default is what it is; `docs/settings.md` is made from this file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, Literal, get_args

from sardonyx.errors import SettingsError

__all__ = [
    "BrokerSettings",
    "DoctypePolicy",
    "JoinSettings",
    "Limits",
    "MatcherName",
    "StrategyName",
    "XPushSettings",
    "describe",
]

DoctypePolicy = Literal["allow", "forbid"]
"""What to do with a DOCTYPE: read its internal subset within limits, or refuse the document."""

MatcherName = Literal["inverted", "xpush", "naive"]
"""What answers which subscriptions a document satisfies: the shared index, the XPush machine, or every query in turn.

The last is the oracle of the others.
"""

StrategyName = Literal["naive", "F", "FW", "FWR", "shared"]
"""What the plans of transformations share, each more than the one before it.

Nothing (every query is evaluated by itself), the paths of `for`, those of `where` too, those of `return` too, and
joins, selections, groups and whole plans too.
"""

_LARGEST = 2**63 - 1


def _setting(default: Any, unit: str, doc: str, least: int = 1, most: int = _LARGEST) -> Any:
    return field(default=default, metadata={"unit": unit, "doc": doc, "least": least, "most": most})


def _choice(default: str, doc: str, *choices: str) -> Any:
    return field(default=default, metadata={"unit": " or ".join(choices), "doc": doc, "choices": choices})


def _switch(default: bool, doc: str) -> Any:
    return field(default=default, metadata={"unit": "on or off", "doc": doc, "switch": True})


def _check(settings: Any) -> None:
    for item in fields(settings):
        value = getattr(settings, item.name)
        if "switch" in item.metadata and not isinstance(value, bool):
            raise SettingsError(f"{item.name} is {value!r}; it must be True or False")
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
        "Work to evaluate one query on one document; in transformations also values compared and text written. A query "
        "that needs more fails for it with `cost_limit`.",
    )

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        _check(self)

    def for_core(self) -> dict[str, int | str]:
        """The limits as the core takes them, `cost_limit` apart."""
        return {item.name: getattr(self, item.name) for item in fields(self) if item.name != "cost_limit"}


@dataclass(frozen=True, slots=True)
class XPushSettings:
    """Options of the matcher `xpush` (Gupta & Suciu, SIGMOD 2003); they change costs, never answers.

    >>> XPushSettings(order=(("author", "title", "year"),), training=True).order
    (('author', 'title', 'year'),)
    >>> XPushSettings(order=(("a", "b", "a"),))
    Traceback (most recent call last):
        ...
    sardonyx.errors.SettingsError: order has 'a' twice in one chain
    """

    top_down: bool = _switch(
        True, "Prune by the path from the document's root: what it does not lead to is not looked at."
    )
    early: bool = _switch(
        False,
        "Report a filter as soon as it is known to be true and drop it from the states. Works with `top_down` only.",
    )
    order: tuple[tuple[str, ...], ...] | None = field(
        default=None,
        metadata={
            "unit": "chains of names",
            "doc": "The order of siblings that a document type promises: among the children of one element no earlier "
            "name of a chain comes after a later one. Names are `local` or `{uri}local`. A document that does not keep "
            "the order is matched without it.",
        },
    )
    training: bool = _switch(False, "Run documents made from the subscriptions before the first real one.")
    precompute_values: bool = _switch(
        False, "Make the states of the subscriptions' constants before a document needs them."
    )
    store_bytes: int = _setting(
        256 * 1024 * 1024,
        "bytes",
        "What the states and transitions of one thread may take per segment; when it is full they are made again.",
        least=0,
    )

    def __post_init__(self) -> None:
        """Refuse values out of range; any sequences of names will do as `order`."""
        _check(self)
        if self.order is not None:
            object.__setattr__(self, "order", tuple(_chain(chain) for chain in self.order))

    def for_core(self) -> dict[str, Any]:
        """The options as the core takes them."""
        return {item.name: getattr(self, item.name) for item in fields(self)}


def _chain(chain: Any) -> tuple[str, ...]:
    if isinstance(chain, str) or not all(isinstance(name, str) for name in chain):
        raise SettingsError(f"order has the chain {chain!r}; a chain is a sequence of names")
    for name in chain:
        if list(chain).count(name) > 1:
            raise SettingsError(f"order has {name!r} twice in one chain")
    return tuple(chain)


@dataclass(frozen=True, slots=True)
class JoinSettings:
    """How joins keep time and state; see docs/joins.md.

    >>> JoinSettings(lateness_us=5_000_000, timestamps={"news": "/rss/channel/item/pubDate"}).lateness_us
    5000000
    """

    lateness_us: int = _setting(
        0,
        "microseconds",
        "How far the timestamp of a document may lie behind the largest one seen. What is later joins nothing and "
        "becomes a dead letter. More keeps state longer.",
        least=0,
    )
    state_bytes: int = _setting(
        1024 * 1024 * 1024,
        "bytes",
        "What the state may take: documents that may still join. A document that has no room is refused with "
        "`state_limit`; nothing is dropped silently.",
    )
    memory_bytes: int = _setting(
        64 * 1024 * 1024,
        "bytes",
        "What may be remembered of decisions, by sets of equalities that hold between two documents; when it is full "
        "they are made again.",
        least=0,
    )
    results: bool = _switch(
        True,
        "Make the XML of results. Off, notifications only name documents, and the state keeps no text (but for joins "
        "that publish).",
    )
    timestamps: Mapping[str, str] | None = field(
        default=None,
        metadata={
            "unit": "XPath by stream",
            "doc": "Where documents without a timestamp say when they happened: ISO 8601, RFC 2822, or seconds since "
            "1970. Streams that are not named here: when they arrive.",
        },
        hash=False,
    )
    namespaces: Mapping[str, str] | None = field(
        default=None,
        metadata={"unit": "URI by prefix", "doc": "The prefixes in `timestamps`."},
        hash=False,
    )

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        for name in ("timestamps", "namespaces"):
            value = getattr(self, name)
            if value is not None and not (
                isinstance(value, Mapping) and all(isinstance(text, str) for pair in value.items() for text in pair)
            ):
                raise SettingsError(f"{name} is {value!r}; it must map strings to strings")
        _check(self)

    def for_core(self) -> dict[str, Any]:
        """The settings as the core takes them."""
        return {item.name: getattr(self, item.name) for item in fields(self)}


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
        "What answers which subscriptions a document satisfies: the shared index, the XPush machine, or each query in "
        "turn. All give the same answers; `naive` is the slow one that is plainly right.",
        *get_args(MatcherName),
    )
    strategy: StrategyName = _choice(  # noqa: RUF009  it makes a field
        "shared",
        "What the plans of transformations share: nothing, the paths of `for` (F), of `where` (FW), of `return` (FWR), "
        "or all they can. All give the same answers; `naive` is the slow one that is plainly right.",
        *get_args(StrategyName),
    )
    elements: Mapping[str, Sequence[str]] | None = field(
        default=None,
        metadata={
            "unit": "",
            "doc": "The elements that each element may contain, by a DTD that most documents follow; plans of "
            "transformations use it, and documents that do not follow it are transformed all the same. "
            "`sardonyx.workloads.dtd.element_graph` reads it from a file.",
        },
        hash=False,
    )
    xpush: XPushSettings = field(
        default_factory=XPushSettings,
        metadata={"unit": "", "doc": "Options of the matcher `xpush`: see `XPushSettings`."},
    )
    joins: JoinSettings = field(
        default_factory=JoinSettings,
        metadata={"unit": "", "doc": "How joins keep time and state: see `JoinSettings`."},
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
        if not isinstance(self.xpush, XPushSettings):
            raise SettingsError(f"xpush is {self.xpush!r}; it must be an XPushSettings")
        if not isinstance(self.joins, JoinSettings):
            raise SettingsError(f"joins is {self.joins!r}; it must be a JoinSettings")
        if self.elements is not None and not _is_element_graph(self.elements):
            raise SettingsError(f"elements is {self.elements!r}; it must map names of elements to lists of names")
        _check(self)

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any]) -> BrokerSettings:
        """Settings from plain data, such as a part of a YAML file; unknown names are refused.

        >>> BrokerSettings.from_mapping({"threads": 4, "limits": {"depth": 100}}).limits.depth
        100
        """
        values = dict(mapping)
        for name, part in (("limits", Limits), ("xpush", XPushSettings), ("joins", JoinSettings)):
            if isinstance(values.get(name), Mapping):
                values[name] = part(**_known(part, values[name]))
        return cls(**_known(cls, values))


def _is_element_graph(value: object) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(name, str) and not isinstance(children, str) and all(isinstance(child, str) for child in children)
        for name, children in value.items()
    )


def _known(cls: type[Any], mapping: Mapping[str, Any]) -> dict[str, Any]:
    names = [item.name for item in fields(cls)]
    for name in mapping:
        if name not in names:
            raise SettingsError(f"unknown setting {name!r}; {cls.__name__} has {', '.join(names)}")
    return dict(mapping)


def describe(cls: type[Any]) -> list[tuple[str, Any, str, str]]:
    """Name, default, unit and description of every setting of one of these classes."""

    def default(item: Field[Any]) -> Any:
        return (
            item.default
            if item.default is not MISSING
            else {"limits": "Limits()", "xpush": "XPushSettings()", "joins": "JoinSettings()"}[item.name]
        )

    return [(item.name, default(item), item.metadata["unit"], item.metadata["doc"]) for item in fields(cls)]
