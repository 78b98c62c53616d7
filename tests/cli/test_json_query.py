"""`variant query` on JSON that was never ingested: a file, several, compressed, standard input; SQL and paths."""

from __future__ import annotations

import gzip
import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import parquet_variant as pv

Run = Callable[..., Any]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / "rows.ndjson"
    file.write_text('{"n": 1, "s": "a"}\n{"n": 5, "s": "b"}\n{"s": "c"}\n')
    return file


def test_paths_and_sql_give_what_they_give_of_parquet(variant: Run, source: Path) -> None:
    done = variant("query", source, "-s", "n=$.n:int", "-s", "s=$.s:string", "-w", "n > 1", "--json")
    assert done.rows == [{"n": 5, "s": "b"}]
    assert variant("query", source, "SELECT max(v:n::int) AS n FROM t", "--json").rows == [{"n": 5}]
    assert variant("query", f"SELECT count(*) AS c FROM '{source}'", "--json").rows == [{"c": 3}]


def test_compressed_and_pretty_printed(variant: Run, tmp_path: Path) -> None:
    with gzip.open(tmp_path / "a.json.gz", "wt") as file:
        file.write('{\n  "n": 1\n}\n{\n  "n": 2\n}\n')
    done = variant("query", tmp_path / "a.json.gz", "-s", "n=$.n:int", "--json")
    assert done.rows == [{"n": 1}, {"n": 2}]


def test_standard_input(variant: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'[{"n": 7}, {"n": 8}]')))
    assert variant("query", "-", "-s", "n=$.n:int", "--json").rows == [{"n": 7}, {"n": 8}]


def test_a_bad_line_is_an_error(variant: Run, source: Path) -> None:
    with source.open("a") as file:
        file.write('{"n":\n')
    assert "line 4" in variant("query", source, "-s", "n=$.n:int").error


def test_python(source: Path) -> None:
    assert pv.sql(f"SELECT sum(v:n::int) AS n FROM '{source}'").to_pylist() == [{"n": 6}]
    assert pv.sql("SELECT count(*) AS c FROM t", t=source).to_pylist() == [{"c": 3}]
