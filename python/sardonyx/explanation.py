"""Why a document does or does not satisfy a subscription, for people and for programs."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sardonyx.model import MatchedNode

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

__all__ = ["Clause", "Explanation"]


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
    """Why a document does or does not satisfy a subscription. `print` it, or give it to a rich console."""

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
        from rich.tree import Tree

        verdict = Text("matches", "bold green") if self.matched else Text("does not match", "bold red")
        head = Text.assemble(("subscription ", "dim"), (self.subscription_id, "bold"), ("  "), verdict)
        lines: list[RenderableType] = [head]
        if not self.stream_matched:
            lines.append(Text("It does not hear the document's stream.", "red"))
        tree = Tree(Text(self.query, "cyan"), guide_style="dim")
        branches = {-1: tree}
        for clause in self.clauses:
            parent = branches[max(depth for depth in branches if depth < clause.depth)]
            for depth in [depth for depth in branches if depth >= clause.depth]:
                del branches[depth]
            branches[clause.depth] = parent.add(_clause(clause))
        lines.append(tree)
        found = "found it" if self.candidate else "did not find it"
        access = " or ".join(self.access) if self.access else "nothing that it needs: it is tried on every document"
        lines.append(Text.assemble(("index ", "dim"), found, (" by ", "dim"), access))
        return Group(*lines)

    def __str__(self) -> str:
        """The same as plain text."""
        from rich.console import Console

        with io.StringIO() as out:
            Console(file=out, width=160, color_system=None, force_terminal=False).print(self, soft_wrap=True)
            return out.getvalue().rstrip("\n")


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
