"""What a pipeline does, as frozen objects that are checked when they are made: from Python, plain data or YAML."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from sardonyx.config import JoinSettings, Limits, MatcherName
from sardonyx.errors import SettingsError
from sardonyx.spark.worker import OUTPUT_BYTES

__all__ = ["PipelineConfig", "SinkConfig", "SourceConfig", "Trigger"]

SourceKind = Literal["files", "records", "parquet", "jsonl"]
SinkKind = Literal["parquet", "jsonl", "console"]
Trigger = Literal["once", "available_now"] | float
"""When a stream runs: everything there as one batch, everything there in batches, or every so many seconds."""


@dataclass(frozen=True, slots=True)
class SourceConfig:
    """Where the documents are.

    >>> SourceConfig("files", "inbox", glob="*.xml").kind
    'files'
    """

    kind: SourceKind
    """`files`: one document a file; `records`: one document per record element of large files; `parquet`; `jsonl`."""
    path: str
    """A file, a folder (read with the folders below it) or a pattern; with a scheme any file system of Spark's."""
    record: str | None = None
    """Name of the record element, for `records`."""
    glob: str | None = None
    """Only files whose name fits, such as `*.xml`."""
    stream: str | None = None
    """The stream of documents that do not say themselves to which they belong."""
    max_files_per_trigger: int | None = None
    """Files of one micro-batch; None: all there are."""
    batch_bytes: int = 4 * 1024 * 1024
    """Bytes of records that a worker gathers before handing them on: what bounds its memory."""

    def __post_init__(self) -> None:
        """Refuse what can not work; raises `SettingsError`."""
        _choice("source.kind", self.kind, get_args(SourceKind))
        if (self.record is not None) != (self.kind == "records"):
            raise SettingsError("source.record names the record element: needed for kind 'records', for no other")
        for name in ("max_files_per_trigger", "batch_bytes"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise SettingsError(f"source.{name} is {value}; it must be at least 1")


@dataclass(frozen=True, slots=True)
class SinkConfig:
    """Where the results go."""

    kind: SinkKind
    """`parquet` and `jsonl` write a folder per batch; `console` prints."""
    path: str | None = None
    """The folder, on a local or mounted file system; none for `console`."""

    def __post_init__(self) -> None:
        """Refuse what can not work; raises `SettingsError`."""
        _choice("sink.kind", self.kind, get_args(SinkKind))
        if (self.path is None) != (self.kind == "console"):
            raise SettingsError(f"sink.path is {self.path!r}; parquet and jsonl need one, console takes none")
        _local_path("sink.path", self.path)


@dataclass(frozen=True, slots=True)
class PipelineConfig:
    """A whole pipeline: source, subscriptions, sink, and how to run them.

    >>> PipelineConfig.from_mapping({
    ...     "source": {"kind": "files", "path": "inbox"},
    ...     "subscriptions": "subscriptions.yaml",
    ...     "sink": {"kind": "console"},
    ... }).matcher
    'inverted'
    """

    source: SourceConfig
    """The documents."""
    subscriptions: str
    """A subscriptions file or folder, a saved index, or a directory of published generations. All are followed: what
    changes there takes effect with the next micro-batch."""
    sink: SinkConfig
    """The results."""
    checkpoint: str | None = None
    """Folder of the stream's progress, on a local or mounted file system. None: run once over what is there."""
    trigger: Trigger = "available_now"
    """For streams: `once`, `available_now`, or the seconds between micro-batches (0: as fast as possible)."""
    matcher: MatcherName = "inverted"
    """What answers which subscriptions a document satisfies."""
    limits: Limits = field(default_factory=Limits)
    """What a document and a query may cost."""
    joins: JoinSettings = field(default_factory=JoinSettings)
    """How joins keep time and state."""
    output_bytes: int = OUTPUT_BYTES
    """Bytes of results that a task gathers before handing them on; with `source.batch_bytes` what bounds its memory."""
    spark: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Settings of Spark for the session that `run_pipeline` starts, over those of `local_session`."""
    cores: int = 2
    """Tasks at once, in the session that `run_pipeline` starts."""
    retain_batches: int = 10
    """Batches whose pins and index files are kept for a replay."""
    snapshot_batches: int = 10
    """Batches after which the state of joins is written; after a crash joins hear at most so many again."""

    def __post_init__(self) -> None:
        """Refuse what can not work; raises `SettingsError`."""
        if isinstance(self.trigger, str):
            _choice("trigger", self.trigger, ("once", "available_now"))
        elif self.trigger < 0:
            raise SettingsError(f"trigger is {self.trigger}; seconds between micro-batches are 0 or more")
        _local_path("checkpoint", self.checkpoint)
        _choice("matcher", self.matcher, get_args(MatcherName))
        for name, least in (("output_bytes", 1), ("cores", 1), ("retain_batches", 2), ("snapshot_batches", 1)):
            if getattr(self, name) < least:
                raise SettingsError(f"{name} is {getattr(self, name)}; it must be at least {least}")

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any]) -> PipelineConfig:
        """A pipeline of plain data; raises `SettingsError` for unknown, missing or impossible settings."""
        parts: dict[str, Any] = dict(mapping)
        for name, part in (("source", SourceConfig), ("sink", SinkConfig), ("limits", Limits), ("joins", JoinSettings)):
            if isinstance(parts.get(name), Mapping):
                parts[name] = _build(part, parts[name], f"{name}.")
        if isinstance(parts.get("spark"), Mapping):
            parts["spark"] = {str(name): _spark_text(value) for name, value in parts["spark"].items()}
        built: PipelineConfig = _build(cls, parts, "")
        return built

    @classmethod
    def from_yaml(cls, path: str | Path) -> PipelineConfig:
        """A pipeline of a YAML file with the same names; paths in it are relative to the working directory."""
        import yaml

        with open(path, encoding="utf-8") as file:
            try:
                value = yaml.safe_load(file)
            except yaml.YAMLError as error:
                raise SettingsError(f"{path} is not YAML: {error}") from error
        if not isinstance(value, Mapping):
            raise SettingsError(f"{path} holds {type(value).__name__}; a pipeline is a mapping of settings")
        return cls.from_mapping(value)


def _choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise SettingsError(f"{name} is {value!r}; it must be one of {', '.join(choices)}")


def _local_path(name: str, path: str | None) -> None:
    """Folders that are renamed into place have to be on a file system, and their names must not read as patterns."""
    if path is not None and ("://" in path or any(sign in path for sign in "*?[]{}")):
        raise SettingsError(
            f"{name} is {path!r}; it must be a local or mounted folder, without any of *?[]{{}} in its name"
        )


def _build(cls: Any, values: Mapping[str, Any], prefix: str) -> Any:
    known = {item.name: item for item in dataclasses.fields(cls)}
    for name in values:
        if name not in known:
            raise SettingsError(f"unknown setting {prefix}{name}; known are {', '.join(known)}")
    for name, item in known.items():
        if name not in values and item.default is item.default_factory is dataclasses.MISSING:
            raise SettingsError(f"the setting {prefix}{name} is missing")
    try:
        return cls(**values)
    except TypeError as error:
        raise SettingsError(f"{prefix or 'pipeline '}has a setting of the wrong type: {error}") from error


def _spark_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
