"""`sardonyx match`: documents against subscriptions, in process."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import get_args

import click
from rich.table import Table
from rich.text import Text

from sardonyx.broker import Broker
from sardonyx.cli import codes, common
from sardonyx.cli.joined import Joiner
from sardonyx.config import BrokerSettings, MatcherName
from sardonyx.errors import DocumentError, EvaluationError
from sardonyx.explanation import printable
from sardonyx.model import DeadLetter, Document, Notification
from sardonyx.reports import MatchResult

_BATCH_DOCUMENTS = 256
_BATCH_BYTES = 32 * 1024 * 1024
_SHOWN_IDS = 20
_SHOWN_CHARACTERS = 500


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one document."""

    name: str
    """The document, as given."""
    found: list[str]
    """The subscriptions that it satisfies."""
    texts: dict[str, str]
    """The results of those among them that are transformations."""
    selections: list[MatchResult]
    """The subscriptions with the nodes that they selected, where these were asked for."""
    letters: list[DeadLetter]
    """Why it, or a subscription on it, could not be processed."""
    joined: list[Notification] = field(default_factory=list)
    """The notifications of joins that were complete with it or soon after."""


@click.command()
@common.subscription_options
@click.option("--stream", metavar="NAME", help="The stream that the documents belong to.")
@click.option(
    "--timestamp",
    metavar="XPATH",
    help="Where documents say when they happened, for joins: ISO 8601, RFC "
    "2822, or seconds since 1970.  [default: each happens just after the one named before it]",
)
@click.option("--matcher", type=click.Choice(get_args(MatcherName)), default="inverted", show_default=True,
              help="The shared index, the XPush machine (for very many documents alike), or every query in turn (slow, "
              "the measure of correctness).")  # fmt: skip
@click.option("--threads", type=click.IntRange(1, 1024), help="Threads to match with.  [default: all processors]")
@click.option("--nodes", is_flag=True, help="Also show what each filter selected.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line instead of a table.")
@click.argument("documents", nargs=-1, required=True, metavar="DOCUMENT...")
@click.pass_context
def match(
    context: click.Context,
    sources: tuple[Path, ...],
    namespaces: dict[str, str],
    ignore_namespaces: bool,
    limits: dict[str, str],
    stream: str | None,
    timestamp: str | None,
    matcher: MatcherName,
    threads: int | None,
    nodes: bool,
    as_json: bool,
    documents: tuple[str, ...],
) -> None:
    """Say which subscriptions each DOCUMENT satisfies, what transformations make of it, and what it joins with.

    DOCUMENT is a file, a folder (all its files, hidden ones left out), a pattern, or - for standard input. Documents
    that can not be processed and subscriptions that can not be registered are reported, and the others still work.

    Joins look at all documents of the command line: in the order in which they are named, or with --timestamp in that
    of their time. The state of joins grows with them; `sardonyx run` forgets what no window needs.

    \b
    With --json each line is one of
      {"document": "a.xml", "subscription": "7"}
                  a notification; with "result", XML text, where the subscription is a transformation, and with --nodes
                  also with "nodes"
      {"document": "b.xml", "documents": ["a.xml", "b.xml"], "subscription": "7", "result": "<result>...</result>"}
                  a notification of a join
      {"document": "a.xml", "error": {"kind": ..., "message": ..., "line": ..., "column": ...}}
                  a dead letter; with "subscription" where only that query failed on the document
      {"subscription": "7", "error": {"kind": ..., "message": ..., "line": ..., "column": ..., "source": ...}}

    \b
    Examples:
      sardonyx match -s queries.txt message.xml
      sardonyx match -s alerts.yaml --nodes 'inbox/**/*.xml'
      sardonyx match -s cheap.xq --json inbox/ | jq -r .result
      sardonyx match -s same-burst.yaml --timestamp /*/Who/Date alerts/
      curl -s https://example.org/feed | sardonyx match -s feeds.csv --json -
      sardonyx match -s queries.txt -n v=http://www.ivoa.net/xml/VOEvent/v2.0 events/
    """
    with common.failures():
        settings = common.settings_from(limits, matcher, threads)
        population = common.load_population(sources, namespaces, ignore_namespaces, settings)
        names = common.expand(documents)
        stats = population.broker.stats()
        output: _Lines | _Tables = (
            _Lines(nodes) if as_json else _Tables(nodes, stats["transformations"] + stats["joins"] > 0)
        )
        joiner = Joiner(population.broker, settings, timestamp, namespaces) if stats["joins"] else None
        output.refused(list(population.report.rejected))
        done = found = letters = 0
        with common.progress("documents", len(names)) as advance:
            for batch in _batches(settings, names, stream):
                outcomes = _match(population.broker, batch, nodes)
                if joiner is not None:
                    outcomes += _join(population.broker, joiner, batch, outcomes, nodes)
                output.add(outcomes)
                found += sum(len(outcome.found) + len(outcome.joined) for outcome in outcomes)
                letters += sum(len(outcome.letters) for outcome in outcomes)
                done += len(batch)
                advance(done)
        output.end(done, len(population.broker))
    context.exit(codes.of(found, letters + len(population.report.rejected)))


