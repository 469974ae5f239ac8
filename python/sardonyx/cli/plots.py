"""Drawings of an index, with matplotlib (the extra `plots`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from sardonyx.errors import MissingExtraError

__all__ = ["draw_index", "need_matplotlib"]

_PARTS_SHOWN = 12
"""The largest parts; the others are too small to be seen beside them."""


def need_matplotlib() -> None:
    """Raise `MissingExtraError` if matplotlib is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(
            "drawing needs matplotlib, which is not installed: pip install 'sardonyx[plots]'"
        ) from error


def draw_index(file: Path, title: str, group_rows: Sequence[int], parts: Mapping[str, int], subscriptions: int) -> None:
    """Draw groups by rank (log-log) and, beside them, the bytes of each part per subscription.

    `group_rows`: rows of each group, largest first; `parts`: bytes by name, largest first. The suffix of `file` says
    the format (`.png`, `.svg`). Raises `MissingExtraError` without matplotlib, and `OSError` if it can not be written.
    """
    need_matplotlib()
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(11, 4.5), layout="constrained")
    groups, bars = drawing.subplots(1, 2)
    groups.plot(range(1, len(group_rows) + 1), group_rows, marker=".", color="#345d7e")
    groups.set(xscale="log", yscale="log", xlabel="rank of the group", ylabel="rows", title="Groups")
    shown = dict(list(parts.items())[:_PARTS_SHOWN])
    bars.barh(list(shown), [size / max(subscriptions, 1) for size in shown.values()], color="#345d7e")
    bars.invert_yaxis()
    bars.set(xlabel="bytes per subscription", title="Parts")
    drawing.suptitle(title)
    drawing.savefig(file)
