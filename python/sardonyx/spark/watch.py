"""Following subscriptions while a stream runs: what changed between two micro-batches takes effect with the next.

A directory of published generations follows itself: whoever publishes moves its pointer. A subscriptions file or
folder, or a saved index, is looked at before each batch and, when it changed, built anew and published into a
directory of the pipeline's own.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import asdict
from pathlib import Path

from sardonyx import _core
from sardonyx import subscriptions as subscription_files
from sardonyx.broker import Broker
from sardonyx.config import BrokerSettings, Limits
from sardonyx.errors import SardonyxError
from sardonyx.model import DeadLetter
from sardonyx.spark._files import read_json, write_json
from sardonyx.spark.population import Population, build_index
from sardonyx.spark.versions import Generation, current, is_published, publish_generation

__all__ = ["FollowedSubscriptions"]

Stamp = tuple[tuple[str, int, int, int], ...]


class FollowedSubscriptions:
    """Keeps `directory` holding, as its current generation, what `path` says."""

    def __init__(self, path: str | Path, own_directory: str | Path, limits: Limits) -> None:
        """Watch `path`; indexes built of it go to `own_directory`, unless it holds published generations itself."""
        self._path = Path(path)
        self._limits = limits
        self._stamp: Stamp | None = None
        self._population: Population | None = None
        self.owned = not is_published(self._path)
        """Whether `directory` is the pipeline's own, and so its to clean."""
        self.directory = Path(own_directory) if self.owned else self._path
        """Where the generations are, for `versions.pin`."""

    def refresh(self) -> tuple[Population, str | None]:
        """Take up a change, if there is one; returns what is current, and why a change could not be taken up.

        Subscriptions that can not be read as a whole (half written, deleted, unreachable) leave the former generation
        in force. Raises the error where there is none yet.
        """
        if not self.owned:
            return Population(current(self.directory)), None
        try:
            stamp = self._look()
            if self._population is None or stamp != self._stamp:
                self._population = self._build(self._digest())
                self._stamp = stamp
            return self._population, None
        except (SardonyxError, OSError) as error:
            if self._population is None:
                if not is_published(self.directory):
                    raise
                self._population = self._restore()
            return self._population, f"subscriptions unchanged, for {self._path} can not be read: {error}"

    def _files(self) -> list[Path]:
        if not self._path.is_dir():
            return [self._path]
        return sorted(file for file in self._path.rglob("*") if file.is_file())

    def _look(self) -> Stamp:
        found = []
        for file in self._files():
            status = file.stat()
            found.append((str(file), status.st_ino, status.st_size, status.st_mtime_ns))
        return tuple(found)

    def _digest(self) -> str:
        digest = hashlib.sha256(repr(self._limits).encode())
        for file in self._files():
            digest.update(os.fsencode(file.relative_to(self._path.parent)) + b"\0")
            with open(file, "rb") as content:
                digest.update(hashlib.file_digest(content, "sha256").digest())
        return digest.hexdigest()

    def _build(self, digest: str) -> Population:
        if is_published(self.directory) and current(self.directory).source_digest == digest:
            return self._restore()
        index: Broker | _core.Index
        refused: tuple[DeadLetter, ...] = ()
        if subscription_files.is_index(self._path):
            index = Broker.load(self._path, BrokerSettings(limits=self._limits))
        else:
            index, refused = build_index(self._path, self._limits)
        if self._digest() != digest:
            raise SardonyxError("it changed while it was read; it will be looked at again", kind="subscription_file")
        generation = publish_generation(index, self.directory, source_digest=digest)
        write_json(self._refused_file(generation.number), {"refused": [asdict(letter) for letter in refused]})
        return Population(generation, refused)

    def population(self, generation: Generation) -> Population:
        """A generation of `directory`, with what it had to refuse, published by this run or an earlier one."""
        found = read_json(self._refused_file(generation.number)) or {"refused": []}
        return Population(generation, tuple(DeadLetter(**letter) for letter in found["refused"]))

    def _restore(self) -> Population:
        return self.population(current(self.directory))

    def _refused_file(self, number: int) -> Path:
        return self.directory / f"refused-{number}.json"
