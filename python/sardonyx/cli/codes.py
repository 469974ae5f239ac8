"""The exit codes of every command, for scripts."""

from __future__ import annotations

from typing import Final

FOUND: Final = 0
"""A notification was made, a document matches; for commands that answer no such question: all done."""
NOTHING: Final = 1
"""All was processed and nothing matches."""
FAILED: Final = 2
"""The command could not be carried out: wrong usage, an unreadable file, a damaged index, a missing extra."""
REFUSED: Final = 3
"""Done, but some documents or subscriptions were refused (dead letters). It outranks 0 and 1."""
INTERRUPTED: Final = 130
"""Ended by Ctrl-C."""
OUTPUT_CLOSED: Final = 141
"""The reader of the output went away, as in `sardonyx match ... | head -1`."""


def of(found: int, refused: int) -> int:
    """The code for a number of findings and refusals."""
    if refused:
        return REFUSED
    return FOUND if found else NOTHING
