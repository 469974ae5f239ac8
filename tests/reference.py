"""A plain evaluator of XPath 1.0, written from the recommendation alone.

It judges where libxml2 is known to leave the recommendation, and says whether anything else differs. It walks the
generators' trees, so that it needs no parser of its own, and is as simple as it can be: no speed, no sharing.
"""

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal

from tests.generators.expressions import NAMESPACES
from tests.generators.syntax import Call, Expression, Negation, Operation, Path, Step, Token
from tests.reference_tree import XML_NAMESPACE, Node

Value = list[Node] | bool | float | str
_NUMBER = re.compile(r"[ \t\r\n]*(-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))[ \t\r\n]*")
_REVERSE = {"ancestor", "ancestor-or-self", "preceding", "preceding-sibling"}


@dataclass(frozen=True)
class Context:
    """Context node, position and size (section 1)."""

    node: Node
    position: int = 1
    size: int = 1


def axis(node: Node, name: str) -> list[Node]:
    """The nodes of an axis (2.2), in the axis's direction."""
    if name in ("following", "preceding"):
        above, below = set(node.ancestors), set(node.descendants)
        others = [n for n in node.root.descendants if n is not node and n not in above and n not in below]
        if name == "following":
            return [n for n in others if n.order > node.order]
        return [n for n in reversed(others) if n.order < node.order]
    is_child = node.parent is not None and node.kind not in ("attribute", "namespace")
    siblings = node.parent.children if is_child and node.parent is not None else [node]
    at = siblings.index(node)
    table: dict[str, Callable[[], list[Node]]] = {
        "self": lambda: [node],
        "child": lambda: node.children,
        "parent": lambda: [node.parent] if node.parent is not None else [],
        "attribute": lambda: node.attributes,
        "namespace": lambda: node.namespaces,
        "descendant": lambda: node.descendants,
        "descendant-or-self": lambda: [node, *node.descendants],
        "ancestor": lambda: node.ancestors,
        "ancestor-or-self": lambda: [node, *node.ancestors],
        "following-sibling": lambda: siblings[at + 1 :],
        "preceding-sibling": lambda: siblings[:at][::-1],
    }
    return table[name]()


def passes(node: Node, axis_name: str, test: str) -> bool:
    """The node test (2.3)."""
    principal = {"attribute": "attribute", "namespace": "namespace"}.get(axis_name, "element")
    if test == "node()":
        return True
    if test.endswith(")"):
        kind, _, argument = test.rstrip(")").partition("(")
        wanted = {"processing-instruction": "instruction"}.get(kind, kind)
        return node.kind == wanted and argument.strip("'\"") in ("", node.local)
    if node.kind != principal:
        return False
    prefix, _, local = test.rpartition(":")
    if test == "*":
        return True
    return node.uri == (NAMESPACES[prefix] if prefix else "") and local in ("*", node.local)


def number(value: Value) -> float:
    """number() (4.4)."""
    if isinstance(value, bool):
        return 1.0 if value else 0.0
    if isinstance(value, float):
        return value
    found = _NUMBER.fullmatch(string(value))
    return float(found[1]) if found else math.nan


def string(value: Value) -> str:
    """string() (4.2)."""
    if isinstance(value, list):
        return min(value, key=lambda node: node.order).string_value if value else ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return str(int(value)) if value == int(value) else format(Decimal(repr(value)), "f")


def boolean(value: Value) -> bool:
    """boolean() (4.3)."""
    return not math.isnan(value) and value != 0 if isinstance(value, float) else bool(value)


def divide(left: float, right: float) -> float:
    """IEEE division (3.5)."""
    if right != 0:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1, right)


def remainder(left: float, right: float) -> float:
    """mod truncates, as fmod does (3.5)."""
    return math.nan if right == 0 or math.isinf(left) else math.fmod(left, right)


def rounded(value: float) -> float:
    """round() (4.4): the nearest integer, ties upwards, signs of zero kept."""
    if math.isnan(value) or math.isinf(value) or value == 0:
        return value
    whole = math.floor(value)
    result = float(whole + 1 if value - whole >= 0.5 else whole)
    return math.copysign(result, value) if result == 0 else result


def _whole(function: Callable[[float], int]) -> Callable[[float], float]:
    def apply(value: float) -> float:
        if math.isnan(value) or math.isinf(value):
            return value
        return math.copysign(float(function(value)), value) if function(value) == 0 else float(function(value))

    return apply


def compare(operator: str, left: Value, right: Value) -> bool:
    """The comparison operators (3.4)."""
    if isinstance(left, list) or isinstance(right, list):
        if isinstance(left, bool) or isinstance(right, bool):
            return compare(operator, boolean(left), boolean(right))
        lefts = [n.string_value for n in left] if isinstance(left, list) else [left]
        rights = [n.string_value for n in right] if isinstance(right, list) else [right]
        return any(compare(operator, one, other) for one in lefts for other in rights)
    if operator in ("=", "!="):
        if isinstance(left, bool) or isinstance(right, bool):
            equal = boolean(left) == boolean(right)
        elif isinstance(left, float) or isinstance(right, float):
            equal = number(left) == number(right)
        else:
            equal = left == right
        return equal if operator == "=" else not equal
    one, other = number(left), number(right)
    return {"<": one < other, "<=": one <= other, ">": one > other, ">=": one >= other}[operator]


def evaluate(expression: Expression, context: Context) -> Value:
    """The value of an expression; node-sets are lists in document order."""
    if isinstance(expression, Token):
        return _token(expression.written, context)
    if isinstance(expression, Negation):
        return -number(evaluate(expression.operand, context))
    if isinstance(expression, Path):
        return _path(expression, context)
    if isinstance(expression, Operation):
        return _operation(expression, context)
    assert isinstance(expression, Call)
    return _call(expression, context)


