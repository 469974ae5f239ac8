"""Joins on the command line: among the documents that are named."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sardonyx.cli import codes, main

SUBSCRIPTIONS = """
subscriptions:
  - {id: shipped, language: xscl, query: "//order->o[sku->a] FOLLOWED BY{a = b, 1 h} //ship->x[sku->b] PUBLISH done"}
  - {id: billed, language: xscl, query: "done//order->o[sku->a] JOIN{a = b, 1 h} //bill[sku->b]"}
  - {id: pairs, query: /result/ship}
  - {id: orders, query: /order}
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Orders, shipments and a bill, named in the order in which they happened, but for one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    Path("s.yaml").write_text(SUBSCRIPTIONS)
    for name, at in (("1-order", 0), ("2-ship", 10), ("3-bill", 20), ("0-ship", 3599), ("9-ship", 3601)):
        kind = name.partition("-")[2]
        Path(f"{name}.xml").write_text(f"<{kind}><sku at='{at}'>K</sku></{kind}>")
    return tmp_path


def sardonyx(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def lines(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def joined(result: Result) -> dict[str, list[list[str]]]:
    found: dict[str, list[list[str]]] = {}
    for line in lines(result):
        if "documents" in line:
            assert line["document"] == line["documents"][-1]
            found.setdefault(line["subscription"], []).append(line["documents"])
    return {name: sorted(documents) for name, documents in found.items()}


def test_documents_happen_in_the_order_in_which_they_are_named() -> None:
    result = sardonyx("match", "-s", "s.yaml", "--json", "0-ship.xml", "1-order.xml", "2-ship.xml", "3-bill.xml")
    assert result.exit_code == codes.FOUND
    found = joined(result)
    assert found["shipped"] == [["1-order.xml", "2-ship.xml"]]
    ((made, bill),) = found["billed"]
    assert bill == "3-bill.xml"
    first = next(line for line in lines(result) if line["subscription"] == "shipped")
    assert first["result"].startswith("<result><order><sku at=")
    assert [line["document"] for line in lines(result) if line["subscription"] == "pairs"] == [made]
    assert joined(sardonyx("match", "-s", "s.yaml", "--json", "2-ship.xml", "1-order.xml")) == {}


def test_documents_may_say_when_they_happened() -> None:
    result = sardonyx("match", "-s", "s.yaml", "--json", "--timestamp", "//sku/@at", "*.xml")
    assert joined(result)["shipped"] == [["1-order.xml", "0-ship.xml"], ["1-order.xml", "2-ship.xml"]]
    Path("x.xml").write_text("<order><sku at='some day'>K</sku></order>")
    result = sardonyx("match", "-s", "s.yaml", "--json", "--timestamp", "//sku/@at", "x.xml")
    assert result.exit_code == codes.REFUSED
    found, letter = sorted(lines(result), key=lambda line: "error" in line)
    assert found == {"document": "x.xml", "subscription": "orders"}
    assert (letter["document"], letter["error"]["kind"]) == ("x.xml", "timestamp")
    wrong = sardonyx("match", "-s", "s.yaml", "--timestamp", "//[", "x.xml")
    assert (wrong.exit_code, "timestamp" in wrong.stderr) == (codes.FAILED, True)


def test_tables() -> None:
    for nodes in ([], ["--nodes"]):
        shown = sardonyx("match", "-s", "s.yaml", *nodes, "1-order.xml", "2-ship.xml")
        assert "1-order.xml + 2-ship.xml" in shown.stdout
        assert "2 documents, 4 subscriptions: 3 notifications" in shown.stdout


def test_index_and_explain() -> None:
    assert sardonyx("index", "build", "-s", "s.yaml", "-o", "s.sdx").exit_code == codes.FOUND
    facts = json.loads(sardonyx("index", "info", "s.sdx", "--json").stdout)
    assert (facts["subscriptions"], facts["joins"]) == (4, 2)
    assert sardonyx("index", "info", "s.sdx").exit_code == codes.FOUND
    assert joined(sardonyx("match", "-s", "s.sdx", "--json", "1-order.xml", "2-ship.xml"))["shipped"]

    arguments = ("explain", "-s", "s.sdx", "--id", "shipped")
    said = sardonyx(*arguments, "1-order.xml", "2-ship.xml")
    assert said.exit_code == codes.FOUND, said.output
    assert "joined" in said.stdout
    assert sardonyx(*arguments, "2-ship.xml", "1-order.xml").exit_code == codes.NOTHING
    assert json.loads(sardonyx(*arguments, "--json", "1-order.xml", "2-ship.xml").stdout)["joined"] is True
    few = sardonyx(*arguments, "1-order.xml")
    assert (few.exit_code, "2 blocks" in few.stderr) == (codes.FAILED, True)
    many = sardonyx("explain", "-s", "s.sdx", "--id", "orders", "1-order.xml", "2-ship.xml")
    assert (many.exit_code, "no join" in many.stderr) == (codes.FAILED, True)
