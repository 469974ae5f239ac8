"""Saved indexes: damaged files are refused, never believed and never a crash."""

from pathlib import Path

import pytest

from sardonyx import _core, errors
from tests import engine
from tests.generators import populations
from tests.generators.expressions import NAMESPACES
from tests.generators.pick import RandomPick
from tests.property.profiles import PROFILE, SEED


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A saved index of a mixed population."""
    pick = RandomPick(SEED)
    index = engine.index([populations.query(pick).text() for _ in range(60)], NAMESPACES)
    path = tmp_path / "index"
    index.save(str(path))
    return path


def test_damaged_bytes(saved: Path) -> None:
    """Any changed byte is found by `verify`."""
    content = saved.read_bytes()
    pick = RandomPick(SEED + 1)
    for _ in range(PROFILE.populations * 10):
        at = pick.below(len(content)) if pick.chance(70) else pick.below(256)
        damaged = bytearray(content)
        damaged[at] ^= 1 << pick.below(8)
        saved.write_bytes(bytes(damaged))
        with pytest.raises(errors.IndexFormatError):
            _core.Index.load(str(saved), verify=True)


def test_truncated(saved: Path) -> None:
    """A file cut anywhere is refused, with and without `verify`."""
    content = saved.read_bytes()
    pick = RandomPick(SEED + 2)
    for length in [0, 1, 7, 8, 64, len(content) - 1, *(pick.below(len(content)) for _ in range(PROFILE.populations))]:
        saved.write_bytes(content[:length])
        for verify in (True, False):
            with pytest.raises(errors.IndexFormatError):
                _core.Index.load(str(saved), verify=verify)


def test_foreign_files(tmp_path: Path) -> None:
    """Other files are refused; a missing one is a plain error."""
    other = tmp_path / "other"
    for content in (b"<a/>", b"\x00" * 4096, b"\xff" * 5000, b"PK\x03\x04" + b"x" * 1000):
        other.write_bytes(content)
        with pytest.raises(errors.IndexFormatError):
            _core.Index.load(str(other))
    with pytest.raises((errors.SardonyxError, OSError)):
        _core.Index.load(str(tmp_path / "none"))