def _batches(settings: BrokerSettings, names: list[str], stream: str | None) -> Iterator[list[Document | DeadLetter]]:
    batch: list[Document | DeadLetter] = []
    size = 0
    for name in names:
        document = common.read_document(name, stream, settings.limits)
        batch.append(document)
        size += len(document.payload) if isinstance(document, Document) else 0
        if len(batch) >= _BATCH_DOCUMENTS or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _join(
    broker: Broker, joiner: Joiner, batch: list[Document | DeadLetter], outcomes: list[Outcome], nodes: bool
) -> list[Outcome]:
    """Add what joins say to the outcomes of their documents; gives the outcomes of documents that joins made."""
    joined = joiner.hear([document for document in batch if isinstance(document, Document)])
    of = {outcome.name: outcome for outcome in outcomes}
    for letter in joined.dead_letters:
        of[letter.document_id or ""].letters.append(letter)
    outcomes[-1].joined.extend(joined.notifications)
    return _match(broker, list(joined.derived), nodes)


def _match(broker: Broker, batch: list[Document | DeadLetter], nodes: bool) -> list[Outcome]:
    outcomes = [
        Outcome(document.document_id or "", [], {}, [], [document] if isinstance(document, DeadLetter) else [])
        for document in batch
    ]
    readable = [(row, document) for row, document in enumerate(batch) if isinstance(document, Document)]
    if nodes:
        for row, document in readable:
            try:
                selections = broker.match(document, nodes=True)
                outcomes[row].texts.update(broker.transform(document))
                outcomes[row].selections.extend(selections)
                outcomes[row].found.extend(selection.subscription_id for selection in selections)
            except (DocumentError, EvaluationError) as error:
                error.document_id = document.document_id
                outcomes[row].letters.append(DeadLetter.of(error))
        return outcomes
    report = broker.match_batch([document for _row, document in readable])
    for (row, _document), found, texts in zip(readable, report.ids(), report.results(), strict=True):
        outcomes[row].found.extend(found)
        outcomes[row].texts.update(texts)
    letters = report.dead_letters([document.document_id for _row, document in readable])
    for number, letter in zip(report.errors["document"].to_pylist(), letters, strict=True):
        outcomes[readable[number][0]].letters.append(letter)
    return outcomes


class _Lines:
    """Output as JSON lines, written as soon as known."""

    def __init__(self, nodes: bool) -> None:
        self._nodes = nodes
        # Large populations repeat their ids over many documents; each is encoded once.
        self._encode = functools.cache(json.dumps)

    def refused(self, letters: list[DeadLetter]) -> None:
        for letter in letters:
            click.echo(json.dumps({"subscription": letter.subscription_id, "error": letter.error()}))

    def add(self, outcomes: list[Outcome]) -> None:
        lines = []
        for outcome in outcomes:
            document = json.dumps(outcome.name)
            for letter in outcome.letters:
                who = ""
                if letter.subscription_id is not None:
                    who = f', "subscription": {json.dumps(letter.subscription_id)}'
                lines.append(f'{{"document": {document}{who}, "error": {json.dumps(letter.error())}}}')
            if self._nodes:
                for selection in outcome.selections:
                    nodes = json.dumps([asdict(node) for node in selection.nodes])
                    who = json.dumps(selection.subscription_id)
                    result = self._result(outcome.texts, selection.subscription_id)
                    lines.append(f'{{"document": {document}, "subscription": {who}{result}, "nodes": {nodes}}}')
            else:
                head = f'{{"document": {document}, "subscription": '
                encode, texts = self._encode, outcome.texts
                lines += [f"{head}{encode(who)}{self._result(texts, who)}}}" for who in outcome.found]
            for one in outcome.joined:
                said = {"document": one.document_id, "documents": one.documents, "subscription": one.subscription_id}
                lines.append(json.dumps({**said, "result": one.result}))
        if lines:
            click.echo("\n".join(lines))

    @staticmethod
    def _result(texts: dict[str, str], who: str) -> str:
        return f', "result": {json.dumps(texts[who])}' if who in texts else ""

    def end(self, documents: int, subscriptions: int) -> None:
        """Nothing: every line is a finding."""


