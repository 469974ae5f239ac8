"""Joins by definition: `docs/xscl.md` read word for word, with nested loops over all documents, and libxml2 for paths.

Nothing here is clever, keeps state or forgets anything: a `Definition` holds every document and every subscription it
has heard of, and says at the end which notifications there are and with which batch each was complete.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from lxml import etree

from tests.join_queries import (
    Block,
    Content,
    Element,
    Message,
    Operand,
    Operator,
    Query,
    Step,
    Subscription,
    variables_of,
)

DEFAULT_PREFIX = "default-"
"""libxml2 knows no default namespace for names in XPath; this prefix stands for it."""

Bindings = dict[str, "Node"]


class RefusedError(Exception):
    """A subscription that may not be registered."""


class TooManyError(Exception):
    """More combinations than a test wants to wait for."""


@dataclass(frozen=True)
class Node:
    """A node of a document: its place (in pre-order), its string-value and its XML text."""

    place: tuple[Any, ...]
    value: str
    item: Any = field(compare=False, repr=False)

    @property
    def xml(self) -> str:
        """A copy of it, as text."""
        if isinstance(self.item, str):
            assert not self.item.is_attribute, "attributes are copied into elements only"  # type: ignore[attr-defined]
            return _escaped(self.value)
        return str(etree.tostring(self.item, encoding="unicode", with_tail=False))


@dataclass(frozen=True)
class Notification:
    """News of a join: ids of documents (of derived ones, their notifications), the nodes selected, and the result."""

    subscription_id: str
    documents: tuple[Any, ...]
    nodes: tuple[tuple[str, tuple[Any, ...]], ...]
    result: str
    timestamps_us: tuple[int, ...]
    timestamp_us: int = field(compare=False)
    batch: int = field(compare=False)

    @property
    def signature(self) -> tuple[str, tuple[Any, ...], str]:
        """What can be seen of it from outside: the numbers of its nodes can not, and its id is a hash of them."""
        return self.subscription_id, tuple(map(_visible, self.documents)), self.result


@dataclass(frozen=True)
class Report:
    """What became of the documents of one batch."""

    late: list[str]
    repetitions: int


def canonical(xml: str) -> str:
    """XML text in the form in which two that mean the same are equal; namespaces that are not used do not count."""
    return str(etree.tostring(etree.fromstring(xml), method="c14n", exclusive=True).decode())


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', "&quot;").replace("\n", "&#10;").replace("\t", "&#9;")


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\r", "&#13;")


# --- XPath ------------------------------------------------------------------------------------------------------------


class Tree:
    """A parsed document that knows the place of every node."""

    def __init__(self, xml: str) -> None:
        self.root = etree.fromstring(xml.encode())
        self.elements = list(self.root.iter())
        self.numbers = {element: number for number, element in enumerate(self.elements)}

    def node(self, item: Any) -> Node:
        """A node as XPath gave it."""
        if isinstance(item, str):
            owner = self.numbers[item.getparent()]  # type: ignore[attr-defined]
            if item.is_attribute:  # type: ignore[attr-defined]
                return Node((owner, 1, item.attrname), str(item), item)  # type: ignore[attr-defined]
            return Node((owner, 2, item.is_tail), str(item), item)  # type: ignore[attr-defined]
        return Node((self.numbers[item], 0, ""), _string(item) if isinstance(item.tag, str) else item.text or "", item)


_string = etree.XPath("string()")


@cache
def _compiled(text: str, namespaces: tuple[tuple[str, str], ...]) -> Any:
    return etree.XPath(text, namespaces=dict(namespaces))


class Paths:
    """Writes steps for libxml2, without their variables, and evaluates them."""

    def __init__(self, query: Query) -> None:
        names = dict(query.namespaces)
        self._default = f"{DEFAULT_PREFIX}:" if "" in names else ""
        if self._default:
            names[DEFAULT_PREFIX] = names.pop("")
        self._namespaces = tuple(sorted(names.items()))
        self._texts: dict[int, str] = {}

    def select(self, item: Any, text: str) -> list[Any]:
        """The nodes that an XPath leads to from an element."""
        found = _compiled(text, self._namespaces)(item)
        assert isinstance(found, list), text
        return found

    def relative(self, steps: Sequence[Step]) -> str:
        """The XPath of steps below a node."""
        return "." + "".join(map(self._step, steps))

    def absolute(self, steps: Sequence[Step]) -> str:
        """The XPath of the first steps of a block."""
        return "".join(map(self._step, steps))

    def plain(self, text: str) -> str:
        """A condition, or a path of a constructor, with the default namespace."""
        return text.replace("~", self._default)

    def _step(self, step: Step) -> str:
        if id(step) not in self._texts:  # the query keeps its steps, so that their identities stay their own
            self._texts[id(step)] = self._text(step)
        return self._texts[id(step)]

    def _text(self, step: Step) -> str:
        asked = "".join(f"[{' and '.join(map(self._conjunct, predicate))}]" for predicate in step.predicates)
        return f"{step.separator}{self._test(step.test)}{asked}"

    def _conjunct(self, conjunct: Any) -> str:
        if not isinstance(conjunct, str):
            return self.relative(conjunct.steps)
        text = self.plain(conjunct)
        return f"({text})" if " or " in text else text

    def _test(self, test: str) -> str:
        axis, colons, name = test.rpartition("::")
        plain = name[:1] not in "@*" and not name.endswith(")") and ":" not in name
        return f"{axis}{colons}{self._default if plain and axis != 'attribute' else ''}{name}"


# --- blocks -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """A witness of a block in a document: the node of each variable and of each operand with a path, and the root."""

    message: Message
    root: Node
    nodes: Bindings


def witnesses(block: Block, operands: Sequence[Operand], paths: Paths, tree: Tree) -> list[tuple[Node, Bindings]]:
    """Every choice of nodes for a block's root, its variables and those operands with a path that start in it."""
    root = block.root
    steps = block.steps
    found = []
    for item in paths.select(tree.root, paths.absolute(steps[: root + 1])):
        for below in _below(steps[root], item, paths, tree):
            for rest in _along(steps[root + 1 :], item, paths, tree):
                for further in _operands(operands, below | rest, paths, tree):
                    found.append((tree.node(item), below | rest | further))
    distinct = {
        (node.place, tuple(sorted((k, v.place) for k, v in below.items()))): (node, below) for node, below in found
    }
    return list(distinct.values())


