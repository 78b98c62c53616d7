"""The README's Spark snippet runs as it stands, on paths that are there."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from tests.iceberg.rest_server import rest_catalog

import parquet_variant as pv

_README = Path(__file__).resolve().parents[2] / "README.md"


def test_the_snippet_runs(spark, tmp_path, usgs_sample):
    section = _README.read_text().split("## In Spark", 1)[1]
    code = re.search(r"```python\n(.*?)```", section, re.DOTALL)[1]
    (tmp_path / "raw").mkdir()
    shutil.copy(usgs_sample, tmp_path / "raw" / "quakes.ndjson")
    names: dict = {}
    exec(code.replace("s3://lake", str(tmp_path)), names)
    magnitudes = [row["properties"]["mag"] for row in pv.open(tmp_path / "events").read().to_pylist()]
    assert names["df"].count() == sum(magnitude is not None and magnitude > 5 for magnitude in magnitudes)
    assert len(pv.open(tmp_path / "copy").read()) == 1707


def test_the_stream_of_the_guide_runs(spark, tmp_path, monkeypatch):
    text = (_README.parent / "docs/guides/streams.md").read_text()
    code = re.search(r"```python\n(.*?)```", text, re.DOTALL)[1]
    for name in ("checkpoint", "events"):
        code = code.replace(f'"{name}"', f'"{tmp_path / name}"')
    spark.dataSource.register(pv.spark.VariantDataSource)
    names: dict = {"spark": spark}
    exec(code, names)
    try:
        names["query"].processAllAvailable()
    finally:
        names["query"].stop()
    assert (tmp_path / "events/_delta_log").is_dir()


def test_the_recipes_run(spark, tmp_path):
    text = (_README.parent / "docs/guides/spark-recipes.md").read_text()
    names: dict = {"spark": spark}
    spark.dataSource.register(pv.spark.VariantDataSource)
    paths = (
        "landing",
        "bronze",
        "silver",
        "latest",
        "history",
        *(f"checkpoints/{job}" for job in ("bronze", "silver", "latest")),
    )
    try:
        for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
            for path in paths:
                code = code.replace(f'"{path}"', f'"{tmp_path / path}"').replace(
                    f"path '{path}'", f"path '{tmp_path / path}'"
                )
            exec(code, names)
    finally:
        spark.sql("DROP VIEW IF EXISTS history_view")
        spark.sql("DROP TABLE IF EXISTS silver_events")
    assert sorted((row.kind, row.n) for row in names["counts"]) == [("k0", 34), ("k1", 33), ("k2", 33)]
    assert len(pv.open(tmp_path / "latest").read()) == 3
    assert (names["regions"], names["before"], names["after"]) == (1, 100, 105)


def test_the_stream_with_a_contract_of_the_guide_runs(spark, tmp_path):
    text = (_README.parent / "docs/guides/stream-contracts.md").read_text()
    code = re.search(r"```python\n(.*?)```", text, re.DOTALL)[1]
    for name in ("checkpoint", "events", "logs", "contract.yaml"):
        code = code.replace(f'"{name}"', f'"{tmp_path / name}"')
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/a.ndjson").write_text('{"id": 1}\n')
    names: dict = {"spark": spark}
    exec(code.replace(".start()", ".trigger(availableNow=True).start()"), names)
    names["query"].awaitTermination()
    assert pv.open(tmp_path / "events").read().to_pylist() == [{"id": 1}]
    assert "$.id" in (tmp_path / "contract.yaml").read_text()


def test_the_blocks_about_iceberg_run(spark, tmp_path, usgs_sample):
    section = (_README.parent / "docs/iceberg.md").read_text().split("## Iceberg in Spark", 1)[1]
    code = re.search(r"```python\n(.*?)```", section, re.DOTALL)[1]
    names: dict = {}
    with rest_catalog(tmp_path / "warehouse") as (uri, _):
        pv.create_namespace("db", catalog={"type": "rest", "uri": uri})
        code = code.replace("http://127.0.0.1:8181", uri).replace('"checkpoint"', f'"{tmp_path / "checkpoint"}"')
        exec(code.replace('"quakes.ndjson"', repr(str(usgs_sample))), names)
        rows = [len(pv.open(f"db.{name}", catalog=names["catalog"]).read()) for name in ("quakes", "copy", "streamed")]
        assert 0 < rows[0] < 1707
        assert rows == rows[:1] * 3
        assert sum(row.n for row in names["counts"].collect()) == rows[0]
        assert 0 < names["strong"].count() < rows[0]
