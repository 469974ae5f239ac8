"""The commands, in process: what they print and the code they leave with."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sardonyx import Broker
from sardonyx.cli import codes, common, main
from sardonyx.errors import IndexFormatError
from sardonyx.model import DeadLetter


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with documents and subscriptions."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    Path("q.txt").write_text("/a\n//b\n/never\n")
    Path("bad.jsonl").write_text('{"id": "good", "query": "/a"}\n{"id": "broken", "query": "/a["}\n')
    Path("a.xml").write_text("<a>\n<b>x</b></a>")
    Path("c.xml").write_text("<c/>")
    Path("broken.xml").write_text("<a>\n<b></a>")
    Path("in/deep").mkdir(parents=True)
    Path("in/1.rss").write_text("<b/>")
    Path("in/deep/2.atom").write_text("<a/>")
    Path("in/.hidden.xml").write_text("<a/>")
    return tmp_path


def sardonyx(*arguments: str, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(main, arguments, input=stdin)


def lines(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.usefixtures("place")
class TestMatch:
    def test_json(self) -> None:
        result = sardonyx("match", "-s", "q.txt", "--json", "a.xml", "c.xml")
        assert lines(result) == [
            {"document": "a.xml", "subscription": "1"},
            {"document": "a.xml", "subscription": "2"},
        ]
        assert result.exit_code == codes.FOUND

    def test_nothing(self) -> None:
        result = sardonyx("match", "-s", "q.txt", "--json", "c.xml")
        assert (result.stdout, result.exit_code) == ("", codes.NOTHING)

    @pytest.mark.parametrize("nodes", [[], ["--nodes"]])
    def test_bad_documents_stop_nothing(self, nodes: list[str]) -> None:
        result = sardonyx("match", "-s", "q.txt", "--json", *nodes, "broken.xml", "a.xml")
        first, *others = lines(result)
        assert first["document"] == "broken.xml"
        assert first["error"]["kind"] == "not_well_formed"
        assert first["error"]["line"] == 2
        assert set(first["error"]) == {"kind", "message", "line", "column"}
        assert [line["subscription"] for line in others] == ["1", "2"]
        assert result.exit_code == codes.REFUSED

    def test_refused_subscriptions_stop_nothing(self) -> None:
        result = sardonyx("match", "-s", "bad.jsonl", "--json", "a.xml")
        refused, found = lines(result)
        assert refused["subscription"] == "broken"
        assert refused["error"]["kind"] == "query_syntax"
        assert refused["error"]["source"] == "bad.jsonl:2"
        assert found == {"document": "a.xml", "subscription": "good"}
        assert result.exit_code == codes.REFUSED

    def test_folders_patterns_and_standard_input(self) -> None:
        folder = sardonyx("match", "-s", "q.txt", "--json", "in")
        assert lines(folder) == [
            {"document": "in/1.rss", "subscription": "2"},
            {"document": "in/deep/2.atom", "subscription": "1"},
        ]
        pattern = sardonyx("match", "-s", "q.txt", "--json", "in/**/*.atom")
        assert lines(pattern) == [{"document": "in/deep/2.atom", "subscription": "1"}]
        stdin = sardonyx("match", "-s", "q.txt", "--json", "-", stdin=b"<a/>")
        assert lines(stdin) == [{"document": "-", "subscription": "1"}]

    def test_missing_documents_are_wrong_usage(self) -> None:
        result = sardonyx("match", "-s", "q.txt", "nowhere.xml")
        assert result.exit_code == codes.FAILED
        assert "no such document: nowhere.xml" in result.stderr

    def test_unreadable_documents_are_dead_letters(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Permission bits do not bind every user who runs tests, so the refusal is made by hand."""

        def refuse(name: str, stream: object, limits: object) -> Any:
            if name == "c.xml":
                return DeadLetter("missing_payload", "Permission denied", document_id=name)
            return real(name, stream, limits)  # type: ignore[arg-type]

        real = common.read_document
        monkeypatch.setattr(common, "read_document", refuse)
        result = sardonyx("match", "-s", "q.txt", "--json", "c.xml", "a.xml")
        assert [line.get("subscription") or line["error"]["kind"] for line in lines(result)] == [
            "missing_payload",
            "1",
            "2",
        ]
        assert result.exit_code == codes.REFUSED

    def test_nodes(self) -> None:
        result = sardonyx("match", "-s", "q.txt", "--json", "--nodes", "a.xml")
        assert lines(result)[1]["nodes"] == [{"path": "/a/b", "line": 2, "value": "x"}]
        table = sardonyx("match", "-s", "q.txt", "--nodes", "a.xml")
        assert "/a/b" in table.stdout

    def test_tables(self) -> None:
        result = sardonyx("match", "-s", "q.txt", "-s", "bad.jsonl", "a.xml", "broken.xml")
        assert "1, 2, good" in result.stdout
        assert "2 documents, 4 subscriptions: 3 notifications, 1 dead letter, 1 refused subscription" in result.stdout
        assert "not_well_formed" in result.stderr
        assert "bad.jsonl:2" in result.stderr

    def test_transformations(self) -> None:
        Path("t.xq").write_text("for $b in //b\nreturn <r>{$b/text()}</r>\n")
        rows = [
            {"id": "always", "query": "//never", "language": "xquery", "notify_empty": True},
            {"id": "fails", "query": "for $b in //b return xs:integer($b)", "language": "xquery"},
        ]
        Path("t.jsonl").write_text("\n".join(map(json.dumps, rows)))
        both = ("match", "-s", "q.txt", "-s", "t.xq", "-s", "t.jsonl", "a.xml", "c.xml")
        result = sardonyx(*both, "--json")
        failure, *others = lines(result)
        assert (failure["subscription"], failure["error"]["kind"]) == ("fails", "dynamic_error")
        assert others == [
            {"document": "a.xml", "subscription": "1"},
            {"document": "a.xml", "subscription": "2"},
            {"document": "a.xml", "subscription": "always", "result": ""},
            {"document": "a.xml", "subscription": "t", "result": "<r>x</r>"},
            {"document": "c.xml", "subscription": "always", "result": ""},
        ]
        assert result.exit_code == codes.REFUSED
        shown = sardonyx(*both).stdout
        for cell in ("1, 2 ", "<r>x</r>", "(empty)", "5 notifications, 1 dead letter"):
            assert cell in shown

    def test_transformations_select_no_nodes(self) -> None:
        Path("t.xq").write_text("<r>{//b}</r>")
        arguments = ("match", "-s", "q.txt", "-s", "t.xq", "--nodes", "a.xml")
        found = lines(sardonyx(*arguments, "--json"))
        assert found[-1] == {"document": "a.xml", "subscription": "t", "result": "<r><b>x</b></r>", "nodes": []}
        assert all("result" not in line for line in found[:-1])
        assert "<r><b>x</b></r>" in sardonyx(*arguments).stdout

    def test_long_results_are_cut_in_tables_only(self) -> None:
        Path("t.xq").write_text("<r>{//b/text()}</r>")
        Path("long.xml").write_text(f"<a><b>{'x' * 3000}\u009b</b></a>")
        shown = sardonyx("match", "-s", "t.xq", "long.xml").stdout
        assert "3,008 characters" in shown
        assert "\u009b" not in shown
        assert len(lines(sardonyx("match", "-s", "t.xq", "--json", "long.xml"))[0]["result"]) == 3008

    def test_many_ids_are_cut_in_tables_only(self) -> None:
        Path("many.txt").write_text("/a\n" * 50)
        assert "and 30 more (--json lists all)" in sardonyx("match", "-s", "many.txt", "a.xml").stdout
        assert len(lines(sardonyx("match", "-s", "many.txt", "--json", "a.xml"))) == 50

    def test_options_reach_the_core(self) -> None:
        Path("n.jsonl").write_text('{"id": "n", "query": "/p:a", "stream": "news"}\n')
        Path("ns.xml").write_text("<q:a xmlns:q='urn:q'/>")
        base = ("match", "-s", "n.jsonl", "-n", "p=urn:q", "--json", "ns.xml")
        assert sardonyx(*base).exit_code == codes.NOTHING
        assert sardonyx(*base, "--stream", "news").exit_code == codes.FOUND
        assert sardonyx(*base, "--stream", "news", "--matcher", "naive", "--threads", "2").exit_code == codes.FOUND
        assert sardonyx("match", "-s", "q.txt", "--json", "--ignore-namespaces", "ns.xml").exit_code == codes.FOUND
        limited = sardonyx("match", "-s", "q.txt", "--json", "--limit", "depth=1", "a.xml")
        assert lines(limited)[0]["error"]["kind"] == "limit"
        large = sardonyx("match", "-s", "q.txt", "--json", "--limit", "document_bytes=4", "a.xml", "c.xml")
        assert [line.get("error", {}).get("kind") for line in lines(large)] == ["limit"]

    @pytest.mark.parametrize(
        "arguments",
        [
            ("match", "a.xml"),
            ("match", "-s", "q.txt"),
            ("match", "-s", "missing.txt", "a.xml"),
            ("match", "-s", "q.txt", "-n", "noequals", "a.xml"),
            ("match", "-s", "q.txt", "--limit", "depht=1", "a.xml"),
            ("match", "-s", "q.txt", "--limit", "depth=many", "a.xml"),
            ("match", "-s", "q.txt", "--threads", "0", "a.xml"),
            ("match", "-s", "a.xml", "a.xml"),
            ("nonsense",),
        ],
    )
    def test_wrong_usage(self, arguments: tuple[str, ...]) -> None:
        result = sardonyx(*arguments)
        assert result.exit_code == codes.FAILED
        assert result.stderr
        assert "Traceback" not in result.output

    def test_control_characters_do_not_reach_the_terminal(self) -> None:
        Path("esc.jsonl").write_text('{"id": "a\\u001b[2Jb", "query": "/a"}\n')
        assert "\x1b" not in sardonyx("match", "-s", "esc.jsonl", "a.xml").stdout


