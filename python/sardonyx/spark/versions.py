"""Published generations of an index, and which of them each micro-batch uses.

A directory holds immutable files `index-<generation>-<hash>.sdx` and a pointer `current`, replaced atomically. A stream
*pins* a generation for each batch, durably and before the batch runs; a batch that is replayed after a crash finds its
pin and gives the same answers, whatever has been published meanwhile. Publishing, pinning and cleaning take turns under
one lock of the directory, so that no file vanishes between its choice and its pin.
"""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sardonyx import _core
from sardonyx.broker import Broker
from sardonyx.spark._files import file_lock, fsync_path, read_json, write_json
from sardonyx.spark.errors import GenerationError
from sardonyx.spark.worker import IndexReference

__all__ = ["Generation", "clean", "current", "is_published", "pin", "pinned", "publish_generation", "unpin"]

POINTER = "current"
PINS = "sardonyx-pins"
USERS = "users"


@dataclass(frozen=True, slots=True)
class Generation:
    """One published index."""

    number: int
    """Counts up by publication within its directory; never below the generation of the index itself."""
    content_hash: str
    """What `Index.save` said of the file."""
    path: str
    """The file, absolute."""
    subscriptions: int
    """Live subscriptions in it."""
    source_digest: str | None = None
    """Digest of the subscriptions file that it was built from, where it was built from one."""
    joins: int = 0
    """How many of its subscriptions are joins."""

    def reference(self) -> IndexReference:
        """What the workers need to know of it."""
        return IndexReference(self.path, self.content_hash, self.number)

    def _to_json(self) -> dict[str, Any]:
        return {
            "generation": self.number,
            "content_hash": self.content_hash,
            "file": Path(self.path).name,
            "subscriptions": self.subscriptions,
            "source_digest": self.source_digest,
            "joins": self.joins,
        }

    @classmethod
    def _from_json(cls, value: dict[str, Any], directory: Path) -> Generation:
        return cls(
            value["generation"],
            value["content_hash"],
            str(directory / value["file"]),
            value["subscriptions"],
            value["source_digest"],
            value.get("joins", 0),
        )


def publish_generation(
    index: Broker | _core.Index, directory: str | Path, *, source_digest: str | None = None
) -> Generation:
    """Save an index into the directory and make it the current generation.

    The pointer moves only when the file is whole and on the disk, so that a reader sees the former generation or this
    one. An index with the content of the current generation keeps that generation's number and file.
    """
    root = Path(directory).resolve()
    root.mkdir(parents=True, exist_ok=True)
    aside = root / f".new-{uuid.uuid4().hex}.sdx"
    try:
        content_hash = index.save(str(aside))
        fsync_path(aside)
        with _turn(root):
            last = _read_current(root)
            if last is not None and last.content_hash == content_hash:
                generation = replace(last, source_digest=source_digest)
            else:
                number = max(index.generation, 1 if last is None else last.number + 1)
                final = root / f"index-{number}-{content_hash[:16]}.sdx"
                aside.replace(final)
                fsync_path(root)
                generation = Generation(
                    number, content_hash, str(final), len(index), source_digest, index.stats()["joins"]
                )
            write_json(root / POINTER, generation._to_json())
            return generation
    finally:
        aside.unlink(missing_ok=True)


def is_published(directory: str | Path) -> bool:
    """Whether a directory holds published generations."""
    return (Path(directory) / POINTER).is_file()


def current(directory: str | Path) -> Generation:
    """The generation that the pointer names; raises `GenerationError` where nothing has been published."""
    generation = _read_current(Path(directory).resolve())
    if generation is None:
        raise GenerationError(f"{directory} holds no published index; publish_generation(index, directory) makes one")
    return generation


def pin(directory: str | Path, checkpoint: str | Path, batch_id: int) -> Generation:
    """The generation of a batch: what it was pinned to before, else the current one, pinned durably now.

    Raises `GenerationError` where nothing has been published, or the pinned file is gone.
    """
    root, home = Path(directory).resolve(), Path(checkpoint).resolve()
    place = home / PINS / f"{batch_id}.json"
    with _turn(root):
        value = read_json(place)
        if value is None:
            _register_user(root, home)
            chosen = current(root)
            write_json(place, chosen._to_json())
        else:
            chosen = Generation._from_json(value, root)
    if not Path(chosen.path).exists():
        raise GenerationError(
            f"batch {batch_id} is pinned to {chosen.path}, which is gone: it would be replayed with other answers; "
            f"restore the file, or delete {place} to accept the current generation"
        )
    return chosen


def pinned(directory: str | Path, checkpoint: str | Path, batch_id: int) -> Generation | None:
    """What a batch was pinned to; None if it was not, or no longer is."""
    value = read_json(Path(checkpoint).resolve() / PINS / f"{batch_id}.json")
    return None if value is None else Generation._from_json(value, Path(directory).resolve())


def unpin(checkpoint: str | Path, before_batch: int) -> None:
    """Forget the pins of the batches before the given one, which can not be replayed any more."""
    for batch_id, place in _pins(Path(checkpoint).resolve()):
        if batch_id < before_batch:
            place.unlink(missing_ok=True)


def clean(directory: str | Path, keep: int = 2) -> list[str]:
    """Delete index files that are neither among the newest `keep` nor current nor pinned; returns their names.

    Pins are found through every checkpoint that ever pinned a generation of this directory and still exists.
    """
    root = Path(directory).resolve()
    with _turn(root):
        wanted = {Path(current(root).path).name} | _pinned_files(root)
        files = sorted(root.glob("index-*-*.sdx"), key=lambda file: int(file.name.split("-")[1]))
        wanted.update(file.name for file in files[max(0, len(files) - keep) :])
        doomed = [file for file in files if file.name not in wanted]
        for file in doomed:
            file.unlink()
            (root / f"refused-{file.name.split('-')[1]}.json").unlink(missing_ok=True)
        return [file.name for file in doomed]


def _turn(root: Path) -> Any:
    return file_lock(root / ".lock")


def _read_current(root: Path) -> Generation | None:
    value = read_json(root / POINTER)
    return None if value is None else Generation._from_json(value, root)


def _register_user(root: Path, checkpoint: Path) -> None:
    name = hashlib.sha256(str(checkpoint).encode("utf-8", "surrogatepass")).hexdigest()[:16]
    place = root / USERS / f"{name}.json"
    if not place.exists():
        write_json(place, {"checkpoint": str(checkpoint)})


def _pins(checkpoint: Path) -> list[tuple[int, Path]]:
    return [(int(place.stem), place) for place in (checkpoint / PINS).glob("*.json") if place.stem.isdigit()]


def _pinned_files(root: Path) -> set[str]:
    names: set[str] = set()
    for user in (root / USERS).glob("*.json"):
        found = read_json(user)
        if found is None:
            continue
        checkpoint = Path(found["checkpoint"])
        if not checkpoint.exists():
            user.unlink(missing_ok=True)
            continue
        for _, place in _pins(checkpoint):
            value = read_json(place)
            if value is not None:
                names.add(value["file"])
    return names
