"""Writes joins as text of XSCL, each in one of the many spellings that mean the same."""

from collections import Counter
from dataclasses import replace
from random import Random

from tests.join_queries import (
    Block,
    Content,
    Element,
    Equality,
    Operand,
    Operator,
    Pattern,
    Query,
    Step,
    steps_of,
    variables_of,
)

UNITS_US = {"us": 1, "ms": 1_000, "s": 1_000_000, "min": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}


def to_text(query: Query, random: Random | None = None) -> str:
    """The query as text; without `random` in the plainest spelling."""
    return _Writer(Random(0) if random is None else random, varied=random is not None).query(query)


def window_text(window_us: int | None, random: Random | None = None) -> str:
    """A window in one of its spellings."""
    if window_us is None:
        return "INF"
    options = [
        f"{window_us // size}{space}{unit}"
        for unit, size in UNITS_US.items()
        if window_us % size == 0
        for space in (" ", "")
    ]
    if window_us % 1_000_000 == 0:
        options += [str(window_us // 1_000_000), f"{window_us // 1_000_000}.0 s", _duration(window_us)]
    if random is None:
        return options[-1 if window_us == 0 else 0]
    options += [_decimal(window_us, 1_000_000), f"{_decimal(window_us, 1_000)} ms", _duration(window_us)]
    return random.choice(options)


def _decimal(window_us: int, unit_us: int) -> str:
    whole, part = divmod(window_us, unit_us)
    digits = str(part).zfill(len(str(unit_us)) - 1).rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)


def _duration(window_us: int) -> str:
    """The window in the notation of ISO 8601."""
    days, rest = divmod(window_us, UNITS_US["d"])
    hours, rest = divmod(rest, UNITS_US["h"])
    minutes, rest = divmod(rest, UNITS_US["min"])
    if days and days % 7 == 0 and not (hours or minutes or rest):
        return f"P{days // 7}W"
    date = f"{days}D" if days else ""
    time = (f"{hours}H" if hours else "") + (f"{minutes}M" if minutes else "")
    if rest or not (date or time):
        time += f"{_decimal(rest, 1_000_000)}S"
    return f"P{date}" + (f"T{time}" if time else "")


class _Writer:
    def __init__(self, random: Random, varied: bool) -> None:
        self.random = random
        self.varied = varied

    def chance(self, share: float) -> bool:
        return self.varied and self.random.random() < share

    def of(self, *options: str) -> str:
        return self.random.choice(options) if self.varied else options[0]

    def gap(self) -> str:
        """White space between tokens, or a comment."""
        return self.of(" ", " ", " ", "\n  ", "  ", " (: so :) ", "\t")

    def word(self, word: str) -> str:
        return word.lower() if self.chance(0.2) else word

    def query(self, query: Query) -> str:
        if self.chance(0.3):
            query = _with_relative_paths(query, self.random)
        elif self.chance(0.3):
            query = _without_relative_paths(query, self.random)
        chain = self.block(query.blocks[0])
        for operator, block in zip(query.operators, query.blocks[1:], strict=True):
            chain += f"{self.gap()}{self.operator(operator)}{self.gap()}{self.block(block)}"
        head = ""
        if query.select is not None:
            head = f"{self.word('SELECT')} {self.element(query.select)}{self.gap()}{self.word('FROM')}{self.gap()}"
        elif not self.varied or self.chance(0.4):
            head = f"{self.word('SELECT')}{self.gap()}*{self.gap()}{self.word('FROM')}{self.gap()}"
        elif self.chance(0.3):
            head = f"{self.word('FROM')}{self.gap()}"
        tail = (
            ""
            if query.publish is None
            else f"{self.gap()}{self.word('PUBLISH')}{self.gap()}{self.stream(query.publish)}"
        )
        return head + chain + tail

    def stream(self, name: str) -> str:
        plain = name.replace("-", "").replace("_", "").replace(".", "").isalnum() and not name[0].isdigit()
        if plain and not self.chance(0.2):
            return name
        return f'"{name}"' if self.of('"', "'") == '"' else f"'{name}'"

    def block(self, block: Block) -> str:
        head = "" if block.stream is None else self.stream(block.stream) + self.of("", "", " ")
        return head + "".join(step.separator + self.step(step) for step in block.steps)

    def step(self, step: Step) -> str:
        predicates = [f"[{self.predicate(predicate)}]" for predicate in step.predicates]
        predicates = [pad.replace("[", "[ ", 1) if self.chance(0.1) else pad for pad in predicates]
        bind = ""
        if step.variable is not None:
            bind = self.of("->{}", "->{}", " AS {}", " as {}", " -> {}").format(step.variable)
            # The variable is bound to the node whatever stands around it; a keyword needs a gap before the bracket.
            predicates.insert(self.random.randint(0, len(predicates)) if self.varied else 0, bind)
        return self.test(step.test) + "".join(predicates)

    def test(self, test: str) -> str:
        if "::" in test or not self.chance(0.1):
            return test
        return f"attribute::{test[1:]}" if test.startswith("@") else f"child::{test}"

    def predicate(self, predicate: "tuple[Pattern | str, ...]") -> str:
        return f"{self.gap() if self.chance(0.2) else ' '}and ".join(
            self.condition(conjunct, len(predicate) > 1) if isinstance(conjunct, str) else self.pattern(conjunct.steps)
            for conjunct in predicate
        )

    def condition(self, text: str, joined: bool) -> str:
        text = text.replace("~", "")
        return f"({text})" if joined and " or " in text else text

    def pattern(self, steps: tuple[Step, ...]) -> str:
        text = "".join(step.separator + self.step(step) for step in steps)
        if text.startswith("//"):
            return f".{text}"
        return f".{text}" if self.chance(0.2) else text[1:]

    def operator(self, operator: Operator) -> str:
        kind = operator.kind if operator.kind == "JOIN" else f"FOLLOWED{self.gap()}BY"
        joint = self.of(" ", "\n   ")
        equalities = f"{joint}{self.word('AND')} ".join(map(self.equality, operator.equalities))
        window = window_text(operator.window_us, self.random if self.varied else None)
        inner = f"{self.of('', ' ')}{equalities}{self.of('', ' ')}, {window}{self.of('', ' ')}"
        return f"{self.word(kind)}{self.of('', ' ')}{{{inner}}}"

    def equality(self, equality: Equality) -> str:
        sides = [self.operand(equality.left), self.operand(equality.right)]
        if self.chance(0.4):
            sides.reverse()
        return self.of(" = ", "=", " =").join(sides)

    def operand(self, operand: Operand) -> str:
        path = "".join(step.separator + self.step(step) for step in operand.path)
        text = self.of("", "", "$") + operand.variable + path
        for normal in reversed(operand.normals):
            text = f"{normal}({self.of('', ' ')}{text})"
        return text

    def element(self, element: Element) -> str:
        attributes = "".join(f' {name}="{{${variable}}}"' for name, variable in element.attributes)
        content = "".join(
            self.element(part) if isinstance(part, Element) else self.content(part) for part in element.content
        )
        return f"<{element.name}{attributes}>{content}</{element.name}>"

    def content(self, part: Content) -> str:
        if part.kind == "text":
            return part.text
        path = f"${part.variable}" + (f"/{part.path.replace('~', '')}" if part.path else "")
        return "{" + {"copy": path, "string": f"string({path})", "count": f"count({path})"}[part.kind] + "}"


def _with_relative_paths(query: Query, random: Random) -> Query:
    """The query with some variables replaced by paths in the equality that uses them."""
    used = Counter(operand.variable for operand in _operands(query))
    selected = set() if query.select is None else query.select.variables()
    blocks, operators = list(query.blocks), query.operators
    for number, block in enumerate(blocks):
        for step in steps_of(block.steps):
            if step.variable is None or not step.predicates or random.random() < 0.4:
                continue
            if block.counts and step is not block.steps[block.root]:
                continue
            last = step.predicates[-1]
            if len(last) != 1 or not isinstance(last[0], Pattern):
                continue
            path = last[0].steps
            if variables_of(path) != [path[-1].variable] or path[-1].has_pattern:
                continue
            name = path[-1].variable
            assert name is not None
            if used[name] != 1 or name in selected:
                continue
            below = (*path[:-1], replace(path[-1], variable=None))
            if any((side.variable, side.path) == (step.variable, below) for side in _operands(query)):
                continue  # the same path below the same variable would be the same node
            shorter = replace(step, predicates=step.predicates[:-1])
            blocks[number] = replace(blocks[number], steps=_replaced(blocks[number].steps, step, shorter))
            operators = tuple(_rewritten(operator, name, step.variable, below) for operator in operators)
            break
    return replace(query, blocks=tuple(blocks), operators=operators)


def _without_relative_paths(query: Query, random: Random) -> Query:
    """The query with paths in equalities written as patterns that bind a new variable."""
    blocks, operators = list(query.blocks), query.operators
    number = 0
    for operand in {(side.variable, side.path): side for side in _operands(query)}.values():
        if not operand.path or random.random() < 0.3:
            continue
        number += 1
        name = f"new{number}"
        pattern = Pattern((*operand.path[:-1], replace(operand.path[-1], variable=name)))
        placed = False
        for at, block in enumerate(blocks):
            for step in steps_of(block.steps):
                if step.variable == operand.variable and not (block.counts and step is not block.steps[block.root]):
                    longer = replace(step, predicates=(*step.predicates, (pattern,)))
                    blocks[at] = replace(block, steps=_replaced(block.steps, step, longer))
                    placed = True
        if not placed:
            continue
        operators = tuple(_renamed(operator, operand, name) for operator in operators)
    return replace(query, blocks=tuple(blocks), operators=operators)


def _operands(query: Query) -> list[Operand]:
    return [side for operator in query.operators for each in operator.equalities for side in (each.left, each.right)]


def _renamed(operator: Operator, path: Operand, name: str) -> Operator:
    def side(operand: Operand) -> Operand:
        same = (operand.variable, operand.path) == (path.variable, path.path)
        return replace(operand, variable=name, path=()) if same else operand

    return replace(
        operator, equalities=tuple(Equality(side(each.left), side(each.right)) for each in operator.equalities)
    )


def _rewritten(operator: Operator, name: str, start: str, path: tuple[Step, ...]) -> Operator:
    def side(operand: Operand) -> Operand:
        return replace(operand, variable=start, path=path + operand.path) if operand.variable == name else operand

    return replace(
        operator, equalities=tuple(Equality(side(each.left), side(each.right)) for each in operator.equalities)
    )


def _replaced(steps: tuple[Step, ...], old: Step, new: Step) -> tuple[Step, ...]:
    """Steps with one of them, wherever it is, replaced."""
    made = []
    for step in steps:
        if step is old:
            made.append(new)
            continue
        predicates = tuple(
            tuple(
                conjunct if isinstance(conjunct, str) else Pattern(_replaced(conjunct.steps, old, new))
                for conjunct in predicate
            )
            for predicate in step.predicates
        )
        made.append(replace(step, predicates=predicates) if predicates != step.predicates else step)
    return tuple(made)
