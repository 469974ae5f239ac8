"""Durable file operations on a local or mounted file system: whole or not at all, also after a power cut."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sardonyx.durable import fsync_path, write_bytes

__all__ = ["file_lock", "fsync_path", "fsync_tree", "read_json", "write_json"]


def fsync_tree(root: Path) -> None:
    """Force a directory with all that is in it to the disk."""
    for folder, _, names in os.walk(root):
        for name in names:
            fsync_path(Path(folder, name))
        fsync_path(Path(folder))


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Replace a small JSON file: written aside, forced to the disk, renamed."""
    write_bytes(path, json.dumps(value, ensure_ascii=True, sort_keys=True).encode())


def read_json(path: Path) -> dict[str, Any] | None:
    """The content of a JSON file; None where there is none."""
    try:
        value: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return value


@contextlib.contextmanager
def file_lock(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold an exclusive lock, which dies with the process; raises `BlockingIOError` if taken and not `wait`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield
    finally:
        os.close(descriptor)
