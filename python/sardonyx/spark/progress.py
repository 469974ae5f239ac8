"""What a pipeline says of itself: counts of each batch, and their sum."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["BatchCounts", "JoinProgress", "Progress", "Summary"]


@dataclass(frozen=True, slots=True)
class BatchCounts:
    """What one batch held; documents = matched + unmatched + dead letters."""

    documents: int = 0
    """Documents read, whatever became of them."""
    matched_documents: int = 0
    """Documents that satisfied a subscription, or of which a transformation had a result."""
    dead_letters: int = 0
    """Documents that could not be processed."""
    notifications: int = 0
    """Pairs of document and satisfied subscription, and what joins made of several documents."""
    undecided_pairs: int = 0
    """Pairs of document and subscription beyond the cost limit, or of a transformation that failed: dead letters with
    both ids. Their documents are matched or unmatched by the other subscriptions."""
    unjoined_documents: int = 0
    """Documents that joins could not hear (late, without a timestamp, no room): dead letters beside the others, for
    filters and transformations have heard of them."""
    repetitions: int = 0
    """Documents whose stream, id and timestamp joins have heard before."""
    payload_bytes: int = 0
    """Size of the documents."""
    oldest_timestamp_us: int | None = None
    """The oldest document's timestamp, in microseconds since 1970 UTC."""

    @property
    def unmatched_documents(self) -> int:
        """Documents that were processed and satisfied no subscription."""
        return self.documents - self.matched_documents - self.dead_letters

    def __add__(self, other: BatchCounts) -> BatchCounts:
        """Both together."""
        stamps = [stamp for stamp in (self.oldest_timestamp_us, other.oldest_timestamp_us) if stamp is not None]
        return BatchCounts(
            self.documents + other.documents,
            self.matched_documents + other.matched_documents,
            self.dead_letters + other.dead_letters,
            self.notifications + other.notifications,
            self.undecided_pairs + other.undecided_pairs,
            self.unjoined_documents + other.unjoined_documents,
            self.repetitions + other.repetitions,
            self.payload_bytes + other.payload_bytes,
            min(stamps, default=None),
        )


@dataclass(frozen=True, slots=True)
class JoinProgress:
    """What joins keep after a batch."""

    watermark_us: int | None
    """Documents with a timestamp before it are late; microseconds since 1970 UTC, None before the first document."""
    state_documents: int
    """Documents that may still join."""
    state_units: int
    """What is kept of them: witnesses of blocks, and what chains have joined so far."""
    state_bytes: int
    """Memory that this takes."""


@dataclass(frozen=True, slots=True)
class Progress:
    """A batch whose results are in the sink."""

    batch_id: int
    """The batch; 0 where there is no stream."""
    generation: int
    """The generation of the index that all of its documents were matched against."""
    counts: BatchCounts
    """What it held."""
    total: BatchCounts
    """What this run has handled so far, this batch included."""
    duration_s: float
    """From the start of the batch until its results were on disk."""
    lag_s: float | None
    """Age of the batch's oldest document when its results were on disk; None where documents carry no timestamp."""
    joins: JoinProgress | None = None
    """What joins keep; None where no join has been registered."""
    warning: str | None = None
    """Why the subscriptions' change could not be followed (the former generation was used); None: all is well."""

    @property
    def documents_per_s(self) -> float:
        """Documents per second of this batch."""
        return self.counts.documents / self.duration_s if self.duration_s else 0.0

    @property
    def mb_per_s(self) -> float:
        """Megabytes (10^6 bytes) of documents per second of this batch."""
        return self.counts.payload_bytes / 1e6 / self.duration_s if self.duration_s else 0.0


@dataclass(frozen=True, slots=True)
class Summary:
    """What a run of a pipeline did. A batch that was replayed after a crash counts in the run that replayed it."""

    counts: BatchCounts
    """All batches of the run together."""
    batches: int
    """Batches whose results reached the sink."""
    refused_subscriptions: int
    """Subscriptions that could not be registered."""
    generations: tuple[int, ...]
    """The generations used, in order."""
    duration_s: float
    """From the first look at the source until the end."""
    interrupted: bool = False
    """Whether Ctrl-C or a termination signal ended it; a stream goes on from there when it is run again."""

    @property
    def documents(self) -> int:
        """Documents read: matched + unmatched + dead letters."""
        return self.counts.documents

    @property
    def matched_documents(self) -> int:
        """Documents that satisfied a subscription, or of which a transformation had a result."""
        return self.counts.matched_documents

    @property
    def unmatched_documents(self) -> int:
        """Documents that were processed and satisfied no subscription."""
        return self.counts.unmatched_documents

    @property
    def dead_letters(self) -> int:
        """Documents that could not be processed."""
        return self.counts.dead_letters

    @property
    def notifications(self) -> int:
        """Pairs of document and satisfied subscription, and what joins made of several documents."""
        return self.counts.notifications

    @property
    def unjoined_documents(self) -> int:
        """Documents that joins could not hear."""
        return self.counts.unjoined_documents
