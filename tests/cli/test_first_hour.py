"""What somebody types in the first hour, and mistypes: one line that says what to do, in words of the command line."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

Run = Callable[..., Any]


def test_a_destination_that_is_missing(variant: Run) -> None:
    done = variant("ingest", "a.ndjson")
    assert (done.code, done.error) == (2, "write SRC... DEST (see variant ingest --help)")


@pytest.mark.parametrize("words", [["infer", "-"], ["query", "-", "SELECT v:a::int FROM t"], ["cat", "-"]])
@pytest.mark.parametrize(("text", "said"), [(b"", "standard input"), (b'{"a":\n{"b":', "(file standard input")])
def test_standard_input_is_called_that(
    variant: Run, monkeypatch: pytest.MonkeyPatch, words: list[str], text: bytes, said: str
) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text), isatty=lambda: False))
    done = variant(*words)
    assert done.code == 1
    assert said in done.error and "/variant-" not in done.error


def test_json_that_is_queried_keeps_its_name(variant: Run, tmp_path: Path) -> None:
    source = tmp_path / "a.ndjson"
    source.write_text('{"a": 1}\n')
    error = variant("query", source, "--select", "x=nope").error
    assert str(source) in error and "json.parquet" not in error


def test_bad_lines_of_json_that_is_queried(variant: Run, tmp_path: Path) -> None:
    source = tmp_path / "a.ndjson"
    source.write_text('{"a": 1}\n{"a":\n')
    assert "`variant ingest`, --on-error quarantine" in variant("query", source, "SELECT 1 FROM t").error


def test_a_place_that_is_taken(variant: Run, tmp_path: Path, usgs_sample: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "x.parquet").write_bytes(b"x")
    error = variant("ingest", usgs_sample, tmp_path / "out").error
    assert error.endswith("use --mode append or --mode overwrite, or choose another destination")


def test_a_delta_table_is_not_written_as_parquet(variant: Run, tmp_path: Path, usgs_sample: Path) -> None:
    assert variant("ingest", usgs_sample, tmp_path / "t", "--format", "delta").code == 0
    assert variant("ingest", usgs_sample, tmp_path / "t", "--format", "parquet").error.endswith("--format delta")


@pytest.mark.parametrize("name", ["a.csv", "a.CSV.gz"])
def test_csv_is_recognized_by_its_name_and_named_in_directories(variant: Run, tmp_path: Path, name: str) -> None:
    import gzip

    source = tmp_path / name
    source.write_bytes(gzip.compress(b"id,name\n1,x\n") if name.endswith("gz") else b"id,name\n1,x\n")
    assert "id" in variant("infer", source, "--ddl").out
    assert "--input-format csv" in variant("infer", tmp_path).error


def test_a_root_without_its_dollar(variant: Run, tmp_path: Path) -> None:
    source = tmp_path / "a.json"
    source.write_text('{"items": [{"a": 1}]}')
    assert "'$.items[*]'" in variant("infer", source, "--root", "items[*]").error


def test_sql_that_ends_early(variant: Run, earthquakes: Path) -> None:
    error = variant("query", earthquakes, "SELECT v:id FROM t WHERE v:mag >").error
    assert "an operand is missing" in error and "sqlglot" not in error


@pytest.mark.parametrize("engine", ["duckdb", "spark"])
def test_a_view_over_json_says_what_to_do(variant: Run, usgs_sample: Path, engine: str) -> None:
    done = variant("sql-view", usgs_sample, "--engine", engine)
    assert done.code == 1
    assert "`variant ingest`" in done.error


def test_columns_of_csv_are_read_as_spark_says(variant: Run, tmp_path: Path) -> None:
    source = tmp_path / "a.csv"
    source.write_text("a;b\n1;'x;y'\n2;NA\n")
    words = ["--parse", "sep=;", "--parse", "quote='", "--parse", "nullValue=NA", "--input-format", "csv"]
    assert variant("ingest", source, tmp_path / "out", *words).code == 0
    assert variant("cat", tmp_path / "out").rows == [{"a": 1, "b": "x;y"}, {"a": 2, "b": None}]


def test_a_path_more_in_files(variant: Run, tmp_path: Path) -> None:
    source = tmp_path / "a.ndjson"
    source.write_text('{"a": 1}\n' * 90 + '{"note": "one of few"}\n' * 10)
    variant("ingest", source, tmp_path / "out")
    words = ["--also", "$.note:string", "--also", "$.nope:int"]
    assert variant("infer", tmp_path / "out", *words).out == variant("infer", source, *words).out
    note, nope = variant("infer", tmp_path / "out", *words, "--json").json
    assert (note["path"], note["type"], note["values"], note["typed"]) == ("$['note']", "string", 10, 10)
    assert note["saved"] == note["taken"] - note["column"]
    assert nope["values"] == 0


@pytest.mark.parametrize("given", ["$.note", "note"])
def test_a_path_more_without_a_type(variant: Run, earthquakes: Path, given: str) -> None:
    assert "write PATH:TYPE" in variant("infer", earthquakes, "--also", given).error
