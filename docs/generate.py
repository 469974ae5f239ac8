"""Writes the pages of docs/ that are made from the code: cli.md, settings.md, api.md.

python docs/generate.py            write them
python docs/generate.py --check    say which are out of date, and fail if any is
"""

import dataclasses
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

import sardonyx
from sardonyx import errors
from sardonyx.cli import main as command_line
from sardonyx.config import BrokerSettings, JoinSettings, Limits, XPushSettings, describe

HERE = Path(__file__).parent
NOTE = "<!-- Made by docs/generate.py; change the code, then run `make docs`. -->\n"


def commands(
    command: click.Command, name: str = "sardonyx", parent: click.Context | None = None
) -> Iterator[tuple[str, str]]:
    """Every command with the text of its help."""
    context = click.Context(command, parent=parent, info_name=name, terminal_width=100, **command.context_settings)
    yield context.command_path, command.get_help(context)
    for inner_name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, inner_name, context)


def cli_page() -> str:
    """docs/cli.md."""
    parts = [f"# Command line\n\n{NOTE}\nEvery command takes `--help`.\n"]
    for name, text in commands(command_line):
        parts.append(f"## {name}\n\n```text\n{text.strip()}\n```\n")
    return "\n".join(parts)


def settings_page() -> str:
    """docs/settings.md."""
    intro = (
        "Settings are frozen objects, given once: `Broker(BrokerSettings(limits=Limits(depth=2000)))`; on the command "
        "line `--limit depth=2000`; in a pipeline's YAML `limits: {depth: 2000}`.\n"
    )
    parts = [f"# Settings\n\n{NOTE}\n{intro}"]
    for cls in (Limits, BrokerSettings, XPushSettings, JoinSettings):
        parts.append(f"## {cls.__name__}\n\n{(cls.__doc__ or '').splitlines()[0]}\n")
        parts.append("| setting | default | unit | what it bounds or chooses |\n|---|---|---|---|")
        for name, default, unit, doc in describe(cls):
            shown = f"{default:,}" if isinstance(default, int) else str(default)
            parts.append(f"| `{name}` | {shown} | {unit} | {doc} |")
        parts.append("")
    parts += list(pipeline_settings())
    return "\n".join(parts)


def pipeline_settings() -> Iterator[str]:
    """The settings of pipelines, with the descriptions that stand below their fields."""
    from sardonyx.spark import config

    yield "## Pipelines\n\nOf `sardonyx run --config FILE` and `sardonyx.spark.PipelineConfig`.\n"
    for cls, prefix in ((config.PipelineConfig, ""), (config.SourceConfig, "source."), (config.SinkConfig, "sink.")):
        described = field_descriptions(cls)
        yield "| setting | default | meaning |\n|---|---|---|"
        for item in dataclasses.fields(cls):
            if item.default is not dataclasses.MISSING:
                default = str(item.default)
            elif item.default_factory is not dataclasses.MISSING:
                default = f"{item.type.partition('[')[0]}()" if isinstance(item.type, str) else ""
            else:
                default = "required"
            yield f"| `{prefix}{item.name}` | {default} | {described.get(item.name, '')} |"
        yield ""


def field_descriptions(cls: type[Any]) -> dict[str, str]:
    """The string that follows each field in the source of a dataclass, as one line."""
    import ast
    import textwrap

    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    assert isinstance(tree, ast.ClassDef)
    found = {}
    for field, text in zip(tree.body, tree.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            match text:
                case ast.Expr(value=ast.Constant(value=str(words))):
                    found[field.target.id] = " ".join(words.split())
    return found


def api_page() -> str:
    """docs/api.md."""
    parts = [
        f"# Python API\n\n{NOTE}\nWhat `from sardonyx import ...` offers; everything else may change without notice.\n"
    ]
    for name in sorted(sardonyx.__all__, key=str.lower):
        value = getattr(sardonyx, name)
        if not callable(value):
            continue
        parts.append(f"## {name}\n\n{docstring(value)}\n")
        if not inspect.isclass(value) or issubclass(value, Exception):
            continue
        descriptions = field_descriptions(value) if dataclasses.is_dataclass(value) else {}
        if descriptions:
            parts.append("\n".join(f"- `{field}`: {text}" for field, text in descriptions.items()) + "\n")
        for member, function in vars(value).items():
            target = getattr(function, "__func__", getattr(function, "fget", function))
            if member.startswith("_") or not inspect.isfunction(target):
                continue
            signature = "" if isinstance(function, property) else "()"
            parts.append(f"### {name}.{member}{signature}\n\n{docstring(target)}\n")
    parts.append(f"## errors\n\n{fenced(errors.__doc__ or '')}\n")
    return "\n".join(parts)


def docstring(value: object) -> str:
    """A docstring with its examples fenced."""
    text = inspect.getdoc(value) or ""
    lines: list[str] = []
    inside = False
    for line in text.splitlines():
        if line.startswith(">>>") and not inside:
            lines.append("```pycon")
            inside = True
        elif inside and not line.strip():
            lines.append("```")
            inside = False
        lines.append(line)
    return "\n".join([*lines, "```"] if inside else lines)


def fenced(text: str) -> str:
    """A text with its indented drawing fenced."""
    lines: list[str] = []
    inside = False
    for line in text.strip().splitlines():
        if line.startswith("    ") != inside and (line.strip() or not inside):
            inside = line.startswith("    ")
            lines.append("```text" if inside else "```")
        lines.append(line[4:] if inside else line)
    return "\n".join(lines)


PAGES = {"cli.md": cli_page, "settings.md": settings_page, "api.md": api_page}


def outdated() -> list[str]:
    """The pages that differ from what the code says."""
    return [
        name
        for name, page in PAGES.items()
        if not (HERE / name).exists() or (HERE / name).read_text(encoding="utf-8") != page()
    ]


def main() -> None:
    """Write the pages, or check them."""
    if "--check" in sys.argv[1:]:
        if names := outdated():
            sys.exit(f"out of date: {', '.join(names)}; run `make docs`")
        return
    for name, page in PAGES.items():
        (HERE / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
