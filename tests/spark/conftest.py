"""One Spark session for all tests here, started when the first test needs it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[3] / "shared"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def spark() -> Iterator[object]:
    pytest.importorskip("pyspark", reason="the extra sardonyx[spark] is not installed")
    from sardonyx.spark import local_session

    session = local_session(cores=2)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def shared() -> Path:
    if not SHARED.is_dir():
        pytest.skip("the shared folder with test data is not beside the checkout")
    return SHARED
