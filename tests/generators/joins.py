"""Random scenarios of joins: subscriptions that come and go, and documents in batches, all decided by a seed.

Values come from small alphabets and times from a small grid whose steps are those of the windows, so that much joins
and much falls on the ends of windows or a microsecond beside them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from tests.generators.reduce import smaller_documents
from tests.join_queries import (
    Block,
    Content,
    Element,
    Equality,
    Message,
    Operand,
    Operator,
    Pattern,
    Query,
    Step,
    Subscription,
    variables_of,
)
from tests.join_text import to_text

URI = "urn:joins"
NORMALS = ((), (), (), (), ("normalize-space",), ("lower-case",), ("lower-case", "normalize-space"))
ALPHABETS = (
    ("A",),
    ("A", "B"),
    ("A", "B"),
    ("A", "B", "C", "D"),
    ("a", "A", " a ", "a\tb", "a  b"),
    ("1", "01", "1.0", "\u00c9", "\u00e9"),
    ("x", ""),
)


@dataclass(frozen=True)
class Action:
    """One thing that happens: a subscription is registered or unregistered, or a batch of documents is published."""

    kind: str
    subscription: Subscription | None = None
    text: str = ""
    name: str = ""
    messages: tuple[Message, ...] = ()


@dataclass(frozen=True)
class Scenario:
    """What happens, with which lateness, and whether the documents of one action are one batch or each its own."""

    seed: int
    lateness_us: int
    together: bool
    actions: tuple[Action, ...]

    @property
    def messages(self) -> list[Message]:
        """All documents."""
        return [message for action in self.actions for message in action.messages]

    def __str__(self) -> str:
        """As it is read in the report of a failure."""
        lines = [f"seed {self.seed}, lateness {self.lateness_us} us, {'batches' if self.together else 'one by one'}"]
        for action in self.actions:
            if action.subscription is not None:
                which = action.subscription
                names = f" namespaces={dict(which.query.namespaces)}" if which.query.namespaces else ""
                stream = f" stream={which.stream}" if which.stream is not None else ""
                lines.append(f"register {which.id}{stream}{names}: {action.text}")
            elif action.kind == "unregister":
                lines.append(f"unregister {action.name}")
            else:
                lines.append("publish")
            lines += [f"  {m.stream or '-'} {m.id} at {m.timestamp_us}: {m.xml}" for m in action.messages]
        return "\n".join(lines)


@dataclass(frozen=True)
class Schema:
    """Elements: what each may hold, how often at most, and which attributes it may have."""

    roots: tuple[str, ...]
    children: dict[str, tuple[tuple[str, int], ...]]
    attributes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    depth: int = 4

    def is_leaf(self, name: str) -> bool:
        """Whether an element holds text only."""
        return not self.children.get(name)

    def below(self, name: str, depth: int = 3) -> list[tuple[str, ...]]:
        """The ways from an element to elements below it."""
        if depth == 0:
            return []
        ways: list[tuple[str, ...]] = []
        for child, _ in self.children.get(name, ()):
            ways.append((child,))
            ways += [(child, *way) for way in self.below(child, depth - 1)]
        return ways


SCHEMAS = (
    Schema(
        ("order", "ship"),
        {"order": (("sku", 2), ("cust", 1)), "ship": (("sku", 1), ("cust", 1), ("no", 2))},
        {"order": ("k",), "ship": ("k",), "sku": ("k",)},
    ),
    Schema(
        ("book", "blog"),
        {"book": (("author", 2), ("title", 1)), "blog": (("author", 2), ("title", 1), ("cat", 2))},
    ),
    Schema(
        ("feed", "list"),
        {
            "feed": (("entry", 2), ("title", 1)),
            "list": (("entry", 2),),
            "entry": (("author", 2), ("title", 1), ("cat", 2)),
            "author": (("name", 1), ("mail", 1)),
        },
        {"entry": ("k",), "cat": ("k",)},
    ),
    Schema(
        ("part", "kit"),
        {"part": (("part", 2), ("name", 1), ("use", 1)), "kit": (("part", 2), ("name", 1))},
        {"part": ("k",), "use": ("k",)},
        depth=3,
    ),
)


@dataclass
class _Step:
    """A step that is still being built; `kind` is the element that it leads to."""

    separator: str
    test: str
    kind: str
    predicates: "list[list[_Pattern | str]]" = field(default_factory=list)
    variable: str | None = None

    def frozen(self) -> Step:
        made = tuple(
            tuple(part if isinstance(part, str) else Pattern(tuple(step.frozen() for step in part.steps)) for part in p)
            for p in self.predicates
        )
        return Step(self.separator, self.test, made, self.variable)


@dataclass
class _Pattern:
    steps: list[_Step]


@dataclass
class _Block:
    stream: str | None
    steps: list[_Step]
    values: list[str]
    starts: list[_Step]
    attribute: bool = False
    counts: bool = False

    def frozen(self) -> Block:
        return Block(self.stream, tuple(step.frozen() for step in self.steps))


def reduced(scenario: Scenario, fails: Callable[[Scenario], bool], rounds: int = 400) -> Scenario:
    """A scenario that still fails, and from which nothing can be dropped without its passing (within `rounds`)."""
    for _ in range(rounds):
        better = next((one for one in _smaller(scenario) if fails(one)), None)
        if better is None:
            break
        scenario = better
    return scenario


def _smaller(scenario: Scenario) -> Iterator[Scenario]:
    """Scenarios with one thing less, the larger things first."""
    actions = scenario.actions
    for size in (8, 3, 1):
        for at in range(0, len(actions), size):
            yield replace(scenario, actions=actions[:at] + actions[at + size :])
    for at, action in enumerate(actions):
        for shorter in _smaller_actions(action):
            yield replace(scenario, actions=(*actions[:at], shorter, *actions[at + 1 :]))
    if scenario.together:
        yield replace(scenario, together=False)
    if scenario.lateness_us:
        yield replace(scenario, lateness_us=0)


def _smaller_actions(action: Action) -> Iterator[Action]:
    for at, message in enumerate(action.messages):
        before, after = action.messages[:at], action.messages[at + 1 :]
        if len(action.messages) > 1:
            yield replace(action, messages=before + after)
        for xml in smaller_documents(message.xml):
            if len(xml) < len(message.xml):
                yield replace(action, messages=(*before, replace(message, xml=xml), *after))
    if action.subscription is not None:
        for query in _smaller_queries(action.subscription.query):
            if to_text(query) != action.text:
                yield replace(action, subscription=replace(action.subscription, query=query), text=to_text(query))


def _smaller_queries(query: Query) -> Iterator[Query]:
    yield query  # in the plainest spelling
    if query.publish is not None:
        yield replace(query, publish=None)
    if query.select is not None:
        yield replace(query, select=None)
    if query.operators:
        yield replace(query, blocks=query.blocks[:-1], operators=query.operators[:-1])
        if len(query.operators) == 1:
            yield replace(query, blocks=query.blocks[1:], operators=())
    for at, operator in enumerate(query.operators):
        for number in range(len(operator.equalities)):
            fewer = operator.equalities[:number] + operator.equalities[number + 1 :]
            if fewer:
                shorter = replace(operator, equalities=fewer)
                yield replace(query, operators=(*query.operators[:at], shorter, *query.operators[at + 1 :]))
    used = {
        side.variable
        for operator in query.operators
        for each in operator.equalities
        for side in (each.left, each.right)
    } | (set() if query.select is None else query.select.variables())
    for at, block in enumerate(query.blocks):
        for steps in _smaller_steps(block.steps, used):
            yield replace(query, blocks=(*query.blocks[:at], replace(block, steps=steps), *query.blocks[at + 1 :]))


def _smaller_steps(steps: tuple[Step, ...], used: set[str]) -> Iterator[tuple[Step, ...]]:
    """Paths with one predicate, conjunct or step less that still bind what is used."""
    for at, step in enumerate(steps):
        before, after = steps[:at], steps[at + 1 :]
        if len(steps) > 1 and not used & set(variables_of((step,))):
            yield before + after
        if step.variable is not None and step.variable not in used:
            yield (*before, replace(step, variable=None), *after)
        for number, predicate in enumerate(step.predicates):
            rest = step.predicates[:number], step.predicates[number + 1 :]
            for place, conjunct in enumerate(predicate):
                bound = set() if isinstance(conjunct, str) else set(variables_of(conjunct.steps))
                if not used & bound:
                    fewer = predicate[:place] + predicate[place + 1 :]
                    kept = (fewer,) if fewer else ()
                    yield (*before, replace(step, predicates=(*rest[0], *kept, *rest[1])), *after)
                elif not isinstance(conjunct, str):
                    for shorter in _smaller_steps(conjunct.steps, used):
                        if variables_of(shorter):
                            fewer = (*predicate[:place], Pattern(shorter), *predicate[place + 1 :])
                            yield (*before, replace(step, predicates=(*rest[0], fewer, *rest[1])), *after)


def scenario(seed: int, unit_us: int | None = None) -> Scenario:
    """The scenario of a seed; with `unit_us` its times are near 0, in these steps."""
    maker = _Maker(seed)
    if unit_us is not None:
        maker.unit_us, maker.base_us = unit_us, 0
    return maker.scenario()


class _Maker:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = Random(seed)
        random = self.random
        self.schema = random.choice(SCHEMAS)
        self.alphabet = random.choice(ALPHABETS)
        # Prefixes of documents and queries: no namespace, a prefix, or a default namespace in documents or queries.
        none: tuple[str | None, str | None] = (None, None)
        prefixes = random.choice((none, none, none, ("", "p"), ("d", "p"), ("d", ""), ("", "")))
        self.document_prefix, self.query_prefix = prefixes
        self.numbered = random.random() < 0.7
        self.dense = random.random() < 0.7
        self.unit_us = random.choice((1, 10, 1_000, 1_000_000, 3_600_000_000))
        self.base_us = random.choice((0, 1_600_000_000_000_000, -5 * self.unit_us, 1_600_000_000_000_001))
        self.streams: tuple[str | None, ...] = random.choice((("S",), ("S",), ("S", "T"), ("S", "T", None), (None,)))
        self.published: list[str] = []
        self.variables = 0
        self.documents = 0

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    # --- what happens

    def scenario(self) -> Scenario:
        random = self.random
        subscriptions = [self.subscription(number) for number in range(random.choice((1, 2, 3, 3, 4, 5, 6)))]
        cuts = self.batches(random.randint(5, 25))
        actions = [self.registration(each) for each in subscriptions if not self.chance(0.12)]
        waiting = [each for each in subscriptions if not any(each is action.subscription for action in actions)]
        known = [action.subscription.id for action in actions if action.subscription is not None]
        for messages in cuts:
            actions.append(Action("publish", messages=messages))
            if waiting and self.chance(0.3):
                each = waiting.pop()
                actions.append(self.registration(each))
                known.append(each.id)
            if known and self.chance(0.04):
                actions.append(Action("unregister", name=random.choice(known)))
            if known and self.chance(0.03):
                actions.append(self.registration(replace(self.subscription(9), id=random.choice(known))))
        lateness_us = random.choice((0, 0, 1, self.unit_us, 3 * self.unit_us, 100 * self.unit_us))
        return Scenario(self.seed, lateness_us, self.chance(0.5), tuple(actions))

    def registration(self, subscription: Subscription) -> Action:
        text = to_text(subscription.query, Random(self.random.random()))
        return Action("register", subscription, text)

    # --- documents

    def batches(self, count: int) -> list[tuple[Message, ...]]:
        random = self.random
        made: list[Message] = []
        place = 0
        for number in range(count):
            place += random.choice((0, 0, 0, 1, 1, 2, 3) if self.dense else (1, 1, 2, 5))
            if made and self.chance(0.08):
                made.append(random.choice(made))
                continue
            back = random.randint(1, 5) if self.chance(0.15) else 0
            at = self.base_us + (place - back) * self.unit_us + random.choice((0, 0, 0, 0, 0, 1, -1))
            stream, name = random.choice(self.streams), f"m{number}"
            if made and self.chance(0.1):
                name = random.choice(made).id
                if any((stream, name, at) == one.key for one in made):
                    continue
            made.append(Message(name, stream, at, self.document()))
        batches = []
        while made:
            size = random.choice((1, 1, 2, 3, 5))
            batches.append(tuple(made[:size]))
            made = made[size:]
        return batches

    def document(self) -> str:
        prefix = self.document_prefix
        declared = "" if prefix is None else f' xmlns{":" if prefix else ""}{prefix}="{URI}"'
        self.documents += 1
        self.elements = 0
        return self.element(self.random.choice(self.schema.roots), declared, self.schema.depth)

    def element(self, name: str, declared: str, depth: int) -> str:
        random = self.random
        tag = f"{self.document_prefix}:{name}" if self.document_prefix else name
        self.elements += 1
        attributes = declared + (f' n="{self.documents}-{self.elements}"' if self.numbered else "")
        for attribute in self.schema.attributes.get(name, ()):
            if self.chance(0.85):
                attributes += f' {attribute}="{random.choice(self.alphabet)}"'.replace("\t", "&#9;")
        if self.schema.is_leaf(name):
            content = random.choice(self.alphabet)
            if content and self.chance(0.05):
                content = f"{content[:1]}<!-- of -->{content[1:]}"
        else:
            content = "".join(
                self.element(child, "", depth - 1)
                for child, most in self.schema.children[name]
                for _ in range(
                    random.choice((0, 1, 1, 1, 1, 1, most, most)) if depth > 1 or self.schema.is_leaf(child) else 0
                )
            )
        return f"<{tag}{attributes}>{content}</{tag}>"

    # --- queries

    def name(self, name: str) -> str:
        return f"{self.query_prefix}:{name}" if self.query_prefix else name

    def plain(self, name: str) -> str:
        return f"~{name}" if self.query_prefix == "" else self.name(name)

    def subscription(self, number: int) -> Subscription:
        random = self.random
        query = self.query(number)
        return Subscription(f"s{number}", query, random.choice((None, None, None, None, *self.streams)))

    def query(self, number: int) -> Query:
        random = self.random
        self.variables = 0
        select = self.chance(0.3)
        # Streams made by joins: the first subscriptions publish, later ones hear of it; seldom that is a cycle.
        heard: Sequence[str | None] = (*self.streams, *self.streams, None)
        publish = None
        if self.chance(0.35 if number < 3 else 0.05):
            publish = f"d{len(self.published)}"
        if self.published and self.chance(0.6):
            heard = (*self.streams, *self.published, *self.published)
        if publish is not None:
            self.published.append(
                self.random.choice(self.published) if self.published and self.chance(0.3) else publish
            )
            publish = self.published[-1]
        blocks = [
            self.block(random.choice(heard), select) for _ in range(random.choice((1, 2, 2, 2, 2, 2, 2, 3, 3, 4)))
        ]
        operators = [self.operator(blocks[:at], blocks[at]) for at in range(1, len(blocks))]
        namespaces = {} if self.query_prefix is None else {self.query_prefix: URI}
        element = None
        if select or any(block.attribute for block in blocks):
            element = self.constructor(blocks)
        return Query(tuple(block.frozen() for block in blocks), tuple(operators), element, publish, namespaces)

    def variable(self) -> str:
        self.variables += 1
        return f"v{self.variables}"

    def block(self, stream: str | None, select: bool) -> _Block:
        random, schema = self.random, self.schema
        root = random.choice(schema.roots)
        ways = [(root,), *((root, *way) for way in schema.below(root, 2))]
        way = ways[0] if self.chance(0.5) else random.choice(ways)
        derived = stream is not None and stream.startswith("d")
        steps: list[_Step] = []
        skipped = derived
        for place, name in enumerate(way):
            last = place == len(way) - 1
            if not last and (derived or self.chance(0.6)):
                skipped = True
                continue
            separator = "//" if skipped or self.chance(0.4) else "/"
            test = "*" if self.chance(0.06) else self.name(name)
            steps.append(_Step(separator, test, name))
            if not last and self.chance(0.1):
                steps[-1].predicates.append([self.condition(name)])
            skipped = False
        start = steps[-1]
        made = _Block(stream, steps, [], [start])
        if select and schema.attributes.get(start.kind) and self.chance(0.08):
            steps.append(_Step("/", f"@{random.choice(schema.attributes[start.kind])}", "", variable=self.variable()))
            made.values.append(steps[-1].variable or "")
            made.attribute = True
            return made
        if schema.is_leaf(start.kind) or self.chance(0.25):
            start.variable = self.variable()
            if schema.is_leaf(start.kind):
                made.values.append(start.variable)
        if self.chance(0.15):
            start.predicates.append([self.condition(start.kind)])
        if self.chance(0.06):
            start.predicates.append([random.choice(("1", "1", "last()", "position() < 3", "2"))])
            made.counts = True
        if self.chance(0.12) and (ways := schema.below(start.kind)):
            # What follows below the root hangs from it like a condition.
            if start.variable is None:
                start.variable = self.variable()
            further = self.way(start.kind, random.choice(ways))
            if self.chance(0.7):
                further[-1].variable = self.variable()
                made.values.append(further[-1].variable)
            made.steps += further
        return made

    def way(self, kind: str, names: Sequence[str]) -> list[_Step]:
        """Steps to an element below another one."""
        steps: list[_Step] = []
        skipped = False
        for place, name in enumerate(names):
            last = place == len(names) - 1
            if not last and self.chance(0.3):
                skipped = True
                continue
            separator = "//" if skipped or self.chance(0.25) else "/"
            steps.append(_Step(separator, "*" if self.chance(0.05) else self.name(name), name))
            skipped = False
        return steps

    def leaf(self, kind: str) -> list[_Step] | None:
        """Steps to something below an element that has a value: a leaf, an attribute or, seldom, more."""
        random, schema = self.random, self.schema
        ways: list[list[_Step]] = []
        for names in schema.below(kind):
            if schema.is_leaf(names[-1]) or self.chance(0.1):
                ways.append(self.way(kind, names))
                if schema.is_leaf(names[-1]) and self.chance(0.06):
                    ways[-1].append(_Step("/", "text()", ""))
            if schema.attributes.get(names[-1]) and self.chance(0.4):
                ways.append([*self.way(kind, names), _Step("/", self.attribute(names[-1]), "")])
        if schema.attributes.get(kind):
            ways.append([_Step(random.choice(("/", "/", "//")), self.attribute(kind), "")])
        return random.choice(ways) if ways else None

    def attribute(self, kind: str) -> str:
        return "@*" if self.chance(0.06) else f"@{self.random.choice(self.schema.attributes[kind])}"

    def condition(self, kind: str) -> str:
        """An XPath that binds nothing."""
        random = self.random
        names = [self.plain(way[-1]) for way in self.schema.below(kind)] or ["."]
        name, value = random.choice(names), random.choice(self.alphabet)
        path = name if name == "." else random.choice((name, f".//{name}"))
        return random.choice(
            (
                path,
                path,
                f"{path} = '{value}'",
                f"{path} = '{value}'",
                f"count({path}) < 3",
                f"not({path} = '{value}')",
                f"@k or {path} = '{value}'",
                f"string-length({path}) < 3",
                f"{path} != '{value}'",
                f"not({path})",
            )
        )

    def value(self, block: _Block) -> Operand:
        """A side of an equality in a block: a variable that it has, or a new one."""
        random = self.random
        if block.values and self.chance(0.35):
            return Operand(random.choice(block.values))
        start = random.choice(block.starts)
        steps = self.leaf(start.kind) if start.kind and not block.attribute else None
        if steps is None:
            if not block.values:
                last = block.starts[0]
                last.variable = last.variable or self.variable()
                block.values.append(last.variable)
            return Operand(random.choice(block.values))
        if self.chance(0.2) and (not block.counts or start is block.starts[0]):
            start.variable = start.variable or self.variable()
            return Operand(start.variable, tuple(step.frozen() for step in steps))
        bound = steps[-1]
        bound.variable = self.variable()
        block.values.append(bound.variable)
        for step in steps[:-1]:
            if self.chance(0.3):
                step.variable = self.variable() if self.chance(0.5) else None
                block.starts.append(step)
            if self.chance(0.05):
                step.predicates.append([self.condition(step.kind)])
            if self.chance(0.02):
                step.predicates.append([random.choice(("1", "last()"))])
                block.counts = True
        if start.predicates and self.chance(0.3) and not block.counts:
            start.predicates[-1].append(_Pattern(steps))
        elif self.chance(0.1):
            start.predicates.append([_Pattern(steps), self.condition(start.kind)])
        else:
            start.predicates.append([_Pattern(steps)])
        return Operand(bound.variable)

    def operator(self, left: Sequence[_Block], right: _Block) -> Operator:
        random = self.random
        equalities = []
        for _ in range(random.choice((1, 1, 1, 1, 1, 2, 2, 2, 3, 4))):
            sides = [self.value(left[-1] if self.chance(0.7) else random.choice(left)), self.value(right)]
            normals = random.choice(NORMALS)
            for at in range(2):
                applied = normals if self.chance(0.8) else random.choice(NORMALS)
                sides[at] = replace(sides[at], normals=applied)
            equalities.append(Equality(*sides))
        steps = random.choice((0, 1, 2, 3, 5, 10, 20) if self.dense else (0, 1, 2, 5, 10))
        window_us = steps * self.unit_us + random.choice((0, 0, 0, 0, 1, -1 if steps else 0))
        return Operator(
            random.choice(("JOIN", "FOLLOWED BY")), tuple(equalities), None if self.chance(0.1) else window_us
        )

    def constructor(self, blocks: Sequence[_Block]) -> Element:
        random = self.random
        plain = [name for block in blocks for name in block.values]
        elements = [step for block in blocks for step in block.starts if step.variable is not None]
        content: list[Content | Element] = []
        for _ in range(random.randint(0, 3)):
            kind = random.choice(("copy", "string", "count", "text", "element"))
            if kind == "text":
                content.append(Content("text", text=random.choice(("so: ", "x", ", "))))
            elif kind == "element" and plain:
                content.append(Element("e", (("a", random.choice(plain)),), (Content("string", random.choice(plain)),)))
            elif kind == "string" and plain:
                content.append(Content("string", random.choice(plain)))
            elif kind in ("copy", "count") and elements:
                step = random.choice(elements)
                ways = self.schema.below(step.kind)
                path = "/".join(self.plain(name) for name in random.choice(ways)) if ways and self.chance(0.6) else ""
                content.append(Content(kind, step.variable or "", path))
        attributes = (("v", random.choice(plain)),) if plain and self.chance(0.4) else ()
        return Element("out", attributes, tuple(content))