def _along(steps: Sequence[Step], item: Any, paths: Paths, tree: Tree) -> Iterator[Bindings]:
    """The choices for a path below a node."""
    if not any(step.binds for step in steps):
        if not steps or paths.select(item, paths.relative(steps)):
            yield {}
        return
    for child in paths.select(item, paths.relative(steps[:1])):
        for below in _below(steps[0], child, paths, tree):
            for rest in _along(steps[1:], child, paths, tree):
                yield below | rest


def _below(step: Step, item: Any, paths: Paths, tree: Tree) -> Iterator[Bindings]:
    """The choices for a step's variable and for the patterns in its predicates, its node being chosen."""
    chosen: list[Bindings] = [{} if step.variable is None else {step.variable: tree.node(item)}]
    for predicate in step.predicates:
        for conjunct in predicate:
            if not isinstance(conjunct, str):
                assert not isinstance(item, str), "no patterns below attributes and texts here"
                ways = list(_along(conjunct.steps, item, paths, tree))
                chosen = [one | way for one in chosen for way in ways]
    yield from chosen


def _operands(operands: Sequence[Operand], chosen: Bindings, paths: Paths, tree: Tree) -> Iterator[Bindings]:
    """The choices for operands such as `x/isbn`: each path below a variable is a variable of its own."""
    ways: list[Bindings] = [{}]
    for operand in operands:
        start = chosen[operand.variable].item
        assert not isinstance(start, str), "no paths below attributes and texts here"
        nodes = [tree.node(item) for item in paths.select(start, paths.relative(operand.path))]
        ways = [way | {operand.name: node} for way in ways for node in nodes]
    yield from ways


def value_of(operand: Operand, nodes: Bindings) -> str:
    """What is compared."""
    value = nodes[operand.name].value
    for normal in reversed(operand.normals):
        if normal == "normalize-space":
            value = " ".join(
                part for part in value.replace("\t", " ").replace("\r", " ").replace("\n", " ").split(" ") if part
            )
        else:
            value = value.lower()
    return value


# --- chains -----------------------------------------------------------------------------------------------------------


class Plan:
    """A query with what is looked up again and again: the operands of each block, and which side is which."""

    def __init__(self, query: Query) -> None:
        self.query = query
        self.paths = Paths(query)
        self.variables = [set(variables_of(block.steps)) for block in query.blocks]
        self.operands: list[list[Operand]] = [[] for _ in query.blocks]
        for operator in query.operators:
            for equality in operator.equalities:
                for operand in (equality.left, equality.right):
                    wanted = self.operands[self.block_of(operand.variable)]
                    if operand.path and all(operand.name != each.name for each in wanted):
                        wanted.append(operand)

    def block_of(self, variable: str) -> int:
        """The number of the block that binds a variable."""
        return next(number for number, names in enumerate(self.variables) if variable in names)

    def hears(self, block: Block, subscription: Subscription, message: Message) -> bool:
        """Whether a block looks at the documents of a stream."""
        stream = subscription.stream if block.stream is None else block.stream
        return not message.derived if stream is None else stream == message.stream

    def holds(self, operator: Operator, left: Sequence[Row], right: Row) -> bool:
        """Whether the equalities of an operator hold between what stands left of it and a witness right of it."""
        nodes: Bindings = {}
        for row in (*left, right):
            nodes |= row.nodes
        return all(value_of(each.left, nodes) == value_of(each.right, nodes) for each in operator.equalities)


