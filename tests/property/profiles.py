"""How much the volume tests do, by the profile of Hypothesis that is loaded (quick, ci or long).

`SARDONYX_TEST_PAIRS` sets the number of (document, expression) pairs, `SARDONYX_TEST_SEED` the first seed.
"""

import os
from dataclasses import dataclass

from hypothesis import HealthCheck, settings


@dataclass(frozen=True)
class Profile:
    """Numbers of a profile."""

    pairs: int
    populations: int


PROFILES = {
    "quick": Profile(pairs=20_000, populations=15),
    "ci": Profile(pairs=60_000, populations=60),
    "long": Profile(pairs=10_000_000, populations=5_000),
}
PROFILE = PROFILES.get(settings.get_current_profile_name(), PROFILES["quick"])
PAIRS = int(os.environ.get("SARDONYX_TEST_PAIRS", PROFILE.pairs))
SEED = int(os.environ.get("SARDONYX_TEST_SEED", "0"))

# An example builds a document and several expressions, so that it draws much and single ones may be slow.
property_settings = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
