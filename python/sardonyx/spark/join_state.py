"""The state of joins on the driver, and what it takes to have it again after any crash.

Layout, below a stream's checkpoint:

    sardonyx-joins/state-N.bin        the state before batch N
    sardonyx-joins/batch-N.arrow      what the documents of batch N have to join with, with the generation and settings

A batch is written whole before it is heard, and a state only when the batches before it are done. So the state before
any batch that can still be replayed is the newest one on disk not after it, and the batches between; a replayed batch
is heard again as it was written, with the generation and settings of that time. Two states are kept, because a
power cut may take back the last commits of Spark, which it does not force to the disk.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from sardonyx import _core
from sardonyx.config import JoinSettings, Limits
from sardonyx.durable import write_bytes
from sardonyx.spark.errors import GenerationError, JoinStateError
from sardonyx.spark.progress import JoinProgress
from sardonyx.spark.versions import Generation, pinned

__all__ = ["DurableJoins", "JoinEngine", "witness_table"]

FOLDER = "sardonyx-joins"
KEPT_STATES = 2

_WITNESSES = pa.schema(
    [
        ("document", pa.uint32()),
        ("document_id", pa.string()),
        ("stream", pa.string()),
        ("timestamp_us", pa.int64()),
        ("witnesses", pa.large_binary()),
    ]
)
_METADATA = b"sardonyx"


def witness_table(rows: pa.Table) -> pa.Table:
    """Rows of outcome `WITNESSES` as the core takes them, numbered as they come."""
    columns: dict[str, Any] = {name: rows.column(name) for name in _WITNESSES.names[1:]}
    return pa.table({"document": pa.array(range(rows.num_rows), pa.uint32()), **columns}).cast(_WITNESSES)


class JoinEngine:
    """An index, and the state of its joins."""

    def __init__(self, generation: Generation, settings: JoinSettings, limits: Limits, saved: bytes | None = None):
        """An empty state, or one that `save` gave, of this generation or another.

        Raises `IndexFormatError` and `GenerationError`.
        """
        self.generation = generation
        self.settings = settings
        self._limits = limits
        self._index = _core.Index.load(
            generation.path, verify=False, cost_limit=limits.cost_limit, limits=limits.for_core()
        )
        if self._index.content_hash != generation.content_hash:
            raise GenerationError(f"{generation.path} holds another index than generation {generation.number} was")
        self._state = _core.JoinState(cost_limit=limits.cost_limit, **settings.for_core())
        if saved is not None:
            self._state.restore(self._index, saved)

    def hear(self, witnesses: pa.Table) -> dict[str, Any]:
        """What documents join with, all of them as one batch; see `_core.JoinState.hear`."""
        said: dict[str, Any] = self._state.hear(self._index, witnesses, together=True)
        return said

    def save(self) -> bytes:
        """The state, for another engine."""
        saved: bytes = self._state.save(self._index)
        return saved

    def moved(self, generation: Generation, settings: JoinSettings) -> JoinEngine:
        """The same state with another generation or other settings; this engine if they are the same."""
        if (generation.content_hash, settings) == (self.generation.content_hash, self.settings):
            return self
        return JoinEngine(generation, settings, self._limits, self.save())

    @property
    def progress(self) -> JoinProgress:
        """The watermark, and what is kept."""
        stats = self._state.stats()
        return JoinProgress(
            self._state.watermark_us,
            stats["join_state_documents"],
            stats["join_state_units"],
            stats["join_state_bytes"],
        )


@dataclass(frozen=True, slots=True)
class _Written:
    """A batch as it is on disk."""

    content_hash: str
    settings: JoinSettings
    witnesses: pa.Table


class DurableJoins:
    """The joins of one stream: hears its batches, each as often as Spark likes, and each time says the same."""

    def __init__(
        self,
        directory: str | Path,
        checkpoint: str | Path,
        settings: JoinSettings,
        limits: Limits,
        snapshot_batches: int,
    ) -> None:
        """`directory` is where the generations are that batches are pinned to, `checkpoint` the stream's.

        A state is written about every `snapshot_batches` batches.
        """
        self._directory = Path(directory)
        self._checkpoint = Path(checkpoint)
        self._folder = self._checkpoint / FOLDER
        self._settings = settings
        self._limits = limits
        self._snapshot_batches = snapshot_batches
        self._engine: JoinEngine | None = None
        self._next: int | None = None
        """The batch that `_engine` is ready for."""
        for half in self._folder.glob(".*"):
            half.unlink()

    @property
    def started(self) -> bool:
        """Whether joins have heard anything in this stream yet."""
        return bool(self._numbers("state", "bin"))

    @property
    def oldest_batch(self) -> int | None:
        """The first batch whose generation may still be needed; None if joins have heard nothing."""
        return min(self._numbers("state", "bin"), default=None)

    def hear(
        self, batch_id: int, generation: Generation, collect: Callable[[], pa.Table]
    ) -> tuple[JoinEngine, pa.Table, dict[str, Any]]:
        """Let joins hear a batch, which is pinned to a generation; gives the engine, the witnesses and what it said.

        `collect` gives the batch's rows of outcome `WITNESSES`. Where the batch has been heard before, what was
        written then is heard again, provided that it is of the same documents.
        """
        engine = self._before(batch_id, generation)
        self._engine = None
        written = self._written(batch_id, generation, witness_table(collect()))
        engine = engine.moved(generation, written.settings)
        said = engine.hear(written.witnesses)
        self._engine, self._next = engine, batch_id + 1
        return engine, written.witnesses, said

    def _before(self, batch_id: int, generation: Generation) -> JoinEngine:
        """The state before a batch; what is no longer needed is dropped, and what will be is written."""
        states = self._numbers("state", "bin")
        if self._engine is not None and self._next == batch_id:
            if batch_id - max(states, default=0) >= self._snapshot_batches:
                self._write_state(batch_id, self._engine)
            return self._engine
        if not states:
            engine = JoinEngine(generation, self._settings, self._limits)
            self._write_state(batch_id, engine)
            return engine
        return self._rebuilt(batch_id, generation)

    def _rebuilt(self, batch_id: int, generation: Generation) -> JoinEngine:
        start = max((number for number in self._numbers("state", "bin") if number <= batch_id), default=None)
        if start is None:
            raise JoinStateError(
                f"{self._folder} has no state of joins before batch {batch_id}; it belongs to a later time than "
                "Spark's own files in the checkpoint"
            )
        for number in self._numbers("state", "bin"):
            if number > batch_id:
                # Spark has gone back; what comes now need not be what came then.
                self._place("state", number, "bin").unlink()
        saved = self._place("state", start, "bin").read_bytes()
        engine: JoinEngine | None = None
        for number in range(start, batch_id):
            written = self._read(number)
            used = pinned(self._directory, self._checkpoint, number)
            if written is None or used is None or used.content_hash != written.content_hash:
                raise JoinStateError(
                    f"the state of joins before batch {batch_id} can not be had again: batch {number} is missing in "
                    f"{self._folder}, or its generation of the index is gone"
                )
            engine = (
                JoinEngine(used, written.settings, self._limits, saved)
                if engine is None
                else engine.moved(used, written.settings)
            )
            engine.hear(written.witnesses)
        return JoinEngine(generation, self._settings, self._limits, saved) if engine is None else engine

    def _write_state(self, batch_id: int, engine: JoinEngine) -> None:
        write_bytes(self._place("state", batch_id, "bin"), engine.save())
        kept = sorted(self._numbers("state", "bin"))[-KEPT_STATES:]
        # States go last: a batch without a state before it is of no use, a state without batches is.
        for name, suffix in (("batch", "arrow"), ("state", "bin")):
            for number in self._numbers(name, suffix):
                if number < kept[0]:
                    self._place(name, number, suffix).unlink()

    def _written(self, batch_id: int, generation: Generation, witnesses: pa.Table) -> _Written:
        """The batch as it was written before, or as it is written now."""
        former = self._read(batch_id)
        if (
            former is not None
            and former.content_hash == generation.content_hash
            and _documents(former.witnesses) == _documents(witnesses)
        ):
            return former
        written = _Written(generation.content_hash, self._settings, witnesses)
        about = {"content_hash": generation.content_hash, "settings": self._settings.for_core()}
        schema = _WITNESSES.with_metadata({_METADATA: json.dumps(about).encode()})
        out = pa.BufferOutputStream()
        with pa.ipc.new_file(out, schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as file:
            file.write_table(witnesses.cast(schema))
        write_bytes(self._place("batch", batch_id, "arrow"), out.getvalue().to_pybytes())
        return written

    def _read(self, batch_id: int) -> _Written | None:
        place = self._place("batch", batch_id, "arrow")
        if not place.exists():
            return None
        with pa.memory_map(str(place)) as source:
            table = pa.ipc.open_file(source).read_all()
        about = json.loads(table.schema.metadata[_METADATA])
        return _Written(about["content_hash"], JoinSettings(**about["settings"]), table)

    def _place(self, name: str, number: int, suffix: str) -> Path:
        return self._folder / f"{name}-{number}.{suffix}"

    def _numbers(self, name: str, suffix: str) -> list[int]:
        return [int(place.stem.rpartition("-")[2]) for place in self._folder.glob(f"{name}-*.{suffix}")]


def _documents(witnesses: pa.Table) -> Counter[tuple[str | None, str]]:
    return Counter(zip(witnesses["stream"].to_pylist(), witnesses["document_id"].to_pylist(), strict=True))
