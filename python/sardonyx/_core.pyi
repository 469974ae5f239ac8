"""The compiled core: documents, the subscription index and its matchers.

Private: use `sardonyx.Broker`, `sardonyx.Document` and friends. Errors are raised as the classes of
`sardonyx.errors`. All methods release the GIL while they work and may be called from several threads.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypedDict, final, type_check_only

__all__ = ["Document", "Index", "JoinState", "Splitter", "__version__", "check", "evaluate_xquery", "notification_ids"]

__version__: str

Matcher: TypeAlias = Literal["inverted", "xpush", "naive"]
Strategy: TypeAlias = Literal["naive", "F", "FW", "FWR", "shared"]

@type_check_only
class ErrorFields(TypedDict):
    """What every error of the core says; the keyword arguments of the classes in `sardonyx.errors`."""

    kind: str
    message: str
    line: int | None
    column: int | None
    offset: int | None

@type_check_only
class MatchedNode(TypedDict):
    """A node that a filter selected: XPath location, line of its start (from 1), string-value."""

    path: str
    line: int
    value: str

@type_check_only
class Group(TypedDict):
    """A signature: subscriptions that differ in constants only.

    `rows` (distinct lists of constants), `subscriptions` (removed ones included), `constants` of a row; `query` and
    `access` (the access predicates; empty if every document is checked) show the constants of the first row.
    """

    rows: int
    subscriptions: int
    constants: int
    query: str
    access: list[str]

@final
class Document:
    """A parsed document, read-only."""

    @staticmethod
    def parse(payload: bytes | str, limits: Mapping[str, int | str] | None = None) -> Document:
        """Parse; raises `NotWellFormedError`, `EncodingError` or `LimitError`."""
    @property
    def node_count(self) -> int: ...
    @property
    def memory_bytes(self) -> int: ...
    def canonical(self) -> bytes:
        """The first canonical form of the W3C test suite (sorted attributes, no DOCTYPE, escaped text)."""
    def serialize(self) -> str:
        """XML text of the document, for showing it."""
    def evaluate(
        self,
        expression: str,
        namespaces: Mapping[str, str] | None = None,
        ignore_namespaces: bool = False,
        cost_limit: int | None = None,
        context: str | None = None,
    ) -> bool | float | str | list[MatchedNode]:
        """The value of an XPath 1.0 expression at the document node, or at the first node that `context` selects."""

@final
class Index:
    """A population of subscriptions; immutable generations behind a mutable handle."""

    def __new__(
        cls,
        limits: Mapping[str, int | str] | None = None,
        cost_limit: int | None = None,
        xpush: Mapping[str, Any] | None = None,
        strategy: Strategy = "shared",
        elements: Mapping[str, Sequence[str]] | None = None,
    ) -> Index:
        """An empty index; `xpush` holds options of that matcher, named as in `sardonyx.config.XPushSettings`.

        `strategy` is what the plans of transformations share, `elements` a DTD's elements with those that each may
        contain; both change costs, never answers.
        """
    @property
    def generation(self) -> int: ...
    def __len__(self) -> int:
        """Number of live subscriptions."""
    def __contains__(self, key: str, /) -> bool: ...
    def register(self, table: Any) -> list[tuple[int, str | None, ErrorFields]]:
        """Register a batch as one generation; an id already there is replaced.

        `table`: anything with `__arrow_c_stream__` or `__arrow_c_array__` (record batch): columns `subscription_id` (or
        `id`), `query` (strings), optional `namespaces` (string: JSON object prefix -> URI), `ignore_namespaces` (bool),
        `stream` (string; null: every stream), `language` (string; null: `xpath`, a filter; `xquery`: a transformation;
        `xscl`: a join), `notify_empty` (bool; for transformations). Returns the refused rows as (row, subscription_id,
        error fields), among them those without id or query; the others are registered. Of several rows with one id the
        last wins, in whichever language.
        """
    def register_one(
        self,
        subscription_id: str,
        query: str,
        namespaces: str | None = None,
        ignore_namespaces: bool = False,
        stream: str | None = None,
        language: str | None = None,
        notify_empty: bool = False,
    ) -> ErrorFields | None:
        """Register one subscription, its fields as in the columns of `register`; the error fields if it is refused."""
    def unregister(self, subscription_ids: Sequence[str]) -> list[str]:
        """Remove subscriptions as one generation; returns the ids that were not there."""
    def get(self, subscription_id: str) -> dict[str, Any] | None:
        """The subscription's `query` (a filter's as canonical text, others as given), `stream` and `language`."""
    def ids(self) -> Any:
        """Arrow array (capsule interface) of the live subscription ids."""
    def compact(self) -> None:
        """Merge all segments and drop tombstones; matching, registering and unregistering go on meanwhile.

        It is not needed: what is due is merged in the background. The population and its generation stay the same.
        """
    def match(self, payload: bytes | str, stream: str | None = None, matcher: Matcher = "inverted") -> list[str]:
        """Ids of the satisfied subscriptions, sorted; of transformations those that have a result."""
    def transform(self, payload: bytes | str, stream: str | None = None) -> list[tuple[str, str]]:
        """The results of the transformations that have one: subscription id and XML text, sorted by id."""
    def match_nodes(
        self, payload: bytes | str, stream: str | None = None, matcher: Matcher = "inverted", node_limit: int = 1000
    ) -> list[tuple[str, list[MatchedNode]]]:
        """As `match`, with the nodes that each selected; none for transformations and values that are no node-sets."""
    def match_batch(
        self, payloads: Any, streams: Any | None = None, threads: int = 1, matcher: Matcher = "inverted"
    ) -> tuple[Any, Any]:
        """Match an Arrow array of binary or string documents.

        Returns two Arrow record batches (capsule interface). Matches: `document` (uint32, row), `subscription_id`
        (dictionary<uint32, string>), ordered by row; with any transformation registered also `result`
        (dictionary<uint32, large_string>, null for filters). Errors: `document`, `subscription_id` (null unless one
        subscription could not be evaluated), `kind`, `message`, `line`, `column`, `offset` (uint64, nullable). A null
        payload is an error of kind `missing_payload`.
        """
    def explain(self, subscription_id: str, payload: bytes | str, stream: str | None = None) -> dict[str, Any]:
        """Why a document does or does not satisfy a subscription.

        Keys: `matched` (bool), `query` (str), `access` (list of str: the access predicates that lead to it),
        `candidate` (bool: whether one of them held), `stream_matched` (bool), `clauses`: list of dicts with `clause`
        (text), `held` (bool), `depth` (nesting), `nodes` (list of MatchedNode, at most 5), `reason` (str).
        """
    def explain_join(
        self, subscription_id: str, documents: Sequence[tuple[bytes | str, str | None, str, int]]
    ) -> dict[str, Any]:
        """Why documents do or do not satisfy a join: payload, stream, id and timestamp (microseconds) for each block.

        Keys: `query` (str), `joined` (bool; None without documents), `lines` (list of dicts with `text`, `held`,
        `depth`, `reason`).
        """
    def join_queries(self) -> list[dict[str, Any]]:
        """The distinct joins of two blocks, as `sardonyx.joins.reference.JoinQuery`, each with its `subscriptions`."""
    @property
    def joins(self) -> int:
        """How many joins are registered."""
    def explain_transformation(
        self, subscription_id: str, payload: bytes | str | None = None, stream: str | None = None
    ) -> dict[str, Any]:
        """The plan of a transformation, and what it gives of a document.

        Keys: `query` and `strategy` (str), `triggers` (list of str: of these one has to happen before the plan is
        looked at), `plan` (list of dicts with `operator`, `detail`, `depth`, `shared_with` (other plans that use the
        same), `why`), `matched` (bool), `result` and `error` (str or None).
        """
    def transformation_groups(
        self, payload: bytes | str, stream: str | None = None
    ) -> list[tuple[str, list[list[list[str]]]]]:
        """The results of a document as groups of lists, before any XML is constructed, sorted by subscription.

        A group belongs to one binding of the outermost FLWR expression; its lists hold the XML text of the nodes (the
        value of attributes) of each path that is returned, in the order of the query.
        """
    def profile_transformations(
        self, documents: Sequence[Document], form: Literal["groups", "text"] = "groups", passes: int = 1
    ) -> dict[str, float]:
        """What transforming parsed documents takes on one thread, for benchmarks.

        Keys: `seconds` of all passes, of it `path_seconds` for finding the nodes of paths; of one pass `candidates`
        (plans looked at), `results` (plans with a result), `groups`, `text_bytes`, `failures`.
        """
    @property
    def content_hash(self) -> str | None:
        """What `save` returned for the file that this index was loaded from; None for one that was not loaded.

        Read from the head of the file, also by `load(verify=False)`: a worker compares it with the hash it was sent.
        """
    def save(self, path: str) -> str:
        """Write the current generation to one file (atomically); returns its content hash (hex)."""
    @staticmethod
    def load(
        path: str,
        verify: bool = True,
        cost_limit: int | None = None,
        limits: Mapping[str, int | str] | None = None,
        xpush: Mapping[str, Any] | None = None,
        strategy: Strategy = "shared",
        elements: Mapping[str, Sequence[str]] | None = None,
    ) -> Index:
        """Open a saved index by memory map; raises `IndexFormatError` if it is foreign, truncated or damaged."""
    def stats(self) -> dict[str, int]:
        """Counters and sizes, summed over segments; docs/index-at-scale.md describes each.

        What is held: `generation`, `subscriptions`, `rows`, `signatures`, `paths`, `postings`, `always_candidates`,
        `segments`, `tombstones`. Bytes: `index_bytes` = `mapped_bytes` (files) + `heap_bytes`, which is also the sum of
        the `part_..._bytes`, one for each section of the images and `part_layout_bytes` for headers and padding;
        `tombstone_bytes`, `cache_bytes`. Matching so far: `documents`, `path_states`, `path_cache_clears`,
        `candidate_rows`, `guarded_runs`, `decided_rows`, `columnar_rows`, `verified_rows`.
        Of transformations: `transformations`, `plans`, `plan_streams`, `plan_conditions`, `plan_paths`.
        Of the matcher `xpush`: `xpush_states`, `xpush_lookups`, `xpush_hits`, ...; docs/xpush.md describes each.
        """
    def groups(self, limit: int) -> list[Group]:
        """The `limit` signatures with the most rows, largest first; one of several segments comes once for each."""

@final
class JoinState:
    """The state of joins: what was published and may still join.

    Where documents are given, `payloads` is an Arrow array of binary or string documents, `ids` of strings,
    `timestamps_us` of int64 (null: as the stream declares), `streams` of strings or null; `texts` are documents given
    as text whose payload is null.
    """

    def __new__(
        cls,
        *,
        lateness_us: int,
        state_bytes: int,
        memory_bytes: int,
        results: bool,
        cost_limit: int,
        timestamps: Mapping[str, str] | None = None,
        namespaces: Mapping[str, str] | None = None,
    ) -> JoinState:
        """An empty state; `sardonyx.config.JoinSettings` describes the settings."""
    def publish(
        self,
        index: Index,
        payloads: Any,
        ids: Any,
        timestamps_us: Any,
        streams: Any | None = None,
        texts: Any | None = None,
        together: bool = False,
        threads: int = 1,
    ) -> dict[str, Any]:
        """Join documents, each as a batch of its own or all together.

        Keys: record batches `notifications` (`document`, `subscription_id`, `notification_id`, `document_ids`, `nodes`,
        `timestamp_us`, `result`), `derived` (`document`, `stream`, `document_id`, `timestamp_us`, `payload`) and
        `errors` (as `Index.match_batch`), and the number of `repetitions`.
        """
    def count(
        self,
        index: Index,
        payloads: Any,
        ids: Any,
        timestamps_us: Any,
        streams: Any | None = None,
        texts: Any | None = None,
        together: bool = False,
        threads: int = 1,
    ) -> dict[str, Any]:
        """As `publish`, but results are only counted, once for each different query.

        Keys: `pairs`, `notifications`, `repetitions` (int), `errors`.
        """
    def witnesses(
        self,
        index: Index,
        payloads: Any,
        ids: Any,
        timestamps_us: Any,
        streams: Any | None = None,
        texts: Any | None = None,
        threads: int = 1,
    ) -> dict[str, Any]:
        """Stage 1 alone; nothing is kept. Keys: `witnesses`, which `hear` takes, and `errors`."""
    def witness_tables(
        self, index: Index, payloads: Any, ids: Any, timestamps_us: Any, streams: Any | None = None
    ) -> dict[str, Any]:
        """Stage 1 as the tables of the literature: `bindings` (document, definition, parent, node; parent -1: a root)
        and `values` (document, node, operand, value).
        """
    def hear(self, index: Index, table: Any, together: bool = True) -> dict[str, Any]:
        """Stage 2 alone: `publish` of what `witnesses` gave with the same index."""
    def save(self, index: Index) -> bytes:
        """The state as bytes, and what it means."""
    def restore(self, index: Index, saved: bytes) -> None:
        """Go on where a saved state was; raises `IndexFormatError`."""
    def stats(self) -> dict[str, int]:
        """Counters and sizes, all named `join_...`; docs/joins.md describes each."""
    @property
    def watermark_us(self) -> int | None:
        """The watermark; None before the first document."""

def check(
    query: str,
    namespaces: Mapping[str, str] | None = None,
    ignore_namespaces: bool = False,
    limits: Mapping[str, int | str] | None = None,
) -> str:
    """Parse a filter; returns its canonical text, raises `SubscriptionError`."""

def evaluate_xquery(
    query: str,
    payload: bytes | str,
    namespaces: Mapping[str, str] | None = None,
    limits: Mapping[str, int | str] | None = None,
    cost_limit: int | None = None,
) -> str:
    """The result of one query on one document as XML text, by the exact evaluator: the oracle of all strategies."""

def notification_ids(document_ids: Any, subscription_ids: Any) -> Any:
    """The `notification_id` of each pair, as an Arrow string array.

    Two Arrow string arrays of equal length, without nulls. The ids are `sardonyx.model.notification_id` with position
    0: BLAKE2b-128 in lower-case hexadecimal over length, UTF-8 of the document id, length, UTF-8 of the subscription id
    and the position; lengths in bytes and position as 8 bytes, little endian.
    """

@final
class Splitter:
    """Splits a large XML file into record documents, in flat memory.

    `record` names the elements: a qualified name as written, or a local name whatever the prefix. A batch holds about
    `batch_bytes` bytes of documents. Raises when the structure around the records is broken, after the records before.
    """

    def __new__(
        cls, path: str, record: str, batch_bytes: int = 4194304, limits: Mapping[str, int | str] | None = None
    ) -> Splitter: ...
    def __iter__(self) -> Splitter: ...
    def __next__(self) -> Any:
        """The next Arrow record batch.

        Columns: `record` (uint64, number from 0), `offset` (uint64, bytes), `payload` (binary; null for a record that
        could not be cut out), `kind` and `message` (string; why not).
        """