def _token(written: str, context: Context) -> Value:
    if written[0] in "'\"":
        return written[1:-1]
    fixed: dict[str, Value] = {
        "true()": True,
        "false()": False,
        "position()": float(context.position),
        "last()": float(context.size),
        "last()-1": float(context.size - 1),
    }
    return fixed[written] if written in fixed else float(written)


def _sorted(nodes: Iterable[Node]) -> list[Node]:
    return sorted(set(nodes), key=lambda node: node.order)


def _filter(nodes: list[Node], predicates: Iterable[Expression]) -> list[Node]:
    """Predicates (2.4) over nodes in the order in which they count."""
    for predicate in predicates:
        kept = []
        for position, node in enumerate(nodes, 1):
            value = evaluate(predicate, Context(node, position, len(nodes)))
            if value == position if isinstance(value, float) else boolean(value):
                kept.append(node)
        nodes = kept
    return nodes


def _step(nodes: list[Node], step: Step) -> list[Node]:
    if step.separator == "//":
        nodes = _sorted(n for node in nodes for n in axis(node, "descendant-or-self"))
    head = step.head
    test = "node()" if head in (".", "..") else head.lstrip("@").rpartition("::")[2].strip()
    found: list[Node] = []
    for node in nodes:
        candidates = [n for n in axis(node, step.axis) if passes(n, step.axis, test)]
        found.extend(_filter(candidates, step.predicates))
    return _sorted(found)


def _path(path: Path, context: Context) -> list[Node]:
    if path.base is not None:
        base = evaluate(path.base, context)
        assert isinstance(base, list)
        nodes = _filter(base, path.base_predicates)
    elif path.steps and not path.steps[0].separator:
        nodes = [context.node]
    else:
        nodes = [context.node.root]
    for step in path.steps:
        nodes = _step(nodes, step)
    return nodes


def _operation(operation: Operation, context: Context) -> Value:
    operator = operation.operator
    left = evaluate(operation.left, context)
    if operator in ("and", "or"):
        if boolean(left) == (operator == "or"):
            return operator == "or"
        return boolean(evaluate(operation.right, context))
    right = evaluate(operation.right, context)
    if operator == "|":
        assert isinstance(left, list)
        assert isinstance(right, list)
        return _sorted(left + right)
    if operator in ("=", "!=", "<", "<=", ">", ">="):
        return compare(operator, left, right)
    one, other = number(left), number(right)
    if operator == "div":
        return divide(one, other)
    if operator == "mod":
        return remainder(one, other)
    return {"+": one + other, "-": one - other, "*": one * other}[operator]


def _substring(text: str, start: float, length: float | None = None) -> str:
    first = rounded(start)
    end = math.inf if length is None else first + rounded(length)
    return "".join(char for position, char in enumerate(text, 1) if first <= position < end)


def _translate(text: str, source: str, target: str) -> str:
    table: dict[str, str] = {}
    for position, char in enumerate(source):
        table.setdefault(char, target[position : position + 1])
    return "".join(table.get(char, char) for char in text)


def _lang(node: Node, wanted: str) -> bool:
    for element in [node, *node.ancestors]:
        for attribute in element.attributes:
            if attribute.local == "lang" and attribute.uri == XML_NAMESPACE:
                value, asked = attribute.value.lower(), wanted.lower()
                return value == asked or value.startswith(asked + "-")
    return False


def _identified(value: Value, context: Context) -> list[Node]:
    names = [node.string_value for node in value] if isinstance(value, list) else [string(value)]
    wanted = {word for text in names for word in re.split(r"[ \t\r\n]+", text) if word}
    return [node for node in context.node.root.descendants if node.identifier in wanted and node.identifier]


def _call(call: Call, context: Context) -> Value:
    values = [evaluate(argument, context) for argument in call.arguments]
    own: list[Node] = [context.node]
    first: Value = values[0] if values else own
    texts = [string(value) for value in values] or [string(own)]
    nodes = first if isinstance(first, list) else []
    named = nodes[0] if nodes else Node("none", None)
    table: dict[str, Callable[[], Value]] = {
        "count": lambda: float(len(nodes)),
        "sum": lambda: float(sum(number(node.string_value) for node in nodes)),
        "id": lambda: _identified(first, context),
        "not": lambda: not boolean(first),
        "boolean": lambda: boolean(first),
        "number": lambda: number(first),
        "string": lambda: texts[0],
        "string-length": lambda: float(len(texts[0])),
        "normalize-space": lambda: " ".join(word for word in re.split(r"[ \t\r\n]+", texts[0]) if word),
        "contains": lambda: texts[1] in texts[0],
        "starts-with": lambda: texts[0].startswith(texts[1]),
        "substring-before": lambda: texts[0].partition(texts[1])[0] if texts[1] and texts[1] in texts[0] else "",
        "substring-after": lambda: texts[0].partition(texts[1])[2] if texts[1] else texts[0],
        "substring": lambda: _substring(texts[0], *(number(value) for value in values[1:])),
        "translate": lambda: _translate(*texts),
        "concat": lambda: "".join(texts),
        "floor": lambda: _whole(math.floor)(number(first)),
        "ceiling": lambda: _whole(math.ceil)(number(first)),
        "round": lambda: rounded(number(first)),
        "lang": lambda: _lang(context.node, texts[0]),
        "name": lambda: named.name,
        "local-name": lambda: named.local,
        "namespace-uri": lambda: named.uri,
    }
    return table[call.name]()
