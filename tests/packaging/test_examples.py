"""The examples run as they say."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

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


def test_json_strings_become_a_variant_beside_the_other_columns(tmp_path: Path, usgs_sample: Path) -> None:
    texts = usgs_sample.read_text("utf-8").splitlines()
    pq.write_table(pa.table({"n": range(len(texts)), "payload": texts}), tmp_path / "strings.parquet")
    said = run("migrate_json_strings.py", tmp_path / "strings.parquet", "payload", tmp_path / "events.parquet")
    assert said.startswith("1,707 rows")
    found = pv.parquet.extract(tmp_path / "events.parquet", {"n": "n", "id": ("$.id", "string")})
    assert found["n"].to_pylist() == list(range(1707))
    assert found["id"].to_pylist() == [json.loads(text)["id"] for text in texts]


def test_jsonbench_counts_events(tmp_path: Path) -> None:
    rows = [{"kind": "commit", "commit": {"collection": f"app.{n % 3}"}} for n in range(300)]
    (tmp_path / "events.ndjson").write_text("\n".join(map(json.dumps, rows)))
    said = run("jsonbench.py", tmp_path / "events.ndjson", tmp_path / "table")
    assert "300 events" in said
    assert said.count("100") == 3