@pytest.mark.usefixtures("place")
class TestExplain:
    def test_codes(self) -> None:
        assert sardonyx("explain", "-s", "q.txt", "--id", "1", "a.xml").exit_code == codes.FOUND
        assert sardonyx("explain", "-s", "q.txt", "--id", "3", "a.xml").exit_code == codes.NOTHING
        assert sardonyx("explain", "-s", "q.txt", "--id", "1", "broken.xml").exit_code == codes.REFUSED
        assert sardonyx("explain", "-s", "q.txt", "--id", "99", "a.xml").exit_code == codes.FAILED
        refused = sardonyx("explain", "-s", "bad.jsonl", "--id", "broken", "a.xml")
        assert refused.exit_code == codes.FAILED
        assert "it was refused" in refused.stderr

    def test_output(self) -> None:
        text = sardonyx("explain", "-s", "q.txt", "--id", "2", "-", stdin=b"<a><b/></a>").stdout
        assert "matches" in text
        said = json.loads(sardonyx("explain", "-s", "q.txt", "--id", "2", "--json", "a.xml").stdout)
        assert (said["subscription_id"], said["matched"]) == ("2", True)
        assert said["clauses"]

    def test_transformations(self) -> None:
        Path("t.xq").write_text("for $b in //b return xs:integer($b)")
        arguments = ("explain", "-s", "t.xq", "--id", "t")
        assert sardonyx(*arguments, "c.xml").exit_code == codes.NOTHING
        assert sardonyx(*arguments, "a.xml").exit_code == codes.REFUSED
        found = sardonyx(*arguments, "--json", "-", stdin="<b>7</b>")
        said = json.loads(found.stdout)
        assert (said["subscription_id"], said["matched"], said["result"]) == ("t", True, "7")
        assert said["plan"]
        assert found.exit_code == codes.FOUND


