"""`sardonyx match`: documents against subscriptions, in process."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import get_args

import click
from rich.table import Table
from rich.text import Text

from sardonyx.broker import Broker
from sardonyx.cli import codes, common
from sardonyx.config import BrokerSettings, MatcherName
from sardonyx.errors import DocumentError, EvaluationError
from sardonyx.explanation import printable
from sardonyx.model import DeadLetter, Document
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


@click.command()
@common.subscription_options
@click.option("--stream", metavar="NAME", help="The stream that the documents belong to.")
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
    matcher: MatcherName,
    threads: int | None,
    nodes: bool,
    as_json: bool,
    documents: tuple[str, ...],
) -> None:
    """Say which subscriptions each DOCUMENT satisfies, and what transformations make of it.

    DOCUMENT is a file, a folder (all its files, hidden ones left out), a pattern, or - for standard input. Documents
    that can not be processed and subscriptions that can not be registered are reported, and the others still work.

    \b
    With --json each line is one of
      {"document": "a.xml", "subscription": "7"}
                  a notification; with "result", XML text, where the subscription is a transformation, and with --nodes
                  also with "nodes"
      {"document": "a.xml", "error": {"kind": ..., "message": ..., "line": ..., "column": ...}}
                  a dead letter; with "subscription" where only that query failed on the document
      {"subscription": "7", "error": {"kind": ..., "message": ..., "line": ..., "column": ..., "source": ...}}

    \b
    Examples:
      sardonyx match -s queries.txt message.xml
      sardonyx match -s alerts.yaml --nodes 'inbox/**/*.xml'
      sardonyx match -s cheap.xq --json inbox/ | jq -r .result
      curl -s https://example.org/feed | sardonyx match -s feeds.csv --json -
      sardonyx match -s queries.txt -n v=http://www.ivoa.net/xml/VOEvent/v2.0 events/
    """
    with common.failures():
        settings = common.settings_from(limits, matcher, threads)
        population = common.load_population(sources, namespaces, ignore_namespaces, settings)
        names = common.expand(documents)
        output: _Lines | _Tables = (
            _Lines(nodes) if as_json else _Tables(nodes, population.broker.stats()["transformations"] > 0)
        )
        output.refused(list(population.report.rejected))
        done = found = letters = 0
        with common.progress("documents", len(names)) as advance:
            for outcomes in _outcomes(population.broker, settings, names, stream, nodes):
                output.add(outcomes)
                found += sum(len(outcome.found) for outcome in outcomes)
                letters += sum(len(outcome.letters) for outcome in outcomes)
                done += len(outcomes)
                advance(done)
        output.end(done, len(population.broker))
    context.exit(codes.of(found, letters + len(population.report.rejected)))


def _outcomes(
    broker: Broker, settings: BrokerSettings, names: list[str], stream: str | None, nodes: bool
) -> Iterator[list[Outcome]]:
    batch: list[Document | DeadLetter] = []
    size = 0
    for name in names:
        document = common.read_document(name, stream, settings.limits)
        batch.append(document)
        size += len(document.payload) if isinstance(document, Document) else 0
        if len(batch) >= _BATCH_DOCUMENTS or size >= _BATCH_BYTES:
            yield _match(broker, batch, nodes)
            batch, size = [], 0
    if batch:
        yield _match(broker, batch, nodes)


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
            self._found += len(outcome.found)
            shown = Text(printable(outcome.name))
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
