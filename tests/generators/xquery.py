"""Random XQuery in the shape of message brokering: an element around FLWR expressions over one document.

`Brokering` writes what transformations mostly are: `for` over paths, `where` with conditions on paths, and constructed
elements that embed paths, conditions, aggregates and further FLWRs. The names and constants come from a vocabulary, so
that conditions are often true. A query is a text and whether it may fail: where it may not, answers have to agree
exactly; where it may, which operand is evaluated first is free, and so is whether there is an error.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tests.generators.pick import Pick
from tests.generators.xquery_documents import Vocabulary

OPERATORS = ("=", "=", "=", "!=", "<", ">", "<=", ">=")
TAGS = ("item", "out", "hit", "b-1", "x.y")
WRAPPERS = ("results", "r", "bib")
DOCUMENT = ("", "", "", "$doc", 'doc("d.xml")', "doc('d.xml')")  # one name, for one document


@dataclass(frozen=True)
class Query:
    """A generated query; `deciding` are the FLWRs of which one has to give something for it to have a result at all.

    Without any, that is not known.
    """

    text: str
    may_fail: bool
    deciding: tuple[str, ...] = ()


@dataclass(frozen=True)
class Path:
    """A path: its text, the element that it leads to, the attribute if it ends there, whether it is at most one node.

    `exact`: it leads to elements of that name only, so that the vocabulary tells what they can hold.
    """

    text: str
    kind: str
    attribute: str = ""
    single: bool = False
    exact: bool = False


def literal(value: str) -> str:
    """A string literal."""
    escaped = value.replace("&", "&amp;")
    return "'" + escaped + "'" if '"' in value and "'" not in value else '"' + escaped.replace('"', '""') + '"'


def is_number(value: str) -> bool:
    """Whether a cast of untyped text to `xs:double` works."""
    try:
        float(value)
    except ValueError:
        return False
    return value.strip().lower().strip("+-") not in {"inf", "infinity", "nan"} or value.strip() in {
        "INF",
        "-INF",
        "NaN",
    }


class Brokering:
    """Draws queries over a vocabulary."""

    def __init__(self, pick: Pick, vocabulary: Vocabulary) -> None:
        """One generator per query: it numbers the variables."""
        self.pick = pick
        self.vocabulary = vocabulary
        self.scope: list[Path] = []
        self.variables = 0
        self.may_fail = False

    def query(self) -> Query:
        """A query."""
        pick = self.pick
        body = self.flwr(2)
        if pick.chance(15):
            return Query(body, self.may_fail, (body,))
        name = pick.of(WRAPPERS)
        deciding = (body, self.flwr(1)) if pick.chance(8) else (body,)
        content = "".join(f" {{ {flwr} }}" for flwr in deciding)
        return Query(f"<{name}>{content} </{name}>", self.may_fail, deciding)

    # Paths

    def path(self, start: Path, target: str | None = None, predicates: int = 9) -> Path:
        """A path from a variable, the document or ("") the context to an element below, mostly a random one."""
        routes = self.vocabulary.routes(start.kind)
        if target is None:
            target = self.pick.of(tuple(routes) or (start.kind,))
        if target not in routes:
            return start if start.text else replace(start, text=".")
        way = routes[target]
        if target == start.kind and self.pick.chance(30):
            way = way + way
        return self._steps(start, way, predicates)

    def _steps(self, start: Path, way: Sequence[str], predicates: int) -> Path:
        pick, text, single, exact, above = self.pick, start.text, start.single, start.exact, start.kind
        skipped = False
        for position, name in enumerate(way):
            last = position == len(way) - 1
            if not last and pick.chance(25):
                skipped = True
                continue
            test = name
            if pick.chance(8):
                test = "*"
            separator = "//" if skipped or pick.chance(12) else "/"
            single = single and separator == "/" and test != "*" and (above, name) in self.vocabulary.single and exact
            exact = test != "*"
            if separator == "/" and not text and start.kind:
                separator = ""  # a relative path
            elif not text and start.kind:
                separator = ".//"
            text += separator + test
            if pick.chance(predicates):
                text += f"[{self.predicate(name, exact)}]"
            above, skipped = name, False
        return Path(text, way[-1], single=single, exact=exact)

    def leaf(self, start: Path) -> tuple[Path, list[str]]:
        """A path to values, and the values that it may find."""
        leaves = self.vocabulary.leaves(start.kind)
        if not leaves:
            return start if start.text else replace(start, text="."), [""]
        name, attribute = self.pick.of(leaves)
        base = start
        if name != start.kind:
            base = self.path(base, name, predicates=4)
        values = self.vocabulary.values_of((name, attribute))
        if not attribute:
            return base if base.text else replace(base, text="."), values
        separator = "/" if base.text else ""
        return Path(f"{base.text}{separator}@{attribute}", name, attribute, base.single, base.exact), values

    def numeric(self, path: Path, values: Sequence[str]) -> bool:
        """Whether all that a path finds are numbers."""
        plain = path.attribute or path.kind not in self.vocabulary.inner
        return path.exact and bool(plain) and all(is_number(value) for value in values)

    def document(self) -> Path:
        """The document as the start of a path."""
        return Path(self.pick.of(DOCUMENT), "", single=True, exact=True)

    def inner(self) -> str | None:
        """Mostly an element with children, which makes a good first variable."""
        names = [name for name in self.vocabulary.routes("") if self.vocabulary.children.get(name)]
        return self.pick.of(names) if names and self.pick.chance(70) else None

    def holder(self) -> Path:
        """A variable of elements that have some below, or else the document."""
        holders = [bound for bound in self.scope if self.vocabulary.routes(bound.kind)]
        if not holders:
            return self.document()
        return holders[-1] if self.pick.chance(65) else self.pick.of(holders)

    def variable(self) -> Path:
        """A variable in scope, mostly the last."""
        return self.scope[-1] if self.pick.chance(65) else self.pick.of(self.scope)

    def predicate(self, kind: str, exact: bool) -> str:
        """A predicate of an element: a position or a condition."""
        pick = self.pick
        if pick.chance(25):
            return pick.of(("1", "1", "last()", "position() < 3", "position() = last()", "2"))
        return self.condition(Path("", kind, single=True, exact=exact), 0)

    # Conditions

    def condition(self, start: Path, depth: int) -> str:
        """A condition about a node; combined while `depth` lasts."""
        pick = self.pick
        choice = pick.below(24) if depth > 0 else pick.below(17)
        if choice < 7:
            return self.constant_comparison(start)
        if choice < 10:
            path = self.path(start) if pick.chance(70) else self.leaf(start)[0]
            return pick.of(("{}", "exists({})", "not({})", "empty({})", "{}")).format(path.text)
        if choice < 13:
            return self.text_condition(start)
        if choice < 15:
            path = self.path(start)
            return f"count({path.text}) {pick.of(OPERATORS)} {pick.of(('1', '0', '2', '3'))}"
        if choice < 17:
            return self.path_comparison(start)
        if choice < 19:
            return f"({self.condition(start, depth - 1)} or {self.condition(start, depth - 1)})"
        if choice < 21:
            return f"not({self.condition(start, depth - 1)})"
        return f"{self.condition(start, depth - 1)} and {self.condition(start, depth - 1)}"

    def constant_comparison(self, start: Path) -> str:
        """A path and a constant: as numbers where the values are."""
        pick = self.pick
        path, values = self.leaf(start)
        value, operator = pick.of(values), pick.of(OPERATORS)
        if not is_number(value) or value.strip() in {"INF", "-INF", "NaN"} or pick.chance(25):
            constant = literal(value)
        else:
            constant = pick.of((value.strip().lstrip("+"), repr(float(value)), str(int(float(value)))))
            if not self.numeric(path, values):
                if pick.chance(85):
                    return f"(some $n in {path.text} satisfies number($n) {operator} {constant})"
                self.may_fail = True
        if pick.chance(8):
            return f"{constant} {operator} {path.text}"
        return f"{path.text} {operator} {constant}"

    def path_comparison(self, start: Path) -> str:
        """Two paths, as text; from two variables where there are."""
        left, _ = self.leaf(start)
        other = self.variable() if self.scope and self.pick.chance(60) else start
        names = [name for name, _ in self.vocabulary.leaves(other.kind)]
        if left.kind in names and not left.attribute and self.pick.chance(60):
            right = self.path(other, left.kind, predicates=0) if left.kind != other.kind else other
        else:
            right, _ = self.leaf(other)
        return f"{left.text} {self.pick.of(OPERATORS)} {right.text or '.'}"

    def text_condition(self, start: Path) -> str:
        """A string function on values: only where there is at most one, or on each."""
        pick = self.pick
        path, values = self.leaf(start)
        value = pick.of(values)
        part = value[pick.below(len(value)) :][: 1 + pick.below(4)] if value else ""
        name = pick.of(("contains", "contains", "starts-with", "ends-with"))
        if path.single:
            return f"{name}({path.text}, {literal(part)})"
        if path.attribute or pick.chance(30):
            return f"(some $t in {path.text} satisfies {name}($t, {literal(part)}))"
        return f"{path.text}[{name}(., {literal(part)})]"

    # FLWR

    def new_variable(self) -> str:
        """A fresh name."""
        self.variables += 1
        return f"${'abcdefgh'[self.variables % 8]}{self.variables}"

    def flwr(self, depth: int) -> str:
        """A FLWR expression; inside another one it mostly starts from a variable of that."""
        pick = self.pick
        outer = len(self.scope)
        clauses: list[str] = []
        bindings = 1 if depth < 2 else 1 + pick.below(2) + pick.chance(15)
        joined = ""
        for number in range(bindings):
            name = self.new_variable()
            if self.scope and (number > 0 or pick.chance(85)) and not (number > 0 and pick.chance(15)):
                sequence = self.path(self.holder())
            else:
                sequence = self.path(self.document(), self.inner(), predicates=12)
                if self.scope and depth > 0:
                    joined = name
            bound = Path(name, sequence.kind, single=True, exact=sequence.exact)
            keyword = "," if clauses and pick.chance(60) else "\nfor" if clauses else "for"
            clauses.append(f"{keyword} {name} in {sequence.text}")
            self.scope.append(bound)
        clauses.extend(self.lets())
        conditions = [self.condition(self.variable(), 1)] if pick.chance(50 if depth > 1 else 35) else []
        if joined and pick.chance(80):
            conditions.append(self.path_comparison(self.scope[-1]))
        if conditions:
            clauses.append("\nwhere " + " and ".join(conditions))
        if pick.chance(10):
            clauses.append(f"\norder by {self.order_key()}")
        result = self.constructor(depth) if pick.chance(85) else self.variable().text
        del self.scope[outer:]
        return " ".join(clauses).replace(" ,", ",") + f"\nreturn {result}"

    def lets(self) -> list[str]:
        """Sometimes a variable for a path."""
        if not self.pick.chance(15):
            return []
        name, sequence = self.new_variable(), self.path(self.variable())
        self.scope.append(replace(sequence, text=name))
        return [f"\nlet {name} := {sequence.text}"]

    def order_key(self) -> str:
        """A key of one value."""
        path, _ = self.leaf(self.variable())
        key = path.text if path.single else f"({path.text})[1]"
        if self.pick.chance(30):
            key = f"number({key})"
        return key + self.pick.of(("", "", " descending", " empty greatest", " descending empty least"))

    # Results

    def constructor(self, depth: int) -> str:
        """An element with embedded expressions."""
        pick = self.pick
        name = pick.of(TAGS)
        attributes = "".join(f' {key}="{self.attribute()}"' for key in ("k", "n") if pick.chance(25))
        parts = [f"{{ {self.copied_attribute()} }}"] if pick.chance(12) else []
        parts.extend(self.part(depth) for _ in range(1 + pick.below(3)))
        return f"<{name}{attributes}>{''.join(part for part in parts if part != '{  }')}</{name}>"

    def attribute(self) -> str:
        """The value of an attribute: text and enclosed expressions."""
        pick = self.pick
        path = self.leaf(self.variable())[0].text
        return pick.of(
            ("{{{0}}}", "{{ {0} }}", "a{{{0}}}b", "{{count({0})}}", "{{{0}}}-{{count({0})}}", "x &amp; y")
        ).format(path)

    def copied_attribute(self) -> str:
        """An attribute of a variable's element as an attribute of the result."""
        names = [(bound, key) for bound in self.scope for key in self.vocabulary.attributes.get(bound.kind, ())]
        names = [(bound, key) for bound, key in names if bound.single]
        if not names:
            return ""
        bound, key = self.pick.of(names)
        return f"{bound.text}/@{key}"

    def part(self, depth: int) -> str:
        """A part of an element's content."""
        pick = self.pick
        choice = pick.below(24)
        start = self.variable()
        if choice < 7:
            return f"{{ {self.path(start).text} }}"
        if choice < 9:
            return f"{{{start.text}}}"
        if choice < 11:
            path = self.leaf(start)[0]
            return f"{{ {path.text}/text() }}" if not path.attribute else f"{{ data({path.text}) }}"
        if choice < 13:
            return pick.of(("text ", " a ", "\n  ", "&lt;", "x{{y}}", " &#x20; ", "<![CDATA[ <c> ]]>", ""))
        if choice < 16:
            return f"{{ {self.aggregate(start)} }}"
        if choice < 18:
            other = self.constructor(depth - 1) if depth > 0 and pick.chance(60) else pick.of(("()", '"-"'))
            return f"{{ if ({self.condition(start, 1)}) then {self.path(start).text} else {other} }}"
        if choice < 20 or depth <= 0:
            text = self.leaf(start)[0].text
            return f"<v>{{ string(({text})[1]) }}</v>" if pick.chance(60) else f"<v>{{ data({text}) }}</v>"
        if choice < 22:
            return f"{{ {self.flwr(depth - 1)} }}"
        return self.constructor(depth - 1)

    def aggregate(self, start: Path) -> str:
        """An aggregate over a path, of numbers where its values are numbers."""
        pick = self.pick
        path, values = self.leaf(start)
        if pick.chance(50):
            return f"count({self.path(start).text})"
        if not self.numeric(path, values):
            if pick.chance(80):
                return pick.of(
                    ("count(distinct-values({}))", 'string-join({}, ", ")', "distinct-values({})", "exists({})")
                ).format(path.text)
            self.may_fail = True
        return f"{pick.of(('sum', 'avg', 'min', 'max'))}({path.text})"