@pytest.mark.usefixtures("place")
class TestIndex:
    def test_build_info_and_use(self) -> None:
        built = sardonyx("index", "build", "-s", "q.txt", "-o", "q.sdx", "--json")
        assert built.exit_code == codes.FOUND
        summary = lines(built)[-1]
        assert (summary["index"], summary["subscriptions"]) == ("q.sdx", 3)
        assert summary["bytes"] == Path("q.sdx").stat().st_size
        facts = json.loads(sardonyx("index", "info", "q.sdx", "--json").stdout)
        assert facts["subscriptions"] == 3
        assert facts["transformations"] == 0
        assert {group["query"] for group in facts["groups"]} == {"/a", "//b", "/never"}
        assert sum(facts[name] for name in facts if name.startswith("part_")) == facts["index_bytes"] == facts["bytes"]
        shown = sardonyx("index", "info", "q.sdx").stdout
        for heading in ("subscriptions", "bytes per subscription", "Largest groups", "reached by"):
            assert heading in shown
        found = sardonyx("match", "-s", "q.sdx", "--json", "a.xml")
        assert [line["subscription"] for line in lines(found)] == ["1", "2"]

    def test_transformations_are_built_too(self) -> None:
        Path("t.xq").write_text("<r>{//b}</r>")
        assert sardonyx("index", "build", "-s", "t.xq", "-o", "t.sdx").exit_code == codes.FOUND
        facts = json.loads(sardonyx("index", "info", "t.sdx", "--json").stdout)
        assert (facts["subscriptions"], facts["transformations"], facts["plans"]) == (1, 1, 1)
        assert sardonyx("index", "info", "t.sdx").exit_code == codes.FOUND
        assert lines(sardonyx("match", "-s", "t.sdx", "--json", "a.xml"))[0]["result"] == "<r><b>x</b></r>"

    @pytest.mark.parametrize(("name", "start"), [("q.png", b"\x89PNG"), ("q.svg", b"<?xml")])
    def test_info_draws(self, name: str, start: bytes) -> None:
        pytest.importorskip("matplotlib")
        sardonyx("index", "build", "-s", "q.txt", "-o", "q.sdx")
        assert sardonyx("index", "info", "q.sdx", "--plot", name).exit_code == codes.FOUND
        assert Path(name).read_bytes().startswith(start)

    def test_info_draws_no_other_formats(self) -> None:
        sardonyx("index", "build", "-s", "q.txt", "-o", "q.sdx")
        result = sardonyx("index", "info", "q.sdx", "--plot", "q.gif")
        assert result.exit_code == codes.FAILED
        assert "must end in .png or .svg" in result.stderr

    def test_drawing_says_which_extra_is_missing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        sardonyx("index", "build", "-s", "q.txt", "-o", "q.sdx")
        result = sardonyx("index", "info", "q.sdx", "--plot", "q.png")
        assert result.exit_code == codes.FAILED
        assert "pip install 'sardonyx[plots]'" in result.stderr

    def test_refused_subscriptions_are_left_out(self) -> None:
        built = sardonyx("index", "build", "-s", "bad.jsonl", "-o", "b.sdx")
        assert built.exit_code == codes.REFUSED
        assert Broker.load("b.sdx").ids() == ["good"]

    def test_damage_is_named(self) -> None:
        sardonyx("index", "build", "-s", "q.txt", "-o", "q.sdx")
        data = bytearray(Path("q.sdx").read_bytes())
        data[len(data) // 2] ^= 0xFF
        Path("q.sdx").write_bytes(data)
        with pytest.raises(IndexFormatError):
            Broker.load("q.sdx")
        result = sardonyx("index", "info", "q.sdx")
        assert result.exit_code == codes.FAILED
        assert "Error: " in result.stderr


def test_every_command_has_help_with_examples() -> None:
    def walk(command: Any, path: tuple[str, ...]) -> list[tuple[str, ...]]:
        inner = getattr(command, "commands", {})
        return [path, *(found for name, sub in inner.items() for found in walk(sub, (*path, name)))]

    paths = walk(main, ())
    assert len(paths) >= 8
    for path in paths:
        result = sardonyx(*path, "--help")
        assert result.exit_code == 0, path
        assert "Example" in result.stdout, path
        assert "sardonyx" in result.stdout, path


def test_interrupts_have_their_own_code(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(common, "read_document", interrupt)
    assert sardonyx("match", "-s", "q.txt", "a.xml").exit_code == codes.INTERRUPTED
