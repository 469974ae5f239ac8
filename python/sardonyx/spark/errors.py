"""Errors of pipelines: branches of the tree in `sardonyx.errors` that only Spark users can meet.

SardonyxError
├── GenerationError     a directory of published indexes is empty, damaged, or lacks what a batch was pinned to
├── SinkError           a sink is in use by another pipeline, or holds another pipeline's batches
├── JoinStateError      what joins keep of a stream is incomplete, or of another time than its checkpoint
└── PipelineError       a running pipeline failed; its cause is chained
"""

from __future__ import annotations

from sardonyx.errors import SardonyxError

__all__ = ["GenerationError", "JoinStateError", "PipelineError", "SinkError", "SourceError"]


class GenerationError(SardonyxError):
    """A directory of published indexes is empty, damaged, or lacks the generation that a batch was pinned to."""

    kinds = ("generation",)


class SinkError(SardonyxError):
    """A sink is in use by another pipeline, or holds the batches of another one."""

    kinds = ("sink",)


class PipelineError(SardonyxError):
    """A running pipeline failed; the cause is chained."""

    kinds = ("pipeline",)


class SourceError(SardonyxError):
    """A document that its source could not read, or that has no id: never raised, its kinds name dead letters."""

    kinds = ("source", "source_format", "missing_document_id")


class JoinStateError(SardonyxError):
    """What joins keep beside a stream's checkpoint is incomplete, or of another time than the checkpoint."""

    kinds = ("join_state",)
