"""Random XQuery over all that transformations can express: clauses, operators, axes, constructors, functions.

Expressions are drawn by the type that they have to have, so that a query mostly gives a result. One query in seven is
`daring`: it leaves out what keeps dynamic errors away, and says so (`may_fail`).
"""

from tests.generators.pick import Pick
from tests.generators.xquery import OPERATORS, Brokering, Path, Query, literal
from tests.generators.xquery_documents import Vocabulary

VALUE_OPERATORS = ("eq", "ne", "lt", "le", "gt", "ge")
AXES = (
    "child::", "descendant::", "descendant-or-self::", "self::", "parent::", "ancestor::", "ancestor-or-self::",
    "following::", "following-sibling::", "preceding::", "preceding-sibling::",
)  # fmt: skip
KIND_TESTS = (
    "node()", "text()", "comment()", "processing-instruction()", "processing-instruction(go)",
    'processing-instruction("go")', "element()", "element(*)", "*",
)  # fmt: skip
INTEGERS = ("0", "1", "2", "3", "7", "10", "100", "-1")
DECIMALS = ("0.5", "1.0", "2.50", "39.95", "-0.25", ".5", "100.")
DOUBLES = ("1e0", "1.5e3", "1e6", "1E-7", "0.1e0", "-0e0", "1e21", "123456.789e0", "1e300")
EXACT_DIVISORS = ("2", "4", "5", "8", "10", "0.5", "2.5")
STRINGS = ("", "a", "Data", "10", " x  y ", "é", "it's", "true", "&", "<b>", "NaN")
LARGE = 700  # length at which no further parts are added


