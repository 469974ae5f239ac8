"""Why a document does or does not satisfy a subscription, for people and for programs."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sardonyx.model import MatchedNode

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

__all__ = ["Clause", "Explanation", "JoinExplanation", "JoinLine", "Operator", "PlanExplanation", "printable"]

_SHOWN_CHARACTERS = 2000


@dataclass(frozen=True, slots=True)
class Clause:
    """One part of a query, with what became of it."""

    text: str
    """The part, as canonical XPath."""
    held: bool
    """Whether it is true of the document."""
    depth: int
    """How deep it lies in the query, from 0."""
    nodes: tuple[MatchedNode, ...]
    """The first few nodes that it selected."""
    reason: str
    """Why, in words."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a document does or does not satisfy a filter. `print` it, or give it to a rich console."""

    subscription_id: str
    """The subscription."""
    query: str
    """Its query as canonical XPath."""
    matched: bool
    """Whether the document satisfies it."""
    stream_matched: bool
    """Whether it hears the document's stream."""
    candidate: bool
    """Whether the shared index found it for this document, before its query was verified."""
    access: tuple[str, ...]
    """The necessary conditions through which the index finds it."""
    clauses: tuple[Clause, ...]
    """The parts of the query, outer ones before their inner ones."""

    @classmethod
    def from_core(cls, subscription_id: str, said: Mapping[str, Any]) -> Explanation:
        """The explanation from what the core says."""
        return cls(
            subscription_id=subscription_id,
            query=said["query"],
            matched=said["matched"],
            stream_matched=said["stream_matched"],
            candidate=said["candidate"],
            access=tuple(said["access"]),
            clauses=tuple(
                Clause(
                    text=clause["clause"],
                    held=clause["held"],
                    depth=clause["depth"],
                    nodes=tuple(MatchedNode(**node) for node in clause["nodes"]),
                    reason=clause["reason"],
                )
                for clause in said["clauses"]
            ),
        )

    def __rich__(self) -> RenderableType:
        """Headline, the way through the index, and the query as a tree of marked parts."""
        # rich is imported on use: workers that only match never pay for it.
        from rich.console import Group
        from rich.text import Text

        verdict = Text("matches", "bold green") if self.matched else Text("does not match", "bold red")
        lines = _head(self.subscription_id, verdict, self.stream_matched)
        lines.append(_tree(self.query, [(clause.depth, _clause(clause)) for clause in self.clauses]))
        found = "found it" if self.candidate else "did not find it"
        access = " or ".join(self.access) if self.access else "nothing that it needs: it is tried on every document"
        lines.append(Text.assemble(("index ", "dim"), found, (" by ", "dim"), access))
        return Group(*lines)

    def __str__(self) -> str:
        """The same as plain text."""
        return _plain(self)


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator of a plan."""

    operator: str
    """What it does."""
    detail: str
    """To what."""
    depth: int
    """How deep it lies in the plan, from 0."""
    shared_with: int
    """How many other plans use the same operator."""
    why: str
    """What the planner did here, and why it may."""


@dataclass(frozen=True, slots=True)
class PlanExplanation:
    """How a transformation is evaluated, and what it makes of a document. `print` it, or give it to a rich console."""

    subscription_id: str
    """The subscription."""
    query: str
    """Its query."""
    matched: bool
    """Whether the document gives a result for it."""
    stream_matched: bool
    """Whether it hears the document's stream."""
    strategy: str
    """What plans share: `BrokerSettings.strategy`."""
    triggers: tuple[str, ...]
    """One of these must be found in a document before the plan does anything; none: it runs on every document."""
    plan: tuple[Operator, ...]
    """Its operators, outer ones before what they read."""
    result: str | None
    """The result as XML text."""
    error: str | None
    """Why it could not be evaluated."""

    @classmethod
    def from_core(cls, subscription_id: str, stream_matched: bool, said: Mapping[str, Any]) -> PlanExplanation:
        """The explanation from what the core says."""
        return cls(
            subscription_id=subscription_id,
            query=said["query"],
            matched=said["matched"],
            stream_matched=stream_matched,
            strategy=said["strategy"],
            triggers=tuple(said["triggers"]),
            plan=tuple(Operator(**operator) for operator in said["plan"]),
            result=said["result"],
            error=said["error"],
        )

    def __rich__(self) -> RenderableType:
        """Headline, the plan as a tree, what wakes it, and the result."""
        from rich.console import Group
        from rich.text import Text

        if self.error is not None:
            verdict = Text("fails", "bold red")
        else:
            verdict = Text("gives a result", "bold green") if self.matched else Text("gives no result", "bold red")
        lines = _head(self.subscription_id, verdict, self.stream_matched)
        lines.append(_tree(self.query, [(operator.depth, _operator(operator)) for operator in self.plan]))
        wakes = " or ".join(self.triggers) if self.triggers else "every document"
        lines.append(Text.assemble(("strategy ", "dim"), self.strategy, (", woken by ", "dim"), wakes))
        if self.error is not None:
            lines.append(Text.assemble(("error ", "dim"), (printable(self.error), "red")))
        elif self.result is not None:
            more = len(self.result) - _SHOWN_CHARACTERS
            lines.append(
                Text(
                    _lines(self.result[:_SHOWN_CHARACTERS]) + (f" ... and {more:,} characters more" if more > 0 else "")
                )
            )
        return Group(*lines)

    def __str__(self) -> str:
        """The same as plain text."""
        return _plain(self)


