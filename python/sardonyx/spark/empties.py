"""Files without content, which Spark's file sources leave out without a word and which are documents all the same.

An empty document is not well-formed, so it has to become a dead letter. What Spark leaves out is found by looking: at
the folders for a batch, and for a micro-batch at the files that Spark's own log says belong to it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

__all__ = ["empty_files", "empty_files_of_batch", "glob_pattern"]


def empty_files(path: str, glob: str | None) -> Iterator[str]:
    """The empty files that a source reads in a batch; none on file systems that are not local or mounted.

    `path` is absolute and may be a pattern; files and folders that Spark takes for hidden are passed over.
    """
    parts = urlsplit(path)
    if parts.scheme not in ("", "file"):
        return
    steps = (parts.path if parts.scheme else path).rstrip("/").split("/")
    wanted = re.compile("/".join(glob_pattern(step) for step in steps))
    name_wanted = re.compile(glob_pattern(glob)) if glob is not None else None
    fixed = next((at for at, step in enumerate(steps) if glob_pattern(step) != re.escape(_plain(step))), len(steps))
    root = Path(_plain("/".join(steps[:fixed])) or "/")
    files = [root] if root.is_file() else (Path(folder, name) for folder, _, names in os.walk(root) for name in names)
    for file in files:
        found = str(file).split("/")
        if not wanted.fullmatch("/".join(found[: len(steps)])) or any(_hidden(step) for step in found[len(steps) :]):
            continue
        if (name_wanted is None or name_wanted.fullmatch(file.name)) and _is_empty(file):
            yield str(file)


def empty_files_of_batch(checkpoint: Path, batch_id: int) -> list[str]:
    """The empty files of one micro-batch of a query with one file source, by the log that Spark keeps of it."""
    end = _log_offset(checkpoint, batch_id)
    start = _log_offset(checkpoint, batch_id - 1) if batch_id else -1
    found = []
    for entry in _seen(checkpoint / "sources" / "0", range(start + 1, end + 1)):
        parts = urlsplit(entry)
        if parts.scheme == "file" and _is_empty(Path(unquote(parts.path))):
            found.append(unquote(parts.path))
    return sorted(found)


def glob_pattern(glob: str) -> str:
    """A regular expression for one step of a Hadoop pattern: `*`, `?`, `[...]`, `{a,b}` and `\\\\` before any of them.

    >>> import re
    >>> bool(re.fullmatch(glob_pattern("*.{xml,rss}"), "a.rss"))
    True
    """
    pieces, depth = [], 0
    for sign in re.findall(r"\\.|\[[^\]]+\]|.", glob, re.DOTALL):
        if sign == "*":
            pieces.append("[^/]*")
        elif sign == "?":
            pieces.append("[^/]")
        elif sign == "{":
            pieces.append("(?:")
            depth += 1
        elif sign == "}" and depth:
            pieces.append(")")
            depth -= 1
        elif sign == "," and depth:
            pieces.append("|")
        elif len(sign) > 2:
            pieces.append(sign if sign[1] != "!" else f"[^{sign[2:]}")
        else:
            pieces.append(re.escape(sign[-1]))
    return "".join(pieces)


def _plain(step: str) -> str:
    return re.sub(r"\\(.)", r"\1", step)


def _hidden(name: str) -> bool:
    return name.startswith(".") or (name.startswith("_") and "=" not in name) or name.endswith("._COPYING_")


def _is_empty(file: Path) -> bool:
    try:
        return file.stat().st_size == 0
    except OSError:
        return False


def _log_offset(checkpoint: Path, batch_id: int) -> int:
    """The last entry of the source's log that a batch includes: the third line of its offsets."""
    lines = (checkpoint / "offsets" / str(batch_id)).read_text(encoding="utf-8").splitlines()
    offset: int = json.loads(lines[2])["logOffset"]
    return offset


def _seen(log: Path, numbers: range) -> Iterator[str]:
    for number in numbers:
        place = log / str(number)
        if not place.exists():
            place = log / f"{number}.compact"
        for line in place.read_text(encoding="utf-8").splitlines()[1:]:
            entry = json.loads(line)
            if entry["batchId"] == number:
                yield entry["path"]