class Wide(Brokering):
    """Draws queries over a vocabulary."""

    def __init__(self, pick: Pick, vocabulary: Vocabulary) -> None:
        """One generator per query."""
        super().__init__(pick, vocabulary)
        self.daring = pick.chance(14)
        self.numbers: list[str] = []
        self.context: Path | None = None

    def query(self) -> Query:
        """A query."""
        pick = self.pick
        self.may_fail = self.daring
        choice = pick.below(20)
        if choice < 4:
            body = self.items(3)
        elif choice < 13:
            body = f"<o>{{ {self.items(3)} }}</o>"
        elif choice < 17:
            body = self.full_flwor(3)
        else:
            body = self.element(3)
        if pick.chance(10):
            body = pick.of(("(: text :) {}", "({})", "{}, ()", "\n{}\n", "{} (: (: nested :) :)")).format(body)
        return Query(body, self.may_fail)

    # Nodes

    def start(self) -> Path:
        """A variable, the context or the document."""
        if self.context is not None and self.pick.chance(50):
            return self.context
        return self.variable() if self.scope and self.pick.chance(70) else self.document()

    def nodes(self, depth: int) -> Path:
        """Nodes of the document, no attributes."""
        pick = self.pick
        choice = pick.below(30) if depth > 0 else 0
        if choice < 12:
            path = self.path(self.start())
            return path if path.text else Path("/", "", single=True)
        if choice < 17:
            return self.axis_path(depth)
        if choice < 20:
            left, right = self.nodes(depth - 1), self.nodes(depth - 1)
            operator = pick.of(("|", "union", "intersect", "except"))
            return Path(f"({left.text} {operator} {right.text})", left.kind)
        if choice < 23:
            path = self.nodes(depth - 1)
            return Path(f"({path.text})[{self.predicate_of(path.kind, depth - 1)}]", path.kind, single=False)
        if choice < 25:
            path = self.nodes(depth - 1)
            form = pick.of(
                ("reverse({})", "subsequence({}, 2)", "subsequence({}, 1, 2)", "unordered({})", "({}, {})", "({})")
            )
            return Path(form.format(path.text, path.text), path.kind)
        if choice < 27:
            start = self.nodes(depth - 1)
            saved, self.context = self.context, Path("", start.kind, single=True)
            left, right = self.path(self.context, predicates=0), self.path(self.context, predicates=0)
            self.context = saved
            return Path(
                f"{start.text}/({pick.of(('{}', '{} | {}', '{}, {}')).format(left.text, right.text)})", left.kind
            )
        if choice < 28:
            path = self.nodes(depth - 1)
            return Path(f"({path.text})/root()" if pick.chance(50) else f"root(({path.text})[1])", "")
        if choice < 29:
            path, other = self.nodes(depth - 1), self.nodes(depth - 1)
            return Path(f"(if ({self.boolean(depth - 1)}) then {path.text} else {other.text})", path.kind)
        path = self.nodes(depth - 1)
        name = self.new_variable()
        return Path(f"(for {name} in {path.text} return {name})", path.kind)

    def axis_path(self, depth: int) -> Path:
        """A path with a step on any axis and any node test."""
        pick = self.pick
        start = self.path(self.start())
        axis = pick.of(AXES)
        names = tuple(self.vocabulary.children)
        name = pick.of([name for name in names if name])
        local = name.rpartition(":")[2]
        choice = pick.below(12)
        if choice < 5:
            test = name
        elif choice < 9:
            test = pick.of(KIND_TESTS)
        elif choice < 10:
            test = f"*:{local}"
        elif choice < 11:
            test = f"element({name})"
        else:
            prefixes = tuple(self.vocabulary.namespaces)
            test = f"{pick.of(prefixes)}:*" if prefixes else "*"
        step = ".." if axis == "parent::" and pick.chance(30) else axis + test
        predicate = f"[{self.predicate_of(name, depth - 1)}]" if depth > 0 and pick.chance(35) else ""
        return Path(f"{start.text or '.'}/{step}{predicate}", name)

    def single(self, depth: int) -> Path:
        """At most one node; a daring query may take any number."""
        path = self.nodes(depth)
        if path.single or (self.daring and self.pick.chance(30)):
            return path
        return Path(f"({path.text})[{self.pick.of(('1', '1', 'last()', '2'))}]", path.kind, single=True)

    def predicate_of(self, kind: str, depth: int) -> str:
        """A predicate, with the context item in it."""
        pick = self.pick
        saved, self.context = self.context, Path("", kind, single=True)
        choice = pick.below(12)
        if choice < 3:
            found = pick.of(
                ("1", "2", "last()", "position() < 3", "position() = (1, 3)", "last() - 1", "1.0", "1e0", "0", "1.5")
            )
        elif choice < 6:
            found = self.condition(self.context, 1)
        elif choice < 8:
            found = self.path(self.context, predicates=0).text or "."
        elif choice < 9:
            found = pick.of(("position() mod 2 = 1", "true()", "string()", "self::*", "position() >= last() div 2"))
        else:
            found = self.boolean(depth)
        self.context = saved
        return found

    def atoms(self, depth: int) -> str:
        """Something to atomise: values of elements and attributes, in any number."""
        pick = self.pick
        choice = pick.below(10)
        if choice < 5:
            path = self.leaf(self.start())[0]
            return path.text or "string()"
        if choice < 6:
            start = self.path(self.start())
            test = pick.of(
                ("@*", "@node()", "attribute::attribute()", "@*:id", "attribute(id)", "attribute::attribute(*)")
            )
            return f"{start.text or '.'}/{test}"
        if choice < 7:
            return f"{self.nodes(depth - 1).text}/text()" if depth > 0 else "()"
        if choice < 8:
            return f"({self.string(depth - 1)}, {self.string(depth - 1)})" if depth > 0 else literal(pick.of(STRINGS))
        return f"data({self.nodes(depth - 1).text})" if depth > 0 else "()"

    # Values

    def number(self, depth: int) -> str:
        """Exactly one number."""
        pick = self.pick
        choice = pick.below(32) if depth > 0 else pick.below(6)
        if choice < 5:
            return pick.of(pick.of((INTEGERS, INTEGERS, DECIMALS, DOUBLES)))
        if choice < 6:
            return pick.of(self.numbers) if self.numbers else pick.of(INTEGERS)
        if choice < 9:
            return f"count({self.nodes(depth - 1).text})"
        if choice < 13:
            return f"number({self.single(depth - 1).text})"
        if choice < 16:
            operator = pick.of(("+", "-", "*"))
            return f"({self.number(depth - 1)} {operator} {self.number(depth - 1)})"
        if choice < 17:
            return f"({self.number(depth - 1)} div {pick.of(EXACT_DIVISORS)})"
        if choice < 18:
            divisor = self.integer(depth - 1) if self.daring else pick.of(("2", "3", "-2", "7"))
            return f"({self.integer(depth - 1)} {pick.of(('idiv', 'mod'))} {divisor})"
        if choice < 19:
            return f"(number({self.single(depth - 1).text}) {pick.of(('div', 'mod'))} {self.number(depth - 1)})"
        if choice < 22:
            return f"{pick.of(('abs', 'floor', 'ceiling', 'round'))}({self.number(depth - 1)})"
        if choice < 23:
            return f"-{self.number(depth - 1)}" if pick.chance(80) else f"+{self.number(depth - 1)}"
        if choice < 25:
            return f"string-length({self.string(depth - 1)})"
        if choice < 27:
            return self.total(depth - 1)
        if choice < 28:
            return f"(if ({self.boolean(depth - 1)}) then {self.number(depth - 1)} else {self.number(depth - 1)})"
        if choice < 30:
            cast = pick.of(("xs:integer", "xs:decimal", "xs:double"))
            return f"{cast}({self.atoms(0) if self.daring else literal(pick.of(('7', ' 10 ', '-3', '007')))})"
        if choice < 31:
            return f"xs:double({literal(pick.of(('INF', '-INF', 'NaN', '1e2', ' 0.5 ')))})"
        return f"xs:integer({self.boolean(depth - 1)})"

    def integer(self, depth: int) -> str:
        """Exactly one integer."""
        if depth > 0 and self.pick.chance(50):
            return f"count({self.nodes(depth - 1).text})"
        return self.pick.of(INTEGERS)

    def total(self, depth: int) -> str:
        """An aggregate that gives exactly one number."""
        pick = self.pick
        name = pick.of(("sum", "sum", "max", "min", "avg"))
        if self.daring and pick.chance(50):
            return f"{name}({self.atoms(depth)})"
        variable = self.new_variable()
        numbers = f"(for {variable} in {self.nodes(depth).text} return number({variable}))"
        if name == "sum":
            return f"sum({numbers}, {pick.of(INTEGERS)})" if pick.chance(30) else f"sum({numbers})"
        return f"{name}(({numbers}, {pick.of(('1', '2', '0.5', '1e0'))}))"

    def string(self, depth: int) -> str:
        """Exactly one string."""
        pick = self.pick
        choice = pick.below(26) if depth > 0 else 0
        if choice < 3:
            return literal(pick.of(STRINGS))
        if choice < 8:
            return f"string({self.single(depth - 1).text})"
        if choice < 10:
            return f"string({self.number(depth - 1) if pick.chance(60) else self.boolean(depth - 1)})"
        if choice < 12:
            parts = [self.optional(depth - 1) for _ in range(2 + pick.below(2))]
            return f"concat({', '.join(parts)})"
        if choice < 14:
            return f"string-join({self.strings(depth - 1)}, {literal(pick.of((', ', '', '&')))})"
        if choice < 16:
            second = f", {self.number(0)}" if pick.chance(50) else ""
            return f"substring({self.optional(depth - 1)}, {self.number(0)}{second})"
        if choice < 18:
            name = pick.of(("substring-before", "substring-after"))
            return f"{name}({self.optional(depth - 1)}, {literal(pick.of(('a', '', ' ', 'D')))})"
        if choice < 19:
            return f'translate({self.optional(depth - 1)}, "abcD", "AB")'
        if choice < 21:
            return f"{pick.of(('upper-case', 'lower-case', 'normalize-space'))}({self.optional(depth - 1)})"
        if choice < 24:
            name = pick.of(("name", "local-name", "namespace-uri"))
            return f"{'string' if name == 'namespace-uri' else ''}({name}({self.single(depth - 1).text}))"
        if choice < 25:
            return f"xs:string({literal(pick.of(STRINGS))})"
        return f"(if ({self.boolean(depth - 1)}) then {self.string(depth - 1)} else {self.string(depth - 1)})"

    def optional(self, depth: int) -> str:
        """A string or a node or nothing, as string functions take them."""
        choice = self.pick.below(10)
        if choice < 5:
            return self.string(depth)
        return self.single(depth).text if choice < 9 else "()"

    def strings(self, depth: int) -> str:
        """Any number of strings."""
        variable = self.new_variable()
        choice = self.pick.below(4)
        if choice == 0:
            return f"({self.string(depth)}, {self.string(depth)})"
        if choice == 1:
            return f"distinct-values({self.nodes(depth).text}/string())"
        if choice == 2:
            return f"{self.nodes(depth).text}/{self.pick.of(('string()', 'name()', 'local-name()', 'string(.)'))}"
        return f"(for {variable} in {self.nodes(depth).text} return string({variable}))"

    def boolean(self, depth: int) -> str:
        """Exactly one boolean."""
        pick = self.pick
        choice = pick.below(40) if depth > 0 else pick.below(8)
        if choice < 1:
            return pick.of(("true()", "false()"))
        if choice < 8:
            return f"boolean({self.condition(self.start(), 1 if depth > 0 else 0)})"
        if choice < 12:
            left, right = self.atoms(depth - 1), self.atoms(depth - 1)
            return f"({left} {pick.of(OPERATORS)} {right})"
        if choice < 15:
            left, right = self.number(depth - 1), self.number(depth - 1)
            right = pick.of((right, f"({right}, {self.number(0)})", "()", "(1 to 3)"))
            return f"({left} {pick.of((*OPERATORS, *VALUE_OPERATORS) if right[0] != '(' else OPERATORS)} {right})"
        if choice < 18:
            return f"({self.string(depth - 1)} {pick.of(VALUE_OPERATORS)} {self.string(depth - 1)})"
        if choice < 19:
            left, right = self.single(depth - 1).text, self.single(depth - 1).text
            return f"boolean({left} {pick.of(VALUE_OPERATORS)} {right})"
        if choice < 22:
            left, right = self.single(depth - 1).text, self.single(depth - 1).text
            return f"boolean({left} {pick.of(('is', '<<', '>>'))} {right})"
        if choice < 26:
            return f"({self.boolean(depth - 1)} {pick.of(('and', 'or'))} {self.boolean(depth - 1)})"
        if choice < 29:
            return f"{pick.of(('exists', 'empty', 'not', 'boolean'))}({self.nodes(depth - 1).text})"
        if choice < 31:
            return f"not({self.boolean(depth - 1)})"
        if choice < 34:
            return self.quantified(depth - 1)
        if choice < 37:
            name = pick.of(("contains", "starts-with", "ends-with"))
            return f"{name}({self.optional(depth - 1)}, {literal(pick.of(STRINGS))})"
        if choice < 38:
            return f"(compare({self.string(depth - 1)}, {self.string(depth - 1)}) {pick.of(OPERATORS)} 0)"
        if choice < 39:
            return f"xs:boolean({literal(pick.of(('true', '0', ' 1 ', 'false')))})"
        return f"boolean({pick.of((self.number(depth - 1), self.string(depth - 1)))})"

    def quantified(self, depth: int) -> str:
        """`some` or `every` over one or two variables."""
        pick = self.pick
        outer = len(self.scope)
        bindings = []
        for _ in range(1 + pick.chance(35)):
            sequence = self.nodes(depth)
            name = self.new_variable()
            bindings.append(f"{name} in {sequence.text}")
            self.scope.append(Path(name, sequence.kind, single=True))
        satisfies = self.boolean(depth)
        del self.scope[outer:]
        return f"({pick.of(('some', 'every'))} {', '.join(bindings)} satisfies {satisfies})"

    # Sequences and constructors

    def items(self, depth: int) -> str:
        """Any items, no attributes."""
        pick = self.pick
        choice = pick.below(34) if depth > 0 else pick.below(8)
        if choice < 4:
            return self.nodes(depth).text
        if choice < 8:
            return pick.of((self.number, self.string, self.boolean))(max(depth - 1, 0))
        if choice < 14:
            return self.full_flwor(depth - 1)
        if choice < 20:
            return self.element(depth - 1)
        if choice < 23:
            return "(" + ", ".join(self.items(depth - 1) for _ in range(pick.below(4))) + ")"
        if choice < 25:
            return f"(if ({self.boolean(depth - 1)}) then {self.items(depth - 1)} else {self.items(depth - 1)})"
        if choice < 26:
            return f"({self.small(depth)} to {self.small(depth)})"
        if choice < 30:
            return self.sequence_function(depth)
        if choice < 31:
            return f"text {{ {self.atoms(depth - 1)} }}"
        if choice < 32:
            return pick.of(("<!--c-->", "<!-- x <y> & -->", "<?go on?>", "<?go?>"))
        if choice < 33:
            return f"({self.strings(depth - 1)})[{pick.of(('1', 'last()', 'position() < 3', literal('') + ' != .'))}]"
        return f"element {pick.of(('e', 'b-1'))} {{ {self.items(depth - 1)} }}"

    def small(self, depth: int) -> str:
        """A small integer, as a bound of a range."""
        return (
            f"count({self.nodes(0).text})" if depth > 1 and self.pick.chance(30) else self.pick.of(("1", "3", "0", "5"))
        )

    def sequence_function(self, depth: int) -> str:
        """Functions that give or take whole sequences."""
        pick = self.pick
        choice = pick.below(9)
        if choice == 0:
            return f"distinct-values({self.atoms(depth - 1)})"
        if choice == 1:
            return f"index-of({self.strings(depth - 1)}, {literal(pick.of(STRINGS))})"
        if choice == 2:
            return f"reverse({self.items(depth - 1)})"
        if choice == 3:
            return f"subsequence({self.items(depth - 1)}, {self.number(0)}{pick.of((', 2', '', ', 1.5', ', 0'))})"
        if choice == 4:
            return f"data({self.atoms(depth - 1)})"
        if choice == 5:
            argument = self.nodes(depth - 1).text if self.daring else self.string(depth - 1)
            return f"{pick.of(('exactly-one', 'one-or-more'))}({argument})"
        if choice == 6:
            return f"zero-or-one({self.single(depth - 1).text})"
        if choice == 7:
            return f"{pick.of(('avg', 'min', 'max'))}({pick.of(('()', '(1, 2)', '(1, 2.5e0)', '(3, 1, 2)'))})"
        return f"{pick.of(('min', 'max'))}({self.strings(depth - 1)})"

    def element(self, depth: int) -> str:
        """A direct or computed element."""
        pick = self.pick
        if depth <= 0 or pick.chance(30):
            return self.constructor(max(depth, 0)) if self.scope else f"<e>{{ data({self.atoms(0)}) }}</e>"
        name = pick.of(("e", "b-1", "x", "q:e"))
        declared = ' xmlns:q="urn:q"' if name == "q:e" else pick.of(("", "", "", ' xmlns:z="urn:z"'))
        attributes = ""
        if pick.chance(35):
            attributes += f' k="{pick.of(("", "a "))}{{ {self.atoms(depth - 1)} }}{pick.of(("", " b", "&quot;"))}"'
        if pick.chance(15):
            attributes += f" n='{{ {self.items(depth - 1)} }}'"
        parts = []
        if pick.chance(15):
            parts.append(f"{{ attribute {pick.of(('c', 'd'))} {{ {self.atoms(depth - 1)} }} }}")
        for _ in range(pick.below(4)):
            if sum(map(len, parts)) < LARGE:
                parts.append(self.content(depth))
        end = "/>" if not parts else f">{''.join(parts)}</{name}>"
        return f"<{name}{declared}{attributes}{end}"

    def content(self, depth: int) -> str:
        """A part of the content of a direct element."""
        pick = self.pick
        choice = pick.below(10)
        if choice < 6:
            return f"{{ {self.items(depth - 1)} }}"
        if choice < 8:
            return pick.of(
                ("t", " ", "\n", " x ", "&amp;", "{{", "}}", "&#x20;", "<!--c-->", "<?go on?>", "<![CDATA[<]]>")
            )
        return self.element(depth - 1)

    def full_flwor(self, depth: int) -> str:
        """FLWOR with every clause: `at`, `let` of anything, several keys."""
        pick = self.pick
        outer, numbers = len(self.scope), len(self.numbers)
        saved, self.context = self.context, None
        clauses = []
        for position in range(1 + pick.below(3)):
            name = self.new_variable()
            if position > 0 and pick.chance(35):
                clauses.append(self.let(name, depth))
                continue
            if pick.chance(10):
                clauses.append(f"for {name} in (1 to {pick.of(('3', '2'))})")
                self.numbers.append(name)
                continue
            sequence = self.nodes(depth)
            at = ""
            if pick.chance(25):
                index = self.new_variable()
                at = f" at {index}"
            clauses.append(f"for {name}{at} in {sequence.text}")
            self.scope.append(Path(name, sequence.kind, single=True))
            if at:
                self.numbers.append(index)
        if pick.chance(45):
            clauses.append(f"where {self.boolean(max(depth, 1))}")
        if pick.chance(40):
            keys = ", ".join(self.any_key(depth) for _ in range(1 + pick.chance(30)))
            clauses.append(f"{pick.of(('', '', 'stable '))}order by {keys}")
        result = self.items(depth) if pick.chance(50) else self.element(max(depth, 1))
        del self.scope[outer:], self.numbers[numbers:]
        self.context = saved
        return f"({' '.join(clauses)} return {result})"

    def let(self, name: str, depth: int) -> str:
        """A variable for nodes or a number."""
        if self.pick.chance(30):
            clause = f"let {name} := {self.number(depth)}"
            self.numbers.append(name)
            return clause
        path = self.nodes(depth)
        self.scope.append(Path(name, path.kind, single=path.single))
        return f"let {name} := {path.text}"

    def any_key(self, depth: int) -> str:
        """A key of `order by`: untyped, text or number, in one type for all tuples."""
        pick = self.pick
        choice = pick.below(3)
        if choice == 0:
            key = self.single(0).text
        else:
            key = self.string(min(depth, 1)) if choice == 1 else self.number(min(depth, 1))
        return key + pick.of(("", "", " ascending", " descending", " empty greatest", " descending empty least"))