def printable(text: str) -> str:
    """Text that any terminal can show: undecodable bytes of file names and control characters are escaped."""
    shown = text.encode("utf-8", "backslashreplace").decode()
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in shown)


def _lines(text: str) -> str:
    return "\n".join(printable(line) for line in text.expandtabs(4).split("\n"))


def _head(subscription_id: str, verdict: Text, stream_matched: bool) -> list[RenderableType]:
    from rich.text import Text

    lines: list[RenderableType] = [Text.assemble(("subscription ", "dim"), (subscription_id, "bold"), ("  "), verdict)]
    if not stream_matched:
        lines.append(Text("It does not hear the document's stream.", "red"))
    return lines


def _tree(root: str, parts: Iterable[tuple[int, Text]]) -> RenderableType:
    """Parts, each with its depth, as branches of a query."""
    from rich.text import Text
    from rich.tree import Tree

    tree = Tree(Text(_lines(root), "cyan"), guide_style="dim")
    branches = {-1: tree}
    for part_depth, part in parts:
        parent = branches[max(depth for depth in branches if depth < part_depth)]
        for depth in [depth for depth in branches if depth >= part_depth]:
            del branches[depth]
        branches[part_depth] = parent.add(part)
    return tree


def _plain(explanation: RenderableType) -> str:
    from rich.console import Console

    with io.StringIO() as out:
        Console(file=out, width=160, color_system=None, force_terminal=False).print(explanation, soft_wrap=True)
        return out.getvalue().rstrip("\n")


def _operator(operator: Operator) -> Text:
    from rich.text import Text

    text = Text(operator.operator, "bold")
    text.append(f" {printable(operator.detail)}", "default not bold")
    if operator.shared_with:
        others = "1 other plan" if operator.shared_with == 1 else f"{operator.shared_with:,} other plans"
        text.append(f"  shared with {others}", "green not bold")
    if operator.why:
        text.append(f"  {operator.why}", "dim not bold")
    return text


def _clause(clause: Clause) -> Text:
    from rich.text import Text

    text = Text("✓ " if clause.held else "✗ ", "green" if clause.held else "red")
    text.append(clause.text, "default")
    if clause.reason:
        text.append(f"  {clause.reason}", "dim")
    for node in clause.nodes:
        value = node.value if len(node.value) <= 60 else node.value[:57] + "..."
        shown = f" = {value!r}" if value else ""
        text.append(f"\n    {node.path} (line {node.line}){shown}", "dim")
    return text


@dataclass(frozen=True, slots=True)
class JoinLine:
    """A block, an operator or an equality of a join."""

    text: str
    """What it is."""
    depth: int
    """How deep it lies, from 0."""
    held: bool | None
    """Whether it holds of the documents; None if none were given."""
    reason: str
    """Why, in words."""


@dataclass(frozen=True, slots=True)
class JoinExplanation:
    """Why documents, one for each block, do or do not satisfy a join. `print` it, or give it to a rich console."""

    subscription_id: str
    """The subscription."""
    query: str
    """Its query as given."""
    joined: bool | None
    """Whether the documents satisfy it; None if none were given."""
    lines: tuple[JoinLine, ...]
    """Its blocks, operators and equalities."""
    state: Mapping[str, int]
    """What the state of all joins holds now: `units`, `documents`, `bytes`."""

    @classmethod
    def from_core(cls, subscription_id: str, said: Mapping[str, Any], stats: Mapping[str, int]) -> JoinExplanation:
        """The explanation from what the core says."""
        lines = tuple(JoinLine(**line) for line in said["lines"])
        state = {name: stats[f"join_state_{name}"] for name in ("units", "documents", "bytes")}
        return cls(subscription_id, said["query"], said["joined"], lines, state)

    @property
    def matched(self) -> bool:
        """Whether the documents satisfy it."""
        return bool(self.joined)

    def __str__(self) -> str:
        """Lines for people."""
        verdict = {None: "", True: ": joined", False: ": not joined"}[self.joined]
        said = [f"{self.subscription_id}{verdict}", f"  {self.query}"]
        for line in self.lines:
            mark = {None: "-", True: "+", False: "x"}[line.held]
            reason = f"  ({line.reason})" if line.reason else ""
            said.append(f"  {'  ' * line.depth}{mark} {line.text}{reason}")
        sizes = self.state
        said.append(
            f"  state of all joins: {sizes['units']} units of {sizes['documents']} documents, {sizes['bytes']} bytes"
        )
        return "\n".join(said)

    def __rich__(self) -> RenderableType:
        """The same for rich."""
        from rich.text import Text

        return Text(str(self))
