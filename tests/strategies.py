"""Hypothesis strategies: documents, expressions and populations, over the generators that volume tests use as well."""

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from tests.generators import documents as documents_
from tests.generators import populations as populations_
from tests.generators.expressions import Expressions
from tests.generators.pick import HypothesisPick
from tests.generators.syntax import Expression


@st.composite
def documents(draw: Callable[..., Any], size: int = 12) -> documents_.Document:
    """Well-formed documents of at most about `size` elements."""
    return documents_.generate(HypothesisPick(draw), size)


@st.composite
def expressions(draw: Callable[..., Any], depth: int = 2) -> Expression:
    """Valid XPath 1.0 expressions of any type."""
    return Expressions(HypothesisPick(draw)).any(depth)


@st.composite
def queries(draw: Callable[..., Any]) -> Expression:
    """Subscriptions in the forms that an index shares, and some others."""
    return populations_.query(HypothesisPick(draw))


@st.composite
def subscriptions(draw: Callable[..., Any], ids: int = 12) -> populations_.Subscription:
    """Rows for a registration batch, over `ids` different ids; a few have to be refused."""
    return populations_.subscription(HypothesisPick(draw), ids)


picks = st.integers(0, 2**32 - 1)
"""Seeds for `RandomPick`, where one example holds more choices than Hypothesis can shrink."""
