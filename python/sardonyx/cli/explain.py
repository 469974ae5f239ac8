"""`sardonyx explain`: why a document does or does not satisfy a subscription."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from sardonyx.cli import codes, common
from sardonyx.errors import DocumentError, EvaluationError, UnknownSubscriptionError
from sardonyx.explanation import PlanExplanation
from sardonyx.model import DeadLetter, Document


@click.command()
@common.subscription_options
@click.option("--id", "subscription_id", required=True, metavar="ID", help="The subscription to explain.")
@click.option("--stream", metavar="NAME", help="The stream that the document belongs to.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of a tree.")
@click.argument("documents", nargs=-1, required=True, metavar="DOCUMENT...")
@click.pass_context
def explain(
    context: click.Context,
    sources: tuple[Path, ...],
    namespaces: dict[str, str],
    ignore_namespaces: bool,
    limits: dict[str, str],
    subscription_id: str,
    stream: str | None,
    as_json: bool,
    documents: tuple[str, ...],
) -> None:
    """Show why DOCUMENT (a file, or - for standard input) does or does not satisfy a subscription.

    A join needs one DOCUMENT for each of its blocks, in their order; each counts as a second after the one before.

    Every part of a filter is marked as held or not, with the nodes that it selected, and with the way by which the
    index found the subscription. Of a transformation the plan is shown, what it shares with others, and the result.
    The exit code is 0 if it matches and 1 if it does not.

    \b
    Examples:
      sardonyx explain -s alerts.yaml --id bright message.xml
      sardonyx explain -s cheap.xq --id cheap message.xml
      sardonyx explain -s shipped.yaml --id shipped order.xml shipment.xml
      sardonyx explain -s queries.txt --id 17 --json - < message.xml
    """
    with common.failures():
        settings = common.settings_from(limits)
        population = common.load_population(sources, namespaces, ignore_namespaces, settings)
        for letter in population.report.rejected:
            if letter.subscription_id == subscription_id and subscription_id not in population.broker:
                raise click.ClickException(f"it was refused: {letter}")
        known = population.broker.index.get(subscription_id)
        if len(documents) > 1 and known is not None and known["language"] != "xscl":
            raise click.UsageError(f"{subscription_id!r} is no join, so it looks at one DOCUMENT")
        given: list[Document] = []
        for name in documents:
            read = common.read_document(name, stream, settings.limits)
            if isinstance(read, DeadLetter):
                raise click.ClickException(str(read))
            given.append(read)
        try:
            explanation = population.broker.explain(subscription_id, *given)
        except UnknownSubscriptionError as error:
            raise click.BadParameter(str(error), param_hint="--id") from error
        except (DocumentError, EvaluationError) as error:
            error.document_id = error.document_id or documents[0]
            letter = DeadLetter.of(error)
            if as_json:
                click.echo(json.dumps({"document": error.document_id, "error": letter.error()}))
            else:
                common.console(stderr=True).print(common.refusals("Dead letter", [letter]))
            context.exit(codes.REFUSED)
    if as_json:
        click.echo(json.dumps(asdict(explanation)))
    else:
        common.console().print(explanation)
    if isinstance(explanation, PlanExplanation) and explanation.error is not None:
        context.exit(codes.REFUSED)
    context.exit(codes.FOUND if explanation.matched else codes.NOTHING)
