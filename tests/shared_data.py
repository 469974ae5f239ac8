"""Where the shared data and cases lie: beside the checkout; tests that read them skip where they are absent."""

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared"
DATA = SHARED / "data"
CASES = SHARED / "cases" / "cases-dev.json"

needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the shared data folder is not beside the checkout")
needs_cases = pytest.mark.skipif(not CASES.is_file(), reason="the shared cases are not beside the checkout")
