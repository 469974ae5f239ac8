"""`sardonyx run` without Spark: how file and options make one pipeline."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sardonyx.cli import codes, main
from sardonyx.cli.run import merged
from sardonyx.errors import SettingsError

NONE: dict[str, Any] = {"source": {"path": None, "kind": None}, "sink": {"path": None, "kind": None}, "trigger": None}


@pytest.mark.parametrize(
    ("settings", "flags", "result"),
    [
        (
            {},
            {"source": {"path": "in", "kind": None}, "sink": {"path": None, "kind": None}},
            {"source": {"path": "in", "kind": "files"}, "sink": {"kind": "console"}},
        ),
        (
            {"source": {"kind": "parquet", "path": "a"}, "sink": {"kind": "jsonl", "path": "o"}, "trigger": "once"},
            {"source": {"path": "b", "kind": None}, "sink": {"path": None, "kind": None}, "trigger": "2.5"},
            {"source": {"kind": "parquet", "path": "b"}, "sink": {"kind": "jsonl", "path": "o"}, "trigger": 2.5},
        ),
        ({"trigger": 5}, NONE, {"trigger": 5, "sink": {"kind": "console"}}),
        ({}, {**NONE, "sink": {"path": "o", "kind": None}}, {"sink": {"path": "o", "kind": "parquet"}}),
    ],
)
def test_options_outrank_the_file(settings: dict[str, Any], flags: dict[str, Any], result: dict[str, Any]) -> None:
    assert merged(settings, flags) == result


def test_bad_triggers_are_named() -> None:
    with pytest.raises(SettingsError, match="trigger is 'soon'"):
        merged({}, {**NONE, "trigger": "soon"})


@pytest.mark.parametrize("content", ["a: [", "- 1", "unknown_setting: 1\n"])
def test_bad_files_end_with_a_message(content: str, tmp_path: Path) -> None:
    path = tmp_path / "pipeline.yaml"
    path.write_text(content)
    result = CliRunner().invoke(main, ["run", "--config", str(path)])
    assert result.exit_code == codes.FAILED
    assert "Traceback" not in result.output
