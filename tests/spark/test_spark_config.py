"""Settings of pipelines are checked before anything starts; no Spark needed to see it."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sardonyx import Limits
from sardonyx.errors import SettingsError

pytest.importorskip("pyspark")
from sardonyx.spark import PipelineConfig, SinkConfig, SourceConfig

GOOD = {
    "source": {"kind": "records", "path": "big.xml", "record": "article"},
    "subscriptions": "queries.txt",
    "sink": {"kind": "parquet", "path": "out"},
}


def test_yaml_and_mapping_say_the_same(tmp_path):
    file = tmp_path / "pipeline.yaml"
    file.write_text(
        "source: {kind: records, path: big.xml, record: article, max_files_per_trigger: 3}\n"
        "subscriptions: queries.txt\n"
        "sink: {kind: parquet, path: out}\n"
        "checkpoint: state\n"
        "trigger: 2.5\n"
        "limits: {depth: 7}\n"
        "spark: {spark.ui.enabled: true, spark.sql.shuffle.partitions: 3}\n"
    )
    config = PipelineConfig.from_yaml(file)
    assert config.source.max_files_per_trigger == 3
    assert config.limits == Limits(depth=7)
    assert config.trigger == 2.5
    assert config.spark == {"spark.ui.enabled": "true", "spark.sql.shuffle.partitions": "3"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"source": {"kind": "records", "path": "x"}}, "source.record"),
        ({"source": {"kind": "files", "path": "x", "record": "y"}}, "source.record"),
        ({"source": {"kind": "ftp", "path": "x"}}, "source.kind"),
        ({"source": {"kind": "files"}}, "source.path is missing"),
        ({"source": {"kind": "files", "path": "x", "max_files_per_trigger": 0}}, "at least 1"),
        ({"sink": {"kind": "console", "path": "x"}}, "console takes none"),
        ({"sink": {"kind": "jsonl"}}, "need one"),
        ({"sink": {"kind": "parquet", "path": "s3://b/x"}}, "local or mounted"),
        ({"checkpoint": "state[1]"}, "local or mounted"),
        ({"trigger": "hourly"}, "trigger"),
        ({"trigger": -1}, "trigger"),
        ({"matcher": "fast"}, "matcher"),
        ({"cores": 0}, "cores"),
        ({"retain_batches": 1}, "retain_batches"),
        ({"limits": {"deepness": 3}}, "limits.deepness"),
        ({"speed": 11}, "unknown setting speed"),
    ],
)
def test_impossible_settings_are_refused_by_name(change, words):
    with pytest.raises(SettingsError, match=words.replace("[", r"\[")):
        PipelineConfig.from_mapping({**GOOD, **change})


def test_a_missing_setting_is_named():
    with pytest.raises(SettingsError, match="subscriptions is missing"):
        PipelineConfig.from_mapping({name: value for name, value in GOOD.items() if name != "subscriptions"})


@pytest.mark.parametrize("text", ["- a list\n", "a: [\n"])
def test_a_file_that_is_no_pipeline_is_refused(tmp_path, text):
    file = tmp_path / "pipeline.yaml"
    file.write_text(text)
    with pytest.raises(SettingsError, match=r"pipeline\.yaml"):
        PipelineConfig.from_yaml(file)


def test_without_pyspark_the_error_names_the_extra():
    program = (
        "import sys; sys.modules['pyspark'] = None\n"
        "import sardonyx, sardonyx.spark as s\n"
        "try: s.match\n"
        "except sardonyx.errors.MissingExtraError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert "pip install 'sardonyx[spark]'" in done.stdout


def test_the_public_names_are_what_they_say():
    from sardonyx import spark

    assert spark.__all__ == sorted(spark.__all__)
    assert set(spark.__all__) == set(spark._PLACES)
    for name in spark.__all__:
        assert getattr(spark, name).__module__ == f"sardonyx.spark.{spark._PLACES[name]}"
    with pytest.raises(AttributeError):
        spark.nothing  # noqa: B018  the access is the test


def test_spark_and_arrow_schemas_agree():
    from pyspark.sql.pandas.types import to_arrow_schema

    from sardonyx.spark import schemas

    assert to_arrow_schema(schemas.RESULTS) == schemas.RESULTS_ARROW


def _guide() -> str:
    return (Path(__file__).resolve().parents[2] / "docs" / "spark.md").read_text(encoding="utf-8")


def test_the_guide_names_every_setting_and_every_public_name():
    from sardonyx import spark

    text = _guide()
    for part, prefix in ((SourceConfig, "source."), (SinkConfig, "sink."), (PipelineConfig, "")):
        for item in dataclasses.fields(part):
            assert f"`{prefix}{item.name}" in text or f"`{item.name}`" in text, item.name
    values = {"Population", "Generation", "GenerationError", "PipelineError", "SinkError", "SinkConfig", "SourceConfig"}
    for name in set(spark.__all__) - values - {"current"}:
        assert name in text, name


def test_the_first_example_of_the_guide_runs(spark, capfd):
    program = re.findall(r"```python\n(.*?)```", _guide(), re.DOTALL)[0]
    exec(compile(program, "docs/spark.md", "exec"), {})
    shown = capfd.readouterr().out
    assert "big" in shown
    assert "not_well_formed" in shown


def test_the_results_are_written_by_outcome_without_a_sort(spark, tmp_path):
    from sardonyx.spark import match

    documents = spark.createDataFrame([("m1", "<a/>")], "document_id string, payload string")
    results = match(documents, [("s", "/a")])
    results.createOrReplaceTempView("results_to_explain")
    spark.sql(
        f"CREATE TABLE results_to_write USING parquet PARTITIONED BY (outcome) LOCATION '{tmp_path / 't'}' "
        "AS SELECT document_id, outcome FROM results_to_explain"
    )
    plan = spark.sql("EXPLAIN INSERT INTO results_to_write SELECT document_id, outcome FROM results_to_explain")
    spark.sql("DROP TABLE results_to_write")
    assert "Sort" not in plan.collect()[0][0]
