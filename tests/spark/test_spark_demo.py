"""`sardonyx demo` shows what the pipeline and the broker say of its data."""

from __future__ import annotations

import re
from importlib.resources import as_file, files

import pytest
import yaml

pytest.importorskip("pyspark")
from click.testing import CliRunner

from sardonyx import BrokerSettings, Document, _core, open_broker
from sardonyx.cli import main
from sardonyx.config import JoinSettings
from sardonyx.spark import read_dead_letters, read_notifications

REPORTS = {"raised-flags", "signals", "sky-report"}
MADE = REPORTS | {"located"}


def test_the_demonstration_shows_matches_results_and_dead_letters(spark, tmp_path):
    kept = tmp_path / "kept"
    done = CliRunner().invoke(main, ["demo", "--keep", str(kept)], env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    sections = re.findall(r"^(\d)\. ", done.output, re.MULTILINE)
    assert sections == list("123456")

    with as_file(files("sardonyx") / "demo") as data:
        settings = BrokerSettings(joins=JoinSettings(timestamps={"alerts": "/*/Who/Date"}))
        broker, report = open_broker(data / "subscriptions.yaml", settings)
        documents = [Document(path.name, path.read_bytes(), "alerts") for path in (data / "alerts").iterdir()]
    assert (len(documents), len(broker), len(report.rejected)) == (100, 37, 1)
    said = main.commands["demo"].help
    assert said is not None
    assert "100 astronomical alerts and 38 subscriptions" in said
    published = broker.publish_many(documents, together=True)
    expected = {(item.document_id, item.subscription_id, item.result) for item in published}
    rows = read_notifications(spark, kept).collect()
    assert {(row.document_id.rsplit("/", 1)[-1], row.subscription_id, row.result) for row in rows} == expected
    assert {row.subscription_id for row in rows if row.result is not None} == MADE
    assert sorted(row.kind for row in read_dead_letters(spark, kept).collect()) == ["not_well_formed", "query_syntax"]

    results = done.output.split("\n3. ")[1].split("\n4. ")[0]
    shown = "".join(line.split("│")[2].strip() for line in results.splitlines() if line.startswith("│"))
    for name in MADE:
        texts = [result for _, who, result in expected if who == name and len(result) <= 300]
        longest = [text for text in texts if len(text) == max(map(len, texts))]
        assert any(text.replace(" ", "") in shown.replace(" ", "") for text in longest)


@pytest.mark.parametrize("name", sorted(REPORTS))
def test_results_are_those_of_the_exact_evaluator(name):
    with as_file(files("sardonyx") / "demo") as data:
        content = yaml.safe_load((data / "subscriptions.yaml").read_text(encoding="utf-8"))
        broker, _ = open_broker(data / "subscriptions.yaml")
        documents = [path.read_bytes() for path in (data / "alerts").iterdir() if "truncated" not in path.name]
    query = next(item["query"] for item in content["subscriptions"] if item["id"] == name)
    made = [
        (row[name], _core.evaluate_xquery(query, payload, content["namespaces"]))
        for payload, row in zip(documents, broker.match_batch(documents).results(), strict=True)
        if name in row
    ]
    assert len(made) >= 15
    assert all(result == exact for result, exact in made)
