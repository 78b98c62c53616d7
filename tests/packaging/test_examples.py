"""The examples run as they say."""

from __future__ import annotations

import json
import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import parquet_variant as pv

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def run(name: str, *words: object) -> str:
    command = [sys.executable, str(EXAMPLES / name), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_json_before_any_ingest_is_explored(tmp_path: Path, usgs_sample: Path) -> None:
    said = run("explore_cve.py", usgs_sample, tmp_path / "page.html")
    assert "place: string, in 100% of the rows" in said
    assert "<title>" in (tmp_path / "page.html").read_text("utf-8")


def test_json_strings_become_a_variant_next_to_the_other_columns(tmp_path: Path, usgs_sample: Path) -> None:
    texts = usgs_sample.read_text("utf-8").splitlines()
    pq.write_table(pa.table({"n": range(len(texts)), "payload": texts}), tmp_path / "strings.parquet")
    said = run("migrate_json_strings.py", tmp_path / "strings.parquet", "payload", tmp_path / "events.parquet")
    assert said.startswith("1,707 rows")
    found = pv.open(tmp_path / "events.parquet").scan({"n": "n", "id": ("$.id", "string")}).to_arrow()
    assert found["n"].to_pylist() == list(range(1707))
    assert found["id"].to_pylist() == [json.loads(text)["id"] for text in texts]


def test_jsonbench_counts_events(tmp_path: Path) -> None:
    rows = [{"kind": "commit", "commit": {"collection": f"app.{n % 3}"}} for n in range(300)]
    (tmp_path / "events.ndjson").write_text("\n".join(map(json.dumps, rows)))
    said = run("jsonbench.py", tmp_path / "events.ndjson", tmp_path / "table")
    assert "300 events" in said
    assert said.count("100") == 3


def test_messages_are_streamed_once_and_drift_is_reported(spark: Any, tmp_path: Path, capsys: Any) -> None:
    stream = runpy.run_path(str(EXAMPLES / "stream_events.py"))["main"]
    logs, table, checkpoint = (tmp_path / name for name in ("logs", "table", "checkpoint"))
    logs.mkdir()

    def run(name: str, lines: list[str]) -> str:
        if lines:
            (logs / name).write_text("\n".join(lines) + "\n")
        stream(str(logs), str(table), str(checkpoint))
        return str(capsys.readouterr().out)

    assert "no drift" in run("a.ndjson", [json.dumps({"id": n, "kind": "old"}) for n in range(50)])
    drifted = [json.dumps({"id": f"x{n}", "kind": "new", "seen": "2026-11-20"}) for n in range(50)]
    said = run("b.ndjson", [*drifted, "{"])
    assert "51 messages, 1 invalid" in said
    assert "hot  $.seen" in said
    # Spark died after the commit, before it knew of it: the batch comes again, and is not written again.
    shutil.rmtree(checkpoint / "events" / "commits")
    assert run("c.ndjson", []) == ""
    found = pv.open(pv.open(table).snapshot).scan({"kind": ("$.kind", "string")}, column="event").to_arrow()
    assert sorted(map(str, found["kind"].to_pylist())) == ["None"] + ["new"] * 50 + ["old"] * 50


@pytest.mark.slow
@pytest.mark.spark
def test_a_declarative_pipeline_brings_every_line_once(tmp_path: Path, usgs_sample: Path) -> None:
    for module in ("grpc", "grpc_status", "pandas", "yaml"):
        pytest.importorskip(module, reason="pyspark[pipelines] is not installed")
    import pyspark

    from parquet_variant.spark.session import find_java

    place = Path(shutil.copytree(EXAMPLES / "pipeline", tmp_path / "pipeline"))
    spec = place / "spark-pipeline.yml"
    spec.write_text(spec.read_text().replace("/tmp/events-pipeline", str(tmp_path)))
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.ndjson").write_text("\n".join(usgs_sample.read_text("utf-8").splitlines()[:100]) + "\n")
    home = Path(pyspark.__file__).parent
    environment = os.environ | {"SPARK_HOME": str(home), "JAVA_HOME": str(find_java().spark_home())}
    environment |= {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    command = [str(home / "bin" / "spark-pipelines"), "run"]
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
    # What comes after that line is PySpark's: see the note in the pipeline's file.
    assert "Run is COMPLETED" in done.stdout + done.stderr, (done.stdout + done.stderr)[-6000:]
    assert len(pv.open(tmp_path / "events").read()) == 100
