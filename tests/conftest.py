"""What all tests share: the profiles of Hypothesis and the place of the repository.

Profiles: `quick` (in `make quick`), `ci` (the default, in `make test`) and `long` (by hand, for a night).
"""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}  # shared machines pause at any moment

settings.register_profile("quick", max_examples=20, **_COMMON)
settings.register_profile("ci", max_examples=100, print_blob=True, **_COMMON)
settings.register_profile("long", max_examples=20_000, print_blob=True, **_COMMON)
settings.load_profile("ci")


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the repository."""
    return Path(__file__).resolve().parents[1]
