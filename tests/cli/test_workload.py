"""`sardonyx workload`: what it writes, other commands read."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sardonyx.cli import codes, main


def sardonyx(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, env={"COLUMNS": "200"})


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_sets_are_listed() -> None:
    rows = [json.loads(line) for line in sardonyx("workload", "sets", "--json").stdout.splitlines()]
    filters = ["stock", "nitf", "bib", "book", "psd", "nasa", "feeds"]
    assert [row["set"] for row in rows] == [
        *filters, "bib-flwr", "book-flwr", "nitf-flwr", "join-flat", "join-complex", "join-feeds",
    ]  # fmt: skip
    table = sardonyx("workload", "sets").stdout
    assert all(row["set"] in table and row["queries"][0] in table for row in rows)


@pytest.mark.usefixtures("place")
class TestMake:
    def test_match_reads_what_make_writes(self) -> None:
        result = sardonyx("workload", "make", "bib", "-o", "out", "-d", "20", "-q", "30", "--json")
        assert result.exit_code == codes.FOUND, result.output
        facts = json.loads(result.stdout)
        assert (facts["documents"], facts["subscriptions"]) == (20, 30)
        matched = sardonyx("match", "--json", "-s", facts["subscriptions_in"], facts["documents_in"])
        assert matched.exit_code == codes.FOUND
        # Every query was drawn from one of the first 200 documents, so that some of these 20 have some.
        assert {json.loads(line)["document"] for line in matched.stdout.splitlines()} <= {
            f"out/documents/{number:02d}.xml" for number in range(1, 21)
        }
        assert json.loads(Path("out/workload.json").read_text())["parameters"]["seed"] == 1

    def test_match_gives_the_results_of_transformations(self) -> None:
        made = sardonyx("workload", "make", "book-flwr", "-o", "out", "-d", "20", "-q", "50", "--doc", "max_value=2")
        assert made.exit_code == codes.FOUND, made.output
        matched = sardonyx("match", "--json", "-s", "out/subscriptions.jsonl", "out/documents")
        assert matched.exit_code == codes.FOUND
        results = [json.loads(line)["result"] for line in matched.stdout.splitlines()]
        assert all(result.startswith("<result><item>") for result in results)

    def test_index_reads_prefixes(self) -> None:
        assert sardonyx("workload", "make", "feeds", "-o", "out", "-d", "5", "-q", "30").exit_code == codes.FOUND
        built = sardonyx("index", "build", "-s", "out/subscriptions.jsonl", "-o", "out.sdx", "--json")
        assert (built.exit_code, json.loads(built.stdout)["subscriptions"]) == (codes.FOUND, 30)

    def test_the_table_says_what_to_expect(self) -> None:
        result = sardonyx("workload", "make", "stock", "-o", "out", "-d", "100", "-q", "1000", "--notifications", "250")
        assert result.exit_code == codes.FOUND, result.output
        assert all(text in result.stdout for text in ("1,000", "250", "out/subscriptions.txt", "out/documents"))

    def test_a_dtd_with_changed_parameters(self) -> None:
        Path("list.dtd").write_text("<!ELEMENT list (item+)> <!ELEMENT item (#PCDATA)>")
        result = sardonyx(
            "workload", "make", "list.dtd", "-o", "out", "-d", "10", "-q", "5", "--doc", "max_value=50",
            "--doc", "repeats={item: [4, 4]}", "--query", "predicates=1", "--query", "wildcard=0",
        )  # fmt: skip
        assert result.exit_code == codes.FOUND, result.output
        assert all(file.read_text().count("<item>") == 4 for file in Path("out/documents").iterdir())
        queries = Path("out/subscriptions.txt").read_text().splitlines()
        assert len(queries) == 5
        assert all("item[text()=" in query for query in queries)

    def test_samples(self) -> None:
        Path("in").mkdir()
        Path("in/a.xml").write_text("<nitf id='7'/>")
        result = sardonyx("workload", "make", "nitf", "--samples", "in", "-o", "out", "-q", "1", "--kind", "paths")
        assert result.exit_code == codes.FOUND, result.output
        assert Path("out/documents/1.xml").read_text() == "<nitf id='7'/>"

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["nitf"], "the DTD of nitf is not part of this package"),
            (["stocks"], "there is no set 'stocks'"),
            (["missing.dtd"], "missing.dtd: the DTD can not be read"),
            (["bib", "--doc", "depth=3"], "unknown parameter 'depth'"),
            (["bib", "--query", "wildcard=lots"], "wildcard is 'lots'"),
            (["bib", "--query", "wildcard={"], "neither number nor word"),
            (["bib", "--query", "wildcard"], "is not NAME=VALUE"),
            (["feeds", "--subscriptions-as", "txt"], "txt can not bind"),
            (["bib", "-q", "1000000", "--query", "predicates=0"], "there are only"),
        ],
    )
    def test_failures_are_said_and_leave_nothing(self, arguments: list[str], words: str, place: Path) -> None:
        result = sardonyx("workload", "make", *arguments, "-o", "out")
        assert result.exit_code == codes.FAILED
        assert words in result.stderr
        assert list(place.iterdir()) == []

    def test_nothing_is_overwritten(self) -> None:
        Path("out").mkdir()
        Path("out/mine").write_text("mine")
        result = sardonyx("workload", "make", "stock", "-o", "out")
        assert result.exit_code == codes.FAILED
        assert "exists already" in result.stderr
        assert [file.name for file in Path("out").iterdir()] == ["mine"]
