"""Saved indexes larger than the memory that a process may have, and shared by several processes."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pyarrow as pa
import pytest

from sardonyx import Broker

linux = pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="reads /proc, which is Linux's")

ROWS = 10_000
CONSTANT = "x" * 4_000
"""Long constants make a large index of few subscriptions, which is built in a moment."""
DOCUMENT = f"<order><note>{CONSTANT}{ROWS - 7}</note></order>"


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index file of about 40 MB; subscription `n` wants one note."""
    broker = Broker()
    queries = [f'/order[note = "{CONSTANT}{row}"]' for row in range(ROWS)]
    report = broker.register_many(pa.table({"id": [f"n{row}" for row in range(ROWS)], "query": queries}))
    assert report.registered == ROWS
    path = tmp_path_factory.mktemp("scale") / "large.sdx"
    broker.save(path)
    assert path.stat().st_size > 40_000_000
    return path


def run(code: str, *arguments: object) -> str:
    """What a process of its own prints; `kilobytes` reads a line of its status, and the packages are warm."""
    start = """
        import sys
        from pathlib import Path
        from sardonyx import Broker

        def kilobytes(name):
            lines = Path("/proc/self/status").read_text().splitlines()
            return next(int(line.split()[1]) for line in lines if line.startswith(name + ":"))

        small = Broker()
        small.register("a", "/a")
        assert small.match("<a/>") == ["a"]
    """
    text = textwrap.dedent(start) + textwrap.dedent(code)
    arguments_text = [str(argument) for argument in arguments]
    done = subprocess.run([sys.executable, "-c", text, *arguments_text], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@linux
@pytest.mark.parametrize("verify", [True, False])
def test_an_index_larger_than_the_memory_answers(saved: Path, verify: bool) -> None:
    """A quarter of the index may be allocated: enough to open it and match, too little to read it."""
    code = """
        import resource

        path, document, verify = sys.argv[1:]
        size = Path(path).stat().st_size
        allowed = kilobytes("VmData") * 1024 + size // 4
        resource.setrlimit(resource.RLIMIT_DATA, (allowed, allowed))
        try:
            Path(path).read_bytes()
        except MemoryError:
            print("too large to read")
        broker = Broker.load(path, verify=verify == "True")
        print(len(broker), broker.match(document), broker.match("<order><note>x</note></order>"))
    """
    assert run(code, saved, DOCUMENT, verify).splitlines() == [
        "too large to read",
        f"{ROWS} ['n{ROWS - 7}'] []",
    ]


@linux
def test_processes_share_the_pages_of_an_index(saved: Path) -> None:
    """What the second process has of its own is less than a tenth of the index."""
    first = Broker.load(saved)  # verified: all pages are in memory
    code = """
        path, document = sys.argv[1:]
        before = kilobytes("RssAnon")
        broker = Broker.load(path)
        assert len(broker.match(document)) == 1
        heap = kilobytes("RssAnon") - before
        sizes, inside = {}, False
        for line in Path("/proc/self/smaps").read_text().splitlines():
            name, value = line.split(maxsplit=1)
            if not name.endswith(":"):
                inside = line.endswith(path)
            elif inside and value.endswith(" kB"):
                sizes[name] = sizes.get(name, 0) + int(value.split()[0])
        print(sizes["Rss:"], sizes["Private_Clean:"] + sizes["Private_Dirty:"], heap)
    """
    resident, private, heap = (int(size) * 1024 for size in run(code, saved, DOCUMENT).split())
    size = saved.stat().st_size
    assert resident > 0.9 * size
    assert private + heap < 0.1 * size
    assert len(first) == ROWS


def test_opening_reads_next_to_nothing(saved: Path) -> None:
    """Without `verify` a file is mapped, whatever its size; its bytes are not counted as heap."""
    broker = Broker.load(saved, verify=False)
    stats = broker.stats()
    assert stats["mapped_bytes"] == stats["index_bytes"] == saved.stat().st_size
    broker.register("more", "/a")
    stats = broker.stats()
    assert stats["index_bytes"] > stats["mapped_bytes"] == saved.stat().st_size