def in_time(operator: Operator, left_us: int, right_us: int) -> bool:
    """The table of docs/xscl.md, section "Time"."""
    if operator.kind == "JOIN":
        return operator.window_us is None or abs(left_us - right_us) <= operator.window_us
    return right_us > left_us and (operator.window_us is None or right_us - left_us <= operator.window_us)


# --- results ----------------------------------------------------------------------------------------------------------


def result_of(query: Query, paths: Paths, rows: Sequence[Row]) -> str:
    """What SELECT makes of a choice of nodes, in canonical form."""
    if query.select is None:
        return canonical(f"<result>{''.join(row.root.xml for row in rows)}</result>")
    nodes: Bindings = {}
    for row in rows:
        nodes |= row.nodes
    return canonical(_constructed(query.select, nodes, paths, dict(query.namespaces).get("")))


def _constructed(element: Element, nodes: Bindings, paths: Paths, default: str | None, outer: bool = True) -> str:
    """The text of an element; unprefixed names in it are in the default namespace of the subscription."""
    declared = f' xmlns="{default}"' if outer and default else ""
    attributes = "".join(f' {name}="{_quoted(nodes[variable].value)}"' for name, variable in element.attributes)
    content = "".join(
        _constructed(part, nodes, paths, default, False) if isinstance(part, Element) else _content(part, nodes, paths)
        for part in element.content
    )
    return f"<{element.name}{declared}{attributes}>{content}</{element.name}>"


def _content(part: Content, nodes: Bindings, paths: Paths) -> str:
    if part.kind == "text":
        return _escaped(part.text)
    node = nodes[part.variable]
    if part.kind == "string":
        return _escaped(node.value)
    if not part.path:
        return _alone(node.item, node.xml) if part.kind == "copy" else "1"
    found = paths.select(node.item, "./" + paths.plain(part.path))
    if part.kind == "count":
        return str(len(found))
    return "".join(
        _escaped(item)
        if isinstance(item, str)
        else _alone(item, str(etree.tostring(item, encoding="unicode", with_tail=False)))
        for item in found
    )


def _alone(item: Any, text: str) -> str:
    """A copy that keeps its namespace wherever it is put: none is said too."""
    if isinstance(item, str) or not isinstance(item.tag, str) or item.tag.startswith("{"):
        return text
    end = len(item.tag) + 1
    return f'{text[:end]} xmlns=""{text[end:]}'


# --- everything -------------------------------------------------------------------------------------------------------


@dataclass
class Registered:
    """A subscription and the batches during which it was registered."""

    subscription: Subscription
    plan: Plan
    since: int
    until: int | None = None

    def covers(self, batch: int) -> bool:
        """Whether it was registered when a batch was published."""
        return self.since <= batch and (self.until is None or batch < self.until)


class Material:
    """Parsed documents and witnesses, which several definitions can share: they depend on nothing but both texts."""

    def __init__(self) -> None:
        self.trees: dict[str, Tree] = {}
        self.plans: dict[int, Plan] = {}
        self.witnesses: dict[tuple[int, int, str], list[tuple[Node, Bindings]]] = {}

    def plan(self, query: Query) -> Plan:
        """The plan of a query, which is kept so that its identity stays its own."""
        if id(query) not in self.plans:
            self.plans[id(query)] = Plan(query)
        return self.plans[id(query)]

    def rows(self, plan: Plan, number: int, message: Message) -> list[Row]:
        """The witnesses of a block in a document."""
        key = (id(plan.query), number, message.xml)
        if key not in self.witnesses:
            if message.xml not in self.trees:
                self.trees[message.xml] = Tree(message.xml)
            self.witnesses[key] = witnesses(
                plan.query.blocks[number], plan.operands[number], plan.paths, self.trees[message.xml]
            )
        return [Row(message, root, nodes) for root, nodes in self.witnesses[key]]


