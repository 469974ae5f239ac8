"""What README, ARCHITECTURE and the pages say is so."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import sardonyx


@pytest.fixture(scope="module")
def generate(repository: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", repository / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pages(repository: Path) -> list[Path]:
    return [*repository.glob("*.md"), *repository.glob("docs/**/*.md")]


def test_architecture_names_files_that_exist(repository: Path) -> None:
    text = (repository / "ARCHITECTURE.md").read_text()
    named = set(re.findall(r"`((?:python|rust|tests|docs)/[\w./-]+)`", text))
    assert len(named) > 25
    missing = [name for name in sorted(named) if not (repository / name).exists()]
    assert missing == []


def test_links_between_pages_lead_somewhere(repository: Path) -> None:
    links = 0
    for page in pages(repository):
        for target in re.findall(r"\]\(([^)#\s]+)\)", page.read_text()):
            if re.match(r"\w+:", target):
                continue
            links += 1
            assert (page.parent / target).exists(), f"{page.name}: {target}"
    assert links > 10


def test_make_targets_named_in_pages_exist(repository: Path) -> None:
    makefile = (repository / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    named = set()
    for page in pages(repository):
        named |= set(re.findall(r"(?:^ {4}|`)make ([a-z-]+)", page.read_text(), re.MULTILINE))
    assert {"demo", "test"} <= named <= targets


def test_make_alone_lists_every_target(repository: Path) -> None:
    listed = subprocess.run(["make", "-s"], cwd=repository, capture_output=True, text=True, check=True).stdout
    makefile = (repository / "Makefile").read_text()
    phony = re.search(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)
    assert phony is not None
    assert {line.split()[0] for line in listed.splitlines()} == set(phony[1].split())
    assert all(len(line.split(maxsplit=1)) == 2 for line in listed.splitlines())


def test_continuous_integration_runs_what_readme_says(repository: Path) -> None:
    script = repository / ".ci" / "run"
    text = script.read_text()
    assert script.stat().st_mode & 0o111
    assert "set -euo pipefail" in text
    assert "rm -rf .venv" in text
    assert text.rstrip().endswith("make test")
    assert "make test" in (repository / "README.md").read_text()


def test_generated_pages_are_fresh(generate: ModuleType) -> None:
    assert generate.outdated() == [], "run `make docs`"


def test_every_command_and_setting_is_documented(generate: ModuleType, repository: Path) -> None:
    """The pages are generated; this holds the generator to its word."""
    cli = (repository / "docs" / "cli.md").read_text()
    names = [name for name, _ in generate.commands(generate.command_line)]
    assert {"sardonyx match", "sardonyx index build", "sardonyx demo"} <= set(names)
    assert all(f"## {name}\n" in cli for name in names)
    settings = (repository / "docs" / "settings.md").read_text()
    for cls in (generate.Limits, generate.BrokerSettings, generate.XPushSettings):
        for name, _default, _unit, doc in generate.describe(cls):
            assert f"| `{name}` |" in settings
            assert doc in settings


def test_options_and_commands_in_readme_exist(repository: Path, generate: ModuleType) -> None:
    """Each `sardonyx ...` line of README uses commands and options that the help knows."""
    helps = dict(generate.commands(generate.command_line))
    lines = re.findall(r"^ {4}(sardonyx [^#\n]+)", (repository / "README.md").read_text(), re.MULTILINE)
    assert len(lines) >= 5
    for line in lines:
        words = line.split()
        name = max((n for n in helps if words[: len(n.split())] == n.split()), key=len)
        for option in re.findall(r"(?<=\s)--?[a-z][\w-]*", line):
            assert re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", helps[name]), (line, option)


def test_readme_s_python_examples_print_what_it_says(repository: Path) -> None:
    section = (repository / "README.md").read_text().split("## In Python")[1].split("\n## ")[0]
    examples = re.findall(r"```python\n(.*?)```\s+(?:This prints|Out comes) `(.+?)`", section, re.DOTALL)
    assert len(examples) == 3
    for code, said in examples:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
        assert done.stdout.strip() == said


def test_the_changelog_names_this_version(repository: Path) -> None:
    assert f"## {sardonyx.__version__}" in (repository / "CHANGELOG.md").read_text()


def test_every_statistic_is_described(repository: Path) -> None:
    broker = sardonyx.Broker()
    broker.register("1", "/a")
    pages = [(repository / "docs" / name).read_text() for name in ("index-at-scale.md", "xpush.md", "joins.md")]
    described = set(re.findall(r"`(\w+)`", "".join(pages)))
    assert set(broker.stats()) - described == set()