class _Tables:
    """Output as tables for people: notifications on standard output, refusals on standard error."""

    def __init__(self, nodes: bool, results: bool) -> None:
        self._nodes = nodes
        self._found = 0
        self._letters: list[DeadLetter] = []
        self._refused = 0
        self._table = Table(border_style="dim", header_style="bold")
        self._table.add_column("document", overflow="fold")
        self._table.add_column("subscription" if nodes else "subscriptions", overflow="fold", style="green")
        if nodes:
            self._table.add_column("line", justify="right")
            self._table.add_column("node", overflow="fold")
            self._table.add_column("value", overflow="ellipsis", no_wrap=True, max_width=60)
        if results:
            self._table.add_column("result", overflow="fold")

    def refused(self, letters: list[DeadLetter]) -> None:
        self._refused = len(letters)
        if letters:
            common.console(stderr=True).print(common.refusals("Refused subscriptions", letters))

    def add(self, outcomes: list[Outcome]) -> None:
        for outcome in outcomes:
            self._letters += outcome.letters
            self._found += len(outcome.found) + len(outcome.joined)
            shown = Text(printable(outcome.name))
            for one in outcome.joined:
                places = ["", "", ""] if self._nodes else []
                names = Text(" + ".join(map(printable, one.documents)))
                self._table.add_row(names, Text(printable(one.subscription_id)), *places, _shown(one.result or ""))
            if self._nodes:
                for selection in outcome.selections:
                    self._add_nodes(shown, selection, outcome.texts.get(selection.subscription_id))
                continue
            # All filters share a row; every transformation has its own.
            filters = [who for who in outcome.found if who not in outcome.texts]
            if filters:
                ids = ", ".join(map(printable, filters[:_SHOWN_IDS]))
                more = len(filters) - _SHOWN_IDS
                self._table.add_row(shown, Text(ids + (f" and {more} more (--json lists all)" if more > 0 else "")))
            for who, text in outcome.texts.items():
                self._table.add_row(shown, Text(printable(who)), _shown(text))

    def _add_nodes(self, shown: Text, selection: MatchResult, text: str | None) -> None:
        who = Text(printable(selection.subscription_id))
        if text is not None:
            self._table.add_row(shown, who, "", "", "", _shown(text))
        elif not selection.nodes:
            self._table.add_row(shown, who, "", "(true)", "")
        for node in selection.nodes:
            value = Text(" ".join(node.value.split()))
            self._table.add_row(shown, who, str(node.line), Text(node.path), value)

    def end(self, documents: int, subscriptions: int) -> None:
        out = common.console()
        if self._table.row_count:
            out.print(self._table)
        if self._letters:
            common.console(stderr=True).print(common.refusals("Dead letters", self._letters))
        counts = [
            common.counted(self._found, "notification"),
            common.counted(len(self._letters), "dead letter"),
            common.counted(self._refused, "refused subscription"),
        ]
        given = f"{common.counted(documents, 'document')}, {common.counted(subscriptions, 'subscription')}"
        out.print(f"{given}: {', '.join(counts)}")


def _shown(result: str) -> Text:
    """A result for a cell: on one line, and cut where it is long."""
    if not result:
        return Text("(empty)", "dim")
    text = printable(" ".join(result[: 2 * _SHOWN_CHARACTERS].split()))
    if len(result) <= _SHOWN_CHARACTERS:
        return Text(text)
    return Text(f"{text[:_SHOWN_CHARACTERS]} ... ({len(result):,} characters; --json has all)")