class Definition:
    """All subscriptions and all documents, batch by batch; `notifications` says what they mean."""

    def __init__(self, lateness_us: int = 0, material: Material | None = None, most: int = 1_000_000) -> None:
        """`most`: combinations of one query beyond which `TooManyError` is raised."""
        self.lateness_us = lateness_us
        self.material = Material() if material is None else material
        self.most = most
        self.batch = 0
        self.highest: int | None = None
        self.seen: set[tuple[str | None, str, int]] = set()
        self.accepted: list[tuple[Message, int]] = []
        self.registered: list[Registered] = []
        self.hears = False

    def register(self, subscription: Subscription) -> None:
        """Register a subscription, which replaces one of its id; a cycle of streams is refused."""
        others = [each for each in self.registered if each.until is None and each.subscription.id != subscription.id]
        if _has_cycle([each.subscription for each in others] + [subscription]):
            raise RefusedError("a cycle of streams")
        self.unregister(subscription.id)
        self.registered.append(Registered(subscription, self.material.plan(subscription.query), self.batch))

    def unregister(self, subscription_id: str) -> None:
        """End a subscription."""
        for each in self.registered:
            if each.until is None and each.subscription.id == subscription_id:
                each.until = self.batch

    def publish(self, messages: Iterable[Message]) -> Report:
        """A batch of documents, judged against the watermark that the batches before it left."""
        late, repetitions = [], 0
        self.hears = self.hears or any(each.until is None for each in self.registered)
        if not self.hears:
            self.batch += 1
            return Report([], 0)
        arrived = []
        for message in messages:
            if self.highest is not None and message.timestamp_us < self.highest - self.lateness_us:
                late.append(message.id)
            elif message.key in self.seen:
                repetitions += 1
            else:
                self.seen.add(message.key)
                self.accepted.append((message, self.batch))
                arrived.append(message.timestamp_us)
        self.highest = max(arrived + ([] if self.highest is None else [self.highest]), default=None)
        self.batch += 1
        return Report(late, repetitions)

    def notifications(self) -> list[Notification]:
        """Every notification there is, also those that need documents made of others."""
        derived: list[tuple[Message, int]] = []
        while True:
            found = [(each, self._of(each, self.accepted + derived)) for each in self.registered]
            made = [
                (
                    Message(_identity(one), each.subscription.query.publish, one.timestamp_us, one.result, True),
                    one.batch,
                )
                for each, ones in found
                if each.subscription.query.publish is not None
                for one in ones
            ]
            if {message.key for message, _ in made} == {message.key for message, _ in derived}:
                return [one for _, ones in found for one in ones]
            derived = made

    def _of(self, registered: Registered, messages: list[tuple[Message, int]]) -> list[Notification]:
        plan, query = registered.plan, registered.subscription.query
        batches = {message.key: batch for message, batch in messages}
        heard = [
            [
                (message, rows)
                for message, batch in messages
                if registered.covers(batch) and plan.hears(block, registered.subscription, message)
                if (rows := self.material.rows(plan, number, message))
            ]
            for number, block in enumerate(query.blocks)
        ]
        chosen = [(row,) for _, rows in heard[0] for row in rows]
        for operator, right in zip(query.operators, heard[1:], strict=True):
            chosen = [
                (*left, row)
                for left in chosen
                for message, rows in right
                if all((message.stream, message.id) != (each.message.stream, each.message.id) for each in left)
                if in_time(operator, max(each.message.timestamp_us for each in left), message.timestamp_us)
                for row in rows
                if plan.holds(operator, left, row)
            ]
            if len(chosen) > self.most:
                raise TooManyError
        distinct: dict[Any, Notification] = {}
        used = None if query.select is None else query.select.variables()
        for rows in chosen:
            if used is None:
                nodes = tuple((str(number), row.root.place) for number, row in enumerate(rows))
            else:
                nodes = tuple(
                    sorted((name, node.place) for row in rows for name, node in row.nodes.items() if name in used)
                )
            keys = tuple(row.message.key for row in rows)
            if (keys, nodes) not in distinct:
                distinct[keys, nodes] = Notification(
                    registered.subscription.id,
                    tuple(row.message.id for row in rows),
                    nodes,
                    result_of(query, plan.paths, rows),
                    tuple(row.message.timestamp_us for row in rows),
                    max(row.message.timestamp_us for row in rows),
                    max(batches[key] for key in keys),
                )
        return list(distinct.values())


def _visible(document: Any) -> Any:
    """An id, or the signature of the notification that a derived document's id stands for."""
    if isinstance(document, str):
        return document
    subscription_id, documents, _, result, _, _ = document
    return subscription_id, tuple(map(_visible, documents)), result


def _identity(notification: Notification) -> Any:
    """What stands for the id of a document made of a join: everything about it, which its real id is a hash of."""
    return (
        notification.subscription_id,
        notification.documents,
        notification.nodes,
        notification.result,
        notification.timestamp_us,
        notification.timestamps_us,
    )


def _has_cycle(subscriptions: Sequence[Subscription]) -> bool:
    """Whether documents of some stream could lead to documents of the same stream."""
    edges = {
        (heard, each.query.publish)
        for each in subscriptions
        if each.query.publish is not None
        for block in each.query.blocks
        if (heard := each.stream if block.stream is None else block.stream) is not None
    }
    reached = set(edges)
    while True:
        further = reached | {(start, end) for start, middle in reached for again, end in edges if middle == again}
        if further == reached:
            return any(start == end for start, end in reached)
        reached = further
