"""How much the property tests do: `SARDONYX_TEST_PROFILE` is quick (default), ci or long; `SARDONYX_TEST_PAIRS` sets the pairs."""

import os
from dataclasses import dataclass

from hypothesis import HealthCheck, settings


@dataclass(frozen=True)
class Profile:
    """Numbers of a profile."""

    examples: int
    pairs: int
    populations: int


PROFILES = {
    "quick": Profile(examples=60, pairs=20_000, populations=25),
    "ci": Profile(examples=400, pairs=100_000, populations=150),
    "long": Profile(examples=5_000, pairs=10_000_000, populations=5_000),
}
PROFILE = PROFILES[os.environ.get("SARDONYX_TEST_PROFILE", "quick")]
PAIRS = int(os.environ.get("SARDONYX_TEST_PAIRS", PROFILE.pairs))
SEED = int(os.environ.get("SARDONYX_TEST_SEED", "0"))

# Examples build many expressions each, so single ones may be slow; the database is kept for replays.
property_settings = settings(
    max_examples=PROFILE.examples,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
