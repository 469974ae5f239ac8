"""The installed command as a process: exit codes, streams and pipes as a shell sees them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sardonyx import __version__
from sardonyx.cli import codes


def sardonyx(*arguments: str, folder: Path, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "sardonyx", *arguments]
    return subprocess.run(command, cwd=folder, input=stdin, capture_output=True, timeout=120, check=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "q.txt").write_text("/a\n/b\n")
    (tmp_path / "a.xml").write_text("<a/>")
    (tmp_path / "bad.xml").write_text("<a>")
    return tmp_path


def test_version(folder: Path) -> None:
    done = sardonyx("--version", folder=folder)
    assert (done.returncode, done.stdout.decode().strip()) == (0, f"sardonyx, version {__version__}")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("match", "-s", "q.txt", "a.xml"), codes.FOUND),
        (("match", "-s", "q.txt", "-"), codes.NOTHING),
        (("match", "-s", "q.txt", "a.xml", "bad.xml"), codes.REFUSED),
        (("match", "-s", "nowhere.txt", "a.xml"), codes.FAILED),
        (("--nonsense",), codes.FAILED),
        (("explain", "-s", "q.txt", "--id", "1", "a.xml"), codes.FOUND),
        (("explain", "-s", "q.txt", "--id", "2", "a.xml"), codes.NOTHING),
    ],
)
def test_exit_codes(arguments: tuple[str, ...], code: int, folder: Path) -> None:
    done = sardonyx(*arguments, folder=folder, stdin=b"<c/>")
    assert done.returncode == code, done.stderr.decode()
    assert b"Traceback" not in done.stderr


def test_standard_output_carries_json_alone(folder: Path) -> None:
    done = sardonyx("match", "-s", "q.txt", "--json", "-", "a.xml", folder=folder, stdin=b"<b/>")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert found == [{"document": "-", "subscription": "2"}, {"document": "a.xml", "subscription": "1"}]
    assert done.stderr == b""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such file names")
def test_file_names_that_are_no_text(folder: Path) -> None:
    name = os.fsencode(folder) + b"/caf\xe9.xml"
    with open(name, "wb") as file:
        file.write(b"<a/>")
    done = sardonyx("match", "-s", "q.txt", "--json", os.fsdecode(b"caf\xe9.xml"), folder=folder)
    assert json.loads(done.stdout)["document"] == "caf\udce9.xml"
    assert sardonyx("match", "-s", "q.txt", os.fsdecode(b"caf\xe9.xml"), folder=folder).returncode == codes.FOUND


def test_a_reader_that_goes_away_is_no_failure_of_ours(folder: Path) -> None:
    """The reading end is closed before anything is written, so the outcome does not depend on who is faster."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as output:
        command = [sys.executable, "-m", "sardonyx", "match", "-s", "q.txt", "--json", "a.xml"]
        done = subprocess.run(
            command,
            cwd=folder,
            stdout=output,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            timeout=120,
            check=False,
        )
    assert done.returncode == codes.OUTPUT_CLOSED
    assert b"Traceback" not in done.stderr
