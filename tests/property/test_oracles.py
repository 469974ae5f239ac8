"""The two oracles against each other: beyond the listed deviations libxml2 does what the recommendation says."""

import math
from typing import Any

from tests import libxml2, reference, reference_tree
from tests.generators import documents
from tests.generators.expressions import NAMESPACES, Expressions
from tests.generators.pick import RandomPick
from tests.generators.syntax import Expression
from tests.property.comparison import expected_value
from tests.property.profiles import PAIRS, SEED


def _expected(root: Any, expression: Expression) -> Any:
    value = reference.evaluate(expression, reference.Context(root))
    if isinstance(value, list):
        return [libxml2.mapped(node.string_value) for node in value]
    return libxml2.mapped(value) if isinstance(value, str) else value


def test_libxml2_and_the_recommendation() -> None:
    """Values of seeded expressions agree; a disagreement is a deviation that has to be listed, or a fault here."""
    different: list[str] = []
    for seed in range(SEED, SEED + max(10, PAIRS // 1000)):
        pick = RandomPick(seed)
        document = documents.generate(pick)
        oracle = libxml2.Oracle(libxml2.mapped(document.text).encode(document.encoding), NAMESPACES)
        written = libxml2.written_out(document.text)
        root = reference_tree.build(libxml2.parse(written.encode(document.encoding)))
        generator = Expressions(pick)
        for _ in range(25):
            expression = generator.any()
            if libxml2.deviates(expression, document.text):
                continue
            found, expected = expected_value(oracle, expression), _expected(root, expression)
            if isinstance(expected, list) and "namespace" in expression.text():
                found, expected = sorted(found), sorted(expected)
            both_nan = isinstance(expected, float) and math.isnan(expected) and math.isnan(found)
            if found != expected and not both_nan:
                different.append(f"{expression.text()} on {document.text}: {expected!r:.200}, libxml2 {found!r:.200}")
    assert different == [], "\n".join(different)
