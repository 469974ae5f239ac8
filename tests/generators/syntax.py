"""XPath 1.0 expressions as trees that can be printed, measured and cut down."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

PRECEDENCE = {
    "or": 1, "and": 2, "=": 3, "!=": 3, "<": 4, "<=": 4, ">": 4, ">=": 4,
    "+": 5, "-": 5, "*": 6, "div": 6, "mod": 6, "|": 8,
}  # fmt: skip


@dataclass(frozen=True)
class Step:
    """One location step; `separator` stands before it ("/", "//" or nothing at the start of a relative path)."""

    separator: str
    axis: str
    head: str
    predicates: tuple["Expression", ...] = ()

    def text(self) -> str:
        """The step as written, without its separator."""
        return self.head + "".join(f"[{predicate.text()}]" for predicate in self.predicates)


class Expression:
    """Any expression; `kind` is its type by the recommendation: nodes, boolean, number or string."""

    kind: str

    def text(self) -> str:
        """The expression as written."""
        raise NotImplementedError

    def children(self) -> tuple["Expression", ...]:
        """Direct sub-expressions, those in predicates included."""
        return ()

    def with_children(self, children: tuple["Expression", ...]) -> "Expression":
        """The same expression over other sub-expressions."""
        raise NotImplementedError

    def simpler(self) -> Iterator["Expression"]:
        """Smaller expressions of the same type made by cutting here."""
        return iter(())


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and everything below it."""
    yield expression
    for child in expression.children():
        yield from walk(child)


@dataclass(frozen=True)
class Token(Expression):
    """A literal, a number or a call without arguments, as written."""

    kind: str
    written: str

    def text(self) -> str:
        """The expression as written."""
        return self.written

    def with_children(self, children: tuple[Expression, ...]) -> Expression:
        """The token itself."""
        return self


@dataclass(frozen=True)
class Call(Expression):
    """A call of a core function."""

    kind: str
    name: str
    arguments: tuple[Expression, ...]

    def text(self) -> str:
        """The expression as written."""
        return f"{self.name}({', '.join(argument.text() for argument in self.arguments)})"

    def children(self) -> tuple[Expression, ...]:
        """The arguments."""
        return self.arguments

    def with_children(self, children: tuple[Expression, ...]) -> Expression:
        """The call with other arguments."""
        return replace(self, arguments=children)


@dataclass(frozen=True)
class Operation(Expression):
    """A binary operation."""

    kind: str
    operator: str
    left: Expression
    right: Expression
    tight: bool = False

    def text(self) -> str:
        """The operation with the brackets that precedence and left associativity ask for."""
        rank = PRECEDENCE[self.operator]
        left, right = self.left.text(), self.right.text()
        # After the root "/" a name or a star is a step (recommendation, 3.7), so the root needs brackets there.
        if _rank(self.left) < rank or (left.endswith("/") and self.operator in ("and", "or", "div", "mod", "*")):
            left = f"({left})"
        if _rank(self.right) <= rank:
            right = f"({right})"
        if self.tight and self.operator in ("=", "!=", "<", "<=", ">", ">=", "|", "+"):
            return f"{left}{self.operator}{right}"
        return f"{left} {self.operator} {right}"

    def children(self) -> tuple[Expression, ...]:
        """Both operands."""
        return (self.left, self.right)

    def with_children(self, children: tuple[Expression, ...]) -> Expression:
        """The operation over other operands."""
        return replace(self, left=children[0], right=children[1])


@dataclass(frozen=True)
class Negation(Expression):
    """Unary minus."""

    operand: Expression
    kind = "number"

    def text(self) -> str:
        """The expression as written; minus binds weaker than the union."""
        inner = self.operand.text()
        return f"-({inner})" if _rank(self.operand) < 7 else f"-{inner}"

    def children(self) -> tuple[Expression, ...]:
        """The operand."""
        return (self.operand,)

    def with_children(self, children: tuple[Expression, ...]) -> Expression:
        """The negation of another operand."""
        return Negation(children[0])


@dataclass(frozen=True)
class Path(Expression):
    """A location path, or a filter expression with steps after it when there is a `base`."""

    steps: tuple[Step, ...]
    base: Expression | None = None
    base_predicates: tuple[Expression, ...] = ()
    kind = "nodes"

    def text(self) -> str:
        """The path as written; a path without steps and base is the root."""
        out = ""
        if self.base is not None:
            out = f"({self.base.text()})" + "".join(f"[{p.text()}]" for p in self.base_predicates)
        out += "".join(step.separator + step.text() for step in self.steps)
        return out or "/"

    def children(self) -> tuple[Expression, ...]:
        """The base, its predicates and all steps' predicates."""
        inner = [] if self.base is None else [self.base]
        inner.extend(self.base_predicates)
        for step in self.steps:
            inner.extend(step.predicates)
        return tuple(inner)

    def with_children(self, children: tuple[Expression, ...]) -> Expression:
        """The path over another base and other predicates."""
        rest = list(children)
        base = None if self.base is None else rest.pop(0)
        base_predicates = tuple(rest.pop(0) for _ in self.base_predicates)
        steps = tuple(replace(step, predicates=tuple(rest.pop(0) for _ in step.predicates)) for step in self.steps)
        return Path(steps, base, base_predicates)

    def simpler(self) -> Iterator[Expression]:
        """The path without its last or first step, or without one predicate."""
        if self.base is not None:
            yield self.base
            for at in range(len(self.base_predicates)):
                yield replace(self, base_predicates=self.base_predicates[:at] + self.base_predicates[at + 1 :])
        for at, step in enumerate(self.steps):
            if len(self.steps) > 1 or self.base is not None:
                rest = self.steps[:at] + self.steps[at + 1 :]
                if at == 0 and self.base is None:
                    rest = (replace(rest[0], separator=step.separator), *rest[1:])
                yield replace(self, steps=rest)
            for cut in range(len(step.predicates)):
                shorter = replace(step, predicates=step.predicates[:cut] + step.predicates[cut + 1 :])
                yield replace(self, steps=(*self.steps[:at], shorter, *self.steps[at + 1 :]))


def _rank(expression: Expression) -> int:
    if isinstance(expression, Operation):
        return PRECEDENCE[expression.operator]
    if isinstance(expression, Negation):
        return 7
    return 9
