"""The exact evaluator against libxml2: small examples that shrink, and many seeded pairs."""

from hypothesis import given
from hypothesis import strategies as st

from tests import strategies
from tests.generators import documents
from tests.generators.documents import Document
from tests.generators.expressions import Expressions
from tests.generators.pick import RandomPick
from tests.generators.syntax import Expression
from tests.property.comparison import compare
from tests.property.profiles import PAIRS, SEED, property_settings

EXPRESSIONS_PER_DOCUMENT = 60


@property_settings
@given(strategies.documents(), st.lists(strategies.expressions(), min_size=1, max_size=8))
def test_small_examples(document: Document, expressions: list[Expression]) -> None:
    """Every expression has libxml2's value on the document."""
    assert compare(document, expressions).failures == []


def test_many_pairs() -> None:
    """Seeded documents and expressions, at least `SARDONYX_TEST_PAIRS` of them compared."""
    pairs = judged = 0
    seed = SEED
    failures: list[str] = []
    while pairs < PAIRS and len(failures) < 5:
        pick = RandomPick(seed)
        document = documents.generate(pick)
        generator = Expressions(pick)
        outcome = compare(document, [generator.any() for _ in range(EXPRESSIONS_PER_DOCUMENT)])
        pairs += outcome.pairs
        judged += outcome.judged
        failures.extend(f"seed {seed}: {failure}" for failure in outcome.failures)
        seed += 1
    assert failures == [], f"{len(failures)} of {pairs} pairs"
    assert judged < pairs / 8, "deviations are narrow"
