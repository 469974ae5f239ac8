"""Random XPath 1.0 expressions over the whole grammar, with arguments of the right type."""

from tests.generators.documents import ATTRIBUTE_NAMES, NAMES, VALUES
from tests.generators.pick import Pick
from tests.generators.syntax import Call, Expression, Negation, Operation, Path, Step, Token

NAMESPACES = {"p": "urn:1", "q": "urn:2", "r": "urn:1", "z": "urn:1/"}
REVERSE = ("parent", "ancestor", "ancestor-or-self", "preceding", "preceding-sibling")
AXES = (
    *("child",) * 22, *("attribute",) * 6, *("descendant",) * 3, *("descendant-or-self",) * 2, *("self",) * 2,
    *("following-sibling",) * 2, "following", *REVERSE, "namespace",
)  # fmt: skip
COMPARISONS = ("=", "=", "!=", "<", "<=", ">", ">=")
NUMBERS = ("1", "2", "7", "0", "3", "7.5", "10", ".5", "1000", "007", "2.")
LANGUAGES = ("en", "EN-gb", "fr", "")


def literal(value: str) -> Token:
    """A string literal in the quotes that the value allows."""
    return Token("string", f'"{value}"' if "'" in value else f"'{value}'")


class Expressions:
    """Draws expressions; `depth` bounds nesting, so that a small example stays small."""

    def __init__(self, pick: Pick, namespaces: bool = True) -> None:
        """`namespaces`: whether prefixes of `NAMESPACES` and the namespace axis may be used."""
        self.pick = pick
        self.namespaces = namespaces

    def any(self, depth: int = 3) -> Expression:
        """An expression of any type, mostly a node-set or a boolean as subscriptions are."""
        choice = self.pick.below(20)
        if choice < 9:
            return self.nodes(depth)
        if choice < 17:
            return self.boolean(depth)
        return self.number(depth) if choice == 17 else self.string(depth)

    def name_test(self, axis: str) -> str:
        """A node test; names fit the axis often enough to match."""
        pick = self.pick
        choice = pick.below(40)
        names = ATTRIBUTE_NAMES if axis == "attribute" else NAMES
        if axis == "namespace":
            return pick.of(("*", "p", "xml", "node()", "q"))
        if choice < 22:
            return pick.of(names)
        if choice < 28:
            return "*"
        if choice < 33:
            return f"{pick.of(tuple(NAMESPACES))}:{pick.of(names)}" if self.namespaces else "*"
        if choice < 34:
            return f"{pick.of(tuple(NAMESPACES))}:*" if self.namespaces else "*"
        if choice < 36:
            return "node()"
        if choice < 38:
            return "text()"
        return pick.of(("comment()", "processing-instruction()", "processing-instruction('t')"))

    def step(self, separator: str, depth: int) -> Step:
        """A step, abbreviated or in full."""
        pick = self.pick
        axis = pick.of(AXES)
        if axis == "namespace" and not self.namespaces:
            axis = "child"
        if axis == "self" and pick.chance(50):
            return Step(separator, axis, ".")
        if axis == "parent" and pick.chance(50):
            return Step(separator, axis, "..")
        test = self.name_test(axis)
        if axis == "child" and pick.chance(85):
            head = test
        elif axis == "attribute" and pick.chance(80):
            head = "@" + test
        else:
            head = f"{axis}::{test}" if pick.chance(90) else f"{axis} :: {test}"
        return Step(separator, axis, head, self.predicates(depth, 30))

    def predicates(self, depth: int, percent: int) -> tuple[Expression, ...]:
        """None, one or more predicates."""
        found: list[Expression] = []
        while depth > 0 and len(found) < 2 and self.pick.chance(percent):
            found.append(self.predicate(depth - 1))
        return tuple(found)

    def predicate(self, depth: int) -> Expression:
        """A predicate: positions, existence, comparisons, anything."""
        choice = self.pick.below(20)
        if choice < 3:
            return Token("number", self.pick.of(("1", "2", "last()", "3", "1.5", "last()-1", "-1")))
        if choice < 5:
            other = self.pick.of((Token("number", "1"), Token("number", "last()"), Token("number", "2")))
            return Operation("boolean", self.pick.of(COMPARISONS), Token("number", "position()"), other)
        if choice < 9:
            return self.path(depth, relative=True)
        if choice < 14:
            comparand = literal(self.pick.of(VALUES)) if self.pick.chance(70) else self.numeral()
            return Operation(
                "boolean", self.pick.of(COMPARISONS), self.path(depth, relative=True), comparand, self.pick.chance(60)
            )
        if choice < 18:
            return self.boolean(depth)
        return self.number(depth) if choice == 18 else self.any(depth)

    def path(self, depth: int, relative: bool = False) -> Path:
        """A location path."""
        pick = self.pick
        lead = "" if pick.chance(85 if relative else 10) else pick.of(("//", "/", "//"))
        if lead == "/" and pick.chance(6):
            return Path(())
        steps = [self.step(lead, depth)]
        while len(steps) < 4 and pick.chance(20 if relative else 42):
            steps.append(self.step("//" if pick.chance(30) else "/", depth))
        return Path(tuple(steps))

    def nodes(self, depth: int) -> Expression:
        """A node-set: path, union, filter expression or id()."""
        pick = self.pick
        choice = pick.below(20) if depth > 0 else 0
        if choice < 15:
            return self.path(depth)
        if choice < 17:
            return Operation("nodes", "|", self.nodes(depth - 1), self.nodes(depth - 1), pick.chance(50))
        if choice < 19:
            steps: list[Step] = []
            while len(steps) < 2 and pick.chance(40):
                steps.append(self.step("//" if pick.chance(20) else "/", depth - 1))
            return Path(tuple(steps), self.nodes(depth - 1), self.predicates(depth, 60))
        return Call("nodes", "id", (literal(pick.of(("k1", "k2 k1", "k3", "x"))),))

    def boolean(self, depth: int) -> Expression:
        """A boolean."""
        pick = self.pick
        choice = pick.below(20) if depth > 0 else pick.below(8)
        if choice < 8:
            return self.comparison(depth - 1)
        if choice < 13:
            operator = pick.of(("and", "or"))
            return Operation("boolean", operator, self.any(depth - 1), self.any(depth - 1))
        if choice < 15:
            return Call("boolean", "not", (self.any(depth - 1),))
        if choice < 18:
            name = pick.of(("contains", "starts-with"))
            first: Expression = self.path(depth - 1) if pick.chance(60) else self.string(depth - 1)
            return Call("boolean", name, (first, self.string(depth - 1)))
        if choice == 18:
            return Token("boolean", pick.of(("true()", "false()")))
        if pick.chance(50):
            return Call("boolean", "lang", (literal(pick.of(LANGUAGES)),))
        return Call("boolean", "boolean", (self.any(depth - 1),))

    def comparison(self, depth: int) -> Expression:
        """A comparison between any two types."""
        pick = self.pick
        left, right = self.operand(depth), self.operand(depth)
        return Operation("boolean", pick.of(COMPARISONS), left, right, pick.chance(50))

    def operand(self, depth: int) -> Expression:
        """One side of a comparison."""
        choice = self.pick.below(20)
        if choice < 9 or depth <= 0:
            return self.path(max(depth, 0)) if choice < 9 else self.constant()
        if choice < 13:
            return self.constant()
        if choice < 15:
            return self.number(depth)
        if choice < 17:
            return self.string(depth)
        return self.boolean(depth) if choice < 19 else self.nodes(depth)

    def constant(self) -> Token:
        """A literal or a number."""
        return literal(self.pick.of(VALUES)) if self.pick.chance(60) else self.numeral()

    def numeral(self) -> Token:
        """A number as written."""
        return Token("number", self.pick.of(NUMBERS))

    def number(self, depth: int, exact: bool = False) -> Expression:
        """A number; `exact` leaves out what the two sides may print with other digits (see `tests.libxml2`)."""
        pick = self.pick
        choice = pick.below(20) if depth > 0 else 0
        if choice < 3:
            return self.numeral()
        if choice < 7:
            return Call("number", "count", (self.nodes(depth - 1),))
        if choice < 8:
            return Call("number", "sum", (self.nodes(depth - 1),))
        if choice < 10:
            return Call("number", "string-length", (self.string(depth - 1),) if pick.chance(90) else ())
        if choice < 12:
            return Call("number", "number", (self.any(depth - 1),) if pick.chance(90) else ())
        if choice < 14:
            return Call("number", pick.of(("floor", "ceiling", "round")), (self.number(depth - 1, exact),))
        if choice < 15:
            return Negation(self.number(depth - 1, exact))
        if choice < 16:
            return Token("number", pick.of(("position()", "last()")))
        operator = pick.of(("+", "-", "*", "mod") if exact else ("+", "-", "*", "div", "mod"))
        return Operation("number", operator, self.number(depth - 1, exact), self.number(depth - 1, exact))

    def text_of(self, depth: int) -> Expression:
        """A string, or something that is made one implicitly."""
        pick = self.pick
        choice = pick.below(10)
        if choice < 5:
            return self.path(depth) if pick.chance(70) else self.nodes(depth)
        if choice < 8 or depth <= 0:
            return self.string(depth)
        return self.number(depth, exact=True) if choice == 8 else self.boolean(depth)

    def string(self, depth: int) -> Expression:
        """A string."""
        pick = self.pick
        choice = pick.below(20) if depth > 0 else 0
        if choice < 7:
            return literal(pick.of(VALUES))
        if choice < 10:
            return Call("string", "string", (self.text_of(depth - 1),) if pick.chance(90) else ())
        if choice < 12:
            name = pick.of(("substring-before", "substring-after"))
            return Call("string", name, (self.text_of(depth - 1), self.text_of(depth - 1)))
        if choice < 13:
            bounds = tuple(self.number(depth - 1) for _ in range(1 + pick.below(2)))
            return Call("string", "substring", (self.text_of(depth - 1), *bounds))
        if choice < 15:
            return Call("string", "normalize-space", (self.text_of(depth - 1),) if pick.chance(90) else ())
        if choice < 16:
            arguments = (self.text_of(depth - 1), literal(pick.of(VALUES)), literal(pick.of(VALUES)))
            return Call("string", "translate", arguments)
        if choice < 18:
            name = pick.of(("name", "local-name", "namespace-uri"))
            return Call("string", name, (self.nodes(depth - 1),) if pick.chance(80) else ())
        return Call("string", "concat", tuple(self.text_of(depth - 1) for _ in range(2 + pick.below(2))))
